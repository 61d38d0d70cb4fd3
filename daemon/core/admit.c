/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Admission: the life of a request; see admit.h for the rules and admitimp.h for the parts.
 *
 *   ask -> GRANTED -> collect -> HELD -> release
 *       -> WAITING -> GRANTED                      or its deadline: gone
 *       -> ASLEEP -> AWAITED -> GRANTED (absent) -> again -> GRANTED
 *                                                  or nobody came: gone
 *
 * Each request has one timer, for what is due next in its state. What happens in hc_admit_run is
 * told by news; a request that is gone keeps its number until its news was read.
 */
#include "admitimp.h"

#include <string.h>

/* What a call itself looks at before it decides; the rest is left to hc_admit_run. */
#define SETTLE 16u

static void lay_out(struct hc_admit *s, struct hc_mem *m, const struct hc_admit_limits *lim)
{
	const uint32_t entries = lim->pieces * 4;

	hc_pool_init(&s->requests, m, lim->requests);
	hc_pool_init(&s->entries, m, entries);
	hc_pool_init(&s->flows, m, entries + 1);
	hc_pool_init(&s->shares, m, lim->pieces + 3 * entries + 2);
	hc_spans_init(&s->spans, m, lim->pieces);
	s->request = hc_mem_take(m, lim->requests, sizeof(*s->request));
	s->piece = hc_mem_take(m, lim->pieces, sizeof(*s->piece));
	s->entry = hc_mem_take(m, entries, sizeof(*s->entry));
	s->share = hc_mem_take(m, s->shares.cap, sizeof(*s->share));
	s->flow = hc_mem_take(m, s->flows.cap, sizeof(*s->flow));
	s->link = hc_mem_take(m, lim->links, sizeof(*s->link));
	s->sketch = hc_mem_take(m, lim->links, sizeof(*s->sketch));
	s->flow_node = hc_mem_take(m, s->flows.cap, sizeof(*s->flow_node));
	s->set_node = hc_mem_take(m, entries, sizeof(*s->set_node));
	s->end_node = hc_mem_take(m, lim->pieces, sizeof(*s->end_node));
	s->absent_node = hc_mem_take(m, lim->pieces, sizeof(*s->absent_node));
	s->line_node = hc_mem_take(m, entries, sizeof(*s->line_node));
	hc_links_init(&s->in_flow, m, entries);
	hc_links_init(&s->in_link, m, lim->pieces);
	hc_links_init(&s->in_idle, m, s->flows.cap);
	hc_links_init(&s->in_dirty, m, lim->links);
	hc_links_init(&s->in_news, m, lim->requests);
	hc_links_init(&s->in_stirred, m, s->shares.cap);
	hc_index_init(&s->pairs, m, lim->links);
	hc_index_init(&s->owners, m, s->shares.cap);
	hc_timers_init(&s->timers, m, lim->requests);
	s->vcs = hc_mem_take(m, lim->links, HC_ADMIT_VCS_MAX / 8);
}

struct hc_admit *hc_admit_init(struct hc_mem *m, const struct hc_admit_limits *limits)
{
	struct hc_admit counted = {0}, *s = hc_mem_take(m, 1, sizeof(*s));

	hc_assert(limits->pieces <= 1u << 28);
	lay_out(s ? s : &counted, m, limits);
	if (s)
		s->lim = *limits;
	return s;
}

void hc_admit_set(struct hc_admit *s, const struct hc_admit_settings *settings)
{
	const uint32_t quota = settings->quota_percent ? settings->quota_percent : 100;
	const bool other =
		s->set.limit_percent != settings->limit_percent || s->set.quota_percent != quota;
	struct hc_admit_link fact;
	uint32_t n;

	hc_assert(quota <= 100);
	s->set = *settings;
	s->set.quota_percent = quota;
	for (n = 0; n < s->links_seen && other; n++) {
		fact = s->link[n].fact;
		if (s->link[n].known)
			hc_admit_link_set(s, s->link[n].seen_at, n, &fact);
	}
	for (n = 0; n < s->requests.fresh; n++)
		if (s->request[n].state != HC_ADMIT_FREE)
			hc_adm_timer(s, n);
}

