/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Between beats.c (life, keys, receiving) and beatsend.c (sending, what comes back).
 *
 * A socket has a queue of its own for what is to be sent, since one call serves one socket. The
 * batch for receiving is one for all of them. Its buffers take the largest datagram; their
 * stride is not a power of two, so that the heads of a batch do not share one set of the cache.
 */
#ifndef HC_BEATSIMP_H
#define HC_BEATSIMP_H

#include <netinet/in.h>
#include <sys/socket.h>
#include "beats.h"
#include "gmac.h"

#define HC_BEATS_BATCH   64u
#define HC_BEATS_ROOM    (65536u + 192u)
#define HC_BEATS_QUEUE   256u
#define HC_BEATS_BYTES   (128u * 1024u)
#define HC_BEATS_BOUNCES 256u

union hc_beats_name {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};
#define HC_BEATS_CONTROL CMSG_SPACE(sizeof(struct in6_pktinfo))

struct hc_beats_item {
	union hc_beats_name name;
	_Alignas(struct cmsghdr) char control[HC_BEATS_CONTROL];
	struct iovec iov;
};

struct hc_beats_sock {
	struct hc_beats *beats;
	struct hc_beats_sock *next;
	int fd;
	struct hc_endpoint at;
	bool any; /* of all addresses: the source is chosen for each datagram */
	struct event *readable;
	uint32_t queued, used; /* datagrams; bytes of `bytes` */
	struct mmsghdr out[HC_BEATS_QUEUE];
	struct hc_beats_item items[HC_BEATS_QUEUE];
	uint8_t bytes[HC_BEATS_BYTES];
};

struct hc_beats_in { /* receiving keys of a peer slot: the newest first */
	uint32_t id[2];
	struct hc_gmac *gmac[2];
};

struct hc_beats_bounce {
	struct hc_endpoint remote;
	int error;
	uint32_t mtu;
};

struct hc_beats {
	struct hc_beats_args args;
	struct hc_beats_sock *socks;
	bool draining;
	struct hc_beats_in *in;
	uint32_t nin;
	struct hc_gmac **out; /* by peer */
	uint32_t nout;
	struct event *wake; /* bounces wait to be told */
	struct hc_beats_bounce bounces[HC_BEATS_BOUNCES];
	uint32_t nbounces;
	struct hc_beats_counts counts;
	struct mmsghdr batch[HC_BEATS_BATCH];
	struct hc_beats_item items[HC_BEATS_BATCH];
	uint8_t *room; /* HC_BEATS_BATCH times HC_BEATS_ROOM, touched only as it is used */
};

void hc_beats_name(const struct hc_endpoint *e, union hc_beats_name *name, socklen_t *len);
void hc_beats_endpoint(const union hc_beats_name *name, struct hc_endpoint *e);
/* Send what the socket's queue holds. */
void hc_beats_push(struct hc_beats_sock *s);
/* Read its error queue; `to`, or NULL: what was sent just now. How many told of `to`. */
unsigned hc_beats_errors(struct hc_beats_sock *s, const struct hc_endpoint *to);
void hc_beats_bounce(struct hc_beats *b, const struct hc_endpoint *to, int error, uint32_t mtu);
void hc_beats_tell(evutil_socket_t fd, short what, void *beats);

#endif
