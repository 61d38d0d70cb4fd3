/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Some cores whose peers are UP by decree, and the wires between them: for tests of paths, beats
 * and probes alone, without connections.
 *
 * Time is virtual. A wire delays, and loses what the test's function says. Packets are fed before
 * a TIMEOUT, as the shell does; a node that is stalled gets both when it wakes.
 */
#ifndef HC_PATHRIG_H
#define HC_PATHRIG_H

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "datagram.h"
#include "pathimp.h"

#define RIG_NODES  3u
#define RIG_FLIGHT 4096u
#define RIG_MTU    1500u
#define MS         1000000ull
#define SEC        (1000 * MS)

struct rig_packet {
	uint64_t at;
	uint64_t number;
	uint32_t from, to;
	struct hc_endpoint local, remote; /* as the receiver sees them */
	uint32_t len;
	uint8_t type;
	uint8_t *bytes;
};

struct rig_node {
	struct hc_core *core;
	void *memory;
	size_t size;
	uint64_t stalled_until;
	char log[65536];
	uint32_t log_len;
	uint32_t sent[256], urgent; /* by type */
	uint64_t sent_at[256];
	uint32_t dropped_keys, last_dropped;
};

struct rig {
	uint64_t now, start;
	uint64_t delay;
	uint32_t nodes;
	struct rig_node node[RIG_NODES];
	struct rig_packet flight[RIG_FLIGHT];
	uint32_t nflight;
	uint64_t number;
	/* true: the packet is lost */
	bool (*loses)(struct rig *r, const struct rig_packet *p);
	uint32_t mtu_of_wire; /* larger packets vanish */
	uint32_t random;
	struct hc_out out;
	uint8_t last[RIG_NODES][256]; /* the last packet that came to a node */
	struct rig_packet last_head[RIG_NODES];
};

static struct rig rig;

static struct hc_endpoint rig_end(uint32_t node)
{
	struct hc_endpoint e = {.port = 16660, .addr.family = 4};

	memcpy(e.addr.bytes, (uint8_t[]){10, 0, 0, (uint8_t)(node + 1)}, 4);
	return e;
}

static inline void rig_id(uint32_t node, uint8_t id[16])
{
	memset(id, (int)node + 1, 16);
}

static inline struct hc_path *rig_path(uint32_t node, uint32_t to)
{
	struct hc_net *n = rig.node[node].core->net;
	uint32_t slot = to < node ? to : to - 1;

	ck_assert_uint_gt(n->peers[slot].npaths, 0);
	return &n->paths[n->peers[slot].paths[0]];
}

static inline struct hc_peer *rig_peer(uint32_t node, uint32_t to)
{
	return &rig.node[node].core->net->peers[to < node ? to : to - 1];
}

static const struct hc_settings rig_settings = {
	.beat_ns = 100 * MS,
	.misses = 3,
	.down_misses = 5,
	.probe_timeout_ns = SEC,
	.mtu_recheck_ns = 30 * SEC,
	.daemon_grace_ns = 5 * SEC,
	.flap_window_ns = 60 * SEC,
	.flap_limit = 3,
	.connect_timeout_ns = SEC,
	.drain_timeout_ns = SEC,
	.orphan_grace_ns = SEC,
	.prepare_limit_ns = SEC,
	.ended_keep_ns = SEC,
	.bandwidth_limit_percent = 80,
};

/* ---- nodes ---- */

