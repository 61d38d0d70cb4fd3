/* SPDX-License-Identifier: Apache-2.0 */
/* Many nodes in one process; see crowd.h. */
#include "crowd.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"
#include "datagram.h"
#include "frame.h"
#include "gmac.h"
#include "keyfile.h"
#include "tls.h"

#define BATCH     64u
#define FRAME_MAX 9216u
#define US        1000ull
#define MS        1000000ull
#define COOKIE    0x63726f7764ull

struct node {
	int fd;
	SSL *ssl;
	struct hc_tls_side side;
	struct sockaddr_in at; /* its own */
	struct hc_gmac *in, *out;
	uint8_t id[16];
	uint32_t key_out, path;
	uint64_t seq, heard, sent;         /* heard, sent: when, 0 = never */
	uint32_t heard_us, heard_seq, got; /* got: numbered messages that came */
};

struct outgoing {
	struct msghdr msg;
	struct iovec iov;
	uint8_t bytes[HC_BEAT_BYTES + HC_DATAGRAM_TAG];
	uint8_t control[CMSG_SPACE(sizeof(struct in_pktinfo))];
};

struct crowd {
	struct crowd_args args;
	struct hc_tls *tls;
	struct sockaddr_in daemon;
	uint8_t daemon_id[16];
	uint64_t daemon_cookie;
	uint32_t daemon_start;
	struct node *nodes;
	_Atomic uint32_t joined; /* of them, the first so many are connected */
	int udp, epoll;
	struct mmsghdr out[BATCH], in[BATCH];
	struct outgoing ready[BATCH];
	uint32_t nready;
	uint8_t (*incoming)[FRAME_MAX];
	struct iovec in_iov[BATCH];
	struct sockaddr_in from[BATCH];
	uint8_t in_control[BATCH][CMSG_SPACE(sizeof(struct in_pktinfo))];
	uint64_t tick, next; /* number of the slice, when it is due */
	struct crowd_log *log;
	bool own_log;
};

/* ---- control connections ---- */

static struct sockaddr_in address_of(const struct hc_endpoint *e, uint32_t plus)
{
	struct sockaddr_in sa = {.sin_family = AF_INET, .sin_port = htons(e->port)};
	uint32_t a;

	memcpy(&a, e->addr.bytes, 4);
	sa.sin_addr.s_addr = htonl(ntohl(a) + plus);
	return sa;
}

static ssize_t get(struct node *n, uint8_t *to, size_t len)
{
	size_t got = 0;
	ssize_t r;

	while (got < len) {
		r = n->ssl ? SSL_read(n->ssl, to + got, (int)(len - got))
			   : read(n->fd, to + got, len - got);
		if (r <= 0)
			return -1;
		got += (size_t)r;
	}
	return (ssize_t)got;
}

static bool put(struct node *n, const uint8_t *bytes, size_t len)
{
	return (n->ssl ? SSL_write(n->ssl, bytes, (int)len) : write(n->fd, bytes, len)) ==
	       (ssize_t)len;
}

/* A whole frame into `buf`. False: the connection is over, or what came is none. */
static bool read_frame(struct node *n, uint8_t *buf, size_t cap, struct hc_frame *f)
{
	const uint8_t *at = buf;
	size_t len;

	if (get(n, buf, 4) < 0)
		return false;
	len = (size_t)buf[0] << 24 | (size_t)buf[1] << 16 | (size_t)buf[2] << 8 | buf[3];
	if (len < HC_HEAD_BYTES || len > cap || get(n, buf + 4, len - 4) < 0)
		return false;
	return !hc_frame_next(&at, &len, f);
}

static bool say(struct node *n, const struct hc_desc *d, const void *msg, int32_t status)
{
	uint8_t buf[4096];
	size_t len;

	return !hc_frame_write(buf, sizeof(buf), d, HC_PROTO_MAX, 0, status, msg, &len) &&
	       put(n, buf, len);
}

