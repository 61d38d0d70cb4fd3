/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gangs at the home of their domain: which goes first, and whom to ask next; see channel_gang.c.
 *
 * A gang is forgotten as soon as it is had or refused; what it has got is then an affair of the
 * nodes. Of the channels of a domain the home knows nothing but how to pass on that one is over.
 */
#include "channel.h"

#include "emit.h"
#include "home.h"
#include "who.h"

#include <stdio.h>
#include <string.h>

static struct hc_home *home_of(struct hc_core *c, const struct hc_gang *g)
{
	struct hc_home *h = hc_home_by_id(c, g->domain);

	return h && h->state == HC_W_domain_state_ACTIVE ? h : NULL;
}

static uint32_t node_of(struct hc_core *c, struct hc_home *h, uint32_t rank)
{
	return hc_who(c, hc_home_place(c, h, rank))->node;
}

static bool concerns(struct hc_core *c, struct hc_home *h, const struct hc_m_gang_piece *p,
		     uint32_t node)
{
	return node_of(c, h, p->rank) == node || node_of(c, h, p->peer) == node;
}

/* The node of a piece whose name comes next after that of `after` (HC_NONE: the first). */
static uint32_t node_after(struct hc_core *c, struct hc_home *h, const struct hc_gang *g,
			   uint32_t after)
{
	struct hc_arr a = g->pieces;
	struct hc_m_gang_piece p;
	uint32_t best = HC_NONE, i, node[2];

	while (hc_arr_next(&a, &hc_desc_gang_piece, HC_PROTO_MAX, &p)) {
		node[0] = node_of(c, h, p.rank);
		node[1] = node_of(c, h, p.peer);
		for (i = 0; i < 2; i++)
			if ((after == HC_NONE ||
			     strcmp(c->nodes[node[i]].name, c->nodes[after].name) > 0) &&
			    (best == HC_NONE ||
			     strcmp(c->nodes[node[i]].name, c->nodes[best].name) < 0))
				best = node[i];
	}
	return best;
}

static void forget(struct hc_core *c, struct hc_gang *g)
{
	*g = (struct hc_gang){0};
	hc_pool_put(&c->chan->gang_pool, (uint32_t)(g - c->chan->gangs));
}

static void send_r(struct hc_core *c, uint32_t node, uint64_t domain, uint64_t ticket, int code,
		   uint32_t retry_ms, const char *text)
{
	const struct hc_m_gang_r m = {.id = domain,
				      .ticket = ticket,
				      .code = (uint16_t)code,
				      .retry_after_ms = retry_ms,
				      .text = hc_str(text)};

	hc_emit_send(c, node, &hc_desc_gang_r, &m);
}

static void send_reserve(struct hc_core *c, struct hc_home *h, const struct hc_gang *g)
{
	struct hc_m_gang_reserve m = {.id = g->domain,
				      .epoch = h->epoch,
				      .incarnation = c->self.incarnation,
				      .gang = g->number,
				      .wait = g->wait,
				      .hold_ms = g->hold_ms};
	struct hc_arr a = g->pieces;
	struct hc_m_gang_piece p;

	while (hc_arr_next(&a, &hc_desc_gang_piece, HC_PROTO_MAX, &p))
		if (concerns(c, h, &p, g->at))
			hc_assert(!hc_arr_put(&m.pieces, c->scratch, HC_OUT_BYTES,
					      &hc_desc_gang_piece, HC_PROTO_MAX, &p));
	hc_emit_send(c, g->at, &hc_desc_gang_reserve, &m);
}

/* Let go what it has been given, up to and with the node that it waits at. */
static void cancel(struct hc_core *c, struct hc_home *h, const struct hc_gang *g)
{
	const struct hc_m_gang_cancel m = {.id = g->domain,
					   .epoch = h->epoch,
					   .incarnation = c->self.incarnation,
					   .gang = g->number};
	uint32_t n = g->at == HC_NONE ? HC_NONE : node_after(c, h, g, HC_NONE);

	for (; n != HC_NONE; n = node_after(c, h, g, n)) {
		hc_emit_send(c, n, &hc_desc_gang_cancel, &m);
		if (n == g->at)
			return;
	}
}

