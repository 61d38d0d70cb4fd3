/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One configuration file: physical lines -> inih -> options of the scope that is open.
 *
 * inih splits lines into names and values; our reader stands in front of it because inih alone
 * would quietly accept what a configuration must not: it cuts long lines and section names,
 * takes an indented line for the continuation of the one before, and knows no duplicates. So the
 * reader hands over one physical line at a time without leading blanks, counts, refuses bytes
 * that have no place in text, and keeps the section itself. inih's buffer is short (200 bytes on
 * Debian); of a longer line it gets the beginning, and the value is then taken from our copy.
 *
 * A line that inih makes nothing of shows by the handler not having been called when the next
 * line is asked for. Each line gives at most one complaint, and all come in order.
 */
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <ini.h>

#include "confread.h"

#define PLACE_MAX 512

struct reader {
	struct hc_conf *conf;
	struct hc_conf_error *err;
	FILE *f;
	uint32_t file, lineno;
	size_t bytes;
	struct hc_conf_scope scope;
	bool skip;    /* inside a section that was refused: its options mean nothing */
	bool waiting; /* the last line should have reached the handler */
	bool cut;     /* inih got only its beginning */
	bool stopped;
	int fatal;
	char line[HC_CONF_LINE_MAX + 1];
	char place[PLACE_MAX];
	char section[2 * HC_CONF_NAME_MAX + 16]; /* "node a", for messages */
};

void hc_conf_complain(struct hc_conf_error *err, const char *fmt, ...)
{
	va_list ap;

	if (err->count == HC_CONF_ERRORS_MAX) {
		err->more++;
		return;
	}
	va_start(ap, fmt);
	vsnprintf(err->line[err->count++], sizeof(err->line[0]), fmt, ap);
	va_end(ap);
}

int hc_conf_grow(void **array, uint32_t count, size_t size)
{
	void *more;

	if (count & (count - 1) || (count && count < 4))
		return 0; /* room is kept for 4, 8, 16, ... */
	more = realloc(*array, (count ? (size_t)count * 2 : 4) * size);
	if (!more)
		return -ENOMEM;
	*array = more;
	return 0;
}

int hc_conf_add_file(struct hc_conf *c, const char *name, uint32_t *index,
		     struct hc_conf_error *err)
{
	void *files = c->files;
	size_t len = strlen(name) + 1;
	int r;

	if (c->nfiles == HC_CONF_FILES_MAX) {
		hc_conf_complain(err, "%s: more than %d configuration files", name,
				 HC_CONF_FILES_MAX);
		return HC_CONF_REFUSED;
	}
	r = hc_conf_grow(&files, c->nfiles, sizeof(*c->files));
	if (r < 0)
		return r;
	c->files = files;
	c->files[c->nfiles] = realloc(NULL, len);
	if (!c->files[c->nfiles])
		return -ENOMEM;
	memcpy(c->files[c->nfiles], name, len);
	*index = c->nfiles++;
	return HC_CONF_OK;
}

struct hc_conf_scope hc_conf_scope_top(struct hc_conf *c)
{
	struct hc_conf_scope s = {HC_CONF_TOP, NULL, 0, (char *)c, c->origin};

	s.opts = hc_opt_table(HC_CONF_TOP, &s.count);
	return s;
}

int hc_conf_assign(const struct hc_conf_scope *s, const struct hc_opt *o, const char *value,
		   struct hc_conf_origin origin, const char *place, struct hc_conf_error *err)
{
	char why[HC_CONF_WHY_MAX];
	int r;

	s->origins[o - s->opts] = origin;
	r = hc_opt_parse(o, value, s->base + o->offset, why, sizeof(why));
	if (r == HC_CONF_REFUSED)
		hc_conf_complain(err, "%s: %s: %s", place, o->name, why);
	return r;
}

/* ---- sections ---- */

static struct hc_conf_origin here(const struct reader *r)
{
	return (struct hc_conf_origin){HC_CONF_FROM_FILE, (uint8_t)r->file, 0, r->lineno};
}