static bool say_hello(struct crowd *c, struct node *n, uint32_t i)
{
	uint8_t room[512];
	struct hc_arr ports = {room, 0, 0};
	struct hc_m_node_port port = {.name = hc_str("bench"),
				      .family = 4,
				      .port = ntohs(n->at.sin_port),
				      .prefix = 16,
				      .mtu = 1500};
	struct hc_m_peer_hello m = {.magic = HC_PEER_MAGIC,
				    .proto_min = HC_PROTO_MIN,
				    .proto_max = HC_PROTO_MAX,
				    .cluster = hc_str("default"),
				    .cookie = COOKIE + i,
				    .incarnation = 1,
				    .start = 1,
				    .build = hc_str("crowd"),
				    .security = c->tls ? 0 : 1,
				    .stream = 1,
				    .key = i + 1,
				    .interval_ms = (uint16_t)c->args.interval_ms,
				    .misses = 3,
				    .down_misses = 5};
	char name[32];

	snprintf(name, sizeof(name), "crowd-%u", i);
	m.name = hc_str(name);
	memcpy(m.node_id.b, n->id, 16);
	memcpy(m.boot_id.b, n->id, 16);
	memcpy(port.addr.b, &n->at.sin_addr, 4);
	if (hc_arr_put(&ports, room, sizeof(room), &hc_desc_node_port, HC_PROTO_MAX, &port))
		return false;
	m.ports = ports;
	return say(n, &hc_desc_peer_hello, &m, 0);
}

static void put32(uint8_t *to, uint32_t v)
{
	to[0] = (uint8_t)(v >> 24);
	to[1] = (uint8_t)(v >> 16);
	to[2] = (uint8_t)(v >> 8);
	to[3] = (uint8_t)v;
}

static void put64(uint8_t *to, uint64_t v)
{
	put32(to, (uint32_t)(v >> 32));
	put32(to + 4, (uint32_t)v);
}

static bool derive(const struct crowd *c, const struct node *n, uint32_t i, bool out,
		   uint8_t key[HC_KEY_BYTES])
{
	uint8_t context[HC_KEY_CONTEXT], all[sizeof(HC_KEY_LABEL) - 1 + HC_KEY_CONTEXT + 16];
	uint8_t *cookies = all + sizeof(HC_KEY_LABEL) - 1 + HC_KEY_CONTEXT;

	memcpy(context, out ? n->id : c->daemon_id, 16);
	memcpy(context + 16, out ? c->daemon_id : n->id, 16);
	put32(context + 32, out ? 1 : c->daemon_start);
	put32(context + 36, out ? c->daemon_start : 1);
	if (n->ssl)
		return hc_tls_export(n->ssl, context, key);
	memcpy(all, HC_KEY_LABEL, sizeof(HC_KEY_LABEL) - 1);
	memcpy(all + sizeof(HC_KEY_LABEL) - 1, context, sizeof(context));
	put64(cookies, out ? COOKIE + i : c->daemon_cookie);
	put64(cookies + 8, out ? c->daemon_cookie : COOKIE + i);
	return EVP_Digest(all, sizeof(all), key, NULL, EVP_sha256(), NULL) == 1;
}

static bool make_keys(const struct crowd *c, struct node *n, uint32_t i)
{
	uint8_t key[HC_KEY_BYTES];

	if (!derive(c, n, i, true, key))
		return false;
	n->out = hc_gmac_new(key);
	if (!derive(c, n, i, false, key))
		return false;
	n->in = hc_gmac_new(key);
	return n->in && n->out;
}

/* Hello both ways, and the welcome of the daemon, whose identity is the lower one. */
static bool meet(struct crowd *c, struct node *n, uint32_t i)
{
	const struct hc_m_peer_welcome welcome = {.stream = 0};
	struct hc_m_peer_hello m;
	struct hc_frame f;
	uint8_t buf[65536];

	if (!say_hello(c, n, i))
		return false;
	for (;;) {
		if (!read_frame(n, buf, sizeof(buf), &f))
			return false;
		if (f.head.type == HC_MSG_peer_welcome)
			break;
		if (f.head.type != HC_MSG_peer_hello ||
		    hc_decode(&hc_desc_peer_hello, HC_PROTO_MAX, f.body, f.body_len, &m))
			return false;
		memcpy(c->daemon_id, m.node_id.b, 16);
		c->daemon_start = m.start;
		c->daemon_cookie = m.cookie;
		n->key_out = m.key;
	}
	return n->key_out && make_keys(c, n, i) && say(n, &hc_desc_peer_welcome, &welcome, 0);
}

