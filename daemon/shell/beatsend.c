/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Datagrams between daemons: sending, and what comes back; see beats.h.
 *
 * An error of sendmmsg may be of an earlier datagram that some host returned: the socket keeps
 * it for the next call. So the error queue, which says whom it is about, is read first and the
 * call made again; what fails twice is its own fault.
 */
#include <errno.h>
#include <netinet/ip.h>
#include <string.h>
#include <time.h>
#include <linux/errqueue.h> /* wants time.h */
#include "beatsimp.h"

#define ERRORS_MAX 1024u /* that are read at a time */

/* ---- what comes back ---- */

void hc_beats_bounce(struct hc_beats *b, const struct hc_endpoint *to, int error, uint32_t mtu)
{
	if (b->nbounces == HC_BEATS_BOUNCES) {
		b->counts.bounces_lost++;
		return;
	}
	b->bounces[b->nbounces++] = (struct hc_beats_bounce){*to, error, mtu};
	event_active(b->wake, EV_TIMEOUT, 0);
}

/* What is told may send, and so add to the list: a copy is told. */
void hc_beats_tell(evutil_socket_t fd, short what, void *beats)
{
	struct hc_beats *b = beats;
	struct hc_beats_bounce list[HC_BEATS_BOUNCES];
	const uint32_t n = b->nbounces;
	struct hc_event ev = {.kind = HC_EV_BOUNCED};
	uint32_t i;

	(void)fd;
	(void)what;
	memcpy(list, b->bounces, n * sizeof(list[0]));
	b->nbounces = 0;
	b->counts.bounces += n;
	if (n)
		b->args.clock(b->args.arg);
	for (i = 0; i < n; i++) {
		ev.u.bounced.remote = list[i].remote;
		ev.u.bounced.error = list[i].error;
		ev.u.bounced.mtu = list[i].mtu;
		b->args.feed(b->args.arg, &ev);
	}
}

static const struct sock_extended_err *extended(struct msghdr *m)
{
	struct cmsghdr *c;

	for (c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		if ((c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_RECVERR) ||
		    (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_RECVERR))
			return (const void *)CMSG_DATA(c);
	}
	return NULL;
}

/* One of the error queue. -1: it is empty; else how many told of `to`. */
static int one_error(struct hc_beats_sock *s, const struct hc_endpoint *to)
{
	_Alignas(struct cmsghdr) char control[512];
	union hc_beats_name name = {.any = {.sa_family = AF_UNSPEC}};
	struct msghdr m = {.msg_name = &name,
			   .msg_namelen = sizeof(name),
			   .msg_control = control,
			   .msg_controllen = sizeof(control)};
	const struct sock_extended_err *e;
	struct hc_endpoint remote;
	uint32_t mtu;

	if (recvmsg(s->fd, &m, MSG_ERRQUEUE | MSG_DONTWAIT) < 0)
		return errno == EINTR ? 0 : -1;
	e = extended(&m);
	if (!e)
		return 0;
	mtu = e->ee_errno == EMSGSIZE ? e->ee_info : 0;
	if (e->ee_origin != SO_EE_ORIGIN_LOCAL) {
		hc_beats_endpoint(&name, &remote);
		hc_beats_bounce(s->beats, &remote, (int)e->ee_errno, mtu);
		return 0;
	}
	if (!to) /* of our own kernel: it said so when we sent, too */
		return 0;
	hc_beats_bounce(s->beats, to, (int)e->ee_errno, mtu);
	return 1;
}

unsigned hc_beats_errors(struct hc_beats_sock *s, const struct hc_endpoint *to)
{
	unsigned budget = ERRORS_MAX, told = 0;
	int r;

	while (budget-- && (r = one_error(s, told ? NULL : to)) >= 0)
		told += (unsigned)r;
	return told;
}

/* ---- sending ---- */

/* The datagram `at` was refused twice. A source that is not here is an "invalid argument". */
static void give_up(struct hc_beats_sock *s, uint32_t at, int error)
{
	struct hc_endpoint to;

	hc_beats_endpoint(&s->items[at].name, &to);
	if (hc_beats_errors(s, &to))
		return;
	if (error == EINVAL && s->out[at].msg_hdr.msg_controllen)
		error = EADDRNOTAVAIL;
	hc_beats_bounce(s->beats, &to, error, 0);
}

