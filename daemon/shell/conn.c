/* SPDX-License-Identifier: Apache-2.0 */
/* Connections; see conn.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "conn.h"

#define CALM_READS 32u

/* ---- packets ---- */

static struct hc_packet *packet_get(struct hc_pool_out *pool, uint32_t len)
{
	uint32_t cap = len > HC_PACKET_SMALL ? len : HC_PACKET_SMALL;
	struct hc_packet *p = pool->free;

	if (p && cap == HC_PACKET_SMALL) {
		pool->free = p->next;
		pool->kept--;
	} else {
		p = malloc(sizeof(*p) + cap);
		if (!p)
			return NULL;
		p->cap = cap;
	}
	p->next = NULL;
	p->len = 0;
	p->fd = -1;
	return p;
}

static void packet_put(struct hc_pool_out *pool, struct hc_packet *p)
{
	if (p->fd >= 0)
		close(p->fd);
	if (p->cap != HC_PACKET_SMALL || pool->kept >= HC_POOL_KEPT) {
		free(p);
		return;
	}
	p->next = pool->free;
	pool->free = p;
	pool->kept++;
}

void hc_pool_out_fini(struct hc_pool_out *pool)
{
	struct hc_packet *p;

	while ((p = pool->free)) {
		pool->free = p->next;
		free(p);
	}
	pool->kept = 0;
}

/* ---- sending ---- */

static struct hc_packet *packet_for(struct hc_conn *c, struct hc_pool_out *pool, uint32_t len,
				    bool fresh)
{
	struct hc_packet *p = c->last;

	if (p && !fresh && p->cap - p->len >= len)
		return p;
	p = packet_get(pool, len);
	if (!p)
		return NULL;
	if (c->last)
		c->last->next = p;
	else
		c->first = p;
	c->last = p;
	return p;
}

static int put(struct hc_conn *c, struct hc_pool_out *pool, const void *frame, uint32_t len, int fd,
	       uint32_t bound)
{
	struct hc_packet *p;

	if (c->queued + len > bound) {
		if (!c->blocked && hc_conn_flush(c, pool))
			return HC_E_LIMIT;
		if (c->queued + len > bound)
			return HC_E_LIMIT;
	}
	p = packet_for(c, pool, len, fd >= 0);
	if (!p)
		return HC_E_NO_MEMORY;
	memcpy(p->bytes + p->len, frame, len);
	p->len += len;
	if (fd >= 0)
		p->fd = fd;
	c->queued += len;
	return 0;
}

int hc_conn_put(struct hc_conn *c, struct hc_pool_out *pool, const void *frame, uint32_t len,
		int fd)
{
	int r = put(c, pool, frame, len, fd, HC_CONN_QUEUE_MAX);

	if (r && fd >= 0)
		close(fd);
	return r;
}

static bool put_marked(struct hc_conn *c, struct hc_pool_out *pool, const uint8_t *frame,
		       size_t len)
{
	uint8_t marked[4096];
	struct hc_m_event m;
	struct hc_frame f;

	if (hc_frame_next(&frame, &len, &f) ||
	    hc_decode(&hc_desc_event, f.head.version, f.body, f.body_len, &m))
		return false;
	m.lost += c->lost;
	if (hc_frame_write(marked, sizeof(marked), &hc_desc_event, f.head.version, 0, 0, &m, &len))
		return false;
	return !put(c, pool, marked, (uint32_t)len, -1, HC_CONN_NOTIFY_MAX);
}

bool hc_conn_put_event(struct hc_conn *c, struct hc_pool_out *pool, const void *frame, uint32_t len)
{
	bool queued;

	if (c->lost)
		queued = put_marked(c, pool, frame, len);
	else
		queued = !put(c, pool, frame, len, -1, HC_CONN_NOTIFY_MAX);
	if (queued) {
		c->lost = 0;
	} else {
		c->lost++;
		c->lost_all++;
	}
	return queued;
}

