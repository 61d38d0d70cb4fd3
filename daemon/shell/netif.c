/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Network ports of this node by rtnetlink: what is told of changes, and life; see netif.h.
 *
 * Two sockets: one is told of changes, one asks (netread.c). What the messages of a turn change is
 * fed at its end. A port that went away is told before any other, so an interface that comes back
 * under its name with another index is a new port, in order.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "netifimp.h"

#define QUIET_US 50000 /* between two HC_EV_ROUTES, and between two readings of all */
#define TURN_MAX 1024u /* messages of changes read in one turn */
#define GROUPS                                                                                     \
	(RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR | RTMGRP_IPV4_ROUTE |               \
	 RTMGRP_IPV6_ROUTE)

/* ---- telling the core ---- */

static void feed_port(struct hc_netif *n, struct hc_netif_port *p)
{
	struct hc_event ev = {.kind = HC_EV_PORT_FACT, .u.port = &p->fed};
	struct hc_port_fact now;

	hc_netwish_fact(&n->wish, p, &now);
	if (p->told && !memcmp(&now, &p->fed, sizeof(now)))
		return;
	p->fed = now;
	p->told = true;
	n->args.feed(n->args.arg, &ev);
}

static void feed_gone(struct hc_netif *n)
{
	struct hc_netif_port *p;
	uint32_t i;

	for (i = 0; i < n->nports;) {
		p = n->ports[i];
		if (!p->gone) {
			i++;
			continue;
		}
		if (p->told)
			feed_port(n, p);
		memmove(&n->ports[i], &n->ports[i + 1], (n->nports - i - 1) * sizeof(p));
		n->nports--;
		free(p);
	}
}

static void feed_routes(struct hc_netif *n)
{
	static const struct hc_event ev = {.kind = HC_EV_ROUTES};

	n->routes = false;
	n->args.feed(n->args.arg, &ev);
}

static void wait_a_little(struct hc_netif *n)
{
	const struct timeval quiet = {.tv_usec = QUIET_US};

	n->waiting = !event_add(n->later, &quiet);
}

/* After all messages of a turn. */
static void settle(struct hc_netif *n)
{
	const bool due = !n->waiting && (n->lost || n->routes);
	uint32_t i;

	if (due && n->lost) {
		hc_netread_all(n);
		n->routes = true;
	}
	feed_gone(n);
	for (i = 0; i < n->nports; i++)
		feed_port(n, n->ports[i]);
	hc_netwish_look(n);
	if (due) {
		feed_routes(n);
		wait_a_little(n);
	}
}

static void on_later(evutil_socket_t fd, short what, void *arg)
{
	struct hc_netif *n = arg;

	(void)fd;
	(void)what;
	n->waiting = false;
	settle(n);
}

/* ---- changes ---- */

/* Read one link with its addresses, and follow it. */
static void follow(struct hc_netif *n, uint32_t index)
{
	int r = hc_netread_some(n, index);

	if (r == -EINTR)
		n->lost = true;
	else if (!r)
		n->routes = true;
	/* -ENODEV: it is gone already */
}

static void link_changed(struct hc_netif *n, const struct nlmsghdr *nlh)
{
	struct hc_netif_port *p;
	struct hc_netread_link l;

	if (!hc_netread_link(nlh, &l))
		return;
	p = hc_netread_port(n, l.index);
	if (nlh->nlmsg_type == RTM_DELLINK) {
		if (p)
			p->gone = n->routes = true;
	} else if (p) {
		n->routes = true;
		hc_netread_take(n, p, &l);
	} else if (hc_netwish_named(&n->wish, l.name)) {
		follow(n, l.index);
	}
}

static void drop_addr(struct hc_netif_port *p, const struct hc_addr *addr)
{
	uint32_t i;

	for (i = 0; i < p->naddrs && !hc_addr_eq(&p->addrs[i].addr, addr); i++)
		;
	if (i == p->naddrs)
		return;
	memmove(&p->addrs[i], &p->addrs[i + 1], (p->naddrs - i - 1) * sizeof(p->addrs[0]));
	p->naddrs--;
}

