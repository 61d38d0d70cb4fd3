/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Peers: whether they are there, and what is told of it.
 *
 *   UNKNOWN      a section of the configuration that was not dialled yet
 *   CONNECTING   it is dialled
 *   UP           both welcomes went; paths and beats are judged
 *   HOLD         it said that it stops and comes back: nothing is judged until then
 *   DAEMON_DOWN  its kernel said that its daemon is gone: node and paths live, nothing is judged
 *                for the grace
 *   UNREACHABLE  the grace is over, or no path is left
 *   REFUSED      one of us turned the other away
 *
 * The end of a connection alone makes nobody unreachable: it is dialled again at once, and the
 * beats say what is true. A peer is dialled for ever. One that comes back within the grace as the
 * same incarnation has lost nothing; each change is one notice with node, address and cause.
 */
#include "away.h"
#include "emit.h"
#include "net.h"
#include "seek.h"

#include <stdio.h>

#define HOLD_MAX_MS 600000u
#define ALIVE_NS    20000000u /* a frame this late after the end was not under way before */
#define SILENCE_NS  1000000000u
#define MS          1000000u

/* ---- what is to be told to it ---- */

void hc_peer_busy(struct hc_core *c, uint32_t peer, uint8_t what)
{
	struct hc_peer *p = hc_peer_get(c, peer);

	if (!p->busy)
		hc_list_push(&c->net->busy, &c->net->busy_links, peer);
	p->busy |= what;
}

static void say_ports(struct hc_core *c, uint32_t peer)
{
	struct hc_m_peer_ports m;

	hc_port_announce(c, &m.ports);
	hc_peer_send(c, peer, &hc_desc_peer_ports, &m);
	hc_path_routes(c, peer);
}

/* By a beat on each path too: the end of the connection may overtake what was written to it. */
static void say_hold(struct hc_core *c, uint32_t peer)
{
	const struct hc_peer *p = hc_peer_get(c, peer);
	const struct hc_m_peer_hold hold = {.hold_ms = c->net->hold_ms};
	uint32_t i;

	hc_peer_send(c, peer, &hc_desc_peer_hold, &hold);
	for (i = 0; i < p->npaths; i++)
		hc_beat_now(c, p->paths[i], 0);
}

/* One of them. Numbered ones go after what is resumed: else an old word would come last. */
bool hc_peer_work(struct hc_core *c)
{
	struct hc_net *n = c->net;
	const uint32_t peer = hc_list_first(&n->busy);
	struct hc_peer *p;
	uint8_t what;

	if (peer == HC_NONE)
		return false;
	p = hc_peer_get(c, peer);
	if (p->busy & PEER_RESUMES && p->conn && p->unsent != HC_NONE) {
		hc_peer_mail_send(c, peer);
		return true;
	}
	what = p->busy;
	p->busy = 0;
	hc_list_del(&n->busy, &n->busy_links, peer);
	if (what & PEER_PORTS)
		say_ports(c, peer);
	if (what & PEER_HOLDS)
		say_hold(c, peer);
	return true;
}

/* Also to those that are not connected: what they get later must not be an older word. */
void hc_peer_tell_ports(struct hc_core *c)
{
	struct hc_net *n = c->net;
	uint32_t i;

	for (i = 0; i < n->peer_pool.fresh; i++) {
		struct hc_peer *p = &n->peers[i];
		uint32_t k;

		if (!p->used)
			continue;
		p->ourselves = 0; /* what reached ourselves may lead elsewhere now */
		for (k = 0; k < p->nports; k++)
			p->ports[k].ourselves = false;
		if (p->known && (p->conn || p->mail_count))
			hc_peer_busy(c, i, PEER_PORTS);
		else if (!p->conn && c->self.peers)
			hc_peer_dial_in(c, i, 0);
	}
}

