/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Datagrams between daemons: life, keys, receiving; see beats.h.
 *
 * An id of a receiving key names the slot of its peer, so it is found without a search. What is
 * dropped is told apart by cheap looks first; the tag, which costs most, is made only for a key
 * that exists.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/ip.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "beatsimp.h"

#define BATCHES_MAX 128u /* of a drain: more than a full queue of a socket holds */
#define BUFFER      (4 << 20)
#define PRIORITY    6

/* ---- addresses ---- */

void hc_beats_name(const struct hc_endpoint *e, union hc_beats_name *name, socklen_t *len)
{
	memset(name, 0, sizeof(*name));
	if (e->addr.family == 4) {
		name->v4.sin_family = AF_INET;
		name->v4.sin_port = htons(e->port);
		memcpy(&name->v4.sin_addr, e->addr.bytes, 4);
		*len = sizeof(name->v4);
		return;
	}
	name->v6.sin6_family = AF_INET6;
	name->v6.sin6_port = htons(e->port);
	memcpy(&name->v6.sin6_addr, e->addr.bytes, 16);
	name->v6.sin6_scope_id = e->addr.scope;
	*len = sizeof(name->v6);
}

void hc_beats_endpoint(const union hc_beats_name *name, struct hc_endpoint *e)
{
	memset(e, 0, sizeof(*e));
	if (name->any.sa_family == AF_INET) {
		e->addr.family = 4;
		e->port = ntohs(name->v4.sin_port);
		memcpy(e->addr.bytes, &name->v4.sin_addr, 4);
	} else if (name->any.sa_family == AF_INET6) {
		e->addr.family = 6;
		e->port = ntohs(name->v6.sin6_port);
		memcpy(e->addr.bytes, &name->v6.sin6_addr, 16);
		if (hc_addr_is_link_local(&e->addr))
			e->addr.scope = name->v6.sin6_scope_id;
	}
}

/* Where it came in. */
static void local_of(const struct hc_beats_sock *s, struct msghdr *m, struct hc_endpoint *local)
{
	struct in6_pktinfo in6;
	struct in_pktinfo in4;
	struct cmsghdr *c;

	*local = s->at;
	for (c = s->any ? CMSG_FIRSTHDR(m) : NULL; c; c = CMSG_NXTHDR(m, c)) {
		if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO) {
			memcpy(&in4, CMSG_DATA(c), sizeof(in4));
			memcpy(local->addr.bytes, &in4.ipi_addr, 4);
		} else if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO) {
			memcpy(&in6, CMSG_DATA(c), sizeof(in6));
			memcpy(local->addr.bytes, &in6.ipi6_addr, 16);
			if (hc_addr_is_link_local(&local->addr))
				local->addr.scope = in6.ipi6_ifindex;
		}
	}
}

/* ---- keys ---- */

/* Make room for `index` in an array of `size` bytes an item. */
static int grow(void *array, uint32_t *count, uint32_t index, size_t size)
{
	uint32_t n = *count ? *count : 16;
	void *fresh;

	if (index < *count)
		return 0;
	while (n <= index)
		n *= 2;
	memcpy(&fresh, array, sizeof(fresh));
	fresh = reallocarray(fresh, n, size);
	if (!fresh)
		return -ENOMEM;
	memset((char *)fresh + *count * size, 0, (n - *count) * size);
	memcpy(array, &fresh, sizeof(fresh));
	*count = n;
	return 0;
}

static void put_in(struct hc_beats_in *in, uint32_t id, struct hc_gmac *gmac)
{
	hc_gmac_free(in->gmac[1]);
	in->id[1] = in->id[0];
	in->gmac[1] = in->gmac[0];
	in->id[0] = id;
	in->gmac[0] = gmac;
}

