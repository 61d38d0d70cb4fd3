/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queues of admission: who is next on a link.
 *
 * The account of a flow is what its owner was granted here, divided by its weight, and the flow
 * with the lowest account is next: deficit round robin with a quantum so small that no round is
 * ever empty. A flow that was away starts where the flow that was served last stands, so nobody
 * saves up by not asking; one whose first request did not fit keeps its turn, up to the worth of
 * one whole link. Of equal accounts the older request is first.
 *
 * The set holds the aged and the awaited by ticket, and while it is not empty, its smallest ticket
 * alone may take from the link. What the quota of a user holds up is not in it (admit_quota.c).
 */
#include "admitimp.h"

#include <string.h>

/* ---- shares ---- */

static uint64_t share_key(uint32_t link, uint64_t owner)
{
	return (owner + link) * 0x9e3779b97f4a7c15u ^ (uint64_t)link << 32;
}

uint32_t hc_adm_share_find(const struct hc_admit *s, uint32_t link, uint64_t owner)
{
	uint32_t n = hc_index_find(&s->owners, share_key(link, owner));

	while (n != HC_NONE && (s->share[n].owner != owner || s->share[n].link != link))
		n = hc_index_next(&s->owners, n);
	return n;
}

/* With a reference of its own. */
uint32_t hc_adm_share(struct hc_admit *s, uint32_t link, uint64_t owner)
{
	uint32_t n = hc_adm_share_find(s, link, owner);

	if (n == HC_NONE) {
		n = hc_pool_get(&s->shares);
		hc_assert(n != HC_NONE);
		s->share[n] = (struct hc_adm_share){.owner = owner, .link = link};
		hc_index_add(&s->owners, share_key(link, owner), n);
	}
	s->share[n].refs++;
	return n;
}

void hc_adm_unref(struct hc_admit *s, uint32_t share)
{
	struct hc_adm_share *h = &s->share[share];

	hc_assert(h->refs);
	if (--h->refs)
		return;
	hc_assert(!h->used[0] && !h->used[1] && !h->used_vcs && !h->line && !h->stirred);
	hc_index_del(&s->owners, share);
	hc_pool_put(&s->shares, share);
}

/* ---- flows ---- */

static struct hc_adm_class *class_of(const struct hc_admit *s, const struct hc_adm_flow *f)
{
	return &s->link[s->share[f->share].link].class[f->order];
}

static void drop_flow(struct hc_admit *s, uint32_t flow)
{
	struct hc_adm_flow *f = &s->flow[flow];

	hc_list_del(&s->idle, &s->in_idle, flow);
	s->share[f->share].flow[f->order] = 0;
	hc_adm_unref(s, f->share);
	hc_pool_put(&s->flows, flow);
}

/* Idle flows are only memory of an account; the one idle longest makes room. */
static uint32_t flow_of(struct hc_admit *s, uint32_t share, uint8_t order)
{
	uint32_t *at = &s->share[share].flow[order];
	uint32_t n;

	if (*at)
		return *at - 1;
	n = hc_pool_get(&s->flows);
	if (n == HC_NONE) {
		drop_flow(s, hc_list_first(&s->idle));
		n = hc_pool_get(&s->flows);
	}
	s->flow[n] = (struct hc_adm_flow){.share = share, .order = order};
	s->share[share].refs++;
	*at = n + 1;
	hc_list_push(&s->idle, &s->in_idle, n);
	return n;
}

static uint32_t head_of(const struct hc_adm_flow *f)
{
	return hc_list_first(&f->entries);
}

static uint64_t ticket_of(const struct hc_admit *s, uint32_t entry)
{
	return s->request[s->entry[entry].request].ticket;
}

static void set_need(struct hc_tree_node *node, const struct hc_adm_entry *e)
{
	unsigned k;

	for (k = 0; k < HC_NEEDS; k++)
		node->need[k] = e->armed ? e->need[k] : UINT32_MAX;
}

static void flow_in(struct hc_admit *s, uint32_t flow)
{
	struct hc_adm_flow *f = &s->flow[flow];
	struct hc_tree_node *node = &s->flow_node[flow];

	node->key = f->account;
	node->tie = ticket_of(s, head_of(f));
	set_need(node, &s->entry[head_of(f)]);
	hc_tree_add(s->flow_node, &class_of(s, f)->root, flow);
}

