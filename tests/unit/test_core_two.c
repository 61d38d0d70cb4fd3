/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Domains over two and three nodes: real messages between real cores, carried by hand.
 *
 * The home is on node a. A test holds a direction, lets something happen on both sides, and then
 * hands the messages over in their order, as the connection between daemons keeps it.
 */
#include "again.h"
#include "away.h"
#include "pages.h"
#include "suite.h"
#include "world.h"

#include <string.h>

static struct world w;
static struct world_table t;
static struct world_client *a0, *b1;
static uint64_t id;

static void end(void)
{
	world_end(&w);
}

static struct world_client *member(uint32_t node, uint32_t pid)
{
	return world_client(&w, node, pid, 1000, HC_W_role_MEMBER);
}

/* Rank 0 on a (pid 100), rank 1 on b (pid 200). */
static void start(void)
{
	world_start(&w, 2);
	a0 = member(0, 100);
	b1 = member(1, 200);
	world_root_info(&w, a0, 2);
	world_join_root(&w, a0, a0, 2, 0);
	world_forget(&w);
}

static void form(void)
{
	start();
	world_join_root(&w, b1, a0, 2, 1);
	ck_assert_int_eq(a0->code, 0);
	id = a0->id;
	ck_assert(id && b1->id == id);
	world_forget(&w);
}

static uint8_t state_of(uint32_t node)
{
	return world_record(&w, node, id)->state;
}

static void all_die(void)
{
	world_hold_none(&w);
	world_die_all(&w);
	world_advance(&w, 130000);
	world_check_empty(&w);
}

/* ---- the two phases ---- */

START_TEST(two_phases_over_two_nodes)
{
	start();
	w.show |= SHOW_MESSAGES | SHOW_RECORDS;
	world_join_root(&w, b1, a0, 2, 1);
	ck_transcript(
		&w, "[    0ms] b -> a: arrive\n"
		    "[    0ms] a -> b: verdict\n"
		    "[    0ms] a -> b: prepare\n"
		    "[    0ms] b -> a: prepared\n"
		    "[    0ms] a record 0: ACTIVE\n"
		    "[    0ms] a 100 rank 0: joined domain-#1, 2 ranks, epoch 1, as 0 on device 0\n"
		    "[    0ms] a 100 hears domain-active, ACTIVE\n"
		    "[    0ms] a -> b: commit\n"
		    "[    0ms] b record 0: ACTIVE\n"
		    "[    0ms] b 200 rank 1: joined domain-#1, 2 ranks, epoch 1, as 1 on device 0\n"
		    "[    0ms] b 200 hears domain-active, ACTIVE\n");
	all_die();
	end();
}
END_TEST

/* A table's home is the node of rank 0, whoever comes first. */
START_TEST(table_over_two_nodes)
{
	struct world_client *c[4];
	uint32_t i;

	world_start(&w, 2);
	world_table(&t, 4, 2);
	for (i = 4; i-- > 0;) {
		c[i] = member(i % 2, 100 + i);
		world_join_table(&w, c[i], &t, i);
	}
	for (i = 0; i < 4; i++) {
		ck_assert_int_eq(c[i]->code, 0);
		ck_assert(!world_waits(c[i]));
		ck_assert(c[i]->id && c[i]->id == c[0]->id);
	}
	world_query(&w, c[0], HC_VIEW_member, 0, 0, 0);
	ck_assert_uint_eq(c[0]->nrows, 4);
	all_die();
	end();
}
END_TEST

/* Nobody is told before the node has stored that it takes part, and the home that it is so. */
START_TEST(nobody_is_told_before_it_is_stored)
{
	start();
	w.hold_store[1] = true;
	world_join_root(&w, b1, a0, 2, 1);
	ck_assert(world_waits(a0) && world_waits(b1)); /* PREPARE is not stored on b */
	w.hold_store[0] = true;
	w.hold_store[1] = false;
	world_settle(&w);
	ck_assert(world_waits(a0) && world_waits(b1)); /* COMMIT is not stored on a */
	w.hold_store[1] = true;
	w.hold_store[0] = false;
	world_settle(&w);
	ck_assert(!world_waits(a0));
	ck_assert(!world_waits(b1)); /* what b has prepared and a has committed stands */
	w.hold_store[1] = false;
	world_settle(&w);
	all_die();
	end();
}
END_TEST

