/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Domains whose nodes cannot reach each other for a while, or for good.
 *
 * Two and three real cores that exchange their messages by hand. That a node is away, is back or
 * has begun anew is told to a core as its peers tell it; what is said before, on the way, comes
 * when the test hands it over. Wanted: every node says the same in the end, with the reason; what
 * is temporary ends by itself; what is lost is final; nothing stays behind.
 */
#include "away.h"
#include "pages.h"
#include "suite.h"
#include "world.h"

#include <string.h>

static struct world w;
static struct world_client *a0, *b1, *c2;
static uint64_t id;

static struct world_client *member(uint32_t node, uint32_t pid)
{
	return world_client(&w, node, pid, 1000, HC_W_role_MEMBER);
}

static uint8_t state_of(uint32_t node)
{
	return world_record(&w, node, id)->state;
}

static const char *cause_of(uint32_t node)
{
	return world_record(&w, node, id)->cause;
}

/* Rank 0 on a (pid 100, the home), rank 1 on b (200), rank 2 on c (300). */
static void nodes_meet(uint32_t nodes)
{
	uint32_t i, k;

	world_start(&w, nodes);
	a0 = member(0, 100);
	b1 = member(1, 200);
	c2 = nodes > 2 ? member(2, 300) : NULL;
	for (i = 0; i < nodes; i++)
		for (k = 0; k < nodes; k++)
			if (i != k)
				hc_away_back(w.core[i], w.node_of[i][k], 1000 + k);
}

static void join(uint32_t nodes)
{
	world_root_info(&w, a0, nodes);
	world_join_root(&w, a0, a0, nodes, 0);
	world_join_root(&w, b1, a0, nodes, 1);
	if (c2)
		world_join_root(&w, c2, a0, nodes, 2);
}

static void form(uint32_t nodes)
{
	nodes_meet(nodes);
	join(nodes);
	id = a0->id;
	ck_assert(id && b1->id == id);
	world_forget(&w);
}

static void gone(uint32_t on, uint32_t node)
{
	hc_away_gone(w.core[on], w.node_of[on][node], "no path to it is left");
	world_advance(&w, 1);
}

static void back(uint32_t on, uint32_t node)
{
	hc_away_back(w.core[on], w.node_of[on][node], 1000 + node);
	world_advance(&w, 1);
}

/* Between these two nothing passes, and both see it. */
static void part(uint32_t x, uint32_t y)
{
	w.hold[x][y] = w.hold[y][x] = true;
	gone(x, y);
	gone(y, x);
}

static void meet(uint32_t x, uint32_t y)
{
	back(x, y);
	back(y, x);
	world_hold(&w, x, y, false);
	world_hold(&w, y, x, false);
}

static void all_die(void)
{
	world_die_all(&w);
	world_advance(&w, 130000);
	world_check_empty(&w);
	world_end(&w);
}

/* ---- suspended ---- */

START_TEST(suspended_on_both_and_active_again)
{
	form(2);
	part(0, 1);
	ck_transcript(&w,
		      "[    0ms] a 100 hears domain-suspended, SUSPENDED (rank 1, pid 200, node "
		      "b): node b cannot be reached: no path to it is left\n"
		      "[    1ms] b 200 hears domain-suspended, SUSPENDED: its home, node a, "
		      "cannot be reached: no path to it is left\n");
	ck_assert_int_eq(state_of(0), HC_W_domain_state_SUSPENDED);
	ck_assert_int_eq(state_of(1), HC_W_domain_state_SUSPENDED);
	meet(0, 1);
	ck_assert_int_eq(state_of(0), HC_W_domain_state_ACTIVE);
	ck_assert_int_eq(state_of(1), HC_W_domain_state_ACTIVE);
	ck_assert_str_eq(cause_of(0), "");
	ck_assert_str_eq(cause_of(1), "");
	ck_assert_uint_eq(world_record(&w, 0, id)->epoch, 1);
	/* the limit of what is over does not fire later */
	world_advance(&w, 60000);
	ck_assert_int_eq(state_of(0), HC_W_domain_state_ACTIVE);
	all_die();
}
END_TEST

