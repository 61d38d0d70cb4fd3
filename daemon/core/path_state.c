/* SPDX-License-Identifier: Apache-2.0 */
/*
 * States of paths: what follows from what, flaps, and what is told.
 *
 * A path is NORMAL only while both directions are proven. It leaves that state by silence, by
 * the peer's word that it hears nothing, by a port or a route that goes, or when packets of the
 * agreed size are lost; it comes back by a proof alone. CONGESTED is NORMAL under load: silence
 * weighs the same there.
 *
 * A flap is: good, bad for any of those reasons but size and load, proven again. The third within
 * flap_window holds the path out: it stays UNSTABLE though beats run, for a second, and twice as
 * long after each further flap, up to a minute. It comes back after that time and ten proofs in a
 * row. What happens to a path that is held out is counted but not told one by one: a cable that
 * is loose for a night must not fill the log. A young path gets no such treatment for its first
 * faults, and a path that was quiet for flap_window begins with one second again.
 */
#include "emit.h"
#include "pathimp.h"

#include <stdio.h>

#define HOLD_FIRST_MS 1000u
#define HOLD_MAX_MS   60000u
#define GOOD_RUN      10u

static uint8_t from_unknown(enum hc_path_event ev)
{
	switch (ev) {
	case PATH_EV_PROOF: return HC_W_path_state_NORMAL;
	case PATH_EV_PROOF_BUT: return HC_W_path_state_UNSTABLE;
	case PATH_EV_MISSES: return HC_W_path_state_UNKNOWN;
	case PATH_EV_DEAF: return HC_W_path_state_UNKNOWN;
	case PATH_EV_DEAD: return HC_W_path_state_DOWN;
	case PATH_EV_GONE: return HC_W_path_state_DOWN;
	case PATH_EV_SMALL: return HC_W_path_state_UNSTABLE;
	case PATH_EV_LOAD: return HC_W_path_state_UNKNOWN;
	case PATH_EV_RELIEF: return HC_W_path_state_UNKNOWN;
	}
	hc_panic(__FILE__, __LINE__, "event of a path");
}

/* From NORMAL and CONGESTED, `same`. */
static uint8_t from_good(enum hc_path_event ev, uint8_t same)
{
	switch (ev) {
	case PATH_EV_PROOF: return same;
	case PATH_EV_PROOF_BUT: return HC_W_path_state_UNSTABLE;
	case PATH_EV_MISSES: return HC_W_path_state_UNSTABLE;
	case PATH_EV_DEAF: return HC_W_path_state_UNSTABLE;
	case PATH_EV_DEAD: return HC_W_path_state_DOWN;
	case PATH_EV_GONE: return HC_W_path_state_DOWN;
	case PATH_EV_SMALL: return HC_W_path_state_UNSTABLE;
	case PATH_EV_LOAD: return HC_W_path_state_CONGESTED;
	case PATH_EV_RELIEF: return HC_W_path_state_NORMAL;
	}
	hc_panic(__FILE__, __LINE__, "event of a path");
}

/* From UNSTABLE and DOWN, `same`. */
static uint8_t from_bad(enum hc_path_event ev, uint8_t same)
{
	switch (ev) {
	case PATH_EV_PROOF: return HC_W_path_state_NORMAL;
	case PATH_EV_PROOF_BUT: return HC_W_path_state_UNSTABLE;
	case PATH_EV_MISSES: return same;
	case PATH_EV_DEAF: return same;
	case PATH_EV_DEAD: return HC_W_path_state_DOWN;
	case PATH_EV_GONE: return HC_W_path_state_DOWN;
	case PATH_EV_SMALL: return same;
	case PATH_EV_LOAD: return same;
	case PATH_EV_RELIEF: return same;
	}
	hc_panic(__FILE__, __LINE__, "event of a path");
}

uint8_t hc_path_next(uint8_t state, enum hc_path_event ev)
{
	switch (state) {
	case HC_W_path_state_UNKNOWN: return from_unknown(ev);
	case HC_W_path_state_NORMAL: return from_good(ev, state);
	case HC_W_path_state_CONGESTED: return from_good(ev, state);
	case HC_W_path_state_UNSTABLE: return from_bad(ev, state);
	case HC_W_path_state_DOWN: return from_bad(ev, state);
	}
	hc_panic(__FILE__, __LINE__, "state of a path");
}

