/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which peers there are: one for each section of the configuration, one for each node that said
 * hello, and one for each address that a join looks for. A peer begins as a place to dial; its
 * hello tells its identity, and from then on it is known by that. Two places that turn out to be
 * one node are one peer. A peer that nobody configured, and that is unreachable, makes room for
 * a new one when the table is full.
 */
#include "digest.h"
#include "emit.h"
#include "net.h"
#include "rng.h"
#include "seek.h"

#include <stdio.h>

#define MS 1000000u

struct hc_peer *hc_peer_get(struct hc_core *c, uint32_t peer)
{
	hc_assert(peer < c->lim.peers && c->net->peers[peer].used);
	return &c->net->peers[peer];
}

static uint64_t id_key(const uint8_t node_id[16])
{
	uint64_t key;

	memcpy(&key, node_id, sizeof(key));
	return key;
}

uint32_t hc_peer_find(const struct hc_core *c, const uint8_t node_id[16])
{
	const struct hc_net *n = c->net;
	uint32_t i;

	for (i = hc_index_find(&n->peer_by_id, id_key(node_id)); i != HC_NONE;
	     i = hc_index_next(&n->peer_by_id, i))
		if (!memcmp(n->peers[i].node_id, node_id, 16))
			return i;
	return HC_NONE;
}

/* ---- making and forgetting ---- */

static void forget(struct hc_core *c, uint32_t peer)
{
	struct hc_peer *p = hc_peer_get(c, peer);
	struct hc_net *n = c->net;

	hc_seek_moved(c, peer, HC_NONE);
	hc_conn_close_all(c, peer, NULL);
	if (p->known) {
		hc_path_drop_all(c, peer);
		hc_index_del(&n->peer_by_id, peer);
	}
	if (p->node != HC_NONE)
		c->nodes[p->node].peer = HC_NONE;
	hc_peer_mail_drop(c, peer);
	if (p->busy)
		hc_list_del(&n->busy, &n->busy_links, peer);
	hc_timers_set(&n->timers, peer, HC_NEVER);
	n->asks -= p->ask_routes;
	memset(p, 0, sizeof(*p));
	hc_pool_put(&n->peer_pool, peer);
	n->node_changes++;
}

/* The one that is unreachable for the longest time, and that nobody asked for. */
static void make_room(struct hc_core *c)
{
	struct hc_net *n = c->net;
	uint32_t i, oldest = HC_NONE;

	for (i = 0; i < n->peer_pool.fresh; i++)
		if (n->peers[i].used && !n->peers[i].configured &&
		    n->peers[i].state == HC_W_node_state_UNREACHABLE &&
		    (oldest == HC_NONE || n->peers[i].since < n->peers[oldest].since))
			oldest = i;
	if (oldest != HC_NONE)
		forget(c, oldest);
}

uint32_t hc_peer_new(struct hc_core *c)
{
	struct hc_net *n = c->net;
	struct hc_peer *p;
	uint32_t peer;

	if (n->peer_pool.used == n->peer_pool.cap)
		make_room(c);
	peer = hc_pool_get(&n->peer_pool);
	if (peer == HC_NONE)
		return peer;
	p = &n->peers[peer];
	*p = (struct hc_peer){.used = true,
			      .node = HC_NONE,
			      .twin = HC_NONE,
			      .since = c->now,
			      .heard_at = HC_NEVER,
			      .watch_at = HC_NEVER,
			      .waits_since = HC_NEVER,
			      .dial_at = HC_NEVER,
			      .grace_until = HC_NEVER,
			      .ack_at = HC_NEVER,
			      .old_until = HC_NEVER,
			      .unsent = HC_NONE,
			      .mail_first = HC_NONE,
			      .mail_last = HC_NONE};
	hc_peer_mail_drop(c, peer);
	n->node_changes++;
	return peer;
}

/* ---- identity ---- */

static void suffixed(const char *name, const uint8_t id[16], char to[HC_NAME_MAX + 1])
{
	snprintf(to, HC_NAME_MAX + 1, "%.*s#%02x%02x", (int)HC_NAME_MAX - 5, name, id[0], id[1]);
}

/* Two nodes of one name are told apart by the start of their identities. */
static void name_it(struct hc_core *c, struct hc_peer *p, struct hc_str said)
{
	char name[HC_NAME_MAX + 1];
	uint32_t other;

	hc_str_copy(said.len ? said : hc_str("unnamed"), name, sizeof(name));
	other = hc_core_node_named(c, name);
	if (other != HC_NONE && memcmp(c->nodes[other].id, p->node_id, 16) != 0)
		suffixed(name, p->node_id, p->name);
	else
		memcpy(p->name, name, sizeof(name));
	hc_core_node(c, p->node_id, p->name);
}

