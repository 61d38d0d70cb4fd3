/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Routes and paths: which pairs of ports there are.
 *
 * For each endpoint that a peer announces the kernel is asked how it would send there. The address
 * that it names, if it is of a port in use, makes a path with the endpoint. Nothing is guessed from
 * names, networks or the order of interfaces. Endpoints that are a last resort (bridges of
 * containers) get a path only when no other one has.
 *
 * The number of a path is a hash of both ends, the lower node's first: both nodes compute the same
 * one and need not agree on it. So a frame may name a path that we do not have, because the
 * peer's kernel chose another way than ours. It is made then, if both ends are what the number
 * says, the far one was announced and the near one is ours and in use.
 *
 * Questions for routes are numbered: serial, peer and port in one word. An answer that is late
 * finds that its number is not open any more.
 */
#include "emit.h"
#include "pathimp.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define LOAD_FULL_NS (1000 * HC_MS)
#define LOAD_RELIEF  70u /* percent; above 80 is what port.c calls full */

/* ---- numbers ---- */

static size_t put_endpoint(uint8_t *to, const struct hc_endpoint *e)
{
	to[0] = e->addr.family;
	memcpy(to + 1, e->addr.bytes, sizeof(e->addr.bytes));
	to[17] = (uint8_t)(e->port >> 8);
	to[18] = (uint8_t)e->port;
	return 19;
}

uint32_t hc_path_id(const struct hc_core *c, const uint8_t peer_id[16],
		    const struct hc_endpoint *local, const struct hc_endpoint *remote)
{
	static const struct hc_hash_key key = {0x68636f6d6d2d7061ull, 0x7468206e756d6265ull};
	const bool first = memcmp(c->self.node_id, peer_id, 16) < 0;
	uint8_t ends[38];
	size_t n;
	uint32_t id;

	n = put_endpoint(ends, first ? local : remote);
	put_endpoint(ends + n, first ? remote : local);
	id = (uint32_t)hc_hash(&key, ends, sizeof(ends));
	return id ? id : 1;
}

static uint64_t remote_key(const struct hc_endpoint *e)
{
	static const struct hc_hash_key key = {0x72656d6f7465, 1};
	uint8_t end[19];

	return hc_hash(&key, end, put_endpoint(end, e));
}

uint32_t hc_path_clamp_mtu(uint32_t mtu)
{
	return mtu < UINT16_MAX ? mtu : UINT16_MAX;
}

/* ---- making and dropping ---- */

static const struct hc_port_slot *port_of(const struct hc_core *c, uint32_t index)
{
	const struct hc_net *n = c->net;
	uint32_t i;

	for (i = 0; i < n->nports; i++)
		if (n->ports[i].fact.present && n->ports[i].fact.index == index)
			return &n->ports[i];
	return NULL;
}

static uint32_t local_mtu(const struct hc_core *c, uint32_t port)
{
	const struct hc_port_slot *p = port_of(c, port);

	return p ? hc_path_clamp_mtu(p->fact.mtu) : 0;
}

/* It is told also when the port is gone. */
static void keep_port_name(const struct hc_core *c, struct hc_path *path)
{
	const struct hc_port_slot *p = port_of(c, path->port);

	if (p)
		hc_str_copy(hc_str(p->fact.name), path->port_name, sizeof(path->port_name));
}

static struct hc_far_port *far_of(struct hc_peer *peer, const struct hc_endpoint *at)
{
	uint32_t i;

	for (i = 0; i < peer->nports; i++)
		if (hc_endpoint_eq(&peer->ports[i].at, at))
			return &peer->ports[i];
	return NULL;
}

bool hc_path_far_mtu(struct hc_core *c, uint32_t x, uint32_t mtu)
{
	struct hc_path *p = &c->net->paths[x];
	struct hc_far_port *far = far_of(&c->net->peers[p->peer], &p->remote);

	if (!mtu || mtu == p->far_mtu)
		return false;
	p->far_mtu = mtu;
	if (far)
		far->mtu = mtu; /* its message about that may come later */
	return true;
}

