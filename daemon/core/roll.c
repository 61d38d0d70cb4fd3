/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What rank tables said of their ranks, kept for people.
 *
 * A table is read by the node that a rank joins at, and only its hash travels. But who is told that
 * rank 3 has not come wants to know where it was to come from, and who is told that two tables
 * differ wants to know where. So each node keeps what the last tables of its own ranks said of
 * each rank: server, address, device, and a hash of the whole entry. Nothing is decided by it; a
 * table that was forgotten costs a name in a text.
 *
 * The home of a domain whose own ranks are late has not seen the table. It asks a node that has,
 * when it is time to tell others who is missing: a domain that is complete at once costs nothing.
 */
#include "roll.h"

#include "emit.h"
#include "home.h"
#include "part.h"
#include "who.h"

#include <stdio.h>
#include <string.h>

#define SLICE 64u /* ranks in one message */

/* Place for one more table, of which nothing is known yet; the oldest makes room. */
static struct hc_roll *begin(struct hc_core *c, uint64_t hash_a, uint64_t hash_b, uint32_t nranks)
{
	struct hc_roll *r = &c->rolls[c->roll_serial++ % HC_ROLLS];

	*r = (struct hc_roll){.hash = {hash_a, hash_b}, .nranks = nranks, .serial = c->roll_serial};
	return r;
}

static struct hc_roll_entry *entries_of(const struct hc_core *c, const struct hc_roll *r)
{
	return &c->roll_entries[(size_t)(r - c->rolls) * c->lim.ranks_per_domain];
}

void hc_roll_learn(struct hc_core *c, const struct hc_roster *t)
{
	struct hc_roll *r;
	struct hc_roll_entry *e;
	uint32_t i;

	if (hc_roll_of(c, t->hash[0], t->hash[1]) || t->nranks > c->lim.ranks_per_domain)
		return;
	r = begin(c, t->hash[0], t->hash[1], t->nranks);
	r->filled = r->nranks;
	e = entries_of(c, r);
	for (i = 0; i < t->nranks; i++, e++) {
		e->hash = t->ranks[i].hash;
		e->addr = t->ranks[i].addr;
		e->host = t->servers[t->ranks[i].server].host_ip;
		e->device = t->ranks[i].device;
		hc_str_copy(hc_str(t->servers[t->ranks[i].server].name), e->server,
			    sizeof(e->server));
	}
}

/* ---- of another node's table ---- */

/* One that is on its way, as far as it has come. */
static struct hc_roll *coming(struct hc_core *c, uint64_t hash_a, uint64_t hash_b)
{
	uint32_t i;

	for (i = 0; i < HC_ROLLS; i++)
		if (c->rolls[i].filled < c->rolls[i].nranks && c->rolls[i].hash[0] == hash_a &&
		    c->rolls[i].hash[1] == hash_b)
			return &c->rolls[i];
	return NULL;
}

static void ask(struct hc_core *c, uint32_t node, uint64_t id, const struct hc_roll *r)
{
	const struct hc_m_roll_ask m = {.id = id, .first = r ? r->filled : 0};

	hc_emit_send(c, node, &hc_desc_roll_ask, &m);
}

void hc_roll_want(struct hc_core *c, struct hc_home *h)
{
	const struct hc_home_busy *b = hc_home_now(c, h);
	const struct hc_place *pl;
	uint32_t i;

	if ((!b->list_a && !b->list_b) || hc_roll_of(c, b->list_a, b->list_b))
		return;
	for (i = 0; i < h->nranks; i++) {
		pl = hc_home_place(c, h, i);
		if (pl->state == HC_W_member_state_EXPECTED || hc_who(c, pl)->node == HC_SELF_NODE)
			continue;
		ask(c, hc_who(c, pl)->node, h->id, coming(c, b->list_a, b->list_b));
		return;
	}
}

static void put_addr(const struct hc_addr *a, uint8_t *family, hc_ct_id16 *to)
{
	*family = a->family;
	memcpy(to->b, a->bytes, a->family == 4 ? 4 : 16);
}

