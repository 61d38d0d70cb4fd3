/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The exchange: a table of values for each domain, kept at its home, and the fence over it.
 *
 * It lasts as long as the epoch and is not stored: after a restart of this daemon each process
 * puts again what it had put, with the version that it was given, before it attaches. A new value
 * gets a version above all of an earlier start (the start number is its upper half), so a value
 * that is put again never covers a newer one. While a process has not come back, a get that would
 * not wait is held for a moment instead of being told that a key is missing.
 *
 * Values lie in cells of 1 KiB, charged to the owner of the domain. Of all cells one owner has at
 * most seven eighths. What waits (a get for its key, a call of fence for the other ranks) is a
 * waiter with a deadline of its own; one that is answered goes to a list from which the answers go
 * out one by one, so that a put that thousands wait for is no long step.
 *
 * A fence ends at the moment when all ranks are in it. A call that gives up takes its ranks out
 * again. A call is of the fence with the number that it says; one that has ended already (its
 * answer was lost) is answered at once.
 */
#ifndef HC_EXCHANGE_H
#define HC_EXCHANGE_H

#include "state.h"

void hc_exchange_on_put(struct hc_core *c, uint32_t node, const struct hc_m_exch_put *m);
void hc_exchange_on_get(struct hc_core *c, uint32_t node, const struct hc_m_exch_get *m);
void hc_exchange_on_fence(struct hc_core *c, uint32_t node, const struct hc_m_exch_fence *m);
void hc_exchange_on_drop(struct hc_core *c, uint32_t node, const struct hc_m_exch_drop *m);
void hc_exchange_on_back(struct hc_core *c, uint32_t node, const struct hc_m_exch_back *m);

/* All who wait are told why they wait in vain; fences: only those in a fence. */
void hc_exchange_cancel(struct hc_core *c, uint64_t id, bool fences, int code, const char *text);
/* The domain is over: the same, and its values go, in slices. */
void hc_exchange_over(struct hc_core *c, uint64_t id, const char *text);
/* A process has come back with all that it had put. */
void hc_exchange_told(struct hc_core *c, const struct hc_part *p);
/* What there is, for views: values and the bytes that they take. */
void hc_exchange_count(const struct hc_core *c, uint64_t id, uint32_t *values, uint64_t *bytes);

/* An answer that is ready, or a slice of a table that is over; false when there is none. */
bool hc_exchange_work(struct hc_core *c);
void hc_exchange_timeout(struct hc_core *c, uint32_t waiter);

#endif
