/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a domain is to begin with: reserved while it activates, as one gang; see channel.h.
 *
 * PREPARE brings the wish. Each node reserves for its own ranks: from each to the next, and for
 * one whose neighbour is elsewhere its way out of the node. All of it or nothing; the domain waits
 * or fails with the admission's hint, and the place is kept for a domain of the same user with the
 * same wish on the same devices. Neither end of such a channel is given to anybody: the first call
 * of a neighbour takes it. It goes with the domain, also with one that never was.
 */
#include "channel.h"

#include "emit.h"
#include "part.h"
#include "user.h"

#include <stdio.h>
#include <string.h>

static bool is_here(struct hc_core *c, const struct hc_part *p, uint32_t rank)
{
	return hc_part_find_seat(c, p, rank) != HC_NONE;
}

static uint32_t wanted(struct hc_core *c, const struct hc_part *p, uint32_t channels)
{
	uint32_t i, rank, n = 0;

	for (i = p->seats; p->nranks > 1 && i < p->seats + p->nseats; i++) {
		rank = c->seats[i].rank;
		n += is_here(c, p, (rank + p->nranks - 1) % p->nranks) ? 1 : 2;
	}
	return n && channels > HC_ADMIT_GANG_MAX / n ? HC_NONE : n * channels;
}

static uint64_t key_of(struct hc_core *c, const struct hc_part *p, const struct hc_m_prepare *m)
{
	const struct hc_hash_key k = {(uint64_t)p->uid << 32 | p->nranks,
				      (uint64_t)m->channels << 32 | m->channel_mbps};
	uint64_t sum = 0;
	uint32_t i, pair[2];

	for (i = p->seats; i < p->seats + p->nseats; i++) {
		pair[0] = c->seats[i].rank;
		pair[1] = c->seats[i].device;
		sum += hc_hash(&k, pair, sizeof(pair)); /* seats come in any order */
	}
	return hc_hash(&k, &sum, sizeof(sum));
}

struct reserving {
	struct hc_core *c;
	struct hc_part *p;
	const struct hc_m_prepare *m;
	struct hc_want *w;
	uint32_t n;
};

/* The same on both nodes, when its ends are on two. */
static uint64_t id_of(const struct reserving *r, uint32_t from, uint32_t k)
{
	const struct hc_hash_key key = {r->p->id, r->p->epoch};
	const uint32_t words[2] = {from, k};
	const uint64_t id = hc_hash(&key, words, sizeof(words));

	return id && !hc_channel_by_id(r->c, id) ? id : 0;
}

static void add(struct reserving *r, uint32_t from)
{
	struct hc_core *c = r->c;
	const uint32_t to = (from + 1) % r->p->nranks;
	const bool across = !is_here(c, r->p, from) || !is_here(c, r->p, to);
	struct hc_channel *ch;
	uint32_t k;

	for (k = 0; k < r->m->channels; k++) {
		ch = hc_channel_make(c, r->p, across ? id_of(r, from, k) : 0, from, to);
		hc_assert(ch);
		ch->mbps[0] = r->m->channel_mbps;
		ch->hold_ms = r->m->channel_hold_ms;
		ch->flags = 1; /* no rings, until its first end says so */
		ch->reserved = true;
		hc_want_ref(c, r->w, r->n, ch, 0);
		hc_channel_pair(c, ch);
		c->chan->ask[r->n++] = hc_channel_admit_piece(c, r->p, ch);
	}
}

static void add_all(struct reserving *r)
{
	const uint32_t n = r->p->nranks;
	uint32_t i, rank;

	for (i = r->p->seats; i < r->p->seats + r->p->nseats; i++) {
		rank = r->c->seats[i].rank;
		add(r, rank);
		if (!is_here(r->c, r->p, (rank + n - 1) % n))
			add(r, (rank + n - 1) % n);
	}
}