static void connect_one(struct crowd *c, uint32_t i)
{
	const int one = 1;
	struct node *n = &c->nodes[i];
	struct sockaddr_in from;
	struct epoll_event ev = {.events = EPOLLIN, .data.u32 = i};

	n->at = from = address_of(&c->args.first, i);
	from.sin_port = 0;
	memset(n->id, 0xff, 12); /* higher than any real one, as good as surely */
	put32(n->id + 12, i);
	n->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (n->fd < 0 || setsockopt(n->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) ||
	    bind(n->fd, (struct sockaddr *)&from, sizeof(from)) ||
	    connect(n->fd, (struct sockaddr *)&c->daemon, sizeof(c->daemon)))
		bench_die("crowd: node %u cannot connect: %s", i, strerror(errno));
	if (c->tls) {
		n->ssl = hc_tls_open(c->tls, true, &n->side);
		if (!n->ssl || !SSL_set_fd(n->ssl, n->fd) || SSL_connect(n->ssl) != 1)
			bench_die("crowd: node %u: no TLS: %s", i,
				  ERR_error_string(ERR_get_error(), NULL));
	}
	if (!meet(c, n, i))
		bench_die("crowd: node %u is not let in", i);
	fcntl(n->fd, F_SETFL, O_NONBLOCK);
	if (epoll_ctl(c->epoll, EPOLL_CTL_ADD, n->fd, &ev))
		bench_die("crowd: epoll: %s", strerror(errno));
}

static bool is_mute(const struct crowd *c, const struct node *n)
{
	return c->log->mute[n - c->nodes];
}

/* Numbered messages are acknowledged, and questions left open: they only label a verdict. */
static void on_control(struct crowd *c, uint32_t i)
{
	const struct hc_m_peer_ack ack = {0};
	struct node *n = &c->nodes[i];
	struct hc_frame f;
	uint8_t buf[65536];
	bool came = false;

	fcntl(n->fd, F_SETFL, 0);
	do {
		if (!read_frame(n, buf, sizeof(buf), &f)) {
			if (is_mute(c, n)) { /* it was given up, and does not come again */
				epoll_ctl(c->epoll, EPOLL_CTL_DEL, n->fd, NULL);
				return;
			}
			bench_die("crowd: the daemon ended the connection of node %u", i);
		}
		if (f.head.id)
			n->got = f.head.id;
		came = came || f.head.id;
	} while (n->ssl && SSL_pending(n->ssl));
	if (came && !say(n, &hc_desc_peer_ack, &ack, (int32_t)n->got))
		bench_die("crowd: node %u cannot acknowledge", i);
	fcntl(n->fd, F_SETFL, O_NONBLOCK);
}

/* ---- sending ---- */

static void flush(struct crowd *c)
{
	uint32_t at = 0;
	int r;

	while (at < c->nready) {
		r = sendmmsg(c->udp, c->out + at, c->nready - at, 0);
		if (r <= 0)
			bench_die("crowd: sending: %s", strerror(errno));
		at += (uint32_t)r;
	}
	c->log->n.sent += c->nready;
	c->nready = 0;
}

/* The frame is in o->bytes; number and tag are put here. */
static void queue(struct crowd *c, struct node *n, size_t len)
{
	struct outgoing *o = &c->ready[c->nready];
	struct cmsghdr *cm = (struct cmsghdr *)(void *)o->control;
	struct in_pktinfo info = {.ipi_spec_dst = n->at.sin_addr};

	if (!hc_gmac_seal(n->out, o->bytes, len))
		bench_die("crowd: no tag");
	cm->cmsg_level = IPPROTO_IP;
	cm->cmsg_type = IP_PKTINFO;
	cm->cmsg_len = CMSG_LEN(sizeof(info));
	memcpy(CMSG_DATA(cm), &info, sizeof(info));
	o->iov = (struct iovec){o->bytes, len + HC_DATAGRAM_TAG};
	c->out[c->nready].msg_hdr = (struct msghdr){.msg_name = &c->daemon,
						    .msg_namelen = sizeof(c->daemon),
						    .msg_iov = &o->iov,
						    .msg_iovlen = 1,
						    .msg_control = o->control,
						    .msg_controllen = sizeof(o->control)};
	if (++c->nready == BATCH)
		flush(c);
}

