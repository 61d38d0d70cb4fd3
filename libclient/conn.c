/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One connection: socket, hello, packets, descriptors; see client.h. No lock, no session.
 *
 * A request that is alone costs two system calls. So receiving blocks in recvmsg itself, under
 * a receive time-out of a second that is set once and looped up to the deadline; poll comes in
 * only when less than that second is left. Sending never blocks in send: a full queue is
 * rare, and then poll waits with the deadline.
 *
 * Hello carries our own pidfd, so that a daemon in another pid namespace can watch this process.
 * It has a deadline of its own: a socket that accepts and says nothing belongs to a daemon that
 * hangs, and the caller shall hear that and not a general time-out much later.
 */
#include "client.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define FDS_MAX     8
#define HELLO_BYTES 2048u

uint64_t hc_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * HC_SECOND + (uint64_t)t.tv_nsec;
}

uint64_t hc_deadline(uint64_t ms)
{
	uint64_t now = hc_now();

	return ms > (HC_FOREVER - now) / HC_MS ? HC_FOREVER : now + ms * HC_MS;
}

/* Poll one descriptor. True when it is ready, or worth trying again. */
static bool ready(int fd, short events, uint64_t left_ns)
{
	struct pollfd p = {.fd = fd, .events = events};
	struct timespec t = {.tv_sec = (time_t)(left_ns / HC_SECOND),
			     .tv_nsec = (long)(left_ns % HC_SECOND)};
	int r = ppoll(&p, 1, &t, NULL);

	return r > 0 || (r < 0 && errno == EINTR);
}

/* ---- packets ---- */

/* The first descriptor; those that nobody asked for are closed. */
static int take_fds(struct msghdr *h)
{
	int fds[FDS_MAX], first = -1;
	struct cmsghdr *c;
	size_t i, n;

	for (c = CMSG_FIRSTHDR(h); c; c = CMSG_NXTHDR(h, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		if (n > FDS_MAX)
			n = FDS_MAX;
		memcpy(fds, CMSG_DATA(c), n * sizeof(int));
		for (i = 0; i < n; i++) {
			if (first < 0)
				first = fds[i];
			else
				close(fds[i]);
		}
	}
	return first;
}

static ssize_t receive(int fd, uint8_t *buf, size_t cap, int flags, int *got)
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(FDS_MAX * sizeof(int))];
	} control;
	struct iovec iov = {buf, cap};
	struct msghdr h = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = control.room,
			   .msg_controllen = sizeof(control.room)};
	ssize_t n = recvmsg(fd, &h, flags | MSG_CMSG_CLOEXEC);

	*got = -1;
	if (n < 0)
		return n;
	if (h.msg_controllen)
		*got = take_fds(&h);
	/* no daemon of ours sends more than the buffer holds; nothing is left of such a packet */
	if (h.msg_flags & MSG_TRUNC)
		return 0;
	return n;
}

int hc_conn_recv(int fd, uint8_t *buf, size_t cap, uint64_t deadline, int *got)
{
	uint64_t now = deadline && deadline != HC_FOREVER ? hc_now() : 0;
	ssize_t n;
	int flags;

	for (;;) {
		flags = 0;
		if (deadline < now + HC_SECOND) {
			flags = MSG_DONTWAIT;
			if (deadline > now && !ready(fd, POLLIN, deadline - now))
				return -HC_E_TIMEOUT;
		}
		n = receive(fd, buf, cap, flags, got);
		if (n >= 0)
			return (int)n;
		if (errno != EAGAIN && errno != EINTR)
			return 0; /* reset: as good as closed */
		if (!deadline)
			return -HC_E_TIMEOUT;
		now = hc_now();
		if (now >= deadline)
			return -HC_E_TIMEOUT;
	}
}

int hc_conn_recv_plain(int fd, uint8_t *buf, size_t cap)
{
	ssize_t n = recv(fd, buf, cap, 0);

	if (n >= 0)
		return (int)n;
	return errno == EAGAIN || errno == EINTR ? -HC_E_AGAIN : 0;
}

