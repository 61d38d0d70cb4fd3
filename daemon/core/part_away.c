/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A part whose home is away or lost; see away.h.
 *
 * While the home cannot be reached nobody decides for this domain, so the part suspends itself,
 * without a state number of its own: the home's next word is the newer one in any case.
 *
 * A lost home is final. The part then answers for itself what only a home may answer otherwise:
 * ranks leave, the owner destroys, and what has no living rank here any more ends. It says of
 * each rank that it is lost, in mail that reaches the home if that comes back after all: both
 * sides then agree that this domain is damaged.
 */
#include "part.h"

#include "channel.h"
#include "digest.h"
#include "emit.h"
#include "row.h"
#include "told.h"

#include <stdio.h>
#include <string.h>

static bool holds_place(const struct hc_seat *s)
{
	return s->state == HC_W_member_state_READY || s->state == HC_W_member_state_DETACHED;
}

static bool anyone_here(const struct hc_core *c, const struct hc_part *p)
{
	uint32_t i;

	for (i = 0; i < p->nseats; i++)
		if (holds_place(&c->seats[p->seats + i]))
			return true;
	return false;
}

static void tell(struct hc_core *c, struct hc_part *p, uint8_t state, uint16_t kind,
		 const char *text)
{
	const struct hc_told t = {text[0] ? HC_LOG_WARN : HC_LOG_INFO, kind, HC_NONE, 0};
	const bool closes = p->state == HC_W_domain_state_ACTIVE;

	p->state = state;
	if (text[0])
		hc_part_set_cause(c, p, kind, HC_NONE, 0, hc_str(text));
	else
		hc_part_set_cause(c, p, 0, 0, 0, hc_str(text));
	hc_part_busy(c, p)->event = kind;
	hc_part_publish(c, p, closes);
	hc_part_told(c, p, &t, text);
	hc_part_add_work(c, p, WORK_NOTIFY);
}

void hc_part_withdraw(struct hc_core *c, struct hc_part *p, const char *text)
{
	uint32_t i;

	for (i = 0; i < p->nseats; i++)
		hc_part_depart(c, p, p->seats + i, HC_W_depart_WITHDRAWN, "", 0);
	hc_part_fail(c, p, HC_E_PEER_LOST, HC_NONE, hc_str(text));
}

static void lose(struct hc_core *c, struct hc_part *p)
{
	const struct hc_known_node *n = &c->nodes[p->home_node];
	struct hc_part_busy *b = hc_part_busy(c, p);
	char text[HC_CAUSE_MAX];
	uint32_t i;

	HC_TEXT(text, "its home is lost: node %.64s %s", n->name, n->why);
	if (p->state < HC_W_domain_state_ACTIVE) {
		hc_part_withdraw(c, p, text);
		return;
	}
	for (i = 0; i < p->nseats; i++)
		if (holds_place(&c->seats[p->seats + i]))
			hc_part_depart(c, p, p->seats + i, HC_W_depart_ABORTED, text, 0);
	hc_digest_part(c, p);
	p->orphan = true;
	p->away = b->draining = false;
	tell(c, p, HC_W_domain_state_DAMAGED, HC_W_event_code_DOMAIN_ORPHANED, text);
	hc_channel_part_gone(c, p);
	hc_part_alarm(c, p, c->now + c->set.orphan_grace_ns);
	hc_row_changed(c, p);
}

bool hc_part_look(struct hc_core *c, struct hc_part *p)
{
	const struct hc_known_node *n = &c->nodes[p->home_node];
	char text[HC_CAUSE_MAX];

	if (p->state == HC_W_domain_state_NONE || p->home_node == HC_SELF_NODE || p->orphan ||
	    p->state >= HC_W_domain_state_DESTROYED)
		return false;
	if (p->home_life != n->life) {
		lose(c, p);
		return true;
	}
	if (n->away && p->state == HC_W_domain_state_ACTIVE) {
		HC_TEXT(text, "its home, node %.64s, cannot be reached: %s", n->name, n->why);
		p->away = true;
		tell(c, p, HC_W_domain_state_SUSPENDED, HC_W_event_code_NODE_SUSPENDED, text);
		return true;
	}
	if (n->away || !p->away)
		return false;
	p->away = false;
	tell(c, p, HC_W_domain_state_ACTIVE, HC_W_event_code_DOMAIN_ACTIVE, "");
	return true;
}

void hc_part_orphan_timeout(struct hc_core *c, struct hc_part *p)
{
	char text[HC_CAUSE_MAX];

	if (p->state >= HC_W_domain_state_DESTROYED || anyone_here(c, p))
		return;
	HC_TEXT(text, "no member alive here; %.300s", hc_part_cause(c, p));
	hc_part_end(c, p, HC_W_domain_state_DESTROYED, hc_str(text));
}
