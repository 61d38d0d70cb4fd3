/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arrivals that say something else than others; see home.h.
 *
 * While a domain forms, whoever does not agree fails it for all, and both sides are named. Once it
 * has formed, who comes with another table is alone wrong: the name is taken, and the text says
 * where its table differs from theirs. That is known at the home of those who have the name. Where
 * its table names another home, the node that it came at refuses it when another process there is
 * that very rank (part_join.c). A rank that nobody is there waits: those who have the name may be
 * about to leave and come again, as in a job that grows. But it is logged at once, and said when
 * time is over, that the others are elsewhere.
 */
#include "home.h"

#include "emit.h"
#include "part.h"
#include "who.h"

#include <stdio.h>
#include <string.h>

/* ---- while it forms ---- */

/* The first rank that has come, to speak for the others; HC_NONE when there is none. */
static uint32_t first_here(struct hc_core *c, struct hc_home *h)
{
	uint32_t i;

	for (i = 0; i < h->nranks; i++)
		if (hc_home_place(c, h, i)->state == HC_W_member_state_JOINED)
			return i;
	return HC_NONE;
}

bool hc_home_agrees(const struct hc_core *c, const struct hc_home *h, const struct hc_m_arrive *m)
{
	const struct hc_home_busy *b = hc_home_now(c, h);
	const struct hc_wish *w = &c->wishes[hc_home_number(c, h)];

	if (h->nranks && h->nranks != m->nranks)
		return false;
	return !h->arrived ||
	       (b->list_a == m->list_a && b->list_b == m->list_b && h->priority == m->priority &&
		h->weight == m->weight && w->channels == m->channels &&
		w->mbps == m->channel_mbps && w->wait == m->channel_wait);
}

static void tables_differ(struct hc_core *c, const struct hc_home *h, const struct hc_m_arrive *m,
			  const char *one, const char *two, char *text, size_t bytes)
{
	const struct hc_home_busy *b = hc_home_now(c, h);
	const struct hc_roll_other said = HC_ROLL_OTHER(m);
	char where[320];
	int n = snprintf(text, bytes,
			 "the ranks have different tables or member lists: %s has %016llx, %s has "
			 "%016llx",
			 one, (unsigned long long)b->list_a, two, (unsigned long long)m->list_a);

	if (n < 0 || (size_t)n >= bytes)
		return;
	hc_home_differ(c, h, &said, where, sizeof(where));
	hc_str_copy(hc_str(where), text + n, bytes - (size_t)n);
}

void hc_home_contradiction(struct hc_core *c, struct hc_home *h, uint32_t node,
			   const struct hc_m_arrive *m, char *text, size_t bytes)
{
	struct hc_home_busy *b = hc_home_busy(c, h);
	uint32_t other = h->nranks ? first_here(c, h) : HC_NONE;
	const struct hc_who *who = other == HC_NONE ? NULL : hc_who(c, hc_home_place(c, h, other));
	const struct hc_wish *w = &c->wishes[hc_home_number(c, h)];
	char one[HC_NAME_MAX + 64] = "the maker of the root info", two[HC_NAME_MAX + 64];

	if (who)
		HC_TEXT(one, "rank %u (pid %u on node %s)", other, who->pid,
			c->nodes[who->node].name);
	HC_TEXT(two, "rank %u (pid %u on node %s)", m->rank, m->pid, c->nodes[node].name);
	if (h->nranks && h->nranks != m->nranks)
		snprintf(text, bytes, "the ranks disagree on their number: %s says %u, %s says %u",
			 one, h->nranks, two, m->nranks);
	else if (b->list_a != m->list_a || b->list_b != m->list_b)
		tables_differ(c, h, m, one, two, text, bytes);
	else if (h->priority == m->priority && h->weight == m->weight)
		snprintf(text, bytes,
			 "the ranks disagree on the channels to begin with: %s says %u of %u MB/s, "
			 "%s says %u of %u MB/s",
			 one, w->channels, w->mbps, two, m->channels, m->channel_mbps);
	else
		snprintf(text, bytes,
			 "the ranks disagree on class and weight: %s says %u, %u; %s says %u, %u",
			 one, h->priority, h->weight, two, m->priority, m->weight);
}

/* ---- when those who have the name have formed ---- */

void hc_home_name_taken(struct hc_core *c, const struct hc_m_arrive *m, char *text, size_t bytes)
{
	const struct hc_home *h = hc_home_named(c, m->uid, false, m->name);
	const struct hc_roll_other said = HC_ROLL_OTHER(m);
	const size_t n = strlen(text);
	char where[320];

	if (!h || !hc_home_differ(c, h, &said, where, sizeof(where)) || n >= bytes)
		return;
	snprintf(text + n, bytes - n, "; its ranks had another table%s", where);
}

void hc_home_say_rival(struct hc_core *c, const struct hc_home *h, struct hc_str name,
		       const struct hc_roll_other *said, char *text, size_t bytes)
{
	const struct hc_home_busy *b = hc_home_now(c, h);
	const struct hc_part *p;
	char where[320];

	text[0] = '\0';
	p = name.len ? hc_part_rival(c, b->key_a, b->key_b, said, where, sizeof(where)) : NULL;
	if (p)
		snprintf(text, bytes, "; domain %016llx (%s) has that name and another table%s",
			 (unsigned long long)p->id, hc_word_domain_state(p->state), where);
}

void hc_home_log_rival(struct hc_core *c, const struct hc_home *h, const struct hc_m_arrive *m)
{
	const struct hc_roll_other said = HC_ROLL_OTHER(m);
	char text[HC_TEXT_MAX + 1], rival[512];

	hc_home_say_rival(c, h, m->name, &said, rival, sizeof(rival));
	if (!rival[0])
		return;
	HC_TEXT(text, "%.*s: forms with rank %u%s", (int)m->name.len, m->name.p, m->rank, rival);
	hc_emit_log(c, HC_LOG_WARN, 0, h->id, m->rank, text);
}
