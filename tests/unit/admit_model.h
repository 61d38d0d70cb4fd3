/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The small model of admission (test_admit_model.c): a script and a world, the memory of a state,
 * and which states are the same.
 *
 * A state is told by a hash of what decides, so that two states of one hash go the same ways; a
 * test tries that. It is not the memory itself, for much in it decides nothing any more. Left out:
 *
 * - what hints are computed from, since they are tried instead;
 * - times: how many seconds off, and all beyond the last one are alike, for nothing is due there;
 * - the account of an owner once no other owner may still come to that class of that link;
 * - tickets as numbers: the order of each two alone, and of those who have what they wanted only
 *   while they may lapse (equal deadlines come in order of number);
 * - which channel of a link it is, which entry, share and flow, and everything that is counted.
 *
 * Numbers of requests and pieces are not used twice in a script, as in a daemon with many of them;
 * else which one comes next would be part of each state. So a number is also the order of asking.
 *
 * To go back in a walk is to copy the memory back, so only lines of it that can change are copied.
 * The scheduler always lives in the same place, since it holds pointers.
 */
#ifndef HC_TEST_ADMIT_MODEL_H
#define HC_TEST_ADMIT_MODEL_H

#include "admit_judge.h"

#include <stddef.h>

enum { REQUESTS = 4, LINKS = 2, OWNERS = 3, CLASSES = 2, TICKS = 2, RETURNS = 1 };
enum { LINE = 64, BYTES = 8192 };
enum place { FIRST, SECOND, BOTH, EITHER, PLACES };
enum { KINDS = PLACES * CLASSES * 2, SCRIPTS = KINDS * KINDS * KINDS * KINDS * 2 };
enum { CANONICAL = 33216 }; /* scripts that names do not make the same; see canonical() */

#define AGING (2 * SEC)
#define DONE  0xfffffffeu

/* Of the requests; two of them are of one owner. */
static const uint32_t owner_of[REQUESTS] = {0, 0, 1, 2};
static const uint8_t owners_of[1 << REQUESTS] = {0, 1, 1, 1, 2, 3, 3, 3, 4, 5, 5, 5, 6, 7, 7, 7};

struct script {
	uint32_t number;
	struct request {
		uint32_t kind; /* place + 4 * class + 8 * leaves a ticket */
		enum place place;
		uint8_t order, links; /* links: that it could use, a bit for each */
		bool ticket;
	} of[REQUESTS];
	uint32_t channels;               /* of each link */
	uint32_t pieces, entries;        /* of all requests */
	uint32_t shares, flows;          /* what owners may have of links, and of classes there */
	uint8_t concern[LINKS][CLASSES]; /* requests that may come there, a bit for each */
};

struct world {
	uint64_t now;
	uint32_t number[REQUESTS]; /* HC_NONE: has not asked; DONE */
	uint32_t ticks, returns;
};

static struct script script;
static uint64_t owner_name[OWNERS] = {1, 2, 3};
static struct hc_admit *live;
static uint16_t line[BYTES / LINE]; /* that can change */
static uint32_t lines;

