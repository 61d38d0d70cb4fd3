/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hints: when a refused caller should come back.
 *
 * First, when its turn is. Where the holders declared how long they hold, their ends are added up
 * in order until there is enough for what is ahead (its class and above, and the set) and for
 * itself. Else it goes by the mean time that something granted is held: what was occupied, over
 * time, for what came back, so that a holder that never ends counts too. With neither, or too few
 * releases to say anything, the hint is unknown.
 *
 * Tickets then *wake* one after the other, no faster than the link serves them: each books its step
 * after the last one. The estimate is stretched by a half and more while little was seen, since
 * what a ticket leaves unused until it wakes goes to others, but tickets that wake faster than they
 * are served would break the hints of all behind them. An awake ticket is in the set, so nobody but
 * smaller tickets takes from its links.
 *
 * Last, the caller is told to come a *lead* after the waking. The lead follows how hints went on
 * this link: a quarter longer when one was broken (once within a lead, for they break in groups),
 * and a 2048th shorter when one was kept, once it has learned not before 100 were kept for each
 * that was broken: where processes stand still now and then, the lead has to last until the next
 * time. It is counted in units of what the link takes to give back what the ticket needs, and is at
 * most six times the mean holding time. Longer would cost more than it gains: what is kept for one
 * who comes later is lent to one whose time has come.
 */
#include "admitimp.h"

#include <string.h>

#define UNIT_MIN_NS     100000u
#define HINT_MAX_NS     10000000000000000u /* further than that is not known */
#define RELEASES_LEAST  8u
#define RELEASES_FEW    64u
#define JUDGED_FEW      1000u
#define LEAD_MAX        6u   /* mean holding times */
#define OWED            100u /* hints to be kept for one that was broken */
#define OWED_MAX        10000u
#define FACTOR_FIRST    (6u << 8)
#define FACTOR_DECLARED (1u << 8)
#define FACTOR_MIN      256u
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

static void judge_broken(struct hc_adm_lead *m, uint64_t now, const struct hc_adm_request *r)
{
	const uint32_t f = factor_of(m, r->declared);

	if (m->judged >= JUDGED_FEW)
		m->owed = m->owed < OWED_MAX ? m->owed + OWED : OWED_MAX;
	if (now < m->raised_at + lead(m, r->declared, r->unit_ns))
		return;
	m->factor = f + f / 4 < FACTOR_MAX ? f + f / 4 + 1 : FACTOR_MAX;
	m->raised_at = now;
	m->judged++;
}

void hc_adm_judge(struct hc_admit *s, uint64_t now, const struct hc_adm_request *r, bool kept)
{
	struct hc_adm_lead *m = &s->link[r->hint_link].lead[r->declared];
	uint32_t f = factor_of(m, r->declared);

	if (!kept) {
		judge_broken(m, now, r);
		return;
	}
	m->judged++;
	if (m->owed) {
		m->owed--;
		return;
	}
	f -= f / (m->judged <= JUDGED_FEW ? 512 : 2048);
	m->factor = f > FACTOR_MIN ? f : FACTOR_MIN;
}

/* ---- how fast a link gives back ---- */