void hc_peer_hold(struct hc_core *c, uint32_t hold_ms)
{
	struct hc_net *n = c->net;
	uint32_t i;

	n->hold_ms = hold_ms;
	n->hold_until = c->now + (uint64_t)hold_ms * MS;
	for (i = 0; i < n->peer_pool.fresh; i++)
		if (n->peers[i].used && n->peers[i].conn)
			hc_peer_busy(c, i, PEER_HOLDS);
}

/* ---- states ---- */

/* What was said and not said meanwhile is of no account. */
static void judge_anew(struct hc_core *c, const struct hc_peer *p)
{
	uint32_t i;

	for (i = 0; i < p->npaths; i++)
		c->net->paths[p->paths[i]].judge_from = c->now;
}

static void become(struct hc_core *c, struct hc_peer *p, uint8_t state)
{
	if (p->state == state)
		return;
	if (hc_peer_excused(c, p))
		judge_anew(c, p);
	p->state = state;
	p->since = c->now;
	c->net->node_changes++;
	if (state == HC_W_node_state_UP && p->node != HC_NONE)
		hc_away_back(c, p->node, p->incarnation);
	if (state == HC_W_node_state_UP)
		hc_seek_again(c);
}

/* "node b at 192.0.2.2:16660: ..." */
static void tell(struct hc_core *c, enum hc_level level, uint16_t kind, const struct hc_peer *p,
		 const char *what)
{
	char text[256], at[HC_ENDPOINT_TEXT_MAX] = "an unknown address";

	if (p->address.addr.family)
		hc_endpoint_text(&p->address, at);
	HC_TEXT(text, "node %.64s at %s: %s", p->name, at, what);
	hc_notice(c, level, kind, p->node == HC_NONE ? HC_SELF_NODE : p->node, text);
}

static void tell_news(struct hc_core *c, struct hc_peer *p, uint8_t was)
{
	const uint16_t kind = p->news ? p->news : (uint16_t)HC_W_event_code_NODE_UP;
	char text[128];

	if (p->news == HC_W_event_code_NODE_RESTARTED)
		HC_TEXT(text, "daemon restarted, state intact (start %u)", p->start);
	else if (p->news == HC_W_event_code_NODE_REBORN)
		HC_TEXT(text, "it begins anew: its earlier state is lost (incarnation %016llx)",
			(unsigned long long)p->incarnation);
	else if (was == HC_W_node_state_UP)
		return; /* another connection, nothing else */
	else if (was == HC_W_node_state_HOLD || was == HC_W_node_state_DAEMON_DOWN)
		HC_TEXT(text, "connected again, the same daemon: it was not gone");
	else if (was == HC_W_node_state_UNREACHABLE)
		HC_TEXT(text, "reachable again, the same daemon");
	else
		HC_TEXT(text, "connected (start %u, build %.60s)", p->start, p->build);
	tell(c, kind == HC_W_event_code_NODE_REBORN ? HC_LOG_WARN : HC_LOG_INFO, kind, p, text);
}

void hc_peer_up(struct hc_core *c, uint32_t peer)
{
	struct hc_peer *p = hc_peer_get(c, peer);
	const uint8_t was = p->state;

	p->restarts += p->news != 0;
	p->heard_at = c->now;
	p->grace_until = p->dial_at = HC_NEVER;
	p->dial_backoff_ms = p->dials = 0;
	p->parted = p->asked = p->lives = p->bounce_lies = false;
	p->rival = 0;
	p->watch_at = p->waits_since = HC_NEVER;
	p->last_error[0] = '\0';
	become(c, p, HC_W_node_state_UP);
	if (p->node != HC_NONE)
		hc_away_back(c, p->node, p->incarnation);
	tell_news(c, p, was);
	p->news = 0;
	hc_path_routes(c, peer);
	hc_peer_watch(c, peer);
	hc_peer_arm(c, peer);
}

