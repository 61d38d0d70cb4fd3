/* SPDX-License-Identifier: Apache-2.0 */
/* The loop's part for other nodes; see loopnet.h. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include "beats.h"
#include "log.h"
#include "loopnet.h"
#include "netif.h"
#include "peers.h"

struct hc_loopnet {
	struct event_base *base;
	struct hc_loop *loop;
	struct hc_self self;
	struct hc_peers_socks socks;
	struct hc_peers *peers;
	struct hc_beats *beats;
	struct hc_netif *netif;
};

/* ---- keys of beats ---- */

static void put(uint8_t *at, uint64_t value, unsigned bytes)
{
	while (bytes--) {
		at[bytes] = (uint8_t)value;
		value >>= 8;
	}
}

struct side {
	const uint8_t *id;
	uint32_t start;
	uint64_t cookie;
};

/* As proto/datagram.h says. */
static int direction(struct hc_loopnet *n, uint64_t conn, const struct side *from,
		     const struct side *to, uint8_t key[HC_KEY_BYTES])
{
	uint8_t context[HC_KEY_CONTEXT], cookies[16];

	memcpy(context, from->id, 16);
	memcpy(context + 16, to->id, 16);
	put(context + 32, from->start, 4);
	put(context + 36, to->start, 4);
	put(cookies, from->cookie, 8);
	put(cookies + 8, to->cookie, 8);
	return hc_peers_export(n->peers, conn, context, cookies, key);
}

/* A connection that went meanwhile gives no keys; its end is on the way to the core. */
static void make_keys(struct hc_loopnet *n, const struct hc_action *a)
{
	const struct side us = {n->self.node_id, n->self.start, n->self.cookie};
	const struct side them = {a->u.key.node_id, a->u.key.start, a->u.key.cookie};
	uint8_t in[HC_KEY_BYTES], out[HC_KEY_BYTES];
	int r = direction(n, a->u.key.conn, &them, &us, in);

	if (!r)
		r = direction(n, a->u.key.conn, &us, &them, out);
	if (!r)
		r = hc_beats_key(n->beats, a->u.key.peer, a->u.key.key, in, out);
	explicit_bzero(in, sizeof(in));
	explicit_bzero(out, sizeof(out));
	if (r && r != -ENOENT)
		hc_log(HC_LOG_ERROR, "keys of heartbeats cannot be made: %s", strerror(-r));
}

/* ---- the loop's calls ---- */

/*
 * Whole clusters on the loopback: the kernel would choose 127.0.0.1 for each of them, and nobody
 * could tell whose connection it is.
 */
static const struct hc_addr *source_of(const struct hc_loopnet *n, const struct hc_action *a)
{
	const struct hc_addr *to = &a->u.conn.to.addr;
	uint32_t i;

	for (i = 0; !a->u.conn.from.family && hc_addr_is_loopback(to) && i < n->socks.count; i++)
		if (hc_addr_is_loopback(&n->socks.at[i].addr) &&
		    n->socks.at[i].addr.family == to->family)
			return &n->socks.at[i].addr;
	return &a->u.conn.from;
}

void hc_loopnet_perform(struct hc_loopnet *n, const struct hc_action *a)
{
	if (a->kind == HC_ACT_DIAL)
		hc_peers_dial(n->peers, a->u.conn.conn, &a->u.conn.to, source_of(n, a));
	else if (a->kind == HC_ACT_CONN_SEND)
		hc_peers_send(n->peers, a->u.conn.conn, a->bytes, a->len);
	else if (a->kind == HC_ACT_CONN_CLOSE)
		hc_peers_close(n->peers, a->u.conn.conn);
	else if (a->kind == HC_ACT_KEY_MAKE)
		make_keys(n, a);
	else if (a->kind == HC_ACT_KEY_DROP)
		hc_beats_key_drop(n->beats, a->u.key.peer, a->u.key.key, a->u.key.all);
	else if (a->kind == HC_ACT_DATAGRAM)
		hc_beats_send(n->beats, a);
	else if (a->kind == HC_ACT_ROUTE)
		hc_netif_ask(n->netif, a->u.route.ask, &a->u.route.to);
}

