/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The share of one link that a uid may hold, in a core: quota_link_percent, and between whom links
 * are shared fairly: channel_owner.
 *
 * One link "hccs:0-1" of 1,000 MB/s, of which 800 can be granted each way, with 8 virtual channels.
 * Domains of two uids, of two ranks each, all on devices 0 and 1. The world looks after each step
 * whether a uid has more than its quota, added up from the channels.
 */
#include "channel.h"
#include "suite.h"
#include "view.h"
#include "worldimp.h"

#include <string.h>

enum { MINE, ALSO_MINE, YOURS, DOMAINS };
static const uint32_t uid_of[DOMAINS] = {1000, 1000, 2000};

static struct world w;
static struct world_client *rank[DOMAINS][4];
static uint64_t domain[DOMAINS];

static void join(uint32_t d, uint32_t n)
{
	static const char *const name[DOMAINS] = {"mine", "also-mine", "yours"};
	struct world_table t;
	uint32_t i;

	world_table(&t, n, w.nodes);
	for (i = 0; i < n; i++) {
		rank[d][i] = world_client(&w, i % w.nodes, 100 + 10 * d + i, uid_of[d],
					  HC_W_role_MEMBER);
		w.opt.shared = true;
		w.opt.name = name[d];
		world_join_table(&w, rank[d][i], &t, i);
	}
	ck_assert_int_eq(rank[d][n - 1]->code, 0);
	domain[d] = rank[d][0]->id;
}

static void tell_link(void)
{
	const struct hc_link_fact hccs = {.type = HC_W_link_type_HCCS,
					  .a = 0,
					  .b = 1,
					  .mbps = 1000,
					  .vcs = 8,
					  .present = true};

	world_link(&w, 0, &hccs);
}

static void start(uint32_t percent, bool by_uid)
{
	struct hc_settings settings;
	struct hc_limits limits;
	uint32_t d;

	world_defaults(&limits, &settings);
	settings.quota_link_percent = percent;
	settings.channel_owner_uid = by_uid;
	world_start_with(&w, 1, &limits, &settings, 8, 1);
	tell_link();
	for (d = 0; d < DOMAINS; d++)
		join(d, 2);
	world_forget(&w);
}

static void finish(void)
{
	uint32_t i;

	for (i = 0; i < w.nclients; i++)
		if (w.clients[i]->open)
			world_die(&w, w.clients[i]);
	for (i = 0; i < w.nclients; i++)
		world_dead(&w, w.clients[i]->node, w.clients[i]->pid);
	world_advance(&w, 60000);
	world_check_empty(&w);
	world_end(&w);
}

static void acquire(uint32_t d, uint32_t mbps, bool wait, uint32_t timeout_ms)
{
	const struct world_piece p = {
		.peer = 1, .mbps = mbps, .type = HC_W_link_type_HCCS, .flags = 1};

	rank[d][0]->ngrants = 0;
	world_acquire(&w, rank[d][0], domain[d], 0, &p, 1, wait, timeout_ms, 0);
}

static uint64_t get(uint32_t d, uint32_t mbps)
{
	acquire(d, mbps, false, 0);
	ck_assert_msg(!rank[d][0]->code, "%s", rank[d][0]->text);
	world_open(&w, rank[d][0], rank[d][0]->grants[0].channel, 0);
	return rank[d][0]->grants[0].channel;
}

static void is_said(const struct world_client *c, const char *what)
{
	ck_assert_msg(strstr(c->text, what), "\"%s\" is not in: %s", what, c->text);
}

/* ---- refusals ---- */

START_TEST(all_domains_of_a_uid_have_one_quota)
{
	start(50, false);
	get(MINE, 300);
	acquire(ALSO_MINE, 200, false, 0);
	ck_assert_int_eq(rank[ALSO_MINE][0]->code, HC_E_AGAIN);
	is_said(rank[ALSO_MINE][0], "uid 1000 holds 300 MB/s of link hccs:0-1");
	is_said(rank[ALSO_MINE][0], "asks for 200 more, which is above 400");
	is_said(rank[ALSO_MINE][0], "quota_link_percent (50)");
	get(ALSO_MINE, 100);
	/* others have theirs whole */
	get(YOURS, 400);
	finish();
}
END_TEST

START_TEST(what_can_never_be_had_is_refused_for_good)
{
	start(50, false);
	acquire(MINE, 401, true, 0);
	ck_assert_int_eq(rank[MINE][0]->code, HC_E_LIMIT);
	is_said(rank[MINE][0], "uid 1000 holds 0 MB/s of link hccs:0-1");
	is_said(rank[MINE][0], "asks for 401 more, which is above 400");
	is_said(rank[MINE][0], "quota_link_percent (50)");
	acquire(MINE, 801, false, 0);
	ck_assert_int_eq(rank[MINE][0]->code, HC_E_LINK_UNAVAILABLE);
	finish();
}
END_TEST

