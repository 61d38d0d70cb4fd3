/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The drain of a node: no new domains, and a wait for those there are to end.
 *
 * An operator drains a node before work on it or before it goes down. From that word on
 * nobody makes a domain here (hc_user_may refuses, whatever the way in); domains that are forming
 * fail at once, since the ranks that they wait for would be refused; of those whose home is another
 * node, that one is told. Running ones are left alone: their jobs end them, and ranks come back to
 * them as ever.
 *
 * The one who asked is answered when no domain is left, whose home is here or that has ranks here,
 * at the latest after drain_timeout_s. A
 * second word while somebody waits ends that wait and answers both. The node stays as it is until
 * the word "off", or a restart: nothing of it is stored.
 */
#ifndef HC_DRAIN_H
#define HC_DRAIN_H

#include "state.h"

/* Request: admin. The core knows the verb "drain" alone. */
void hc_drain_admin(struct hc_core *c, struct hc_session *s, uint32_t request,
		    const struct hc_m_admin *m);
/* A forming domain fails, or the one who waits is answered; false when there is nothing to do. */
bool hc_drain_work(struct hc_core *c);
bool hc_drain_has_work(const struct hc_core *c);
void hc_drain_timeout(struct hc_core *c);
void hc_drain_session_lost(struct hc_core *c, uint64_t session);
/* Of the timer heap. */
static inline uint32_t hc_drain_timer(const struct hc_core *c)
{
	return 2 * c->lim.domains + HC_GATHERS;
}

#endif
