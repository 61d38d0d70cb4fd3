/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a handle has besides its operations: barrier, exchange, memory.
 *
 * A struct hc_shared is made at the first use of any of them. It says which domain and ranks it is
 * of, so these calls need the handle's slot no more once they hold one. It is counted: a call that
 * waits in one thread keeps it, and the page in it, while another thread lets the rank leave.
 * Its lock is the session's, or for a domain of one rank without a daemon one of its own.
 *
 * What this process put is kept here, since the daemon keeps it in memory alone: after a restart
 * it is put again, with the versions that it had, before the domain is attached. The daemon takes
 * an attached rank for one that has told all (hc_shared_again).
 */
#ifndef HC_SHARED_H
#define HC_SHARED_H

#include "client.h"
#include "syncpage.h"

struct hc_kept { /* a value that this process put */
	struct hc_kept *next;
	struct hc_call *call; /* on its way; NULL: answered */
	uint64_t version, serial;
	uint32_t told; /* start number of the daemon that has it */
	uint32_t bytes;
	char key[HC_NAME_MAX + 1];
	uint8_t value[];
};

struct hc_memory; /* memory.c */

struct hc_shared {
	struct hc_shared *next, **link; /* of the session */
	struct hcomm_session *session;
	pthread_mutex_t *lock;
	uint32_t users;
	_Atomic bool gone; /* the handle has ended */

	uint64_t id;
	uint32_t epoch, tag, nranks, rank; /* rank: the first of ours */
	const struct hc_page_record *record;
	const struct hc_ops_seat *seats;
	struct hc_ops_seat one;
	uint32_t nseats;

	/* barrier */
	struct hc_sync_page *page; /* NULL: not yet */
	int fd;
	uint32_t lines, bytes;
	bool meeting; /* a thread is in it */
	bool came;    /* to the barrier `number`, which has not ended for us */
	uint32_t number;
	uint32_t skip, skip_next; /* barriers in which it does not pay to yield */

	/* exchange */
	struct hc_kept *kept;
	uint64_t serials; /* given to them */
	uint64_t fences;  /* that have ended */
	bool fencing;     /* a thread is in one */
	bool counted;     /* we know how many */
	uint32_t told;    /* start number of the daemon that knows what we know */

	pthread_mutex_t memory_lock; /* taken before the other */
	struct hc_memory *memory;
};

/* Take it into use, with the lock held on return (0), or not (IN_PROGRESS, GONE, FORKED, ...). */
int hc_shared_enter(hcomm_domain handle, struct hc_shared **shared);
/* With the lock held; gives it back. */
void hc_shared_leave(struct hc_shared *shared);
/* The handle ends; the lock is held. */
void hc_shared_drop(struct hc_domain *d);
/* At close; `mapped` is false in a child by fork. */
void hc_shared_free_all(struct hcomm_session *s, bool mapped);
/* All that an earlier daemon knew of us, before domains are attached. 0 or PEER_CLOSED. */
int hc_shared_again(struct hcomm_session *s, uint64_t deadline);
/* A request of the shared kind: repeats it while the daemon is too busy. Lock held. */
int hc_shared_ask(struct hc_shared *sh, struct hc_call *c, const struct hc_desc *desc,
		  const void *msg, uint64_t deadline);
/* The ranks of ours, as an array of a message, in memory of the caller's to free. */
int hc_shared_ranks(const struct hc_shared *sh, struct hc_arr *ranks, uint8_t **bytes);

/* ---- exchange.c ---- */
/* Put, get without waiting; the lock is not held. `known`: a version, to be spared the same again
 * (then *bytes is 0). */
int hc_exchange_put(struct hc_shared *sh, const char *key, const void *value, uint32_t bytes);
int hc_exchange_look(struct hc_shared *sh, const char *key, uint64_t known, void *value,
		     uint32_t *bytes, uint64_t *version);
void hc_exchange_free(struct hc_shared *sh);

/* ---- memory.c ---- */
void hc_memory_free(struct hc_memory *m);

#endif