void hc_loopnet_soon(struct hc_loopnet *n, const struct hc_out *out)
{
	hc_beats_soon(n->beats, out->acts, out->count);
}

void hc_loopnet_step_done(struct hc_loopnet *n)
{
	hc_beats_flush(n->beats);
}

void hc_loopnet_send(struct hc_loopnet *n)
{
	hc_peers_flush(n->peers);
}

void hc_loopnet_drain(struct hc_loopnet *n)
{
	hc_beats_drain(n->beats);
}

/* ---- life ---- */

static int make_parts(struct hc_loopnet *n, const struct hc_loopnet_args *args, char *why,
		      size_t size)
{
	const struct hc_peers_args peers = {.base = args->base,
					    .cluster = n->self.cluster,
					    .key = args->key,
					    .limit_ms = args->limit_ms,
					    .event = hc_loop_event,
					    .arg = args->loop};
	const struct hc_beats_args beats = {.base = args->base,
					    .clock = hc_loop_clock,
					    .feed = hc_loop_event_now,
					    .arg = args->loop};
	const struct hc_netif_args netif = {
		.base = args->base, .conf = args->conf, .feed = hc_loop_event, .arg = args->loop};
	int r = hc_peers_new(&peers, &n->peers);

	if (!r)
		r = hc_beats_new(&beats, &n->beats);
	return r ? r : hc_netif_new(&netif, &n->netif, why, size);
}

int hc_loopnet_new(const struct hc_loopnet_args *args, struct hc_loopnet **net, char *why,
		   size_t size)
{
	struct hc_loopnet *n = calloc(1, sizeof(*n));
	int r;

	if (!n)
		return -ENOMEM;
	n->base = args->base;
	n->loop = args->loop;
	n->self = *args->self;
	n->socks = *args->socks;
	args->socks->count = 0;
	r = make_parts(n, args, why, size);
	if (r) {
		hc_loopnet_free(n);
		return r;
	}
	*net = n;
	return 0;
}

int hc_loopnet_start(struct hc_loopnet *n)
{
	uint32_t i;
	int r = hc_peers_listen(n->peers, &n->socks);

	for (i = 0; !r && i < n->socks.count; i++) {
		if (n->socks.udp[i] < 0)
			continue;
		r = hc_beats_add(n->beats, n->socks.udp[i], &n->socks.at[i]);
		n->socks.udp[i] = -1;
	}
	return r ? r : hc_netif_start(n->netif);
}

void hc_loopnet_set_limit(struct hc_loopnet *n, uint32_t limit_ms)
{
	hc_peers_set_limit(n->peers, limit_ms);
}

void hc_loopnet_tick(struct hc_loopnet *n)
{
	hc_netif_tick(n->netif);
}

void hc_loopnet_missing(const struct hc_loopnet *n, char *out, size_t size)
{
	hc_netif_missing(n->netif, out, size);
}

void hc_loopnet_flush(struct hc_loopnet *n, uint32_t limit_ms)
{
	uint64_t limit = hc_loop_now() + limit_ms * 1000000ull;

	hc_peers_flush(n->peers);
	while (hc_peers_pending(n->peers) && hc_loop_now() < limit) {
		if (event_base_loop(n->base, EVLOOP_NONBLOCK) < 0)
			return;
		poll(NULL, 0, 1); /* a full socket empties; nothing else is waited for */
	}
}

uint64_t hc_loopnet_refused(const struct hc_loopnet *n)
{
	struct hc_beats_counts counts;

	hc_beats_counts(n->beats, &counts);
	return counts.shorts + counts.foreign + counts.versions + counts.keys + counts.tags;
}

void hc_loopnet_strangers(const struct hc_loopnet *n, struct hc_peers_counts *counts)
{
	hc_peers_counts(n->peers, counts);
}

void hc_loopnet_free(struct hc_loopnet *n)
{
	if (!n)
		return;
	hc_netif_free(n->netif);
	hc_beats_free(n->beats);
	hc_peers_free(n->peers);
	hc_peers_unbind(&n->socks);
	free(n);
}