static void news(struct hc_peer *p, const struct hc_m_peer_hello *m)
{
	if (p->incarnation != m->incarnation)
		p->news = HC_W_event_code_NODE_REBORN;
	else if ((p->start != m->start || p->cookie != m->cookie) && !p->news)
		p->news = HC_W_event_code_NODE_RESTARTED;
}

static void remember(struct hc_core *c, struct hc_peer *p, const struct hc_m_peer_hello *m)
{
	memcpy(p->boot_id, m->boot_id.b, 16);
	p->cookie = m->cookie;
	p->incarnation = m->incarnation;
	p->start = m->start;
	p->proto = m->proto_max < HC_PROTO_MAX ? m->proto_max : HC_PROTO_MAX;
	p->wish_ns = (uint64_t)m->interval_ms * MS;
	p->wish_misses = m->misses;
	p->wish_down = m->down_misses;
	hc_str_copy(m->build, p->build, sizeof(p->build));
	name_it(c, p, m->name);
	c->net->node_changes++;
}

/* Room for its node is there: that was looked at before. */
void hc_peer_identify(struct hc_core *c, uint32_t peer, const struct hc_m_peer_hello *m)
{
	struct hc_peer *p = hc_peer_get(c, peer);

	if (p->known) {
		news(p, m);
	} else {
		memcpy(p->node_id, m->node_id.b, 16);
		hc_index_add(&c->net->peer_by_id, id_key(p->node_id), peer);
		p->known = true;
	}
	remember(c, p, m);
	p->node = hc_core_find_node(c, p->node_id);
	hc_assert(p->node != HC_NONE);
	c->nodes[p->node].peer = peer;
	hc_digest_peer(c, peer);
	hc_peer_ports(c, peer, &m->ports);
}

/* ---- sections of the configuration ---- */

static uint32_t of_section(const struct hc_core *c, const char *name)
{
	const struct hc_net *n = c->net;
	uint32_t i;

	for (i = 0; i < n->peer_pool.fresh; i++)
		if (n->peers[i].used && n->peers[i].configured &&
		    !strcmp(n->peers[i].section, name))
			return i;
	return HC_NONE;
}

/* It goes when nothing else is known of it; else it is a peer that came by itself. */
static void section_gone(struct hc_core *c, uint32_t peer)
{
	struct hc_peer *p = hc_peer_get(c, peer);

	if (!p->known) {
		forget(c, peer);
		return;
	}
	p->configured = false;
	p->section[0] = '\0';
	p->nendpoints = p->ourselves = 0;
	c->net->node_changes++;
}

static void no_room(struct hc_core *c, const char *name)
{
	char text[HC_NAME_MAX + 96];

	HC_TEXT(text, "section [node %s] is left out: peers_max = %u is reached", name,
		c->lim.peers);
	hc_emit_log(c, HC_LOG_ERROR, 0, 0, HC_NONE, text);
}

static void set_section(struct hc_core *c, uint32_t peer, const struct hc_node_fact *f)
{
	struct hc_peer *p = hc_peer_get(c, peer);

	if (!p->known)
		hc_str_copy(hc_str(f->name), p->name, sizeof(p->name));
	hc_str_copy(hc_str(f->name), p->section, sizeof(p->section));
	p->configured = true;
	memcpy(p->endpoints, f->endpoints, sizeof(p->endpoints));
	p->nendpoints = f->nendpoints;
	p->ourselves = p->next_endpoint = 0;
	c->net->node_changes++;
	if (!c->self.peers) {
		HC_TEXT(p->last_error, "this node works alone: it has no cluster key");
		return;
	}
	if (!p->conn) {
		p->dial_backoff_ms = 0;
		hc_peer_dial_in(c, peer, 0);
	}
}

void hc_peer_fact(struct hc_core *c, const struct hc_node_fact *fact)
{
	uint32_t peer = of_section(c, fact->name);

	hc_assert(fact->nendpoints <= HC_NODE_ENDPOINTS);
	if (!fact->present) {
		if (peer != HC_NONE)
			section_gone(c, peer);
		return;
	}
	if (peer == HC_NONE)
		peer = hc_peer_new(c);
	if (peer == HC_NONE)
		no_room(c, fact->name);
	else
		set_section(c, peer, fact);
}