/* In one file a section stands once; in another file it may be added to. */
static bool seen_here(struct reader *r, const struct hc_conf_origin *at)
{
	if (at->file != r->file)
		return false;
	hc_conf_complain(r->err, "%s: section [%s] is given again; first at %s:%u", r->place,
			 r->section, r->conf->files[at->file], at->line);
	return true;
}

static bool room(struct reader *r, void **array, uint32_t count, uint32_t max, size_t size)
{
	if (count == max) {
		hc_conf_complain(r->err, "%s: section [%s] is one too many; wanted at most %u",
				 r->place, r->section, max);
		return false;
	}
	r->fatal = hc_conf_grow(array, count, size);
	if (r->fatal)
		return false;
	memset((char *)*array + count * size, 0, size);
	return true;
}

static void open_scope(struct reader *r, enum hc_conf_section section, void *base,
		       struct hc_conf_origin *origins)
{
	r->skip = false;
	r->scope.section = section;
	r->scope.opts = hc_opt_table(section, &r->scope.count);
	r->scope.base = base;
	r->scope.origins = origins;
}

static void open_node(struct reader *r, const char *name)
{
	struct hc_conf *c = r->conf;
	struct hc_conf_node *n = NULL;
	void *array = c->nodes;

	for (uint32_t i = 0; i < c->nnodes && !n; i++)
		n = strcmp(c->nodes[i].name, name) ? NULL : &c->nodes[i];
	if (n && seen_here(r, &n->at))
		return;
	if (!n) {
		if (!room(r, &array, c->nnodes, HC_CONF_NODES_MAX, sizeof(*n)))
			return;
		c->nodes = array;
		n = &c->nodes[c->nnodes++];
		snprintf(n->name, sizeof(n->name), "%s", name);
	}
	n->at = here(r);
	open_scope(r, HC_CONF_NODE, n, n->origin);
}

static void open_device(struct reader *r, const char *text)
{
	struct hc_conf *c = r->conf;
	struct hc_conf_device *d = NULL;
	void *array = c->devices;
	uint64_t index;
	char q[352];

	if (!hc_opt_number(text, &index) || index >= HC_CONF_DEVICES_MAX) {
		hc_conf_complain(r->err, "%s: [device %s]: wanted a number 0..%d", r->place,
				 hc_opt_quote(text, q, sizeof(q)), HC_CONF_DEVICES_MAX - 1);
		return;
	}
	for (uint32_t i = 0; i < c->ndevices && !d; i++)
		d = c->devices[i].index == index ? &c->devices[i] : NULL;
	if (d && seen_here(r, &d->at))
		return;
	if (!d) {
		if (!room(r, &array, c->ndevices, HC_CONF_DEVICES_MAX, sizeof(*d)))
			return;
		c->devices = array;
		d = &c->devices[c->ndevices++];
		d->index = (uint32_t)index;
	}
	d->at = here(r);
	open_scope(r, HC_CONF_DEVICE, d, d->origin);
}

static void open_link(struct reader *r, const char *a, const char *b)
{
	struct hc_conf *c = r->conf;
	struct hc_conf_link *l;
	void *array = c->links;
	const char *why = hc_conf_link_ends(a, b);

	if (!why && !strcmp(a, b) && strcmp(a, HC_CONF_ANY)) {
		hc_conf_complain(r->err, "%s: [%s] joins '%s' to itself; wanted two ends", r->place,
				 r->section, a);
		return;
	}
	if (why) {
		hc_conf_complain(r->err, "%s: [%s] %s", r->place, r->section, why);
		return;
	}
	if (!room(r, &array, c->nlinks, HC_CONF_LINKS_MAX, sizeof(*l)))
		return;
	c->links = array;
	l = &c->links[c->nlinks++]; /* which link it is shows when its type is known */
	snprintf(l->a, sizeof(l->a), "%s", a);
	snprintf(l->b, sizeof(l->b), "%s", b);
	l->at = here(r);
	open_scope(r, HC_CONF_LINK, l, l->origin);
}

/* Splits "node a" in place; returns the number of words, at most max + 1. */
static int split(char *text, char **word, int max)
{
	int n = 0;
	char *save, *w = strtok_r(text, " \t", &save);

	for (; w && n <= max; w = strtok_r(NULL, " \t", &save)) {
		if (n < max)
			word[n] = w;
		n++;
	}
	return n;
}

