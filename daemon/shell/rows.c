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

static int feed_domain(void *loop, uint64_t id, const void *row, size_t len)
{
	(void)id;
	hc_loop_row(loop, (struct hc_str){row, (uint32_t)len});
	return 0;
}

int hc_rows_take_back(struct hc_rows *channels, struct hc_db *db, struct hc_loop *loop)
{
	uint32_t count;
	size_t bytes;
	int r;

	memset(channels, 0, sizeof(*channels));
	hc_db_domains_about(db, &count, &bytes);
	hc_loop_expect(loop, count, bytes);
	r = hc_db_domains(db, feed_domain, loop);
	if (!r)
		r = hc_db_channels(db, add_row, channels);
	if (r)
		hc_rows_fini(channels);
	return r;
}

void hc_rows_fini(struct hc_rows *rows)
{
	free(rows->bytes);
	memset(rows, 0, sizeof(*rows));
}

void hc_rows_feed_channels(const struct hc_rows *rows, struct hc_loop *loop)
{
	struct hc_str row;
	size_t at = 0;

	while (at < rows->used) {
		memcpy(&row.len, rows->bytes + at, sizeof(row.len));
		row.p = (const char *)rows->bytes + at + sizeof(row.len);
		at += sizeof(row.len) + row.len;
		hc_loop_channel_row(loop, row);
	}
}