/* The participant alone saw it: what it said of itself, it takes back by itself. */
START_TEST(suspended_by_the_participant_alone)
{
	form(2);
	gone(1, 0);
	ck_assert_int_eq(state_of(1), HC_W_domain_state_SUSPENDED);
	ck_assert_int_eq(state_of(0), HC_W_domain_state_ACTIVE);
	back(1, 0);
	ck_assert_int_eq(state_of(1), HC_W_domain_state_ACTIVE);
	all_die();
}
END_TEST

/* Of two causes one ends: the other one is named, on every node; it is ACTIVE after both. */
START_TEST(a_set_of_causes)
{
	form(3);
	gone(0, 1);
	gone(0, 2);
	ck_assert_str_eq(cause_of(0),
			 "node b cannot be reached: no path to it is left; nor node c");
	ck_assert_str_eq(cause_of(2),
			 cause_of(0)); /* it hears the home, though not the other way */
	back(0, 1);
	ck_assert_int_eq(state_of(0), HC_W_domain_state_SUSPENDED);
	ck_assert_str_eq(cause_of(0), "node c cannot be reached: no path to it is left");
	ck_assert_str_eq(cause_of(1), cause_of(0));
	back(0, 2);
	ck_assert_int_eq(state_of(0), HC_W_domain_state_ACTIVE);
	ck_assert_int_eq(state_of(1), HC_W_domain_state_ACTIVE);
	ck_assert_int_eq(state_of(2), HC_W_domain_state_ACTIVE);
	all_die();
}
END_TEST

/* A node whose rank has left is no cause. */
START_TEST(only_living_members_count)
{
	form(3);
	world_die(&w, c2);
	ck_assert_int_eq(state_of(0), HC_W_domain_state_DAMAGED);
	gone(0, 1);
	ck_assert_int_eq(state_of(0), HC_W_domain_state_DAMAGED); /* final ones stay */
	ck_assert_msg(strstr(cause_of(0), "rank 2, pid 300"), "%s", cause_of(0));
	back(0, 1);
	ck_assert_int_eq(state_of(0), HC_W_domain_state_DAMAGED);
	all_die();
}
END_TEST

START_TEST(away_while_it_commits)
{
	world_start(&w, 2);
	a0 = member(0, 100);
	b1 = member(1, 200);
	world_root_info(&w, a0, 2);
	world_join_root(&w, a0, a0, 2, 0);
	w.hold_store[0] = true;
	world_join_root(&w, b1, a0, 2, 1);
	gone(0, 1);
	world_store_hold(&w, 0, false);
	ck_assert_int_eq(a0->code, 0);
	id = a0->id;
	ck_assert_int_eq(state_of(0), HC_W_domain_state_SUSPENDED);
	back(0, 1);
	ck_assert_int_eq(state_of(0), HC_W_domain_state_ACTIVE);
	ck_assert_int_eq(state_of(1), HC_W_domain_state_ACTIVE);
	all_die();
}
END_TEST

START_TEST(a_rank_leaves_while_suspended)
{
	form(2);
	part(0, 1);
	world_leave(&w, b1, id, 1);
	ck_assert(world_waits(b1));
	meet(0, 1);
	ck_assert(!world_waits(b1));
	ck_assert_int_eq(b1->code, 0);
	ck_assert_int_eq(state_of(0), HC_W_domain_state_DRAINING);
	world_leave(&w, a0, id, 0);
	ck_assert_int_eq(a0->code, 0);
	ck_assert_int_eq(state_of(0), HC_W_domain_state_DESTROYED);
	ck_assert_int_eq(state_of(1), HC_W_domain_state_DESTROYED);
	all_die();
}
END_TEST

/* ---- words that are not obeyed, places that are taken ---- */

