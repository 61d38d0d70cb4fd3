/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hcommctl config: the daemon's configuration, read offline.
 *
 *     config check [FILE]       is it valid; every fault on a line of its own
 *     config show [FILE]        the value of every option and the place that it comes from
 *     config diff OLD NEW       what differs, and whether a reload is enough
 *
 * It reads with the daemon's own code, conf.d and environment included, and needs no daemon: a
 * configuration can be tried before it is used, and a setting that nobody remembers can be found
 * also when the daemon does not start because of it. The environment is that of the caller, so a
 * variable in the unit of the service is not seen here; the origin column tells such values apart.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include <jansson.h>
#include <libsmartcols/libsmartcols.h>

#include "conffile.h"
#include "ctl.h"

#define SCHEMA_VERSION 1
#define COLUMNS_MAX    5

/* ---- reading ---- */

/* CTL_OK, or said why. */
static int load(const char *file, struct hc_conf *conf)
{
	struct hc_conf_source src = {.file = file, .env = environ};
	struct hc_conf_error *err = calloc(1, sizeof(*err));
	int r = err ? hc_conf_load(conf, &src, err) : -1;

	if (r < 0)
		ctl_say("not enough memory to read the configuration");
	if (r == HC_CONF_REFUSED) {
		for (unsigned i = 0; i < err->count; i++)
			ctl_say("%s", err->line[i]);
		if (err->more)
			ctl_say("and %u more", err->more);
	}
	free(err);
	return r ? CTL_USAGE : CTL_OK;
}

static const char *unit_of(const struct hc_conf_value *v)
{
	return v->opt && v->opt->kind == HC_KIND_INT ? v->opt->unit : "";
}

static bool reloadable(const struct hc_conf_value *v)
{
	size_t n;

	/* a section can come and go by reload when its options can */
	return v->opt ? v->opt->reloadable : hc_opt_table(v->section, &n)->reloadable;
}

static const char *origin_of(const struct hc_conf *conf, const struct hc_conf_value *v, char *buf,
			     size_t size)
{
	return hc_conf_origin_text(conf, v->opt, v->origin, buf, size);
}

/* ---- JSON ---- */

static json_t *json_value(const struct hc_conf *conf, const struct hc_conf_value *v)
{
	char origin[HC_CONF_ORIGIN_MAX];

	return json_pack("{ss ss ss ss sb}", "name", v->label, "value", v->text, "unit", unit_of(v),
			 "origin", origin_of(conf, v, origin, sizeof(origin)), "reloadable",
			 (int)reloadable(v));
}

/* Takes the reference to root. */
static int json_print(json_t *root)
{
	int r = root ? json_dumpf(root, stdout, JSON_INDENT(2)) : -1;

	json_decref(root);
	if (r) {
		ctl_say("the configuration cannot be written as JSON: is all of it UTF-8?");
		return CTL_DEGRADED;
	}
	putchar('\n');
	return CTL_OK;
}

static int show_json(const struct hc_conf *conf)
{
	json_t *options = json_array();
	struct hc_conf_value v;
	uint64_t cursor = 0;
	int bad = 0;

	while (hc_conf_next(conf, &cursor, &v))
		bad |= json_array_append_new(options, json_value(conf, &v));
	if (bad) {
		json_decref(options);
		return json_print(NULL);
	}
	return json_print(
		json_pack("{si so}", "schema_version", SCHEMA_VERSION, "options", options));
}

/* ---- tables ---- */

struct table {
	struct libscols_table *t;
	size_t column[COLUMNS_MAX]; /* the headings that are shown, in order */
	size_t count;
};

/* Picks the columns of -o, or all. False: said why. */
static bool pick_columns(struct table *t, const char *const *heads, size_t nheads, const char *want)
{
	char item[32];

	for (t->count = 0; !want && t->count < nheads; t->count++)
		t->column[t->count] = t->count;
	while (want && hc_conf_item(&want, item, sizeof(item))) {
		size_t i = 0;

		while (i < nheads && strcasecmp(heads[i], item))
			i++;
		if (i == nheads || t->count == COLUMNS_MAX) {
			const char *near = ctl_nearest(item, heads, nheads);

			ctl_say("-o: no column '%s'%s%s", item, near ? "; the nearest is " : "",
				near ? near : "");
			return false;
		}
		t->column[t->count++] = i;
	}
	return true;
}