static ssize_t transmit(int fd, const uint8_t *buf, size_t len, const int *pass, size_t n)
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(2 * sizeof(int))];
	} control;
	union {
		const uint8_t *from;
		void *to;
	} bytes = {.from = buf}; /* iovec has no const */
	struct iovec iov = {bytes.to, len};
	struct msghdr h = {.msg_iov = &iov, .msg_iovlen = 1};

	if (!n)
		return send(fd, buf, len, MSG_NOSIGNAL | MSG_DONTWAIT);
	memset(&control, 0, sizeof(control));
	control.align.cmsg_level = SOL_SOCKET;
	control.align.cmsg_type = SCM_RIGHTS;
	control.align.cmsg_len = CMSG_LEN(n * sizeof(int));
	memcpy(CMSG_DATA(&control.align), pass, n * sizeof(int));
	h.msg_control = control.room;
	h.msg_controllen = CMSG_SPACE(n * sizeof(int));
	return sendmsg(fd, &h, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static int send_all(int fd, const uint8_t *buf, size_t len, const int *pass, size_t n,
		    uint64_t deadline)
{
	uint64_t now;

	for (;;) {
		if (transmit(fd, buf, len, pass, n) >= 0)
			return 0;
		if (errno == EPIPE || errno == ECONNRESET || errno == ENOTCONN)
			return HC_E_PEER_CLOSED;
		if (errno != EAGAIN && errno != EINTR)
			return hc_refuse(HC_E_SYSTEM, "sending %zu bytes to hcommd: %s", len,
					 strerror(errno));
		now = hc_now();
		if (now >= deadline || !ready(fd, POLLOUT, deadline - now))
			return hc_refuse(
				HC_E_TIMEOUT,
				"hcommd does not read: its queue for this process is full");
	}
}

int hc_conn_send(int fd, const uint8_t *buf, size_t len, int pass, uint64_t deadline)
{
	return send_all(fd, buf, len, &pass, pass >= 0, deadline);
}

/* ---- connecting ---- */

static int refused(const char *path, int error)
{
	switch (error) {
	case ENOENT:
		return hc_refuse(HC_E_NO_DAEMON,
				 "no hcommd: there is no socket %s; is the service running, is "
				 "HCOMM_SOCKET right?",
				 path);
	case ECONNREFUSED:
		return hc_refuse(HC_E_NO_DAEMON,
				 "no hcommd: nobody listens at %s; is the service running?", path);
	case EACCES:
	case EPERM:
		return hc_refuse(HC_E_PERMISSION,
				 "%s: %s; uid %u has to be in the group of the socket "
				 "(usually hcomm)",
				 path, strerror(error), (unsigned)geteuid());
	case EPROTOTYPE:
	case ENOTSOCK:
		return hc_refuse(HC_E_NO_DAEMON,
				 "%s is no socket of hcommd: %s; wanted: a SOCK_SEQPACKET socket",
				 path, strerror(error));
	default: return hc_refuse(HC_E_SYSTEM, "connecting to %s: %s", path, strerror(error));
	}
}

static int silent(const char *path)
{
	return hc_refuse(
		HC_E_TIMEOUT,
		"the socket %s is there, but hcommd does not answer: it is stopped, starting, "
		"or overloaded",
		path);
}

static int dial(const char *path, uint64_t deadline, int *out)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct timespec pause = {.tv_nsec = 5000000};
	int error;

	if (fd < 0)
		return hc_refuse(HC_E_SYSTEM, "no socket for %s: %s", path, strerror(errno));
	memcpy(a.sun_path, path, strlen(path));
	while (connect(fd, (struct sockaddr *)&a, sizeof(a))) {
		error = errno;
		/* EAGAIN: the queue of the listening socket is full */
		if ((error == EAGAIN || error == EINTR) && hc_now() < deadline) {
			ppoll(NULL, 0, &pause, NULL);
			continue;
		}
		close(fd);
		return error == EAGAIN ? silent(path) : refused(path, error);
	}
	*out = fd;
	return 0;
}

static int set_up(int fd)
{
	struct timeval second = {.tv_sec = 1};
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &second, sizeof(second)))
		return hc_refuse(HC_E_SYSTEM, "setting up the socket: %s", strerror(errno));
	return 0;
}

static int say_hello(int fd, const char *job, bool fence, int arena, uint64_t deadline)
{
	struct hc_m_hello m = {.proto_min = HC_PROTO_MIN,
			       .proto_max = HC_PROTO_MAX,
			       .fence = fence,
			       .flags = arena >= 0,
			       .build = hc_str(HC_VERSION),
			       .job = hc_str(job)};
	uint8_t buf[HELLO_BYTES];
	size_t len;
	int pass[2], self, r;
	size_t n = 0;

	r = hc_frame_write(buf, sizeof(buf), &hc_desc_hello, 1, 1, 0, &m, &len);
	if (r)
		return hc_refuse(r, "hello cannot be written");
	/* without a pidfd (an old kernel, a sandbox) the daemon opens its own by our pid */
	self = (int)syscall(SYS_pidfd_open, getpid(), 0);
	if (self >= 0)
		pass[n++] = self;
	if (arena >= 0)
		pass[n++] = arena;
	r = send_all(fd, buf, len, pass, n, deadline);
	if (self >= 0)
		close(self);
	return r;
}