START_TEST(an_older_state_is_not_obeyed)
{
	struct hc_m_state m = {.epoch = 1, .state = HC_W_domain_state_SUSPENDED};

	form(2);
	m.id = id;
	m.number = world_record(&w, 1, id)->number;
	world_say(&w, 0, 1, &hc_desc_state, &m);
	m.number--;
	world_say(&w, 0, 1, &hc_desc_state, &m);
	ck_assert_int_eq(state_of(1), HC_W_domain_state_ACTIVE);
	m.number += 2;
	world_say(&w, 0, 1, &hc_desc_state, &m);
	ck_assert_int_eq(state_of(1), HC_W_domain_state_SUSPENDED);
	all_die();
}
END_TEST

START_TEST(a_rank_of_another_node_is_taken)
{
	struct world_client *second;

	world_start(&w, 2);
	a0 = member(0, 100);
	world_root_info(&w, a0, 3);
	world_join_root(&w, a0, a0, 3, 0);
	second = member(1, 201);
	world_join_root(&w, second, a0, 3, 0);
	ck_assert(!world_waits(second) && world_waits(a0));
	ck_assert_int_eq(second->code, HC_E_BUSY);
	ck_assert_str_eq(second->text,
			 "rank 0 is held by process 100 on node a, which joined first");
	all_die();
}
END_TEST

/* One node has begun what the other has not: the cut is what the first one has begun. */
START_TEST(the_cut_is_the_highest_of_all_nodes)
{
	form(2);
	world_ops(&w, id, _i ? 0 : 1, 6, 1);
	world_ops(&w, id, _i ? 1 : 0, 5, 0);
	world_destroy(&w, a0, id);
	ck_assert(world_waits(a0));
	ck_assert_uint_eq(world_record(&w, 0, id)->cut, 6);
	ck_assert_uint_eq(world_record(&w, 1, id)->cut, 6);
	world_ops(&w, id, 0, 6, 0);
	world_ops(&w, id, 1, 6, 0);
	world_ops_ended(&w, a0, id);
	world_ops_ended(&w, b1, id);
	ck_assert(!world_waits(a0));
	ck_assert_int_eq(a0->code, 0);
	all_die();
}
END_TEST

START_TEST(a_block_is_used_again)
{
	uint32_t block, i;

	form(2);
	block = world_seat(&w, id, 1)->block;
	for (i = 0; i < 3; i++) {
		world_leave(&w, a0, id, 0);
		world_leave(&w, b1, id, 1);
		ck_assert(!a0->code && !b1->code);
		world_root_info(&w, a0, 2);
		world_join_root(&w, a0, a0, 2, 0);
		world_join_root(&w, b1, a0, 2, 1);
		id = b1->id;
		ck_assert_uint_eq(world_seat(&w, id, 1)->block, block);
	}
	all_die();
}
END_TEST

/* ---- for good ---- */

START_TEST(damaged_on_both_after_the_limit)
{
	form(2);
	part(0, 1);
	world_advance(&w, 29000);
	ck_assert_int_eq(state_of(0), HC_W_domain_state_SUSPENDED);
	world_advance(&w, 1100);
	ck_assert_int_eq(state_of(0), HC_W_domain_state_DAMAGED);
	ck_assert_msg(strstr(cause_of(0), "node b could not be reached for 30 s (suspend_limit_s)"),
		      "%s", cause_of(0));
	ck_assert_int_eq(state_of(1), HC_W_domain_state_DAMAGED);
	ck_assert_msg(strstr(cause_of(1), "its home is lost: node a could not be reached for 30 s"),
		      "%s", cause_of(1));
	/* it comes back: the same ranks are not members again */
	meet(0, 1);
	ck_assert_int_eq(state_of(0), HC_W_domain_state_DAMAGED);
	ck_assert_int_eq(state_of(1), HC_W_domain_state_DAMAGED);
	/* and both are out when they leave */
	world_leave(&w, b1, id, 1);
	ck_assert_int_eq(b1->code, 0);
	ck_assert(!world_waits(b1));
	world_leave(&w, a0, id, 0);
	ck_assert_int_eq(a0->code, 0);
	world_advance(&w, 10000);
	ck_assert_int_eq(state_of(0), HC_W_domain_state_DESTROYED);
	ck_assert_int_eq(state_of(1), HC_W_domain_state_DESTROYED);
	all_die();
}
END_TEST

