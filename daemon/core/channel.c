/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Life of a channel; see channel.h.
 *
 * What is held is given back the moment it ends; what has to be said of the end (register, events,
 * row) is said in slices from a list, so that a process with thousands of channels stalls nobody.
 */
#include "channel.h"

#include "emit.h"
#include "pages.h"
#include "link.h"
#include "part.h"
#include "rng.h"
#include "session.h"
#include "user.h"

#include <stdio.h>
#include <string.h>

#define SLICE      8u /* channels of one unit of work */
#define RUN_BUDGET 64u

/* ---- memory ---- */

static void lay_out(struct hc_channels *x, struct hc_mem *m, uint32_t n, uint32_t wants,
		    uint32_t requests)
{
	x->nchannels = n;
	x->nwants = wants;
	x->at = hc_mem_take(m, n, sizeof(*x->at));
	hc_pool_init(&x->pool, m, n);
	hc_index_init(&x->by_id, m, n);
	hc_index_init(&x->by_end, m, 2 * n);
	hc_links_init(&x->links, m, n);
	hc_links_init(&x->open_links, m, n);
	x->pairs = hc_mem_take(m, n, sizeof(*x->pairs));
	hc_pool_init(&x->pair_pool, m, n);
	hc_index_init(&x->pair_index, m, n);
	x->of_request = hc_mem_take(m, requests, sizeof(*x->of_request));
	x->ticket_of = hc_mem_take(m, requests, sizeof(*x->ticket_of));
	x->keep_of = hc_mem_take(m, requests, sizeof(*x->keep_of));
	x->gangs = hc_mem_take(m, HC_GANGS, sizeof(*x->gangs));
	x->gang_bytes = hc_mem_take(m, HC_GANGS, HC_GANG_BYTES);
	hc_pool_init(&x->gang_pool, m, HC_GANGS);
	x->keeps = hc_mem_take(m, HC_KEEPS, sizeof(*x->keeps));
	hc_pool_init(&x->keep_pool, m, HC_KEEPS);
	x->wants = hc_mem_take(m, wants, sizeof(*x->wants));
	hc_pool_init(&x->want_pool, m, wants);
	hc_index_init(&x->want_key, m, wants);
	hc_index_init(&x->want_seat, m, wants);
	hc_links_init(&x->want_links, m, wants);
	hc_links_init(&x->yield_links, m, wants);
	x->refs = hc_mem_take(m, 2 * (size_t)n + wants, sizeof(*x->refs));
	hc_spans_init(&x->ref_spans, m, 2 * n + wants);
	x->laters = hc_mem_take(m, wants, sizeof(*x->laters));
	hc_pool_init(&x->later_pool, m, wants);
	hc_links_init(&x->later_links, m, wants);
	hc_timers_init(&x->timers, m, wants + n + 1);
	x->pieces = hc_mem_take(m, HC_ADMIT_GANG_MAX, sizeof(*x->pieces));
	x->ask = hc_mem_take(m, HC_ADMIT_GANG_MAX, sizeof(*x->ask));
}

struct hc_channels *hc_channel_lay_out(struct hc_mem *m, const struct hc_limits *lim)
{
	struct hc_channels *x = hc_mem_take(m, 1, sizeof(*x)), none = {0};

	lay_out(x ? x : &none, m, lim->channels ? lim->channels : 1, lim->wants ? lim->wants : 1,
		lim->requests);
	return x;
}

/* ---- make, find, free ---- */

struct hc_channel *hc_channel_by_id(struct hc_core *c, uint64_t id)
{
	const uint32_t n = id ? hc_index_find(&c->chan->by_id, id) : HC_NONE;

	return n == HC_NONE ? NULL : &c->chan->at[n];
}

static uint64_t draw_id(struct hc_core *c)
{
	uint64_t id;

	do
		id = hc_rng_u64(c);
	while (!id || hc_channel_by_id(c, id));
	return id;
}

/* Of an end on another node nothing is done here: it counts as given and in use. */
static void is_away(struct hc_channel *ch, unsigned side)
{
	ch->away |= (uint8_t)(1u << side);
	ch->ends |= END_BIT(END_GIVEN | END_COLLECTED, side);
}

