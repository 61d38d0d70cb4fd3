/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Heartbeats: sending and hearing. Judging is in beat_judge.c.
 *
 * All paths that send at one interval do so in one burst, so that the node wakes once. Each burst
 * draws a number and the next one comes by up to a tenth of the interval sooner than planned: nodes
 * do not march in step, and no gap between two beats is longer than the interval. A burst that
 * is late does not shift the next one. A path that is new sends at once and then with the others.
 *
 * Both nodes use the slower of their two wishes. A wish is in every beat. While ours changes, for
 * one window, we send at the faster of old and new and judge by the slower: whoever has not
 * heard of it yet is neither accused by us nor has a reason to accuse us.
 *
 * A beat echoes the send time of the last frame that came and how long ago that was. So each
 * beat measures the round trip, and a beat with HEARS whose echo is younger than the window proves
 * that both directions work now. Times are 32 bits of microseconds and compared modulo 2^32.
 *
 * Frames that come out of order are counted and prove nothing: who holds frames back and lets
 * them go later must not keep a dead path alive.
 */
#include "datagram.h"
#include "digest.h"
#include "emit.h"
#include "pathimp.h"
#include "rng.h"

#include <errno.h>
#include <string.h>

#define BURST_UNIT   32u   /* beats in one unit of work */
#define JITTER       1024u /* of 10,240: a tenth */
#define SCALE        10240u
#define DIFFER_BEATS 3u
#define OLD_KEYS     2u /* intervals for which the old key is accepted */

/* ---- intervals ---- */

uint64_t hc_path_interval(const struct hc_core *c, const struct hc_path *p)
{
	return hc_longer(c->net->wish_hi, p->their_wish_ns);
}

uint64_t hc_path_window(const struct hc_core *c, const struct hc_path *p)
{
	return hc_path_interval(c, p) * c->set.misses;
}

uint64_t hc_path_down_window(const struct hc_core *c, const struct hc_path *p)
{
	return hc_path_interval(c, p) * c->set.down_misses;
}

uint64_t hc_beat_interval(const struct hc_core *c, const struct hc_path *p)
{
	return hc_longer(c->net->wish_lo, p->their_wish_ns);
}

void hc_beat_start(struct hc_core *c)
{
	struct hc_net *n = c->net;

	n->tick_at = n->look_at = n->common_at = n->late_since = HC_NEVER;
	n->wish_until = n->stall_told_at = HC_NEVER;
	n->burst = n->look = HC_NONE;
	n->wish_ns = n->wish_lo = n->wish_hi = c->set.beat_ns;
}

/* All paths send by the new interval, and are looked at by it. */
static void hasten(struct hc_core *c)
{
	struct hc_net *n = c->net;
	uint32_t x;

	n->common_at = hc_first(n->common_at, c->now + n->wish_lo);
	for (x = 0; x < n->path_top; x++) {
		if (!n->paths[x].id)
			continue;
		hc_path_beat_by(n, x, c->now + hc_beat_interval(c, &n->paths[x]));
		hc_path_look_by(n, x, c->now);
	}
}

void hc_beat_settings(struct hc_core *c)
{
	struct hc_net *n = c->net;

	if (n->wish_ns != c->set.beat_ns) {
		n->wish_ns = c->set.beat_ns;
		n->wish_lo = hc_first(n->wish_lo, n->wish_ns);
		n->wish_hi = hc_longer(n->wish_hi, n->wish_ns);
		n->wish_until = c->now + n->wish_hi * c->set.misses;
	}
	hasten(c);
}

/* The window for which the new wish was announced is over. */
static void settle_wish(struct hc_core *c)
{
	struct hc_net *n = c->net;

	n->wish_lo = n->wish_hi = n->wish_ns;
	n->wish_until = HC_NEVER;
	hasten(c);
}

/* ---- sending ---- */

static void head(struct hc_core *c, struct hc_path *p, uint16_t type, union hc_datagram *m)
{
	m->beat.magic = HC_DATAGRAM_MAGIC;
	m->beat.version = HC_DATAGRAM_VERSION;
	m->beat.type = (uint8_t)type;
	m->beat.key = c->net->peers[p->peer].key_out;
	m->beat.start = c->self.start;
	m->beat.path = p->id;
	m->beat.seq = ++p->tx_seq;
}

