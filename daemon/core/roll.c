/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What rank tables said of their ranks, kept for people.
 *
 * A table is read by the node that a rank joins at, and only its hash travels. But who is told that
 * rank 3 has not come wants to know where it was to come from, and who is told that two tables
 * differ wants to know where. So each node keeps what the last tables of its own ranks said of
 * each rank: server, address, device, and a hash of the whole entry. Nothing is decided by it; a
 * table that was forgotten costs a name in a text.
 */
#include "roll.h"

#include "home.h"

#include <stdio.h>
#include <string.h>

void hc_roll_learn(struct hc_core *c, const struct hc_roster *t)
{
	struct hc_roll *r;
	struct hc_roll_entry *e;
	uint32_t i;

	if (hc_roll_of(c, t->hash[0], t->hash[1]) || t->nranks > c->lim.ranks_per_domain)
		return;
	i = c->roll_serial++ % HC_ROLLS;
	r = &c->rolls[i];
	e = &c->roll_entries[(size_t)i * c->lim.ranks_per_domain];
	*r = (struct hc_roll){
		.hash = {t->hash[0], t->hash[1]}, .nranks = t->nranks, .serial = c->roll_serial};
	for (i = 0; i < t->nranks; i++, e++) {
		e->hash = t->ranks[i].hash;
		e->addr = t->ranks[i].addr;
		e->host = t->servers[t->ranks[i].server].host_ip;
		e->device = t->ranks[i].device;
		hc_str_copy(hc_str(t->servers[t->ranks[i].server].name), e->server,
			    sizeof(e->server));
	}
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
		if (c->rolls[i].nranks && c->rolls[i].hash[0] == hash_a &&
		    c->rolls[i].hash[1] == hash_b)
			return c->rolls[i].serial;
	return 0;
}

static const struct hc_roll_entry *entry(const struct hc_core *c, uint32_t serial, uint32_t rank)
{
	const struct hc_roll *r = roll(c, serial);

	if (!r || rank >= r->nranks)
		return NULL;
	return &c->roll_entries[(size_t)(r - c->rolls) * c->lim.ranks_per_domain + rank];
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