int hc_beats_key(struct hc_beats *b, uint32_t peer, uint32_t key, const uint8_t in[HC_KEY_BYTES],
		 const uint8_t out[HC_KEY_BYTES])
{
	struct hc_gmac *fresh_in, *fresh_out;

	hc_assert(peer < 0x10000u && key);
	if (grow(&b->in, &b->nin, key & 0xffffu, sizeof(*b->in)) ||
	    grow(&b->out, &b->nout, peer, sizeof(struct hc_gmac *)))
		return -ENOMEM;
	fresh_in = hc_gmac_new(in);
	fresh_out = hc_gmac_new(out);
	if (!fresh_in || !fresh_out) {
		hc_gmac_free(fresh_in);
		hc_gmac_free(fresh_out);
		return -ENOMEM;
	}
	put_in(&b->in[key & 0xffffu], key, fresh_in);
	hc_gmac_free(b->out[peer]);
	b->out[peer] = fresh_out;
	return 0;
}

void hc_beats_key_drop(struct hc_beats *b, uint32_t peer, uint32_t key, bool all)
{
	struct hc_beats_in *in = (key & 0xffffu) < b->nin ? &b->in[key & 0xffffu] : NULL;
	unsigned i;

	for (i = 0; in && key && i < 2; i++) {
		if (in->id[i] != key)
			continue;
		hc_gmac_free(in->gmac[i]);
		in->gmac[i] = NULL;
		in->id[i] = 0;
	}
	if (all && peer < b->nout) {
		hc_gmac_free(b->out[peer]);
		b->out[peer] = NULL;
	}
}

static struct hc_gmac *key_of(const struct hc_beats *b, uint32_t key)
{
	const struct hc_beats_in *in = &b->in[key & 0xffffu];

	if (!key || (key & 0xffffu) >= b->nin)
		return NULL;
	return in->id[0] == key ? in->gmac[0] : in->id[1] == key ? in->gmac[1] : NULL;
}

/* ---- receiving ---- */

static uint32_t be32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* Returns the key under which it is authentic, or 0: dropped and counted. */
static uint32_t judge(struct hc_beats *b, const uint8_t *frame, size_t len)
{
	uint32_t key;
	struct hc_gmac *gmac;

	if (len < HC_DATAGRAM_HEAD + HC_DATAGRAM_TAG) {
		b->counts.shorts++;
		return 0;
	}
	if ((unsigned)(frame[0] << 8 | frame[1]) != HC_DATAGRAM_MAGIC) {
		b->counts.foreign++;
		return 0;
	}
	if (frame[2] != HC_DATAGRAM_VERSION) {
		b->counts.versions++;
		return 0;
	}
	key = be32(frame + HC_DATAGRAM_AT_KEY);
	gmac = key_of(b, key);
	if (!gmac) {
		b->counts.keys++;
		return 0;
	}
	if (!hc_gmac_good(gmac, frame, len - HC_DATAGRAM_TAG)) {
		b->counts.tags++;
		return 0;
	}
	return key;
}

static void take(struct hc_beats_sock *s, struct mmsghdr *got)
{
	struct hc_beats *b = s->beats;
	const uint8_t *frame = got->msg_hdr.msg_iov->iov_base;
	struct hc_event ev;
	uint32_t key = judge(b, frame, got->msg_len);

	if (!key)
		return;
	b->counts.received++;
	ev.kind = HC_EV_DATAGRAM;
	ev.session = 0;
	ev.u.datagram.key = key;
	ev.u.datagram.bytes = frame;
	ev.u.datagram.len = got->msg_len - HC_DATAGRAM_TAG;
	local_of(s, &got->msg_hdr, &ev.u.datagram.local);
	hc_beats_endpoint(got->msg_hdr.msg_name, &ev.u.datagram.remote);
	b->args.feed(b->args.arg, &ev);
}

static void lay_out(struct hc_beats *b, unsigned i)
{
	struct msghdr *m = &b->batch[i].msg_hdr;

	m->msg_name = &b->items[i].name;
	m->msg_namelen = sizeof(b->items[i].name);
	m->msg_control = b->items[i].control;
	m->msg_controllen = sizeof(b->items[i].control);
	m->msg_iov = &b->items[i].iov;
	m->msg_iovlen = 1;
	m->msg_flags = 0;
	b->items[i].iov = (struct iovec){b->room + (size_t)i * HC_BEATS_ROOM, HC_BEATS_ROOM};
}