static void flow_out(struct hc_admit *s, uint32_t flow)
{
	hc_tree_del(s->flow_node, &class_of(s, &s->flow[flow])->root, flow);
}

static uint64_t charge_of(uint32_t cost, uint8_t weight)
{
	return ((uint64_t)cost << 8) / weight;
}

void hc_adm_charge(struct hc_admit *s, uint32_t link, const struct hc_adm_request *r, uint32_t cost)
{
	const uint64_t whole = charge_of(HC_ADMIT_COST_ONE, r->weight);
	const uint32_t share = hc_adm_share(s, link, r->owner);
	struct hc_adm_class *c = &s->link[link].class[r->order];
	struct hc_adm_flow *f;
	uint32_t flow;

	if (s->share[share].flow[r->order] || c->root) {
		flow = flow_of(s, share, r->order);
		f = &s->flow[flow];
		if (f->entries.count)
			flow_out(s, flow);
		else if (f->account < c->now)
			f->account = c->now;
		if (f->account + whole < c->now)
			f->account = c->now - whole;
		if (c->now < f->account)
			c->now = f->account;
		f->account += charge_of(cost, r->weight);
		if (c->top < f->account)
			c->top = f->account;
		if (f->entries.count)
			flow_in(s, flow);
	}
	hc_adm_unref(s, share);
}

/* It did not keep what it was charged for. */
void hc_adm_uncharge(struct hc_admit *s, uint32_t link, const struct hc_adm_request *r,
		     uint32_t cost)
{
	const uint64_t charge = charge_of(cost, r->weight);
	const uint32_t share = hc_adm_share(s, link, r->owner);
	const uint32_t flow = s->share[share].flow[r->order];
	struct hc_adm_flow *f = &s->flow[flow - 1];

	if (flow && f->account >= charge) {
		if (f->entries.count)
			flow_out(s, flow - 1);
		f->account -= charge;
		if (f->entries.count)
			flow_in(s, flow - 1);
	}
	hc_adm_unref(s, share);
}

/* First come first served: nearly always at the end, but a ticket that comes back goes to its
 * old place. */
static void list_insert(struct hc_admit *s, struct hc_list *list, uint32_t entry)
{
	struct hc_link *at = s->in_flow.at;
	uint32_t after = list->tail;

	while (after && ticket_of(s, after - 1) > ticket_of(s, entry))
		after = at[after - 1].prev;
	at[entry].prev = after;
	at[entry].next = after ? at[after - 1].next : list->head;
	if (at[entry].next)
		at[at[entry].next - 1].prev = entry + 1;
	else
		list->tail = entry + 1;
	if (after)
		at[after - 1].next = entry + 1;
	else
		list->head = entry + 1;
	list->count++;
}

static void enter_flow(struct hc_admit *s, uint32_t entry, uint8_t order)
{
	struct hc_adm_entry *e = &s->entry[entry];
	const uint32_t flow = flow_of(s, e->share, order);
	struct hc_adm_flow *f = &s->flow[flow];
	struct hc_adm_class *c = class_of(s, f);

	if (f->entries.count) {
		flow_out(s, flow);
	} else {
		hc_list_del(&s->idle, &s->in_idle, flow);
		if (f->account < c->now)
			f->account = c->now;
		c->flows++;
	}
	list_insert(s, &f->entries, entry);
	flow_in(s, flow);
	c->entries++;
	c->demand += e->cost;
}

static void leave_flow(struct hc_admit *s, uint32_t entry, uint8_t order)
{
	struct hc_adm_entry *e = &s->entry[entry];
	const uint32_t flow = s->share[e->share].flow[order] - 1;
	struct hc_adm_flow *f = &s->flow[flow];
	struct hc_adm_class *c = class_of(s, f);
	const bool head = head_of(f) == entry;

	c->entries--;
	c->demand -= e->cost;
	if (head)
		flow_out(s, flow);
	hc_list_del(&f->entries, &s->in_flow, entry);
	if (!f->entries.count) {
		hc_list_push(&s->idle, &s->in_idle, flow);
		c->flows--;
		if (!c->root)
			c->now = c->top; /* nobody waits: all start equal */
	} else if (head) {
		flow_in(s, flow);
		hc_adm_dirty(s, e->link, order);
	}
}