/* ---- dialled for a join ---- */

static uint32_t dialled_at(const struct hc_core *c, const struct hc_endpoint *at)
{
	const struct hc_net *n = c->net;
	uint32_t i, k;

	for (i = 0; i < n->peer_pool.fresh; i++)
		for (k = 0; n->peers[i].used && !n->peers[i].known && k < n->peers[i].nendpoints;
		     k++)
			if (hc_endpoint_eq(&n->peers[i].endpoints[k], at))
				return i;
	return HC_NONE;
}

uint32_t hc_peer_seek(struct hc_core *c, const char *name, const struct hc_endpoint *at,
		      uint32_t nat)
{
	uint32_t peer = dialled_at(c, &at[0]);
	struct hc_peer *p;

	hc_assert(nat && nat <= HC_NODE_ENDPOINTS);
	if (peer != HC_NONE)
		return peer;
	peer = hc_peer_new(c);
	if (peer == HC_NONE)
		return peer;
	p = hc_peer_get(c, peer);
	hc_str_copy(hc_str(name), p->name, sizeof(p->name));
	p->sought = true;
	memcpy(p->endpoints, at, nat * sizeof(*at));
	p->nendpoints = nat;
	hc_peer_dial_in(c, peer, 0);
	return peer;
}

void hc_peer_unsought(struct hc_core *c, uint32_t peer)
{
	const struct hc_peer *p = hc_peer_get(c, peer);

	if (p->sought && !p->known && !p->configured)
		forget(c, peer);
}

/* Its slot is free afterwards, unless that node has a section already. */
void hc_peer_merge(struct hc_core *c, uint32_t from, uint32_t peer)
{
	struct hc_peer *f = hc_peer_get(c, from), *p = hc_peer_get(c, peer);
	char text[3 * HC_NAME_MAX];

	if (f->known)
		return; /* another node answers there now: the next dial goes elsewhere */
	hc_seek_moved(c, from, peer);
	if (!f->configured) {
		forget(c, from);
		return;
	}
	if (!p->configured) {
		p->configured = true;
		memcpy(p->section, f->section, sizeof(p->section));
		memcpy(p->endpoints, f->endpoints, sizeof(p->endpoints));
		p->nendpoints = f->nendpoints;
		p->ourselves = f->ourselves;
		forget(c, from);
		return;
	}
	f->twin = peer;
	f->dial_at = HC_NEVER;
	HC_TEXT(text, "section [node %.100s] names node %.100s, as section [node %.100s] does",
		f->section, p->name, p->section);
	hc_emit_log(c, HC_LOG_WARN, 0, 0, HC_NONE, text);
	hc_str_copy(hc_str(text), f->last_error, sizeof(f->last_error));
	hc_peer_arm(c, from);
}

/* It announces the address that the section names, and came from there or has its name. */
static bool is_of(const struct hc_peer *f, const struct hc_peer *p, const struct hc_addr *from)
{
	uint32_t i, k;

	for (i = 0; i < f->nendpoints; i++) {
		if (!hc_addr_eq(&f->endpoints[i].addr, from) && strcmp(f->section, p->name) != 0)
			continue;
		for (k = 0; k < p->nports; k++)
			if (hc_endpoint_eq(&f->endpoints[i], &p->ports[k].at))
				return true;
	}
	return false;
}

/* While it is dialled, the hello that comes there says more, and its end must not be two ends. */
static bool waits(const struct hc_peer *f)
{
	return f->used && f->configured && !f->known && !f->dialled && f->twin == HC_NONE;
}

void hc_peer_claim(struct hc_core *c, uint32_t peer, const struct hc_addr *from)
{
	const struct hc_net *n = c->net;
	uint32_t i;

	for (i = 0; i < n->peer_pool.fresh; i++)
		if (i != peer && waits(&n->peers[i]) && is_of(&n->peers[i], &n->peers[peer], from))
			hc_peer_merge(c, i, peer);
}

bool hc_peer_claimed(struct hc_core *c, uint32_t peer)
{
	const struct hc_net *n = c->net;
	const struct hc_peer *p;
	uint32_t i;

	if (!waits(&n->peers[peer]))
		return false;
	for (i = 0; i < n->peer_pool.fresh; i++) {
		p = &n->peers[i];
		if (p->used && p->known && p->conn && is_of(&n->peers[peer], p, &p->address.addr)) {
			hc_peer_merge(c, peer, i);
			return true;
		}
	}
	return false;
}