static void encode(struct crowd *c, struct node *n, const struct hc_desc *d, const void *m)
{
	size_t len;

	if (hc_encode(d, HC_PROTO_MAX, m, c->ready[c->nready].bytes,
		      sizeof(c->ready[c->nready].bytes) - HC_DATAGRAM_TAG, &len))
		bench_die("crowd: a frame does not fit");
	queue(c, n, len);
}

static void beat(struct crowd *c, struct node *n, uint64_t now, uint16_t flags)
{
	const struct hc_m_beat m = {.magic = HC_DATAGRAM_MAGIC,
				    .version = HC_DATAGRAM_VERSION,
				    .type = HC_MSG_beat,
				    .key = n->key_out,
				    .start = 1,
				    .path = n->path,
				    .seq = ++n->seq,
				    .sent_us = (uint32_t)(now / US),
				    .echo_us = n->heard_us,
				    .held_us = n->heard ? (uint32_t)((now - n->heard) / US)
							: UINT32_MAX,
				    .echo_seq = n->heard_seq,
				    .flags = (uint16_t)(flags | HC_BEAT_HEARS),
				    .interval_ms = (uint16_t)c->args.interval_ms};

	encode(c, n, &hc_desc_beat, &m);
}

static void note_gap(struct crowd *c, uint32_t i, uint64_t now)
{
	const struct node *n = &c->nodes[i];

	if (!n->sent || is_mute(c, n) || now - n->sent < c->args.interval_ms * MS * 5 / 4)
		return;
	if (c->log->n.gaps < CROWD_GAPS)
		c->log->gaps[c->log->n.gaps] = (struct crowd_gap){n->sent, now, i};
	c->log->n.gaps++;
}

static void slice(struct crowd *c, uint64_t now)
{
	uint32_t i;

	for (i = (uint32_t)(c->tick % CROWD_SLICES); i < c->joined; i += CROWD_SLICES) {
		struct node *n = &c->nodes[i];

		if (!n->path)
			continue;
		note_gap(c, i, now);
		n->sent = now;
		if (!is_mute(c, n))
			beat(c, n, now, 0);
	}
	flush(c);
	c->tick++;
	c->next += c->args.interval_ms * MS / CROWD_SLICES;
}

/* ---- receiving ---- */

static void answer_probe(struct crowd *c, struct node *n, const struct hc_m_probe *p)
{
	const struct hc_m_probed m = {.magic = HC_DATAGRAM_MAGIC,
				      .version = HC_DATAGRAM_VERSION,
				      .type = HC_MSG_probed,
				      .key = n->key_out,
				      .start = 1,
				      .path = n->path,
				      .seq = ++n->seq,
				      .challenge = p->challenge,
				      .sent_us = p->sent_us,
				      .size = p->size,
				      .mtu = 1500};

	c->log->n.probes++;
	if (!is_mute(c, n))
		encode(c, n, &hc_desc_probed, &m);
}

static void on_beat(struct crowd *c, struct node *n, const struct hc_m_beat *m, uint64_t now)
{
	n->heard = now;
	n->heard_us = m->sent_us;
	n->heard_seq = (uint32_t)m->seq;
	if (!(m->flags & HC_BEAT_ASKS) || m->flags & HC_BEAT_ANSWERS)
		return;
	c->log->n.asked++;
	if (!is_mute(c, n))
		beat(c, n, now, HC_BEAT_ANSWERS);
}