static void fill(struct hc_core *c, struct hc_path *p, const struct hc_far_port *far)
{
	struct hc_peer *peer = &c->net->peers[p->peer];

	p->heard_at = p->echo_at = p->proof_at = p->proof_of = p->deaf_at = p->last_flap = HC_NEVER;
	p->probe_at = p->mtu_at = HC_NEVER;
	p->odd = true;
	p->since = p->made = p->judge_from = c->now;
	p->their_wish_ns = peer->wish_ns;
	keep_port_name(c, p);
	p->local_mtu = local_mtu(c, p->port);
	p->far_mtu = far ? hc_path_clamp_mtu(far->mtu) : 0;
	p->mtu_hint = far ? far->route_mtu : 0;
	HC_TEXT(p->cause_text, "not proven yet");
}

/* What a path of that number had used of the keys, before it was dropped. */
static void remember(struct hc_path *p, const struct hc_peer *peer)
{
	uint32_t i;

	p->tx_seq = peer->seq_floor;
	for (i = 0; i < HC_PEER_GONE; i++)
		if (peer->gone[i].path == p->id)
			memcpy(p->window, peer->gone[i].window, sizeof(p->window));
}

static void keep_numbers(const struct hc_path *p, struct hc_peer *peer)
{
	uint32_t i;

	for (i = 0; i < HC_PEER_GONE && peer->gone[i].path != p->id; i++)
		;
	if (i == HC_PEER_GONE)
		i = peer->gone_next++ % HC_PEER_GONE;
	peer->gone[i].path = p->id;
	memcpy(peer->gone[i].window, p->window, sizeof(p->window));
	peer->seq_floor = hc_longer(peer->seq_floor, p->tx_seq);
}

uint32_t hc_path_make(struct hc_core *c, uint32_t peer, uint32_t id, uint32_t port,
		      const struct hc_endpoint *local, const struct hc_endpoint *remote)
{
	struct hc_net *n = c->net;
	struct hc_peer *of = &n->peers[peer];
	uint32_t x = of->npaths < HC_PEER_PATHS ? hc_pool_get(&n->path_pool) : HC_NONE;

	if (x == HC_NONE)
		return x;
	n->paths[x] = (struct hc_path){
		.id = id, .peer = peer, .port = port, .local = *local, .remote = *remote};
	n->path_top = x < n->path_top ? n->path_top : x + 1;
	n->due[x] = n->beats[x] = HC_NEVER;
	hc_index_add_in(&n->path_by_id, x);
	hc_index_add(&n->path_by_remote, remote_key(remote), x);
	of->paths[of->npaths++] = x;
	fill(c, &n->paths[x], far_of(of, remote));
	remember(&n->paths[x], of);
	n->path_changes++;
	hc_beat_begin(c, x);
	hc_probe_begin(c, x);
	return x;
}

void hc_path_drop(struct hc_core *c, uint32_t x)
{
	struct hc_net *n = c->net;
	struct hc_peer *peer = &n->peers[n->paths[x].peer];
	uint32_t i;

	for (i = 0; i < peer->npaths && peer->paths[i] != x; i++)
		;
	hc_assert(i < peer->npaths);
	peer->paths[i] = peer->paths[--peer->npaths];
	keep_numbers(&n->paths[x], peer);
	for (i = 0; i < peer->nports; i++)
		if (peer->ports[i].path == x)
			peer->ports[i].path = HC_NONE;
	n->due[x] = n->beats[x] = HC_NEVER;
	hc_index_del(&n->path_by_id, x);
	hc_index_del(&n->path_by_remote, x);
	hc_peer_watch(c, n->paths[x].peer);
	n->paths[x].id = 0;
	n->paths[x].peer = HC_NONE;
	hc_pool_put(&n->path_pool, x);
	n->path_changes++;
}

void hc_path_drop_all(struct hc_core *c, uint32_t peer)
{
	struct hc_peer *p = &c->net->peers[peer];

	while (p->npaths)
		hc_path_drop(c, p->paths[p->npaths - 1]);
}

/* ---- finding ---- */

static bool runs(const struct hc_path *p, const struct hc_endpoint *local,
		 const struct hc_endpoint *remote)
{
	return hc_endpoint_eq(&p->remote, remote) && hc_addr_eq(&p->local.addr, &local->addr);
}

