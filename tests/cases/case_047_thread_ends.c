/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Case 47, the part of the daemon: one of its threads ends.
 *
 * A worker met an error and ended, the status went on to say that all was fine, and callers waited
 * for ever. hcommd has a thread that stores and one that reads rank tables. Either is made to end
 * at its next piece of work (tests/preload/endthread.c): the daemon ends with it, at once, and says
 * which it was; the next one takes its domains back and serves.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "ranks.h"
#include "suite.h"

enum { LIMIT = 20000, RANKS = 2 };

static struct hc_node node;
static struct hc_rank r[RANKS];
static char table[200];

static void tell_join(const char *name)
{
	struct hc_order o = {.what = HC_DO_JOIN_TABLE, .timeout_ms = 3 * LIMIT};

	snprintf(o.text, sizeof(o.text), "%s", table);
	snprintf(o.name, sizeof(o.name), "%s", name);
	for (o.rank = 0; o.rank < RANKS; o.rank++)
		hc_rank_tell(&r[o.rank], &o);
}

static void hear_join(void)
{
	struct hc_answer a;

	for (unsigned i = 0; i < RANKS; i++) {
		hc_rank_hear(&r[i], &a, 3 * LIMIT);
		ck_assert_msg(!a.result, "rank %u: %s", i, a.text);
	}
}

static void it_ends(const char *thread)
{
	int status = hc_wait_pid(node.pid, LIMIT);

	ck_assert_msg(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT, "status %d", status);
	node.pid = 0;
	ck_assert(hc_node_logged(&node, thread));
}

static const struct {
	const char *number, *text;
} threads[] = {{"1", "the worker thread has ended"}, {"2", "the thread of the database has ended"}};
enum { WORKER, DATABASE, THREADS };

/* The address sanitizer ends a program of which a thread is unwound out of frames that it watches,
 * before the thread's own words are said. */
#ifdef __SANITIZE_ADDRESS__
enum { TRIED = DATABASE };
#else
enum { TRIED = THREADS };
#endif

START_TEST(it_takes_the_daemon_down)
{
	const struct hc_order begin = {.what = HC_DO_BEGIN, .kind = HCOMM_OP_ALL_REDUCE};
	const struct hc_order end = {.what = HC_DO_END};
	static struct hc_run run;
	char flag[200];

	hc_node_prepare(&node, RANKS, NULL, NULL);
	snprintf(flag, sizeof(flag), "%s/end", node.dir);
	snprintf(table, sizeof(table), "%s/table.json", node.dir);
	hc_table_write(table, RANKS, 1);
	setenv("HCOMM_SOCKET", node.socket, 1);
	setenv("HC_END_THREAD", flag, 1);
	setenv("HC_END_NUMBER", threads[_i].number, 1);
	hc_preload("endthread.so");
	hc_node_run(&node);
	unsetenv("LD_PRELOAD");
	for (unsigned i = 0; i < RANKS; i++)
		hc_rank_spawn(&r[i]);
	if (_i == WORKER) {
		tell_join("job");
		hear_join();
	}
	hc_write_file(flag, "");
	if (_i == WORKER)
		ck_assert_int_ne(hc_ctl(&run, &node, "reload", (char *)NULL), 0);
	else
		tell_join("job");
	it_ends(threads[_i].text);
	hc_node_run(&node);
	if (_i == DATABASE)
		hear_join(); /* the ranks had waited, and asked the next one */
	for (unsigned i = 0; i < RANKS; i++) {
		hc_rank_must(&r[i], &begin, NULL);
		hc_rank_must(&r[i], &end, NULL);
	}
	hc_ranks_quit(r, RANKS);
	hc_node_end(&node);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_loop_test(t, it_takes_the_daemon_down, 0, TRIED);
}

int main(void)
{
	return hc_suite_run("case_047_thread_ends", add, 90);
}
