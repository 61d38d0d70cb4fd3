/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The configuration of hcommd as one whole, with the origin of every value.
 *
 * Layers, the later stronger: built-in defaults, the main file, conf.d/NAME.conf by name, the
 * environment, the command line. A load either gives a complete, checked struct hc_conf or a
 * list of what is wrong; there is nothing in between, so a reload that fails changes nothing.
 *
 * Some defaults follow from other options and say so in their origin: profile gives the heartbeat
 * options, instance the directories, runtime_dir the sockets, the host name node_name. What is
 * set directly always wins over what would follow.
 */
#ifndef HC_CONFFILE_H
#define HC_CONFFILE_H

#include <stdio.h>

#include "options.h"

#define HC_CONF_FILE_DEFAULT "/etc/hcomm/hcommd.conf"
#define HC_CONF_FILE_BYTES   (1u << 20) /* of one file */
#define HC_CONF_LINE_MAX     2048       /* bytes of a line, without its end */
#define HC_CONF_FILES_MAX    64         /* main file and conf.d together */
#define HC_CONF_NODES_MAX    4096
#define HC_CONF_DEVICES_MAX  1024
#define HC_CONF_LINKS_MAX    8192
#define HC_CONF_ERRORS_MAX   10
#define HC_CONF_ORIGIN_MAX   1280 /* bytes of an origin as text */

struct hc_conf_source {
	const char *file;        /* main file; NULL is HC_CONF_FILE_DEFAULT, which may be missing */
	const char *dir;         /* NULL is conf.d beside the main file; may be missing */
	char *const *env;        /* as environ; NULL reads none */
	const char *const *sets; /* "name=value" of the command line; of two the later wins */
	size_t nsets;
};

/* One line each, in the order found: where, what was found, what is wanted. */
struct hc_conf_error {
	unsigned count; /* lines below */
	unsigned more;  /* found beyond them */
	char line[HC_CONF_ERRORS_MAX][HC_CONF_WHY_MAX + 512];
};

/*
 * HC_CONF_OK, HC_CONF_REFUSED (see err; *c is empty), or -ENOMEM. *c is overwritten, not freed.
 */
int hc_conf_load(struct hc_conf *c, const struct hc_conf_source *src, struct hc_conf_error *err);

/* The same with defaults and one open file only; `name` is what messages call it. */
int hc_conf_load_stream(struct hc_conf *c, FILE *f, const char *name, struct hc_conf_error *err);

void hc_conf_fini(struct hc_conf *c);

/* "any": both ends of the link that joins any two ranks of this node. */
#define HC_CONF_ANY "any"
bool hc_conf_link_is_any(const struct hc_conf_link *l);
/* Its type, HC_CONF_type_*; false: it was not given, and follows from nothing. */
bool hc_conf_link_type(const struct hc_conf_link *l, enum hc_conf_link_type *type);

/* Was the option set by anybody, or does it follow from one that was? */
bool hc_conf_is_set(const struct hc_conf_origin *origin);

/* "/etc/hcomm/hcommd.conf:12", "default", "environment HCOMM_X", "command line", "host name",
 * "profile fast (FILE:3)". `o` is the option that the origin belongs to. */
const char *hc_conf_origin_text(const struct hc_conf *c, const struct hc_opt *o,
				const struct hc_conf_origin *origin, char *buf, size_t size);

/* One value among all that a configuration holds. */
struct hc_conf_value {
	enum hc_conf_section section;
	const struct hc_opt *opt; /* NULL: the head of a section, which has no value of its own */
	const struct hc_conf_origin *origin;
	char label[HC_OPT_NAME_MAX + 2 * HC_CONF_NAME_MAX + 16]; /* "[node a] address", ... */
	char text[HC_CONF_VALUE_MAX];
};

/*
 * Walks all TOP options in order of the table, then every section: its head, then the options
 * that it sets. Start with *cursor = 0; false at the end.
 */
bool hc_conf_next(const struct hc_conf *c, uint64_t *cursor, struct hc_conf_value *out);

/* The value of a TOP option by name; false when there is none of that name. */
bool hc_conf_get(const struct hc_conf *c, const char *name, struct hc_conf_value *out);

struct hc_conf_change {
	const char *label;
	const char *from, *to; /* "" = not set */
	bool reloadable;
};
typedef void hc_conf_change_fn(void *arg, const struct hc_conf_change *change);

/* Tells fn (may be NULL) every difference; returns how many of them need a restart. */
unsigned hc_conf_diff(const struct hc_conf *old, const struct hc_conf *new, hc_conf_change_fn *fn,
		      void *arg);

#endif