void hc_peer_daemon_down(struct hc_core *c, uint32_t peer, const char *why)
{
	struct hc_peer *p = hc_peer_get(c, peer);
	char text[200];

	if (p->state != HC_W_node_state_UP || p->bounce_lies)
		return;
	become(c, p, HC_W_node_state_DAEMON_DOWN);
	p->downs++;
	p->lost_at = c->now;
	p->grace_until = c->now + c->set.daemon_grace_ns;
	hc_str_copy(hc_str(why), p->last_error, sizeof(p->last_error));
	HC_TEXT(text, "its daemon is down (%.110s); its paths stay as they are for %llu ms", why,
		(unsigned long long)(c->set.daemon_grace_ns / MS));
	tell(c, HC_LOG_WARN, HC_W_event_code_DAEMON_DOWN, p, text);
	if (!p->conn)
		hc_peer_dial_in(c, peer, 0);
	hc_peer_watch(c, peer);
	hc_peer_arm(c, peer);
}

void hc_peer_on_hold(struct hc_core *c, uint32_t peer, uint32_t hold_ms)
{
	struct hc_peer *p = hc_peer_get(c, peer);
	const uint64_t ms = hold_ms < HOLD_MAX_MS ? hold_ms : HOLD_MAX_MS;
	char text[HC_NAME_MAX + 96], limit[48] = "";

	if (ms)
		HC_TEXT(limit, ", for %llu ms at most", (unsigned long long)ms);
	if (p->state == HC_W_node_state_HOLD && ms) { /* a beat said it before, not for how long */
		p->grace_until = p->since + ms * MS;
		HC_TEXT(text, "node %s: its daemon restarts%s", p->name, limit);
		hc_emit_log(c, HC_LOG_INFO, HC_W_event_code_NODE_HOLD, 0, HC_NONE, text);
		hc_peer_arm(c, peer);
	}
	if (p->state != HC_W_node_state_UP)
		return;
	become(c, p, HC_W_node_state_HOLD);
	p->grace_until = c->now + (ms ? ms * MS : c->set.daemon_grace_ns);
	HC_TEXT(text, "its daemon restarts as planned: nothing is judged meanwhile%s", limit);
	tell(c, HC_LOG_INFO, HC_W_event_code_NODE_HOLD, p, text);
	hc_peer_arm(c, peer);
}

static void paths_down(struct hc_core *c, uint32_t peer, const char *why)
{
	const struct hc_peer *p = hc_peer_get(c, peer);
	uint32_t i;

	for (i = 0; i < p->npaths; i++)
		if (c->net->paths[p->paths[i]].state != HC_W_path_state_DOWN)
			hc_path_set(c, p->paths[i], HC_W_path_state_DOWN, HC_W_path_cause_NODE,
				    why);
}

static void lose(struct hc_core *c, struct hc_peer *p, const char *why)
{
	become(c, p, HC_W_node_state_UNREACHABLE);
	p->grace_until = HC_NEVER;
	hc_str_copy(hc_str(why), p->last_error, sizeof(p->last_error));
	tell(c, HC_LOG_ERROR, HC_W_event_code_NODE_UNREACHABLE, p, why);
	if (p->node != HC_NONE)
		hc_away_gone(c, p->node, why);
}

void hc_peer_beatless(struct hc_core *c, uint32_t peer, const char *why)
{
	lose(c, hc_peer_get(c, peer), why);
	paths_down(c, peer, why);
}

void hc_peer_unreachable(struct hc_core *c, uint32_t peer, const char *why)
{
	struct hc_peer *p = hc_peer_get(c, peer);

	lose(c, p, why);
	if (p->conn) {
		/* what was sent on it may come hours later, or never: mail goes on with the next */
		p->conn = 0;
		p->unsent = HC_NONE;
		p->lost_at = c->now;
	}
	hc_conn_close_all(c, peer, NULL);
	paths_down(c, peer, why);
	hc_peer_dial_in(c, peer, 0);
	hc_peer_arm(c, peer);
}

