/* SPDX-License-Identifier: Apache-2.0 */
/* Stored domains at a start; see rows.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "codec.h"
#include "log.h"
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

int hc_rows_read(struct hc_rows *rows, struct hc_db *db)
{
	int r;

	memset(rows, 0, sizeof(*rows));
	r = hc_db_domains(db, add_row, rows);
	if (r)
		hc_rows_fini(rows);
	return r;
}

void hc_rows_fini(struct hc_rows *rows)
{
	free(rows->bytes);
	free(rows->dead);
	memset(rows, 0, sizeof(*rows));
}

/* Members of one process stand near to each other, so the newest entries are looked at first. */
static bool is_known_dead(const struct hc_rows *r, uint32_t pid, uint64_t started)
{
	size_t i;

	for (i = r->ndead; i-- > 0;)
		if (r->dead[i].pid == pid && r->dead[i].started == started)
			return true;
	return false;
}

static void add_dead(struct hc_rows *r, uint32_t pid, uint64_t started)
{
	size_t cap = r->dead_cap ? 2 * r->dead_cap : 64;
	struct hc_rows_dead *p;

	if (r->ndead == r->dead_cap) {
		p = realloc(r->dead, cap * sizeof(*p));
		if (!p) {
			hc_log(HC_LOG_ERROR, "out of memory: the end of pid %u is not told", pid);
			return;
		}
		r->dead = p;
		r->dead_cap = cap;
	}
	r->dead[r->ndead++] = (struct hc_rows_dead){pid, started};
}

static void watch_members(struct hc_rows *r, struct hc_str row, struct hc_ctl *ctl)
{
	struct hc_m_member_row member;
	struct hc_m_domain_row m;

	if (hc_decode(&hc_desc_domain_row, HC_PROTO_MAX, (const uint8_t *)row.p, row.len, &m)) {
		hc_log(HC_LOG_ERROR, "a stored domain cannot be read");
		return;
	}
	while (hc_arr_next(&m.members, &hc_desc_member_row, HC_PROTO_MAX, &member)) {
		if (!member.pid || is_known_dead(r, member.pid, member.started))
			continue;
		if (!hc_ctl_watch(ctl, member.pid, member.started))
			add_dead(r, member.pid, member.started);
	}
}

void hc_rows_feed(struct hc_rows *rows, struct hc_loop *loop, struct hc_ctl *ctl)
{
	struct hc_str row;
	size_t at = 0;

	while (at < rows->used) {
		memcpy(&row.len, rows->bytes + at, sizeof(row.len));
		row.p = (const char *)rows->bytes + at + sizeof(row.len);
		at += sizeof(row.len) + row.len;
		watch_members(rows, row, ctl);
		hc_loop_row(loop, row);
	}
}

void hc_rows_feed_dead(const struct hc_rows *rows, struct hc_loop *loop)
{
	size_t i;

	for (i = 0; i < rows->ndead; i++)
		hc_loop_dead(loop, rows->dead[i].pid, rows->dead[i].started);
}
