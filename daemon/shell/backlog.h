/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Domain rows that the disk did not take: the latest of each domain, or that it is gone.
 *
 * It is an in-memory database of the same library: as large as the domains that changed, found
 * by id, and emptied in one statement.
 */
#ifndef HC_BACKLOG_H
#define HC_BACKLOG_H

#include <stddef.h>
#include <stdint.h>

struct hc_backlog;

struct hc_backlog *hc_backlog_new(void); /* NULL: no memory */
void hc_backlog_free(struct hc_backlog *b);
/* `row` NULL: the domain is gone. */
void hc_backlog_put(struct hc_backlog *b, uint64_t id, const void *row, size_t len);
/* By id; `fn` returns 0 to go on, else that is returned. */
int hc_backlog_each(struct hc_backlog *b,
		    int (*fn)(void *arg, uint64_t id, const void *row, size_t len), void *arg);
void hc_backlog_clear(struct hc_backlog *b);

#endif
