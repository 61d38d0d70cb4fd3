/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Channels between two nodes: two cores, whose messages the test carries.
 *
 * Ranks 0 and 2 are on node a, which is the home, ranks 1 and 3 on node b. What one node cannot
 * give is let go by the other; whoever ends a channel ends it on both.
 */
#include "again.h"
#include "away.h"
#include "channel.h"
#include "suite.h"
#include "world.h"

#include <string.h>

static struct world w;
static struct world_table t;
static struct world_client *rank[4];
static uint64_t domain;
static uint32_t victim_node;

/* Everybody goes; nothing is left. */
static void finish(void)
{
	uint32_t i;

	for (i = 0; i < w.nclients; i++)
		if (w.clients[i]->open)
			world_die(&w, w.clients[i]);
	for (i = 0; i < 4; i++)
		world_dead(&w, i % 2, 100 + i); /* who has not come back to a restarted daemon */
	world_advance(&w, 60000);
	world_check_empty(&w);
	world_end(&w);
}

static void finish_three(void)
{
	uint32_t i;

	for (i = 0; i < w.nclients; i++)
		if (w.clients[i]->open)
			world_die(&w, w.clients[i]);
	for (i = 0; i < 3; i++)
		world_dead(&w, i, 100 + i);
	world_advance(&w, 60000);
	world_check_empty(&w);
	world_end(&w);
}

static void join_all(void)
{
	uint32_t i;

	world_table(&t, 4, 2);
	for (i = 0; i < 4; i++)
		rank[i] = world_client(&w, i % 2, 100 + i, 1000, HC_W_role_MEMBER);
	for (i = 0; i < 4; i++)
		world_join_table(&w, rank[i], &t, i);
	for (i = 0; i < 4; i++)
		ck_assert_int_eq(rank[i]->code, 0);
	domain = rank[0]->id;
	world_forget(&w);
}

/* Each device has a way out of its node of 1,000 MB/s, which is its only link. */
static void start_two(void)
{
	struct hc_link_fact out = {.type = HC_W_link_type_ROCE,
				   .b = HC_END_NET,
				   .mbps = 1000,
				   .vcs = 8,
				   .present = true};
	uint32_t i;

	world_start(&w, 2);
	for (i = 0; i < 4; i++) {
		out.a = i;
		world_link(&w, 0, &out);
		world_link(&w, 1, &out);
	}
	join_all();
}

static void across(struct world_client *cl, uint32_t from, uint32_t peer, uint32_t mbps,
		   uint32_t back, bool wait)
{
	const struct world_piece p = {.peer = peer, .mbps = mbps, .back_mbps = back, .flags = 1};

	cl->ngrants = 0;
	world_acquire(&w, cl, domain, from, &p, 1, wait, 0, 0);
}

START_TEST(a_gang_over_two_nodes_is_had_on_both)
{
	const struct world_piece gang[2] = {{.peer = 1, .mbps = 500, .flags = 1},
					    {.peer = 3, .mbps = 300, .flags = 1}};
	uint64_t first;

	start_two();
	world_acquire(&w, rank[0], domain, 0, gang, 2, false, 0, 0);
	ck_assert_uint_eq(rank[0]->ngrants, 2);
	first = rank[0]->grants[0].channel;
	world_open(&w, rank[0], first, 0);
	world_open(&w, rank[0], rank[0]->grants[1].channel, 0);
	/* the far end is there at once, on its own node */
	across(rank[1], 1, 0, 0, 500, false);
	ck_assert_uint_eq(rank[1]->ngrants, 1);
	ck_assert_uint_eq(rank[1]->grants[0].channel, first);
	ck_assert_uint_eq(rank[1]->grants[0].side, 1);
	world_open(&w, rank[1], first, 1);
	/* node a has 200 left on the way out of device 0 */
	across(rank[0], 0, 3, 300, 0, false);
	ck_assert_int_eq(rank[0]->code, HC_E_AGAIN);
	ck_assert_ptr_nonnull(strstr(rank[0]->text, "800 of 800 MB/s"));
	/* whoever ends it, it is over on both */
	world_release(&w, rank[1], first, 1);
	ck_assert_uint_eq(rank[0]->event_kind, HC_W_event_code_CHANNEL_REVOKED);
	ck_assert_uint_eq(rank[0]->event_channel, first);
	world_advance(&w, 20000); /* the place that was kept is not used */
	across(rank[0], 0, 3, 300, 0, false);
	ck_assert_int_eq(rank[0]->code, 0);
	finish();
}
END_TEST