static void flush_all(struct hc_beats *b)
{
	struct hc_beats_sock *s;

	for (s = b->socks; s; s = s->next)
		if (s->queued)
			hc_beats_push(s);
}

/*
 * A thousand keys do not fit in a cache, and each is used once an interval: all of a batch, or of
 * a burst, are fetched at once instead of being waited for one by one.
 */
static void fetch(struct hc_gmac *const *gmac, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		__builtin_prefetch(gmac[i]);
	for (i = 0; i < n; i++)
		hc_gmac_soon(gmac[i]);
}

static void fetch_keys(const struct hc_beats *b, int frames)
{
	struct hc_gmac *gmac[HC_BEATS_BATCH];
	const uint8_t *frame;
	uint32_t n = 0;
	int i;

	for (i = 0; i < frames; i++) {
		if (b->batch[i].msg_len < HC_DATAGRAM_HEAD)
			continue;
		frame = b->batch[i].msg_hdr.msg_iov->iov_base;
		gmac[n] = key_of(b, be32(frame + HC_DATAGRAM_AT_KEY));
		n += gmac[n] != NULL;
	}
	fetch(gmac, n);
}

void hc_beats_soon(const struct hc_beats *b, const struct hc_action *acts, uint32_t count)
{
	struct hc_gmac *gmac[HC_BEATS_BATCH];
	uint32_t i, peer, n = 0;

	for (i = 0; i < count && n < HC_BEATS_BATCH; i++) {
		if (acts[i].kind != HC_ACT_DATAGRAM)
			continue;
		peer = acts[i].u.datagram.peer;
		if (peer < b->nout && b->out[peer])
			gmac[n++] = b->out[peer];
	}
	fetch(gmac, n);
}

/* How many were read; -1: there was an error, and its queue is read. */
static int read_batch(struct hc_beats_sock *s)
{
	struct hc_beats *b = s->beats;
	int n, i;

	do {
		n = recvmmsg(s->fd, b->batch, HC_BEATS_BATCH, MSG_DONTWAIT, NULL);
	} while (n < 0 && errno == EINTR);
	if (n <= 0) {
		if (n < 0 && errno == EAGAIN)
			return 0;
		hc_beats_errors(s, NULL);
		return -1;
	}
	b->args.clock(b->args.arg);
	fetch_keys(b, n);
	for (i = 0; i < n; i++)
		take(s, &b->batch[i]);
	for (i = 0; i < n; i++)
		lay_out(b, (unsigned)i);
	flush_all(b);
	return n;
}

static int drain(struct hc_beats_sock *s)
{
	unsigned budget = BATCHES_MAX;
	int n, all = 0;

	s->beats->draining = true;
	do {
		n = read_batch(s);
		all += n > 0 ? n : 0;
	} while ((n < 0 || n == (int)HC_BEATS_BATCH) && --budget);
	s->beats->draining = false;
	return all;
}

void hc_beats_drain(struct hc_beats *b)
{
	struct hc_beats_sock *s;

	if (b->draining)
		return;
	for (s = b->socks; s; s = s->next)
		drain(s);
	if (b->nbounces)
		hc_beats_tell(-1, 0, b);
}

/* Readable without anything to read: only the error queue can be what it is about. */
static void on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct hc_beats_sock *s = arg;

	(void)fd;
	(void)what;
	if (!drain(s))
		hc_beats_errors(s, NULL);
}

/* ---- life ---- */

int hc_beats_new(const struct hc_beats_args *args, struct hc_beats **beats)
{
	struct hc_beats *b = calloc(1, sizeof(*b));
	const size_t bytes = (size_t)HC_BEATS_BATCH * HC_BEATS_ROOM;
	unsigned i;

	if (!b)
		return -ENOMEM;
	b->args = *args;
	b->room = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (b->room == MAP_FAILED)
		b->room = NULL;
	b->wake = event_new(args->base, -1, 0, hc_beats_tell, b);
	if (!b->room || !b->wake) {
		hc_beats_free(b);
		return -ENOMEM;
	}
	for (i = 0; i < HC_BEATS_BATCH; i++)
		lay_out(b, i);
	*beats = b;
	return 0;
}

