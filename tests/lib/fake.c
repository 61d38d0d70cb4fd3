/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon of fake.h: one thread, poll over its connections, a packet at a time.
 *
 * fake_good is a daemon in a nutshell for the tests of the library alone: it grants what it is
 * asked, one seat at a time, and gives each domain the next slot.
 */
#include "fake.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { CONNS_MAX = 64 };

#define SLAB_BYTES   ((size_t)HC_SLAB_RECORDS * HC_RECORD_BYTES)
#define STATUS_BYTES ((size_t)HC_STATUS_SLAB * HC_REGISTER_BYTES)

/* ---- answers ---- */

static bool send_with(int fd, const void *bytes, size_t n, int pass)
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	char copy[HC_PACKET_MAX];
	struct iovec iov = {copy, n};
	struct msghdr h = {.msg_iov = &iov, .msg_iovlen = 1};

	if (n > sizeof(copy))
		hc_fail("a packet of %zu bytes", n);
	memcpy(copy, bytes, n);
	if (pass >= 0) {
		memset(&control, 0, sizeof(control));
		control.align.cmsg_level = SOL_SOCKET;
		control.align.cmsg_type = SCM_RIGHTS;
		control.align.cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(&control.align), &pass, sizeof(int));
		h.msg_control = control.room;
		h.msg_controllen = sizeof(control.room);
	}
	return sendmsg(fd, &h, MSG_NOSIGNAL) == (ssize_t)n;
}

bool fake_raw(struct fake_conn *c, const void *bytes, size_t n)
{
	return send_with(c->fd, bytes, n, -1);
}

static bool reply(struct fake_conn *c, uint32_t id, int32_t status, const struct hc_desc *d,
		  const void *msg, int pass)
{
	static uint8_t buf[HC_PACKET_MAX];
	size_t len;

	if (hc_frame_write(buf, sizeof(buf), d, 1, id, status, msg, &len))
		hc_fail("%s cannot be written", d->name);
	return send_with(c->fd, buf, len, pass);
}

bool fake_reply(struct fake_conn *c, const struct hc_frame *f, const struct hc_desc *d,
		const void *msg, int pass)
{
	return reply(c, f->head.id, 0, d, msg, pass);
}

bool fake_done(struct fake_conn *c, const struct hc_frame *f, uint64_t value, const char *text)
{
	struct hc_m_done m = {.value = value, .text = hc_str(text)};

	return fake_reply(c, f, &hc_desc_done, &m, -1);
}

bool fake_error(struct fake_conn *c, const struct hc_frame *f, int outcome, const char *text,
		uint32_t retry_after_ms)
{
	struct hc_m_error m = {.retry_after_ms = retry_after_ms, .text = hc_str(text)};

	return reply(c, f->head.id, -outcome, &hc_desc_error, &m, -1);
}

bool fake_event(struct fake_conn *c, const struct hc_m_event *e)
{
	return reply(c, 0, 0, &hc_desc_event, e, -1);
}

bool fake_notice(struct fake_conn *c, const struct hc_desc *d, const void *msg, int pass)
{
	return reply(c, 0, 0, d, msg, pass);
}

static int make_memfd(size_t bytes, void **map)
{
	int fd = memfd_create("fake", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 || ftruncate(fd, (off_t)bytes) ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW))
		hc_fail("memfd: %s", strerror(errno));
	*map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (*map == MAP_FAILED)
		hc_fail("mmap: %s", strerror(errno));
	return fd;
}

bool fake_hello(struct fake_conn *c, const struct hc_frame *f, uint16_t proto)
{
	struct hc_m_hello_r m = {.proto = proto,
				 .start = FAKE_START,
				 .session = c->number,
				 .incarnation = 3,
				 .node_name = hc_str("fake"),
				 .build = hc_str("9.8.7"),
				 .blocks = FAKE_BLOCKS,
				 .uid = (uint32_t)getuid(),
				 .role = HC_W_role_ADMIN,
				 .connect_timeout_ms = 5000};
	void *map;
	int arena = make_memfd((size_t)FAKE_BLOCKS * HC_BLOCK_BYTES, &map);
	bool ok = fake_reply(c, f, &hc_desc_hello_r, &m, arena);

	c->arena = map;
	close(arena);
	return ok;
}

