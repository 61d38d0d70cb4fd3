/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The whole state of admission against itself, for tests and debug builds.
 *
 * Everything kept twice is counted anew: use of links and shares from the pieces, demand and
 * numbers of the queues from the entries, references, the least needs in the trees, memory in use.
 * And nothing that fits and may go is left waiting, once no link is dirty.
 */
#include "admitimp.h"

/* What one link adds up to. */
struct sums {
	uint64_t used[2], cost, absent, declared;
	uint64_t demand[HC_ADMIT_CLASSES], entries[HC_ADMIT_CLASSES], asleep[HC_ADMIT_CLASSES];
	uint64_t set, set_demand, capped;
};

static void check_piece(const struct hc_admit *s, uint32_t piece)
{
	const struct hc_adm_piece *p = &s->piece[piece];
	const struct hc_adm_share *h = &s->share[p->share];

	hc_assert(h->link == p->link && h->owner == s->request[p->request].user && h->refs);
	hc_assert(s->vcs[(size_t)p->link * (HC_ADMIT_VCS_MAX / 64) + p->vc / 64] >> p->vc % 64 & 1);
}

static uint32_t vcs_taken(const struct hc_admit *s, uint32_t link)
{
	const uint64_t *taken = s->vcs + (size_t)link * (HC_ADMIT_VCS_MAX / 64);
	uint32_t w, k, bits = 0;
	uint64_t word;

	for (w = 0; w < HC_ADMIT_VCS_MAX / 64; w += 4) { /* nearly all are zero */
		if (!(taken[w] | taken[w + 1] | taken[w + 2] | taken[w + 3]))
			continue;
		for (k = w; k < w + 4; k++)
			for (word = taken[k]; word; word &= word - 1)
				bits++;
	}
	return bits;
}

static void sum_granted(const struct hc_admit *s, uint32_t link, struct sums *t)
{
	const struct hc_adm_link *l = &s->link[link];
	uint32_t i, count = 0, ends = 0, away = 0;

	for (i = hc_list_first(&l->granted); i != HC_NONE; i = hc_list_next(&s->in_link, i)) {
		const struct hc_adm_piece *p = &s->piece[i];

		hc_assert(p->granted && p->link == link);
		check_piece(s, i);
		t->used[0] += p->need[0];
		t->used[1] += p->need[1];
		t->cost += p->cost;
		t->absent += s->request[p->request].absent ? p->cost : 0;
		away += s->request[p->request].absent;
		ends += s->request[p->request].hold_ns > 0;
		t->declared += s->request[p->request].hold_ns ? p->cost : 0;
		count++;
	}
	hc_assert(count == l->granted.count && count == l->used_vcs);
	hc_assert(vcs_taken(s, link) == count);
	hc_assert(l->grants - l->releases == count);
	hc_assert((l->absent ? s->absent_node[l->absent - 1].count : 0) == away);
	hc_assert((l->ends ? s->end_node[l->ends - 1].count : 0) == ends);
}

static void check_tree(const struct hc_tree_node *t, uint32_t root)
{
	uint32_t n, before = HC_NONE, seen = 0;
	unsigned k;

	for (n = hc_tree_first(t, root); n != HC_NONE; n = hc_tree_next(t, n)) {
		hc_assert(before == HC_NONE || t[before].key < t[n].key ||
			  (t[before].key == t[n].key && t[before].tie < t[n].tie));
		hc_assert(hc_tree_before(t, n) == seen);
		for (k = 0; k < HC_NEEDS; k++) {
			hc_assert(t[n].least[k] <= t[n].need[k]);
			hc_assert(!t[n].up || t[t[n].up - 1].least[k] <= t[n].least[k]);
		}
		before = n;
		seen++;
	}
	hc_assert(!root || (t[root - 1].count == seen && !t[root - 1].up));
}

static void check_flow(const struct hc_admit *s, uint32_t flow, uint32_t link, uint8_t order)
{
	const struct hc_adm_flow *f = &s->flow[flow];
	const struct hc_tree_node *node = &s->flow_node[flow];
	const uint32_t head = hc_list_first(&f->entries);
	const struct hc_adm_entry *e = &s->entry[head];
	uint64_t ticket = 0;
	uint32_t n;
	unsigned k;

	hc_assert(f->order == order && s->share[f->share].link == link && head != HC_NONE);
	hc_assert(s->share[f->share].flow[order] == flow + 1);
	hc_assert(node->key == f->account && node->tie == s->request[e->request].ticket);
	for (k = 0; k < HC_NEEDS; k++)
		hc_assert(node->need[k] == (e->armed ? e->need[k] : UINT32_MAX));
	for (n = head; n != HC_NONE; n = hc_list_next(&s->in_flow, n)) {
		hc_assert(s->entry[n].where == HC_ADM_FLOW && s->entry[n].link == link);
		hc_assert(s->request[s->entry[n].request].ticket > ticket);
		hc_assert(s->request[s->entry[n].request].order == order);
		ticket = s->request[s->entry[n].request].ticket;
	}
}

static void sum_entry(const struct hc_admit *s, const struct hc_adm_entry *e, struct sums *t)
{
	const struct hc_adm_request *r = &s->request[e->request];

	hc_assert(s->share[e->share].link == e->link && s->share[e->share].owner == r->owner);
	switch ((enum hc_adm_where)e->where) {
	case HC_ADM_OUT: hc_panic(__FILE__, __LINE__, "an entry is in no queue");
	case HC_ADM_ASLEEP:
		hc_assert(r->state == HC_ADMIT_ASLEEP);
		t->asleep[r->order] += e->cost;
		break;
	case HC_ADM_FLOW:
		hc_assert(r->state == HC_ADMIT_WAITING && !r->aged);
		t->entries[r->order]++;
		t->demand[r->order] += e->cost;
		break;
	case HC_ADM_SET:
		hc_assert((r->state == HC_ADMIT_WAITING || r->state == HC_ADMIT_AWAITED) &&
			  r->aged);
		t->set++;
		t->set_demand += e->cost;
		break;
	case HC_ADM_CAPPED:
		hc_assert(r->aged && r->capped && e->lined);
		t->capped++;
		break;
	}
	hc_assert(!e->lined || (s->share[e->held].link == e->link &&
				s->share[e->held].owner == r->user && s->share[e->held].line));
}

