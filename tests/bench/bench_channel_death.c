/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: when a client is killed that holds what another one waits for, 99 of 100 times the other
 * one has it within 10 ms; and what is used and what is free are all there is, at every sample.
 *
 * The victim has five references and three channels, together all that may be granted of a link;
 * the other process waits for all of that (chandeath.h). What counts is the time from just before
 * the SIGKILL to the moment when the waiter has its channel: the end of the process, its pidfd,
 * what the daemon takes back and grants, and the wake-up are all in it.
 *
 * The floor is taken in turn: a process of as many pages is killed, and another one that polls its
 * pidfd says when it was readable. Nothing that hears of a death by the kernel can be faster.
 *
 * All through, a third process reads links, channels and requests from the daemon's views, with
 * pauses of 0.25 ms, and holds them against each other (ledger.h). It is a part of the load. A
 * sample that does not add up ends the benchmark; *whole* are those in which no grant or release
 * fell between the two looks at the links, so that all of it could be added up.
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"
#include "chandeath.h"
#include "deaths.h"
#include "ledger.h"

#define NAME "channel_death"
#define GOAL 10.0
#define MS   1000000ull

enum { KILLS = 200 };

static struct hc_node node;
static struct hc_child waiter, reader, watcher;
static struct bench_samples ours, plain;
static size_t victim_pages; /* in memory, of a victim that has everything */
static int books;

/* Of the reader, in shared memory. */
static struct reading {
	uint64_t samples, whole;
} * reading;

static int reads(void *arg, int in, int out)
{
	const struct timespec pause = {.tv_nsec = MS / 4};
	const int fd = hc_ledger_open(&node);
	struct pollfd end = {.fd = in, .events = POLLIN};
	struct hc_ledger l;

	(void)arg;
	(void)out;
	while (!poll(&end, 1, 0)) {
		hc_ledger_read(fd, &l);
		__atomic_add_fetch(&reading->samples, 1, __ATOMIC_RELAXED);
		__atomic_add_fetch(&reading->whole, l.whole, __ATOMIC_RELAXED);
		nanosleep(&pause, NULL);
	}
	close(fd);
	return 0;
}

/* ---- ours ---- */

static bool has_all(const struct hc_ledger *l, uint32_t channels)
{
	return l->channels == channels &&
	       l->link[0].used[0] == HC_VICTIM_CHANNELS * HC_VICTIM_MBPS &&
	       l->link[0].used[0] == l->link[0].limit;
}

static void kill_one(size_t number)
{
	struct hc_child victim;
	struct hc_ledger l;
	uint64_t killed, had;
	char x = 1;

	hc_chandeath_begin(&victim, &waiter, (unsigned)number, books, &l);
	if (!has_all(&l, HC_VICTIM_CHANNELS))
		bench_die("the victim does not have the whole link");
	hc_await("the victim to sleep", deaths_sleeps, &victim, 5000);
	hc_await("the waiter to sleep", deaths_sleeps, &waiter, 5000);
	victim_pages = deaths_pages(victim.pid);
	killed = hc_now_ns();
	kill(victim.pid, SIGKILL);
	hc_child_read(&waiter, &had, sizeof(had), 10000);
	bench_samples_add(&ours, had - killed);
	hc_ledger_read(books, &l);
	if (l.whole && !has_all(&l, 1))
		bench_die("the waiter does not have the whole link");
	hc_child_tell(&waiter, &x, 1);
	hc_child_read(&waiter, &x, 1, 10000);
	hc_child_kill(&victim);
	hc_ledger_await_empty(books, 5000);
}

/* ---- the floor ---- */

/* Told a pid, tells a byte when it watches it, and then when it was dead. */
_Noreturn static int watches(void *arg, int in, int out)
{
	struct pollfd p = {.events = POLLIN};
	uint64_t dead;
	char x = 1;
	pid_t pid;

	(void)arg;
	for (;;) {
		hc_hear(in, &pid, sizeof(pid), 600000);
		p.fd = (int)syscall(SYS_pidfd_open, pid, 0);
		hc_tell(out, &x, 1);
		poll(&p, 1, -1);
		dead = hc_now_ns();
		hc_tell(out, &dead, sizeof(dead));
		close(p.fd);
	}
}

