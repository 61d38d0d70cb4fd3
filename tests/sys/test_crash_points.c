/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A daemon, or a rank, is killed at a random moment while a domain over two nodes is joined and
 * activated.
 *
 * Two real daemons and four rank processes, two on each node: on loopback addresses, and, for root,
 * each node in a network namespace of its own with a cable to a switch. In each round all four join
 * a domain of a new name that begins with channels, and meanwhile the daemon of the home or that of
 * the other node is killed with SIGKILL and started again; now and then both, one after the other.
 * The moments are spread over the time that a join takes here, which is measured first and followed
 * as the load of the machine changes, so that four of five fall before the last answer. Wanted
 * after each: every rank has its answer, and it is the same domain; both daemons show it ACTIVE, in
 * the same epoch, with the same home and the channels that it began with; each rank can begin and
 * end a collective; when the ranks have left, it is over on both, and no rank, channel, request or
 * device is left.
 *
 * The kill of a rank has two right ends, and which it is, is the same for all others: they are in
 * one domain that is DAMAGED on both nodes, or all have one refusal. Either names the rank, and
 * leaves nothing either. The rank that is killed is the last to be told to join, each in its turn:
 * so the moment falls into the activation, or just before it.
 *
 * Some ten points of each kind in either place in the short form; in the long form (HC_LONG=1) a
 * thousand kills of a daemon and two hundred of a rank. The seed is printed, and HC_SEED repeats it
 * as far as real time can be repeated.
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "eye.h"
#include "lab.h"
#include "pairs.h"
#include "ranks.h"
#include "suite.h"

enum {
	PORT = 25400,
	LIMIT = 30000,
	RANKS = 4,
	SHORT_POINTS = 10,
	LONG_POINTS = 1000,
	LONG_DEATHS = 200
};
/* for those who wait for one that was killed before it came: no more than a few seconds */
enum { FORMING_MS = 2000 };
enum { CHANNELS = 3 }; /* of a node: between its ranks, to the other node, and from there */

enum place { LOOPBACK, NAMESPACES, PLACES };

/* so long is a domain kept that all have left but one that is dead */
#define GRACE "orphan_grace_s = 1\n"

static struct hc_lab lab;
static struct hc_node pair[2], *n[2];
static struct hc_rank rank[RANKS];
static char table[300];
static uint64_t dice, span_us;
static unsigned answered_before, answered_after, missed, refused, damaged;

static uint64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000u + (uint64_t)t.tv_nsec / 1000u;
}

static uint64_t draw(uint64_t below)
{
	dice ^= dice << 13;
	dice ^= dice >> 7;
	dice ^= dice << 17;
	return dice % below;
}

/* ---- two nodes, four processes ---- */

static void on_loopback(void)
{
	unsigned i;

	for (i = 0; i < 2; i++) {
		n[i] = &pair[i];
		hc_pair_prepare(n[i], i, 2, PORT, HC_KEY_A, GRACE);
		hc_node_run(n[i]);
	}
	hc_await_node(n[0], "node1", "up", LIMIT);
	hc_await_node(n[1], "node0", "up", LIMIT);
}

static bool in_namespaces(void)
{
	unsigned i;

	if (!hc_lab_enter(&lab, 2, 1, 1500))
		return false;
	lab.devices = 2;
	hc_lab_start(&lab, GRACE);
	for (i = 0; i < 2; i++)
		n[i] = &lab.at[i].node;
	return true;
}

/* A rank lives where its node does. */
static void spawn(unsigned r, enum place where)
{
	setenv("HCOMM_SOCKET", n[r / 2]->socket, 1);
	if (where == NAMESPACES)
		hc_lab_go(&lab, r / 2);
	hc_rank_spawn(&rank[r]);
	if (where == NAMESPACES)
		hc_lab_home(&lab);
}

/* False: this cannot be done here. */
static bool begin(enum place where)
{
	unsigned i;

	if (where == LOOPBACK)
		on_loopback();
	else if (!in_namespaces())
		return false;
	hc_pair_table(n[0], table, sizeof(table));
	for (i = 0; i < RANKS; i++)
		spawn(i, where);
	return true;
}

static void end(void)
{
	unsigned i;

	for (i = 0; i < RANKS; i++)
		hc_rank_quit(&rank[i]);
	hc_node_end(n[1]);
	hc_node_end(n[0]);
}

