/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lives of nodes, the sweep, and SUSPENDED at homes; see away.h. What a part does is in
 * part_away.c, the end of what was lost in home_life.c.
 *
 * SUSPENDED is not stored: it is what the home sees of the network, and a restarted daemon looks
 * anew. A domain that drains goes on draining, one that is DAMAGED stays so; only the end of a
 * life is of account to them.
 */
#include "away.h"

#include "ask.h"
#include "emit.h"
#include "home.h"
#include "part.h"
#include "sync.h"
#include "told.h"
#include "who.h"

#include <stdio.h>
#include <string.h>

#define SLICE 64u /* domains looked at in one unit */

/* ---- lives ---- */

static void sweep(struct hc_core *c)
{
	uint32_t i;

	c->sweeping = c->nnodes > 1; /* a node that knows no other: nothing of it is away */
	c->at_rest = false;
	c->sweep = 0;
	c->away_at = HC_NEVER;
	for (i = 1; i < c->nnodes; i++) {
		const struct hc_known_node *n = &c->nodes[i];

		if (n->away && !n->given_up && n->away_since + c->set.suspend_limit_ns < c->away_at)
			c->away_at = n->away_since + c->set.suspend_limit_ns;
		if (n->expected && n->expect_until < c->away_at)
			c->away_at = n->expect_until;
	}
}

void hc_away_gone(struct hc_core *c, uint32_t node, const char *why)
{
	struct hc_known_node *n = &c->nodes[node];

	if (n->away)
		return;
	n->away = true;
	n->expected = false;
	n->away_since = c->now;
	hc_str_copy(hc_str(why), n->why, sizeof(n->why));
	sweep(c);
}

static void end_life(struct hc_known_node *n, uint16_t kind, const char *why)
{
	n->life++;
	n->lost_kind = kind;
	hc_str_copy(hc_str(why), n->why, sizeof(n->why));
}

void hc_away_back(struct hc_core *c, uint32_t node, uint64_t incarnation)
{
	struct hc_known_node *n = &c->nodes[node];
	const bool reborn = n->incarnation && n->incarnation != incarnation;

	n->incarnation = incarnation;
	n->expected = false;
	if (!n->away && !reborn)
		return;
	n->away = n->given_up = false;
	if (reborn)
		end_life(n, HC_W_event_code_NODE_REBORN, "began anew, its earlier state is lost");
	sweep(c);
}

void hc_away_expect(struct hc_core *c)
{
	uint32_t i;

	for (i = 1; i < c->nnodes; i++)
		c->nodes[i].expect_until = c->now + c->set.daemon_grace_ns;
	sweep(c);
}

static void not_come(struct hc_core *c)
{
	char text[160];
	uint32_t i;

	for (i = 1; i < c->nnodes; i++)
		if (c->nodes[i].expected && c->nodes[i].expect_until <= c->now) {
			HC_TEXT(text, "not connected within %llu ms of this daemon's start",
				(unsigned long long)(c->set.daemon_grace_ns / 1000000u));
			hc_away_gone(c, i, text);
		}
}

void hc_away_timeout(struct hc_core *c)
{
	char why[sizeof(c->nodes[0].why)], text[sizeof(why)];
	uint32_t i;

	not_come(c);
	for (i = 1; i < c->nnodes; i++) {
		struct hc_known_node *n = &c->nodes[i];

		if (!n->away || n->given_up || n->away_since + c->set.suspend_limit_ns > c->now)
			continue;
		memcpy(why, n->why, sizeof(why));
		HC_TEXT(text, "could not be reached for %llu s (suspend_limit_s): %.90s",
			(unsigned long long)((c->now - n->away_since) / 1000000000u), why);
		n->given_up = true;
		end_life(n, HC_W_event_code_NODE_UNREACHABLE, text);
	}
	sweep(c);
}

/* ---- homes ---- */

static bool is_away(const struct hc_core *c, const struct hc_place *pl)
{
	return hc_who_lives(pl) && c->nodes[hc_who(c, pl)->node].away;
}

/* A place on the node that is away for the longest time, HC_NONE. */
static uint32_t first_away(struct hc_core *c, struct hc_home *h)
{
	uint32_t i, first = HC_NONE;
	uint64_t since = HC_NEVER;

	for (i = 0; i < h->nranks; i++) {
		const struct hc_place *pl = hc_home_place(c, h, i);

		if (is_away(c, pl) && c->nodes[hc_who(c, pl)->node].away_since < since) {
			since = c->nodes[hc_who(c, pl)->node].away_since;
			first = i;
		}
	}
	return first;
}

