/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Case 47: a fatal error that nobody is told.
 *
 * The link failed, the thread that met the error ended, the status went on to say that all was
 * fine, and callers waited for ever. Two nodes have one link here, and what the first sends is
 * lost without a sign. Within the time of detection the status of both sides is SUSPENDED and
 * names the other: 5 H + 200 ms after the last beat that came, H being 200 ms here. An operation
 * that will not wait is refused as SUSPENDED, which is no time-out. One that is blocked, with all
 * the time of the world, ends when the link has been away for suspend_limit_s, as LINK_UNAVAILABLE
 * between these two ranks. When the link is whole in time, nothing has ended. Needs root.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "eye.h"
#include "lab.h"
#include "ranks.h"
#include "suite.h"

enum { LIMIT = 20000, RANKS = 2, LIMIT_S = 6, H_MS = 200, DETECTED_MS = 5 * H_MS + 200 };
/* the machine may stand still for a moment: one of these must be in time */
enum { TRIES = 3 };

static struct hc_lab lab;
static struct hc_rank r[RANKS];

static bool begin(void)
{
	struct hc_order o = {.what = HC_DO_JOIN, .nranks = RANKS, .timeout_ms = LIMIT};
	struct hcomm_session *s = NULL;
	struct hc_answer a;
	char top[64];
	unsigned i;

	if (!hc_lab_enter(&lab, 2, 1, 1500))
		return false;
	snprintf(top, sizeof(top), "suspend_limit_s = %d\nheartbeat_interval_ms = %d\n", LIMIT_S,
		 H_MS);
	hc_lab_start(&lab, top);
	setenv("HCOMM_SOCKET", lab.at[0].node.socket, 1);
	ck_assert_int_eq(hcomm_open(NULL, &s), 0);
	ck_assert_int_eq(hcomm_root_info(s, RANKS, NULL, &o.info), 0);
	hcomm_close(s);
	for (i = 0; i < RANKS; i++) {
		setenv("HCOMM_SOCKET", lab.at[i].node.socket, 1);
		hc_rank_spawn(&r[i]);
		o.rank = i;
		hc_rank_tell(&r[i], &o);
	}
	for (i = 0; i < RANKS; i++) {
		hc_rank_hear(&r[i], &a, LIMIT);
		ck_assert_msg(!a.result, "rank %u: %s", i, a.text);
	}
	return true;
}

static void end(void)
{
	unsigned i;

	for (i = 0; i < RANKS; i++)
		hc_rank_kill(&r[i]);
	hc_lab_end(&lab);
}

/* From now on what node0 sends is lost; no send fails. */
static void lose(void)
{
	hc_lab_ip(&lab, 0,
		  "neigh replace 10.71.0.2 lladdr 02:00:00:00:00:99 nud permanent dev rail0\n");
}

static void heal(void)
{
	hc_lab_ip(&lab, 0, "neigh del 10.71.0.2 dev rail0\n");
}

/* The status of a rank, polled. */
static void await_state(unsigned rank, uint32_t state, const char *text, unsigned ms)
{
	const uint64_t end = hc_now_ms() + hc_patience(ms);
	struct hc_order o = {.what = HC_DO_STATUS};
	struct hc_answer a;

	do
		hc_rank_do(&r[rank], &o, &a);
	while (a.state != state && hc_now_ms() < end);
	ck_assert_msg(a.state == state && strstr(a.text, text) != NULL, "rank %u: %s", rank,
		      a.text);
}

START_TEST(the_status_says_it_and_nobody_waits_for_ever)
{
	struct hc_order o = {.what = HC_DO_FENCE, .timeout_ms = 10 * LIMIT};
	const unsigned blocked = (unsigned)_i, other = 1 - blocked;
	const char *const peer[] = {"node node1", "node node0"};
	static const char *const pair[] = {
		"no path between rank 0 on node node0 and rank 1 on node node1,",
		"no path between rank 1 on node node1 and rank 0 on node node0,"};
	struct hc_answer a;

	if (!begin())
		return;
	hc_rank_tell(&r[blocked], &o);
	lose();
	await_state(other, HCOMM_SUSPENDED, peer[other], LIMIT);
	o = (struct hc_order){.what = HC_DO_BEGIN, .kind = HCOMM_OP_ALL_REDUCE};
	ck_assert_int_eq(hc_rank_do(&r[other], &o, &a), HCOMM_E_SUSPENDED);
	hc_rank_hear(&r[blocked], &a, LIMIT);
	ck_assert_msg(a.result == HCOMM_E_LINK_UNAVAILABLE, "%d: %s", a.result, a.text);
	/* the home of the domain is node0 */
	ck_assert_msg(strstr(a.text, pair[blocked]) != NULL, "%s", a.text);
	ck_assert_msg(strstr(a.text, "suspend_limit_s") != NULL, "%s", a.text);
	ck_assert_uint_lt((a.end_ns - a.began_ns) / 1000000, hc_patience(LIMIT_S * 1000 + 8000));
	await_state(other, HCOMM_DAMAGED, peer[other], LIMIT);
	end();
}
END_TEST

/* From the loss until both sides say SUSPENDED, in ms. Whole and ACTIVE again behind it. */
static uint64_t detect(void)
{
	const uint64_t began = hc_now_ms();
	uint64_t took;

	lose();
	await_state(0, HCOMM_SUSPENDED, "node node1", LIMIT);
	await_state(1, HCOMM_SUSPENDED, "node node0", LIMIT);
	took = hc_now_ms() - began;
	heal();
	await_state(0, HCOMM_ACTIVE, "", LIMIT);
	await_state(1, HCOMM_ACTIVE, "", LIMIT);
	return took;
}

START_TEST(the_status_says_it_in_time)
{
	uint64_t took = 0;

	if (!begin())
		return;
	for (unsigned i = 0; i < TRIES; i++) {
		took = detect();
		printf("SUSPENDED on both sides after %llu ms\n", (unsigned long long)took);
		fflush(stdout);
		if (took <= hc_patience(DETECTED_MS))
			break;
	}
	ck_assert_uint_le(took, hc_patience(DETECTED_MS));
	end();
}
END_TEST

START_TEST(whole_again_in_time)
{
	struct hc_order o = {.what = HC_DO_FENCE, .timeout_ms = LIMIT};
	struct hc_answer a;

	if (!begin())
		return;
	hc_rank_tell(&r[1], &o);
	lose();
	await_state(0, HCOMM_SUSPENDED, "node node1", LIMIT);
	heal();
	await_state(0, HCOMM_ACTIVE, "", LIMIT);
	hc_rank_must(&r[0], &o, &a);
	hc_rank_hear(&r[1], &a, LIMIT);
	ck_assert_msg(!a.result, "%s", a.text);
	end();
}
END_TEST

static void add(TCase *t)
{
	tcase_add_loop_test(t, the_status_says_it_and_nobody_waits_for_ever, 0, 2);
	tcase_add_test(t, the_status_says_it_in_time);
	tcase_add_test(t, whole_again_in_time);
}

int main(void)
{
	return hc_suite_run("case_047_nobody_is_told", add, 60);
}
