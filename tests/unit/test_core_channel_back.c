/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Channels after a restart with other links than before.
 *
 * A row says its link by name. The numbers of links are given anew at each start, in the order of
 * the description, so a number may be that of another link: a channel then stays on its own link,
 * or, when that is described no more, it is revoked, said and forgotten, and takes nothing from
 * the link that has its number now. Rows of earlier versions have no name: their number counts
 * once more, and they get one.
 */
#include "channel.h"
#include "link.h"
#include "suite.h"
#include "worldimp.h"

#include <string.h>

enum { SHM, LANE_0, LANE_1, LINKS }; /* in the order of their numbers */

static struct world w;
static struct world_table t;
static struct world_client *rank[2];
static struct world_grant grant[2];
static uint64_t domain;

static void tell_links(void)
{
	struct hc_link_fact f = {.type = HC_W_link_type_SHM,
				 .a = HC_NONE,
				 .b = HC_NONE,
				 .mbps = 10000,
				 .vcs = 64,
				 .present = true};

	world_link(&w, 0, &f);
	f.type = HC_W_link_type_HCCS;
	f.a = 0;
	f.b = 1;
	f.mbps = 1000;
	for (f.lane = 0; f.lane < 2; f.lane++)
		world_link(&w, 0, &f);
}

static uint32_t link_of(const struct world_grant *g)
{
	return w.core[0]->chan->at[g->slot].link;
}

static const char *name(uint32_t link)
{
	static char text[HC_LINK_NAME];

	return hc_link_name(w.core[0], link, text, sizeof(text));
}

static void begin(void)
{
	unsigned i;

	world_start(&w, 1);
	for (i = 0; i < 2; i++)
		world_device(&w, 0, i, (uint8_t)(i + 1), true, "ok");
	tell_links();
	world_table(&t, 2, 1);
	for (i = 0; i < 2; i++) {
		rank[i] = world_client(&w, 0, 100 + i, 1000, HC_W_role_MEMBER);
		world_join_table(&w, rank[i], &t, i);
	}
	domain = rank[0]->id;
}

/* Two ranks with two channels of 500 MB/s: one on each lane; grant[1] is that on the second. */
static void start(void)
{
	const struct world_piece p = {
		.peer = 1, .mbps = 500, .type = HC_W_link_type_HCCS, .flags = 1};
	unsigned i;

	begin();
	for (i = 0; i < 2; i++) {
		world_acquire(&w, rank[0], domain, 0, &p, 1, false, 0, 0);
		ck_assert_int_eq(rank[0]->code, 0);
		grant[i] = rank[0]->grants[0];
	}
	if (link_of(&grant[0]) == LANE_1) {
		struct world_grant g = grant[0];

		grant[0] = grant[1];
		grant[1] = g;
	}
	ck_assert_str_eq(name(link_of(&grant[0])), "hccs:0-1");
	ck_assert_str_eq(name(link_of(&grant[1])), "hccs:0-1.1");
	w.show |= SHOW_LOG;
	world_forget(&w);
}

static void finish(void)
{
	uint32_t i;

	for (i = 0; i < w.nclients; i++)
		if (w.clients[i]->open)
			world_die(&w, w.clients[i]);
	for (i = 0; i < 2; i++)
		world_dead(&w, 0, 100 + i);
	world_advance(&w, 60000);
	world_check_empty(&w);
	world_end(&w);
}

static uint8_t state_of(const struct world_grant *g)
{
	return w.registers[0][g->slot].state;
}

static uint32_t used_mbps(uint32_t link)
{
	struct hc_admit_use use;

	hc_admit_link_use(w.core[0]->admit, link, &use);
	return use.used_mbps[0];
}

static struct world_row *row_of(const struct world_grant *g)
{
	struct world_row *last = NULL;
	uint32_t i;

	for (i = 0; i < w.nrows; i++)
		if (w.rows[i].id == g->channel)
			last = &w.rows[i];
	ck_assert_ptr_nonnull(last);
	return last;
}

START_TEST(a_channel_stays_on_its_link_when_the_numbers_change)
{
	struct hc_link_fact f;
	unsigned i;

	start();
	f = w.links[0][LANE_0];
	w.links[0][LANE_0] = w.links[0][LANE_1];
	w.links[0][LANE_1] = f;
	world_restart(&w, 0);
	ck_assert_uint_eq(link_of(&grant[0]), LANE_1);
	ck_assert_str_eq(name(link_of(&grant[0])), "hccs:0-1");
	ck_assert_uint_eq(link_of(&grant[1]), LANE_0);
	ck_assert_str_eq(name(link_of(&grant[1])), "hccs:0-1.1");
	for (i = 0; i < 2; i++) {
		ck_assert_uint_eq(state_of(&grant[i]), HC_W_channel_state_OK);
		ck_assert_uint_eq(used_mbps(link_of(&grant[i])), 500);
	}
	finish();
}
END_TEST

START_TEST(without_its_link_a_channel_is_revoked)
{
	start();
	w.links[0][LANE_1].lane = 7; /* another link, with the number of the one that went */
	world_restart(&w, 0);
	ck_assert_str_eq(name(LANE_1), "hccs:0-1.7");
	ck_assert_uint_eq(state_of(&grant[0]), HC_W_channel_state_OK);
	ck_assert_uint_eq(state_of(&grant[1]), HC_W_channel_state_REVOKED);
	ck_assert(world_said(&w, "its link hccs:0-1.1 is not described any more"));
	ck_assert_uint_eq(used_mbps(LANE_1), 0);
	ck_assert_uint_eq(row_of(&grant[1])->what, HC_DEL_CHANNEL);
	/* and what has ended stays so, also when the link is there again */
	w.links[0][LANE_1].lane = 1;
	world_restart(&w, 0);
	ck_assert_uint_eq(state_of(&grant[1]), HC_W_channel_state_REVOKED);
	ck_assert_uint_eq(used_mbps(LANE_1), 0);
	finish();
}
END_TEST

