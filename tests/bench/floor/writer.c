/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The database of the floors and the thread that may own it. sqlite's own automatic checkpoint
 * stays as it comes (1,000 pages), because a log that is never checkpointed would be a floor
 * that nobody can run on.
 */
#include "writer.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

static void must(struct writer *w, int r, const char *what)
{
	if (r != SQLITE_OK && r != SQLITE_DONE && r != SQLITE_ROW)
		bench_die("sqlite: %s: %s", what, w->db ? sqlite3_errmsg(w->db) : "no memory");
}

static void run(struct writer *w, const char *sql)
{
	must(w, sqlite3_exec(w->db, sql, NULL, NULL, NULL), sql);
}

static sqlite3_stmt *prepare(struct writer *w, const char *sql)
{
	sqlite3_stmt *s = NULL;

	must(w, sqlite3_prepare_v3(w->db, sql, -1, SQLITE_PREPARE_PERSISTENT, &s, NULL), sql);
	return s;
}

void writer_open(struct writer *w, const char *path, size_t row_bytes)
{
	if (!row_bytes || row_bytes > WRITER_ROW_MAX)
		bench_die("a row of %zu bytes; wanted: 1 to %d", row_bytes, WRITER_ROW_MAX);
	*w = (struct writer){.row_bytes = row_bytes, .wake = -1, .done = -1};
	memset(w->row, 0x5a, row_bytes);
	must(w, sqlite3_open(path, &w->db), path);
	run(w, "PRAGMA journal_mode = WAL");
	run(w, "PRAGMA synchronous = NORMAL");
	run(w, "PRAGMA locking_mode = EXCLUSIVE");
	run(w, "CREATE TABLE t (id INTEGER PRIMARY KEY, row BLOB)");
	w->begin = prepare(w, "BEGIN IMMEDIATE");
	w->insert = prepare(w, "INSERT INTO t (row) VALUES (?1)");
	w->commit = prepare(w, "COMMIT");
}

void writer_close(struct writer *w)
{
	sqlite3_finalize(w->begin);
	sqlite3_finalize(w->insert);
	sqlite3_finalize(w->commit);
	sqlite3_close(w->db);
}

static void step(struct writer *w, sqlite3_stmt *s)
{
	must(w, sqlite3_step(s), sqlite3_sql(s));
	must(w, sqlite3_reset(s), sqlite3_sql(s));
}

void writer_commit(struct writer *w)
{
	step(w, w->begin);
	must(w, sqlite3_bind_blob(w->insert, 1, w->row, (int)w->row_bytes, SQLITE_STATIC), "bind");
	step(w, w->insert);
	step(w, w->commit);
}

void writer_commit_many(struct writer *w, unsigned rows)
{
	step(w, w->begin);
	while (rows--) {
		must(w, sqlite3_bind_blob(w->insert, 1, w->row, (int)w->row_bytes, SQLITE_STATIC),
		     "bind");
		step(w, w->insert);
	}
	step(w, w->commit);
}

static void event_put(int fd, uint64_t n)
{
	if (write(fd, &n, sizeof(n)) != sizeof(n))
		bench_die("eventfd: %s", strerror(errno));
}

static uint64_t event_take(int fd)
{
	uint64_t n = 0;

	if (read(fd, &n, sizeof(n)) != sizeof(n))
		bench_die("eventfd: %s", strerror(errno));
	return n;
}

/* 1 is a row, more is the end. */
static void *work(void *arg)
{
	struct writer *w = arg;

	while (event_take(w->wake) == 1) {
		writer_commit(w);
		event_put(w->done, 1);
	}
	return NULL;
}

void writer_start(struct writer *w)
{
	int r;

	w->wake = eventfd(0, EFD_CLOEXEC);
	w->done = eventfd(0, EFD_CLOEXEC);
	if (w->wake < 0 || w->done < 0)
		bench_die("eventfd: %s", strerror(errno));
	r = pthread_create(&w->thread, NULL, work, w);
	if (r)
		bench_die("pthread_create: %s", strerror(r));
}

void writer_stop(struct writer *w)
{
	event_put(w->wake, 2);
	pthread_join(w->thread, NULL);
	close(w->wake);
	close(w->done);
}

void writer_submit(struct writer *w)
{
	event_put(w->wake, 1);
}

void writer_finish(struct writer *w)
{
	event_take(w->done);
}
