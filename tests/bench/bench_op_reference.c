/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: a begin and an end of an operation reference, through the shared library, cost at most
 * 0.3 of a pair of locked read-modify-writes, make no system call and execute no locked
 * instruction.
 *
 * The domain is a real one, of two processes at a running daemon; this process is rank 0 and
 * takes references on its own processor while the other rank and the daemon sleep. Three floors
 * run in the same rounds: the locked pair, a plain slot and two empty calls. The last says how
 * much of the figure is the calls themselves. System calls are looked for at full speed over a
 * million pairs, locked instructions by stepping through one pair.
 */
#include <stdio.h>
#include <unistd.h>

#include <hcomm/hcomm.h>

#include "bench.h"
#include "ours.h"
#include "reference.h"
#include "steps.h"

#define NAME "op_reference"

enum {
	PAIRS = 1000000,
	ROUNDS = 31,
	TIMEOUT_MS = 10000,
};

#define GOAL 0.3

enum side {
	OURS,
	LOCKED,
	PLAIN,
	EMPTY,
	SIDES,
};

static hcomm_domain join(const char *socket, const char *table, uint32_t rank,
			 struct hcomm_session **s)
{
	struct hcomm_open_args args = HCOMM_INIT(struct hcomm_open_args);
	hcomm_domain d;

	args.socket = socket;
	ours_must(hcomm_open(&args, s), "hcomm_open");
	ours_must(hcomm_join_table(*s, table, rank, NULL, TIMEOUT_MS, &d), "hcomm_join_table");
	return d;
}

/* The other rank: there and idle, as most ranks are at most times. */
static pid_t start_other(const char *socket, const char *table, int cpu)
{
	struct hcomm_session *s;
	pid_t pid = bench_fork();

	if (pid)
		return pid;
	bench_pin(cpu);
	join(socket, table, 1, &s);
	for (;;)
		pause();
}

static void pairs(hcomm_domain d, uint64_t count)
{
	struct hcomm_op op;
	uint64_t i;

	for (i = 0; i < count; i++)
		if (hcomm_op_begin(d, HCOMM_OP_ALL_REDUCE, 4096, 0, &op) || hcomm_op_end(&op))
			bench_die("operation %llu: %s", (unsigned long long)i, hcomm_last_error());
}

static void one_pair(void *ctx)
{
	pairs(*(hcomm_domain *)ctx, 1);
}

static void many_pairs(void *ctx)
{
	pairs(*(hcomm_domain *)ctx, PAIRS);
}

static double ours_round(void *ctx)
{
	uint64_t start = bench_now_ns();

	pairs(*(hcomm_domain *)ctx, PAIRS);
	return (double)(bench_now_ns() - start) / PAIRS;
}

static double locked_round(void *ctx)
{
	(void)ctx;
	return floor_lockedpair_ns(PAIRS);
}

static double plain_round(void *ctx)
{
	(void)ctx;
	return floor_plainslot_ns(PAIRS);
}

static double empty_round(void *ctx)
{
	(void)ctx;
	return floor_emptycall_ns(PAIRS);
}

static void report(const struct bench_table *t, const struct steps *steps, bool any_call,
		   bool calls_known)
{
	double ratio = bench_table_ratio(t, OURS, LOCKED);
	struct bench_line l;

	bench_line_open(&l, NAME);
	bench_line_bool(&l, "summary", true);
	bench_line_num(&l, "ns", bench_table_median(t, OURS), 2);
	bench_line_num(&l, "locked_pair_ns", bench_table_median(t, LOCKED), 2);
	bench_line_num(&l, "plain_slot_ns", bench_table_median(t, PLAIN), 2);
	bench_line_num(&l, "empty_calls_ns", bench_table_median(t, EMPTY), 2);
	bench_line_num(&l, "ratio", ratio, 3);
	bench_line_num(&l, "goal", GOAL, 2);
	bench_line_num(&l, "plain_slot_ratio", bench_table_ratio(t, PLAIN, LOCKED), 3);
	bench_line_num(&l, "empty_calls_ratio", bench_table_ratio(t, EMPTY, LOCKED), 3);
	if (calls_known)
		bench_line_bool(&l, "system_calls", any_call);
	else
		bench_line_null(&l, "system_calls");
	if (steps) {
		bench_line_int(&l, "locked_instructions", steps->locked);
		bench_line_int(&l, "instructions", steps->instructions);
	} else {
		bench_line_null(&l, "locked_instructions");
		bench_line_null(&l, "instructions");
	}
	bench_line_bool(&l, "met", ratio <= GOAL && !any_call && (!steps || steps->locked == 0));
	bench_line_print(&l);
}

int main(void)
{
	static struct bench_table t;
	struct bench_side side[SIDES] = {[OURS] = {"ours", ours_round, NULL},
					 [LOCKED] = {"locked pair", locked_round, NULL},
					 [PLAIN] = {"plain slot", plain_round, NULL},
					 [EMPTY] = {"empty calls", empty_round, NULL}};
	bool calls_known, stepped, any_call = false;
	struct hcomm_session *s;
	struct steps steps;
	struct ours *o;
	hcomm_domain d;
	char table[300];
	int cpu, other;
	pid_t pid;

	bench_line_machine(NAME);
	bench_cpus(&cpu, &other);
	snprintf(table, sizeof(table), "%s/pair.json", bench_tmpdir());
	ours_write_table(table, 0, 2);
	o = ours_start(2, other);
	bench_pin(cpu);
	pid = start_other(ours_socket(o), table, other);
	d = join(ours_socket(o), table, 0, &s);
	side[OURS].ctx = &d;
	bench_interleave(side, SIDES, bench_rounds(ROUNDS), &t);
	calls_known = steps_any_system_call(many_pairs, &d, &any_call);
	stepped = steps_count(one_pair, &d, &steps);
	report(&t, stepped ? &steps : NULL, any_call, calls_known);
	hcomm_close(s);
	bench_kill(pid);
	ours_stop(o);
	return 0;
}
