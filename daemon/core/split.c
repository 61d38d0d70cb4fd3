/* SPDX-License-Identifier: Apache-2.0 */
/* Gathering colours at the home of the parent; see split.h. */
#include "split.h"

#include "ask.h"
#include "emit.h"
#include "home.h"
#include "part.h"
#include "session.h"

#include <stdio.h>
#include <string.h>

/* ---- the client's side ---- */

void hc_split(struct hc_core *c, struct hc_session *s, uint32_t request, const struct hc_m_split *m)
{
	struct hc_m_gather g = {.parent = m->parent,
				.epoch = m->epoch,
				.incarnation = c->self.incarnation,
				.rank = m->parent_rank,
				.color = m->color,
				.key = m->key,
				.timeout_ms = m->timeout_ms};
	struct hc_part *p = hc_part_by_id(c, m->parent);
	char text[256];
	int code = 0;

	hc_part_own_seat(c, s, m->parent, m->epoch, m->parent_rank, &code, text, sizeof(text));
	g.ticket = code ? 0 : hc_ask_open(c, s->id, request);
	if (g.ticket)
		hc_ask_to(c, g.ticket, p->home_node, false);
	hc_ask_keep(c, g.ticket, &hc_desc_gather, &g);
	if (!code && !g.ticket) {
		code = HC_E_LIMIT;
		HC_TEXT(text, "too many requests wait for an answer");
	}
	if (code)
		hc_emit_error(c, s->id, request, code, text);
	else
		hc_emit_send(c, p->home_node, &hc_desc_gather, &g);
}

void hc_split_on_gathered(struct hc_core *c, const struct hc_m_gathered *m)
{
	struct hc_m_split_r r = {.sub_id = m->sub_id, .ranks = m->ranks};
	char text[HC_TEXT_MAX + 1];
	uint64_t session;
	uint32_t request;

	if (m->code) {
		hc_ask_answer(c, m->ticket, m->code, hc_str_copy(m->text, text, sizeof(text)));
		return;
	}
	if (hc_ask_take(c, m->ticket, &session, &request))
		hc_emit_reply(c, session, request, &hc_desc_split_r, &r);
}

/* ---- the home's side ---- */

static struct hc_gather *find(struct hc_core *c, uint64_t parent)
{
	uint32_t i;

	for (i = 0; i < HC_GATHERS; i++)
		if (c->gathers[i].parent == parent && !c->gathers[i].answering)
			return &c->gathers[i];
	return NULL;
}

static uint32_t number(const struct hc_core *c, const struct hc_gather *g)
{
	return (uint32_t)(g - c->gathers);
}

static void refuse(struct hc_core *c, uint32_t node, uint64_t ticket, int code, const char *text)
{
	struct hc_m_gathered r = {.ticket = ticket, .code = (uint16_t)code, .text = hc_str(text)};

	hc_emit_send(c, node, &hc_desc_gathered, &r);
}

static struct hc_gather *open_gather(struct hc_core *c, const struct hc_home *h,
				     uint32_t timeout_ms)
{
	struct hc_gather *g = find(c, 0);

	if (!g)
		return NULL;
	*g = (struct hc_gather){.nranks = h->nranks, .epoch = h->epoch};
	g->first = hc_spans_get(&c->voice_spans, h->nranks, &g->order);
	if (g->first == HC_NONE)
		return NULL;
	memset(&c->voices[g->first], 0, h->nranks * sizeof(*c->voices));
	g->parent = h->id;
	g->serial = ++c->gather_serial;
	hc_timers_set(&c->timers, 2 * c->lim.domains + number(c, g),
		      c->now + (timeout_ms ? timeout_ms * 1000000ull : c->set.connect_timeout_ns));
	return g;
}

static void close_gather(struct hc_core *c, struct hc_gather *g)
{
	hc_timers_set(&c->timers, 2 * c->lim.domains + number(c, g), HC_NEVER);
	hc_spans_put(&c->voice_spans, g->first, g->order);
	if (g->answering)
		c->answering--;
	*g = (struct hc_gather){0};
}

/* One answer in each unit of work; no voice is added any more. */
static void begin_answers(struct hc_core *c, struct hc_gather *g)
{
	g->answering = true;
	c->answering++;
}

static bool voice_before(const struct hc_voice *v, uint32_t a, uint32_t b)
{
	if (v[a].color != v[b].color)
		return v[a].color < v[b].color;
	return v[a].key != v[b].key ? v[a].key < v[b].key : a < b;
}

