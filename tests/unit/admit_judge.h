/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Judges of admission, for worlds of every kind (test_admit_model.c, test_admit_random.c). They
 * read the scheduler's own state of a request, but not its tickets: who came first is what the
 * caller knows, so that an order that is wrong inside is not taken for the right one.
 *
 * Overtaking, at a grant: of those who are still in a queue of a link that was granted something,
 *
 * - nobody who came before is past the aging bound, but who is held up by the quota of its user,
 *   and that by grants to other users alone. So from its bound on a request sees no later
 *   one served on its links: it is behind at most the tickets that are older than its own;
 * - nobody who came before is awaited, but where one was served who left a ticket too;
 * - nobody of the same owner and class came before, but where one was served who had aged or was
 *   awaited himself;
 * - nobody of a higher class, first of its owner there, would have gone into the same place, with
 *   the same exception.
 *
 * Fairness, at each grant of equal ones: between any two moments at which owners i and j had
 * something waiting all the time, with n grants each and weights w, the shares differ by no more
 * than one grant of each:
 *
 *	| n_i / w_i  -  n_j / w_j |  <=  1 / w_i  +  1 / w_j
 *
 * That is the bound of a round robin whose next is always the lowest account. For equal owners it
 * makes a window short by less than two, and shares over some thousand grants equal within 1 %.
 */
#ifndef HC_TEST_ADMIT_JUDGE_H
#define HC_TEST_ADMIT_JUDGE_H

#include "admission.h"
#include "admitimp.h"

/* ---- overtaking ---- */

/* What a granted request got of a link: bandwidth there and back, channels. */
static inline bool adm_got(const struct hc_admit *s, uint32_t request, uint32_t link,
			   uint32_t got[HC_NEEDS])
{
	const struct hc_adm_request *r = &s->request[request];
	uint32_t i;

	memset(got, 0, HC_NEEDS * sizeof(*got));
	for (i = r->first; i < r->first + r->npieces; i++) {
		if (!s->piece[i].granted || s->piece[i].link != link)
			continue;
		got[0] += s->piece[i].need[0];
		got[1] += s->piece[i].need[1];
		got[2]++;
	}
	return got[2];
}

static inline const struct hc_adm_entry *adm_entry(const struct hc_admit *s, uint32_t request,
						   uint32_t link)
{
	uint32_t n;

	HC_ADM_EACH_ENTRY(s, &s->request[request], n)
	if (s->entry[n - 1].link == link)
		return &s->entry[n - 1];
	return NULL;
}

/* One channel, no quota, the first of its owner there: it would have gone where that one went. */
static inline bool adm_goes_there(const struct hc_admit *s, const struct hc_adm_entry *e,
				  const uint32_t got[HC_NEEDS])
{
	const struct hc_adm_request *r = &s->request[e->request];
	const struct hc_adm_piece *p = &s->piece[r->first];
	const uint32_t flow = s->share[e->share].flow[r->order];

	return r->npieces == 1 && hc_adm_quota(s, r) == 100 && e->where == HC_ADM_FLOW && flow &&
	       &s->entry[hc_list_first(&s->flow[flow - 1].entries)] == e && p->need[0] <= got[0] &&
	       p->need[1] <= got[1];
}

/* Request i was granted just now (ticket: its caller once left with one), k was not and is the
 * older one or not. What is wrong with that on this link, or NULL. */
static inline const char *adm_overtaken(const struct hc_admit *s, uint64_t now, uint32_t link,
					uint32_t i, bool ticket, uint32_t k, bool older)
{
	const struct hc_adm_request *a = &s->request[i], *b = &s->request[k];
	const bool waits = b->state == HC_ADMIT_WAITING;
	const struct hc_adm_entry *e = adm_entry(s, k, link);
	uint32_t got[HC_NEEDS];

	if (!e || !adm_got(s, i, link, got))
		return NULL;
	if (a->user != b->user && b->capped)
		return NULL; /* what its user holds is in its way, not who came later */
	if (waits && older && b->arrived + s->set.aging_ns <= now)
		return "an aged one was overtaken";
	if (b->state == HC_ADMIT_AWAITED && older && !ticket)
		return "what is saved for a ticket went to one who waits";
	if (waits && older && !a->aged && a->owner == b->owner && a->order == b->order)
		return "an owner's later request came first";
	if (waits && !a->aged && b->order > a->order && adm_goes_there(s, e, got))
		return "a lower class came first";
	return NULL;
}

/* ---- fairness ---- */

#define ADM_OWNERS 6u

struct adm_shares {
	uint8_t weight[ADM_OWNERS];
	int64_t grants[ADM_OWNERS];
	bool there[ADM_OWNERS]; /* has had something waiting since it joined */
	int64_t least[ADM_OWNERS][ADM_OWNERS], most[ADM_OWNERS][ADM_OWNERS];
};

static inline int64_t adm_lead(const struct adm_shares *f, uint32_t i, uint32_t j)
{
	return f->grants[i] * f->weight[j] - f->grants[j] * f->weight[i];
}

static inline void adm_joins(struct adm_shares *f, uint32_t i)
{
	uint32_t j;

	f->there[i] = true;
	for (j = 0; j < ADM_OWNERS; j++) {
		f->least[i][j] = f->most[i][j] = adm_lead(f, i, j);
		f->least[j][i] = f->most[j][i] = adm_lead(f, j, i);
	}
}

/* False: the bound is broken between this owner and another one. */
static inline bool adm_share_granted(struct adm_shares *f, uint32_t i)
{
	int64_t d;
	uint32_t j;

	f->grants[i]++;
	for (j = 0; j < ADM_OWNERS; j++) {
		if (j == i || !f->there[i] || !f->there[j])
			continue;
		d = adm_lead(f, i, j);
		if (d > f->most[i][j])
			f->most[i][j] = d;
		f->least[j][i] = -f->most[i][j];
		if (d - f->least[i][j] > f->weight[i] + f->weight[j])
			return false;
	}
	return true;
}

/* ---- dead-lock ---- */

/*
 * Everybody takes what is given, and gives it back; tickets come back to wait; no time passes and
 * nobody new asks. After the first round somebody is served in each, so one more than there are
 * requests are enough. Returns how many it took, or HC_NONE: some are still waiting after them all.
 */
static inline bool adm_serves(struct hc_admit *s, uint64_t now, uint32_t n)
{
	uint64_t hint;

	switch ((enum hc_admit_state)s->request[n].state) {
	case HC_ADMIT_FREE: return true;
	case HC_ADMIT_WAITING: return false;
	case HC_ADMIT_ASLEEP:
	case HC_ADMIT_AWAITED:
		if (hc_admit_again(s, now, n, true, HC_NEVER, &hint))
			return false;
		break;
	case HC_ADMIT_GRANTED:
		if (hc_admit_again(s, now, n, true, HC_NEVER, &hint))
			return false;
		break;
	case HC_ADMIT_HELD: hc_admit_release(s, now, n); return true;
	}
	hc_admit_collect(s, n);
	hc_admit_release(s, now, n);
	return true;
}

static inline uint32_t adm_serve_all(struct hc_admit *s, uint64_t now)
{
	enum hc_admit_news news;
	uint32_t round, n, left;

	for (round = 1; round <= s->lim.requests + 1; round++) {
		adm_run(s, now);
		for (n = 0, left = 0; n < s->requests.fresh; n++)
			left += !adm_serves(s, now, n);
		adm_run(s, now);
		while (hc_admit_news(s, &n, &news))
			;
		if (!left)
			return round;
	}
	return HC_NONE;
}

#endif
