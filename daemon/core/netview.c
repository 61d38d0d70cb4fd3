/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nodes, paths and ports for people; see views.tbl.h and view.h.
 *
 * A cursor is the place in the table after which the next page begins. What is a time is told as
 * milliseconds before now; "never" is the largest number.
 */
#include "net.h"
#include "view.h"

#include <stdio.h>

#define MS 1000000u

static uint64_t ago_ms(const struct hc_core *c, uint64_t at)
{
	return at == HC_NEVER ? HC_NEVER : (c->now - at) / MS;
}

static uint64_t in_ms(const struct hc_core *c, uint64_t at)
{
	return at == HC_NEVER || at <= c->now ? 0 : (at - c->now + MS - 1) / MS;
}

static bool is_named(const struct hc_view_page *g, const char *name)
{
	return !g->q->name.len || hc_str_eq(hc_str(name), g->q->name);
}

static void id_text(const uint8_t id[16], bool known, char text[33])
{
	uint32_t i;

	text[0] = '\0';
	for (i = 0; known && i < 16; i++)
		snprintf(text + 2 * i, 3, "%02x", id[i]);
}

static uint32_t good_paths(const struct hc_core *c, const struct hc_peer *p)
{
	uint32_t i, good = 0;

	for (i = 0; i < p->npaths; i++)
		good += c->net->paths[p->paths[i]].state == HC_W_path_state_NORMAL;
	return good;
}

/* The slower wish counts; without a hello ours. */
static uint32_t interval_ms(const struct hc_core *c, const struct hc_peer *p)
{
	return (uint32_t)((p->wish_ns > c->set.beat_ns ? p->wish_ns : c->set.beat_ns) / MS);
}

/* Where its connection goes, or was tried last. */
static void address_of(const struct hc_peer *p, char text[HC_ENDPOINT_TEXT_MAX])
{
	if (p->address.addr.family)
		hc_endpoint_text(&p->address, text);
	else if (p->nendpoints)
		hc_endpoint_text(&p->endpoints[p->next_endpoint % p->nendpoints], text);
	else
		text[0] = '\0';
}

static bool node_row(struct hc_view_page *g, const struct hc_peer *p)
{
	const struct hc_core *c = g->c;
	char id[33], boot[33], at[HC_ENDPOINT_TEXT_MAX], hold[96];
	struct hc_m_view_node r = {.name = hc_str(p->name),
				   .state = hc_str(hc_word_node_state(p->state)),
				   .age_ms = ago_ms(c, p->since),
				   .paths = p->npaths,
				   .paths_good = good_paths(c, p),
				   .heard_ms = ago_ms(c, hc_peer_heard_at(c, p)),
				   .interval_ms = interval_ms(c, p),
				   .incarnation = p->incarnation,
				   .start = p->start,
				   .restarts = p->restarts,
				   .waiting = p->mail_count,
				   .next_ms = in_ms(c, p->dial_at),
				   .dials = p->dials,
				   .build = hc_str(p->build)};

	id_text(p->node_id, p->known, id);
	id_text(p->boot_id, p->known, boot);
	address_of(p, at);
	r.node_id = hc_str(id);
	r.boot_id = hc_str(boot);
	r.address = hc_str(at);
	if (p->state == HC_W_node_state_HOLD) {
		snprintf(hold, sizeof(hold),
			 "its daemon restarts as planned: nothing is judged for %llu ms more",
			 (unsigned long long)in_ms(c, p->grace_until));
		r.cause = hc_str(hold);
	} else if (p->state != HC_W_node_state_UP || !p->conn) {
		r.cause = hc_str(p->last_error);
	}
	return hc_view_put(g, &r);
}

uint64_t hc_netview_nodes(struct hc_view_page *g, uint64_t at)
{
	const struct hc_net *n = g->c->net;

	for (; at < n->peer_pool.fresh; at++)
		if (n->peers[at].used && is_named(g, n->peers[at].name) &&
		    !node_row(g, &n->peers[at]))
			return at + 1;
	return 0;
}

/* By insertion: there are at most 64, and they are nearly equal. */
static void sort(uint32_t *v, uint32_t n)
{
	uint32_t i, k, x;

	for (i = 1; i < n; i++) {
		x = v[i];
		for (k = i; k && v[k - 1] > x; k--)
			v[k] = v[k - 1];
		v[k] = x;
	}
}

