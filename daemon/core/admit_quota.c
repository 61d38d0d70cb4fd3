/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The quota of admission: how much of one link a user may hold, over all of its owners.
 *
 * It is a share of what can be granted, each way, and the same share of the virtual channels, but
 * never less than one. Use is kept by link and user. Where the quota is the whole link nothing of
 * it is looked up, so that it costs nothing.
 *
 * One that has aged would have its links saved for it. One that the quota holds up must not: its
 * user may go on for ever, and others would stand before a link with room. So it leaves the sets of
 * its links and is *capped*, until its user has given back so much that it would fit if nobody else
 * were there; then it takes its old place in the sets. Until it is granted or gone it stands in the
 * *line* of its user on each of its links, by ticket, and what is behind the first of a line takes
 * nothing there: small ones of a user do not starve its large one. A line is one user's affair, and
 * its order is that of all tickets, so neither other users nor two gangs of one wait for ever.
 *
 * Of a line only the first is looked at, when its user gave something back there or another became
 * first: its share is *stirred*, and its link looks at it before all else.
 */
#include "admitimp.h"

uint64_t hc_adm_quota_most(const struct hc_admit *s, uint32_t link, unsigned kind, uint32_t quota)
{
	const struct hc_adm_link *l = &s->link[link];
	const uint64_t vcs = (uint64_t)l->fact.vcs * quota / 100;

	if (kind < 2)
		return (uint64_t)l->limit * quota / 100;
	return !vcs && l->fact.vcs ? 1 : vcs;
}

bool hc_adm_behind(const struct hc_admit *s, uint32_t share, uint64_t ticket)
{
	const uint32_t first = hc_tree_first(s->line_node, s->share[share].line);

	return first != HC_NONE && s->line_node[first].key < ticket;
}

static uint64_t held(const struct hc_admit *s, uint32_t share, unsigned kind)
{
	if (share == HC_NONE)
		return 0;
	return kind < 2 ? s->share[share].used[kind] : s->share[share].used_vcs;
}

bool hc_adm_held_up(const struct hc_admit *s, const struct hc_adm_request *r,
		    const struct hc_adm_entry *e)
{
	const uint32_t quota = hc_adm_quota(s, r);
	uint32_t share;
	unsigned k;

	if (quota == 100)
		return false;
	share = hc_adm_share_find(s, e->link, r->user);
	for (k = 0; k < HC_NEEDS; k++)
		if (held(s, share, k) + e->need[k] > hc_adm_quota_most(s, e->link, k, quota))
			return true;
	return false;
}

/* ---- lines ---- */

static void line_up(struct hc_admit *s, uint32_t entry)
{
	struct hc_adm_entry *e = &s->entry[entry];
	const struct hc_adm_request *r = &s->request[e->request];

	e->held = hc_adm_share(s, e->link, r->user);
	e->lined = true;
	s->line_node[entry] = (struct hc_tree_node){.key = r->ticket};
	hc_tree_add(s->line_node, &s->share[e->held].line, entry);
}

void hc_adm_stir(struct hc_admit *s, uint32_t share)
{
	struct hc_adm_share *h = &s->share[share];

	if (!h->line)
		return;
	if (!h->stirred)
		hc_list_push(&s->link[h->link].stirred, &s->in_stirred, share);
	h->stirred = true;
	hc_adm_dirty(s, h->link, HC_ADMIT_SET);
}

static void calm(struct hc_admit *s, uint32_t share)
{
	struct hc_adm_share *h = &s->share[share];

	if (h->stirred)
		hc_list_del(&s->link[h->link].stirred, &s->in_stirred, share);
	h->stirred = false;
}

void hc_adm_unline(struct hc_admit *s, uint32_t entry)
{
	struct hc_adm_entry *e = &s->entry[entry];
	struct hc_adm_share *h = &s->share[e->held];

	hc_tree_del(s->line_node, &h->line, entry);
	e->lined = false;
	hc_adm_stir(s, e->held);
	if (!h->line) { /* who was behind it in a flow may go */
		calm(s, e->held);
		hc_adm_dirty(s, e->link, HC_ADMIT_SET);
	}
	hc_adm_unref(s, e->held);
}

uint32_t hc_adm_stirred(struct hc_admit *s, uint32_t link)
{
	struct hc_adm_link *l = &s->link[link];
	uint32_t share, first;

	while (l->phase == HC_ADMIT_SET && l->stirred.count) {
		share = hc_list_first(&l->stirred);
		calm(s, share);
		first = s->entry[hc_tree_first(s->line_node, s->share[share].line)].request;
		if (s->request[first].capped)
			return first;
	}
	return HC_NONE;
}

/* ---- in and out of the sets ---- */