/* The participant gave up, the home did not: they agree when they meet. */
START_TEST(given_up_by_the_participant_alone)
{
	form(2);
	w.hold[1][0] = true;
	gone(1, 0);
	world_advance(&w, 30100);
	ck_assert_int_eq(state_of(1), HC_W_domain_state_DAMAGED);
	ck_assert_int_eq(state_of(0), HC_W_domain_state_ACTIVE);
	back(1, 0);
	world_hold(&w, 1, 0, false);
	ck_assert_int_eq(state_of(0), HC_W_domain_state_DAMAGED);
	ck_assert_msg(strstr(cause_of(0), "rank 1, pid 200 on node b, aborted: its home is lost"),
		      "%s", cause_of(0));
	all_die();
}
END_TEST

START_TEST(reborn_member_damages_at_once)
{
	form(3);
	hc_away_back(w.core[0], w.node_of[0][1], 777);
	world_advance(&w, 1);
	ck_assert_int_eq(state_of(0), HC_W_domain_state_DAMAGED);
	ck_assert_int_eq(state_of(2), HC_W_domain_state_DAMAGED);
	ck_assert_str_eq(cause_of(0),
			 "node b began anew, its earlier state is lost; rank 1 and all "
			 "others there are lost");
	ck_assert_str_eq(cause_of(2), cause_of(0));
	ck_assert_int_eq(c2->event_kind, HC_W_event_code_NODE_REBORN);
	ck_assert_str_eq(c2->event_node, "b");
	all_die();
}
END_TEST

/* A second node is lost while the loss of the first one is being stored: it is told all the same.
 */
START_TEST(two_nodes_lost_one_behind_the_other)
{
	form(3);
	w.hold_store[0] = true;
	hc_away_back(w.core[0], w.node_of[0][1], 777);
	world_advance(&w, 1);
	hc_away_back(w.core[0], w.node_of[0][2], 777);
	world_advance(&w, 1);
	world_store_hold(&w, 0, false);
	ck_assert_int_eq(state_of(0), HC_W_domain_state_DAMAGED);
	ck_assert_str_eq(cause_of(0),
			 "node b began anew, its earlier state is lost; rank 1 and all "
			 "others there are lost");
	all_die();
}
END_TEST

/* A rank dies while the loss of a node is being stored: the first cause is the one that is kept,
 * and both are told. */
START_TEST(a_node_is_lost_and_a_rank_dies_behind_it)
{
	form(3);
	w.show = SHOW_EVENTS;
	w.hold_store[0] = true;
	hc_away_back(w.core[0], w.node_of[0][1], 777);
	world_advance(&w, 1);
	world_dead(&w, 2, 300);
	world_advance(&w, 1);
	world_store_hold(&w, 0, false);
	ck_assert_str_eq(cause_of(0),
			 "node b began anew, its earlier state is lost; rank 1 and all "
			 "others there are lost");
	ck_assert(world_said(&w, "a 100 hears"));
	ck_assert_msg(world_said(&w, "rank 2, pid 300 on node c, exited"), "%s", w.text);
	all_die();
}
END_TEST

START_TEST(reborn_home_leaves_orphans)
{
	form(2);
	w.hold[1][0] = true;
	hc_away_back(w.core[1], w.node_of[1][0], 777);
	world_advance(&w, 1);
	ck_assert_int_eq(state_of(1), HC_W_domain_state_DAMAGED);
	ck_assert_int_eq(b1->event_kind, HC_W_event_code_DOMAIN_ORPHANED);
	world_leave(&w, b1, id, 1);
	ck_assert_int_eq(b1->code, 0);
	ck_assert(!world_waits(b1));
	world_advance(&w, 5100);
	ck_assert_int_eq(state_of(1), HC_W_domain_state_DESTROYED);
	world_hold(&w, 1, 0, false);
	all_die();
}
END_TEST

