/* SPDX-License-Identifier: Apache-2.0 */
/* Rows that wait for the disk; see backlog.h. */
#include <errno.h>
#include <sqlite3.h>
#include <stdlib.h>
#include "backlog.h"
#include "core.h"

struct hc_backlog {
	sqlite3 *h;
	sqlite3_stmt *put, *all;
};

struct hc_backlog *hc_backlog_new(void)
{
	struct hc_backlog *b = calloc(1, sizeof(*b));

	if (!b)
		return NULL;
	if (sqlite3_open_v2(":memory:", &b->h,
			    SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX,
			    NULL) != SQLITE_OK ||
	    sqlite3_exec(b->h, "CREATE TABLE row(id INTEGER PRIMARY KEY, row BLOB)", NULL, NULL,
			 NULL) != SQLITE_OK ||
	    sqlite3_prepare_v2(b->h, "INSERT OR REPLACE INTO row VALUES(?,?)", -1, &b->put, NULL) !=
		    SQLITE_OK ||
	    sqlite3_prepare_v2(b->h, "SELECT id,row FROM row ORDER BY id", -1, &b->all, NULL) !=
		    SQLITE_OK) {
		hc_backlog_free(b);
		return NULL;
	}
	return b;
}

void hc_backlog_free(struct hc_backlog *b)
{
	if (!b)
		return;
	sqlite3_finalize(b->put);
	sqlite3_finalize(b->all);
	sqlite3_close(b->h);
	free(b);
}

void hc_backlog_put(struct hc_backlog *b, uint64_t id, const void *row, size_t len)
{
	int rc;

	sqlite3_bind_int64(b->put, 1, (sqlite3_int64)id);
	if (row)
		sqlite3_bind_blob64(b->put, 2, row, len, SQLITE_STATIC);
	else
		sqlite3_bind_null(b->put, 2);
	rc = sqlite3_step(b->put);
	sqlite3_reset(b->put);
	if (rc != SQLITE_DONE)
		hc_panic(__FILE__, __LINE__, "out of memory for rows that the disk did not take");
}

int hc_backlog_each(struct hc_backlog *b,
		    int (*fn)(void *arg, uint64_t id, const void *row, size_t len), void *arg)
{
	int rc = SQLITE_DONE, r = 0;

	while (!r && (rc = sqlite3_step(b->all)) == SQLITE_ROW) {
		const void *row = NULL;
		size_t len = (size_t)sqlite3_column_bytes(b->all, 1);

		if (sqlite3_column_type(b->all, 1) != SQLITE_NULL)
			row = sqlite3_column_blob(b->all, 1);
		r = fn(arg, (uint64_t)sqlite3_column_int64(b->all, 0), row, len);
	}
	sqlite3_reset(b->all);
	return !r && rc != SQLITE_DONE ? -ENOMEM : r;
}

void hc_backlog_clear(struct hc_backlog *b)
{
	sqlite3_exec(b->h, "DELETE FROM row", NULL, NULL, NULL);
}
