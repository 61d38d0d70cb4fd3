/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Links and addresses as rtnetlink tells of them, and the reading of all; see netif.h.
 *
 * A reading takes the addresses first, since they say which links matter; a link that does not is
 * never stored. Between the two a change may slip in, but then the socket for changes has its
 * message, and what is read twice is the same.
 */
#include <errno.h>
#include <linux/ethtool.h>
#include <linux/if.h>
#include <linux/if_arp.h>
#include <linux/sockios.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include "log.h"
#include "netifimp.h"

#define FEW       32u /* fed at the start though nothing speaks for them */
#define READS_MAX 5u  /* of a dump that is interrupted */

/* ---- ports that are followed ---- */

struct hc_netif_port *hc_netread_port(struct hc_netif *n, uint32_t index)
{
	uint32_t i;

	for (i = 0; i < n->nports; i++)
		if (n->ports[i]->index == index && !n->ports[i]->gone)
			return n->ports[i];
	return NULL;
}

static struct hc_netif_port *add_port(struct hc_netif *n, uint32_t index)
{
	struct hc_netif_port *p;

	if (n->nports == HC_NETIF_PORTS) {
		if (!n->full_told)
			hc_log(HC_LOG_WARN,
			       "more than %u network ports have addresses; the others are left "
			       "out, "
			       "name those to use in listen_interface",
			       HC_NETIF_PORTS);
		n->full_told = true;
		return NULL;
	}
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->index = index;
	n->ports[n->nports++] = p;
	return p;
}

bool hc_netread_routable(const struct hc_netif *n, const struct hc_addr *a)
{
	return !hc_addr_is_link_local(a) || (n->wish.naddrs && hc_netwish_addr(&n->wish, a));
}

/* ---- links ---- */

static bool is_one_of(const char *kind, const char *const *list)
{
	for (; *list; list++)
		if (!strcmp(kind, *list))
			return true;
	return false;
}

static uint8_t kind_of_type(uint16_t type)
{
	switch (type) {
	case ARPHRD_LOOPBACK: return HC_W_port_kind_LOOPBACK;
	case ARPHRD_INFINIBAND: return HC_W_port_kind_IB;
	case ARPHRD_TUNNEL:
	case ARPHRD_TUNNEL6:
	case ARPHRD_SIT:
	case ARPHRD_IPGRE:
	case ARPHRD_IP6GRE:
	case ARPHRD_PPP:
	case ARPHRD_NONE: return HC_W_port_kind_TUNNEL;
	default: return HC_W_port_kind_ETHER;
	}
}

static uint8_t kind_of(uint16_t type, const char *kind)
{
	static const char *const tunnels[] = {
		"ipip", "sit",  "gre",  "gretap",    "ip6gre", "erspan", "ip6gretap", "ip6tnl",
		"vti",  "vti6", "xfrm", "wireguard", "vxlan",  "geneve", "gtp",       NULL};
	static const char *const bridges[] = {"bridge", "openvswitch", NULL};
	const uint8_t by_type = kind_of_type(type);

	if (by_type != HC_W_port_kind_ETHER || !kind[0])
		return by_type;
	if (is_one_of(kind, tunnels))
		return HC_W_port_kind_TUNNEL;
	return is_one_of(kind, bridges) ? HC_W_port_kind_BRIDGE : HC_W_port_kind_VIRTUAL;
}

static const char *info_kind(const struct nlattr *info)
{
	const struct nlattr *attrs[IFLA_INFO_KIND + 1], *kind;

	hc_netlink_nested(info, attrs, IFLA_INFO_KIND);
	kind = attrs[IFLA_INFO_KIND];
	return kind && mnl_attr_validate(kind, MNL_TYPE_NUL_STRING) >= 0 ? mnl_attr_get_str(kind)
									 : "";
}

/* MB/s each way; 0: the driver does not say. */
static uint32_t speed_of(const struct hc_netif *n, const char *name)
{
	struct ethtool_cmd cmd = {.cmd = ETHTOOL_GSET};
	struct ifreq req;
	uint32_t mbit;

	memset(&req, 0, sizeof(req));
	snprintf(req.ifr_name, sizeof(req.ifr_name), "%s", name);
	req.ifr_data = (void *)&cmd;
	if (ioctl(n->ethtool, SIOCETHTOOL, &req))
		return 0;
	mbit = (uint32_t)cmd.speed_hi << 16 |
	       cmd.speed; /* the header's own shift overflows an int */
	return mbit == (uint32_t)SPEED_UNKNOWN || mbit == UINT16_MAX ? 0 : mbit / 8;
}