/* Who waits for a home that is lost is answered: the one who leaves is out, the other hears why. */
START_TEST(answers_of_a_lost_home)
{
	struct world_client *other;

	form(2);
	part(0, 1);
	other = world_client(&w, 1, 201, 1000, HC_W_role_MEMBER);
	world_leave(&w, b1, id, 1);
	world_destroy(&w, other, id);
	ck_assert(world_waits(b1) && world_waits(other));
	world_advance(&w, 30100);
	ck_assert(!world_waits(b1) && !world_waits(other));
	ck_assert_int_eq(b1->code, 0);
	ck_assert_int_eq(other->code, HC_E_GONE);
	ck_assert_str_eq(other->text, "the home of the domain is lost: node a");
	meet(0, 1);
	all_die();
}
END_TEST

/* So are those who wait for its exchange: for a value, or for the others at a fence. */
START_TEST(waits_for_the_exchange_of_a_lost_home)
{
	static const uint32_t own[] = {1, WORLD_END};
	struct world_client *other;

	form(2);
	other = member(1, 200); /* a second connection of rank 1's process */
	world_fence(&w, b1, id, own, 0, 600000);
	world_get(&w, other, id, 1, "never-put", 600000, true, 0);
	ck_assert(world_waits(b1) && world_waits(other));
	part(0, 1);
	world_advance(&w, 29000);
	ck_assert(world_waits(b1) && world_waits(other));
	world_advance(&w, 1100);
	ck_assert(!world_waits(b1) && !world_waits(other));
	ck_assert_int_eq(b1->code, HC_E_LINK_UNAVAILABLE);
	ck_assert_int_eq(other->code, HC_E_LINK_UNAVAILABLE);
	ck_assert_msg(strstr(b1->text, "no path between rank 1 on node b and rank 0 on node a, "),
		      "%s", b1->text);
	meet(0, 1);
	all_die();
}
END_TEST

START_TEST(owner_destroys_an_orphan)
{
	struct world_client *other;

	form(2);
	part(0, 1);
	world_advance(&w, 30100);
	other = world_client(&w, 1, 300, 2000, HC_W_role_MEMBER);
	world_destroy(&w, other, id);
	ck_assert_int_eq(other->code, HC_E_PERMISSION);
	world_destroy(&w, b1, id);
	ck_assert_int_eq(b1->code, 0);
	ck_assert_int_eq(state_of(1), HC_W_domain_state_DESTROYED);
	meet(0, 1);
	all_die();
}
END_TEST

/* ---- the drain ---- */

/* The drain's limit comes before that of the node: by force, naming the node. */
START_TEST(forced_names_the_node)
{
	struct hc_settings far;
	struct hc_limits limits;
	struct hc_event ev = {.kind = HC_EV_CONFIG};

	form(2);
	world_defaults(&limits, &far);
	far.suspend_limit_ns = 300000ull * WORLD_MS;
	ev.u.settings = &far;
	hc_core_step(w.core[0], w.now, &ev, w.out);
	part(0, 1);
	world_destroy(&w, a0, id);
	ck_assert_int_eq(state_of(0), HC_W_domain_state_DRAINING);
	world_advance(&w, 29900);
	ck_assert(world_waits(a0));
	world_advance(&w, 200);
	ck_assert_int_eq(a0->code, HC_E_FORCED);
	ck_assert_str_eq(a0->text, "forced: node b, where ranks of it are, cannot be reached");
	meet(0, 1);
	ck_assert_int_eq(state_of(0), HC_W_domain_state_DESTROYED);
	world_advance(&w, 10000);
	ck_assert_int_eq(state_of(1), HC_W_domain_state_DESTROYED);
	all_die();
}
END_TEST

