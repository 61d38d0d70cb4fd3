/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside of conf/: what the file reader and the layers above it share.
 *
 * A scope is "where an option would land now": the rows that are allowed, the struct that they
 * describe and its origins. The top of a file is a scope, and each section is one.
 */
#ifndef HC_CONFREAD_H
#define HC_CONFREAD_H

#include <stdio.h>

#include "conffile.h"

struct hc_conf_scope {
	enum hc_conf_section section;
	const struct hc_opt *opts;
	size_t count;
	char *base;
	struct hc_conf_origin *origins;
};

struct hc_conf_scope hc_conf_scope_top(struct hc_conf *c);

/* Sets one option; on refusal complains at `place` and returns HC_CONF_REFUSED. */
int hc_conf_assign(const struct hc_conf_scope *s, const struct hc_opt *o, const char *value,
		   struct hc_conf_origin origin, const char *place, struct hc_conf_error *err);

void hc_conf_complain(struct hc_conf_error *err, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Makes room for one more in an array; -ENOMEM leaves it as it was. */
int hc_conf_grow(void **array, uint32_t count, size_t size);

/* Adds a name to c->files. The index, HC_CONF_REFUSED with err, or -ENOMEM. */
int hc_conf_add_file(struct hc_conf *c, const char *name, uint32_t *index,
		     struct hc_conf_error *err);

/* Reads one file over what *c holds. Complaints go to err; only -ENOMEM is returned. */
int hc_conf_read(struct hc_conf *c, FILE *f, uint32_t file, struct hc_conf_error *err);

/* What is wrong with these ends of a link, or NULL. */
const char *hc_conf_link_ends(const char *a, const char *b);
/* The links from number `first` on were read from one file: those that are known already are
 * folded into what is known, those that stand twice are refused. */
void hc_conf_settle_links(struct hc_conf *c, uint32_t first, struct hc_conf_error *err);
bool hc_conf_same_link(const struct hc_conf_link *x, const struct hc_conf_link *y);

#endif
