/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each server is a level-triggered epoll loop over its ranks' sockets, the connections to other
 * servers and the writer's eventfd, in one process with the writer thread, all bound to the
 * processor of its node.
 */
#include "farfloor.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rawecho.h"
#include "tls.h"
#include "writer.h"

enum message { ARRIVE = 1, PREPARE, PREPARED, COMMIT };
enum { ANSWERS_HELD = 65536, PEERS = FARFLOOR_NODES_MAX - 1 };

struct peer {
	int fd;
	SSL *ssl;
	struct hc_tls_side side;
	size_t used, ready; /* bytes that came and are no whole message; to be sent */
	uint8_t in[16384], out[ANSWERS_HELD];
};

struct server {
	const struct farfloor *f;
	unsigned node, npeers, here, prepared;
	int epoll, fd[TEAM_RANKS_MAX];
	struct peer peer[PEERS];
	struct writer w;
	unsigned writing; /* for which message a row is with the writer; 0: none is */
	unsigned waiting; /* the next such row */
};

static uint8_t buf[RAWECHO_MESSAGE_MAX];
static int rank_fd = -1;

static void watch(struct server *s, int fd)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.fd = fd};

	if (epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &ev))
		bench_die("far floor: epoll_ctl: %s", strerror(errno));
}

/* ---- between servers ---- */

static void put(struct server *s, struct peer *p, enum message m)
{
	if (p->ready + s->f->message_bytes > sizeof(p->out))
		bench_die("far floor: too much to send at once");
	memset(p->out + p->ready, 0, s->f->message_bytes);
	p->out[p->ready] = (uint8_t)m;
	p->ready += s->f->message_bytes;
}

static void put_all(struct server *s, enum message m)
{
	unsigned i;

	for (i = 0; i < s->npeers; i++)
		put(s, &s->peer[i], m);
}

static void flush(struct server *s)
{
	struct peer *p;
	unsigned i;

	for (i = 0; i < s->npeers; i++) {
		p = &s->peer[i];
		if (p->ready && SSL_write(p->ssl, p->out, (int)p->ready) != (int)p->ready)
			bench_die("far floor: a connection is full");
		p->ready = 0;
	}
}

/* ---- a step ---- */

static void write_row(struct server *s, enum message m)
{
	if (s->writing) {
		s->waiting = m;
		return;
	}
	s->writing = m;
	writer_submit(&s->w);
}

static void answer_all(struct server *s)
{
	unsigned i;

	for (i = 0; i < s->f->ranks; i++)
		if (send(s->fd[i], buf, s->f->answer_bytes, MSG_NOSIGNAL) < 0)
			bench_die("far floor: send: %s", strerror(errno));
}

static void arrived(struct server *s)
{
	if (s->node) {
		put(s, &s->peer[0], ARRIVE);
		return;
	}
	if (++s->here < s->f->ranks * s->f->nodes)
		return;
	s->here = 0;
	put_all(s, PREPARE);
}

static void heard(struct server *s, uint8_t m)
{
	switch ((enum message)m) {
	case ARRIVE: arrived(s); return;
	case PREPARE: write_row(s, PREPARE); return;
	case PREPARED:
		if (++s->prepared < s->npeers)
			return;
		s->prepared = 0;
		write_row(s, PREPARED);
		return;
	case COMMIT:
		answer_all(s);
		write_row(s, COMMIT);
		return;
	}
	bench_die("far floor: message %u", m);
}

static void stored(struct server *s)
{
	const unsigned what = s->writing;

	writer_finish(&s->w);
	s->writing = 0;
	if (what == PREPARE)
		put(s, &s->peer[0], PREPARED);
	if (what == PREPARED) {
		put_all(s, COMMIT);
		flush(s);
		answer_all(s);
	}
	if (s->waiting) {
		write_row(s, (enum message)s->waiting);
		s->waiting = 0;
	}
}

static void hear(struct server *s, struct peer *p)
{
	const size_t n = s->f->message_bytes;
	size_t at;
	int got;

	while ((got = SSL_read(p->ssl, p->in + p->used, (int)(sizeof(p->in) - p->used))) > 0) {
		p->used += (size_t)got;
		for (at = 0; at + n <= p->used; at += n)
			heard(s, p->in[at]);
		p->used -= at;
		memmove(p->in, p->in + at, p->used);
	}
	if (SSL_get_error(p->ssl, got) != SSL_ERROR_WANT_READ)
		_exit(0);
}

static struct peer *peer_of(struct server *s, int fd)
{
	unsigned i;

	for (i = 0; i < s->npeers; i++)
		if (s->peer[i].fd == fd)
			return &s->peer[i];
	return NULL;
}

_Noreturn static void loop(struct server *s)
{
	struct epoll_event ev[TEAM_RANKS_MAX + PEERS + 1];
	struct peer *p;
	int i, n;

	for (;;) {
		n = epoll_wait(s->epoll, ev, TEAM_RANKS_MAX + PEERS + 1, -1);
		for (i = 0; i < n; i++) {
			p = peer_of(s, ev[i].data.fd);
			if (ev[i].data.fd == s->w.done)
				stored(s);
			else if (p)
				hear(s, p);
			else if (recv(ev[i].data.fd, buf, sizeof(buf), 0) <= 0)
				_exit(0);
			else
				arrived(s);
		}
		flush(s);
	}
}