/* Filled but for the number: of a new one, or of one that is taken back. */
static void begin(struct hc_core *c, struct hc_channel *ch, const struct hc_part *p, uint64_t id,
		  uint32_t rank, uint32_t peer)
{
	const uint32_t n = hc_channel_number(c, ch);

	*ch = (struct hc_channel){.id = id ? id : draw_id(c),
				  .domain = p->id,
				  .since = c->now,
				  .epoch = p->epoch,
				  .uid = p->uid,
				  .part = hc_part_number(c, p),
				  .request = HC_NONE,
				  .rank = {rank, peer},
				  .want = {HC_NONE, HC_NONE},
				  .pair = HC_NONE,
				  .link = HC_NONE,
				  .priority = p->priority,
				  .state = CHANNEL_WAITING};
	hc_index_add(&c->chan->by_id, ch->id, n);
	if (hc_part_find_seat(c, p, rank) != HC_NONE)
		hc_index_add(&c->chan->by_end, hc_end_key(ch->part, rank), 2 * n);
	else
		is_away(ch, 0);
	if (hc_part_find_seat(c, p, peer) != HC_NONE)
		hc_index_add(&c->chan->by_end, hc_end_key(ch->part, peer), 2 * n + 1);
	else
		is_away(ch, 1);
	hc_user_hold(c, ch->uid, HC_HOLD_CHANNELS, 1);
	c->chan->changes++;
}

struct hc_channel *hc_channel_make(struct hc_core *c, const struct hc_part *p, uint64_t id,
				   uint32_t rank, uint32_t peer)
{
	const uint32_t n = hc_pool_get(&c->chan->pool);

	if (n == HC_NONE)
		return NULL;
	begin(c, &c->chan->at[n], p, id, rank, peer);
	return &c->chan->at[n];
}

struct hc_channel *hc_channel_claim(struct hc_core *c, const struct hc_part *p, uint64_t id,
				    uint32_t slot, uint32_t rank, uint32_t peer)
{
	if (!hc_pool_claim(&c->chan->pool, slot))
		return NULL;
	begin(c, &c->chan->at[slot], p, id, rank, peer);
	return &c->chan->at[slot];
}

static uint64_t ring_bytes(uint32_t buffer)
{
	return buffer ? HC_RING_FILE_BYTES(buffer) : 0;
}

void hc_channel_set_buffer(struct hc_core *c, struct hc_channel *ch, uint32_t bytes)
{
	hc_assert(!ch->buffer);
	ch->buffer = bytes;
	hc_user_charge_memory(c, ch->uid, ring_bytes(bytes));
}

static void leave_pair(struct hc_core *c, struct hc_channel *ch)
{
	struct hc_pair *pair;

	if (ch->pair == HC_NONE)
		return;
	pair = &c->chan->pairs[ch->pair];
	hc_list_del(&pair->open, &c->chan->open_links, hc_channel_number(c, ch));
	if (!pair->open.count) {
		hc_index_del(&c->chan->pair_index, ch->pair);
		hc_pool_put(&c->chan->pair_pool, ch->pair);
	}
	ch->pair = HC_NONE;
}

/* Nobody finds it any more, and its owner is no longer charged. */
static void withdraw(struct hc_core *c, struct hc_channel *ch)
{
	const uint32_t n = hc_channel_number(c, ch);

	leave_pair(c, ch);
	hc_index_del(&c->chan->by_end, 2 * n);
	hc_index_del(&c->chan->by_end, 2 * n + 1);
	hc_timers_set(&c->chan->timers, c->chan->nwants + n, HC_NEVER);
	hc_user_unhold(c, ch->uid, HC_HOLD_CHANNELS, 1);
	hc_user_release_memory(c, ch->uid, ring_bytes(ch->buffer));
	c->chan->changes++;
}

void hc_channel_unbind(struct hc_core *c, struct hc_channel *ch)
{
	uint32_t *at;

	if (ch->request == HC_NONE)
		return;
	for (at = &c->chan->of_request[ch->request]; *at != hc_channel_number(c, ch) + 1;
	     at = &c->chan->at[*at - 1].next)
		hc_assert(*at);
	*at = ch->next;
	ch->next = 0;
	ch->request = HC_NONE;
}