START_TEST(what_one_node_refuses_is_let_go_by_the_other)
{
	start_two();
	across(rank[3], 3, 2, 800, 0, false); /* b's device 1 is full, and a's */
	ck_assert_int_eq(rank[3]->code, 0);
	world_open(&w, rank[3], rank[3]->grants[0].channel, 3);
	across(rank[0], 0, 3, 0, 100, false);
	ck_assert_int_eq(rank[0]->code, HC_E_AGAIN);
	world_query(&w, rank[0], HC_VIEW_channel, 0, 0, 0);
	ck_assert_uint_eq(rank[0]->nrows, 1);   /* that of rank 2 and 3 alone */
	across(rank[0], 0, 1, 800, 800, false); /* nothing of a was kept */
	ck_assert_int_eq(rank[0]->code, 0);
	finish();
}
END_TEST

START_TEST(both_ends_ask_at_the_same_time)
{
	start_two();
	world_hold(&w, 0, 1, true);
	world_hold(&w, 1, 0, true);
	across(rank[0], 0, 1, 400, 400, true);
	across(rank[1], 1, 0, 400, 400, true);
	ck_assert(world_waits(rank[0]) && world_waits(rank[1]));
	world_hold(&w, 0, 1, false);
	world_hold(&w, 1, 0, false);
	ck_assert(!world_waits(rank[0]) && !world_waits(rank[1]));
	ck_assert_uint_eq(rank[0]->ngrants, 1);
	ck_assert_uint_eq(rank[1]->ngrants, 1);
	ck_assert_uint_eq(rank[0]->grants[0].channel, rank[1]->grants[0].channel);
	ck_assert(rank[0]->grants[0].side != rank[1]->grants[0].side);
	finish();
}
END_TEST

/* The far end asks when the channel is had already, and it has not heard of it: it gets that one.
 */
START_TEST(what_is_asked_crosses_the_commit)
{
	start_two();
	world_hold(&w, 0, 1, true);
	across(rank[0], 0, 1, 400, 400, true);
	ck_assert_str_eq(world_next_name(&w, 0, 1), "gang_reserve");
	ck_assert(world_carry(&w, 0, 1));
	world_settle(&w);
	ck_assert(!world_waits(rank[0]));
	ck_assert_str_eq(world_next_name(&w, 0, 1), "gang_commit");
	across(rank[1], 1, 0, 400, 400, true);
	ck_assert(world_waits(rank[1]));
	world_hold(&w, 0, 1, false);
	ck_assert(!world_waits(rank[1]));
	ck_assert_int_eq(rank[1]->code, 0);
	ck_assert_uint_eq(rank[1]->ngrants, 1);
	ck_assert_uint_eq(rank[1]->grants[0].channel, rank[0]->grants[0].channel);
	ck_assert(rank[0]->grants[0].side != rank[1]->grants[0].side);
	world_query(&w, rank[0], HC_VIEW_channel, 0, 0, 0);
	ck_assert_uint_eq(rank[0]->nrows, 1);
	finish();
}
END_TEST

