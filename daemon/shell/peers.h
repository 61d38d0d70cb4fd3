/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Control connections to other nodes: TCP, with TLS when there is a key of the cluster.
 *
 * The core numbers those that it dials; those that come in are numbered here, from HC_CONN_IN on.
 * What happens is told as events of the core (CONN_UP, CONN_MSG, CONN_LOST), always from the
 * event loop, never from inside of one of the calls below. A connection is told of once it is
 * proven: after the handshake; without a key at once. One that never is is lost with the reason,
 * also an inbound one that was never UP. After hc_peers_close nothing more is told of it.
 *
 * A stranger costs little: inbound connections that have not proven themselves are at most 64,
 * and 8 of one address, for 3 s; a length is checked before anything is stored of a frame; and
 * what a peer does not read is kept up to 8 MiB, then the connection is given up.
 */
#ifndef HC_PEERS_H
#define HC_PEERS_H

#include <event2/event.h>
#include "core.h"
#include "datagram.h"
#include "peersock.h"

#define HC_PEERS_QUEUE_MAX (8u * 1024u * 1024u)
#define HC_PEERS_STRANGERS 64u
#define HC_PEERS_OF_ONE    8u
#define HC_PEERS_PROVE_MS  3000u

struct hc_peers;

struct hc_peers_args {
	struct event_base *base;
	const char *cluster;
	const uint8_t *key; /* HC_KEY_BYTES, not kept; NULL: security = none */
	uint32_t limit_ms;  /* of a connection that is dialled, until it is UP */
	void (*event)(void *arg, const struct hc_event *ev);
	void *arg;
};

struct hc_peers_counts {
	uint64_t strangers;   /* that did not speak this protocol, or not in time */
	uint64_t turned_away; /* for want of room */
	uint64_t wrong_key, other_cluster;
	uint32_t open; /* connections now, of any state */
};

/* 0 or a negative errno. */
int hc_peers_new(const struct hc_peers_args *args, struct hc_peers **peers);
/* Takes the TCP sockets over. 0 or -ENOMEM. */
int hc_peers_listen(struct hc_peers *p, struct hc_peers_socks *socks);
void hc_peers_set_limit(struct hc_peers *p, uint32_t limit_ms);

void hc_peers_dial(struct hc_peers *p, uint64_t conn, const struct hc_endpoint *to,
		   const struct hc_addr *from);
/* It leaves with hc_peers_flush, at the end of a turn of the loop. */
void hc_peers_send(struct hc_peers *p, uint64_t conn, const uint8_t *bytes, size_t len);
void hc_peers_flush(struct hc_peers *p);
void hc_peers_close(struct hc_peers *p, uint64_t conn);

/*
 * The key for one direction; cookies: of the sender and of the receiver, 8 bytes each, big-endian.
 * 0, -ENOENT: no such connection, or -EIO.
 */
int hc_peers_export(struct hc_peers *p, uint64_t conn, const uint8_t context[HC_KEY_CONTEXT],
		    const uint8_t cookies[16], uint8_t key[HC_KEY_BYTES]);

/* Is there something that was sent and did not leave yet? */
bool hc_peers_pending(const struct hc_peers *p);
void hc_peers_counts(const struct hc_peers *p, struct hc_peers_counts *counts);
/* No event follows. */
void hc_peers_free(struct hc_peers *p);

#endif
