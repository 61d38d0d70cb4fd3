/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Does a request fit, and where does each piece go.
 *
 * Pieces with one choice come first, in their order; then those with several, in theirs: among
 * the links that have room those within 5 % of the fastest, of them the least loaded. What the
 * pieces before took is kept in a sketch of the links concerned, so that a gang is tried without
 * touching the books, and a failure leaves nothing behind.
 *
 * This is not a search for the best packing of a gang with choices; what is refused on empty links
 * is refused as impossible, and what fits on empty links fits at the latest when its links have
 * emptied.
 */
#include "admitimp.h"

static void sketch_user(const struct hc_admit *s, const struct hc_adm_request *r,
			struct hc_adm_sketch *k, uint32_t link)
{
	const uint32_t share = hc_adm_share_find(s, link, r->user);

	if (share == HC_NONE)
		return;
	k->held = share + 1;
	k->allowed = k->allowed && !hc_adm_behind(s, share, r->ticket);
}

static void sketch_open(struct hc_admit *s, const struct hc_adm_request *r, enum hc_adm_mode mode)
{
	struct hc_adm_sketch *k;
	uint32_t n;

	HC_ADM_EACH_ENTRY(s, r, n)
	{
		k = &s->sketch[s->entry[n - 1].link];
		k->entry = n;
		k->allowed = mode != HC_ADM_NOW || hc_adm_may(s, &s->entry[n - 1]);
		if (mode <= HC_ADM_MINE && hc_adm_quota(s, r) < 100)
			sketch_user(s, r, k, s->entry[n - 1].link);
	}
}

static void sketch_close(struct hc_admit *s, const struct hc_adm_request *r)
{
	uint32_t n;

	HC_ADM_EACH_ENTRY(s, r, n)
	s->sketch[s->entry[n - 1].link] = (struct hc_adm_sketch){0};
}

static bool within(uint64_t used, uint64_t add, uint64_t need, uint64_t limit)
{
	return used + add + need <= limit;
}

static bool within_quota(const struct hc_admit *s, uint32_t link, const struct hc_adm_piece *p,
			 uint32_t quota)
{
	static const struct hc_adm_share nothing;
	const struct hc_adm_sketch *k = &s->sketch[link];
	const struct hc_adm_share *h = k->held ? &s->share[k->held - 1] : &nothing;
	unsigned d;

	for (d = 0; d < 2; d++)
		if (!within(h->used[d], k->add[d], p->need[d],
			    hc_adm_quota_most(s, link, d, quota)))
			return false;
	return within(h->used_vcs, k->add_vcs, 1, hc_adm_quota_most(s, link, 2, quota));
}

static bool has_room(const struct hc_admit *s, uint32_t link, const struct hc_adm_piece *p,
		     uint32_t quota, enum hc_adm_mode mode)
{
	const struct hc_adm_link *l = &s->link[link];
	const struct hc_adm_sketch *k = &s->sketch[link];
	const bool now = mode <= HC_ADM_ANYWAY;
	unsigned d;

	if (!k->allowed)
		return false;
	for (d = 0; d < 2; d++)
		if (!within(now ? l->used[d] : 0, k->add[d], p->need[d], l->limit))
			return false;
	return within(now ? l->used_vcs : 0, k->add_vcs, 1, l->fact.vcs) &&
	       (quota == 100 || within_quota(s, link, p, quota));
}

static uint64_t load_of(const struct hc_admit *s, uint32_t link, enum hc_adm_mode mode)
{
	const struct hc_adm_link *l = &s->link[link];
	const struct hc_adm_sketch *k = &s->sketch[link];
	const bool now = mode <= HC_ADM_ANYWAY;
	uint64_t part[3], most = 0;
	unsigned d;

	for (d = 0; d < 2; d++) {
		part[d] = (uint64_t)k->add[d] + (now ? l->used[d] : 0);
		part[d] = l->limit ? part[d] * HC_ADMIT_COST_ONE / l->limit : 0;
	}
	part[2] = (uint64_t)k->add_vcs + (now ? l->used_vcs : 0);
	part[2] = l->fact.vcs ? part[2] * HC_ADMIT_COST_ONE / l->fact.vcs : 0;
	for (d = 0; d < 3; d++)
		if (part[d] > most)
			most = part[d];
	return most;
}