START_TEST(an_asker_that_goes_leaves_nothing_on_the_other_node)
{
	start_two();
	across(rank[3], 3, 2, 800, 0, false);
	world_open(&w, rank[3], rank[3]->grants[0].channel, 3);
	across(rank[0], 0, 3, 0, 100, true); /* kept on a, waits on b */
	ck_assert(world_waits(rank[0]));
	world_die(&w, rank[0]);
	world_settle(&w);
	world_query(&w, rank[2], HC_VIEW_waiting, 0, 0, 0);
	ck_assert_uint_eq(rank[2]->nrows, 0);
	world_query(&w, rank[3], HC_VIEW_waiting, 0, 0, 0);
	ck_assert_uint_eq(rank[3]->nrows, 0);
	finish();
}
END_TEST

START_TEST(a_withdrawal_that_crosses_the_commit_ends_the_channel)
{
	const struct world_piece p = {.peer = 1, .mbps = 100, .flags = 1};

	start_two();
	/* home and asker on a; b has answered, and rank 0 gives up before that is heard */
	world_hold(&w, 1, 0, true);
	world_acquire(&w, rank[0], domain, 0, &p, 1, true, 100, 0);
	world_advance(&w, 200);
	ck_assert_int_eq(rank[0]->code, HC_E_TIMEOUT);
	world_hold(&w, 1, 0, false);
	across(rank[1], 1, 0, 0, 800, false);
	ck_assert_int_eq(rank[1]->code, 0); /* all of it is free again, on both */
	finish();
}
END_TEST

START_TEST(a_death_is_told_across)
{
	start_two();
	across(rank[0], 0, 1, 100, 0, false);
	world_open(&w, rank[0], rank[0]->grants[0].channel, 0);
	across(rank[1], 1, 0, 0, 100, false);
	world_open(&w, rank[1], rank[1]->grants[0].channel, 1);
	world_hold(&w, 0, 1, true);
	world_die(&w, rank[0]);
	world_settle(&w);
	world_hold(&w, 0, 1, false);
	ck_assert_uint_eq(w.registers[1][rank[1]->grants[0].slot].state,
			  HC_W_channel_state_REVOKED);
	finish();
}
END_TEST

/* What joins any two ranks of a node does not reach the other node, but its way out does. */
START_TEST(memory_ends_where_the_node_does)
{
	const struct world_piece ringed = {.peer = 1};
	struct hc_link_fact shm = {.type = HC_W_link_type_SHM,
				   .a = HC_NONE,
				   .b = HC_NONE,
				   .mbps = 20000,
				   .vcs = 8,
				   .present = true},
			    out = shm;
	uint32_t i;

	world_start(&w, 2);
	for (i = 0; i < 2; i++)
		world_link(&w, i, &shm);
	join_all();
	across(rank[0], 0, 1, 100, 0, false);
	ck_assert_int_eq(rank[0]->code, HC_E_LINK_UNAVAILABLE);
	ck_assert_ptr_nonnull(strstr(rank[0]->text, "(to another node: 100 MB/s"));
	world_acquire(&w, rank[0], domain, 0, &ringed, 1, false, 0, 0);
	ck_assert_int_eq(rank[0]->code, HC_E_LINK_UNAVAILABLE);
	ck_assert_ptr_nonnull(strstr(rank[0]->text, "HCOMM_CHANNEL_GRANT_ONLY"));
	across(rank[0], 0, 2, 100, 0, false);
	ck_assert_int_eq(rank[0]->code, 0);
	ck_assert_uint_eq(rank[0]->grants[0].type, HC_W_link_type_SHM);
	out.type = HC_W_link_type_ETH;
	out.a = HC_END_NET;
	out.mbps = 1000;
	for (i = 0; i < 2; i++)
		world_link(&w, i, &out);
	across(rank[0], 0, 1, 500, 200, false);
	ck_assert_int_eq(rank[0]->code, 0);
	ck_assert_uint_eq(rank[0]->grants[0].type, HC_W_link_type_ETH);
	/* all devices of the node share it, each way for itself */
	across(rank[2], 2, 3, 400, 0, false);
	ck_assert_int_eq(rank[2]->code, HC_E_AGAIN);
	ck_assert_ptr_nonnull(strstr(rank[2]->text, "link eth:out has 500 of 800 MB/s"));
	across(rank[2], 2, 3, 300, 600, false);
	ck_assert_int_eq(rank[2]->code, 0);
	/* and within the node nobody leaves it */
	across(rank[1], 1, 3, 2000, 0, false);
	ck_assert_int_eq(rank[1]->code, 0);
	ck_assert_uint_eq(rank[1]->grants[0].type, HC_W_link_type_SHM);
	finish();
}
END_TEST

