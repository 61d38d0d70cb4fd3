/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon's database, seen from outside while no daemon runs. A copy is read, with its log, so
 * that looking changes nothing.
 */
#ifndef HC_DBCHECK_H
#define HC_DBCHECK_H

#include "harness.h"

struct hc_dbcheck {
	char integrity[256]; /* "ok" */
	uint64_t *ids;       /* of the stored domains, ascending */
	size_t count;
};

void hc_dbcheck_read(struct hc_dbcheck *d, const struct hc_node *n);
bool hc_dbcheck_has(const struct hc_dbcheck *d, uint64_t id);
void hc_dbcheck_fini(struct hc_dbcheck *d);
/* Run statements on the database itself. */
void hc_db_exec(const struct hc_node *n, const char *sql);
/* Copy a file, or make it; fails the test when it cannot. */
void hc_copy_file(const char *from, const char *to);

/* Puts the row of a domain back to a state that it had before, while no daemon runs: as if it had
 * been killed before the later one was stored. */
void hc_db_set_back(const struct hc_node *n, uint64_t id, uint8_t state);

#endif
