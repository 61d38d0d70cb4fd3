/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The layers of the configuration, what follows from what, and what does not go together.
 *
 * The order of work is the precedence: each layer writes over the one before and leaves its
 * origin, so nothing is ever merged by comparing. After the last layer the options that nobody
 * set may follow from others (a profile, an instance), and only then are options checked against
 * each other: a rule that looks at two options must see the values that the daemon will use.
 */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "confread.h"

/* ---- layers ---- */

static int set_defaults(struct hc_conf *c)
{
	struct hc_conf_scope s = hc_conf_scope_top(c);
	char why[HC_CONF_WHY_MAX];

	for (size_t i = 0; i < s.count; i++) {
		if (hc_opt_parse(&s.opts[i], s.opts[i].def, s.base + s.opts[i].offset, why,
				 sizeof(why)))
			return -EINVAL; /* a row that refuses its own default; a test walks them */
	}
	return HC_CONF_OK;
}

static int read_open(struct hc_conf *c, FILE *f, const char *name, struct hc_conf_error *err)
{
	uint32_t index;
	int r = hc_conf_add_file(c, name, &index, err);

	if (!r)
		r = hc_conf_read(c, f, index, err);
	return r < 0 ? r : HC_CONF_OK;
}

static int read_path(struct hc_conf *c, const char *path, bool must, struct hc_conf_error *err)
{
	FILE *f = fopen(path, "re");
	int r;

	if (!f && errno == ENOMEM)
		return -ENOMEM;
	if (!f && errno == ENOENT && !must)
		return HC_CONF_OK;
	if (!f) {
		hc_conf_complain(err, "%s: cannot be read: %s", path, strerror(errno));
		return HC_CONF_OK;
	}
	r = read_open(c, f, path, err);
	fclose(f);
	return r;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool is_conf(const char *name)
{
	size_t len = strlen(name);

	return name[0] != '.' && len > 5 && !strcmp(name + len - 5, ".conf");
}

struct names {
	char **list;
	uint32_t count;
};

static void names_free(struct names *n)
{
	for (uint32_t i = 0; i < n->count; i++)
		free(n->list[i]);
	free(n->list);
}

static int names_add(struct names *n, const char *dir, const char *name)
{
	void *list = n->list;
	size_t len = strlen(dir) + strlen(name) + 2;
	char *path;
	int r = hc_conf_grow(&list, n->count, sizeof(*n->list));

	if (r < 0)
		return r;
	n->list = list;
	path = realloc(NULL, len);
	if (!path)
		return -ENOMEM;
	snprintf(path, len, "%s/%s", dir, name);
	n->list[n->count++] = path;
	return HC_CONF_OK;
}

/* Names of the files that count, sorted. */
static int names_read(struct names *n, const char *path, struct hc_conf_error *err)
{
	DIR *d = opendir(path);
	struct dirent *e;
	int r = HC_CONF_OK;

	if (!d && errno == ENOMEM)
		return -ENOMEM;
	if (!d && errno != ENOENT)
		hc_conf_complain(err, "%s: cannot be read: %s", path, strerror(errno));
	if (!d)
		return HC_CONF_OK;
	/* one more than fits is enough to say that there are too many */
	while (!r && n->count <= HC_CONF_FILES_MAX && (e = readdir(d)) != NULL) {
		if (is_conf(e->d_name))
			r = names_add(n, path, e->d_name);
	}
	closedir(d);
	if (n->count)
		qsort(n->list, n->count, sizeof(*n->list), by_name);
	return r;
}

static int read_dir(struct hc_conf *c, const char *path, struct hc_conf_error *err)
{
	struct names n = {NULL, 0};
	int r = names_read(&n, path, err);

	/* of too many none is read: which ones would be chance */
	if (!r && n.count >= HC_CONF_FILES_MAX)
		hc_conf_complain(err, "%s: too many files; wanted at most %d named *.conf", path,
				 HC_CONF_FILES_MAX - 1);
	else
		for (uint32_t i = 0; !r && i < n.count; i++)
			r = read_path(c, n.list[i], true, err);
	names_free(&n);
	return r;
}

static int read_files(struct hc_conf *c, const struct hc_conf_source *src,
		      struct hc_conf_error *err)
{
	const char *file = src->file ? src->file : HC_CONF_FILE_DEFAULT;
	const char *slash = strrchr(file, '/');
	char dir[PATH_MAX];
	int r = read_path(c, file, src->file != NULL, err);

	if (r < 0)
		return r;
	if (src->dir)
		snprintf(dir, sizeof(dir), "%s", src->dir);
	else
		snprintf(dir, sizeof(dir), "%.*sconf.d", slash ? (int)(slash - file + 1) : 0, file);
	return read_dir(c, dir, err);
}

static const char *env_find(char *const *env, const char *name)
{
	size_t len = strlen(name);

	for (; *env; env++) {
		if (!strncmp(*env, name, len) && (*env)[len] == '=')
			return *env + len + 1;
	}
	return NULL;
}

static void read_env(struct hc_conf *c, char *const *env, struct hc_conf_error *err)
{
	struct hc_conf_scope s = hc_conf_scope_top(c);
	struct hc_conf_origin origin = {.from = HC_CONF_FROM_ENV};
	char name[HC_OPT_NAME_MAX + 8], place[HC_OPT_NAME_MAX + 32];

	for (size_t i = 0; env && i < s.count; i++) {
		const char *value = NULL;

		if (s.opts[i].env)
			value = env_find(env, hc_opt_env_name(&s.opts[i], name, sizeof(name)));
		if (!value)
			continue;
		snprintf(place, sizeof(place), "environment %s", name);
		hc_conf_assign(&s, &s.opts[i], value, origin, place, err);
	}
}

static void read_set(struct hc_conf *c, const char *text, struct hc_conf_error *err)
{
	struct hc_conf_scope s = hc_conf_scope_top(c);
	struct hc_conf_origin origin = {.from = HC_CONF_FROM_COMMAND_LINE};
	const char *equal = strchr(text, '='), *near;
	const struct hc_opt *o;
	char name[128], q[352];

	if (!equal) {
		hc_conf_complain(err, "command line: %s is not NAME=VALUE",
				 hc_opt_quote(text, q, sizeof(q)));
		return;
	}
	snprintf(name, sizeof(name), "%.*s", (int)(equal - text), text);
	o = hc_opt_find(HC_CONF_TOP, name);
	if (o) {
		hc_conf_assign(&s, o, equal + 1, origin, "command line", err);
		return;
	}
	near = hc_opt_nearest(HC_CONF_TOP, name);
	hc_opt_quote(name, q, sizeof(q));
	if (near)
		hc_conf_complain(err, "command line: unknown option %s; the nearest known is '%s'",
				 q, near);
	else
		hc_conf_complain(err,
				 "command line: unknown option %s; hcommd.conf(5) lists "
				 "them all",
				 q);
}

/* ---- what follows from other options ---- */

static void follow(struct hc_conf *c, enum hc_opt_top opt, enum hc_opt_top via, const char *value,
		   struct hc_conf_error *err)
{
	struct hc_conf_scope s = hc_conf_scope_top(c);
	struct hc_conf_origin origin = {.from = HC_CONF_FROM_OPTION, .via = (uint16_t)via};
	char where[HC_CONF_ORIGIN_MAX], place[HC_CONF_ORIGIN_MAX + HC_OPT_NAME_MAX];

	if (hc_conf_is_set(&c->origin[opt]))
		return;
	hc_conf_origin_text(c, &s.opts[via], &c->origin[via], where, sizeof(where));
	snprintf(place, sizeof(place), "%s: %s", where, s.opts[via].name);
	hc_conf_assign(&s, &s.opts[opt], value, origin, place, err);
}

static void follow_profile(struct hc_conf *c, struct hc_conf_error *err)
{
	static const struct {
		const char *interval_ms, *misses, *down;
	} profiles[] = {
		[HC_CONF_profile_default] = {"100", "3", "5"},
		[HC_CONF_profile_fast] = {"10", "3", "5"},
		[HC_CONF_profile_wan] = {"1000", "3", "5"},
	};

	if (!hc_conf_is_set(&c->origin[HC_OPT_profile]))
		return;
	follow(c, HC_OPT_heartbeat_interval_ms, HC_OPT_profile, profiles[c->profile].interval_ms,
	       err);
	follow(c, HC_OPT_heartbeat_misses, HC_OPT_profile, profiles[c->profile].misses, err);
	follow(c, HC_OPT_heartbeat_down_misses, HC_OPT_profile, profiles[c->profile].down, err);
}

static void follow_instance(struct hc_conf *c, struct hc_conf_error *err)
{
	char path[HC_CONF_VALUE_MAX + 32];

	if (strcmp(c->instance, "main")) {
		snprintf(path, sizeof(path), "/run/hcomm-%s", c->instance);
		follow(c, HC_OPT_runtime_dir, HC_OPT_instance, path, err);
		snprintf(path, sizeof(path), "/var/lib/hcomm-%s", c->instance);
		follow(c, HC_OPT_state_dir, HC_OPT_instance, path, err);
	}
	if (!hc_conf_is_set(&c->origin[HC_OPT_runtime_dir]))
		return;
	snprintf(path, sizeof(path), "%s/hcommd.sock", c->runtime_dir);
	follow(c, HC_OPT_socket, HC_OPT_runtime_dir, path, err);
	snprintf(path, sizeof(path), "%s/metrics.sock", c->runtime_dir);
	follow(c, HC_OPT_metrics_socket, HC_OPT_runtime_dir, path, err);
}

/* A host name that is no word leaves node_name empty; the daemon then asks for the option. */
static void follow_host(struct hc_conf *c)
{
	const struct hc_opt *o = hc_opt_find(HC_CONF_TOP, "node_name");
	char host[HOST_NAME_MAX + 1] = "", why[HC_CONF_WHY_MAX];

	if (c->node_name[0] || gethostname(host, sizeof(host) - 1))
		return;
	if (!hc_opt_parse(o, host, c->node_name, why, sizeof(why)) && c->node_name[0])
		c->origin[HC_OPT_node_name].from = HC_CONF_FROM_HOST;
}

/* ---- what must go together ---- */

static void check_misses(const struct hc_conf *c, struct hc_conf_error *err)
{
	const struct hc_opt *rows;
	size_t n;
	bool down_set = hc_conf_is_set(&c->origin[HC_OPT_heartbeat_down_misses]);
	enum hc_opt_top at = down_set ? HC_OPT_heartbeat_down_misses : HC_OPT_heartbeat_misses;
	enum hc_opt_top to = down_set ? HC_OPT_heartbeat_misses : HC_OPT_heartbeat_down_misses;
	char where[HC_CONF_ORIGIN_MAX], other[HC_CONF_ORIGIN_MAX];

	if (c->heartbeat_down_misses > c->heartbeat_misses)
		return;
	rows = hc_opt_table(HC_CONF_TOP, &n);
	hc_conf_origin_text(c, &rows[at], &c->origin[at], where, sizeof(where));
	hc_conf_origin_text(c, &rows[to], &c->origin[to], other, sizeof(other));
	hc_conf_complain(
		err, "%s: %s: '%" PRIu32 "' is not %s %s; wanted %s %" PRIu32 " (%s)", where,
		rows[at].name, down_set ? c->heartbeat_down_misses : c->heartbeat_misses,
		down_set ? "above" : "below", rows[to].name, down_set ? "more than" : "less than",
		down_set ? c->heartbeat_misses : c->heartbeat_down_misses, other);
}

static void check_sockets(const struct hc_conf *c, struct hc_conf_error *err)
{
	const struct hc_opt *o = hc_opt_find(HC_CONF_TOP, "metrics_socket");
	char where[HC_CONF_ORIGIN_MAX];

	if (strcmp(c->socket, c->metrics_socket))
		return;
	if (!hc_conf_is_set(&c->origin[HC_OPT_metrics_socket]))
		o = hc_opt_find(HC_CONF_TOP, "socket");
	hc_conf_origin_text(
		c, o, &c->origin[strcmp(o->name, "socket") ? HC_OPT_metrics_socket : HC_OPT_socket],
		where, sizeof(where));
	hc_conf_complain(err, "%s: %s: '%s' is both socket and metrics_socket; wanted two paths",
			 where, o->name, c->socket);
}

static void check_sections(const struct hc_conf *c, struct hc_conf_error *err)
{
	for (uint32_t i = 0; i < c->nnodes; i++) {
		const struct hc_conf_node *n = &c->nodes[i];

		if (!n->address[0])
			hc_conf_complain(err, "%s:%" PRIu32 ": section [node %s] has no address",
					 c->files[n->at.file], n->at.line, n->name);
	}
}

/* ---- whole ---- */

static int finish(struct hc_conf *c, int r, struct hc_conf_error *err)
{
	if (!r && !err->count) {
		follow_profile(c, err);
		follow_instance(c, err);
		follow_host(c);
	}
	if (!r && !err->count) {
		check_misses(c, err);
		check_sockets(c, err);
		check_sections(c, err);
	}
	if (!r && !err->count)
		return HC_CONF_OK;
	hc_conf_fini(c);
	return r < 0 ? r : HC_CONF_REFUSED;
}

int hc_conf_load(struct hc_conf *c, const struct hc_conf_source *src, struct hc_conf_error *err)
{
	int r;

	memset(c, 0, sizeof(*c));
	err->count = err->more = 0;
	r = set_defaults(c);
	if (!r)
		r = read_files(c, src, err);
	if (!r) {
		read_env(c, src->env, err);
		for (size_t i = 0; i < src->nsets; i++)
			read_set(c, src->sets[i], err);
	}
	return finish(c, r, err);
}

int hc_conf_load_stream(struct hc_conf *c, FILE *f, const char *name, struct hc_conf_error *err)
{
	int r;

	memset(c, 0, sizeof(*c));
	err->count = err->more = 0;
	r = set_defaults(c);
	if (!r)
		r = read_open(c, f, name, err);
	return finish(c, r, err);
}

void hc_conf_fini(struct hc_conf *c)
{
	for (uint32_t i = 0; i < c->nfiles; i++)
		free(c->files[i]);
	free(c->files);
	free(c->nodes);
	free(c->devices);
	free(c->links);
	memset(c, 0, sizeof(*c));
}
