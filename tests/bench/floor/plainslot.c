/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A reference counted with plain stores: the thread owns the cache line and moves two counters
 * forward, begins and ends; who wants to know whether something runs compares them. The stores
 * are atomics with relaxed and release order, which on common machines are ordinary moves.
 */
#include "reference.h"

#include <stdatomic.h>

#include "bench.h"

static struct {
	_Alignas(64) _Atomic uint64_t begins;
	_Atomic uint64_t ends;
	char rest[48];
} slot;

__attribute__((noinline)) void floor_plainslot_begin(void)
{
	uint64_t n = atomic_load_explicit(&slot.begins, memory_order_relaxed);

	atomic_store_explicit(&slot.begins, n + 1, memory_order_relaxed);
}

__attribute__((noinline)) void floor_plainslot_end(void)
{
	uint64_t n = atomic_load_explicit(&slot.ends, memory_order_relaxed);

	atomic_store_explicit(&slot.ends, n + 1, memory_order_release);
}

double floor_plainslot_ns(uint64_t pairs)
{
	uint64_t start = bench_now_ns();
	uint64_t i;

	for (i = 0; i < pairs; i++) {
		floor_plainslot_begin();
		floor_plainslot_end();
	}
	return (double)(bench_now_ns() - start) / (double)pairs;
}