static int table_start(const struct ctl *c, struct table *t, const char *const *heads,
		       size_t nheads)
{
	memset(t, 0, sizeof(*t));
	if (!pick_columns(t, heads, nheads, c->columns))
		return CTL_USAGE;
	t->t = scols_new_table();
	if (!t->t) {
		ctl_say("not enough memory for a table");
		return CTL_DEGRADED;
	}
	scols_table_enable_noheadings(t->t, c->no_headings);
	for (size_t i = 0; i < t->count; i++)
		scols_table_new_column(t->t, heads[t->column[i]], 0, 0);
	return CTL_OK;
}

static void table_row(struct table *t, const char *const *cells)
{
	struct libscols_line *line = scols_table_new_line(t->t, NULL);

	for (size_t i = 0; line && i < t->count; i++)
		scols_line_set_data(line, i, cells[t->column[i]]);
}

static int table_end(struct table *t)
{
	int r = scols_print_table(t->t);

	scols_unref_table(t->t);
	return r ? CTL_DEGRADED : CTL_OK;
}

static int show_table(const struct ctl *c, const struct hc_conf *conf)
{
	static const char *const heads[] = {"NAME", "VALUE", "UNIT", "ORIGIN", "CHANGE BY"};
	struct hc_conf_value v;
	struct table t;
	uint64_t cursor = 0;
	int r = table_start(c, &t, heads, COLUMNS_MAX);

	if (r)
		return r;
	while (hc_conf_next(conf, &cursor, &v)) {
		char origin[HC_CONF_ORIGIN_MAX];
		const char *cells[] = {v.label, v.text, unit_of(&v),
				       origin_of(conf, &v, origin, sizeof(origin)),
				       reloadable(&v) ? "reload" : "restart"};

		table_row(&t, cells);
	}
	return table_end(&t);
}

/* ---- verbs ---- */

static int check(const char *file)
{
	struct hc_conf conf;
	int r = load(file, &conf);

	if (r)
		return r;
	printf("%s: ok, %" PRIu32 " file%s read\n", file ? file : HC_CONF_FILE_DEFAULT, conf.nfiles,
	       conf.nfiles == 1 ? "" : "s");
	hc_conf_fini(&conf);
	return CTL_OK;
}

static int show(const struct ctl *c, const char *file)
{
	struct hc_conf conf;
	int r = load(file, &conf);

	if (r)
		return r;
	r = c->json ? show_json(&conf) : show_table(c, &conf);
	hc_conf_fini(&conf);
	return r;
}

struct changes {
	struct table table;
	json_t *json;
	unsigned count;
};

static void add_change(void *arg, const struct hc_conf_change *change)
{
	struct changes *all = arg;
	const char *cells[] = {change->label, change->from, change->to,
			       change->reloadable ? "reload" : "restart"};

	all->count++;
	if (all->json)
		json_array_append_new(all->json, json_pack("{ss ss ss sb}", "name", change->label,
							   "old", change->from, "new", change->to,
							   "reloadable", (int)change->reloadable));
	else
		table_row(&all->table, cells);
}

static int show_changes(const struct ctl *c, const struct hc_conf *old, const struct hc_conf *new)
{
	static const char *const heads[] = {"NAME", "OLD", "NEW", "CHANGE BY"};
	struct changes all = {.json = c->json ? json_array() : NULL};
	int r = c->json ? CTL_OK : table_start(c, &all.table, heads, 4);

	if (r)
		return r;
	hc_conf_diff(old, new, add_change, &all);
	if (c->json)
		r = json_print(json_pack("{si so}", "schema_version", SCHEMA_VERSION, "changes",
					 all.json));
	else
		r = table_end(&all.table);
	return r || !all.count ? r : CTL_DEGRADED;
}

static int diff(const struct ctl *c, const char *old_file, const char *new_file)
{
	struct hc_conf old, new;
	int r = load(old_file, &old);

	if (r)
		return r;
	r = load(new_file, &new);
	if (!r) {
		r = show_changes(c, &old, &new);
		hc_conf_fini(&new);
	}
	hc_conf_fini(&old);
	return r;
}

int ctl_config(struct ctl *c, int argc, char **argv)
{
	const char *verb = argc > 1 ? argv[1] : "";

	for (int i = 2; i < argc; i++) {
		if (argv[i][0] == '-')
			return ctl_usage("config %s: unknown option %s", verb, argv[i]);
	}
	if (!strcmp(verb, "check") && argc <= 3)
		return check(argv[2]);
	if (!strcmp(verb, "show") && argc <= 3)
		return show(c, argv[2]);
	if (!strcmp(verb, "diff") && argc == 4)
		return diff(c, argv[2], argv[3]);
	return ctl_usage("usage: hcommctl config check [FILE] | show [FILE] | diff OLD NEW");
}
