/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sockets between nodes: addresses as the kernel wants them, and the one port of a daemon.
 *
 * Control (TCP) and beats (UDP) have the same number, so it is bound for both at once, for all
 * addresses, before anything else looks at it: a number counts only when every socket got it. Of
 * a range the first such number is taken; a single one that is taken ends the start with a line
 * that names who holds it. Addresses that are not there yet are bound all the same (free bind):
 * they work once they come.
 */
#ifndef HC_PEERSOCK_H
#define HC_PEERSOCK_H

#include <sys/socket.h>
#include "core.h"

#define HC_BIND_MAX 16u

struct hc_peers_want {
	uint16_t lo, hi;       /* listen_port */
	const char *addresses; /* listen_address; "" = all, of both families */
};

struct hc_peers_socks {
	uint32_t count;
	struct hc_endpoint at[HC_BIND_MAX];
	int tcp[HC_BIND_MAX], udp[HC_BIND_MAX]; /* TCP: listening. -1: somebody else has it now */
	uint16_t port;
};

/* 0, or 1 and one line in `why`. In both cases hc_peers_unbind may be called. */
int hc_peers_bind(const struct hc_peers_want *want, struct hc_peers_socks *s, char *why,
		  size_t size);
/* Closes what is still ours. */
void hc_peers_unbind(struct hc_peers_socks *s);

/* Length of the address, 0: no such family. */
socklen_t hc_peersock_to(const struct hc_endpoint *e, struct sockaddr_storage *to);
bool hc_peersock_from(const struct sockaddr *from, struct hc_endpoint *e);
/* Class of control and beats: DSCP CS6, priority 6. */
void hc_peersock_class(int fd, uint8_t family);
/* The same, and nothing waits to be sent together. */
void hc_peersock_tune(int fd, uint8_t family);
/* Begin to connect, from that address if it has a family; errno, or 0 when it is under way. *fd is
 * to be closed in any case. */
int hc_peersock_dial(const struct hc_endpoint *to, const struct hc_addr *from, int *fd);

#endif
