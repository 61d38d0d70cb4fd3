/* SPDX-License-Identifier: Apache-2.0 */
/* Stored domains at a start; see rows.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "rows.h"

static int add_row(void *arg, uint64_t id, const void *row, size_t len)
{
	struct hc_rows *r = arg;
	uint32_t n = (uint32_t)len;
	size_t need = r->used + sizeof(n) + len, cap = r->cap ? r->cap : 65536;
	uint8_t *p;

	(void)id;
	if (need > r->cap) {
		while (cap < need)
			cap *= 2;
		p = realloc(r->bytes, cap);
		if (!p)
			return -ENOMEM;
		r->bytes = p;
		r->cap = cap;
	}
	memcpy(r->bytes + r->used, &n, sizeof(n));
	if (len)
		memcpy(r->bytes + r->used + sizeof(n), row, len);
	r->used = need;
	return 0;
}

static int read_all(struct hc_rows *rows, struct hc_db *db,
		    int (*all)(struct hc_db *db, hc_db_domain_fn *fn, void *arg))
{
	int r;

	memset(rows, 0, sizeof(*rows));
	r = all(db, add_row, rows);
	if (r)
		hc_rows_fini(rows);
	return r;
}

int hc_rows_read(struct hc_rows *rows, struct hc_db *db)
{
	return read_all(rows, db, hc_db_domains);
}

int hc_rows_read_channels(struct hc_rows *rows, struct hc_db *db)
{
	return read_all(rows, db, hc_db_channels);
}

void hc_rows_fini(struct hc_rows *rows)
{
	free(rows->bytes);
	memset(rows, 0, sizeof(*rows));
}

void hc_rows_feed(const struct hc_rows *rows, struct hc_loop *loop,
		  void (*fn)(struct hc_loop *loop, struct hc_str row))
{
	struct hc_str row;
	size_t at = 0;

	while (at < rows->used) {
		memcpy(&row.len, rows->bytes + at, sizeof(row.len));
		row.p = (const char *)rows->bytes + at + sizeof(row.len);
		at += sizeof(row.len) + row.len;
		fn(loop, row);
	}
}