START_TEST(virtual_channels_count_too)
{
	start(25, false); /* 2 of 8 */
	get(MINE, 10);
	get(ALSO_MINE, 10);
	acquire(MINE, 10, false, 0);
	ck_assert_int_eq(rank[MINE][0]->code, HC_E_AGAIN);
	is_said(rank[MINE][0], "uid 1000 holds 2 virtual channels of link hccs:0-1");
	get(YOURS, 10);
	finish();
}
END_TEST

/* ---- waiting ---- */

START_TEST(who_waits_for_its_quota_has_it_when_its_uid_gives_back)
{
	uint64_t held;

	start(50, false);
	held = get(MINE, 300);
	acquire(ALSO_MINE, 200, true, 0);
	ck_assert(world_waits(rank[ALSO_MINE][0]));
	world_release(&w, rank[MINE][0], held, 0);
	ck_assert(!world_waits(rank[ALSO_MINE][0]));
	ck_assert_uint_eq(rank[ALSO_MINE][0]->ngrants, 1);
	acquire(MINE, 250, true, 5000);
	world_advance(&w, 5000);
	ck_assert_int_eq(rank[MINE][0]->code, HC_E_TIMEOUT);
	is_said(rank[MINE][0], "quota_link_percent (50)");
	finish();
}
END_TEST

START_TEST(one_that_waits_for_its_quota_for_long_holds_up_no_other_uid)
{
	uint64_t yours;

	start(50, false);
	get(MINE, 300);
	acquire(ALSO_MINE, 200, true, 0);
	world_advance(&w, 60000); /* it has aged six times */
	ck_assert(world_waits(rank[ALSO_MINE][0]));
	yours = get(YOURS, 400);
	world_release(&w, rank[YOURS][0], yours, 0);
	get(YOURS, 400);
	/* of its own uid nobody passes it */
	acquire(MINE, 50, false, 0);
	ck_assert_int_eq(rank[MINE][0]->code, HC_E_AGAIN);
	finish();
}
END_TEST

/* Of the only one who waits. */
static struct hc_str links_waited_for(void)
{
	const struct hc_m_query q = {.view = HC_VIEW_waiting};
	struct hc_view_page g = {.c = w.core[0], .q = &q, .d = hc_desc_view(q.view)};
	struct hc_m_view_waiting r = {0};
	struct hc_str all;

	hc_channelview_waiting(&g, 0);
	ck_assert_uint_eq(g.rows, 1);
	all = (struct hc_str){(const char *)w.core[0]->scratch, (uint32_t)g.used};
	ck_assert_int_eq(hc_decode_front(g.d, HC_PROTO_MAX, &all, &r), 0);
	return r.link;
}

START_TEST(a_row_of_who_waits_has_its_links)
{
	const struct world_piece gang[3] = {
		{.peer = 1, .mbps = 200, .type = HC_W_link_type_HCCS, .flags = 1},
		{.peer = 1, .mbps = 50, .type = HC_W_link_type_SIO, .flags = 1},
		{.peer = 1, .mbps = 100, .type = HC_W_link_type_HCCS, .flags = 1}};
	const struct hc_link_fact sio = {.type = HC_W_link_type_SIO,
					 .a = 0,
					 .b = 1,
					 .mbps = 1000,
					 .vcs = 8,
					 .present = true};

	start(50, false);
	world_link(&w, 0, &sio);
	get(MINE, 300);
	acquire(ALSO_MINE, 200, false, 0); /* a ticket has no channels yet */
	ck_assert(hc_str_eq(links_waited_for(), hc_str("hccs:0-1")));
	world_acquire(&w, rank[ALSO_MINE][0], domain[ALSO_MINE], 0, gang, 1, true, 0, 0);
	ck_assert(hc_str_eq(links_waited_for(), hc_str("hccs:0-1")));
	world_die(&w, rank[ALSO_MINE][0]);
	world_acquire(&w, rank[YOURS][0], domain[YOURS], 0, gang, 3, false, 0, 0);
	get(YOURS, 50);
	world_acquire(&w, rank[YOURS][0], domain[YOURS], 0, gang, 3, true, 0, 0);
	ck_assert(world_waits(rank[YOURS][0]));
	ck_assert(hc_str_eq(links_waited_for(), hc_str("hccs:0-1,sio:0-1")));
	finish();
}
END_TEST

/* ---- restart, reload ---- */

START_TEST(what_is_taken_back_counts)
{
	uint32_t d, i;

	start(50, false);
	get(MINE, 300);
	world_restart(&w, 0);
	for (d = 0; d < DOMAINS; d++)
		for (i = 0; i < 2; i++) {
			rank[d][i] =
				world_client(&w, 0, 100 + 10 * d + i, uid_of[d], HC_W_role_MEMBER);
			world_attach(&w, rank[d][i], domain[d], i);
			ck_assert_int_eq(rank[d][i]->code, 0);
		}
	acquire(ALSO_MINE, 200, false, 0);
	ck_assert_int_eq(rank[ALSO_MINE][0]->code, HC_E_AGAIN);
	is_said(rank[ALSO_MINE][0], "uid 1000 holds 300 MB/s of link hccs:0-1");
	get(ALSO_MINE, 100);
	finish();
}
END_TEST

