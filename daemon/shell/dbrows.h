/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows of domains that a start has read.
 *
 * A start reads the table of domains once: that is its check, which has to be over before
 * anything is made of a row, and it is what the core is given afterwards. Between the two the
 * rows stand here, in pieces that are taken from the system page by page in one call and go back
 * to it as they are given away: nothing of them stays in the heap.
 */
#ifndef HC_DBROWS_H
#define HC_DBROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hc_dbrows_piece;
struct hc_dbrows {
	struct hc_dbrows_piece *first, *last;
	uint32_t count;
	size_t bytes; /* of the rows */
};

/* The zeroed struct is empty. False: out of memory. */
bool hc_dbrows_add(struct hc_dbrows *rows, uint64_t id, const void *row, size_t len);
/* Gives them away in their order, until `fn` returns other than 0, and is empty then. */
int hc_dbrows_give(struct hc_dbrows *rows,
		   int (*fn)(void *arg, uint64_t id, const void *row, size_t len), void *arg);
void hc_dbrows_fini(struct hc_dbrows *rows);

#endif
