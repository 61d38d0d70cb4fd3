/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls that reach other nodes; see channel.h.
 *
 * The asker's node sends the pieces to the home of the domain (GANG_ASK). The home asks the nodes
 * concerned one after another, in order of their names (GANG_RESERVE): each admission keeps its
 * share or queues for it, and only then the next is asked. All gangs of all homes take nodes in
 * the same order, so none waits for a node while it holds one that comes later: they cannot wait
 * for each other. When the last has it, all are told (GANG_COMMIT); a refusal lets go what was
 * kept before (GANG_CANCEL) and leaves a place where it was refused.
 *
 *   asker                home                         nodes, in order
 *     GANG_ASK ----------> number
 *                          GANG_RESERVE --------------> asks its admission, maybe waits
 *                            <-------------------------- GANG_RESERVED
 *     <------------------- GANG_COMMIT --------------->  the channel is
 *
 * The two ends of a pair may ask at the same time. Of one domain no two gangs with a pair in common
 * are under way: the second is held back, and when the first is had its asker is told to look
 * again: the end that it wants is there. So is one whose ask crossed the commit of the other's
 * channel: its own node, which has that channel by then, does not reserve another one (EXISTS).
 */
#include "channel.h"

#include "emit.h"
#include "home.h"
#include "part.h"
#include "session.h"
#include "user.h"

#include <stdio.h>
#include <string.h>

/* ---- at the node: asking ---- */

static bool is_unasked(const struct hc_channel *ch, uint32_t ref)
{
	return ch->state == CHANNEL_WAITING && ch->request == HC_NONE && !REF_SIDE(ref);
}

void hc_gang_ask(struct hc_core *c, struct hc_want *w, bool wait)
{
	const struct hc_part *p = hc_part(c, w->part);
	struct hc_m_gang_ask m = {
		.id = p->id, .epoch = p->epoch, .incarnation = c->self.incarnation, .wait = wait};
	const struct hc_channel *ch;
	uint32_t i, ref;

	for (i = 0; i < w->count; i++) {
		ref = c->chan->refs[w->refs + i];
		ch = &c->chan->at[REF_CHANNEL(ref)];
		if (!is_unasked(ch, ref))
			continue;
		m.hold_ms = ch->hold_ms;
		hc_assert(!hc_arr_put(&m.pieces, c->scratch, HC_OUT_BYTES, &hc_desc_gang_piece,
				      HC_PROTO_MAX,
				      &(struct hc_m_gang_piece){.channel = ch->id,
								.rank = ch->rank[0],
								.peer = ch->rank[1],
								.mbps = ch->mbps[0],
								.back_mbps = ch->mbps[1],
								.path_type = ch->path_type,
								.flags = ch->flags & 1,
								.buffer_bytes = ch->buffer}));
	}
	w->gang = m.ticket = ++c->chan->gang_ticket << 32 | hc_want_number(c, w);
	hc_emit_send(c, p->home_node, &hc_desc_gang_ask, &m);
}

static void send_end(struct hc_core *c, const struct hc_part *p, struct hc_m_gang_end m)
{
	m.id = p->id;
	m.epoch = p->epoch;
	m.incarnation = c->self.incarnation;
	hc_emit_send(c, p->home_node, &hc_desc_gang_end, &m);
}

void hc_gang_send_over(struct hc_core *c, const struct hc_part *p, uint64_t channel, uint32_t rank,
		       uint32_t peer)
{
	send_end(c, p, (struct hc_m_gang_end){.channel = channel, .rank = rank, .peer = peer});
}

void hc_gang_withdraw(struct hc_core *c, struct hc_want *w)
{
	if (!w->gang || w->kind == WANT_DOMAIN || w->part == HC_NONE)
		return;
	send_end(c, hc_part(c, w->part), (struct hc_m_gang_end){.ticket = w->gang});
	w->gang = 0;
}

void hc_gang_channel_over(struct hc_core *c, const struct hc_channel *ch)
{
	const struct hc_part *p = ch->away ? hc_part_by_id(c, ch->domain) : NULL;
	const unsigned here = !(ch->away & 2);

	if (!p || ch->why == WHY_PEER || ch->why == WHY_DOMAIN)
		return;
	hc_gang_send_over(c, p, ch->id, ch->rank[ch->away & 1 ? 1 : 0], ch->rank[here ? 0 : 1]);
}

static struct hc_want *want_of(struct hc_core *c, uint64_t ticket)
{
	const uint32_t n = (uint32_t)ticket;

