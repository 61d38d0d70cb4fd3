/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon's database from outside; see dbcheck.h. */
#include "dbcheck.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "codec.h"
#include "wire.h"

void hc_copy_file(const char *from, const char *to)
{
	FILE *in = fopen(from, "re"), *out = fopen(to, "we");
	char buf[65536];
	size_t n;

	if (!in || !out)
		hc_fail("copy of %s to %s: %s", from, to, strerror(errno));
	while ((n = fread(buf, 1, sizeof(buf), in)) > 0)
		if (fwrite(buf, 1, n, out) != n)
			hc_fail("%s: %s", to, strerror(errno));
	fclose(in);
	if (fclose(out))
		hc_fail("%s: %s", to, strerror(errno));
}

static sqlite3 *open_copy(const struct hc_node *n)
{
	char from[256], to[256];
	sqlite3 *h;

	snprintf(from, sizeof(from), "%s/state/state.db-wal", n->dir);
	snprintf(to, sizeof(to), "%s/copy.db-wal", n->dir);
	if (!access(from, F_OK))
		hc_copy_file(from, to);
	else
		unlink(to);
	snprintf(from, sizeof(from), "%s/state/state.db", n->dir);
	snprintf(to, sizeof(to), "%s/copy.db", n->dir);
	hc_copy_file(from, to);
	if (sqlite3_open_v2(to, &h, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK)
		hc_fail("%s: %s", to, sqlite3_errmsg(h));
	return h;
}

static void read_ids(struct hc_dbcheck *d, sqlite3 *h)
{
	sqlite3_stmt *s;
	size_t room = 0;

	if (sqlite3_prepare_v2(h, "SELECT id FROM domain", -1, &s, NULL) != SQLITE_OK)
		hc_fail("domains: %s", sqlite3_errmsg(h));
	while (sqlite3_step(s) == SQLITE_ROW) {
		if (d->count == room) {
			room = room ? 2 * room : 64;
			d->ids = reallocarray(d->ids, room, sizeof(*d->ids));
			if (!d->ids)
				hc_fail("no memory");
		}
		d->ids[d->count++] = (uint64_t)sqlite3_column_int64(s, 0);
	}
	sqlite3_finalize(s);
}

void hc_dbcheck_read(struct hc_dbcheck *d, const struct hc_node *n)
{
	sqlite3 *h = open_copy(n);
	sqlite3_stmt *s;

	memset(d, 0, sizeof(*d));
	if (sqlite3_prepare_v2(h, "PRAGMA integrity_check", -1, &s, NULL) != SQLITE_OK ||
	    sqlite3_step(s) != SQLITE_ROW)
		hc_fail("integrity_check: %s", sqlite3_errmsg(h));
	snprintf(d->integrity, sizeof(d->integrity), "%s", (const char *)sqlite3_column_text(s, 0));
	sqlite3_finalize(s);
	read_ids(d, h);
	sqlite3_close(h);
}

bool hc_dbcheck_has(const struct hc_dbcheck *d, uint64_t id)
{
	size_t i;

	for (i = 0; i < d->count; i++)
		if (d->ids[i] == id)
			return true;
	return false;
}

void hc_dbcheck_fini(struct hc_dbcheck *d)
{
	free(d->ids);
	d->ids = NULL;
}

void hc_db_exec(const struct hc_node *n, const char *sql)
{
	char path[256], *why = NULL;
	sqlite3 *h;

	snprintf(path, sizeof(path), "%s/state/state.db", n->dir);
	if (sqlite3_open_v2(path, &h, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK ||
	    sqlite3_exec(h, sql, NULL, NULL, &why) != SQLITE_OK)
		hc_fail("%s: %s", sql, why ? why : sqlite3_errmsg(h));
	sqlite3_close(h);
}

static void want(sqlite3 *h, bool ok, const char *what)
{
	if (!ok)
		hc_fail("%s: %s", what, sqlite3_errmsg(h));
}

void hc_db_set_back(const struct hc_node *n, uint64_t id, uint8_t state)
{
	static uint8_t bytes[65536];
	struct hc_m_domain_row m = {0};
	sqlite3_stmt *get, *set;
	char path[256];
	sqlite3 *h;
	size_t len;

	snprintf(path, sizeof(path), "%s/state/state.db", n->dir);
	if (sqlite3_open_v2(path, &h, SQLITE_OPEN_READWRITE, NULL))
		hc_fail("%s: %s", path, sqlite3_errmsg(h));
	want(h, !sqlite3_prepare_v2(h, "SELECT row FROM domain WHERE id = ?", -1, &get, NULL),
	     path);
	sqlite3_bind_int64(get, 1, (sqlite3_int64)id);
	want(h, sqlite3_step(get) == SQLITE_ROW, "the row of the domain");
	want(h,
	     !hc_decode(&hc_desc_domain_row, HC_PROTO_MAX, sqlite3_column_blob(get, 0),
			(size_t)sqlite3_column_bytes(get, 0), &m),
	     "the row is malformed");
	m.state = state;
	want(h, !hc_encode(&hc_desc_domain_row, HC_PROTO_MAX, &m, bytes, sizeof(bytes), &len),
	     "the row is too long");
	want(h, !sqlite3_prepare_v2(h, "UPDATE domain SET row = ? WHERE id = ?", -1, &set, NULL),
	     path);
	sqlite3_finalize(get);
	sqlite3_bind_blob(set, 1, bytes, (int)len, SQLITE_STATIC);
	sqlite3_bind_int64(set, 2, (sqlite3_int64)id);
	want(h, sqlite3_step(set) == SQLITE_DONE && sqlite3_changes(h) == 1, "UPDATE");
	sqlite3_finalize(set);
	sqlite3_close(h);
}
