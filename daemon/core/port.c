/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ports: which addresses of this node are used towards others, and why not the rest.
 *
 * An address is used when its port is up with a carrier, is no loopback, tunnel or link-local one,
 * and is not excluded; bridges of containers come last. A port that the configuration names (by
 * interface, or by an address of it) is used whatever its kind: that is how a cluster lives on the
 * loopback of one host. Nothing depends on the order or the names of interfaces.
 *
 * A dial to an address that another node announces may land on ourselves: two hosts with the same
 * container bridge. Such an address of ours is of no use between nodes and is marked.
 *
 * Facts come one by one, at the start all at once. So changes are told together a moment later:
 * one log line with every candidate and its verdict, and our ports to all peers. When the table is
 * full of ports that are of no use, one of them makes room.
 */
#include "emit.h"
#include "link.h"
#include "net.h"

#include <stdio.h>

#define TELL_NS      20000000u /* after the first change */
#define LOAD_NS      100000000u
#define LOAD_HIGH    80u
#define LOAD_LOW     70u
#define SECOND_NS    1000000000u
#define ANNOUNCE_MAX 64u

/* ---- verdicts ---- */

static uint8_t of_port(const struct hc_port_fact *f)
{
	if (f->wish == PORT_WISH_EXCLUDED)
		return HC_W_port_verdict_EXCLUDED;
	if (f->wish == PORT_WISH_OTHERS)
		return HC_W_port_verdict_NOT_NAMED;
	if (!f->present || !f->up)
		return HC_W_port_verdict_DOWN;
	if (!f->carrier && f->kind != HC_W_port_kind_LOOPBACK)
		return HC_W_port_verdict_NO_CARRIER;
	return HC_W_port_verdict_USED;
}

static uint8_t of_kind(const struct hc_port_fact *f, const struct hc_addr *a)
{
	const bool named = f->wish == PORT_WISH_NAMED;

	/* each port has such an IPv6 address; that the port is named says nothing of it */
	if (hc_addr_is_link_local(a) && (a->family == 6 || !named))
		return HC_W_port_verdict_LINK_LOCAL;
	if (named)
		return HC_W_port_verdict_USED;
	if (f->kind == HC_W_port_kind_LOOPBACK || hc_addr_is_loopback(a))
		return HC_W_port_verdict_LOOPBACK;
	if (f->kind == HC_W_port_kind_TUNNEL)
		return HC_W_port_verdict_TUNNEL;
	return f->kind == HC_W_port_kind_BRIDGE ? HC_W_port_verdict_LAST : HC_W_port_verdict_USED;
}

uint8_t hc_port_verdict(const struct hc_core *c, const struct hc_port_slot *p, uint32_t addr)
{
	const uint8_t v = of_port(&p->fact);

	(void)c;
	if (v != HC_W_port_verdict_USED)
		return v;
	if (addr >= p->fact.naddrs)
		return HC_W_port_verdict_NO_ADDRESS;
	if (p->fact.addrs[addr].unwished)
		return HC_W_port_verdict_NOT_NAMED;
	if (p->fact.addrs[addr].tentative)
		return HC_W_port_verdict_TENTATIVE;
	if (p->ourselves[addr])
		return HC_W_port_verdict_OURSELVES;
	return of_kind(&p->fact, &p->fact.addrs[addr].addr);
}

static bool usable(const struct hc_core *c, const struct hc_port_slot *p, uint32_t addr)
{
	const uint8_t v = hc_port_verdict(c, p, addr);

	return v == HC_W_port_verdict_USED || v == HC_W_port_verdict_LAST;
}

static bool any_usable(const struct hc_core *c, const struct hc_port_slot *p)
{
	uint32_t i;

	for (i = 0; i < p->fact.naddrs; i++)
		if (usable(c, p, i))
			return true;
	return false;
}