/* ---- timers and news ---- */

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t later(uint64_t a, uint64_t span)
{
	return a > HC_NEVER - 1 - span ? HC_NEVER - 1 : a + span;
}

/* A ticket whose hint is not known is kept for as long as a request waits before it ages. */
static uint64_t ticket_end(const struct hc_admit *s, const struct hc_adm_request *r)
{
	if (r->hint_at == HC_NEVER)
		return later(r->refused_at, s->set.aging_ns);
	return later(r->hint_at, s->set.hint_hold_ns);
}

static uint64_t due(const struct hc_admit *s, const struct hc_adm_request *r)
{
	switch ((enum hc_admit_state)r->state) {
	case HC_ADMIT_FREE: return HC_NEVER;
	case HC_ADMIT_HELD: return HC_NEVER;
	case HC_ADMIT_WAITING:
		return r->aged ? r->deadline
			       : earlier(r->deadline, later(r->arrived, s->set.aging_ns));
	case HC_ADMIT_ASLEEP: return earlier(r->wake_at, ticket_end(s, r));
	case HC_ADMIT_AWAITED: return ticket_end(s, r);
	case HC_ADMIT_GRANTED:
		return r->absent ? ticket_end(s, r) : later(r->granted_at, s->set.grant_ttl_ns);
	}
	hc_panic(__FILE__, __LINE__, "a state of a request");
}

void hc_adm_timer(struct hc_admit *s, uint32_t request)
{
	hc_timers_set(&s->timers, request, due(s, &s->request[request]));
}

static void tell(struct hc_admit *s, uint32_t request, enum hc_admit_news news)
{
	struct hc_adm_request *r = &s->request[request];

	if (!r->news)
		hc_list_push(&s->news, &s->in_news, request);
	r->news = (uint8_t)(news + 1);
}

static void untell(struct hc_admit *s, uint32_t request)
{
	if (s->request[request].news)
		hc_list_del(&s->news, &s->in_news, request);
	s->request[request].news = 0;
}

bool hc_admit_has_news(const struct hc_admit *s)
{
	return s->news.count;
}

bool hc_admit_news(struct hc_admit *s, uint32_t *request, enum hc_admit_news *news)
{
	const uint32_t n = hc_list_first(&s->news);

	if (n == HC_NONE)
		return false;
	*request = n;
	*news = (enum hc_admit_news)(s->request[n].news - 1);
	untell(s, n);
	if (s->request[n].state == HC_ADMIT_FREE)
		hc_pool_put(&s->requests, n);
	return true;
}

/* Everything it has goes back. The number does not, yet. */
static void undo(struct hc_admit *s, uint64_t now, uint32_t request)
{
	struct hc_adm_request *r = &s->request[request];
	uint32_t i;

	hc_adm_dequeue(s, request);
	hc_adm_leave(s, request);
	for (i = r->first; i < r->first + r->npieces; i++)
		if (s->piece[i].granted)
			hc_adm_give_back(s, now, i, true);
	hc_assert(!r->ngranted);
	hc_spans_put(&s->spans, r->first, r->span);
	s->npieces -= r->npieces;
	r->npieces = 0;
	r->state = HC_ADMIT_FREE;
	hc_timers_set(&s->timers, request, HC_NEVER);
}

static void end_with(struct hc_admit *s, uint64_t now, uint32_t request, enum hc_admit_news news)
{
	if (news == HC_ADMIT_NEWS_LAPSED)
		s->counts.lapsed++;
	else
		s->counts.expired++;
	undo(s, now, request);
	tell(s, request, news);
}

static void join_set(struct hc_admit *s, uint32_t request)
{
	struct hc_adm_request *r = &s->request[request];
	uint32_t n;

	hc_adm_dequeue(s, request);
	r->aged = true;
	HC_ADM_EACH_ENTRY(s, r, n)
	s->entry[n - 1].armed = true; /* it may go where it could not before */
	hc_adm_enqueue(s, request);
}

