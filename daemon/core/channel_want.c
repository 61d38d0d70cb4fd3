/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls for channels; see channel.h.
 *
 * A call is looked at piece by piece. An end that this rank was given and whose answer was lost
 * (its session is gone, nobody has opened it) is given again; an end that the other rank's channel
 * lacks is taken; for what remains the admission is asked, as one gang. Then the call waits until
 * nothing is missing, its rows are stored, and it is answered.
 *
 * A call that does not wait and is refused leaves a ticket, found again by the hash of who asked
 * for what. A repeated call uses it, when by then it still needs all of its pieces.
 */
#include "channel.h"

#include "emit.h"
#include "pages.h"
#include "part.h"
#include "session.h"
#include "user.h"

#include <stdio.h>
#include <string.h>

#define SLICE        16u    /* rows and registers of one unit of work */
#define YIELD_SLICE  64u    /* channels looked at in one */
#define ANSWER_NAMES 48000u /* bytes of an answer after which links are no longer named */
#define PAGE         4096u

/* ---- make, find, free ---- */

struct hc_want *hc_want_make(struct hc_core *c, enum hc_want_kind kind, uint32_t count)
{
	struct hc_channels *x = c->chan;
	const uint32_t n = hc_pool_get(&x->want_pool);
	struct hc_want *w;
	uint32_t i;

	if (n == HC_NONE)
		return NULL;
	w = &x->wants[n];
	*w = (struct hc_want){.since = c->now,
			      .part = HC_NONE,
			      .rank = HC_NONE,
			      .refs = HC_NONE,
			      .admit = HC_NONE,
			      .yield = HC_NONE,
			      .kind = (uint8_t)kind,
			      .state = WANT_WAITING};
	if (!count)
		return w;
	w->refs = hc_spans_get(&x->ref_spans, count, &w->order);
	if (w->refs == HC_NONE) {
		w->state = WANT_FREE;
		hc_pool_put(&x->want_pool, n);
		return NULL;
	}
	w->count = count;
	for (i = 0; i < count; i++)
		x->refs[w->refs + i] = HC_NONE;
	return w;
}

void hc_want_index(struct hc_core *c, struct hc_want *w)
{
	const uint32_t n = hc_want_number(c, w);

	hc_index_add(&c->chan->want_key, w->key, n);
	if (w->part != HC_NONE)
		hc_index_add(&c->chan->want_seat, hc_end_key(w->part, w->rank), n);
}

static void stop_yield(struct hc_core *c, struct hc_want *w)
{
	if (w->yield != HC_NONE)
		hc_list_del(&c->chan->yielding, &c->chan->yield_links, hc_want_number(c, w));
	w->yield = HC_NONE;
}

/* It stops waiting, for whatever reason. */
static void no_longer_waits(struct hc_core *c, struct hc_want *w)
{
	stop_yield(c, w);
	hc_timers_set(&c->chan->timers, hc_want_number(c, w), HC_NEVER);
	if (w->code == HC_E_IN_PROGRESS) {
		hc_user_unhold(c, w->uid, HC_HOLD_WAITING, 1);
		c->chan->waiting--;
	}
	w->code = 0;
}

void hc_want_free(struct hc_core *c, struct hc_want *w)
{
	struct hc_channels *x = c->chan;
	const uint32_t n = hc_want_number(c, w);

	no_longer_waits(c, w);
	if (w->state == WANT_STORING)
		hc_list_del(&x->storing, &x->want_links, n);
	if (w->state == WANT_ANSWERING)
		hc_list_del(&x->answering, &x->want_links, n);
	if (w->state == WANT_TICKET)
		x->ticket_of[w->admit] = 0;
	hc_index_del(&x->want_key, n);
	hc_index_del(&x->want_seat, n);
	if (w->refs != HC_NONE)
		hc_spans_put(&x->ref_spans, w->refs, w->order);
	w->state = WANT_FREE;
	hc_pool_put(&x->want_pool, n);
	x->changes++;
}

void hc_want_ref(struct hc_core *c, struct hc_want *w, uint32_t n, struct hc_channel *ch,
		 unsigned side)
{
	hc_assert(n < w->count && ch->want[side] == HC_NONE);
	c->chan->refs[w->refs + n] = REF(hc_channel_number(c, ch), side);
	ch->want[side] = hc_want_number(c, w);
	w->missing += ch->state == CHANNEL_WAITING;
	w->mbps += (uint64_t)ch->mbps[0] + ch->mbps[1];
}