bool fake_joined(struct fake_conn *c, const struct hc_frame *f, uint64_t id, uint32_t nranks,
		 uint32_t rank, uint32_t slot)
{
	struct hc_page_record *r = &c->fake->slab[slot];
	struct hc_m_joined m = {.id = id,
				.epoch = 1,
				.name = hc_str("of-the-fake"),
				.nranks = nranks,
				.slot = slot,
				.tag = HC_TAG(1, 1),
				.slab_sent = !c->slab_sent};
	struct hc_m_seat seat = {.rank = rank, .device = rank, .block = slot % FAKE_BLOCKS};
	uint8_t seats[64];
	bool sent = c->slab_sent;

	hc_want(!hc_arr_put(&m.seats, seats, sizeof(seats), &hc_desc_seat, 1, &seat));
	r->id = id;
	r->nranks = nranks;
	r->epoch = 1;
	r->number = 4;
	r->gate = HC_GATE(FAKE_START, m.tag, HC_W_domain_state_ACTIVE);
	c->slab_sent = true;
	return fake_reply(c, f, &hc_desc_joined, &m, sent ? -1 : c->fake->slab_fd);
}

/* ---- a good one ---- */

static bool good_join(struct fake_conn *c, const struct hc_frame *f)
{
	static uint32_t slot;
	struct hc_m_join_root root;
	struct hc_m_attach attach;
	struct hc_m_sub sub;
	uint32_t nranks = 2, rank = 0;

	if (f->head.type == HC_MSG_join_root) {
		hc_want(!hc_decode(&hc_desc_join_root, 1, f->body, f->body_len, &root));
		nranks = root.nranks;
		rank = root.rank;
	} else if (f->head.type == HC_MSG_attach) {
		hc_want(!hc_decode(&hc_desc_attach, 1, f->body, f->body_len, &attach));
		nranks = attach.rank + 1;
		rank = attach.rank;
	} else if (f->head.type == HC_MSG_sub) {
		hc_want(!hc_decode(&hc_desc_sub, 1, f->body, f->body_len, &sub));
		nranks = sub.ranks.count;
	}
	slot++;
	return fake_joined(c, f, 0x1000u + slot, nranks, rank, slot);
}

static bool good_split(struct fake_conn *c, const struct hc_frame *f)
{
	struct hc_m_split m;
	struct hc_m_split_r r = {.sub_id = 5};
	struct hc_m_rank rank = {.rank = 0};
	uint8_t ranks[16];

	hc_want(!hc_decode(&hc_desc_split, 1, f->body, f->body_len, &m));
	if (m.color >= 0)
		hc_want(!hc_arr_put(&r.ranks, ranks, sizeof(ranks), &hc_desc_rank, 1, &rank));
	return fake_reply(c, f, &hc_desc_split_r, &r, -1);
}

bool fake_good(struct fake_conn *c, const struct hc_frame *f, int got, void *arg)
{
	struct hc_m_root_info_r root = {.info = hc_str("the block of the fake")};
	struct hc_m_ping ping;

	(void)got;
	(void)arg;
	switch (f->head.type) {
	case HC_MSG_ping:
		hc_want(!hc_decode(&hc_desc_ping, 1, f->body, f->body_len, &ping));
		return fake_done(c, f, ping.value, "");
	case HC_MSG_root_info: return fake_reply(c, f, &hc_desc_root_info_r, &root, -1);
	case HC_MSG_join_root:
	case HC_MSG_join_table:
	case HC_MSG_join_local:
	case HC_MSG_attach:
	case HC_MSG_sub: return good_join(c, f);
	case HC_MSG_split: return good_split(c, f);
	case HC_MSG_carry:
	case HC_MSG_ops_ended: return true;
	case HC_MSG_channel_want:
	case HC_MSG_channel_open:
	case HC_MSG_channel_release: return fake_channel(c, f);
	default: return fake_done(c, f, 1, "");
	}
}

