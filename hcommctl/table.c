/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of a view, for people and for programs.
 *
 * Rows are gathered before the first byte is printed: a list that changes while its pages are
 * read is then simply read again, and a failure never leaves half a table behind. The public
 * structs of hcomm/views.h are kept as they came; proto/print.h knows their fields, so this file
 * knows no view by name and prints no cell by itself.
 *
 * For people an absent thing is "-" (no rank, no domain, empty text), so that a table can be cut
 * by blanks. JSON has every field of the view as it is. Colours are for a terminal, and NO_COLOR
 * ends them; they repeat what the words say.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <libsmartcols/libsmartcols.h>
#include "table.h"
#include "verdict.h"

#define FIELDS_MAX  64
#define STALE_TRIES 5

struct ctl_rows {
	const struct hc_print_view *view;
	const struct hc_print_field *fields[FIELDS_MAX]; /* the columns wanted */
	unsigned nfields;
	char *rows; /* each view->size bytes */
	size_t count, room;
};

/* ---- columns ---- */

/* "events_lost", "EVENTS-LOST" and "events-lost" are one. */
static bool same_word(const char *a, const char *b, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		int x = a[i] == '_' ? '-' : tolower((unsigned char)a[i]);
		int y = b[i] == '_' ? '-' : tolower((unsigned char)b[i]);

		if (x != y)
			return false;
	}
	return !a[len];
}

static const struct hc_print_field *field_named(const struct hc_print_view *v, const char *word,
						size_t len)
{
	for (unsigned i = 0; i < v->nfields; i++) {
		if (same_word(v->fields[i].heading, word, len) ||
		    same_word(v->fields[i].name, word, len))
			return &v->fields[i];
	}
	return NULL;
}

static void say_columns(const struct hc_print_view *v, const char *word, size_t len)
{
	char list[1024] = "";

	for (unsigned i = 0; i < v->nfields; i++)
		snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s%s", i ? ", " : "",
			 v->fields[i].heading);
	ctl_say("unknown column '%.*s'; wanted: %s", (int)(len < 64 ? len : 64), word, list);
}

static bool pick(struct ctl_rows *r, const char *columns)
{
	for (const char *p = columns; *p;) {
		size_t len = strcspn(p, ",");
		const struct hc_print_field *f = field_named(r->view, p, len);

		if (!f) {
			say_columns(r->view, p, len);
			return false;
		}
		if (r->nfields == FIELDS_MAX) {
			ctl_say("more than %d columns", FIELDS_MAX);
			return false;
		}
		r->fields[r->nfields++] = f;
		p += len;
		p += *p == ',';
	}
	if (!r->nfields)
		say_columns(r->view, columns, 0);
	return r->nfields;
}

struct ctl_rows *ctl_rows_new(const struct ctl *c, uint32_t view, const char *columns)
{
	struct ctl_rows *r = calloc(1, sizeof(*r));

	if (!r) {
		ctl_say("out of memory");
		return NULL;
	}
	r->view = hc_view_public(view);
	if (c->json && c->columns)
		ctl_say("-o is for tables; --json always has every field");
	else if (r->view && pick(r, c->columns ? c->columns : columns))
		return r;
	return ctl_rows_free(r);
}

struct ctl_rows *ctl_rows_free(struct ctl_rows *r)
{
	if (r)
		free(r->rows);
	free(r);
	return NULL;
}

/* ---- gathering ---- */

static int keep(const void *row, void *context)
{
	struct ctl_rows *r = context;
	uint32_t size;
	char *to;

	if (r->count == r->room) {
		size_t room = r->room ? r->room * 2 : 16;
		char *rows = reallocarray(r->rows, room, r->view->size);

		if (!rows)
			return HCOMM_E_NO_MEMORY;
		r->rows = rows;
		r->room = room;
	}
	memcpy(&size, row, sizeof(size));
	if (size > r->view->size)
		size = r->view->size;
	to = r->rows + r->count * r->view->size;
	memset(to, 0, r->view->size);
	memcpy(to, row, size);
	memcpy(to, &size, sizeof(size));
	r->count++;
	return 0;
}

