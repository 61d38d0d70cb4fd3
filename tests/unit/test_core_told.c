/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is written down of a domain, and on which node.
 *
 * Three cores: the home a, and b and c with ranks of it. Whoever asks node b what became of the
 * job has only what b wrote: so each change that its ranks are told is in the log and the journal
 * there, in the words of the home, and once; a process that exits on b is there before the home
 * knows it. The home, which has a part of its own, writes nothing twice.
 */
#include "away.h"
#include "suite.h"
#include "world.h"

#include <string.h>

static struct world w;
static struct world_client *a0, *b1, *b2, *c3;
static uint64_t id;

static struct world_client *member(uint32_t node, uint32_t pid)
{
	return world_client(&w, node, pid, 1000, HC_W_role_MEMBER);
}

/* Rank 0 on a (pid 100, the home), 1 and 2 on b (200, 201), 3 on c (300). */
static void meet(void)
{
	uint32_t i, k;

	world_start(&w, 3);
	a0 = member(0, 100);
	b1 = member(1, 200);
	b2 = member(1, 201);
	c3 = member(2, 300);
	for (i = 0; i < 3; i++)
		for (k = 0; k < 3; k++)
			if (i != k)
				hc_away_back(w.core[i], w.node_of[i][k], 1000 + k);
	w.show = SHOW_LOG | SHOW_JOURNAL;
	w.opt.name = "job";
	world_root_info(&w, a0, 4);
	world_join_root(&w, a0, a0, 4, 0);
	world_join_root(&w, b1, a0, 4, 1);
	world_join_root(&w, b2, a0, 4, 2);
}

static void form(void)
{
	meet();
	world_join_root(&w, c3, a0, 4, 3);
	id = a0->id;
	ck_assert(id && b1->id == id && c3->id == id);
	world_forget(&w);
}

static void end(void)
{
	world_hold_none(&w);
	world_die_all(&w);
	world_advance(&w, 130000);
	world_check_empty(&w);
	world_end(&w);
}

START_TEST(every_node_says_that_it_is_active)
{
	meet();
	world_forget(&w);
	world_join_root(&w, c3, a0, 4, 3);
	ck_transcript(&w, "[    0ms] a journal: domain-active: job: 4 ranks, epoch 1\n"
			  "[    0ms] a log: job: ACTIVE, 4 ranks\n"
			  "[    0ms] b log: job: ACTIVE, 4 ranks\n"
			  "[    0ms] b journal: domain-active: job: 4 ranks, epoch 1\n"
			  "[    0ms] c log: job: ACTIVE, 4 ranks\n"
			  "[    0ms] c journal: domain-active: job: 4 ranks, epoch 1\n");
	end();
}
END_TEST

/* b learns of its own process before the home has stored anything. */
START_TEST(a_death_is_said_at_once_where_it_was)
{
	form();
	w.hold[1][0] = true;
	world_die(&w, b2);
	ck_transcript(&w, "[    0ms] b log: job: rank 2, pid 201 on node b, exited\n"
			  "[    0ms] b journal: rank-died: rank 2, pid 201 on node b, exited\n");
	world_hold(&w, 1, 0, false);
	ck_transcript(
		&w,
		"[    0ms] a journal: rank-died: job: DAMAGED: rank 2, pid 201 on node b, exited\n"
		"[    0ms] a log: job: DAMAGED: rank 2, pid 201 on node b, exited\n"
		"[    0ms] b log: job: DAMAGED: rank 2, pid 201 on node b, exited\n"
		"[    0ms] b journal: rank-died: job: DAMAGED: rank 2, pid 201 on node b, exited\n"
		"[    0ms] c log: job: DAMAGED: rank 2, pid 201 on node b, exited\n"
		"[    0ms] c journal: rank-died: job: DAMAGED: rank 2, pid 201 on node b, "
		"exited\n");
	world_die(&w, b1);
	ck_transcript(
		&w,
		"[    0ms] b log: job: rank 1, pid 200 on node b, exited\n"
		"[    0ms] b journal: rank-died: rank 1, pid 200 on node b, exited\n"
		"[    0ms] a log: job: DAMAGED: rank 1, pid 200 on node b, exited\n"
		"[    0ms] a journal: rank-died: job: DAMAGED: rank 1, pid 200 on node b, exited\n"
		"[    0ms] c log: job: DAMAGED: rank 1, pid 200 on node b, exited\n"
		"[    0ms] c journal: rank-died: job: DAMAGED: rank 1, pid 200 on node b, "
		"exited\n");
	world_die(&w, c3);
	ck_transcript(
		&w,
		"[    0ms] c log: job: rank 3, pid 300 on node c, exited\n"
		"[    0ms] c journal: rank-died: rank 3, pid 300 on node c, exited\n"
		"[    0ms] a log: job: DAMAGED: rank 3, pid 300 on node c, exited\n"
		"[    0ms] a journal: rank-died: job: DAMAGED: rank 3, pid 300 on node c, exited\n"
		"[    0ms] b log: job: DAMAGED: rank 3, pid 300 on node c, exited\n"
		"[    0ms] b journal: rank-died: job: DAMAGED: rank 3, pid 300 on node c, "
		"exited\n");
	/* what is said again is no news */
	world_restart(&w, 0);
	world_dead(&w, 0, 100);
	ck_transcript(
		&w,
		"[    0ms] a log: job: DAMAGED: rank 0, pid 100 on node a, exited\n"
		"[    0ms] a journal: rank-died: job: DAMAGED: rank 0, pid 100 on node a, exited\n"
		"[    0ms] b log: job: DAMAGED: rank 0, pid 100 on node a, exited\n"
		"[    0ms] b journal: rank-died: job: DAMAGED: rank 0, pid 100 on node a, exited\n"
		"[    0ms] c log: job: DAMAGED: rank 0, pid 100 on node a, exited\n"
		"[    0ms] c journal: rank-died: job: DAMAGED: rank 0, pid 100 on node a, "
		"exited\n");
	end();
}
END_TEST

