/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Control connections; see peers.h.
 *
 * A connection is freed only from the event loop: what an action ends is marked and its timer
 * activated, so that nothing goes away below a callback that still uses it. The timer is also the
 * limit of whatever the connection waits for.
 */
#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/bufferevent_ssl.h>
#include <openssl/err.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "log.h"
#include "peerout.h"
#include "peers.h"
#include "tls.h"

#define BUCKETS    1024u
#define LINGER_MS  1000u
#define PAUSE_MS   200u /* without descriptors nothing can be accepted for a while */
#define READ_BYTES (HC_PEER_FRAME_MAX + 16384u)

enum state { DIALLING, PROVING, OPEN, CLOSING, FAILED };

struct conn {
	struct hc_peers *peers;
	struct conn *next;                        /* of its bucket */
	struct conn *before, *after, *next_dirty; /* of all; of those with something in `out` */
	uint64_t number;
	enum state state;
	bool dialled, stranger, spoke, closed, drained, dirty;
	int fd; /* until bev has it: -1 */
	struct bufferevent *bev;
	struct evbuffer *out; /* what goes at the end of the turn */
	SSL *ssl;             /* of bev */
	struct event *connected, *timer;
	struct hc_endpoint local, remote;
	struct hc_tls_side side;
	uint16_t end; /* FAILED: why */
	int error;
	char text[200];
};

struct listener {
	struct hc_peers *peers;
	int fd;
	struct event *event;
};

struct hc_peers {
	struct hc_peers_args args;
	struct hc_tls *tls; /* NULL: security = none */
	struct conn *buckets[BUCKETS], *all, *dirty;
	struct conn *strangers[HC_PEERS_STRANGERS]; /* in no order */
	uint32_t nstrangers, nlisteners;
	struct listener listeners[HC_BIND_MAX];
	struct event *pause;
	uint64_t serial;
	struct hc_peers_counts counts;
};

/* ---- the table ---- */

static struct conn **place_of(struct hc_peers *p, uint64_t number)
{
	struct conn **at = &p->buckets[number % BUCKETS];

	while (*at && (*at)->number != number)
		at = &(*at)->next;
	return at;
}

static void forget(struct conn *c)
{
	struct conn **at = place_of(c->peers, c->number);

	if (*at != c)
		return;
	*at = c->next;
}

static void proven(struct conn *c)
{
	struct hc_peers *p = c->peers;
	uint32_t i = 0;

	if (!c->stranger)
		return;
	c->stranger = false;
	while (p->strangers[i] != c)
		i++;
	p->strangers[i] = p->strangers[--p->nstrangers];
}

static void link_in(struct conn *c, struct conn **at)
{
	struct hc_peers *p = c->peers;

	*at = c;
	c->after = p->all;
	if (c->after)
		c->after->before = c;
	p->all = c;
	p->counts.open++;
}

static void link_out(struct conn *c)
{
	if (c->after)
		c->after->before = c->before;
	*(c->before ? &c->before->after : &c->peers->all) = c->after;
	c->peers->counts.open--;
}

static void undirty(struct conn *c)
{
	struct conn **at = &c->peers->dirty;

	if (!c->dirty)
		return;
	while (*at != c)
		at = &(*at)->next_dirty;
	*at = c->next_dirty;
	c->dirty = false;
}

static void conn_free(struct conn *c)
{
	forget(c);
	proven(c);
	link_out(c);
	undirty(c);
	if (c->out)
		evbuffer_free(c->out);
	if (c->connected)
		event_free(c->connected);
	if (c->timer)
		event_free(c->timer);
	if (c->bev)
		bufferevent_free(c->bev);
	if (c->fd >= 0)
		close(c->fd);
	free(c);
}

static void set_limit(struct conn *c, uint32_t ms)
{
	struct timeval t = {ms / 1000, (ms % 1000) * 1000};

	evtimer_add(c->timer, &t);
}

/* ---- the end of a connection ---- */

