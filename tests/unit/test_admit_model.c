/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small worlds, walked whole: the scheduler's own code, over every order of events.
 *
 * Two links with room for one or two channels, three owners, four requests. Each request is for a
 * channel on the first link, the second, both, or either; it waits or leaves a ticket; it declares
 * its time or not; it is of a low or a high class. Whatever can happen next is tried from every
 * state: one is asked, comes back (and waits, or does not), is collected, is released in whatever
 * state it is, or a second passes, so that requests age, grants lapse, tickets wake and end.
 *
 * Demanded in every state: the whole state agrees with itself (hc_admit_check, which includes that
 * nothing which fits and may go waits); nothing was granted past an older request that had aged, or
 * past an older one of the same owner; and if from here on everybody only takes what he is given
 * and gives it back, everybody is served and all is free. So there is no state of dead-lock.
 *
 * States are told apart by what decides: states, order of tickets, what is due and when, accounts,
 * use of the links. A walk is depth first; each level keeps a copy of the scheduler's memory.
 */
#include "suite.h"

#include "admission.h"
#include "admitimp.h"

#include <stdio.h>

enum { REQUESTS = 4, LINKS = 2, TICKS = 3, RETURNS = 1, DEEP = 40, TABLE = 1 << 22 };
enum place { FIRST, SECOND, BOTH, EITHER, PLACES };

struct script {
	enum place place;
	uint64_t owner;
	uint8_t order;
	bool wait, declares;
};

struct world {
	uint8_t *memory;           /* the scheduler's */
	uint32_t number[REQUESTS]; /* HC_NONE: not asked; DONE */
	uint64_t asked[REQUESTS], waits_since[REQUESTS];
	uint64_t now;
	uint32_t ticks, order[REQUESTS], asks, returns[REQUESTS];
};
#define DONE 0xfffffffeu

static struct script script[REQUESTS];
static struct world level[DEEP], scratch;
static struct hc_admit *live;
static size_t bytes;
static uint64_t seen[TABLE];
static uint64_t states, moves;

/* Links that it could use, a bit for each. */
static uint32_t could_use(const struct script *t)
{
	return t->place == FIRST ? 1 : t->place == SECOND ? 2 : 3;
}

static uint32_t uses(uint32_t number)
{
	const struct hc_adm_request *r = &live->request[number];
	uint32_t i, links = 0;

	for (i = r->first; i < r->first + r->npieces; i++)
		links |= 1u << live->piece[i].link;
	return links;
}

/* ---- memory: the scheduler always lives in the same place, since it holds pointers ---- */

static void save(struct world *w)
{
	memcpy(w->memory, live, bytes);
}

static void load(const struct world *w)
{
	memcpy(live, w->memory, bytes);
}

static void copy(struct world *to, const struct world *from)
{
	uint8_t *memory = to->memory;

	*to = *from;
	to->memory = memory;
}

/* ---- what must hold ---- */

/* Request i was granted just now. */
static void judge_grant(const struct world *w, uint32_t i)
{
	uint32_t k, state;

	for (k = 0; k < REQUESTS; k++) {
		if (k == i || w->number[k] >= DONE || w->order[k] > w->order[i])
			continue;
		state = hc_admit_state(live, w->number[k]);
		if (state != HC_ADMIT_WAITING || !(could_use(&script[k]) & uses(w->number[i])))
			continue;
		adm_must((w->asked[k] + 2 * SEC > w->now) && "an aged request was overtaken");
		adm_must((!script[i].wait || script[k].owner != script[i].owner ||
			  script[k].order != script[i].order) &&
			 "an owner's later request came first");
	}
}

static void settle(struct world *w)
{
	enum hc_admit_news news;
	uint32_t n, i;

	adm_run(live, w->now);
	while (hc_admit_news(live, &n, &news)) {
		for (i = 0; w->number[i] != n; i++)
			adm_must(i < REQUESTS - 1);
		if (news == HC_ADMIT_NEWS_GRANTED)
			judge_grant(w, i);
		else
			w->number[i] = DONE;
	}
}

/* ---- moves: 5 for each request, and time ---- */

enum verb { ASK, AGAIN, AGAIN_WAIT, COLLECT, RELEASE, VERBS };

static bool ask(struct world *w, uint32_t i)
{
	const struct script *t = &script[i];
	struct hc_admit_piece p[2] = {adm_piece(0, 1, 10, 10), adm_piece(0, 1, 10, 10)};
	struct hc_admit_ask a = adm_ask(t->owner, p, t->place == BOTH ? 2 : 1);
	uint64_t hint;
	int r;

	if (w->number[i] != HC_NONE)
		return false;
	p[0].type = (uint8_t)(t->place == EITHER ? 0 : t->place == SECOND ? 2 : 1);
	p[1].type = 2;
	a.order = t->order;
	a.wait = t->wait;
	a.hold_ns = t->declares ? SEC : 0;
	r = hc_admit_ask(live, w->now, &a, &w->number[i], &hint);
	adm_must(r == 0 || r == (t->wait ? HC_E_IN_PROGRESS : HC_E_AGAIN));
	w->asked[i] = w->now;
	w->order[i] = w->asks++;
	if (!r)
		judge_grant(w, i);
	return true;
}