static bool better(const struct hc_admit *s, uint32_t link, uint64_t load, uint32_t than,
		   uint64_t least)
{
	if (load != least)
		return load < least;
	if (s->link[link].fact.mbps != s->link[than].fact.mbps)
		return s->link[link].fact.mbps > s->link[than].fact.mbps;
	return link < than;
}

static uint32_t choose(const struct hc_admit *s, const struct hc_adm_piece *p, uint32_t quota,
		       enum hc_adm_mode mode)
{
	uint32_t l, best = HC_NONE;
	uint64_t fastest = 0, load, least = 0;

	for (l = hc_adm_choice(s, p, HC_NONE); l != HC_NONE; l = hc_adm_choice(s, p, l))
		if (s->link[l].fact.mbps >= fastest && has_room(s, l, p, quota, mode)) {
			fastest = s->link[l].fact.mbps;
			best = l;
		}
	if (best == HC_NONE || p->choices == 1)
		return best;
	least = load_of(s, best, mode);
	for (l = hc_adm_choice(s, p, HC_NONE); l != HC_NONE; l = hc_adm_choice(s, p, l)) {
		if ((uint64_t)s->link[l].fact.mbps * 100 < fastest * 95 ||
		    !has_room(s, l, p, quota, mode))
			continue;
		load = load_of(s, l, mode);
		if (better(s, l, load, best, least)) {
			best = l;
			least = load;
		}
	}
	return best;
}

/* The first piece that finds no place, or HC_NONE. */
static uint32_t place_all(struct hc_admit *s, const struct hc_adm_request *r, bool several,
			  enum hc_adm_mode mode)
{
	const uint32_t quota = mode == HC_ADM_NO_QUOTA ? 100 : hc_adm_quota(s, r);
	struct hc_adm_piece *p;
	struct hc_adm_sketch *k;
	uint32_t i, link;

	for (i = r->first; i < r->first + r->npieces; i++) {
		p = &s->piece[i];
		if ((p->choices > 1) != several)
			continue;
		link = choose(s, p, quota, mode);
		if (link == HC_NONE)
			return i;
		p->link = link;
		k = &s->sketch[link];
		k->add[0] += p->need[0];
		k->add[1] += p->need[1];
		k->add_vcs++;
	}
	return HC_NONE;
}

/* Pieces with one choice do not depend on the others, so one of them that fails is helped by its
 * link alone. One with several may be helped by any link that any of the several could use. */
static void arm_where_failed(struct hc_admit *s, const struct hc_adm_request *r,
			     const struct hc_adm_piece *failed)
{
	const uint32_t only = failed->choices == 1 ? hc_adm_choice(s, failed, HC_NONE) : HC_NONE;
	uint32_t n;

	HC_ADM_EACH_ENTRY(s, r, n)
	hc_adm_arm(s, n - 1,
		   only != HC_NONE ? s->entry[n - 1].link == only : s->entry[n - 1].several);
}

bool hc_adm_place(struct hc_admit *s, uint32_t request, enum hc_adm_mode mode)
{
	const struct hc_adm_request *r = &s->request[request];
	uint32_t failed;

	sketch_open(s, r, mode);
	failed = place_all(s, r, false, mode);
	if (failed == HC_NONE && r->several)
		failed = place_all(s, r, true, mode);
	sketch_close(s, r);
	if (failed != HC_NONE && mode == HC_ADM_NOW)
		arm_where_failed(s, r, &s->piece[failed]);
	return failed == HC_NONE;
}

void hc_adm_commit(struct hc_admit *s, uint64_t now, uint32_t request)
{
	struct hc_adm_request *r = &s->request[request];
	uint32_t i;

	r->granted_at = now;
	for (i = r->first; i < r->first + r->npieces; i++) {
		hc_adm_take(s, now, i);
		hc_adm_charge(s, s->piece[i].link, r, s->piece[i].cost);
	}
}