/* ---- the set ---- */

void hc_adm_enter_set(struct hc_admit *s, uint32_t entry)
{
	struct hc_adm_entry *e = &s->entry[entry];
	struct hc_adm_link *l = &s->link[e->link];

	s->set_node[entry] = (struct hc_tree_node){.key = ticket_of(s, entry)};
	hc_tree_add(s->set_node, &l->set, entry);
	l->set_count++;
	l->set_demand += e->cost;
	if (hc_tree_first(s->set_node, l->set) == entry)
		hc_adm_dirty(s, e->link, HC_ADMIT_SET);
}

void hc_adm_leave_set(struct hc_admit *s, uint32_t entry)
{
	struct hc_adm_entry *e = &s->entry[entry];
	struct hc_adm_link *l = &s->link[e->link];

	if (hc_tree_first(s->set_node, l->set) == entry)
		hc_adm_dirty(s, e->link, HC_ADMIT_SET);
	hc_tree_del(s->set_node, &l->set, entry);
	l->set_count--;
	l->set_demand -= e->cost;
}

/* ---- entries of a request ---- */

static uint32_t new_entry(struct hc_admit *s, uint32_t request, uint32_t link)
{
	struct hc_adm_request *r = &s->request[request];
	const uint32_t n = hc_pool_get(&s->entries);

	if (n == HC_NONE)
		return HC_NONE;
	s->entry[n] = (struct hc_adm_entry){
		.request = request,
		.link = link,
		.share = hc_adm_share(s, link, r->owner),
		.next = r->entries,
		.armed = true,
	};
	r->entries = n + 1;
	s->sketch[link].entry = n + 1;
	return n;
}

static int enter_piece(struct hc_admit *s, uint32_t request, struct hc_adm_piece *p)
{
	uint32_t l;

	p->choices = 0;
	for (l = hc_adm_choice(s, p, HC_NONE); l != HC_NONE; l = hc_adm_choice(s, p, l)) {
		p->choices++;
		if (!s->sketch[l].entry && new_entry(s, request, l) == HC_NONE)
			return HC_E_LIMIT;
	}
	return p->choices ? 0 : HC_E_LINK_UNAVAILABLE;
}

static void add_need(struct hc_adm_entry *e, const uint32_t need[HC_NEEDS])
{
	uint64_t sum;
	unsigned k;

	for (k = 0; k < HC_NEEDS; k++) {
		sum = (uint64_t)e->need[k] + need[k];
		e->need[k] = sum < UINT32_MAX ? (uint32_t)sum : UINT32_MAX - 1;
	}
}

/* The least that the request takes on a link: all of what can go nowhere else (pieces with one
 * choice are added first); or if there is nothing like that, the smallest of what may come. */
static void add_needs(struct hc_admit *s, const struct hc_adm_piece *p)
{
	const uint32_t need[HC_NEEDS] = {p->need[0], p->need[1], 1};
	struct hc_adm_entry *e;
	uint32_t l;
	unsigned k;

	for (l = hc_adm_choice(s, p, HC_NONE); l != HC_NONE; l = hc_adm_choice(s, p, l)) {
		e = &s->entry[s->sketch[l].entry - 1];
		e->cost += hc_adm_cost(&s->link[l], p->need) / p->choices;
		if (p->choices == 1)
			e->fixed = true;
		else
			e->several = true;
		if (p->choices == 1 || !e->need[2])
			add_need(e, need);
		for (k = 0; !e->fixed && k < HC_NEEDS; k++)
			if (need[k] < e->need[k])
				e->need[k] = need[k];
	}
}

