/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Case 46: a link that flaps.
 *
 * Logs filled with port errors, jobs died, and nobody could say which link flapped, how often and
 * when. Each flap is counted here; from the third on the path is held out for a growing time, told
 * once and not for each flap; the other path does not notice; and the path is taken back when it
 * has been good for long enough. Traffic of channels is not tried here. Needs root.
 */
#include <stdio.h>
#include <string.h>

#include "eye.h"
#include "lab.h"
#include "suite.h"

enum { LIMIT = 10000, LINES_MAX = 20 };

static struct hc_lab lab;

static const struct hc_node *first(void)
{
	return &lab.at[0].node;
}

static void await_flaps(unsigned flaps)
{
	const uint64_t end = hc_now_ms() + hc_patience(LIMIT);
	struct hcomm_view_path p;

	do {
		ck_assert(hc_row_path(first(), "10.71.0.2:", &p));
		if (p.flaps >= flaps)
			break;
	} while (hc_now_ms() < end);
	ck_assert_uint_eq(p.flaps, flaps);
}

START_TEST(it_is_counted_and_held_out)
{
	const unsigned rounds = hc_long() ? 30 : 4;
	struct hcomm_view_path p;
	unsigned i, lines = 0;

	if (!hc_lab_enter(&lab, 2, 2, 1500))
		return;
	hc_lab_start(&lab, "heartbeat_interval_ms = 30");
	for (i = 1; i <= rounds; i++) {
		hc_ip("link set p1r0 nomaster\n");
		hc_await_path(first(), "10.71.0.2:", "down", LIMIT);
		hc_ip("link set p1r0 master switch0\n");
		await_flaps(i);
	}
	ck_assert(hc_row_path(first(), "10.71.0.2:", &p));
	ck_assert_str_eq(p.state, "unstable"); /* though beats run again */
	ck_assert_msg(strstr(p.cause, "held out after"), "%s", p.cause);
	ck_assert_uint_gt(p.held_ms, 0);
	ck_assert_uint_lt(p.flap_ms, hc_patience(5000));
	ck_assert_uint_eq(hc_journal_count(first(), HC_W_event_code_PATH_HELD_OUT, "rail0"), 1);
	for (i = HC_W_event_code_PATH_NORMAL; i <= HC_W_event_code_PATH_HELD_OUT; i++)
		lines += hc_journal_count(first(), i, "rail0");
	ck_assert_uint_le(lines, LINES_MAX);
	ck_assert(hc_row_path(first(), "10.71.1.2:", &p));
	ck_assert_str_eq(p.state, "normal");
	ck_assert_uint_eq(p.flaps, 0);
	hc_await_node(first(), "node1", "up", 0);
	ck_assert_uint_eq(hc_journal_count(first(), HC_W_event_code_NODE_UNREACHABLE, NULL), 0);
	hc_await_path(first(), "10.71.0.2:", "normal", 70000);
	hc_lab_await_normal(&lab, LIMIT);
	hc_lab_end(&lab);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_test(t, it_is_counted_and_held_out);
}

int main(void)
{
	return hc_suite_run("case_046_flapping", add, 200);
}