static void tell_lost(struct conn *c)
{
	struct hc_peers *p = c->peers;
	struct hc_event ev = {.kind = HC_EV_CONN_LOST};

	ev.u.conn.conn = c->number;
	ev.u.conn.local = c->local;
	ev.u.conn.remote = c->remote;
	ev.u.conn.end = c->end;
	ev.u.conn.error = c->error;
	ev.u.conn.text = hc_str(c->text);
	p->args.event(p->args.arg, &ev);
}

/* What a stranger did is told here; of connections that the core knows, the core tells. */
static void tell_stranger(struct conn *c)
{
	struct hc_peers_counts *n = &c->peers->counts;
	char from[HC_ENDPOINT_TEXT_MAX], at[HC_ENDPOINT_TEXT_MAX];

	hc_endpoint_text(&c->remote, from);
	hc_endpoint_text(&c->local, at);
	if (c->end == HC_W_conn_end_KEY) {
		n->wrong_key++;
		hc_log(HC_LOG_WARN, "%s is turned away at %s: its cluster key is not ours", from,
		       at);
	} else if (c->end == HC_W_conn_end_CLUSTER) {
		n->other_cluster++;
		hc_log(HC_LOG_WARN, "%s is turned away at %s: its cluster is '%s', ours is '%s'",
		       from, at, c->text, c->peers->args.cluster);
	} else {
		n->strangers++;
		hc_log(c->end == HC_W_conn_end_CLOSED ? HC_LOG_DEBUG : HC_LOG_WARN,
		       "%s is turned away at %s: %s", from, at,
		       c->text[0] ? c->text : hc_word_conn_end(c->end));
	}
}

/* From the event loop only: c is gone after it. */
static void lose(struct conn *c)
{
	forget(c); /* it is none any more for whatever the event brings about */
	if (!c->closed) {
		if (c->stranger)
			tell_stranger(c);
		tell_lost(c);
	}
	conn_free(c);
}

static void fail(struct conn *c, uint16_t end, int error, const char *text)
{
	c->state = FAILED;
	c->end = end;
	c->error = error;
	snprintf(c->text, sizeof(c->text), "%s", text);
}

static void fail_errno(struct conn *c, int error)
{
	uint16_t end = HC_W_conn_end_NO_ROUTE;

	if (error == ECONNREFUSED)
		end = HC_W_conn_end_REFUSED;
	else if (error == ETIMEDOUT)
		end = HC_W_conn_end_TIMEOUT;
	else if (error == ECONNRESET || error == EPIPE || error == ECONNABORTED)
		end = HC_W_conn_end_CLOSED;
	/* the word for a refused connection says all */
	fail(c, end, error, end == HC_W_conn_end_REFUSED ? "" : strerror(error));
}

/* ---- frames ---- */

static void hand_over(struct conn *c, const struct hc_frame *f)
{
	struct hc_peers *p = c->peers;
	struct hc_event ev = {.kind = HC_EV_CONN_MSG};

	c->spoke = true;
	if (c->stranger)
		evtimer_del(c->timer);
	proven(c);
	ev.u.conn.conn = c->number;
	ev.u.conn.local = c->local;
	ev.u.conn.remote = c->remote;
	ev.u.conn.frame = f;
	p->args.event(p->args.arg, &ev);
}

static void bad_length(struct conn *c, uint32_t length)
{
	char text[120];

	if (c->spoke || c->ssl) {
		snprintf(text, sizeof(text), "a message of %u bytes; wanted: %u to %u", length,
			 HC_HEAD_BYTES, HC_PEER_FRAME_MAX);
		fail(c, HC_W_conn_end_BROKEN, 0, text);
	} else if (length >> 16 == 0x1603) { /* how a handshake begins */
		fail(c, HC_W_conn_end_FOREIGN, 0,
		     "it speaks TLS: security is key there, none here");
	} else {
		fail(c, HC_W_conn_end_FOREIGN, 0, "does not speak hcomm");
	}
}

