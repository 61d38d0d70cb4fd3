/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Judging: who has been silent for too long, and whether that is not our own fault.
 *
 * A frame only stores when it came. When a path is due, its silence is computed from that, and the
 * next time to look at it. As long as nothing is missing that time is rounded up to an eighth of
 * the interval, so that a thousand paths wake the node eight times an interval. A verdict is
 * exact: it falls at last frame + misses x interval.
 *
 * At 1.25 intervals of silence the first beat counts as missed. Three urgent probes, to be
 * answered at once, are spread over what remains of the window: chance has to lose them all,
 * and every beat, before a good peer is accused.
 *
 * The node judges others only when all that had come is heard, that is at a TIMEOUT, and not for
 * time in which it did not run itself. When it comes late to what was due, by less than a window,
 * nothing that came was lost by that, but probes were not sent: a verdict waits until those that
 * are left went out with half an interval each for the answer, and no longer than we were late.
 * After a longer stall each path that is silent gets a whole window anew, since queues may have
 * overflowed. In one silence four windows are given at most, and two seconds, but once in any
 * case. Then the verdict falls and says "observer starved".
 *
 * A frame that comes is a sign of life, but no proof of both directions: where many are lost, what
 * the peer echoes may be too old each time. So a good path whose last proof is older than a window
 * and two intervals is unstable too, whatever is heard on it.
 *
 * At the verdict a third node is asked whether it hears the peer. Its answer comes later and only
 * labels what was said.
 */
#include "datagram.h"
#include "emit.h"
#include "pathimp.h"

#include <stdio.h>
#include <string.h>

#define URGENT     3u
#define GRANTS     4u
#define GRANTED_NS (2000 * HC_MS)
#define LATE_NS    (2 * HC_MS)
#define TOLD_NS    (1000 * HC_MS) /* at most one report in that time */
#define GRID       8u
#define LOOK_UNIT  64u

static uint64_t silent_since(const struct hc_path *p)
{
	const uint64_t heard = p->heard_at == HC_NEVER ? p->made : p->heard_at;

	return hc_longer(heard, p->judge_from);
}

/* ---- our own lateness ---- */

void hc_beat_note_late(struct hc_core *c)
{
	struct hc_net *n = c->net;
	/* what was due before the last TIMEOUT was done by it */
	const uint64_t due = hc_longer(hc_first(n->tick_at, n->look_at), n->judge_at);

	if (c->now < due || n->late_since <= due)
		return;
	if (c->now - due > hc_longer(LATE_NS, n->wish_lo / 5))
		n->late_since = due;
}

/* What the probes that are left want, or, when none is, a moment for what is on its way. */
static uint64_t still_wanted(const struct hc_core *c, const struct hc_path *p)
{
	const uint64_t interval = hc_path_interval(c, p);

	if (!hc_path_good(p))
		return interval;
	return p->urgent < URGENT ? (URGENT - p->urgent) * interval / 2 : interval / 4;
}

/* How much of the silence does not count. */
static uint64_t excused(const struct hc_core *c, const struct hc_path *p, uint64_t late)
{
	const uint64_t window = hc_path_window(c, p), silence = c->now - silent_since(p);
	const uint64_t limit = hc_path_good(p) ? window : hc_path_down_window(c, p);
	const uint64_t wanted = silence + still_wanted(c, p);

	if (late >= window)
		return silence;
	return wanted <= limit ? 0 : hc_first(hc_first(late, silence), wanted - limit);
}

static void grant(struct hc_core *c, uint32_t x, uint64_t late)
{
	struct hc_path *p = &c->net->paths[x];
	const uint64_t window = hc_path_window(c, p), most = hc_first(GRANTS * window, GRANTED_NS);
	const uint64_t more = excused(c, p, late), given = hc_first(more, window);

	if (p->deaf_at != HC_NEVER)
		p->deaf_at = late < window ? hc_first(c->now, p->deaf_at + late) : c->now;
	hc_path_look_by(c->net, x, c->now);
	if (!more)
		return;
	if (p->discount_ns && p->discount_ns + given > most) {
		p->starved = true;
		return;
	}
	p->odd = true;
	p->discount_ns += given;
	p->judge_from = silent_since(p) + more;
	if (p->judge_from < c->now)
		return;
	p->urgent = 0;
	if (hc_path_good(p))
		p->run = 0;
}