void hc_channel_free(struct hc_core *c, struct hc_channel *ch)
{
	if (ch->state != CHANNEL_ENDING)
		withdraw(c, ch);
	hc_channel_unbind(c, ch);
	hc_index_del(&c->chan->by_id, hc_channel_number(c, ch));
	ch->id = 0;
	ch->state = CHANNEL_FREE;
	if (c->started)
		hc_pool_put(&c->chan->pool, hc_channel_number(c, ch));
	else
		hc_pool_unclaim(&c->chan->pool, hc_channel_number(c, ch));
}

void hc_channel_bind(struct hc_core *c, struct hc_channel *ch, uint32_t request, uint32_t piece)
{
	hc_assert(ch->request == HC_NONE && request < c->lim.requests);
	ch->request = request;
	ch->piece = piece;
	ch->next = c->chan->of_request[request];
	c->chan->of_request[request] = hc_channel_number(c, ch) + 1;
}

/* ---- pairs ---- */

static uint64_t pair_key(uint32_t part, uint32_t a, uint32_t b)
{
	const uint64_t key[2] = {part, (uint64_t)(a < b ? a : b) << 32 | (a < b ? b : a)};
	const struct hc_hash_key k = {0x68636f6d6d2d7061, 0x69722d6b65790001};

	return hc_hash(&k, key, sizeof(key));
}

static bool is_pair(const struct hc_core *c, uint32_t n, uint32_t part, uint32_t a, uint32_t b)
{
	const struct hc_channel *ch = &c->chan->at[hc_list_first(&c->chan->pairs[n].open)];

	return ch->part == part &&
	       ((ch->rank[0] == a && ch->rank[1] == b) || (ch->rank[0] == b && ch->rank[1] == a));
}

struct hc_pair *hc_channel_pair_of(struct hc_core *c, uint32_t part, uint32_t a, uint32_t b)
{
	uint32_t n = hc_index_find(&c->chan->pair_index, pair_key(part, a, b));

	while (n != HC_NONE && !is_pair(c, n, part, a, b))
		n = hc_index_next(&c->chan->pair_index, n);
	return n == HC_NONE ? NULL : &c->chan->pairs[n];
}

void hc_channel_pair(struct hc_core *c, struct hc_channel *ch)
{
	const bool lacks = (hc_channel_lacks(ch, 0) || hc_channel_lacks(ch, 1)) &&
			   (ch->state == CHANNEL_WAITING || ch->state == CHANNEL_GRANTED);
	struct hc_pair *pair;

	if (!lacks)
		leave_pair(c, ch);
	if (!lacks || ch->pair != HC_NONE)
		return;
	pair = hc_channel_pair_of(c, ch->part, ch->rank[0], ch->rank[1]);
	if (!pair) {
		const uint32_t n = hc_pool_get(&c->chan->pair_pool);

		hc_assert(n != HC_NONE);
		pair = &c->chan->pairs[n];
		memset(pair, 0, sizeof(*pair));
		hc_index_add(&c->chan->pair_index, pair_key(ch->part, ch->rank[0], ch->rank[1]), n);
	}
	ch->pair = (uint32_t)(pair - c->chan->pairs);
	hc_list_push(&pair->open, &c->chan->open_links, hc_channel_number(c, ch));
}

/* ---- the grant ---- */

static uint32_t end_point(struct hc_core *c, const struct hc_part *p, uint32_t rank)
{
	const uint32_t seat = hc_part_find_seat(c, p, rank);

	return seat == HC_NONE ? HC_END_NET : c->seats[seat].device;
}

struct hc_admit_piece hc_channel_admit_piece(struct hc_core *c, const struct hc_part *p,
					     const struct hc_channel *ch)
{
	return (struct hc_admit_piece){.from = end_point(c, p, ch->rank[0]),
				       .to = end_point(c, p, ch->rank[1]),
				       .type = ch->path_type,
				       .carries = !ch->reserved && !(ch->flags & 1),
				       .mbps = {ch->mbps[0], ch->mbps[1]}};
}