/* The next frame, if it is whole. */
static bool take_frame(struct conn *c, struct evbuffer *in)
{
	const uint8_t *bytes;
	uint8_t head[4];
	struct hc_frame f;
	uint32_t length;
	size_t left;

	if (evbuffer_copyout(in, head, sizeof(head)) < (ev_ssize_t)sizeof(head))
		return false;
	length = (uint32_t)head[0] << 24 | (uint32_t)head[1] << 16 | (uint32_t)head[2] << 8 |
		 head[3];
	if (length < HC_HEAD_BYTES || length > HC_PEER_FRAME_MAX) {
		bad_length(c, length);
		return false;
	}
	if (evbuffer_get_length(in) < length)
		return false;
	bytes = evbuffer_pullup(in, (ev_ssize_t)length);
	left = length;
	if (!bytes || hc_frame_next(&bytes, &left, &f)) {
		fail(c, HC_W_conn_end_BROKEN, ENOMEM, "out of memory");
		return false;
	}
	hand_over(c, &f);
	evbuffer_drain(in, length);
	return true;
}

static void on_read(struct bufferevent *bev, void *arg)
{
	struct conn *c = arg;
	struct evbuffer *in = bufferevent_get_input(bev);

	while (c->state == OPEN && take_frame(c, in))
		;
	if (c->state == FAILED)
		lose(c);
	else if (c->state == CLOSING)
		evbuffer_drain(in, evbuffer_get_length(in));
}

/* ---- closing: what was sent goes out, and is not lost to a reset ---- */

static void end_sending(struct conn *c)
{
	if (c->drained)
		return;
	c->drained = true;
	if (c->ssl)
		SSL_shutdown(c->ssl);
	ERR_clear_error();
	shutdown(bufferevent_getfd(c->bev), SHUT_WR);
}

static void on_written(struct bufferevent *bev, void *arg)
{
	struct conn *c = arg;

	if (c->state == CLOSING && !evbuffer_get_length(bufferevent_get_output(bev)))
		end_sending(c);
}

/* ---- life of a connection ---- */

static bool know_ends(struct conn *c, int fd)
{
	struct sockaddr_storage a;
	socklen_t n = sizeof(a), m = sizeof(a);

	if (getsockname(fd, (struct sockaddr *)&a, &n) ||
	    !hc_peersock_from((const struct sockaddr *)&a, &c->local))
		return false;
	return !getpeername(fd, (struct sockaddr *)&a, &m) &&
	       hc_peersock_from((const struct sockaddr *)&a, &c->remote);
}

static void be_up(struct conn *c)
{
	struct hc_peers *p = c->peers;
	struct hc_event ev = {.kind = HC_EV_CONN_UP};

	c->state = OPEN;
	if (c->ssl || c->dialled) {
		proven(c);
		evtimer_del(c->timer);
	} /* else it remains a stranger until its first message */
	bufferevent_setwatermark(c->bev, EV_READ, 0, READ_BYTES);
	bufferevent_enable(c->bev, EV_READ | EV_WRITE);
	ev.u.conn.conn = c->number;
	ev.u.conn.local = c->local;
	ev.u.conn.remote = c->remote;
	p->args.event(p->args.arg, &ev);
}

/* The library's errors come latest first; the earliest says what was wrong. */
static void fail_proving(struct conn *c)
{
	unsigned long next, error = 0;
	uint16_t end;
	char text[200];

	while ((next = bufferevent_get_openssl_error(c->bev))) {
		if (ERR_GET_LIB(next)) /* else it is the bufferevent's own word */
			error = next;
	}
	if (!error) {
		fail(c, HC_W_conn_end_CLOSED, 0, "closed before it had said who it is");
		return;
	}
	end = hc_tls_why(&c->side, error, bufferevent_getfd(c->bev), text, sizeof(text));
	fail(c, end, 0, text);
}

