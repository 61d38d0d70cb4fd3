/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Channels with ends on two nodes, when a node begins anew; see channel.h and again.h.
 *
 * Each node keeps its end in its own rows. An end may have gone while the other node's daemon was
 * down, or was not stored when it was killed, or was not taken back; and what was said of it may
 * be lost with a daemon, also with that of the home. So every node that meets one anew says which
 * channels to other nodes it has, and the home passes that on to the nodes at their other ends.
 * Whoever hears of a channel that it does not have says that it is over, as if it ended now.
 *
 * A channel that comes about meanwhile is not hit: the home commits it on both nodes before it can
 * hear of it from either, and says things to a node in their order.
 */
#include "channel.h"

#include "emit.h"
#include "home.h"
#include "part.h"
#include "who.h"

#define SAID_MAX 1024u /* as the messages say */

/* ---- at the node that has them ---- */

struct saying {
	struct hc_core *c;
	const struct hc_part *p;
	struct hc_m_gang_have m;
};

static void flush(struct saying *s)
{
	if (s->m.channels.count)
		hc_emit_send(s->c, s->p->home_node, &hc_desc_gang_have, &s->m);
	s->m.channels = (struct hc_arr){0};
}

static void add(struct saying *s, const struct hc_channel *ch)
{
	const unsigned side = ch->away & 1; /* that is here */
	const struct hc_m_gang_channel g = {
		.channel = ch->id, .rank = ch->rank[side], .peer = ch->rank[!side]};

	if (s->m.channels.count == SAID_MAX)
		flush(s);
	hc_assert(!hc_arr_put(&s->m.channels, s->c->scratch, HC_OUT_BYTES, &hc_desc_gang_channel,
			      HC_PROTO_MAX, &g));
}

void hc_gang_say(struct hc_core *c, const struct hc_part *p)
{
	struct saying s = {
		.c = c,
		.p = p,
		.m = {.id = p->id, .epoch = p->epoch, .incarnation = c->self.incarnation}};
	const struct hc_channel *ch;
	uint32_t i, n;
	uint64_t key;

	if (p->state < HC_W_domain_state_ACTIVE)
		return;
	for (i = p->seats; i < p->seats + p->nseats; i++) {
		key = hc_end_key(hc_part_number(c, p), c->seats[i].rank);
		for (n = hc_index_find(&c->chan->by_end, key); n != HC_NONE;
		     n = hc_index_next(&c->chan->by_end, n)) {
			ch = &c->chan->at[n / 2];
			if (ch->away && ch->state == CHANNEL_GRANTED && ch->domain == p->id)
				add(&s, ch);
		}
	}
	flush(&s);
}

/* ---- at the home ---- */

static uint32_t node_of(struct hc_core *c, struct hc_home *h, uint32_t rank)
{
	return hc_who(c, hc_home_place(c, h, rank))->node;
}

/* Those whose other end is on that node. */
static void pass_on(struct hc_core *c, struct hc_home *h, uint32_t to,
		    const struct hc_m_gang_have *m)
{
	struct hc_m_gang_held held = {
		.id = h->id, .epoch = h->epoch, .incarnation = c->self.incarnation};
	struct hc_arr a = m->channels;
	struct hc_m_gang_channel g;

	while (hc_arr_next(&a, &hc_desc_gang_channel, HC_PROTO_MAX, &g))
		if (g.peer < h->nranks && node_of(c, h, g.peer) == to)
			hc_assert(!hc_arr_put(&held.channels, c->scratch, HC_OUT_BYTES,
					      &hc_desc_gang_channel, HC_PROTO_MAX, &g));
	hc_emit_send(c, to, &hc_desc_gang_held, &held);
}

void hc_gang_on_have(struct hc_core *c, uint32_t node, const struct hc_m_gang_have *m)
{
	struct hc_home *h = hc_home_by_id(c, m->id);
	struct hc_arr a = m->channels;
	struct hc_m_gang_channel g;
	uint32_t to;

	if (!h || h->epoch != m->epoch || h->state < HC_W_domain_state_ACTIVE)
		return;
	c->node_round++;
	while (hc_arr_next(&a, &hc_desc_gang_channel, HC_PROTO_MAX, &g)) {
		if (g.peer >= h->nranks)
			continue;
		to = node_of(c, h, g.peer);
		if (to == node || c->node_mark[to] == c->node_round)
			continue;
		c->node_mark[to] = c->node_round;
		pass_on(c, h, to, m);
	}
}

/* ---- at the node of the other end ---- */

void hc_gang_on_held(struct hc_core *c, uint32_t node, const struct hc_m_gang_held *m)
{
	const struct hc_part *p = hc_part_of_home(c, node, m->id);
	struct hc_arr a = m->channels;
	const struct hc_channel *ch;
	struct hc_m_gang_channel g;

	if (!p || p->epoch != m->epoch || p->state < HC_W_domain_state_ACTIVE)
		return;
	while (hc_arr_next(&a, &hc_desc_gang_channel, HC_PROTO_MAX, &g)) {
		ch = hc_channel_by_id(c, g.channel);
		if (hc_part_find_seat(c, p, g.peer) != HC_NONE && (!ch || ch->domain != p->id))
			hc_gang_send_over(c, p, g.channel, g.peer, g.rank);
	}
}
