/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Time, samples, rounds and JSON lines of the benchmarks; bench_proc.c has what concerns
 * processes, processors and files. The clock is CLOCK_MONOTONIC, read through the vDSO: about
 * 20 ns, so what is shorter than a microsecond is timed in batches by its round function and
 * reported for each operation. Percentiles come from the sorted samples themselves, not from
 * buckets: a few hundred thousand numbers are cheap, and a p99 is then a time that was seen.
 */
#include "bench.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

void bench_die(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	fputs("bench: ", stderr);
	vfprintf(stderr, format, ap);
	fputc('\n', stderr);
	va_end(ap);
	exit(1);
}

void bench_note(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	fputs("bench: ", stderr);
	vfprintf(stderr, format, ap);
	fputc('\n', stderr);
	va_end(ap);
}

uint64_t bench_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

size_t bench_rounds(size_t usual)
{
	const char *text = getenv("HC_BENCH_ROUNDS");
	char *end = NULL;
	unsigned long n;

	if (!text || !*text)
		return usual;
	n = strtoul(text, &end, 10);
	if (*end || n < 1 || n > BENCH_ROUNDS_MAX)
		bench_die("HC_BENCH_ROUNDS is '%s'; wanted: 1 to %d", text, BENCH_ROUNDS_MAX);
	return n;
}

void bench_samples_init(struct bench_samples *s, size_t limit)
{
	*s = (struct bench_samples){.v = calloc(limit, sizeof(*s->v)), .limit = limit};
	if (!s->v)
		bench_die("no memory for %zu samples", limit);
	/* touch every page now, not within a timed loop */
	memset(s->v, 0xff, limit * sizeof(*s->v));
}

void bench_samples_fini(struct bench_samples *s)
{
	free(s->v);
	*s = (struct bench_samples){0};
}

void bench_samples_reset(struct bench_samples *s)
{
	s->count = 0;
	s->sorted = false;
}

void bench_samples_add(struct bench_samples *s, uint64_t v)
{
	if (s->count == s->limit)
		bench_die("more than the %zu samples there is room for", s->limit);
	s->v[s->count++] = v;
	s->sorted = false;
}

static int by_u64(const void *a, const void *b)
{
	const uint64_t *x = a;
	const uint64_t *y = b;

	return *x < *y ? -1 : *x > *y;
}

uint64_t bench_samples_at(struct bench_samples *s, double percent)
{
	double place;
	size_t i;

	if (!s->count)
		bench_die("a percentile of no samples");
	if (!s->sorted)
		qsort(s->v, s->count, sizeof(*s->v), by_u64);
	s->sorted = true;
	place = (double)s->count * percent / 100;
	i = (size_t)place;
	if ((double)i == place && i)
		i--;
	return s->v[i < s->count ? i : s->count - 1];
}

static int by_double(const void *a, const void *b)
{
	const double *x = a;
	const double *y = b;

	return *x < *y ? -1 : *x > *y;
}

double bench_median(const double *v, size_t n)
{
	double sorted[BENCH_ROUNDS_MAX];

	if (!n || n > BENCH_ROUNDS_MAX)
		bench_die("a median of %zu values; wanted: 1 to %d", n, BENCH_ROUNDS_MAX);
	memcpy(sorted, v, n * sizeof(*v));
	qsort(sorted, n, sizeof(*sorted), by_double);
	return n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}

void bench_interleave(const struct bench_side *sides, size_t n, size_t rounds,
		      struct bench_table *out)
{
	size_t r, s;

	if (!n || n > BENCH_SIDES_MAX || !rounds || rounds > BENCH_ROUNDS_MAX)
		bench_die("%zu sides in %zu rounds are not to be had", n, rounds);
	*out = (struct bench_table){.rounds = rounds, .sides = n};
	for (s = 0; s < n; s++)
		sides[s].round(sides[s].ctx);
	for (r = 0; r < rounds; r++)
		for (s = 0; s < n; s++)
			out->v[r][s] = sides[s].round(sides[s].ctx);
}

double bench_table_median(const struct bench_table *t, size_t side)
{
	double v[BENCH_ROUNDS_MAX];
	size_t r;

	for (r = 0; r < t->rounds; r++)
		v[r] = t->v[r][side];
	return bench_median(v, t->rounds);
}

double bench_table_ratio(const struct bench_table *t, size_t side, size_t base)
{
	double v[BENCH_ROUNDS_MAX];
	size_t r;

	for (r = 0; r < t->rounds; r++)
		v[r] = t->v[r][side] / t->v[r][base];
	return bench_median(v, t->rounds);
}

static void put(struct bench_line *l, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
static void put(struct bench_line *l, const char *format, ...)
{
	size_t room = sizeof(l->text) - l->used;
	va_list ap;
	int n;

	va_start(ap, format);
	n = vsnprintf(l->text + l->used, room, format, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= room)
		bench_die("a result line is longer than %zu bytes", sizeof(l->text));
	l->used += (size_t)n;
}

static void put_text(struct bench_line *l, const char *text)
{
	put(l, "\"");
	for (; *text; text++)
		if (*text == '"' || *text == '\\')
			put(l, "\\%c", *text);
		else if ((unsigned char)*text < ' ')
			put(l, "\\u%04x", *text);
		else
			put(l, "%c", *text);
	put(l, "\"");
}

static void put_key(struct bench_line *l, const char *key)
{
	put(l, ", ");
	put_text(l, key);
	put(l, ": ");
}

void bench_line_open(struct bench_line *l, const char *bench)
{
	l->used = 0;
	put(l, "{\"bench\": ");
	put_text(l, bench);
}

void bench_line_str(struct bench_line *l, const char *key, const char *value)
{
	put_key(l, key);
	put_text(l, value);
}

void bench_line_num(struct bench_line *l, const char *key, double value, int decimals)
{
	put_key(l, key);
	put(l, "%.*f", decimals, value);
}

void bench_line_int(struct bench_line *l, const char *key, uint64_t value)
{
	put_key(l, key);
	put(l, "%llu", (unsigned long long)value);
}

void bench_line_bool(struct bench_line *l, const char *key, bool value)
{
	put_key(l, key);
	put(l, "%s", value ? "true" : "false");
}

void bench_line_null(struct bench_line *l, const char *key)
{
	put_key(l, key);
	put(l, "null");
}

void bench_line_print(struct bench_line *l)
{
	put(l, "}");
	puts(l->text);
	fflush(stdout);
}