void hc_channel_granted(struct hc_core *c, uint32_t request)
{
	uint32_t n = c->chan->of_request[request];
	struct hc_admit_place place;
	struct hc_channel *ch;
	unsigned side;

	if (hc_admit_state(c->admit, request) == HC_ADMIT_GRANTED)
		hc_admit_collect(c->admit, request); /* its time to be opened is counted here */
	for (; n; n = ch->next) {
		ch = &c->chan->at[n - 1];
		hc_assert(ch->state == CHANNEL_WAITING);
		hc_admit_piece_place(c->admit, request, ch->piece, &place);
		ch->link = place.link;
		ch->vc = place.vc;
		ch->since = c->now;
		ch->state = CHANNEL_GRANTED;
		c->chan->granted++;
		c->chan->changes++;
		for (side = 0; side < 2; side++) {
			struct hc_want *w =
				ch->want[side] == HC_NONE ? NULL : &c->chan->wants[ch->want[side]];

			if (w && !--w->missing && w->state == WANT_WAITING)
				hc_want_ready(c, w);
		}
	}
}

void hc_channel_arm(struct hc_core *c, struct hc_channel *ch)
{
	hc_timers_set(&c->chan->timers, c->chan->nwants + hc_channel_number(c, ch),
		      c->now + c->set.grant_ttl_ns);
}

/* Ends that were given, and that nobody has opened. */
static bool is_unopened(const struct hc_channel *ch)
{
	return (ch->ends & (END_GIVEN | END_COLLECTED)) == END_GIVEN ||
	       (ch->ends >> 2 & (END_GIVEN | END_COLLECTED)) == END_GIVEN;
}

/* ---- what is said of it ---- */

void hc_channel_publish(struct hc_core *c, const struct hc_channel *ch, uint8_t state)
{
	struct hc_action *a = hc_emit_action(c, HC_ACT_REGISTER);

	a->u.reg.uid = ch->uid;
	a->u.reg.slot = hc_channel_number(c, ch);
	a->u.reg.channel = ch->id;
	a->u.reg.state = state;
}

void hc_channel_store(struct hc_core *c, struct hc_channel *ch)
{
	struct hc_m_channel_row row = {.channel = ch->id,
				       .domain = ch->domain,
				       .epoch = ch->epoch,
				       .slot = hc_channel_number(c, ch),
				       .rank = ch->rank[0],
				       .peer = ch->rank[1],
				       .mbps = ch->mbps[0],
				       .back_mbps = ch->mbps[1],
				       .path_type = ch->path_type,
				       .flags = (uint8_t)(ch->flags | (ch->reserved ? 2 : 0)),
				       .buffer_bytes = ch->buffer,
				       .hold_ms = ch->hold_ms,
				       .link = ch->link,
				       .vc = ch->vc,
				       .ends = ch->ends};
	char name[HC_LINK_NAME];

	if (ch->link < c->nlinks)
		row.link_name = hc_str(hc_link_name(c, ch->link, name, sizeof(name)));
	ch->row = true;
	hc_emit_put_channel(c, ch->id, &row);
}

/* Whose session is told that an end is over: where its rank is now, or where it was given. */
static uint64_t session_of(struct hc_core *c, const struct hc_channel *ch, unsigned side)
{
	const struct hc_part *p = hc_part_by_id(c, ch->domain);
	const uint32_t seat = p ? hc_part_find_seat(c, p, ch->rank[side]) : HC_NONE;

	if (seat != HC_NONE && hc_session_get(c, hc_seat_session(&c->seats[seat])))
		return hc_seat_session(&c->seats[seat]);
	return hc_session_get(c, ch->session[side]) ? ch->session[side] : 0;
}

