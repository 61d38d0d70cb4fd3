/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Harness of the benchmarks.
 *
 * A figure alone says little on a shared virtual machine, so everything is measured as a ratio:
 * the contestants (ours, a floor, a peer) take turns within each round, and the median over the
 * rounds of the per-round ratio is judged. A slow second then hits all of them. One round before
 * the counted ones warms caches, page tables and the branch predictor.
 *
 * Results go to standard output, one JSON object a line, fields in the order they were put. The
 * last line of a benchmark has "summary": true. What is for people goes to standard error.
 *
 * Memory is taken before the timed loops; samples beyond the room given are an error.
 */
#ifndef HC_BENCH_H
#define HC_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum {
	BENCH_ROUNDS_MAX = 200,
	BENCH_SIDES_MAX = 6,
};

/* Ends the program with one line for people. A forked part ends itself the same way. */
_Noreturn void bench_die(const char *format, ...) __attribute__((format(printf, 1, 2)));
void bench_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

uint64_t bench_now_ns(void);

/* Two processors to work with; the same one twice if we may use only one. */
void bench_cpus(int *first, int *second);
/* Binds the calling thread, and what it starts from now on, to one processor. */
void bench_pin(int cpu);
/* Back to all processors that the program was started with. */
void bench_unpin(void);

/* Rounds wanted: HC_BENCH_ROUNDS from the environment, or else `usual`. */
size_t bench_rounds(size_t usual);

/* A child that dies with its parent. 0 in the child. */
pid_t bench_fork(void);
void bench_kill(pid_t pid);
/* Processor time that a process has used so far, all its threads. */
uint64_t bench_cpu_ns(pid_t pid);
/* A directory below TMPDIR, removed at the end of the program that asked for it. */
const char *bench_tmpdir(void);
void bench_write_file(const char *path, const char *text);

struct bench_samples {
	uint64_t *v;
	size_t count;
	size_t limit;
	bool sorted;
};

void bench_samples_init(struct bench_samples *s, size_t limit);
void bench_samples_fini(struct bench_samples *s);
void bench_samples_reset(struct bench_samples *s);
void bench_samples_add(struct bench_samples *s, uint64_t v);
/* The smallest sample that at least `percent` of all samples do not exceed. */
uint64_t bench_samples_at(struct bench_samples *s, double percent);

double bench_median(const double *v, size_t n);

struct bench_side {
	const char *name;
	double (*round)(void *ctx);
	void *ctx;
};

struct bench_table {
	size_t rounds;
	size_t sides;
	double v[BENCH_ROUNDS_MAX][BENCH_SIDES_MAX];
};

void bench_interleave(const struct bench_side *sides, size_t n, size_t rounds,
		      struct bench_table *out);
double bench_table_median(const struct bench_table *t, size_t side);
/* Median of the per-round value of `side` over that of `base`. */
double bench_table_ratio(const struct bench_table *t, size_t side, size_t base);

struct bench_line {
	char text[4096];
	size_t used;
};

void bench_line_open(struct bench_line *l, const char *bench);
void bench_line_str(struct bench_line *l, const char *key, const char *value);
void bench_line_num(struct bench_line *l, const char *key, double value, int decimals);
void bench_line_int(struct bench_line *l, const char *key, uint64_t value);
void bench_line_bool(struct bench_line *l, const char *key, bool value);
void bench_line_null(struct bench_line *l, const char *key);
void bench_line_print(struct bench_line *l);
/* Which machine: processors, kernel. The first line of each benchmark. */
void bench_line_machine(const char *bench);

#endif
