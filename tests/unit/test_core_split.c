/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Splits, sub-domains and batches whose ranks are on several nodes.
 *
 * Two and three real cores that exchange their messages by hand; the home of the parent is on
 * node a. Wanted: what the ranks of one node would get; a list that differs, or a rank, a node or
 * a home that is lost in the middle, ends it for all who wait, with the reason, at once; and
 * nothing stays behind. What is asked a second time: test_core_split_again.c.
 */
#include "again.h"
#include "away.h"
#include "pages.h"
#include "suite.h"
#include "world.h"

#include <string.h>

static struct world w;
static struct world_client *m[WORLD_RANKS];
static uint64_t parent;

static struct world_client *member(uint32_t node, uint32_t pid)
{
	return world_client(&w, node, pid, 1000, HC_W_role_MEMBER);
}

/* Rank i is process 100 + i on node i modulo `nodes`. */
static void form_in(uint32_t nodes, uint32_t nranks)
{
	uint32_t i, k;

	for (i = 0; i < nodes; i++)
		for (k = 0; k < nodes; k++)
			if (i != k)
				hc_away_back(w.core[i], w.node_of[i][k], 1000 + k);
	for (i = 0; i < nranks; i++)
		m[i] = member(i % nodes, 100 + i);
	world_root_info(&w, m[0], nranks);
	for (i = 0; i < nranks; i++)
		world_join_root(&w, m[i], m[0], nranks, i);
	parent = m[0]->id;
	for (i = 0; i < nranks; i++)
		ck_assert(!m[i]->code && parent && m[i]->id == parent);
	world_forget(&w);
	w.show = SHOW_REPLIES;
}

static void form(uint32_t nodes, uint32_t nranks)
{
	world_start(&w, nodes);
	form_in(nodes, nranks);
}

static void all_die(void)
{
	world_hold_none(&w);
	world_die_all(&w);
	world_advance(&w, 130000);
	world_check_empty(&w);
	world_end(&w);
}

/* What the library does with the answer to a split. */
static void sub_of_group(uint32_t rank)
{
	world_sub(&w, m[rank], parent, rank, m[rank]->sub_id, m[rank]->group, m[rank]->ngroup);
}

static bool active_on(uint32_t node, uint64_t id)
{
	const struct world_record *r = world_record(&w, node, id);

	return r && r->state == HC_W_domain_state_ACTIVE;
}

/* Nothing that forms is left on any node. */
static void ck_none_forms(void)
{
	uint32_t i, k;

	for (i = 0; i < w.nodes; i++) {
		const struct hc_core *c = w.core[i];

		ck_assert_uint_eq(c->nforming, 0);
		for (k = 0; k < c->part_pool.fresh; k++)
			ck_assert(c->parts[k].state == HC_W_domain_state_NONE ||
				  c->parts[k].state >= HC_W_domain_state_ACTIVE);
	}
}

/* ---- it goes well ---- */

