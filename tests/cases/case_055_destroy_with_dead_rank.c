/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Case 55: a domain is destroyed while one of its ranks is dead and another holds on.
 *
 * The orderly end used to wait for every rank; one was gone, so the survivors hung and held
 * their devices for ever. Here a dead process's references count as returned; one that a living
 * rank keeps is waited for as long as asked, then the release is forced and names who held on.
 * From the first moment of it new operations are refused as gone, and at its end all is free.
 */
#include <stdio.h>
#include <string.h>

#include "ranks.h"
#include "suite.h"

enum { RANKS = 4, DEAD = 3, HOLDER = 2, LIMIT_MS = 2000 };

static struct hc_node node;
static struct hc_rank r[RANKS];
static struct hc_run run;

static const struct hc_order begin_op = {.what = HC_DO_BEGIN, .kind = HCOMM_OP_ALL_REDUCE};

static bool state_is(void *ctx)
{
	struct hcomm_view_domain d;

	return hc_ask_domain("doomed", &d) && !strcmp(d.state, ctx);
}

static char damaged[] = "DAMAGED";

/* Four ranks, each in an operation; one is killed, two end theirs. */
static void one_dead_one_holding(const char *top)
{
	const struct hc_order end = {.what = HC_DO_END};

	hc_node_start(&node, RANKS, top);
	hc_ranks_start(r, RANKS, "doomed");
	for (int i = 0; i < RANKS; i++)
		hc_rank_must(&r[i], &begin_op, NULL);
	hc_rank_kill(&r[DEAD]);
	hc_await("the domain to be DAMAGED", state_is, damaged, 5000);
	hc_rank_must(&r[0], &end, NULL);
	hc_rank_must(&r[1], &end, NULL);
}

static bool refused_as_gone(void *ctx)
{
	struct hc_rank *rank = ctx;

	return hc_rank_do(rank, &begin_op, NULL) == HCOMM_E_GONE;
}

static void want_all_free(void)
{
	struct hcomm_view_status s;
	struct hcomm_view_domain d;

	hc_ask_status(&s);
	ck_assert_uint_eq(s.domains, 0);
	ck_assert_uint_eq(s.ranks, 0);
	hc_ctl(&run, &node, "device", "list", "--no-headings", "-o", "HOLDER,DOMAINS",
	       (char *)NULL);
	for (const char *c = run.out; *c; c++)
		ck_assert_msg(!strchr("123456789", *c), "still held: %s", run.out);
	if (hc_ask_domain("doomed", &d)) /* its reason stays for an hour */
		ck_assert_str_eq(d.state, "DESTROYED");
}

START_TEST(forced_after_the_limit_naming_who_held_on)
{
	const struct hc_order destroy = {.what = HC_DO_DESTROY, .timeout_ms = LIMIT_MS};
	struct hcomm_view_event e;
	struct hc_answer a;
	char pid[32];
	uint64_t ms, told;

	one_dead_one_holding(NULL);
	snprintf(pid, sizeof(pid), "pid %d", (int)r[HOLDER].child.pid);
	hc_rank_tell(&r[0], &destroy);
	told = hc_now_ms();
	/* during the wait nothing new begins */
	hc_await("operations to be refused as gone", refused_as_gone, &r[1], 1500);
	ck_assert_uint_lt(hc_now_ms() - told, LIMIT_MS);

	hc_rank_hear(&r[0], &a, 10000);
	ck_assert_int_eq(a.result, HCOMM_E_FORCED);
	ms = (a.end_ns - a.began_ns) / 1000000;
	ck_assert_uint_ge(ms, LIMIT_MS);
	ck_assert_uint_lt(ms, LIMIT_MS + hc_patience(500));
	ck_assert_msg(strstr(a.text, "forced, 1 reference left: rank 2") && strstr(a.text, pid) &&
			      strstr(a.text, "all_reduce"),
		      "%s", a.text);
	want_all_free(); /* at that very moment */
	ck_assert(hc_ask_event("forced-release", &e));
	ck_assert_msg(strstr(e.text, pid) != NULL, "%s", e.text);

	ck_assert_int_eq(hc_rank_do(&r[HOLDER], &begin_op, NULL), HCOMM_E_GONE);
	ck_assert_int_eq(hc_rank_do(&r[0], &destroy, NULL), HCOMM_E_GONE);
	hc_ranks_quit(r, DEAD);
	hc_node_end(&node);
}
END_TEST

START_TEST(without_a_limit_the_setting_counts)
{
	const struct hc_order destroy = {.what = HC_DO_DESTROY, .timeout_ms = HCOMM_DEFAULT};
	struct hc_answer a;
	uint64_t ms;

	one_dead_one_holding("drain_timeout_s = 1");
	ck_assert_int_eq(hc_rank_do(&r[1], &destroy, &a), HCOMM_E_FORCED);
	ms = (a.end_ns - a.began_ns) / 1000000;
	ck_assert_uint_ge(ms, 1000);
	ck_assert_uint_lt(ms, 1000 + hc_patience(500));
	want_all_free();
	hc_ranks_quit(r, DEAD);
	hc_node_end(&node);
}
END_TEST

/* The holder returns its reference in time: no force, and no waiting for the dead. */
START_TEST(a_dead_rank_alone_is_not_waited_for)
{
	const struct hc_order destroy = {.what = HC_DO_DESTROY, .timeout_ms = 30000};
	const struct hc_order end = {.what = HC_DO_END};
	struct hc_answer a;
	uint64_t returned;

	one_dead_one_holding(NULL);
	hc_rank_tell(&r[0], &destroy);
	hc_await("operations to be refused as gone", refused_as_gone, &r[1], 5000);
	returned = hc_now_ns();
	hc_rank_must(&r[HOLDER], &end, NULL);
	hc_rank_hear(&r[0], &a, 10000);
	ck_assert_int_eq(a.result, 0);
	ck_assert_uint_gt(a.end_ns, returned); /* not before the last reference */
	ck_assert_uint_lt((a.end_ns - returned) / 1000000, hc_patience(500));
	want_all_free();
	hc_ranks_quit(r, DEAD);
	hc_node_end(&node);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_test(t, forced_after_the_limit_naming_who_held_on);
	tcase_add_test(t, without_a_limit_the_setting_counts);
	tcase_add_test(t, a_dead_rank_alone_is_not_waited_for);
}

int main(void)
{
	return hc_suite_run("case_055_destroy_with_dead_rank", add, 60);
}
