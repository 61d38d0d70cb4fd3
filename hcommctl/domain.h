/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Domains by id or name, and the making of one from a rank table.
 *
 * create.c reads the table and says which of its ranks are of this node; hold.c runs those
 * ranks, a process each, until it is told to stop.
 */
#ifndef HC_CTL_DOMAIN_H
#define HC_CTL_DOMAIN_H

#include "ctl.h"

/* 16 hexadecimal digits, not all zero? */
bool ctl_is_id(const char *word, uint64_t *id);
/* The id of a domain by id or name; opens the session. An exit status, and said why. */
int ctl_domain_find(struct ctl *c, const char *word, uint64_t *id);

int ctl_domain_create(struct ctl *c);

struct ctl_hold {
	const char *table;  /* path */
	const char *name;   /* or NULL */
	const char *server; /* own server, or NULL */
	uint64_t ops;       /* references that each rank takes and returns */
	uint32_t nranks;    /* of the whole table */
	uint32_t nlocal;
	const uint32_t *local; /* ranks of this node */
};
int ctl_hold_run(struct ctl *c, const struct ctl_hold *h);

#endif
