/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The database file; see db.h.
 *
 * A start reads the tables that decide something from end to end, which is a check of each of
 * their pages and rows; nothing is made of a row before. The rest is the journal. After a boot,
 * when power may have been lost, it is checked before the start as well, if the file is not
 * large; otherwise when the daemon is up and has nothing to store (hc_db_check). What is found
 * then is said and remembered in the file, and the next start puts it aside.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>
#include "dbaside.h"
#include "dbids.h"
#include "dbrows.h"
#include "dbschema.h"
#include "core.h"
#include "db.h"
#include "ident.h"

#define CHECK_BYTES (64ll << 20)
#define PRUNE_ROWS  4096u
#define SUSPECT     "damaged" /* in meta: the check of a running daemon has found it so */
#define DAY_NS      86400000000000ull

enum stmt {
	S_BEGIN,
	S_COMMIT,
	S_PUT,
	S_DEL,
	S_DEL_ID,
	S_EVENT,
	S_META_GET,
	S_META_SET,
	S_DOMAINS,
	S_PUT_CHANNEL,
	S_DEL_CHANNEL,
	S_CHANNELS,
	STMTS
};

static const char *const sql[STMTS] = {
	[S_BEGIN] = "BEGIN IMMEDIATE",
	[S_COMMIT] = "COMMIT",
	[S_PUT] = "INSERT OR REPLACE INTO domain(seq,id,row) VALUES(?,?,?)",
	[S_DEL] = "DELETE FROM domain WHERE seq=?",
	[S_DEL_ID] = "DELETE FROM domain WHERE id=?",
	[S_EVENT] = ("INSERT INTO event(wall_ns,mono_ns,kind,domain,epoch,rank,pid,uid,text) "
		     "VALUES(?,?,?,?,?,?,?,?,?)"),
	[S_META_GET] = "SELECT value FROM meta WHERE key=?",
	[S_META_SET] = "INSERT OR REPLACE INTO meta(key,value) VALUES(?,?)",
	[S_DOMAINS] = "SELECT id,row,seq FROM domain ORDER BY seq",
	[S_PUT_CHANNEL] = "INSERT OR REPLACE INTO channel(id,row) VALUES(?,?)",
	[S_DEL_CHANNEL] = "DELETE FROM channel WHERE id=?",
	[S_CHANNELS] = "SELECT id,row FROM channel ORDER BY id",
};

struct hc_db {
	sqlite3 *h;
	sqlite3_stmt *s[STMTS];
	struct hc_dbids ids;   /* rows of the table `domain` */
	struct hc_dbrows rows; /* as the start has read them, until they are asked for */
	bool checked;          /* the whole file was, since this start */
	atomic_bool interrupted;
};

/* ---- small steps ---- */

static int outcome(int rc)
{
	switch (rc & 0xff) {
	case SQLITE_OK: return 0;
	case SQLITE_DONE: return 0;
	case SQLITE_FULL: return HC_DB_NO_ROOM;
	case SQLITE_READONLY: return HC_DB_NO_ROOM;
	case SQLITE_IOERR: return HC_DB_NO_ROOM;
	case SQLITE_CANTOPEN: return HC_DB_NO_ROOM;
	case SQLITE_NOMEM: return -ENOMEM;
	default: return -EIO; /* sqlite has some thirty codes; the others are damage or bugs */
	}
}

static int run(struct hc_db *db, enum stmt s)
{
	int rc = sqlite3_step(db->s[s]);

	sqlite3_reset(db->s[s]);
	return outcome(rc);
}

static int exec(struct hc_db *db, const char *text)
{
	return outcome(sqlite3_exec(db->h, text, NULL, NULL, NULL));
}

/* Integers of sqlite are signed; ours keep their 64 bits. */
static void bind_u64(struct hc_db *db, enum stmt s, int at, uint64_t v)
{
	sqlite3_bind_int64(db->s[s], at, (sqlite3_int64)v);
}

static uint64_t column_u64(sqlite3_stmt *s, int at)
{
	return (uint64_t)sqlite3_column_int64(s, at);
}

