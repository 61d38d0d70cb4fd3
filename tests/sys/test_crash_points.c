/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A daemon is killed at a random moment while a domain over two nodes is joined and activated.
 *
 * Two real daemons on loopback addresses and four rank processes, two on each node. In each round
 * all four join a domain of a new name, and meanwhile the daemon of the home or that of the other
 * node is killed with SIGKILL and started again; now and then both, one after the other. The
 * moments are spread over the time that a join takes here. Wanted after each: every rank has its
 * answer, and it is the same domain; both daemons show it ACTIVE; each rank can begin and end a
 * collective; when the ranks have left, it is over on both, and no seat, grant or device is taken.
 *
 * Some twenty points in the short form, a thousand with HC_LONG=1. The seed is printed, and
 * HC_SEED repeats it as far as real time can be repeated.
 */
#include <poll.h>
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

enum { PORT = 25400, LIMIT = 30000, RANKS = 4, SHORT_POINTS = 20, LONG_POINTS = 1000 };

static struct hc_node n[2];
static struct hc_rank rank[RANKS];
static char table[300];
static uint64_t dice, span_us;
static unsigned answered_before, answered_after;

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

static const struct hc_node *node_of(unsigned r)
{
	return &n[r / 2];
}

/* ---- two nodes, four processes ---- */

static void nodes_up(void)
{
	hc_await_node(&n[0], "node1", "up", LIMIT);
	hc_await_node(&n[1], "node0", "up", LIMIT);
}

static void begin(void)
{
	unsigned i;

	for (i = 0; i < 2; i++) {
		hc_pair_prepare(&n[i], i, 2, PORT, HC_KEY_A, NULL);
		hc_node_run(&n[i]);
	}
	nodes_up();
	hc_pair_table(n, table, sizeof(table));
	for (i = 0; i < RANKS; i++) {
		setenv("HCOMM_SOCKET", node_of(i)->socket, 1);
		hc_rank_spawn(&rank[i]);
	}
}

/* ---- a round ---- */

static void all_join(unsigned round)
{
	struct hc_order o = {.what = HC_DO_JOIN_TABLE, .timeout_ms = LIMIT};
	unsigned i;

	snprintf(o.text, sizeof(o.text), "%s", table);
	snprintf(o.name, sizeof(o.name), "point-%u", round);
	for (i = 0; i < RANKS; i++) {
		o.rank = (i + round) % RANKS;
		snprintf(o.server, sizeof(o.server), "node%u", o.rank / 2);
		hc_rank_tell(&rank[o.rank], &o);
	}
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

struct wish {
	char id[32];
	const char *state;
};

static struct hc_run run;

/* Both say it of that domain; state NULL: neither has it, the home may say how it ended. */
static bool both_show(void *ctx)
{
	const struct wish *w = ctx;
	const char *line;
	unsigned i;

	for (i = 0; i < 2; i++) {
		hc_ctl(&run, &n[i], "domain", "list", "--no-headings", (char *)NULL);
		line = strstr(run.out, w->id);
		if (w->state ? !line || !strstr(line, w->state)
			     : line && !strstr(line, "DESTROYED"))
			return false;
	}
	return true;
}

static void both(unsigned round, uint64_t id, const char *state)
{
	struct wish w = {.state = state};

	snprintf(w.id, sizeof(w.id), "%016llx", (unsigned long long)id);
	if (!hc_wait_until(both_show, &w, LIMIT))
		hc_fail("round %u: %s is not %s on both: %s", round, w.id, state ? state : "over",
			run.out);
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

static void all_leave(unsigned round)
{
	struct hc_order o = {.what = HC_DO_LEAVE, .timeout_ms = LIMIT};
	struct hc_answer a;
	unsigned i;

	for (i = 0; i < RANKS; i++)
		hc_rank_tell(&rank[i], &o);
	for (i = 0; i < RANKS; i++) {
		hc_rank_hear(&rank[i], &a, 2 * LIMIT);
		if (a.result)
			hc_fail("round %u: leave of rank %u: %d: %s", round, i, a.result, a.text);
	}
}

static void nothing_is_left(unsigned round)
{
	struct hcomm_view_status s;
	unsigned i;

	for (i = 0; i < 2; i++) {
		hc_row_status(&n[i], &s);
		if (s.ranks || s.domains)
			hc_fail("round %u: node%u has %u ranks, %u domains", round, i, s.ranks,
				s.domains);
	}
}

static void sleep_us(uint64_t us)
{
	const struct timespec t = {(time_t)(us / 1000000u), (long)(us % 1000000u) * 1000};

	nanosleep(&t, NULL); /* the random moment, not a wait for something */
}

static void kill_at(unsigned victim, uint64_t at_us)
{
	sleep_us(at_us);
	hc_node_kill(&n[victim]);
	hc_node_run(&n[victim]);
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
		both(k, id, "ACTIVE");
		if (!span_us || took < span_us)
			span_us = took;
		all_leave(k);
		both(k, id, NULL);
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
	if (all_have_answered())
		answered_before++;
	else
		answered_after++;
	kill_at(victim, 0);
	if (!draw(5))
		kill_at(!victim, draw(span_us));
	id = all_are_in(round);
	both(round, id, "ACTIVE");
	operate(round);
	all_leave(round);
	both(round, id, NULL);
	nothing_is_left(round);
}

START_TEST(killed_at_random_points_of_an_activation)
{
	const unsigned points = hc_long() ? LONG_POINTS : SHORT_POINTS;
	const char *wish = getenv("HC_SEED");
	unsigned i;

	dice = wish ? strtoull(wish, NULL, 0) : now_us() ^ (uint64_t)getpid() << 32;
	dice |= 1;
	printf("seed %llu\n", (unsigned long long)dice);
	fflush(stdout);
	begin();
	measure();
	for (i = 0; i < points; i++)
		one_point(i);
	printf("%u points over %llu us: %u while a rank waited, %u when all had their answer\n",
	       points, (unsigned long long)span_us, answered_after, answered_before);
	ck_assert_uint_gt(answered_after, points / 4);
	for (i = 0; i < RANKS; i++)
		hc_rank_quit(&rank[i]);
	hc_node_end(&n[1]);
	hc_node_end(&n[0]);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_test(t, killed_at_random_points_of_an_activation);
}

int main(void)
{
	return hc_suite_run("crash_points", add, hc_long() ? 860 : 100);
}
