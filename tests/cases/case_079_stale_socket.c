/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Case 79. Stale socket, or a busy owner?
 *
 * After kill -9 the socket's file stays and a naive start fails; the naive cure takes the socket
 * of a daemon that is only slow. Here a lock decides: a start after a kill needs no help, and a
 * second daemon gives up, naming the first, whether that one sleeps or works.
 */
#include "ranks.h"
#include "raw.h"
#include "suite.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

enum { TIMES = 20, START_MS = 1000 };

static struct hc_node node;
static struct hc_run run;

START_TEST(killed_and_started)
{
	uint64_t began;
	int i;

	hc_node_start(&node, 2, NULL);
	for (i = 0; i < TIMES; i++) {
		hc_node_kill(&node);
		began = hc_now_ms();
		hc_node_run(&node);
		ck_assert_uint_lt(hc_now_ms() - began, hc_patience(START_MS));
	}
	hc_node_end(&node);
}
END_TEST

static void want_refused(void)
{
	char want[64];

	snprintf(want, sizeof(want), "already running, pid %d", (int)node.pid);
	ck_assert_int_ne(hc_raw_daemon(&run, &node, 10000), 0);
	ck_assert_int_lt(run.status, 124);
	ck_assert_msg(strstr(run.err, want) != NULL, "'%s' is not in: %s", want, run.err);
}

/* It is stopped, so it answers nobody: that is no reason to take its socket. */
START_TEST(the_first_one_sleeps)
{
	int i;

	hc_node_start(&node, 2, NULL);
	for (i = 0; i < TIMES; i++) {
		kill(node.pid, SIGSTOP);
		want_refused();
		kill(node.pid, SIGCONT);
		ck_assert(hc_socket_answers(node.socket));
	}
	hc_node_end(&node);
}
END_TEST

START_TEST(the_first_one_works)
{
	struct hc_rank r[2];
	struct hc_answer a;
	int i;

	hc_node_start(&node, 2, NULL);
	hc_ranks_start(r, 2, "load");
	for (i = 0; i < TIMES; i++) {
		hc_rank_tell(&r[0], &(struct hc_order){.what = HC_DO_PING, .timeout_ms = 5000});
		want_refused();
		hc_rank_hear(&r[0], &a, 10000);
		ck_assert_int_eq(a.result, 0);
	}
	ck_assert(hc_socket_answers(node.socket));
	hc_ranks_quit(r, 2);
	hc_node_end(&node);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_test(t, killed_and_started);
	tcase_add_test(t, the_first_one_sleeps);
	tcase_add_test(t, the_first_one_works);
}

int main(void)
{
	return hc_suite_run("case_079_stale_socket", add, 60);
}