static void get_addr(uint8_t family, const hc_ct_id16 *from, struct hc_addr *a)
{
	*a = (struct hc_addr){0};
	if (family != 4 && family != 6)
		return;
	a->family = family;
	memcpy(a->bytes, from->b, family == 4 ? 4 : 16);
}

void hc_roll_on_ask(struct hc_core *c, uint32_t node, const struct hc_m_roll_ask *m)
{
	const struct hc_part *p = hc_part_of_home(c, node, m->id);
	const struct hc_part_busy *b = p ? hc_part_now(c, p) : NULL;
	const struct hc_roll_entry *e;
	struct hc_m_roll r = {.id = m->id, .first = m->first};
	struct hc_m_roll_rank one;
	uint32_t i;

	if (!p || p->state != HC_W_domain_state_FORMING)
		return;
	r.list_a = b->list_a;
	r.list_b = b->list_b;
	r.nranks = p->nranks;
	for (i = 0; i < SLICE && m->first < p->nranks; i++) {
		e = hc_roll_find(c, b->list_a, b->list_b, m->first + i);
		if (!e)
			break;
		one = (struct hc_m_roll_rank){
			.hash = e->hash, .server = hc_str(e->server), .device = e->device};
		put_addr(&e->addr, &one.family, &one.addr);
		put_addr(&e->host, &one.host_family, &one.host);
		hc_assert(!hc_arr_put(&r.ranks, c->scratch, HC_OUT_BYTES, &hc_desc_roll_rank,
				      HC_PROTO_MAX, &one));
	}
	if (i)
		hc_emit_send(c, node, &hc_desc_roll, &r);
}

/* Those that follow what is here already; false when these are others. */
static bool take(struct hc_core *c, const struct hc_m_roll *m, struct hc_roll *r)
{
	struct hc_roll_entry *e = entries_of(c, r);
	struct hc_arr a = m->ranks;
	struct hc_m_roll_rank one;

	if (m->first != r->filled || m->nranks != r->nranks)
		return false;
	while (r->filled < r->nranks && hc_arr_next(&a, &hc_desc_roll_rank, HC_PROTO_MAX, &one)) {
		e[r->filled] = (struct hc_roll_entry){.hash = one.hash, .device = one.device};
		get_addr(one.family, &one.addr, &e[r->filled].addr);
		get_addr(one.host_family, &one.host, &e[r->filled].host);
		hc_str_copy(one.server, e[r->filled].server, sizeof(e->server));
		r->filled++;
	}
	return r->filled > m->first;
}

void hc_roll_on_roll(struct hc_core *c, uint32_t node, const struct hc_m_roll *m)
{
	struct hc_home *h = hc_home_by_id(c, m->id);
	const struct hc_home_busy *b = h ? hc_home_now(c, h) : NULL;
	struct hc_roll *r;

	if (!h || h->state != HC_W_domain_state_FORMING || m->list_a != b->list_a ||
	    m->list_b != b->list_b || m->nranks != h->nranks ||
	    hc_roll_of(c, m->list_a, m->list_b) || !hc_home_has_node(c, h, node))
		return;
	r = coming(c, m->list_a, m->list_b);
	if (!r && !m->first)
		r = begin(c, m->list_a, m->list_b, m->nranks);
	if (!r || !take(c, m, r))
		return;
	c->domain_changes++;
	if (r->filled < r->nranks)
		ask(c, node, h->id, r);
}

/* ---- find ---- */

static const struct hc_roll *roll(const struct hc_core *c, uint32_t serial)
{
	const struct hc_roll *r = &c->rolls[(serial - 1) % HC_ROLLS];

	return serial && r->serial == serial ? r : NULL;
}