static int prepare(struct hc_db *db)
{
	int i, rc;

	for (i = 0; i < STMTS; i++) {
		rc = sqlite3_prepare_v3(db->h, sql[i], -1, SQLITE_PREPARE_PERSISTENT, &db->s[i],
					NULL);
		if (rc != SQLITE_OK)
			return outcome(rc);
	}
	return 0;
}

static void shut(struct hc_db *db)
{
	int i;

	for (i = 0; i < STMTS; i++)
		sqlite3_finalize(db->s[i]);
	memset(db->s, 0, sizeof(db->s));
	sqlite3_close(db->h);
	db->h = NULL;
	hc_dbids_fini(&db->ids);
	hc_dbrows_fini(&db->rows);
}

/* ---- meta ---- */

static bool meta_get(struct hc_db *db, const char *key, uint64_t *number, char *text, size_t size)
{
	sqlite3_stmt *s = db->s[S_META_GET];
	bool found;

	sqlite3_bind_text(s, 1, key, -1, SQLITE_STATIC);
	found = sqlite3_step(s) == SQLITE_ROW;
	if (found && number)
		*number = column_u64(s, 0);
	if (found && text) {
		const unsigned char *value = sqlite3_column_text(s, 0);

		snprintf(text, size, "%s", value ? (const char *)value : "");
	}
	sqlite3_reset(s);
	return found;
}

static int meta_set_u64(struct hc_db *db, const char *key, uint64_t v)
{
	sqlite3_bind_text(db->s[S_META_SET], 1, key, -1, SQLITE_STATIC);
	bind_u64(db, S_META_SET, 2, v);
	return run(db, S_META_SET);
}

static int meta_set_text(struct hc_db *db, const char *key, const char *v)
{
	sqlite3_bind_text(db->s[S_META_SET], 1, key, -1, SQLITE_STATIC);
	sqlite3_bind_text(db->s[S_META_SET], 2, v, -1, SQLITE_STATIC);
	return run(db, S_META_SET);
}

/* ---- opening ---- */

static bool pragma_is(struct hc_db *db, const char *text, const char *want)
{
	sqlite3_stmt *s = NULL;
	bool ok = false;

	if (sqlite3_prepare_v2(db->h, text, -1, &s, NULL) == SQLITE_OK &&
	    sqlite3_step(s) == SQLITE_ROW) {
		const unsigned char *got = sqlite3_column_text(s, 0);

		ok = got && !strcmp((const char *)got, want);
	}
	sqlite3_finalize(s);
	return ok;
}

static int64_t user_version(struct hc_db *db)
{
	sqlite3_stmt *s = NULL;
	int64_t v = -1;

	if (sqlite3_prepare_v2(db->h, "PRAGMA user_version", -1, &s, NULL) == SQLITE_OK &&
	    sqlite3_step(s) == SQLITE_ROW)
		v = sqlite3_column_int64(s, 0);
	sqlite3_finalize(s);
	return v;
}

static int tune(struct hc_db *db)
{
	return exec(db, "PRAGMA locking_mode=EXCLUSIVE;"
			"PRAGMA journal_mode=WAL;"
			"PRAGMA synchronous=NORMAL;"
			"PRAGMA wal_autocheckpoint=1000;PRAGMA journal_size_limit=4194304;"
			"PRAGMA temp_store=MEMORY;");
}

static bool is_small(const char *path)
{
	struct stat st;

	return !stat(path, &st) && st.st_size <= CHECK_BYTES;
}

static bool is_whole(struct hc_db *db)
{
	return pragma_is(db, "PRAGMA quick_check(1)", "ok");
}

/* A row of the table of domains; `last` is the number of the one before. */
static int read_row(struct hc_db *db, sqlite3_stmt *s, int64_t *last)
{
	const uint64_t id = column_u64(s, 0);
	const int64_t seq = sqlite3_column_int64(s, 2);
	const void *row = sqlite3_column_blob(s, 1);

	if (!id || seq <= *last || sqlite3_column_type(s, 1) != SQLITE_BLOB)
		return -EIO;
	*last = seq;
	if (!hc_dbids_note(&db->ids, id, seq) ||
	    !hc_dbrows_add(&db->rows, id, row, (size_t)sqlite3_column_bytes(s, 1)))
		return -ENOMEM;
	return 0;
}

