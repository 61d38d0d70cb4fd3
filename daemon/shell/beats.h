/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Datagrams between daemons: sockets, keys, authentication.
 *
 * In: everything that is queued is read in batches; what is long enough, has our magic and
 * version, names a key that we gave out and carries a good tag is fed to the core with both its
 * ends. All else is counted by reason and dropped without an answer. What the kernel tells of
 * datagrams that did not arrive (error queue) is fed as BOUNCED.
 *
 * Out: hc_beats_send authenticates and gathers; hc_beats_flush, at the end of a step, sends what
 * was gathered with one call. An urgent one takes the others along at once. The sockets forbid
 * fragmentation, and do not take the kernel's word for the size of a path, since a probe is to
 * find that out. What does not leave is fed as BOUNCED too, but never inside of the step that
 * sent it: in the next turn of the event loop.
 *
 * Each frame has its priority: DSCP CS6, socket priority 6, sockets that carry nothing else.
 */
#ifndef HC_BEATS_H
#define HC_BEATS_H

#include <event2/event.h>
#include "core.h"
#include "datagram.h"

struct hc_beats;

struct hc_beats_args {
	struct event_base *base;
	/* The clock is read once for a batch; then each event of it is fed. */
	void (*clock)(void *arg);
	void (*feed)(void *arg, const struct hc_event *ev);
	void *arg;
};

struct hc_beats_counts {
	uint64_t received, sent;
	/* dropped: too short, not ours, of another version, no such key, tag does not fit */
	uint64_t shorts, foreign, versions, keys, tags;
	uint64_t unsent;  /* the kernel's queue was full */
	uint64_t bounces; /* told; and more of them at a time than are kept */
	uint64_t bounces_lost;
};

/* 0, -ENOMEM. */
int hc_beats_new(const struct hc_beats_args *args, struct hc_beats **beats);
void hc_beats_free(struct hc_beats *b);

/*
 * A bound UDP socket, IPv6 ones for IPv6 alone. `at` is what it is bound to, all zero bytes: all
 * addresses of the family. It belongs to `b` from now on, also when this fails. 0, -errno.
 */
int hc_beats_add(struct hc_beats *b, int fd, const struct hc_endpoint *at);
/* Close those bound to that endpoint. */
void hc_beats_remove(struct hc_beats *b, const struct hc_endpoint *at);

/*
 * What KEY_MAKE asks for: `key` is the id of the receiving one, whose low 16 bits are the slot of
 * the peer; two of a slot are accepted at a time, the older goes. The sending one replaces what
 * there is for `peer`. The caller wipes its copies. 0, -ENOMEM.
 */
int hc_beats_key(struct hc_beats *b, uint32_t peer, uint32_t key, const uint8_t in[HC_KEY_BYTES],
		 const uint8_t out[HC_KEY_BYTES]);
/* KEY_DROP; `all`: also what sends to `peer`. */
void hc_beats_key_drop(struct hc_beats *b, uint32_t peer, uint32_t key, bool all);

/* HC_ACT_DATAGRAM. Without a key for the peer it is dropped. */
/* Those of the actions that are datagrams will be sent: fetch their keys, see beats.c. */
void hc_beats_soon(const struct hc_beats *b, const struct hc_action *acts, uint32_t count);
void hc_beats_send(struct hc_beats *b, const struct hc_action *a);
/* At the end of a step. While a batch is being fed this waits for its end. */
void hc_beats_flush(struct hc_beats *b);
/* Feed all that is queued in the sockets; also before a TIMEOUT is fed. */
void hc_beats_drain(struct hc_beats *b);

void hc_beats_counts(const struct hc_beats *b, struct hc_beats_counts *counts);

#endif
