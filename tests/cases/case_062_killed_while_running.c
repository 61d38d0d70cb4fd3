/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Case 62, the part of a death: a member is killed while all of them are running.
 *
 * It used to be noticed after half an hour. Four ranks on two nodes run operations as fast as they
 * can; one gets SIGKILL. Every other rank, on both nodes, hears at once which it was, its
 * operations end with DAMAGED instead of waiting, and the rank's device is free. So are its
 * channels, on its own node and on the other: they are in no list, and their shares and virtual
 * channels are back with the links (as are those that the domain began with between others, which
 * nobody uses any more). A new domain of the three that are left is formed while the old one is
 * still there, and has its channels; when both have ended, nothing is granted.
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
/* of OLD on each node: between its two ranks, to the other node, and from there; NEW has
 * 0-1, 1-2 and 2-0. */
static const uint32_t old_of[2] = {3, 3}, new_of[2] = {3, 2}, none_of[2];

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
		o.channels = 1;
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

/* What a node says is granted: in the list of channels, of them with the dead, and by its links. */
struct granted {
	uint32_t channels, with_dead, vcs, mbps;
};

static int add_channel(const void *row, void *arg)
{
	const struct hcomm_view_channel *ch = row;
	struct granted *g = arg;

	g->channels++;
	g->with_dead += ch->rank == DEAD || ch->peer == DEAD;
	g->mbps -= ch->mbps + ch->back_mbps;
	return 0;
}

static int add_link(const void *row, void *arg)
{
	const struct hcomm_view_link *l = row;
	struct granted *g = arg;

	g->vcs += l->vcs_used;
	g->mbps += l->used_ab_mbps + l->used_ba_mbps;
	return 0;
}

struct wish {
	const uint32_t *of;
	uint32_t with_dead;
	unsigned at;
	struct granted now;
};

static bool is_granted(void *ctx)
{
	struct hcomm_session *s;
	struct wish *w = ctx;

	for (w->at = 0; w->at < 2; w->at++) {
		w->now = (struct granted){0};
		setenv("HCOMM_SOCKET", n[w->at].socket, 1);
		ck_assert_int_eq(hcomm_open(NULL, &s), 0);
		ck_assert_int_eq(hcomm_query(s, HCOMM_VIEW_CHANNEL, NULL, add_channel, &w->now), 0);
		ck_assert_int_eq(hcomm_query(s, HCOMM_VIEW_LINK, NULL, add_link, &w->now), 0);
		hcomm_close(s);
		if (w->now.channels != w->of[w->at] || w->now.vcs != w->of[w->at] || w->now.mbps ||
		    (w->now.with_dead != 0) != (w->with_dead != 0))
			return false;
	}
	return true;
}

/* The list has so many, and the links count these and no others, in number and in MB/s. */
static void await_granted(const char *when, const uint32_t of[2], uint32_t with_dead)
{
	struct wish w = {.of = of, .with_dead = with_dead};

	if (!hc_wait_until(is_granted, &w, LIMIT))
		hc_fail("%s: node%u lists %u channels, wanted %u; %u of them with rank %d; its "
			"links have %u granted, and %d MB/s more than the list",
			when, w.at, w.now.channels, of[w.at], w.now.with_dead, DEAD, w.now.vcs,
			(int)w.now.mbps);
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
	await_granted("before", old_of, 1);
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
	await_granted("after the death", none_of, 0);
	join(NEW, RANKS - 1);
	await_granted("with the new domain", new_of, 0);
	o.seat = NEW;
	for (i = 0; i < RANKS - 1; i++) {
		o.what = HC_DO_BEGIN;
		hc_rank_must(&r[i], &o, NULL);
		o.what = HC_DO_END;
		hc_rank_must(&r[i], &o, NULL);
	}
	for (i = 0; i < RANKS - 1; i++)
		hc_rank_quit(&r[i]);
	await_granted("at the end", none_of, 0);
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
