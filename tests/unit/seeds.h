/* SPDX-License-Identifier: Apache-2.0 */
/* Seeds of the simulator: those that are kept in a file, and where fresh ones begin. */
#ifndef HC_SEEDS_H
#define HC_SEEDS_H

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "suite.h"

enum { SEED_VALUES = 3 };

/* One run for each line of the file: a seed, and `count` numbers, which are `what`. */
static inline void seeds_each(const char *path, unsigned count, const char *what,
			      void (*run)(uint64_t seed, const uint32_t *values))
{
	FILE *f = fopen(path, "r");
	uint32_t v[SEED_VALUES] = {0}, runs = 0;
	uint64_t seed;
	char line[256];

	ck_assert_ptr_nonnull(f);
	while (fgets(line, sizeof(line), f)) {
		if (line[0] == '#' || line[0] == '\n')
			continue;
		ck_assert_msg(sscanf(line, "%" SCNu64 " %u %u %u", &seed, &v[0], &v[1], &v[2]) >=
				      (int)(1 + count),
			      "%s: '%s'; wanted: seed %s", path, line, what);
		run(seed, v);
		runs++;
	}
	fclose(f);
	ck_assert_uint_gt(runs, 0);
}

/* HC_SEED; else the same in each quick run, and new in each long one. */
static inline uint64_t seeds_first(void)
{
	const char *v = getenv("HC_SEED");
	struct timespec t;

	if (v)
		return strtoull(v, NULL, 10);
	if (!hc_long())
		return 1;
	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

#endif
