/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A reference counted with locked read-modify-writes: one fetch_add and one fetch_sub, both
 * sequentially consistent, on a counter alone in its cache line and not contended. This is the
 * best case of an atomic reference count; other threads on the same line only make it worse.
 */
#include "reference.h"

#include <stdatomic.h>

#include "bench.h"

static struct {
	_Alignas(64) _Atomic uint64_t running;
	char rest[56];
} line;

__attribute__((noinline)) void floor_lockedpair_begin(void)
{
	atomic_fetch_add_explicit(&line.running, 1, memory_order_seq_cst);
}

__attribute__((noinline)) void floor_lockedpair_end(void)
{
	atomic_fetch_sub_explicit(&line.running, 1, memory_order_seq_cst);
}

double floor_lockedpair_ns(uint64_t pairs)
{
	uint64_t start = bench_now_ns();
	uint64_t i;

	for (i = 0; i < pairs; i++) {
		floor_lockedpair_begin();
		floor_lockedpair_end();
	}
	return (double)(bench_now_ns() - start) / (double)pairs;
}