uint32_t hc_roll_of(const struct hc_core *c, uint64_t hash_a, uint64_t hash_b)
{
	uint32_t i;

	for (i = 0; i < HC_ROLLS; i++)
		if (c->rolls[i].nranks && c->rolls[i].filled == c->rolls[i].nranks &&
		    c->rolls[i].hash[0] == hash_a && c->rolls[i].hash[1] == hash_b)
			return c->rolls[i].serial;
	return 0;
}

static const struct hc_roll_entry *entry(const struct hc_core *c, uint32_t serial, uint32_t rank)
{
	const struct hc_roll *r = roll(c, serial);

	if (!r || rank >= r->nranks)
		return NULL;
	return &entries_of(c, r)[rank];
}

const struct hc_roll_entry *hc_roll_find(const struct hc_core *c, uint64_t hash_a, uint64_t hash_b,
					 uint32_t rank)
{
	return entry(c, hc_roll_of(c, hash_a, hash_b), rank);
}

static uint32_t roll_of_home(const struct hc_core *c, const struct hc_home *h)
{
	const struct hc_home_busy *b = hc_home_now(c, h);

	return h->roll ? h->roll : hc_roll_of(c, b->list_a, b->list_b);
}

const struct hc_roll_entry *hc_home_roll(const struct hc_core *c, const struct hc_home *h,
					 uint32_t rank)
{
	return entry(c, roll_of_home(c, h), rank);
}

/* ---- two that differ ---- */

static void say_entry(const struct hc_roll_entry *e, char *text, size_t bytes)
{
	char addr[HC_ADDR_TEXT_MAX];

	hc_addr_text(&e->addr, addr);
	snprintf(text, bytes, "%s%sdevice %u of server %s", addr, addr[0] ? ", " : "", e->device,
		 e->server);
}

static void say_two(uint32_t rank, const struct hc_roll_entry *x, const struct hc_roll_entry *y,
		    char *text, size_t bytes)
{
	char one[128], two[128];

	say_entry(x, one, sizeof(one));
	say_entry(y, two, sizeof(two));
	if (strcmp(one, two))
		snprintf(text, bytes, "; the first that differs is rank %u: %s against %s", rank,
			 one, two);
	else
		snprintf(text, bytes,
			 "; the first that differs is rank %u (%s), in what else is said of it",
			 rank, one);
}

static void say_all(const struct hc_core *c, uint32_t x, uint32_t y, char *text, size_t bytes)
{
	const struct hc_roll_entry *one, *two;
	uint32_t i;

	for (i = 0; (one = entry(c, x, i)) && (two = entry(c, y, i)); i++)
		if (one->hash != two->hash) {
			say_two(i, one, two, text, bytes);
			return;
		}
	snprintf(text, bytes, "; they differ in the number of ranks: %u against %u",
		 roll(c, x)->nranks, roll(c, y)->nranks);
}

bool hc_roll_differ(const struct hc_core *c, uint32_t known, const struct hc_roll_other *other,
		    char *text, size_t bytes)
{
	const struct hc_roll *r = roll(c, known);
	const uint32_t y = hc_roll_of(c, other->list_a, other->list_b);
	const struct hc_roll_entry *e = entry(c, known, other->rank);
	char one[128];

	text[0] = '\0';
	if (!r || (!other->list_a && !other->list_b) ||
	    (r->hash[0] == other->list_a && r->hash[1] == other->list_b))
		return false;
	if (y) {
		say_all(c, known, y, text, bytes);
	} else if (e && other->entry && e->hash != other->entry) {
		say_entry(e, one, sizeof(one));
		snprintf(text, bytes, "; they differ in rank %u: %s against device %u there",
			 other->rank, one, other->device);
	} else if (r->nranks != other->nranks) {
		snprintf(text, bytes, "; they differ in the number of ranks: %u against %u",
			 r->nranks, other->nranks);
	}
	return true;
}

bool hc_home_differ(const struct hc_core *c, const struct hc_home *h,
		    const struct hc_roll_other *other, char *text, size_t bytes)
{
	return hc_roll_differ(c, roll_of_home(c, h), other, text, bytes);
}
