/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clusters under faults: seeds that have once found a fault, and others.
 *
 * tests/sim/seeds holds a line for each find: seed, nodes, rails and seconds of faults, and what it
 * was. The others are the same in each run of the quick form, so that what is right today is right
 * tomorrow; in the long form nobody has seen them yet. HC_SEED names the first one, to see a run
 * again. They end after a few seconds, however many that were, so that a slow build of this test
 * takes no longer; the long form has no such limit.
 */
#include "hunt.h"

#include "seeds.h"

#include <inttypes.h>
#include <time.h>

#define FRESH      100u
#define FRESH_S    5
#define LONG_FRESH 1000u

static void run(uint64_t seed, uint32_t nodes, uint32_t rails, uint32_t seconds)
{
	struct hunt h = {.seed = seed, .nodes = nodes, .rails = rails, .seconds = seconds};

	hunt_run(&h);
	ck_assert_msg(!h.bad, "sim --seed %" PRIu64 " --nodes %u --rails %u: %s", seed, nodes,
		      rails, h.why);
	ck_assert_uint_gt(h.faults, 0);
	ck_assert_uint_gt(h.events, 1000);
}

static void run_kept(uint64_t seed, const uint32_t *v)
{
	run(seed, v[0], v[1], v[2]);
}

START_TEST(seeds_that_found_something_stay_well)
{
	seeds_each("tests/sim/seeds", 3, "nodes rails seconds", run_kept);
}
END_TEST

START_TEST(other_seeds_break_no_promise)
{
	const uint64_t first = seeds_first();
	const time_t began = time(NULL);
	uint32_t i;

	for (i = 0; i < FRESH && (i < 4 || time(NULL) - began < FRESH_S); i++)
		run(first + i, 4, 2, 60);
}
END_TEST

START_TEST(the_same_seed_is_the_same_run)
{
	struct hunt a = {.seed = 7, .nodes = 3, .rails = 2, .seconds = 20}, b = a, other = a;

	other.seed = 8;
	hunt_run(&a);
	hunt_run(&b);
	hunt_run(&other);
	ck_assert_uint_eq(a.hash, b.hash);
	ck_assert_uint_eq(a.events, b.events);
	ck_assert_uint_ne(a.hash, other.hash);
}
END_TEST

START_TEST(many_fresh_seeds_break_no_promise)
{
	static const struct {
		uint32_t nodes, rails;
	} shapes[] = {{4, 2}, {3, 1}, {8, 2}};
	const uint64_t first = seeds_first();
	uint32_t i;

	for (i = 0; i < LONG_FRESH; i++)
		run(first + i, shapes[_i].nodes, shapes[_i].rails, 60);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_test(t, seeds_that_found_something_stay_well);
	tcase_add_test(t, other_seeds_break_no_promise);
	tcase_add_test(t, the_same_seed_is_the_same_run);
	if (hc_long())
		tcase_add_loop_test(t, many_fresh_seeds_break_no_promise, 0, 3);
}

int main(void)
{
	return hc_suite_run("sim", add, hc_long() ? 1200 : 60);
}