uint32_t hc_port_of(const struct hc_core *c, const struct hc_addr *addr)
{
	const struct hc_net *n = c->net;
	uint32_t i, k;

	for (i = 0; i < n->nports; i++)
		for (k = 0; n->ports[i].fact.present && k < n->ports[i].fact.naddrs; k++)
			if (hc_addr_eq(&n->ports[i].fact.addrs[k].addr, addr) &&
			    usable(c, &n->ports[i], k))
				return n->ports[i].fact.index;
	return HC_NONE;
}

struct hc_port_slot *hc_port_get(struct hc_core *c, uint32_t index)
{
	struct hc_net *n = c->net;
	uint32_t i;

	for (i = 0; i < n->nports; i++)
		if (n->ports[i].fact.present && n->ports[i].fact.index == index)
			return &n->ports[i];
	return NULL;
}

/* Ports of last resort count when there are no others. */
static bool counts(const struct hc_core *c, const struct hc_port_slot *p, uint8_t verdict)
{
	uint32_t i;

	for (i = 0; p->fact.present && i < p->fact.naddrs; i++)
		if (hc_port_verdict(c, p, i) == verdict)
			return true;
	return false;
}

uint32_t hc_port_speed(const struct hc_core *c, char *names, size_t bytes)
{
	static const uint8_t verdicts[2] = {HC_W_port_verdict_USED, HC_W_port_verdict_LAST};
	const struct hc_net *n = c->net;
	uint32_t i, turn, count = 0, mbps = 0;
	bool unknown = false;
	size_t at = 0;

	names[0] = '\0';
	for (turn = 0; turn < 2 && !count; turn++)
		for (i = 0; i < n->nports; i++) {
			if (!counts(c, &n->ports[i], verdicts[turn]))
				continue;
			if (at < bytes)
				at += (size_t)snprintf(names + at, bytes - at, "%s%s",
						       count ? ", " : "", n->ports[i].fact.name);
			count++;
			mbps += n->ports[i].fact.mbps;
			unknown = unknown || !n->ports[i].fact.mbps;
		}
	return unknown ? 0 : mbps;
}

/* ---- what others are told ---- */

static bool announce(struct hc_core *c, struct hc_arr *out, const struct hc_port_slot *p,
		     uint32_t addr)
{
	const struct hc_port_addr *a = &p->fact.addrs[addr];
	struct hc_m_node_port m = {.name = hc_str(p->fact.name),
				   .family = a->addr.family,
				   .port = c->self.port,
				   .prefix = a->prefix,
				   .mtu = p->fact.mtu,
				   .mbps = p->fact.mbps,
				   .last = hc_port_verdict(c, p, addr) == HC_W_port_verdict_LAST};

	memcpy(m.addr.b, a->addr.bytes, a->addr.family == 4 ? 4 : 16);
	return !hc_arr_put(out, c->scratch, HC_OUT_BYTES, &hc_desc_node_port, HC_PROTO_MAX, &m);
}

uint32_t hc_port_hash(const struct hc_arr *ports)
{
	const struct hc_hash_key key = {0, 0};

	return (uint32_t)hc_hash(&key, ports->bytes, ports->len);
}

/* A hello may go out between a change and its telling: then one peer knows another list. */
void hc_port_announce(struct hc_core *c, struct hc_arr *out)
{
	struct hc_net *n = c->net;
	uint32_t i, k;

	*out = (struct hc_arr){.bytes = c->scratch};
	for (i = 0; i < n->nports; i++)
		for (k = 0; n->ports[i].fact.present && k < n->ports[i].fact.naddrs; k++)
			if (out->count < ANNOUNCE_MAX && usable(c, &n->ports[i], k))
				hc_assert(announce(c, out, &n->ports[i], k));
	n->own_odd = n->own_odd || hc_port_hash(out) != n->last_own;
}

/* ---- what people are told ---- */

static size_t candidate(const struct hc_core *c, const struct hc_port_slot *p, uint32_t addr,
			char *to, size_t room)
{
	const char *verdict = hc_word_port_verdict(hc_port_verdict(c, p, addr));
	char text[HC_ADDR_TEXT_MAX];
	int len;

	if (addr < p->fact.naddrs)
		len = snprintf(to, room, "; %s %s: %s", p->fact.name,
			       hc_addr_text(&p->fact.addrs[addr].addr, text), verdict);
	else
		len = snprintf(to, room, "; %s: %s", p->fact.name, verdict);
	return (size_t)len < room ? (size_t)len : 0; /* all of it or nothing */
}

