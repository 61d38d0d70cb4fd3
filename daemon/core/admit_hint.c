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
#define SAMPLES_TRUST 200u
#define SAMPLES_FADE  1024u

/* ---- how late tickets are ---- */

static unsigned mark_of(uint64_t late_ns, uint64_t unit_ns)
{
	const uint64_t x = late_ns / ((unit_ns >> 6) + 1);
	unsigned log, mark;

	if (!x)
		return 0;
	log = 63u - (unsigned)__builtin_clzll(x);
	mark = 1 + 4 * log + (unsigned)(((x << 2) >> log) & 3);
	return mark < HC_ADMIT_MARKS ? mark : HC_ADMIT_MARKS - 1;
}

/* The upper edge of a mark. */
static uint64_t mark_ns(unsigned mark, uint64_t unit_ns)
{
	const uint64_t step = (unit_ns >> 6) + 1;

	if (!mark)
		return step;
	mark--;
	return (step * (5 + mark % 4) << mark / 4) >> 2;
}

static uint64_t lead(const struct hc_adm_marks *m, bool declared, uint64_t unit_ns)
{
	const unsigned guess = mark_of(unit_ns * (declared ? 1 : 6), unit_ns);
	const uint32_t allowed = m->sum / 200;
	uint32_t above = 0;
	unsigned i;

	for (i = HC_ADMIT_MARKS - 1; i; i--) {
		above += m->count[i];
		if (i == guess && m->sum < SAMPLES_TRUST)
			above++;
		if (above > allowed)
			break;
	}
	return mark_ns(i, unit_ns);
}

void hc_adm_judge(struct hc_admit *s, uint64_t now, uint32_t request)
{
	const struct hc_adm_request *r = &s->request[request];
	struct hc_adm_marks *m = &s->link[r->hint_link].marks[r->declared];
	unsigned i;

	m->count[mark_of(now - r->wake_at, r->unit_ns)]++;
	if (++m->sum < SAMPLES_FADE)
		return;
	m->sum = 0;
	for (i = 0; i < HC_ADMIT_MARKS; i++) {
		m->count[i] /= 2;
		m->sum += m->count[i];
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

static uint64_t by_rate(const struct hc_adm_link *l, uint64_t now, uint64_t cost)
{
	double occupied = (double)l->occupied;

	if (now > l->seen_at)
		occupied += (double)l->used_cost * (double)((now >> 10) - (l->seen_at >> 10));
	if (l->returned)
		return to_ns((double)cost * 1024 * (occupied / (double)l->returned) /
			     HC_ADMIT_COST_ONE);
	if (l->declared_rate)
		return to_ns((double)cost * (1u << 30) / (double)l->declared_rate);
	return HC_ADMIT_HINT_NONE;
}

static uint64_t ahead_of(const struct hc_adm_request *r, const struct hc_adm_entry *e,
			 const struct hc_adm_link *l)
{
	uint64_t cost = l->set_demand;
	unsigned c;

	for (c = r->order; c < HC_ADMIT_CLASSES; c++)
		cost += l->class[c].demand + l->asleep[c];
	return e->where == HC_ADM_OUT ? cost : cost - e->cost;
}

static uint64_t turn_on(const struct hc_admit *s, uint64_t now, const struct hc_adm_request *r,
			const struct hc_adm_entry *e, bool *declared)
{
	const struct hc_adm_link *l = hc_adm_link_of(s, e);
	const uint64_t free =
		l->used_cost < HC_ADMIT_COST_ONE ? HC_ADMIT_COST_ONE - l->used_cost : 0;
	const uint64_t ahead = ahead_of(r, e, l);
	uint64_t cost = ahead + e->cost, ns;

	if (!ahead && l->used[0] + (uint64_t)e->need[0] <= l->limit &&
	    l->used[1] + (uint64_t)e->need[1] <= l->limit &&
	    l->used_vcs + (uint64_t)e->need[2] <= l->fact.vcs)
		return 0;
	cost = cost > free ? cost - free : e->cost;
	ns = by_ends(s, l, now, cost);
	*declared = ns != HC_ADMIT_HINT_NONE;
	return *declared ? ns : by_rate(l, now, cost);
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

uint64_t hc_adm_hint(struct hc_admit *s, uint64_t now, uint32_t request)
{
	struct hc_adm_request *r = &s->request[request];
	const struct hc_adm_entry *e;
	struct hc_adm_link *l;
	struct turn t;
	uint64_t unit, more;

	if (!r->entries)
		return HC_ADMIT_HINT_NONE;
	t = turn_of(s, now, r);
	e = &s->entry[t.entry];
	l = hc_adm_link_of(s, e);
	unit = by_rate(l, now, e->cost);
	if (t.ns == HC_ADMIT_HINT_NONE || unit == HC_ADMIT_HINT_NONE)
		return HC_ADMIT_HINT_NONE;
	if (unit < UNIT_MIN_NS)
		unit = UNIT_MIN_NS;
	more = lead(&l->marks[t.declared], t.declared, unit);
	if (r->state == HC_ADMIT_ASLEEP) {
		r->wake_at = now + t.ns;
		r->hint_link = e->link;
		r->declared = t.declared;
		r->unit_ns = unit;
	}
	return t.ns + more;
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