START_TEST(a_node_that_cannot_take_part_ends_it_for_all)
{
	start();
	w.hold[0][1] = true;
	world_join_root(&w, b1, a0, 2, 1);
	world_carry(&w, 0, 1);
	ck_assert_str_eq(world_next_name(&w, 0, 1), "prepare");
	world_die(&w, b1); /* nobody is left on b when PREPARE comes */
	w.hold[1][0] = true;
	world_carry(&w, 0, 1);
	ck_assert_str_eq(world_next_name(&w, 1, 0), "prepared");
	world_carry(&w, 1, 0);
	ck_assert(!world_waits(a0));
	ck_assert_int_ne(a0->code, 0);
	all_die();
	end();
}
END_TEST

START_TEST(a_rank_dies_while_prepare_is_under_way)
{
	start();
	w.hold[0][1] = true;
	world_join_root(&w, b1, a0, 2, 1);
	world_carry(&w, 0, 1); /* the verdict */
	world_die(&w, a0);
	ck_assert_str_eq(world_next_name(&w, 0, 1), "prepare");
	world_carry(&w, 0, 1);
	ck_assert(world_waits(b1));
	world_carry(&w, 0, 1); /* CANCEL */
	ck_assert_int_eq(b1->code, HC_E_PEER_LOST);
	ck_assert_str_eq(b1->text,
			 "rank 0, pid 100 on node a, exited while the domain was activating");
	all_die();
	end();
}
END_TEST

/* PREPARE is being stored on b when the cancel comes: the row goes, nothing is told of it. */
START_TEST(cancelled_while_prepared_is_stored)
{
	start();
	w.hold_store[1] = true;
	world_join_root(&w, b1, a0, 2, 1);
	world_die(&w, a0);
	ck_assert_int_eq(b1->code, HC_E_PEER_LOST);
	world_store_hold(&w, 1, false);
	all_die();
	end();
}
END_TEST

START_TEST(a_rank_dies_while_commit_is_under_way)
{
	start();
	w.hold[0][1] = true;
	world_join_root(&w, b1, a0, 2, 1);
	world_carry(&w, 0, 1);
	world_carry(&w, 0, 1);
	ck_assert_str_eq(world_next_name(&w, 0, 1), "commit");
	ck_assert(!world_waits(a0)); /* it is so: the home has it stored */
	id = a0->id;
	world_die(&w, a0);
	world_hold(&w, 0, 1, false);
	ck_assert_int_eq(b1->id == id, 1);
	ck_assert_int_eq(state_of(1), HC_W_domain_state_DAMAGED);
	ck_assert_int_eq(b1->event_kind, HC_W_event_code_RANK_DIED);
	ck_assert_str_eq(b1->event_node, "a");
	all_die();
	end();
}
END_TEST

/* The far rank withdraws while its arrival is on the way: its place does not stay taken. */
START_TEST(departed_before_the_verdict)
{
	struct world_client *again;

	start();
	w.hold[1][0] = true;
	world_join_root(&w, b1, a0, 2, 1);
	world_lose(&w, b1);
	world_hold(&w, 1, 0, false);
	ck_assert(world_waits(a0) || a0->code == HC_E_PEER_LOST);
	if (world_waits(a0)) {
		again = member(1, 201);
		world_join_root(&w, again, a0, 2, 1);
		ck_assert_int_eq(again->code, 0);
	}
	all_die();
	end();
}
END_TEST

START_TEST(prepare_is_not_answered)
{
	start();
	w.hold[1][0] = true;
	world_join_root(&w, b1, a0, 2, 1);
	world_carry(&w, 1, 0);
	ck_assert_str_eq(world_next_name(&w, 1, 0), "prepared");
	world_advance(&w, 10000);
	ck_assert_int_eq(a0->code, HC_E_TIMEOUT);
	ck_assert_int_eq(b1->code, HC_E_TIMEOUT);
	ck_assert_str_eq(b1->text,
			 "rank 1 on node b: no answer to whether it can take part within 10.0 s "
			 "(prepare_limit_s)");
	all_die();
	end();
}
END_TEST

/* ---- contradictions over nodes ---- */

START_TEST(contradiction_is_told_on_both_nodes)
{
	start();
	w.show = SHOW_REPLIES;
	world_join_root(&w, b1, a0, 3, 1);
#define SIDES                                                                                      \
	": refused MISMATCH: the ranks disagree on their number: rank 0 (pid 100 on node a) says " \
	"2, rank 1 (pid 200 on node b) says 3\n"
	ck_transcript(&w, "[    0ms] a 100 rank 0" SIDES "[    0ms] b 200 rank 1" SIDES);
	all_die();
	end();
}
END_TEST

