/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon's socket without the library; see raw.h. */
#include "raw.h"
#include "pages.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { RAW_MS = 10000 };

int hc_raw_connect(const char *path)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (fd < 0 || strlen(path) >= sizeof(a.sun_path))
		hc_fail("no socket for %s", path);
	memcpy(a.sun_path, path, strlen(path));
	if (connect(fd, (struct sockaddr *)&a, sizeof(a)))
		hc_fail("connect %s: %s", path, strerror(errno));
	return fd;
}

bool hc_raw_send(int fd, const void *bytes, size_t n)
{
	return send(fd, bytes, n, MSG_NOSIGNAL) == (ssize_t)n;
}

bool hc_raw_send_fd(int fd, const void *bytes, size_t n, int pass)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	char copy[4096];
	struct iovec iov = {.iov_base = copy, .iov_len = n};
	struct msghdr m = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = control.bytes,
			   .msg_controllen = sizeof(control.bytes)};
	struct cmsghdr *h;

	hc_want(n <= sizeof(copy));
	memcpy(copy, bytes, n);
	memset(&control, 0, sizeof(control));
	h = CMSG_FIRSTHDR(&m);
	h->cmsg_level = SOL_SOCKET;
	h->cmsg_type = SCM_RIGHTS;
	h->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(h), &pass, sizeof(int));
	return sendmsg(fd, &m, MSG_NOSIGNAL) == (ssize_t)n;
}

bool hc_raw_carry(int fd)
{
	uint8_t frame[64];
	size_t n = hc_raw_frame(frame, sizeof(frame), &hc_desc_carry, 0,
				&(struct hc_m_carry){.packets = 1});

	return hc_raw_send(fd, frame, n);
}

size_t hc_raw_frame(uint8_t *buf, size_t cap, const struct hc_desc *d, uint32_t id, const void *msg)
{
	size_t len;

	if (hc_frame_write(buf, cap, d, HC_PROTO_MIN, id, 0, msg, &len))
		hc_fail("message %s does not encode", d->name);
	return len;
}

static struct hc_raw_kept *all_kept;

void hc_raw_keep(struct hc_raw_kept *kept)
{
	all_kept = kept;
}

static void keep_or_close(int fd)
{
	if (all_kept && all_kept->count < sizeof(all_kept->fd) / sizeof(all_kept->fd[0]))
		all_kept->fd[all_kept->count++] = fd;
	else
		close(fd);
}

/* Closed, but for the first one when `keep` is wanted. */
static void drop_fds(struct msghdr *m, int *keep)
{
	struct cmsghdr *h;
	size_t i, n;
	int fd;

	for (h = CMSG_FIRSTHDR(m); h; h = CMSG_NXTHDR(m, h)) {
		n = (h->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (i = 0; h->cmsg_type == SCM_RIGHTS && i < n; i++) {
			memcpy(&fd, CMSG_DATA(h) + i * sizeof(int), sizeof(int));
			if (keep && *keep < 0)
				*keep = fd;
			else
				keep_or_close(fd);
		}
	}
}

/* Bytes of the next packet; 0: closed. */
static size_t recv_packet(int fd, uint8_t *buf, int *keep)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	struct iovec iov = {.iov_base = buf, .iov_len = HC_PACKET_MAX};
	union {
		char bytes[256];
		struct cmsghdr align;
	} control;
	struct msghdr m = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = control.bytes,
			   .msg_controllen = sizeof(control.bytes)};
	ssize_t n;

	if (poll(&p, 1, (int)hc_patience(RAW_MS)) != 1)
		hc_fail("the daemon neither answers nor closes");
	n = recvmsg(fd, &m, MSG_CMSG_CLOEXEC);
	if (n <= 0)
		return 0;
	drop_fds(&m, keep);
	return (size_t)n;
}

static void next_frame(const uint8_t **at, size_t *left, struct hc_frame *f)
{
	if (hc_frame_next(at, left, f))
		hc_fail("the daemon sent %zu bytes that are no frame", *left);
}

bool hc_raw_recv(int fd, uint8_t *buf, struct hc_frame *f)
{
	size_t left = recv_packet(fd, buf, NULL);
	const uint8_t *at = buf;

	if (left)
		next_frame(&at, &left, f);
	return at != buf;
}

static bool ask(int fd, const struct hc_desc *d, uint32_t id, const void *msg, int pass,
		uint8_t *buf, struct hc_frame *f, int *keep)
{
	static uint8_t out[HC_PACKET_MAX];
	size_t n = hc_raw_frame(out, sizeof(out), d, id, msg);

	if (pass >= 0 ? !hc_raw_carry(fd) || !hc_raw_send_fd(fd, out, n, pass)
		      : !hc_raw_send(fd, out, n))
		return false;
	while ((n = recv_packet(fd, buf, keep))) {
		const uint8_t *at = buf;

		while (n) {
			next_frame(&at, &n, f);
			if (f->head.id == id)
				return true;
		}
	}
	return false;
}