static void report(struct hc_core *c, uint64_t late)
{
	struct hc_net *n = c->net;
	char text[128];

	if (n->stall_told_at != HC_NEVER && c->now - n->stall_told_at < TOLD_NS)
		return;
	n->stall_told_at = c->now;
	HC_TEXT(text, "not scheduled for %llu ms: no peer is judged by that time",
		(unsigned long long)(late / HC_MS));
	hc_notice(c, HC_LOG_WARN, HC_W_event_code_NOT_SCHEDULED, HC_SELF_NODE, text);
}

void hc_beat_timeout(struct hc_core *c)
{
	struct hc_net *n = c->net;
	uint64_t late;
	uint32_t x;

	hc_beat_note_late(c);
	n->judge_at = c->now;
	if (n->late_since == HC_NEVER)
		return;
	late = c->now - n->late_since;
	n->late_since = HC_NEVER;
	if (!n->path_pool.used)
		return;
	n->awake_at = c->now;
	n->stalls++;
	n->stalled_ns += late;
	for (x = 0; x < n->path_top; x++)
		if (n->paths[x].id && silent_since(&n->paths[x]) < c->now)
			grant(c, x, late);
	report(c, late);
}

/* ---- silence ---- */

static void count_missed(struct hc_path *p, uint64_t silence, uint64_t interval)
{
	const uint64_t whole = silence / interval;
	const uint32_t run = whole < UINT32_MAX ? (uint32_t)whole : UINT32_MAX;

	if (run <= p->run)
		return;
	p->missed += run - p->run;
	p->run = run;
	p->worst = run > p->worst ? run : p->worst;
	p->odd = true;
	p->good_run = 0;
}

void hc_beat_silence_over(struct hc_core *c, uint32_t path)
{
	struct hc_path *p = &c->net->paths[path];
	const uint64_t interval = hc_path_interval(c, p), silence = c->now - silent_since(p);

	if (p->run && p->heard_at != HC_NEVER && !hc_peer_excused(c, &c->net->peers[p->peer]))
		count_missed(p, silence, interval);
	p->run = p->urgent = 0;
	p->discount_ns = 0;
	p->starved = false;
	p->ticket = 0;
}

static void verdict_text(const struct hc_core *c, const struct hc_path *p, uint32_t misses,
			 char text[160])
{
	const uint64_t interval = hc_path_interval(c, p);

	snprintf(text, 160, "no beat for %llu ms (%u intervals of %llu ms)%s",
		 (unsigned long long)((c->now - silent_since(p)) / HC_MS), misses,
		 (unsigned long long)(interval / HC_MS), p->starved ? ", observer starved" : "");
}

static void miss_out(struct hc_core *c, uint32_t x)
{
	struct hc_path *p = &c->net->paths[x];
	char text[160];

	verdict_text(c, p, c->set.misses, text);
	hc_path_event(c, x, PATH_EV_MISSES, HC_W_path_cause_MISSES, text);
	hc_beat_now(c, x, 0); /* tells the peer that we do not hear it */
	hc_path_ask_third(c, x);
}

static void ask_urgently(struct hc_core *c, uint32_t x, uint64_t limit)
{
	struct hc_path *p = &c->net->paths[x];

	if (!p->urgent)
		p->urgent_step = (limit - c->now) / URGENT;
	else if (c->now < p->urgent_at)
		return;
	p->urgent++;
	p->urgent_at = c->now + p->urgent_step;
	hc_beat_now(c, x, HC_BEAT_ASKS);
}

/* When a good path is to have its next proof at the latest. */
static uint64_t proof_limit(const struct hc_core *c, const struct hc_path *p)
{
	const uint64_t proof = p->proof_at == HC_NEVER ? p->since : p->proof_at;

	return hc_longer(hc_longer(proof, p->judge_from), c->net->awake_at) + hc_path_window(c, p) +
	       2 * hc_path_interval(c, p);
}

