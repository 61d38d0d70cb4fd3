/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store: one thread that owns the database, so that the main loop never waits for a disk.
 *
 * What the core wants stored is queued; whatever waits when the thread is free goes into one
 * transaction (group commit). Its numbers come back in order: hc_store_done is called in the main
 * loop with the highest number of the group.
 *
 * When the disk is full or read-only the daemon goes on. Domain rows are then kept in memory,
 * the latest of each, and written when the disk lets us, tried every second; their numbers come
 * back all the same, and the state says that nothing is persistent meanwhile. Events of that
 * time are lost and counted.
 *
 * A disk that takes its time holds up what waits for it, and nothing else. The state says since
 * when the thread is busy, so that somebody can tell the operator.
 */
#ifndef HC_STORE_H
#define HC_STORE_H

#include <event2/event.h>
#include "core.h"
#include "db.h"

struct hc_store;

struct hc_store_limits {
	uint32_t journal_days, journal_rows;
};

/* Takes the database over. `done` is called from `base`. 0 or a negative errno. */
int hc_store_start(struct event_base *base, struct hc_db *db, const struct hc_db_start *begun,
		   const struct hc_store_limits *limits,
		   void (*done)(void *arg, uint64_t persisted), void *arg, struct hc_store **store);
/* Ends when all that is queued is stored, and closes the database. Queries that wait get their
 * `done`. NULL is fine. */
void hc_store_stop(struct hc_store *store);

/* Queue one row; `bytes` are copied. Nothing happens before the kick. */
void hc_store_put(struct hc_store *store, enum hc_persist what, uint64_t seq, uint64_t id,
		  const void *bytes, uint32_t len);
void hc_store_kick(struct hc_store *store);
/* Called from `base`, with the argument of `done` and before it, when rows are no longer written:
 * those above `kept` are only remembered here. HC_NEVER: all are written. Also now, if so. */
void hc_store_on_storage(struct hc_store *store, void (*fn)(void *arg, uint64_t kept));
/* The same, and other rows follow at once: the commit may wait for them, until the next kick. */
void hc_store_kick_more(struct hc_store *store);
/* An event of the daemon itself, queued and kicked. */
void hc_store_note(struct hc_store *store, uint16_t kind, const char *text);
void hc_store_set_limits(struct hc_store *store, const struct hc_store_limits *limits);

struct hc_store_state {
	bool lost;    /* nothing is persistent now */
	bool damaged; /* the file is, as a check beside the work has found */
	char why[160];
	uint64_t commits;
	uint64_t events_lost;
	uint64_t busy_ns; /* since when the thread is at what it does now, CLOCK_MONOTONIC; 0: idle
			   */
};
void hc_store_state(struct hc_store *store, struct hc_store_state *state);

/* A reading of the journal. `row` is called in the store's thread, returns 0 to go on; `done` in
 * the main loop. In between the query belongs to the store. */
struct hc_store_query {
	struct hc_store_query *next;
	struct hc_db_filter filter;
	int result; /* of hc_db_events */
	int (*row)(struct hc_store_query *q, const struct hc_db_event *e);
	void (*done)(struct hc_store_query *q);
};
void hc_store_ask(struct hc_store *store, struct hc_store_query *query);

#endif