static void on_event(struct bufferevent *bev, short what, void *arg)
{
	struct conn *c = arg;
	int error = EVUTIL_SOCKET_ERROR();

	(void)bev;
	if (what & BEV_EVENT_CONNECTED) {
		if (c->state != PROVING)
			return;
		if (hc_tls_proven(c->ssl)) {
			be_up(c);
			return;
		}
		fail(c, HC_W_conn_end_FOREIGN, 0, "a TLS handshake without the cluster key");
	} else if (c->state == PROVING) {
		fail_proving(c);
	} else if (c->state == OPEN && c->ssl && what & BEV_EVENT_EOF) {
		fail(c, HC_W_conn_end_ENDED, 0, ""); /* it said so: its daemon lives */
	} else if (c->state == OPEN) {
		/* the word for a closed connection says all */
		error = what & BEV_EVENT_ERROR ? error : 0;
		fail(c, HC_W_conn_end_CLOSED, error, error == ECONNRESET ? "reset" : "");
	} /* CLOSING: the other end is done as well */
	ERR_clear_error();
	lose(c);
}

/* The socket is connected: what comes before the first message. */
static int begin(struct conn *c)
{
	struct event_base *base = c->peers->args.base;
	const int flags = BEV_OPT_CLOSE_ON_FREE;

	if (!c->peers->tls) {
		c->bev = bufferevent_socket_new(base, c->fd, flags);
	} else {
		c->ssl = hc_tls_open(c->peers->tls, c->dialled, &c->side);
		if (c->ssl)
			c->bev = bufferevent_openssl_socket_new(
				base, c->fd, c->ssl,
				c->dialled ? BUFFEREVENT_SSL_CONNECTING : BUFFEREVENT_SSL_ACCEPTING,
				flags);
		if (!c->bev)
			SSL_free(c->ssl);
	}
	if (!c->bev)
		return -ENOMEM;
	c->fd = -1;
	c->state = PROVING;
	bufferevent_setcb(c->bev, on_read, on_written, on_event, c);
	c->out = evbuffer_new();
	return c->out ? 0 : -ENOMEM;
}

static void go_on(struct conn *c)
{
	if (!know_ends(c, c->fd))
		fail_errno(c, errno ? errno : ENOTCONN);
	else if (begin(c))
		fail(c, HC_W_conn_end_BROKEN, ENOMEM, "out of memory");
	if (c->state == FAILED)
		lose(c);
	else if (!c->ssl)
		be_up(c);
}

static void on_connected(evutil_socket_t fd, short what, void *arg)
{
	struct conn *c = arg;
	int error = 0;
	socklen_t n = sizeof(error);

	(void)what;
	if (c->state != DIALLING)
		return; /* ended meanwhile: its timer is due */
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &n))
		error = errno;
	if (!error) {
		go_on(c);
		return;
	}
	fail_errno(c, error);
	lose(c);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct conn *c = arg;

	(void)fd;
	(void)what;
	if (c->state == DIALLING)
		fail(c, HC_W_conn_end_TIMEOUT, ETIMEDOUT, "no answer to the connection");
	else if (c->state == PROVING)
		fail(c, HC_W_conn_end_TIMEOUT, ETIMEDOUT, "no handshake in time");
	else if (c->state == OPEN && c->stranger)
		fail(c, HC_W_conn_end_TIMEOUT, ETIMEDOUT, "no message in time");
	else if (c->state == OPEN)
		return;
	lose(c);
}

static struct conn *conn_new(struct hc_peers *p, uint64_t number, int fd)
{
	struct conn **at = place_of(p, number), *c;

	if (*at)
		return NULL; /* a number is not used again */
	c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	c->peers = p;
	c->number = number;
	c->fd = fd;
	c->timer = evtimer_new(p->args.base, on_timer, c);
	if (!c->timer) {
		free(c);
		return NULL;
	}
	link_in(c, at);
	return c;
}

/* ---- those that come in ---- */

static bool room_for(struct hc_peers *p, const struct hc_endpoint *from)
{
	uint32_t i, of_one = 0;

	for (i = 0; i < p->nstrangers; i++)
		of_one += hc_addr_eq(&p->strangers[i]->remote.addr, &from->addr);
	if (p->nstrangers < HC_PEERS_STRANGERS && of_one < HC_PEERS_OF_ONE)
		return true;
	p->counts.turned_away++;
	hc_log(HC_LOG_WARN, "connections are turned away: too many that did not say who they are");
	return false;
}