static void unproven(struct hc_core *c, uint32_t x)
{
	const struct hc_path *p = &c->net->paths[x];
	char text[160];

	HC_TEXT(text, "for %llu ms no frame has proven both directions",
		(unsigned long long)((c->now - p->proof_at) / HC_MS));
	hc_path_event(c, x, PATH_EV_DEAF, HC_W_path_cause_DEAF, text);
	hc_beat_now(c, x, 0);
}

/* Since when its word that it does not hear us counts; HC_NEVER: it did not say so. */
static uint64_t deaf_since(const struct hc_path *p)
{
	return p->deaf_at == HC_NEVER ? HC_NEVER : hc_longer(p->deaf_at, p->judge_from);
}

static void judge_good(struct hc_core *c, uint32_t x, uint64_t silence)
{
	struct hc_path *p = &c->net->paths[x];
	const uint64_t window = hc_path_window(c, p), interval = hc_path_interval(c, p),
		       deaf = deaf_since(p);
	char text[160];

	if (silence >= window) {
		miss_out(c, x);
	} else if (p->run && p->urgent < URGENT) {
		ask_urgently(c, x, silent_since(p) + window);
	}
	if (hc_path_good(p) && deaf != HC_NEVER && c->now - deaf >= interval * 5 / 4) {
		HC_TEXT(text, "the peer has not heard us for its window, and %llu ms more",
			(unsigned long long)((c->now - deaf) / HC_MS));
		hc_path_event(c, x, PATH_EV_DEAF, HC_W_path_cause_DEAF, text);
	}
	if (hc_path_good(p) && c->now >= proof_limit(c, p))
		unproven(c, x);
}

static void judge(struct hc_core *c, uint32_t x)
{
	struct hc_path *p = &c->net->paths[x];
	const uint64_t interval = hc_path_interval(c, p), silence = c->now - silent_since(p);
	char text[160];

	if (p->run || silence >= interval * 5 / 4)
		count_missed(p, silence, interval);
	if (hc_path_good(p))
		judge_good(c, x, silence);
	else if (p->held && p->run >= c->set.misses)
		p->fell = true;
	if (p->state == HC_W_path_state_UNSTABLE && silence >= hc_path_down_window(c, p)) {
		verdict_text(c, p, c->set.down_misses, text);
		hc_path_event(c, x, PATH_EV_DEAD, HC_W_path_cause_MISSES, text);
	}
}

/* ---- looking ---- */

/* While nothing is missing: rounded up. A verdict is never reached by that. */
static uint64_t grid(uint64_t at, uint64_t interval)
{
	const uint64_t step = interval / GRID;

	return step ? (at + step - 1) / step * step : at;
}

static uint64_t next_silence(const struct hc_core *c, const struct hc_path *p)
{
	const uint64_t interval = hc_path_interval(c, p), since = silent_since(p);
	uint64_t at;

	switch (p->state) {
	case HC_W_path_state_UNKNOWN: return HC_NEVER;
	case HC_W_path_state_DOWN: return HC_NEVER;
	}
	if (!p->run)
		return grid(since + interval * 5 / 4, interval);
	at = since + (p->run + 1ull) * interval;
	if (!hc_path_good(p))
		return hc_first(at, since + hc_path_down_window(c, p));
	if (p->urgent < URGENT)
		at = hc_first(at, p->urgent_at);
	return hc_first(at, since + hc_path_window(c, p));
}

static uint64_t next_look(const struct hc_core *c, const struct hc_path *p)
{
	uint64_t at = hc_first(next_silence(c, p), hc_probe_deadline(c, p));

	if (!hc_path_good(p))
		return at;
	if (p->deaf_at != HC_NEVER)
		at = hc_first(at, deaf_since(p) + hc_path_interval(c, p) * 5 / 4);
	return hc_first(at, proof_limit(c, p));
}

