/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Between netif.c (changes, what the core is told), netread.c (what the kernel tells), netwish.c
 * (what the configuration wishes of them) and netroute.c (questions for routes).
 *
 * A port that is followed is known by its index. `fed` is what the core was told last; a port is
 * told again only when something differs from it.
 */
#ifndef HC_NETIFIMP_H
#define HC_NETIFIMP_H

#include "netif.h"
#include "netlink.h"

#define HC_NETIF_PORTS 256u /* that are followed */
#define HC_NETIF_ADDRS 32u  /* of a port that are kept; the best of them are told */

/* listen_interface and listen_address, taken apart. */
struct hc_netwish {
	char (*named)[16], (*excluded)[16];
	unsigned nnamed, nexcluded;
	struct hc_addr *addrs;
	bool *here; /* whether it is on this host now */
	unsigned naddrs;
};

struct hc_netif_addr {
	struct hc_addr addr;
	uint8_t prefix;
	bool tentative, passing; /* passing: temporary or deprecated */
};

struct hc_netif_port {
	uint32_t index;
	char name[16];
	uint8_t kind;
	bool up, carrier, gone, seen, told;
	uint32_t mtu, mbps;
	uint64_t rx_bytes, tx_bytes;
	struct hc_netif_addr addrs[HC_NETIF_ADDRS];
	uint32_t naddrs;
	struct hc_port_fact fed;
};

struct hc_netif_ask {
	uint32_t ask;
	struct hc_addr to;
};

struct hc_netif {
	struct hc_netif_args args;
	struct hc_netwish wish;
	struct hc_netlink ask, changes;
	int ethtool; /* a socket to ask for speeds */
	struct event *changed, *wake, *later;
	struct hc_netif_port *ports[HC_NETIF_PORTS];
	uint32_t nports;
	bool first, started, full_told;
	bool lost, routes, waiting; /* read all anew; tell of routes; not before `later` */
	uint32_t few;               /* that are fed only because they were there at the start */
	struct hc_netif_ask *asks;
	uint32_t nasks, asks_cap;
};

/* ---- netread.c ---- */
struct hc_netread_link {
	const struct ifinfomsg *head;
	const struct nlattr *attrs[IFLA_MAX + 1];
	const char *name;
	uint32_t index;
};
struct hc_netread_addr {
	uint32_t index;
	struct hc_netif_addr a;
};
/* The port with that index that is here, or NULL. */
struct hc_netif_port *hc_netread_port(struct hc_netif *n, uint32_t index);
/* False: not a whole message, or what a bridge tells of its ports. */
bool hc_netread_link(const struct nlmsghdr *nlh, struct hc_netread_link *l);
void hc_netread_take(struct hc_netif *n, struct hc_netif_port *p, const struct hc_netread_link *l);
bool hc_netread_addr(const struct nlmsghdr *nlh, struct hc_netread_addr *t);
/* Does it make its port one that the core wants to know? */
bool hc_netread_routable(const struct hc_netif *n, const struct hc_addr *a);
void hc_netread_put(struct hc_netif *n, struct hc_netif_port *p, const struct hc_netif_addr *a);
/* Read all, or (index) follow one more link. 0; -EINTR: interrupted; -errno. */
int hc_netread_some(struct hc_netif *n, uint32_t index);
/* 0, -errno: what was known stays, and n->lost says that it has to be read again. */
int hc_netread_all(struct hc_netif *n);

/* ---- netwish.c ---- */
int hc_netwish_read(struct hc_netwish *w, const struct hc_conf *conf);
void hc_netwish_fini(struct hc_netwish *w);
bool hc_netwish_named(const struct hc_netwish *w, const char *name);
/* Is it in listen_address, or one of an empty one? */
bool hc_netwish_addr(const struct hc_netwish *w, const struct hc_addr *addr);
/* What the core is told of a port now. */
void hc_netwish_fact(const struct hc_netwish *w, const struct hc_netif_port *p,
		     struct hc_port_fact *fact);
/* Look at all ports for the addresses that are waited for; what changed is logged. */
void hc_netwish_look(struct hc_netif *n);

/* ---- netroute.c ---- */
void hc_netroute_answer(struct hc_netif *n, const struct hc_netif_ask *ask);

#endif