	if (!ticket || n >= c->chan->want_pool.fresh || c->chan->wants[n].state == WANT_FREE ||
	    c->chan->wants[n].gang != ticket || c->chan->wants[n].kind != WANT_CLIENT)
		return NULL;
	return &c->chan->wants[n];
}

/* ---- at the node: what a gang has here ---- */

static struct hc_keep *keep_find(struct hc_core *c, uint64_t domain, uint64_t gang)
{
	uint32_t i;

	for (i = 0; domain && i < c->chan->keep_pool.fresh; i++)
		if (c->chan->keeps[i].domain == domain && c->chan->keeps[i].gang == gang)
			return &c->chan->keeps[i];
	return NULL;
}

static void keep_free(struct hc_core *c, struct hc_keep *k)
{
	c->chan->keep_of[k->request] = 0;
	*k = (struct hc_keep){0};
	hc_pool_put(&c->chan->keep_pool, (uint32_t)(k - c->chan->keeps));
}

static void send_reserved(struct hc_core *c, const struct hc_part *p, uint64_t gang, int code,
			  uint32_t retry_ms, const char *text)
{
	const struct hc_m_gang_reserved m = {.id = p->id,
					     .epoch = p->epoch,
					     .incarnation = c->self.incarnation,
					     .gang = gang,
					     .code = (uint16_t)code,
					     .retry_after_ms = retry_ms,
					     .text = hc_str(text)};

	hc_emit_send(c, p->home_node, &hc_desc_gang_reserved, &m);
}

void hc_gang_kept(struct hc_core *c, uint32_t request)
{
	struct hc_keep *k = &c->chan->keeps[c->chan->keep_of[request] - 1];

	hc_admit_collect(c->admit, request);
	k->granted = true;
	send_reserved(c, hc_part(c, k->part), k->gang, 0, HC_NONE, "");
}

/* A channel that is not kept any more: its asker, when that is here, hears of it by GANG_R. */
static void drop_channel(struct hc_core *c, struct hc_channel *ch)
{
	hc_channel_unbind(c, ch);
	if (ch->want[0] != HC_NONE)
		return;
	if (ch->want[1] != HC_NONE)
		hc_want_forget(c, &c->chan->wants[ch->want[1]], ch);
	hc_channel_free(c, ch);
}

static void keep_drop(struct hc_core *c, struct hc_keep *k)
{
	const uint32_t request = k->request;
	uint32_t n, next;

	for (n = c->chan->of_request[request]; n; n = next) {
		next = c->chan->at[n - 1].next;
		drop_channel(c, &c->chan->at[n - 1]);
	}
	keep_free(c, k);
	hc_admit_release(c->admit, c->now, request);
}

void hc_gang_part_gone(struct hc_core *c, const struct hc_part *p)
{
	uint32_t i;

	/* one that forms has no id yet, and those that are free say none */
	for (i = 0; p->id && i < c->chan->keep_pool.fresh; i++)
		if (c->chan->keeps[i].domain == p->id)
			keep_drop(c, &c->chan->keeps[i]);
}

/* The home has forgotten the gangs that were under way: those of this node are asked for anew. */
void hc_gang_part_again(struct hc_core *c, const struct hc_part *p)
{
	struct hc_want *w;
	uint32_t i;

	hc_gang_part_gone(c, p);
	for (i = 0; i < c->chan->want_pool.fresh; i++) {
		w = &c->chan->wants[i];
		if (w->state == WANT_FREE || w->kind != WANT_CLIENT || !w->gang ||
		    w->domain != p->id)
			continue;
		hc_gang_ask(c, w, w->deadline == HC_NEVER || w->deadline > c->now);
	}
}

struct reserving {
	struct hc_core *c;
	struct hc_part *p;
	const struct hc_m_gang_reserve *m;
	uint64_t key;
	uint32_t n, made; /* pieces; channels in c->scratch */
	char text[512];
};

static uint32_t *list(const struct reserving *r)
{
	return (uint32_t *)(void *)r->c->scratch;
}

/* A channel of the other rank that lacks the end which was to be asked for. */
static struct hc_channel *end_there(struct hc_core *c, const struct hc_channel *ch, unsigned *side)
{
	const struct hc_pair *pair = hc_channel_pair_of(c, ch->part, ch->rank[0], ch->rank[1]);
	struct hc_channel *there;
	uint32_t n;

	for (n = pair ? hc_list_first(&pair->open) : HC_NONE; n != HC_NONE;
	     n = hc_list_next(&c->chan->open_links, n)) {
		there = &c->chan->at[n];
		*side = there->rank[1] == ch->rank[0];
		if (there == ch || !hc_channel_lacks(there, *side))
			continue;
		/* one that the domain began with, and that did not fit, stays for others */
		if (!there->reserved || !hc_channel_lacks(there, !*side))
			return there;
	}
	return NULL;
}