/* Both claim rank 0 and contradict each other: the second one's node has no place at the home. */
START_TEST(contradiction_of_a_claimant)
{
	start();
	w.show = SHOW_REPLIES;
	world_join_root(&w, b1, a0, 3, 0);
	ck_assert_int_eq(b1->code, HC_E_MISMATCH);
	ck_assert_int_eq(a0->code, HC_E_MISMATCH);
	all_die();
	end();
}
END_TEST

START_TEST(far_claimant_is_refused_alone)
{
	start();
	w.show = SHOW_REPLIES;
	world_join_root(&w, b1, a0, 2, 0);
	ck_transcript(&w,
		      "[    0ms] b 200 rank 0: refused BUSY: rank 0 is held by process 100 on node "
		      "a, which joined first\n");
	ck_assert(world_waits(a0));
	world_join_root(&w, b1, a0, 2, 1);
	ck_assert_int_eq(b1->code, 0);
	all_die();
	end();
}
END_TEST

/* A table's rank is claimed on the wrong node when the domain is complete: one holder stays. */
START_TEST(claimant_who_comes_while_it_activates)
{
	struct world_client *thief;

	world_start(&w, 2);
	world_table(&t, 2, 2);
	a0 = member(0, 100);
	b1 = member(1, 200);
	thief = member(1, 201);
	world_join_table(&w, a0, &t, 0);
	w.hold[0][1] = true;
	world_join_table(&w, b1, &t, 1);
	/* b does not know yet that a has begun; the table of the thief puts rank 0 here */
	t.ranks[0].device = 3;
	t.ranks[0].addr.family = 0;
	w.opt.shared = true;
	world_join_table(&w, thief, &t, 0);
	world_hold(&w, 0, 1, false);
	ck_assert_int_eq(a0->code, 0);
	ck_assert_int_eq(b1->code, 0);
	ck_assert(a0->id && a0->id == b1->id);
	ck_assert_msg(thief->code == HC_E_BUSY || world_waits(thief), "%d", thief->code);
	all_die();
	end();
}
END_TEST

/* The refusal of a second join is not taken for the first one's, which is being stored. */
START_TEST(refused_beside_one_that_activates)
{
	struct world_client *late;

	start();
	w.hold_store[0] = true;
	world_join_root(&w, b1, a0, 2, 1);
	late = member(0, 101);
	world_join_root(&w, late, a0, 3, 0); /* opens a part of its own, and is too late */
	ck_assert_int_eq(late->code, HC_E_GONE);
	late = member(0, 102);
	world_join_root(&w, late, a0, 3, 2);
	ck_assert_int_eq(late->code, HC_E_GONE);
	world_store_hold(&w, 0, false);
	ck_assert_int_eq(a0->code, 0);
	ck_assert(a0->id && a0->id == b1->id);
	all_die();
	end();
}
END_TEST

/* It arrived, lost its connection before it knew the domain, and arrives again: no ghost stays. */
START_TEST(arrived_twice_before_the_first_verdict)
{
	world_start(&w, 2);
	world_table(&t, 2, 2);
	a0 = member(0, 100);
	b1 = member(1, 200);
	world_join_table(&w, a0, &t, 0);
	w.hold[1][0] = w.hold[0][1] = true;
	world_join_table(&w, b1, &t, 1);
	world_lose(&w, b1);
	b1 = member(1, 200);
	world_join_table(&w, b1, &t, 1);
	world_hold(&w, 1, 0, false);
	world_hold(&w, 0, 1, false);
	world_advance(&w, 200);
	ck_assert(!world_waits(a0) || world_waits(b1));
	if (!a0->code && a0->id) /* then the other is told of, or is in it */
		ck_assert(b1->id == a0->id || a0->event_kind == HC_W_event_code_RANK_DIED);
	all_die();
	end();
}
END_TEST

START_TEST(time_out_over_nodes)
{
	world_start(&w, 2);
	a0 = member(0, 100);
	b1 = member(1, 200);
	world_root_info(&w, a0, 3);
	world_join_root(&w, a0, a0, 3, 0);
	w.opt.timeout_ms = 4000;
	world_join_root(&w, b1, a0, 3, 1);
	world_advance(&w, 4000);
	ck_assert_int_eq(b1->code, HC_E_TIMEOUT);
	ck_assert(world_waits(a0));
	world_advance(&w, 116000);
	ck_assert_int_eq(a0->code, HC_E_TIMEOUT);
	all_die();
	end();
}
END_TEST

