/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which row of the table holds which domain.
 *
 * Ids are random, so a table in their order takes each new row on another page: with ten thousand
 * domains, making one thousand more writes one thousand pages to the log and again to the file.
 * Rows are therefore numbered as they come, neighbours of one batch share a page, and this map
 * from id to number stands in memory: 16 bytes an entry, open addressing, at most two thirds full.
 * What a start reads is only noted, one behind the other; it is made a table when the first id is
 * asked for, which is not before the daemon has answered somebody.
 */
#ifndef HC_DBIDS_H
#define HC_DBIDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hc_dbids_entry {
	uint64_t id; /* 0 = free */
	int64_t row; /* 0 = it was taken away; the place is passed over */
};
struct hc_dbids {
	struct hc_dbids_entry *at;
	size_t cap, used; /* used: free places less */
	size_t live;
	size_t noted; /* so many in order of the file, and no table yet */
	int64_t next; /* number of the next row */
};

/* The zeroed struct is empty. */
void hc_dbids_fini(struct hc_dbids *m);
/* Known: its row. 0: none. Negative: out of memory. */
int64_t hc_dbids_find(struct hc_dbids *m, uint64_t id);
/* The row of the id, a new one if need be. 0: out of memory. */
int64_t hc_dbids_row(struct hc_dbids *m, uint64_t id);
/* As it was read from the file, before any other call. False: out of memory. */
bool hc_dbids_note(struct hc_dbids *m, uint64_t id, int64_t row);
void hc_dbids_del(struct hc_dbids *m, uint64_t id);

#endif
