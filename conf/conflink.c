/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which link a [link A B] section speaks of.
 *
 * Two devices may be joined by several links, so the type is part of what names one: the ends in
 * either order, and the type or that none was given. It is not known before the section has been
 * read, so every head opens a section of its own, and at the end of a file those are compared: a
 * link that stands twice in one file is refused with both lines, one that an earlier file had
 * takes what the later adds.
 */
#include <inttypes.h>
#include <string.h>

#include "confread.h"

bool hc_conf_link_is_any(const struct hc_conf_link *l)
{
	return !strcmp(l->a, HC_CONF_ANY);
}

bool hc_conf_link_type(const struct hc_conf_link *l, enum hc_conf_link_type *type)
{
	const bool given = hc_conf_is_set(&l->origin[HC_OPT_LINK_type]);

	*type = hc_conf_link_is_any(l) ? HC_CONF_type_shm : (enum hc_conf_link_type)l->type;
	return given || hc_conf_link_is_any(l);
}

bool hc_conf_same_link(const struct hc_conf_link *x, const struct hc_conf_link *y)
{
	enum hc_conf_link_type p, q;
	const bool ends = (!strcmp(x->a, y->a) && !strcmp(x->b, y->b)) ||
			  (!strcmp(x->a, y->b) && !strcmp(x->b, y->a));

	if (!ends)
		return false;
	return hc_conf_link_type(x, &p) == hc_conf_link_type(y, &q) && p == q;
}

static bool is_device(const char *end)
{
	uint64_t n;

	return hc_opt_number(end, &n) && n < HC_CONF_DEVICES_MAX;
}

const char *hc_conf_link_ends(const char *a, const char *b)
{
	if (!strcmp(a, HC_CONF_ANY) != !strcmp(b, HC_CONF_ANY))
		return "has 'any' at one end; wanted [link any any], or two ends";
	if (is_device(a) != is_device(b))
		return "joins a device number and a name; wanted two device numbers 0..1023 or "
		       "two ports";
	return NULL;
}

/* What `from` says goes into `to`. */
static void fold(struct hc_conf_link *to, const struct hc_conf_link *from)
{
#define LINK(kind, name, ...)                                                                      \
	if (hc_conf_is_set(&from->origin[HC_OPT_LINK_##name])) {                                   \
		to->name = from->name;                                                             \
		to->origin[HC_OPT_LINK_##name] = from->origin[HC_OPT_LINK_##name];                 \
	}
#include "options.tbl.h"
	to->at = from->at;
}

/* Other makers' words for the same kind of link. */
static void settle_type(const struct hc_conf *c, struct hc_conf_link *l, struct hc_conf_error *err)
{
	const struct hc_conf_origin *o = &l->origin[HC_OPT_LINK_type];

	if (!hc_conf_is_set(o))
		return;
	if (l->type == HC_CONF_type_hcclink || l->type == HC_CONF_type_nvlink)
		l->type = HC_CONF_type_hccs;
	if (hc_conf_link_is_any(l) && l->type != HC_CONF_type_shm)
		hc_conf_complain(err, "%s:%" PRIu32 ": the type of [link any any] is shm",
				 c->files[o->file], o->line);
}

static void twice(const struct hc_conf *c, const struct hc_conf_link *l,
		  const struct hc_conf_link *first, struct hc_conf_error *err)
{
	hc_conf_complain(
		err, "%s:%" PRIu32 ": section [link %s %s]%s is given again; first at %s:%" PRIu32,
		c->files[l->at.file], l->at.line, l->a, l->b,
		hc_conf_is_set(&l->origin[HC_OPT_LINK_type]) ? " of the same type" : "",
		c->files[first->at.file], first->at.line);
}

void hc_conf_settle_links(struct hc_conf *c, uint32_t first, struct hc_conf_error *err)
{
	uint32_t kept = first, i, j;

	for (i = first; i < c->nlinks; i++) {
		struct hc_conf_link *l = &c->links[i];

		settle_type(c, l, err);
		for (j = 0; j < kept && !hc_conf_same_link(&c->links[j], l);)
			j++;
		if (j == kept)
			c->links[kept++] = *l;
		else if (j >= first)
			twice(c, l, &c->links[j], err);
		else
			fold(&c->links[j], l);
	}
	c->nlinks = kept;
}
