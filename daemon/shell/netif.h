/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Network ports of this node and the kernel's routes, by rtnetlink.
 *
 * At the start all links and addresses are read; then changes are followed as they come, and all
 * is read anew when the kernel says that some were lost. The core is fed the ports that may
 * matter: named in listen_interface, or with an address that is routable. Of the others, those
 * that are there at the start are fed too as long as they are few, since people want to read why
 * they are not used. Interfaces of containers that come and go leave no trace.
 *
 * A question for a route is answered in the next turn of the event loop, never inside of the step
 * that asked: the kernel answers at once, so it is asked by a socket of its own, with a bounded
 * wait. Changes of routes and addresses become one HC_EV_ROUTES for a turn, and in a rush of them
 * one in 50 ms.
 *
 * With listen_address, the answer to a question names one of those addresses, also where the
 * kernel by itself would choose another one of the same port. So daemons on several addresses of
 * one host's loopback find paths to each other.
 *
 * An address of listen_address that is not here yet is waited for; an interface that
 * listen_interface names has to be here at the start.
 */
#ifndef HC_NETIF_H
#define HC_NETIF_H

#include <event2/event.h>
#include "conffile.h"
#include "core.h"

struct hc_netif;

struct hc_netif_args {
	struct event_base *base;
	const struct hc_conf *conf; /* listen_interface, listen_address; read now, not kept */
	void (*feed)(void *arg, const struct hc_event *ev);
	void *arg;
};

/* Reads what is there. 0; 1 and one line in `why`: listen_interface names what is not; -errno. */
int hc_netif_new(const struct hc_netif_args *args, struct hc_netif **netif, char *why, size_t size);
/* The same check by itself, for before anything is opened. */
int hc_netif_check(const struct hc_conf *conf, char *why, size_t size);
void hc_netif_free(struct hc_netif *n);

/* Feed the ports, and follow the changes from now on. Once, after HC_EV_START. 0, -errno. */
int hc_netif_start(struct hc_netif *n);
/* About once a second: counters of the ports. */
void hc_netif_tick(struct hc_netif *n);
/* HC_ACT_ROUTE. */
void hc_netif_ask(struct hc_netif *n, uint32_t ask, const struct hc_addr *to);

/* "10.71.0.1 not on this host yet": addresses of listen_address that are waited for; "" if none. */
void hc_netif_missing(const struct hc_netif *n, char *out, size_t size);
/* How many ports the core has been told of. */
uint32_t hc_netif_count(const struct hc_netif *n);

#endif