static void sift(struct hc_voice *v, uint32_t at, uint32_t n)
{
	uint32_t child, moved = v[at].sorted;

	for (; (child = 2 * at + 1) < n; at = child) {
		if (child + 1 < n && voice_before(v, v[child].sorted, v[child + 1].sorted))
			child++;
		if (!voice_before(v, moved, v[child].sorted))
			break;
		v[at].sorted = v[child].sorted;
	}
	v[at].sorted = moved;
}

/* Ranks in order of (colour, key, rank): a heap sort of their numbers. */
static void sort(struct hc_voice *v, uint32_t n)
{
	uint32_t i, last;

	for (i = 0; i < n; i++)
		v[i].sorted = i;
	for (i = n / 2; i-- > 0;)
		sift(v, i, n);
	for (i = n; i-- > 1;) {
		last = v[i].sorted;
		v[i].sorted = v[0].sorted;
		v[0].sorted = last;
		sift(v, 0, i);
	}
}

void hc_split_on_gather(struct hc_core *c, uint32_t node, const struct hc_m_gather *m)
{
	struct hc_home *h = hc_home_by_id(c, m->parent);
	struct hc_gather *g;
	struct hc_voice *v;

	if (!h || h->state != HC_W_domain_state_ACTIVE || h->epoch != m->epoch ||
	    m->rank >= h->nranks) {
		refuse(c, node, m->ticket, HC_E_GONE,
		       "the parent domain is not ACTIVE in that epoch");
		return;
	}
	g = find(c, m->parent);
	if (!g)
		g = open_gather(c, h, m->timeout_ms);
	if (!g) {
		refuse(c, node, m->ticket, HC_E_LIMIT, "too many splits are under way");
		return;
	}
	v = &c->voices[g->first + m->rank];
	if (v->here && (v->node != node || v->ticket != m->ticket))
		refuse(c, v->node, v->ticket, HC_E_IN_PROGRESS,
		       "the rank said its colour again; that request is answered");
	g->count += !v->here;
	*v = (struct hc_voice){
		.ticket = m->ticket, .node = node, .color = m->color, .key = m->key, .here = true};
	if (g->count < g->nranks)
		return;
	sort(&c->voices[g->first], g->nranks);
	begin_answers(c, g);
}

static void answer(struct hc_core *c, const struct hc_gather *g, uint32_t rank)
{
	const struct hc_voice *v = &c->voices[g->first];
	const struct hc_hash_key key = {g->parent, g->serial};
	struct hc_m_gathered r = {.ticket = v[rank].ticket};
	uint32_t i;

	if (!v[rank].here)
		return;
	if (g->code) {
		refuse(c, v[rank].node, v[rank].ticket, g->code, g->text);
		return;
	}
	/* the high bit keeps these numbers apart from those that callers of sub choose */
	r.sub_id = hc_hash(&key, &v[rank].color, sizeof(v[rank].color)) | 1ull << 63;
	for (i = 0; v[rank].color >= 0 && i < g->nranks; i++) {
		struct hc_m_rank one = {.rank = v[i].sorted};

		if (v[one.rank].color == v[rank].color)
			hc_assert(!hc_arr_put(&r.ranks, c->scratch, HC_OUT_BYTES, &hc_desc_rank,
					      HC_PROTO_MAX, &one));
	}
	hc_emit_send(c, v[rank].node, &hc_desc_gathered, &r);
}

bool hc_split_work(struct hc_core *c)
{
	uint32_t i;

	if (!c->answering)
		return false;
	for (i = 0; !c->gathers[i].answering; i++)
		hc_assert(i < HC_GATHERS);
	answer(c, &c->gathers[i], c->gathers[i].cursor++);
	if (c->gathers[i].cursor == c->gathers[i].nranks)
		close_gather(c, &c->gathers[i]);
	return true;
}

void hc_split_cancel(struct hc_core *c, uint64_t parent, int code, const char *text)
{
	struct hc_gather *g = find(c, parent);

	if (!g)
		return;
	g->code = (uint16_t)code;
	hc_str_copy(hc_str(text), g->text, sizeof(g->text));
	begin_answers(c, g);
}

void hc_split_timeout(struct hc_core *c, uint32_t n)
{
	const struct hc_gather *g = &c->gathers[n];
	char text[256];
	size_t at;
	uint32_t i;

	if (!g->parent || g->answering)
		return;
	at = (size_t)snprintf(text, sizeof(text), "split: no word from rank");
	for (i = 0; i < g->nranks && at + 24 < sizeof(text); i++)
		if (!c->voices[g->first + i].here)
			at += (size_t)snprintf(text + at, sizeof(text) - at, " %u", i);
	snprintf(text + at, sizeof(text) - at, " (%u of %u)", g->nranks - g->count, g->nranks);
	hc_split_cancel(c, g->parent, HC_E_TIMEOUT, text);
}
