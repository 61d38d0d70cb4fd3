/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A packet socket sees what arrives before any rule drops it. The kernel stamps by the real-time
 * clock; the distance to the monotonic one is taken when a stamp is read, between two readings of
 * the real-time clock, so that being interrupted there does not matter.
 */
#include "wirewatch.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"
#include "datagram.h"

#define S 1000000000ll

struct wirewatch {
	int fd;
};

struct packet {
	uint32_t from;
	uint16_t port;
	uint8_t type; /* of our datagrams */
	int64_t at;   /* real time */
};

static int64_t real_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return t.tv_sec * S + t.tv_nsec;
}

/* Real time minus monotonic time, of the quickest of some tries. */
static int64_t distance(void)
{
	int64_t best = INT64_MAX, d = 0, before, after, mono;
	unsigned i;

	for (i = 0; i < 10; i++) {
		before = real_ns();
		mono = (int64_t)bench_now_ns();
		after = real_ns();
		if (after - before < best) {
			best = after - before;
			d = before + best / 2 - mono;
		}
	}
	return d;
}

struct wirewatch *wirewatch_open(const char *link)
{
	struct sockaddr_ll at = {.sll_family = AF_PACKET,
				 .sll_protocol = htons(ETH_P_ALL), /* also what goes out */
				 .sll_ifindex = (int)if_nametoindex(link)};
	struct wirewatch *w = calloc(1, sizeof(*w));
	const int one = 1, room = 16 << 20;

	if (!w)
		bench_die("out of memory");
	w->fd = socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, htons(ETH_P_ALL));
	if (w->fd < 0 || setsockopt(w->fd, SOL_SOCKET, SO_TIMESTAMPNS, &one, sizeof(one)) ||
	    setsockopt(w->fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room)) ||
	    bind(w->fd, (struct sockaddr *)&at, sizeof(at)))
		bench_die("packets of %s: %s", link, strerror(errno));
	return w;
}

static int64_t stamp_of(struct msghdr *m)
{
	struct cmsghdr *c;
	struct timespec t;

	for (c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_TIMESTAMPNS)
			continue;
		memcpy(&t, CMSG_DATA(c), sizeof(t));
		return t.tv_sec * S + t.tv_nsec;
	}
	bench_die("a packet without a time");
}

static void parse(const uint8_t *bytes, size_t len, struct packet *p)
{
	struct udphdr udp;
	struct iphdr ip;
	size_t at;

	if (len < sizeof(ip))
		return;
	memcpy(&ip, bytes, sizeof(ip));
	if (ip.protocol != IPPROTO_UDP || len < ip.ihl * 4u + sizeof(udp))
		return;
	memcpy(&udp, bytes + ip.ihl * 4u, sizeof(udp));
	p->from = ntohl(ip.saddr);
	p->port = ntohs(udp.dest);
	at = ip.ihl * 4u + sizeof(udp) + HC_DATAGRAM_AT_TYPE;
	p->type = at < len ? bytes[at] : 0;
}

/* False: no more. `from` is 0 when it is no datagram; or none to us, unless `both` ways. */
static bool next(struct wirewatch *w, bool both, struct packet *p)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(struct timespec))];
	uint8_t bytes[128];
	struct sockaddr_ll from;
	struct iovec iov = {bytes, sizeof(bytes)};
	struct msghdr m = {.msg_name = &from,
			   .msg_namelen = sizeof(from),
			   .msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = control,
			   .msg_controllen = sizeof(control)};
	const ssize_t n = recvmsg(w->fd, &m, 0);

	if (n < 0)
		return false;
	*p = (struct packet){.at = stamp_of(&m)};
	if (from.sll_protocol == htons(ETH_P_IP) && (both || from.sll_pkttype == PACKET_HOST))
		parse(bytes, (size_t)n, p);
	return true;
}

void wirewatch_clear(struct wirewatch *w)
{
	struct packet p;

	while (next(w, false, &p))
		;
}

uint64_t wirewatch_last(struct wirewatch *w, uint32_t from, uint16_t port)
{
	struct packet p;
	int64_t last = 0;

	while (next(w, false, &p))
		if (p.from == from && p.port == port)
			last = p.at;
	return last ? (uint64_t)(last - distance()) : 0;
}

uint64_t wirewatch_first(struct wirewatch *w, uint32_t from, uint16_t port, uint8_t type)
{
	struct packet p;
	int64_t first = 0;

	while (next(w, true, &p))
		if (!first && (!from || p.from == from) && p.port == port && p.type == type)
			first = p.at;
	return first ? (uint64_t)(first - distance()) : 0;
}

void wirewatch_close(struct wirewatch *w)
{
	close(w->fd);
	free(w);
}