/* ---- life over nodes ---- */

START_TEST(death_on_b_is_told_on_a)
{
	form();
	/* the home's kernel does not know of it: after a restart nobody would say it again */
	world_store_hold(&w, 0, true);
	world_die(&w, b1);
	ck_transcript(&w, "");
	ck_assert_int_eq(state_of(0), HC_W_domain_state_ACTIVE);
	world_store_hold(&w, 0, false);
	ck_transcript(&w,
		      "[    0ms] a 100 hears rank-died, DAMAGED (rank 1, pid 200, node b): rank 1, "
		      "pid 200 on node b, exited\n");
	ck_assert_int_eq(state_of(0), HC_W_domain_state_DAMAGED);
	ck_assert_int_eq(state_of(1), HC_W_domain_state_DAMAGED);
	all_die();
	end();
}
END_TEST

START_TEST(death_on_a_is_told_on_b)
{
	form();
	world_die(&w, a0);
	ck_transcript(&w,
		      "[    0ms] b 200 hears rank-died, DAMAGED (rank 0, pid 100, node a): rank 0, "
		      "pid 100 on node a, exited\n");
	world_leave(&w, b1, id, 1);
	ck_assert_int_eq(b1->code, 0);
	world_advance(&w, 5000);
	ck_assert_int_eq(state_of(1), HC_W_domain_state_DESTROYED);
	all_die();
	end();
}
END_TEST

START_TEST(the_cut_is_the_maximum_of_the_nodes)
{
	form();
	world_ops(&w, id, 0, 20, 0);
	world_ops(&w, id, 1, 23, 1);
	world_destroy(&w, a0, id);
	ck_assert_uint_eq(world_record(&w, 0, id)->cut, 23);
	ck_assert_uint_eq(world_record(&w, 1, id)->cut, 23);
	ck_assert_int_eq(world_record(&w, 0, id)->cut_set, HC_CUT_SET);
	world_ops(&w, id, 0, 23, 0);
	world_ops_ended(&w, a0, id);
	ck_assert(world_waits(a0));
	world_ops(&w, id, 1, 23, 0);
	world_ops_ended(&w, b1, id);
	ck_assert(!world_waits(a0));
	ck_assert_int_eq(a0->code, 0);
	ck_assert_int_eq(state_of(0), HC_W_domain_state_DESTROYED);
	ck_assert_int_eq(state_of(1), HC_W_domain_state_DESTROYED);
	all_die();
	end();
}
END_TEST

START_TEST(destroy_is_asked_on_b)
{
	struct world_client *other;

	form();
	other = world_client(&w, 1, 300, 2000, HC_W_role_MEMBER);
	world_destroy(&w, other, id);
	ck_assert_int_eq(other->code, HC_E_PERMISSION);
	world_ops(&w, id, 0, 1, 1);
	world_destroy(&w, b1, id);
	ck_assert(world_waits(b1));
	world_ops(&w, id, 0, 1, 0);
	world_ops(&w, id, 1, 1, 0);
	world_ops_ended(&w, a0, id);
	world_ops_ended(&w, b1, id);
	ck_assert_int_eq(b1->code, 0);
	ck_assert(!world_waits(b1));
	all_die();
	end();
}
END_TEST

START_TEST(forced_names_the_far_rank)
{
	form();
	world_ops(&w, id, 0, 9, 0);
	world_ops(&w, id, 1, 9, 1);
	world_destroy(&w, a0, id);
	world_advance(&w, 30000);
	ck_assert_int_eq(a0->code, HC_E_FORCED);
	ck_assert_msg(strstr(a0->text, "forced, 1 reference left: rank 1, pid 200, all_reduce #9"),
		      "%s", a0->text);
	all_die();
	end();
}
END_TEST

