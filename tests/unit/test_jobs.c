/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Domains over nodes under faults: seeds that have once found a fault, and others.
 *
 * tests/sim/seeds.jobs holds a line for each find: seed, nodes and seconds of faults, and what it
 * was. Others as in test_sim.c: the same in each run of the quick form, new ones in the long form,
 * the first one from HC_SEED; they end after a few seconds, however many that were.
 */
#include "jobs.h"

#include "seeds.h"

#include <inttypes.h>
#include <time.h>

#define FRESH      60u
#define FRESH_S    5
#define LONG_FRESH 1000u

static struct jobs j;

static void run(uint64_t seed, uint32_t nodes, uint32_t seconds)
{
	j = (struct jobs){.seed = seed, .nodes = nodes, .seconds = seconds};
	jobs_run(&j);
	if (j.bad)
		jobs_print_tail(&j, stderr);
	ck_assert_msg(!j.bad, "sim --jobs --seed %" PRIu64 " --nodes %u: %s", seed, nodes, j.why);
	ck_assert_uint_gt(j.faults, 0);
}

static void run_kept(uint64_t seed, const uint32_t *v)
{
	run(seed, v[0], v[1]);
}

START_TEST(seeds_that_found_something_stay_well)
{
	seeds_each("tests/sim/seeds.jobs", 2, "nodes seconds", run_kept);
}
END_TEST

START_TEST(other_seeds_break_no_promise)
{
	const uint64_t first = seeds_first(), count = hc_long() ? LONG_FRESH : FRESH;
	const time_t began = time(NULL);
	uint64_t formed = 0, ops = 0, i;

	for (i = 0; i < count && (i < 4 || hc_long() || time(NULL) - began < FRESH_S); i++) {
		run(first + i, 8, 60);
		formed += j.formed;
		ops += j.ops;
	}
	ck_assert_uint_gt(formed, i); /* there was something to break */
	ck_assert_uint_gt(ops, 10 * i);
}
END_TEST

START_TEST(the_same_seed_is_the_same_run)
{
	uint64_t hash;

	run(seeds_first(), 16, 30);
	hash = j.hash;
	run(seeds_first(), 16, 30);
	ck_assert_uint_eq(j.hash, hash);
	run(seeds_first() + 1, 16, 30);
	ck_assert_uint_ne(j.hash, hash);
}
END_TEST

/* Without a fault every domain of a large cluster forms, unless its ranks come too late. */
START_TEST(a_large_cluster_without_faults)
{
	j = (struct jobs){.seed = 1, .nodes = 200, .seconds = 10, .calm = true, .wan = true};
	jobs_run(&j);
	ck_assert_msg(!j.bad, "%s", j.why);
	ck_assert_uint_eq(j.began, 25);
	ck_assert_uint_eq(j.formed + j.failed, 25);
	ck_assert_uint_ge(j.formed, 20);
}
END_TEST

static void add(TCase *c)
{
	tcase_add_test(c, seeds_that_found_something_stay_well);
	tcase_add_test(c, other_seeds_break_no_promise);
	tcase_add_test(c, the_same_seed_is_the_same_run);
	tcase_add_test(c, a_large_cluster_without_faults);
}

int main(void)
{
	return hc_suite_run("jobs", add, hc_long() ? 3600 : 60);
}