int hc_adm_enter(struct hc_admit *s, uint32_t request)
{
	struct hc_adm_request *r = &s->request[request];
	uint32_t i, n;
	int e = 0;

	hc_assert(!r->entries);
	r->several = false;
	for (i = 0; i < r->npieces && !e; i++) {
		e = enter_piece(s, request, &s->piece[r->first + i]);
		r->several = r->several || s->piece[r->first + i].choices > 1;
	}
	for (i = 0; i < r->npieces && !e; i++)
		if (s->piece[r->first + i].choices == 1)
			add_needs(s, &s->piece[r->first + i]);
	for (i = 0; i < r->npieces && !e; i++)
		if (s->piece[r->first + i].choices > 1)
			add_needs(s, &s->piece[r->first + i]);
	HC_ADM_EACH_ENTRY(s, r, n)
	s->sketch[s->entry[n - 1].link].entry = 0;
	return e;
}

void hc_adm_leave(struct hc_admit *s, uint32_t request)
{
	struct hc_adm_request *r = &s->request[request];
	uint32_t n, next;

	for (n = r->entries; n; n = next) {
		next = s->entry[n - 1].next;
		hc_assert(s->entry[n - 1].where == HC_ADM_OUT);
		hc_adm_unref(s, s->entry[n - 1].share);
		hc_pool_put(&s->entries, n - 1);
	}
	r->entries = 0;
}

void hc_adm_enqueue(struct hc_admit *s, uint32_t request)
{
	const struct hc_adm_request *r = &s->request[request];
	struct hc_adm_entry *e;
	uint32_t n;

	HC_ADM_EACH_ENTRY(s, r, n)
	{
		e = &s->entry[n - 1];
		hc_assert(e->where == HC_ADM_OUT);
		if (r->state == HC_ADMIT_ASLEEP) {
			e->where = HC_ADM_ASLEEP;
			s->link[e->link].asleep[r->order] += e->cost;
		} else if (r->aged) {
			e->where = HC_ADM_SET;
			hc_adm_enter_set(s, n - 1);
		} else {
			e->where = HC_ADM_FLOW;
			enter_flow(s, n - 1, r->order);
			if (s->link[e->link].dirty) /* it may be past this class already */
				hc_adm_dirty(s, e->link, r->order);
		}
	}
}

void hc_adm_dequeue(struct hc_admit *s, uint32_t request)
{
	const struct hc_adm_request *r = &s->request[request];
	struct hc_adm_entry *e;
	uint32_t n;

	HC_ADM_EACH_ENTRY(s, r, n)
	{
		e = &s->entry[n - 1];
		switch ((enum hc_adm_where)e->where) {
		case HC_ADM_OUT: break;
		case HC_ADM_ASLEEP: s->link[e->link].asleep[r->order] -= e->cost; break;
		case HC_ADM_FLOW: leave_flow(s, n - 1, r->order); break;
		case HC_ADM_SET: hc_adm_leave_set(s, n - 1); break;
		case HC_ADM_CAPPED: s->link[e->link].capped_count--; break;
		}
		e->where = HC_ADM_OUT;
		if (e->lined)
			hc_adm_unline(s, n - 1);
	}
	s->request[request].capped = false;
}

bool hc_adm_may(const struct hc_admit *s, const struct hc_adm_entry *e)
{
	const struct hc_adm_request *r = &s->request[e->request];
	const struct hc_adm_link *l = &s->link[e->link];
	const uint32_t number = (uint32_t)(e - s->entry), flow = s->share[e->share].flow[r->order];
	uint32_t head;

	if (e->where == HC_ADM_CAPPED)
		return false;
	if (l->set)
		return e->where == HC_ADM_SET && hc_tree_first(s->set_node, l->set) == number;
	head = flow ? head_of(&s->flow[flow - 1]) : HC_NONE;
	if (e->where == HC_ADM_FLOW)
		return head == number;
	return !l->dirty && (head == HC_NONE || ticket_of(s, head) > r->ticket);
}

void hc_adm_arm(struct hc_admit *s, uint32_t entry, bool armed)
{
	struct hc_adm_entry *e = &s->entry[entry];
	uint32_t flow;

	if (e->armed == armed)
		return;
	e->armed = armed;
	if (e->where != HC_ADM_FLOW)
		return;
	flow = s->share[e->share].flow[s->request[e->request].order] - 1;
	if (head_of(&s->flow[flow]) != entry)
		return;
	set_need(&s->flow_node[flow], e);
	hc_tree_renew(s->flow_node, flow);
}

