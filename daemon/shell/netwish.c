/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the configuration wishes of network ports: listen_interface and listen_address.
 *
 * Names are compared as they stand: "eth" is not eth0, and another name of an interface is not
 * its name. A name that is not here is refused at the start, with what is here; an address that is
 * not here is waited for, since a machine that boots gets its addresses when it likes.
 *
 * A loopback port holds the whole network of its address, 127.0.0.0/8 as a rule; what
 * listen_address names of it is told as if it stood there by itself.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "log.h"
#include "netifimp.h"

/* ---- reading the options ---- */

static unsigned count_items(const char *list)
{
	char item[HC_CONF_VALUE_MAX];
	unsigned n = 0;

	while (hc_conf_item(&list, item, sizeof(item)))
		n++;
	return n;
}

static void read_names(struct hc_netwish *w, const char *list)
{
	char item[HC_CONF_VALUE_MAX];

	while (hc_conf_item(&list, item, sizeof(item))) {
		if (item[0] == '^')
			snprintf(w->excluded[w->nexcluded++], 16, "%.15s", item + 1);
		else
			snprintf(w->named[w->nnamed++], 16, "%.15s", item);
	}
}

static void read_addrs(struct hc_netwish *w, const char *list)
{
	char item[HC_CONF_VALUE_MAX];
	struct hc_addr *a;

	while (hc_conf_item(&list, item, sizeof(item))) {
		a = &w->addrs[w->naddrs];
		memset(a, 0, sizeof(*a));
		a->family = strchr(item, ':') ? 6 : 4;
		if (inet_pton(a->family == 6 ? AF_INET6 : AF_INET, item, a->bytes) == 1)
			w->naddrs++;
	}
}

int hc_netwish_read(struct hc_netwish *w, const struct hc_conf *conf)
{
	const unsigned names = count_items(conf->listen_interface) + 1;
	const unsigned addrs = count_items(conf->listen_address) + 1;

	memset(w, 0, sizeof(*w));
	w->named = calloc(names, sizeof(*w->named));
	w->excluded = calloc(names, sizeof(*w->excluded));
	w->addrs = calloc(addrs, sizeof(*w->addrs));
	w->here = calloc(addrs, sizeof(*w->here));
	if (!w->named || !w->excluded || !w->addrs || !w->here) {
		hc_netwish_fini(w);
		return -ENOMEM;
	}
	read_names(w, conf->listen_interface);
	read_addrs(w, conf->listen_address);
	return 0;
}

void hc_netwish_fini(struct hc_netwish *w)
{
	free(w->named);
	free(w->excluded);
	free(w->addrs);
	free(w->here);
	memset(w, 0, sizeof(*w));
}

/* ---- comparing ---- */

static bool is_any(const struct hc_addr *a)
{
	static const uint8_t zero[16];

	return !memcmp(a->bytes, zero, a->family == 4 ? 4 : 16);
}

static bool same(const struct hc_addr *a, const struct hc_addr *b) /* whatever the scope */
{
	return a->family == b->family && !memcmp(a->bytes, b->bytes, a->family == 4 ? 4 : 16);
}

static bool listed(char (*names)[16], unsigned count, const char *name)
{
	unsigned i;

	for (i = 0; i < count; i++)
		if (!strcmp(names[i], name))
			return true;
	return false;
}

bool hc_netwish_named(const struct hc_netwish *w, const char *name)
{
	return listed(w->named, w->nnamed, name);
}

/* By itself, not as one of all addresses. */
static bool names_addr(const struct hc_netwish *w, const struct hc_addr *addr)
{
	unsigned i;

	for (i = 0; i < w->naddrs; i++)
		if (same(&w->addrs[i], addr))
			return true;
	return false;
}

bool hc_netwish_addr(const struct hc_netwish *w, const struct hc_addr *addr)
{
	unsigned i;

	for (i = 0; i < w->naddrs; i++)
		if (w->addrs[i].family == addr->family &&
		    (is_any(&w->addrs[i]) || same(&w->addrs[i], addr)))
			return true;
	return !w->naddrs;
}

static bool within(const struct hc_addr *net, unsigned prefix, const struct hc_addr *addr)
{
	const unsigned whole = prefix / 8, rest = prefix % 8;

	if (net->family != addr->family || memcmp(net->bytes, addr->bytes, whole))
		return false;
	return !rest || !((net->bytes[whole] ^ addr->bytes[whole]) >> (8 - rest));
}

/* ---- the fact ---- */

