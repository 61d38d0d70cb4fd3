/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Case 43: the wall clock jumps.
 *
 * A clock that was set after boot made heartbeats and waits end at once, or never. Here the clock
 * of one daemon goes an hour ahead, an hour back and ten years ahead while beats run and a drain
 * waits, and another starts in 1970 and is set right. No path may change its state, the drain ends
 * after its own time, and what was stored before and after is in its order.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "eye.h"
#include "pairs.h"
#include "ranks.h"
#include "suite.h"

enum { PORT = 24510, LIMIT = 10000 };

static struct hc_node n[2];
static struct hc_eye eye[2];
static char clock_file[200];

static void set_clock(int64_t seconds)
{
	char text[32];

	snprintf(text, sizeof(text), "%lld\n", (long long)seconds);
	hc_replace_file(clock_file, text);
}

static void with_clock(void *arg)
{
	(void)arg;
	hc_preload("wallclock.so");
	setenv("HC_CLOCK_FILE", clock_file, 1);
}

static void begin(int64_t seconds)
{
	unsigned i;

	for (i = 0; i < 2; i++)
		hc_pair_prepare(&n[i], i, 2, PORT, HC_KEY_A,
				"heartbeat_interval_ms = 50\ndrain_timeout_s = 2");
	snprintf(clock_file, sizeof(clock_file), "%s/clock", n[0].dir);
	set_clock(seconds);
	n[0].before_exec = with_clock;
	for (i = 0; i < 2; i++)
		hc_node_run(&n[i]);
	hc_await_path(&n[0], "127.0.0.2:", "normal", LIMIT);
	hc_await_path(&n[1], "127.0.0.1:", "normal", LIMIT);
	for (i = 0; i < 2; i++)
		hc_eye_open(&eye[i], &n[i]);
	setenv("HCOMM_SOCKET", n[0].socket, 1);
}

static void end(void)
{
	unsigned i;

	for (i = 0; i < 2; i++)
		hc_eye_close(&eye[i]);
	hc_node_end(&n[1]);
	hc_node_end(&n[0]);
}

static void want_quiet(void)
{
	static const unsigned alarms[] = {HC_W_event_code_PATH_UNSTABLE, HC_W_event_code_PATH_DOWN,
					  HC_W_event_code_NODE_UNREACHABLE,
					  HC_W_event_code_DAEMON_DOWN};
	unsigned long ms;
	unsigned i, k;

	for (i = 0; i < 2; i++) {
		for (k = 0; k < 4; k++)
			ck_assert_uint_eq(hc_eye_count(&eye[i], alarms[k]), 0);
		/* a busy machine keeps a daemon waiting for a moment, never for an hour */
		for (k = 0; k < eye[i].count; k++)
			ck_assert(sscanf(eye[i].seen[k].text, "not scheduled for %lu", &ms) != 1 ||
				  ms < 60000);
	}
}

/* A time stamp of the journal, as text that sorts; "" without one. */
static int take_time(const void *row, void *context)
{
	const struct hcomm_view_event *e = row;

	snprintf(context, 8, "%.4s", e->time);
	return 0;
}

static void want_year(int wanted)
{
	struct hcomm_session *s;
	char year[8] = "";

	ck_assert_int_eq(hcomm_open(NULL, &s), 0);
	ck_assert_int_eq(hcomm_query(s, HCOMM_VIEW_EVENT, NULL, take_time, year), 0);
	hcomm_close(s);
	ck_assert_int_eq(atoi(year), wanted); /* of the newest: the clock did jump */
}

static int year_now(void)
{
	time_t t = time(NULL);
	struct tm tm;

	return gmtime_r(&t, &tm)->tm_year + 1900;
}

START_TEST(beats_do_not_look_at_it)
{
	static const int64_t jumps[] = {3600, -3600, 315360000};
	unsigned i;

	begin(0);
	for (i = 0; i < 3; i++) {
		set_clock(jumps[i]);
		hc_await_sent(&n[0], "127.0.0.2:", 12, LIMIT);
		want_quiet();
	}
	end();
}
END_TEST

static int drain(void *arg, int in, int out)
{
	char program[1200];

	(void)arg;
	(void)in;
	(void)out;
	hc_program("hcommctl", program, sizeof(program));
	execl(program, program, "drain", (char *)NULL);
	return 98;
}

static bool is_draining(void *ctx)
{
	struct hcomm_view_status s;

	(void)ctx;
	hc_row_status(&n[0], &s);
	return strstr(s.drain, "waiting") != NULL;
}

START_TEST(a_drain_takes_its_own_time)
{
	struct hc_order hold = {.what = HC_DO_BEGIN, .kind = 1};
	struct hc_rank r;
	struct hc_child c;
	uint64_t began, took;

	begin(0);
	hc_ranks_start(&r, 1, "held");
	hc_rank_must(&r, &hold, NULL);
	began = hc_now_ms();
	hc_spawn(&c, drain, NULL);
	hc_await("the drain waits", is_draining, NULL, LIMIT);
	set_clock(3600);
	ck_assert_int_eq(hc_child_wait(&c, LIMIT), 124); /* over, and something was left */
	took = hc_now_ms() - began;
	ck_assert_uint_ge(took, 1990);
	ck_assert_uint_lt(took, hc_patience(3000));
	want_quiet();
	hc_rank_must(&r, &(struct hc_order){.what = HC_DO_END}, NULL);
	hc_ranks_quit(&r, 1);
	end();
}
END_TEST

/* Numbers of the journal as they come; each is above the one before. */
static int take_seq(const void *row, void *context)
{
	uint64_t seq = ((const struct hcomm_view_event *)row)->seq, *last = context;

	ck_assert_uint_gt(seq, *last);
	*last = seq;
	return 0;
}

static uint64_t last_seq(void)
{
	struct hcomm_session *s;
	uint64_t last = 0;

	ck_assert_int_eq(hcomm_open(NULL, &s), 0);
	ck_assert_int_eq(hcomm_query(s, HCOMM_VIEW_EVENT, NULL, take_seq, &last), 0);
	hcomm_close(s);
	return last;
}

START_TEST(a_start_in_1970_is_a_start)
{
	uint64_t first, second;

	begin(1000 - (int64_t)time(NULL));
	want_year(1970);
	first = last_seq();
	set_clock(0);
	hc_await_sent(&n[0], "127.0.0.2:", 12, LIMIT);
	want_quiet();
	hc_eye_close(&eye[0]);
	hc_node_kill(&n[0]);
	hc_node_run(&n[0]);
	hc_await_path(&n[0], "127.0.0.2:", "normal", LIMIT);
	hc_await_journal(&n[1], HC_W_event_code_NODE_RESTARTED, "state intact", LIMIT);
	want_year(year_now());
	second = last_seq();
	ck_assert_uint_gt(second, first);
	/* and back again: what is stored now comes after it nevertheless */
	set_clock(1000 - (int64_t)time(NULL));
	hc_node_kill(&n[0]);
	hc_node_run(&n[0]);
	want_year(1970);
	ck_assert_uint_gt(last_seq(), second);
	hc_eye_open(&eye[0], &n[0]);
	end();
}
END_TEST

static void add(TCase *t)
{
	tcase_add_test(t, beats_do_not_look_at_it);
	tcase_add_test(t, a_drain_takes_its_own_time);
	tcase_add_test(t, a_start_in_1970_is_a_start);
}

int main(void)
{
	hc_ports_own("case_043_wall_clock_jumps");
	return hc_suite_run("case_043_wall_clock_jumps", add, 60);
}