/* Each page of the table is looked at, cell by cell. */
static int read_domains(struct hc_db *db)
{
	sqlite3_stmt *s = NULL;
	int rc = sqlite3_prepare_v2(db->h, sql[S_DOMAINS], -1, &s, NULL), r = 0;
	int64_t last = 0;

	if (rc == SQLITE_OK)
		while (!r && (rc = sqlite3_step(s)) == SQLITE_ROW)
			r = read_row(db, s, &last);
	sqlite3_finalize(s);
	return r ? r : outcome(rc);
}

static int read_through(struct hc_db *db, const char *text)
{
	sqlite3_stmt *s = NULL;
	int rc = sqlite3_prepare_v2(db->h, text, -1, &s, NULL);

	if (rc == SQLITE_OK)
		while ((rc = sqlite3_step(s)) == SQLITE_ROW)
			sqlite3_column_blob(s, 1);
	sqlite3_finalize(s);
	return outcome(rc);
}

static bool is_suspect(struct hc_db *db, const char *boot_id)
{
	char text[HC_BOOT_BYTES + 128];

	snprintf(text, sizeof(text),
		 "SELECT sum(key='boot' AND value='%s') AND NOT sum(key='" SUSPECT "') FROM meta",
		 boot_id);
	return !pragma_is(db, text, "1");
}

static int read_all(struct hc_db *db, const char *path, const char *boot_id)
{
	int r = read_through(db, "SELECT key,value FROM meta");

	if (!r)
		r = read_domains(db);
	if (!r && is_suspect(db, boot_id) && is_small(path)) {
		db->checked = true;
		r = is_whole(db) ? 0 : -EIO;
	}
	return r;
}

enum open_result { OPEN_SOUND, OPEN_NEW, OPEN_DAMAGED, OPEN_FUTURE, OPEN_FAILED, OPEN_NO_MEMORY };

static enum open_result make_schema(struct hc_db *db)
{
	return exec(db, hc_dbschema) || prepare(db) ? OPEN_FAILED : OPEN_NEW;
}

/* Rows that were read before are read again, as they are now. */
static int bring_up(struct hc_db *db, int64_t version)
{
	int64_t at = version;
	int r = 0;

	for (; !r && at < HC_DB_SCHEMA; at++)
		r = exec(db, hc_dbschema_next[at]);
	if (r || version == HC_DB_SCHEMA)
		return r;
	hc_dbids_fini(&db->ids);
	hc_dbrows_fini(&db->rows);
	return read_domains(db);
}

/* Looks at the file before anything may change it. */
static enum open_result open_file(struct hc_db *db, const char *path, const char *boot_id)
{
	int rc = sqlite3_open_v2(path, &db->h,
				 SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX |
					 SQLITE_OPEN_NOFOLLOW,
				 NULL);
	int64_t version;

	if (rc == SQLITE_NOMEM || !db->h)
		return OPEN_NO_MEMORY;
	if (rc != SQLITE_OK)
		return OPEN_FAILED;
	sqlite3_extended_result_codes(db->h, 1);
	if (exec(db, "PRAGMA locking_mode=EXCLUSIVE"))
		return OPEN_FAILED;
	version = user_version(db);
	if (version > HC_DB_SCHEMA)
		return OPEN_FUTURE;
	if (version < 0) {
		rc = sqlite3_errcode(db->h) & 0xff;
		return rc == SQLITE_NOTADB || rc == SQLITE_CORRUPT ? OPEN_DAMAGED : OPEN_FAILED;
	}
	/* what is damaged is found by what follows */
	exec(db, "PRAGMA cache_size=-384;PRAGMA cell_size_check=ON");
	rc = version ? read_all(db, path, boot_id) : 0;
	if (rc)
		return rc == -ENOMEM ? OPEN_NO_MEMORY : OPEN_DAMAGED;
	rc = tune(db);
	if (rc)
		return rc == HC_DB_NO_ROOM ? OPEN_FAILED : OPEN_DAMAGED;
	if (!version) {
		/* an empty file is a new one; tables without our number are not ours */
		if (!pragma_is(db, "SELECT count(*) FROM sqlite_schema", "0"))
			return OPEN_DAMAGED;
		return make_schema(db);
	}
	rc = bring_up(db, version);
	if (rc)
		return rc == HC_DB_NO_ROOM ? OPEN_FAILED : OPEN_DAMAGED;
	if (prepare(db) || read_through(db, sql[S_CHANNELS]))
		return OPEN_DAMAGED;
	return OPEN_SOUND;
}

