/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One connection of a client: packets in, packets out, never waiting.
 *
 * Out: frames are packed while the main loop works and sent as one packet at its end. What the
 * socket does not take is queued, at most HC_CONN_QUEUE_MAX bytes. While anything is queued no
 * further request is read, so a client that does not read its answers stops itself and nobody
 * else. Events stop at HC_CONN_NOTIFY_MAX already and are counted; the next one that gets
 * through tells how many are missing. An answer that finds no room ends the connection.
 *
 * In: one recvmmsg for up to HC_CONN_BATCH packets. It asks for one more than it finds only while
 * that pays: a connection whose reads come back full is read in larger batches, one that sends a
 * request at a time is read one at a time.
 *
 * A descriptor belongs to the first frame of a packet, so a frame with one begins a new packet.
 * Packets come from a pool; a small request allocates nothing.
 */
#ifndef HC_CONN_H
#define HC_CONN_H

#include <event2/event.h>
#include <event2/event_struct.h>
#include <sys/socket.h>
#include "frame.h"

#define HC_CONN_QUEUE_MAX  (256u * 1024u)
#define HC_CONN_NOTIFY_MAX (192u * 1024u)
#define HC_CONN_BATCH      16u
#define HC_CONN_CARRY_MAX  16u
#define HC_CONN_FDS        4u /* descriptors of one packet */
#define HC_PACKET_SMALL    4096u
#define HC_POOL_KEPT       64u

struct hc_packet {
	struct hc_packet *next;
	uint32_t len, cap;
	int fd; /* sent along and closed; -1: none */
	uint8_t bytes[];
};

/* Shared by all connections of a loop. */
struct hc_pool_out {
	struct hc_packet *free;
	uint32_t kept;
};
void hc_pool_out_fini(struct hc_pool_out *pool);

struct hc_proc;
struct hc_ctl;

struct hc_conn {
	struct hc_ctl *ctl;
	int fd;
	struct event in, out;
	uint64_t session; /* 0 before hello */
	uint64_t opened_ns;
	uint32_t pid, uid;
	uint16_t proto;
	uint8_t role;
	uint64_t nonce; /* in its arena; a client that shares it inverts it */
	bool proved;    /* it has */
	bool known;     /* the core has heard of the session */
	bool closed;    /* no more I/O; freed at the end of the loop's turn */
	bool ending;    /* close when all is sent */
	bool blocked;   /* waits to be writable */
	uint8_t batch,
		calm;  /* packets to ask for in one read (0 = 1); reads before asking for more */
	uint8_t carry; /* packets with descriptors that were announced */
	bool dirty;    /* in the list of those with something to send */
	struct hc_conn *dirty_next, *closed_next;
	struct hc_conn *next, **prev; /* of all */
	struct hc_proc *proc;
	struct hc_conn *proc_next, **proc_prev;
	struct hc_packet *first, *last;
	uint32_t queued;              /* bytes */
	uint32_t lost;                /* events dropped since the last that got through */
	uint64_t lost_all, lost_told; /* since the session began; what the core knows of it */
};

/* The sending half. Outcomes: 0; HC_E_LIMIT: no room, end the connection; HC_E_NO_MEMORY. */
int hc_conn_put(struct hc_conn *c, struct hc_pool_out *pool, const void *frame, uint32_t len,
		int fd);
/* An event frame; true: queued, false: dropped and counted. */
bool hc_conn_put_event(struct hc_conn *c, struct hc_pool_out *pool, const void *frame,
		       uint32_t len);
/* 0: all sent, or blocked; HC_E_GONE: the other end is closed. Arms the event `out`. */
int hc_conn_flush(struct hc_conn *c, struct hc_pool_out *pool);
/* Forgets what is queued. */
void hc_conn_drop_queue(struct hc_conn *c, struct hc_pool_out *pool);

/* The receiving half: buffers for a batch, shared by all connections. */
struct hc_inbox {
	struct mmsghdr msgs[HC_CONN_BATCH];
	struct iovec iov[HC_CONN_BATCH];
	union {
		char bytes[CMSG_SPACE(sizeof(int) * HC_CONN_FDS)];
		struct cmsghdr align;
	} control[HC_CONN_BATCH];
	uint8_t *bytes; /* HC_CONN_BATCH packets; touched as they are needed */
};
int hc_inbox_init(struct hc_inbox *in); /* 0 or -ENOMEM */
void hc_inbox_fini(struct hc_inbox *in);

struct hc_got {
	const uint8_t *bytes;
	size_t len;
	int fds[HC_CONN_FDS];
	unsigned nfds;
	bool cut;     /* longer than a packet may be */
	bool crowded; /* more descriptors than fit */
};
/* Packets that were read (0: none now), or a negative errno. */
int hc_inbox_read(struct hc_inbox *in, struct hc_conn *c);
/* Packet i of the last read. Its descriptors are the caller's. len 0: the other end is closed. */
void hc_inbox_get(struct hc_inbox *in, unsigned i, struct hc_got *got);

#endif
