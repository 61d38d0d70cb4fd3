/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Links of admission: which a piece may use, and the books of what is taken and given back.
 *
 * Cost is what a piece takes of its scarcest kind: the larger of its two directions as a share of
 * the limit, and one virtual channel as a share of all. It is what owners are charged, what is
 * ahead of a ticket, and what the release rate is measured in, so that large and small pieces and
 * pieces without bandwidth are all counted in one unit.
 */
#include "admitimp.h"

#include <string.h>

static uint64_t pair(uint32_t a, uint32_t b)
{
	return (uint64_t)a << 32 | b;
}

/* The memory of this node ends where the node does. */
static uint32_t any_to(uint32_t high)
{
	return high == HC_ADMIT_OUT ? HC_ADMIT_OUT : HC_NONE;
}

static bool matches(const struct hc_admit_link *f, const struct hc_adm_piece *p)
{
	const uint32_t low = p->from < p->to ? p->from : p->to;
	const uint32_t high = p->from < p->to ? p->to : p->from;

	return f->up && (!p->type || f->type == p->type) && (!p->carries || f->carries) &&
	       ((f->a == low && f->b == high) || (f->a == any_to(high) && f->b == HC_NONE));
}

uint32_t hc_adm_choice(const struct hc_admit *s, const struct hc_adm_piece *p, uint32_t after)
{
	const uint32_t low = p->from < p->to ? p->from : p->to;
	const uint32_t high = p->from < p->to ? p->to : p->from;
	bool any = after != HC_NONE && s->link[after].fact.b == HC_NONE;
	uint32_t l = after == HC_NONE ? hc_index_find(&s->pairs, pair(low, high))
				      : hc_index_next(&s->pairs, after);

	for (;;) {
		while (l != HC_NONE && !matches(&s->link[l].fact, p))
			l = hc_index_next(&s->pairs, l);
		if (l != HC_NONE || any)
			return l;
		any = true;
		l = hc_index_find(&s->pairs, pair(any_to(high), HC_NONE));
	}
}

static uint64_t share_of(uint64_t part, uint64_t whole)
{
	const uint64_t x = whole ? part * HC_ADMIT_COST_ONE / whole : HC_ADMIT_COST_ONE;

	return x < UINT32_MAX ? x : UINT32_MAX;
}

uint32_t hc_adm_cost(const struct hc_adm_link *l, const uint32_t need[2])
{
	const uint32_t most = need[0] > need[1] ? need[0] : need[1];
	const uint64_t bandwidth = most ? share_of(most, l->limit) : 0;
	const uint64_t channel = share_of(1, l->fact.vcs);

	return (uint32_t)(bandwidth > channel ? bandwidth : channel);
}

/* ---- taken and given back ---- */

/* In units of 1024 ns, so that months of a full link fit. */
void hc_adm_integrate(struct hc_adm_link *l, uint64_t now)
{
	const uint64_t span = now > l->seen_at ? (now >> 10) - (l->seen_at >> 10) : 0;

	l->occupied += l->used_cost * span;
	l->idle += l->used_absent * span;
	l->seen_at = now;
}

/* The next free number after the last one: a number stays unused as long as possible. */
static uint32_t free_vc(const uint64_t *taken, uint32_t vcs, uint32_t last)
{
	uint32_t at = last + 1 < vcs ? last + 1 : 0, steps;
	uint64_t word;

	for (steps = 0; steps <= vcs / 64 + 1; steps++) {
		word = ~taken[at / 64] >> at % 64;
		if (word && at + (uint32_t)__builtin_ctzll(word) < vcs)
			return at + (uint32_t)__builtin_ctzll(word);
		at = (at | 63) + 1 < vcs ? (at | 63) + 1 : 0;
	}
	hc_panic(__FILE__, __LINE__, "a free virtual channel");
}

static uint64_t *vcs_of(const struct hc_admit *s, uint32_t link)
{
	return s->vcs + (size_t)link * (HC_ADMIT_VCS_MAX / 64);
}

/* In the same units as what was occupied. */
static uint64_t declared_time(uint32_t cost, uint64_t hold_ns)
{
	return cost * (hold_ns >> 10);
}