/* Every candidate and its verdict; the usable ones first, should the line be too long. */
static void list(const struct hc_core *c, char *to, size_t room)
{
	const struct hc_net *n = c->net;
	uint32_t i, k, turn, left = 0;
	size_t at = 0, len;

	to[0] = '\0';
	for (turn = 0; turn < 2; turn++)
		for (i = 0; i < n->nports; i++)
			for (k = 0; n->ports[i].fact.present && (!k || k < n->ports[i].fact.naddrs);
			     k++) {
				if (usable(c, &n->ports[i], k) != !turn)
					continue;
				len = candidate(c, &n->ports[i], k, to + at, room - at - 32);
				left += !len;
				at += len;
			}
	to[at] = '\0';
	if (left)
		(void)snprintf(to + at, room - at, "; and %u more", left);
}

static void log_choice(struct hc_core *c, bool any)
{
	char text[1024], all[900];

	list(c, all, sizeof(all));
	if (any)
		HC_TEXT(text, "ports towards other nodes%s", all);
	else
		HC_TEXT(text,
			"no port is usable towards other nodes: give listen_interface or "
			"listen_address%s",
			all[0] ? all : "; this node has none");
	hc_emit_log(c, any ? HC_LOG_INFO : HC_LOG_WARN, HC_W_event_code_PORT_CHANGED, 0, HC_NONE,
		    text);
}

void hc_port_timeout(struct hc_core *c)
{
	struct hc_net *n = c->net;
	struct hc_arr own;

	hc_port_announce(c, &own);
	n->port_changes++;
	if (c->self.peers)
		log_choice(c, own.count > 0);
	if (n->ports_chosen && !n->own_odd)
		return;
	n->ports_chosen = true;
	n->own_odd = false;
	n->last_own = hc_port_hash(&own);
	hc_peer_tell_ports(c);
}

static void tell_soon(struct hc_core *c)
{
	const uint32_t timer = c->lim.peers + c->net->nconns;

	if (!c->net->timers.place[timer])
		hc_timers_set(&c->net->timers, timer, c->now + TELL_NS);
}

/* ---- facts ---- */

static bool differ(const struct hc_port_fact *a, const struct hc_port_fact *b)
{
	uint32_t i;

	if (a->present != b->present || a->up != b->up || a->carrier != b->carrier ||
	    a->wish != b->wish || a->kind != b->kind || a->mtu != b->mtu || a->mbps != b->mbps ||
	    a->naddrs != b->naddrs || strcmp(a->name, b->name) != 0)
		return true;
	for (i = 0; i < a->naddrs; i++)
		if (!hc_addr_eq(&a->addrs[i].addr, &b->addrs[i].addr) ||
		    a->addrs[i].prefix != b->addrs[i].prefix ||
		    a->addrs[i].tentative != b->addrs[i].tentative ||
		    a->addrs[i].unwished != b->addrs[i].unwished)
			return true;
	return false;
}

/* How full the fuller direction was since the last look. */
static void load(struct hc_core *c, struct hc_port_slot *p, const struct hc_port_fact *f)
{
	const uint64_t ns = c->now - p->load_at;
	uint64_t bytes = f->tx_bytes - p->last_tx;

	if (p->load_at && ns < LOAD_NS)
		return;
	if (f->rx_bytes - p->last_rx > bytes)
		bytes = f->rx_bytes - p->last_rx;
	if (f->tx_bytes < p->last_tx || f->rx_bytes < p->last_rx || !p->load_at || !f->mbps)
		p->load_percent = 0; /* counters that began anew, or the first look */
	else
		p->load_percent =
			(uint32_t)((double)bytes * 1e3 / ((double)f->mbps * (double)ns) * 100.0);
	p->last_tx = f->tx_bytes;
	p->last_rx = f->rx_bytes;
	p->load_at = c->now;
	if (p->load_percent < LOAD_LOW)
		p->full_since = HC_NEVER;
	else if (p->load_percent > LOAD_HIGH && p->full_since == HC_NEVER)
		p->full_since = c->now;
}

