/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Crowds: a random world in which owners share a link (test_admit_random.c).
 *
 * Some owners, of equal or other weights, always have more waiting than can be granted before they
 * ask again, while holders end at random, a higher class takes and gives back, and owners go away
 * and come back. Their shares are judged at every grant (admit_judge.h), between each two of them
 * that have had something waiting since both were there. All that they ask for is of one size,
 * since what is large may be passed over, and nothing ages.
 */
#ifndef HC_TEST_ADMIT_CROWD_H
#define HC_TEST_ADMIT_CROWD_H

#include "admit_walk.h"

#define NOBODY UINT32_MAX /* a higher class, whose shares are not looked at */

static struct {
	struct adm_shares shares;
	bool asks[ADM_OWNERS];
	uint32_t owners, channels, size, back, waiting[ADM_OWNERS], noise;
	uint32_t of[REQUESTS]; /* owner */
	uint8_t order;
} crowd;

static void crowd_has(uint32_t n)
{
	hc_admit_collect(s, n);
	if (crowd.of[n] == NOBODY)
		return;
	crowd.waiting[crowd.of[n]]--;
	sum.shares++;
	if (!adm_share_granted(&crowd.shares, crowd.of[n]))
		found("shares are further apart than one grant of each");
	if (!crowd.waiting[crowd.of[n]])
		crowd.shares.there[crowd.of[n]] = false;
}

static void crowd_ask(uint32_t owner, uint32_t size, uint8_t order)
{
	struct hc_admit_piece p = adm_piece(0, 1, size, owner == NOBODY ? size : crowd.back);
	struct hc_admit_ask a = adm_ask(owner, &p, 1);
	uint64_t hint;
	uint32_t n;
	int r;

	a.order = order;
	a.weight = owner == NOBODY ? 1 : crowd.shares.weight[owner];
	r = hc_admit_ask(s, now, &a, &n, &hint);
	must(r == 0 || r == HC_E_IN_PROGRESS);
	crowd.of[n] = owner;
	if (owner == NOBODY)
		crowd.noise++;
	else
		crowd.waiting[owner]++;
	if (!r)
		crowd_has(n);
}

/* More of each than can be granted until it asks again. */
static void crowd_settle(void)
{
	uint32_t o, n, i;

	for (i = 0; i < 2; i++) {
		adm_run(s, now);
		while ((n = adm_granted(s)) != HC_NONE)
			crowd_has(n);
		for (o = 0; o < crowd.owners && !i; o++)
			while (crowd.asks[o] && crowd.waiting[o] < crowd.channels + 2)
				crowd_ask(o, crowd.size, crowd.order);
	}
	for (o = 0; o < crowd.owners; o++)
		if (crowd.asks[o] && !crowd.shares.there[o])
			adm_joins(&crowd.shares, o);
}

static void new_crowd(void)
{
	const struct hc_admit_settings set = {.limit_percent = 80,
					      .aging_ns = 1000000 * SEC,
					      .grant_ttl_ns = 5 * SEC,
					      .hint_hold_ns = 1 * SEC};
	const bool equal = roll(2), few = roll(2);
	uint32_t o;

	memset(&crowd, 0, sizeof(crowd));
	crowd.owners = 2 + roll(ADM_OWNERS - 1);
	crowd.channels = 1 + roll(5);
	crowd.size = 4 * (1 + roll(30));
	crowd.back = roll(crowd.size + 1);
	crowd.order = (uint8_t)roll(7);
	for (o = 0; o < crowd.owners; o++) {
		crowd.shares.weight[o] = (uint8_t)(equal ? 1 : 1 + roll(few ? 3 : 100));
		crowd.asks[o] = true;
	}
	now = 1;
	s = adm_new(1, REQUESTS, PIECES);
	hc_admit_set(s, &set);
	if (roll(2)) /* bandwidth is short, or channels */
		adm_link(s, now, 0, 0, 1, crowd.channels * crowd.size * 5 / 4, 4096);
	else
		adm_link(s, now, 0, 0, 1, 100000, crowd.channels);
	crowd_settle();
}

static void crowd_step(void)
{
	const uint32_t what = roll(64);
	uint32_t n = roll(REQUESTS);

	now += MS;
	if (what == 0 && crowd.noise < 3)
		crowd_ask(NOBODY, 1 + roll(s->link[0].limit < 1000 ? s->link[0].limit : 1000),
			  (uint8_t)(crowd.order + 1));
	else if (what == 1)
		crowd.asks[roll(crowd.owners)] ^= true;
	else if (s->link[0].used_vcs) {
		while (s->request[n].state != HC_ADMIT_HELD)
			n = (n + 1) % REQUESTS;
		crowd.noise -= crowd.of[n] == NOBODY;
		hc_admit_release(s, now, n);
	}
	crowd_settle();
}

static void walk_crowd(uint32_t steps)
{
	uint32_t i;

	new_crowd();
	for (i = 1; i <= steps; i++) {
		crowd_step();
		if (i % 1000 == 0)
			hc_admit_check(s);
	}
	free(s);
	sum.steps += steps;
}

#endif