static void tell_end(struct hc_core *c, const struct hc_channel *ch)
{
	struct hc_m_event e = {.kind = HC_W_event_code_CHANNEL_REVOKED,
			       .id = ch->domain,
			       .epoch = ch->epoch,
			       .rank = ch->why_rank,
			       .pid = ch->why_pid,
			       .node = hc_str(c->self.name),
			       .channel = ch->id};
	const struct hc_part *p = hc_part_by_id(c, ch->domain);
	uint64_t session, told = 0;
	char text[256];
	unsigned side;

	e.state = p ? p->state : HC_W_domain_state_NONE;
	e.number = p ? p->number : 0;
	hc_channel_why_text(c, ch, text, sizeof(text));
	e.text = hc_str(text);
	for (side = 0; side < 2; side++) {
		if (!(ch->ends & END_BIT(END_GIVEN, side)) ||
		    (ch->rank[side] == ch->why_rank && ch->why != WHY_DOMAIN))
			continue;
		session = session_of(c, ch, side);
		if (session && session != told)
			hc_emit_event(c, session, &e);
		told = session;
	}
}

/* ---- the end ---- */

static void give_back(struct hc_core *c, struct hc_channel *ch)
{
	const uint32_t request = ch->request, piece = ch->piece;

	if (request == HC_NONE)
		return;
	hc_channel_unbind(c, ch);
	hc_admit_release_piece(c->admit, c->now, request, piece);
}

void hc_channel_end(struct hc_core *c, struct hc_channel *ch, enum hc_channel_why why,
		    uint32_t rank, uint32_t pid)
{
	unsigned side;

	if (ch->state != CHANNEL_GRANTED)
		return;
	give_back(c, ch);
	ch->why = (uint8_t)why;
	ch->why_rank = rank;
	ch->why_pid = pid;
	withdraw(c, ch);
	ch->state = CHANNEL_ENDING;
	c->chan->granted--;
	for (side = 0; side < 2; side++) {
		if (ch->want[side] != HC_NONE)
			hc_want_lost(c, &c->chan->wants[ch->want[side]], ch);
		ch->want[side] = HC_NONE;
	}
	hc_list_push(&c->chan->ending, &c->chan->links, hc_channel_number(c, ch));
}

static bool end_slice(struct hc_core *c)
{
	struct hc_channel *ch;
	uint32_t n, i;

	for (i = 0; i < SLICE && (n = hc_list_first(&c->chan->ending)) != HC_NONE; i++) {
		ch = &c->chan->at[n];
		hc_channel_publish(c, ch, HC_W_channel_state_REVOKED);
		tell_end(c, ch);
		hc_gang_channel_over(c, ch);
		if (ch->row)
			hc_emit_del_channel(c, ch->id);
		hc_list_del(&c->chan->ending, &c->chan->links, n);
		hc_channel_free(c, ch);
	}
	return i > 0;
}

/* What a domain began with stays its own: it is there for the next call. */
static void take_back(struct hc_core *c, struct hc_channel *ch)
{
	unsigned side;

	for (side = 0; side < 2; side++)
		if (!(ch->ends & END_BIT(END_COLLECTED, side)))
			ch->ends &= (uint8_t)~END_BIT(END_GIVEN, side);
	hc_channel_store(c, ch);
	hc_channel_pair(c, ch);
}

static void lapse(struct hc_core *c, struct hc_channel *ch)
{
	if (ch->state != CHANNEL_GRANTED || !is_unopened(ch))
		return;
	c->chan->lapsed++;
	if (ch->reserved) {
		take_back(c, ch);
		return;
	}
	hc_channel_end(c, ch, WHY_LAPSED, HC_NONE, 0);
}

/* ---- told by the parts ---- */

/* Calls of that rank: the process that made them is gone, or they can come to nothing. */
static void fail_wants(struct hc_core *c, const struct hc_part *p, uint32_t rank, int code,
		       const char *text)
{
	const uint64_t key = hc_end_key(hc_part_number(c, p), rank);
	uint32_t n;

	while ((n = hc_index_find(&c->chan->want_seat, key)) != HC_NONE)
		hc_want_fail(c, &c->chan->wants[n], code, text);
}

static void end_all(struct hc_core *c, const struct hc_part *p, uint32_t rank, uint32_t pid,
		    enum hc_channel_why why)
{
	const uint64_t key = hc_end_key(hc_part_number(c, p), rank);
	uint32_t e = hc_index_find(&c->chan->by_end, key), next;
	struct hc_channel *ch;
	uint32_t other;

