/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Case 44: a daemon is restarted within the detection time.
 *
 * A restart faster than three missed beats was not noticed, and the two ends held different ideas
 * of their session. Each restart, by a kill or in order, is noticed here, once, as what it is; no
 * path is judged by it. A restart without the database is another thing and has another name (that
 * is in test_nodes).
 */
#include <stdio.h>
#include <string.h>

#include "eye.h"
#include "pairs.h"
#include "suite.h"

enum { PORT = 24520, LIMIT = 10000 };

static struct hc_node n[2];
static struct hc_eye eye;

START_TEST(each_is_noticed_and_no_path_goes_down)
{
	const unsigned rounds = hc_long() ? 50 : 5;
	struct hcomm_view_node row;
	unsigned i;

	for (i = 0; i < 2; i++) {
		hc_pair_prepare(&n[i], i, 2, PORT, HC_KEY_A, NULL);
		hc_node_run(&n[i]);
	}
	hc_await_path(&n[0], "127.0.0.2:", "normal", LIMIT);
	hc_await_path(&n[1], "127.0.0.1:", "normal", LIMIT);
	hc_eye_open(&eye, &n[0]);
	for (i = 1; i <= rounds; i++) {
		hc_eye_blink(&eye);
		if (_i)
			hc_node_stop(&n[1]);
		else
			hc_node_kill(&n[1]);
		hc_node_run(&n[1]);
		hc_eye_await(&eye, HC_W_event_code_NODE_RESTARTED, "state intact", LIMIT);
		hc_await_node(&n[0], "node1", "up", LIMIT);
		hc_await_node(&n[1], "node0", "up", LIMIT);
		hc_await_path(&n[1], "127.0.0.1:", "normal", LIMIT);
		ck_assert(hc_row_node(&n[0], "node1", &row));
		ck_assert_uint_eq(row.restarts, i);
		ck_assert_uint_eq(row.start, i + 1);
		ck_assert_uint_eq(hc_eye_count(&eye, HC_W_event_code_NODE_RESTARTED), 1);
		ck_assert_uint_eq(hc_eye_count(&eye, HC_W_event_code_PATH_UNSTABLE), 0);
		ck_assert_uint_eq(hc_eye_count(&eye, HC_W_event_code_PATH_DOWN), 0);
		ck_assert_uint_eq(hc_eye_count(&eye, HC_W_event_code_NODE_UNREACHABLE), 0);
		ck_assert_uint_eq(hc_eye_count(&eye, HC_W_event_code_NODE_REBORN), 0);
		/* told beforehand, nobody calls it down */
		ck_assert_uint_eq(hc_eye_count(&eye, HC_W_event_code_DAEMON_DOWN), _i ? 0 : 1);
	}
	hc_eye_close(&eye);
	hc_node_end(&n[1]);
	hc_node_end(&n[0]);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_loop_test(t, each_is_noticed_and_no_path_goes_down, 0, 2);
}

int main(void)
{
	hc_ports_own("case_044_quick_restarts");
	return hc_suite_run("case_044_quick_restarts", add, hc_long() ? 200 : 60);
}