/* A frame names a path that we do not have. */
static uint32_t find_new(struct hc_core *c, uint32_t peer, uint32_t id,
			 const struct hc_endpoint *local, const struct hc_endpoint *remote)
{
	struct hc_peer *p = &c->net->peers[peer];
	uint32_t x = HC_NONE, port;

	if (!far_of(p, remote) || id != hc_path_id(c, p->node_id, local, remote))
		return x;
	port = hc_port_of(c, &local->addr);
	return port == HC_NONE ? x : hc_path_make(c, peer, id, port, local, remote);
}

uint32_t hc_path_find(struct hc_core *c, uint32_t peer, uint32_t id,
		      const struct hc_endpoint *local, const struct hc_endpoint *remote)
{
	struct hc_net *n = c->net;
	uint32_t x;

	for (x = hc_index_find(&n->path_by_id, id); x != HC_NONE;
	     x = hc_index_next(&n->path_by_id, x)) {
		if (n->paths[x].peer != peer)
			continue;
		if (runs(&n->paths[x], local, remote))
			return x;
		n->paths[x].refused++;
		n->wrong_source++;
		return HC_NONE;
	}
	x = find_new(c, peer, id, local, remote);
	if (x == HC_NONE)
		n->unknown_path++;
	return x;
}

uint32_t hc_path_to(const struct hc_core *c, const struct hc_endpoint *remote, uint32_t after)
{
	const struct hc_net *n = c->net;
	uint32_t x = after == HC_NONE ? hc_index_find(&n->path_by_remote, remote_key(remote))
				      : hc_index_next(&n->path_by_remote, after);

	while (x != HC_NONE && !hc_endpoint_eq(&n->paths[x].remote, remote))
		x = hc_index_next(&n->path_by_remote, x);
	return x;
}

/* ---- routes ---- */

/* serial, peer and port in a word; a peer's number is less than 65,536. */
static uint32_t ask_number(struct hc_net *n, uint32_t peer, uint32_t port)
{
	if (!(++n->ask_serial & 0xfff))
		n->ask_serial++;
	return (n->ask_serial & 0xfff) << 20 | peer << 4 | port;
}

void hc_path_routes(struct hc_core *c, uint32_t peer)
{
	struct hc_net *n = c->net;
	uint32_t i, from = peer == HC_NONE ? 0 : peer;
	uint32_t to = peer == HC_NONE ? n->peer_pool.cap : peer + 1;

	for (i = from; i < to; i++) {
		if (!n->peers[i].used || n->peers[i].ask_routes)
			continue;
		n->peers[i].ask_routes = true;
		n->asks++;
	}
}

static void ask(struct hc_core *c, uint32_t peer)
{
	struct hc_peer *p = &c->net->peers[peer];
	struct hc_action *a;
	uint32_t i;

	for (i = 0; i < p->nports; i++) {
		if (p->ports[i].ourselves)
			continue;
		p->ports[i].ask = ask_number(c->net, peer, i);
		a = hc_emit_action(c, HC_ACT_ROUTE);
		a->u.route.ask = p->ports[i].ask;
		a->u.route.to = p->ports[i].at.addr;
	}
}

/* Paths to endpoints that the peer does not announce any more. */
static void drop_old(struct hc_core *c, struct hc_peer *p)
{
	uint32_t i;

	for (i = p->npaths; i--;)
		if (!far_of(p, &c->net->paths[p->paths[i]].remote)) {
			hc_path_tell_gone(c, p->paths[i]);
			hc_path_drop(c, p->paths[i]);
		}
}

/* One peer whose routes are to be asked. */
static bool ask_next(struct hc_core *c)
{
	struct hc_net *n = c->net;
	struct hc_peer *p;

	if (!n->asks)
		return false;
	do {
		n->ask_cursor = n->ask_cursor + 1 < n->peer_pool.cap ? n->ask_cursor + 1 : 0;
		p = &n->peers[n->ask_cursor];
	} while (!p->ask_routes);
	p->ask_routes = false;
	n->asks--;
	/* unreachable for want of a path, too: this is how it gets one */
	if (p->used && (p->state == HC_W_node_state_UP || p->conn)) {
		drop_old(c, p);
		ask(c, n->ask_cursor);
	}
	return true;
}

