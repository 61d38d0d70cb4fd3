/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections: dialling, which of several counts, what comes over them.
 *
 * Both nodes may dial, even at the same moment, and each connection begins with a hello of both.
 * Who accepts one says its own hello after the other's, and who dials a section whose node it does
 * not know yet says one without a key first: so streams and keys are those of the peer that it
 * really is.
 *
 *   the lower identity    on each accepted hello: welcome on that connection, close the others
 *   the higher identity   on a welcome: welcome back, that connection counts
 *
 * One node decides, so both end with the same connection; the newest hello wins, so a connection
 * whose other end has long been forgotten never stands in the way. The higher one closes nothing
 * that it said a hello on, as it may be chosen this very moment; what is not done in time ends.
 *
 * Dialling goes over the endpoints of the section and then those announced, in turn, at 100 ms and
 * doubling up to 10 s, for ever. An end that we make is explained first (peer_refuse), so that it
 * is not taken for our death.
 */
#include "again.h"
#include "emit.h"
#include "net.h"
#include "rng.h"

#include <stdio.h>

#define BACKOFF_MIN_MS  100u
#define BACKOFF_MAX_MS  10000u
#define BACKOFF_JOIN_MS 1000u       /* a join waits for it */
#define HELLO_NS        2000000000u /* and the probe timeout */
#define MS              1000000u

static uint32_t slot_of(const struct hc_core *c, const struct hc_conn *k)
{
	return (uint32_t)(k - c->net->conns);
}

struct hc_conn *hc_conn_find(struct hc_core *c, uint64_t number)
{
	const uint32_t i = number ? hc_index_find(&c->net->conn_by_number, number) : HC_NONE;

	return i == HC_NONE ? NULL : &c->net->conns[i];
}

static void set_limit(struct hc_core *c, struct hc_conn *k, uint64_t limit)
{
	k->limit = limit;
	hc_timers_set(&c->net->timers, c->lim.peers + slot_of(c, k), limit);
}

static uint64_t hello_limit(const struct hc_core *c)
{
	return c->now + c->set.probe_timeout_ns + HELLO_NS;
}

/* ---- making and ending ---- */

static struct hc_conn *make(struct hc_core *c, uint64_t number)
{
	struct hc_net *n = c->net;
	const uint32_t i = hc_pool_get(&n->conn_pool);
	struct hc_conn *k;

	if (i == HC_NONE)
		return NULL;
	k = &n->conns[i];
	*k = (struct hc_conn){.number = number, .peer = HC_NONE};
	hc_index_add_in(&n->conn_by_number, i);
	set_limit(c, k, hello_limit(c));
	return k;
}

static void disown(struct hc_core *c, struct hc_conn *k)
{
	struct hc_peer *p;

	if (k->peer == HC_NONE)
		return;
	p = hc_peer_get(c, k->peer);
	hc_list_del(&p->conn_list, &c->net->conn_links, slot_of(c, k));
	if (p->dialled == k->number)
		p->dialled = 0;
	if (p->conn == k->number) {
		p->conn = 0;
		p->unsent = HC_NONE;
	}
	k->peer = HC_NONE;
}

void hc_conn_own(struct hc_core *c, struct hc_conn *k, uint32_t peer)
{
	struct hc_peer *p = hc_peer_get(c, peer);

	if (k->peer == peer)
		return;
	disown(c, k);
	k->peer = peer;
	hc_list_push(&p->conn_list, &c->net->conn_links, slot_of(c, k));
}

static void release(struct hc_core *c, struct hc_conn *k)
{
	struct hc_net *n = c->net;
	const uint32_t i = slot_of(c, k);

	disown(c, k);
	set_limit(c, k, HC_NEVER);
	hc_index_del(&n->conn_by_number, i);
	k->number = 0;
	hc_pool_put(&n->conn_pool, i);
}

static void emit_close(struct hc_core *c, uint64_t number)
{
	hc_emit_action(c, HC_ACT_CONN_CLOSE)->u.conn.conn = number;
}

