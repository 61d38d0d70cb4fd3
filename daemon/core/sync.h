/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Barrier and exchange, this node's side: what clients ask of the part.
 *
 * The page. A barrier of the ranks of one node goes through a page of shared memory
 * (proto/syncpage.h) that the shell makes at the first sync_open and hands to each process that
 * holds a rank here. A process says when it has it; once all ranks of the node have, the daemon
 * lets its own descriptor go. After a restart a page is brought back by the first of those who had
 * it: before it attaches. So while a rank that lives has not come back, nobody who asks is given
 * a new page: there are never two for one epoch.
 *
 * The exchange. put, get and fence go to the home (exchange.h) under a ticket, and its word is
 * the answer. Of all places for tickets one owner has at most fifteen sixteenths.
 */
#ifndef HC_SYNC_H
#define HC_SYNC_H

#include "state.h"

/* ---- requests ---- */
void hc_sync_open(struct hc_core *c, struct hc_session *s, uint32_t request,
		  const struct hc_m_sync_open *m);
/* page: bytes of the page that came with it, 0 = none. */
void hc_sync_have(struct hc_core *c, struct hc_session *s, uint32_t request,
		  const struct hc_m_sync_have *m, uint32_t page);
void hc_sync_put(struct hc_core *c, struct hc_session *s, uint32_t request,
		 const struct hc_m_put *m);
void hc_sync_get(struct hc_core *c, struct hc_session *s, uint32_t request,
		 const struct hc_m_get *m);
void hc_sync_fence(struct hc_core *c, struct hc_session *s, uint32_t request,
		   const struct hc_m_fence *m);

/* ---- words of the home ---- */
void hc_sync_on_got(struct hc_core *c, const struct hc_m_exch_got *m);
void hc_sync_on_done(struct hc_core *c, const struct hc_m_exch_done *m);

/* The rank of a live process that has not come back since the daemon was started, HC_NONE. */
uint32_t hc_sync_untold(const struct hc_core *c, const struct hc_part *p);
/* The part is over: so is its page. */
void hc_sync_part_over(struct hc_core *c, struct hc_part *p);
/* Answer those who wait for a home that was lost; false when there was no room for all. */
bool hc_sync_lost(struct hc_core *c);
void hc_sync_session_lost(struct hc_core *c, uint64_t session);
/* That node, a home, begins anew with this one: answer one who waits for it; false: nobody does. */
bool hc_sync_home_again(struct hc_core *c, uint32_t node);
/* A home hears of one who waits no more; false when there is none. */
bool hc_sync_work(struct hc_core *c);

#endif
