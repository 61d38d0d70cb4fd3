/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Peers that are connected while no path to them is good.
 *
 * Two things can be wrong then, and neither shows by itself. The connection may lead to nobody: the
 * kernel at its other end died without a word, and what is sent gets no answer for minutes. Or it
 * works, and beats do not pass: a filter, a wrong route, a port that is gone.
 *
 * So about once a second something is asked over the connection. Whatever is sent there is numbered
 * and must be acknowledged. When nothing new is acknowledged for the window in which a path would
 * be DOWN, at least two seconds, and the second between two questions, the connection is closed and
 * dialled again. And a peer that is UP must have proven both directions of one path within the
 * probe timeout and that window, from the moment that it was UP, and must go on doing so, within
 * the window and a quarter of an interval, from when that was sent which they prove; else it is
 * UNREACHABLE though control works. (Where one direction is lost, the peer calls us so after the
 * window.) The connection stays: its keys are what a path will be proven with.
 *
 * As soon as a path is good all of this ends. Time in which this node did not run itself is not
 * counted.
 */
#include "emit.h"
#include "pathimp.h"

#include <stdio.h>

#define ASK_NS    (1000 * HC_MS)
#define SILENT_NS (2000 * HC_MS)

static uint64_t down_window(const struct hc_core *c, const struct hc_peer *p)
{
	uint64_t longest = hc_longer(c->net->wish_hi, p->wish_ns) * c->set.down_misses;
	uint32_t i;

	for (i = 0; i < p->npaths; i++)
		longest = hc_longer(longest, hc_path_down_window(c, &c->net->paths[p->paths[i]]));
	return longest;
}

static bool has_good(const struct hc_core *c, const struct hc_peer *p)
{
	uint32_t i;

	for (i = 0; i < p->npaths; i++)
		if (hc_path_good(&c->net->paths[p->paths[i]]))
			return true;
	return false;
}

/* Paths that are not judged say nothing, and one on hold is to be left alone. */
static bool is_watched(const struct hc_core *c, const struct hc_peer *p)
{
	return p->conn && p->state != HC_W_node_state_HOLD &&
	       (hc_peer_excused(c, p) || !has_good(c, p));
}

/* When its connection is given up, HC_NEVER while nothing is waited for. */
static uint64_t answer_limit(const struct hc_core *c, const struct hc_peer *p)
{
	if (p->waits_since == HC_NEVER)
		return HC_NEVER;
	return hc_longer(p->waits_since, c->net->awake_at) +
	       hc_longer(SILENT_NS, down_window(c, p)) + ASK_NS;
}

/* When a path must have proven both directions, again. */
static uint64_t proof_limit(const struct hc_core *c, const struct hc_peer *p)
{
	uint64_t last = hc_longer(p->since, c->net->awake_at), proof = 0, of = 0, heard = 0;
	uint32_t i;

	if (p->state != HC_W_node_state_UP)
		return HC_NEVER;
	for (i = 0; i < p->npaths; i++) {
		const struct hc_path *h = &c->net->paths[p->paths[i]];

		if (h->proof_at != HC_NEVER) {
			proof = hc_longer(proof, h->proof_at);
			of = hc_longer(of, h->proof_of);
		}
		if (h->heard_at != HC_NEVER && c->now - h->heard_at > hc_path_interval(c, h) * 2)
			heard = hc_longer(heard, h->heard_at);
	}
	/* a peer that hears nothing more goes on to echo our last for a window: that is no news */
	last = hc_longer(last, of);
	/* what had been proven and is no more is judged as silence is: the peer does the same; but
	 * where there is silence, the path says so first */
	if (proof > p->since)
		return hc_longer(last + down_window(c, p) +
					 down_window(c, p) / (4 * c->set.down_misses),
				 heard + down_window(c, p) + down_window(c, p) / 4);
	return last + c->set.probe_timeout_ns + down_window(c, p);
}

static void give_up(struct hc_core *c, uint32_t peer)
{
	struct hc_peer *p = hc_peer_get(c, peer);
	const uint64_t waited = c->now - p->waits_since;
	char text[160];

	HC_TEXT(text, "no path to it is good, and its connection does not answer for %llu ms",
		(unsigned long long)(waited / HC_MS));
	p->waits_since = p->watch_at = HC_NEVER;
	p->last_end = HC_W_conn_end_TIMEOUT;
	hc_str_copy(hc_str(text), p->last_error, sizeof(p->last_error));
	hc_conn_close(c, hc_conn_find(c, p->conn), HC_W_refusal_NONE, text);
	hc_peer_parted(c, peer, HC_W_conn_end_TIMEOUT, text);
}

static void no_beat_passes(struct hc_core *c, uint32_t peer)
{
	const struct hc_peer *p = hc_peer_get(c, peer);
	const struct hc_path *h = p->npaths ? &c->net->paths[p->paths[0]] : NULL;
	char text[200];

	if (h)
		HC_TEXT(text,
			"control works but no beat passes both ways on any of %u paths, the first: "
			"%.80s",
			p->npaths, h->cause_text);
	else
		HC_TEXT(text,
			"control works but no path leads to it: of its %u ports none is "
			"reached from a port in use",
			p->nports);
	hc_peer_beatless(c, peer, text);
}

static void ask(struct hc_core *c, uint32_t peer)
{
	struct hc_peer *p = hc_peer_get(c, peer);
	/* of no path: nothing but the acknowledgement is wanted */
	struct hc_m_peer_heard m = {.ticket = HC_NONE};

	memcpy(m.node_id.b, c->self.node_id, 16);
	if (!p->mail_count && hc_peer_send(c, peer, &hc_desc_peer_heard, &m))
		return;
	if (p->waits_since == HC_NEVER)
		p->waits_since = c->now;
}

void hc_peer_watch_timeout(struct hc_core *c, uint32_t peer)
{
	struct hc_peer *p = hc_peer_get(c, peer);

	p->watch_at = HC_NEVER;
	if (!is_watched(c, p)) {
		p->waits_since = HC_NEVER;
		return;
	}
	if (answer_limit(c, p) <= c->now) {
		give_up(c, peer);
		return;
	}
	if (proof_limit(c, p) <= c->now)
		no_beat_passes(c, peer);
	ask(c, peer);
	if (p->conn)
		p->watch_at =
			hc_first(c->now + ASK_NS, hc_first(answer_limit(c, p), proof_limit(c, p)));
}

void hc_peer_watch(struct hc_core *c, uint32_t peer)
{
	struct hc_peer *p = hc_peer_get(c, peer);

	if (p->watch_at != HC_NEVER || !is_watched(c, p))
		return;
	p->watch_at = hc_longer(c->now, hc_first(c->now + ASK_NS, proof_limit(c, p)));
	hc_peer_arm(c, peer);
}
