/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The generator takes all memory and opens all connections before the clock runs. A run starts
 * with one burst on each connection and ends by waiting for what is still outstanding, so that
 * the next run starts from nothing; answers after the end of the time are not counted.
 */
#include "loadgen.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	EVENTS = 64,
	/* a server that is silent for so long is not slow but broken */
	SILENCE_MS = 10000,
};

struct conn {
	int fd;
	uint32_t next_id;
	unsigned outstanding;
	size_t rest_bytes;
	uint8_t rest[LOADGEN_REST_MAX];
};

struct loadgen {
	struct loadgen_target target;
	unsigned connections;
	unsigned depth;
	unsigned busy;
	int epoll;
	struct conn *conn;
	uint8_t out[LOADGEN_BURST_MAX];
	uint8_t in[LOADGEN_REST_MAX + LOADGEN_BURST_MAX];
};

static void add_conn(struct loadgen *g, unsigned i)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.u32 = i};
	struct conn *c = &g->conn[i];

	c->fd = g->target.connect(g->target.ctx);
	if (c->fd < 0)
		bench_die("%s: connection %u: %s", g->target.name, i, strerror(-c->fd));
	if (epoll_ctl(g->epoll, EPOLL_CTL_ADD, c->fd, &ev))
		bench_die("%s: epoll_ctl: %s", g->target.name, strerror(errno));
}

struct loadgen *loadgen_new(const struct loadgen_target *target, unsigned connections,
			    unsigned depth)
{
	struct loadgen *g = calloc(1, sizeof(*g));
	unsigned i;

	if (!g || !(g->conn = calloc(connections, sizeof(*g->conn))))
		bench_die("no memory for %u connections", connections);
	g->target = *target;
	g->connections = connections;
	g->depth = depth;
	g->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (g->epoll < 0)
		bench_die("epoll_create1: %s", strerror(errno));
	for (i = 0; i < connections; i++)
		add_conn(g, i);
	return g;
}

static void send_burst(struct loadgen *g, struct conn *c)
{
	size_t bytes = g->target.burst(g->target.ctx, c->next_id, g->depth, g->out, sizeof(g->out));
	ssize_t n = send(c->fd, g->out, bytes, MSG_NOSIGNAL);

	if (n < 0 || (size_t)n != bytes)
		bench_die("%s: send of %zu bytes: %s", g->target.name, bytes,
			  n < 0 ? strerror(errno) : "short");
	c->next_id += g->depth;
	c->outstanding = g->depth;
	g->busy++;
}

/* The whole answers that came, with what was left over from the last time before them. */
static unsigned receive(struct loadgen *g, struct conn *c)
{
	unsigned count;
	size_t bytes, used;
	ssize_t n;

	memcpy(g->in, c->rest, c->rest_bytes);
	n = recv(c->fd, g->in + c->rest_bytes, sizeof(g->in) - c->rest_bytes, 0);
	if (n <= 0)
		bench_die("%s: recv: %s", g->target.name, n ? strerror(errno) : "closed by server");
	bytes = c->rest_bytes + (size_t)n;
	count = g->target.answers(g->target.ctx, g->in, bytes, &used);
	if (count > c->outstanding || used > bytes || bytes - used > sizeof(c->rest))
		bench_die("%s: %u answers to %u requests, %zu of %zu bytes", g->target.name, count,
			  c->outstanding, used, bytes);
	c->rest_bytes = bytes - used;
	memcpy(c->rest, g->in + used, c->rest_bytes);
	c->outstanding -= count;
	if (!c->outstanding)
		g->busy--;
	return count;
}

double loadgen_run(struct loadgen *g, uint64_t duration_ns)
{
	struct epoll_event ev[EVENTS];
	uint64_t start = bench_now_ns();
	uint64_t end = 0;
	uint64_t count = 0;
	unsigned i;
	int k, n;

	for (i = 0; i < g->connections; i++)
		send_burst(g, &g->conn[i]);
	while (g->busy) {
		n = epoll_wait(g->epoll, ev, EVENTS, SILENCE_MS);
		if (n <= 0)
			bench_die("%s: %s with %u connections waiting", g->target.name,
				  n ? strerror(errno) : "silence", g->busy);
		for (k = 0; k < n; k++) {
			struct conn *c = &g->conn[ev[k].data.u32];
			unsigned got = receive(g, c);

			count += end ? 0 : got;
			if (!c->outstanding && !end)
				send_burst(g, c);
		}
		if (!end && bench_now_ns() - start >= duration_ns)
			end = bench_now_ns();
	}
	return (double)count * 1e9 / (double)(end - start);
}

struct loadgen *loadgen_free(struct loadgen *g)
{
	unsigned i;

	if (!g)
		return NULL;
	for (i = 0; i < g->connections; i++)
		close(g->conn[i].fd);
	close(g->epoll);
	free(g->conn);
	free(g);
	return NULL;
}

void loadgen_rtt(const struct loadgen_target *target, int fd, uint64_t count,
		 struct bench_samples *each)
{
	static uint8_t out[LOADGEN_BURST_MAX], in[LOADGEN_BURST_MAX];
	uint64_t start = bench_now_ns();
	uint64_t i, now;
	size_t bytes, used;
	ssize_t n;

	for (i = 0; i < count; i++) {
		bytes = target->burst(target->ctx, (uint32_t)i, 1, out, sizeof(out));
		if (send(fd, out, bytes, MSG_NOSIGNAL) != (ssize_t)bytes)
			bench_die("%s: send: %s", target->name, strerror(errno));
		n = recv(fd, in, sizeof(in), 0);
		if (n <= 0)
			bench_die("%s: recv: %s", target->name, n ? strerror(errno) : "closed");
		if (target->answers(target->ctx, in, (size_t)n, &used) != 1)
			bench_die("%s: %zd bytes are not one answer", target->name, n);
		now = bench_now_ns();
		bench_samples_add(each, now - start);
		start = now;
	}
}
