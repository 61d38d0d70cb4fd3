/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Floor of a durable commit: sqlite in WAL mode with synchronous NORMAL, one row in one
 * transaction through a prepared statement, no index beyond the row id, no second table.
 * With the hand-off the row goes to a thread that owns the database: one eventfd to it, one
 * back, one slot between, which is the least that a loop that must not block can do.
 */
#ifndef HC_FLOOR_WRITER_H
#define HC_FLOOR_WRITER_H

#include <pthread.h>
#include <sqlite3.h>
#include <stddef.h>
#include <stdint.h>

#include "bench.h"

enum { WRITER_ROW_MAX = 4096 };

struct writer {
	sqlite3 *db;
	sqlite3_stmt *begin;
	sqlite3_stmt *insert;
	sqlite3_stmt *commit;
	size_t row_bytes;
	uint8_t row[WRITER_ROW_MAX];
	int wake;
	int done;
	pthread_t thread;
};

/* Opens a new database file `path`; no thread yet. */
void writer_open(struct writer *w, const char *path, size_t row_bytes);
void writer_close(struct writer *w);
/* One transaction with one row, in the calling thread. */
void writer_commit(struct writer *w);
/* The same with several rows. */
void writer_commit_many(struct writer *w, unsigned rows);

/* The thread runs where the caller is bound. */
void writer_start(struct writer *w);
void writer_stop(struct writer *w);
/* Hands w->row over; w->done becomes readable once it is committed. One at a time. */
void writer_submit(struct writer *w);
void writer_finish(struct writer *w);

/* Mean nanoseconds of one commit, in this thread or through the hand-off. */
double floor_sqlite_ns(struct writer *w, uint64_t commits, struct bench_samples *each);
double floor_sqlite_handoff_ns(struct writer *w, uint64_t commits, struct bench_samples *each);

#endif