void hc_conn_send(struct hc_core *c, uint64_t number, uint32_t id, int32_t status,
		  const struct hc_desc *d, const void *msg)
{
	struct hc_action *a = hc_emit_action(c, HC_ACT_CONN_SEND);
	size_t len;
	int r;

	r = hc_frame_write(c->out->bytes + c->out->used, HC_OUT_BYTES - c->out->used, d,
			   HC_PROTO_MAX, id, status, msg, &len);
	hc_assert(r == 0);
	a->u.conn.conn = number;
	a->len = (uint32_t)len;
	c->out->used += (uint32_t)len;
}

void hc_conn_close(struct hc_core *c, struct hc_conn *k, uint16_t refusal, const char *why)
{
	const struct hc_m_peer_refuse m = {.code = refusal, .text = hc_str(why)};

	if (why && k->up)
		hc_conn_send(c, k->number, 0, 0, &hc_desc_peer_refuse, &m);
	emit_close(c, k->number);
	release(c, k);
}

void hc_conn_close_all(struct hc_core *c, uint32_t peer, const struct hc_conn *but)
{
	struct hc_peer *p = hc_peer_get(c, peer);
	uint32_t i, next;

	for (i = hc_list_first(&p->conn_list); i != HC_NONE; i = next) {
		next = hc_list_next(&c->net->conn_links, i);
		if (&c->net->conns[i] != but)
			hc_conn_close(c, &c->net->conns[i], HC_W_refusal_NONE,
				      "another connection is used");
	}
}

/* ---- dialling ---- */

void hc_peer_dial_in(struct hc_core *c, uint32_t peer, uint32_t delay_ms)
{
	struct hc_peer *p = hc_peer_get(c, peer);
	const uint64_t at = c->now + (uint64_t)delay_ms * MS;

	if (!c->self.peers || p->conn || p->dialled || p->twin != HC_NONE || p->dial_at <= at)
		return;
	p->dial_at = at;
	hc_peer_arm(c, peer);
}

/* The next delay: doubled up to the limit, and up to a tenth off it by chance. */
void hc_peer_back_off(struct hc_core *c, uint32_t peer)
{
	struct hc_peer *p = hc_peer_get(c, peer);
	const uint32_t most = p->sought && !p->known ? BACKOFF_JOIN_MS : BACKOFF_MAX_MS;
	uint32_t ms = p->dial_backoff_ms ? 2 * p->dial_backoff_ms : BACKOFF_MIN_MS;

	if (ms > most)
		ms = most;
	p->dial_backoff_ms = ms;
	p->dial_at = HC_NEVER;
	hc_peer_dial_in(c, peer, ms - (uint32_t)(hc_rng_u64(c) % (ms / 10)));
}

/* An announced port is dialled if it can be another host's, and others come first. */
static bool is_worth(const struct hc_peer *p, const struct hc_far_port *f, bool last)
{
	return !f->ourselves && f->last == last &&
	       (!hc_addr_is_loopback(&f->at.addr) || hc_addr_is_loopback(&p->address.addr));
}

/* The endpoints in turn: configured ones, announced ones, those of last resort. */
static bool pick(struct hc_peer *p, struct hc_endpoint *to)
{
	const uint32_t all = p->nendpoints + 2 * p->nports;
	uint32_t tried, i, k;

	for (tried = 0; tried < all; tried++) {
		i = p->next_endpoint++ % all;
		p->next_endpoint %= all;
		if (i < p->nendpoints && !(p->ourselves & 1u << i)) {
			*to = p->endpoints[i];
			return true;
		}
		k = i < p->nendpoints ? HC_NONE : (i - p->nendpoints) % p->nports;
		if (k != HC_NONE && is_worth(p, &p->ports[k], i - p->nendpoints >= p->nports)) {
			*to = p->ports[k].at;
			return true;
		}
	}
	return false;
}