/* A slot for a port that is not known yet. */
static struct hc_port_slot *take(struct hc_core *c)
{
	struct hc_net *n = c->net;
	uint32_t i;

	for (i = 0; i < n->nports; i++)
		if (!n->ports[i].fact.present)
			return &n->ports[i];
	if (n->nports < c->lim.ports)
		return &n->ports[n->nports++];
	for (i = 0; i < n->nports; i++)
		if (!any_usable(c, &n->ports[i]))
			return &n->ports[i];
	return NULL;
}

/* What was found out of an address stays with it. */
static void replace(struct hc_port_slot *p, const struct hc_port_fact *f)
{
	const struct hc_port_slot old = *p;
	uint32_t i, k;

	p->fact = *f;
	memset(p->ourselves, 0, sizeof(p->ourselves));
	for (i = 0; i < f->naddrs; i++)
		for (k = 0; k < old.fact.naddrs; k++)
			if (old.ourselves[k] &&
			    hc_addr_eq(&f->addrs[i].addr, &old.fact.addrs[k].addr))
				p->ourselves[i] = true;
}

static void changed(struct hc_core *c, uint32_t index, const char *name, const char *what,
		    bool used)
{
	char text[160];

	HC_TEXT(text, "port %s %s", name, what);
	if (used)
		hc_notice(c, HC_LOG_INFO, HC_W_event_code_PORT_CHANGED, HC_SELF_NODE, text);
	hc_path_port_changed(c, index);
	tell_soon(c);
}

static void full(struct hc_core *c, const struct hc_port_fact *f)
{
	char text[160];

	HC_TEXT(text, "port %s is left out: %u ports are known already, all in use", f->name,
		c->net->nports);
	hc_emit_log(c, HC_LOG_WARN, HC_W_event_code_PORT_CHANGED, 0, HC_NONE, text);
}

void hc_port_fact(struct hc_core *c, const struct hc_port_fact *fact)
{
	struct hc_port_slot *p = hc_port_get(c, fact->index);
	const bool is_new = !p;
	bool used;

	hc_assert(fact->naddrs <= HC_PORT_ADDRS);
	if (!p && !fact->present)
		return;
	if (!p)
		p = take(c);
	if (!p) {
		full(c, fact);
		return;
	}
	if (is_new)
		*p = (struct hc_port_slot){.full_since = HC_NEVER};
	else if (!differ(&p->fact, fact)) {
		load(c, p, fact);
		return;
	}
	used = !is_new && any_usable(c, p);
	replace(p, fact);
	load(c, p, fact);
	hc_link_ports(c);
	used = used != (fact->present && any_usable(c, p));
	changed(c, fact->index, fact->name,
		!fact->present     ? "is gone"
		: any_usable(c, p) ? "is usable towards other nodes"
				   : "is not usable any more",
		used && c->net->ports_chosen);
}

void hc_port_ourselves(struct hc_core *c, const struct hc_addr *addr)
{
	struct hc_net *n = c->net;
	char text[160], at[HC_ADDR_TEXT_MAX];
	uint32_t i, k;

	for (i = 0; i < n->nports; i++)
		for (k = 0; n->ports[i].fact.present && k < n->ports[i].fact.naddrs; k++) {
			if (n->ports[i].ourselves[k] ||
			    !hc_addr_eq(&n->ports[i].fact.addrs[k].addr, addr))
				continue;
			n->ports[i].ourselves[k] = true;
			HC_TEXT(text,
				"port %s address %s is not used: another node announces the same "
				"address, and dialling it reached this node itself",
				n->ports[i].fact.name, hc_addr_text(addr, at));
			hc_notice(c, HC_LOG_WARN, HC_W_event_code_PORT_CHANGED, HC_SELF_NODE, text);
			hc_path_port_changed(c, n->ports[i].fact.index);
			tell_soon(c);
		}
}
