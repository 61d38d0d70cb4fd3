/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A storm: 512 clients after a few links of a running daemon, eight for each place that there is.
 *
 * In every sample no link is used beyond its limit, and what is used is what the channels sum up to
 * (ledger.h). Where all wait, equal owners get equal shares: Jain index of at least 0.99. Where
 * half of them do not wait but come back when they are told to, at least 99 % of those get what
 * they came for, in the clients' count and in the daemon's own. At the end everything is free.
 *
 * A hint is kept only where time goes on for all: who comes back while this machine stands still,
 * or just after, is counted apart (livestorm.h), and printed. In the long form the clients also say
 * how long they will hold.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "livestorm.h"
#include "suite.h"

static unsigned seed(void)
{
	const char *given = getenv("HC_SEED");

	return given ? (unsigned)strtoul(given, NULL, 10) : (unsigned)time(NULL);
}

static void show(const struct hc_live *set, const struct hc_live_result *r)
{
	printf("seed %u, %u of 4 wait, time %s: granted %llu; came back %llu, got it %.2f %%; "
	       "undisturbed %llu, got it %.2f %%; hints kept %.2f %%; jain %.4f %.4f; samples "
	       "%llu\n",
	       set->seed, set->waiting, set->declares ? "declared" : "not declared",
	       (unsigned long long)r->granted, (unsigned long long)r->returns, r->success_percent,
	       (unsigned long long)(r->returns - r->disturbed), r->calm_percent, r->hint_percent,
	       r->jain[0], r->jain[1], (unsigned long long)r->whole);
	fflush(stdout);
}

static struct hc_live_result storm(unsigned waiting, unsigned hold_ms, bool declares)
{
	const struct hc_live set = {.clients = HC_LIVE_CLIENTS,
				    .processes = 4,
				    .waiting = waiting,
				    .at_once = 16,
				    .hold_ms = hold_ms,
				    .declares = declares,
				    .warm_ms = hc_long() ? 3000 : 1000,
				    .length_ms = hc_long() ? 30000 : 2000,
				    .grants_least = waiting == 4 ? 12 : 0,
				    .seed = seed()};
	struct hc_live_result r;

	hc_live_run(&set, &r);
	show(&set, &r);
	ck_assert_uint_gt(r.whole, 10);
	ck_assert_uint_gt(r.granted, HC_LIVE_CLIENTS);
	return r;
}

static void want_equal_shares(bool declares)
{
	const struct hc_live_result r = storm(4, 10, declares);

	ck_assert_uint_gt(r.fewest[0], 0);
	ck_assert_double_ge(r.jain[0], 0.99);
}

static void want_kept_hints(bool declares)
{
	const struct hc_live_result r = storm(2, 40, declares);

	ck_assert_uint_gt(r.returns, 0);
	ck_assert_double_ge(r.calm_percent, 99.0);
	if (!r.disturbed)
		ck_assert_double_ge(r.hint_percent, 99.0);
}

START_TEST(who_waits_gets_an_equal_share)
{
	want_equal_shares(false);
	if (hc_long())
		want_equal_shares(true);
}
END_TEST

START_TEST(who_comes_back_at_the_hint_gets_it)
{
	want_kept_hints(false);
	if (hc_long())
		want_kept_hints(true);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_test(t, who_waits_gets_an_equal_share);
	tcase_add_test(t, who_comes_back_at_the_hint_gets_it);
}

int main(void)
{
	return hc_suite_run("storm_channels", add, hc_long() ? 300 : 60);
}
