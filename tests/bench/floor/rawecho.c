/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server is level-triggered epoll with one recv and one send for each packet. That was also
 * the best of what was tried on such sockets: edge triggering needs a second recv to see EAGAIN.
 * The listening socket is made before the fork, so a client may connect at once and nobody waits
 * for a server to come up.
 */
#include "rawecho.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { EVENTS = 64 };

static uint8_t in[LOADGEN_BURST_MAX];
static uint8_t out[LOADGEN_BURST_MAX];

static void set_address(struct sockaddr_un *a, const char *path)
{
	*a = (struct sockaddr_un){.sun_family = AF_UNIX};
	if (strlen(path) >= sizeof(a->sun_path))
		bench_die("%s is too long for a socket", path);
	memcpy(a->sun_path, path, strlen(path));
}

int floor_connect_unix(const char *path, int type)
{
	struct sockaddr_un a;
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	set_address(&a, path);
	if (!connect(fd, (struct sockaddr *)&a, sizeof(a)))
		return fd;
	close(fd);
	return -errno;
}

int floor_listen_unix(const char *path, int type)
{
	struct sockaddr_un a;
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);

	set_address(&a, path);
	if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof(a)) || listen(fd, 1024))
		bench_die("cannot listen on %s: %s", path, strerror(errno));
	return fd;
}

static void watch(int epoll, int fd)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.fd = fd};

	if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &ev))
		bench_die("echo: epoll_ctl: %s", strerror(errno));
}

static void echo(const struct rawecho *e, int fd)
{
	ssize_t n = recv(fd, in, sizeof(in), 0);
	size_t bytes;

	if (n <= 0) {
		close(fd);
		return;
	}
	bytes = (size_t)n / e->request_bytes * e->answer_bytes;
	if (!bytes || bytes > sizeof(out) || (size_t)n % e->request_bytes)
		bench_die("echo: a packet of %zd bytes for requests of %zu", n, e->request_bytes);
	if (send(fd, out, bytes, MSG_NOSIGNAL) < 0)
		close(fd);
}

_Noreturn static void serve(const struct rawecho *e, int listener)
{
	struct epoll_event ev[EVENTS];
	int epoll = epoll_create1(EPOLL_CLOEXEC);
	int i, n, fd;

	watch(epoll, listener);
	for (;;) {
		n = epoll_wait(epoll, ev, EVENTS, -1);
		for (i = 0; i < n; i++) {
			if (ev[i].data.fd != listener) {
				echo(e, ev[i].data.fd);
				continue;
			}
			fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
			if (fd >= 0)
				watch(epoll, fd);
		}
	}
}

void rawecho_start(struct rawecho *e, const char *path, size_t request_bytes, size_t answer_bytes,
		   int cpu)
{
	int listener;

	if (!request_bytes || !answer_bytes || request_bytes > RAWECHO_MESSAGE_MAX ||
	    answer_bytes > RAWECHO_MESSAGE_MAX)
		bench_die("echo of %zu and %zu bytes is not to be had", request_bytes,
			  answer_bytes);
	*e = (struct rawecho){.request_bytes = request_bytes, .answer_bytes = answer_bytes};
	snprintf(e->path, sizeof(e->path), "%s", path);
	listener = floor_listen_unix(e->path, SOCK_SEQPACKET);
	e->pid = bench_fork();
	if (!e->pid) {
		bench_pin(cpu);
		serve(e, listener);
	}
	close(listener);
}

void rawecho_stop(struct rawecho *e)
{
	bench_kill(e->pid);
	unlink(e->path);
	e->pid = 0;
}

static int target_connect(void *ctx)
{
	const struct rawecho *e = ctx;

	return floor_connect_unix(e->path, SOCK_SEQPACKET);
}

static size_t target_burst(void *ctx, uint32_t first_id, unsigned count, uint8_t *to, size_t room)
{
	const struct rawecho *e = ctx;
	unsigned i;

	if (e->request_bytes * count > room)
		bench_die("echo: %u requests do not fit in one packet", count);
	/* every request gets an id, as a real one does */
	for (i = 0; i < count; i++, first_id++)
		memcpy(to + i * e->request_bytes, &first_id,
		       e->request_bytes < sizeof(first_id) ? e->request_bytes : sizeof(first_id));
	return e->request_bytes * count;
}

static unsigned target_answers(void *ctx, const uint8_t *from, size_t bytes, size_t *consumed)
{
	const struct rawecho *e = ctx;

	(void)from;
	*consumed = bytes - bytes % e->answer_bytes;
	return (unsigned)(bytes / e->answer_bytes);
}

void rawecho_target(struct rawecho *e, struct loadgen_target *target)
{
	*target = (struct loadgen_target){.name = "raw echo",
					  .ctx = e,
					  .connect = target_connect,
					  .burst = target_burst,
					  .answers = target_answers};
}
