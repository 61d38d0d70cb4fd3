/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: when a node falls silent, its domains are SUSPENDED on every other node within 510 ms by
 * the default profile (100 ms, 5 intervals), 99 times of 100.
 *
 * Three nodes and a domain with a rank on each. The daemon of one is stopped by SIGSTOP: in turn
 * the domain's home, and one that is not. The clock starts with the last datagram that came from
 * it, by the kernel's stamp, and ends when the last of the other nodes' ranks has the event. Where
 * packets cannot be looked at (no root) it starts with SIGSTOP, at any moment of an interval.
 * from_stop is that time, which is what a user would see.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"
#include "nodeset.h"
#include "ours.h"
#include "ranks.h"
#include "wire.h"
#include "wirewatch.h"

#define NAME "suspend"
#define GOAL 510.0
#define PORT 16746u
#define MS   1000000ull

enum { NODES = 3, TRIALS = 40, INTERVAL_MS = 100, UNIT_NICE = -10 };

static struct nodeset nodes;
static struct hc_rank r[NODES];
static struct wirewatch *wire;
static struct bench_samples all, of_home, of_other, from_stop;

static void nap(uint64_t ns)
{
	const struct timespec t = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};

	nanosleep(&t, NULL);
}

static void listen_for(unsigned rank)
{
	const struct hc_order o = {.what = HC_DO_EVENT, .code = HC_W_event_code_NODE_SUSPENDED};

	hc_rank_tell(&r[rank], &o);
}

/* When the rank was told, of what happened after `since`. */
static uint64_t told(unsigned rank, uint64_t since)
{
	struct hc_answer a;

	for (;;) {
		hc_rank_hear(&r[rank], &a, 10000);
		if (a.result)
			bench_die("rank %u: %s", rank, a.text);
		if (a.end_ns > since)
			return a.end_ns;
		listen_for(rank);
	}
}

static bool all_active(void *ctx)
{
	const struct hc_order o = {.what = HC_DO_STATUS};
	struct hc_answer a;
	unsigned i;

	(void)ctx;
	for (i = 0; i < NODES; i++) {
		if (hc_rank_do(&r[i], &o, &a) || a.state != HCOMM_ACTIVE)
			return false;
	}
	return true;
}

/* Time for two beats, and then any moment of the interval. */
static void any_phase(void)
{
	if (wire)
		wirewatch_clear(wire);
	nap(2 * MS * INTERVAL_MS + (uint64_t)random() % (MS * INTERVAL_MS));
}

static void trial(unsigned node)
{
	uint64_t stopped, last = 0, at, silent;
	unsigned i;

	any_phase();
	for (i = 0; i < NODES; i++) {
		if (i != node)
			listen_for(i);
	}
	stopped = hc_now_ns();
	kill(nodes.node[node].pid, SIGSTOP);
	for (i = 0; i < NODES; i++) {
		if (i == node)
			continue;
		at = told(i, stopped);
		last = at > last ? at : last;
	}
	silent = wire ? wirewatch_last(wire, 0x7f000001u + node, PORT) : stopped;
	if (!silent || silent > last)
		bench_die("node%u was not silent", node);
	bench_samples_add(&all, last - silent);
	bench_samples_add(node ? &of_other : &of_home, last - silent);
	bench_samples_add(&from_stop, last - stopped);
	kill(nodes.node[node].pid, SIGCONT);
	hc_await("the domain to be ACTIVE again", all_active, NULL, 20000);
}

static void join_all(void)
{
	unsigned i;

	for (i = 0; i < NODES; i++) {
		setenv("HCOMM_SOCKET", nodes.node[i].socket, 1);
		hc_rank_spawn(&r[i]);
	}
	hc_ranks_join(r, NODES, 0, 0, "silent");
}

static double ms_at(struct bench_samples *s, double percent)
{
	return s->count ? (double)bench_samples_at(s, percent) / 1e6 : 0;
}

static void print(const char *what, struct bench_samples *s)
{
	struct bench_line l;

	bench_line_open(&l, NAME);
	bench_line_str(&l, "what", what);
	bench_line_int(&l, "trials", s->count);
	bench_line_num(&l, "p50_ms", ms_at(s, 50), 2);
	bench_line_num(&l, "p99_ms", ms_at(s, 99), 2);
	bench_line_num(&l, "max_ms", ms_at(s, 100), 2);
	bench_line_print(&l);
}

static void report(void)
{
	const double p99 = ms_at(&all, 99);
	struct bench_line l;

	print("the home is silent", &of_home);
	print("another node is silent", &of_other);
	bench_line_open(&l, NAME);
	bench_line_bool(&l, "summary", true);
	bench_line_int(&l, "nodes", NODES);
	bench_line_int(&l, "trials", all.count);
	bench_line_str(&l, "since", wire ? "last datagram" : "SIGSTOP");
	bench_line_num(&l, "p50_ms", ms_at(&all, 50), 2);
	bench_line_num(&l, "p99_ms", p99, 2);
	bench_line_num(&l, "max_ms", ms_at(&all, 100), 2);
	bench_line_num(&l, "from_stop_p99_ms", ms_at(&from_stop, 99), 2);
	bench_line_num(&l, "goal", GOAL, 0);
	bench_line_bool(&l, "met", p99 <= GOAL);
	bench_line_print(&l);
}

int main(void)
{
	struct bench_samples *const each[] = {&all, &of_home, &of_other, &from_stop};
	const size_t trials = bench_rounds(TRIALS);
	int cpus[2];
	size_t i;

	bench_line_machine(NAME);
	for (i = 0; i < 4; i++)
		bench_samples_init(each[i], trials);
	bench_cpus(&cpus[0], &cpus[1]);
	if (setpriority(PRIO_PROCESS, 0, UNIT_NICE))
		bench_note("not allowed to run the daemons with nice %d, as their unit does",
			   UNIT_NICE);
	nodeset_start(&nodes, NODES, NODES, PORT, cpus, "flap_limit = 8\nflap_window_s = 1\n");
	setpriority(PRIO_PROCESS, 0, 0);
	if (!geteuid())
		wire = wirewatch_open("lo");
	join_all();
	for (i = 0; i < trials; i++)
		trial(i % 2 ? 2 : 0);
	report();
	hc_ranks_quit(r, NODES);
	hc_children_kill();
	if (wire)
		wirewatch_close(wire);
	nodeset_stop(&nodes);
	for (i = 0; i < 4; i++)
		bench_samples_fini(each[i]);
	return 0;
}
