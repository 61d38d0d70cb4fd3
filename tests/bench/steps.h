/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a piece of code does, counted and not timed: system calls and locked instructions. Both
 * are counted within the process itself, since the library under test refuses to work in a
 * forked child and a debugger is not always allowed.
 */
#ifndef HC_BENCH_STEPS_H
#define HC_BENCH_STEPS_H

#include <stdbool.h>
#include <stdint.h>

struct steps {
	uint64_t instructions;
	uint64_t locked; /* with a lock prefix, or an exchange with memory */
	uint64_t system_calls;
};

/* Runs fn one instruction at a time. false: not known how on this machine. */
bool steps_count(void (*fn)(void *ctx), void *ctx, struct steps *out);
/*
 * Runs fn at full speed with system calls caught. *any tells whether it made one: it is then
 * carried out, and later ones are not caught. false: this kernel cannot.
 */
bool steps_any_system_call(void (*fn)(void *ctx), void *ctx, bool *any);

#endif
