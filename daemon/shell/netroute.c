/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Questions for routes; see netif.h.
 *
 * The kernel names a port, a source address and perhaps the size of packets. With listen_address
 * the source has to be one of those: the nearest to the destination (longest common beginning) of
 * the same port, or, when the destination is on this host, of any port.
 */
#include <errno.h>
#include <string.h>
#include "netifimp.h"

struct route {
	bool found;
	uint8_t type; /* RTN_* */
	struct hc_route_fact *fact;
};

static uint32_t metric_mtu(const struct nlattr *metrics)
{
	const struct nlattr *attrs[RTAX_MTU + 1], *mtu;

	hc_netlink_nested(metrics, attrs, RTAX_MTU);
	mtu = attrs[RTAX_MTU];
	return mtu && mnl_attr_validate(mtu, MNL_TYPE_U32) >= 0 ? mnl_attr_get_u32(mtu) : 0;
}

static int on_route(const struct nlmsghdr *nlh, void *arg)
{
	const struct rtmsg *m = mnl_nlmsg_get_payload(nlh);
	const struct nlattr *attrs[RTA_MAX + 1];
	struct route *r = arg;

	if (nlh->nlmsg_type != RTM_NEWROUTE || mnl_nlmsg_get_payload_len(nlh) < sizeof(*m))
		return MNL_CB_OK;
	hc_netlink_attrs(nlh, sizeof(*m), attrs, RTA_MAX);
	r->found = true;
	r->type = m->rtm_type;
	if (attrs[RTA_OIF])
		r->fact->port = mnl_attr_get_u32(attrs[RTA_OIF]);
	r->fact->mtu = metric_mtu(attrs[RTA_METRICS]);
	hc_netlink_addr(attrs[RTA_PREFSRC], m->rtm_family, r->fact->port, &r->fact->local);
	return MNL_CB_OK;
}

static int ask_kernel(struct hc_netif *n, const struct hc_addr *to, struct route *r)
{
	struct nlmsghdr *nlh = hc_netlink_begin(&n->ask, RTM_GETROUTE, 0);
	struct rtmsg *m = mnl_nlmsg_put_extra_header(nlh, sizeof(*m));
	const size_t bytes = to->family == 4 ? 4 : 16;

	m->rtm_family = to->family == 4 ? AF_INET : AF_INET6;
	m->rtm_dst_len = (unsigned char)(bytes * 8);
	mnl_attr_put(nlh, RTA_DST, bytes, to->bytes);
	if (to->scope)
		mnl_attr_put_u32(nlh, RTA_OIF, to->scope);
	return hc_netlink_ask(&n->ask, nlh, on_route, r);
}

static int type_error(uint8_t type)
{
	switch (type) {
	case RTN_UNICAST:
	case RTN_LOCAL: return 0;
	case RTN_UNREACHABLE: return EHOSTUNREACH;
	case RTN_PROHIBIT: return EACCES;
	case RTN_BLACKHOLE: return EINVAL;
	default: return ENETUNREACH; /* broadcast, multicast, what later kernels add */
	}
}

static unsigned common_bits(const struct hc_addr *a, const struct hc_addr *b)
{
	const unsigned all = a->family == 4 ? 32 : 128;
	unsigned i;

	for (i = 0; i < all; i++)
		if ((a->bytes[i / 8] ^ b->bytes[i / 8]) & (0x80u >> i % 8))
			break;
	return i;
}

/* Among what the core knows of ports: the best wished address for `to`; its own excluded. */
static void choose(const struct hc_netif *n, const struct hc_addr *to, bool any_port,
		   struct hc_route_fact *fact)
{
	const uint32_t port = fact->port;
	const struct hc_port_addr *a;
	unsigned best = 0, bits;
	uint32_t i, k;

	for (i = 0; i < n->nports; i++) {
		if (!any_port && n->ports[i]->index != port)
			continue;
		for (k = 0; k < n->ports[i]->fed.naddrs; k++) {
			a = &n->ports[i]->fed.addrs[k];
			if (a->unwished || a->tentative || a->addr.family != to->family ||
			    hc_addr_eq(&a->addr, to))
				continue;
			bits = 1 + common_bits(&a->addr, to);
			if (bits <= best)
				continue;
			best = bits;
			fact->local = a->addr;
			fact->port = n->ports[i]->index;
		}
	}
}

void hc_netroute_answer(struct hc_netif *n, const struct hc_netif_ask *ask)
{
	struct hc_route_fact fact = {.ask = ask->ask};
	struct hc_event ev = {.kind = HC_EV_ROUTE, .u.route = &fact};
	struct route r = {.fact = &fact};
	int error = ask_kernel(n, &ask->to, &r);

	if (error)
		fact.error = -error;
	else
		fact.error = r.found ? type_error(r.type) : ENETUNREACH;
	if (!fact.error && n->wish.naddrs && !hc_netwish_addr(&n->wish, &fact.local))
		choose(n, &ask->to, r.type == RTN_LOCAL, &fact);
	else if (!fact.error && n->wish.naddrs && r.type == RTN_LOCAL)
		choose(n, &ask->to, true, &fact);
	n->args.feed(n->args.arg, &ev);
}
