/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Case 41: loss, measured.
 *
 * Single lost beats were made link-down events, and operators could not see how near to the limit
 * they were. Here the packet filter drops a tenth of the frames, by chance: by count it would fall
 * into step with the urgent probes that each loss brings about. Without loss no beat is missed;
 * with it they are counted, and are no event; with nothing but loss there is one at once. The long
 * form loses one of a hundred for ten minutes. With a seed, and with three of ten lost, it is in
 * tests/unit/test_core_beat.c. Needs root and nft.
 */
#include <stdio.h>
#include <string.h>

#include "eye.h"
#include "lab.h"
#include "suite.h"

enum { LIMIT = 10000 };

static struct hc_lab lab;

/* Of `of` frames that come to each node one is lost; 0: none. False: nft does not work. */
static bool lose(unsigned of)
{
	bool ok = true;
	unsigned i;

	for (i = 0; i < 2; i++) {
		hc_lab_go(&lab, i);
		hc_nft("delete table inet loss\n");
		if (of)
			ok = ok &&
			     hc_nft("table inet loss { chain c { type filter hook input "
				    "priority 0; udp dport 16660 numgen random mod %u 0 drop; "
				    "}; }\n",
				    of);
		hc_lab_home(&lab);
	}
	return ok;
}

static void read_both(struct hcomm_view_path p[2])
{
	ck_assert(hc_row_path(&lab.at[0].node, "10.71.0.2:", &p[0]));
	ck_assert(hc_row_path(&lab.at[1].node, "10.71.0.1:", &p[1]));
}

static bool both_missed(void *ctx)
{
	const unsigned *least = ctx;
	struct hcomm_view_path p[2];

	read_both(p);
	return p[0].missed >= *least && p[1].missed >= *least;
}

static void want_no_event(void)
{
	unsigned i;

	for (i = 0; i < 2; i++) {
		ck_assert_uint_eq(
			hc_journal_count(&lab.at[i].node, HC_W_event_code_PATH_UNSTABLE, NULL), 0);
		ck_assert_uint_eq(
			hc_journal_count(&lab.at[i].node, HC_W_event_code_PATH_DOWN, NULL), 0);
	}
}

START_TEST(lost_beats_are_counted_before_they_are_an_event)
{
	const unsigned of = hc_long() ? 100 : 10, least = hc_long() ? 15 : 2;
	struct hcomm_view_path before[2], after[2];
	unsigned i;

	if (!hc_lab_enter(&lab, 2, 1, 1500))
		return;
	hc_lab_start(&lab, "heartbeat_interval_ms = 100");
	read_both(before);
	hc_await_sent(&lab.at[0].node, "10.71.0.2:", 12, LIMIT);
	read_both(after);
	for (i = 0; i < 2; i++) {
		ck_assert_uint_eq(after[i].missed, before[i].missed);
		ck_assert_uint_eq(after[i].run, 0);
		ck_assert_uint_gt(after[i].received, before[i].received);
	}
	if (!lose(of)) {
		printf("SKIP: nft does not work\n");
		hc_lab_end(&lab);
		return;
	}
	if (hc_long())
		hc_await_sent(&lab.at[0].node, "10.71.0.2:", 3000, 700000);
	hc_await("both miss beats", both_missed, &(unsigned){least}, 2 * LIMIT);
	read_both(after);
	want_no_event();
	for (i = 0; i < 2; i++) {
		ck_assert_uint_ge(after[i].worst, 1);
		ck_assert_uint_lt(after[i].missed, 60);
		ck_assert_uint_lt(after[i].worst, 3);
		ck_assert_str_eq(after[i].state, "normal");
	}
	ck_assert(lose(1)); /* all of them */
	for (i = 0; i < 2; i++)
		hc_await_journal(&lab.at[i].node, HC_W_event_code_PATH_DOWN, "no beat for", LIMIT);
	read_both(after);
	ck_assert_uint_ge(after[0].worst, 3);
	lose(0);
	hc_lab_await_normal(&lab, LIMIT);
	hc_lab_end(&lab);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_test(t, lost_beats_are_counted_before_they_are_an_event);
}

int main(void)
{
	return hc_suite_run("case_041_measured_loss", add, hc_long() ? 850 : 60);
}
