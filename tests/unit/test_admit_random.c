/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random walks of the scheduler, each seed a world of its own; of 20 worlds 17 are lives, two are
 * crowds and one is a storm. All six properties of admission are judged, each where it has a
 * meaning.
 *
 * Lives: a handful of links, from many owners: parallel links, links of any two end points, gangs,
 * choices, quotas, classes, durations that are declared and not kept, callers who wait and callers
 * who come back, at their hint or not, links that fail, shrink and grow, limits that are met. At
 * every grant: each link that it is on is up and within its limits (1), and nobody was overtaken
 * who may not be (3, admit_judge.h). At every step a link's channels are the difference of its
 * grants and releases, and every thousand steps, or 37, the whole state is checked against itself
 * (6), including that nothing which fits and may go waits, and at every step that whoever is held
 * up by the quota of its user would be if that user were alone. At every grant what its user has of
 * the link is added up from the pieces and is within the quota, also where that was changed. At
 * moments that are drawn the scheduler is copied, and in the copy everybody takes what is given and
 * gives it back: all must be served, without time passing, and everything be free (4). Where links
 * change, all are mended first. At the end everybody lets go at once, and everything is free.
 *
 * Crowds: owners who always have something waiting on one link (admit_crowd.h). The bound of shares
 * is held at every grant, between each two that are there (2, admit_judge.h).
 *
 * Storms: refused callers who come back at their hint, on a link where all hold for as long as they
 * always do (storm.h), of all sizes and kinds. Of all hints of a run 99 % are kept (5). In lives
 * nobody promises anything, and a hint means nothing.
 *
 * The long form is 10^8 steps. HC_SEED=n runs the world of one seed alone, HC_LOUD=1 names each.
 */
#include "suite.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "admit_crowd.h"
#include "storm_admit.h"

#define LINKS  6u
#define POINTS 4u
#define OWNERS 9u

struct ours {
	bool known, ticket, granted;
	bool left; /* once with a ticket */
	uint32_t pieces;
	uint64_t number; /* in the order of asking */
	bool piece_free[8];
};
static struct ours mine[REQUESTS];
static uint64_t numbers;
static uint32_t points[LINKS][2];
static uint32_t npoints;
static bool few_wait;
static uint32_t users, quota; /* owner % users is the user */

/* ---- lives: what is judged at a grant ---- */

static void judge_limits(uint32_t n)
{
	const struct hc_adm_request *r = &s->request[n];
	const struct hc_adm_link *l;
	uint32_t i;

	must(r->ngranted == r->npieces);
	for (i = r->first; i < r->first + r->npieces; i++) {
		l = &s->link[s->piece[i].link];
		must(l->fact.up && l->used_vcs <= l->fact.vcs);
		must(l->used[0] <= (uint64_t)l->fact.mbps * 80 / 100);
		must(l->used[1] <= (uint64_t)l->fact.mbps * 80 / 100);
	}
}

static bool is_of(uint32_t piece, uint32_t link, uint64_t user)
{
	const struct hc_adm_piece *p = &s->piece[piece];

	return p->granted && p->link == link && s->request[p->request].user == user;
}

/* What the user of a new grant has of its links, added up from the pieces. */
static void judge_quota(uint32_t n)
{
	const struct hc_adm_request *r = &s->request[n], *o;
	const struct hc_adm_link *l;
	uint64_t has[2], vcs, most;
	uint32_t i, k, j;

	for (i = r->first; i < r->first + r->npieces; i++) {
		l = &s->link[s->piece[i].link];
		has[0] = has[1] = vcs = 0;
		for (k = 0; k < REQUESTS; k++) {
			o = &s->request[k];
			for (j = o->first; j < o->first + o->npieces; j++) {
				if (!is_of(j, s->piece[i].link, r->user))
					continue;
				has[0] += s->piece[j].need[0];
				has[1] += s->piece[j].need[1];
				vcs++;
			}
		}
		most = (uint64_t)l->fact.mbps * 80 / 100 * quota / 100;
		must(has[0] <= most && has[1] <= most && "the quota of a user");
		most = (uint64_t)l->fact.vcs * quota / 100;
		must(vcs <= (most ? most : 1) && "the quota of a user, in virtual channels");
	}
}

static void judge_order(uint32_t n)
{
	const struct hc_adm_request *r = &s->request[n];
	const char *wrong;
	uint32_t i, k, links = 0;

	for (i = r->first; i < r->first + r->npieces; i++)
		links |= 1u << s->piece[i].link;
	for (k = 0; k < REQUESTS; k++) {
		if (!s->request[k].entries || !mine[k].known || k == n)
			continue;
		sum.older += mine[k].number < mine[n].number;
		for (i = 0; i < LINKS; i++) {
			if (!(links >> i & 1))
				continue;
			wrong = adm_overtaken(s, now, i, n, mine[n].left, k,
					      mine[k].number < mine[n].number);
			if (wrong)
				found(wrong);
		}
	}
}