static uint64_t to_ns(double ns)
{
	return ns < (double)HINT_MAX_NS ? (uint64_t)ns : HC_ADMIT_HINT_NONE;
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

/* Releases that say something: all who hold now could have come and gone twice, or a few. */
static bool was_seen(const struct hc_adm_link *l)
{
	return l->returned &&
	       (l->releases >= RELEASES_LEAST || l->releases >= 2 * (uint64_t)l->used_vcs);
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
	if (was_seen(l))
		observed = (double)occupied / (double)l->returned;
	else if (!l->declared_cost)
		return HC_ADMIT_HINT_NONE;
	if (l->releases < RELEASES_FEW && declared > observed)
		observed = declared;
	return to_ns((double)cost * 1024 * observed / HC_ADMIT_COST_ONE);
}

/*
 * How many would be served before it, and what they cost. In the set, the smaller tickets. In a
 * flow, those before it, and as many of each other flow as its own turns until then. Anywhere else,
 * all of its class and above.
 */
static uint32_t ahead_of(const struct hc_admit *s, const struct hc_adm_request *r,
			 const struct hc_adm_entry *e, const struct hc_adm_link *l, uint64_t *cost)
{
	const struct hc_adm_class *k = &l->class[r->order];
	const struct hc_adm_flow *f;
	uint32_t count, own = 0, others, n;
	unsigned c;

	if (e->where == HC_ADM_SET) {
		count = hc_tree_before(s->set_node, (uint32_t)(e - s->entry));
		*cost = l->set_demand / l->set_count * count;
		return count;
	}
	count = l->set_count;
	*cost = l->set_demand;
	for (c = r->order + 1u; c < HC_ADMIT_CLASSES; c++) {
		count += l->class[c].entries;
		*cost += l->class[c].demand;
	}
	if (e->where != HC_ADM_FLOW) {
		*cost += k->demand;
		return count + k->entries;
	}
	f = &s->flow[s->share[e->share].flow[r->order] - 1];
	for (n = hc_list_first(&f->entries); n != (uint32_t)(e - s->entry);
	     n = hc_list_next(&s->in_flow, n))
		own++;
	others = k->entries - f->entries.count;
	if (others / (own + 1) >= k->flows)
		others = (own + 1) * (k->flows - 1);
	*cost += k->demand / k->entries * (own + others);
	return count + own + others;
}

static uint64_t turn_on(const struct hc_admit *s, uint64_t now, const struct hc_adm_request *r,
			const struct hc_adm_entry *e, bool *declared)
{
	const struct hc_adm_link *l = hc_adm_link_of(s, e);
	const uint64_t free =
		l->used_cost < HC_ADMIT_COST_ONE ? HC_ADMIT_COST_ONE - l->used_cost : 0;
	uint64_t cost, ns;
	uint32_t ahead = ahead_of(s, r, e, l, &cost);

	cost += e->cost;
	if (hc_adm_held_up(s, r, e)) /* one of its user's has to end */
		return by_rate(l, now, HC_ADMIT_COST_ONE, false);
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

/* Half as long again, and the more the less was seen. */
static uint64_t stretched(const struct hc_adm_link *l, uint64_t ns)
{
	uint64_t root = 1;

	while (root < 16 && (root + 1) * (root + 1) <= l->releases)
		root++;
	return ns + ns / 2 + 2 * ns / root;
}

/* Until when wakings are booked: not longer than those who sleep can account for, since some gave
 * up their tickets. */
static uint64_t booked_until(const struct hc_adm_link *l, uint64_t now, uint64_t booked,
			     uint64_t asleep)
{
	const uint64_t all = by_rate(l, now, asleep, false);
	const uint64_t most = now + 2 * stretched(l, all);

	return all == HC_ADMIT_HINT_NONE || booked < most ? booked : most;
}

/*
 * From now until it wakes. What was promised to a lower class stays promised, so a higher one
 * cannot take its step; but steps are stretched, and every third one more fits between them.
 */
static uint64_t book(struct hc_adm_link *l, uint8_t order, uint64_t now, uint64_t turn_ns,
		     uint64_t step_ns)
{
	uint64_t lower = 0, asleep = 0, wake, between;
	unsigned c;

	for (c = 0; c < HC_ADMIT_CLASSES; c++) {
		asleep += l->asleep[c];
		lower += c < order ? l->asleep[c] : 0;
	}
	wake = between = now + turn_ns;
	if (asleep && wake < booked_until(l, now, l->booked, asleep) + step_ns)
		wake = booked_until(l, now, l->booked, asleep) + step_ns;
	if (asleep && between < booked_until(l, now, l->booked_between, asleep) + 3 * step_ns)
		between = booked_until(l, now, l->booked_between, asleep) + 3 * step_ns;
	if (lower && between < wake)
		l->booked_between = wake = between;
	else
		l->booked = wake;
	return wake - now;
}

/* The link of its turn, and how long what it wants takes there. NULL: that is not known. */
static struct hc_adm_link *outlook(const struct hc_admit *s, uint64_t now,
				   const struct hc_adm_request *r, struct turn *t,
				   uint64_t *unit_ns)
{
	const struct hc_adm_entry *e;
	struct hc_adm_link *l;

	if (!r->entries)
		return NULL;
	*t = turn_of(s, now, r);
	e = &s->entry[t->entry];
	l = hc_adm_link_of(s, e);
	*unit_ns = by_rate(l, now, e->cost, true);
	if (t->ns == HC_ADMIT_HINT_NONE || *unit_ns == HC_ADMIT_HINT_NONE)
		return NULL;
	if (*unit_ns < UNIT_MIN_NS)
		*unit_ns = UNIT_MIN_NS;
	return l;
}

/* Of one whose turn comes by itself. */
static uint64_t surely(const struct hc_adm_link *l, uint64_t turn_ns, uint64_t unit_ns)
{
	return stretched(l, turn_ns) + 4 * unit_ns;
}

uint64_t hc_adm_hint(struct hc_admit *s, uint64_t now, uint32_t request)
{
	struct hc_adm_request *r = &s->request[request];
	const struct hc_adm_entry *e;
	struct hc_adm_link *l;
	struct turn t;
	uint64_t unit, step, more, most, booked;

	l = outlook(s, now, r, &t, &unit);
	if (!l)
		return HC_ADMIT_HINT_NONE;
	e = &s->entry[t.entry];
	step = by_rate(l, now, e->cost, false);
	if (step == HC_ADMIT_HINT_NONE)
		return HC_ADMIT_HINT_NONE;
	if (r->state == HC_ADMIT_AWAITED)
		return surely(l, t.ns, unit);
	booked = book(l, r->order, now, t.ns, stretched(l, step));
	r->wake_at = now + booked;
	r->hint_link = e->link;
	r->declared = t.declared && booked == t.ns;
	r->unit_ns = unit;
	most = to_ns((double)unit * LEAD_MAX * HC_ADMIT_COST_ONE / e->cost);
	more = lead(&l->lead[r->declared], r->declared, unit);
	return booked + (more < most ? more : most);
}

/* When one that waits will have it, as surely as what the ticket of a refused caller in the same
 * place is told. */
uint64_t hc_adm_promise(const struct hc_admit *s, uint64_t now, uint32_t request)
{
	const struct hc_adm_request *r = &s->request[request];
	const struct hc_adm_link *l = NULL;
	struct turn t;
	uint64_t unit;

	if (r->state == HC_ADMIT_WAITING)
		l = outlook(s, now, r, &t, &unit);
	return l ? surely(l, t.ns, unit) : HC_ADMIT_HINT_NONE;
}

uint64_t hc_adm_estimate(const struct hc_admit *s, uint64_t now, uint32_t request, uint32_t *ahead)
{
	const struct hc_adm_request *r = &s->request[request];
	const struct hc_adm_entry *e;
	struct turn t;
	uint64_t cost;

	*ahead = 0;
	if (!r->entries)
		return r->state == HC_ADMIT_GRANTED || r->state == HC_ADMIT_HELD
			       ? 0
			       : HC_ADMIT_HINT_NONE;
	t = turn_of(s, now, r);
	e = &s->entry[t.entry];
	*ahead = ahead_of(s, r, e, hc_adm_link_of(s, e), &cost);
	if (r->hint_at != HC_NEVER && r->state != HC_ADMIT_WAITING)
		return r->hint_at > now ? r->hint_at - now : 0;
	return t.ns;
}
