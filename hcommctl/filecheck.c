/* SPDX-License-Identifier: Apache-2.0 */
/* Checking and showing files; see filecheck.h. */
#include <libsmartcols/libsmartcols.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>
#include "filecheck.h"

#define COLUMNS_MAX 12

static int no_memory(void)
{
	ctl_say("out of memory");
	return CTL_DEGRADED;
}

int ctl_print_json(json_t *value)
{
	char *text = value ? json_dumps(value, JSON_COMPACT) : NULL;

	json_decref(value);
	if (!text)
		return no_memory();
	puts(text);
	free(text);
	return CTL_OK;
}

/* ---- verdicts ---- */

static int status_of(const struct hc_verdict *v)
{
	if (v->kind == HC_V_NONE)
		return CTL_OK;
	return v->kind == HC_V_NOT_READY ? CTL_AGAIN : CTL_USAGE;
}

static void say_warnings(const struct hc_verdict *v, const char *file)
{
	char line[1024];
	uint32_t i;

	for (i = 0; i < v->nwarnings; i++) {
		hc_warning_line(&v->warnings[i], file, line, sizeof(line));
		fprintf(stderr, "%s\n", line);
	}
	if (v->suppressed)
		fprintf(stderr, "%s: warning: %u more warnings are not shown\n", HC_CLIP(file),
			v->suppressed);
}

static int say_verdict(const struct ctl *c, const struct hc_verdict *v, const char *file)
{
	char line[1024];
	int r;

	if (c->json) {
		r = ctl_print_json(hc_verdict_json(v, file));
		return r ? r : status_of(v);
	}
	hc_verdict_line(v, file, line, sizeof(line));
	fflush(stdout);
	fprintf(v->kind == HC_V_NONE ? stdout : stderr, "%s\n", line);
	say_warnings(v, file);
	return status_of(v);
}

static int one_file(struct ctl *c, const struct file_noun *n, char *file, bool show)
{
	const char *name = strcmp(file, "-") ? file : "(standard input)";
	struct hc_jsontext text;
	struct hc_verdict v;
	int r, status = CTL_OK;

	hc_verdict_init(&v);
	if (strcmp(file, "-"))
		r = hc_jsontext_load(file, n->bytes_max, &text, &v);
	else
		r = hc_jsontext_load_fd(STDIN_FILENO, n->bytes_max, &text, &v);
	if (!r) {
		r = n->read(c, name, &text, &v, show, &status);
		hc_jsontext_fini(&text);
	}
	if (r || !show)
		return say_verdict(c, &v, name);
	return status;
}

/* ---- words ---- */

/* Drops "--"; refuses what looks like an option, since main took the ones that exist. */
static int take_words(int argc, char **argv, int *count)
{
	bool raw = false;
	int i;

	*count = 0;
	for (i = 2; i < argc; i++) {
		if (!raw && !strcmp(argv[i], "--")) {
			raw = true;
			continue;
		}
		if (!raw && argv[i][0] == '-' && argv[i][1])
			return ctl_usage("unknown option '%s' of %s %s", argv[i], argv[0], argv[1]);
		argv[2 + (*count)++] = argv[i];
	}
	return CTL_OK;
}

static int check_all(struct ctl *c, const struct file_noun *n, char **files, int count)
{
	int worst = CTL_OK, r, i;

	for (i = 0; i < count; i++) {
		r = one_file(c, n, files[i], false);
		if (worst != CTL_USAGE && r)
			worst = r;
	}
	return worst;
}

int ctl_files(struct ctl *c, const struct file_noun *n, int argc, char **argv)
{
	const bool show = argc > 1 && !strcmp(argv[1], "show");
	int count, r;

	if (argc < 2 || (!show && strcmp(argv[1], "check")))
		return ctl_usage("%s %s: wanted: check FILE... or show FILE", n->noun,
				 argc > 1 ? argv[1] : "needs a verb");
	r = take_words(argc, argv, &count);
	if (r)
		return r;
	if (!count)
		return ctl_usage("%s %s needs a FILE (- for standard input)", n->noun, argv[1]);
	if (show && count > 1)
		return ctl_usage("'%s' is one word too many; %s show takes one FILE", argv[3],
				 n->noun);
	return show ? one_file(c, n, argv[2], true) : check_all(c, n, argv + 2, count);
}

/* ---- tables ---- */

struct file_table {
	struct libscols_table *scols;
	unsigned pick[COLUMNS_MAX]; /* which cell each shown column has */
	unsigned ncols;
};

/* The columns of -o, in its order; all without it. */
static bool pick_columns(struct file_table *t, const char *names, const char *const *headings,
			 unsigned ncols)
{
	const char *p = names;
	unsigned i;
	size_t n;

	for (i = 0; !names && i < ncols; i++)
		t->pick[t->ncols++] = i;
	while (p) {
		n = strcspn(p, ",");
		for (i = 0; i < ncols; i++)
			if (strlen(headings[i]) == n && !strncasecmp(p, headings[i], n))
				break;
		if (i == ncols || t->ncols == COLUMNS_MAX) {
			ctl_say("unknown column '%.*s'", (int)(n < 64 ? n : 64), p);
			return false;
		}
		t->pick[t->ncols++] = i;
		p = p[n] ? p + n + 1 : NULL;
	}
	return true;
}

static bool add_columns(struct file_table *t, const char *const *headings, const bool *right)
{
	unsigned i;

	for (i = 0; i < t->ncols; i++)
		if (!scols_table_new_column(t->scols, headings[t->pick[i]], 0,
					    right[t->pick[i]] ? SCOLS_FL_RIGHT : 0))
			return false;
	return true;
}

static void table_free(struct file_table *t)
{
	scols_unref_table(t->scols);
	free(t);
}

struct file_table *ctl_table_new(const struct ctl *c, const char *const *headings,
				 const bool *right, unsigned ncols)
{
	struct file_table *t = calloc(1, sizeof(*t));

	if (!t || !(t->scols = scols_new_table())) {
		free(t);
		no_memory();
		return NULL;
	}
	if (!pick_columns(t, c->columns, headings, ncols)) {
		table_free(t);
		return NULL;
	}
	if (!add_columns(t, headings, right)) {
		table_free(t);
		no_memory();
		return NULL;
	}
	scols_table_enable_noheadings(t->scols, c->no_headings);
	return t;
}

bool ctl_table_row(struct file_table *t, const char *const *cells)
{
	struct libscols_line *line = scols_table_new_line(t->scols, NULL);
	unsigned i;

	for (i = 0; line && i < t->ncols; i++)
		if (scols_line_set_data(line, i, cells[t->pick[i]]))
			return false;
	return line != NULL;
}

int ctl_table_print(struct file_table *t)
{
	int r = scols_print_table(t->scols);

	table_free(t);
	return r ? no_memory() : CTL_OK;
}
