/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looking at a loaded configuration: its values one by one, where they come from, and in what
 * two configurations differ.
 *
 * Values are compared as text, the one form that every kind has and that people see; so what
 * `config diff` prints and what decides about a reload cannot disagree. Sections are matched by
 * name, a link by its type and its two ends in either order.
 */
#include <inttypes.h>
#include <string.h>

#include "confread.h"

/* One section, or the top, read-only. */
struct view {
	const struct hc_opt *opts;
	size_t count;
	const char *base;
	const struct hc_conf_origin *origins, *at;
	char head[2 * HC_CONF_NAME_MAX + 16];
};

static uint32_t items(const struct hc_conf *c, enum hc_conf_section section)
{
	switch (section) {
	case HC_CONF_TOP: return 1;
	case HC_CONF_NODE: return c->nnodes;
	case HC_CONF_DEVICE: return c->ndevices;
	case HC_CONF_LINK: return c->nlinks;
	}
	return 0;
}

static void look(const struct hc_conf *c, enum hc_conf_section section, uint32_t i, struct view *v)
{
	v->opts = hc_opt_table(section, &v->count);
	v->head[0] = '\0';
	v->at = NULL;
	switch (section) {
	case HC_CONF_TOP:
		v->base = (const char *)c;
		v->origins = c->origin;
		return;
	case HC_CONF_NODE:
		v->base = (const char *)&c->nodes[i];
		v->origins = c->nodes[i].origin;
		v->at = &c->nodes[i].at;
		snprintf(v->head, sizeof(v->head), "[node %s]", c->nodes[i].name);
		return;
	case HC_CONF_DEVICE:
		v->base = (const char *)&c->devices[i];
		v->origins = c->devices[i].origin;
		v->at = &c->devices[i].at;
		snprintf(v->head, sizeof(v->head), "[device %" PRIu32 "]", c->devices[i].index);
		return;
	case HC_CONF_LINK:
		v->base = (const char *)&c->links[i];
		v->origins = c->links[i].origin;
		v->at = &c->links[i].at;
		snprintf(v->head, sizeof(v->head), "[link %s %s]", c->links[i].a, c->links[i].b);
		return;
	}
}

bool hc_conf_is_set(const struct hc_conf_origin *origin)
{
	return origin->from != HC_CONF_FROM_DEFAULT;
}

static bool has_value(enum hc_conf_section section, const struct view *v, size_t i)
{
	return section == HC_CONF_TOP || hc_conf_is_set(&v->origins[i]);
}

static void value_text(enum hc_conf_section section, const struct view *v, size_t i, char *buf,
		       size_t size)
{
	buf[0] = '\0';
	if (has_value(section, v, i))
		hc_opt_format(&v->opts[i], v->base + v->opts[i].offset, buf, size);
}

static void label_text(const struct view *v, const struct hc_opt *o, char *buf, size_t size)
{
	snprintf(buf, size, "%s%s%s", v->head, *v->head && o ? " " : "", o ? o->name : "");
}

/* "profile fast (" for each option that this one follows from; *o and *origin become the last. */
static size_t follow_text(const struct hc_conf *c, const struct hc_opt **o,
			  const struct hc_conf_origin **origin, size_t *depth, char *buf,
			  size_t size)
{
	char value[HC_CONF_VALUE_MAX];
	struct view top;
	size_t w = 0;

	look(c, HC_CONF_TOP, 0, &top);
	buf[0] = '\0';
	/* the chain is two long at most: socket, runtime_dir, instance */
	for (*depth = 0; (*origin)->from == HC_CONF_FROM_OPTION && *depth < 2 && w < size;
	     (*depth)++) {
		size_t via = (*origin)->via;

		*o = &top.opts[via];
		*origin = &top.origins[via];
		value_text(HC_CONF_TOP, &top, via, value, sizeof(value));
		w += (size_t)snprintf(buf + w, size - w, "%s %s (", (*o)->name, value);
	}
	return w < size ? w : size - 1;
}

const char *hc_conf_origin_text(const struct hc_conf *c, const struct hc_opt *o,
				const struct hc_conf_origin *origin, char *buf, size_t size)
{
	size_t depth, w = follow_text(c, &o, &origin, &depth, buf, size);
	char name[HC_OPT_NAME_MAX + 8];

	switch ((enum hc_conf_from)origin->from) {
	case HC_CONF_FROM_OPTION:
	case HC_CONF_FROM_DEFAULT: snprintf(buf + w, size - w, "default"); break;
	case HC_CONF_FROM_FILE:
		snprintf(buf + w, size - w, "%s:%" PRIu32, c->files[origin->file], origin->line);
		break;
	case HC_CONF_FROM_ENV:
		snprintf(buf + w, size - w, "environment %s",
			 hc_opt_env_name(o, name, sizeof(name)));
		break;
	case HC_CONF_FROM_COMMAND_LINE: snprintf(buf + w, size - w, "command line"); break;
	case HC_CONF_FROM_HOST: snprintf(buf + w, size - w, "host name"); break;
	}
	for (w = strlen(buf); depth && w + 1 < size; depth--) {
		buf[w++] = ')';
		buf[w] = '\0';
	}
	return buf;
}

