/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two calls into another object that do nothing. No library can offer a begin and an end below
 * this; where it alone is near a goal, the machine and not the code decides that goal.
 */
#include "reference.h"

#include "bench.h"

__attribute__((noinline)) void floor_emptycall_begin(void)
{
	__asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) void floor_emptycall_end(void)
{
	__asm__ volatile("" ::: "memory");
}

double floor_emptycall_ns(uint64_t pairs)
{
	uint64_t start = bench_now_ns();
	uint64_t i;

	for (i = 0; i < pairs; i++) {
		floor_emptycall_begin();
		floor_emptycall_end();
	}
	return (double)(bench_now_ns() - start) / (double)pairs;
}