/* Of the last 64 round trips. */
static void percentiles(const struct hc_path *h, uint32_t *p50, uint32_t *p99)
{
	const uint32_t n = h->rtt_count < 64 ? h->rtt_count : 64;
	uint32_t sorted[64];

	*p50 = *p99 = 0;
	if (!n)
		return;
	memcpy(sorted, h->rtt_log, n * sizeof(sorted[0]));
	sort(sorted, n);
	*p50 = sorted[(n - 1) / 2];
	*p99 = sorted[(n * 99 + 99) / 100 - 1];
}

static bool path_row(struct hc_view_page *g, const struct hc_path *h, const struct hc_peer *p)
{
	struct hc_core *c = g->c;
	const struct hc_port_slot *port = hc_port_get(c, h->port);
	char local[HC_ENDPOINT_TEXT_MAX], remote[HC_ENDPOINT_TEXT_MAX], gone[32];
	struct hc_m_view_path r = {
		.node = hc_str(p->name),
		.id = h->id,
		.port = hc_str(port ? port->fact.name : ""),
		.local = hc_str(hc_endpoint_text(&h->local, local)),
		.remote = hc_str(hc_endpoint_text(&h->remote, remote)),
		.state = hc_str(hc_word_path_state(h->state)),
		.cause = hc_str(h->cause_text[0] ? h->cause_text : hc_word_path_cause(h->cause)),
		.age_ms = ago_ms(c, h->since),
		.heard_ms = ago_ms(c, h->heard_at),
		.interval_ms = (uint32_t)(hc_path_interval(c, h) / MS),
		.mtu_local = h->local_mtu,
		.mtu_peer = h->far_mtu,
		.mtu_used = h->used_mtu,
		.rtt_us = h->rtt_us,
		.rtt_max_us = h->rtt_max_us,
		.jitter_us = h->jitter_us,
		.sent = h->sent,
		.received = h->received,
		.missed = h->missed,
		.run = h->run,
		.worst = h->worst,
		.flaps = h->flaps,
		.flap_ms = h->flaps ? ago_ms(c, h->last_flap) : HC_NEVER,
		.held_ms = in_ms(c, h->held_until),
		.changes = h->changes,
		.load_percent = port ? port->load_percent : 0,
		.refused = h->refused};

	if (!port && h->port_name[0]) {
		snprintf(gone, sizeof(gone), "%s (gone)", h->port_name);
		r.port = hc_str(gone);
	}
	percentiles(h, &r.rtt_p50_us, &r.rtt_p99_us);
	return hc_view_put(g, &r);
}

uint64_t hc_netview_paths(struct hc_view_page *g, uint64_t at)
{
	const struct hc_net *n = g->c->net;

	for (; at < n->path_top; at++) {
		const struct hc_path *h = &n->paths[at];

		if (h->id && h->peer != HC_NONE && is_named(g, n->peers[h->peer].name) &&
		    !path_row(g, h, &n->peers[h->peer]))
			return at + 1;
	}
	return 0;
}

static bool port_row(struct hc_view_page *g, const struct hc_port_slot *p, uint32_t addr)
{
	char text[HC_ADDR_TEXT_MAX] = "";
	struct hc_m_view_port r = {
		.name = hc_str(p->fact.name),
		.index = p->fact.index,
		.kind = hc_str(hc_word_port_kind(p->fact.kind)),
		.verdict = hc_str(hc_word_port_verdict(hc_port_verdict(g->c, p, addr))),
		.mtu = p->fact.mtu,
		.mbps = p->fact.mbps,
		.carrier = p->fact.carrier,
		.load_percent = p->load_percent};

	if (addr < p->fact.naddrs)
		hc_addr_text(&p->fact.addrs[addr].addr, text);
	r.address = hc_str(text);
	return hc_view_put(g, &r);
}

/* Cursor: slot of the port << 8 | address, + 1. A port without addresses has one row, too. */
uint64_t hc_netview_ports(struct hc_view_page *g, uint64_t at)
{
	const struct hc_net *n = g->c->net;
	uint64_t i = at >> 8, k = at & 0xff;

	for (; i < n->nports; i++, k = 0) {
		const struct hc_port_slot *p = &n->ports[i];

		if (!p->fact.present || !is_named(g, p->fact.name))
			continue;
		for (; !k || k < p->fact.naddrs; k++)
			if (!port_row(g, p, (uint32_t)k))
				return (i << 8 | k) + 1;
	}
	return 0;
}