static void on_timer(struct hc_admit *s, uint64_t now, uint32_t request)
{
	struct hc_adm_request *r = &s->request[request];

	switch ((enum hc_admit_state)r->state) {
	case HC_ADMIT_FREE:
	case HC_ADMIT_HELD: return;
	case HC_ADMIT_WAITING:
		if (r->deadline <= now) {
			end_with(s, now, request, HC_ADMIT_NEWS_EXPIRED);
			return;
		}
		join_set(s, request);
		break;
	case HC_ADMIT_ASLEEP:
		if (r->wake_at > now) {
			end_with(s, now, request, HC_ADMIT_NEWS_EXPIRED);
			return;
		}
		hc_adm_dequeue(s, request);
		r->state = HC_ADMIT_AWAITED;
		join_set(s, request);
		break;
	case HC_ADMIT_AWAITED:
		s->counts.hints_unused++;
		end_with(s, now, request, HC_ADMIT_NEWS_EXPIRED);
		return;
	case HC_ADMIT_GRANTED:
		if (r->absent)
			s->counts.hints_unused++;
		end_with(s, now, request, r->absent ? HC_ADMIT_NEWS_EXPIRED : HC_ADMIT_NEWS_LAPSED);
		return;
	}
	hc_adm_timer(s, request);
}

void hc_admit_run(struct hc_admit *s, uint64_t now, uint32_t budget)
{
	uint32_t request;

	for (; budget; budget--) {
		request = hc_timers_take(&s->timers, now);
		if (request != HC_NONE)
			on_timer(s, now, request);
		else if (!hc_adm_pump(s, now))
			return;
	}
}

uint64_t hc_admit_deadline(const struct hc_admit *s)
{
	return s->ndirty ? 0 : hc_timers_next(&s->timers);
}

/* Its turn came. Nobody is told of a ticket whose owner is away: it said that it comes back. */
void hc_adm_granted(struct hc_admit *s, uint32_t request)
{
	struct hc_adm_request *r = &s->request[request];

	if (!r->absent)
		tell(s, request, HC_ADMIT_NEWS_GRANTED);
	r->state = HC_ADMIT_GRANTED;
	s->counts.granted_later++;
	hc_adm_timer(s, request);
}

/* ---- asking ---- */

static int look_over(const struct hc_admit_ask *ask)
{
	if (!ask->npieces || ask->npieces > HC_ADMIT_GANG_MAX || ask->order >= HC_ADMIT_CLASSES ||
	    !ask->weight || ask->weight > 100)
		return HC_E_INVALID;
	return 0;
}

static void copy_pieces(struct hc_admit *s, uint32_t request, const struct hc_admit_ask *ask)
{
	struct hc_adm_request *r = &s->request[request];
	const struct hc_admit_piece *a;
	bool back;
	uint32_t i;

	for (i = 0; i < ask->npieces; i++) {
		a = &ask->pieces[i];
		back = a->from > a->to;
		s->piece[r->first + i] = (struct hc_adm_piece){
			.from = a->from,
			.to = a->to,
			.need = {a->mbps[back], a->mbps[!back]},
			.request = request,
			.link = HC_NONE,
			.type = a->type,
			.carries = a->carries,
		};
	}
}

static int take_in(struct hc_admit *s, uint64_t now, const struct hc_admit_ask *ask,
		   uint32_t *request)
{
	const uint32_t n = hc_pool_get(&s->requests);
	struct hc_adm_request *r = &s->request[n];
	uint32_t first;
	uint8_t span;

	if (n == HC_NONE)
		return HC_E_LIMIT;
	first = hc_spans_get(&s->spans, ask->npieces, &span);
	if (first == HC_NONE) {
		hc_pool_put(&s->requests, n);
		return HC_E_LIMIT;
	}
	*r = (struct hc_adm_request){
		.owner = ask->owner,
		.user = ask->user,
		.ticket = ++s->tickets,
		.arrived = now,
		.deadline = ask->deadline,
		.hold_ns = ask->hold_ns,
		.wake_at = HC_NEVER,
		.hint_at = HC_NEVER,
		.first = first,
		.npieces = ask->npieces,
		.span = span,
		.state = HC_ADMIT_FREE,
		.order = ask->order,
		.weight = ask->weight,
		.exempt = ask->exempt,
	};
	s->npieces += ask->npieces;
	copy_pieces(s, n, ask);
	*request = n;
	return 0;
}