/* ---- telling ---- */

static const char *port_name(const struct hc_core *c, uint32_t index)
{
	const struct hc_net *n = c->net;
	uint32_t i;

	for (i = 0; i < n->nports; i++)
		if (n->ports[i].fact.index == index && n->ports[i].fact.name[0])
			return n->ports[i].fact.name; /* also of one that went */
	return "a port that is gone";
}

static const char *node_name(const struct hc_core *c, const struct hc_peer *peer)
{
	return peer->node == HC_NONE ? peer->name : c->nodes[peer->node].name;
}

const char *hc_path_text(const struct hc_core *c, const struct hc_path *p, char buf[HC_PATH_TEXT])
{
	char local[HC_ENDPOINT_TEXT_MAX], remote[HC_ENDPOINT_TEXT_MAX];

	snprintf(buf, HC_PATH_TEXT, "path to %.60s over %s (%s to %s)",
		 node_name(c, &c->net->peers[p->peer]), port_name(c, p->port),
		 hc_endpoint_text(&p->local, local), hc_endpoint_text(&p->remote, remote));
	return buf;
}

static uint16_t notice_of(uint8_t state)
{
	switch (state) {
	case HC_W_path_state_NORMAL: return HC_W_event_code_PATH_NORMAL;
	case HC_W_path_state_CONGESTED: return HC_W_event_code_PATH_CONGESTED;
	case HC_W_path_state_UNSTABLE: return HC_W_event_code_PATH_UNSTABLE;
	case HC_W_path_state_DOWN: return HC_W_event_code_PATH_DOWN;
	}
	return HC_W_event_code_NONE;
}

static void tell(struct hc_core *c, const struct hc_path *p, uint16_t kind)
{
	const enum hc_level level = kind == HC_W_event_code_PATH_NORMAL ? HC_LOG_INFO : HC_LOG_WARN;
	char name[HC_PATH_TEXT], text[HC_PATH_TEXT + 256];

	HC_TEXT(text, "%s is %s: %s", hc_path_text(c, p, name), hc_word_path_state(p->state),
		p->cause_text);
	hc_notice(c, level, kind, c->net->peers[p->peer].node, text);
}

/* The peer does not announce its end any more, and the path is dropped: nobody would hear of it. */
void hc_path_tell_gone(struct hc_core *c, uint32_t path)
{
	struct hc_path *p = &c->net->paths[path];

	if (p->state == HC_W_path_state_UNKNOWN || p->state == HC_W_path_state_DOWN)
		return;
	p->state = HC_W_path_state_DOWN;
	HC_TEXT(p->cause_text, "%s", hc_word_path_cause(HC_W_path_cause_PEER_PORT));
	tell(c, p, HC_W_event_code_PATH_DOWN);
}

/* ---- changing ---- */

static bool is_flap(uint8_t cause)
{
	return cause == HC_W_path_cause_MISSES || cause == HC_W_path_cause_DEAF ||
	       cause == HC_W_path_cause_PORT || cause == HC_W_path_cause_NO_ROUTE;
}

/* Beats run on it, and only large packets are lost. */
static bool is_small(const struct hc_path *p)
{
	return p->state == HC_W_path_state_UNSTABLE && p->cause == HC_W_path_cause_MTU;
}

static void enter(struct hc_core *c, uint32_t path, uint8_t state, uint8_t cause, const char *text)
{
	struct hc_path *p = &c->net->paths[path];
	const bool was_good = hc_path_good(p);

	p->fell = p->fell || (is_flap(cause) && (was_good || is_small(p)));
	p->state = state;
	p->cause = cause;
	p->since = c->now;
	p->changes++;
	p->odd = p->odd || !hc_path_good(p);
	if (!was_good && hc_path_good(p))
		p->deaf_at = HC_NEVER;
	HC_TEXT(p->cause_text, "%s", text);
	c->net->path_changes++;
	hc_path_look_by(c->net, path, c->now);
	if (!p->held && state != HC_W_path_state_UNKNOWN)
		tell(c, p, notice_of(state));
	hc_peer_paths_changed(c, p->peer);
}

void hc_path_set(struct hc_core *c, uint32_t path, uint8_t state, uint8_t cause, const char *text)
{
	struct hc_path *p = &c->net->paths[path];

	if (p->state != state || p->cause != cause)
		enter(c, path, state, cause, text);
}