static bool act(struct world *w, uint32_t i, enum verb verb)
{
	enum hc_admit_state state;
	uint64_t hint;

	if (verb == ASK)
		return ask(w, i);
	if (w->number[i] >= DONE)
		return false;
	state = hc_admit_state(live, w->number[i]);
	switch (verb) {
	case ASK:
	case VERBS: return false;
	case AGAIN:
	case AGAIN_WAIT:
		if (script[i].wait || state == HC_ADMIT_HELD || (verb == AGAIN_WAIT && i % 2))
			return false;
		if ((state == HC_ADMIT_WAITING && verb == AGAIN_WAIT) || w->returns[i] == RETURNS)
			return false;
		w->returns[i]++;
		if (!hc_admit_again(live, w->now, w->number[i], verb == AGAIN_WAIT, HC_NEVER,
				    &hint) &&
		    state != HC_ADMIT_GRANTED)
			judge_grant(w, i);
		return true;
	case COLLECT:
		if (state != HC_ADMIT_GRANTED || live->request[w->number[i]].absent)
			return false;
		hc_admit_collect(live, w->number[i]);
		return true;
	case RELEASE: /* the first two may also give up before they have anything */
		if (i > 1 && state != HC_ADMIT_HELD)
			return false;
		hc_admit_release(live, w->now, w->number[i]);
		w->number[i] = DONE;
		return true;
	}
	return false;
}

static bool move(struct world *w, uint32_t which)
{
	if (which == REQUESTS * VERBS) {
		if (w->ticks == TICKS)
			return false;
		w->ticks++;
		w->now += SEC;
		return true;
	}
	return act(w, which / VERBS, (enum verb)(which % VERBS));
}

/* ---- from here on everybody is well behaved: all must be served ---- */

static bool all_done(const struct world *w)
{
	uint32_t i;

	for (i = 0; i < REQUESTS; i++)
		if (w->number[i] < DONE)
			return false;
	return true;
}

static void finish(struct world *w)
{
	struct hc_admit_use use;
	enum hc_admit_state state;
	uint32_t round, i;
	uint64_t hint;

	for (round = 0; round < 40 && !all_done(w); round++) {
		for (i = 0; i < REQUESTS; i++) {
			if (w->number[i] >= DONE)
				continue;
			state = hc_admit_state(live, w->number[i]);
			if (state == HC_ADMIT_HELD) {
				hc_admit_release(live, w->now, w->number[i]);
				w->number[i] = DONE;
			} else if (state == HC_ADMIT_ASLEEP || state == HC_ADMIT_AWAITED ||
				   (state == HC_ADMIT_GRANTED &&
				    live->request[w->number[i]].absent)) {
				hc_admit_again(live, w->now, w->number[i], true, HC_NEVER, &hint);
			} else if (state == HC_ADMIT_GRANTED) {
				hc_admit_collect(live, w->number[i]);
			}
			settle(w);
		}
		w->now += SEC / 10;
		settle(w);
	}
	adm_must((all_done(w)) && "somebody waits for ever");
	hc_admit_check(live);
	for (i = 0; i < LINKS; i++) {
		hc_admit_link_use(live, i, &use);
		adm_must(!use.used_mbps[0] && !use.used_vcs && !use.waiting);
	}
}

/* ---- which states are the same ---- */

static uint64_t mix(uint64_t h, uint64_t x)
{
	h = (h ^ x) * 0x9e3779b97f4a7c15u;
	return h ^ h >> 29;
}

static uint64_t until(uint64_t when, uint64_t now)
{
	return when == HC_NEVER ? when : when > now ? when - now : 0;
}

static uint64_t mix_request(uint64_t h, const struct world *w, uint32_t i)
{
	const struct hc_adm_request *r;
	uint32_t k, rank = 0;

	if (w->number[i] >= DONE)
		return mix(h, w->number[i]);
	r = &live->request[w->number[i]];
	for (k = 0; k < REQUESTS; k++)
		rank += w->number[k] < DONE && w->order[k] < w->order[i];
	h = mix(h, r->state | (uint64_t)r->aged << 8 | (uint64_t)r->absent << 9 |
			   (uint64_t)rank << 16 | (uint64_t)r->declared << 10);
	h = mix(h, w->now - r->arrived < 3 * SEC ? w->now - r->arrived : 3 * SEC);
	h = mix(h, w->returns[i]);
	h = mix(h, until(r->hint_at, w->now));
	h = mix(h, until(r->wake_at, w->now));
	h = mix(h, r->ngranted ? live->piece[r->first].link : 9);
	return mix(h, r->ngranted ? until(r->granted_at + SEC * 2, w->now) : 0);
}

static uint64_t account_of(uint32_t link, uint64_t owner, uint32_t order)
{
	const struct hc_adm_share *h;
	uint32_t i;

	for (i = 0; i < live->shares.fresh; i++) {
		h = &live->share[i];
		if (h->refs && h->link == link && h->owner == owner && h->flow[order])
			return live->flow[h->flow[order] - 1].account -
			       live->link[link].class[order].now;
	}
	return 1;
}