static int refuse(struct hc_admit *s, uint64_t now, uint32_t request, int why)
{
	undo(s, now, request);
	hc_pool_put(&s->requests, request);
	return why;
}

/* It fits: take it, the caller is here. */
static void grant(struct hc_admit *s, uint64_t now, uint32_t request)
{
	struct hc_adm_request *r = &s->request[request];

	hc_adm_dequeue(s, request);
	hc_adm_commit(s, now, request);
	hc_adm_leave(s, request);
	r->state = HC_ADMIT_GRANTED;
	hc_adm_timer(s, request);
}

/* Not looked at yet, since something else was due before: its links will. */
static void look_later(struct hc_admit *s, uint32_t request)
{
	const struct hc_adm_request *r = &s->request[request];
	uint32_t n;

	HC_ADM_EACH_ENTRY(s, r, n)
	hc_adm_dirty(s, s->entry[n - 1].link, r->aged ? HC_ADMIT_SET : r->order);
}

static void wait_for_turn(struct hc_admit *s, uint32_t request, uint64_t deadline)
{
	struct hc_adm_request *r = &s->request[request];

	hc_adm_dequeue(s, request);
	r->state = HC_ADMIT_WAITING;
	r->deadline = deadline;
	hc_adm_enqueue(s, request);
	hc_adm_timer(s, request);
}

static uint64_t hint(struct hc_admit *s, uint64_t now, uint32_t request)
{
	struct hc_adm_request *r = &s->request[request];
	const uint64_t in = hc_adm_hint(s, now, request);

	if (in == HC_ADMIT_HINT_NONE)
		s->counts.hints_unknown++;
	else
		s->counts.hints++;
	r->hint_at = in == HC_ADMIT_HINT_NONE ? HC_NEVER : later(now, in);
	hc_adm_timer(s, request);
	return in;
}

static void leave_ticket(struct hc_admit *s, uint64_t now, uint32_t request, uint64_t *hint_ns)
{
	struct hc_adm_request *r = &s->request[request];

	s->counts.refused++;
	r->refused_at = now;
	r->state = HC_ADMIT_ASLEEP;
	*hint_ns = hint(s, now, request);
	hc_adm_enqueue(s, request);
}

int hc_admit_ask(struct hc_admit *s, uint64_t now, const struct hc_admit_ask *ask,
		 uint32_t *request, uint64_t *hint_ns)
{
	int r = look_over(ask);
	bool quiet;
	uint32_t n;

	*hint_ns = HC_ADMIT_HINT_NONE;
	if (!r)
		r = take_in(s, now, ask, &n);
	if (r)
		return r;
	s->counts.asked++;
	hc_admit_run(s, now, SETTLE);
	r = hc_adm_enter(s, n);
	if (r)
		return refuse(s, now, n, r);
	quiet = hc_timers_next(&s->timers) > now;
	if (quiet && hc_adm_place(s, n, HC_ADM_NOW)) {
		grant(s, now, n);
		s->counts.granted_at_once++;
	} else if (!hc_adm_place(s, n, HC_ADM_EMPTY)) {
		return refuse(s, now, n,
			      hc_adm_place(s, n, HC_ADM_NO_QUOTA) ? HC_E_LIMIT
								  : HC_E_LINK_UNAVAILABLE);
	} else if (ask->wait) {
		r = HC_E_IN_PROGRESS;
		wait_for_turn(s, n, ask->deadline);
		if (!quiet)
			look_later(s, n);
	} else {
		r = HC_E_AGAIN;
		leave_ticket(s, now, n, hint_ns);
	}
	*request = n;
	return r;
}

/* The caller is back: was the hint kept? */
static void count_return(struct hc_admit *s, uint64_t now, const struct hc_adm_request *r,
			 bool granted)
{
	if (r->hint_at == HC_NEVER || now < r->hint_at)
		return;
	hc_adm_judge(s, now, r, granted);
	if (granted)
		s->counts.hints_kept++;
	else
		s->counts.hints_broken++;
}