static int other_version(const char *path, const struct hc_m_hello_r *m)
{
	char build[HC_NAME_MAX + 1];

	hc_str_copy(m->build, build, sizeof(build));
	return hc_refuse(
		HC_E_VERSION,
		"hcommd %s at %s speaks protocol %u, libhcomm %s speaks %u to %u: upgrade %s",
		build, path, m->proto, HC_VERSION, HC_PROTO_MIN, HC_PROTO_MAX,
		m->proto > HC_PROTO_MAX ? "libhcomm" : "hcommd");
}

static int hear_hello(const char *path, uint64_t deadline, struct hc_greeting *g)
{
	uint8_t buf[HELLO_BYTES];
	struct hc_m_error e;
	int n = hc_conn_recv(g->fd, buf, sizeof(buf), deadline, &g->arena), r;

	if (n == -HC_E_TIMEOUT)
		return silent(path);
	if (n == 0)
		return hc_refuse(HC_E_PEER_CLOSED, "hcommd at %s closed the connection in hello",
				 path);
	r = hc_sess_hello(buf, (size_t)n, &g->m, &e);
	if (r == HC_E_MALFORMED)
		return hc_refuse(r,
				 "what answers at %s is no hcommd: %d bytes that are no answer to "
				 "hello",
				 path, n);
	if (r == HC_E_VERSION && !e.text.len)
		return other_version(path, &g->m);
	if (r)
		return hc_refuse_str(r, e.text, e.retry_after_ms);
	hc_str_copy(g->m.node_name, g->node, sizeof(g->node));
	hc_str_copy(g->m.build, g->build, sizeof(g->build));
	g->m.node_name = g->m.build = (struct hc_str){0};
	g->fence = g->m.fence == 1;
	return 0;
}

int hc_conn_open(const char *path, const char *job, bool fence, int arena, uint64_t deadline,
		 struct hc_greeting *g)
{
	int r;

	g->arena = -1;
	r = dial(path, deadline, &g->fd);
	if (r)
		return r;
	r = set_up(g->fd);
	if (!r)
		r = say_hello(g->fd, job, fence, arena, deadline);
	if (r == HC_E_PEER_CLOSED)
		hc_refuse(r, "hcommd at %s closed the connection", path);
	if (!r)
		r = hear_hello(path, deadline, g);
	if (!r)
		return 0;
	if (g->arena >= 0)
		close(g->arena);
	close(g->fd);
	return r;
}

/* ---- the op arena ---- */

int hc_arena_map(int fd, uint32_t blocks, struct hc_arena **arena)
{
	size_t bytes = (size_t)blocks * HC_BLOCK_BYTES;
	const int seals = fcntl(fd, F_GET_SEALS); /* -1: no memfd at all */
	struct hc_arena *a;
	struct stat st;
	void *map;

	/* we write there: a file that could shrink would be a SIGBUS in the host */
	if (fstat(fd, &st) || (uint64_t)st.st_size < bytes || !blocks || seals < 0 ||
	    !(seals & F_SEAL_SHRINK))
		return hc_refuse(HC_E_MALFORMED,
				 "the op arena of hcommd is not a sealed file of %u blocks",
				 blocks);
	a = calloc(1, sizeof(*a));
	if (!a)
		return hc_refuse(HC_E_NO_MEMORY, "no memory for the session");
	map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED) {
		free(a);
		return hc_refuse(HC_E_NO_MEMORY, "mapping the op arena (%zu bytes): %s", bytes,
				 strerror(errno));
	}
	madvise(map, bytes, MADV_DONTFORK);
	a->blocks = map;
	a->count = blocks;
	a->fd = fd;
	a->device = st.st_dev;
	a->inode = st.st_ino;
	*arena = a;
	return 0;
}

bool hc_arena_is(const struct hc_arena *a, int fd)
{
	struct stat st;

	return a && !fstat(fd, &st) && st.st_dev == a->device && st.st_ino == a->inode;
}

void hc_arena_free(struct hc_arena *a, bool mapped)
{
	if (mapped)
		munmap(a->blocks, (size_t)a->count * HC_BLOCK_BYTES);
	if (mapped && a->fd >= 0)
		close(a->fd);
	free(a);
}