static void check_link(const struct hc_admit *s, uint32_t link)
{
	const struct hc_adm_link *l = &s->link[link];
	struct sums t = {0};
	uint32_t i, n, flows;
	unsigned c;

	sum_granted(s, link, &t);
	for (i = 0; i < s->requests.fresh; i++)
		HC_ADM_EACH_ENTRY(s, &s->request[i], n)
	if (s->entry[n - 1].link == link)
		sum_entry(s, &s->entry[n - 1], &t);
	hc_assert(t.used[0] == l->used[0] && t.used[1] == l->used[1] && t.cost == l->used_cost);
	hc_assert(t.declared == l->declared_cost && t.absent == l->used_absent);
	hc_assert(t.set == l->set_count && t.set_demand == l->set_demand);
	hc_assert(t.capped == l->capped_count);
	check_tree(s->set_node, l->set);
	check_tree(s->end_node, l->ends);
	check_tree(s->absent_node, l->absent);
	for (c = 0; c < HC_ADMIT_CLASSES; c++) {
		hc_assert(t.entries[c] == l->class[c].entries && t.demand[c] == l->class[c].demand);
		hc_assert(t.asleep[c] == l->asleep[c]);
		check_tree(s->flow_node, l->class[c].root);
		flows = 0;
		for (n = hc_tree_first(s->flow_node, l->class[c].root); n != HC_NONE;
		     n = hc_tree_next(s->flow_node, n), flows++)
			check_flow(s, n, link, (uint8_t)c);
		hc_assert(flows == l->class[c].flows);
	}
	hc_assert(!s->sketch[link].entry && !s->sketch[link].add_vcs && !s->sketch[link].add[0] &&
		  !s->sketch[link].add[1]);
}

/* References: of granted pieces, entries, flows and lines. And all use is some user's. */
static void check_shares(const struct hc_admit *s)
{
	uint64_t refs = 0, found = 0, used = 0, pieces = 0, mbps[2] = {0}, vcs = 0;
	uint32_t i, n;

	for (i = 0; i < s->shares.fresh; i++) {
		refs += s->share[i].refs;
		used += s->share[i].refs > 0;
		for (n = 0; s->share[i].refs && n < HC_ADMIT_CLASSES; n++)
			found += s->share[i].flow[n] > 0;
		if (!s->share[i].refs)
			continue;
		for (n = 0; n < 2; n++)
			mbps[n] += s->share[i].used[n];
		vcs += s->share[i].used_vcs;
		check_tree(s->line_node, s->share[i].line);
		refs -= hc_tree_count(s->line_node, s->share[i].line);
	}
	hc_assert(used == s->shares.used && found == s->flows.used);
	for (i = 0; i < s->lim.links; i++) {
		found += s->link[i].used_vcs;
		mbps[0] -= s->link[i].used[0];
		mbps[1] -= s->link[i].used[1];
		vcs -= s->link[i].used_vcs;
	}
	hc_assert(!mbps[0] && !mbps[1] && !vcs);
	found += s->entries.used;
	hc_assert(refs == found);
	for (i = 0; i < s->requests.fresh; i++)
		pieces += s->request[i].npieces;
	hc_assert(pieces == s->npieces);
}

static void check_request(struct hc_admit *s, uint32_t request, bool quiet)
{
	struct hc_adm_request *r = &s->request[request];
	uint32_t n, granted = 0;

	for (n = r->first; n < r->first + r->npieces; n++)
		granted += s->piece[n].granted;
	hc_assert(granted == r->ngranted);
	switch ((enum hc_admit_state)r->state) {
	case HC_ADMIT_FREE: hc_assert(!r->npieces && !r->entries && !granted); return;
	case HC_ADMIT_WAITING:
	case HC_ADMIT_AWAITED:
		hc_assert(!granted);
		hc_assert(!quiet || !r->entries || !hc_adm_place(s, request, HC_ADM_NOW));
		/* with choices it may be packed in another way since, which gives it its turn when
		 * its user gives something back, not before */
		hc_assert(!quiet || !r->capped || r->several ||
			  !hc_adm_place(s, request, HC_ADM_MINE));
		return;
	case HC_ADMIT_ASLEEP: hc_assert(!granted); return;
	case HC_ADMIT_GRANTED: hc_assert(granted == r->npieces && !r->entries); return;
	case HC_ADMIT_HELD: hc_assert(granted && !r->entries); return;
	}
	hc_panic(__FILE__, __LINE__, "a state of a request");
}

void hc_admit_check(struct hc_admit *s)
{
	const bool quiet = !s->ndirty;
	uint32_t i, n = 0;

	for (i = 0; i <= HC_ADMIT_CLASSES; i++)
		n += s->dirty[i].count;
	hc_assert(n == s->ndirty);
	for (i = 0; i < s->lim.links; i++)
		check_link(s, i);
	check_shares(s);
	for (i = 0; i < s->requests.fresh; i++)
		check_request(s, i, quiet);
	for (i = 0; i < s->lim.links; i++)
		check_link(s, i); /* looking has changed nothing that counts */
}