START_TEST(two_colours_across_nodes)
{
	const int32_t colour[] = {0, 0, 1, 1, 1, 0}, key[] = {5, 0, 0, 0, -1, 0};
	uint64_t zero, one;
	uint32_t i;

	form(2, 6); /* a: 0 2 4, b: 1 3 5 */
	for (i = 0; i < 6; i++)
		world_split(&w, m[i], parent, i, colour[i], key[i]);
	ck_transcript(&w, "[    0ms] a 100 split: group 1 5 0\n"
			  "[    0ms] a 102 split: group 4 2 3\n"
			  "[    0ms] a 104 split: group 4 2 3\n"
			  "[    0ms] b 101 split: group 1 5 0\n"
			  "[    0ms] b 103 split: group 4 2 3\n"
			  "[    0ms] b 105 split: group 1 5 0\n");
	for (i = 0; i < 6; i++)
		sub_of_group(i);
	zero = m[0]->id;
	one = m[4]->id;
	for (i = 0; i < 6; i++)
		ck_assert(!m[i]->code && !world_waits(m[i]) &&
			  m[i]->id == (colour[i] ? one : zero));
	ck_assert(zero != one && zero != parent && one != parent);
	ck_assert_uint_eq(world_seat(&w, zero, 0)->pid, 101);
	ck_assert_uint_eq(world_seat(&w, zero, 2)->pid, 100);
	ck_assert_uint_eq(world_seat(&w, one, 2)->pid, 103);
	for (i = 0; i < 2; i++)
		ck_assert(active_on(i, zero) && active_on(i, one));
	/* a death in one of them is told to its ranks, on both nodes */
	w.show = SHOW_EVENTS;
	world_forget(&w);
	world_die(&w, m[3]);
	ck_assert_int_eq(world_record(&w, 0, one)->state, HC_W_domain_state_DAMAGED);
	ck_assert_int_eq(world_record(&w, 1, one)->state, HC_W_domain_state_DAMAGED);
	ck_assert(active_on(0, zero) && active_on(1, zero));
	all_die();
}
END_TEST

START_TEST(who_wants_no_group_gets_none)
{
	uint32_t i;

	form(3, 3);
	world_split(&w, m[0], parent, 0, -1, 0);
	world_split(&w, m[1], parent, 1, 4, 0);
	world_split(&w, m[2], parent, 2, 4, 0);
	ck_assert_uint_eq(m[0]->ngroup, 0);
	ck_assert_uint_eq(m[1]->ngroup, 2);
	sub_of_group(2);
	sub_of_group(1);
	for (i = 1; i < 3; i++)
		ck_assert(!m[i]->code && m[i]->id == m[1]->id && m[i]->id != parent);
	ck_assert_ptr_null(world_record(&w, 0, m[1]->id));
	all_die();
}
END_TEST

/* The split is over for a rank that is in no group: it may leave the parent at once, while the
 * others are still at forming theirs. */
START_TEST(one_leaves_the_parent_right_after_the_split)
{
	uint32_t i;

	form(3, 3);
	for (i = 0; i < 3; i++)
		world_split(&w, m[i], parent, i, i == 1 ? -1 : 0, 0);
	sub_of_group(0);
	world_leave(&w, m[1], parent, 1);
	ck_assert_int_eq(world_record(&w, 2, parent)->state, HC_W_domain_state_DRAINING);
	sub_of_group(2);
	ck_assert(!m[0]->code && !m[2]->code && m[0]->id == m[2]->id && m[0]->id != parent);
	/* a list of their own choice is no matter of that split */
	world_sub(&w, m[2], parent, 2, 5, (const uint32_t[]){2}, 1);
	ck_assert_int_eq(m[2]->code, HC_E_GONE);
	ck_assert_msg(strstr(m[2]->text, "DRAINING"), "%s", m[2]->text);
	all_die();
}
END_TEST

/* No member is on the node of its home: it lives and ends all the same. */
START_TEST(a_sub_domain_of_far_ranks_only)
{
	const uint32_t ranks[] = {2, 1};
	uint64_t id;

	form(3, 3);
	world_sub(&w, m[1], parent, 1, 7, ranks, 2);
	world_sub(&w, m[2], parent, 2, 7, ranks, 2);
	id = m[1]->id;
	ck_assert(!m[1]->code && !m[2]->code && id != parent && id == m[2]->id);
	ck_assert(active_on(1, id) && active_on(2, id));
	world_leave(&w, m[1], id, 1);
	world_leave(&w, m[2], id, 0);
	ck_assert_int_eq(m[2]->code, 0);
	ck_assert_int_eq(world_record(&w, 1, id)->state, HC_W_domain_state_DESTROYED);
	ck_assert_int_eq(world_record(&w, 2, id)->state, HC_W_domain_state_DESTROYED);
	ck_assert(active_on(0, parent));
	all_die();
}
END_TEST

/* ---- batches ---- */