/* Who has something now and did not before? */
static void judge_grants(bool judged)
{
	bool granted;
	uint32_t n;

	for (n = 0; n < REQUESTS; n++) {
		granted = s->request[n].ngranted > 0;
		if (judged && granted && !mine[n].granted && mine[n].known) {
			judge_limits(n);
			judge_quota(n);
			judge_order(n);
			sum.grants++;
		}
		mine[n].granted = granted;
	}
}

/* As hc_admit_run, with a look at each grant. */
static void run(uint32_t budget)
{
	uint64_t before;

	for (; budget && hc_admit_deadline(s) <= now; budget--) {
		before = s->counts.granted_later;
		hc_admit_run(s, now, 1);
		if (s->counts.granted_later != before)
			judge_grants(true);
	}
}

/* What ask and again do themselves, first of all. False: they have still more to do. */
static bool run_first(void)
{
	run(16);
	return hc_admit_deadline(s) > now;
}

/* ---- lives: what happens ---- */

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

static void set_quota(uint32_t percent)
{
	struct hc_admit_settings set = s->set;

	quota = set.quota_percent = percent;
	hc_admit_set(s, &set);
}

static void new_world(void)
{
	uint32_t l, a, b;

	now = 1 + roll(1000);
	npoints = roll(3) ? POINTS : 2;
	few_wait = roll(2);
	memset(mine, 0, sizeof(mine));
	users = 1 + roll(OWNERS);
	s = adm_new(LINKS, REQUESTS, PIECES);
	set_quota(roll(3) ? 100 : 10 + roll(90));
	for (l = 0; l < LINKS; l++) {
		a = roll(npoints);
		b = roll(npoints);
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
	bool quiet;
	int r;

	for (i = 0; i < a.npieces; i++) {
		p[i] = adm_piece(roll(npoints), roll(npoints), roll(3) ? 5 * roll(8) : roll(100),
				 5 * roll(8));
		p[i].type = (uint8_t)(roll(4) ? 0 : roll(4));
		p[i].carries = roll(4) == 0;
	}
	a.order = (uint8_t)(roll(2) ? 0 : roll(8));
	a.weight = (uint8_t)(1 + a.owner % 3);
	a.hold_ns = roll(2) ? 0 : 1 + roll(3000) * MS;
	a.wait = few_wait ? !roll(8) : roll(2);
	a.deadline = roll(2) ? HC_NEVER : now + roll(20000) * MS;
	a.user = a.owner % users;
	quiet = run_first();
	r = hc_admit_ask(s, now, &a, &n, &hint);
	if (!quiet)
		judge_grants(false);
	must(r == 0 || r == HC_E_IN_PROGRESS || r == HC_E_AGAIN || r == HC_E_LIMIT ||
	     r == HC_E_LINK_UNAVAILABLE);
	must(a.wait ? r != HC_E_AGAIN : r != HC_E_IN_PROGRESS);
	if (r && r != HC_E_IN_PROGRESS && r != HC_E_AGAIN)
		return;
	must(n < REQUESTS && !mine[n].known);
	mine[n] = (struct ours){.known = true,
				.ticket = r == HC_E_AGAIN,
				.left = r == HC_E_AGAIN,
				.pieces = a.npieces,
				.number = ++numbers};
	if (!r)
		judge_grants(true);
	if (!r && roll(4))
		hc_admit_collect(s, n);
}

static void come_back(uint32_t n)
{
	const bool wait = few_wait ? !roll(8) : roll(2);
	enum hc_admit_state before;
	uint64_t hint;
	bool quiet;
	int r;

	if (hc_admit_state(s, n) == HC_ADMIT_FREE) /* its news is still to be read */
		return;
	quiet = run_first();
	before = hc_admit_state(s, n);
	r = hc_admit_again(s, now, n, wait, roll(2) ? HC_NEVER : now + roll(9) * SEC, &hint);
	if (hc_admit_state(s, n) == HC_ADMIT_HELD || hc_admit_state(s, n) == HC_ADMIT_FREE)
		must(r == HC_E_GONE);
	else if (hc_admit_state(s, n) == HC_ADMIT_GRANTED)
		must(r == 0);
	else
		must(r == (wait ? HC_E_IN_PROGRESS : HC_E_AGAIN));
	sum.lent += before == HC_ADMIT_AWAITED && !r;
	if (!r || !quiet)
		judge_grants(quiet);
	if (hc_admit_state(s, n) != HC_ADMIT_FREE)
		mine[n].ticket = r == HC_E_AGAIN;
	mine[n].left = mine[n].left || r == HC_E_AGAIN;
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
		must(mine[n].known);
		switch (news) {
		case HC_ADMIT_NEWS_GRANTED:
			must(hc_admit_state(s, n) == HC_ADMIT_GRANTED);
			must(!mine[n].ticket);
			if (roll(4))
				hc_admit_collect(s, n);
			break;
		case HC_ADMIT_NEWS_EXPIRED:
		case HC_ADMIT_NEWS_LAPSED:
			must(hc_admit_state(s, n) == HC_ADMIT_FREE);
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
	must(use.grants - use.releases <= REQUESTS * 8);
	must(use.grants - use.releases == use.used_vcs);
}

/* Nobody is kept from a link for longer than his user's quota does it; who could go to several
 * links may be packed in another way since (admit_check.c). */
static void look_at_capped(void)
{
	uint32_t n;

	for (n = 0; n < REQUESTS && hc_admit_deadline(s) > now; n++) {
		if (s->request[n].state == HC_ADMIT_FREE || !s->request[n].capped)
			continue;
		must(quota < 100);
		must(s->request[n].several || !hc_adm_place(s, n, HC_ADM_MINE));
		sum.capped++;
	}
}

/* Time passes until the next hint of all, and the caller comes. False: there is none so soon. */
static bool keep_appointment(void)
{
	uint64_t at = now + 2 * SEC;
	uint32_t n, who = HC_NONE;

	for (n = 0; n < REQUESTS; n++) {
		const struct hc_adm_request *r = &s->request[n];

		if (mine[n].known && mine[n].ticket && r->state != HC_ADMIT_FREE &&
		    r->hint_at >= now && r->hint_at < at) {
			at = r->hint_at;
			who = n;
		}
	}
	if (who == HC_NONE)
		return false;
	now = at;
	come_back(who);
	return true;
}

static void change(void)
{
	if (roll(3))
		set_link(roll(LINKS));
	else
		set_quota(quota == 100 ? 100 : 5 + roll(95));
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
	else if (what < 14 && !(what == 13 && keep_appointment()))
		now += roll(20) ? roll(200) * MS : roll(12) * SEC;
	else if (what == 14 && links_change && !roll(50))
		change();
	else if (mine[n].known && hc_admit_state(s, n) != HC_ADMIT_FREE)
		hc_admit_outlook(s, now, n, &ahead, &estimate);
	run(roll(8) ? HC_NONE : roll(4));
	if (roll(4))
		read_news();
	look();
	look_at_capped();
}

/* A gang with choices is not packed in the best way (admit_place.c), so one that fitted when it
 * asked may be kept out of all queues since a link changed. */
static void drop_kept_out(void)
{
	const struct hc_adm_request *r;
	uint32_t n;

	for (n = 0; n < REQUESTS; n++) {
		r = &s->request[n];
		if (r->entries || r->ngranted || r->state == HC_ADMIT_FREE)
			continue;
		must(r->several);
		hc_admit_release(s, now, n);
		sum.dropped++;
	}
}

static void mend_links(void)
{
	struct hc_admit_settings set = s->set;
	struct hc_admit_link fact;
	uint32_t l;

	for (l = 0; l < LINKS; l++) {
		fact = s->link[l].fact;
		fact.up = true;
		fact.mbps = 200;
		fact.vcs = 9;
		hc_admit_link_set(s, now, l, &fact);
	}
	set.quota_percent = 100;
	hc_admit_set(s, &set);
	drop_kept_out();
}

static void nothing_is_left(void)
{
	struct hc_admit_use use;
	uint32_t n;

	hc_admit_check(s);
	for (n = 0; n < LINKS; n++) {
		hc_admit_link_use(s, n, &use);
		must(!use.used_mbps[0] && !use.used_mbps[1] && !use.used_vcs && !use.waiting);
		must(use.grants == use.releases);
	}
}

/* In a copy; the scheduler has pointers into itself, so the copy is what is put back. */
static void everybody_is_served(bool links_change)
{
	static uint8_t *copy;
	const size_t bytes = adm_bytes(LINKS, REQUESTS, PIECES);
	uint32_t rounds;

	if (!copy)
		copy = malloc(bytes);
	must(copy);
	memcpy(copy, s, bytes);
	if (links_change)
		mend_links();
	rounds = adm_serve_all(s, now);
	must(rounds != HC_NONE && "everybody can be served");
	nothing_is_left();
	memcpy(s, copy, bytes);
	sum.served++;
	if (sum.rounds < rounds)
		sum.rounds = rounds;
}

static void end_world(void)
{
	uint32_t n;

	read_news();
	for (n = 0; n < REQUESTS; n++)
		if (mine[n].known && hc_admit_state(s, n) != HC_ADMIT_FREE)
			hc_admit_release(s, now, n);
	adm_run(s, now);
	read_news();
	nothing_is_left();
	free(s);
}

static void lives(uint32_t steps, uint32_t check_each)
{
	const bool links_change = seed % 2;
	uint32_t i;

	new_world();
	for (i = 1; i <= steps; i++) {
		step(links_change);
		if (i % check_each == 0) {
			run(HC_NONE);
			hc_admit_check(s);
		}
		if (!roll(200))
			everybody_is_served(links_change);
	}
	end_world();
	sum.steps += steps;
}

/* ---- storms ---- */

static void storms(void)
{
	static struct storm_admit a;
	struct storm set = {.hold_ns = 20 * MS, .think_ns = 5 * MS, .unknown_ns = 20 * MS};
	const bool classes = roll(4) == 0;
	struct storm_policy policy;
	struct storm_result out;
	uint32_t i;

	set.seed = seed;
	set.channels = 4 + roll(29);
	set.clients = set.channels * (2 + roll(4));
	set.waiting = roll(2) * roll(set.clients * 3 / 4);
	set.hold = (enum storm_hold)roll(STORM_EXPONENTIAL + 1);
	set.declares = roll(2);
	set.late_ns = roll(2) * roll(2 * MS);
	set.warm_ns = 8 * SEC;
	set.length_ns = 12 * SEC;
	memset(&a, 0, sizeof(a));
	for (i = 0; i < set.clients && classes; i++)
		a.order[i] = (uint8_t)(i % 3);
	policy = storm_admit_new(&a, set.channels);
	storm_run(&set, &policy, &out);
	hc_admit_check(a.s);
	sum.steps += a.s->counts.asked + a.s->counts.released + a.s->counts.hints_kept +
		     a.s->counts.hints_broken;
	sum.hints += out.returns;
	sum.kept += out.kept;
	storm_admit_end(&a);
}

/* ---- all ---- */

static void world(uint64_t number)
{
	seed = number;
	dice = seed * 0x9e3779b97f4a7c15u + 1;
	if (getenv("HC_LOUD"))
		fprintf(stderr, "seed %llu\n", (unsigned long long)seed);
	if (seed % 10 == 7)
		walk_crowd(10000);
	else if (seed % 20 == 14)
		storms();
	else
		lives(10000, seed % 10 ? 1000 : 37);
	sum.worlds++;
}

static void print_sum(void)
{
	printf("%llu steps in %llu worlds, all sound\n", sum.steps, sum.worlds);
	printf("limits and order: %llu grants, %llu of them of what another one lent, beside %llu "
	       "older requests that could not go\n",
	       sum.grants, sum.lent, sum.older);
	printf("quota: %llu times somebody was held up by it at the end of a step\n", sum.capped);
	printf("shares: %llu grants\n", sum.shares);
	printf("everybody was served %llu times, in %llu rounds at most; %llu gangs fitted no "
	       "more\n",
	       sum.served, sum.rounds, sum.dropped);
	printf("hints: %llu, of which %.2f %% were kept\n", sum.hints,
	       100.0 * (double)sum.kept / (double)sum.hints);
	fflush(stdout);
}

START_TEST(what_must_hold_holds_in_random_worlds)
{
	const char *only = getenv("HC_SEED");
	const uint64_t steps = hc_long() ? 100000000 : hc_patience(1) > 1 ? 600000 : 3000000;
	uint64_t i;

	if (only) {
		world(strtoull(only, NULL, 0));
		return;
	}
	for (i = 1; sum.steps < steps; i++)
		world(i);
	print_sum();
	adm_must(sum.grants > steps / 100 && sum.shares > steps / 100);
	adm_must(sum.capped > steps / 1000);
	adm_must(sum.served > steps / 1000 && sum.hints > steps / 100);
	adm_must(sum.kept * 100 >= sum.hints * 99);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_test(t, what_must_hold_holds_in_random_worlds);
}

/* An assertion of the core does not know which world it was. */
static void on_abort(int signal_number)
{
	(void)signal_number;
	dprintf(STDERR_FILENO, "seed %llu (HC_SEED)\n", (unsigned long long)seed);
}

int main(void)
{
	signal(SIGABRT, on_abort);
	return hc_suite_run("admit_random", add, hc_long() ? 850 : 60);
}