static struct hc_channel *ref_channel(struct hc_core *c, const struct hc_want *w, uint32_t i,
				      unsigned *side)
{
	const uint32_t ref = c->chan->refs[w->refs + i];

	if (ref == HC_NONE)
		return NULL;
	*side = REF_SIDE(ref);
	return &c->chan->at[REF_CHANNEL(ref)];
}

/* ---- waiting ---- */

void hc_want_waits(struct hc_core *c, struct hc_want *w, uint64_t deadline)
{
	const uint32_t n = hc_want_number(c, w);

	w->deadline = deadline;
	w->code = HC_E_IN_PROGRESS;
	hc_user_hold(c, w->uid, HC_HOLD_WAITING, 1);
	c->chan->waiting++;
	hc_timers_set(&c->chan->timers, n, deadline);
	if (!w->priority || w->state == WANT_TICKET)
		return;
	w->yield = 0;
	hc_list_push(&c->chan->yielding, &c->chan->yield_links, n);
}

/* Does that channel take what a piece of the want cannot have? */
static bool in_the_way(struct hc_core *c, const struct hc_want *w, const struct hc_channel *ch)
{
	struct hc_admit_piece piece;
	struct hc_channel *mine;
	unsigned side;
	uint32_t i;
	bool now;

	for (i = 0; i < w->count; i++) {
		mine = ref_channel(c, w, i, &side);
		if (!mine || mine->state != CHANNEL_WAITING)
			continue;
		piece = hc_channel_admit_piece(c, hc_part(c, mine->part), mine);
		if (hc_admit_could(c->admit, ch->link, &piece, &now) && !now)
			return true;
	}
	return false;
}

static void ask_to_yield(struct hc_core *c, const struct hc_want *w, const struct hc_channel *ch)
{
	struct hc_m_event e = {.kind = HC_W_event_code_CHANNEL_YIELD,
			       .id = ch->domain,
			       .epoch = ch->epoch,
			       .state = HC_W_domain_state_ACTIVE,
			       .rank = HC_NONE,
			       .node = hc_str(c->self.name),
			       .channel = ch->id};
	uint64_t told = 0;
	char text[160];
	unsigned side;

	HC_TEXT(text,
		"domain %016llx of class %u waits for a link that this channel (class %u) uses",
		(unsigned long long)w->domain, w->priority, ch->priority);
	e.text = hc_str(text);
	for (side = 0; side < 2; side++) {
		if (!hc_session_get(c, ch->session[side]) || ch->session[side] == told)
			continue;
		told = ch->session[side];
		hc_emit_event(c, told, &e);
	}
}

bool hc_want_yield(struct hc_core *c)
{
	const uint32_t n = hc_list_first(&c->chan->yielding);
	const struct hc_channel *ch;
	struct hc_want *w;
	uint32_t i;

	if (n == HC_NONE)
		return false;
	w = &c->chan->wants[n];
	for (i = 0; i < YIELD_SLICE && w->yield < c->chan->pool.fresh && hc_emit_room(c); i++) {
		ch = &c->chan->at[w->yield++];
		if (ch->state == CHANNEL_GRANTED && ch->priority < w->priority &&
		    in_the_way(c, w, ch))
			ask_to_yield(c, w, ch);
	}
	if (w->yield >= c->chan->pool.fresh)
		stop_yield(c, w);
	return true;
}

/* ---- it will not be ---- */

static void answer_error(struct hc_core *c, struct hc_want *w, int code, const char *text)
{
	if (w->kind == WANT_DOMAIN)
		hc_channel_reserved(c, w, code, text);
	else if (w->kind == WANT_CLIENT && code && hc_session_get(c, w->session))
		hc_emit_error(c, w->session, w->request, code, text);
}

static void drop_ref(struct hc_core *c, struct hc_want *w, const struct hc_channel *ch)
{
	const uint32_t n = hc_channel_number(c, ch);
	uint32_t i;

	for (i = 0; i < w->count; i++)
		if (c->chan->refs[w->refs + i] == REF(n, 0u) ||
		    c->chan->refs[w->refs + i] == REF(n, 1u))
			c->chan->refs[w->refs + i] = HC_NONE;
}

struct hc_admit_ask hc_want_admit_ask(const struct hc_core *c, const struct hc_part *p,
				      const struct hc_want_words *words,
				      const struct hc_admit_piece *pieces)
{
	const uint64_t user = HC_USER_KEY(p->uid);

	return (struct hc_admit_ask){.owner = c->set.channel_owner_uid ? user : p->id,
				     .user = user,
				     .order = p->priority,
				     .weight = p->weight ? p->weight : 1,
				     .hold_ns = words->hold_ms * 1000000ull,
				     .wait = words->wait,
				     .deadline = HC_NEVER,
				     .pieces = pieces,
				     .npieces = words->npieces};
}