static ssize_t send_packet(int fd, struct hc_packet *p)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec iov;
	struct msghdr m;
	struct cmsghdr *h;

	if (p->fd < 0)
		return send(fd, p->bytes, p->len, MSG_DONTWAIT | MSG_NOSIGNAL);
	memset(&m, 0, sizeof(m));
	memset(&control, 0, sizeof(control));
	iov.iov_len = p->len;
	iov.iov_base = p->bytes;
	m.msg_iov = &iov;
	m.msg_iovlen = 1;
	m.msg_control = control.bytes;
	m.msg_controllen = sizeof(control.bytes);
	h = CMSG_FIRSTHDR(&m);
	h->cmsg_level = SOL_SOCKET;
	h->cmsg_type = SCM_RIGHTS;
	h->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(h), &p->fd, sizeof(int));
	return sendmsg(fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void set_blocked(struct hc_conn *c, bool blocked)
{
	if (c->blocked == blocked)
		return;
	c->blocked = blocked;
	if (blocked) {
		event_add(&c->out, NULL);
		event_del(&c->in);
	} else {
		event_del(&c->out);
		event_add(&c->in, NULL);
	}
}

int hc_conn_flush(struct hc_conn *c, struct hc_pool_out *pool)
{
	struct hc_packet *p;

	while ((p = c->first)) {
		if (send_packet(c->fd, p) < 0) {
			if (errno == EINTR)
				continue;
			if (errno != EAGAIN)
				return HC_E_GONE;
			set_blocked(c, true);
			return 0;
		}
		c->first = p->next;
		if (!c->first)
			c->last = NULL;
		c->queued -= p->len;
		packet_put(pool, p);
	}
	set_blocked(c, false);
	return 0;
}

void hc_conn_drop_queue(struct hc_conn *c, struct hc_pool_out *pool)
{
	struct hc_packet *p;

	while ((p = c->first)) {
		c->first = p->next;
		packet_put(pool, p);
	}
	c->last = NULL;
	c->queued = 0;
}

/* ---- receiving ---- */

int hc_inbox_init(struct hc_inbox *in)
{
	unsigned i;

	memset(in, 0, sizeof(*in));
	in->bytes = mmap(NULL, HC_CONN_BATCH * (size_t)HC_PACKET_MAX, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (in->bytes == MAP_FAILED) {
		in->bytes = NULL;
		return -ENOMEM;
	}
	for (i = 0; i < HC_CONN_BATCH; i++) {
		in->iov[i].iov_base = in->bytes + i * (size_t)HC_PACKET_MAX;
		in->iov[i].iov_len = HC_PACKET_MAX;
		in->msgs[i].msg_hdr.msg_iov = &in->iov[i];
		in->msgs[i].msg_hdr.msg_iovlen = 1;
		in->msgs[i].msg_hdr.msg_control = in->control[i].bytes;
		in->msgs[i].msg_hdr.msg_controllen = sizeof(in->control[i].bytes);
	}
	return 0;
}

void hc_inbox_fini(struct hc_inbox *in)
{
	if (in->bytes)
		munmap(in->bytes, HC_CONN_BATCH * (size_t)HC_PACKET_MAX);
	in->bytes = NULL;
}

/* Asking for a second packet that is not there costs a tenth of a request: not done often. */
static void adapt(struct hc_conn *c, unsigned asked, unsigned got)
{
	if (got < asked) {
		c->batch = got > 1 ? (uint8_t)got : 1;
		c->calm = CALM_READS;
	} else if (asked == 1 && c->calm) {
		c->calm--;
	} else {
		c->batch = (uint8_t)(2 * asked < HC_CONN_BATCH ? 2 * asked : HC_CONN_BATCH);
	}
}

/* Without descriptors: those of such a packet are dropped by the kernel. */
static int read_plain(struct hc_inbox *in, int fd)
{
	struct mmsghdr *m = &in->msgs[0];
	ssize_t n = recv(fd, in->bytes, HC_PACKET_MAX, MSG_DONTWAIT | MSG_TRUNC);

	if (n < 0)
		return -1;
	m->msg_hdr.msg_flags = n > (ssize_t)HC_PACKET_MAX ? MSG_TRUNC : 0;
	m->msg_hdr.msg_controllen = 0;
	m->msg_len = m->msg_hdr.msg_flags ? HC_PACKET_MAX : (unsigned)n;
	return 1;
}

/*
 * For one packet the simpler call is the cheaper one, and the simplest by far that which takes no
 * descriptors. So they are announced, except for those of hello.
 */
static int read_one(struct hc_inbox *in, const struct hc_conn *c)
{
	ssize_t n;

	if (c->session && !c->carry)
		return read_plain(in, c->fd);
	n = recvmsg(c->fd, &in->msgs[0].msg_hdr, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n < 0)
		return -1;
	in->msgs[0].msg_len = (unsigned)n;
	return 1;
}

int hc_inbox_read(struct hc_inbox *in, struct hc_conn *c)
{
	unsigned ask = c->batch ? c->batch : 1;
	int n;

	do {
		n = ask == 1
			    ? read_one(in, c)
			    : recvmmsg(c->fd, in->msgs, ask, MSG_DONTWAIT | MSG_CMSG_CLOEXEC, NULL);
	} while (n < 0 &&
		 (errno == EINTR || errno == ECONNRESET)); /* what was sent before counts */
	if (n < 0)
		return errno == EAGAIN ? 0 : -errno;
	adapt(c, ask, (unsigned)n);
	return n;
}

static void take_fds(struct hc_got *got, struct msghdr *m)
{
	struct cmsghdr *h;
	size_t n, i;

	for (h = CMSG_FIRSTHDR(m); h; h = CMSG_NXTHDR(m, h)) {
		if (h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS)
			continue;
		n = (h->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (i = 0; i < n && got->nfds < HC_CONN_FDS; i++)
			memcpy(&got->fds[got->nfds++], CMSG_DATA(h) + i * sizeof(int), sizeof(int));
	}
}

void hc_inbox_get(struct hc_inbox *in, unsigned i, struct hc_got *got)
{
	struct msghdr *m = &in->msgs[i].msg_hdr;

	got->bytes = in->bytes + i * (size_t)HC_PACKET_MAX;
	got->len = in->msgs[i].msg_len;
	got->cut = m->msg_flags & MSG_TRUNC;
	got->crowded = m->msg_flags & MSG_CTRUNC;
	got->nfds = 0;
	if (m->msg_controllen)
		take_fds(got, m);
	m->msg_controllen = sizeof(in->control[i].bytes);
}
