/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: what storing costs beside sqlite itself. Inside of the store's thread one commit takes at
 * most 1.15 of a bare one; with the hand-off to the thread and back at most 1.3 of a floor with
 * the same hand-off; and 64 rows queued at once at most 1.5 of one.
 *
 * The rows are of one size and new each time, in both. The store's hand-off ends in the event
 * loop, the floor's in a read: what the loop adds is part of what is measured. All of it runs on
 * one processor.
 */
#include <event2/event.h>
#include <stdio.h>
#include <string.h>

#include "bench.h"
#include "ident.h"
#include "store.h"
#include "writer.h"

#define NAME "commit"

enum { COMMITS = 400, ROUNDS = 31, ROW_BYTES = 256, GROUP = 64 };

#define GOAL_INSIDE  1.15
#define GOAL_HANDOFF 1.3
#define GOAL_GROUP   1.5

enum side { INSIDE, BARE, HANDOFF, FLOOR, GROUPED, SIDES };

static struct {
	struct event_base *base;
	struct hc_db *db; /* used in this thread */
	struct hc_store *store;
	struct writer bare, floor;
	uint64_t id, seq, done;
	uint8_t row[ROW_BYTES];
} b;

static void must(int r, const char *what)
{
	if (r)
		bench_die("%s: outcome %d", what, r);
}

static double per_commit(uint64_t start)
{
	return (double)(bench_now_ns() - start) / COMMITS / 1e3;
}

static double inside_round(void *ctx)
{
	uint64_t start = bench_now_ns();
	int i;

	(void)ctx;
	for (i = 0; i < COMMITS; i++) {
		must(hc_db_begin(b.db), "begin");
		must(hc_db_put_domain(b.db, ++b.id, b.row, sizeof(b.row)), "put");
		must(hc_db_commit(b.db), "commit");
	}
	return per_commit(start);
}

static double bare_round(void *ctx)
{
	(void)ctx;
	return floor_sqlite_ns(&b.bare, COMMITS, NULL) / 1e3;
}

static void on_done(void *arg, uint64_t seq)
{
	(void)arg;
	b.done = seq;
}

static double store_rows(unsigned rows)
{
	uint64_t start = bench_now_ns();
	unsigned i, k;

	for (i = 0; i < COMMITS; i++) {
		for (k = 0; k < rows; k++)
			hc_store_put(b.store, HC_PUT_DOMAIN, ++b.seq, ++b.id, b.row, sizeof(b.row));
		hc_store_kick(b.store);
		while (b.done < b.seq)
			event_base_loop(b.base, EVLOOP_ONCE);
	}
	return per_commit(start);
}

static double handoff_round(void *ctx)
{
	(void)ctx;
	return store_rows(1);
}

static double grouped_round(void *ctx)
{
	(void)ctx;
	return store_rows(GROUP);
}

static double floor_round(void *ctx)
{
	(void)ctx;
	return floor_sqlite_handoff_ns(&b.floor, COMMITS, NULL) / 1e3;
}

static struct hc_db *open_db(const char *name, struct hc_db_start *begun)
{
	char path[300], why[512], boot[HC_BOOT_BYTES];
	struct hc_db *db = NULL;

	snprintf(path, sizeof(path), "%s/%s.db", bench_tmpdir(), name);
	must(hc_ident_boot(boot), "boot id");
	must(hc_db_open(path, boot, &db, begun, why, sizeof(why)), "opening a database");
	return db;
}

static void open_all(void)
{
	static const struct hc_store_limits limits = {14, 1000000};
	struct hc_db_start begun;
	char path[300];

	b.base = event_base_new();
	b.db = open_db("inside", &begun);
	must(hc_store_start(b.base, open_db("store", &begun), &begun, &limits, on_done, NULL,
			    &b.store),
	     "starting the store");
	snprintf(path, sizeof(path), "%s/bare.db", bench_tmpdir());
	writer_open(&b.bare, path, ROW_BYTES);
	snprintf(path, sizeof(path), "%s/floor.db", bench_tmpdir());
	writer_open(&b.floor, path, ROW_BYTES);
	writer_start(&b.floor);
}

static void close_all(void)
{
	hc_store_stop(b.store);
	hc_db_close(b.db);
	writer_stop(&b.floor);
	writer_close(&b.floor);
	writer_close(&b.bare);
	event_base_free(b.base);
}

static void report(const struct bench_table *t)
{
	double inside = bench_table_ratio(t, INSIDE, BARE);
	double handoff = bench_table_ratio(t, HANDOFF, FLOOR);
	double group = bench_table_ratio(t, GROUPED, HANDOFF);
	struct bench_line l;

	bench_line_open(&l, NAME);
	bench_line_bool(&l, "summary", true);
	bench_line_num(&l, "inside_us", bench_table_median(t, INSIDE), 2);
	bench_line_num(&l, "bare_us", bench_table_median(t, BARE), 2);
	bench_line_num(&l, "ratio", inside, 3);
	bench_line_num(&l, "goal", GOAL_INSIDE, 2);
	bench_line_num(&l, "handoff_us", bench_table_median(t, HANDOFF), 2);
	bench_line_num(&l, "handoff_floor_us", bench_table_median(t, FLOOR), 2);
	bench_line_num(&l, "handoff_ratio", handoff, 3);
	bench_line_num(&l, "handoff_goal", GOAL_HANDOFF, 2);
	bench_line_num(&l, "group_of_64_us", bench_table_median(t, GROUPED), 2);
	bench_line_num(&l, "group_ratio", group, 3);
	bench_line_num(&l, "group_goal", GOAL_GROUP, 2);
	bench_line_bool(&l, "met",
			inside <= GOAL_INSIDE && handoff <= GOAL_HANDOFF && group <= GOAL_GROUP);
	bench_line_print(&l);
}

int main(void)
{
	static struct bench_table t;
	static const struct bench_side side[SIDES] = {[INSIDE] = {"inside", inside_round, NULL},
						      [BARE] = {"bare", bare_round, NULL},
						      [HANDOFF] = {"handoff", handoff_round, NULL},
						      [FLOOR] = {"floor", floor_round, NULL},
						      [GROUPED] = {"grouped", grouped_round, NULL}};
	int cpu, other;

	bench_line_machine(NAME);
	bench_cpus(&cpu, &other);
	bench_pin(cpu);
	memset(b.row, 0x5a, sizeof(b.row));
	open_all();
	bench_interleave(side, SIDES, bench_rounds(ROUNDS), &t);
	report(&t);
	close_all();
	return 0;
}