/* Of those that were granted something on a link while they are away, the one that comes last.
 * Not on a link that shrank, where nobody could get what another one gives. */
static uint32_t lender(const struct hc_admit *s, uint64_t now, const struct hc_adm_request *r)
{
	const struct hc_adm_link *l;
	uint32_t n, piece, latest = HC_NONE;

	HC_ADM_EACH_ENTRY(s, r, n)
	{
		l = &s->link[s->entry[n - 1].link];
		piece = hc_tree_last(s->absent_node, l->absent);
		if (piece == HC_NONE || s->absent_node[piece].key <= now ||
		    s->request[s->piece[piece].request].npieces > 1 || !l->fact.up ||
		    l->used[0] > l->limit || l->used[1] > l->limit || l->used_vcs > l->fact.vcs)
			continue;
		if (latest == HC_NONE || s->absent_node[piece].key > s->absent_node[latest].key)
			latest = piece;
	}
	return latest;
}

/* Nobody who waits is aged and older: he is not to be overtaken. */
static bool first_in_sets(const struct hc_admit *s, const struct hc_adm_request *r)
{
	const struct hc_adm_request *other;
	uint32_t n, e, steps = 0;

	HC_ADM_EACH_ENTRY(s, r, n)
	{
		e = hc_tree_first(s->set_node, s->link[s->entry[n - 1].link].set);
		for (; e != n - 1 && e != HC_NONE; e = hc_tree_next(s->set_node, e)) {
			other = &s->request[s->entry[e].request];
			if (other->state == HC_ADMIT_WAITING || ++steps > SETTLE)
				return false;
		}
	}
	return true;
}

/*
 * The caller is here and its time has come, but what it needs is kept for one who comes later.
 * That one lends it, and goes back to its place in the set, before all larger tickets.
 */
static bool borrow(struct hc_admit *s, uint64_t now, uint32_t request)
{
	const uint32_t piece = lender(s, now, &s->request[request]);
	struct hc_adm_request *from;
	uint32_t other;

	if (piece == HC_NONE || now < s->request[request].hint_at ||
	    !first_in_sets(s, &s->request[request]))
		return false;
	other = s->piece[piece].request;
	from = &s->request[other];
	hc_adm_give_back(s, now, piece, false);
	if (hc_adm_enter(s, other) || !hc_adm_place(s, request, HC_ADM_ANYWAY)) {
		hc_adm_leave(s, other);
		hc_adm_take(s, now, piece);
		return false;
	}
	hc_adm_uncharge(s, s->piece[piece].link, from, s->piece[piece].cost);
	grant(s, now, request);
	from->state = HC_ADMIT_AWAITED;
	from->absent = false;
	hc_adm_enqueue(s, other);
	hc_adm_timer(s, other);
	s->counts.granted_later--; /* it was, and is not any more */
	return true;
}

static int again_later(struct hc_admit *s, uint64_t now, uint32_t request, bool wait,
		       uint64_t deadline, uint64_t *hint_ns)
{
	struct hc_adm_request *r = &s->request[request];

	count_return(s, now, r, false);
	if (wait) {
		wait_for_turn(s, request, deadline);
		look_later(s, request);
		return HC_E_IN_PROGRESS;
	}
	if (r->hint_at != HC_NEVER && now < r->hint_at) {
		*hint_ns = r->hint_at - now;
		return HC_E_AGAIN;
	}
	*hint_ns = hint(s, now, request);
	return HC_E_AGAIN;
}

/* One that waits turns into a ticket: it gives up its place in the flow, not its number. */
static int again_waiting(struct hc_admit *s, uint64_t now, uint32_t request, bool wait,
			 uint64_t deadline, uint64_t *hint_ns)
{
	struct hc_adm_request *r = &s->request[request];

	if (wait) {
		r->deadline = deadline;
		hc_adm_timer(s, request);
		return HC_E_IN_PROGRESS;
	}
	hc_adm_dequeue(s, request);
	r->aged = false;
	leave_ticket(s, now, request, hint_ns);
	return HC_E_AGAIN;
}