static void dial(struct hc_core *c, uint32_t peer, const struct hc_endpoint *to,
		 const struct hc_addr *from)
{
	struct hc_peer *p = hc_peer_get(c, peer);
	struct hc_conn *k = make(c, ++c->net->conn_serial);
	struct hc_action *a;

	if (!k) {
		HC_TEXT(p->last_error, "too many connections are under way");
		hc_peer_back_off(c, peer);
		return;
	}
	hc_conn_own(c, k, peer);
	k->remote = *to;
	p->dialled = k->number;
	p->dials++;
	if (p->state == HC_W_node_state_UNKNOWN) {
		p->state = HC_W_node_state_CONNECTING;
		p->since = c->now;
	}
	if (p->state != HC_W_node_state_UP)
		p->address = *to;
	a = hc_emit_action(c, HC_ACT_DIAL);
	a->u.conn.conn = k->number;
	a->u.conn.to = *to;
	if (from)
		a->u.conn.from = *from;
	c->net->node_changes++;
}

void hc_peer_dial(struct hc_core *c, uint32_t peer)
{
	struct hc_peer *p = hc_peer_get(c, peer);
	struct hc_endpoint to;

	p->dial_at = HC_NEVER;
	if (p->conn || p->dialled || p->twin != HC_NONE || !c->self.peers)
		return;
	if (pick(p, &to))
		dial(c, peer, &to, NULL);
}

void hc_peer_dial_path(struct hc_core *c, uint32_t peer, uint32_t path)
{
	const struct hc_path *h = &c->net->paths[path];
	const struct hc_peer *p = hc_peer_get(c, peer);

	if (!p->dialled && c->self.peers)
		dial(c, peer, &h->remote, &h->local.addr);
}

/* ---- which one counts ---- */

/* Theirs is known from now on; what came of an earlier stream is of no account. */
static void welcome(struct hc_core *c, struct hc_conn *k)
{
	struct hc_peer *p = hc_peer_get(c, k->peer);
	struct hc_m_peer_welcome m = {.stream = k->stream};

	if (p->stream_in != k->stream) {
		p->fresh = true;
		p->stream_in = k->stream;
		p->received = p->told = p->ack_bytes = 0;
		p->ack_at = HC_NEVER;
		m.stream = 0;
	}
	m.received = p->received;
	hc_conn_send(c, k->number, 0, 0, &hc_desc_peer_welcome, &m);
	k->chosen = true;
}

static void new_keys(struct hc_core *c, struct hc_conn *k)
{
	struct hc_peer *p = hc_peer_get(c, k->peer);
	struct hc_action *a;

	if (p->key_old) { /* two connections within the time of one old key */
		a = hc_emit_action(c, HC_ACT_KEY_DROP);
		a->u.key.peer = k->peer;
		a->u.key.key = p->key_old;
	}
	p->key_old = p->key_in;
	p->key_in = k->key_in;
	p->key_out = k->key_out;
	a = hc_emit_action(c, HC_ACT_KEY_MAKE);
	a->u.key.conn = k->number;
	a->u.key.peer = k->peer;
	a->u.key.key = k->key_in;
	memcpy(a->u.key.node_id, p->node_id, 16);
	a->u.key.start = p->start;
	a->u.key.cookie = p->cookie;
	hc_beat_new_keys(c, k->peer);
}

/*
 * Where the mail goes on. The daemon that has our numbers goes on with what it acknowledged,
 * whatever its word is: a welcome on another connection of that time may be older than its
 * acknowledgements. Another daemon has nothing of what its predecessor was sent. And so has one
 * that names another stream though it was asked after the last connection stood: it found a gap.
 */
