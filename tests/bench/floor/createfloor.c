/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server is a level-triggered epoll loop over the ranks' sockets and the writer's eventfd,
 * in one process with the writer thread, all bound to one processor as the daemon is.
 */
#include "createfloor.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rawecho.h"
#include "writer.h"

static uint8_t buf[RAWECHO_MESSAGE_MAX];
static int rank_fd = -1;

static void watch(int epoll, int fd)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.fd = fd};

	if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &ev))
		bench_die("create floor: epoll_ctl: %s", strerror(errno));
}

static void answer_all(const struct createfloor *f, const int *fd)
{
	unsigned i;

	for (i = 0; i < f->ranks; i++)
		if (send(fd[i], buf, f->answer_bytes, MSG_NOSIGNAL) < 0)
			bench_die("create floor: send: %s", strerror(errno));
}

_Noreturn static void loop(struct createfloor *f, struct writer *w, int epoll, const int *fd)
{
	struct epoll_event ev[TEAM_RANKS_MAX + 1];
	unsigned here = 0;
	int i, n;

	for (;;) {
		n = epoll_wait(epoll, ev, TEAM_RANKS_MAX + 1, -1);
		for (i = 0; i < n; i++) {
			if (ev[i].data.fd == w->done) {
				writer_finish(w);
				answer_all(f, fd);
				continue;
			}
			if (recv(ev[i].data.fd, buf, sizeof(buf), 0) <= 0)
				_exit(0);
			if (++here < f->ranks)
				continue;
			here = 0;
			memcpy(w->row, buf,
			       w->row_bytes < sizeof(buf) ? w->row_bytes : sizeof(buf));
			writer_submit(w);
		}
	}
}

_Noreturn static void serve(struct createfloor *f, int listener)
{
	int epoll = epoll_create1(EPOLL_CLOEXEC);
	int fd[TEAM_RANKS_MAX];
	struct writer w;
	unsigned i;

	bench_pin(f->server_cpu);
	writer_open(&w, f->db, f->row_bytes);
	writer_start(&w);
	watch(epoll, w.done);
	for (i = 0; i < f->ranks; i++) {
		fd[i] = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		if (fd[i] < 0)
			bench_die("create floor: accept: %s", strerror(errno));
		watch(epoll, fd[i]);
	}
	loop(f, &w, epoll, fd);
}

static void rank_setup(void *ctx, unsigned rank)
{
	struct createfloor *f = ctx;

	rank_fd = floor_connect_unix(f->path, SOCK_SEQPACKET);
	if (rank_fd < 0)
		bench_die("create floor: rank %u: %s", rank, strerror(-rank_fd));
	memset(buf, (int)rank, sizeof(buf));
}

static void rank_create(void *ctx, unsigned rank, uint64_t turn)
{
	const struct createfloor *f = ctx;

	memcpy(buf, &turn, sizeof(turn));
	if (send(rank_fd, buf, f->request_bytes, MSG_NOSIGNAL) != (ssize_t)f->request_bytes ||
	    recv(rank_fd, buf, sizeof(buf), 0) != (ssize_t)f->answer_bytes)
		bench_die("create floor: rank %u: %s", rank, strerror(errno));
}

void createfloor_start(struct createfloor *f, const char *dir, const int *rank_cpus, unsigned ncpus)
{
	struct team_steps steps = {.ctx = f, .setup = rank_setup, .timed = rank_create};
	int listener;

	if (f->request_bytes > sizeof(buf) || f->answer_bytes > sizeof(buf) ||
	    f->request_bytes < sizeof(uint64_t) || !f->answer_bytes)
		bench_die("create floor: messages of %zu and %zu bytes are not to be had",
			  f->request_bytes, f->answer_bytes);
	snprintf(f->path, sizeof(f->path), "%s/create.sock", dir);
	snprintf(f->db, sizeof(f->db), "%s/create.db", dir);
	listener = floor_listen_unix(f->path, SOCK_SEQPACKET);
	f->server = bench_fork();
	if (!f->server)
		serve(f, listener);
	close(listener);
	team_start(&f->team, f->ranks, rank_cpus, ncpus, &steps);
}

uint64_t createfloor_turn(struct createfloor *f)
{
	return team_turn(&f->team);
}

void createfloor_stop(struct createfloor *f)
{
	team_stop(&f->team);
	bench_kill(f->server);
	unlink(f->path);
}