/* The node that a drain waits for is lost: it is not waited for any more. */
START_TEST(lost_while_the_cut_is_asked)
{
	uint32_t i;

	form(3);
	world_ops(&w, id, 0, 5, 1);
	world_ops(&w, id, 2, 5, 1);
	w.hold[0][1] = w.hold[1][0] = true;
	world_destroy(&w, a0, id);
	ck_assert(world_waits(a0));
	w.show = SHOW_EVENTS;
	hc_away_back(w.core[0], w.node_of[0][1], 777);
	world_advance(&w, 1);
	/* one cause for record and event, also where the next question comes right behind it */
	for (i = 0; i < 3; i += 2) {
		ck_assert_uint_eq(world_record(&w, i, id)->cause_kind, HC_W_event_code_NODE_REBORN);
		ck_assert_str_eq(cause_of(i), "node b began anew, its earlier state is lost; "
					      "rank 1 and all others there are lost");
	}
	ck_assert_msg(world_said(&w, "c 300 hears node-reborn, DRAINING (rank 1, pid 200, node b)"),
		      "%s", w.text);
	world_ops(&w, id, 0, 5, 0);
	world_ops(&w, id, 2, 5, 0);
	world_ops_ended(&w, a0, id);
	world_ops_ended(&w, c2, id);
	ck_assert(!world_waits(a0));
	ck_assert_int_eq(a0->code, 0);
	ck_assert_int_eq(state_of(0), HC_W_domain_state_DESTROYED);
	ck_assert_int_eq(state_of(2), HC_W_domain_state_DESTROYED);
	world_hold(&w, 0, 1, false);
	world_hold(&w, 1, 0, false);
	all_die();
}
END_TEST

/* A late answer of before is not counted for the question after. */
START_TEST(a_late_report_of_a_lost_node)
{
	form(3);
	world_ops(&w, id, 0, 5, 1);
	w.hold[1][0] = true;
	world_destroy(&w, a0, id);
	ck_assert_str_eq(world_next_name(&w, 1, 0), "cut_report");
	hc_away_back(w.core[0], w.node_of[0][1], 777);
	world_advance(&w, 1);
	world_hold(&w, 1, 0, false);
	ck_assert(world_waits(a0)); /* its own reference */
	world_ops(&w, id, 0, 5, 0);
	world_ops_ended(&w, a0, id);
	ck_assert_int_eq(a0->code, 0);
	ck_assert(!world_waits(a0));
	all_die();
}
END_TEST

/* After a death the others leave in order, on both nodes: the domain ends at its home. */
START_TEST(a_damaged_domain_that_all_leave_ends)
{
	struct world_client *m[4];
	struct world_table t;
	uint32_t i;

	world_start(&w, 2);
	world_table(&t, 4, 2);
	for (i = 0; i < 4; i++) {
		m[i] = member(i % 2, 100 + i);
		world_join_table(&w, m[i], &t, i);
	}
	id = m[0]->id;
	world_die(&w, m[_i]);
	for (i = 0; i < 4; i++) {
		if (i == (uint32_t)_i)
			continue;
		world_leave(&w, m[i], id, i);
		ck_assert_int_eq(m[i]->code, 0);
		ck_assert(!world_waits(m[i]));
	}
	world_advance(&w, 5100); /* orphan_grace_s */
	ck_assert_int_eq(state_of(0), HC_W_domain_state_DESTROYED);
	ck_assert_int_eq(state_of(1), HC_W_domain_state_DESTROYED);
	all_die();
}
END_TEST

/* ---- while it forms ---- */

START_TEST(forming_member_is_lost)
{
	struct world_client *again;

	world_start(&w, 2);
	a0 = member(0, 100);
	b1 = member(1, 200);
	world_root_info(&w, a0, 3);
	world_join_root(&w, a0, a0, 3, 0);
	world_join_root(&w, b1, a0, 3, 1);
	hc_away_back(w.core[0], w.node_of[0][1], 1001);
	part(0, 1);
	world_advance(&w, 30100);
	ck_assert(world_waits(a0));
	ck_assert_int_eq(b1->code, HC_E_PEER_LOST);
	meet(0, 1);
	again = member(1, 201); /* its place is free */
	world_join_root(&w, again, a0, 3, 1);
	ck_assert(world_waits(again));
	all_die();
}
END_TEST