static void open_section(struct reader *r)
{
	static const char wanted[] = "wanted [node NAME], [device N] or [link A B]";
	char text[HC_CONF_LINE_MAX + 1], q[352], *word[3] = {NULL};
	char *end = strchr(r->line, ']');
	const char *rest = end ? end + 1 + strspn(end + 1, " \t") : NULL;
	int n;

	r->skip = true; /* until one of the open_ functions is content */
	hc_opt_quote(r->line, q, sizeof(q));
	if (!end || !strchr("#;", *rest)) { /* strchr finds the NUL too */
		hc_conf_complain(r->err, "%s: %s is not a section; %s", r->place, q, wanted);
		return;
	}
	snprintf(text, sizeof(text), "%.*s", (int)(end - r->line - 1), r->line + 1);
	n = split(text, word, 3);
	for (int i = 1; i < n && i < 3; i++) {
		if (!hc_opt_is_name(word[i])) {
			hc_conf_complain(r->err,
					 "%s: %s: wanted names of at most %d letters, digits, "
					 "'.', '_', '-', ':' or '/'",
					 r->place, q, HC_CONF_NAME_MAX);
			return;
		}
	}
	snprintf(r->section, sizeof(r->section), "%.8s%s%.64s%s%.64s", n ? word[0] : "",
		 n > 1 ? " " : "", n > 1 ? word[1] : "", n > 2 ? " " : "", n > 2 ? word[2] : "");
	if (n == 2 && !strcmp(word[0], "node"))
		open_node(r, word[1]);
	else if (n == 2 && !strcmp(word[0], "device"))
		open_device(r, word[1]);
	else if (n == 3 && !strcmp(word[0], "link"))
		open_link(r, word[1], word[2]);
	else
		hc_conf_complain(r->err, "%s: unknown section %s; %s", r->place, q, wanted);
}

/* ---- the handler: one name and value ---- */

static void unknown(struct reader *r, const char *name)
{
	char q[352], in[sizeof(r->section) + 8] = "";
	const char *near = hc_opt_nearest(r->scope.section, name);

	hc_opt_quote(name, q, sizeof(q));
	if (r->scope.section != HC_CONF_TOP)
		snprintf(in, sizeof(in), " in [%s]", r->section);
	if (near)
		hc_conf_complain(r->err, "%s: unknown option %s%s; the nearest known is '%s'",
				 r->place, q, in, near);
	else if (r->scope.section != HC_CONF_TOP && hc_opt_find(HC_CONF_TOP, name))
		hc_conf_complain(r->err, "%s: option %s%s; wanted above the first section",
				 r->place, q, in);
	else
		hc_conf_complain(r->err, "%s: unknown option %s%s; hcommd.conf(5) lists them all",
				 r->place, q, in);
}

/* The value of the current line from our own copy, as inih would have given it. */
static const char *long_value(struct reader *r)
{
	char *v = r->line + strcspn(r->line, "=:");

	v += *v != '\0';
	for (char *s = v; *s; s++) {
		if (*s == ';' && s > v && isspace((unsigned char)s[-1]))
			*s-- = '\0';
	}
	for (char *e = v + strlen(v); e > v && isspace((unsigned char)e[-1]);)
		*--e = '\0';
	return v + strspn(v, " \t");
}

static int handle(void *user, const char *section, const char *name, const char *value)
{
	struct reader *r = user;
	const struct hc_opt *o = hc_opt_find(r->scope.section, name);
	const struct hc_conf_origin *was;

	(void)section; /* inih cuts it; ours is whole */
	r->waiting = false;
	if (r->skip)
		return 1;
	if (!o) {
		unknown(r, name);
		return 1;
	}
	was = &r->scope.origins[o - r->scope.opts];
	if (was->from == HC_CONF_FROM_FILE && was->file == r->file) {
		hc_conf_complain(r->err, "%s: %s is given again; first at %s:%u", r->place, name,
				 r->conf->files[was->file], was->line);
		return 1;
	}
	hc_conf_assign(&r->scope, o, r->cut ? long_value(r) : value, here(r), r->place, r->err);
	return 1;
}

