/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Joins that were begun with HCOMM_START, and whose daemon goes away before they end.
 *
 * A host that begins a join and looks at its events now and then has nobody who would repeat the
 * request. So the library does, whatever the way in: after a restart of the daemon the ranks come
 * together as if nothing had been, and the event says so. A daemon that stays away ends in an event
 * as well, when the time of the join is up. A connection that was lost unnoticed is found at the
 * next join, which then uses another one.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ranks.h"
#include "suite.h"

enum { RANKS = 2 };

static struct hc_node node;
static struct hc_rank rank[RANKS];

static const struct hc_order done = {.what = HC_DO_EVENT, .code = HCOMM_EV_JOIN_DONE};
static const struct hc_order failed = {.what = HC_DO_EVENT, .code = HCOMM_EV_JOIN_FAILED};

static void start(void)
{
	hc_node_start(&node, 8, NULL);
	hc_rank_spawn(&rank[0]);
	hc_rank_spawn(&rank[1]);
}

static void end(void)
{
	hc_ranks_quit(rank, RANKS);
	hc_node_end(&node);
}

static void restart(void)
{
	hc_node_kill(&node);
	hc_node_run(&node);
}

static void make_info(struct hcomm_root_info *info)
{
	struct hcomm_config c = HCOMM_INIT(struct hcomm_config);
	struct hcomm_session *s;

	c.name = "job";
	ck_assert_int_eq(hcomm_open(NULL, &s), 0);
	ck_assert_int_eq(hcomm_root_info(s, RANKS, &c, info), 0);
	hcomm_close(s);
}

static bool waits_for_others(void *arg)
{
	struct hcomm_view_domain d;

	return hc_ask_domain(arg, &d) && !strcmp(d.state, "FORMING") && d.arrived == 1;
}

static void begin(unsigned i, struct hc_order *o)
{
	struct hc_answer a;

	o->rank = o->device = i;
	o->timeout_ms = HCOMM_START;
	ck_assert_msg(hc_rank_do(&rank[i], o, &a) == HCOMM_E_IN_PROGRESS, "rank %u: %s: %s", i,
		      hcomm_error_name(a.result), a.text);
}

static void want_running(unsigned seat)
{
	struct hc_order o = {.what = HC_DO_BEGIN, .kind = 1, .seat = seat};
	unsigned i;

	for (i = 0; i < RANKS; i++) {
		o.what = HC_DO_BEGIN;
		hc_rank_must(&rank[i], &o, NULL);
		o.what = HC_DO_END;
		hc_rank_must(&rank[i], &o, NULL);
	}
}

/* One has come, the daemon is another one, the second comes. */
static void join_over_a_restart(struct hc_order *o)
{
	struct hc_answer a, b;

	begin(0, o);
	hc_await("rank 0 waits", waits_for_others, (char[]){"job"}, 5000);
	restart();
	hc_rank_tell(&rank[0], &done); /* looks at its events, and knows of nothing */
	hc_await("rank 0 waits again", waits_for_others, (char[]){"job"}, 10000);
	begin(1, o);
	hc_rank_tell(&rank[1], &done);
	hc_rank_hear(&rank[0], &a, 20000);
	hc_rank_hear(&rank[1], &b, 20000);
	ck_assert_msg(!a.result && !b.result, "%s; %s", a.text, b.text);
	want_running(0);
	end();
}

START_TEST(by_root_info)
{
	struct hc_order o = {.what = HC_DO_JOIN, .nranks = RANKS};

	start();
	make_info(&o.info);
	join_over_a_restart(&o);
}
END_TEST

/* A small table goes in the message, a large one beside it as a descriptor. */
START_TEST(by_table)
{
	struct hc_order o = {.what = HC_DO_JOIN_TABLE, .name = "job"};
	char *text, *large;
	size_t n;

	start();
	snprintf(o.text, sizeof(o.text), "%s/table.json", node.dir);
	hc_table_write(o.text, RANKS, 1);
	if (_i) {
		text = hc_read_file(o.text);
		n = strlen(text);
		large = malloc(n + (1 << 18) + 1);
		ck_assert_ptr_nonnull(large);
		memset(large, ' ', 1 << 18);
		memcpy(large + (1 << 18), text, n + 1);
		hc_write_file(o.text, large);
		free(text);
		free(large);
	}
	join_over_a_restart(&o);
}
END_TEST