/* The asker of a gang is gone; a far end that waited with it asks in its own name. */
static void ask_anew(struct hc_core *c, struct hc_channel *ch)
{
	struct hc_want *w = &c->chan->wants[ch->want[1]];
	const struct hc_part *p = hc_part(c, ch->part);
	const struct hc_admit_piece piece = hc_channel_admit_piece(c, p, ch);
	const struct hc_want_words words = {.npieces = 1, .hold_ms = ch->hold_ms, .wait = true};
	const struct hc_admit_ask ask = hc_want_admit_ask(c, p, &words, &piece);
	uint64_t hint;
	uint32_t request;
	const int r = hc_admit_ask(c->admit, c->now, &ask, &request, &hint);

	if (r && r != HC_E_IN_PROGRESS) {
		hc_want_forget(c, w, ch);
		hc_channel_free(c, ch);
		return;
	}
	hc_channel_bind(c, ch, request, 0);
	if (!r)
		hc_channel_granted(c, request);
}

/* One of its ends has let go a request that waits: what becomes of the request? */
static void settle_request(struct hc_core *c, uint32_t request)
{
	const uint32_t first = c->chan->of_request[request];
	uint32_t n, next, count = 0, left = 0;
	bool asker = false, any = false;
	struct hc_channel *ch;

	for (n = first; n; n = ch->next) {
		ch = &c->chan->at[n - 1];
		count++;
		asker = asker || ch->want[0] != HC_NONE;
		any = any || ch->want[0] != HC_NONE || ch->want[1] != HC_NONE;
	}
	if (asker || (any && count == 1))
		return; /* who is left waits for it as it is */
	for (n = first; n; n = next) {
		ch = &c->chan->at[n - 1];
		next = ch->next;
		hc_channel_unbind(c, ch);
		if (ch->want[1] == HC_NONE) {
			hc_channel_free(c, ch);
			continue;
		}
		ch->next = left;
		left = n;
	}
	hc_admit_release(c->admit, c->now, request);
	for (n = left; n; n = next) {
		ch = &c->chan->at[n - 1];
		next = ch->next;
		ch->next = 0;
		ask_anew(c, ch);
	}
}

static void let_go(struct hc_core *c, struct hc_want *w, uint32_t i)
{
	const uint32_t me = hc_want_number(c, w);
	struct hc_channel *ch;
	uint32_t request;
	unsigned side;

	ch = ref_channel(c, w, i, &side);
	if (!ch)
		return;
	c->chan->refs[w->refs + i] = HC_NONE;
	hc_assert(ch->want[side] == me);
	ch->want[side] = HC_NONE;
	if (ch->state == CHANNEL_GRANTED) {
		if (!(ch->away >> side & 1))
			ch->ends &= (uint8_t)~END_BIT(END_GIVEN | END_COLLECTED, side);
		if (hc_channel_lacks(ch, !side) && (!ch->reserved || w->kind == WANT_DOMAIN))
			hc_channel_end(c, ch, WHY_WITHDRAWN, HC_NONE, 0);
		hc_channel_pair(c, ch);
		return;
	}
	request = ch->request;
	hc_channel_pair(c, ch);
	if (request != HC_NONE) {
		/* what a gang has here goes with the home's word */
		if (!c->chan->keep_of[request])
			settle_request(c, request);
		return;
	}
	if (ch->want[!side] != HC_NONE) /* its gang was withdrawn */
		hc_want_forget(c, &c->chan->wants[ch->want[!side]], ch);
	hc_channel_free(c, ch);
}

void hc_want_fail(struct hc_core *c, struct hc_want *w, int code, const char *text)
{
	struct hc_want was = *w;
	uint32_t i;

	if (w->state == WANT_TICKET)
		hc_admit_release(c->admit, c->now, w->admit);
	else
		answer_error(c, &was, code, text);
	hc_gang_withdraw(c, w);
	for (i = 0; i < w->count; i++)
		let_go(c, w, i);
	hc_want_free(c, w);
}

void hc_want_refuse(struct hc_core *c, struct hc_want *w, uint32_t retry_ms, const char *text)
{
	const struct hc_m_channel_refused m = {.retry_after_ms = retry_ms, .text = hc_str(text)};

	if (hc_session_get(c, w->session))
		hc_emit_refused(c, w->session, w->request, &m);
	w->kind = WANT_GANG; /* it is answered */
	hc_want_fail(c, w, 0, "");
}