static void grace_over(struct hc_core *c, uint32_t peer)
{
	struct hc_peer *p = hc_peer_get(c, peer);
	const bool held = p->state == HC_W_node_state_HOLD;
	char text[128];

	p->grace_until = HC_NEVER;
	if (p->conn) { /* it did not stop, or only its beats were refused */
		become(c, p, HC_W_node_state_UP);
		tell(c, HC_LOG_INFO, HC_W_event_code_NODE_UP, p,
		     held ? "it said that it restarts, and did not" : "its connection lives");
		return;
	}
	HC_TEXT(text, "its daemon did not come back within %llu ms",
		(unsigned long long)((c->now - p->since) / MS));
	hc_peer_unreachable(c, peer, text);
}

bool hc_peer_excused(const struct hc_core *c, const struct hc_peer *p)
{
	(void)c;
	return p->state == HC_W_node_state_HOLD || p->state == HC_W_node_state_DAEMON_DOWN;
}

/* ---- signs of life ---- */

uint64_t hc_peer_heard_at(const struct hc_core *c, const struct hc_peer *p)
{
	uint64_t last = p->heard_at, at;
	uint32_t i;

	for (i = 0; i < p->npaths; i++) {
		at = c->net->paths[p->paths[i]].heard_at;
		if (at != HC_NEVER && (last == HC_NEVER || at > last))
			last = at;
	}
	return last;
}

/* The first frame after a silence, or after the connection ended: dial soon. */
static void dial_soon(struct hc_core *c, uint32_t peer, uint64_t heard_before)
{
	struct hc_peer *p = hc_peer_get(c, peer);

	if (heard_before != HC_NEVER && c->now - heard_before < SILENCE_NS &&
	    heard_before >= p->lost_at)
		return;
	p->dial_backoff_ms = 0;
	hc_peer_dial_in(c, peer, 0);
}

void hc_peer_alive(struct hc_core *c, uint32_t peer)
{
	struct hc_peer *p = hc_peer_get(c, peer);
	const uint64_t before = p->heard_at;

	p->heard_at = c->now;
	if (p->conn && p->state == HC_W_node_state_UP)
		return;
	if (p->state == HC_W_node_state_DAEMON_DOWN && c->now - p->since > ALIVE_NS) {
		p->bounce_lies = p->conn != 0;
		p->grace_until = HC_NEVER;
		become(c, p, HC_W_node_state_UP);
		tell(c, HC_LOG_INFO, HC_W_event_code_NODE_UP, p,
		     "its daemon lives: only the connection to it was lost");
	}
	if (!p->conn)
		dial_soon(c, peer, before);
	hc_peer_arm(c, peer);
}

static bool is_live(uint8_t state)
{
	switch ((enum hc_words)state) {
	case HC_W_path_state_NORMAL:
	case HC_W_path_state_CONGESTED: return true;
	default: return false; /* words of all sets are one enum */
	}
}

/* Of the path that the connection goes over; and one that is normal. */
static void look_at(const struct hc_core *c, const struct hc_peer *p, const struct hc_conn *k,
		    bool *down, bool *bad, uint32_t *good)
{
	uint32_t i;

	*down = p->npaths > 0;
	*bad = false;
	*good = HC_NONE;
	for (i = 0; i < p->npaths; i++) {
		const struct hc_path *h = &c->net->paths[p->paths[i]];

		if (h->state != HC_W_path_state_DOWN)
			*down = false;
		if (is_live(h->state) && *good == HC_NONE)
			*good = p->paths[i];
		if (k && hc_addr_eq(&h->local.addr, &k->local.addr) &&
		    hc_addr_eq(&h->remote.addr, &k->remote.addr))
			*bad = h->state == HC_W_path_state_UNSTABLE ||
			       h->state == HC_W_path_state_DOWN;
	}
}

