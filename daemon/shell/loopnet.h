/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loop's part for other nodes: connections, datagrams, ports and routes behind one door.
 *
 * Actions for other nodes are performed here; what comes from them is fed to the loop. The keys of
 * beats are made here too, since they need all of it: the connection exports them for a context of
 * both nodes, the datagrams use them, and nobody else sees them.
 */
#ifndef HC_LOOPNET_H
#define HC_LOOPNET_H

#include "conffile.h"
#include "loop.h"
#include "peersock.h"

struct hc_loopnet;

struct hc_loopnet_args {
	struct event_base *base;
	struct hc_loop *loop;
	const struct hc_self *self;
	const struct hc_conf *conf;   /* read now, not kept */
	struct hc_peers_socks *socks; /* taken over */
	const uint8_t *key;           /* NULL: security = none */
	uint32_t limit_ms;            /* of a connection that is dialled */
};

/* 0; 1 and one line in `why`; or a negative errno. */
int hc_loopnet_new(const struct hc_loopnet_args *args, struct hc_loopnet **net, char *why,
		   size_t size);
void hc_loopnet_free(struct hc_loopnet *net);
/* After HC_EV_START: from now on there are events. 0 or a negative errno. */
int hc_loopnet_start(struct hc_loopnet *net);
void hc_loopnet_set_limit(struct hc_loopnet *net, uint32_t limit_ms);
/* About once a second. */
void hc_loopnet_tick(struct hc_loopnet *net);
/* Addresses of listen_address that are waited for, in words; "" if none. */
void hc_loopnet_missing(const struct hc_loopnet *net, char *out, size_t size);
/* Before the end: waits until what was sent has left, `limit_ms` at most. */
void hc_loopnet_flush(struct hc_loopnet *net, uint32_t limit_ms);

/* Datagrams that were dropped before the core saw them. */
uint64_t hc_loopnet_refused(const struct hc_loopnet *net);
/* Who came and was turned away before it had proven to be a node. */
struct hc_peers_counts;
void hc_loopnet_strangers(const struct hc_loopnet *net, struct hc_peers_counts *counts);

/* The loop's calls. */
void hc_loopnet_perform(struct hc_loopnet *net, const struct hc_action *a);
/* These actions come next. */
void hc_loopnet_soon(struct hc_loopnet *net, const struct hc_out *out);
void hc_loopnet_step_done(struct hc_loopnet *net);
void hc_loopnet_drain(struct hc_loopnet *net);
/* Messages for other nodes leave now. */
void hc_loopnet_send(struct hc_loopnet *net);

#endif