static void close_sock(struct hc_beats_sock *s)
{
	if (s->readable)
		event_free(s->readable);
	close(s->fd);
	munmap(s, sizeof(*s));
}

void hc_beats_free(struct hc_beats *b)
{
	struct hc_beats_sock *s, *next;
	uint32_t i;

	if (!b)
		return;
	for (s = b->socks; s; s = next) {
		next = s->next;
		close_sock(s);
	}
	for (i = 0; i < b->nin; i++) {
		hc_gmac_free(b->in[i].gmac[0]);
		hc_gmac_free(b->in[i].gmac[1]);
	}
	for (i = 0; i < b->nout; i++)
		hc_gmac_free(b->out[i]);
	free(b->in);
	free(b->out);
	if (b->wake)
		event_free(b->wake);
	if (b->room)
		munmap(b->room, (size_t)HC_BEATS_BATCH * HC_BEATS_ROOM);
	free(b);
}

static bool set(int fd, int level, int name, int value)
{
	return !setsockopt(fd, level, name, &value, sizeof(value));
}

/* As large as is allowed: more than the system's limit only for a privileged daemon. */
static void set_buffer(int fd, int force, int plain)
{
	if (!set(fd, SOL_SOCKET, force, BUFFER))
		set(fd, SOL_SOCKET, plain, BUFFER);
}

/* The priority comes last, since the kernel derives one from the class of service. */
static bool set_options(const struct hc_beats_sock *s)
{
	const int fd = s->fd;
	bool good;

	set_buffer(fd, SO_RCVBUFFORCE, SO_RCVBUF);
	set_buffer(fd, SO_SNDBUFFORCE, SO_SNDBUF);
	if (s->at.addr.family == 4)
		good = set(fd, IPPROTO_IP, IP_TOS, IPTOS_CLASS_CS6) &&
		       set(fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE) &&
		       set(fd, IPPROTO_IP, IP_RECVERR, 1) &&
		       set(fd, IPPROTO_IP, IP_PKTINFO, s->any);
	else
		good = set(fd, IPPROTO_IPV6, IPV6_TCLASS, IPTOS_CLASS_CS6) &&
		       set(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_PROBE) &&
		       set(fd, IPPROTO_IPV6, IPV6_RECVERR, 1) &&
		       set(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, s->any);
	return good && set(fd, SOL_SOCKET, SO_PRIORITY, PRIORITY);
}

static bool is_any(const struct hc_addr *a)
{
	static const uint8_t zero[16];

	return !memcmp(a->bytes, zero, a->family == 4 ? 4 : 16);
}

int hc_beats_add(struct hc_beats *b, int fd, const struct hc_endpoint *at)
{
	struct hc_beats_sock *s =
		mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int r;

	if (s == MAP_FAILED) {
		close(fd);
		return -ENOMEM;
	}
	s->beats = b;
	s->fd = fd;
	s->at = *at;
	s->any = is_any(&at->addr);
	r = set_options(s) ? 0 : -errno;
	s->readable = r ? NULL : event_new(b->args.base, fd, EV_READ | EV_PERSIST, on_readable, s);
	if (!r && (!s->readable || event_add(s->readable, NULL)))
		r = -ENOMEM;
	if (r) {
		close_sock(s);
		return r;
	}
	s->next = b->socks;
	b->socks = s;
	return 0;
}

void hc_beats_remove(struct hc_beats *b, const struct hc_endpoint *at)
{
	struct hc_beats_sock **p = &b->socks, *s;

	hc_assert(!b->draining);
	while ((s = *p)) {
		if (!hc_endpoint_eq(&s->at, at)) {
			p = &s->next;
			continue;
		}
		*p = s->next;
		close_sock(s);
	}
}

void hc_beats_flush(struct hc_beats *b)
{
	if (!b->draining)
		flush_all(b);
}

void hc_beats_counts(const struct hc_beats *b, struct hc_beats_counts *counts)
{
	*counts = b->counts;
}