enum { MANY = 100 };

static void many_world(uint32_t nodes, uint32_t nranks)
{
	struct hc_settings settings;
	struct hc_limits limits;

	world_defaults(&limits, &settings);
	limits.domains = 256;
	limits.ranks = 2048;
	world_start_with(&w, nodes, &limits, &settings, 8, 1);
	form_in(nodes, nranks);
}

/* Pairs of one rank of each node, and every fourth of them all ranks. */
static const uint32_t *list_of(uint32_t i)
{
	static const uint32_t lists[][5] = {
		{0, 1, 2, 3, WORLD_END}, {0, 1, WORLD_END}, {3, 2, WORLD_END}, {2, 1, WORLD_END}};

	return lists[i % 4];
}

static bool lists(const uint32_t *list, uint32_t rank)
{
	for (; *list != WORLD_END; list++)
		if (*list == rank)
			return true;
	return false;
}

START_TEST(a_batch_of_a_hundred_over_two_nodes)
{
	static struct world_item items[MANY];
	uint32_t i, k, at[4] = {0};
	uint64_t id;

	many_world(2, 4);
	for (k = 0; k < 4; k++) {
		uint32_t n = 0;

		for (i = 0; i < MANY; i++)
			if (lists(list_of(i), k))
				items[n++] = (struct world_item){i, NULL, list_of(i)};
		world_batch(&w, m[k], parent, items, n);
	}
	world_settle(&w);
	for (i = 0; i < MANY; i++) {
		id = 0;
		for (k = 0; k < 4; k++) {
			if (!lists(list_of(i), k))
				continue;
			ck_assert_uint_eq(m[k]->codes[at[k]], 0);
			id = id ? id : m[k]->made[at[k]];
			ck_assert_uint_eq(m[k]->made[at[k]++], id);
		}
		ck_assert(id && active_on(0, id) && active_on(1, id));
	}
	ck_none_forms();
	all_die();
}
END_TEST

/* One item differs: it fails on every rank of it, and on nobody else; the others are there. */
START_TEST(a_batch_with_one_list_that_differs)
{
	static const uint32_t both[] = {0, 1, WORLD_END}, turned[] = {1, 0, WORLD_END};
	const struct world_item a[] = {{1, NULL, both}, {2, NULL, both}, {3, NULL, both}},
				b[] = {{1, NULL, both}, {2, NULL, turned}, {3, NULL, both}};
	uint32_t i;

	form(2, 2);
	world_batch(&w, m[0], parent, a, 3);
	world_batch(&w, m[1], parent, b, 3);
	for (i = 0; i < 3; i++) {
		ck_assert_uint_eq(m[0]->codes[i], i == 1 ? HC_E_MISMATCH : 0);
		ck_assert_uint_eq(m[1]->codes[i], i == 1 ? HC_E_MISMATCH : 0);
		ck_assert_uint_eq(m[0]->made[i], m[1]->made[i]);
	}
	ck_assert_msg(strstr(m[0]->text, "pid 100 on node a") &&
			      strstr(m[0]->text, "pid 101 on node b"),
		      "%s", m[0]->text);
	ck_none_forms();
	all_die();
}
END_TEST

/* ---- lists that differ ---- */

static void ck_differ(uint32_t x, uint32_t y)
{
	ck_assert_int_eq(m[x]->code, HC_E_MISMATCH);
	ck_assert_int_eq(m[y]->code, HC_E_MISMATCH);
	ck_assert(!world_waits(m[x]) && !world_waits(m[y]));
	ck_assert_str_eq(m[x]->text, m[y]->text);
	ck_none_forms();
}