START_TEST(suspended_and_again_by_the_word_of_the_home)
{
	form();
	hc_away_gone(w.core[0], w.node_of[0][2], "no path to it is left");
	world_advance(&w, 1);
	ck_transcript(
		&w,
		"[    0ms] a log: job: SUSPENDED: node c cannot be reached: no path to it is left\n"
		"[    0ms] a journal: domain-suspended: job: SUSPENDED: node c cannot be reached: "
		"no path to it is left\n"
		"[    0ms] b log: job: SUSPENDED: node c cannot be reached: no path to it is left\n"
		"[    0ms] b journal: domain-suspended: job: SUSPENDED: node c cannot be reached: "
		"no path to it is left\n"
		"[    0ms] c log: job: SUSPENDED: node c cannot be reached: no path to it is left\n"
		"[    0ms] c journal: domain-suspended: job: SUSPENDED: node c cannot be reached: "
		"no path to it is left\n");
	hc_away_back(w.core[0], w.node_of[0][2], 1002);
	world_advance(&w, 1);
	ck_transcript(&w, "[    1ms] a log: job: ACTIVE again\n"
			  "[    1ms] a journal: domain-active: job: ACTIVE again\n"
			  "[    1ms] b log: job: ACTIVE again\n"
			  "[    1ms] b journal: domain-active: job: ACTIVE again\n"
			  "[    1ms] c log: job: ACTIVE again\n"
			  "[    1ms] c journal: domain-active: job: ACTIVE again\n");
	end();
}
END_TEST

START_TEST(suspended_and_again_on_its_own_word)
{
	form();
	hc_away_gone(w.core[1], w.node_of[1][0], "no path to it is left");
	world_advance(&w, 1);
	ck_transcript(&w, "[    0ms] b log: job: SUSPENDED: its home, node a, cannot be reached: "
			  "no path to it is left\n"
			  "[    0ms] b journal: domain-suspended: job: SUSPENDED: its home, node "
			  "a, cannot be reached: no path to it is left\n");
	hc_away_back(w.core[1], w.node_of[1][0], 1000);
	world_advance(&w, 1);
	ck_transcript(&w, "[    1ms] b log: job: ACTIVE again\n"
			  "[    1ms] b journal: domain-active: job: ACTIVE again\n");
	end();
}
END_TEST