static uint8_t port_wish(const struct hc_netwish *w, const struct hc_netif_port *p,
			 const struct hc_port_fact *fact)
{
	bool any = !w->naddrs;
	uint32_t i;

	if (listed(w->excluded, w->nexcluded, p->name))
		return PORT_WISH_EXCLUDED;
	if (hc_netwish_named(w, p->name))
		return PORT_WISH_NAMED;
	if (w->nnamed)
		return PORT_WISH_OTHERS;
	for (i = 0; i < fact->naddrs; i++) {
		if (names_addr(w, &fact->addrs[i].addr))
			return PORT_WISH_NAMED;
		any = any || !fact->addrs[i].unwished;
	}
	return any ? PORT_WISH_NONE : PORT_WISH_OTHERS;
}

/* The lower, the rather it is told when there are too many. */
static unsigned rank(const struct hc_netwish *w, const struct hc_netif_addr *a)
{
	return (hc_netwish_addr(w, &a->addr) ? 0u : 4u) +
	       (hc_addr_is_link_local(&a->addr) ? 2u : 0u) + (a->passing ? 1u : 0u);
}

static void put_addr(const struct hc_netwish *w, const struct hc_netif_addr *a,
		     struct hc_port_fact *fact)
{
	struct hc_port_addr *to;

	if (fact->naddrs == HC_PORT_ADDRS)
		return;
	to = &fact->addrs[fact->naddrs++];
	to->addr = a->addr;
	to->prefix = a->prefix;
	to->tentative = a->tentative;
	to->unwished = !hc_netwish_addr(w, &a->addr);
}

static bool has(const struct hc_netif_port *p, const struct hc_addr *addr)
{
	uint32_t i;

	for (i = 0; i < p->naddrs; i++)
		if (same(&p->addrs[i].addr, addr))
			return true;
	return false;
}

/* The network of a loopback port's address that holds `addr`, which is not there by itself. */
static const struct hc_netif_addr *implied_by(const struct hc_netif_port *p,
					      const struct hc_addr *addr)
{
	uint32_t i;

	if (p->kind != HC_W_port_kind_LOOPBACK || is_any(addr) || has(p, addr))
		return NULL;
	for (i = 0; i < p->naddrs; i++)
		if (addr->family == 4 && within(&p->addrs[i].addr, p->addrs[i].prefix, addr))
			return &p->addrs[i];
	return NULL;
}

static void put_implied(const struct hc_netwish *w, const struct hc_netif_port *p,
			struct hc_port_fact *fact)
{
	const struct hc_netif_addr *net;
	struct hc_netif_addr a;
	unsigned i;

	for (i = 0; i < w->naddrs; i++) {
		net = implied_by(p, &w->addrs[i]);
		if (!net)
			continue;
		a = *net;
		a.addr = w->addrs[i];
		put_addr(w, &a, fact);
	}
}

void hc_netwish_fact(const struct hc_netwish *w, const struct hc_netif_port *p,
		     struct hc_port_fact *fact)
{
	unsigned r;
	uint32_t i;

	memset(fact, 0, sizeof(*fact));
	fact->index = p->index;
	snprintf(fact->name, sizeof(fact->name), "%s", p->name);
	fact->kind = p->kind;
	fact->present = !p->gone;
	fact->up = p->up;
	fact->carrier = p->carrier;
	fact->mtu = p->mtu;
	fact->mbps = p->mbps;
	fact->rx_bytes = p->rx_bytes;
	fact->tx_bytes = p->tx_bytes;
	put_implied(w, p, fact);
	for (r = 0; r < 8; r++)
		for (i = 0; i < p->naddrs; i++)
			if (rank(w, &p->addrs[i]) == r)
				put_addr(w, &p->addrs[i], fact);
	fact->wish = port_wish(w, p, fact);
}

/* ---- addresses that are waited for ---- */

static const struct hc_netif_port *holder(const struct hc_netif *n, const struct hc_addr *addr)
{
	const struct hc_netif_port *p;
	uint32_t i, k;

	for (i = 0; i < n->nports; i++) {
		p = n->ports[i];
		for (k = 0; !p->gone && k < p->naddrs; k++)
			if (!p->addrs[k].tentative && same(&p->addrs[k].addr, addr))
				return p;
		if (!p->gone && implied_by(p, addr))
			return p;
	}
	return NULL;
}

