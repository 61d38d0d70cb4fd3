/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Timers: a heap of (deadline, number), at most one deadline for each number.
 *
 * Equal deadlines come out in order of number, so that the same events give the same actions.
 */
#ifndef HC_TIMERS_H
#define HC_TIMERS_H

#include "table.h"

struct hc_timers {
	struct hc_timer {
		uint64_t deadline;
		uint32_t number;
	} * heap;
	uint32_t *place; /* of a number: its index in the heap + 1 */
	uint32_t count;
};

void hc_timers_init(struct hc_timers *t, struct hc_mem *m, uint32_t cap);
/* Set, move or (HC_NEVER) end the timer of a number. */
void hc_timers_set(struct hc_timers *t, uint32_t number, uint64_t deadline);
uint64_t hc_timers_next(const struct hc_timers *t); /* HC_NEVER when there is none */
/* Take the first number whose deadline is not after now; HC_NONE when there is none. */
uint32_t hc_timers_take(struct hc_timers *t, uint64_t now);

#endif
