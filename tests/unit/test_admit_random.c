/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random lives of requests over a handful of links, from many owners.
 *
 * Each seed is a small world: parallel links, links of any two end points, gangs, choices, quotas,
 * classes, declared and undeclared durations, callers who wait and callers who come back, links
 * that fail, shrink and grow, limits that are met. What must hold after each step is cheap to
 * look at (never above the limit, the reserve never lent); every thousand steps the whole state is
 * checked against itself, including that nothing which fits and may go waits. At the end of each
 * world everybody lets go, and everything is free.
 *
 * The long form is 10^8 steps. HC_SEED=n runs the world of one seed alone.
 */
#include "suite.h"

#include <stdio.h>

#include "admission.h"

#define LINKS    6u
#define POINTS   4u
#define REQUESTS 64u
#define OWNERS   9u

static uint64_t dice, now;
static struct hc_admit *s;
static uint64_t steps_done;

static uint32_t roll(uint32_t n)
{
	return adm_roll(&dice, n);
}

struct ours {
	bool known, ticket;
	uint32_t pieces;
	bool piece_free[8];
};
static struct ours mine[REQUESTS];
static uint32_t points[LINKS][2];

static void set_link(uint32_t l)
{
	const struct hc_admit_link fact = {.a = points[l][0],
					   .b = points[l][1],
					   .type = (uint8_t)(1 + l % 3),
					   .carries = l % 4 != 3,
					   .up = roll(8) != 0,
					   .mbps = roll(6) ? 100 + 20 * roll(6) : roll(50),
					   .vcs = 1 + roll(9)};

	hc_admit_link_set(s, now, l, &fact);
}

static void new_world(uint64_t seed)
{
	uint32_t l, a, b;

	dice = seed * 0x9e3779b97f4a7c15u + 1;
	now = 1 + roll(1000);
	memset(mine, 0, sizeof(mine));
	s = adm_new(LINKS, REQUESTS, 128);
	for (l = 0; l < LINKS; l++) {
		a = roll(POINTS);
		b = roll(POINTS);
		points[l][0] = l == LINKS - 1 ? HC_NONE : a < b ? a : b;
		points[l][1] = l == LINKS - 1 ? HC_NONE : a < b ? b : a;
		set_link(l);
	}
}

static void ask(void)
{
	struct hc_admit_piece p[8];
	struct hc_admit_ask a = adm_ask(roll(OWNERS), p, roll(3) ? 1 : 1 + roll(8));
	uint64_t hint;
	uint32_t i, n;
	int r;

	for (i = 0; i < a.npieces; i++) {
		p[i] = adm_piece(roll(POINTS), roll(POINTS), roll(3) ? 5 * roll(8) : roll(100),
				 5 * roll(8));
		p[i].type = (uint8_t)(roll(4) ? 0 : roll(4));
		p[i].carries = roll(4) == 0;
	}
	a.order = (uint8_t)(roll(2) ? 0 : roll(8));
	a.weight = (uint8_t)(1 + a.owner % 3);
	a.hold_ns = roll(2) ? 0 : 1 + roll(3000) * MS;
	a.wait = roll(2);
	a.deadline = roll(2) ? HC_NEVER : now + roll(20000) * MS;
	a.quota_percent = roll(3) ? 100 : 1 + roll(100);
	r = hc_admit_ask(s, now, &a, &n, &hint);
	adm_must(r == 0 || r == HC_E_IN_PROGRESS || r == HC_E_AGAIN || r == HC_E_LIMIT ||
		 r == HC_E_LINK_UNAVAILABLE);
	adm_must(a.wait ? r != HC_E_AGAIN : r != HC_E_IN_PROGRESS);
	if (r && r != HC_E_IN_PROGRESS && r != HC_E_AGAIN)
		return;
	adm_must(n < REQUESTS && !mine[n].known);
	mine[n] = (struct ours){.known = true, .ticket = r == HC_E_AGAIN, .pieces = a.npieces};
	if (!r && roll(4))
		hc_admit_collect(s, n);
}

static void come_back(uint32_t n)
{
	const bool wait = roll(2);
	uint64_t hint;
	int r;

	if (hc_admit_state(s, n) == HC_ADMIT_FREE) /* its news is still to be read */
		return;
	r = hc_admit_again(s, now, n, wait, roll(2) ? HC_NEVER : now + roll(9) * SEC, &hint);
	if (hc_admit_state(s, n) == HC_ADMIT_HELD || hc_admit_state(s, n) == HC_ADMIT_FREE)
		adm_must(r == HC_E_GONE);
	else if (hc_admit_state(s, n) == HC_ADMIT_GRANTED)
		adm_must(r == 0);
	else
		adm_must(r == (wait ? HC_E_IN_PROGRESS : HC_E_AGAIN));
	if (hc_admit_state(s, n) != HC_ADMIT_FREE)
		mine[n].ticket = r == HC_E_AGAIN;
}