/* The home gave its node up, which never missed the home: the rank that waits there hears of it. */
START_TEST(forming_member_that_noticed_nothing)
{
	world_start(&w, 2);
	a0 = member(0, 100);
	b1 = member(1, 200);
	world_root_info(&w, a0, 3);
	world_join_root(&w, a0, a0, 3, 0);
	world_join_root(&w, b1, a0, 3, 1);
	hc_away_back(w.core[0], w.node_of[0][1], 1001);
	gone(0, 1);
	w.hold[0][1] = true;
	world_advance(&w, 30100);
	ck_assert(world_waits(a0) && world_waits(b1));
	back(0, 1);
	world_hold(&w, 0, 1, false);
	ck_assert(world_waits(a0) && !world_waits(b1));
	ck_assert_int_eq(b1->code, HC_E_PEER_LOST);
	ck_assert_msg(strstr(b1->text, "its place is lost: for the home, node b could not be "
				       "reached for 30 s"),
		      "%s", b1->text);
	all_die();
}
END_TEST

/* What said that the rank has come was for the home that there was: the next one never hears it. */
START_TEST(the_home_begins_anew_before_it_has_heard)
{
	world_start(&w, 2);
	a0 = member(0, 100);
	b1 = member(1, 200);
	hc_away_back(w.core[1], w.node_of[1][0], 1000);
	world_root_info(&w, a0, 2);
	w.hold[1][0] = true;
	world_join_root(&w, b1, a0, 2, 1);
	ck_assert(world_waits(b1));
	hc_away_back(w.core[1], w.node_of[1][0], 777);
	while (world_drop(&w, 1, 0))
		;
	w.hold[1][0] = false;
	world_advance(&w, 1);
	ck_assert(!world_waits(b1));
	ck_assert_int_eq(b1->code, HC_E_PEER_LOST);
	ck_assert_str_eq(b1->text,
			 "its home is lost: node a began anew, its earlier state is lost");
	all_die();
}
END_TEST

/* What the ranks of a node were told stands after a restart, also when its row does not say so yet
 * (1 and on), and whether its home comes in time (0, 1), later (2), or too late (3). */
START_TEST(committed_without_its_home)
{
	static const uint64_t away_ms[] = {1, 1, 20000, 60000};
	static const uint8_t then[] = {HC_W_domain_state_ACTIVE, HC_W_domain_state_ACTIVE,
				       HC_W_domain_state_SUSPENDED, HC_W_domain_state_DAMAGED};
	struct world_client *again;
	uint32_t block;

	nodes_meet(2);
	w.hold[0][1] = true;
	join(2);
	while (strcmp(world_next_name(&w, 0, 1), "commit") != 0)
		ck_assert(world_carry(&w, 0, 1));
	w.hold_store[1] = _i;
	ck_assert(world_carry(&w, 0, 1));
	ck_assert_msg(!world_waits(b1) && !b1->code, "%s", b1->text);
	id = b1->id;
	block = world_seat(&w, id, 1)->block;
	part(0, 1);
	world_restart(&w, 1);
	again = member(1, 200);
	world_come_back(&w, again, id, 1, block);
	ck_assert_msg(!again->code, "%s", again->text);
	ck_assert_int_eq(state_of(1), HC_W_domain_state_ACTIVE);
	world_restart(&w, 1); /* it comes to that once more */
	world_advance(&w, away_ms[_i]);
	ck_assert_int_eq(state_of(1), then[_i]);
	meet(0, 1);
	ck_assert_int_eq(state_of(0), state_of(1));
	ck_assert_int_eq(state_of(1), _i == 3 ? then[_i] : HC_W_domain_state_ACTIVE);
	world_dead(&w, 1, 200);
	all_die();
}
END_TEST

