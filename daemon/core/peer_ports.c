/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ports of a peer, as it announces them.
 *
 * Its hello lists them all, and peer_ports lists them anew after each change. What is known of one
 * that stays (its route, its path, that it reaches ourselves) is kept. Of those that are announced
 * as a last resort only so many are kept as there is room for after the others. An address that
 * is link-local says nothing to another node, and one that we have ourselves leads to us: two hosts
 * with the same bridge of containers announce the same address.
 */
#include "net.h"
#include "seek.h"

static bool far_port(const struct hc_m_node_port *m, struct hc_far_port *to)
{
	static const uint8_t zero[16];

	*to = (struct hc_far_port){.at.addr.family = m->family,
				   .at.port = m->port,
				   .mtu = m->mtu,
				   .mbps = m->mbps,
				   .prefix = m->prefix,
				   .last = m->last,
				   .path = HC_NONE};
	memcpy(to->at.addr.bytes, m->addr.b, m->family == 4 ? 4 : 16);
	hc_str_copy(m->name, to->name, sizeof(to->name));
	return (m->family == 4 || m->family == 6) && m->port && memcmp(m->addr.b, zero, 16) != 0 &&
	       !hc_addr_is_link_local(&to->at.addr);
}

static void keep_port(const struct hc_peer *p, struct hc_far_port *f)
{
	const struct hc_far_port fresh = *f;
	uint32_t i;

	for (i = 0; i < p->nports; i++)
		if (hc_endpoint_eq(&p->ports[i].at, &f->at)) {
			*f = p->ports[i];
			f->mtu = fresh.mtu;
			f->mbps = fresh.mbps;
			f->prefix = fresh.prefix;
			f->last = fresh.last;
			memcpy(f->name, fresh.name, sizeof(f->name));
		}
}

/* An address that we have, too, leads to ourselves: two hosts with the same container bridge. */
static bool is_ours(const struct hc_core *c, const struct hc_endpoint *at)
{
	const struct hc_net *n = c->net;
	uint32_t i, k;

	for (i = 0; at->port == c->self.port && i < n->nports; i++)
		for (k = 0; n->ports[i].fact.present && k < n->ports[i].fact.naddrs; k++)
			if (hc_addr_eq(&n->ports[i].fact.addrs[k].addr, &at->addr))
				return true;
	return false;
}

/* The same endpoint twice is one port. */
static bool is_in(const struct hc_far_port *ports, uint32_t count, const struct hc_endpoint *at)
{
	uint32_t i;

	for (i = 0; i < count; i++)
		if (hc_endpoint_eq(&ports[i].at, at))
			return true;
	return false;
}

void hc_peer_ports(struct hc_core *c, uint32_t peer, const struct hc_arr *ports)
{
	struct hc_peer *p = hc_peer_get(c, peer);
	struct hc_far_port now[HC_PEER_PORTS], f;
	struct hc_m_node_port m;
	struct hc_arr a;
	uint32_t count = 0, last;

	for (last = 0; last < 2; last++) /* those of last resort get what room is left */
		for (a = *ports; hc_arr_next(&a, &hc_desc_node_port, HC_PROTO_MAX, &m);) {
			if (count == HC_PEER_PORTS || !!m.last != last || !far_port(&m, &f) ||
			    is_in(now, count, &f.at))
				continue;
			keep_port(p, &f);
			f.ourselves = f.ourselves || is_ours(c, &f.at);
			now[count++] = f;
		}
	memcpy(p->ports, now, count * sizeof(now[0]));
	p->nports = count;
	hc_seek_again(c);
	c->net->node_changes++;
}