bool hc_path_work(struct hc_core *c)
{
	return ask_next(c);
}

static const char *why_not(int error)
{
	switch (error) {
	case 0: return "it leaves by no port in use";
	case ENETUNREACH: return "network is unreachable";
	case EHOSTUNREACH: return "host is unreachable";
	case EACCES: return "administratively prohibited";
	}
	return "the kernel knows none";
}

static void no_route(struct hc_core *c, struct hc_far_port *far)
{
	char text[160];

	if (far->path == HC_NONE)
		return;
	hc_path_check_port(c, far->path); /* a port that went says more than its route */
	HC_TEXT(text, "no route: %s", why_not(far->route_error));
	hc_path_event(c, far->path, PATH_EV_GONE, HC_W_path_cause_NO_ROUTE, text);
}

/* The port was removed and added again, or the address moved: what is told of the old one is past.
 */
static void move_to(struct hc_core *c, uint32_t x, uint32_t port)
{
	struct hc_path *p = &c->net->paths[x];

	if (p->port == port)
		return;
	p->port = port;
	keep_port_name(c, p);
	p->port_changed = true;
	hc_path_look_by(c->net, x, c->now);
}

/* The path of a far port, made or changed as its route says. */
static void settle_one(struct hc_core *c, uint32_t peer, struct hc_far_port *far)
{
	struct hc_net *n = c->net;
	struct hc_endpoint local = {.addr = far->local, .port = c->self.port};
	uint32_t x, id, port = far->local.family ? hc_port_of(c, &far->local) : HC_NONE;

	if (port == HC_NONE) {
		no_route(c, far);
		return;
	}
	if (far->path != HC_NONE && !hc_endpoint_eq(&n->paths[far->path].local, &local))
		hc_path_drop(c, far->path);
	id = hc_path_id(c, n->peers[peer].node_id, &local, &far->at);
	for (x = hc_path_to(c, &far->at, HC_NONE); x != HC_NONE; x = hc_path_to(c, &far->at, x))
		if (n->paths[x].peer == peer && n->paths[x].id == id)
			break;
	if (x == HC_NONE)
		x = hc_path_make(c, peer, id, port, &local, &far->at);
	else
		move_to(c, x, port);
	far->path = x;
}

/* Both ends were there before: their sizes may be others. */
static void renew_sizes(struct hc_core *c, const struct hc_far_port *far)
{
	struct hc_path *p = far->path == HC_NONE ? NULL : &c->net->paths[far->path];
	const uint32_t far_mtu = hc_path_clamp_mtu(far->mtu);

	if (!p)
		return;
	if (far_mtu == p->far_mtu && p->mtu_hint == far->route_mtu)
		return;
	p->far_mtu = far_mtu;
	p->mtu_hint = far->route_mtu;
	hc_probe_again(c, far->path);
}

static bool is_last(const struct hc_core *c, const struct hc_far_port *far)
{
	const struct hc_port_slot *p;
	uint32_t i, port = far->local.family ? hc_port_of(c, &far->local) : HC_NONE;

	if (far->last || port == HC_NONE)
		return true;
	p = port_of(c, port);
	for (i = 0; p && i < p->fact.naddrs; i++)
		if (hc_addr_eq(&p->fact.addrs[i].addr, &far->local))
			return hc_port_verdict(c, p, i) == HC_W_port_verdict_LAST;
	return true;
}

/* All answers are there: what is a last resort is used if there is nothing else. */
static void settle_last(struct hc_core *c, uint32_t peer)
{
	struct hc_peer *p = &c->net->peers[peer];
	uint32_t i, better = 0;

	for (i = 0; i < p->nports; i++)
		better += p->ports[i].path != HC_NONE && !is_last(c, &p->ports[i]);
	for (i = 0; i < p->nports; i++) {
		if (!is_last(c, &p->ports[i]))
			continue;
		if (!better)
			settle_one(c, peer, &p->ports[i]);
		else if (p->ports[i].path != HC_NONE && p->ports[i].local.family)
			hc_path_drop(c, p->ports[i].path);
	}
}