START_TEST(lists_differ_between_nodes)
{
	const uint32_t mine[] = {0, 1, 2}, theirs[] = {2, 1, 0}, shorter[] = {0, 1};
	struct world_client *third;

	form(3, 3);
	third = m[2];
	/* of the far ones alone, whose home has no rank in it */
	world_sub(&w, m[1], parent, 1, 5, mine, 3);
	ck_assert(world_waits(m[1]));
	world_sub(&w, third, parent, 2, 5, theirs, 3);
	ck_differ(1, 2);
	ck_assert_msg(strstr(m[1]->text, "rank 1 (pid 101 on node b)") &&
			      strstr(m[1]->text, "rank 0 (pid 102 on node c)"),
		      "%s", m[1]->text);
	/* in number */
	world_sub(&w, m[0], parent, 0, 6, mine, 3);
	world_sub(&w, third, parent, 2, 6, mine, 3);
	world_sub(&w, m[1], parent, 1, 6, shorter, 2);
	ck_differ(0, 1);
	ck_assert_int_eq(third->code, HC_E_MISMATCH);
	ck_assert_msg(strstr(m[0]->text, "pid 101 on node b) says 2"), "%s", m[0]->text);
	/* and the same number of it, agreed on, is made */
	world_sub(&w, m[0], parent, 0, 6, mine, 3);
	world_sub(&w, m[1], parent, 1, 6, mine, 3);
	world_sub(&w, third, parent, 2, 6, mine, 3);
	ck_assert(!m[0]->code && !m[1]->code && !third->code);
	all_die();
}
END_TEST

/* Two ranks of one node list different things, and their words are lost: said again, they differ
 * still. */
START_TEST(lists_that_differ_are_said_again)
{
	static const uint32_t one[] = {0, 1, 2, 3}, two[] = {0, 2, 1, 3};
	uint32_t i;

	form(2, 4);
	w.hold[1][0] = true;
	world_sub(&w, m[1], parent, 1, 3, one, 4);
	world_sub(&w, m[3], parent, 3, 3, two, 4);
	while (world_drop(&w, 1, 0))
		;
	world_sub(&w, m[0], parent, 0, 3, one, 4);
	world_sub(&w, m[2], parent, 2, 3, one, 4);
	hc_again(w.core[1], w.node_of[1][0]);
	world_hold(&w, 1, 0, false);
	world_settle(&w);
	for (i = 0; i < 4; i++) {
		ck_assert(!world_waits(m[i]));
		ck_assert_int_eq(m[i]->code, HC_E_MISMATCH);
	}
	ck_none_forms();
	all_die();
}
END_TEST

/* ---- the parent is no more, or not just now ---- */

/* A rank dies whose word or arrival is wanted yet: nobody waits for the limit. */
START_TEST(a_rank_dies_before_it_speaks)
{
	uint32_t i;

	form(2, 4);
	for (i = 0; i < 3; i++)
		world_split(&w, m[i], parent, i, 0, 0);
	world_die(&w, m[3]);
	for (i = 0; i < 3; i++) {
		ck_assert(!world_waits(m[i]));
		ck_assert_int_eq(m[i]->code, HC_E_DAMAGED);
		ck_assert_str_eq(m[i]->text, "rank 3, pid 103 on node b, exited");
	}
	all_die();
}
END_TEST

START_TEST(a_rank_dies_before_its_sub_domain_formed)
{
	const uint32_t ranks[] = {0, 1, 3};
	uint32_t i;

	form(2, 4);
	for (i = 0; i < 2; i++)
		world_sub(&w, m[i], parent, i, 9, ranks, 3);
	ck_assert(world_waits(m[0]) && world_waits(m[1]));
	world_die(&w, m[3]);
	for (i = 0; i < 2; i++) {
		ck_assert(!world_waits(m[i]));
		ck_assert_int_eq(m[i]->code, HC_E_DAMAGED);
		ck_assert_msg(strstr(m[i]->text, "rank 3, pid 103 on node b, exited"), "%s",
			      m[i]->text);
	}
	ck_none_forms();
	all_die();
}
END_TEST

