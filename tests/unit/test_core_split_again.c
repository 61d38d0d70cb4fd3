/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Splits and sub-domains that are asked for a second time, and which split a word is of.
 *
 * Two and three real cores; the home of the parent is on node a. Connections are lost after the
 * word or before its answer, and the home's daemon is killed between two of its answers. Wanted:
 * what is asked again is answered as the first time; a split is made of words of that very split;
 * a word that no split can be made of any more is refused at once, with the reason; and ranks that
 * do not count their splits meet whoever splits.
 */
#include "again.h"
#include "away.h"
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
static void form(uint32_t nodes, uint32_t nranks)
{
	uint32_t i, k;

	world_start(&w, nodes);
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

/* The same process on a new connection, as after a lost one. */
static void reconnect(uint32_t rank)
{
	world_lose(&w, m[rank]);
	m[rank] = member(m[rank]->node, m[rank]->pid);
	world_attach(&w, m[rank], parent, rank);
	ck_assert_int_eq(m[rank]->code, 0);
}

/* Its split `number` of the parent. */
static void say(uint32_t rank, uint64_t number, int32_t color)
{
	w.opt.number = number;
	world_split(&w, m[rank], parent, rank, color, 0);
}

/* Before the others have spoken: the second word is the first one's, and counts once. */
START_TEST(a_word_said_again_counts_once)
{
	form(2, 3);
	w.opt.number = 11;
	world_split(&w, m[1], parent, 1, 0, 0);
	reconnect(1);
	w.opt.number = 11;
	world_split(&w, m[1], parent, 1, 0, 0);
	world_split(&w, m[0], parent, 0, 0, 0);
	ck_assert(world_waits(m[1]));
	world_split(&w, m[2], parent, 2, 0, 0);
	ck_assert(!world_waits(m[0]) && !world_waits(m[1]) && !world_waits(m[2]));
	ck_assert_uint_eq(m[1]->ngroup, 3);
	ck_assert(m[1]->sub_id && m[1]->sub_id == m[0]->sub_id);
	all_die();
}
END_TEST

/* The answer was on its way when the connection was lost: it is given again, and no second split
 * begins, in which this rank would be alone. */
START_TEST(an_answer_that_was_lost_is_given_again)
{
	uint64_t sub_id;
	uint32_t i;

	form(2, 3);
	for (i = 0; i < 3; i++)
		say(i, 1, 0);
	sub_id = m[0]->sub_id;
	sub_of_group(0);
	sub_of_group(2);
	reconnect(1);
	world_advance(&w, 1000);
	w.opt.number = 1;
	world_split(&w, m[1], parent, 1, 0, 0);
	ck_assert(!world_waits(m[1]));
	ck_assert_int_eq(m[1]->code, 0);
	ck_assert_uint_eq(m[1]->sub_id, sub_id);
	sub_of_group(1);
	ck_assert(!m[1]->code && m[1]->id == m[0]->id && m[1]->id != parent);
	/* a split of its own is one */
	say(1, 2, 0);
	ck_assert(world_waits(m[1]));
	for (i = 0; i < 3; i += 2)
		say(i, 2, 0);
	ck_assert(!world_waits(m[1]));
	ck_assert(m[1]->sub_id && m[1]->sub_id != sub_id);
	all_die();
}
END_TEST

/* ---- which split it is ---- */

/* The home's daemon is killed, and so is what was on its way. */
static void restart_home(void)
{
	uint32_t i;

	for (i = 1; i < w.nodes; i++)
		w.hold[0][i] = w.hold[i][0] = true;
	world_restart(&w, 0);
	for (i = 1; i < w.nodes; i++) {
		while (world_drop(&w, 0, i) || world_drop(&w, i, 0))
			;
		hc_away_back(w.core[0], w.node_of[0][i], 1000 + i);
		hc_again(w.core[0], w.node_of[0][i]);
		hc_away_back(w.core[i], w.node_of[i][0], 1000);
		hc_again(w.core[i], w.node_of[i][0]);
	}
	world_hold_none(&w);
	world_settle(&w);
	m[0] = member(0, 100);
	world_attach(&w, m[0], parent, 0);
	ck_assert_int_eq(m[0]->code, 0);
}

static void ck_other_split(uint32_t rank, const char *here, const char *there)
{
	ck_assert(!world_waits(m[rank]));
	ck_assert_int_eq(m[rank]->code, HC_E_MISMATCH);
	ck_assert_msg(strstr(m[rank]->text, here) && strstr(m[rank]->text, there), "%s",
		      m[rank]->text);
}

static void ck_all_in(uint32_t nranks)
{
	uint32_t i;

	for (i = 0; i < nranks; i++) {
		ck_assert(!world_waits(m[i]));
		ck_assert_int_eq(m[i]->code, 0);
		ck_assert_uint_eq(m[i]->ngroup, nranks);
		ck_assert_uint_eq(m[i]->sub_id, m[0]->sub_id);
	}
}

/* Rank 0 has the answer of the first one, and rank 1 not. */
static void half_answered(void)
{
	form(2, 2);
	w.hold[0][1] = true;
	say(0, 1, 0);
	say(1, 1, 1);
	ck_assert(!world_waits(m[0]) && m[0]->ngroup == 1);
	ck_assert(world_waits(m[1]));
	restart_home();
	ck_assert(world_waits(m[1])); /* its node has asked again */
}

/* What rank 1 repeats is of the split before that of rank 0: it is told so, at once, and the next
 * one that both call is whole. */
START_TEST(two_splits_are_not_mixed)
{
	half_answered();
	say(0, 2, 1);
	ck_assert(world_waits(m[0]));
	ck_other_split(1, "#1", "rank 0 is at #2");
	say(1, 2, 1);
	ck_all_in(2);
	all_die();
}
END_TEST

/* The same, and the newer word comes first. */
START_TEST(a_split_of_before_comes_late)
{
	form(2, 2);
	w.hold[0][1] = true;
	say(0, 1, 0);
	say(1, 1, 1);
	world_lose(&w, m[1]);
	restart_home();
	say(0, 2, 1);
	m[1] = member(1, 101);
	world_attach(&w, m[1], parent, 1);
	say(1, 1, 1);
	ck_other_split(1, "#1", "rank 0 is at #2");
	ck_assert(world_waits(m[0]));
	say(1, 2, 1);
	ck_all_in(2);
	/* also when that one is complete */
	say(0, 1, 0);
	ck_other_split(0, "#1", "#2");
	all_die();
}
END_TEST

/* Nobody goes on: it is over at its limit, and names who did not speak. */
START_TEST(a_split_whose_answer_is_lost_ends)
{
	half_answered();
	world_advance(&w, 130000);
	ck_assert(!world_waits(m[1]));
	ck_assert_int_eq(m[1]->code, HC_E_TIMEOUT);
	ck_assert_msg(strstr(m[1]->text, "no word from rank 0 (1 of 2)"), "%s", m[1]->text);
	all_die();
}
END_TEST

/* No rank was told anything yet: what they repeat is a split as it was. */
START_TEST(a_split_that_nobody_was_told_is_gathered_again)
{
	form(3, 3);
	say(1, 1, 0);
	say(2, 1, 0);
	restart_home();
	ck_assert(world_waits(m[1]) && world_waits(m[2]));
	say(0, 1, 0);
	ck_all_in(3);
	all_die();
}
END_TEST

/* It had given up, and comes with another colour when the others have their groups. */
START_TEST(a_split_that_is_complete_takes_no_other_colour)
{
	form(2, 2);
	say(0, 1, 0);
	say(1, 1, 0);
	ck_all_in(2);
	reconnect(1);
	say(1, 1, 5);
	ck_other_split(1, "#1", "colour 0");
	say(1, 1, 0);
	ck_all_in(2);
	all_die();
}
END_TEST

/* Processes that do not count: 0, or a number as an older library has it, which is the time. They
 * meet whoever splits. */
START_TEST(who_does_not_count_splits_with_the_others)
{
	const uint64_t then = 1ull << 40;

	form(3, 3);
	say(0, 0, 0);
	say(1, 7, 0);
	say(2, then, 0);
	ck_all_in(3);
	say(2, then, 0); /* and one of these is known again, too */
	ck_all_in(3);
	say(2, then + 1, 0);
	say(1, 8, 0);
	ck_assert(world_waits(m[1]) && world_waits(m[2]));
	say(1, 9, 0);
	ck_other_split(2, "#8", "rank 1 is at #9");
	ck_assert(world_waits(m[1]));
	say(0, 0, 0);
	say(2, then + 2, 0);
	ck_all_in(3);
	all_die();
}
END_TEST

/* A number is of one group: also when the home's daemon has begun anew between two splits. */
START_TEST(a_number_is_not_given_twice)
{
	uint64_t first;
	uint32_t i;

	form(2, 2);
	for (i = 0; i < 2; i++)
		world_split(&w, m[i], parent, i, 0, 0);
	first = m[1]->sub_id;
	world_restart(&w, 0);
	m[0] = member(0, 100);
	world_attach(&w, m[0], parent, 0);
	ck_assert_int_eq(m[0]->code, 0);
	for (i = 0; i < 2; i++)
		world_split(&w, m[i], parent, i, 0, 0);
	ck_assert(!world_waits(m[0]) && m[0]->ngroup == 2);
	ck_assert_uint_eq(m[0]->sub_id, m[1]->sub_id);
	ck_assert(first && m[1]->sub_id != first);
	all_die();
}
END_TEST

/* Answers are kept only while there is room: other splits go first. */
START_TEST(kept_answers_are_in_nobodys_way)
{
	uint32_t i, k;

	form(2, 2);
	for (k = 0; k < 3 * HC_GATHERS; k++) {
		for (i = 0; i < 2; i++) {
			w.opt.number = 1 + k;
			world_split(&w, m[i], parent, i, 0, 0);
		}
		ck_assert(!world_waits(m[0]) && m[0]->ngroup == 2);
		if (k % 97)
			world_forget(&w);
	}
	all_die();
}
END_TEST

START_TEST(a_sub_domain_asked_for_again)
{
	static const uint32_t ranks[] = {1, 0}, same[] = {1, 0, WORLD_END};
	const struct world_item item = {8, NULL, same};
	uint64_t first;

	form(2, 2);
	/* while it forms */
	world_sub(&w, m[1], parent, 1, 5, ranks, 2);
	reconnect(1);
	world_sub(&w, m[1], parent, 1, 5, ranks, 2);
	world_sub(&w, m[0], parent, 0, 5, ranks, 2);
	first = m[0]->id;
	ck_assert(!m[1]->code && m[1]->id == first && first != parent);
	/* after it formed, when the answer was lost */
	reconnect(1);
	world_sub(&w, m[1], parent, 1, 5, ranks, 2);
	ck_assert(!world_waits(m[1]));
	ck_assert(!m[1]->code && m[1]->id == first);
	/* the same of a batch */
	world_batch(&w, m[1], parent, &item, 1);
	world_batch(&w, m[0], parent, &item, 1);
	ck_assert(m[1]->made[0] && m[1]->made[0] == m[0]->made[0]);
	first = m[1]->made[0];
	reconnect(1);
	world_batch(&w, m[1], parent, &item, 1);
	ck_assert(!world_waits(m[1]));
	ck_assert_uint_eq(m[1]->made[0], first);
	all_die();
}
END_TEST

/* Of two items the second is asked for again: its rank gets another block, which is new to the row
 * that this node has of it, and is written while the item is looked at. */
START_TEST(a_batch_asked_for_again_in_part)
{
	static const uint32_t same[] = {0, 1, WORLD_END};
	const struct world_item items[] = {{8, NULL, same}, {9, NULL, same}};
	uint64_t second;

	form(2, 2);
	world_batch(&w, m[0], parent, items, 2);
	world_batch(&w, m[1], parent, items, 2);
	second = m[1]->made[1];
	ck_assert(second && second == m[0]->made[1]);
	reconnect(1);
	world_batch(&w, m[1], parent, &items[1], 1);
	ck_assert(!world_waits(m[1]));
	ck_assert_uint_eq(m[1]->codes[0], 0);
	ck_assert_uint_eq(m[1]->made[0], second);
	all_die();
}
END_TEST

static void add(TCase *c)
{
	tcase_add_test(c, a_word_said_again_counts_once);
	tcase_add_test(c, an_answer_that_was_lost_is_given_again);
	tcase_add_test(c, two_splits_are_not_mixed);
	tcase_add_test(c, a_split_of_before_comes_late);
	tcase_add_test(c, a_split_whose_answer_is_lost_ends);
	tcase_add_test(c, a_split_that_nobody_was_told_is_gathered_again);
	tcase_add_test(c, a_split_that_is_complete_takes_no_other_colour);
	tcase_add_test(c, who_does_not_count_splits_with_the_others);
	tcase_add_test(c, a_number_is_not_given_twice);
	tcase_add_test(c, kept_answers_are_in_nobodys_way);
	tcase_add_test(c, a_sub_domain_asked_for_again);
	tcase_add_test(c, a_batch_asked_for_again_in_part);
}

int main(void)
{
	return hc_suite_run("core_split_again", add, 60);
}