/* ---- a round ---- */

static unsigned last_of(unsigned round)
{
	return (RANKS - 1 + round) % RANKS;
}

static void all_join_within(unsigned round, int timeout_ms)
{
	struct hc_order o = {.what = HC_DO_JOIN_TABLE, .timeout_ms = timeout_ms, .channels = 1};
	unsigned i;

	snprintf(o.text, sizeof(o.text), "%s", table);
	snprintf(o.name, sizeof(o.name), "point-%u", round);
	for (i = 0; i < RANKS; i++) {
		o.rank = (i + round) % RANKS;
		snprintf(o.server, sizeof(o.server), "node%u", o.rank / 2);
		hc_rank_tell(&rank[o.rank], &o);
	}
}

static void all_join(unsigned round)
{
	all_join_within(round, LIMIT);
}

static uint64_t all_are_in(unsigned round)
{
	struct hc_answer a;
	uint64_t id = 0;
	unsigned i;

	for (i = 0; i < RANKS; i++) {
		hc_rank_hear(&rank[i], &a, 2 * LIMIT);
		if (a.result)
			hc_fail("round %u: rank %u: %d: %s", round, i, a.result, a.text);
		if (i && a.id != id)
			hc_fail("round %u: rank %u is in %016llx, another in %016llx", round, i,
				(unsigned long long)a.id, (unsigned long long)id);
		id = a.id;
	}
	return id;
}

struct look {
	uint64_t id;
	struct hcomm_view_domain row[2];
};

static bool is_over(const struct hcomm_view_domain *row)
{
	return !strcmp(row->state, "DESTROYED");
}

/* The home may say how it ended. */
static bool both_are_over(void *ctx)
{
	struct look *l = ctx;
	unsigned i;

	for (i = 0; i < 2; i++)
		if (hc_row_domain(n[i], l->id, &l->row[i]) && !is_over(&l->row[i]))
			return false;
	return true;
}

static bool both_agree(void *ctx)
{
	struct look *l = ctx;
	unsigned i;

	for (i = 0; i < 2; i++)
		if (!hc_row_domain(n[i], l->id, &l->row[i]) || strcmp(l->row[i].state, "ACTIVE"))
			return false;
	return l->row[0].epoch == l->row[1].epoch && !strcmp(l->row[0].home, "node0") &&
	       !strcmp(l->row[1].home, "node0") && l->row[0].arrived == RANKS &&
	       l->row[1].local == RANKS / 2 && l->row[0].local == RANKS / 2;
}

static void both(unsigned round, uint64_t id, const char *what, bool (*are)(void *ctx))
{
	struct look l = {.id = id};

	if (!hc_wait_until(are, &l, LIMIT))
		hc_fail("round %u: %016llx is not %s on both: %s epoch %u home %s: %s; "
			"%s epoch %u home %s: %s",
			round, (unsigned long long)id, what, l.row[0].state, l.row[0].epoch,
			l.row[0].home, l.row[0].cause, l.row[1].state, l.row[1].epoch,
			l.row[1].home, l.row[1].cause);
}

struct left {
	struct hcomm_view_status row;
	unsigned node, held;
};

static bool all_channels(void *ctx)
{
	struct left *l = ctx;

	for (l->node = 0; l->node < 2; l->node++) {
		hc_row_status(n[l->node], &l->row);
		if (l->row.channels != CHANNELS)
			return false;
	}
	return true;
}

static void channels_are_there(unsigned round)
{
	struct left l;

	if (!hc_wait_until(all_channels, &l, LIMIT))
		hc_fail("round %u: node%u has %u channels", round, l.node, l.row.channels);
}

static void operate(unsigned round)
{
	struct hc_order b = {.what = HC_DO_BEGIN, .kind = HCOMM_OP_ALL_REDUCE},
			e = {.what = HC_DO_END};
	unsigned i;
	int r;

	for (i = 0; i < RANKS; i++) {
		r = hc_rank_do(&rank[i], &b, NULL);
		if (!r)
			r = hc_rank_do(&rank[i], &e, NULL);
		if (r)
			hc_fail("round %u: operation of rank %u: %d", round, i, r);
	}
}