void hc_beats_push(struct hc_beats_sock *s)
{
	const uint32_t all = s->queued;
	struct hc_beats_counts *counts = &s->beats->counts;
	uint32_t at = 0;
	bool again = false;
	int n;

	while (at < all) {
		n = sendmmsg(s->fd, s->out + at, all - at, MSG_DONTWAIT);
		if (n > 0) {
			at += (uint32_t)n;
			counts->sent += (uint32_t)n;
			again = false;
		} else if (errno == EINTR) {
			continue;
		} else if (errno == EAGAIN || errno == ENOBUFS) { /* the next beat comes soon */
			counts->unsent += all - at;
			break;
		} else if (!again) {
			again = true;
			hc_beats_errors(s, NULL);
		} else {
			give_up(s, at++, errno);
			again = false;
		}
	}
	s->queued = s->used = 0;
}

/* The socket that is bound to the address, or to all of its family. */
static struct hc_beats_sock *sock_of(const struct hc_beats *b, const struct hc_addr *from,
				     uint8_t family)
{
	struct hc_beats_sock *s, *any = NULL;

	for (s = b->socks; s; s = s->next) {
		if (s->at.addr.family != family)
			continue;
		if (s->any || !from->family)
			any = s;
		else if (hc_addr_eq(&s->at.addr, from))
			return s;
	}
	return any;
}

static void put_source(struct msghdr *m, char *control, const struct hc_addr *from)
{
	struct cmsghdr *c = (void *)control;
	struct in6_pktinfo in6 = {.ipi6_ifindex = from->scope};
	struct in_pktinfo in4 = {.ipi_ifindex = 0};

	m->msg_control = control;
	if (from->family == 4) {
		memcpy(&in4.ipi_spec_dst, from->bytes, 4);
		*c = (struct cmsghdr){CMSG_LEN(sizeof(in4)), IPPROTO_IP, IP_PKTINFO};
		memcpy(CMSG_DATA(c), &in4, sizeof(in4));
		m->msg_controllen = CMSG_SPACE(sizeof(in4));
	} else {
		memcpy(&in6.ipi6_addr, from->bytes, 16);
		*c = (struct cmsghdr){CMSG_LEN(sizeof(in6)), IPPROTO_IPV6, IPV6_PKTINFO};
		memcpy(CMSG_DATA(c), &in6, sizeof(in6));
		m->msg_controllen = CMSG_SPACE(sizeof(in6));
	}
}

static void enqueue(struct hc_beats_sock *s, const struct hc_action *a, struct hc_gmac *gmac)
{
	struct hc_beats_item *item = &s->items[s->queued];
	struct mmsghdr *out = &s->out[s->queued];
	uint8_t *frame = s->bytes + s->used;

	memcpy(frame, a->bytes, a->len);
	if (!hc_gmac_seal(gmac, frame, a->len)) {
		s->beats->counts.unsent++;
		return;
	}
	item->iov = (struct iovec){frame, a->len + HC_DATAGRAM_TAG};
	memset(out, 0, sizeof(*out));
	out->msg_hdr.msg_iov = &item->iov;
	out->msg_hdr.msg_iovlen = 1;
	out->msg_hdr.msg_name = &item->name;
	hc_beats_name(&a->u.datagram.to, &item->name, &out->msg_hdr.msg_namelen);
	if (s->any && a->u.datagram.from.family)
		put_source(&out->msg_hdr, item->control, &a->u.datagram.from);
	s->queued++;
	s->used += a->len + HC_DATAGRAM_TAG;
}

void hc_beats_send(struct hc_beats *b, const struct hc_action *a)
{
	const uint32_t peer = a->u.datagram.peer;
	struct hc_beats_sock *s;

	hc_assert(a->len >= HC_DATAGRAM_HEAD && a->len + HC_DATAGRAM_TAG <= HC_DATAGRAM_MAX);
	if (peer >= b->nout || !b->out[peer]) {
		b->counts.unsent++;
		return;
	}
	s = sock_of(b, &a->u.datagram.from, a->u.datagram.to.addr.family);
	if (!s) {
		hc_beats_bounce(b, &a->u.datagram.to, EADDRNOTAVAIL, 0);
		return;
	}
	if (s->queued == HC_BEATS_QUEUE || s->used + a->len + HC_DATAGRAM_TAG > HC_BEATS_BYTES)
		hc_beats_push(s);
	enqueue(s, a, b->out[peer]);
	if (a->u.datagram.urgent)
		hc_beats_push(s);
}
