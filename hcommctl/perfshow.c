/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What hcommctl perf prints: a table of sizes, or one JSON document.
 *
 * Times are microseconds in the table and nanoseconds in JSON, as they were measured. A bandwidth
 * is megabytes (10^6) a second one way; of messages without a byte there is none, "-" or null.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>
#include <libsmartcols/libsmartcols.h>
#include "perf.h"
#include "print.h"

#define COLUMNS_MAX 16
#define CELL_BYTES  32

static const char *const headings[] = {"SIZE",   "COUNT",  "MIN-US", "AVG-US",    "P50-US",
				       "P99-US", "MAX-US", "MB/S",   "MESSAGES/S"};
#define COLUMNS (sizeof(headings) / sizeof(headings[0]))

/* ---- columns ---- */

static bool column_named(const char *word, size_t len, size_t *column)
{
	for (size_t i = 0; i < COLUMNS; i++) {
		*column = i;
		if (strlen(headings[i]) == len && !strncasecmp(headings[i], word, len))
			return true;
	}
	return false;
}

/* The columns wanted; 0: `*bad` is the word that is none. */
static size_t columns_of(const struct ctl *c, size_t columns[COLUMNS_MAX], const char **bad)
{
	size_t n = 0;

	if (!c->columns) {
		while (n < COLUMNS)
			columns[n] = n, n++;
		return n;
	}
	for (const char *p = c->columns; *p; p += *p == ',') {
		size_t len = strcspn(p, ",");

		*bad = p;
		if (n == COLUMNS_MAX || !column_named(p, len, &columns[n++]))
			return 0;
		p += len;
	}
	return n;
}

bool perf_columns(const struct ctl *c)
{
	size_t columns[COLUMNS_MAX];
	const char *bad = "";

	if (c->json && c->columns) {
		ctl_say("-o is for tables; --json always has every field");
		return false;
	}
	if (columns_of(c, columns, &bad))
		return true;
	ctl_say("unknown column '%.*s'; wanted: SIZE, COUNT, MIN-US, AVG-US, P50-US, P99-US, "
		"MAX-US, MB/S, MESSAGES/S",
		(int)strcspn(bad, ","), bad);
	return false;
}

/* ---- the table ---- */

static double per_second(const struct perf_row *row, double what)
{
	return row->stream ? what * row->count * 1e9 / (double)row->stream : 0;
}

static void cell(const struct perf_row *row, size_t column, char text[CELL_BYTES])
{
	const double us[] = {(double)row->min, (double)row->sum / row->count, (double)row->p50,
			     (double)row->p99, (double)row->max};

	if (column == 0)
		snprintf(text, CELL_BYTES, "%" PRIu32, row->bytes);
	else if (column == 1)
		snprintf(text, CELL_BYTES, "%" PRIu32, row->count);
	else if (column < 7)
		snprintf(text, CELL_BYTES, "%.2f", us[column - 2] / 1000);
	else if (column == 7 && !row->bytes)
		snprintf(text, CELL_BYTES, "-");
	else if (column == 7)
		snprintf(text, CELL_BYTES, "%.1f", per_second(row, row->bytes / 1e6));
	else
		snprintf(text, CELL_BYTES, "%.0f", per_second(row, 1));
}

static int add_rows(const struct perf *p, struct libscols_table *t, const size_t *columns, size_t n)
{
	char text[CELL_BYTES];

	for (uint32_t k = 0; k < p->nrows; k++) {
		struct libscols_line *line = scols_table_new_line(t, NULL);

		for (size_t i = 0; i < n; i++) {
			cell(&p->rows[k], columns[i], text);
			if (!line || scols_line_set_data(line, i, text))
				return -1;
		}
	}
	return 0;
}

static int show_table(const struct perf *p)
{
	struct libscols_table *t = scols_new_table();
	const int flags = p->c->no_headings ? 0 : SCOLS_FL_RIGHT;
	size_t columns[COLUMNS_MAX], n;
	const char *bad;
	int r = t ? scols_table_enable_noheadings(t, p->c->no_headings) : -1;

	n = columns_of(p->c, columns, &bad);
	for (size_t i = 0; !r && i < n; i++)
		r = scols_table_new_column(t, headings[columns[i]], 0, flags) ? 0 : -1;
	if (!r)
		r = add_rows(p, t, columns, n);
	if (!r && p->nrows)
		r = scols_print_table(t);
	scols_unref_table(t);
	if (r)
		ctl_say("the table could not be made");
	return r ? CTL_DEGRADED : CTL_OK;
}

/* ---- JSON ---- */

static void json_head(const struct perf *p, const char *role)
{
	char name[HCOMM_NAME_BYTES * 6], link[HCOMM_NAME_BYTES * 6];
	struct hc_text t;

	hc_text_init(&t, name, sizeof(name));
	hc_json_string(&t, p->is.name, strlen(p->is.name));
	hc_text_init(&t, link, sizeof(link));
	hc_json_string(&t, p->info.link, strlen(p->info.link));
	printf("{\"schema_version\":%d,\"role\":\"%s\",\"domain\":\"%016" PRIx64 "\",\"name\":%s,"
	       "\"channel\":\"%016" PRIx64 "\",\"link\":%s,\"mbps\":%u,\"buffer_bytes\":%u,",
	       HC_SCHEMA_VERSION, role, p->is.id, name, p->info.id, link, p->info.bandwidth_mbps,
	       p->info.buffer_bytes);
}

static void show_json(const struct perf *p)
{
	json_head(p, "client");
	printf("\"rows\":[");
	for (uint32_t i = 0; i < p->nrows; i++) {
		const struct perf_row *r = &p->rows[i];
		char mbps[CELL_BYTES];

		cell(r, 7, mbps);
		printf("%s\n{\"bytes\":%" PRIu32 ",\"count\":%" PRIu32 ",\"min_ns\":%" PRIu64
		       ",\"avg_ns\":%" PRIu64 ",\"p50_ns\":%" PRIu64 ",\"p99_ns\":%" PRIu64
		       ",\"max_ns\":%" PRIu64 ",\"mbps\":%s,\"messages_per_s\":%.0f}",
		       i ? "," : "", r->bytes, r->count, r->min, r->sum / r->count, r->p50, r->p99,
		       r->max, r->bytes ? mbps : "null", per_second(r, 1));
	}
	printf("\n]}\n");
}

int perf_show(const struct perf *p)
{
	if (!p->c->json)
		return show_table(p);
	show_json(p);
	return CTL_OK;
}

void perf_show_server(const struct perf *p)
{
	if (p->c->json) {
		json_head(p, "server");
		printf("\"messages\":%" PRIu64 "}\n", p->served);
		return;
	}
	printf("served %" PRIu64 " messages over %s\n", p->served, p->info.link);
}

void perf_progress(const struct perf *p, const char *fmt, ...)
{
	va_list args;

	if (p->c->json || !isatty(STDERR_FILENO))
		return;
	fputs("\r\033[K", stderr);
	va_start(args, fmt);
	if (fmt)
		vfprintf(stderr, fmt, args);
	va_end(args);
	fflush(stderr);
}