/* Damaged is final, also for a home that comes back after it was given up, and knows nothing. */
START_TEST(given_up_and_restarted)
{
	struct hc_m_state m = {.epoch = 1, .number = 9000, .state = HC_W_domain_state_ACTIVE};

	form(2);
	w.hold[1][0] = true;
	gone(1, 0);
	world_advance(&w, 30100);
	ck_assert_int_eq(state_of(1), HC_W_domain_state_DAMAGED);
	world_restart(&w, 1);
	m.id = id;
	world_say(&w, 0, 1, &hc_desc_state, &m);
	ck_assert_int_eq(state_of(1), HC_W_domain_state_DAMAGED);
	back(1, 0);
	world_hold(&w, 1, 0, false);
	ck_assert_int_eq(state_of(0), HC_W_domain_state_DAMAGED);
	all_die();
}
END_TEST

/* ---- what a node that is not the home shows ---- */

START_TEST(a_participant_shows_its_part)
{
	form(2);
	world_query(&w, b1, HC_VIEW_domain, 0, 0, 0);
	ck_assert_uint_eq(b1->nrows, 1);
	world_query(&w, b1, HC_VIEW_member, 0, 0, 0);
	ck_assert_uint_eq(b1->nrows, 1); /* its own rank: that is what it knows */
	world_query(&w, a0, HC_VIEW_member, 0, 0, 0);
	ck_assert_uint_eq(a0->nrows, 2);
	world_status(&w, b1, id);
	ck_assert_int_eq(b1->code, 0);
	ck_assert_int_eq((int)b1->state, HC_W_domain_state_ACTIVE);
	world_destroy(&w, b1, id);
	world_query(&w, b1, HC_VIEW_domain, 0, 0, 0);
	ck_assert_uint_eq(b1->nrows, 1); /* and why it ended */
	world_status(&w, b1, id);
	ck_assert_int_eq(b1->code, 0);
	ck_assert_int_eq((int)b1->state, HC_W_domain_state_DESTROYED);
	world_advance(&w, 3601000);
	world_query(&w, b1, HC_VIEW_domain, 0, 0, 0);
	ck_assert_uint_eq(b1->nrows, 0);
	all_die();
}
END_TEST

static void add(TCase *c)
{
	tcase_add_test(c, suspended_on_both_and_active_again);
	tcase_add_test(c, suspended_by_the_participant_alone);
	tcase_add_test(c, a_set_of_causes);
	tcase_add_test(c, only_living_members_count);
	tcase_add_test(c, away_while_it_commits);
	tcase_add_test(c, a_rank_leaves_while_suspended);
	tcase_add_test(c, an_older_state_is_not_obeyed);
	tcase_add_test(c, a_rank_of_another_node_is_taken);
	tcase_add_loop_test(c, the_cut_is_the_highest_of_all_nodes, 0, 2);
	tcase_add_test(c, a_block_is_used_again);
	tcase_add_test(c, damaged_on_both_after_the_limit);
	tcase_add_test(c, given_up_by_the_participant_alone);
	tcase_add_test(c, reborn_member_damages_at_once);
	tcase_add_test(c, two_nodes_lost_one_behind_the_other);
	tcase_add_test(c, a_node_is_lost_and_a_rank_dies_behind_it);
	tcase_add_test(c, reborn_home_leaves_orphans);
	tcase_add_test(c, answers_of_a_lost_home);
	tcase_add_test(c, waits_for_the_exchange_of_a_lost_home);
	tcase_add_test(c, owner_destroys_an_orphan);
	tcase_add_test(c, forced_names_the_node);
	tcase_add_test(c, lost_while_the_cut_is_asked);
	tcase_add_test(c, a_late_report_of_a_lost_node);
	tcase_add_loop_test(c, a_damaged_domain_that_all_leave_ends, 0, 4);
	tcase_add_test(c, forming_member_is_lost);
	tcase_add_test(c, forming_member_that_noticed_nothing);
	tcase_add_loop_test(c, committed_without_its_home, 0, 4);
	tcase_add_test(c, given_up_and_restarted);
	tcase_add_test(c, the_home_begins_anew_before_it_has_heard);
	tcase_add_test(c, a_participant_shows_its_part);
}

int main(void)
{
	return hc_suite_run("core_across", add, 60);
}
