/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Case 35: the MTU differs at the two ends.
 *
 * Small messages passed and large ones hung; one release took the smaller size, another did not.
 * Both ends use the smaller one, whichever has it, show both, and warn once. A change while beats
 * run is taken over. What channels do with that size is not tried here. Needs root.
 */
#include <stdio.h>
#include <string.h>

#include "eye.h"
#include "lab.h"
#include "suite.h"

enum { LIMIT = 10000 };

static struct hc_lab lab;

static void await_sizes(unsigned i, uint32_t local, uint32_t peer, uint32_t used)
{
	const uint64_t end = hc_now_ms() + hc_patience(LIMIT);
	struct hcomm_view_path p;

	do {
		ck_assert(hc_row_path(&lab.at[i].node, i ? "10.71.0.1:" : "10.71.0.2:", &p));
		if (p.mtu_local == local && p.mtu_peer == peer && p.mtu_used == used)
			return;
	} while (hc_now_ms() < end);
	ck_abort_msg("node%u: %u here, %u there, %u used; wanted %u, %u, %u", i, p.mtu_local,
		     p.mtu_peer, p.mtu_used, local, peer, used);
}

START_TEST(the_smaller_one_is_used_by_both)
{
	const unsigned small = (unsigned)_i, large = 1 - small;
	unsigned i;

	if (!hc_lab_enter(&lab, 2, 1, 9000))
		return;
	hc_lab_ip(&lab, small, "link set rail0 mtu 1500\n");
	hc_lab_start(&lab, NULL);
	await_sizes(large, 9000, 1500, 1500);
	await_sizes(small, 1500, 9000, 1500);
	hc_await_journal(&lab.at[large].node, HC_W_event_code_MTU_MISMATCH,
			 "9000 here, 1500 there; 1500 is used", LIMIT);
	hc_await_journal(&lab.at[small].node, HC_W_event_code_MTU_MISMATCH,
			 "1500 here, 9000 there; 1500 is used", LIMIT);
	for (i = 0; i < 2; i++)
		ck_assert_uint_eq(
			hc_journal_count(&lab.at[i].node, HC_W_event_code_MTU_MISMATCH, NULL), 1);
	hc_lab_ip(&lab, small, "link set rail0 mtu 1280\n");
	await_sizes(large, 9000, 1280, 1280);
	await_sizes(small, 1280, 9000, 1280);
	hc_lab_await_normal(&lab, LIMIT);
	for (i = 0; i < 2; i++)
		ck_assert_uint_eq(
			hc_journal_count(&lab.at[i].node, HC_W_event_code_PATH_DOWN, NULL), 0);
	hc_lab_end(&lab);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_loop_test(t, the_smaller_one_is_used_by_both, 0, 2);
}

int main(void)
{
	return hc_suite_run("case_035_mtu_differs", add, 60);
}