/* ---- a daemon is killed ---- */

static uint32_t granted(uint32_t node)
{
	return w.core[node]->chan->granted;
}

static uint32_t used_mbps(uint32_t node)
{
	struct hc_admit_use use;
	uint32_t i, sum = 0;

	for (i = 0; i < w.core[node]->nlinks; i++) {
		hc_admit_link_use(w.core[node]->admit, i, &use);
		sum += use.used_mbps[0] + use.used_mbps[1];
	}
	return sum;
}

/* One channel of 500 and 200 MB/s from rank 0 on a to rank 1 on b; both ends are open. */
static uint64_t one_across(void)
{
	uint64_t id;

	start_two();
	across(rank[0], 0, 1, 500, 200, false);
	id = rank[0]->grants[0].channel;
	world_open(&w, rank[0], id, 0);
	across(rank[1], 1, 0, 200, 500, false);
	ck_assert_uint_eq(rank[1]->grants[0].channel, id);
	world_open(&w, rank[1], id, 1);
	world_forget(&w);
	return id;
}

/* What is on its way is lost while `victim` is away; `meanwhile` happens on the other node. */
static void killed(uint32_t victim, void (*meanwhile)(uint64_t id), uint64_t id)
{
	uint32_t i;

	w.hold[0][1] = w.hold[1][0] = true;
	if (meanwhile)
		meanwhile(id);
	while (world_drop(&w, 0, 1) || world_drop(&w, 1, 0))
		;
	world_restart(&w, victim);
	w.hold[0][1] = w.hold[1][0] = false;
	for (i = 0; i < 2; i++) {
		hc_away_back(w.core[i], w.node_of[i][!i], 1000 + !i);
		hc_again(w.core[i], w.node_of[i][!i]);
	}
	world_settle(&w);
}

START_TEST(a_restart_takes_its_end_back)
{
	const uint64_t id = one_across();
	uint32_t i;

	killed((uint32_t)_i, NULL, id);
	for (i = 0; i < 2; i++) {
		ck_assert_uint_eq(granted(i), 1);
		ck_assert_uint_eq(used_mbps(i), 700);
		ck_assert_ptr_nonnull(hc_channel_by_id(w.core[i], id));
	}
	finish();
}
END_TEST

static void other_end_goes(uint64_t id)
{
	const uint32_t r = victim_node ? 0 : 1;

	world_release(&w, rank[r], id, r);
}

/* ... while it was away, and what was said of it is lost. */
START_TEST(an_end_that_went_meanwhile_is_over)
{
	const uint64_t id = one_across();
	uint32_t i;

	victim_node = (uint32_t)_i;
	killed(victim_node, other_end_goes, id);
	for (i = 0; i < 2; i++) {
		ck_assert_uint_eq(granted(i), 0);
		ck_assert_uint_eq(used_mbps(i), 0);
	}
	finish();
}
END_TEST

static void way_is_described_no_more(uint64_t id)
{
	uint32_t i;

	(void)id;
	for (i = 0; i < w.nlinks[victim_node]; i++)
		w.links[victim_node][i].lane = 7;
}

