/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stored domains and channels at a start: read before the store's thread takes the database, then
 * given to the core one by one, before its START.
 */
#ifndef HC_ROWS_H
#define HC_ROWS_H

#include "db.h"
#include "loop.h"

struct hc_rows {
	uint8_t *bytes; /* a u32 length and a row, one behind the other */
	size_t used, cap;
};

/* 0, or what the database says. */
int hc_rows_read(struct hc_rows *rows, struct hc_db *db);
int hc_rows_read_channels(struct hc_rows *rows, struct hc_db *db);
void hc_rows_feed(const struct hc_rows *rows, struct hc_loop *loop,
		  void (*fn)(struct hc_loop *loop, struct hc_str row));
void hc_rows_fini(struct hc_rows *rows);

#endif