void hc_beat_put(struct hc_core *c, uint32_t path, const struct hc_desc *d, union hc_datagram *m,
		 bool urgent)
{
	struct hc_path *p = &c->net->paths[path];

	if (!c->net->peers[p->peer].key_out)
		return;
	head(c, p, d->number, m);
	hc_emit_datagram(c, p->peer, &p->remote, &p->local.addr, urgent, d, m);
	p->sent++;
}

static uint32_t held_us(const struct hc_core *c, const struct hc_path *p)
{
	const uint64_t held = p->echo_at == HC_NEVER ? HC_NEVER : (c->now - p->echo_at) / HC_US;

	return held > UINT32_MAX / 2 ? HC_PROOF_NO_AGE : (uint32_t)held;
}

static void send(struct hc_core *c, uint32_t x, uint16_t flags, bool urgent)
{
	const struct hc_net *n = c->net;
	const struct hc_path *p = &n->paths[x];
	const bool hears = p->heard_at != HC_NEVER && p->run < c->set.misses;
	const bool holds = c->now < n->hold_until;
	union hc_datagram m;

	m.beat = (struct hc_m_beat){.sent_us = (uint32_t)(c->now / HC_US),
				    .echo_us = p->heard_us,
				    .held_us = held_us(c, p),
				    .echo_seq = p->heard_seq,
				    .flags = (uint16_t)(flags | (hears ? HC_BEAT_HEARS : 0) |
							(holds ? HC_BEAT_HOLDS : 0)),
				    .interval_ms = (uint16_t)(n->wish_ns / HC_MS),
				    .gen_out = p->gen_out,
				    .gen_in = p->gen_in,
				    .digest = n->peers[p->peer].digest};

	hc_beat_put(c, x, &hc_desc_beat, &m, urgent);
}

void hc_beat_now(struct hc_core *c, uint32_t path, uint16_t flags)
{
	send(c, path, flags, true);
}

void hc_beat_begin(struct hc_core *c, uint32_t path)
{
	struct hc_net *n = c->net;

	if (n->common_at == HC_NEVER)
		n->common_at = c->now + n->wish_lo;
	hc_path_beat_by(n, path, c->now);
}

/* ---- bursts ---- */

static void begin_burst(struct hc_core *c)
{
	struct hc_net *n = c->net;
	uint64_t gap;

	hc_beat_note_late(c);
	if (c->now >= n->wish_until)
		settle_wish(c);
	n->early = hc_rng_u64(c) % (JITTER + 1);
	gap = n->wish_lo - n->wish_lo * n->early / SCALE;
	if (n->common_at <= c->now)
		n->common_at += gap;
	if (n->common_at <= c->now)
		n->common_at = c->now + gap;
	n->burst = 0;
	n->tick_at = HC_NEVER;
}

static uint64_t next_beat(const struct hc_core *c, const struct hc_path *p, uint64_t planned)
{
	const struct hc_net *n = c->net;
	const uint64_t interval = hc_beat_interval(c, p),
		       gap = interval - interval * n->early / SCALE;

	if (interval == n->wish_lo)
		return n->common_at;
	return planned + gap > c->now ? planned + gap : c->now + gap;
}

static void drop_old_key(struct hc_core *c, struct hc_peer *peer)
{
	struct hc_action *a = hc_emit_action(c, HC_ACT_KEY_DROP);

	a->u.key.key = peer->key_old;
	peer->key_old = 0;
}

static void beat(struct hc_core *c, uint32_t x)
{
	struct hc_path *p = &c->net->paths[x];
	struct hc_peer *peer = &c->net->peers[p->peer];
	/* nothing was heard yet: the answer is the proof */
	const uint16_t flags = p->state == HC_W_path_state_UNKNOWN ? HC_BEAT_ASKS : 0;

	if (peer->key_old && c->now >= peer->old_until)
		drop_old_key(c, peer);
	send(c, x, flags, false);
	c->net->beats[x] = next_beat(c, p, c->net->beats[x]);
}