/* ... and it has no link any more for the end that it had: the other hears that it is over. */
START_TEST(an_end_that_is_not_taken_back_is_told)
{
	const uint64_t id = one_across();
	uint32_t i, r;

	victim_node = (uint32_t)_i;
	r = victim_node ? 0 : 1;
	killed(victim_node, way_is_described_no_more, id);
	for (i = 0; i < 2; i++) {
		ck_assert_uint_eq(granted(i), 0);
		ck_assert_uint_eq(used_mbps(i), 0);
	}
	ck_assert_uint_eq(rank[r]->event_kind, HC_W_event_code_CHANNEL_REVOKED);
	ck_assert_uint_eq(rank[r]->event_channel, id);
	finish();
}
END_TEST

/* Its own node has kept all of a gang, which another has no room for: nobody can say when. */
START_TEST(the_far_end_of_a_gang_that_waits_is_not_had_at_once)
{
	const struct world_piece gang[2] = {{.peer = 2, .mbps = 100, .flags = 1},
					    {.peer = 3, .mbps = 100, .flags = 1}};
	const struct hc_link_fact shm = {.type = HC_W_link_type_SHM,
					 .a = HC_NONE,
					 .b = HC_NONE,
					 .mbps = 20000,
					 .vcs = 8,
					 .present = true};

	start_two();
	world_link(&w, 0, &shm);
	across(rank[3], 3, 2, 800, 800, false);
	ck_assert_int_eq(rank[3]->code, 0);
	world_open(&w, rank[3], rank[3]->grants[0].channel, 3);
	world_acquire(&w, rank[0], domain, 0, gang, 2, true, 0, 0);
	ck_assert(world_waits(rank[0]));
	across(rank[2], 2, 0, 0, 100, false);
	ck_assert_int_eq(rank[2]->code, HC_E_AGAIN);
	ck_assert_uint_eq(rank[2]->retry_ms, HC_NONE);
	world_release(&w, rank[3], rank[3]->grants[0].channel, 3);
	ck_assert(!world_waits(rank[0]));
	across(rank[2], 2, 0, 0, 100, false);
	ck_assert_int_eq(rank[2]->code, 0);
	finish();
}
END_TEST

/* Rank r on node r; the home is on a, the channel from rank 1 to rank 2, whose ends are open. */
static uint64_t one_between_others(void)
{
	struct hc_link_fact out = {.type = HC_W_link_type_ROCE,
				   .b = HC_END_NET,
				   .mbps = 1000,
				   .vcs = 8,
				   .present = true};
	uint64_t id;
	uint32_t i;

	world_start(&w, 3);
	for (i = 0; i < 3; i++)
		world_link(&w, i, &out);
	world_table(&t, 3, 3);
	for (i = 0; i < 3; i++)
		rank[i] = world_client(&w, i, 100 + i, 1000, HC_W_role_MEMBER);
	for (i = 0; i < 3; i++)
		world_join_table(&w, rank[i], &t, i);
	domain = rank[0]->id;
	world_forget(&w);
	across(rank[1], 1, 2, 300, 100, false);
	ck_assert_uint_eq(rank[1]->ngrants, 1);
	id = rank[1]->grants[0].channel;
	world_open(&w, rank[1], id, 1);
	across(rank[2], 2, 1, 100, 300, false);
	ck_assert_uint_eq(rank[2]->ngrants, 1);
	world_open(&w, rank[2], id, 2);
	return id;
}

static void meet(uint32_t x, uint32_t y)
{
	hc_away_back(w.core[x], w.node_of[x][y], 1000 + y);
	hc_again(w.core[x], w.node_of[x][y]);
	hc_away_back(w.core[y], w.node_of[y][x], 1000 + x);
	hc_again(w.core[y], w.node_of[y][x]);
	world_settle(&w);
}

static void drop_all_held(void)
{
	uint32_t i, j;

	for (i = 0; i < 3; i++)
		for (j = 0; j < 3; j++)
			while (world_drop(&w, i, j))
				;
}