void hc_path_event(struct hc_core *c, uint32_t path, enum hc_path_event event, uint8_t cause,
		   const char *text)
{
	struct hc_path *p = &c->net->paths[path];
	const uint8_t state = hc_path_next(p->state, event);

	if (p->held && is_flap(cause))
		p->fell = true;
	if (state != p->state)
		enter(c, path, state, cause, text);
}

/* ---- flaps ---- */

static uint32_t flaps_within(const struct hc_core *c, const struct hc_path *p)
{
	const uint32_t room = sizeof(p->flap_times) / sizeof(p->flap_times[0]);
	uint32_t i, count = 0, kept = p->nflap_times < room ? p->nflap_times : room;

	for (i = 0; i < kept; i++)
		count += c->now - p->flap_times[i] <= c->set.flap_window_ns;
	return count;
}

static uint32_t flap_limit(const struct hc_core *c, const struct hc_path *p)
{
	const uint32_t room = sizeof(p->flap_times) / sizeof(p->flap_times[0]);

	return c->set.flap_limit < room ? c->set.flap_limit : room;
}

static void hold_out(struct hc_core *c, struct hc_path *p)
{
	const bool was = p->held;

	p->hold_ms = !p->hold_ms                    ? HOLD_FIRST_MS
		     : p->hold_ms < HOLD_MAX_MS / 2 ? p->hold_ms * 2
						    : HOLD_MAX_MS;
	p->held_until = c->now + p->hold_ms * HC_MS;
	p->held = true;
	p->good_run = 0;
	if (was)
		return;
	p->held_since = c->now;
}

/* It was good, was bad, and is proven again. */
static void flap(struct hc_core *c, struct hc_path *p)
{
	const uint32_t room = sizeof(p->flap_times) / sizeof(p->flap_times[0]);

	p->fell = false;
	if (p->last_flap != HC_NEVER && c->now - p->last_flap > c->set.flap_window_ns && !p->held)
		p->hold_ms = 0;
	p->flaps++;
	p->last_flap = c->now;
	p->flap_times[p->nflap_times++ % room] = c->now;
	if (p->held || (c->set.flap_limit && flaps_within(c, p) >= flap_limit(c, p)))
		hold_out(c, p);
}

static void tell_held(struct hc_core *c, uint32_t path)
{
	struct hc_path *p = &c->net->paths[path];

	if (p->held_since != c->now || p->good_run)
		return;
	HC_TEXT(p->cause_text, "held out after %u flaps, for %u ms and %u good beats in a row",
		flaps_within(c, p), p->hold_ms, GOOD_RUN);
	tell(c, p, HC_W_event_code_PATH_HELD_OUT);
}

static void readmit(struct hc_path *p, uint64_t now, char text[160])
{
	p->held = false;
	p->nflap_times = 0;
	snprintf(text, 160, "both directions proven; held out for %llu ms, %u flaps in all",
		 (unsigned long long)((now - p->held_since) / HC_MS), p->flaps);
}

void hc_path_proof(struct hc_core *c, uint32_t path)
{
	struct hc_path *p = &c->net->paths[path];
	const bool was_good = hc_path_good(p);
	char text[160] = "both directions proven";

	p->proof_at = p->proof_of = c->now;
	p->good_run++;
	if (p->fell)
		flap(c, p);
	if (p->held && c->now >= p->held_until && p->good_run >= GOOD_RUN)
		readmit(p, c->now, text);
	if (p->held) {
		hc_path_event(c, path, PATH_EV_PROOF_BUT, HC_W_path_cause_FLAPS,
			      "held out after flaps");
		p->cause = HC_W_path_cause_FLAPS;
		tell_held(c, path);
	} else if (p->small) {
		hc_path_set(c, path, hc_path_next(p->state, PATH_EV_PROOF_BUT), HC_W_path_cause_MTU,
			    "packets of the agreed size are lost");
	} else {
		hc_path_event(c, path, PATH_EV_PROOF, HC_W_path_cause_PROVEN, text);
	}
	if (!was_good && hc_path_good(p)) {
		hc_beat_now(c, path, 0); /* so that the other end has its proof */
		if (!p->used_mtu)
			hc_probe_again(c, path);
	}
}