static void let_go(uint32_t n)
{
	uint32_t p, left = 0;

	if (hc_admit_state(s, n) == HC_ADMIT_FREE)
		return;
	p = roll(mine[n].pieces);
	if (roll(2) && !mine[n].piece_free[p] && hc_admit_state(s, n) == HC_ADMIT_HELD) {
		hc_admit_release_piece(s, now, n, p);
		mine[n].piece_free[p] = true;
		for (p = 0; p < mine[n].pieces; p++)
			left += !mine[n].piece_free[p];
		mine[n].known = left > 0;
		return;
	}
	hc_admit_release(s, now, n);
	mine[n].known = false;
}

static void read_news(void)
{
	enum hc_admit_news news;
	uint32_t n;

	while (hc_admit_news(s, &n, &news)) {
		adm_must(mine[n].known);
		switch (news) {
		case HC_ADMIT_NEWS_GRANTED:
			adm_must(hc_admit_state(s, n) == HC_ADMIT_GRANTED);
			adm_must(!mine[n].ticket);
			if (roll(4))
				hc_admit_collect(s, n);
			break;
		case HC_ADMIT_NEWS_EXPIRED:
		case HC_ADMIT_NEWS_LAPSED:
			adm_must(hc_admit_state(s, n) == HC_ADMIT_FREE);
			mine[n].known = false;
			break;
		}
	}
}

static void look(void)
{
	static uint32_t link;
	struct hc_admit_use use;

	link = (link + 1) % LINKS;
	hc_admit_link_use(s, link, &use);
	adm_must(use.grants - use.releases <= REQUESTS * 8);
	adm_must(use.grants - use.releases == use.used_vcs);
}

static void step(bool links_change)
{
	const uint32_t n = roll(REQUESTS), what = roll(16);
	uint64_t estimate;
	uint32_t ahead;

	if (what < 5)
		ask();
	else if (what < 7 && mine[n].known)
		come_back(n);
	else if (what < 11 && mine[n].known)
		let_go(n);
	else if (what < 14)
		now += roll(20) ? roll(200) * MS : roll(12) * SEC;
	else if (what == 14 && links_change && !roll(50))
		set_link(roll(LINKS));
	else if (mine[n].known && hc_admit_state(s, n) != HC_ADMIT_FREE)
		hc_admit_outlook(s, now, n, &ahead, &estimate);
	if (roll(8))
		adm_run(s, now);
	else
		hc_admit_run(s, now, roll(4));
	if (roll(4))
		read_news();
	look();
	steps_done++;
}

static void end_world(void)
{
	struct hc_admit_use use;
	uint32_t n;

	read_news();
	for (n = 0; n < REQUESTS; n++)
		if (mine[n].known && hc_admit_state(s, n) != HC_ADMIT_FREE)
			hc_admit_release(s, now, n);
	adm_run(s, now);
	read_news();
	hc_admit_check(s);
	for (n = 0; n < LINKS; n++) {
		hc_admit_link_use(s, n, &use);
		adm_must(!use.used_mbps[0] && !use.used_mbps[1] && !use.used_vcs && !use.waiting);
		adm_must(use.grants == use.releases);
	}
	free(s);
}

static void world(uint64_t seed, uint32_t steps, uint32_t check_each)
{
	uint32_t i;

	new_world(seed);
	for (i = 1; i <= steps; i++) {
		step(seed % 2);
		if (i % check_each == 0) {
			adm_run(s, now);
			hc_admit_check(s);
		}
	}
	end_world();
}

START_TEST(random_lives_leave_nothing)
{
	const char *seed = getenv("HC_SEED");
	const uint64_t steps = hc_long() ? 100000000 : 1000000;
	uint64_t i;

	for (i = seed ? strtoull(seed, NULL, 0) : 1; !seed && steps_done < steps; i++) {
		if (getenv("HC_LOUD"))
			fprintf(stderr, "seed %llu\n", (unsigned long long)i);
		world(i, 10000, i % 10 ? 1000 : 37);
	}
	if (seed)
		world(i, 10000, 1);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_test(t, random_lives_leave_nothing);
}

int main(void)
{
	return hc_suite_run("admit_random", add, hc_long() ? 850 : 60);
}