/* ---- the process ---- */

static bool serve_packet(struct fake_conn *c)
{
	static uint8_t buf[HC_PACKET_MAX];
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(4 * sizeof(int))];
	} control;
	struct iovec iov = {buf, sizeof(buf)};
	struct msghdr h = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = control.room,
			   .msg_controllen = sizeof(control.room)};
	ssize_t n = recvmsg(c->fd, &h, MSG_CMSG_CLOEXEC);
	const uint8_t *packet = buf;
	size_t left = n > 0 ? (size_t)n : 0;
	struct hc_frame f;
	bool on = n > 0;
	int got = -1;

	if (on && CMSG_FIRSTHDR(&h))
		memcpy(&got, CMSG_DATA(CMSG_FIRSTHDR(&h)), sizeof(int));
	while (on && left && !hc_frame_next(&packet, &left, &f)) {
		if (f.head.type == HC_MSG_hello && !c->fake->own_hello)
			on = fake_hello(c, &f, 1);
		else
			on = c->fake->fn(c, &f, got, c->fake->arg);
	}
	if (got >= 0)
		close(got);
	return on;
}

static int serve(void *arg, int in, int out)
{
	struct fake *f = arg;
	struct pollfd p[CONNS_MAX + 1] = {{.fd = f->listener, .events = POLLIN}};
	static struct fake_conn conns[CONNS_MAX + 1];
	unsigned i, n = 1;

	(void)in;
	(void)out;
	for (;;) {
		if (poll(p, n, -1) < 0)
			return 1;
		for (i = 1; i < n; i++) {
			if (p[i].fd < 0 || !p[i].revents || serve_packet(&conns[i]))
				continue;
			close(p[i].fd);
			p[i].fd = -1;
		}
		if (!p[0].revents || n > CONNS_MAX)
			continue;
		p[n] = (struct pollfd){.fd = accept4(f->listener, NULL, NULL, SOCK_CLOEXEC),
				       .events = POLLIN};
		conns[n] = (struct fake_conn){.fd = p[n].fd, .number = n, .fake = f};
		n++;
	}
}

static void open_listener(struct fake *f)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};

	unlink(f->socket);
	memcpy(a.sun_path, f->socket, strlen(f->socket));
	f->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (f->listener < 0 || bind(f->listener, (struct sockaddr *)&a, sizeof(a)) ||
	    listen(f->listener, 64))
		hc_fail("%s: %s", f->socket, strerror(errno));
}

void fake_listen(struct fake *f)
{
	memset(f, 0, sizeof(*f));
	hc_tempdir(f->dir, sizeof(f->dir));
	snprintf(f->socket, sizeof(f->socket), "%s/sock", f->dir);
	setenv("HCOMM_SOCKET", f->socket, 1);
	open_listener(f);
}

void fake_start(struct fake *f, fake_fn fn, void *arg)
{
	bool own_hello = f->own_hello;
	void *map;

	fake_listen(f);
	f->own_hello = own_hello;
	f->fn = fn;
	f->arg = arg;
	f->slab_fd = make_memfd(SLAB_BYTES, &map);
	f->slab = map;
	f->registers_fd = make_memfd(STATUS_BYTES, &map);
	f->registers = map;
	hc_spawn(&f->child, serve, f);
	close(f->listener);
	f->listener = -1;
}

void fake_kill(struct fake *f)
{
	hc_child_kill(&f->child);
}

void fake_again(struct fake *f)
{
	open_listener(f);
	hc_spawn(&f->child, serve, f);
	close(f->listener);
	f->listener = -1;
}

void fake_end(struct fake *f)
{
	if (f->child.pid)
		hc_child_kill(&f->child);
	if (f->listener >= 0)
		close(f->listener);
	if (f->slab) {
		munmap(f->slab, SLAB_BYTES);
		close(f->slab_fd);
		munmap(f->registers, STATUS_BYTES);
		close(f->registers_fd);
	}
	hc_remove_tree(f->dir);
}
