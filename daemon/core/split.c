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
				.timeout_ms = m->timeout_ms,
				.number = m->number};
	struct hc_part *p = hc_part_by_id(c, m->parent);
	char text[256];
	int code = 0;

	hc_part_own_seat(c, s, m->parent, m->epoch, m->parent_rank, false, &code, text,
			 sizeof(text));
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

static struct hc_gather *find(struct hc_core *c, uint64_t parent, enum hc_gather_state state)
{
	uint32_t i;

	for (i = 0; i < HC_GATHERS; i++)
		if (c->gathers[i].state == state &&
		    (state == GATHER_FREE || c->gathers[i].parent == parent))
			return &c->gathers[i];
	return NULL;
}

static void alarm_at(struct hc_core *c, const struct hc_gather *g, uint64_t at)
{
	hc_timers_set(&c->timers, 2 * c->lim.domains + (uint32_t)(g - c->gathers), at);
}

static void refuse(struct hc_core *c, uint32_t node, uint64_t ticket, int code, const char *text)
{
	struct hc_m_gathered r = {.ticket = ticket, .code = (uint16_t)code, .text = hc_str(text)};

	hc_emit_send(c, node, &hc_desc_gathered, &r);
}

static void close_gather(struct hc_core *c, struct hc_gather *g)
{
	alarm_at(c, g, HC_NEVER);
	hc_spans_put(&c->voice_spans, g->first, g->order);
	*g = (struct hc_gather){0};
}

/* Kept answers make room, the oldest first. False: none is kept. */
static bool forget_one(struct hc_core *c)
{
	struct hc_gather *oldest = NULL;
	uint32_t i;

	for (i = 0; i < HC_GATHERS; i++)
		if (c->gathers[i].state == GATHER_KEPT &&
		    (!oldest || c->gathers[i].serial < oldest->serial))
			oldest = &c->gathers[i];
	if (oldest)
		close_gather(c, oldest);
	return oldest;
}

static struct hc_gather *open_gather(struct hc_core *c, const struct hc_home *h,
				     uint32_t timeout_ms)
{
	struct hc_gather *g;
	uint32_t first;
	uint8_t order;

	while (!(g = find(c, 0, GATHER_FREE)))
		if (!forget_one(c))
			return NULL;
	while ((first = hc_spans_get(&c->voice_spans, h->nranks, &order)) == HC_NONE)
		if (!forget_one(c))
			return NULL;
	memset(&c->voices[first], 0, h->nranks * sizeof(*c->voices));
	*g = (struct hc_gather){.parent = h->id,
				.serial = (uint64_t)c->self.start << 32 | ++c->gather_serial,
				.epoch = h->epoch,
				.nranks = h->nranks,
				.first = first,
				.order = order,
				.state = GATHER_OPEN};
	alarm_at(c, g, c->now + (timeout_ms ? timeout_ms * 1000000ull : c->set.connect_timeout_ns));
	return g;
}

/* One answer in each unit of work. */
static void begin_answers(struct hc_core *c, struct hc_gather *g)
{
	alarm_at(c, g, HC_NEVER);
	g->state = GATHER_ANSWERING;
	g->cursor = 0;
	c->answering++;
}

/* No voice is added any more: all who have spoken are answered. */
static void answer_all(struct hc_core *c, struct hc_gather *g)
{
	struct hc_voice *v = &c->voices[g->first];
	uint32_t i;

	for (i = g->due = 0; i < g->nranks; i++)
		if (v[i].here) {
			v[i].due = true;
			g->due++;
		}
	begin_answers(c, g);
}