/* All but that one. */
static void all_leave_but(unsigned round, unsigned dead)
{
	struct hc_order o = {.what = HC_DO_LEAVE, .timeout_ms = LIMIT};
	struct hc_answer a;
	unsigned i;

	for (i = 0; i < RANKS; i++)
		if (i != dead)
			hc_rank_tell(&rank[i], &o);
	for (i = 0; i < RANKS; i++) {
		if (i == dead)
			continue;
		hc_rank_hear(&rank[i], &a, 2 * LIMIT);
		if (a.result)
			hc_fail("round %u: leave of rank %u: %d: %s", round, i, a.result, a.text);
	}
}

static void all_leave(unsigned round)
{
	all_leave_but(round, RANKS);
}

static bool nothing_is_there(void *ctx)
{
	struct left *l = ctx;

	for (l->node = 0; l->node < 2; l->node++) {
		hc_row_status(n[l->node], &l->row);
		l->held = hc_devices_held(n[l->node]);
		if (l->row.ranks || l->row.domains || l->row.channels || l->row.waiting || l->held)
			return false;
	}
	return true;
}

/* A grant goes a moment after its domain. */
static void nothing_is_left(unsigned round)
{
	struct left l;

	if (!hc_wait_until(nothing_is_there, &l, LIMIT))
		hc_fail("round %u: node%u has %u ranks, %u domains, %u channels, %u requests that "
			"wait, %u devices in use",
			round, l.node, l.row.ranks, l.row.domains, l.row.channels, l.row.waiting,
			l.held);
}

static void sleep_us(uint64_t us)
{
	const struct timespec t = {(time_t)(us / 1000000u), (long)(us % 1000000u) * 1000};

	nanosleep(&t, NULL); /* the random moment, not a wait for something */
}

static void kill_at(unsigned victim, uint64_t at_us)
{
	sleep_us(at_us);
	hc_node_kill(n[victim]);
	hc_node_run(n[victim]);
}

/* Undisturbed, a few times: how long a join takes here. */
static void measure(void)
{
	uint64_t begun, took, id;
	unsigned k;

	for (k = 0; k < 5; k++) {
		begun = now_us();
		all_join(1000000 + k);
		id = all_are_in(k);
		took = now_us() - begun;
		both(k, id, "ACTIVE", both_agree);
		if (!span_us || took < span_us)
			span_us = took;
		all_leave(k);
		both(k, id, "over", both_are_over);
	}
}

static bool all_have_answered(void)
{
	struct pollfd p[RANKS];
	unsigned i;

	for (i = 0; i < RANKS; i++)
		p[i] = (struct pollfd){.fd = rank[i].child.in, .events = POLLIN};
	return poll(p, RANKS, 0) == RANKS;
}

static void one_point(unsigned round)
{
	const unsigned victim = (unsigned)draw(2);
	const uint64_t at = draw(span_us);
	uint64_t id;

	all_join(round);
	sleep_us(at);
	if (all_have_answered()) {
		answered_before++;
		span_us -= span_us / 16;
	} else {
		answered_after++;
		span_us += span_us / 64;
	}
	kill_at(victim, 0);
	if (!draw(5))
		kill_at(!victim, draw(span_us));
	id = all_are_in(round);
	both(round, id, "ACTIVE", both_agree);
	operate(round);
	channels_are_there(round);
	all_leave(round);
	both(round, id, "over", both_are_over);
	nothing_is_left(round);
}

/* ---- a rank is killed ---- */

static bool both_are_damaged(void *ctx)
{
	struct look *l = ctx;
	unsigned i;

	for (i = 0; i < 2; i++)
		if (!hc_row_domain(n[i], l->id, &l->row[i]) || strcmp(l->row[i].state, "DAMAGED"))
			return false;
	return l->row[0].epoch == l->row[1].epoch && !strcmp(l->row[0].home, l->row[1].home);
}

/* What the others were answered, all the same: 0, and their domain, or why not. */
static int answer_of_others(unsigned round, unsigned dead, uint64_t *id)
{
	struct hc_answer a, first = {0};
	char name[16];
	unsigned i, heard = 0;

	snprintf(name, sizeof(name), "rank %u", dead);
	for (i = 0; i < RANKS; i++) {
		if (i == dead)
			continue;
		hc_rank_hear(&rank[i], &a, 2 * LIMIT);
		if (!heard++)
			first = a;
		if (a.result != first.result || a.id != first.id)
			hc_fail("round %u: rank %u: %d: %s; another: %d: %s", round, i, a.result,
				a.text, first.result, first.text);
		if (a.result && !strstr(a.text, name))
			hc_fail("round %u: rank %u: no word of %s: %d: %s", round, i, name,
				a.result, a.text);
	}
	*id = first.id;
	return first.result;
}