int ctl_rows_query(struct ctl *c, struct ctl_rows *r, const struct hcomm_filter *filter)
{
	int error = HCOMM_E_STALE;

	for (int i = 0; i < STALE_TRIES && error == HCOMM_E_STALE; i++) {
		r->count = 0;
		error = hcomm_query(c->session, r->view->number, filter, keep, r);
	}
	return error ? ctl_fail(error, r->view->name) : CTL_OK;
}

size_t ctl_rows_count(const struct ctl_rows *r)
{
	return r->count;
}

const void *ctl_rows_at(const struct ctl_rows *r, size_t i)
{
	return i < r->count ? r->rows + i * r->view->size : NULL;
}

void ctl_rows_sort(struct ctl_rows *r, int (*compare)(const void *, const void *))
{
	if (r->count)
		qsort(r->rows, r->count, r->view->size, compare);
}

void ctl_rows_only(struct ctl_rows *r, size_t i)
{
	if (i)
		memcpy(r->rows, r->rows + i * r->view->size, r->view->size);
	r->count = 1;
}

/* ---- cells ---- */

static const char *color_of(const char *text)
{
	static const struct {
		const char *word, *color;
	} colors[] = {
		{"ACTIVE", "green"},    {"ok", "green"},       {"ready", "green"},
		{"DAMAGED", "red"},     {"FAILED", "red"},     {"degraded", "red"},
		{"offline", "red"},     {"dead", "red"},       {"SUSPENDED", "yellow"},
		{"DRAINING", "yellow"}, {"FORMING", "yellow"}, {"detached", "yellow"},
		{"expected", "yellow"},
	};

	for (size_t i = 0; i < sizeof(colors) / sizeof(colors[0]); i++) {
		if (!strcmp(text, colors[i].word))
			return colors[i].color;
	}
	return NULL;
}

void ctl_cell(const struct hc_print_field *f, const void *row, char *buf, size_t size)
{
	hc_print_cell(f, row, buf, size);
	if (!buf[0] || (f->type == HC_T_i32 && !strcmp(buf, "-1")) ||
	    (f->type == HC_T_id && strspn(buf, "0") == strlen(buf)))
		snprintf(buf, size, "-");
}

static bool colors_wanted(void)
{
	const char *no = getenv("NO_COLOR"), *term = getenv("TERM");

	return isatty(STDOUT_FILENO) && !(no && no[0]) && term && strcmp(term, "dumb");
}

static bool is_number(const struct hc_print_field *f)
{
	return f->type != HC_T_name && f->type != HC_T_text && f->type != HC_T_id;
}

static int set_cell(struct libscols_line *line, size_t column, const struct hc_print_field *f,
		    const void *row)
{
	char text[HC_CELL_MAX];
	const char *color;

	ctl_cell(f, row, text, sizeof(text));
	color = color_of(text);
	if (color)
		scols_cell_set_color(scols_line_get_cell(line, column), color);
	return scols_line_set_data(line, column, text);
}

static struct libscols_table *new_table(void)
{
	struct libscols_table *t = scols_new_table();

	if (t && colors_wanted())
		scols_table_enable_colors(t, 1);
	return t;
}

/* The library prints nothing for a table without rows; its headings still say what was asked. */
static int print_headings(const struct ctl_rows *r)
{
	for (unsigned i = 0; i < r->nfields; i++)
		printf("%s%s", i ? " " : "", r->fields[i]->heading);
	putchar('\n');
	return CTL_OK;
}

/* For a script, which gets no headings, cells are not moved to the right either. */
static int add_column(struct libscols_table *t, const struct ctl *c, const struct hc_print_field *f)
{
	int flags = f->type == HC_T_text ? SCOLS_FL_WRAP : 0;

	if (is_number(f) && !c->no_headings)
		flags = SCOLS_FL_RIGHT;
	return scols_table_new_column(t, c->no_headings ? "" : f->heading, 0, flags) ? 0 : -ENOMEM;
}

