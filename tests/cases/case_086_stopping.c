/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Case 86. A stop with work in flight takes for ever, and the machine cannot reboot.
 *
 * Here SIGTERM and SIGINT end the daemon with exit 0 within a second, whatever is held: the
 * manager hears of it first, the database is closed without a log beside it, and the domains are
 * there again at the next start.
 */
#include "manager.h"
#include "ranks.h"
#include "suite.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LIMIT_MS = 1000, RANKS = 2 };

static struct hc_node node;
static struct hc_manager manager;
static struct hc_rank rank[RANKS];

static void start(void)
{
	hc_node_prepare(&node, 4, NULL, NULL);
	setenv("HCOMM_SOCKET", node.socket, 1);
	hc_manager_start(&manager, &node);
	hc_node_run(&node);
}

static void end(void)
{
	hc_node_end(&node);
	hc_manager_end(&manager);
}

/* What a signal that was sent at `began` must have led to. */
static void want_ended(uint64_t began)
{
	char path[200];
	int status = hc_wait_pid(node.pid, LIMIT_MS);
	uint64_t took = hc_now_ms() - began;

	ck_assert_msg(!status, "status %d (-1: it lives) after %u ms", status, (unsigned)took);
	node.pid = 0;
	ck_assert_uint_lt(took, hc_patience(LIMIT_MS));
	hc_manager_read(&manager);
	ck_assert_uint_eq(manager.stopping, 1);
	/* told at once, before the work of stopping */
	ck_assert_uint_lt(manager.stopping_ns / 1000000u, began + hc_patience(LIMIT_MS));
	snprintf(path, sizeof(path), "%s/state/state.db-wal", node.dir);
	ck_assert_msg(access(path, F_OK), "%s is left", path);
	ck_assert_msg(access(node.socket, F_OK), "%s is left", node.socket);
}

static void stop_with(int number)
{
	uint64_t began = hc_now_ms();

	kill(node.pid, number);
	want_ended(began);
}

START_TEST(with_nothing_held)
{
	static const int numbers[] = {SIGTERM, SIGINT};

	start();
	stop_with(numbers[_i]);
	end();
}
END_TEST

START_TEST(with_a_reference_held_for_ever)
{
	struct hc_order begin = {.what = HC_DO_BEGIN, .kind = 1};
	struct hcomm_view_domain before, after;

	start();
	hc_ranks_start(rank, RANKS, "held");
	hc_rank_must(&rank[0], &begin, NULL);
	ck_assert(hc_ask_domain("held", &before));
	stop_with(SIGTERM);
	hc_rank_must(&rank[0], &(struct hc_order){.what = HC_DO_END}, NULL);
	hc_rank_must(&rank[0], &begin, NULL);
	hc_node_run(&node);
	ck_assert(hc_ask_domain("held", &after));
	ck_assert_uint_eq(before.id, after.id);
	ck_assert_str_eq(after.state, "ACTIVE");
	hc_rank_must(&rank[0], &(struct hc_order){.what = HC_DO_END}, NULL);
	hc_ranks_quit(rank, RANKS);
	end();
}
END_TEST

/* While a destroy waits for a reference, too. */
START_TEST(in_the_middle_of_a_drain)
{
	struct hc_order begin = {.what = HC_DO_BEGIN, .kind = 1};
	struct hc_order destroy = {.what = HC_DO_DESTROY, .timeout_ms = 20000};
	struct hc_answer a;

	start();
	hc_ranks_start(rank, RANKS, "held");
	hc_rank_must(&rank[0], &begin, NULL);
	hc_rank_must(&rank[1], &begin, NULL);
	hc_rank_must(&rank[1], &(struct hc_order){.what = HC_DO_END}, NULL);
	hc_rank_tell(&rank[1], &destroy);
	stop_with(SIGTERM);
	hc_node_run(&node);
	hc_rank_must(&rank[0], &(struct hc_order){.what = HC_DO_END}, NULL);
	hc_rank_hear(&rank[1], &a, 30000);
	ck_assert_msg(!a.result, "%s", a.text);
	hc_ranks_quit(rank, RANKS);
	end();
}
END_TEST

START_TEST(twice)
{
	uint64_t began;

	start();
	began = hc_now_ms();
	kill(node.pid, SIGTERM);
	kill(node.pid, SIGTERM);
	kill(node.pid, SIGINT);
	want_ended(began);
	end();
}
END_TEST

static bool lock_is_written(void *arg)
{
	char path[200];
	struct stat st;

	(void)arg;
	snprintf(path, sizeof(path), "%s/state/lock", node.dir);
	return !stat(path, &st) && st.st_size > 0;
}

START_TEST(during_the_start)
{
	uint64_t began;

	hc_node_prepare(&node, 4, NULL, NULL);
	setenv("HCOMM_SOCKET", node.socket, 1);
	hc_manager_start(&manager, &node);
	hc_node_launch(&node);
	/* it has begun, and reads its database now */
	hc_await("the lock is taken", lock_is_written, NULL, 5000);
	began = hc_now_ms();
	kill(node.pid, SIGTERM);
	want_ended(began);
	hc_node_run(&node);
	hc_node_stop(&node);
	end();
}
END_TEST

/* The manager does not read what it is told. */
START_TEST(with_a_manager_that_is_stuck)
{
	unsigned i;
	uint64_t began;
	int status;

	start();
	for (i = 0; i < 600; i++)
		kill(node.pid, SIGHUP); /* each reload is told */
	hc_ranks_start(rank, RANKS, "held");
	began = hc_now_ms();
	kill(node.pid, SIGTERM);
	status = hc_wait_pid(node.pid, LIMIT_MS);
	ck_assert_msg(!status, "status %d (-1: it lives)", status);
	ck_assert_uint_lt(hc_now_ms() - began, hc_patience(LIMIT_MS));
	node.pid = 0;
	hc_ranks_quit(rank, RANKS);
	end();
}
END_TEST

static void add(TCase *t)
{
	tcase_add_loop_test(t, with_nothing_held, 0, 2);
	tcase_add_test(t, with_a_reference_held_for_ever);
	tcase_add_test(t, in_the_middle_of_a_drain);
	tcase_add_test(t, twice);
	tcase_add_loop_test(t, during_the_start, 0, 10);
	tcase_add_test(t, with_a_manager_that_is_stuck);
}

int main(void)
{
	return hc_suite_run("case_086_stopping", add, 60);
}
