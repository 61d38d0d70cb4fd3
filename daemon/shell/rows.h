/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stored domains and channels at a start: read before the store's thread takes the database, and
 * given to the core one by one, before its START. Domains, of which there may be very many, at
 * once; channels later, since one that cannot be taken back is deleted, by the store's thread.
 */
#ifndef HC_ROWS_H
#define HC_ROWS_H

#include "db.h"
#include "loop.h"

struct hc_rows {
	uint8_t *bytes; /* a u32 length and a row, one behind the other */
	size_t used, cap;
};

/* Domains go to the core, channels are kept. 0, or what the database says. */
int hc_rows_take_back(struct hc_rows *channels, struct hc_db *db, struct hc_loop *loop);
void hc_rows_feed_channels(const struct hc_rows *channels, struct hc_loop *loop);
void hc_rows_fini(struct hc_rows *rows);

#endif
