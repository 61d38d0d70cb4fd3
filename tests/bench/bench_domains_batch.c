/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: one call makes 1,000 domains of 8 ranks, all of them ranks of one process, in at most
 * 6 ms: every one is stored, ACTIVE and has a handle when the call returns.
 *
 * The floor is what any design pays that stores a row for each domain: 1,000 rows of as many
 * bytes in one transaction of sqlite, in the calling thread. Daemon and caller have both
 * processors, as in a job; leaving the domains again is not timed.
 */
#include <stdio.h>
#include <stdlib.h>

#include <hcomm/hcomm.h>

#include "bench.h"
#include "ours.h"
#include "writer.h"

#define NAME "domains_batch"

enum {
	RANKS = 8,
	DOMAINS = 1000,
	ROUNDS = 15,
	ROW_BYTES = 290,
	TIMEOUT_MS = 60000,
};

#define GOAL_MS 6.0

enum side { BATCH, FLOOR, SIDES };

struct contest {
	struct hcomm_session *session;
	hcomm_domain parent;
	uint64_t next_id;
	struct writer writer;
	struct hcomm_batch_item item[DOMAINS];
	uint32_t ranks[RANKS];
	struct bench_samples all;
};

static void leave_all(struct contest *c)
{
	int i;

	for (i = 0; i < DOMAINS; i++)
		ours_must(hcomm_leave(c->item[i].domain, TIMEOUT_MS), "hcomm_leave");
}

static double batch_round(void *ctx)
{
	struct contest *c = ctx;
	uint64_t start, ns;
	int i;

	for (i = 0; i < DOMAINS; i++)
		c->item[i] = (struct hcomm_batch_item){.size = sizeof(c->item[i]),
						       .ranks = c->ranks,
						       .count = RANKS,
						       .sub_id = c->next_id++};
	start = bench_now_ns();
	ours_must(hcomm_batch(c->parent, c->item, DOMAINS, TIMEOUT_MS), "hcomm_batch");
	ns = bench_now_ns() - start;
	leave_all(c);
	bench_samples_add(&c->all, ns);
	return (double)ns / 1e6;
}

static double floor_round(void *ctx)
{
	struct contest *c = ctx;
	uint64_t start = bench_now_ns();

	writer_commit_many(&c->writer, DOMAINS);
	return (double)(bench_now_ns() - start) / 1e6;
}

static void report(const struct bench_table *t, struct contest *c)
{
	double ms = bench_table_median(t, BATCH);
	struct bench_line l;

	bench_line_open(&l, NAME);
	bench_line_bool(&l, "summary", true);
	bench_line_int(&l, "domains", DOMAINS);
	bench_line_int(&l, "ranks", RANKS);
	bench_line_num(&l, "ms", ms, 3);
	bench_line_num(&l, "least_ms", (double)bench_samples_at(&c->all, 0) / 1e6, 3);
	bench_line_num(&l, "us_each", ms * 1000 / DOMAINS, 3);
	bench_line_num(&l, "goal_ms", GOAL_MS, 1);
	bench_line_num(&l, "floor_ms", bench_table_median(t, FLOOR), 3);
	bench_line_num(&l, "ratio", bench_table_ratio(t, BATCH, FLOOR), 3);
	bench_line_bool(&l, "met", ms <= GOAL_MS);
	bench_line_print(&l);
}

int main(void)
{
	static struct bench_table t;
	static struct contest c;
	const struct bench_side side[SIDES] = {
		[BATCH] = {"batch", batch_round, &c}, [FLOOR] = {"floor", floor_round, &c}};
	struct hcomm_open_args args = HCOMM_INIT(struct hcomm_open_args);
	size_t rounds = bench_rounds(ROUNDS);
	struct ours *o;
	char path[300];
	uint32_t i;

	bench_line_machine(NAME);
	bench_samples_init(&c.all, rounds + 1);
	snprintf(path, sizeof(path), "%s/floor.db", bench_tmpdir());
	writer_open(&c.writer, path, ROW_BYTES);
	o = ours_start(RANKS, -1);
	args.socket = ours_socket(o);
	ours_must(hcomm_open(&args, &c.session), "hcomm_open");
	ours_must(hcomm_join_all_local(c.session, NULL, 0, NULL, TIMEOUT_MS, &c.parent),
		  "hcomm_join_all_local");
	for (i = 0; i < RANKS; i++)
		c.ranks[i] = i;
	bench_interleave(side, SIDES, rounds, &t);
	report(&t, &c);
	hcomm_close(c.session);
	ours_stop(o);
	writer_close(&c.writer);
	bench_samples_fini(&c.all);
	return 0;
}