static void commit(struct hc_core *c, struct hc_home *h, const struct hc_gang *g)
{
	struct hc_m_gang_commit m = {.id = g->domain,
				     .epoch = h->epoch,
				     .incarnation = c->self.incarnation,
				     .gang = g->number};
	uint32_t n;

	for (n = node_after(c, h, g, HC_NONE); n != HC_NONE; n = node_after(c, h, g, n)) {
		m.ticket = n == g->asker ? g->ticket : 0;
		hc_emit_send(c, n, &hc_desc_gang_commit, &m);
	}
}

/* ---- one after another where they meet ---- */

static bool same_pair(const struct hc_m_gang_piece *x, const struct hc_m_gang_piece *y)
{
	return (x->rank == y->rank && x->peer == y->peer) ||
	       (x->rank == y->peer && x->peer == y->rank);
}

static bool meet(const struct hc_gang *x, const struct hc_gang *y)
{
	struct hc_arr a = x->pieces, b;
	struct hc_m_gang_piece p, q;

	if (x == y || x->domain != y->domain)
		return false;
	while (hc_arr_next(&a, &hc_desc_gang_piece, HC_PROTO_MAX, &p))
		for (b = y->pieces; hc_arr_next(&b, &hc_desc_gang_piece, HC_PROTO_MAX, &q);)
			if (same_pair(&p, &q))
				return true;
	return false;
}

static bool may_begin(const struct hc_core *c, const struct hc_gang *g)
{
	uint32_t i;

	for (i = 0; i < c->chan->gang_pool.fresh; i++)
		if (c->chan->gangs[i].domain && c->chan->gangs[i].at != HC_NONE &&
		    meet(&c->chan->gangs[i], g))
			return false;
	return true;
}

static void begin(struct hc_core *c, struct hc_home *h, struct hc_gang *g)
{
	g->at = node_after(c, h, g, HC_NONE);
	send_reserve(c, h, g);
}

/* The oldest first. had: it has made channels, of which those held back may want the other end. */
static void over(struct hc_core *c, struct hc_home *h, struct hc_gang *g, bool had)
{
	const struct hc_gang was = *g;
	struct hc_gang *next, *o;
	uint64_t after = 0;
	uint32_t i;

	g->at = HC_NONE;
	do {
		next = NULL;
		for (i = 0; i < c->chan->gang_pool.fresh; i++) {
			o = &c->chan->gangs[i];
			if (o != g && o->domain == was.domain && o->at == HC_NONE &&
			    o->number > after && (!next || o->number < next->number))
				next = o;
		}
		if (!next)
			break;
		after = next->number;
		if (had && meet(&was, next)) {
			send_r(c, next->asker, next->domain, next->ticket, HC_E_EXISTS, HC_NONE,
			       "");
			forget(c, next);
		} else if (may_begin(c, next)) {
			begin(c, h, next);
		}
	} while (next);
	forget(c, g);
}

/* ---- words of the nodes ---- */

static int check(struct hc_core *c, struct hc_home *h, uint32_t node, const struct hc_m_gang_ask *m,
		 char *text, size_t bytes)
{
	struct hc_arr a = m->pieces;
	struct hc_m_gang_piece p;
	const struct hc_place *pl;

	snprintf(text, bytes, "the domain is gone, or not ACTIVE");
	if (!h || h->state != HC_W_domain_state_ACTIVE || h->epoch != m->epoch)
		return HC_E_GONE;
	snprintf(text, bytes, "a gang of that node cannot have such pieces");
	if (!a.count || a.len > HC_GANG_BYTES)
		return HC_E_INVALID;
	while (hc_arr_next(&a, &hc_desc_gang_piece, HC_PROTO_MAX, &p)) {
		if (!p.channel || p.rank >= h->nranks || p.peer >= h->nranks || p.rank == p.peer ||
		    node_of(c, h, p.rank) != node)
			return HC_E_INVALID;
		pl = hc_home_place(c, h, p.peer);
		if (pl->state == HC_W_member_state_DEAD || pl->state == HC_W_member_state_LEFT) {
			snprintf(text, bytes, "rank %u has %s", p.peer,
				 pl->state == HC_W_member_state_DEAD ? "died" : "left");
			return HC_E_PEER_LOST;
		}
	}
	return 0;
}