void hc_want_lost(struct hc_core *c, struct hc_want *w, const struct hc_channel *ch)
{
	const uint32_t n = hc_want_number(c, w);

	if (ch->state == CHANNEL_ENDING)
		drop_ref(c, w, ch); /* one that waits is let go with the others */
	no_longer_waits(c, w);
	if (w->state == WANT_STORING)
		hc_list_del(&c->chan->storing, &c->chan->want_links, n);
	if (w->state == WANT_ANSWERING)
		hc_list_del(&c->chan->answering, &c->chan->want_links, n);
	w->state = WANT_WAITING;
	w->missing = HC_NONE; /* for what will not come */
	w->code = HC_E_PEER_LOST;
	w->lost_why = ch->why;
	w->lost_rank = ch->why_rank;
	w->lost_pid = ch->why_pid;
	hc_timers_set(&c->chan->timers, n, c->now);
}

void hc_want_forget(struct hc_core *c, struct hc_want *w, struct hc_channel *ch)
{
	drop_ref(c, w, ch);
	ch->why = WHY_WITHDRAWN;
	hc_want_lost(c, w, ch);
}

/* Its deadline, or what was lost, has come. */
void hc_want_timeout(struct hc_core *c, struct hc_want *w)
{
	const struct hc_channel lost = {
		.why = w->lost_why, .why_rank = w->lost_rank, .why_pid = w->lost_pid};
	char text[900], who[600];
	uint32_t i, n = 0;
	unsigned side;
	struct hc_channel *ch;

	if (w->code == HC_E_PEER_LOST) {
		hc_channel_why_text(c, &lost, text, sizeof(text));
		hc_want_fail(c, w, HC_E_PEER_LOST, text);
		return;
	}
	for (i = 0; i < w->count; i++) {
		ch = ref_channel(c, w, i, &side);
		if (ch && ch->state == CHANNEL_WAITING)
			c->chan->ask[n++] = hc_channel_admit_piece(c, hc_part(c, ch->part), ch);
	}
	hc_channel_why_not(c, w->uid, c->chan->ask, n, who, sizeof(who));
	HC_TEXT(text, "waited %llu ms: %s", (unsigned long long)((c->now - w->since) / 1000000u),
		who);
	hc_want_fail(c, w, HC_E_TIMEOUT, text);
}

/* ---- tickets ---- */

uint32_t hc_want_retry_ms(uint64_t hint_ns)
{
	uint64_t ms = hint_ns / 1000000u + (hint_ns % 1000000u ? 1 : 0);

	if (hint_ns == HC_ADMIT_HINT_NONE)
		return HC_NONE;
	return ms < HC_NONE - 1 ? (uint32_t)ms : HC_NONE - 1;
}

struct hc_want *hc_want_ticket(struct hc_core *c, uint64_t key, uint32_t request)
{
	struct hc_want *w = hc_want_make(c, WANT_CLIENT, 0);

	if (!w)
		return NULL;
	w->state = WANT_TICKET;
	w->key = key;
	w->admit = request;
	c->chan->ticket_of[request] = hc_want_number(c, w) + 1;
	return w;
}

struct hc_want *hc_want_ticket_find(struct hc_core *c, uint64_t key)
{
	uint32_t n;

	for (n = hc_index_find(&c->chan->want_key, key); n != HC_NONE;
	     n = hc_index_next(&c->chan->want_key, n))
		if (c->chan->wants[n].state == WANT_TICKET)
			return &c->chan->wants[n];
	return NULL;
}

int hc_want_ask(struct hc_core *c, const struct hc_part *p, const struct hc_want_words *words,
		struct hc_want *ticket, uint32_t *request, uint32_t *retry_ms)
{
	const struct hc_admit_ask ask = hc_want_admit_ask(c, p, words, c->chan->ask);
	uint64_t hint = HC_ADMIT_HINT_NONE;
	int r = HC_E_GONE;

	if (ticket) {
		*request = ticket->admit;
		r = hc_admit_again(c->admit, c->now, *request, words->wait, HC_NEVER, &hint);
		if (r != HC_E_AGAIN)
			hc_want_free(c, ticket);
	}
	if (r == HC_E_GONE)
		r = hc_admit_ask(c->admit, c->now, &ask, request, &hint);
	*retry_ms = hc_want_retry_ms(hint);
	return r;
}

void hc_want_ticket_over(struct hc_core *c, uint32_t request)
{
	const uint32_t n = c->chan->ticket_of[request];

	if (n)
		hc_want_free(c, &c->chan->wants[n - 1]);
}

