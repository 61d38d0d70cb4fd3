/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: making a domain costs the same whether 100 or 100,000 are alive: ratio at most 1.05.
 *
 * Two daemons on one processor, one with 100 domains and one with 100,000, take turns: a process
 * makes a domain of its 8 devices (one request, a row stored, one answer) and leaves it, which is
 * not timed. The many are held by processes of their own, since a session's op arena has room for
 * 16,384 of 8 ranks. HC_BENCH_QUICK=1: 10,000 instead.
 *
 * Before they take turns both have some seconds of rest: a daemon checks its database once, when it
 * has had nothing to store for a second, and until then its store sleeps with a timer. The one with
 * few domains has that behind it while the other one is being filled.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <hcomm/hcomm.h>

#include "bench.h"
#include "ours.h"

#define NAME "domains_flat"

enum {
	RANKS = 8,
	HOLDERS = 4,
	SESSIONS = 2, /* of a holder */
	FEW = 100,
	BATCH = 500,
	TURNS = 100,
	ROUNDS = 31,
	TIMEOUT_MS = 120000,
	REST_S = 4,
};

#define GOAL 1.05

enum side { MANY_ALIVE, FEW_ALIVE, SIDES };

struct contest {
	struct ours *o;
	struct hcomm_session *session;
	uint32_t devices[RANKS];
	struct bench_samples round;
};

static void make(hcomm_domain parent, uint32_t count)
{
	static struct hcomm_batch_item item[BATCH];
	uint32_t ranks[RANKS], i, n;

	for (i = 0; i < RANKS; i++)
		ranks[i] = i;
	for (n = 0; n < count; n += BATCH) {
		for (i = 0; i < BATCH; i++)
			item[i] = (struct hcomm_batch_item){.size = sizeof(item[i]),
							    .ranks = ranks,
							    .count = RANKS,
							    .sub_id = n + i};
		ours_must(hcomm_batch(parent, item, count - n < BATCH ? count - n : BATCH,
				      TIMEOUT_MS),
			  "hcomm_batch");
	}
}

static void open_on(const struct ours *o, struct hcomm_session **s)
{
	struct hcomm_open_args args = HCOMM_INIT(struct hcomm_open_args);

	args.socket = ours_socket(o);
	ours_must(hcomm_open(&args, s), "hcomm_open");
}

static void first_devices(uint32_t *devices, uint32_t first)
{
	uint32_t i;

	for (i = 0; i < RANKS; i++)
		devices[i] = first + i;
}

/* A child that holds `each` domains in each of its sessions until it is killed. */
static void hold(const struct ours *o, uint32_t holder, uint32_t sessions, uint32_t each)
{
	struct hcomm_session *s;
	uint32_t devices[RANKS], i;
	hcomm_domain parent;
	int ready[2];
	char c;

	if (pipe(ready))
		bench_die("pipe: %s", strerror(errno));
	if (bench_fork()) {
		close(ready[1]);
		if (read(ready[0], &c, 1) != 1)
			bench_die("a holder of domains has failed");
		close(ready[0]);
		return;
	}
	first_devices(devices, (holder + 1) * RANKS);
	for (i = 0; i < sessions; i++) {
		open_on(o, &s);
		ours_must(hcomm_join_all_local(s, devices, RANKS, NULL, TIMEOUT_MS, &parent),
			  "hcomm_join_all_local");
		make(parent, each - 1);
	}
	if (write(ready[1], "x", 1) != 1)
		bench_die("a pipe has closed");
	for (;;)
		pause();
}

static double one_round(void *ctx)
{
	struct contest *c = ctx;
	uint64_t start;
	hcomm_domain d;
	int i;

	bench_samples_reset(&c->round);
	for (i = 0; i < TURNS; i++) {
		start = bench_now_ns();
		ours_must(hcomm_join_all_local(c->session, c->devices, RANKS, NULL, TIMEOUT_MS, &d),
			  "hcomm_join_all_local");
		bench_samples_add(&c->round, bench_now_ns() - start);
		ours_must(hcomm_leave(d, TIMEOUT_MS), "hcomm_leave");
	}
	return (double)bench_samples_at(&c->round, 50) / 1e3;
}

static void begin(struct contest *c, int cpu)
{
	c->o = ours_start_with((HOLDERS + 1) * RANKS, cpu,
			       "quota_domains = 200000\ndomains_max = 100100");
	open_on(c->o, &c->session);
	first_devices(c->devices, 0);
	bench_samples_init(&c->round, TURNS);
}

int main(void)
{
	static struct bench_table t;
	static struct contest c[SIDES];
	const struct bench_side side[SIDES] = {[MANY_ALIVE] = {"many", one_round, &c[MANY_ALIVE]},
					       [FEW_ALIVE] = {"few", one_round, &c[FEW_ALIVE]}};
	const char *quick = getenv("HC_BENCH_QUICK");
	uint32_t many = quick && *quick == '1' ? 10000 : 100000, i;
	uint64_t filled;
	struct bench_line l;
	int cpu, other;

	bench_line_machine(NAME);
	bench_cpus(&cpu, &other);
	for (i = 0; i < SIDES; i++)
		begin(&c[i], cpu);
	filled = bench_now_ns();
	for (i = 0; i < HOLDERS; i++)
		hold(c[MANY_ALIVE].o, i, SESSIONS, many / (HOLDERS * SESSIONS));
	filled = bench_now_ns() - filled;
	hold(c[FEW_ALIVE].o, 0, 1, FEW);
	sleep(REST_S);
	bench_pin(cpu);
	bench_interleave(side, SIDES, bench_rounds(ROUNDS), &t);
	bench_line_open(&l, NAME);
	bench_line_bool(&l, "summary", true);
	bench_line_int(&l, "alive", many);
	bench_line_num(&l, "us", bench_table_median(&t, MANY_ALIVE), 2);
	bench_line_num(&l, "us_at_100", bench_table_median(&t, FEW_ALIVE), 2);
	bench_line_num(&l, "fill_us_each", (double)filled / 1e3 / many, 2);
	bench_line_num(&l, "ratio", bench_table_ratio(&t, MANY_ALIVE, FEW_ALIVE), 3);
	bench_line_num(&l, "goal", GOAL, 2);
	bench_line_bool(&l, "met", bench_table_ratio(&t, MANY_ALIVE, FEW_ALIVE) <= GOAL);
	bench_line_print(&l);
	for (i = 0; i < SIDES; i++) {
		hcomm_close(c[i].session);
		ours_stop(c[i].o);
	}
	return 0;
}