/* The asker's own channel, or a new one. */
static struct hc_channel *channel_for(struct reserving *r, const struct hc_m_gang_piece *g)
{
	struct hc_core *c = r->c;
	struct hc_channel *ch = hc_channel_by_id(c, g->channel);

	if (ch)
		return ch->domain == r->p->id && ch->state == CHANNEL_WAITING &&
				       ch->request == HC_NONE && ch->rank[0] == g->rank &&
				       ch->rank[1] == g->peer
			       ? ch
			       : NULL;
	ch = hc_channel_make(c, r->p, g->channel, g->rank, g->peer);
	if (!ch)
		return NULL;
	ch->mbps[0] = g->mbps;
	ch->mbps[1] = g->back_mbps;
	ch->path_type = g->path_type;
	ch->flags = g->flags;
	ch->hold_ms = r->m->hold_ms;
	hc_channel_set_buffer(c, ch, g->buffer_bytes);
	return ch;
}

static bool is_sane(const struct reserving *r, const struct hc_m_gang_piece *g)
{
	return g->channel && g->rank < r->p->nranks && g->peer < r->p->nranks &&
	       g->rank != g->peer && g->path_type <= HC_W_link_type_SHM &&
	       (g->flags & 1) == g->flags && g->buffer_bytes <= (g->flags ? 0u : 1u << 24) &&
	       (hc_part_find_seat(r->c, r->p, g->rank) != HC_NONE ||
		hc_part_find_seat(r->c, r->p, g->peer) != HC_NONE);
}

static int take_pieces(struct reserving *r)
{
	struct hc_core *c = r->c;
	struct hc_arr a = r->m->pieces;
	struct hc_m_gang_piece g;
	struct hc_channel *ch;
	unsigned side;
	int code =
		hc_user_may_hold(c, r->p->uid, HC_HOLD_CHANNELS, a.count, r->text, sizeof(r->text));

	if (code)
		return code;
	while (hc_arr_next(&a, &hc_desc_gang_piece, HC_PROTO_MAX, &g)) {
		ch = is_sane(r, &g) ? channel_for(r, &g) : NULL;
		if (!ch) {
			HC_TEXT(r->text,
				"node %s cannot make channel %016llx: it is known, or "
				"there are too many",
				c->self.name, (unsigned long long)g.channel);
			return HC_E_LIMIT;
		}
		if (ch->want[0] != HC_NONE && end_there(c, ch, &side))
			return HC_E_EXISTS;
		list(r)[r->made++] = hc_channel_number(c, ch);
		c->chan->ask[r->n++] = hc_channel_admit_piece(c, r->p, ch);
		g.channel = 0; /* another try of the same has the same key */
		r->key = r->key * 31 + ((uint64_t)g.rank << 40 ^ (uint64_t)g.peer << 20 ^ g.mbps ^
					(uint64_t)g.back_mbps << 32);
	}
	if (r->n)
		return 0;
	HC_TEXT(r->text, "a gang without a piece");
	return HC_E_INVALID;
}

static void undo(struct reserving *r)
{
	struct hc_channel *ch;
	uint32_t i;

	for (i = 0; i < r->made; i++) {
		ch = &r->c->chan->at[list(r)[i]];
		if (ch->want[0] == HC_NONE)
			hc_channel_free(r->c, ch);
	}
}

/* Refused for now: the place is kept here, for the same gang when it comes again. */
static void keep_place(struct reserving *r, uint32_t request)
{
	struct hc_core *c = r->c;
	struct hc_want *t;
	char text[160];

	if (c->chan->ticket_of[request])
		return;
	t = hc_user_may_hold(c, r->p->uid, HC_HOLD_WAITING, 1, text, sizeof(text))
		    ? NULL
		    : hc_want_ticket(c, r->key, request);
	if (!t) {
		hc_admit_release(c->admit, c->now, request);
		return;
	}
	t->kind = WANT_GANG;
	t->part = hc_part_number(c, r->p);
	t->domain = r->p->id;
	t->uid = r->p->uid;
	t->priority = r->p->priority;
	t->lost_rank = r->n;
	hc_want_index(c, t);
	hc_want_waits(c, t, HC_NEVER);
}