static void resume(struct hc_core *c, struct hc_conn *k, const struct hc_m_peer_welcome *m)
{
	const uint32_t peer = k->peer;
	struct hc_peer *p = hc_peer_get(c, peer);
	const uint64_t stream = p->stream_out;
	const bool other = p->mail_cookie && p->mail_cookie != k->cookie,
		   named = m->stream == stream;
	const bool lost = !other && !named && p->acked && k->said_at > p->conn_since;
	char text[HC_NAME_MAX + 128];

	p->fresh = p->fresh || other || lost || !p->mail_cookie;
	p->mail_cookie = k->cookie;
	if (!other && !lost) {
		hc_peer_resume(c, peer, named ? m->received : p->acked);
		return;
	}
	HC_TEXT(text, "node %s: %u messages %s are dropped", p->name, p->mail_count,
		lost ? "after a gap" : "for its earlier start");
	if (lost)
		hc_notice(c, HC_LOG_ERROR, HC_W_event_code_MAIL_LOST, p->node, text);
	else if (p->mail_count)
		hc_emit_log(c, HC_LOG_INFO, 0, 0, HC_NONE, text);
	hc_peer_mail_drop(c, peer);
	p->stream_out = stream; /* as our hello said */
	hc_peer_resume(c, peer, 0);
}

/* What our hello said on it is not so any more, or another daemon has spoken since. */
static bool is_overtaken(const struct hc_peer *p, const struct hc_conn *k)
{
	return k->said_stream != p->stream_out ||
	       (p->mail_cookie && p->mail_cookie != k->cookie && k->said_at <= p->conn_since);
}

/* One that came in has a port of the moment: people want the one where it listens. */
static struct hc_endpoint known_as(const struct hc_peer *p, const struct hc_endpoint *remote)
{
	uint32_t i;

	for (i = 0; i < p->nports; i++)
		if (hc_addr_eq(&p->ports[i].at.addr, &remote->addr))
			return p->ports[i].at;
	return *remote;
}

static void done(struct hc_core *c, struct hc_conn *k, const struct hc_m_peer_welcome *m)
{
	const uint32_t peer = k->peer;
	struct hc_peer *p = hc_peer_get(c, peer);

	k->welcomed = true;
	set_limit(c, k, HC_NEVER);
	p->conn = k->number;
	if (p->dialled == k->number)
		p->dialled = 0;
	resume(c, k, m);
	p->conns++;
	p->conn_since = c->now;
	p->address = known_as(p, &k->remote);
	new_keys(c, k);
	/* who is dialled hears of a change by the hello, unless that went before it */
	if (c->net->ports_chosen && k->said_ports != c->net->last_own)
		hc_peer_busy(c, peer, PEER_PORTS);
	hc_peer_up(c, peer);
	if (p->fresh)
		hc_again(c, p->node);
	p->fresh = false;
}

void hc_conn_heard(struct hc_core *c, struct hc_conn *k)
{
	struct hc_peer *p = hc_peer_get(c, k->peer);

	p->dial_backoff_ms = 0;
	if (!hc_peer_chooses(c, p) || k->chosen)
		return;
	hc_conn_close_all(c, k->peer, k);
	welcome(c, k);
}

static void broken(struct hc_core *c, struct hc_conn *k, const char *why)
{
	const uint32_t peer = k->peer;
	struct hc_peer *p = peer == HC_NONE ? NULL : hc_peer_get(c, peer);
	const bool counted = p && p->conn == k->number;
	char text[256], at[HC_ENDPOINT_TEXT_MAX];

	HC_TEXT(text, "connection with %.64s at %s is closed: %s", p ? p->name : "a node",
		hc_endpoint_text(&k->remote, at), why);
	hc_emit_log(c, HC_LOG_WARN, 0, 0, HC_NONE, text);
	hc_conn_close(c, k, HC_W_refusal_MALFORMED, why);
	if (!p)
		return;
	p->last_end = HC_W_conn_end_BROKEN;
	hc_str_copy(hc_str(text), p->last_error, sizeof(p->last_error));
	if (counted)
		hc_peer_parted(c, peer, HC_W_conn_end_BROKEN, text);
	else
		hc_peer_back_off(c, peer);
}

