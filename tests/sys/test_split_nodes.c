/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Splits and sub-domains over three real daemons on loopback addresses: rank i is on node i / 2,
 * and node 0 is the home of the parent and so of all that is made of it.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "eye.h"
#include "pairs.h"
#include "ranks.h"
#include "suite.h"

enum { PORT = 24800, LIMIT = 20000, NODES = 3, RANKS = 6 };
enum { WORLD, PART }; /* seats */

static struct hc_node n[NODES];
static struct hc_rank r[RANKS];
static struct hc_answer a[RANKS];
static struct hc_run run;

static void hear_all(unsigned first, unsigned step)
{
	unsigned i;

	for (i = first; i < RANKS; i += step)
		hc_rank_hear(&r[i], &a[i], LIMIT);
}

static void begin(void)
{
	struct hc_order o = {.what = HC_DO_JOIN, .nranks = RANKS, .timeout_ms = LIMIT};
	struct hcomm_session *s = NULL;
	unsigned i, k;
	char name[8];

	for (i = 0; i < NODES; i++) {
		hc_pair_prepare(&n[i], i, NODES, PORT, HC_KEY_A, NULL);
		hc_node_run(&n[i]);
	}
	for (i = 0; i < NODES; i++)
		for (k = 0; k < NODES; k++) {
			snprintf(name, sizeof(name), "node%u", k);
			if (i != k)
				hc_await_node(&n[i], name, "up", LIMIT);
		}
	setenv("HCOMM_SOCKET", n[0].socket, 1);
	ck_assert_int_eq(hcomm_open(NULL, &s), 0);
	ck_assert_int_eq(hcomm_root_info(s, RANKS, NULL, &o.info), 0);
	hcomm_close(s);
	for (i = 0; i < RANKS; i++) {
		setenv("HCOMM_SOCKET", n[i / 2].socket, 1);
		hc_rank_spawn(&r[i]);
		o.rank = i;
		o.device = i % 2;
		hc_rank_tell(&r[i], &o);
	}
	hear_all(0, 1);
	for (i = 0; i < RANKS; i++)
		ck_assert_msg(!a[i].result, "rank %u: %s", i, a[i].text);
}

/* Domains that a node lists in that state. */
static unsigned count_in(unsigned node, const char *state)
{
	unsigned count = 0;
	const char *p;

	hc_ctl(&run, &n[node], "domain", "list", "--no-headings", (char *)NULL);
	for (p = run.out; (p = strstr(p, state)); p++)
		count++;
	return count;
}

struct wish {
	unsigned node, count;
	const char *state;
};

static bool has_count(void *ctx)
{
	const struct wish *w = ctx;

	return count_in(w->node, w->state) == w->count;
}

static void await_count(unsigned node, const char *state, unsigned count)
{
	struct wish w = {node, count, state};

	if (!hc_wait_until(has_count, &w, LIMIT))
		hc_fail("node%u, wanted %u %s: %s", node, count, state, run.out);
}

static void end(void)
{
	unsigned i;

	for (i = 0; i < RANKS; i++)
		if (r[i].child.pid)
			hc_rank_quit(&r[i]);
	for (i = NODES; i-- > 0;) {
		await_count(i, "ACTIVE", 0);
		await_count(i, "FORMING", 0);
		hc_node_end(&n[i]);
	}
}

static void operations_run(unsigned seat, unsigned first, unsigned step)
{
	struct hc_order o = {.seat = seat, .kind = HCOMM_OP_ALL_REDUCE};
	unsigned i;

	for (i = first; i < RANKS; i += step) {
		o.what = HC_DO_BEGIN;
		hc_rank_must(&r[i], &o, NULL);
		o.what = HC_DO_END;
		hc_rank_must(&r[i], &o, NULL);
	}
}

static void tell_split(unsigned rank, int32_t color, int32_t key)
{
	struct hc_order o = {.what = HC_DO_SPLIT,
			     .seat = PART,
			     .parent = WORLD,
			     .color = color,
			     .key = key,
			     .timeout_ms = LIMIT};

	hc_rank_tell(&r[rank], &o);
}