static void keep(struct reserving *r, uint32_t request, bool granted)
{
	struct hc_core *c = r->c;
	const uint32_t n = hc_pool_get(&c->chan->keep_pool);
	uint32_t i;

	hc_assert(n != HC_NONE);
	c->chan->keeps[n] = (struct hc_keep){.domain = r->p->id,
					     .gang = r->m->gang,
					     .request = request,
					     .part = hc_part_number(c, r->p)};
	c->chan->keep_of[request] = n + 1;
	for (i = 0; i < r->made; i++)
		hc_channel_bind(c, &c->chan->at[list(r)[i]], request, i);
	if (granted)
		hc_gang_kept(c, request);
}

/* To another node: a piece with rings, or else one whose share is more than any link has. */
static void no_way(struct reserving *r)
{
	struct hc_core *c = r->c;
	const struct hc_admit_piece *piece = NULL;
	uint32_t i;

	for (i = 0; i < r->n && (!piece || !piece->carries); i++)
		if (c->chan->ask[i].from == HC_END_NET || c->chan->ask[i].to == HC_END_NET)
			piece = &c->chan->ask[i];
	if (piece && piece->carries)
		HC_TEXT(r->text,
			"node %s has no link to another node that could ever carry it: between "
			"nodes a channel is a grant alone (HCOMM_CHANNEL_GRANT_ONLY)",
			c->self.name);
	else if (piece)
		HC_TEXT(r->text,
			"node %s has no link that could ever carry it (to another node: %u MB/s "
			"and %u back, type %s); hcommctl link list shows what there is",
			c->self.name, piece->mbps[0], piece->mbps[1],
			hc_word_link_type(piece->type));
	else
		HC_TEXT(r->text, "node %s has no link that could ever carry it", c->self.name);
}

static int reserve(struct reserving *r, uint32_t *retry_ms)
{
	struct hc_core *c = r->c;
	struct hc_want_words words = {.hold_ms = r->m->hold_ms, .wait = r->m->wait == 1};
	uint32_t request;
	int code = take_pieces(r);

	if (!code && c->chan->keep_pool.used == HC_KEEPS) {
		HC_TEXT(r->text, "too many gangs are under way on node %s", c->self.name);
		code = HC_E_LIMIT;
	}
	if (code)
		return code;
	words.npieces = r->n;
	code = hc_want_ask(c, r->p, &words, hc_want_ticket_find(c, r->key), &request, retry_ms);
	if (!code || code == HC_E_IN_PROGRESS) {
		keep(r, request, !code);
		return 0;
	}
	if (code != HC_E_LIMIT)
		hc_channel_why_not(c, r->p->uid, c->chan->ask, r->n, r->text, sizeof(r->text));
	else if (!hc_channel_over_quota(c, r->p->uid, c->chan->ask, r->n, true, r->text,
					sizeof(r->text)))
		HC_TEXT(r->text, "too many requests for channels wait on node %s", c->self.name);
	if (code == HC_E_AGAIN)
		keep_place(r, request);
	else if (code == HC_E_LINK_UNAVAILABLE)
		no_way(r);
	return code;
}

void hc_gang_on_reserve(struct hc_core *c, uint32_t node, const struct hc_m_gang_reserve *m)
{
	struct reserving r = {.c = c, .p = hc_part_of_home(c, node, m->id), .m = m};
	uint32_t retry_ms = HC_NONE;
	int code;

	if (!r.p || r.p->epoch != m->epoch || keep_find(c, m->id, m->gang))
		return;
	if (r.p->state != HC_W_domain_state_ACTIVE) {
		send_reserved(c, r.p, m->gang, HC_E_GONE, HC_NONE, "the domain is not ACTIVE");
		return;
	}
	r.key = m->id;
	code = reserve(&r, &retry_ms);
	if (!code)
		return;
	undo(&r);
	send_reserved(c, r.p, m->gang, code, retry_ms, r.text);
}

void hc_gang_on_cancel(struct hc_core *c, uint32_t node, const struct hc_m_gang_cancel *m)
{
	struct hc_keep *k = keep_find(c, m->id, m->gang);

	if (k && hc_part(c, k->part)->home_node == node)
		keep_drop(c, k);
}

/* ---- at the node: the channels are ---- */

static bool holds_place(const struct hc_core *c, const struct hc_part *p,
			const struct hc_channel *ch, unsigned side)
{
	const uint32_t seat = hc_part_find_seat(c, p, ch->rank[side]);

	return ch->away >> side & 1 ||
	       (seat != HC_NONE && c->seats[seat].state != HC_W_member_state_DEAD &&
		c->seats[seat].state != HC_W_member_state_LEFT);
}

