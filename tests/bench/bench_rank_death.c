/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: when a rank process is killed, 99 of 100 times every other rank of its domain has the
 * event, with rank, pid and node, within 0.5 ms.
 *
 * Eight rank processes in one domain, seven of them in hcomm_dispatch, as a progress thread of a
 * training job would be; one is killed by SIGKILL. What counts is the time from just before the
 * kill to the arrival at the last survivor: ending the process, its pidfd, the daemon, the stored
 * row and seven wake-ups are all in it. A single kill wakes eight processes, so on a machine with
 * few processors it is their scheduling that is seen here.
 *
 * The same without hcomm is taken in turn, to show what the machine does at that moment: a process
 * is killed, another one that polls its pidfd writes a byte into the pipes of seven that wait.
 * The kernel takes the memory of a process apart before it says that the process is dead, so the
 * one that is killed has as many pages as a rank has here. That time is a part of both figures
 * that nobody can take away; exit_p50_ms is what it comes to, from the kill to the pidfd.
 */
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bench.h"
#include "deaths.h"
#include "harness.h"
#include "ours.h"
#include "ranks.h"

#define NAME "rank_death"
#define GOAL 0.5

enum { RANKS = 8, KILLS = 200, SURVIVORS = RANKS - 1 };

static struct hc_rank r[RANKS];
static struct bench_samples ours, plain, ends;
static size_t rank_pages; /* in memory, of a rank that has joined */

/* ---- ours ---- */

static void kill_one(uint32_t victim)
{
	const struct hc_order listen = {.what = HC_DO_EVENT, .code = HCOMM_EV_RANK_DIED};
	const struct hc_order leave = {.what = HC_DO_LEAVE, .timeout_ms = 10000};
	const uint32_t pid = (uint32_t)r[victim].child.pid;
	struct hc_answer a;
	uint64_t killed, last = 0;
	uint32_t i;

	hc_ranks_join(r, RANKS, 0, 0, NULL);
	for (i = 0; i < RANKS; i++) {
		if (i == victim)
			continue;
		hc_rank_tell(&r[i], &listen);
		hc_await("a rank to listen", deaths_sleeps, &r[i].child, 5000);
	}
	rank_pages = deaths_pages((pid_t)pid);
	killed = hc_now_ns();
	kill((pid_t)pid, SIGKILL);
	for (i = 0; i < RANKS; i++) {
		if (i == victim)
			continue;
		hc_rank_hear(&r[i], &a, 10000);
		if (a.result || a.rank != victim || a.pid != pid || !a.node[0])
			bench_die("rank %u was told of rank %u, pid %u: %s", i, a.rank, a.pid,
				  a.text);
		last = a.end_ns > last ? a.end_ns : last;
	}
	bench_samples_add(&ours, last - killed);
	hc_rank_kill(&r[victim]);
	for (i = 0; i < RANKS; i++) {
		if (i != victim)
			hc_rank_must(&r[i], &leave, NULL);
	}
	hc_rank_spawn(&r[victim]);
}

/* ---- without hcomm ---- */

static struct hc_child listeners[SURVIVORS], teller;

_Noreturn static int wait_death(void *arg, int in, int out)
{
	struct pollfd p = {.events = POLLIN};
	uint64_t dead;
	char byte = 1;
	pid_t pid;
	int i;

	(void)arg;
	for (;;) {
		hc_hear(in, &pid, sizeof(pid), 600000);
		p.fd = (int)syscall(SYS_pidfd_open, pid, 0);
		hc_tell(out, &byte, 1);
		poll(&p, 1, -1);
		dead = hc_now_ns();
		for (i = 0; i < SURVIVORS; i++)
			hc_tell(listeners[i].out, &byte, 1);
		hc_tell(out, &dead, sizeof(dead));
		close(p.fd);
	}
}

static void kill_plain(void)
{
	struct hc_child victim;
	uint64_t killed, at, last = 0;
	char byte;
	int i;

	hc_spawn(&victim, deaths_victim, &rank_pages);
	hc_child_read(&victim, &byte, 1, 5000);
	hc_child_tell(&teller, &victim.pid, sizeof(victim.pid));
	hc_child_read(&teller, &byte, 1, 5000);
	hc_await("the teller to wait", deaths_sleeps, &teller, 5000);
	for (i = 0; i < SURVIVORS; i++)
		hc_await("a listener to wait", deaths_sleeps, &listeners[i], 5000);
	killed = hc_now_ns();
	kill(victim.pid, SIGKILL);
	for (i = 0; i < SURVIVORS; i++) {
		hc_child_read(&listeners[i], &at, sizeof(at), 5000);
		last = at > last ? at : last;
	}
	bench_samples_add(&plain, last - killed);
	hc_child_read(&teller, &at, sizeof(at), 5000);
	bench_samples_add(&ends, at - killed);
	hc_child_kill(&victim);
}

static void report(size_t kills)
{
	const double ms = 1e6;
	double p99 = (double)bench_samples_at(&ours, 99) / ms;
	struct bench_line l;

	bench_line_open(&l, NAME);
	bench_line_bool(&l, "summary", true);
	bench_line_int(&l, "ranks", RANKS);
	bench_line_int(&l, "kills", kills);
	bench_line_num(&l, "p50_ms", (double)bench_samples_at(&ours, 50) / ms, 3);
	bench_line_num(&l, "p99_ms", p99, 3);
	bench_line_num(&l, "max_ms", (double)bench_samples_at(&ours, 100) / ms, 3);
	bench_line_num(&l, "plain_p50_ms", (double)bench_samples_at(&plain, 50) / ms, 3);
	bench_line_num(&l, "plain_p99_ms", (double)bench_samples_at(&plain, 99) / ms, 3);
	bench_line_num(&l, "exit_p50_ms", (double)bench_samples_at(&ends, 50) / ms, 3);
	bench_line_num(&l, "goal", GOAL, 1);
	bench_line_bool(&l, "met", p99 <= GOAL);
	bench_line_print(&l);
}

int main(void)
{
	size_t kills = bench_rounds(KILLS), n;
	struct ours *o;
	uint32_t i;
	int cpu, other;

	bench_line_machine(NAME);
	bench_samples_init(&ours, kills + 1);
	bench_samples_init(&plain, kills + 1);
	bench_samples_init(&ends, kills + 1);
	bench_cpus(&cpu, &other);
	o = ours_start(RANKS, cpu);
	setenv("HCOMM_SOCKET", ours_socket(o), 1);
	for (i = 0; i < SURVIVORS; i++)
		hc_spawn(&listeners[i], deaths_listener, NULL);
	hc_spawn(&teller, wait_death, NULL);
	for (i = 0; i < RANKS; i++)
		hc_rank_spawn(&r[i]);
	kill_one(0); /* warms up */
	kill_plain();
	bench_samples_reset(&ours);
	bench_samples_reset(&plain);
	bench_samples_reset(&ends);
	for (n = 0; n < kills; n++) {
		kill_one((uint32_t)(n % RANKS));
		kill_plain();
	}
	report(kills);
	hc_ranks_quit(r, RANKS);
	hc_children_kill();
	bench_samples_fini(&ours);
	bench_samples_fini(&plain);
	bench_samples_fini(&ends);
	ours_stop(o);
	return 0;
}