/* Some beats of the burst under way; what is due soon goes along. */
static void burst(struct hc_core *c)
{
	struct hc_net *n = c->net;
	const uint64_t by = c->now + n->wish_lo / 10;
	uint32_t sent = 0;

	for (; n->burst < n->path_top && sent < BURST_UNIT; n->burst++) {
		if (n->beats[n->burst] <= by && n->beats[n->burst] != n->common_at) {
			beat(c, n->burst);
			sent++;
		}
		n->tick_at = hc_first(n->tick_at, n->beats[n->burst]);
	}
	if (n->burst == n->path_top)
		n->burst = HC_NONE;
}

bool hc_beat_work(struct hc_core *c)
{
	struct hc_net *n = c->net;

	if (n->burst == HC_NONE && (n->tick_at <= c->now || n->wish_until <= c->now))
		begin_burst(c);
	if (n->burst != HC_NONE) {
		burst(c);
		return true;
	}
	return hc_path_work(c) || hc_beat_look(c);
}

uint64_t hc_beat_deadline(const struct hc_core *c)
{
	const struct hc_net *n = c->net;

	if (n->burst != HC_NONE || n->look != HC_NONE || n->asks)
		return c->now;
	return hc_first(n->wish_until, hc_first(n->tick_at, n->look_at));
}

/* ---- keys ---- */

void hc_beat_new_keys(struct hc_core *c, uint32_t peer)
{
	struct hc_net *n = c->net;
	struct hc_peer *p = &n->peers[peer];
	uint64_t longest = 0;
	uint32_t i;

	p->seq_floor = 0;
	for (i = 0; i < p->npaths; i++) {
		n->paths[p->paths[i]].tx_seq = 0;
		longest = hc_longer(longest, hc_path_interval(c, &n->paths[p->paths[i]]));
		hc_path_beat_by(n, p->paths[i], c->now);
	}
	p->old_until = c->now + OLD_KEYS * longest;
}

/* ---- hearing ---- */

static bool is_key(const struct hc_core *c, const struct hc_peer *peer, uint32_t key)
{
	if (!peer->used || !key)
		return false;
	return key == peer->key_in || (key == peer->key_old && c->now < peer->old_until);
}

static struct hc_window *window_of(struct hc_path *p, uint32_t key)
{
	if (p->window[0].key == key)
		return &p->window[0];
	if (p->window[1].key == key)
		return &p->window[1];
	p->window[1] = p->window[0];
	p->window[0] = (struct hc_window){.key = key};
	return &p->window[0];
}

enum order { REPLAYED, LATE, NEWEST };

static enum order take_number(struct hc_window *w, uint64_t seq)
{
	uint64_t by = seq - w->top;

	if (seq > w->top) {
		w->bits = by < 64 ? w->bits << by : 0;
		if (w->top && by <= 64)
			w->bits |= 1ull << (by - 1);
		w->top = seq;
		return NEWEST;
	}
	by = w->top - seq;
	if (!seq || !by || by > 64 || w->bits >> (by - 1) & 1)
		return REPLAYED;
	w->bits |= 1ull << (by - 1);
	return LATE;
}

/* The path that an authentic frame came by, HC_NONE: it is none of ours, or not as it must be. */
static uint32_t path_of(struct hc_core *c, const struct hc_event *ev, const struct hc_m_beat *m)
{
	struct hc_net *n = c->net;
	const uint32_t peer = m->key & 0xffff;

	if (m->key != ev->u.datagram.key || peer >= n->peer_pool.cap ||
	    !is_key(c, &n->peers[peer], m->key) || m->start != n->peers[peer].start) {
		n->malformed++;
		return HC_NONE;
	}
	return hc_path_find(c, peer, m->path, &ev->u.datagram.local, &ev->u.datagram.remote);
}

/* The first good frame under the new key ends the old one. */
static void new_key_works(struct hc_core *c, struct hc_peer *peer, uint32_t key)
{
	if (peer->key_old && key == peer->key_in)
		drop_old_key(c, peer);
}

static enum order admit(struct hc_core *c, struct hc_path *p, const struct hc_m_beat *m)
{
	const enum order o = take_number(window_of(p, m->key), m->seq);

	if (o == REPLAYED) {
		p->replays++;
		p->refused++;
		c->net->replays++;
		return o;
	}
	new_key_works(c, &c->net->peers[p->peer], m->key);
	p->received++;
	p->late += o == LATE;
	return o;
}