static void tell_sub(unsigned rank, const uint32_t *ranks, uint32_t nranks, uint64_t sub_id)
{
	struct hc_order o = {.what = HC_DO_SUB,
			     .seat = PART,
			     .parent = WORLD,
			     .nranks = nranks,
			     .sub_id = sub_id,
			     .timeout_ms = LIMIT};

	memcpy(o.ranks, ranks, nranks * sizeof(*ranks));
	hc_rank_tell(&r[rank], &o);
}

/* Even and odd ranks, each over three nodes; one is damaged and the other is not. */
START_TEST(two_colours_over_three_nodes)
{
	struct hc_order o = {.what = HC_DO_EVENT, .code = HCOMM_EV_RANK_DIED};
	unsigned i;

	begin();
	for (i = 0; i < RANKS; i++)
		tell_split(i, (int32_t)(i % 2), -(int32_t)i);
	hear_all(0, 1);
	for (i = 0; i < RANKS; i++) {
		ck_assert_msg(!a[i].result, "rank %u: %s", i, a[i].text);
		ck_assert_uint_eq(a[i].nranks, 3);
		ck_assert_uint_eq(a[i].id, a[i % 2].id);
		ck_assert_uint_eq(a[i].rank, 2 - i / 2);
	}
	ck_assert(a[0].id != a[1].id);
	for (i = 0; i < NODES; i++)
		ck_assert_uint_eq(count_in(i, "ACTIVE"), 3);
	operations_run(PART, 0, 1);
	hc_rank_kill(&r[5]);
	for (i = 0; i < RANKS - 1; i++)
		hc_rank_must(&r[i], &o, NULL);
	for (i = 0; i < NODES; i++) {
		await_count(i, "DAMAGED", 2);
		ck_assert_uint_eq(count_in(i, "ACTIVE"), 1);
	}
	operations_run(PART, 0, 2);
	end();
}
END_TEST

/* Of ranks that are all far from its home, with others beside it, and left in order. */
START_TEST(a_sub_domain_of_far_ranks)
{
	static const uint32_t ranks[] = {5, 2, 3};
	struct hc_order o = {.what = HC_DO_LEAVE, .seat = PART, .timeout_ms = LIMIT};
	unsigned i;

	begin();
	for (i = 0; i < 3; i++)
		tell_sub(ranks[i], ranks, 3, 77);
	for (i = 0; i < 3; i++) {
		hc_rank_hear(&r[ranks[i]], &a[i], LIMIT);
		ck_assert_msg(!a[i].result, "%s", a[i].text);
		ck_assert_uint_eq(a[i].rank, i);
	}
	await_count(1, "ACTIVE", 2);
	await_count(2, "ACTIVE", 2);
	for (i = 0; i < 3; i++)
		hc_rank_tell(&r[ranks[i]], &o);
	for (i = 0; i < 3; i++) {
		hc_rank_hear(&r[ranks[i]], &a[i], LIMIT);
		ck_assert_msg(!a[i].result, "%s", a[i].text);
	}
	await_count(0, "DESTROYED", 1);
	await_count(1, "ACTIVE", 1);
	await_count(2, "ACTIVE", 1);
	operations_run(WORLD, 0, 1);
	end();
}
END_TEST

START_TEST(a_hundred_sub_domains_in_a_call)
{
	struct hc_order o = {.what = HC_DO_BATCH,
			     .parent = WORLD,
			     .nranks = RANKS,
			     .ranks = {3, 0, 4, 1, 5, 2},
			     .count = 100,
			     .timeout_ms = LIMIT};
	unsigned i;

	begin();
	for (i = 0; i < RANKS; i++)
		hc_rank_tell(&r[i], &o);
	hear_all(0, 1);
	for (i = 0; i < RANKS; i++) {
		ck_assert_msg(!a[i].result, "rank %u: %s", i, a[i].text);
		ck_assert_uint_eq(a[i].made, 100);
	}
	for (i = 0; i < NODES; i++)
		ck_assert_uint_eq(count_in(i, "ACTIVE"), 101);
	for (i = 0; i < RANKS; i++)
		hc_rank_kill(&r[i]);
	end();
}
END_TEST