/* The parent is taken back before the split is asked for again. */
START_TEST(by_split)
{
	struct hc_order o = {.what = HC_DO_SPLIT, .seat = 1, .timeout_ms = HCOMM_START};
	struct hc_answer a[RANKS];
	unsigned i;

	start();
	hc_ranks_join(rank, RANKS, 0, 0, "parent");
	ck_assert_int_eq(hc_rank_do(&rank[0], &o, NULL), HCOMM_E_IN_PROGRESS);
	restart();
	hc_rank_tell(&rank[0], &done);
	ck_assert_int_eq(hc_rank_do(&rank[1], &o, NULL), HCOMM_E_IN_PROGRESS);
	hc_rank_tell(&rank[1], &done);
	for (i = 0; i < RANKS; i++) {
		hc_rank_hear(&rank[i], &a[i], 20000);
		ck_assert_msg(!a[i].result, "rank %u: %s", i, a[i].text);
	}
	want_running(0);
	want_running(1);
	end();
}
END_TEST

/* The daemon was restarted before, and nobody has looked at the socket since. */
START_TEST(on_a_connection_that_was_lost_unnoticed)
{
	struct hc_order o = {.what = HC_DO_JOIN, .nranks = RANKS};
	unsigned i;

	start();
	restart();
	make_info(&o.info);
	for (i = 0; i < RANKS; i++)
		begin(i, &o);
	for (i = 0; i < RANKS; i++)
		hc_rank_must(&rank[i], &done, NULL);
	want_running(0);
	end();
}
END_TEST

START_TEST(again_and_again)
{
	struct hc_order o = {.what = HC_DO_JOIN, .nranks = RANKS};
	struct hc_answer a;
	unsigned i;

	start();
	make_info(&o.info);
	begin(0, &o);
	hc_rank_tell(&rank[0], &failed);
	for (i = 0; i < 3; i++) {
		hc_await("rank 0 waits", waits_for_others, (char[]){"job"}, 10000);
		restart();
	}
	hc_await("rank 0 waits", waits_for_others, (char[]){"job"}, 10000);
	restart(); /* once too often: somebody has to be told that this leads nowhere */
	hc_rank_hear(&rank[0], &a, 20000);
	ck_assert_int_eq(a.result, HCOMM_E_PEER_CLOSED);
	end();
}
END_TEST

/* Its time is up while there is no daemon. */
START_TEST(no_daemon_comes)
{
	struct hc_order o = {.what = HC_DO_JOIN, .nranks = RANKS};
	struct hc_answer a;

	setenv("HCOMM_TIMEOUT_SEC", "1", 1);
	start();
	unsetenv("HCOMM_TIMEOUT_SEC");
	make_info(&o.info);
	begin(0, &o);
	hc_await("rank 0 waits", waits_for_others, (char[]){"job"}, 5000);
	hc_node_kill(&node);
	hc_rank_do(&rank[0], &failed, &a);
	ck_assert_int_eq(a.result, HCOMM_E_PEER_CLOSED);
	ck_assert_uint_lt((a.end_ns - a.began_ns) / 1000000u, hc_patience(5000));
	hc_node_run(&node);
	end();
}
END_TEST

static void add(TCase *t)
{
	tcase_add_test(t, by_root_info);
	tcase_add_loop_test(t, by_table, 0, 2);
	tcase_add_test(t, by_split);
	tcase_add_test(t, on_a_connection_that_was_lost_unnoticed);
	tcase_add_test(t, again_and_again);
	tcase_add_test(t, no_daemon_comes);
}

int main(void)
{
	return hc_suite_run("begun", add, 90);
}