/* A death meets the drain: the new question overtakes the old answers. */
START_TEST(death_on_b_while_the_cut_is_asked)
{
	const struct world_record *r;
	uint32_t i;

	form();
	world_ops(&w, id, 0, 5, 1);
	world_ops(&w, id, 1, 6, 1);
	w.hold[1][0] = true;
	world_destroy(&w, a0, id);
	world_die(&w, b1);
	ck_assert_str_eq(world_next_name(&w, 1, 0), "cut_report");
	world_hold(&w, 1, 0, false);
	ck_assert(world_waits(a0)); /* its own reference */
	/* the records say who died, and not only that it drains */
	for (i = 0; i < 2; i++) {
		r = world_record(&w, i, id);
		ck_assert_int_eq(r->state, HC_W_domain_state_DRAINING);
		ck_assert_uint_eq(r->cause_kind, HC_W_event_code_RANK_DIED);
		ck_assert_uint_eq(r->cause_rank, 1);
		ck_assert_uint_eq(r->cause_pid, 200);
		ck_assert_str_eq(r->cause, "rank 1, pid 200 on node b, exited");
	}
	world_ops(&w, id, 0, 5, 0);
	world_ops_ended(&w, a0, id);
	ck_assert_int_eq(a0->code, 0);
	ck_assert(!world_waits(a0));
	all_die();
	end();
}
END_TEST

/* What was told before it was stored stands: b's row says that it runs, its record had a cut. */
START_TEST(a_cut_that_was_shown_outlives_the_daemon)
{
	uint32_t block;

	form();
	block = world_seat(&w, id, 1)->block;
	world_ops(&w, id, 0, 5, 1);
	world_ops(&w, id, 1, 5, 0);
	w.hold_store[1] = true;
	world_destroy(&w, a0, id);
	ck_assert_uint_eq(world_record(&w, 1, id)->cut, 5);
	w.hold[0][1] = w.hold[1][0] = true;
	world_restart(&w, 1);
	ck_assert_int_eq(state_of(1), HC_W_domain_state_DRAINING);
	ck_assert_int_eq(world_record(&w, 1, id)->cut_set, HC_CUT_SET);
	ck_assert_uint_eq(world_record(&w, 1, id)->cut, 5);
	w.hold_store[1] = false;
	hc_again(w.core[0], w.node_of[0][1]);
	hc_again(w.core[1], w.node_of[1][0]);
	world_hold_none(&w);
	world_settle(&w);
	b1 = member(1, 200);
	world_come_back(&w, b1, id, 1, block);
	world_ops(&w, id, 1, 5, 0);
	world_ops(&w, id, 0, 5, 0);
	world_ops_ended(&w, a0, id);
	world_advance(&w, 2500);
	ck_assert(!world_waits(a0));
	ck_assert_int_eq(a0->code, 0);
	ck_assert_int_eq(state_of(1), HC_W_domain_state_DESTROYED);
	all_die();
	end();
}
END_TEST

/* A damaged domain is destroyed, a third node is lost meanwhile, and the home is killed: what
 * damaged it first is its cause. */
START_TEST(the_first_cause_outlives_a_drain)
{
	struct world_client *cl[3];
	uint32_t i, k;

	world_start(&w, 3);
	for (i = 0; i < 9; i++)
		if (i / 3 != i % 3)
			hc_away_back(w.core[i / 3], w.node_of[i / 3][i % 3], 1000 + i % 3);
	for (k = 0; k < 3; k++) {
		cl[k] = member(k, 100 * (k + 1));
		if (!k)
			world_root_info(&w, cl[0], 3);
		world_join_root(&w, cl[k], cl[0], 3, k);
	}
	id = cl[0]->id;
	world_die(&w, cl[1]);
	world_ops(&w, id, 0, 5, 1);
	world_destroy(&w, cl[0], id);
	hc_away_back(w.core[0], w.node_of[0][2], 777);
	world_advance(&w, 1);
	ck_assert_int_eq(state_of(0), HC_W_domain_state_DRAINING);
	world_restart(&w, 0);
	ck_assert_int_eq(state_of(0), HC_W_domain_state_DAMAGED);
	ck_assert_str_eq(world_record(&w, 0, id)->cause, "rank 1, pid 200 on node b, exited");
	ck_assert_uint_eq(world_record(&w, 0, id)->cause_kind, HC_W_event_code_RANK_DIED);
	ck_assert_uint_eq(world_record(&w, 0, id)->cause_rank, 1);
	world_dead(&w, 0, 100);
	all_die();
	end();
}
END_TEST