static void kill_plain(void)
{
	struct hc_child victim;
	uint64_t killed, dead;
	char x;

	hc_spawn(&victim, deaths_victim, &victim_pages);
	hc_child_read(&victim, &x, 1, 5000);
	hc_child_tell(&watcher, &victim.pid, sizeof(victim.pid));
	hc_child_read(&watcher, &x, 1, 5000);
	hc_await("the victim to sleep", deaths_sleeps, &victim, 5000);
	hc_await("the watcher to wait", deaths_sleeps, &watcher, 5000);
	killed = hc_now_ns();
	kill(victim.pid, SIGKILL);
	hc_child_read(&watcher, &dead, sizeof(dead), 5000);
	bench_samples_add(&plain, dead - killed);
	hc_child_kill(&victim);
}

/* ---- all ---- */

static double ms_at(struct bench_samples *s, double percent)
{
	return (double)bench_samples_at(s, percent) / (double)MS;
}

static void report(void)
{
	const double p99 = ms_at(&ours, 99);
	struct bench_line l;

	bench_line_open(&l, NAME);
	bench_line_bool(&l, "summary", true);
	bench_line_int(&l, "kills", ours.count);
	bench_line_num(&l, "p50_ms", ms_at(&ours, 50), 3);
	bench_line_num(&l, "p99_ms", p99, 3);
	bench_line_num(&l, "max_ms", ms_at(&ours, 100), 3);
	bench_line_num(&l, "plain_p50_ms", ms_at(&plain, 50), 3);
	bench_line_num(&l, "plain_p99_ms", ms_at(&plain, 99), 3);
	bench_line_num(&l, "plain_max_ms", ms_at(&plain, 100), 3);
	bench_line_int(&l, "samples", reading->samples);
	bench_line_int(&l, "whole", reading->whole);
	bench_line_num(&l, "goal", GOAL, 0);
	bench_line_bool(&l, "met", p99 <= GOAL && reading->whole > ours.count);
	bench_line_print(&l);
}

static void start(void)
{
	int cpu, other;
	char x;

	reading = mmap(NULL, sizeof(*reading), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		       -1, 0);
	if (reading == MAP_FAILED)
		bench_die("no shared memory");
	bench_cpus(&cpu, &other);
	hc_node_prepare(&node, 2, "orphan_grace_s = 1", HC_CHANDEATH_LINK);
	setenv("HCOMM_SOCKET", node.socket, 1);
	bench_pin(cpu);
	hc_node_run(&node);
	bench_unpin();
	books = hc_ledger_open(&node);
	hc_spawn(&waiter, hc_chandeath_waiter, (char[]){"waiter"});
	hc_child_read(&waiter, &x, 1, 20000);
	hc_spawn(&watcher, watches, NULL);
	hc_spawn(&reader, reads, NULL);
}

static void stop(void)
{
	char x = 0;

	hc_child_tell(&waiter, &x, 1);
	if (hc_child_wait(&waiter, 10000))
		bench_die("the waiter did not end in order");
	hc_child_tell(&reader, &x, 1);
	if (hc_child_wait(&reader, 10000))
		bench_die("a sample does not add up");
}

int main(void)
{
	const size_t kills = bench_rounds(KILLS);
	size_t n;

	bench_line_machine(NAME);
	bench_samples_init(&ours, kills + 1);
	bench_samples_init(&plain, kills + 1);
	start();
	kill_one(0); /* warms up */
	kill_plain();
	bench_samples_reset(&ours);
	bench_samples_reset(&plain);
	for (n = 1; n <= kills; n++) {
		kill_one(n);
		kill_plain();
	}
	stop();
	report();
	hc_children_kill();
	close(books);
	hc_node_end(&node);
	bench_samples_fini(&ours);
	bench_samples_fini(&plain);
	return 0;
}
