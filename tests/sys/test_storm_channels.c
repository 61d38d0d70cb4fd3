/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A storm: 512 clients after a few links of a running daemon.
 *
 * Sixteen times as many as can be served at once. Half of them wait, half come back when they are
 * told to. In every sample no link is used beyond its limit and what is used is what the channels
 * sum up to (ledger.h); equal owners get equal shares; who comes back at the hint gets what he came
 * for; and at the end everything is free. In one of the runs the clients say how long they will
 * hold, in the other they do not, and the daemon has to find out.
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

static void storm(bool declares)
{
	const struct hc_live set = {.clients = HC_LIVE_CLIENTS,
				    .processes = getenv("PR") ? (unsigned)atoi(getenv("PR")) : 4,
				    .waiting = getenv("WM") ? (unsigned)atoi(getenv("WM")) : 2,
				    .at_once = getenv("AO") ? (unsigned)atoi(getenv("AO")) : 16,
				    .hold_ms = getenv("HM") ? (unsigned)atoi(getenv("HM")) : 20,
				    .declares = declares,
				    .warm_ms = 1500,
				    .length_ms = getenv("LM") ? (unsigned)atoi(getenv("LM")) : 2500,
				    .seed = seed()};
	struct hc_live_result r;

	hc_live_run(&set, &r);
	printf("seed %u, %s: granted %llu, shares %llu..%llu and %llu..%llu, jain %.4f %.4f, "
	       "came back %llu, success %.2f %%, of all %.2f %%, hints kept %.2f %%, without a hint "
	       "%llu of %llu, samples %llu, whole %llu, ask p50 %llu us p99 %llu us, daemon %.0f us "
	       "a grant\n",
	       set.seed, declares ? "declared" : "not declared", (unsigned long long)r.granted,
	       (unsigned long long)r.fewest[0], (unsigned long long)r.most[0],
	       (unsigned long long)r.fewest[1], (unsigned long long)r.most[1], r.jain[0], r.jain[1],
	       (unsigned long long)r.returns, r.success_percent, r.tries_percent, r.hint_percent,
	       (unsigned long long)r.unknown, (unsigned long long)(r.unknown + r.hints),
	       (unsigned long long)r.samples, (unsigned long long)r.whole,
	       (unsigned long long)r.ask_p50_ns / 1000, (unsigned long long)r.ask_p99_ns / 1000,
	       r.daemon_cpu_us);
	fflush(stdout);
	ck_assert_uint_gt(r.whole, 10);
	ck_assert_uint_gt(r.returns, 100);
	ck_assert_uint_gt(r.fewest[0], 0);
	ck_assert_double_ge(r.success_percent, 99.0);
	ck_assert_double_ge(r.hint_percent, 99.0);
	ck_assert_double_ge(r.jain[0], 0.99);
}

START_TEST(who_declares_how_long)
{
	storm(true);
}
END_TEST

START_TEST(who_does_not)
{
	storm(false);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_test(t, who_declares_how_long);
	tcase_add_test(t, who_does_not);
}

int main(void)
{
	return hc_suite_run("storm_channels", add, hc_long() ? 300 : 60);
}