static void on_welcome(struct hc_core *c, struct hc_conn *k, const struct hc_frame *f)
{
	struct hc_m_peer_welcome m;
	struct hc_peer *p;
	struct hc_conn *old;
	uint32_t i, next, peer;

	if (hc_decode(&hc_desc_peer_welcome, HC_PROTO_MAX, f->body, f->body_len, &m) || !k->heard ||
	    !k->said || k->welcomed) {
		broken(c, k, "a welcome that is none, or out of turn");
		return;
	}
	p = hc_peer_get(c, peer = k->peer);
	if (is_overtaken(p, k)) {
		hc_conn_close(c, k, HC_W_refusal_NONE, "it is overtaken by another connection");
		hc_peer_back_off(c, peer);
		return;
	}
	if (!hc_peer_chooses(c, p)) {
		for (i = hc_list_first(&p->conn_list); i != HC_NONE; i = next) {
			next = hc_list_next(&c->net->conn_links, i);
			old = &c->net->conns[i];
			if (old != k && (!old->said || old->welcomed)) /* see above */
				hc_conn_close(c, old, 0, NULL);
		}
		welcome(c, k);
	} else if (!k->chosen) {
		broken(c, k, "a welcome before ours, which is to be the first");
		return;
	}
	done(c, k, &m);
}

/* ---- events ---- */

static bool alone(struct hc_core *c, uint64_t number)
{
	if (c->self.peers && c->lim.peers)
		return false;
	emit_close(c, number);
	return true;
}

void hc_peer_conn_up(struct hc_core *c, const struct hc_event *ev)
{
	const uint64_t number = ev->u.conn.conn;
	struct hc_conn *k = hc_conn_find(c, number);

	if (alone(c, number))
		return;
	if (!k && number >= HC_CONN_IN)
		k = make(c, number);
	if (!k) { /* we have given it up meanwhile, or have no room: it will come again */
		emit_close(c, number);
		return;
	}
	k->up = true;
	k->local = ev->u.conn.local;
	k->remote = ev->u.conn.remote;
	set_limit(c, k, hello_limit(c));
	if (number < HC_CONN_IN)
		hc_hello_say(c, k);
}

static const char *end_text(const struct hc_core *c, const struct hc_event *ev, char text[160],
			    const struct hc_conn *k)
{
	char at[HC_ENDPOINT_TEXT_MAX];
	const char *word = hc_word_conn_end(ev->u.conn.end);

	(void)c;
	hc_endpoint_text(&k->remote, at);
	if (ev->u.conn.text.len)
		snprintf(text, 160, "%s: %s: %.*s", at, word,
			 ev->u.conn.text.len < 60 ? (int)ev->u.conn.text.len : 60,
			 ev->u.conn.text.p);
	else
		snprintf(text, 160, "%s: %s", at, word);
	return text;
}

static uint16_t refusal_of(uint16_t end)
{
	switch (end) {
	case HC_W_conn_end_KEY: return HC_W_refusal_SECURITY;
	case HC_W_conn_end_CLUSTER: return HC_W_refusal_CLUSTER;
	case HC_W_conn_end_FOREIGN: return HC_W_refusal_MALFORMED;
	}
	return HC_W_refusal_NONE;
}

/* Somebody who is none of us, or the other way round. */
static void turned_away(struct hc_core *c, uint32_t peer, uint16_t end,
			const struct hc_endpoint *at, const char *text)
{
	struct hc_peer *p = peer == HC_NONE ? NULL : hc_peer_get(c, peer);

	if (refusal_of(end) == HC_W_refusal_NONE)
		return;
	hc_refusal_notice(c, refusal_of(end), p ? p->node : HC_NONE, at, text);
	if (p && p->state != HC_W_node_state_UP && !hc_peer_excused(c, p)) {
		p->state = HC_W_node_state_REFUSED;
		p->since = c->now;
	}
}