static void take_in(struct hc_peers *p, int fd, const struct sockaddr *from)
{
	struct hc_endpoint e;
	struct conn *c = NULL;

	if (hc_peersock_from(from, &e) && room_for(p, &e))
		c = conn_new(p, HC_CONN_IN + ++p->serial, fd);
	if (!c) {
		close(fd);
		return;
	}
	c->remote = e;
	c->stranger = true;
	p->strangers[p->nstrangers++] = c;
	hc_peersock_tune(fd, e.addr.family);
	set_limit(c, HC_PEERS_PROVE_MS);
	go_on(c);
}

static void pause_listening(struct hc_peers *p, int error)
{
	struct timeval t = {0, PAUSE_MS * 1000};
	uint32_t i;

	hc_log(HC_LOG_WARN, "no connection can be taken now: %s", strerror(error));
	for (i = 0; i < p->nlisteners; i++)
		event_del(p->listeners[i].event);
	evtimer_add(p->pause, &t);
}

static void on_pause(evutil_socket_t fd, short what, void *arg)
{
	struct hc_peers *p = arg;
	uint32_t i;

	(void)fd;
	(void)what;
	for (i = 0; i < p->nlisteners; i++)
		event_add(p->listeners[i].event, NULL);
}

static void on_accept(evutil_socket_t listening, short what, void *arg)
{
	struct listener *l = arg;
	struct sockaddr_storage from;
	socklen_t n = sizeof(from);
	int fd = accept4(listening, (struct sockaddr *)&from, &n, SOCK_CLOEXEC | SOCK_NONBLOCK);

	(void)what;
	if (fd >= 0)
		take_in(l->peers, fd, (const struct sockaddr *)&from);
	else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
		pause_listening(l->peers, errno);
}

int hc_peers_listen(struct hc_peers *p, struct hc_peers_socks *socks)
{
	struct listener *l;
	uint32_t i;

	for (i = 0; i < socks->count; i++) {
		if (socks->tcp[i] < 0)
			continue;
		l = &p->listeners[p->nlisteners];
		l->peers = p;
		l->event =
			event_new(p->args.base, socks->tcp[i], EV_READ | EV_PERSIST, on_accept, l);
		if (!l->event || event_add(l->event, NULL))
			return -ENOMEM;
		l->fd = socks->tcp[i];
		socks->tcp[i] = -1;
		p->nlisteners++;
	}
	return 0;
}

/* ---- what the core wants ---- */

void hc_peers_dial(struct hc_peers *p, uint64_t number, const struct hc_endpoint *to,
		   const struct hc_addr *from)
{
	struct conn *c = conn_new(p, number, -1);
	int error;

	if (!c)
		hc_panic(__FILE__, __LINE__,
			 "out of memory for a connection, or its number is taken");
	c->dialled = true;
	c->remote = *to;
	error = hc_peersock_dial(to, from, &c->fd);
	if (!error) {
		c->connected = event_new(p->args.base, c->fd, EV_WRITE, on_connected, c);
		error = c->connected && !event_add(c->connected, NULL) ? 0 : ENOMEM;
	}
	if (error) {
		fail_errno(c, error);
		event_active(c->timer, EV_TIMEOUT, 1); /* told from the loop */
	} else {
		set_limit(c, p->args.limit_ms);
	}
}

void hc_peers_flush(struct hc_peers *p)
{
	struct conn *c;

	while ((c = p->dirty)) {
		undirty(c);
		if (c->state == OPEN)
			hc_peerout_flush(c->bev, c->ssl, c->out);
	}
}

static bool add(struct conn *c, const uint8_t *bytes, size_t len)
{
	if (evbuffer_add(c->out, bytes, len))
		return false;
	if (!c->dirty) {
		c->next_dirty = c->peers->dirty;
		c->peers->dirty = c;
	}
	c->dirty = true;
	return true;
}