static void look(struct hc_core *c, uint32_t x)
{
	struct hc_net *n = c->net;
	struct hc_path *p = &n->paths[x];
	uint64_t next;

	n->due[x] = HC_NEVER;
	if (p->port_changed)
		hc_path_check_port(c, x);
	if (hc_peer_excused(c, &n->peers[p->peer]))
		p->judge_from = c->now;
	else
		judge(c, x);
	if (hc_probe_deadline(c, p) <= c->now)
		hc_probe_timeout(c, x);
	next = next_look(c, p);
	if (next <= c->now && hc_peer_excused(c, &n->peers[p->peer]))
		next = c->now + hc_path_interval(c, p); /* what was due then is not judged */
	hc_path_look_at(n, x, next);
}

/* One that is due; ends when something was put out, so that a unit stays small. */
static void look_on(struct hc_core *c)
{
	struct hc_net *n = c->net;
	const uint32_t before = c->out->count;
	uint32_t looked = 0;

	for (; n->look < n->path_top; n->look++) {
		if (n->due[n->look] > c->now) {
			n->look_at = hc_first(n->look_at, n->due[n->look]);
			continue;
		}
		look(c, n->look);
		if (c->out->count != before || ++looked == LOOK_UNIT) {
			n->look++;
			return;
		}
	}
	n->look = HC_NONE;
}

bool hc_beat_look(struct hc_core *c)
{
	struct hc_net *n = c->net;

	if (n->judge_at != c->now || (n->look == HC_NONE && n->look_at > c->now))
		return false;
	if (n->look == HC_NONE) {
		n->look = 0;
		n->look_at = HC_NEVER;
	}
	look_on(c);
	return true;
}

/* ---- a third node ---- */

/* Another peer that is well heard; a few are looked at, not all. */
static uint32_t third(const struct hc_core *c, uint32_t not )
{
	const struct hc_net *n = c->net;
	uint32_t i, peer;

	for (i = 1; i < n->peer_pool.cap && i <= LOOK_UNIT; i++) {
		const struct hc_peer *p = &n->peers[peer = (not +i) % n->peer_pool.cap];

		if (!p->used || p->state != HC_W_node_state_UP || !p->npaths)
			continue;
		if (hc_path_good(&n->paths[p->paths[0]]) && !n->paths[p->paths[0]].run)
			return peer;
	}
	return HC_NONE;
}

static void label(struct hc_core *c, struct hc_path *p, const char *text)
{
	char was[sizeof(p->cause_text)];

	HC_TEXT(was, "%s", p->cause_text);
	HC_TEXT(p->cause_text, "%.110s; %.40s", was, text);
	c->net->path_changes++;
}

void hc_path_ask_third(struct hc_core *c, uint32_t path)
{
	struct hc_path *p = &c->net->paths[path];
	const uint32_t peer = third(c, p->peer);
	struct hc_m_peer_heard m = {.ticket = path + 1};

	if (peer == HC_NONE) {
		label(c, p, "unconfirmed: no other node to ask");
		return;
	}
	memcpy(m.node_id.b, c->net->peers[p->peer].node_id, 16);
	p->ticket = m.ticket;
	p->asked_age = c->now - silent_since(p);
	hc_peer_send(c, peer, &hc_desc_peer_heard, &m);
}

void hc_path_confirmed(struct hc_core *c, uint32_t peer, uint32_t ticket, uint32_t age_ms)
{
	struct hc_net *n = c->net;
	struct hc_path *p = ticket && ticket <= n->path_top ? &n->paths[ticket - 1] : NULL;
	const struct hc_peer *from = &n->peers[peer];
	char text[64];

	if (!p || !p->id || p->ticket != ticket || p->peer == peer)
		return;
	p->ticket = 0;
	HC_TEXT(text, "%s by %.24s",
		age_ms * HC_MS < p->asked_age && age_ms != HC_NONE ? "path, not node: it is heard"
								   : "confirmed",
		from->node == HC_NONE ? from->name : c->nodes[from->node].name);
	label(c, p, text);
}
