/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A team of rank processes that do one step together, again and again. The parent releases all
 * of them with one futex wake on a shared page; each notes when it began and ended its timed
 * step, and a turn lasts from the first begin to the last end. What must be undone between two
 * turns happens in a step of its own, after everybody's time has been taken.
 */
#ifndef HC_FLOOR_TEAM_H
#define HC_FLOOR_TEAM_H

#include <stdint.h>

#include "bench.h"

enum { TEAM_RANKS_MAX = 128 };

/* Each runs in the process of its rank; one that cannot go on calls bench_die(). */
struct team_steps {
	void *ctx;
	void (*setup)(void *ctx, unsigned rank);
	void (*timed)(void *ctx, unsigned rank, uint64_t turn);
	void (*after)(void *ctx, unsigned rank, uint64_t turn); /* may be NULL */
};

struct team_page;

struct team {
	struct team_page *page;
	unsigned ranks;
	uint64_t turn;
	bool has_after;
	pid_t pid[TEAM_RANKS_MAX];
};

/* Rank r runs on cpus[r % ncpus]. All have done their setup when this returns. */
void team_start(struct team *t, unsigned ranks, const int *cpus, unsigned ncpus,
		const struct team_steps *steps);
/* Nanoseconds from the first rank's begin to the last rank's end. */
uint64_t team_turn(struct team *t);
void team_stop(struct team *t);

#endif