static bool two_have_come(void *ctx)
{
	const char *line;
	unsigned count;

	(void)ctx;
	hc_ctl(&run, &n[0], "domain", "list", "--no-headings", "-o", "STATE,ARRIVED", (char *)NULL);
	line = strstr(run.out, "FORMING");
	return line && sscanf(line, "FORMING %u", &count) == 1 && count == 2;
}

/* Each who waits is told at once whose list is not that of another, and where those are. */
START_TEST(lists_that_differ)
{
	static const uint32_t one[] = {0, 2, 4}, other[] = {0, 4, 2};
	unsigned i;

	begin();
	tell_sub(0, one, 3, 8);
	tell_sub(2, one, 3, 8);
	hc_await("two ranks to wait", two_have_come, NULL, LIMIT);
	tell_sub(4, other, 3, 8);
	hear_all(0, 2);
	for (i = 0; i < RANKS; i += 2) {
		ck_assert_int_eq(a[i].result, HCOMM_E_MISMATCH);
		ck_assert_uint_lt((a[i].end_ns - a[i].began_ns) / 1000000, LIMIT / 2);
		ck_assert_msg(strstr(a[i].text, "on node node2"), "%s", a[i].text);
		ck_assert_msg(strstr(a[i].text, "on node node0") ||
				      strstr(a[i].text, "on node node1"),
			      "%s", a[i].text);
	}
	for (i = 0; i < NODES; i++)
		await_count(i, "FORMING", 0);
	for (i = 0; i < RANKS; i += 2)
		tell_sub((uint32_t)i, one, 3, 8);
	hear_all(0, 2);
	for (i = 0; i < RANKS; i += 2)
		ck_assert_msg(!a[i].result, "%s", a[i].text);
	end();
}
END_TEST

/* One dies that the others wait for: nobody waits for the limit, whatever it waits for. */
START_TEST(a_rank_dies_in_the_middle)
{
	static const uint32_t four[] = {0, 2, 4, 5};
	unsigned i;

	begin();
	for (i = 0; i < RANKS - 1; i++)
		if (_i)
			tell_split(i, 0, 0);
		else if (!(i % 2))
			tell_sub(i, four, 4, 3);
	hc_rank_kill(&r[5]);
	for (i = 0; i < RANKS - 1; i++) {
		if (!_i && i % 2)
			continue;
		hc_rank_hear(&r[i], &a[i], LIMIT);
		ck_assert_int_eq(a[i].result, HCOMM_E_DAMAGED);
		ck_assert_uint_lt((a[i].end_ns - a[i].began_ns) / 1000000, LIMIT / 2);
		ck_assert_msg(strstr(a[i].text, "rank 5, pid"), "%s", a[i].text);
	}
	end();
}
END_TEST

/* The daemon of one that has spoken is killed and started: what it said counts, once. */
START_TEST(a_daemon_is_restarted_in_the_middle)
{
	unsigned i;

	begin();
	for (i = 1; i < RANKS; i++)
		tell_split(i, (int32_t)(i % 2), 0);
	for (i = 1; i < NODES; i++)
		hc_await_node(&n[i], "node0", "up", LIMIT);
	hc_node_kill(&n[2]);
	hc_node_run(&n[2]);
	hc_await_node(&n[0], "node2", "up", LIMIT);
	tell_split(0, 0, 0);
	hear_all(0, 1);
	for (i = 0; i < RANKS; i++) {
		ck_assert_msg(!a[i].result, "rank %u: %s", i, a[i].text);
		ck_assert_uint_eq(a[i].nranks, 3);
		ck_assert_uint_eq(a[i].id, a[i % 2].id);
	}
	operations_run(PART, 0, 1);
	end();
}
END_TEST

static void add(TCase *t)
{
	tcase_add_test(t, two_colours_over_three_nodes);
	tcase_add_test(t, a_sub_domain_of_far_ranks);
	tcase_add_test(t, a_hundred_sub_domains_in_a_call);
	tcase_add_test(t, lists_that_differ);
	tcase_add_loop_test(t, a_rank_dies_in_the_middle, 0, 2);
	tcase_add_test(t, a_daemon_is_restarted_in_the_middle);
}

int main(void)
{
	hc_ports_own("test_split_nodes");
	return hc_suite_run("split_nodes", add, 60);
}
