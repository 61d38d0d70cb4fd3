/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nodes that cannot be reached, and what that means for domains.
 *
 * A node is *away* while the peer is UNREACHABLE. (A daemon that is down or on hold is not: its
 * ranks run on.) That is a temporary cause: an ACTIVE domain with a living member there is
 * SUSPENDED by its home, with all such nodes in the text, and ACTIVE again when none is left. A
 * part whose home is away says the same of itself.
 *
 * What a node has, it has for one *life*. A life ends when the node was away for suspend_limit_s,
 * or when it comes back as another incarnation. All that came in an earlier life is lost, for
 * good: members make their domain DAMAGED, a lost home leaves its parts as orphans. Each process
 * (hc_who), part and ticket remembers the life that it belongs to, so that which came after is
 * never taken for what was before, whatever order things are looked at.
 *
 * A change here starts a sweep over homes, parts and tickets, in units of work. Each is compared
 * with what it should be, so a sweep may begin anew at any time.
 */
#ifndef HC_AWAY_H
#define HC_AWAY_H

#include "state.h"

/* The peer that this node is can not be reached; or it is connected, as that incarnation. */
void hc_away_gone(struct hc_core *c, uint32_t node, const char *why);
void hc_away_back(struct hc_core *c, uint32_t node, uint64_t incarnation);
/* At a start: who is named by rows and not connected within daemon_grace is away. */
void hc_away_expect(struct hc_core *c);
/* The limit of a node is over, or the setting has changed. */
void hc_away_timeout(struct hc_core *c);
/* Of one home, which may have been busy when its turn was. False: nothing has changed. */
bool hc_away_look(struct hc_core *c, struct hc_home *h);
bool hc_away_work(struct hc_core *c);

#endif