static void all_down(struct hc_core *c, uint32_t peer)
{
	const struct hc_peer *p = hc_peer_get(c, peer);
	char text[160];

	HC_TEXT(text, "no path to it is left: %u of %u down, the first: %.80s", p->npaths,
		p->npaths, c->net->paths[p->paths[0]].cause_text);
	hc_peer_unreachable(c, peer, text);
}

void hc_peer_paths_changed(struct hc_core *c, uint32_t peer)
{
	struct hc_peer *p = hc_peer_get(c, peer);
	bool down, bad;
	uint32_t good;

	look_at(c, p, p->conn ? hc_conn_find(c, p->conn) : NULL, &down, &bad, &good);
	hc_peer_watch(c, peer);
	if (good != HC_NONE && p->state == HC_W_node_state_UNREACHABLE && p->conn) {
		become(c, p, HC_W_node_state_UP);
		tell(c, HC_LOG_INFO, HC_W_event_code_NODE_UP, p, "reachable again: beats pass");
	}
	if (down && p->state == HC_W_node_state_UP)
		all_down(c, peer);
	else if (bad && good != HC_NONE)
		hc_peer_dial_path(c, peer, good);
	else if (good != HC_NONE && p->state == HC_W_node_state_UNREACHABLE)
		hc_peer_dial_in(c, peer, 0);
}

/* The connection that counted has ended. Whether that says something of the peer is seen here. */
void hc_peer_parted(struct hc_core *c, uint32_t peer, uint16_t end, const char *why)
{
	struct hc_peer *p = hc_peer_get(c, peer);
	bool down, bad;
	uint32_t good;

	p->lost_at = c->now;
	p->dial_backoff_ms = 0;
	if (c->now - p->conn_since < SILENCE_NS)
		hc_peer_back_off(c, peer); /* two that never agree do so slowly */
	else
		hc_peer_dial_in(c, peer, 0);
	if (p->state != HC_W_node_state_UP || p->parted)
		return;
	look_at(c, p, NULL, &down, &bad, &good);
	if (end == HC_W_conn_end_CLOSED || end == HC_W_conn_end_REFUSED)
		hc_peer_daemon_down(c, peer, why);
	else if (good == HC_NONE && end != HC_W_conn_end_BROKEN && end != HC_W_conn_end_ENDED)
		hc_peer_unreachable(c, peer, why);
}

/* ---- time ---- */

uint64_t hc_peer_deadline(const struct hc_core *c, const struct hc_peer *p)
{
	uint64_t first = p->dial_at;

	(void)c;
	if (p->ack_at < first)
		first = p->ack_at;
	if (p->grace_until < first)
		first = p->grace_until;
	if (p->watch_at < first)
		first = p->watch_at;
	return p->key_old && p->old_until < first ? p->old_until : first;
}

void hc_peer_arm(struct hc_core *c, uint32_t peer)
{
	hc_timers_set(&c->net->timers, peer, hc_peer_deadline(c, hc_peer_get(c, peer)));
}

static void drop_old_key(struct hc_core *c, uint32_t peer)
{
	struct hc_peer *p = hc_peer_get(c, peer);
	struct hc_action *a = hc_emit_action(c, HC_ACT_KEY_DROP);

	a->u.key.peer = peer;
	a->u.key.key = p->key_old;
	p->key_old = 0;
	p->old_until = HC_NEVER;
}

void hc_peer_timeout(struct hc_core *c, uint32_t peer)
{
	struct hc_peer *p = hc_peer_get(c, peer);

	if (p->ack_at <= c->now)
		hc_peer_mail_ack(c, peer);
	if (p->key_old && p->old_until <= c->now)
		drop_old_key(c, peer);
	if (p->grace_until <= c->now)
		grace_over(c, peer);
	if (p->watch_at <= c->now)
		hc_peer_watch_timeout(c, peer);
	if (p->dial_at <= c->now && hc_peer_claimed(c, peer))
		return;
	if (p->dial_at <= c->now)
		hc_peer_dial(c, peer);
	hc_peer_arm(c, peer);
}