static void frame(struct crowd *c, struct node *n, const uint8_t *bytes, size_t len, uint64_t now)
{
	struct hc_m_probe probe;
	struct hc_m_beat m;

	n->path = (uint32_t)bytes[HC_DATAGRAM_AT_PATH] << 24 |
		  (uint32_t)bytes[HC_DATAGRAM_AT_PATH + 1] << 16 |
		  (uint32_t)bytes[HC_DATAGRAM_AT_PATH + 2] << 8 | bytes[HC_DATAGRAM_AT_PATH + 3];
	if (bytes[HC_DATAGRAM_AT_TYPE] == HC_MSG_beat &&
	    !hc_decode(&hc_desc_beat, HC_PROTO_MAX, bytes, len, &m))
		on_beat(c, n, &m, now);
	else if (bytes[HC_DATAGRAM_AT_TYPE] == HC_MSG_probe &&
		 !hc_decode(&hc_desc_probe, HC_PROTO_MAX, bytes, len, &probe))
		answer_probe(c, n, &probe);
}

static void came(struct crowd *c, struct mmsghdr *h, uint64_t now)
{
	const uint8_t *bytes = h->msg_hdr.msg_iov->iov_base;
	struct cmsghdr *cm = CMSG_FIRSTHDR(&h->msg_hdr);
	struct in_pktinfo info;
	uint32_t first, i;

	if (!cm || h->msg_len < HC_DATAGRAM_HEAD + HC_DATAGRAM_TAG)
		return;
	memcpy(&info, CMSG_DATA(cm), sizeof(info));
	memcpy(&first, c->args.first.addr.bytes, 4);
	i = ntohl(info.ipi_addr.s_addr) - ntohl(first);
	if (i >= c->joined || !hc_gmac_good(c->nodes[i].in, bytes, h->msg_len - HC_DATAGRAM_TAG)) {
		c->log->n.bad++;
		return;
	}
	c->log->n.received++;
	frame(c, &c->nodes[i], bytes, h->msg_len - HC_DATAGRAM_TAG, now);
}

static void receive(struct crowd *c)
{
	uint64_t now;
	int i, r;

	do {
		for (i = 0; i < (int)BATCH; i++)
			c->in[i].msg_hdr =
				(struct msghdr){.msg_name = &c->from[i],
						.msg_namelen = sizeof(c->from[i]),
						.msg_iov = &c->in_iov[i],
						.msg_iovlen = 1,
						.msg_control = c->in_control[i],
						.msg_controllen = sizeof(c->in_control[i])};
		r = recvmmsg(c->udp, c->in, BATCH, MSG_DONTWAIT, NULL);
		now = bench_now_ns();
		for (i = 0; i < r; i++)
			came(c, &c->in[i], now);
		flush(c);
	} while (r == (int)BATCH);
}

/* ---- running ---- */

static int wait_ms(const struct crowd *c, uint64_t until)
{
	const uint64_t now = bench_now_ns(), next = c->next < until ? c->next : until;

	return next <= now ? 0 : (int)((next - now) / MS);
}

/* What is due is sent, or else what came in until then is dealt with. */
static void turn(struct crowd *c, uint64_t until_ns)
{
	struct epoll_event ev[BATCH];
	const uint64_t now = bench_now_ns();
	struct timespec nap = {0};
	int i, n, wait;

	if (now >= c->next) {
		slice(c, now);
		return;
	}
	wait = wait_ms(c, until_ns);
	if (until_ns > now)
		nap.tv_nsec = wait ? wait * 1000000L : 200000;
	n = epoll_pwait2(c->epoll, ev, (int)BATCH, &nap, NULL);
	for (i = 0; i < n; i++) {
		if (ev[i].data.u32 == UINT32_MAX)
			receive(c);
		else
			on_control(c, ev[i].data.u32);
	}
}

void crowd_run(struct crowd *c, uint64_t until_ns)
{
	while (bench_now_ns() < until_ns)
		turn(c, until_ns);
}

void crowd_counts(const struct crowd *c, struct crowd_counts *counts)
{
	uint32_t i;

	*counts = c->log->n;
	for (i = 0; i < c->args.nodes; i++)
		counts->known += c->nodes[i].path != 0;
}