void hc_netwish_look(struct hc_netif *n)
{
	struct hc_netwish *w = &n->wish;
	const struct hc_netif_port *p;
	char text[HC_ADDR_TEXT_MAX];
	unsigned i;
	bool here;

	for (i = 0; i < w->naddrs; i++) {
		if (is_any(&w->addrs[i]))
			continue;
		p = holder(n, &w->addrs[i]);
		here = p != NULL;
		if (here == w->here[i] && n->started)
			continue;
		w->here[i] = here;
		hc_addr_text(&w->addrs[i], text);
		if (!here)
			hc_log(HC_LOG_WARN,
			       "listen_address: %s is not on this host%s; waiting for it", text,
			       n->started ? " any more" : " yet");
		else if (n->started)
			hc_log(HC_LOG_INFO, "listen_address: %s is on this host now, at %s", text,
			       p->name);
	}
}

static void say(char *out, size_t size, const char *before, const char *text, const char *behind)
{
	size_t at = strlen(out);

	if (at + 1 < size)
		snprintf(out + at, size - at, "%s%s%s", before, text, behind);
}

void hc_netif_missing(const struct hc_netif *n, char *out, size_t size)
{
	const struct hc_netwish *w = &n->wish;
	char text[HC_ADDR_TEXT_MAX];
	unsigned i;

	out[0] = '\0';
	for (i = 0; i < w->naddrs; i++)
		if (!w->here[i] && !is_any(&w->addrs[i]))
			say(out, size, out[0] ? ", " : "", hc_addr_text(&w->addrs[i], text), "");
	if (out[0])
		say(out, size, "", " not on this host yet", "");
}

/* ---- names that have to be here ---- */

static bool present(const struct ifaddrs *all, const char *name)
{
	for (; all; all = all->ifa_next)
		if (!strcmp(all->ifa_name, name))
			return true;
	return false;
}

static bool first_of(const struct ifaddrs *all, const struct ifaddrs *a)
{
	for (; all != a; all = all->ifa_next)
		if (!strcmp(all->ifa_name, a->ifa_name))
			return false;
	return true;
}

static bool addr_of(const struct ifaddrs *a, char text[INET6_ADDRSTRLEN])
{
	const void *at;

	if (!a->ifa_addr ||
	    (a->ifa_addr->sa_family != AF_INET && a->ifa_addr->sa_family != AF_INET6))
		return false;
	at = a->ifa_addr->sa_family == AF_INET
		     ? (const void *)&((const struct sockaddr_in *)(const void *)a->ifa_addr)
			       ->sin_addr
		     : &((const struct sockaddr_in6 *)(const void *)a->ifa_addr)->sin6_addr;
	return inet_ntop(a->ifa_addr->sa_family, at, text, INET6_ADDRSTRLEN) != NULL;
}

static void say_port(const struct ifaddrs *all, const char *name, char *out, size_t size)
{
	char text[INET6_ADDRSTRLEN];
	unsigned n = 0;

	say(out, size, "", name, " (");
	for (; all; all = all->ifa_next)
		if (!strcmp(all->ifa_name, name) && addr_of(all, text))
			say(out, size, n++ ? ", " : "", text, "");
	say(out, size, "", n ? ")" : "no address)", "");
}

/* With thousands of interfaces the line is cut, and says so. */
static void say_present(const struct ifaddrs *all, char *out, size_t size)
{
	const struct ifaddrs *a;
	unsigned n = 0;

	for (a = all; a; a = a->ifa_next) {
		if (!first_of(all, a))
			continue;
		if (strlen(out) + 300 > size) {
			say(out, size, "", " and others", "");
			return;
		}
		say(out, size, n++ ? ", " : "", "", "");
		say_port(all, a->ifa_name, out, size);
	}
}

static void refuse(const struct hc_conf *conf, const char *name, const struct ifaddrs *all,
		   char *why, size_t size)
{
	char origin[HC_CONF_ORIGIN_MAX];

	snprintf(why, size, "%s: listen_interface: there is no interface '%s'; here are ",
		 hc_conf_origin_text(conf, hc_opt_find(HC_CONF_TOP, "listen_interface"),
				     &conf->origin[HC_OPT_listen_interface], origin,
				     sizeof(origin)),
		 name);
	say_present(all, why, size);
}

int hc_netif_check(const struct hc_conf *conf, char *why, size_t size)
{
	const char *list = conf->listen_interface;
	char item[HC_CONF_VALUE_MAX];
	struct ifaddrs *all;
	int r = 0;

	if (!list[0])
		return 0;
	if (getifaddrs(&all))
		return -errno;
	while (!r && hc_conf_item(&list, item, sizeof(item))) {
		if (item[0] == '^' || present(all, item))
			continue;
		refuse(conf, item, all, why, size);
		r = 1;
	}
	freeifaddrs(all);
	return r;
}
