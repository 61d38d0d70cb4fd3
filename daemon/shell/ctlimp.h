/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside of the client socket: what ctl.c (connections), hello.c (how a session begins) and
 * request.c (where a request goes) share.
 */
#ifndef HC_CTLIMP_H
#define HC_CTLIMP_H

#include "ctl.h"

struct hc_slot {
	uint32_t generation; /* of the last session here */
	uint32_t next_free;
	struct hc_conn *conn;
};

struct hc_ctl {
	struct event_base *base;
	struct hc_loop *loop;
	struct hc_shell *shell;
	struct hc_worker *worker;
	struct hc_caller_rules rules;
	uint32_t sessions_max;
	uint64_t table_bytes_max;

	struct event *accept_event, *crowd_event;
	int listen_fd;
	bool paused;  /* out of descriptors: no accept until the next tick */
	bool crowded; /* too many without a session: no accept until they have one */

	struct hc_conn *conns; /* newest first */
	struct hc_conn *dirty, *closed;
	struct hc_slot *slots;
	uint32_t free_slot;
	struct hc_procs *procs;
	struct hc_tables *tables;
	struct hc_pool_out pool;
	struct hc_inbox inbox;
	struct hc_ctl_counts counts;
	unsigned waiting; /* connections without a session */
};

/* A frame and the descriptors that came with it (-1: none; the taker sets them to -1). Only hello
 * has two. */
struct hc_in {
	struct hc_conn *conn;
	struct hc_frame frame;
	int fd, second;
};

struct hc_conn *hc_ctl_conn(struct hc_ctl *ctl, uint64_t session);
/* No more I/O; the rest happens at the end of the turn. */
void hc_ctl_end(struct hc_ctl *ctl, struct hc_conn *c);
/* Send an error to a connection, with or without a session. */
void hc_ctl_error(struct hc_ctl *ctl, struct hc_conn *c, uint32_t id, int code, const char *text);
/* Counts and logs bytes that are no message of ours, answers, and ends the connection. */
void hc_ctl_malformed(struct hc_ctl *ctl, struct hc_conn *c, uint32_t id, bool has_id,
		      const char *what);

/* The core hears what it does not know of dropped events: before rows that show them. */
void hc_ctl_tell_unread(struct hc_ctl *ctl);

/* hello.c */
void hc_ctl_hello(struct hc_ctl *ctl, struct hc_in *in);
void hc_ctl_free_slot(struct hc_ctl *ctl, uint64_t session);

/* request.c */
void hc_ctl_request(struct hc_ctl *ctl, struct hc_in *in);

#endif