/* As a version before this one stored it. */
static void forget_name(const struct world_grant *g)
{
	struct world_row *r = row_of(g);
	struct hc_m_channel_row m;
	uint8_t bytes[256];
	size_t len;

	ck_assert_int_eq(hc_decode(&hc_desc_channel_row, HC_PROTO_MAX, r->bytes, r->len, &m), 0);
	ck_assert_uint_gt(m.link_name.len, 0);
	m.link_name.len = 0;
	ck_assert_int_eq(
		hc_encode(&hc_desc_channel_row, HC_PROTO_MAX, &m, bytes, sizeof(bytes), &len), 0);
	memcpy(r->bytes, bytes, len);
	r->len = (uint32_t)len;
}

START_TEST(a_row_without_a_name_gets_one)
{
	struct hc_link_fact f;

	start();
	forget_name(&grant[1]);
	world_restart(&w, 0);
	ck_assert_uint_eq(link_of(&grant[1]), LANE_1);
	ck_assert_uint_eq(state_of(&grant[1]), HC_W_channel_state_OK);
	f = w.links[0][LANE_0];
	w.links[0][LANE_0] = w.links[0][LANE_1];
	w.links[0][LANE_1] = f;
	world_restart(&w, 0);
	ck_assert_str_eq(name(link_of(&grant[1])), "hccs:0-1.1");
	finish();
}
END_TEST

/* Each rank opens its end, and again with another session, as who had no answer does. */
static void open_both(void)
{
	unsigned i;

	for (i = 0; i < 2; i++) {
		if (!rank[i]->open) {
			rank[i] = world_client(&w, 0, 100 + i, 1000, HC_W_role_MEMBER);
			world_attach(&w, rank[i], domain, i);
		}
		world_open(&w, rank[i], grant[0].channel, i);
	}
}

/* One channel that both ends have opened, with memory or a grant alone. */
static void open_one(bool memory)
{
	const struct world_piece p = {.peer = 1,
				      .mbps = 500,
				      .type = memory ? HC_W_link_type_SHM : HC_W_link_type_HCCS,
				      .flags = !memory};
	struct world_piece back = p;

	back.peer = 0;
	back.mbps = 0; /* the other side has said it */
	begin();
	world_acquire(&w, rank[0], domain, 0, &p, 1, false, 0, 0);
	grant[0] = rank[0]->grants[0];
	world_acquire(&w, rank[1], domain, 1, &back, 1, false, 0, 0);
	ck_assert_uint_eq(rank[1]->grants[0].channel, grant[0].channel);
	open_both();
	ck_assert_int_eq(rank[0]->code, 0);
	ck_assert_int_eq(rank[1]->code, 0);
}

/* Both ends were stored as open, and neither rank had its answer: nobody has the memory. */
START_TEST(answers_that_died_with_the_daemon_end_the_channel)
{
	open_one(true);
	ck_assert(rank[1]->rings && rank[1]->last);
	world_restart(&w, 0);
	ck_assert_uint_eq(state_of(&grant[0]), HC_W_channel_state_OK);
	open_both();
	ck_assert_int_eq(rank[0]->code, HC_E_GONE);
	ck_assert_msg(strstr(rank[0]->text, "its memory is lost"), "%s", rank[0]->text);
	ck_assert_int_eq(rank[1]->code, HC_E_GONE);
	ck_assert_uint_eq(state_of(&grant[0]), HC_W_channel_state_REVOKED);
	ck_assert_uint_eq(used_mbps(SHM), 0);
	finish();
}
END_TEST

/* The same when the answer was lost with its session. */
START_TEST(an_answer_that_died_with_its_session_ends_the_channel)
{
	open_one(true);
	world_open(&w, rank[1], grant[0].channel, 1); /* but once more is a mistake */
	ck_assert_int_eq(rank[1]->code, HC_E_INVALID);
	world_lose(&w, rank[1]);
	ck_assert_uint_eq(state_of(&grant[0]), HC_W_channel_state_OK);
	open_both();
	ck_assert_int_eq(rank[1]->code, HC_E_GONE);
	ck_assert_uint_eq(state_of(&grant[0]), HC_W_channel_state_REVOKED);
	finish();
}
END_TEST

/* A grant alone has no memory to lose. */
START_TEST(the_end_of_a_grant_is_opened_again)
{
	open_one(false);
	world_restart(&w, 0);
	open_both();
	ck_assert_int_eq(rank[0]->code, 0);
	ck_assert_int_eq(rank[1]->code, 0);
	ck_assert_uint_eq(state_of(&grant[0]), HC_W_channel_state_OK);
	finish();
}
END_TEST

static void add(TCase *c)
{
	tcase_add_test(c, answers_that_died_with_the_daemon_end_the_channel);
	tcase_add_test(c, an_answer_that_died_with_its_session_ends_the_channel);
	tcase_add_test(c, the_end_of_a_grant_is_opened_again);
	tcase_add_test(c, a_channel_stays_on_its_link_when_the_numbers_change);
	tcase_add_test(c, without_its_link_a_channel_is_revoked);
	tcase_add_test(c, a_row_without_a_name_gets_one);
}

int main(void)
{
	return hc_suite_run("core_channel_back", add, 60);
}