/* Another connection of it that a hello came over: it lives. */
static bool has_heir(const struct hc_core *c, const struct hc_peer *p)
{
	uint32_t i;

	for (i = hc_list_first(&p->conn_list); i != HC_NONE;
	     i = hc_list_next(&c->net->conn_links, i))
		if (c->net->conns[i].heard)
			return true;
	return false;
}

/* That kernel is the peer's: the connection that counted went there, or it announced it. */
static bool is_its_own(const struct hc_peer *p, const struct hc_endpoint *at)
{
	uint32_t i;

	for (i = 0; i < p->nports; i++)
		if (hc_addr_eq(&p->ports[i].at.addr, &at->addr))
			return true;
	return p->conns && hc_endpoint_eq(&p->address, at);
}

/* A connection of the peer has ended; it is released already. `counted`: mail went over it. */
static void ended(struct hc_core *c, uint32_t peer, const struct hc_conn *k, uint16_t end,
		  const char *why, bool counted)
{
	struct hc_peer *p = hc_peer_get(c, peer);

	p->last_end = end;
	if (p->conn || has_heir(c, p))
		return;
	hc_str_copy(hc_str(why), p->last_error, sizeof(p->last_error));
	if (counted || (k->heard && p->state == HC_W_node_state_UP)) {
		p->parted = k->parted;
		hc_peer_parted(c, peer, end, why);
		return;
	}
	if (end == HC_W_conn_end_REFUSED && is_its_own(p, &k->remote))
		hc_peer_daemon_down(c, peer, why);
	hc_peer_back_off(c, peer);
}

void hc_peer_conn_lost(struct hc_core *c, const struct hc_event *ev)
{
	struct hc_conn *k = hc_conn_find(c, ev->u.conn.conn);
	struct hc_conn was;
	char text[160];
	bool counted;

	if (!k)
		return;
	end_text(c, ev, text, k);
	counted = k->peer != HC_NONE && hc_peer_get(c, k->peer)->conn == k->number;
	was = *k;
	release(c, k);
	turned_away(c, was.peer, ev->u.conn.end, &was.remote, text);
	if (was.peer != HC_NONE)
		ended(c, was.peer, &was, ev->u.conn.end, text, counted);
}

void hc_conn_timeout(struct hc_core *c, uint32_t slot)
{
	struct hc_conn *k = &c->net->conns[slot];
	const struct hc_conn was = *k;
	char text[160], at[HC_ENDPOINT_TEXT_MAX];

	HC_TEXT(text, "%s: %s within %llu ms", hc_endpoint_text(&was.remote, at),
		was.up ? "no hello and welcome" : "no connection",
		(unsigned long long)((c->set.probe_timeout_ns + HELLO_NS) / MS));
	hc_conn_close(c, k, HC_W_refusal_NONE, "no hello and welcome in time");
	if (was.peer != HC_NONE)
		ended(c, was.peer, &was, HC_W_conn_end_TIMEOUT, text, false);
}

/* ---- messages ---- */

#define DECODED(type) !hc_decode(&hc_desc_##type, HC_PROTO_MAX, f->body, f->body_len, &m.type)

static void on_heard(struct hc_core *c, uint32_t peer, const struct hc_m_peer_heard *m)
{
	const uint32_t who = hc_peer_find(c, m->node_id.b);
	struct hc_m_peer_heard_r r = {.ticket = m->ticket, .age_ms = HC_NONE};
	uint64_t ms, at = HC_NEVER;

	if (who != HC_NONE)
		at = hc_peer_heard_at(c, hc_peer_get(c, who));
	if (at != HC_NEVER) {
		ms = (c->now - at) / MS;
		r.age_ms = ms < HC_NONE ? (uint32_t)ms : HC_NONE - 1;
	}
	hc_peer_send(c, peer, &hc_desc_peer_heard_r, &r);
}

static void on_heard_r(struct hc_core *c, uint32_t peer, const struct hc_m_peer_heard_r *m)
{
	struct hc_peer *p = hc_peer_get(c, peer);

	if (m->ticket)
		hc_path_confirmed(c, peer, m->ticket, m->age_ms);
	else if (p->asked)
		p->lives = true; /* it answers, while a rival says that it is that node */
}