START_TEST(leave_on_both_nodes)
{
	form();
	world_ops(&w, id, 0, 4, 0);
	world_ops(&w, id, 1, 4, 0);
	world_leave(&w, b1, id, 1);
	ck_assert_int_eq(state_of(0), HC_W_domain_state_DRAINING);
	ck_assert_uint_eq(world_record(&w, 0, id)->cut, 4);
	ck_assert_int_eq(world_record(&w, 0, id)->cut_set, HC_CUT_SET);
	world_leave(&w, a0, id, 0);
	ck_assert_int_eq(state_of(0), HC_W_domain_state_DESTROYED);
	ck_assert_int_eq(state_of(1), HC_W_domain_state_DESTROYED);
	all_die();
	end();
}
END_TEST

/* ---- split and sub-domains ---- */

START_TEST(sub_domain_over_two_nodes)
{
	const uint32_t ranks[] = {1, 0};
	uint64_t parent;

	form();
	parent = id;
	world_split(&w, b1, parent, 1, 7, 0);
	world_split(&w, a0, parent, 0, 7, 1);
	ck_assert_uint_eq(a0->ngroup, 2);
	ck_assert_uint_eq(a0->group[0], 1);
	ck_assert(a0->sub_id && a0->sub_id == b1->sub_id);
	world_sub(&w, b1, parent, 1, b1->sub_id, ranks, 2);
	world_sub(&w, a0, parent, 0, a0->sub_id, ranks, 2);
	ck_assert_int_eq(a0->code, 0);
	ck_assert(!world_waits(a0) && !world_waits(b1));
	ck_assert(a0->id == b1->id && a0->id != parent);
	all_die();
	end();
}
END_TEST

/* ---- what is not obeyed ---- */

START_TEST(only_the_home_is_obeyed)
{
	struct hc_m_gone gone = {.epoch = 1, .state = HC_W_domain_state_DESTROYED};
	struct hc_m_state state = {.epoch = 1,
				   .number = 99,
				   .state = HC_W_domain_state_DAMAGED,
				   .rank = HC_NONE,
				   .kind = HC_W_event_code_RANK_DIED};
	struct hc_m_cut_ask ask = {.epoch = 1, .number = 99};
	struct hc_m_cancel cancel = {.epoch = 1, .code = HC_E_GONE};
	struct hc_m_depart depart = {.epoch = 1, .rank = 0, .pid = 100, .why = HC_W_depart_DIED};

	form();
	gone.id = state.id = ask.id = cancel.id = depart.id = id;
	world_say(&w, 1, 0, &hc_desc_gone, &gone);
	world_say(&w, 1, 0, &hc_desc_state, &state);
	world_say(&w, 1, 0, &hc_desc_cut_ask, &ask);
	world_say(&w, 1, 0, &hc_desc_cancel, &cancel);
	world_say(&w, 1, 0, &hc_desc_depart, &depart); /* rank 0 is not b's */
	ck_assert_int_eq(state_of(0), HC_W_domain_state_ACTIVE);
	state.epoch = 7; /* of another epoch */
	gone.epoch = 7;
	world_say(&w, 0, 1, &hc_desc_state, &state);
	world_say(&w, 0, 1, &hc_desc_gone, &gone);
	ck_assert_int_eq(state_of(1), HC_W_domain_state_ACTIVE);
	state.epoch = 1; /* an old number */
	state.number = 1;
	world_say(&w, 0, 1, &hc_desc_state, &state);
	ck_assert_int_eq(state_of(1), HC_W_domain_state_ACTIVE);
	gone.epoch = 1; /* a state that ends nothing */
	gone.state = HC_W_domain_state_ACTIVE;
	world_say(&w, 0, 1, &hc_desc_gone, &gone);
	ck_assert_int_eq(state_of(1), HC_W_domain_state_ACTIVE);
	all_die();
	end();
}
END_TEST

/* A node counts once, whatever it repeats; one without a member does not count at all. */
START_TEST(reports_count_once_for_each_node)
{
	struct hc_m_cut_report report = {.epoch = 1, .begun = 50};
	struct hc_m_drain_report done = {.epoch = 1, .done = 1};
	struct world_client *c2;

	world_start(&w, 3);
	a0 = member(0, 100);
	b1 = member(1, 200);
	c2 = member(2, 300);
	world_root_info(&w, a0, 2);
	world_join_root(&w, a0, a0, 2, 0);
	world_join_root(&w, b1, a0, 2, 1);
	id = a0->id;
	world_ops(&w, id, 0, 1, 1);
	w.hold[0][1] = true;
	world_destroy(&w, a0, id);
	report.id = done.id = id;
	report.number = done.number = world_record(&w, 0, id)->number;
	world_say(&w, 2, 0, &hc_desc_cut_report, &report);
	world_say(&w, 2, 0, &hc_desc_cut_report, &report);
	ck_assert_int_eq(world_record(&w, 0, id)->cut_set, HC_CUT_NONE);
	world_hold(&w, 0, 1, false);
	ck_assert_uint_eq(world_record(&w, 0, id)->cut, 1);
	world_say(&w, 1, 0, &hc_desc_drain_report, &done);
	world_say(&w, 1, 0, &hc_desc_drain_report, &done);
	world_say(&w, 2, 0, &hc_desc_drain_report, &done);
	ck_assert(world_waits(a0));
	ck_assert_int_eq(state_of(0), HC_W_domain_state_DRAINING);
	(void)c2;
	all_die();
	end();
}
END_TEST