/* Those whose asker is elsewhere are stored by themselves; those whose end has gone, end. */
static void take_over(struct hc_core *c, const struct hc_part *p, uint32_t first)
{
	struct hc_want *w = NULL;
	struct hc_channel *ch;
	uint32_t n, next, count = 0;

	for (n = first; n; n = c->chan->at[n - 1].next)
		count += c->chan->at[n - 1].away & 1;
	if (count)
		w = hc_want_make(c, WANT_GANG, count);
	count = 0;
	for (n = first; n; n = next) {
		ch = &c->chan->at[n - 1];
		next = ch->next;
		if (!holds_place(c, p, ch, 0) || !holds_place(c, p, ch, 1) ||
		    (ch->away & 1 ? !w : ch->want[0] == HC_NONE)) {
			hc_channel_end(c, ch, WHY_WITHDRAWN, HC_NONE, 0);
			continue;
		}
		if (ch->away & 1)
			hc_want_ref(c, w, count++, ch, 0);
		hc_channel_pair(c, ch);
	}
	if (w && count) {
		hc_want_index(c, w);
		hc_want_ready(c, w);
	} else if (w) {
		hc_want_free(c, w);
	}
}

void hc_gang_on_commit(struct hc_core *c, uint32_t node, const struct hc_m_gang_commit *m)
{
	struct hc_keep *k = keep_find(c, m->id, m->gang);
	struct hc_want *asker = want_of(c, m->ticket);
	uint32_t request;
	const struct hc_part *p;

	if (!k || !k->granted || hc_part(c, k->part)->home_node != node)
		return;
	request = k->request;
	p = hc_part(c, k->part);
	keep_free(c, k);
	if (asker)
		asker->gang = 0;
	hc_channel_granted(c, request);
	take_over(c, p, c->chan->of_request[request]);
}

/* Ends that the other rank's channels lack take the place of what was to be asked for. */
static const char *look_again(struct hc_core *c, struct hc_want *w)
{
	uint32_t i, ref;
	struct hc_channel *ch, *there;
	unsigned side;

	for (i = 0; i < w->count; i++) {
		ref = c->chan->refs[w->refs + i];
		ch = &c->chan->at[REF_CHANNEL(ref)];
		there = is_unasked(ch, ref) ? end_there(c, ch, &side) : NULL;
		if (!there)
			continue;
		if ((ch->mbps[0] && ch->mbps[0] != there->mbps[side]) ||
		    (ch->mbps[1] && ch->mbps[1] != there->mbps[!side]) ||
		    (ch->flags & 1) != (there->flags & 1))
			return "the two ends of a channel want different things: "
			       "bandwidth_mbps, back_mbps or flags differ";
		c->chan->refs[w->refs + i] = HC_NONE;
		ch->want[0] = HC_NONE;
		w->missing--;
		hc_channel_free(c, ch);
		hc_want_ref(c, w, i, there, side);
		hc_channel_pair(c, there);
	}
	return NULL;
}

static bool anything_unasked(const struct hc_core *c, const struct hc_want *w)
{
	uint32_t i, ref;

	for (i = 0; i < w->count; i++) {
		ref = c->chan->refs[w->refs + i];
		if (ref != HC_NONE && is_unasked(&c->chan->at[REF_CHANNEL(ref)], ref))
			return true;
	}
	return false;
}

void hc_gang_on_r(struct hc_core *c, uint32_t node, const struct hc_m_gang_r *m)
{
	struct hc_want *w = want_of(c, m->ticket);
	char text[HC_TEXT_MAX + 1];
	const char *why;

	if (!w || w->domain != m->id || hc_part(c, w->part)->home_node != node)
		return;
	w->gang = 0;
	hc_str_copy(m->text, text, sizeof(text));
	if (m->code == HC_E_AGAIN) {
		hc_want_refuse(c, w, m->retry_after_ms, text);
		return;
	}
	if (m->code != HC_E_EXISTS) {
		hc_want_fail(c, w, m->code, text);
		return;
	}
	why = look_again(c, w);
	if (why)
		hc_want_fail(c, w, HC_E_MISMATCH, why);
	else if (anything_unasked(c, w))
		hc_gang_ask(c, w, w->deadline == HC_NEVER || w->deadline > c->now);
	else if (!w->missing && w->state == WANT_WAITING)
		hc_want_ready(c, w);
}

void hc_gang_on_over(struct hc_core *c, uint32_t node, const struct hc_m_gang_over *m)
{
	struct hc_channel *ch = hc_channel_by_id(c, m->channel);

	if (ch && ch->domain == m->id && ch->away && hc_part_of_home(c, node, m->id))
		hc_channel_end(c, ch, WHY_PEER, m->rank, 0);
}