static inline void rig_core(uint32_t i, const struct hc_limits *lim, const struct hc_settings *set)
{
	struct rig_node *n = &rig.node[i];
	struct hc_self self = {.incarnation = 1,
			       .start = 10 + i,
			       .seed = {i + 1, 77},
			       .peers = true,
			       .port = 16660};

	rig_id(i, self.node_id);
	snprintf(self.name, sizeof(self.name), "node%u", i);
	n->size = hc_core_bytes(lim);
	n->memory = mmap(NULL, n->size, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	ck_assert(n->memory != MAP_FAILED);
	n->core = hc_core_init(n->memory, n->size, lim, &self, set);
}

static inline void rig_step(uint32_t i, const struct hc_event *ev);

static inline void rig_port(uint32_t i, uint32_t mtu)
{
	struct hc_port_fact f = {.index = 1,
				 .name = "eth0",
				 .kind = HC_W_port_kind_ETHER,
				 .present = true,
				 .up = true,
				 .carrier = true,
				 .mtu = mtu,
				 .mbps = 1000,
				 .naddrs = 1};
	struct hc_event ev = {.kind = HC_EV_PORT_FACT, .u.port = &f};

	f.addrs[0].addr = rig_end(i).addr;
	f.addrs[0].prefix = 24;
	rig_step(i, &ev);
	rig_step(i, &(struct hc_event){.kind = HC_EV_TIMEOUT});
}

/* Peer `to` of node `i` is UP, with one port. */
static inline void rig_meet(uint32_t i, uint32_t to, uint32_t mtu)
{
	struct hc_core *c = rig.node[i].core;
	uint32_t slot = hc_pool_get(&c->net->peer_pool);
	struct hc_peer *p = &c->net->peers[slot];
	char name[16];

	ck_assert_uint_eq(slot, to < i ? to : to - 1);
	p->used = p->known = true;
	p->state = HC_W_node_state_UP;
	rig_id(to, p->node_id);
	snprintf(name, sizeof(name), "node%u", to);
	p->node = hc_core_node(c, p->node_id, name);
	c->nodes[p->node].peer = slot;
	p->start = 10 + to;
	p->wish_ns = c->set.beat_ns;
	p->key_in = 1u << 16 | slot;
	p->key_out = 1u << 16 | (i < to ? i : i - 1);
	p->conn = 1;                  /* some connection: nothing is to be dialled */
	p->watch_at = UINT64_MAX - 1; /* and nobody answers on it */
	p->grace_until = p->dial_at = p->ack_at = HC_NEVER;
	p->nports = 1;
	p->ports[0] = (struct hc_far_port){
		.name = "eth0", .at = rig_end(to), .mtu = mtu, .path = HC_NONE};
}

static inline uint32_t rig_join(uint32_t i, uint32_t to)
{
	struct hc_core *c = rig.node[i].core;
	struct hc_endpoint local = rig_end(i), remote = rig_end(to);
	uint8_t id[16];

	rig_id(to, id);
	return hc_path_make(c, to < i ? to : to - 1, hc_path_id(c, id, &local, &remote), 1, &local,
			    &remote);
}

/* ---- packets ---- */

static inline uint32_t rig_random(void)
{
	rig.random = rig.random * 1664525u + 1013904223u;
	return rig.random >> 8;
}

static inline void rig_fly(struct rig_packet p, const uint8_t *bytes)
{
	uint32_t ip = p.len + HC_DATAGRAM_TAG + 28;

	if (p.to >= rig.nodes || (rig.mtu_of_wire && ip > rig.mtu_of_wire) ||
	    (rig.loses && rig.loses(&rig, &p)))
		return;
	ck_assert_uint_lt(rig.nflight, RIG_FLIGHT);
	p.bytes = malloc(p.len);
	memcpy(p.bytes, bytes, p.len);
	rig.flight[rig.nflight++] = p;
}

static inline void rig_send(uint32_t i, const struct hc_action *a)
{
	struct rig_packet p = {.at = rig.now + rig.delay,
			       .number = rig.number++,
			       .from = i,
			       .to = a->u.datagram.to.addr.bytes[3] - 1u,
			       .local = a->u.datagram.to,
			       .remote = {.addr = a->u.datagram.from, .port = 16660},
			       .len = a->len};
	const uint8_t type = a->bytes[HC_DATAGRAM_AT_TYPE];

	p.type = type;
	rig.node[i].sent[type]++;
	rig.node[i].sent_at[type] = rig.now;
	rig.node[i].urgent += a->u.datagram.urgent;
	p.bytes = NULL;
	rig_fly(p, a->bytes);
}

static inline void rig_logged(struct rig_node *n, const struct hc_action *a)
{
	int len;

	if (n->log_len + a->len + 64 > sizeof(n->log))
		return;
	len = snprintf(n->log + n->log_len, sizeof(n->log) - n->log_len, "[%llu us] %.*s\n",
		       (unsigned long long)((rig.now - rig.start) / 1000), (int)a->len,
		       (const char *)a->bytes);
	n->log_len += (uint32_t)len;
}

static inline void rig_step(uint32_t i, const struct hc_event *ev)
{
	struct rig_node *n = &rig.node[i];
	uint32_t k;

	hc_out_reset(&rig.out);
	hc_core_step(n->core, rig.now, ev, &rig.out);
	for (k = 0; k < rig.out.count; k++) {
		const struct hc_action *a = &rig.out.acts[k];

		if (a->kind == HC_ACT_DATAGRAM) {
			rig_send(i, a);
		} else if (a->kind == HC_ACT_LOG) {
			rig_logged(n, a);
		} else if (a->kind == HC_ACT_KEY_DROP) {
			n->dropped_keys++;
			n->last_dropped = a->u.key.key;
		}
	}
}

static inline void rig_give(uint32_t to, const struct rig_packet *p, const uint8_t *bytes)
{
	struct hc_event ev = {.kind = HC_EV_DATAGRAM};

	ev.u.datagram.local = p->local;
	ev.u.datagram.remote = p->remote;
	memcpy(&ev.u.datagram.key, bytes + HC_DATAGRAM_AT_KEY, 4);
	ev.u.datagram.key = __builtin_bswap32(ev.u.datagram.key);
	ev.u.datagram.bytes = bytes;
	ev.u.datagram.len = p->len;
	rig_step(to, &ev);
}

static inline uint64_t rig_awake(uint32_t i, uint64_t at)
{
	return at < rig.node[i].stalled_until ? rig.node[i].stalled_until : at;
}

/* The packet that comes first, rig.nflight: none. */
static inline uint32_t rig_first(void)
{
	uint32_t i, first = rig.nflight;
	uint64_t best = HC_NEVER, at;

	for (i = 0; i < rig.nflight; i++) {
		at = rig_awake(rig.flight[i].to, rig.flight[i].at);
		if (at < best || (at == best && rig.flight[i].number < rig.flight[first].number)) {
			best = at;
			first = i;
		}
	}
	return first;
}

static inline void rig_deliver(uint32_t i)
{
	struct rig_packet p = rig.flight[i];

	rig.flight[i] = rig.flight[--rig.nflight];
	if (p.len <= sizeof(rig.last[0])) {
		memcpy(rig.last[p.to], p.bytes, p.len);
		rig.last_head[p.to] = p;
	}
	rig_give(p.to, &p, p.bytes);
	free(p.bytes);
}

static inline void rig_until(uint64_t until)
{
	const struct hc_event timeout = {.kind = HC_EV_TIMEOUT};
	uint64_t at, due;
	uint32_t i, who, first;

	for (;;) {
		first = rig_first();
		at = first < rig.nflight ? rig_awake(rig.flight[first].to, rig.flight[first].at)
					 : HC_NEVER;
		for (who = HC_NONE, i = 0; i < rig.nodes; i++) {
			due = hc_core_deadline(rig.node[i].core);
			due = rig_awake(i, due < rig.now ? rig.now : due);
			if (due < at) {
				at = due;
				who = i;
			}
		}
		if (at > until)
			break;
		rig.now = at;
		if (who == HC_NONE)
			rig_deliver(first);
		else
			rig_step(who, &timeout);
	}
	rig.now = until;
}

static inline void rig_for(uint64_t ns)
{
	rig_until(rig.now + ns);
}

static inline bool rig_said(uint32_t node, const char *text)
{
	return strstr(rig.node[node].log, text);
}

static inline uint32_t rig_times(uint32_t node, const char *text)
{
	const char *p = rig.node[node].log;
	uint32_t n = 0;

	while ((p = strstr(p, text))) {
		n++;
		p++;
	}
	return n;
}

static inline void rig_forget(void)
{
	uint32_t i;

	for (i = 0; i < rig.nodes; i++)
		rig.node[i].log[rig.node[i].log_len = 0] = '\0';
}

static inline void rig_start_with(uint32_t nodes, const struct hc_settings *set,
				  const uint32_t *mtus)
{
	const struct hc_limits lim = {.sessions = 4,
				      .domains = 4,
				      .ranks = 16,
				      .ranks_per_domain = 16,
				      .devices = 4,
				      .ended = 4,
				      .quota_domains = 4,
				      .links = 4,
				      .requests = 16,
				      .pieces = 16,
				      .channels = 4,
				      .wants = 4,
				      .values = 16,
				      .peers = 4,
				      .paths = 16,
				      .ports = 4,
				      .mail = 64};
	uint32_t i, k;

	memset(&rig, 0, sizeof(rig));
	rig.nodes = nodes;
	rig.now = rig.start = 4000 * SEC;
	rig.delay = 100000;
	rig.random = 1;
	for (i = 0; i < nodes; i++) {
		rig_core(i, &lim, set);
		rig_step(i, &(struct hc_event){.kind = HC_EV_START});
		rig_port(i, mtus ? mtus[i] : RIG_MTU);
		for (k = 0; k < nodes; k++)
			if (k != i)
				rig_meet(i, k, mtus ? mtus[k] : RIG_MTU);
	}
	for (i = 0; i < nodes; i++)
		for (k = 0; k < nodes; k++)
			if (k != i)
				rig_join(i, k);
}

static inline void rig_start(uint32_t nodes)
{
	rig_start_with(nodes, &rig_settings, NULL);
}

/* At the given interval and misses. */
static inline void rig_start_at(uint32_t nodes, uint64_t beat_ns, uint32_t misses, uint32_t down)
{
	struct hc_settings set = rig_settings;

	set.beat_ns = beat_ns;
	set.misses = misses;
	set.down_misses = down;
	rig_start_with(nodes, &set, NULL);
}

static inline void rig_end_all(void)
{
	uint32_t i;

	for (i = 0; i < rig.nflight; i++)
		free(rig.flight[i].bytes);
	for (i = 0; i < rig.nodes; i++)
		munmap(rig.node[i].memory, rig.node[i].size);
	rig.nflight = rig.nodes = 0;
}

/* What tests lose. */
static inline bool rig_lose_all(struct rig *r, const struct rig_packet *p)
{
	(void)r;
	(void)p;
	return true;
}

static inline bool rig_lose_from_0(struct rig *r, const struct rig_packet *p)
{
	(void)r;
	return p->from == 0;
}

#endif