static void expect_end(struct hc_admit *s, uint32_t piece)
{
	struct hc_adm_piece *p = &s->piece[piece];
	const struct hc_adm_request *r = &s->request[p->request];
	struct hc_adm_link *l = &s->link[p->link];
	uint64_t begin;

	if (!r->hold_ns)
		return;
	l->declared_cost += p->cost;
	l->declared_time += declared_time(p->cost, r->hold_ns);
	/* one whose owner is away begins when it is to come back */
	begin = r->absent && r->hint_at > r->granted_at ? r->hint_at : r->granted_at;
	s->end_node[piece] = (struct hc_tree_node){.key = begin + r->hold_ns, .tie = piece};
	hc_tree_add(s->end_node, &l->ends, piece);
}

static void forget_end(struct hc_admit *s, uint32_t piece)
{
	struct hc_adm_piece *p = &s->piece[piece];
	const struct hc_adm_request *r = &s->request[p->request];
	struct hc_adm_link *l = &s->link[p->link];

	if (!r->hold_ns)
		return;
	l->declared_cost -= p->cost;
	l->declared_time -= declared_time(p->cost, r->hold_ns);
	hc_tree_del(s->end_node, &l->ends, piece);
}

void hc_adm_collected(struct hc_admit *s, uint64_t now, uint32_t request)
{
	struct hc_adm_request *r = &s->request[request];
	struct hc_adm_piece *p;
	uint32_t i;

	hc_assert(r->absent);
	for (i = r->first; i < r->first + r->npieces; i++) {
		p = &s->piece[i];
		if (!p->granted)
			continue;
		hc_adm_integrate(&s->link[p->link], now);
		s->link[p->link].used_absent -= p->cost;
		hc_tree_del(s->absent_node, &s->link[p->link].absent, i);
		forget_end(s, i);
	}
	r->absent = false;
	r->granted_at = now;
	for (i = r->first; i < r->first + r->npieces; i++)
		if (s->piece[i].granted)
			expect_end(s, i);
}

void hc_adm_take(struct hc_admit *s, uint64_t now, uint32_t piece)
{
	struct hc_adm_piece *p = &s->piece[piece];
	struct hc_adm_request *r = &s->request[p->request];
	struct hc_adm_link *l = &s->link[p->link];
	struct hc_adm_share *h;
	unsigned d;

	hc_assert(!p->granted);
	hc_adm_integrate(l, now);
	p->share = hc_adm_share(s, p->link, r->user);
	p->cost = hc_adm_cost(l, p->need);
	p->vc = l->vc_last = free_vc(vcs_of(s, p->link), l->fact.vcs, l->vc_last);
	p->granted = true;
	h = &s->share[p->share];
	for (d = 0; d < 2; d++) {
		l->used[d] += p->need[d];
		h->used[d] += p->need[d];
		hc_assert(l->used[d] <= l->limit);
	}
	l->used_vcs++;
	h->used_vcs++;
	l->used_cost += p->cost;
	l->used_absent += r->absent ? p->cost : 0;
	l->grants++;
	vcs_of(s, p->link)[p->vc / 64] |= 1ull << p->vc % 64;
	hc_list_push(&l->granted, &s->in_link, piece);
	expect_end(s, piece);
	if (r->absent) {
		s->absent_node[piece] = (struct hc_tree_node){.key = r->hint_at, .tie = piece};
		hc_tree_add(s->absent_node, &l->absent, piece);
	}
	r->ngranted++;
}

/* Older observations fade by 1/256 at each one. */
static void observe_release(struct hc_adm_link *l, uint32_t cost)
{
	l->occupied -= l->occupied / 256;
	l->idle -= l->idle / 256;
	l->returned -= l->returned / 256;
	l->returned += cost;
}

void hc_adm_give_back(struct hc_admit *s, uint64_t now, uint32_t piece, bool over)
{
	struct hc_adm_piece *p = &s->piece[piece];
	struct hc_adm_request *r = &s->request[p->request];
	struct hc_adm_link *l = &s->link[p->link];
	struct hc_adm_share *h = &s->share[p->share];
	unsigned d;

	hc_assert(p->granted);
	hc_adm_integrate(l, now);
	if (over)
		observe_release(l, p->cost);
	l->releases++;
	forget_end(s, piece);
	if (r->absent)
		hc_tree_del(s->absent_node, &l->absent, piece);
	p->granted = false;
	for (d = 0; d < 2; d++) {
		hc_assert(l->used[d] >= p->need[d] && h->used[d] >= p->need[d]);
		l->used[d] -= p->need[d];
		h->used[d] -= p->need[d];
	}
	hc_assert(l->used_vcs && h->used_vcs && r->ngranted);
	l->used_vcs--;
	h->used_vcs--;
	l->used_cost -= p->cost;
	l->used_absent -= r->absent ? p->cost : 0;
	vcs_of(s, p->link)[p->vc / 64] &= ~(1ull << p->vc % 64);
	hc_list_del(&l->granted, &s->in_link, piece);
	r->ngranted--;
	hc_adm_stir(s, p->share);
	hc_adm_unref(s, p->share);
	hc_adm_dirty(s, p->link, HC_ADMIT_SET);
}

