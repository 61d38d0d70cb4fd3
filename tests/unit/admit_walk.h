/* SPDX-License-Identifier: Apache-2.0 */
/* What the random worlds of test_admit_random.c have in common: dice, clock, scheduler, sums. */
#ifndef HC_TEST_ADMIT_WALK_H
#define HC_TEST_ADMIT_WALK_H

#include "admit_judge.h"

#define REQUESTS 64u
#define PIECES   128u

static uint64_t dice, now;
static struct hc_admit *s;
static uint64_t seed;

/* Of the whole run. */
static struct {
	unsigned long long steps, worlds;
	unsigned long long grants, older, lent; /* judged; older ones in a queue then */
	unsigned long long capped;              /* held up by a quota, at the end of a step */
	unsigned long long shares;              /* grants in crowds */
	unsigned long long served, rounds, dropped;
	unsigned long long hints, kept;
} sum;

/* As ck_abort_msg, and says of which world. */
static void found(const char *wrong)
{
	ck_abort_msg("seed %llu (HC_SEED): %s", (unsigned long long)seed, wrong);
}

#define must(x)                                                                                    \
	do {                                                                                       \
		if (!(x))                                                                          \
			found("not so: " #x);                                                      \
	} while (0)

static uint32_t roll(uint32_t n)
{
	return adm_roll(&dice, n);
}

#endif