/* ---- setting up ---- */

static struct sockaddr_in address(const struct farfloor *f, unsigned node)
{
	return (struct sockaddr_in){.sin_family = AF_INET,
				    .sin_port = htons(f->port),
				    .sin_addr.s_addr = htonl(0x7f000001u + node)};
}

static int listen_tcp(const struct farfloor *f)
{
	const struct sockaddr_in at = address(f, 0);
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) ||
	    bind(fd, (const struct sockaddr *)&at, sizeof(at)) || listen(fd, PEERS))
		bench_die("far floor: port %u: %s", f->port, strerror(errno));
	return fd;
}

static void secure(struct server *s, const struct hc_tls *tls, struct peer *p, bool dialled)
{
	const int on = 1;

	p->ssl = hc_tls_open(tls, dialled, &p->side);
	if (!p->ssl || !SSL_set_fd(p->ssl, p->fd) ||
	    (dialled ? SSL_connect(p->ssl) : SSL_accept(p->ssl)) != 1)
		bench_die("far floor: no TLS");
	setsockopt(p->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	fcntl(p->fd, F_SETFL, O_NONBLOCK);
	watch(s, p->fd);
}

static void connect_servers(struct server *s, int listener)
{
	static const uint8_t key[HC_KEY_BYTES] = {1};
	const struct sockaddr_in to = address(s->f, 0);
	struct hc_tls *tls;
	struct peer *p;

	if (hc_tls_new("floor", key, &tls))
		bench_die("far floor: no TLS 1.3");
	s->npeers = s->node ? 1 : s->f->nodes - 1;
	for (p = s->peer; p < s->peer + s->npeers; p++) {
		if (s->node) {
			p->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
			if (p->fd < 0 || connect(p->fd, (const struct sockaddr *)&to, sizeof(to)))
				bench_die("far floor: connect: %s", strerror(errno));
		} else {
			p->fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
			if (p->fd < 0)
				bench_die("far floor: accept: %s", strerror(errno));
		}
		secure(s, tls, p, s->node != 0);
	}
}

_Noreturn static void serve(const struct farfloor *f, unsigned node, int ranks, int servers)
{
	static struct server s;
	unsigned i;

	bench_pin(f->cpu[node]);
	s.f = f;
	s.node = node;
	s.epoll = epoll_create1(EPOLL_CLOEXEC);
	writer_open(&s.w, f->db[node], f->row_bytes);
	writer_start(&s.w);
	watch(&s, s.w.done);
	connect_servers(&s, servers);
	for (i = 0; i < f->ranks; i++) {
		s.fd[i] = accept4(ranks, NULL, NULL, SOCK_CLOEXEC);
		if (s.fd[i] < 0)
			bench_die("far floor: accept: %s", strerror(errno));
		watch(&s, s.fd[i]);
	}
	loop(&s);
}

static void rank_setup(void *ctx, unsigned rank)
{
	struct farfloor *f = ctx;

	rank_fd = floor_connect_unix(f->path[rank / f->ranks], SOCK_SEQPACKET);
	if (rank_fd < 0)
		bench_die("far floor: rank %u: %s", rank, strerror(-rank_fd));
	memset(buf, (int)rank, sizeof(buf));
}

static void rank_create(void *ctx, unsigned rank, uint64_t turn)
{
	const struct farfloor *f = ctx;

	memcpy(buf, &turn, sizeof(turn));
	if (send(rank_fd, buf, f->request_bytes, MSG_NOSIGNAL) != (ssize_t)f->request_bytes ||
	    recv(rank_fd, buf, sizeof(buf), 0) != (ssize_t)f->answer_bytes)
		bench_die("far floor: rank %u: %s", rank, strerror(errno));
}

void farfloor_start(struct farfloor *f, const char *dir)
{
	const struct team_steps steps = {.ctx = f, .setup = rank_setup, .timed = rank_create};
	int tcp = listen_tcp(f), listener[FARFLOOR_NODES_MAX], cpus[TEAM_RANKS_MAX];
	unsigned i;

	for (i = 0; i < f->nodes; i++) {
		snprintf(f->path[i], sizeof(f->path[i]), "%s/far%u-%u.sock", dir, f->port, i);
		snprintf(f->db[i], sizeof(f->db[i]), "%s/far%u-%u.db", dir, f->port, i);
		listener[i] = floor_listen_unix(f->path[i], SOCK_SEQPACKET);
	}
	for (i = 0; i < f->nodes; i++) {
		f->server[i] = bench_fork();
		if (!f->server[i])
			serve(f, i, listener[i], tcp);
	}
	close(tcp);
	for (i = 0; i < f->nodes; i++)
		close(listener[i]);
	for (i = 0; i < f->nodes * f->ranks; i++)
		cpus[i] = f->cpu[i / f->ranks];
	team_start(&f->team, f->nodes * f->ranks, cpus, f->nodes * f->ranks, &steps);
}

uint64_t farfloor_turn(struct farfloor *f)
{
	return team_turn(&f->team);
}

void farfloor_stop(struct farfloor *f)
{
	unsigned i;

	team_stop(&f->team);
	for (i = 0; i < f->nodes; i++) {
		bench_kill(f->server[i]);
		unlink(f->path[i]);
	}
}