bool hc_raw_ask(int fd, const struct hc_desc *d, uint32_t id, const void *msg, uint8_t *buf,
		struct hc_frame *f)
{
	return ask(fd, d, id, msg, -1, buf, f, NULL);
}

bool hc_raw_ask_fd(int fd, const struct hc_desc *d, uint32_t id, const void *msg, int pass,
		   uint8_t *buf, struct hc_frame *f)
{
	return ask(fd, d, id, msg, pass, buf, f, NULL);
}

/* Greeted; the arena that came, if any. */
static int greeted(const char *path, int *arena)
{
	const struct hc_m_hello hello = {
		.proto_min = HC_PROTO_MIN, .proto_max = HC_PROTO_MAX, .build = hc_str("raw")};
	static uint8_t buf[HC_PACKET_MAX];
	int fd = hc_raw_connect(path);
	struct hc_frame f;

	*arena = -1;
	if (!ask(fd, &hc_desc_hello, 1, &hello, -1, buf, &f, arena) ||
	    f.head.type != HC_MSG_hello_r)
		hc_fail("a good hello was not answered");
	return fd;
}

int hc_raw_session_unproved(const char *path)
{
	int arena, fd = greeted(path, &arena);

	close(arena);
	return fd;
}

int hc_raw_session(const char *path)
{
	const size_t bytes = (HC_NONCE_BLOCK + 1) * sizeof(struct hc_page_block);
	int arena, fd = greeted(path, &arena);
	struct hc_page_block *b;

	b = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, arena, 0);
	if (b == MAP_FAILED)
		hc_fail("the arena cannot be mapped: %s", strerror(errno));
	b[HC_NONCE_BLOCK].head.nonce = ~b[HC_NONCE_BLOCK].head.nonce;
	munmap(b, bytes);
	close(arena);
	return fd;
}

void hc_raw_want_closed(int fd)
{
	static uint8_t buf[HC_PACKET_MAX];
	struct hc_frame f;

	while (hc_raw_recv(fd, buf, &f)) /* a last word is allowed */
		;
}

void hc_raw_want_alive(int fd)
{
	const struct hc_m_ping ping = {.value = UINT64_C(0x1234567812345678)};
	static uint8_t buf[HC_PACKET_MAX];
	struct hc_m_done m;
	struct hc_frame f;

	if (!hc_raw_ask(fd, &hc_desc_ping, 77, &ping, buf, &f))
		hc_fail("the daemon closed a good connection");
	if (f.head.type != HC_MSG_done ||
	    hc_decode(&hc_desc_done, HC_PROTO_MIN, f.body, f.body_len, &m) || m.value != ping.value)
		hc_fail("ping was answered by message %u", f.head.type);
}

/* ---- the daemon from outside ---- */

int hc_raw_daemon(struct hc_run *r, const struct hc_node *n, unsigned deadline_ms)
{
	char program[1200], option[] = "--config", conf[200];
	char *argv[] = {program, option, conf, NULL};

	snprintf(conf, sizeof(conf), "%s", n->conf);
	hc_program("hcommd", program, sizeof(program));
	return hc_run(r, deadline_ms, argv);
}

unsigned hc_proc_fds(pid_t pid)
{
	char path[64];
	struct dirent *e;
	unsigned n = 0;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	d = opendir(path);
	if (!d)
		hc_fail("%s: %s", path, strerror(errno));
	while ((e = readdir(d)))
		n += e->d_name[0] != '.';
	closedir(d);
	return n;
}

unsigned long hc_proc_kib(pid_t pid, const char *line)
{
	char path[64], *text, *at;
	unsigned long kib;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	text = hc_read_file(path);
	at = text ? strstr(text, line) : NULL;
	if (!at)
		hc_fail("%s has no %s", path, line);
	kib = strtoul(at + strlen(line) + 1, NULL, 10);
	free(text);
	return kib;
}

uint64_t hc_proc_cpu_ms(pid_t pid)
{
	unsigned long long user, system;
	char path[64], *text, *at;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	text = hc_read_file(path);
	at = text ? strrchr(text, ')') : NULL;
	if (!at || sscanf(at + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu", &user,
			  &system) != 2)
		hc_fail("%s cannot be read", path);
	free(text);
	return (user + system) * 1000u / (unsigned long)sysconf(_SC_CLK_TCK);
}

unsigned hc_log_count(const struct hc_node *n, const char *text)
{
	char *log = hc_read_file(n->log), *at = log;
	unsigned count = 0;

	while (at && (at = strstr(at, text))) {
		count++;
		at += strlen(text);
	}
	free(log);
	return count;
}

unsigned long hc_growth_kib(unsigned long plain)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	return plain + 262144;
#else
	return plain;
#endif
}