START_TEST(a_node_is_lost_before_its_ranks_speak)
{
	const uint32_t ranks[] = {0, 1, 2};

	form(3, 3);
	world_split(&w, m[0], parent, 0, 0, 0);
	world_split(&w, m[1], parent, 1, 0, 0);
	hc_away_back(w.core[0], w.node_of[0][2], 777);
	world_advance(&w, 1);
	ck_assert(!world_waits(m[0]) && !world_waits(m[1]));
	ck_assert_int_eq(m[0]->code, HC_E_DAMAGED);
	ck_assert_int_eq(m[1]->code, HC_E_DAMAGED);
	ck_assert_msg(strstr(m[1]->text, "node c began anew"), "%s", m[1]->text);
	world_sub(&w, m[1], parent, 1, 3, ranks, 3);
	ck_assert_int_eq(m[1]->code, HC_E_DAMAGED);
	all_die();
}
END_TEST

START_TEST(a_node_is_lost_before_its_sub_domain_formed)
{
	const uint32_t ranks[] = {0, 1, 2};

	form(3, 3);
	world_sub(&w, m[0], parent, 0, 3, ranks, 3);
	world_sub(&w, m[1], parent, 1, 3, ranks, 3);
	hc_away_back(w.core[0], w.node_of[0][2], 777);
	world_advance(&w, 1);
	ck_assert(!world_waits(m[0]) && !world_waits(m[1]));
	ck_assert_int_eq(m[0]->code, HC_E_DAMAGED);
	ck_assert_int_eq(m[1]->code, HC_E_DAMAGED);
	ck_assert_msg(strstr(m[1]->text, "node c began anew"), "%s", m[1]->text);
	ck_none_forms();
	all_die();
}
END_TEST

/* The home of it all is lost: those who wait hear it, whatever they wait for. */
START_TEST(the_home_is_lost_in_the_middle)
{
	static const uint32_t ranks[] = {0, 1, 2}, same[] = {0, 1, 2, WORLD_END};
	const struct world_item item = {4, NULL, same};
	struct world_client *split, *sub, *batch;

	form(3, 3);
	split = m[1];
	sub = m[2];
	world_split(&w, split, parent, 1, 0, 0);
	world_sub(&w, sub, parent, 2, 3, ranks, 3);
	batch = member(2, 102); /* a second connection of the same process */
	world_batch(&w, batch, parent, &item, 1);
	ck_assert(world_waits(split) && world_waits(sub) && world_waits(batch));
	w.hold[1][0] = w.hold[2][0] = w.hold[0][1] = w.hold[0][2] = true;
	hc_away_back(w.core[1], w.node_of[1][0], 777);
	hc_away_back(w.core[2], w.node_of[2][0], 777);
	world_advance(&w, 1);
	ck_assert(!world_waits(split) && !world_waits(sub) && !world_waits(batch));
	ck_assert_int_eq(split->code, HC_E_GONE);
	ck_assert_msg(strstr(split->text, "node a"), "%s", split->text);
	ck_assert_int_eq(sub->code, HC_E_PEER_LOST);
	ck_assert_msg(strstr(sub->text, "node a"), "%s", sub->text);
	ck_assert_int_eq(batch->codes[0], HC_E_PEER_LOST);
	all_die();
}
END_TEST

/* Its words have not even reached the home. */
START_TEST(the_home_is_lost_before_it_answers)
{
	static const uint32_t ranks[] = {0, 1, 2};
	struct world_client *split, *sub;

	form(3, 3);
	split = m[1];
	sub = m[2];
	w.hold[1][0] = w.hold[2][0] = true;
	world_split(&w, split, parent, 1, 0, 0);
	world_sub(&w, sub, parent, 2, 3, ranks, 3);
	hc_away_back(w.core[1], w.node_of[1][0], 777);
	hc_away_back(w.core[2], w.node_of[2][0], 777);
	world_advance(&w, 1);
	ck_assert(!world_waits(split) && !world_waits(sub));
	ck_assert_int_eq(split->code, HC_E_GONE);
	ck_assert_int_eq(sub->code, HC_E_PEER_LOST);
	ck_assert_msg(strstr(sub->text, "node a"), "%s", sub->text);
	all_die();
}
END_TEST