/* ---- the reader: one physical line ---- */

enum line_state { LINE_GOOD, LINE_BAD, LINE_END };

/* Reads one line without its end. What is wrong with it is said once, by the caller's rule. */
static enum line_state get_line(struct reader *r)
{
	size_t len = 0, total = 0;
	int c, bad = -1;

	while ((c = getc(r->f)) != EOF && c != '\n') {
		total++;
		if (++r->bytes > HC_CONF_FILE_BYTES)
			break;
		if ((c < 0x20 && c != '\t' && c != '\r') || c == 0x7f)
			bad = bad < 0 ? c : bad;
		if (len < HC_CONF_LINE_MAX)
			r->line[len++] = (char)c;
	}
	if (c == EOF && !total)
		return LINE_END;
	r->lineno++;
	r->bytes++;
	snprintf(r->place, sizeof(r->place), "%.480s:%u", r->conf->files[r->file], r->lineno);
	r->line[len] = '\0';
	if (r->bytes > HC_CONF_FILE_BYTES) {
		hc_conf_complain(r->err, "%s: the file is longer than %u bytes", r->place,
				 HC_CONF_FILE_BYTES);
		return LINE_END;
	}
	if (bad >= 0) {
		hc_conf_complain(r->err, "%s: the line holds a byte 0x%02x; wanted plain text",
				 r->place, (unsigned)bad);
		return LINE_BAD;
	}
	if (total > HC_CONF_LINE_MAX) {
		hc_conf_complain(r->err, "%s: the line is %zu bytes long; wanted at most %d",
				 r->place, total, HC_CONF_LINE_MAX);
		return LINE_BAD;
	}
	return LINE_GOOD;
}

/* Blanks at both ends go, and a byte order mark: editors add it unseen. */
static void trim(struct reader *r)
{
	size_t skip = r->lineno == 1 && !strncmp(r->line, "\xef\xbb\xbf", 3) ? 3 : 0, len;

	skip += strspn(r->line + skip, " \t\r");
	len = strlen(r->line + skip);
	memmove(r->line, r->line + skip, len + 1);
	while (len && strchr(" \t\r", r->line[len - 1]))
		r->line[--len] = '\0';
}

static void not_understood(struct reader *r)
{
	char q[352];

	if (r->waiting && !r->skip)
		hc_conf_complain(r->err, "%s: %s is not NAME = VALUE", r->place,
				 hc_opt_quote(r->line, q, sizeof(q)));
	r->waiting = false;
}

/* fgets for inih: never more than `size` bytes, always a whole line in its eyes. */
static char *next_line(char *out, int size, void *stream)
{
	struct reader *r = stream;
	enum line_state state;

	not_understood(r);
	if (r->fatal || r->stopped || size < 8)
		return NULL;
	state = get_line(r);
	if (state == LINE_END) {
		r->stopped = true;
		return NULL;
	}
	if (state == LINE_BAD)
		r->line[0] = '\0';
	trim(r);
	r->waiting = r->line[0] && !strchr("#;[", r->line[0]);
	if (r->line[0] == '[')
		open_section(r);
	r->cut = strlen(r->line) > (size_t)size - 3;
	if (r->waiting)
		snprintf(out, (size_t)size - 1, "%s", r->line);
	else
		out[0] = '\0'; /* comments, blank lines and sections are done with */
	memcpy(out + strlen(out), "\n", 2);
	return out;
}

int hc_conf_read(struct hc_conf *c, FILE *f, uint32_t file, struct hc_conf_error *err)
{
	struct reader r = {.conf = c, .err = err, .f = f, .file = file};
	const uint32_t links = c->nlinks;

	r.scope = hc_conf_scope_top(c);
	ini_parse_stream(next_line, &r, handle, &r);
	if (!r.fatal && ferror(f))
		hc_conf_complain(err, "%s: cannot be read to its end: %s", c->files[file],
				 strerror(errno));
	hc_conf_settle_links(c, links, err);
	return r.fatal;
}