static int refuse_open(struct hc_db *db, enum open_result r, const char *path, char *why,
		       size_t size)
{
	if (r == OPEN_FUTURE)
		snprintf(why, size,
			 "%s: is of schema version %lld, this hcommd knows up to %d; it is left "
			 "untouched. Upgrade hcomm, or move the file away",
			 path, (long long)user_version(db), HC_DB_SCHEMA);
	else
		snprintf(why, size, "%s: cannot open the database: %s", path,
			 db->h ? sqlite3_errmsg(db->h) : "out of memory");
	return HC_DB_REFUSED;
}

static int open_checked(struct hc_db *db, const char *path, const char *boot_id,
			struct hc_db_start *start, char *why, size_t size)
{
	enum open_result r = open_file(db, path, boot_id);
	char aside[HC_DB_ASIDE_BYTES];

	if (r == OPEN_DAMAGED) {
		shut(db);
		if (hc_db_move_aside(path, aside, sizeof(aside))) {
			snprintf(why, size, "%s: is damaged and cannot be moved aside: %s", path,
				 strerror(errno));
			return HC_DB_REFUSED;
		}
		snprintf(start->problem, sizeof(start->problem),
			 "%s: the database is damaged; moved to %s, a new one is begun", path,
			 aside);
		r = open_file(db, path, boot_id);
	}
	switch (r) {
	case OPEN_SOUND: return 0;
	case OPEN_NEW: start->made = true; return 0;
	case OPEN_NO_MEMORY: return -ENOMEM;
	case OPEN_DAMAGED: break;
	case OPEN_FUTURE: break;
	case OPEN_FAILED: break;
	}
	return refuse_open(db, r, path, why, size);
}

/* A start that cannot be stored must not be one that was used: skip far ahead. */
static uint32_t unstored_start(uint64_t last)
{
	uint16_t skip;

	hc_ident_random(&skip, sizeof(skip));
	return (uint32_t)(last + 2u + skip);
}

static int count_start(struct hc_db *db, const char *boot_id, struct hc_db_start *start)
{
	uint64_t last = 0, incarnation = 0;
	char boot[HC_BOOT_BYTES] = "", node[40] = "";
	int r;

	meta_get(db, "start", &last, NULL, 0);
	meta_get(db, "incarnation", &incarnation, NULL, 0);
	meta_get(db, "boot", NULL, boot, sizeof(boot));
	start->same_boot = !strcmp(boot, boot_id);
	if (!incarnation)
		hc_ident_random(&incarnation, 6); /* 48 bits, and room to count boots */
	else if (!start->same_boot)
		incarnation++;
	start->incarnation = incarnation;
	start->start = (uint32_t)last + 1;
	if (meta_get(db, "node", NULL, node, sizeof(node)) && strlen(node) == 32) {
		unsigned i, byte;

		for (i = 0; i < 16 && sscanf(node + 2 * i, "%2x", &byte) == 1; i++)
			start->node[i] = (uint8_t)byte;
		start->has_node = i == 16;
	}
	if (!start->same_boot)
		exec(db, "PRAGMA synchronous=FULL");
	r = hc_db_begin(db);
	if (!r && !start->same_boot)
		r = exec(db, "DELETE FROM domain; DELETE FROM channel");
	if (!r)
		r = meta_set_text(db, "boot", boot_id);
	if (!r)
		r = meta_set_u64(db, "incarnation", incarnation);
	if (!r)
		r = meta_set_u64(db, "start", start->start);
	if (!r)
		r = hc_db_commit(db);
	if (r) {
		hc_db_rollback(db);
	} else if (!start->same_boot) {
		hc_dbrows_fini(&db->rows);
		hc_dbids_fini(&db->ids);
	}
	exec(db, "PRAGMA synchronous=NORMAL");
	start->stored = !r;
	if (r == HC_DB_NO_ROOM)
		start->start = unstored_start(last);
	return r == HC_DB_NO_ROOM ? 0 : r;
}

