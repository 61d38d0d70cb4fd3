/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: to beat with 1,000 nodes ten times a second, authenticated, costs the daemon at most 1.5
 * times what bare sending and receiving of the same frames costs.
 *
 * The nodes are a crowd (crowd.h) on the other processor, on loopback addresses. What counts is the
 * processor time of the daemon over some seconds, all its threads, as a share of a processor. The
 * floor is two processes that seal, send, receive and check as many frames (barebeats.h), of which
 * the one that stands for the daemon is measured. Daemon and floor take turns: while one is
 * measured the other stands still.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "barebeats.h"
#include "bench.h"
#include "crowd.h"
#include "nodebench.h"

#define NAME    "beats"
#define GOAL    1.5
#define SECONDS 4u
#define PORT    16700u

enum { NODES = 1000, INTERVAL_MS = 100 };

struct turn {
	struct nodebench *node;
	pid_t crowd;
	int cpu, other;
};

static double share(pid_t pid)
{
	const uint64_t began = bench_now_ns(), used = bench_cpu_ns(pid);

	nodebench_nap(SECONDS * 1000);
	return 100.0 * (double)(bench_cpu_ns(pid) - used) / (double)(bench_now_ns() - began);
}

static double ours(void *ctx)
{
	struct turn *t = ctx;
	double percent;

	kill(nodebench_pid(t->node), SIGCONT);
	kill(t->crowd, SIGCONT);
	nodebench_wait_paths(t->node, NODES, 60);
	nodebench_nap(500);
	percent = share(nodebench_pid(t->node));
	nodebench_wait_paths(t->node, NODES, 0);
	kill(t->crowd, SIGSTOP);
	kill(nodebench_pid(t->node), SIGSTOP);
	return percent;
}

static double bare(void *ctx)
{
	const struct turn *t = ctx;
	const struct barebeats here = {PORT + 1, PORT + 2, NODES, 1, INTERVAL_MS, t->cpu};
	const struct barebeats there = {PORT + 2,     PORT + 1,    NODES,
					CROWD_SLICES, INTERVAL_MS, t->other};
	const pid_t a = barebeats_start(&here), b = barebeats_start(&there);
	double percent;

	nodebench_nap(500);
	percent = share(a);
	bench_kill(a);
	bench_kill(b);
	return percent;
}

int main(void)
{
	struct turn t = {0};
	const struct bench_side sides[] = {{"ours", ours, &t}, {"bare", bare, &t}};
	struct bench_table table;
	struct bench_line l;
	double ratio;

	bench_line_machine(NAME);
	bench_cpus(&t.cpu, &t.other);
	t.node = nodebench_start(PORT, INTERVAL_MS, t.cpu, NULL);
	t.crowd = nodebench_crowd(t.node, NODES, INTERVAL_MS, t.other);
	nodebench_wait_paths(t.node, NODES, 60);
	bench_interleave(sides, 2, bench_rounds(5), &table);
	kill(nodebench_pid(t.node), SIGCONT);
	kill(t.crowd, SIGCONT);
	ratio = bench_table_ratio(&table, 0, 1);
	bench_line_open(&l, NAME);
	bench_line_bool(&l, "summary", true);
	bench_line_int(&l, "nodes", NODES);
	bench_line_int(&l, "interval_ms", INTERVAL_MS);
	bench_line_num(&l, "core_percent", bench_table_median(&table, 0), 2);
	bench_line_num(&l, "bare_percent", bench_table_median(&table, 1), 2);
	bench_line_num(&l, "us_each", bench_table_median(&table, 0) * 10000.0 / (2.0 * NODES * 10),
		       2);
	bench_line_num(&l, "ratio", ratio, 2);
	bench_line_num(&l, "goal", GOAL, 2);
	bench_line_bool(&l, "met", ratio <= GOAL);
	bench_line_print(&l);
	bench_kill(t.crowd);
	nodebench_stop(t.node);
	return 0;
}