START_TEST(left_drained_and_destroyed)
{
	form();
	world_leave(&w, b1, id, 1);
	ck_transcript(&w, "[    0ms] a log: job: DRAINING: rank 1, pid 200 on node b, left in "
			  "order after collective #0\n"
			  "[    0ms] a journal: rank-left: job: DRAINING: rank 1, pid 200 on node "
			  "b, left in order after collective #0\n"
			  "[    0ms] b log: job: DRAINING: rank 1, pid 200 on node b, left in "
			  "order after collective #0\n"
			  "[    0ms] b journal: rank-left: job: DRAINING: rank 1, pid 200 on node "
			  "b, left in order after collective #0\n"
			  "[    0ms] c log: job: DRAINING: rank 1, pid 200 on node b, left in "
			  "order after collective #0\n"
			  "[    0ms] c journal: rank-left: job: DRAINING: rank 1, pid 200 on node "
			  "b, left in order after collective #0\n");
	world_destroy(&w, a0, id);
	ck_transcript(&w,
		      "[    0ms] a log: job: DRAINING: destroyed by uid 1000\n"
		      "[    0ms] a journal: domain-draining: job: DRAINING: destroyed by uid 1000\n"
		      "[    0ms] b log: job: DRAINING: destroyed by uid 1000\n"
		      "[    0ms] b journal: domain-draining: job: DRAINING: destroyed by uid 1000\n"
		      "[    0ms] c log: job: DRAINING: destroyed by uid 1000\n"
		      "[    0ms] c journal: domain-draining: job: DRAINING: destroyed by uid 1000\n"
		      "[    0ms] a journal: domain-destroyed: destroyed by uid 1000\n"
		      "[    0ms] a log: job: destroyed by uid 1000\n"
		      "[    0ms] b log: job: destroyed by uid 1000\n"
		      "[    0ms] b journal: domain-destroyed: destroyed by uid 1000\n"
		      "[    0ms] c log: job: destroyed by uid 1000\n"
		      "[    0ms] c journal: domain-destroyed: destroyed by uid 1000\n");
	end();
}
END_TEST

START_TEST(a_death_while_it_drains)
{
	form();
	world_ops(&w, id, 3, 7, 1);
	world_destroy(&w, a0, id);
	ck_transcript(
		&w, "[    0ms] a log: job: DRAINING: destroyed by uid 1000\n"
		    "[    0ms] a journal: domain-draining: job: DRAINING: destroyed by uid 1000\n"
		    "[    0ms] b log: job: DRAINING: destroyed by uid 1000\n"
		    "[    0ms] b journal: domain-draining: job: DRAINING: destroyed by uid 1000\n"
		    "[    0ms] c log: job: DRAINING: destroyed by uid 1000\n"
		    "[    0ms] c journal: domain-draining: job: DRAINING: destroyed by uid 1000\n");
	world_die(&w, b2);
	ck_transcript(
		&w,
		"[    0ms] b log: job: rank 2, pid 201 on node b, exited\n"
		"[    0ms] b journal: rank-died: rank 2, pid 201 on node b, exited\n"
		"[    0ms] a log: job: DRAINING: rank 2, pid 201 on node b, exited\n"
		"[    0ms] a journal: rank-died: job: DRAINING: rank 2, pid 201 on node b, exited\n"
		"[    0ms] c log: job: DRAINING: rank 2, pid 201 on node b, exited\n"
		"[    0ms] c journal: rank-died: job: DRAINING: rank 2, pid 201 on node b, "
		"exited\n");
	end();
}
END_TEST

START_TEST(what_failed_says_why)
{
	meet();
	world_forget(&w);
	world_die(&w, b2);
	ck_transcript(&w, "[    0ms] b log: job: rank 2, pid 201 on node b, exited\n"
			  "[    0ms] b journal: rank-died: rank 2, pid 201 on node b, exited\n");
	world_join_root(&w, c3, a0, 5, 3);
	ck_transcript(&w, "[    0ms] a log: job: the ranks disagree on their number: rank 0 (pid "
			  "100 on node a) says 4, rank 3 (pid 300 on node c) says 5\n"
			  "[    0ms] a journal: domain-failed: the ranks disagree on their number: "
			  "rank 0 (pid 100 on node a) says 4, rank 3 (pid 300 on node c) says 5\n"
			  "[    0ms] b log: job: the ranks disagree on their number: rank 0 (pid "
			  "100 on node a) says 4, rank 3 (pid 300 on node c) says 5\n"
			  "[    0ms] b journal: domain-failed: the ranks disagree on their number: "
			  "rank 0 (pid 100 on node a) says 4, rank 3 (pid 300 on node c) says 5\n"
			  "[    0ms] c log: job: the ranks disagree on their number: rank 0 (pid "
			  "100 on node a) says 4, rank 3 (pid 300 on node c) says 5\n"
			  "[    0ms] c journal: domain-failed: the ranks disagree on their number: "
			  "rank 0 (pid 100 on node a) says 4, rank 3 (pid 300 on node c) says 5\n");
	end();
}
END_TEST

static void add(TCase *c)
{
	tcase_add_test(c, every_node_says_that_it_is_active);
	tcase_add_test(c, a_death_is_said_at_once_where_it_was);
	tcase_add_test(c, suspended_and_again_by_the_word_of_the_home);
	tcase_add_test(c, suspended_and_again_on_its_own_word);
	tcase_add_test(c, left_drained_and_destroyed);
	tcase_add_test(c, a_death_while_it_drains);
	tcase_add_test(c, what_failed_says_why);
}

int main(void)
{
	return hc_suite_run("core_told", add, 60);
}