static uint32_t first_lost(struct hc_core *c, struct hc_home *h)
{
	uint32_t i;

	for (i = 0; i < h->nranks; i++)
		if (hc_who_lives(hc_home_place(c, h, i)) && hc_who_lost(c, hc_home_place(c, h, i)))
			return i;
	return HC_NONE;
}

/* All the causes, the first one with its reason. */
static void causes_text(struct hc_core *c, struct hc_home *h, uint32_t first, char *text,
			size_t bytes)
{
	const uint32_t node = hc_who(c, hc_home_place(c, h, first))->node;
	uint32_t i, at;

	snprintf(text, bytes, "node %.64s cannot be reached: %.100s", c->nodes[node].name,
		 c->nodes[node].why);
	c->node_mark[node] = ++c->node_round;
	for (i = 0; i < h->nranks; i++) {
		const struct hc_place *pl = hc_home_place(c, h, i);

		at = hc_who(c, pl)->node;
		if (!is_away(c, pl) || c->node_mark[at] == c->node_round)
			continue;
		c->node_mark[at] = c->node_round;
		snprintf(text + strlen(text), bytes - strlen(text), "; nor node %.64s",
			 c->nodes[at].name);
	}
}

static bool suspend(struct hc_core *c, struct hc_home *h, uint32_t first)
{
	const struct hc_who *who = hc_who(c, hc_home_place(c, h, first));
	const struct hc_told t = {HC_LOG_WARN, HC_W_event_code_NODE_SUSPENDED, first, who->pid};
	char text[HC_CAUSE_MAX];

	causes_text(c, h, first, text, sizeof(text));
	if (h->state == HC_W_domain_state_SUSPENDED && !strcmp(text, hc_home_cause(c, h)))
		return false;
	hc_home_set_cause(c, h, HC_W_event_code_NODE_SUSPENDED, first, who->pid, text);
	hc_home_set_state(c, h, HC_W_domain_state_SUSPENDED);
	hc_home_told(c, h, &t, text);
	hc_home_tell_state(c, h);
	return true;
}

static void resume(struct hc_core *c, struct hc_home *h)
{
	const struct hc_told t = {HC_LOG_INFO, HC_W_event_code_DOMAIN_ACTIVE, HC_NONE, 0};

	hc_home_set_cause(c, h, 0, HC_NONE, 0, "");
	hc_home_set_state(c, h, HC_W_domain_state_ACTIVE);
	hc_home_told(c, h, &t, "");
	hc_home_tell_state(c, h);
	hc_home_rest(c, h);
}

/* It forms yet: those who were lost have gone, and their places are free. */
static void withdraw(struct hc_core *c, uint64_t id)
{
	struct hc_home *h;
	uint32_t rank;

	while ((h = hc_home_by_id(c, id)) && h->state < HC_W_domain_state_ACTIVE && !h->step &&
	       (rank = first_lost(c, h)) != HC_NONE)
		hc_home_drop(c, h, rank);
}

bool hc_away_look(struct hc_core *c, struct hc_home *h)
{
	uint32_t lost = first_lost(c, h), away;

	if (h->step == HOME_COMMITTING || h->step == HOME_ENDING || h->step == HOME_OVER)
		return false; /* that is looked at again, or over */
	if (h->state < HC_W_domain_state_ACTIVE) {
		if (lost != HC_NONE)
			withdraw(c, h->id); /* while it prepares, prepare_limit_s ends it */
		return lost != HC_NONE;
	}
	if (lost != HC_NONE) {
		hc_home_lose(c, h, lost);
		return true;
	}
	if (h->step ||
	    (h->state != HC_W_domain_state_ACTIVE && h->state != HC_W_domain_state_SUSPENDED))
		return false;
	away = first_away(c, h);
	if (away != HC_NONE)
		return suspend(c, h, away);
	if (h->state == HC_W_domain_state_ACTIVE)
		return false;
	resume(c, h);
	return true;
}

/* ---- the sweep ---- */

/* Number `n` of homes and, from domains_max on, parts; false when nothing was to be done. */
static bool look(struct hc_core *c, uint32_t n)
{
	if (n < c->lim.domains)
		return c->homes[n].id && hc_away_look(c, &c->homes[n]);
	return hc_part_look(c, &c->parts[n - c->lim.domains]);
}

bool hc_away_work(struct hc_core *c)
{
	const uint32_t parts = c->lim.domains;
	uint32_t i;

	if (!c->sweeping)
		return false;
	for (i = 0; i < SLICE; i++) {
		if (c->sweep >= c->home_pool.fresh && c->sweep < parts)
			c->sweep = parts;
		if (c->sweep >= parts + c->part_pool.fresh) {
			c->sweeping = !hc_ask_lost(c) || !hc_sync_lost(c);
			return true;
		}
		if (look(c, c->sweep++))
			return true;
	}
	return true;
}