/* As adm_must, and says of which script. */
#define must(x)                                                                                    \
	do {                                                                                       \
		if (!(x))                                                                          \
			ck_abort_msg("script %u (HC_SEED): not so: %s", script.number, #x);        \
	} while (0)

/* ---- scripts ---- */

static uint32_t owners_in(uint32_t requests)
{
	return (uint32_t)__builtin_popcount(owners_of[requests]);
}

static void read_script(uint32_t number)
{
	struct request *q;
	uint32_t i, l;

	script = (struct script){.number = number};
	for (i = 0; i < REQUESTS; i++, number /= KINDS) {
		q = &script.of[i];
		q->kind = number % KINDS;
		q->place = (enum place)(q->kind % PLACES);
		q->order = (uint8_t)(q->kind / PLACES % CLASSES);
		q->ticket = q->kind / PLACES / CLASSES;
		q->links = (uint8_t)(q->place == FIRST ? 1 : q->place == SECOND ? 2 : 3);
		for (l = 0; l < LINKS; l++)
			script.concern[l][q->order] |= (uint8_t)((q->links >> l & 1) << i);
		script.pieces += q->place == BOTH ? 2 : 1;
		script.entries += q->links == 3 ? 2 : 1;
	}
	script.channels = 1 + number;
	for (i = 0; i < LINKS * CLASSES; i++)
		script.flows += owners_in(script.concern[i / CLASSES][i % CLASSES]);
	for (i = 0; i < LINKS; i++)
		script.shares += owners_in(script.concern[i][0] | script.concern[i][1]);
}

/*
 * Names decide nothing, so of scripts that differ by names alone one is walked, the least of them.
 *
 * - Requests of a script are asked in every order, and the scheduler does not see which of the
 *   script it is: those of the first owner may change places, and so may the two other owners, for
 *   of owners it is only compared whether they are the same.
 * - The two links may change places where all requests are for one of them that they name. Else
 *   not: of two links that are equal the lower number is taken by one who is for either, and a gang
 *   names its links in an order, in which they are given back and looked at.
 * - A class is only compared with others: where all are of one class it may be the low one.
 */
static uint32_t number_of(uint32_t kind[REQUESTS], uint32_t channels)
{
	uint32_t i, k, number = channels - 1;

	for (i = 0; i < REQUESTS; i += 2)
		if (kind[i] < kind[i + 1]) {
			k = kind[i];
			kind[i] = kind[i + 1];
			kind[i + 1] = k;
		}
	for (i = REQUESTS; i--;)
		number = number * KINDS + kind[i];
	return number;
}

static bool is_plain(void)
{
	uint32_t i;

	for (i = 0; i < REQUESTS && script.of[i].place <= SECOND; i++)
		;
	return i == REQUESTS;
}

static bool is_high(void)
{
	uint32_t i;

	for (i = 0; i < REQUESTS && script.of[i].order; i++)
		;
	return i == REQUESTS;
}

static uint32_t canonical(uint32_t number)
{
	uint32_t kind[REQUESTS], other[REQUESTS], i, a, b;

	read_script(number);
	for (i = 0; i < REQUESTS; i++) {
		kind[i] = script.of[i].kind - (is_high() ? (uint32_t)PLACES : 0);
		other[i] = is_plain() ? kind[i] ^ (FIRST ^ SECOND) : kind[i];
	}
	a = number_of(kind, script.channels);
	b = number_of(other, script.channels);
	return a < b ? a : b;
}

/* ---- memory ---- */

static void covers(bool *marked, const void *at, size_t size)
{
	const size_t from = (size_t)((const uint8_t *)at - (const uint8_t *)live);
	size_t i;

	for (i = from / LINE; i <= (from + size - 1) / LINE; i++)
		marked[i] = true;
}

#define COVERS(array, count) covers(marked, array, (count) * sizeof(*(array)))
#define COVERS_FROM(o, a, b)                                                                       \
	covers(marked, &(o)->a, offsetof(__typeof__(*(o)), b) - offsetof(__typeof__(*(o)), a))

static void mark_queues(const struct hc_admit *s, bool *marked)
{
	uint32_t i;

	for (i = 0; i < LINKS; i++) {
		COVERS_FROM(&s->link[i], known, class[CLASSES]);
		covers(marked, &s->link[i].set,
		       sizeof(s->link[i]) - offsetof(struct hc_adm_link, set));
		COVERS(s->vcs + (size_t)i * (HC_ADMIT_VCS_MAX / 64), 1);
	}
	COVERS(s->flow_node, script.flows);
	COVERS(s->set_node, script.entries);
	COVERS(s->end_node, script.pieces);
	COVERS(s->absent_node, script.pieces);
	COVERS(s->in_flow.at, script.entries);
	COVERS(s->in_link.at, script.pieces);
	COVERS(s->in_idle.at, script.flows);
	COVERS(s->in_dirty.at, LINKS);
	COVERS(s->in_news.at, REQUESTS);
}

/* Once for a scheduler: what save and load copy. */
static void memory_init(size_t bytes)
{
	const struct hc_admit *s = live;
	bool *marked = calloc(bytes / LINE + 1, sizeof(*marked));
	size_t i;

	COVERS_FROM(s, tickets, request);
	COVERS_FROM(s, idle, vcs);
	COVERS(&s->npieces, 1);
	COVERS(s->requests.next, REQUESTS);
	COVERS(s->entries.next, script.entries);
	COVERS(s->flows.next, script.flows);
	COVERS(s->shares.next, script.shares);
	COVERS(s->spans.next, script.pieces);
	COVERS(s->request, REQUESTS);
	COVERS(s->piece, script.pieces);
	COVERS(s->entry, script.entries);
	COVERS(s->share, script.shares);
	COVERS(s->flow, script.flows);
	mark_queues(s, marked);
	COVERS(s->owners.bucket, s->owners.used);
	COVERS(s->owners.link, script.shares);
	COVERS(s->owners.keys, script.shares);
	COVERS(s->timers.heap, REQUESTS);
	COVERS(s->timers.place, REQUESTS);
	lines = 0;
	for (i = 0; i <= bytes / LINE; i++)
		if (marked[i]) {
			must(lines < BYTES / LINE && i <= UINT16_MAX);
			line[lines++] = (uint16_t)i;
		}
	free(marked);
}

/* Nothing beyond what is copied is in use. */
static bool memory_holds(const struct hc_admit *s)
{
	return s->requests.fresh <= REQUESTS && s->spans.fresh <= script.pieces &&
	       s->entries.fresh <= script.entries && s->shares.fresh <= script.shares &&
	       s->flows.fresh <= script.flows && s->owners.cap >= s->owners.used &&
	       2 * script.shares <= s->owners.used;
}

static void save(uint8_t to[BYTES])
{
	uint32_t i;

	for (i = 0; i < lines; i++)
		memcpy(to + (size_t)i * LINE, (const uint8_t *)live + (size_t)line[i] * LINE, LINE);
}

static void load(const uint8_t from[BYTES])
{
	uint32_t i;

	for (i = 0; i < lines; i++)
		memcpy((uint8_t *)live + (size_t)line[i] * LINE, from + (size_t)i * LINE, LINE);
}

/* ---- which states are the same ---- */

static inline uint64_t mix(uint64_t h, uint64_t x)
{
	h = (h ^ x) * 0x9e3779b97f4a7c15u;
	return h ^ h >> 32;
}

/* Seconds from now, up to the first that does not come any more: 2 bits. */
static uint64_t until(const struct world *w, uint64_t when)
{
	const uint64_t left = TICKS - w->ticks + 1;

	if (when <= w->now)
		return 0;
	return (when - w->now) / SEC < left ? (when - w->now) / SEC : left;
}

static bool has_got(const struct hc_adm_request *r)
{
	return r->state == HC_ADMIT_HELD || (r->state == HC_ADMIT_GRANTED && !r->absent);
}

/* The order of each two, where it may still matter: 2 bits for each before it. */
static uint64_t order_of(const struct world *w, uint32_t i)
{
	const struct hc_adm_request *r = &live->request[w->number[i]], *other;
	const bool last = w->ticks == TICKS;
	uint64_t x = 0;
	uint32_t k;

	if (r->state == HC_ADMIT_HELD || (last && has_got(r)))
		return 0;
	for (k = 0; k < i; k++) {
		if (w->number[k] >= DONE)
			continue;
		other = &live->request[w->number[k]];
		if (other->state == HC_ADMIT_HELD ||
		    (last && (has_got(other) || !(script.of[i].links & script.of[k].links))))
			continue;
		x |= (1ull + (w->number[k] < w->number[i])) << 2 * k;
	}
	return x;
}

static uint64_t request_word(const struct world *w, uint32_t i)
{
	const struct hc_adm_request *r = &live->request[w->number[i]];
	const bool same = w->ticks == TICKS && has_got(r); /* nobody lapses any more */
	const bool away = r->absent || r->state == HC_ADMIT_ASLEEP || r->state == HC_ADMIT_AWAITED;
	uint64_t x = (same ? HC_ADMIT_HELD : r->state) | 8u | (uint64_t)r->aged << 4 |
		     (uint64_t)r->absent << 5;
	uint32_t n;

	HC_ADM_EACH_ENTRY(live, r, n)
	x |= (uint64_t)live->entry[n - 1].armed << (6 + live->entry[n - 1].link);
	if (r->ngranted)
		x |= (uint64_t)(live->piece[r->first].link + 1) << 8;
	if (away || r->state == HC_ADMIT_WAITING)
		x |= until(w, r->arrived + AGING) << 10;
	if (away)
		x |= until(w, r->wake_at) << 12 | until(w, r->hint_at) << 14 |
		     (r->hint_at == HC_NEVER ? 1 + until(w, r->refused_at + AGING) : 0) << 16;
	return x | order_of(w, i) << 20;
}

static const struct hc_adm_flow *flow_of(uint32_t link, uint64_t owner, uint32_t order)
{
	const struct hc_adm_share *h;
	uint32_t i;

	for (i = 0; i < live->shares.fresh; i++) {
		h = &live->share[i];
		if (h->refs && h->link == link && h->owner == owner)
			return h->flow[order] ? &live->flow[h->flow[order] - 1] : NULL;
	}
	return NULL;
}

/* Accounts of those owners, if there are two or more, from where those begin who come anew. */
static uint64_t mix_accounts(uint64_t h, uint32_t link, uint32_t order, uint32_t owners)
{
	const struct hc_adm_class *c = &live->link[link].class[order];
	const struct hc_adm_flow *f;
	uint32_t i;

	if (!(owners & (owners - 1)))
		return h;
	h = mix(h, c->top - c->now);
	for (i = 0; i < OWNERS; i++) {
		if (!(owners >> i & 1))
			continue;
		f = flow_of(link, owner_name[i], order);
		if (!f)
			h = mix(h, 3); /* no account is so near to another */
		else
			h = mix(h,
				f->entries.count || f->account > c->now ? f->account - c->now : 0);
	}
	return h;
}

/* A ticket that may come back without waiting: the first owner's. */
static bool may_return(uint32_t i)
{
	return script.of[i].ticket && owner_of[i] == 0;
}

/* Those who may still be in a queue. */
static uint32_t to_come(const struct world *w)
{
	uint32_t i, who = 0;

	for (i = 0; i < REQUESTS; i++)
		if (w->number[i] == HC_NONE ||
		    (w->number[i] != DONE && !has_got(&live->request[w->number[i]])))
			who |= 1u << i;
	return who;
}

static uint64_t hash_of(const struct world *w)
{
	const uint32_t who = to_come(w);
	uint32_t i, c, returning = 0;
	uint64_t h;

	for (i = 0; i < REQUESTS; i++)
		returning |= may_return(i) ? who & 1u << i : 0;
	h = mix(1, w->ticks | (returning ? w->returns << 8 : 0));
	for (i = 0; i < REQUESTS; i++)
		h = mix(h, w->number[i] >= DONE ? w->number[i] : request_word(w, i));
	for (i = 0; i < LINKS; i++)
		for (c = 0; c < CLASSES; c++)
			h = mix_accounts(h, i, c, owners_of[who & script.concern[i][c]]);
	return h ? h : 1;
}

#endif