int hc_db_open(const char *path, const char *boot_id, struct hc_db **out, struct hc_db_start *start,
	       char *why, size_t size)
{
	struct hc_db *db = calloc(1, sizeof(*db));
	mode_t mask;
	int r;

	memset(start, 0, sizeof(*start));
	if (!db)
		return -ENOMEM;
	mask = umask(0077); /* rows name users and processes */
	r = open_checked(db, path, boot_id, start, why, size);
	umask(mask);
	if (!r) {
		r = count_start(db, boot_id, start);
		if (r < 0 && r != -ENOMEM) {
			snprintf(why, size, "%s: cannot count the start: %s", path,
				 sqlite3_errmsg(db->h));
			r = HC_DB_REFUSED;
		}
	}
	if (r) {
		shut(db);
		free(db);
		return r;
	}
	*out = db;
	return 0;
}

void hc_db_close(struct hc_db *db)
{
	if (!db)
		return;
	sqlite3_wal_checkpoint_v2(db->h, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
	shut(db);
	free(db);
}

/* ---- the check of the rest ---- */

bool hc_db_check_due(const struct hc_db *db)
{
	return !db->checked;
}

void hc_db_interrupt(struct hc_db *db)
{
	atomic_store(&db->interrupted, true);
	sqlite3_interrupt(db->h);
}

int hc_db_check(struct hc_db *db)
{
	bool sound;

	atomic_store(&db->interrupted, false);
	sound = !is_small(sqlite3_db_filename(db->h, "main")) || is_whole(db);
	if (atomic_load(&db->interrupted)) /* a check that was cut short may have seen nothing */
		return HC_DB_INTERRUPTED;
	db->checked = true;
	return sound ? 0 : HC_DB_DAMAGED;
}

int hc_db_set_damaged(struct hc_db *db)
{
	return meta_set_u64(db, SUSPECT, 1);
}

/* ---- rows ---- */

const char *hc_db_error(const struct hc_db *db)
{
	return sqlite3_errmsg(db->h);
}

int hc_db_set_node(struct hc_db *db, const uint8_t id[16])
{
	char text[33];
	int i;

	for (i = 0; i < 16; i++)
		snprintf(text + 2 * i, 3, "%02x", id[i]);
	return meta_set_text(db, "node", text);
}

int hc_db_set_start(struct hc_db *db, uint32_t start)
{
	return meta_set_u64(db, "start", start);
}

int hc_db_begin(struct hc_db *db)
{
	return run(db, S_BEGIN);
}

int hc_db_commit(struct hc_db *db)
{
	return run(db, S_COMMIT);
}

void hc_db_rollback(struct hc_db *db)
{
	if (!sqlite3_get_autocommit(db->h))
		sqlite3_exec(db->h, "ROLLBACK", NULL, NULL, NULL);
}

int hc_db_add_event(struct hc_db *db, const struct hc_db_event *e)
{
	bind_u64(db, S_EVENT, 1, e->wall_ns);
	bind_u64(db, S_EVENT, 2, e->mono_ns);
	bind_u64(db, S_EVENT, 3, e->kind);
	bind_u64(db, S_EVENT, 4, e->domain);
	bind_u64(db, S_EVENT, 5, e->epoch);
	bind_u64(db, S_EVENT, 6, e->rank);
	bind_u64(db, S_EVENT, 7, e->pid);
	bind_u64(db, S_EVENT, 8, e->uid);
	sqlite3_bind_text(db->s[S_EVENT], 9, e->text.len ? e->text.p : "", (int)e->text.len,
			  SQLITE_STATIC);
	return run(db, S_EVENT);
}

int hc_db_domains(struct hc_db *db, hc_db_domain_fn *fn, void *arg)
{
	sqlite3_stmt *s = db->s[S_DOMAINS];
	int rc = SQLITE_DONE, r = 0;

	if (db->rows.count)
		return hc_dbrows_give(&db->rows, fn, arg);
	while (!r && (rc = sqlite3_step(s)) == SQLITE_ROW)
		r = fn(arg, column_u64(s, 0), sqlite3_column_blob(s, 1),
		       (size_t)sqlite3_column_bytes(s, 1));
	sqlite3_reset(s);
	return r ? r : outcome(rc);
}

void hc_db_domains_about(const struct hc_db *db, uint32_t *count, size_t *bytes)
{
	*count = db->rows.count;
	*bytes = db->rows.bytes;
}

/* A row that is rolled back leaves its number in the map, which no other row will get. */
int hc_db_put_domain(struct hc_db *db, uint64_t id, const void *row, size_t len)
{
	int64_t seq = hc_dbids_row(&db->ids, id);

	if (!seq)
		return -ENOMEM;
	sqlite3_bind_int64(db->s[S_PUT], 1, seq);
	bind_u64(db, S_PUT, 2, id);
	sqlite3_bind_blob64(db->s[S_PUT], 3, row, len, SQLITE_STATIC);
	return run(db, S_PUT);
}

int hc_db_del_domain(struct hc_db *db, uint64_t id)
{
	int64_t seq = hc_dbids_find(&db->ids, id);

	if (seq < 0)
		return -ENOMEM;
	if (!seq) { /* never stored; or its deletion was rolled back, and is tried again */
		bind_u64(db, S_DEL_ID, 1, id);
		return run(db, S_DEL_ID);
	}
	hc_dbids_del(&db->ids, id);
	sqlite3_bind_int64(db->s[S_DEL], 1, seq);
	return run(db, S_DEL);
}

int hc_db_put_channel(struct hc_db *db, uint64_t id, const void *row, size_t len)
{
	bind_u64(db, S_PUT_CHANNEL, 1, id);
	sqlite3_bind_blob64(db->s[S_PUT_CHANNEL], 2, row, len, SQLITE_STATIC);
	return run(db, S_PUT_CHANNEL);
}

int hc_db_del_channel(struct hc_db *db, uint64_t id)
{
	bind_u64(db, S_DEL_CHANNEL, 1, id);
	return run(db, S_DEL_CHANNEL);
}

int hc_db_channels(struct hc_db *db, hc_db_domain_fn *fn, void *arg)
{
	sqlite3_stmt *s = db->s[S_CHANNELS];
	int rc = SQLITE_DONE, r = 0;

	while (!r && (rc = sqlite3_step(s)) == SQLITE_ROW)
		r = fn(arg, column_u64(s, 0), sqlite3_column_blob(s, 1),
		       (size_t)sqlite3_column_bytes(s, 1));
	sqlite3_reset(s);
	return r ? r : outcome(rc);
}

/* ---- the journal ---- */

static uint64_t one_number(struct hc_db *db, const char *text, uint64_t arg)
{
	sqlite3_stmt *s = NULL;
	uint64_t v = 0;

	if (sqlite3_prepare_v2(db->h, text, -1, &s, NULL) == SQLITE_OK) {
		sqlite3_bind_int64(s, 1, (sqlite3_int64)arg);
		if (sqlite3_step(s) == SQLITE_ROW)
			v = column_u64(s, 0);
	}
	sqlite3_finalize(s);
	return v;
}

static int delete_below(struct hc_db *db, uint64_t seq)
{
	sqlite3_stmt *s = NULL;
	int rc = sqlite3_prepare_v2(db->h, "DELETE FROM event WHERE seq<?", -1, &s, NULL);

	if (rc == SQLITE_OK) {
		sqlite3_bind_int64(s, 1, (sqlite3_int64)seq);
		rc = sqlite3_step(s);
	}
	sqlite3_finalize(s);
	return outcome(rc);
}

int hc_db_prune(struct hc_db *db, uint64_t wall_ns, uint32_t days, uint32_t rows, bool *more)
{
	uint64_t low = one_number(db, "SELECT ifnull(min(seq),0) FROM event WHERE ?1=?1", 0);
	uint64_t high = one_number(db, "SELECT ifnull(max(seq),0) FROM event WHERE ?1=?1", 0);
	uint64_t keep_ns = days * DAY_NS, cut, young;

	*more = false;
	if (!high)
		return 0;
	cut = high >= rows ? high - rows + 1 : low;
	/* rows are in order of time, so the first young one ends the walk */
	young = one_number(db, "SELECT seq FROM event WHERE wall_ns>=? ORDER BY seq LIMIT 1",
			   wall_ns > keep_ns ? wall_ns - keep_ns : 0);
	if (!young)
		young = high + 1;
	if (young > cut)
		cut = young;
	if (cut <= low)
		return 0;
	if (cut > low + PRUNE_ROWS) {
		cut = low + PRUNE_ROWS;
		*more = true;
	}
	return delete_below(db, cut);
}

static void event_of(sqlite3_stmt *s, struct hc_db_event *e)
{
	e->seq = column_u64(s, 0);
	e->wall_ns = column_u64(s, 1);
	e->mono_ns = column_u64(s, 2);
	e->kind = (uint16_t)sqlite3_column_int64(s, 3);
	e->domain = column_u64(s, 4);
	e->epoch = (uint32_t)sqlite3_column_int64(s, 5);
	e->rank = (uint32_t)sqlite3_column_int64(s, 6);
	e->pid = (uint32_t)sqlite3_column_int64(s, 7);
	e->uid = (uint32_t)sqlite3_column_int64(s, 8);
	e->text.p = (const char *)sqlite3_column_text(s, 9);
	e->text.len = (uint32_t)sqlite3_column_bytes(s, 9);
}

/* The walk for "since" starts at the newest row: it costs what it finds, not the whole journal. */
static uint64_t first_after(struct hc_db *db, const struct hc_db_filter *f)
{
	uint64_t after = f->after, old, n;
	char text[160];

	if (f->since_ns) {
		old = one_number(db,
				 "SELECT seq FROM event WHERE wall_ns<? ORDER BY seq DESC LIMIT 1",
				 f->since_ns);
		if (old > after)
			after = old;
	}
	if (f->newest && f->limit) {
		snprintf(text, sizeof(text),
			 "SELECT seq FROM event WHERE %s ORDER BY seq DESC LIMIT 1 OFFSET %u",
			 f->domain ? "domain=? AND domain!=0" : "?=0", f->limit);
		n = one_number(db, text, f->domain);
		if (n > after)
			after = n;
	}
	return after;
}

int hc_db_events(struct hc_db *db, const struct hc_db_filter *f, hc_db_event_fn *fn, void *arg)
{
	static const char head[] = "SELECT seq,wall_ns,mono_ns,kind,domain,epoch,rank,pid,uid,text "
				   "FROM event WHERE seq>?1";
	uint32_t left = f->limit ? f->limit : UINT32_MAX;
	sqlite3_stmt *s = NULL;
	struct hc_db_event e;
	char text[256];
	int rc, r = 0;

	snprintf(text, sizeof(text), "%s%s ORDER BY seq", head,
		 f->domain ? " AND domain=?2 AND domain!=0" : "");
	rc = sqlite3_prepare_v2(db->h, text, -1, &s, NULL);
	if (rc != SQLITE_OK)
		return outcome(rc);
	sqlite3_bind_int64(s, 1, (sqlite3_int64)first_after(db, f));
	if (f->domain)
		sqlite3_bind_int64(s, 2, (sqlite3_int64)f->domain);
	while (!r && left-- && (rc = sqlite3_step(s)) == SQLITE_ROW) {
		event_of(s, &e);
		r = fn(arg, &e);
	}
	sqlite3_finalize(s);
	return rc == SQLITE_ROW || rc == SQLITE_OK ? 0 : outcome(rc);
}