/* They are in, and are told of the death: after their answer, or they would have none. */
static void others_know(unsigned round, unsigned dead, uint64_t id)
{
	struct hc_order e = {.what = HC_DO_EVENT, .code = HCOMM_EV_RANK_DIED},
			b = {.what = HC_DO_BEGIN, .kind = HCOMM_OP_ALL_REDUCE};
	struct hc_answer a;
	unsigned i;
	int r;

	for (i = 0; i < RANKS; i++) {
		if (i == dead)
			continue;
		do
			hc_rank_must(&rank[i], &e, &a);
		while (a.id != id);
		if (a.rank != dead)
			hc_fail("round %u: rank %u is told of rank %u: %s", round, i, a.rank,
				a.text);
		r = hc_rank_do(&rank[i], &b, &a);
		if (r != HCOMM_E_DAMAGED)
			hc_fail("round %u: operation of rank %u: %d: %s", round, i, r, a.text);
	}
}

static void one_death(unsigned round, enum place where)
{
	const unsigned dead = last_of(round);
	uint64_t id;
	int r;

	all_join_within(round, (int)hc_patience(FORMING_MS));
	sleep_us(span_us / 2 + draw(span_us));
	hc_rank_kill(&rank[dead]);
	r = answer_of_others(round, dead, &id);
	if (r == HCOMM_E_TIMEOUT) { /* it had not come, or gone before all were there */
		missed++;
		span_us += span_us / 16 + 1;
	} else if (r) {
		refused++;
	} else {
		damaged++;
		span_us -= span_us / 16;
		both(round, id, "DAMAGED", both_are_damaged);
		others_know(round, dead, id);
		all_leave_but(round, dead);
		both(round, id, "over", both_are_over);
	}
	nothing_is_left(round);
	spawn(dead, where);
}

static void roll_dice(void)
{
	const char *wish = getenv("HC_SEED");

	dice = wish ? strtoull(wish, NULL, 0) : now_us() ^ (uint64_t)getpid() << 32;
	dice |= 1;
	printf("seed %llu\n", (unsigned long long)dice);
	fflush(stdout);
}

START_TEST(a_rank_killed_at_random_points_of_an_activation)
{
	const unsigned points = hc_long() ? LONG_DEATHS : SHORT_POINTS;
	unsigned i;

	roll_dice();
	if (!begin((enum place)_i))
		return;
	measure();
	for (i = 0; i < points; i++)
		one_death(i, (enum place)_i);
	printf("%s: %u deaths: before it began %u times, while it was activated %u times, others "
	       "in a damaged domain %u times\n",
	       _i == LOOPBACK ? "loopback" : "namespaces", points, missed, refused, damaged);
	ck_assert(!hc_long() || damaged > points / 10);
	end();
}
END_TEST

START_TEST(killed_at_random_points_of_an_activation)
{
	const unsigned points = hc_long() ? LONG_POINTS : SHORT_POINTS;
	uint64_t began;
	unsigned i;

	roll_dice();
	if (!begin((enum place)_i))
		return;
	measure();
	began = now_us();
	for (i = 0; i < points; i++)
		one_point(i);
	printf("%s: %u points in %llu s: %u while a rank waited, %u when all had their answer\n",
	       _i == LOOPBACK ? "loopback" : "namespaces", points,
	       (unsigned long long)((now_us() - began) / 1000000u), answered_after,
	       answered_before);
	ck_assert_uint_gt(answered_after, points / 4);
	end();
}
END_TEST

static void add(TCase *t)
{
	tcase_add_loop_test(t, a_rank_killed_at_random_points_of_an_activation, LOOPBACK, PLACES);
	tcase_add_loop_test(t, killed_at_random_points_of_an_activation, LOOPBACK, PLACES);
}

int main(void)
{
	hc_ports_own("test_crash_points");
	return hc_suite_run("crash_points", add, hc_long() ? 860 : 100);
}