static void fill(enum hc_conf_section section, const struct view *v, size_t i,
		 struct hc_conf_value *out)
{
	out->section = section;
	out->opt = &v->opts[i];
	out->origin = &v->origins[i];
	label_text(v, out->opt, out->label, sizeof(out->label));
	value_text(section, v, i, out->text, sizeof(out->text));
}

static void fill_head(enum hc_conf_section section, const struct view *v, struct hc_conf_value *out)
{
	out->section = section;
	out->opt = NULL;
	out->origin = v->at;
	label_text(v, NULL, out->label, sizeof(out->label));
	out->text[0] = '\0';
}

/* The cursor: section in the high bits, then the item, then 0 for its head or 1 + option. */
bool hc_conf_next(const struct hc_conf *c, uint64_t *cursor, struct hc_conf_value *out)
{
	uint64_t section = *cursor >> 48, item = (*cursor >> 8) & 0xffffffff, k = *cursor & 0xff;
	struct view v;

	while (section < HC_CONF_SECTIONS) {
		enum hc_conf_section s = (enum hc_conf_section)section;

		if (item == items(c, s)) {
			section++;
			item = k = 0;
			continue;
		}
		look(c, s, (uint32_t)item, &v);
		while (k && k <= v.count && !has_value(s, &v, k - 1))
			k++;
		if (k > v.count) {
			item++;
			k = 0;
			continue;
		}
		if (!k && s == HC_CONF_TOP) {
			k++;
			continue;
		}
		*cursor = section << 48 | item << 8 | (k + 1);
		if (k)
			fill(s, &v, k - 1, out);
		else
			fill_head(s, &v, out);
		return true;
	}
	*cursor = section << 48;
	return false;
}

bool hc_conf_get(const struct hc_conf *c, const char *name, struct hc_conf_value *out)
{
	const struct hc_opt *o = hc_opt_find(HC_CONF_TOP, name);
	struct view v;

	if (!o)
		return false;
	look(c, HC_CONF_TOP, 0, &v);
	fill(HC_CONF_TOP, &v, (size_t)(o - v.opts), out);
	return true;
}

/* ---- differences ---- */

static bool same_item(const struct hc_conf *x, uint32_t i, const struct hc_conf *y, uint32_t j,
		      enum hc_conf_section section)
{
	switch (section) {
	case HC_CONF_TOP: return true;
	case HC_CONF_NODE: return !strcmp(x->nodes[i].name, y->nodes[j].name);
	case HC_CONF_DEVICE: return x->devices[i].index == y->devices[j].index;
	case HC_CONF_LINK: return hc_conf_same_link(&x->links[i], &y->links[j]);
	}
	return false;
}

/* Items mostly stand in the same order in both: look at the same place first. */
static bool find_item(const struct hc_conf *x, uint32_t i, const struct hc_conf *y, uint32_t *j,
		      enum hc_conf_section section)
{
	uint32_t n = items(y, section);

	for (uint32_t k = 0; k < n; k++) {
		*j = (uint32_t)(((uint64_t)i + k) % n);
		if (same_item(x, i, y, *j, section))
			return true;
	}
	return false;
}

struct diff {
	hc_conf_change_fn *fn;
	void *arg;
	unsigned fixed;
};

static void tell(struct diff *d, const char *label, const char *from, const char *to,
		 bool reloadable)
{
	struct hc_conf_change change = {label, from, to, reloadable};

	d->fixed += !reloadable;
	if (d->fn)
		d->fn(d->arg, &change);
}

static void diff_item(struct diff *d, const struct view *x, const struct view *y,
		      enum hc_conf_section section)
{
	char from[HC_CONF_VALUE_MAX], to[HC_CONF_VALUE_MAX];
	char label[HC_OPT_NAME_MAX + sizeof(x->head) + 1];

	for (size_t i = 0; i < x->count; i++) {
		value_text(section, x, i, from, sizeof(from));
		value_text(section, y, i, to, sizeof(to));
		if (!strcmp(from, to))
			continue;
		label_text(x, &x->opts[i], label, sizeof(label));
		tell(d, label, from, to, x->opts[i].reloadable);
	}
}

/* Items of x that y lacks, and, when both are wanted, what differs in those it has. */
static void diff_side(struct diff *d, const struct hc_conf *x, const struct hc_conf *y,
		      enum hc_conf_section section, bool gone)
{
	struct view v, w;
	uint32_t j = 0;

	for (uint32_t i = 0; i < items(x, section); i++) {
		look(x, section, i, &v);
		if (!find_item(x, i, y, &j, section)) {
			tell(d, v.head, gone ? "present" : "", gone ? "" : "present",
			     v.opts[0].reloadable);
		} else if (gone) {
			look(y, section, j, &w);
			diff_item(d, &v, &w, section);
		}
	}
}

unsigned hc_conf_diff(const struct hc_conf *old, const struct hc_conf *new, hc_conf_change_fn *fn,
		      void *arg)
{
	struct diff d = {fn, arg, 0};

	for (int s = 0; s < HC_CONF_SECTIONS; s++) {
		diff_side(&d, old, new, (enum hc_conf_section)s, true);
		diff_side(&d, new, old, (enum hc_conf_section)s, false);
	}
	return d.fixed;
}