static uint64_t hash(const struct world *w)
{
	const struct hc_adm_link *l;
	uint64_t h = mix(1, w->ticks);
	uint32_t i, c, owner;

	for (i = 0; i < REQUESTS; i++)
		h = mix_request(h, w, i);
	for (i = 0; i < LINKS; i++) {
		l = &live->link[i];
		h = mix(h, l->used_vcs | (uint64_t)l->releases << 32);
		h = mix(h, l->returned ? l->occupied / l->returned : 0);
		h = mix(h, until(l->booked, w->now));
		for (c = 0; c < 2; c++) {
			h = mix(h, l->class[c].top - l->class[c].now);
			for (owner = 0; owner < 3; owner++)
				h = mix(h, account_of(i, owner, c));
		}
	}
	return h ? h : 1;
}

static bool is_new(uint64_t h)
{
	uint32_t at = (uint32_t)(h >> 20) % TABLE;

	for (; seen[at]; at = (at + 1) % TABLE)
		if (seen[at] == h)
			return false;
	seen[at] = h;
	states++;
	adm_must(states < TABLE / 2);
	return true;
}

static void visit(struct world *w)
{
	hc_admit_check(live);
	save(w);
	copy(&scratch, w);
	finish(&scratch);
	load(w);
}

/* Depth first; next[d] is the next move to try at depth d. */
static void walk(void)
{
	uint32_t next[DEEP] = {0}, deep = 0;

	visit(&level[0]);
	while (deep || next[0] <= REQUESTS * VERBS) {
		if (next[deep] > REQUESTS * VERBS) {
			deep--;
			continue;
		}
		adm_must(deep + 1 < DEEP);
		load(&level[deep]);
		copy(&level[deep + 1], &level[deep]);
		if (!move(&level[deep + 1], next[deep]++))
			continue;
		moves++;
		settle(&level[deep + 1]);
		if (!is_new(hash(&level[deep + 1])))
			continue;
		deep++;
		next[deep] = 0;
		visit(&level[deep]);
	}
}

static void start(uint32_t channels)
{
	const struct hc_admit_settings set = {.limit_percent = 80,
					      .aging_ns = 2 * SEC,
					      .grant_ttl_ns = 2 * SEC,
					      .hint_hold_ns = 1 * SEC};
	struct hc_admit_limits lim = {.links = LINKS, .requests = REQUESTS, .pieces = 8};
	struct hc_admit_link fact = {
		.a = 0, .b = 1, .carries = true, .up = true, .mbps = 100, .vcs = channels};
	struct hc_mem m = {0};
	uint32_t i;

	hc_admit_init(&m, &lim);
	if (!live) {
		bytes = m.used;
		live = aligned_alloc(64, bytes);
		for (i = 0; i < DEEP; i++)
			level[i].memory = malloc(bytes);
	}
	memset(live, 0, bytes);
	m = (struct hc_mem){.base = (uint8_t *)live, .size = bytes};
	adm_must(hc_admit_init(&m, &lim) == live);
	hc_admit_set(live, &set);
	for (i = 0; i < LINKS; i++) {
		fact.type = (uint8_t)(1 + i);
		hc_admit_link_set(live, 1, i, &fact);
	}
	memset(seen, 0, sizeof(seen));
	states = 0;
	level[0] = (struct world){.memory = level[0].memory, .now = SEC};
	for (i = 0; i < REQUESTS; i++)
		level[0].number[i] = HC_NONE;
	adm_run(live, SEC);
}

static void scenario(uint64_t number)
{
	uint32_t i;

	for (i = 0; i < REQUESTS; i++) {
		script[i] = (struct script){.place = (enum place)(number % PLACES),
					    .owner = i % 3,
					    .wait = number / PLACES % 2 == 0,
					    .order = (uint8_t)(number / PLACES / 2 % 2),
					    .declares = number / PLACES / 4 % 2};
		number /= PLACES * 8;
	}
	start(1 + (uint32_t)(number % 2));
	walk();
}

START_TEST(every_order_of_events)
{
	const char *only = getenv("HC_SEED");
	const uint64_t all = 32ull * 32 * 32 * 32 * 2;
	const bool slow = hc_patience(1) > 1; /* sanitized: one world, so that it ends in time */
	uint64_t dice = 20261130, count = hc_long() ? 80 : slow ? 1 : 3, total = 0, n;

	for (; count; count--) {
		adm_roll(&dice, 2);
		n = only ? strtoull(only, NULL, 0) : dice % all;
		scenario(n);
		total += states;
		if (getenv("HC_LOUD"))
			fprintf(stderr, "scenario %llu: %llu states\n", (unsigned long long)n,
				(unsigned long long)states);
	}
	adm_must(total > 1000);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_test(t, every_order_of_events);
}

int main(void)
{
	return hc_suite_run("admit_model", add, hc_long() ? 850 : 60);
}