/* Messages of daemons about themselves. False: it is none, or malformed. */
static bool on_own(struct hc_core *c, uint32_t peer, const struct hc_frame *f)
{
	union {
		struct hc_m_peer_ports peer_ports;
		struct hc_m_peer_hold peer_hold;
		struct hc_m_peer_heard peer_heard;
		struct hc_m_peer_heard_r peer_heard_r;
	} m;

	switch (f->head.type) {
	case HC_MSG_peer_ports:
		if (!DECODED(peer_ports))
			return false;
		hc_peer_ports(c, peer, &m.peer_ports.ports);
		hc_path_routes(c, peer);
		return true;
	case HC_MSG_peer_hold:
		if (!DECODED(peer_hold))
			return false;
		hc_peer_on_hold(c, peer, m.peer_hold.hold_ms);
		return true;
	case HC_MSG_peer_heard:
		if (!DECODED(peer_heard))
			return false;
		on_heard(c, peer, &m.peer_heard);
		return true;
	case HC_MSG_peer_heard_r:
		if (!DECODED(peer_heard_r))
			return false;
		on_heard_r(c, peer, &m.peer_heard_r);
		return true;
	case HC_MSG_peer_sum: hc_core_message(c, hc_peer_get(c, peer)->node, f); return true;
	}
	return false;
}

/* A numbered one, of the connection that counts. */
static void on_numbered(struct hc_core *c, struct hc_conn *k, const struct hc_frame *f)
{
	const uint32_t peer = k->peer;
	struct hc_peer *p = hc_peer_get(c, peer);

	switch (hc_peer_take(c, peer, f)) {
	case HC_E_EXISTS: return;
	case HC_E_MALFORMED:
		p->stream_in = 0; /* it is asked to begin anew: else that gap is there for ever */
		broken(c, k, "a message is missing");
		return;
	}
	if (f->head.type >= 100 && f->head.type < 200)
		hc_core_message(c, p->node, f);
	else if (!on_own(c, peer, f))
		broken(c, k, "a message that is none of this protocol");
}

static void on_counted(struct hc_core *c, struct hc_conn *k, const struct hc_frame *f)
{
	const uint32_t peer = k->peer;
	struct hc_m_peer_ack ack;

	hc_peer_alive(c, peer);
	if (f->head.type != HC_MSG_peer_ack) {
		on_numbered(c, k, f);
		return;
	}
	if (hc_decode(&hc_desc_peer_ack, HC_PROTO_MAX, f->body, f->body_len, &ack))
		broken(c, k, "a malformed acknowledgement");
	else
		hc_peer_acknowledge(c, peer, (uint32_t)f->head.status);
}

static void on_refuse(struct hc_core *c, struct hc_conn *k, const struct hc_frame *f)
{
	struct hc_m_peer_refuse m;

	if (hc_decode(&hc_desc_peer_refuse, HC_PROTO_MAX, f->body, f->body_len, &m))
		broken(c, k, "a malformed refusal");
	else
		hc_hello_refused(c, k, &m);
}

void hc_peer_conn_msg(struct hc_core *c, const struct hc_event *ev)
{
	const struct hc_frame *f = ev->u.conn.frame;
	struct hc_conn *k = hc_conn_find(c, ev->u.conn.conn);

	if (!k || !k->up)
		return; /* it was closed meanwhile */
	switch (f->head.type) {
	case HC_MSG_peer_hello: hc_hello_on(c, k, f); return;
	case HC_MSG_peer_welcome: on_welcome(c, k, f); return;
	case HC_MSG_peer_refuse: on_refuse(c, k, f); return;
	}
	if (k->welcomed && k->peer != HC_NONE && hc_peer_get(c, k->peer)->conn == k->number)
		on_counted(c, k, f);
	else
		broken(c, k, "a message before both welcomes");
}