START_TEST(absurd_words_of_peers)
{
	struct hc_m_arrive arrive = {.key_a = 1, .key_b = 2, .rank = 5, .nranks = 0, .uid = 1000};
	struct hc_m_gather gather = {.epoch = 1, .rank = 4000000000u};
	struct hc_m_depart depart = {.rank = 4000000000u};
	struct hc_m_verdict verdict = {.key_a = 1, .key_b = 2, .rank = 4000000000u, .code = 60000};
	struct hc_m_control_r answer = {.ticket = 0xffffffffffffffff, .code = 60000};

	form();
	world_say(&w, 1, 0, &hc_desc_arrive, &arrive);
	arrive.nranks = 5;
	world_say(&w, 1, 0, &hc_desc_arrive, &arrive);
	arrive.nranks = 4000000000u;
	world_say(&w, 1, 0, &hc_desc_arrive, &arrive);
	arrive.name = hc_str("not a\nname");
	arrive.nranks = 6;
	world_say(&w, 1, 0, &hc_desc_arrive, &arrive);
	gather.parent = depart.id = id;
	world_say(&w, 1, 0, &hc_desc_gather, &gather);
	world_say(&w, 1, 0, &hc_desc_depart, &depart);
	world_say(&w, 0, 1, &hc_desc_verdict, &verdict);
	world_say(&w, 0, 1, &hc_desc_control_r, &answer);
	ck_assert_int_eq(state_of(0), HC_W_domain_state_ACTIVE);
	all_die();
	end();
}
END_TEST

static void add(TCase *c)
{
	tcase_add_test(c, two_phases_over_two_nodes);
	tcase_add_test(c, table_over_two_nodes);
	tcase_add_test(c, nobody_is_told_before_it_is_stored);
	tcase_add_test(c, a_node_that_cannot_take_part_ends_it_for_all);
	tcase_add_test(c, a_rank_dies_while_prepare_is_under_way);
	tcase_add_test(c, cancelled_while_prepared_is_stored);
	tcase_add_test(c, a_rank_dies_while_commit_is_under_way);
	tcase_add_test(c, departed_before_the_verdict);
	tcase_add_test(c, prepare_is_not_answered);
	tcase_add_test(c, contradiction_is_told_on_both_nodes);
	tcase_add_test(c, contradiction_of_a_claimant);
	tcase_add_test(c, far_claimant_is_refused_alone);
	tcase_add_test(c, claimant_who_comes_while_it_activates);
	tcase_add_test(c, refused_beside_one_that_activates);
	tcase_add_test(c, arrived_twice_before_the_first_verdict);
	tcase_add_test(c, time_out_over_nodes);
	tcase_add_test(c, death_on_b_is_told_on_a);
	tcase_add_test(c, death_on_a_is_told_on_b);
	tcase_add_test(c, the_cut_is_the_maximum_of_the_nodes);
	tcase_add_test(c, destroy_is_asked_on_b);
	tcase_add_test(c, forced_names_the_far_rank);
	tcase_add_test(c, death_on_b_while_the_cut_is_asked);
	tcase_add_test(c, a_cut_that_was_shown_outlives_the_daemon);
	tcase_add_test(c, the_first_cause_outlives_a_drain);
	tcase_add_test(c, leave_on_both_nodes);
	tcase_add_test(c, sub_domain_over_two_nodes);
	tcase_add_test(c, only_the_home_is_obeyed);
	tcase_add_test(c, reports_count_once_for_each_node);
	tcase_add_test(c, absurd_words_of_peers);
}

int main(void)
{
	return hc_suite_run("core_two", add, 60);
}