static void addr_changed(struct hc_netif *n, const struct nlmsghdr *nlh)
{
	struct hc_netif_port *p;
	struct hc_netread_addr t;

	memset(&t, 0, sizeof(t));
	if (!hc_netread_addr(nlh, &t))
		return;
	p = hc_netread_port(n, t.index);
	if (!p) {
		if (nlh->nlmsg_type == RTM_NEWADDR && hc_netread_routable(n, &t.a.addr))
			follow(n, t.index);
		return;
	}
	n->routes = true;
	if (nlh->nlmsg_type == RTM_NEWADDR)
		hc_netread_put(n, p, &t.a);
	else
		drop_addr(p, &t.a.addr);
}

/* What every interface brings along says nothing of the ways to other nodes. */
static void route_changed(struct hc_netif *n, const struct nlmsghdr *nlh)
{
	const struct rtmsg *m = mnl_nlmsg_get_payload(nlh);
	const struct nlattr *attrs[RTA_MAX + 1];
	struct hc_addr to;

	if (mnl_nlmsg_get_payload_len(nlh) < sizeof(*m) || m->rtm_flags & RTM_F_CLONED ||
	    m->rtm_table == RT_TABLE_LOCAL)
		return;
	hc_netlink_attrs(nlh, sizeof(*m), attrs, RTA_MAX);
	if (hc_netlink_addr(attrs[RTA_DST], m->rtm_family, 0, &to) && to.family == 6 &&
	    (hc_addr_is_link_local(&to) || to.bytes[0] == 0xff))
		return;
	n->routes = true;
}

static int on_change(const struct nlmsghdr *nlh, void *arg)
{
	switch (nlh->nlmsg_type) {
	case RTM_NEWLINK:
	case RTM_DELLINK: link_changed(arg, nlh); break;
	case RTM_NEWADDR:
	case RTM_DELADDR: addr_changed(arg, nlh); break;
	case RTM_NEWROUTE:
	case RTM_DELROUTE: route_changed(arg, nlh); break;
	default: break; /* nothing that was asked for */
	}
	return MNL_CB_OK;
}

static void on_changed(evutil_socket_t fd, short what, void *arg)
{
	struct hc_netif *n = arg;
	unsigned budget = TURN_MAX;
	ssize_t got;

	(void)fd;
	(void)what;
	while (budget--) {
		got = mnl_socket_recvfrom(n->changes.sock, n->changes.buf, sizeof(n->changes.buf));
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0 && errno != EAGAIN) /* ENOBUFS: some were lost */
			n->lost = true;
		if (got <= 0)
			break;
		mnl_cb_run(n->changes.buf, (size_t)got, 0, 0, on_change, n);
	}
	settle(n);
}

/* ---- counters ---- */

static int on_stats(const struct nlmsghdr *nlh, void *arg)
{
	const struct nlattr *attrs[IFLA_STATS_LINK_64 + 1], *at;
	struct hc_netif_port *p = arg;
	struct rtnl_link_stats64 s;
	size_t bytes;

	if (nlh->nlmsg_type != RTM_NEWSTATS ||
	    mnl_nlmsg_get_payload_len(nlh) < sizeof(struct if_stats_msg))
		return MNL_CB_OK;
	hc_netlink_attrs(nlh, sizeof(struct if_stats_msg), attrs, IFLA_STATS_LINK_64);
	at = attrs[IFLA_STATS_LINK_64];
	if (!at)
		return MNL_CB_OK;
	bytes = mnl_attr_get_payload_len(at); /* kernels differ in how much they say */
	memset(&s, 0, sizeof(s));
	memcpy(&s, mnl_attr_get_payload(at), bytes < sizeof(s) ? bytes : sizeof(s));
	p->rx_bytes = s.rx_bytes;
	p->tx_bytes = s.tx_bytes;
	return MNL_CB_OK;
}

static bool in_use(const struct hc_netif_port *p)
{
	return p->told && p->fed.naddrs && p->up && p->carrier && !p->fed.addrs[0].unwished &&
	       (p->fed.wish == PORT_WISH_NAMED || p->fed.wish == PORT_WISH_NONE);
}