static void end_open(struct hc_core *c, struct hc_gather *g, int code, const char *text)
{
	g->code = (uint16_t)code;
	hc_str_copy(hc_str(text), g->text, sizeof(g->text));
	answer_all(c, g);
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

/* ---- which split it is ---- */

/* Of the parent, as its process counts them; 0: it does not. Older libraries said the time. */
static uint32_t number_of(uint64_t said)
{
	return said <= UINT32_MAX ? (uint32_t)said : 0;
}

/* A rank whose number the gather has. */
static uint32_t who_counts(struct hc_core *c, const struct hc_gather *g)
{
	uint32_t i;

	for (i = 0; i < g->nranks; i++)
		if (c->voices[g->first + i].here &&
		    number_of(c->voices[g->first + i].number) == g->number)
			return i;
	return 0;
}

static void say_behind(const struct hc_core *c, uint32_t number, uint32_t rank, uint32_t ahead,
		       char *text, size_t bytes)
{
	snprintf(text, bytes,
		 "split #%u of the domain: rank %u is at #%u, and the home, node %.64s, does not "
		 "know any more what #%u gave. It counts as over: let all ranks split again",
		 number, rank, ahead, c->self.name, number);
}

/* The split that it says is over for the others: 0, or MISMATCH with the reason. */
static int is_over(struct hc_core *c, const struct hc_m_gather *m, char *text, size_t bytes)
{
	const uint32_t number = number_of(m->number);
	const struct hc_gather *g;
	const struct hc_voice *v;
	uint32_t i;

	for (i = 0; number && i < HC_GATHERS; i++) {
		g = &c->gathers[i];
		if (g->state == GATHER_FREE || g->parent != m->parent || g->epoch != m->epoch ||
		    g->code || g->number < number)
			continue;
		v = &c->voices[g->first + m->rank];
		if (g->number > number)
			say_behind(c, number, who_counts(c, g), g->number, text, bytes);
		else if (g->state == GATHER_OPEN)
			continue;
		else
			snprintf(text, bytes,
				 "split #%u of the domain is complete with colour %d and key %d of "
				 "rank %u, which says %d and %d now. It counts as over: let all "
				 "ranks split again",
				 number, v->color, v->key, m->rank, m->color, m->key);
		return HC_E_MISMATCH;
	}
	return 0;
}

/* Its process asks again for what was answered already, as after a lost connection. */
static bool is_again(struct hc_core *c, const struct hc_gather *g, const struct hc_m_gather *m)
{
	const struct hc_voice *v = &c->voices[g->first + m->rank];

	return m->number && g->parent == m->parent && g->epoch == m->epoch && !g->code && v->here &&
	       v->number == m->number && v->color == m->color && v->key == m->key;
}

static bool answer_again(struct hc_core *c, uint32_t node, const struct hc_m_gather *m)
{
	struct hc_gather *g;
	struct hc_voice *v;
	uint32_t i;

	for (i = 0; i < HC_GATHERS; i++)
		if (c->gathers[i].state >= GATHER_ANSWERING && is_again(c, &c->gathers[i], m))
			break;
	if (i == HC_GATHERS)
		return false;
	g = &c->gathers[i];
	v = &c->voices[g->first + m->rank];
	v->ticket = m->ticket;
	v->node = node;
	g->due += !v->due;
	v->due = true;
	if (g->state == GATHER_KEPT)
		begin_answers(c, g);
	return true;
}

static int may_gather(struct hc_core *c, const struct hc_m_gather *m, char *text, size_t bytes)
{
	const struct hc_home *h = hc_home_by_id(c, m->parent);
	const char *cause = h ? hc_home_cause(c, h) : "";

	if (h && h->epoch == m->epoch && m->rank < h->nranks &&
	    (h->state == HC_W_domain_state_ACTIVE || h->state == HC_W_domain_state_SUSPENDED))
		return 0;
	if (h && h->state == HC_W_domain_state_DAMAGED) {
		snprintf(text, bytes, "the parent domain is DAMAGED: %.180s", cause);
		return HC_E_DAMAGED;
	}
	snprintf(text, bytes, "the parent domain is not ACTIVE in that epoch");
	return HC_E_GONE;
}

/* That of its number; of any, when one of them does not count. NULL: too many are under way. */
static struct hc_gather *gather_for(struct hc_core *c, const struct hc_m_gather *m)
{
	const uint32_t number = number_of(m->number);
	struct hc_gather *g = find(c, m->parent, GATHER_OPEN);
	char text[256];

	if (g && g->number && g->number < number) {
		/* who counts on has the answer, and gave its word to an earlier start */
		say_behind(c, g->number, m->rank, number, text, sizeof(text));
		end_open(c, g, HC_E_MISMATCH, text);
		g = NULL;
	}
	if (!g)
		g = open_gather(c, hc_home_by_id(c, m->parent), m->timeout_ms);
	if (g && number)
		g->number = number;
	return g;
}

void hc_split_on_gather(struct hc_core *c, uint32_t node, const struct hc_m_gather *m)
{
	struct hc_gather *g, *before;
	struct hc_voice *v;
	char text[256];
	int r;

	r = may_gather(c, m, text, sizeof(text));
	if (!r && answer_again(c, node, m))
		return;
	if (!r)
		r = is_over(c, m, text, sizeof(text));
	if (r) {
		refuse(c, node, m->ticket, r, text);
		return;
	}
	g = gather_for(c, m);
	if (!g) {
		refuse(c, node, m->ticket, HC_E_LIMIT, "too many splits are under way");
		return;
	}
	v = &c->voices[g->first + m->rank];
	if (v->here && (v->node != node || v->ticket != m->ticket))
		refuse(c, v->node, v->ticket, HC_E_IN_PROGRESS,
		       "the rank said its colour again; that request is answered");
	g->count += !v->here;
	*v = (struct hc_voice){.ticket = m->ticket,
			       .number = m->number,
			       .node = node,
			       .color = m->color,
			       .key = m->key,
			       .here = true};
	if (g->count < g->nranks)
		return;
	/* all have gone on from the one before */
	before = find(c, m->parent, GATHER_KEPT);
	if (before)
		close_gather(c, before);
	sort(&c->voices[g->first], g->nranks);
	answer_all(c, g);
}

static void answer(struct hc_core *c, struct hc_gather *g, uint32_t rank)
{
	struct hc_voice *v = &c->voices[g->first];
	const struct hc_hash_key key = {g->parent, g->serial};
	struct hc_m_gathered r = {.ticket = v[rank].ticket};
	uint32_t i;

	if (!v[rank].due)
		return;
	v[rank].due = false;
	g->due--;
	if (g->code) {
		refuse(c, v[rank].node, v[rank].ticket, g->code, g->text);
		return;
	}
	r.sub_id = hc_hash(&key, &v[rank].color, sizeof(v[rank].color)) | HC_SPLIT_BIT;
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
	struct hc_gather *g = c->gathers;

	if (!c->answering)
		return false;
	for (; g->state != GATHER_ANSWERING; g++)
		hc_assert(g < &c->gathers[HC_GATHERS - 1]);
	answer(c, g, g->cursor++ % g->nranks);
	if (g->due)
		return true;
	c->answering--;
	g->state = GATHER_KEPT;
	if (g->code)
		close_gather(c, g);
	else
		alarm_at(c, g, c->now + c->set.connect_timeout_ns);
	return true;
}

void hc_split_timeout(struct hc_core *c, uint32_t n)
{
	struct hc_gather *g = &c->gathers[n];
	char text[256];
	size_t at;
	uint32_t i;

	if (g->state == GATHER_KEPT)
		close_gather(c, g);
	if (g->state != GATHER_OPEN)
		return;
	at = (size_t)snprintf(text, sizeof(text), "split: no word from rank");
	for (i = 0; i < g->nranks && at + 24 < sizeof(text); i++)
		if (!c->voices[g->first + i].here)
			at += (size_t)snprintf(text + at, sizeof(text) - at, " %u", i);
	snprintf(text + at, sizeof(text) - at, " (%u of %u)", g->nranks - g->count, g->nranks);
	end_open(c, g, HC_E_TIMEOUT, text);
}

/* ---- what the parent's end means ---- */

int hc_split_parent_check(struct hc_core *c, uint64_t parent, char *text, size_t bytes)
{
	const struct hc_home *h = parent ? hc_home_by_id(c, parent) : NULL;
	const bool damaged = h && h->state == HC_W_domain_state_DAMAGED;
	const char *cause = damaged ? hc_home_cause(c, h) : "";

	if (!parent || (h && !damaged && h->state >= HC_W_domain_state_ACTIVE &&
			h->state < HC_W_domain_state_DESTROYED))
		return 0;
	snprintf(text, bytes, "the parent domain is %s%s%.300s", damaged ? "DAMAGED" : "gone",
		 cause[0] ? ": " : "", cause);
	return damaged ? HC_E_DAMAGED : HC_E_GONE;
}

void hc_split_parent_over(struct hc_core *c, uint64_t parent, int code, const char *text)
{
	struct hc_gather *g = find(c, parent, GATHER_OPEN);
	uint32_t n;

	if (g)
		end_open(c, g, code, text);
	g = find(c, parent, GATHER_KEPT);
	if (g)
		close_gather(c, g);
	/* sub-domains that form look at their parent when they wake */
	for (n = hc_index_find(&c->home_by_parent, parent); n != HC_NONE;
	     n = hc_index_next(&c->home_by_parent, n))
		hc_home_alarm(c, hc_home(c, c->home_busy[n].home), c->now);
}
