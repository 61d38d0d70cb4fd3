/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The database file: schema, checks at start, and the statements. No thread of its own; used by
 * one thread at a time (store.h).
 *
 * Write-ahead log with synchronous NORMAL: after a crash of the daemon nothing that was committed
 * is lost; after a loss of power every process is gone as well. The connection is exclusive, so
 * the index of the log stays in memory: no shared file is mapped, and a full disk is an error
 * code and never a signal. Only the first start after a boot is written with FULL: the pair of
 * incarnation and start number must not come twice, and an incarnation that was lost with the
 * power would. Starts that follow in the same boot are lost with it and all that knew of them.
 *
 * A damaged file is moved aside and a new one begun; a file of a newer schema is not touched, one
 * of an older schema is brought to this one before it is read:
 *
 *	1	no name of the link at the end of a channel's row; the oldest have no channels
 *	2	a domain's row ends with its members: nothing of other nodes
 */
#ifndef HC_DB_H
#define HC_DB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "wire.h"

#define HC_DB_SCHEMA     4
#define HC_DB_ASIDE_KEPT 3

/* Outcomes above 0. REFUSED: `why` says it. NO_ROOM: disk full, read-only, or an I/O error; what
 * was to be written is not. */
enum { HC_DB_REFUSED = 1, HC_DB_NO_ROOM = 2, HC_DB_INTERRUPTED = 3, HC_DB_DAMAGED = 4 };

struct hc_db;

struct hc_db_start {
	uint32_t start;       /* of this run */
	uint64_t incarnation; /* changes with the boot and with a new database */
	uint8_t node[16];     /* mirror of the node id */
	bool has_node;
	bool same_boot;     /* the stored domains are of this boot */
	bool stored;        /* false: the start number could not be written */
	bool made;          /* a new database */
	char problem[2600]; /* one line to log, or empty */
};

struct hc_db_event {
	uint64_t seq, wall_ns, mono_ns, domain;
	uint32_t epoch, rank, pid, uid;
	uint16_t kind;
	struct hc_str text;
};

/* Opens or makes the file, checks it, counts the start. 0, HC_DB_REFUSED, or -ENOMEM. */
int hc_db_open(const char *path, const char *boot_id, struct hc_db **db, struct hc_db_start *start,
	       char *why, size_t size);
/* Folds the log into the file and closes; no -wal stays. */
void hc_db_close(struct hc_db *db);

/* All of these: 0, HC_DB_NO_ROOM, or a negative errno for what cannot be mended. */
int hc_db_set_node(struct hc_db *db, const uint8_t id[16]);
int hc_db_set_start(struct hc_db *db, uint32_t start);
int hc_db_begin(struct hc_db *db);
int hc_db_commit(struct hc_db *db);
void hc_db_rollback(struct hc_db *db);
int hc_db_put_domain(struct hc_db *db, uint64_t id, const void *row, size_t len);
int hc_db_del_domain(struct hc_db *db, uint64_t id);
int hc_db_add_event(struct hc_db *db, const struct hc_db_event *e);
/* Takes at most some thousand old events away. *more: there are further ones. */
int hc_db_prune(struct hc_db *db, uint64_t wall_ns, uint32_t days, uint32_t rows, bool *more);
/* Checks what the start has not: 0, HC_DB_DAMAGED, or HC_DB_INTERRUPTED by another thread, which
 * wants something to be stored; then it is to be tried again. */
bool hc_db_check_due(const struct hc_db *db);
int hc_db_check(struct hc_db *db);
void hc_db_interrupt(struct hc_db *db); /* from any thread, and only during a check */
/* The next start is to put the file aside. */
int hc_db_set_damaged(struct hc_db *db);
const char *hc_db_error(const struct hc_db *db);

/* Granted channels, as the domains. */
int hc_db_put_channel(struct hc_db *db, uint64_t id, const void *row, size_t len);
int hc_db_del_channel(struct hc_db *db, uint64_t id);

typedef int hc_db_domain_fn(void *arg, uint64_t id, const void *row, size_t len);
int hc_db_domains(struct hc_db *db, hc_db_domain_fn *fn, void *arg);
/* How many domains the start has read, before they are asked for. */
void hc_db_domains_about(const struct hc_db *db, uint32_t *count, size_t *bytes);
int hc_db_channels(struct hc_db *db, hc_db_domain_fn *fn, void *arg);

struct hc_db_filter {
	uint64_t after;    /* sequence number; only later ones */
	uint64_t since_ns; /* wall clock; 0 = all */
	uint64_t domain;   /* 0 = all */
	uint32_t limit;    /* 0 = all */
	bool newest;       /* with a limit: the last ones instead of the first */
};
/* `fn` returns 0 to go on. Rows in order of their number. */
typedef int hc_db_event_fn(void *arg, const struct hc_db_event *e);
int hc_db_events(struct hc_db *db, const struct hc_db_filter *f, hc_db_event_fn *fn, void *arg);

#endif
