/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Case 62, the part of a death: a member is killed while all of them are running.
 *
 * It used to be noticed after half an hour. Four ranks on two nodes run operations as fast as they
 * can; one gets SIGKILL. Every other rank, on both nodes, hears at once which it was, its
 * operations end with DAMAGED instead of waiting, and the rank's device is free. A new domain of
 * the three that are left is formed while the old one is still there.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "eye.h"
#include "pairs.h"
#include "ranks.h"
#include "suite.h"

enum { PORT = 25200, LIMIT = 20000, RANKS = 4, DEAD = 3 };
enum { OLD, NEW }; /* seats */

static struct hc_node n[2];
static struct hc_rank r[RANKS];
static struct hc_run run;

static void join(unsigned seat, uint32_t nranks)
{
	struct hc_order o = {
		.what = HC_DO_JOIN, .seat = seat, .nranks = nranks, .timeout_ms = LIMIT};
	struct hcomm_session *s = NULL;
	struct hc_answer a;
	uint32_t i;

	setenv("HCOMM_SOCKET", n[0].socket, 1);
	ck_assert_int_eq(hcomm_open(NULL, &s), 0);
	ck_assert_int_eq(hcomm_root_info(s, nranks, NULL, &o.info), 0);
	hcomm_close(s);
	for (i = 0; i < nranks; i++) {
		o.rank = i;
		o.device = i % 2;
		hc_rank_tell(&r[i], &o);
	}
	for (i = 0; i < nranks; i++) {
		hc_rank_hear(&r[i], &a, LIMIT);
		ck_assert_msg(!a.result, "rank %u: %s", i, a.text);
	}
}

static void begin(void)
{
	unsigned i;

	for (i = 0; i < 2; i++) {
		hc_pair_prepare(&n[i], i, 2, PORT, HC_KEY_A, NULL);
		hc_node_run(&n[i]);
	}
	hc_await_node(&n[0], "node1", "up", LIMIT);
	hc_await_node(&n[1], "node0", "up", LIMIT);
	for (i = 0; i < RANKS; i++) {
		setenv("HCOMM_SOCKET", n[i / 2].socket, 1);
		hc_rank_spawn(&r[i]);
	}
	join(OLD, RANKS);
}

static bool all_run(void *ctx)
{
	unsigned i;

	(void)ctx;
	for (i = 0; i < RANKS; i++)
		if (*r[i].count < 1000)
			return false;
	return true;
}

static bool device_is_free(void *ctx)
{
	(void)ctx;
	hc_ctl(&run, &n[1], "device", "list", "--no-headings", "-o", "DEVICE,HOLDER", (char *)NULL);
	return strstr(run.out, "1      0") || strstr(run.out, "1 0");
}

START_TEST(a_member_is_killed)
{
	struct hc_order o = {.what = HC_DO_RUN};
	struct hc_answer a;
	uint64_t killed;
	unsigned i;

	begin();
	for (i = 0; i < RANKS; i++)
		hc_rank_must(&r[i], &o, NULL);
	hc_await("all to run", all_run, NULL, LIMIT);
	killed = hc_now_ns();
	hc_rank_kill(&r[DEAD]);
	o.what = HC_DO_EVENT;
	o.code = HCOMM_EV_RANK_DIED;
	for (i = 0; i < RANKS - 1; i++) {
		hc_rank_do(&r[i], &o, &a);
		ck_assert_uint_eq(a.rank, DEAD);
		ck_assert_str_eq(a.node, "node1");
		ck_assert_uint_lt((a.end_ns - killed) / 1000000, hc_patience(2000));
	}
	o.what = HC_DO_BEGIN;
	o.kind = HCOMM_OP_ALL_REDUCE;
	for (i = 0; i < RANKS - 1; i++) {
		ck_assert_int_eq(hc_rank_do(&r[i], &o, &a), HCOMM_E_DAMAGED);
		ck_assert_msg(strstr(a.text, "rank 3") != NULL, "%s", a.text);
	}
	hc_await("the device of the dead to be free", device_is_free, NULL, LIMIT);
	join(NEW, RANKS - 1);
	o.seat = NEW;
	for (i = 0; i < RANKS - 1; i++) {
		o.what = HC_DO_BEGIN;
		hc_rank_must(&r[i], &o, NULL);
		o.what = HC_DO_END;
		hc_rank_must(&r[i], &o, NULL);
	}
	for (i = 0; i < RANKS - 1; i++)
		hc_rank_quit(&r[i]);
	for (i = 2; i-- > 0;)
		hc_node_end(&n[i]);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_test(t, a_member_is_killed);
}

int main(void)
{
	hc_ports_own("case_062_killed_while_running");
	return hc_suite_run("case_062_killed_while_running", add, 60);
}