/* The home's daemon is killed, and what rank `_i` said last is lost with it. The node of the other
 * end meets the new one first: what it says then is not heard by a node that is not there yet. */
START_TEST(an_end_that_nobody_heard_of_is_found)
{
	const uint64_t id = one_between_others();
	const uint32_t gone = (uint32_t)_i, other = 3 - gone;

	w.hold[gone][0] = w.hold[0][gone] = true;
	world_release(&w, rank[gone], id, gone);
	ck_assert_uint_eq(granted(gone), 0);
	ck_assert_uint_eq(granted(other), 1);
	world_restart(&w, 0);
	meet(0, other);
	drop_all_held();
	w.hold[gone][0] = w.hold[0][gone] = false;
	meet(0, gone);
	world_advance(&w, 5000);
	ck_assert_uint_eq(granted(other), 0);
	ck_assert_uint_eq(used_mbps(other), 0);
	ck_assert_uint_eq(rank[other]->event_kind, HC_W_event_code_CHANNEL_REVOKED);
	ck_assert_uint_eq(rank[other]->event_channel, id);
	finish_three();
}
END_TEST

/* ... and one that both still have is not touched by it. */
START_TEST(an_end_that_is_there_stays)
{
	const uint64_t id = one_between_others();
	uint32_t i;

	world_restart(&w, 0);
	meet(0, 1);
	meet(0, 2);
	world_advance(&w, 5000);
	for (i = 1; i < 3; i++) {
		ck_assert_uint_eq(granted(i), 1);
		ck_assert_ptr_nonnull(hc_channel_by_id(w.core[i], id));
	}
	finish_three();
}
END_TEST

/* A rank waits for the first word of a home that is lost; what gangs have here is none of its
 * business. (The daemon once ended itself over that.) */
START_TEST(a_forming_domain_has_nothing_of_a_gang)
{
	struct world_client *const late = (start_two(), rank[1]);

	across(rank[0], 0, 1, 100, 0, false);
	ck_assert_uint_eq(rank[0]->ngrants, 1);
	hc_away_back(w.core[1], w.node_of[1][0], 1000);
	w.hold[1][0] = true;
	w.opt.name = "another";
	world_table(&t, 2, 2);
	world_join_table(&w, late, &t, 1);
	ck_assert(world_waits(late));
	hc_away_back(w.core[1], w.node_of[1][0], 777);
	world_advance(&w, 1);
	ck_assert_int_eq(late->code, HC_E_PEER_LOST);
	world_hold(&w, 1, 0, false);
	finish();
}
END_TEST

static void add(TCase *c)
{
	tcase_add_test(c, a_forming_domain_has_nothing_of_a_gang);
	tcase_add_loop_test(c, a_restart_takes_its_end_back, 0, 2);
	tcase_add_loop_test(c, an_end_that_went_meanwhile_is_over, 0, 2);
	tcase_add_loop_test(c, an_end_that_is_not_taken_back_is_told, 0, 2);
	tcase_add_loop_test(c, an_end_that_nobody_heard_of_is_found, 1, 3);
	tcase_add_test(c, the_far_end_of_a_gang_that_waits_is_not_had_at_once);
	tcase_add_test(c, an_end_that_is_there_stays);
	tcase_add_test(c, memory_ends_where_the_node_does);
	tcase_add_test(c, a_gang_over_two_nodes_is_had_on_both);
	tcase_add_test(c, what_one_node_refuses_is_let_go_by_the_other);
	tcase_add_test(c, both_ends_ask_at_the_same_time);
	tcase_add_test(c, what_is_asked_crosses_the_commit);
	tcase_add_test(c, an_asker_that_goes_leaves_nothing_on_the_other_node);
	tcase_add_test(c, a_withdrawal_that_crosses_the_commit_ends_the_channel);
	tcase_add_test(c, a_death_is_told_across);
}

int main(void)
{
	return hc_suite_run("core_gang", add, 60);
}