/* ---- facts ---- */

static bool waits(const struct hc_adm_request *r)
{
	return r->state == HC_ADMIT_WAITING || r->state == HC_ADMIT_ASLEEP ||
	       r->state == HC_ADMIT_AWAITED;
}

static bool concerns(const struct hc_admit *s, const struct hc_adm_request *r,
		     const struct hc_admit_link *fact)
{
	uint32_t i;

	for (i = 0; i < r->npieces; i++)
		if (matches(fact, &s->piece[r->first + i]))
			return true;
	return false;
}

/* Which links a request can use has changed. It keeps its ticket; one that no link could carry
 * now stays out of all queues, so that it holds up nobody, until a link changes again. */
static void enter_anew(struct hc_admit *s, uint32_t request)
{
	struct hc_adm_request *r = &s->request[request];
	uint32_t n;

	if (hc_adm_enter(s, request) || !hc_adm_place(s, request, HC_ADM_EMPTY)) {
		hc_adm_leave(s, request);
		return;
	}
	hc_adm_enqueue(s, request);
	HC_ADM_EACH_ENTRY(s, r, n)
	hc_adm_dirty(s, s->entry[n - 1].link, HC_ADMIT_SET);
}

void hc_admit_link_set(struct hc_admit *s, uint64_t now, uint32_t link,
		       const struct hc_admit_link *fact)
{
	struct hc_adm_link *l = &s->link[link];
	const struct hc_admit_link old = l->fact;
	struct hc_adm_request *r;
	uint32_t n;

	hc_assert(link < s->lim.links && fact->a <= fact->b);
	for (n = 0; n < s->requests.fresh; n++) {
		r = &s->request[n];
		if (waits(r) && r->entries && (concerns(s, r, &old) || concerns(s, r, fact))) {
			hc_adm_dequeue(s, n);
			hc_adm_leave(s, n);
		}
	}
	hc_adm_integrate(l, now);
	hc_index_del(&s->pairs, link);
	hc_index_add(&s->pairs, pair(fact->a, fact->b), link);
	l->fact = *fact;
	l->known = true;
	if (link >= s->links_seen)
		s->links_seen = link + 1;
	if (l->fact.vcs > HC_ADMIT_VCS_MAX)
		l->fact.vcs = HC_ADMIT_VCS_MAX;
	l->limit = (uint32_t)((uint64_t)fact->mbps * s->set.limit_percent / 100);
	for (n = 0; n < s->requests.fresh; n++)
		if (waits(&s->request[n]) && !s->request[n].entries)
			enter_anew(s, n);
	hc_adm_dirty(s, link, HC_ADMIT_SET);
}

/* ---- what there is ---- */

void hc_admit_link_use(const struct hc_admit *s, uint32_t link, struct hc_admit_use *use)
{
	const struct hc_adm_link *l = &s->link[link];
	unsigned c;

	hc_assert(link < s->lim.links);
	*use = (struct hc_admit_use){
		.limit_mbps = l->limit,
		.used_mbps = {l->used[0], l->used[1]},
		.used_vcs = l->used_vcs,
		.waiting = l->set_count + l->capped_count,
		.grants = l->grants,
		.releases = l->releases,
	};
	for (c = 0; c < HC_ADMIT_CLASSES; c++)
		use->waiting += l->class[c].entries;
}

void hc_admit_holders(const struct hc_admit *s, uint32_t link,
		      bool (*fn)(uint32_t request, uint32_t piece, void *context), void *context)
{
	uint32_t i;

	hc_assert(link < s->lim.links);
	for (i = hc_list_first(&s->link[link].granted); i != HC_NONE;
	     i = hc_list_next(&s->in_link, i))
		if (!fn(s->piece[i].request, i - s->request[s->piece[i].request].first, context))
			return;
}