/* ---- what is dirty ---- */

void hc_adm_dirty(struct hc_admit *s, uint32_t link, uint8_t phase)
{
	struct hc_adm_link *l = &s->link[link];

	if (l->dirty && l->phase > phase)
		return;
	if (l->dirty && l->phase != phase)
		hc_list_del(&s->dirty[l->phase], &s->in_dirty, link);
	s->ndirty += !l->dirty;
	if (!l->dirty || l->phase != phase)
		hc_list_push(&s->dirty[phase], &s->in_dirty, link);
	l->dirty = true;
	l->fresh = true;
	l->phase = phase;
}

static void clean(struct hc_admit *s, uint32_t link)
{
	struct hc_adm_link *l = &s->link[link];

	hc_list_del(&s->dirty[l->phase], &s->in_dirty, link);
	s->ndirty--;
	l->dirty = false;
}

/* To the next lower class that has entries. */
static void lower(struct hc_admit *s, uint32_t link)
{
	struct hc_adm_link *l = &s->link[link];
	uint8_t phase = l->phase;

	clean(s, link);
	while (phase && !l->class[phase - 1].root)
		phase--;
	if (phase)
		hc_adm_dirty(s, link, (uint8_t)(phase - 1));
}

static bool has_free(const struct hc_adm_link *l, uint32_t free[HC_NEEDS])
{
	const bool fits =
		l->used[0] <= l->limit && l->used[1] <= l->limit && l->used_vcs < l->fact.vcs;

	free[0] = l->limit - l->used[0];
	free[1] = l->limit - l->used[1];
	free[2] = l->fact.vcs - l->used_vcs;
	return l->fact.up && fits;
}

/* Whom to look at next on a dirty link; HC_NONE: nobody in this phase. */
static uint32_t next_one(struct hc_admit *s, uint32_t link)
{
	struct hc_adm_link *l = &s->link[link];
	uint32_t free[HC_NEEDS], n;

	n = l->stirred.count ? hc_adm_stirred(s, link) : HC_NONE;
	if (n != HC_NONE)
		return n;
	if (!has_free(l, free)) {
		clean(s, link);
		return HC_NONE;
	}
	if (l->set) {
		n = hc_tree_first(s->set_node, l->set);
		if (s->entry[n].armed && l->phase == HC_ADMIT_SET && l->fresh) {
			l->fresh = false;
			return s->entry[n].request;
		}
		clean(s, link);
		return HC_NONE;
	}
	if (l->phase == HC_ADMIT_SET) {
		lower(s, link);
		return HC_NONE;
	}
	n = hc_tree_fit(s->flow_node, l->class[l->phase].root, l->fresh, l->key, l->tie, free);
	if (n == HC_NONE) {
		lower(s, link);
		return HC_NONE;
	}
	l->fresh = false;
	l->key = s->flow_node[n].key;
	l->tie = s->flow_node[n].tie;
	return s->entry[head_of(&s->flow[n])].request;
}

/* One link one step further. */
bool hc_adm_pump(struct hc_admit *s, uint64_t now)
{
	uint32_t request, link;
	int phase;

	for (phase = HC_ADMIT_SET; phase >= 0 && !s->dirty[phase].count; phase--)
		;
	if (phase < 0)
		return false;
	link = hc_list_first(&s->dirty[phase]);
	request = next_one(s, link);
	if (request == HC_NONE)
		return true;
	if (s->request[request].capped) {
		if (hc_adm_place(s, request, HC_ADM_MINE))
			hc_adm_uncap(s, request);
		return true;
	}
	if (!hc_adm_place(s, request, HC_ADM_NOW)) {
		if (s->request[request].aged && hc_adm_quota(s, &s->request[request]) < 100 &&
		    !hc_adm_place(s, request, HC_ADM_MINE))
			hc_adm_cap(s, request);
		return true;
	}
	hc_adm_dequeue(s, request);
	s->request[request].absent = s->request[request].state == HC_ADMIT_AWAITED;
	hc_adm_commit(s, now, request);
	hc_adm_leave(s, request);
	hc_adm_granted(s, request);
	return true;
}