/* False: not a whole one, or what a bridge tells of its ports. */
bool hc_netread_link(const struct nlmsghdr *nlh, struct hc_netread_link *l)
{
	const struct nlattr *name;

	if (mnl_nlmsg_get_payload_len(nlh) < sizeof(*l->head))
		return false;
	l->head = mnl_nlmsg_get_payload(nlh);
	if (l->head->ifi_family == AF_BRIDGE || l->head->ifi_index <= 0)
		return false;
	hc_netlink_attrs(nlh, sizeof(*l->head), l->attrs, IFLA_MAX);
	name = l->attrs[IFLA_IFNAME];
	if (!name || mnl_attr_validate(name, MNL_TYPE_NUL_STRING) < 0)
		return false;
	l->name = mnl_attr_get_str(name);
	l->index = (uint32_t)l->head->ifi_index;
	return true;
}

void hc_netread_take(struct hc_netif *n, struct hc_netif_port *p, const struct hc_netread_link *l)
{
	const struct nlattr *mtu = l->attrs[IFLA_MTU];

	snprintf(p->name, sizeof(p->name), "%.15s", l->name);
	p->kind = kind_of(l->head->ifi_type, info_kind(l->attrs[IFLA_LINKINFO]));
	p->up = l->head->ifi_flags & IFF_UP;
	p->carrier = l->head->ifi_flags & IFF_LOWER_UP;
	p->mtu = mtu && mnl_attr_validate(mtu, MNL_TYPE_U32) >= 0 ? mnl_attr_get_u32(mtu) : 0;
	p->mbps = p->up && p->carrier ? speed_of(n, p->name) : p->mbps;
	p->seen = true;
}

/* ---- addresses ---- */

bool hc_netread_addr(const struct nlmsghdr *nlh, struct hc_netread_addr *t)
{
	const struct ifaddrmsg *m = mnl_nlmsg_get_payload(nlh);
	const struct nlattr *attrs[IFA_MAX + 1], *at;
	uint32_t flags;

	if (mnl_nlmsg_get_payload_len(nlh) < sizeof(*m))
		return false;
	hc_netlink_attrs(nlh, sizeof(*m), attrs, IFA_MAX);
	/* of a point-to-point link IFA_ADDRESS is the other end */
	at = attrs[IFA_LOCAL] ? attrs[IFA_LOCAL] : attrs[IFA_ADDRESS];
	flags = attrs[IFA_FLAGS] ? mnl_attr_get_u32(attrs[IFA_FLAGS]) : m->ifa_flags;
	t->index = m->ifa_index;
	t->a.prefix = m->ifa_prefixlen;
	t->a.passing = flags & (IFA_F_TEMPORARY | IFA_F_DEPRECATED) && m->ifa_family == AF_INET6;
	t->a.tentative = flags & (IFA_F_TENTATIVE | IFA_F_DADFAILED);
	return hc_netlink_addr(at, m->ifa_family, m->ifa_index, &t->a.addr);
}

void hc_netread_put(struct hc_netif *n, struct hc_netif_port *p, const struct hc_netif_addr *a)
{
	uint32_t i;

	for (i = 0; i < p->naddrs; i++)
		if (hc_addr_eq(&p->addrs[i].addr, &a->addr))
			break;
	if (i == HC_NETIF_ADDRS) { /* one that is wished takes the place of the last one */
		if (!n->wish.naddrs || !hc_netwish_addr(&n->wish, &a->addr))
			return;
		i--;
	}
	p->addrs[i] = *a;
	if (i == p->naddrs)
		p->naddrs++;
}

/* ---- reading everything ---- */

struct reading {
	struct hc_netif *n;
	struct hc_netread_addr *addrs;
	size_t naddrs, cap;
	uint32_t index; /* of the one link, 0 = all */
	bool failed;
};

static int on_addr(const struct nlmsghdr *nlh, void *arg)
{
	struct reading *rd = arg;
	struct hc_netread_addr t, *fresh;

	memset(&t, 0, sizeof(t));
	if (nlh->nlmsg_type != RTM_NEWADDR || !hc_netread_addr(nlh, &t) ||
	    (rd->index && t.index != rd->index))
		return MNL_CB_OK;
	if (rd->naddrs == rd->cap) {
		fresh = reallocarray(rd->addrs, rd->cap ? 2 * rd->cap : 64, sizeof(*fresh));
		rd->failed = rd->failed || !fresh;
		if (!fresh)
			return MNL_CB_OK;
		rd->addrs = fresh;
		rd->cap = rd->cap ? 2 * rd->cap : 64;
	}
	rd->addrs[rd->naddrs++] = t;
	return MNL_CB_OK;
}