/* It comes after silence, or more than that is to be looked at. */
static void heard_odd(struct hc_core *c, uint32_t x)
{
	struct hc_path *p = &c->net->paths[x];
	const bool was_silent = p->run >= c->set.misses;

	hc_beat_silence_over(c, x);
	p->odd = !hc_path_good(p);
	hc_path_look_by(c->net, x, c->now + hc_path_interval(c, p));
	p->heard_at = c->now;
	if (was_silent)
		hc_beat_now(c, x, 0); /* HEARS again */
}

static inline void heard(struct hc_core *c, uint32_t x)
{
	struct hc_path *p = &c->net->paths[x];
	const struct hc_peer *peer = &c->net->peers[p->peer];

	if (p->odd)
		heard_odd(c, x);
	p->heard_at = c->now;
	if (peer->state != HC_W_node_state_UP || !peer->conn)
		hc_peer_alive(c, p->peer);
}

void hc_beat_rtt(struct hc_core *c, struct hc_path *p, uint32_t rtt_us)
{
	const uint32_t change = rtt_us > p->rtt_us ? rtt_us - p->rtt_us : p->rtt_us - rtt_us;

	if (rtt_us > UINT32_MAX / 2 || c->net->late_since != HC_NEVER)
		return;   /* our own lateness is in it */
	if (p->rtt_count) /* as RFC 3550, 6.4.1 */
		p->jitter_us = (uint32_t)((int32_t)p->jitter_us +
					  ((int32_t)change - (int32_t)p->jitter_us) / 16);
	if (!p->rtt_count || rtt_us < p->rtt_best_us)
		p->rtt_best_us = rtt_us;
	if (rtt_us > p->rtt_max_us)
		p->rtt_max_us = rtt_us;
	p->rtt_us = rtt_us;
	p->rtt_log[p->rtt_count++ % 64] = rtt_us;
}

static void new_wish(struct hc_core *c, uint32_t x, uint64_t wish)
{
	struct hc_path *p = &c->net->paths[x];

	p->their_wish_ns = wish;
	p->judge_from = c->now; /* the window is another one from here on */
	hc_path_beat_by(c->net, x, c->now + hc_beat_interval(c, p));
	hc_path_look_by(c->net, x, c->now + hc_path_interval(c, p));
}

/* It does not hear us. If that lasts, it is a verdict: see beat_judge.c. */
static void deaf(struct hc_core *c, uint32_t x)
{
	struct hc_path *p = &c->net->paths[x];

	if (p->deaf_at != HC_NEVER || !hc_path_good(p))
		return;
	p->deaf_at = c->now;
	hc_path_look_by(c->net, x, c->now + hc_path_interval(c, p) * 5 / 4);
	hc_beat_now(c, x, HC_BEAT_ASKS);
}

/* How long ago we sent what it echoes. */
static uint64_t age_of(const struct hc_core *c, const struct hc_m_beat *m)
{
	return (uint32_t)((uint32_t)(c->now / HC_US) - m->echo_us) * HC_US;
}

/* Is what it echoes, and when we sent it, in the window? */
static bool proves(const struct hc_core *c, const struct hc_path *p, const struct hc_m_beat *m)
{
	return m->flags & HC_BEAT_HEARS && m->held_us != HC_PROOF_NO_AGE &&
	       age_of(c, m) <= hc_first(hc_path_window(c, p), c->now - p->made + HC_US);
}

/* One of the two begins. */
static void compare(struct hc_core *c, struct hc_peer *peer)
{
	if (peer->state != HC_W_node_state_UP || !peer->conn || !hc_peer_chooses(c, peer))
		return;
	peer->sums++;
	hc_digest_differs(c, peer->node);
}

static void digest(struct hc_core *c, struct hc_peer *peer, uint64_t far)
{
	if (far == peer->digest) {
		peer->differ_run = 0;
	} else if (peer->differ_run && peer->differ_a == peer->digest && peer->differ_b == far) {
		peer->differ_run++;
		if (peer->differ_run == DIFFER_BEATS)
			compare(c, peer);
	} else {
		peer->differ_a = peer->digest;
		peer->differ_b = far;
		peer->differ_run = 1;
	}
	peer->far_digest = far;
}