	for (; e != HC_NONE; e = next) {
		next = hc_index_next(&c->chan->by_end, e);
		ch = &c->chan->at[e / 2];
		other = ch->want[!(e & 1)];
		if (ch->state == CHANNEL_GRANTED) {
			hc_channel_end(c, ch, why, rank, pid);
		} else if (other != HC_NONE) { /* it waits for one who will never come */
			ch->why = (uint8_t)why;
			ch->why_rank = rank;
			ch->why_pid = pid;
			hc_want_lost(c, &c->chan->wants[other], ch);
		}
	}
}

void hc_channel_rank_gone(struct hc_core *c, struct hc_part *p, uint32_t seat,
			  enum hc_channel_why why)
{
	const struct hc_seat *s = &c->seats[seat];
	const uint32_t pid = s->process == HC_NONE ? 0 : c->processes[s->process].pid;

	fail_wants(c, p, s->rank, HC_E_GONE, "this rank has left its domain, or was aborted");
	end_all(c, p, s->rank, pid, why);
}

void hc_channel_part_gone(struct hc_core *c, struct hc_part *p)
{
	const int code = p->state == HC_W_domain_state_DAMAGED ? HC_E_DAMAGED : HC_E_GONE;
	char text[HC_CAUSE_MAX + 64];
	uint32_t i;

	HC_TEXT(text, "the domain is %s: %s", hc_word_domain_state(p->state), hc_part_cause(c, p));
	fail_wants(c, p, HC_NONE, code, text); /* what it was to begin with */
	hc_gang_part_gone(c, p);
	for (i = p->seats; i < p->seats + p->nseats; i++)
		fail_wants(c, p, c->seats[i].rank, code, text);
	for (i = p->seats; i < p->seats + p->nseats; i++)
		end_all(c, p, c->seats[i].rank, hc_part_now(c, p)->cause_pid, WHY_DOMAIN);
}

/* ---- slices ---- */

static void take_news(struct hc_core *c, uint32_t request, enum hc_admit_news news)
{
	switch (news) {
	case HC_ADMIT_NEWS_GRANTED:
		if (c->chan->keep_of[request])
			hc_gang_kept(c, request);
		else if (!c->chan->ticket_of[request])
			hc_channel_granted(c, request);
		return; /* a ticket's is kept for its caller */
	case HC_ADMIT_NEWS_EXPIRED:
	case HC_ADMIT_NEWS_LAPSED: hc_want_ticket_over(c, request); return;
	}
}

static bool admit_slice(struct hc_core *c)
{
	enum hc_admit_news news;
	uint32_t request;

	if (hc_admit_news(c->admit, &request, &news)) {
		take_news(c, request, news);
		return true;
	}
	if (hc_admit_deadline(c->admit) > c->now)
		return false;
	hc_admit_run(c->admit, c->now, RUN_BUDGET);
	return true;
}

static bool fire(struct hc_core *c)
{
	const uint32_t n = hc_timers_take(&c->chan->timers, c->now);

	if (n == HC_NONE)
		return false;
	if (n < c->chan->nwants)
		hc_want_timeout(c, &c->chan->wants[n]);
	else if (n < HC_GANG_TIMER(c))
		lapse(c, &c->chan->at[n - c->chan->nwants]);
	else
		hc_gang_look_again(c);
	return true;
}

bool hc_channel_work(struct hc_core *c)
{
	return end_slice(c) || admit_slice(c) || hc_want_store_slice(c) || hc_want_answer(c) ||
	       hc_channel_answer(c) || hc_want_yield(c) || fire(c);
}

uint64_t hc_channel_timer(const struct hc_core *c)
{
	const uint64_t timer = hc_timers_next(&c->chan->timers);
	const uint64_t admit = hc_admit_deadline(c->admit);

	return timer < admit ? timer : admit;
}

uint64_t hc_channel_deadline(const struct hc_core *c)
{
	const struct hc_channels *x = c->chan;
	const uint32_t l = hc_list_first(&x->later), w = hc_list_first(&x->answering);

	if (x->ending.count || x->storing.count || x->yielding.count ||
	    hc_admit_has_news(c->admit) || (l != HC_NONE && x->laters[l].stored <= c->persisted) ||
	    (w != HC_NONE && x->wants[w].stored <= c->persisted))
		return c->now;
	return hc_channel_timer(c);
}
