/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The client socket: connections come, say hello, become sessions, and their requests go to the
 * core or to the one who answers them here.
 *
 * A connection has no session before its hello, and then takes a slot below clients_max. What
 * comes before a hello, a second hello, a packet that is no sequence of frames: refused. A frame
 * of an unknown type is answered "not supported" and the session lives on.
 *
 * Nothing is freed while a packet is being handled: connections that end are put on a list and
 * go at the end of the loop's turn, which is also when the core hears of them.
 */
#ifndef HC_CTL_H
#define HC_CTL_H

#include "caller.h"
#include "conn.h"
#include "procs.h"
#include "tables.h"
#include "worker.h"

struct hc_loop;
struct hc_shell;

struct hc_ctl_args {
	struct event_base *base;
	struct hc_loop *loop;
	struct hc_shell *shell; /* answers the views that are not the core's */
	struct hc_worker *worker;
	struct hc_caller_rules rules;
	uint32_t sessions_max;
	uint32_t start; /* number of this start of the daemon */
	uint64_t table_bytes_max;
};

struct hc_ctl_counts {
	uint64_t malformed, events_lost, descriptors; /* that nobody asked for */
	uint64_t served, refused;                     /* here, not by the core */
	uint32_t sessions, connections;
};

struct hc_ctl;

int hc_ctl_new(const struct hc_ctl_args *args, struct hc_ctl **ctl);
void hc_ctl_free(struct hc_ctl *ctl);

/* Accept on this descriptor from now on (-1: on none). */
int hc_ctl_listen(struct hc_ctl *ctl, int fd);
/* At a reload. */
void hc_ctl_set(struct hc_ctl *ctl, uint64_t table_bytes_max, bool allow_foreign_pidns);

/* Actions of the core. A session that is gone is no error. */
void hc_ctl_reply(struct hc_ctl *ctl, uint64_t session, const uint8_t *frame, uint32_t len, int fd);
void hc_ctl_notify(struct hc_ctl *ctl, uint64_t session, const uint8_t *frame, uint32_t len);
void hc_ctl_close(struct hc_ctl *ctl, uint64_t session);
const struct hc_arena *hc_ctl_arena(struct hc_ctl *ctl, uint64_t session);
/* The session got its first rank. */
void hc_ctl_arena_used(struct hc_ctl *ctl, uint64_t session);
/* The one in which a process that has no session counts for that domain; NULL: none. */
const struct hc_arena *hc_ctl_arena_of(struct hc_ctl *ctl, uint32_t pid, uint64_t started,
				       uint64_t domain, uint32_t block);
/* An arena that the service manager kept; takes the descriptor. Of a dead process: dropped. */
void hc_ctl_take_back(struct hc_ctl *ctl, struct hc_stored_arena *a);
/* Watch a process that is known from a stored domain. False: it is gone. */
bool hc_ctl_watch(struct hc_ctl *ctl, uint32_t pid, uint64_t started);

/* Answers of the shell itself. */
void hc_ctl_answer(struct hc_ctl *ctl, uint64_t session, uint32_t id, const struct hc_desc *d,
		   const void *msg);
void hc_ctl_done(struct hc_ctl *ctl, uint64_t session, uint32_t id, const char *text);
void hc_ctl_refuse(struct hc_ctl *ctl, uint64_t session, uint32_t id, int code, const char *text);

/* Send what was packed. */
void hc_ctl_flush(struct hc_ctl *ctl);
/* The end of a turn of the loop: sends what was packed, and lets go what ended. */
void hc_ctl_turn(struct hc_ctl *ctl);
void hc_ctl_tick(struct hc_ctl *ctl, uint64_t now_ns);
void hc_ctl_counts(const struct hc_ctl *ctl, struct hc_ctl_counts *counts);

#endif
