/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Floors of an operation reference: what a begin and an end cost if nothing but the counting
 * were done. The locked pair is what a library does that counts with atomics; the plain slot is
 * two counters that one thread writes, the least that can be done at all; the empty call is what
 * any pair of calls costs. All are calls into another object, as a call into a library is, and
 * each returns nanoseconds for one begin + end.
 */
#ifndef HC_FLOOR_REFERENCE_H
#define HC_FLOOR_REFERENCE_H

#include <stdint.h>

double floor_lockedpair_ns(uint64_t pairs);
double floor_plainslot_ns(uint64_t pairs);
double floor_emptycall_ns(uint64_t pairs);

void floor_lockedpair_begin(void);
void floor_lockedpair_end(void);
void floor_plainslot_begin(void);
void floor_plainslot_end(void);
void floor_emptycall_begin(void);
void floor_emptycall_end(void);

#endif