void hc_gang_on_ask(struct hc_core *c, uint32_t node, const struct hc_m_gang_ask *m)
{
	struct hc_home *h = hc_home_by_id(c, m->id);
	char text[160];
	int code = check(c, h, node, m, text, sizeof(text));
	uint32_t n = code ? HC_NONE : hc_pool_get(&c->chan->gang_pool);
	struct hc_gang *g;

	if (n == HC_NONE) {
		send_r(c, node, m->id, m->ticket, code ? code : HC_E_LIMIT, HC_NONE,
		       code ? text : "too many gangs are under way at the home of the domain");
		return;
	}
	g = &c->chan->gangs[n];
	*g = (struct hc_gang){.domain = m->id,
			      .number = ++c->chan->gang_number,
			      .ticket = m->ticket,
			      .pieces = m->pieces,
			      .asker = node,
			      .at = HC_NONE,
			      .hold_ms = m->hold_ms,
			      .wait = m->wait == 1};
	memcpy(c->chan->gang_bytes + (size_t)n * HC_GANG_BYTES, m->pieces.bytes, m->pieces.len);
	g->pieces.bytes = c->chan->gang_bytes + (size_t)n * HC_GANG_BYTES;
	if (may_begin(c, g))
		begin(c, h, g);
}

void hc_gang_on_reserved(struct hc_core *c, uint32_t node, const struct hc_m_gang_reserved *m)
{
	struct hc_gang *g = NULL;
	struct hc_home *h;
	char text[HC_TEXT_MAX + 1];
	uint32_t i;

	for (i = 0; i < c->chan->gang_pool.fresh && !g; i++)
		if (c->chan->gangs[i].domain == m->id && c->chan->gangs[i].number == m->gang)
			g = &c->chan->gangs[i];
	h = g ? home_of(c, g) : NULL;
	if (!h || g->at != node)
		return;
	if (m->code) {
		cancel(c, h, g);
		send_r(c, g->asker, g->domain, g->ticket, m->code, m->retry_after_ms,
		       hc_str_copy(m->text, text, sizeof(text)));
		over(c, h, g, false);
		return;
	}
	g->at = node_after(c, h, g, node);
	if (g->at != HC_NONE) {
		send_reserve(c, h, g);
		return;
	}
	commit(c, h, g);
	hc_gang_seen(h);
	over(c, h, g, true);
}

static void pass_on(struct hc_core *c, struct hc_home *h, uint32_t node,
		    const struct hc_m_gang_end *m)
{
	const struct hc_m_gang_over over_m = {.id = m->id,
					      .epoch = h->epoch,
					      .incarnation = c->self.incarnation,
					      .channel = m->channel,
					      .rank = m->rank};

	if (m->rank >= h->nranks || m->peer >= h->nranks || node_of(c, h, m->rank) != node ||
	    hc_home_place(c, h, m->peer)->state == HC_W_member_state_EXPECTED)
		return;
	hc_emit_send(c, node_of(c, h, m->peer), &hc_desc_gang_over, &over_m);
}

void hc_gang_on_end(struct hc_core *c, uint32_t node, const struct hc_m_gang_end *m)
{
	struct hc_home *h = hc_home_by_id(c, m->id);
	struct hc_gang *g;
	uint32_t i;

	if (!h || h->epoch != m->epoch)
		return;
	if (!m->ticket) {
		pass_on(c, h, node, m);
		return;
	}
	for (i = 0; i < c->chan->gang_pool.fresh; i++) {
		g = &c->chan->gangs[i];
		if (g->domain != m->id || g->asker != node || g->ticket != m->ticket)
			continue;
		cancel(c, h, g);
		over(c, h, g, false);
		return;
	}
}

void hc_gang_home_again(struct hc_core *c, uint64_t id)
{
	struct hc_home *h = hc_home_by_id(c, id);
	struct hc_gang *g;
	uint32_t i;

	for (i = 0; i < c->chan->gang_pool.fresh; i++) {
		g = &c->chan->gangs[i];
		if (g->domain != id)
			continue;
		cancel(c, h, g);
		send_r(c, g->asker, id, g->ticket, HC_E_AGAIN, HC_NONE,
		       "the daemon of a node was restarted; ask again");
		forget(c, g);
	}
}

void hc_gang_home_gone(struct hc_core *c, uint64_t id)
{
	struct hc_home *h = hc_home_by_id(c, id);
	struct hc_gang *g;
	uint32_t i;

	for (i = 0; i < c->chan->gang_pool.fresh; i++) {
		g = &c->chan->gangs[i];
		if (g->domain != id)
			continue;
		if (h) {
			cancel(c, h, g);
			send_r(c, g->asker, id, g->ticket, HC_E_GONE, HC_NONE,
			       "the domain takes no more channels");
		}
		forget(c, g);
	}
}