void hc_netif_tick(struct hc_netif *n)
{
	struct nlmsghdr *nlh;
	struct if_stats_msg *m;
	uint32_t i;

	for (i = 0; n->started && i < n->nports; i++) {
		if (!in_use(n->ports[i]))
			continue;
		nlh = hc_netlink_begin(&n->ask, RTM_GETSTATS, 0);
		m = mnl_nlmsg_put_extra_header(nlh, sizeof(*m));
		m->ifindex = n->ports[i]->index;
		m->filter_mask = IFLA_STATS_FILTER_BIT(IFLA_STATS_LINK_64);
		if (!hc_netlink_ask(&n->ask, nlh, on_stats, n->ports[i]))
			feed_port(n, n->ports[i]);
	}
}

/* ---- questions ---- */

void hc_netif_ask(struct hc_netif *n, uint32_t ask, const struct hc_addr *to)
{
	const uint32_t cap = n->asks_cap ? 2 * n->asks_cap : 64;
	struct hc_netif_ask *fresh;

	if (n->nasks == n->asks_cap) {
		fresh = reallocarray(n->asks, cap, sizeof(*fresh));
		if (!fresh)
			hc_panic(__FILE__, __LINE__, "out of memory for routes");
		n->asks = fresh;
		n->asks_cap = cap;
	}
	n->asks[n->nasks++] = (struct hc_netif_ask){ask, *to};
	event_active(n->wake, EV_TIMEOUT, 0);
}

/* An answer may lead to the next question: those wait for the next turn. */
static void on_wake(evutil_socket_t fd, short what, void *arg)
{
	struct hc_netif *n = arg;
	struct hc_netif_ask *asks = n->asks;
	const uint32_t count = n->nasks;
	uint32_t i;

	(void)fd;
	(void)what;
	n->asks = NULL;
	n->nasks = n->asks_cap = 0;
	for (i = 0; i < count; i++)
		hc_netroute_answer(n, &asks[i]);
	free(asks);
}

/* ---- life ---- */

static int open_all(struct hc_netif *n)
{
	int r = hc_netlink_open(&n->changes, GROUPS);

	if (!r)
		r = hc_netlink_open(&n->ask, 0);
	if (r)
		return r;
	n->ethtool = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (n->ethtool < 0)
		return -errno;
	n->changed = event_new(n->args.base, mnl_socket_get_fd(n->changes.sock),
			       EV_READ | EV_PERSIST, on_changed, n);
	n->wake = event_new(n->args.base, -1, 0, on_wake, n);
	n->later = evtimer_new(n->args.base, on_later, n);
	return n->changed && n->wake && n->later ? 0 : -ENOMEM;
}

int hc_netif_new(const struct hc_netif_args *args, struct hc_netif **netif, char *why, size_t size)
{
	struct hc_netif *n;
	int r = hc_netif_check(args->conf, why, size);

	if (r)
		return r;
	n = calloc(1, sizeof(*n));
	if (!n)
		return -ENOMEM;
	n->args = *args;
	n->args.conf = NULL;
	n->ethtool = -1;
	n->first = true;
	r = hc_netwish_read(&n->wish, args->conf);
	if (!r)
		r = open_all(n);
	if (!r)
		r = hc_netread_all(n);
	n->first = false;
	if (r == -EINTR) /* changes all the time: what is missing comes as a change */
		r = 0;
	if (r) {
		hc_netif_free(n);
		return r;
	}
	*netif = n;
	return 0;
}

int hc_netif_start(struct hc_netif *n)
{
	uint32_t i;

	if (event_add(n->changed, NULL))
		return -ENOMEM;
	for (i = 0; i < n->nports; i++)
		feed_port(n, n->ports[i]);
	hc_netwish_look(n);
	n->started = true;
	return 0;
}

void hc_netif_free(struct hc_netif *n)
{
	uint32_t i;

	if (!n)
		return;
	if (n->changed)
		event_free(n->changed);
	if (n->wake)
		event_free(n->wake);
	if (n->later)
		event_free(n->later);
	hc_netlink_close(&n->changes);
	hc_netlink_close(&n->ask);
	if (n->ethtool >= 0)
		close(n->ethtool);
	for (i = 0; i < n->nports; i++)
		free(n->ports[i]);
	hc_netwish_fini(&n->wish);
	free(n->asks);
	free(n);
}

uint32_t hc_netif_count(const struct hc_netif *n)
{
	return n->nports;
}
