/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who is behind a place of a domain: a process of some node.
 *
 * A process is in many domains and has several ranks in each, and a home goes on knowing it after
 * its death. So node, pid and start time stand here once, and its places refer to them: four
 * bytes a place. It is known for as long as a place says so; there are at most as many as places.
 * A place that nobody has taken, or to which no process has attached yet, is nobody's: number 0.
 */
#ifndef HC_WHO_H
#define HC_WHO_H

#include "state.h"

/* The place, which is nobody's, is that process's from now on; or nobody's again. */
void hc_who_take(struct hc_core *c, struct hc_place *pl, uint32_t node, uint32_t pid,
		 uint64_t started);
void hc_who_drop(struct hc_core *c, struct hc_place *pl);
static inline const struct hc_who *hc_who(const struct hc_core *c, const struct hc_place *pl)
{
	return &c->whos[pl->who];
}
static inline bool hc_who_lives(const struct hc_place *pl)
{
	return pl->who && pl->state != HC_W_member_state_EXPECTED &&
	       pl->state != HC_W_member_state_DEAD && pl->state != HC_W_member_state_LEFT;
}
/* It has come, and from that node. */
static inline bool hc_who_at(const struct hc_core *c, const struct hc_place *pl, uint32_t node)
{
	return pl->state != HC_W_member_state_EXPECTED && hc_who(c, pl)->node == node;
}
/* Its node has lost all that it had when this one came. */
static inline bool hc_who_lost(const struct hc_core *c, const struct hc_place *pl)
{
	const struct hc_who *who = hc_who(c, pl);

	return pl->who && who->life != c->nodes[who->node].life;
}

#endif
