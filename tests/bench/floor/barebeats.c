/* SPDX-License-Identifier: Apache-2.0 */
/* Sending and receiving authenticated frames; see barebeats.h. */
#include "barebeats.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"
#include "gmac.h"

#define BATCH 64u
#define FRAME (HC_BEAT_BYTES + HC_DATAGRAM_TAG)

struct room {
	struct mmsghdr msgs[BATCH];
	struct iovec iov[BATCH];
	struct sockaddr_in from[BATCH];
	uint8_t bytes[BATCH][2048];
	uint8_t control[BATCH][CMSG_SPACE(sizeof(struct in_pktinfo))];
};

struct bare {
	struct barebeats args;
	int fd;
	struct hc_gmac **in, **out;
	uint64_t *seq;
	struct sockaddr_in to;
	struct room tx, rx;
	uint64_t bad;
};

static void put_number(uint8_t *frame, uint32_t node, uint64_t seq)
{
	memcpy(frame + HC_DATAGRAM_AT_KEY, &node, sizeof(node));
	memcpy(frame + HC_DATAGRAM_AT_PATH, &node, sizeof(node));
	memcpy(frame + HC_DATAGRAM_AT_PATH + 4, &seq, sizeof(seq));
}

static void flush(struct bare *b, uint32_t count)
{
	if (count && sendmmsg(b->fd, b->tx.msgs, count, 0) < 0 && errno != ECONNREFUSED)
		bench_die("barebeats: sending: %s", strerror(errno));
}

static void send_slice(struct bare *b, uint32_t slice)
{
	uint32_t i, n = 0;

	for (i = slice; i < b->args.nodes; i += b->args.slices) {
		put_number(b->tx.bytes[n], i, ++b->seq[i]);
		if (!hc_gmac_seal(b->out[i], b->tx.bytes[n], HC_BEAT_BYTES))
			bench_die("barebeats: no tag");
		b->tx.iov[n] = (struct iovec){b->tx.bytes[n], FRAME};
		b->tx.msgs[n].msg_hdr = (struct msghdr){.msg_name = &b->to,
							.msg_namelen = sizeof(b->to),
							.msg_iov = &b->tx.iov[n],
							.msg_iovlen = 1};
		if (++n == BATCH) {
			flush(b, n);
			n = 0;
		}
	}
	flush(b, n);
}

static void receive(struct bare *b)
{
	uint32_t i, node;
	int r;

	do {
		for (i = 0; i < BATCH; i++) {
			b->rx.iov[i] = (struct iovec){b->rx.bytes[i], sizeof(b->rx.bytes[i])};
			b->rx.msgs[i].msg_hdr =
				(struct msghdr){.msg_name = &b->rx.from[i],
						.msg_namelen = sizeof(b->rx.from[i]),
						.msg_iov = &b->rx.iov[i],
						.msg_iovlen = 1,
						.msg_control = b->rx.control[i],
						.msg_controllen = sizeof(b->rx.control[i])};
		}
		r = recvmmsg(b->fd, b->rx.msgs, BATCH, MSG_DONTWAIT, NULL);
		for (i = 0; r > 0 && i < (uint32_t)r; i++) {
			memcpy(&node, b->rx.bytes[i] + HC_DATAGRAM_AT_KEY, sizeof(node));
			b->bad += node >= b->args.nodes ||
				  !hc_gmac_good(b->in[node], b->rx.bytes[i], HC_BEAT_BYTES);
		}
	} while (r == (int)BATCH);
	if (b->bad)
		bench_die("barebeats: a frame is not authentic");
}

static void run(struct bare *b)
{
	const uint64_t gap = b->args.interval_ms * 1000000ull / b->args.slices;
	uint64_t next = bench_now_ns(), now;
	struct pollfd p = {.fd = b->fd, .events = POLLIN};
	struct timespec nap;
	uint32_t slice = 0;

	for (;;) {
		now = bench_now_ns();
		if (now >= next) {
			send_slice(b, slice++ % b->args.slices);
			next += gap;
			continue;
		}
		nap = (struct timespec){(time_t)((next - now) / 1000000000u),
					(long)((next - now) % 1000000000u)};
		if (ppoll(&p, 1, &nap, NULL) > 0)
			receive(b);
	}
}

static void make_keys(struct bare *b)
{
	uint8_t key[HC_KEY_BYTES] = {0};
	uint32_t i;

	b->in = calloc(b->args.nodes, sizeof(struct hc_gmac *));
	b->out = calloc(b->args.nodes, sizeof(struct hc_gmac *));
	b->seq = calloc(b->args.nodes, sizeof(*b->seq));
	if (!b->in || !b->out || !b->seq)
		bench_die("out of memory");
	for (i = 0; i < b->args.nodes; i++) {
		memcpy(key, &i,
		       sizeof(i)); /* both directions and ends the same: cost is what counts */
		b->in[i] = hc_gmac_new(key);
		b->out[i] = hc_gmac_new(key);
		if (!b->in[i] || !b->out[i])
			bench_die("no key");
	}
}

pid_t barebeats_start(const struct barebeats *args)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(args->port)};
	const int one = 1, room = 8 << 20;
	const pid_t pid = bench_fork();
	struct bare *b;

	if (pid)
		return pid;
	b = calloc(1, sizeof(*b));
	if (!b)
		bench_die("out of memory");
	b->args = *args;
	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	b->to = at;
	b->to.sin_port = htons(args->to);
	b->fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (b->fd < 0 || setsockopt(b->fd, IPPROTO_IP, IP_PKTINFO, &one, sizeof(one)) ||
	    bind(b->fd, (struct sockaddr *)&at, sizeof(at)))
		bench_die("barebeats: port %u: %s", args->port, strerror(errno));
	setsockopt(b->fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room));
	make_keys(b);
	if (args->cpu >= 0)
		bench_pin(args->cpu);
	run(b);
	_exit(0);
}
