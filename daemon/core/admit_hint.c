/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hints: when a refused caller should come back.
 *
 * A hint has two parts. The first is when it would be the ticket's turn: what is ahead of it in its
 * class and above, and what it needs itself, less what is free, against how fast the link gives
 * back. Where the holders declared how long they hold, their ends are added up in order until there
 * is enough; else it goes by the mean time that something granted is held (what was occupied, over
 * time, for what came back: a holder that never ends counts too). With neither the hint is unknown.
 *
 * At its turn the ticket wakes and nobody but smaller tickets takes from its links, so how long it
 * then waits hardly depends on how good the first part was. The second part, the lead, covers this
 * wait: the time within which 99.5 % of former tickets of the link were granted, counted in units
 * of what the link takes to give back what such a ticket needs, with the newer half of the
 * observations counting most. A link that has seen little is given a generous guess, which only
 * costs time, until there are enough.
 */
#include "admitimp.h"

#include <string.h>

#define UNIT_MIN_NS   100000u
#define SAMPLES_LEAST 8u
#define SAMPLES_FEW   64u
#define JUDGED_FEW    1000u
/* in units of 1/256 */
#define FACTOR_FIRST    (6u << 8)
#define FACTOR_DECLARED (1u << 8)
#define FACTOR_MIN      1024u / 4
#define FACTOR_MAX      (4096u << 8)

/* ---- the lead ---- */

static uint32_t factor_of(const struct hc_adm_lead *m, bool declared)
{
	return m->factor ? m->factor : declared ? FACTOR_DECLARED : FACTOR_FIRST;
}

static uint64_t lead(const struct hc_adm_lead *m, bool declared, uint64_t unit_ns)
{
	return (unit_ns >> 8) * factor_of(m, declared);
}

/* A quarter up when a hint is broken, 1/1024 down when one is kept: it settles where one of 256
 * is broken. Those that were given before the last step up tell nothing new. */
void hc_adm_judge(struct hc_admit *s, uint64_t now, const struct hc_adm_request *r, bool kept)
{
	struct hc_adm_lead *m = &s->link[r->hint_link].lead[r->declared];
	uint32_t f = factor_of(m, r->declared);

	if (kept) {
		f -= f / (m->judged < JUDGED_FEW ? 512 : 2048);
		m->factor = f > FACTOR_MIN ? f : FACTOR_MIN;
		m->judged++;
	} else if (now >= m->raised_at + lead(m, r->declared, r->unit_ns)) {
		m->factor = f + f / 4 < FACTOR_MAX ? f + f / 4 + 1 : FACTOR_MAX;
		m->raised_at = now;
		m->judged++;
	}
}

/* ---- how fast a link gives back ---- */

static uint64_t to_ns(double ns)
{
	return ns < 9e18 ? (uint64_t)ns : HC_ADMIT_HINT_NONE;
}

/* By the declared ends alone; HINT_NONE when they do not add up to it. */
static uint64_t by_ends(const struct hc_admit *s, const struct hc_adm_link *l, uint64_t now,
			uint64_t cost)
{
	uint32_t n, steps = 0;
	uint64_t sum = 0;

	if (l->declared_cost < cost)
		return HC_ADMIT_HINT_NONE;
	for (n = hc_tree_first(s->end_node, l->ends); n != HC_NONE && steps < 128; steps++) {
		sum += s->piece[n].cost;
		if (sum >= cost)
			return s->end_node[n].key > now ? s->end_node[n].key - now : 0;
		n = hc_tree_next(s->end_node, n);
	}
	return HC_ADMIT_HINT_NONE;
}

/* By the mean time that something is held; with or without what it lay uncollected before. */
static uint64_t by_rate(const struct hc_adm_link *l, uint64_t now, uint64_t cost, bool collected)
{
	const uint64_t span = now > l->seen_at ? (now >> 10) - (l->seen_at >> 10) : 0;
	uint64_t occupied = l->occupied + l->used_cost * span;
	double declared = 0, observed = 0;

	if (collected)
		occupied -= l->idle + l->used_absent * span;
	if (l->declared_cost)
		declared = (double)l->declared_time / (double)l->declared_cost;
	if (l->returned)
		observed = (double)occupied / (double)l->returned;
	if (l->releases < SAMPLES_LEAST && !l->declared_cost)
		return HC_ADMIT_HINT_NONE;
	if (l->releases < SAMPLES_FEW && declared > observed)
		observed = declared;
	return to_ns((double)cost * 1024 * observed / HC_ADMIT_COST_ONE);
}

/* What would be served before it. In the set only smaller tickets are; all of about its size. */
static uint64_t ahead_of(const struct hc_admit *s, const struct hc_adm_request *r,
			 const struct hc_adm_entry *e, const struct hc_adm_link *l)
{
	uint64_t cost = l->set_demand;
	unsigned c;

	if (e->where == HC_ADM_SET)
		return cost / l->set_count * hc_tree_before(s->set_node, (uint32_t)(e - s->entry));
	for (c = r->order; c < HC_ADMIT_CLASSES; c++)
		cost += l->class[c].demand;
	return e->where == HC_ADM_FLOW ? cost - e->cost : cost;
}