static bool has_routable(const struct reading *rd, uint32_t index)
{
	size_t i;

	for (i = 0; i < rd->naddrs; i++)
		if (rd->addrs[i].index == index && hc_netread_routable(rd->n, &rd->addrs[i].a.addr))
			return true;
	return false;
}

/* Ports of a bridge or a bond are no candidates by themselves. */
static bool matters(const struct reading *rd, const struct hc_netread_link *l)
{
	struct hc_netif *n = rd->n;

	if (hc_netwish_named(&n->wish, l->name) || has_routable(rd, l->index))
		return true;
	if (!n->first || l->attrs[IFLA_MASTER] || n->few == FEW)
		return false;
	n->few++;
	return true;
}

static int on_link(const struct nlmsghdr *nlh, void *arg)
{
	struct reading *rd = arg;
	struct hc_netif_port *p;
	struct hc_netread_link l;

	if (nlh->nlmsg_type != RTM_NEWLINK || !hc_netread_link(nlh, &l))
		return MNL_CB_OK;
	p = hc_netread_port(rd->n, l.index);
	if (!p && (rd->index || matters(rd, &l)))
		p = add_port(rd->n, l.index);
	if (p)
		hc_netread_take(rd->n, p, &l);
	return MNL_CB_OK;
}

static int dump_addrs(struct reading *rd)
{
	struct hc_netlink *nl = &rd->n->ask;
	struct nlmsghdr *nlh = hc_netlink_begin(nl, RTM_GETADDR, NLM_F_DUMP);
	struct ifaddrmsg *m = mnl_nlmsg_put_extra_header(nlh, sizeof(*m));

	m->ifa_family = AF_UNSPEC;
	m->ifa_index = rd->index;
	rd->naddrs = 0;
	return hc_netlink_ask(nl, nlh, on_addr, rd);
}

static int dump_links(struct reading *rd)
{
	struct hc_netlink *nl = &rd->n->ask;
	struct nlmsghdr *nlh = hc_netlink_begin(nl, RTM_GETLINK, rd->index ? 0 : NLM_F_DUMP);
	struct ifinfomsg *m = mnl_nlmsg_put_extra_header(nlh, sizeof(*m));

	m->ifi_family = AF_UNSPEC;
	m->ifi_index = (int)rd->index;
	mnl_attr_put_u32(nlh, IFLA_EXT_MASK, RTEXT_FILTER_SKIP_STATS);
	return hc_netlink_ask(nl, nlh, on_link, rd);
}

static void put_addrs(struct reading *rd)
{
	struct hc_netif *n = rd->n;
	struct hc_netif_port *p;
	uint32_t i;
	size_t k;

	for (i = 0; i < n->nports; i++)
		if (!rd->index || n->ports[i]->index == rd->index)
			n->ports[i]->naddrs = 0;
	for (k = 0; k < rd->naddrs; k++) {
		p = hc_netread_port(n, rd->addrs[k].index);
		if (p)
			hc_netread_put(n, p, &rd->addrs[k].a);
	}
}

int hc_netread_some(struct hc_netif *n, uint32_t index)
{
	struct reading rd = {.n = n, .index = index};
	uint32_t i;
	int r;

	for (i = 0; i < n->nports; i++)
		n->ports[i]->seen = false;
	r = dump_addrs(&rd);
	if (!r)
		r = dump_links(&rd);
	if (!r && rd.failed)
		r = -ENOMEM;
	if (!r)
		put_addrs(&rd);
	for (i = 0; !r && !index && i < n->nports; i++)
		n->ports[i]->gone = n->ports[i]->gone || !n->ports[i]->seen;
	free(rd.addrs);
	return r;
}

/* 0, -errno: what was known stays, and is made right by the next change or reading. */
int hc_netread_all(struct hc_netif *n)
{
	unsigned budget = READS_MAX;
	int r;

	do {
		n->few = 0;
		r = hc_netread_some(n, 0);
	} while (r == -EINTR && --budget);
	n->lost = r != 0;
	return r;
}