static int print_table(const struct ctl *c, const struct ctl_rows *r)
{
	struct libscols_table *t;
	int bad;

	if (!r->count)
		return c->no_headings ? CTL_OK : print_headings(r);
	t = new_table();
	bad = t ? scols_table_enable_noheadings(t, c->no_headings) : -ENOMEM;
	for (unsigned i = 0; !bad && i < r->nfields; i++)
		bad = add_column(t, c, r->fields[i]);
	for (size_t k = 0; !bad && k < r->count; k++) {
		struct libscols_line *line = scols_table_new_line(t, NULL);

		bad = line ? 0 : -ENOMEM;
		for (unsigned i = 0; !bad && i < r->nfields; i++)
			bad = set_cell(line, i, r->fields[i], ctl_rows_at(r, k));
	}
	if (!bad)
		bad = scols_print_table(t);
	scols_unref_table(t);
	if (bad)
		ctl_say("table: %s", strerror(-bad));
	return bad ? CTL_DEGRADED : CTL_OK;
}

int ctl_rows_list(const struct ctl *c, const struct ctl_rows *r)
{
	char text[HC_CELL_MAX];
	int width = 0;

	for (unsigned i = 0; i < r->nfields; i++) {
		int len = (int)strlen(r->fields[i]->heading);

		width = len > width ? len : width;
	}
	for (size_t k = 0; k < r->count; k++) {
		for (unsigned i = 0; i < r->nfields; i++) {
			const struct hc_print_field *f = r->fields[i];
			const char *color;

			ctl_cell(f, ctl_rows_at(r, k), text, sizeof(text));
			color = colors_wanted() ? color_of(text) : NULL;
			if (!c->no_headings)
				printf("%-*s  ", width, f->heading);
			printf("%s%s%s\n",
			       !color            ? ""
			       : color[0] == 'g' ? "\033[32m"
			       : color[0] == 'r' ? "\033[31m"
						 : "\033[33m",
			       text, color ? "\033[0m" : "");
		}
	}
	return CTL_OK;
}

/* ---- JSON ---- */

static void flush_text(struct hc_text *t)
{
	fwrite(t->buf, 1, t->len, stdout);
	hc_text_init(t, t->buf, t->size);
}

static char *json_buffer(struct hc_text *t)
{
	char *buf = malloc(HC_JSON_ROW_MAX);

	if (buf)
		hc_text_init(t, buf, HC_JSON_ROW_MAX);
	else
		ctl_say("out of memory");
	return buf;
}

int ctl_rows_json_items(const struct ctl_rows *r)
{
	struct hc_text t;
	char *buf = json_buffer(&t);

	if (!buf)
		return CTL_DEGRADED;
	for (size_t k = 0; k < r->count; k++) {
		hc_json_row(&t, r->view, ctl_rows_at(r, k), !k);
		flush_text(&t);
	}
	free(buf);
	return CTL_OK;
}

static int print_json(const struct ctl_rows *r)
{
	struct hc_text t;
	char *buf = json_buffer(&t);
	int status;

	if (!buf)
		return CTL_DEGRADED;
	hc_json_begin(&t, r->view);
	flush_text(&t);
	status = ctl_rows_json_items(r);
	hc_json_end(&t);
	flush_text(&t);
	free(buf);
	return status;
}

int ctl_rows_print(const struct ctl *c, const struct ctl_rows *r)
{
	return c->json ? print_json(r) : print_table(c, r);
}

/* ---- the whole ---- */

bool ctl_watch_again(const struct ctl *c)
{
	struct timespec wait = {.tv_sec = c->watch_ms / 1000,
				.tv_nsec = (long)(c->watch_ms % 1000) * 1000000};

	if (!c->watch_ms)
		return false;
	fflush(stdout);
	nanosleep(&wait, NULL);
	if (ferror(stdout))
		return false;
	if (isatty(STDOUT_FILENO))
		fputs("\033[H\033[2J", stdout);
	else if (!c->json)
		putchar('\n');
	return true;
}

int ctl_show(struct ctl *c, uint32_t view, const struct hcomm_filter *filter, const char *columns)
{
	struct ctl_rows *r = ctl_rows_new(c, view, columns);
	int status = r ? ctl_open(c) : CTL_USAGE;

	while (!status) {
		status = ctl_rows_query(c, r, filter);
		if (!status)
			status = ctl_rows_print(c, r);
		if (status || !ctl_watch_again(c))
			break;
	}
	ctl_rows_free(r);
	return status;
}
