/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hints that are kept: of the callers who got a numeric hint and come back at it, at least 99 %
 * get what they came for, and the link is not left idle for it.
 *
 * Storms of callers on one link, in simulated time: few and many of them, alone or beside as many
 * who wait, with holding times that are all alike, uniform or exponential, declared or not, coming
 * back at the hint or up to 2 ms later. Counted after a time in which the link learns; what it has
 * to be after that time holds for each storm by itself.
 */
#include "suite.h"

#include "admission.h"
#include "storm_admit.h"

struct figures {
	double success, use, jain;
};

static struct figures storm_of(struct storm set, bool classes)
{
	static struct storm_admit a;
	struct storm_policy policy;
	struct storm_result out;
	struct hc_admit_counts counts;
	uint32_t i;

	memset(&a, 0, sizeof(a));
	for (i = 0; i < set.clients && classes; i++)
		a.order[i] = (uint8_t)(i % 3);
	policy = storm_admit_new(&a, set.channels);
	set.seed = set.clients * 7 + set.channels + set.waiting;
	set.hold_ns = 20 * MS;
	set.think_ns = 5 * MS;
	set.unknown_ns = 20 * MS;
	set.warm_ns = 8 * SEC;
	set.length_ns = hc_long() ? 600 * SEC : 20 * SEC;
	storm_run(&set, &policy, &out);
	hc_admit_check(a.s);
	hc_admit_counts(a.s, &counts);
	ck_assert_uint_ge(counts.asked, counts.granted_at_once + counts.granted_later);
	ck_assert_uint_ge(counts.hints, counts.hints_kept + counts.hints_broken);
	ck_assert_uint_gt(out.returns, 500);
	storm_admit_end(&a);
	return (struct figures){out.success_percent, out.use_percent, out.jain};
}

#define SIZES 4u
static const uint32_t sizes[SIZES][2] = {{20, 4}, {40, 32}, {64, 16}, {512, 64}};

static void each_size(enum storm_hold hold, bool declares, uint64_t late_ns, double use_few,
		      double use_many)
{
	struct storm set = {.hold = hold, .declares = declares, .late_ns = late_ns};
	struct figures got;
	uint32_t i, waiting;

	for (i = 0; i < SIZES; i++)
		for (waiting = 0; waiting < 2; waiting++) {
			set.clients = sizes[i][0];
			set.channels = sizes[i][1];
			set.waiting = waiting * set.clients / 2;
			got = storm_of(set, false);
			ck_assert_msg(got.success >= 99,
				      "%u clients on %u channels, %u of them wait: %.2f %%",
				      set.clients, set.channels, set.waiting, got.success);
			ck_assert_msg(got.use >= (set.channels < 16 ? use_few : use_many),
				      "%u clients on %u channels, %u of them wait: %.1f %% used",
				      set.clients, set.channels, set.waiting, got.use);
			ck_assert(waiting || got.jain >= 0.98);
		}
}

START_TEST(equal_times)
{
	each_size(STORM_FIXED, false, 0, 60, 75);
	each_size(STORM_FIXED, true, 0, 60, 75);
}
END_TEST

START_TEST(uniform_times)
{
	each_size(STORM_UNIFORM, false, 0, 45, 70);
	each_size(STORM_UNIFORM, true, 2 * MS, 45, 70);
}
END_TEST

/* Half of four channels is what a promise of 99 % costs when nothing is known but the mean. */
START_TEST(exponential_times)
{
	each_size(STORM_EXPONENTIAL, false, 2 * MS, 30, 65);
	each_size(STORM_EXPONENTIAL, true, 0, 30, 65);
}
END_TEST

/* Processes that are not always run: each second a quarter of all is late, and what they hold with
 * them. Hints break in groups then, and the lead has to last from one to the next. */
START_TEST(some_stand_still_now_and_then)
{
	struct storm set = {.clients = 512,
			    .channels = 64,
			    .hold = STORM_UNIFORM,
			    .stall_every_ns = SEC,
			    .stall_ns = 120 * MS};
	struct figures got;

	for (; set.waiting < set.clients; set.waiting += set.clients / 2) {
		got = storm_of(set, false);
		ck_assert_msg(got.success >= 99, "%u of %u wait: %.2f %%", set.waiting, set.clients,
			      got.success);
	}
}
END_TEST

/* Low tickets are promised later, and the promise is kept although higher ones keep coming. */
START_TEST(all_classes)
{
	const struct storm set = {.hold = STORM_UNIFORM, .clients = 96, .channels = 16};

	const struct figures got = storm_of(set, true);

	ck_assert_msg(got.success >= 99, "%.2f %%", got.success);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_test(t, equal_times);
	tcase_add_test(t, uniform_times);
	tcase_add_test(t, exponential_times);
	tcase_add_test(t, some_stand_still_now_and_then);
	tcase_add_test(t, all_classes);
}

int main(void)
{
	return hc_suite_run("admit_hints", add, hc_long() ? 600 : 60);
}