/* Refused: what was made for it goes, a ticket stays. */
static void give_up(struct reserving *r, int code, uint64_t key, uint32_t request)
{
	struct hc_core *c = r->c;
	struct hc_want *t = NULL;
	char text[160];

	if (code == HC_E_AGAIN && !c->chan->ticket_of[request]) {
		if (!hc_user_may_hold(c, r->p->uid, HC_HOLD_WAITING, 1, text, sizeof(text)))
			t = hc_want_ticket(c, key, request);
		if (!t)
			hc_admit_release(c->admit, c->now, request);
	}
	if (t) {
		t->kind = WANT_DOMAIN;
		t->uid = r->p->uid;
		t->priority = r->p->priority;
		t->domain = r->p->id;
		t->mbps = (uint64_t)r->n * r->m->channel_mbps;
		t->lost_rank = r->n;
		hc_want_index(c, t);
		hc_want_waits(c, t, HC_NEVER);
	}
	r->w->gang = 0;
	r->w->kind = WANT_GANG; /* its caller is answered by the return */
	hc_want_fail(c, r->w, 0, "");
}

static void bind_all(struct reserving *r, uint32_t request)
{
	struct hc_core *c = r->c;
	uint32_t i;

	for (i = 0; i < r->n; i++)
		hc_channel_bind(c, &c->chan->at[REF_CHANNEL(c->chan->refs[r->w->refs + i])],
				request, i);
}

static int open_want(struct reserving *r, uint32_t count, char *text, size_t bytes)
{
	struct hc_core *c = r->c;
	int code;

	if (count == HC_NONE || count > HC_ADMIT_GANG_MAX) {
		snprintf(text, bytes, "%u channels from each of %u ranks are more than %u",
			 r->m->channels, r->p->nranks, HC_ADMIT_GANG_MAX);
		return HC_E_LIMIT;
	}
	code = hc_user_may_hold(c, r->p->uid, HC_HOLD_CHANNELS, count, text, bytes);
	if (code)
		return code;
	r->w = c->chan->pool.used + count <= c->chan->nchannels
		       ? hc_want_make(c, WANT_DOMAIN, count)
		       : NULL;
	if (r->w)
		return 0;
	snprintf(text, bytes, "too many channels are used or asked for on this node");
	return HC_E_LIMIT;
}

int hc_channel_reserve(struct hc_core *c, struct hc_part *p, const struct hc_m_prepare *m,
		       uint32_t *retry_ms, char *text, size_t bytes)
{
	struct reserving r = {.c = c, .p = p, .m = m};
	const uint32_t count = wanted(c, p, m->channels);
	const uint64_t key = key_of(c, p, m);
	struct hc_want_words words = {.hold_ms = m->channel_hold_ms, .wait = m->channel_wait == 1};
	uint32_t request = HC_NONE;
	int code;

	if (!count)
		return 0;
	code = open_want(&r, count, text, bytes);
	if (code)
		return code;
	r.w->part = hc_part_number(c, p);
	r.w->domain = p->id;
	r.w->uid = p->uid;
	r.w->priority = p->priority;
	r.w->gang = m->persist == 1;
	r.w->key = key;
	add_all(&r);
	words.npieces = r.n;
	code = hc_want_ask(c, p, &words, hc_want_ticket_find(c, key), &request, retry_ms);
	if (code && code != HC_E_IN_PROGRESS) {
		hc_channel_why_not(c, p->uid, c->chan->ask, r.n, text, bytes);
		if (code != HC_E_AGAIN &&
		    !hc_channel_over_quota(c, p->uid, c->chan->ask, r.n, true, text, bytes))
			snprintf(text, bytes,
				 "no link could ever carry %u channels of %u MB/s "
				 "from each rank to the next",
				 m->channels, m->channel_mbps);
		give_up(&r, code, key, request);
		return code;
	}
	bind_all(&r, request);
	hc_want_index(c, r.w);
	if (code)
		hc_want_waits(c, r.w, HC_NEVER); /* the home has the limit */
	else
		hc_channel_granted(c, request);
	return HC_E_IN_PROGRESS;
}

void hc_channel_reserved(struct hc_core *c, struct hc_want *w, int code, const char *text)
{
	hc_part_reserved(c, hc_part(c, w->part), w->gang != 0, code, HC_NONE, text);
}