START_TEST(a_lowered_quota_ends_no_channel)
{
	struct hc_settings set;
	struct hc_event ev = {.kind = HC_EV_CONFIG, .u.settings = &set};

	start(0, false);
	get(MINE, 600);
	set = w.settings;
	set.quota_link_percent = 25;
	world_event(&w, 0, &ev);
	acquire(MINE, 0, false, 0);
	ck_assert_int_eq(rank[MINE][0]->code, HC_E_AGAIN);
	is_said(rank[MINE][0], "uid 1000 holds 600 MB/s");
	acquire(YOURS, 201, false, 0);
	ck_assert_int_eq(rank[YOURS][0]->code, HC_E_LIMIT);
	get(YOURS, 200);
	ck_assert_uint_eq(w.core[0]->chan->granted, 2);
	finish();
}
END_TEST

/* ---- gangs ---- */

/* Each device has one way out of its node; the quota of each node is its own. */
START_TEST(a_gang_over_two_nodes_obeys_it_on_each)
{
	struct hc_link_fact out = {.type = HC_W_link_type_ROCE,
				   .b = HC_END_NET,
				   .mbps = 1000,
				   .vcs = 8,
				   .present = true};
	const struct world_piece gang[2] = {{.peer = 1, .mbps = 200, .flags = 1},
					    {.peer = 3, .mbps = 200, .flags = 1}};
	const struct world_piece more = {.peer = 1, .mbps = 300, .flags = 1};
	struct hc_settings settings;
	struct hc_limits limits;

	world_defaults(&limits, &settings);
	settings.quota_link_percent = 50;
	world_start_with(&w, 2, &limits, &settings, 8, 1);
	for (out.a = 0; out.a < 4; out.a++) {
		world_link(&w, 0, &out);
		world_link(&w, 1, &out);
	}
	join(MINE, 4);
	/* 400 at the asker's own way out: its quota, and the other node's are half used */
	world_acquire(&w, rank[MINE][0], domain[MINE], 0, gang, 2, false, 0, 0);
	ck_assert_uint_eq(rank[MINE][0]->ngrants, 2);
	/* rank 2 has all of its own, but rank 1's way out has 200 of 400 */
	world_acquire(&w, rank[MINE][2], domain[MINE], 2, &more, 1, false, 0, 0);
	ck_assert_int_eq(rank[MINE][2]->code, HC_E_AGAIN);
	is_said(rank[MINE][2], "uid 1000 holds 200 MB/s");
	is_said(rank[MINE][2], "quota_link_percent (50)");
	finish();
}
END_TEST

/* ---- whose turn ---- */

/* Channels of 200 MB/s, one after the other; who asks is who was served last, and all want more
 * than there is. Grants to the uid with one domain, of 30. */
static uint32_t grants_of_yours(bool by_uid)
{
	uint64_t held[4];
	uint32_t i, d, yours = 0, n = 0, from[4];

	start(0, by_uid);
	for (i = 0; i < 4; i++) {
		held[i] = get(MINE, 200);
		from[i] = MINE;
	}
	for (d = 0; d < DOMAINS; d++)
		acquire(d, 200, true, 0);
	while (n < 30) {
		world_release(&w, rank[from[n % 4]][0], held[n % 4], 0);
		for (d = 0; d < DOMAINS && world_waits(rank[d][0]); d++)
			;
		ck_assert_uint_lt(d, DOMAINS);
		held[n % 4] = rank[d][0]->grants[0].channel;
		from[n % 4] = d;
		world_open(&w, rank[d][0], held[n % 4], 0);
		yours += d == YOURS;
		acquire(d, 200, true, 0);
		n++;
	}
	finish();
	return yours;
}

START_TEST(the_round_is_between_domains_or_uids)
{
	const uint32_t by_domain = grants_of_yours(false), by_uid = grants_of_yours(true);

	ck_assert_msg(by_domain >= 9 && by_domain <= 11, "%u of 30 by domain", by_domain);
	ck_assert_msg(by_uid >= 14 && by_uid <= 16, "%u of 30 by uid", by_uid);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_test(t, all_domains_of_a_uid_have_one_quota);
	tcase_add_test(t, what_can_never_be_had_is_refused_for_good);
	tcase_add_test(t, virtual_channels_count_too);
	tcase_add_test(t, who_waits_for_its_quota_has_it_when_its_uid_gives_back);
	tcase_add_test(t, one_that_waits_for_its_quota_for_long_holds_up_no_other_uid);
	tcase_add_test(t, a_row_of_who_waits_has_its_links);
	tcase_add_test(t, what_is_taken_back_counts);
	tcase_add_test(t, a_lowered_quota_ends_no_channel);
	tcase_add_test(t, a_gang_over_two_nodes_obeys_it_on_each);
	tcase_add_test(t, the_round_is_between_domains_or_uids);
}

int main(void)
{
	return hc_suite_run("core_quota", add, 60);
}