static void on_beat(struct hc_core *c, uint32_t x, const struct hc_m_beat *m)
{
	struct hc_path *p = &c->net->paths[x];
	struct hc_peer *peer = &c->net->peers[p->peer];

	p->heard_us = m->sent_us;
	p->heard_seq = (uint32_t)m->seq;
	p->echo_at = c->now;
	p->gen_in = m->gen_out;
	p->hears_us = m->flags & HC_BEAT_HEARS;
	if (m->interval_ms * HC_MS != p->their_wish_ns && m->interval_ms)
		new_wish(c, x, m->interval_ms * HC_MS);
	if (m->held_us != HC_PROOF_NO_AGE)
		hc_beat_rtt(c, p, (uint32_t)(c->now / HC_US) - m->echo_us - m->held_us);
	if (m->digest != peer->digest || peer->differ_run)
		digest(c, peer, m->digest);
	if (!p->hears_us)
		deaf(c, x);
	else
		p->deaf_at = HC_NEVER;
	if (proves(c, p, m)) {
		p->proof_at = c->now;
		if (!hc_path_good(p))
			hc_path_proof(c, x);
		p->proof_of = c->now - age_of(c, m);
	}
	if (m->flags & HC_BEAT_HOLDS)
		hc_peer_on_hold(c, p->peer, 0);
}

/* ---- datagrams ---- */

static const struct hc_desc *desc_of(const uint8_t *bytes, uint32_t len)
{
	if (len < HC_DATAGRAM_HEAD)
		return NULL;
	switch (bytes[HC_DATAGRAM_AT_TYPE]) {
	case HC_MSG_beat: return &hc_desc_beat;
	case HC_MSG_probe: return &hc_desc_probe;
	case HC_MSG_probed: return &hc_desc_probed;
	}
	return NULL;
}

static void dispatch(struct hc_core *c, uint32_t x, const union hc_datagram *m, enum order o)
{
	if (o == NEWEST)
		heard(c, x);
	switch (m->beat.type) {
	case HC_MSG_beat:
		if (o == NEWEST)
			on_beat(c, x, &m->beat);
		if ((m->beat.flags & (HC_BEAT_ASKS | HC_BEAT_ANSWERS)) == HC_BEAT_ASKS)
			hc_beat_now(c, x, HC_BEAT_ANSWERS);
		return;
	case HC_MSG_probe: hc_probe_on_probe(c, x, &m->probe); return;
	case HC_MSG_probed: hc_probe_on_answer(c, x, &m->probed); return;
	}
}

void hc_beat_datagram(struct hc_core *c, const struct hc_event *ev)
{
	const struct hc_desc *d = desc_of(ev->u.datagram.bytes, ev->u.datagram.len);
	union hc_datagram m;
	enum order o;
	uint32_t x;

	hc_beat_note_late(c);
	if (!d || hc_decode(d, HC_PROTO_MAX, ev->u.datagram.bytes, ev->u.datagram.len, &m) ||
	    m.beat.magic != HC_DATAGRAM_MAGIC || m.beat.version != HC_DATAGRAM_VERSION) {
		c->net->malformed++;
		return;
	}
	x = path_of(c, ev, &m.beat);
	if (x == HC_NONE)
		return;
	o = admit(c, &c->net->paths[x], &m.beat);
	if (o != REPLAYED)
		dispatch(c, x, &m, o);
}

static void bounced(struct hc_core *c, uint32_t x, const struct hc_event *ev)
{
	struct hc_path *p = &c->net->paths[x];

	p->bounced++;
	if (ev->u.bounced.error == ECONNREFUSED)
		hc_peer_daemon_down(c, p->peer, "its kernel says that nobody listens for beats");
	else if (ev->u.bounced.error == EMSGSIZE)
		hc_probe_too_big(c, x, ev->u.bounced.mtu);
}

void hc_beat_bounced(struct hc_core *c, const struct hc_event *ev)
{
	uint32_t x, next;

	for (x = hc_path_to(c, &ev->u.bounced.remote, HC_NONE); x != HC_NONE; x = next) {
		next = hc_path_to(c, &ev->u.bounced.remote, x);
		bounced(c, x, ev);
	}
}