int hc_admit_again(struct hc_admit *s, uint64_t now, uint32_t request, bool wait, uint64_t deadline,
		   uint64_t *hint_ns)
{
	struct hc_adm_request *r = &s->request[request];

	*hint_ns = HC_ADMIT_HINT_NONE;
	hc_assert(request < s->requests.fresh);
	hc_admit_run(s, now, SETTLE);
	switch ((enum hc_admit_state)r->state) {
	case HC_ADMIT_FREE:
	case HC_ADMIT_HELD: return HC_E_GONE;
	case HC_ADMIT_WAITING: return again_waiting(s, now, request, wait, deadline, hint_ns);
	case HC_ADMIT_GRANTED:
		if (!r->absent)
			return 0;
		count_return(s, now, r, true);
		hc_adm_collected(s, now, request);
		hc_adm_timer(s, request);
		return 0;
	case HC_ADMIT_ASLEEP:
		/* out of the queues, so nothing waits for the failure of this look */
		hc_adm_dequeue(s, request);
		if (r->entries && hc_timers_next(&s->timers) > now &&
		    hc_adm_place(s, request, HC_ADM_NOW)) {
			count_return(s, now, r, true);
			s->counts.granted_later++;
			grant(s, now, request);
			return 0;
		}
		hc_adm_enqueue(s, request);
		return again_later(s, now, request, wait, deadline, hint_ns);
	case HC_ADMIT_AWAITED:
		if (borrow(s, now, request)) {
			count_return(s, now, r, true);
			s->counts.granted_later++;
			return 0;
		}
		return again_later(s, now, request, wait, deadline, hint_ns);
	}
	hc_panic(__FILE__, __LINE__, "a state of a request");
}

void hc_admit_collect(struct hc_admit *s, uint32_t request)
{
	struct hc_adm_request *r = &s->request[request];

	hc_assert(request < s->requests.fresh && r->state == HC_ADMIT_GRANTED && !r->absent);
	untell(s, request);
	r->state = HC_ADMIT_HELD;
	hc_adm_timer(s, request);
}

void hc_admit_release_piece(struct hc_admit *s, uint64_t now, uint32_t request, uint32_t piece)
{
	struct hc_adm_request *r = &s->request[request];

	hc_assert(request < s->requests.fresh && piece < r->npieces);
	if (r->ngranted == 1) {
		hc_assert(s->piece[r->first + piece].granted);
		hc_admit_release(s, now, request);
		return;
	}
	hc_adm_give_back(s, now, r->first + piece, true);
}

void hc_admit_release(struct hc_admit *s, uint64_t now, uint32_t request)
{
	hc_assert(request < s->requests.fresh && s->request[request].state != HC_ADMIT_FREE);
	untell(s, request);
	undo(s, now, request);
	hc_pool_put(&s->requests, request);
	s->counts.released++;
}

/* ---- what there is ---- */

enum hc_admit_state hc_admit_state(const struct hc_admit *s, uint32_t request)
{
	hc_assert(request < s->lim.requests);
	return (enum hc_admit_state)s->request[request].state;
}

void hc_admit_piece_place(const struct hc_admit *s, uint32_t request, uint32_t piece,
			  struct hc_admit_place *place)
{
	const struct hc_adm_piece *p = &s->piece[s->request[request].first + piece];

	hc_assert(request < s->requests.fresh && piece < s->request[request].npieces);
	hc_assert(p->granted);
	*place = (struct hc_admit_place){.link = p->link, .vc = p->vc};
}

void hc_admit_outlook(const struct hc_admit *s, uint64_t now, uint32_t request, uint32_t *ahead,
		      uint64_t *estimate_ns)
{
	hc_assert(request < s->requests.fresh);
	*estimate_ns = hc_adm_estimate(s, now, request, ahead);
}

uint64_t hc_admit_promise(const struct hc_admit *s, uint64_t now, uint32_t request)
{
	hc_assert(request < s->requests.fresh);
	return hc_adm_promise(s, now, request);
}

void hc_admit_counts(const struct hc_admit *s, struct hc_admit_counts *counts)
{
	*counts = s->counts;
}