/* A node that cannot be reached for a while: it is said so, not that the parent is gone. */
START_TEST(the_parent_is_suspended)
{
	static const uint32_t ranks[] = {0, 1}, same[] = {0, 1, WORLD_END};
	const struct world_item item = {4, NULL, same};
	uint32_t i;

	form(3, 3);
	w.hold[2][0] = w.hold[0][2] = true;
	hc_away_gone(w.core[0], w.node_of[0][2], "no path to it is left");
	world_advance(&w, 1);
	for (i = 0; i < 2; i++) {
		world_split(&w, m[i], parent, i, 0, 0);
		ck_assert_int_eq(m[i]->code, HC_E_SUSPENDED);
		ck_assert_msg(strstr(m[i]->text, "node c"), "%s", m[i]->text);
		world_sub(&w, m[i], parent, i, 3, ranks, 2);
		ck_assert_int_eq(m[i]->code, HC_E_SUSPENDED);
		world_batch(&w, m[i], parent, &item, 1);
		ck_assert_uint_eq(m[i]->codes[0], HC_E_SUSPENDED);
	}
	hc_away_back(w.core[0], w.node_of[0][2], 1002);
	world_hold(&w, 2, 0, false);
	world_hold(&w, 0, 2, false);
	for (i = 0; i < 3; i++)
		world_split(&w, m[i], parent, i, 0, 0);
	for (i = 0; i < 3; i++)
		ck_assert_uint_eq(m[i]->ngroup, 3);
	all_die();
}
END_TEST

/* The node is away while the others have spoken: its word, when it is back, completes the split. */
START_TEST(a_split_waits_for_a_node_that_comes_back)
{
	form(3, 3);
	world_split(&w, m[0], parent, 0, 0, 0);
	world_split(&w, m[1], parent, 1, 0, 0);
	w.hold[2][0] = true;
	world_split(&w, m[2], parent, 2, 0, 0);
	hc_away_gone(w.core[0], w.node_of[0][2], "no path to it is left");
	world_advance(&w, 1000);
	ck_assert(world_waits(m[0]) && world_waits(m[1]));
	hc_away_back(w.core[0], w.node_of[0][2], 1002);
	world_hold(&w, 2, 0, false);
	world_advance(&w, 1);
	ck_assert(!world_waits(m[0]) && !world_waits(m[1]) && !world_waits(m[2]));
	ck_assert_uint_eq(m[2]->ngroup, 3);
	all_die();
}
END_TEST

static void add(TCase *c)
{
	tcase_add_test(c, two_colours_across_nodes);
	tcase_add_test(c, who_wants_no_group_gets_none);
	tcase_add_test(c, one_leaves_the_parent_right_after_the_split);
	tcase_add_test(c, a_sub_domain_of_far_ranks_only);
	tcase_add_test(c, a_batch_of_a_hundred_over_two_nodes);
	tcase_add_test(c, a_batch_with_one_list_that_differs);
	tcase_add_test(c, lists_differ_between_nodes);
	tcase_add_test(c, lists_that_differ_are_said_again);
	tcase_add_test(c, a_rank_dies_before_it_speaks);
	tcase_add_test(c, a_rank_dies_before_its_sub_domain_formed);
	tcase_add_test(c, a_node_is_lost_before_its_ranks_speak);
	tcase_add_test(c, a_node_is_lost_before_its_sub_domain_formed);
	tcase_add_test(c, the_home_is_lost_in_the_middle);
	tcase_add_test(c, the_home_is_lost_before_it_answers);
	tcase_add_test(c, the_parent_is_suspended);
	tcase_add_test(c, a_split_waits_for_a_node_that_comes_back);
}

int main(void)
{
	return hc_suite_run("core_split", add, 60);
}