/* ---- what is written down ---- */

struct crowd_log *crowd_log_new(void)
{
	void *p = mmap(NULL, sizeof(struct crowd_log), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		bench_die("out of memory");
	return p;
}

void crowd_log_free(struct crowd_log *log)
{
	munmap(log, sizeof(*log));
}

bool crowd_log_late(const struct crowd_log *log, uint32_t node, uint64_t from, uint64_t to,
		    uint64_t limit_ns)
{
	const uint32_t kept = log->n.gaps < CROWD_GAPS ? log->n.gaps : CROWD_GAPS;
	uint32_t i;

	for (i = 0; i < kept; i++)
		if (log->gaps[i].node == node && log->gaps[i].from < to && log->gaps[i].to > from &&
		    log->gaps[i].to - log->gaps[i].from > limit_ns)
			return true;
	return false;
}

/* ---- life ---- */

static void open_udp(struct crowd *c)
{
	const int one = 1, room = 8 << 20;
	struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = htons(c->args.first.port)};
	struct epoll_event ev = {.events = EPOLLIN, .data.u32 = UINT32_MAX};

	c->udp = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (c->udp < 0 || setsockopt(c->udp, IPPROTO_IP, IP_PKTINFO, &one, sizeof(one)) ||
	    bind(c->udp, (struct sockaddr *)&any, sizeof(any)) ||
	    epoll_ctl(c->epoll, EPOLL_CTL_ADD, c->udp, &ev))
		bench_die("crowd: port %u: %s", c->args.first.port, strerror(errno));
	setsockopt(c->udp, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room));
	setsockopt(c->udp, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof(room));
}

/* Connecting waits for the daemon; who is in has to answer it meanwhile. */
static void *connect_all(void *crowd)
{
	struct crowd *c = crowd;
	uint32_t i;

	for (i = 0; i < c->args.nodes; i++) {
		connect_one(c, i);
		c->joined = i + 1;
	}
	return NULL;
}

struct crowd *crowd_new(const struct crowd_args *args)
{
	struct crowd *c = calloc(1, sizeof(*c));
	uint8_t key[HC_KEY_BYTES];
	char why[512];
	pthread_t connecting;
	uint32_t i;

	if (!c || args->nodes > CROWD_NODES_MAX)
		bench_die("no memory for %u nodes", args->nodes);
	c->args = *args;
	c->nodes = calloc(args->nodes, sizeof(*c->nodes));
	c->own_log = !args->log;
	c->log = args->log ? args->log : crowd_log_new();
	c->incoming = calloc(BATCH, sizeof(*c->incoming));
	if (!c->nodes || !c->incoming)
		bench_die("out of memory");
	for (i = 0; i < BATCH; i++)
		c->in_iov[i] = (struct iovec){c->incoming[i], sizeof(c->incoming[i])};
	c->daemon = address_of(&args->daemon, 0);
	if (args->key_file && (hc_keyfile_read(args->key_file, key, why, sizeof(why)) ||
			       hc_tls_new("default", key, &c->tls)))
		bench_die("crowd: no key: %s", args->key_file);
	c->epoll = epoll_create1(EPOLL_CLOEXEC);
	open_udp(c);
	c->next = bench_now_ns();
	if (pthread_create(&connecting, NULL, connect_all, c))
		bench_die("crowd: no thread");
	while (c->joined < args->nodes)
		turn(c, c->next);
	pthread_join(connecting, NULL);
	return c;
}

void crowd_free(struct crowd *c)
{
	uint32_t i;

	for (i = 0; i < c->args.nodes; i++) {
		SSL_free(c->nodes[i].ssl);
		close(c->nodes[i].fd);
		hc_gmac_free(c->nodes[i].in);
		hc_gmac_free(c->nodes[i].out);
	}
	hc_tls_free(c->tls);
	close(c->udp);
	close(c->epoll);
	free(c->incoming);
	if (c->own_log)
		crowd_log_free(c->log);
	free(c->nodes);
	free(c);
}