void hc_adm_cap(struct hc_admit *s, uint32_t request)
{
	struct hc_adm_request *r = &s->request[request];
	struct hc_adm_entry *e;
	uint32_t n;

	hc_assert(r->aged && !r->capped);
	r->capped = true;
	HC_ADM_EACH_ENTRY(s, r, n)
	{
		e = &s->entry[n - 1];
		hc_assert(e->where == HC_ADM_SET);
		hc_adm_leave_set(s, n - 1);
		e->where = HC_ADM_CAPPED;
		s->link[e->link].capped_count++;
		if (!e->lined)
			line_up(s, n - 1);
	}
}

void hc_adm_uncap(struct hc_admit *s, uint32_t request)
{
	struct hc_adm_request *r = &s->request[request];
	struct hc_adm_entry *e;
	uint32_t n;

	hc_assert(r->capped);
	r->capped = false;
	HC_ADM_EACH_ENTRY(s, r, n)
	{
		e = &s->entry[n - 1];
		e->where = HC_ADM_SET;
		e->armed = true;
		s->link[e->link].capped_count--;
		hc_adm_enter_set(s, n - 1);
	}
}

/* ---- for a refusal ---- */

static void needs(const struct hc_admit_piece *a, uint32_t need[HC_NEEDS], struct hc_adm_piece *p)
{
	const bool back = a->from > a->to;

	*p = (struct hc_adm_piece){
		.from = a->from, .to = a->to, .type = a->type, .carries = a->carries};
	need[0] = a->mbps[back];
	need[1] = a->mbps[!back];
	need[2] = 1;
}

/* The only link that the piece could use, or HC_NONE. */
static uint32_t only_link(const struct hc_admit *s, const struct hc_adm_piece *p)
{
	const uint32_t link = hc_adm_choice(s, p, HC_NONE);

	return link != HC_NONE && hc_adm_choice(s, p, link) == HC_NONE ? link : HC_NONE;
}

/* What has no choice goes to its links first, as when it is placed. */
static void add_fixed(struct hc_admit *s, const struct hc_admit_piece *a, bool undo)
{
	uint32_t need[HC_NEEDS], link;
	struct hc_adm_piece p;
	struct hc_adm_sketch *k;

	needs(a, need, &p);
	link = only_link(s, &p);
	if (link == HC_NONE)
		return;
	k = &s->sketch[link];
	k->add[0] = undo ? 0 : k->add[0] + need[0];
	k->add[1] = undo ? 0 : k->add[1] + need[1];
	k->add_vcs = undo ? 0 : k->add_vcs + 1;
}

static bool exceeds(const struct hc_admit *s, uint32_t link, uint64_t user,
		    const uint32_t need[HC_NEEDS], bool never, struct hc_admit_excess *x)
{
	const uint32_t share = hc_adm_share_find(s, link, user);
	const struct hc_adm_sketch *k = &s->sketch[link];
	const uint64_t add[HC_NEEDS] = {k->add[0], k->add[1], k->add_vcs};
	unsigned d;

	for (d = 0; d < HC_NEEDS; d++) {
		x->link = link;
		x->kind = (uint8_t)d;
		x->held = held(s, share, d);
		x->asked = add[d] + need[d];
		x->most = hc_adm_quota_most(s, link, d, s->set.quota_percent);
		if ((never ? 0 : x->held) + x->asked > x->most)
			return true;
	}
	return false;
}

/* On each link that it could use. */
static bool piece_exceeds(const struct hc_admit *s, uint64_t user, const struct hc_admit_piece *a,
			  bool never, struct hc_admit_excess *x)
{
	static const uint32_t added[HC_NEEDS];
	uint32_t need[HC_NEEDS], l;
	struct hc_admit_excess other;
	struct hc_adm_piece p;
	bool fixed, any = false;

	needs(a, need, &p);
	fixed = only_link(s, &p) != HC_NONE;
	for (l = hc_adm_choice(s, &p, HC_NONE); l != HC_NONE; l = hc_adm_choice(s, &p, l)) {
		if (!exceeds(s, l, user, fixed ? added : need, never, any ? &other : x))
			return false;
		any = true;
	}
	return any;
}

bool hc_admit_over_quota(struct hc_admit *s, uint64_t user, const struct hc_admit_piece *pieces,
			 uint32_t npieces, bool never, struct hc_admit_excess *excess)
{
	bool found = false;
	uint32_t i;

	if (s->set.quota_percent == 100)
		return false;
	for (i = 0; i < npieces; i++)
		add_fixed(s, &pieces[i], false);
	for (i = 0; i < npieces && !found; i++)
		found = piece_exceeds(s, user, &pieces[i], never, excess);
	for (i = 0; i < npieces; i++)
		add_fixed(s, &pieces[i], true);
	return found;
}