static bool asks_open(const struct hc_peer *p)
{
	uint32_t i;

	for (i = 0; i < p->nports; i++)
		if (p->ports[i].ask)
			return true;
	return false;
}

void hc_path_route(struct hc_core *c, const struct hc_route_fact *fact)
{
	struct hc_net *n = c->net;
	const uint32_t peer = fact->ask >> 4 & 0xffff, port = fact->ask & 15;
	struct hc_far_port *far;

	if (peer >= n->peer_pool.cap || !n->peers[peer].used || port >= n->peers[peer].nports)
		return;
	far = &n->peers[peer].ports[port];
	if (!fact->ask || far->ask != fact->ask)
		return;
	far->ask = 0;
	far->route_error = fact->error;
	far->local = fact->error ? (struct hc_addr){0} : fact->local;
	far->route_mtu = fact->error ? 0 : fact->mtu;
	if (fact->error || hc_port_of(c, &far->local) == HC_NONE)
		no_route(c, far);
	else if (!is_last(c, far))
		settle_one(c, peer, far);
	if (!asks_open(&n->peers[peer]))
		settle_last(c, peer);
	renew_sizes(c, far);
}

/* ---- our ports ---- */

static void load_changed(struct hc_core *c, uint32_t x, const struct hc_port_slot *port)
{
	char text[160];

	if (port->full_since != HC_NEVER && port->full_since <= c->now &&
	    c->now - port->full_since >= LOAD_FULL_NS) {
		HC_TEXT(text, "%s is at %u %% of its speed", port->fact.name, port->load_percent);
		hc_path_event(c, x, PATH_EV_LOAD, HC_W_path_cause_LOAD, text);
	} else if (port->load_percent < LOAD_RELIEF) {
		HC_TEXT(text, "%s is at %u %% of its speed", port->fact.name, port->load_percent);
		if (c->net->paths[x].state == HC_W_path_state_CONGESTED)
			hc_path_event(c, x, PATH_EV_RELIEF, HC_W_path_cause_PROVEN, text);
	}
}

void hc_path_check_port(struct hc_core *c, uint32_t x)
{
	struct hc_path *p = &c->net->paths[x];
	const struct hc_port_slot *port = port_of(c, p->port);
	const uint32_t mtu = local_mtu(c, p->port);
	char text[160];

	p->port_changed = false;
	if (!port || hc_port_of(c, &p->local.addr) == HC_NONE) {
		HC_TEXT(text, "our port %s",
			!port                 ? "is gone"
			: !port->fact.up      ? "is down"
			: !port->fact.carrier ? "has no carrier"
					      : "has not this address any more, or is not used");
		hc_path_event(c, x, PATH_EV_GONE, HC_W_path_cause_PORT, text);
		return;
	}
	if (mtu != p->local_mtu) {
		p->local_mtu = mtu;
		hc_probe_again(c, x);
	}
	load_changed(c, x, port);
}

/* They are many, perhaps, and each may be told of: one by one, by the look. */
void hc_path_port_changed(struct hc_core *c, uint32_t port)
{
	struct hc_net *n = c->net;
	uint32_t x;

	for (x = 0; x < n->path_top; x++) {
		if (!n->paths[x].id || n->paths[x].port != port)
			continue;
		n->paths[x].port_changed = true;
		hc_path_look_by(n, x, c->now);
	}
}

/* ---- what others ask ---- */

uint32_t hc_path_heard_ms(const struct hc_core *c, const uint8_t node_id[16])
{
	const struct hc_net *n = c->net;
	const uint32_t node = hc_core_find_node(c, node_id);
	const uint32_t peer = node == HC_NONE ? HC_NONE : c->nodes[node].peer;
	uint64_t age = HC_NEVER;
	uint32_t i;

	if (peer == HC_NONE || !n->peers[peer].used)
		return HC_NONE;
	for (i = 0; i < n->peers[peer].npaths; i++) {
		const struct hc_path *p = &n->paths[n->peers[peer].paths[i]];

		if (p->heard_at != HC_NEVER)
			age = hc_first(age, (c->now - p->heard_at) / HC_MS);
	}
	return age < HC_NONE ? (uint32_t)age : HC_NONE;
}
