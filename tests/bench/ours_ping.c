/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pings as bytes. The frame is encoded once with the protocol's own codec; a burst copies it and
 * sets the request id of each, so the generator spends next to nothing for a request. An answer
 * must be whole, of type done, without error and for an id that was asked.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "frame.h"
#include "ours.h"
#include "rawecho.h"

enum {
	ID_OFFSET = 8,
	HELLO_SECONDS_MAX = 10,
};

static uint8_t ping[256];
static size_t ping_bytes;
static size_t done_bytes;

static size_t encode(uint8_t *buf, size_t room, const struct hc_desc *d, uint32_t id,
		     const void *msg)
{
	size_t n = 0;
	int r = hc_frame_write(buf, room, d, HC_PROTO_MAX, id, 0, msg, &n);

	if (r)
		bench_die("cannot encode %s: outcome %d", d->name, r);
	return n;
}

static void prepare(void)
{
	const struct hc_m_ping p = {.value = 1};
	const struct hc_m_done d = {.value = 1};
	uint8_t buf[256];

	if (ping_bytes)
		return;
	ping_bytes = encode(ping, sizeof(ping), &hc_desc_ping, 0, &p);
	done_bytes = encode(buf, sizeof(buf), &hc_desc_done, 0, &d);
}

size_t ours_ping_bytes(void)
{
	prepare();
	return ping_bytes;
}

size_t ours_done_bytes(void)
{
	prepare();
	return done_bytes;
}

/* Descriptors that come with the answer (the op arena) are closed at once. */
static ssize_t receive_hello(int fd, uint8_t *buf, size_t room)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(8 * sizeof(int))];
	} control;
	struct iovec io = {.iov_base = buf, .iov_len = room};
	struct msghdr m = {.msg_iov = &io,
			   .msg_iovlen = 1,
			   .msg_control = control.bytes,
			   .msg_controllen = sizeof(control.bytes)};
	ssize_t n = recvmsg(fd, &m, MSG_CMSG_CLOEXEC);
	struct cmsghdr *c;
	size_t i, count;
	int got[8];

	for (c = n > 0 ? CMSG_FIRSTHDR(&m) : NULL; c; c = CMSG_NXTHDR(&m, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		memcpy(got, CMSG_DATA(c), count * sizeof(int));
		for (i = 0; i < count; i++)
			close(got[i]);
	}
	return n;
}

static void say_hello(int fd)
{
	const struct timeval limit = {.tv_sec = HELLO_SECONDS_MAX};
	struct hc_m_hello hello = {.proto_min = HC_PROTO_MIN, .proto_max = HC_PROTO_MAX};
	uint8_t buf[4096];
	const uint8_t *at = buf;
	struct hc_frame f;
	size_t n, left;
	ssize_t got;

	hello.build = hc_str("bench");
	n = encode(buf, sizeof(buf), &hc_desc_hello, 1, &hello);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	if (send(fd, buf, n, MSG_NOSIGNAL) != (ssize_t)n)
		bench_die("hello: send: %s", strerror(errno));
	got = receive_hello(fd, buf, sizeof(buf));
	left = got > 0 ? (size_t)got : 0;
	if (got <= 0 || hc_frame_next(&at, &left, &f))
		bench_die("hello: %s", got < 0 ? strerror(errno) : "no answer");
	if (f.head.type != HC_MSG_hello_r || f.head.status)
		bench_die("hello is answered by message %u with status %d", f.head.type,
			  f.head.status);
}

static int ping_connect(void *ctx)
{
	int fd = floor_connect_unix(ours_socket(ctx), SOCK_SEQPACKET);

	if (fd >= 0)
		say_hello(fd);
	return fd;
}

static size_t ping_burst(void *ctx, uint32_t first_id, unsigned count, uint8_t *out, size_t room)
{
	uint32_t n;
	unsigned i;

	(void)ctx;
	if (ping_bytes * count > room)
		bench_die("ping: %u requests do not fit in one packet", count);
	for (i = 0; i < count; i++, out += ping_bytes) {
		memcpy(out, ping, ping_bytes);
		/* 0 would be an event */
		n = htonl((first_id + i) | 0x80000000u);
		memcpy(out + ID_OFFSET, &n, sizeof(n));
	}
	return ping_bytes * count;
}

static unsigned ping_answers(void *ctx, const uint8_t *in, size_t bytes, size_t *consumed)
{
	size_t left = bytes;
	struct hc_frame f;
	unsigned n = 0;

	(void)ctx;
	while (left) {
		if (hc_frame_next(&in, &left, &f))
			bench_die("ping: a broken frame after %u answers", n);
		if (f.head.type != HC_MSG_done || f.head.status || !(f.head.id & 0x80000000u))
			bench_die("ping is answered by message %u with status %d", f.head.type,
				  f.head.status);
		n++;
	}
	*consumed = bytes;
	return n;
}

void ours_ping_target(struct ours *o, struct loadgen_target *target)
{
	prepare();
	*target = (struct loadgen_target){.name = "hcommd ping",
					  .ctx = o,
					  .connect = ping_connect,
					  .burst = ping_burst,
					  .answers = ping_answers};
}