static uint64_t turn_on(const struct hc_admit *s, uint64_t now, const struct hc_adm_request *r,
			const struct hc_adm_entry *e, bool *declared)
{
	const struct hc_adm_link *l = hc_adm_link_of(s, e);
	const uint64_t free =
		l->used_cost < HC_ADMIT_COST_ONE ? HC_ADMIT_COST_ONE - l->used_cost : 0;
	const uint64_t ahead = ahead_of(s, r, e, l);
	uint64_t cost = ahead + e->cost, ns;

	if (!ahead && l->used[0] + (uint64_t)e->need[0] <= l->limit &&
	    l->used[1] + (uint64_t)e->need[1] <= l->limit &&
	    l->used_vcs + (uint64_t)e->need[2] <= l->fact.vcs)
		return 0;
	cost = cost > free ? cost - free : e->cost;
	ns = by_ends(s, l, now, cost);
	*declared = ns != HC_ADMIT_HINT_NONE;
	return *declared ? ns : by_rate(l, now, cost, false);
}

struct turn {
	uint64_t ns;
	uint32_t entry;
	bool declared;
};

/* Every link that it cannot do without, and the best of those that it can choose. */
static struct turn turn_of(const struct hc_admit *s, uint64_t now, const struct hc_adm_request *r)
{
	struct turn all = {.entry = r->entries - 1}, choice = {.ns = HC_ADMIT_HINT_NONE}, one;
	bool any = false;
	uint32_t n;

	HC_ADM_EACH_ENTRY(s, r, n)
	{
		one = (struct turn){.entry = n - 1};
		one.ns = turn_on(s, now, r, &s->entry[n - 1], &one.declared);
		if (s->entry[n - 1].several && (!any || one.ns < choice.ns))
			choice = one;
		else if (!s->entry[n - 1].several && one.ns >= all.ns)
			all = one;
		any = any || s->entry[n - 1].several;
	}
	return any && choice.ns >= all.ns ? choice : all;
}

/* ---- the hint ---- */

/* The rate is an estimate: a little more than it says, and the more the less it was seen. */
static uint64_t slack(const struct hc_adm_link *l, uint64_t ns)
{
	uint64_t root = 1;

	while (root < 16 && (root + 1) * (root + 1) <= l->releases)
		root++;
	return ns + ns / 2 + 2 * ns / root;
}

/* Tickets wake one after the other, as fast as the link can serve them, not in heaps. */
static uint64_t book(struct hc_adm_link *l, uint8_t order, uint64_t now, uint64_t turn_ns,
		     uint64_t step_ns)
{
	uint64_t wake = now + turn_ns;
	unsigned c;

	for (c = order; c < HC_ADMIT_CLASSES; c++)
		if (wake < l->booked[c] + step_ns)
			wake = l->booked[c] + step_ns;
	l->booked[order] = wake;
	return wake - now;
}

uint64_t hc_adm_hint(struct hc_admit *s, uint64_t now, uint32_t request)
{
	struct hc_adm_request *r = &s->request[request];
	const struct hc_adm_entry *e;
	struct hc_adm_link *l;
	struct turn t;
	uint64_t unit, more, most, booked;

	if (!r->entries)
		return HC_ADMIT_HINT_NONE;
	t = turn_of(s, now, r);
	e = &s->entry[t.entry];
	l = hc_adm_link_of(s, e);
	unit = by_rate(l, now, e->cost, true);
	if (t.ns == HC_ADMIT_HINT_NONE || unit == HC_ADMIT_HINT_NONE)
		return HC_ADMIT_HINT_NONE;
	if (unit < UNIT_MIN_NS)
		unit = UNIT_MIN_NS;
	if (r->state == HC_ADMIT_AWAITED)
		return slack(l, t.ns) + 4 * unit;
	booked = book(l, r->order, now, t.ns, slack(l, by_rate(l, now, e->cost, false)));
	r->wake_at = now + booked;
	r->hint_link = e->link;
	r->declared = t.declared && booked == t.ns;
	r->unit_ns = unit;
	most = to_ns((double)unit * 6 * HC_ADMIT_COST_ONE / e->cost);
	more = lead(&l->lead[r->declared], r->declared, unit);
	return booked + (more < most ? more : most);
}

uint64_t hc_adm_estimate(const struct hc_admit *s, uint64_t now, uint32_t request, uint32_t *ahead)
{
	const struct hc_adm_request *r = &s->request[request];
	const struct hc_adm_entry *e;
	const struct hc_adm_link *l;
	const struct hc_adm_flow *f;
	struct turn t;
	unsigned c;

	*ahead = 0;
	if (!r->entries)
		return r->state == HC_ADMIT_GRANTED || r->state == HC_ADMIT_HELD
			       ? 0
			       : HC_ADMIT_HINT_NONE;
	t = turn_of(s, now, r);
	e = &s->entry[t.entry];
	l = hc_adm_link_of(s, e);
	if (e->where == HC_ADM_SET) {
		*ahead = hc_tree_before(s->set_node, t.entry);
	} else {
		*ahead = l->set_count;
		for (c = r->order; c < HC_ADMIT_CLASSES; c++)
			*ahead += l->class[c].entries;
	}
	if (e->where == HC_ADM_FLOW) {
		f = &s->flow[s->share[e->share].flow[r->order] - 1];
		*ahead -= f->entries.count;
		for (c = hc_list_first(&f->entries); c != t.entry; c = hc_list_next(&s->in_flow, c))
			*ahead += 1;
	}
	if (r->hint_at != HC_NEVER && r->state != HC_ADMIT_WAITING)
		return r->hint_at > now ? r->hint_at - now : 0;
	return t.ns;
}