/* ---- granted: store, answer ---- */

void hc_want_ready(struct hc_core *c, struct hc_want *w)
{
	no_longer_waits(c, w);
	w->state = WANT_STORING;
	hc_list_push(&c->chan->storing, &c->chan->want_links, hc_want_number(c, w));
}

bool hc_want_store_slice(struct hc_core *c)
{
	const uint32_t n = hc_list_first(&c->chan->storing);
	struct hc_channel *ch;
	struct hc_want *w;
	unsigned side;
	uint32_t i;

	if (n == HC_NONE)
		return false;
	w = &c->chan->wants[n];
	for (i = 0; i < SLICE && w->cursor < w->count; i++, w->cursor++) {
		ch = ref_channel(c, w, w->cursor, &side);
		if (!ch)
			continue;
		if (!ch->row)
			hc_channel_publish(c, ch, HC_W_channel_state_OK);
		if (w->kind != WANT_DOMAIN)
			ch->ends |= END_BIT(END_GIVEN, side);
		hc_channel_store(c, ch);
	}
	if (w->cursor < w->count)
		return true;
	w->stored = c->persist_seq;
	hc_list_del(&c->chan->storing, &c->chan->want_links, n);
	w->state = WANT_ANSWERING;
	hc_list_push(&c->chan->answering, &c->chan->want_links, n);
	return true;
}

static void put_grant(struct hc_core *c, struct hc_m_channel_want_r *m, const struct hc_channel *ch,
		      unsigned side)
{
	const struct hc_admit_link *link = hc_admit_link_fact(c->admit, ch->link);
	char name[HC_NAME_MAX + 1];
	struct hc_m_channel_grant g = {.channel = ch->id,
				       .slot = hc_channel_number(c, ch),
				       .peer = ch->rank[!side],
				       .path_type = link ? link->type : 0,
				       .mbps = ch->mbps[side],
				       .back_mbps = ch->mbps[!side],
				       .vc = ch->vc,
				       .service_level = (uint8_t)(ch->vc % 8),
				       .dscp = (uint8_t)(ch->vc % 8 * 8),
				       .side = (uint8_t)side,
				       .latency_us = link ? c->link_facts[ch->link].latency_us : 0,
				       .buffer_bytes = ch->buffer,
				       .carries = ch->buffer != 0};

	if (m->grants.len < ANSWER_NAMES)
		g.link = hc_str(hc_channel_link_name(c, ch->link, name, sizeof(name)));
	hc_assert(!hc_arr_put(&m->grants, c->scratch, HC_OUT_BYTES, &hc_desc_channel_grant,
			      HC_PROTO_MAX, &g));
}

static void send_slab(struct hc_core *c, struct hc_session *s, const struct hc_channel *ch)
{
	const uint32_t slab = hc_channel_number(c, ch) / HC_STATUS_SLAB;
	const struct hc_m_status_slab m = {.slab = slab};

	if (s->status_slabs >> (slab & 63) & 1)
		return;
	s->status_slabs |= 1ull << (slab & 63);
	hc_emit_grant(c, s->id, 0, &hc_desc_status_slab, &m, HC_GRANT_STATUS, ch->uid, slab);
}

static void answer(struct hc_core *c, struct hc_want *w)
{
	struct hc_session *s = hc_session_get(c, w->session);
	struct hc_m_channel_want_r m = {0};
	struct hc_channel *ch;
	unsigned side;
	uint32_t i;

	for (i = 0; i < w->count; i++) {
		ch = ref_channel(c, w, i, &side);
		if (!ch)
			continue;
		ch->want[side] = HC_NONE;
		hc_channel_pair(c, ch);
		if (w->kind != WANT_CLIENT)
			continue;
		ch->session[side] = w->session;
		hc_channel_arm(c, ch);
		if (!s)
			continue; /* a repeated call is given it again */
		send_slab(c, s, ch);
		put_grant(c, &m, ch, side);
	}
	if (w->kind == WANT_DOMAIN)
		hc_channel_reserved(c, w, 0, "");
	else if (s && w->kind == WANT_CLIENT)
		hc_emit_reply(c, s->id, w->request, &hc_desc_channel_want_r, &m);
	hc_want_free(c, w);
}

bool hc_want_answer(struct hc_core *c)
{
	const uint32_t n = hc_list_first(&c->chan->answering);

	if (n == HC_NONE || c->chan->wants[n].stored > c->persisted)
		return false;
	answer(c, &c->chan->wants[n]);
	return true;
}