void hc_peers_send(struct hc_peers *p, uint64_t number, const uint8_t *bytes, size_t len)
{
	struct conn *c = *place_of(p, number);
	size_t queued;

	if (!c || c->state != OPEN)
		return; /* its end is on the way to the core */
	queued = evbuffer_get_length(bufferevent_get_output(c->bev)) + evbuffer_get_length(c->out);
	if (queued + len <= HC_PEERS_QUEUE_MAX && add(c, bytes, len))
		return;
	fail(c, HC_W_conn_end_CLOSED, ENOBUFS, "given up: the peer does not read");
	hc_log(HC_LOG_WARN, "a control connection is closed: the peer has left %zu bytes unread",
	       queued);
	event_active(c->timer, EV_TIMEOUT, 1);
}

void hc_peers_close(struct hc_peers *p, uint64_t number)
{
	struct conn *c = *place_of(p, number);

	if (!c)
		return;
	forget(c);
	c->closed = true;
	if (c->state != OPEN) {
		c->state = FAILED;
		event_active(c->timer, EV_TIMEOUT, 1);
		return;
	}
	hc_peerout_flush(c->bev, c->ssl, c->out);
	undirty(c);
	c->state = CLOSING;
	set_limit(c, LINGER_MS);
	/* also when all has gone: the loop then finds the buffer empty */
	bufferevent_trigger(c->bev, EV_WRITE,
			    BEV_TRIG_IGNORE_WATERMARKS | BEV_TRIG_DEFER_CALLBACKS);
}

/* With no secret to export: told apart, not protected. */
static bool plain_key(const uint8_t *context, const uint8_t *cookies, uint8_t *key)
{
	uint8_t text[sizeof(HC_KEY_LABEL) - 1 + HC_KEY_CONTEXT + 16];
	const size_t n = sizeof(HC_KEY_LABEL) - 1;

	memcpy(text, HC_KEY_LABEL, n);
	memcpy(text + n, context, HC_KEY_CONTEXT);
	memcpy(text + n + HC_KEY_CONTEXT, cookies, 16);
	return SHA256(text, sizeof(text), key) != NULL;
}

int hc_peers_export(struct hc_peers *p, uint64_t number, const uint8_t context[HC_KEY_CONTEXT],
		    const uint8_t cookies[16], uint8_t key[HC_KEY_BYTES])
{
	struct conn *c = *place_of(p, number);
	bool ok;

	if (!c || c->state != OPEN)
		return -ENOENT;
	ok = c->ssl ? hc_tls_export(c->ssl, context, key) : plain_key(context, cookies, key);
	ERR_clear_error();
	return ok ? 0 : -EIO;
}

/* ---- life ---- */

int hc_peers_new(const struct hc_peers_args *args, struct hc_peers **peers)
{
	struct hc_peers *p = calloc(1, sizeof(*p));
	int r = -ENOMEM;

	if (!p)
		return r;
	p->args = *args;
	p->args.key = NULL;
	p->pause = evtimer_new(args->base, on_pause, p);
	if (p->pause)
		r = args->key ? hc_tls_new(args->cluster, args->key, &p->tls) : 0;
	if (r) {
		hc_peers_free(p);
		return r;
	}
	*peers = p;
	return 0;
}

void hc_peers_set_limit(struct hc_peers *p, uint32_t limit_ms)
{
	p->args.limit_ms = limit_ms;
}

void hc_peers_counts(const struct hc_peers *p, struct hc_peers_counts *counts)
{
	*counts = p->counts;
}

bool hc_peers_pending(const struct hc_peers *p)
{
	const struct conn *c;

	for (c = p->all; c; c = c->after) {
		if (c->dirty || ((c->state == OPEN || c->state == CLOSING) &&
				 evbuffer_get_length(bufferevent_get_output(c->bev))))
			return true;
	}
	return false;
}

void hc_peers_free(struct hc_peers *p)
{
	uint32_t i;

	if (!p)
		return;
	while (p->all)
		conn_free(p->all);
	for (i = 0; i < p->nlisteners; i++) {
		event_free(p->listeners[i].event);
		close(p->listeners[i].fd);
	}
	if (p->pause)
		event_free(p->pause);
	hc_tls_free(p->tls);
	free(p);
}
