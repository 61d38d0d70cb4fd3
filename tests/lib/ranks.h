/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rank processes under orders.
 *
 * A rank is a real process with a session of its own, that waits for orders on a pipe, carries
 * them out with the library, and answers with what the call returned, when, and the library's
 * words. So a test is one story told by the parent: this one joins, that one takes a reference,
 * this one is killed, and so on, without a clock.
 *
 * A rank holds up to HC_RANK_SEATS domains at once, numbered by the parent, and one reference in
 * each. While it RUNs it takes and returns references in all of its domains as fast as it can,
 * and counts them in a page that the parent sees; it stops at the next order, or when it is
 * refused.
 */
#ifndef HC_RANKS_H
#define HC_RANKS_H

#include <hcomm/hcomm.h>
#include <hcomm/views.h>

#include "harness.h"

enum { HC_RANK_SEATS = 4 };

enum hc_order_kind {
	HC_DO_JOIN,       /* info, nranks, rank, device, channels, timeout_ms */
	HC_DO_JOIN_TABLE, /* text = path, rank, server, name, channels, timeout_ms */
	HC_DO_ATTACH,     /* name, rank, timeout_ms */
	HC_DO_SPLIT,      /* from seat `parent`: color, key, timeout_ms */
	HC_DO_SUB,        /* from seat `parent`: ranks, nranks, sub_id */
	HC_DO_BATCH,      /* `count` times that, with numbers from sub_id on; answer: made, text */
	HC_DO_BEGIN,      /* kind */
	HC_DO_END,
	HC_DO_LEAVE,   /* timeout_ms */
	HC_DO_DESTROY, /* timeout_ms */
	HC_DO_ABORT,   /* text */
	HC_DO_FENCE,   /* timeout_ms */
	HC_DO_STATUS,
	HC_DO_EVENT,    /* the oldest event `code` (0: any), or wait for one; result is its error */
	HC_DO_DISPATCH, /* dispatch for timeout_ms at most */
	HC_DO_RUN,      /* until the next order; answered at once */
	HC_DO_STOP,     /* end of RUN; result is the last one of op_begin */
	HC_DO_PING,
	HC_DO_QUIT /* hcomm_close and exit 0 */
};

struct hc_order {
	enum hc_order_kind what;
	unsigned seat, parent;
	uint32_t rank, nranks, device, kind, code, count, channels;
	int32_t color, key;
	int timeout_ms;
	uint64_t sub_id;
	uint32_t ranks[16];
	char text[600], name[128], server[64];
	struct hcomm_root_info info;
};

struct hc_answer {
	int result;
	uint32_t rank, pid, code; /* EVENT: of the event; JOIN, SPLIT ...: own rank */
	uint32_t nranks, epoch, state, made;
	uint32_t missing_count, missing[64];
	uint64_t id;               /* domain */
	uint64_t began_ns, end_ns; /* around the call; EVENT: end is its arrival */
	char node[128], name[128];
	char text[HCOMM_TEXT_BYTES]; /* hcomm_last_error, or of the event or status */
};

struct hc_rank {
	struct hc_child child;
	uint64_t *count; /* operations that RUN has ended, in shared memory */
};

/* A process with an open session; fails the test if it cannot be opened. */
void hc_rank_spawn(struct hc_rank *r);
void hc_rank_tell(struct hc_rank *r, const struct hc_order *o);
void hc_rank_hear(struct hc_rank *r, struct hc_answer *a, unsigned deadline_ms);
/* Both; returns the result. `a` may be NULL. */
int hc_rank_do(struct hc_rank *r, const struct hc_order *o, struct hc_answer *a);
/* As above, failing the test when the result is not 0. */
void hc_rank_must(struct hc_rank *r, const struct hc_order *o, struct hc_answer *a);
void hc_rank_quit(struct hc_rank *r);
void hc_rank_kill(struct hc_rank *r);

/* One root info of this process; then all of `r` join by it in seat `seat`, device = first + i. */
void hc_ranks_join(struct hc_rank *r, uint32_t n, unsigned seat, uint32_t first_device,
		   const char *name);
/* Spawn and join, seat 0, devices 0... */
void hc_ranks_start(struct hc_rank *r, uint32_t n, const char *name);
void hc_ranks_quit(struct hc_rank *r, uint32_t n);

/* The daemon's status row, the row of one domain by name, of one rank; through a session that
 * ends with the call. False when there is no such domain or rank. */
void hc_ask_status(struct hcomm_view_status *row);
bool hc_ask_domain(const char *name, struct hcomm_view_domain *row);
bool hc_ask_member(const char *domain, uint32_t rank, struct hcomm_view_member *row);
/* The newest entry of the journal with that code. */
bool hc_ask_event(const char *code, struct hcomm_view_event *row);

#endif
