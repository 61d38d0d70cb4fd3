/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Case 50: four of eight ranks come.
 *
 * "Time-out" alone sends people to the logs of eight machines. Every rank that waited gets the
 * list of those that did not come, with their addresses, at its limit and not much later; while
 * it waits, the operator sees the same list; and afterwards nothing is left of the attempt.
 */
#include <stdio.h>
#include <string.h>

#include "ranks.h"
#include "suite.h"

#define OPEN "tests/cases/open/"

static struct hc_node node;
static struct hc_run run;

static bool four_have_come(void *ctx)
{
	struct hcomm_view_domain d;

	(void)ctx;
	return hc_ask_domain("half", &d) && d.arrived == 4;
}

static void want_missing(const char *text)
{
	static const char *const names[] = {"1",          "3",          "5",          "7",
					    "127.0.0.11", "127.0.0.13", "127.0.0.15", "127.0.0.17"};
	static const char *const there[] = {"127.0.0.10", "127.0.0.12", "127.0.0.14", "127.0.0.16"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		ck_assert_msg(strstr(text, names[i]) != NULL, "no '%s' in: %s", names[i], text);
	for (size_t i = 0; i < sizeof(there) / sizeof(there[0]); i++)
		ck_assert_msg(!strstr(text, there[i]), "%s came, yet: %s", there[i], text);
}

static void tell_all(struct hc_rank *r, int timeout_ms)
{
	struct hc_order o = {.what = HC_DO_JOIN_TABLE,
			     .timeout_ms = timeout_ms,
			     .text = OPEN "c050-eight-ranks-one-server.json",
			     .channels = 1,
			     .name = "half"};

	for (uint32_t i = 0; i < 4; i++) {
		hc_rank_spawn(&r[i]);
		o.rank = 2 * i;
		hc_rank_tell(&r[i], &o);
	}
}

static void want_all_told(struct hc_rank *r, unsigned limit_ms, const char *setting)
{
	struct hc_answer a;

	for (uint32_t i = 0; i < 4; i++) {
		uint64_t ms;

		hc_rank_hear(&r[i], &a, 20000);
		ck_assert_msg(a.result == HCOMM_E_TIMEOUT, "rank %u: %d: %s", 2 * i, a.result,
			      a.text);
		want_missing(a.text);
		ck_assert_msg(strstr(a.text, setting) != NULL, "no '%s' in: %s", setting, a.text);
		ms = (a.end_ns - a.began_ns) / 1000000;
		/* another rank's limit may have ended it: they began within moments */
		ck_assert_uint_ge(ms + 200, limit_ms);
		ck_assert_uint_lt(ms, limit_ms + hc_patience(500));
	}
}

static void want_nothing_left(void)
{
	struct hcomm_view_status s;

	hc_ask_status(&s);
	ck_assert_uint_eq(s.forming, 0);
	ck_assert_uint_eq(s.active, 0);
	ck_assert_uint_eq(s.ranks, 0);
	ck_assert_uint_eq(s.channels, 0); /* each had wished for some */
	ck_assert_uint_eq(s.waiting, 0);
	hc_ctl(&run, &node, "device", "list", "--no-headings", "-o", "HOLDER", (char *)NULL);
	for (const char *c = run.out; *c; c++)
		ck_assert_msg(!strchr("123456789", *c), "devices are held: %s", run.out);
}

START_TEST(the_missing_are_named_at_the_configured_limit)
{
	static struct hc_rank r[4];
	unsigned limit_s = hc_long() ? 3 : 1;
	char top[64];

	snprintf(top, sizeof(top), "connect_timeout_s = %u", limit_s);
	hc_node_start(&node, 8, top);
	tell_all(r, HCOMM_DEFAULT);
	want_all_told(r, limit_s * 1000, "connect_timeout_s");
	want_nothing_left();
	hc_ranks_quit(r, 4);
	hc_node_end(&node);
}
END_TEST

START_TEST(the_operator_sees_the_same_list_meanwhile)
{
	static struct hc_rank r[4];

	hc_node_start(&node, 8, NULL);
	tell_all(r, 1500);
	hc_await("four ranks to have come", four_have_come, NULL, 5000);
	hc_ctl(&run, &node, "domain", "show", "half", (char *)NULL);
	ck_assert_ptr_nonnull(strstr(run.out, "FORMING"));
	/* the arrived ones are rows of the table; what is said to be missing is in the cause */
	hc_ctl(&run, &node, "domain", "list", "--no-headings", "-o", "CAUSE", (char *)NULL);
	want_missing(run.out);
	want_all_told(r, 1500, "1.5");
	hc_ranks_quit(r, 4);
	hc_node_end(&node);
}
END_TEST

/* Rank 0 had come, and gave up before rank 1 did: rank 1 is not told that it never came. */
START_TEST(who_gave_up_is_not_blamed)
{
	static struct hc_rank r[2];
	struct hc_order o = {.what = HC_DO_JOIN_TABLE, .timeout_ms = 200};
	struct hc_answer a;

	hc_node_start(&node, 2, NULL);
	snprintf(o.text, sizeof(o.text), "%s/table.json", node.dir);
	hc_table_write(o.text, 3, 1);
	for (uint32_t i = 0; i < 2; i++)
		hc_rank_spawn(&r[i]);
	o.rank = 1;
	o.timeout_ms = 600;
	hc_rank_tell(&r[1], &o);
	o.rank = 0;
	o.timeout_ms = 200;
	ck_assert_int_eq(hc_rank_do(&r[0], &o, &a), HCOMM_E_TIMEOUT);
	ck_assert_msg(strstr(a.text, "no sign of rank 2") != NULL, "%s", a.text);
	hc_rank_hear(&r[1], &a, 10000);
	ck_assert_int_eq(a.result, HCOMM_E_TIMEOUT);
	ck_assert_msg(strstr(a.text, "no sign of rank 2") != NULL, "%s", a.text);
	hc_ranks_quit(r, 2);
	hc_node_end(&node);
}
END_TEST

/* The four that were missing are all that it takes, also after a failed attempt. */
START_TEST(the_next_attempt_succeeds)
{
	static struct hc_rank r[8];
	struct hc_order o = {.what = HC_DO_JOIN_TABLE,
			     .timeout_ms = 10000,
			     .text = OPEN "c050-eight-ranks-one-server.json",
			     .name = "half"};
	struct hc_answer a;

	hc_node_start(&node, 8, NULL);
	tell_all(r, 300);
	for (uint32_t i = 0; i < 4; i++) {
		hc_rank_hear(&r[i], &a, 20000);
		ck_assert_int_eq(a.result, HCOMM_E_TIMEOUT);
	}
	for (uint32_t i = 4; i < 8; i++)
		hc_rank_spawn(&r[i]);
	for (uint32_t i = 0; i < 8; i++) {
		o.rank = i < 4 ? 2 * i : 2 * i - 7;
		hc_rank_tell(&r[i], &o);
	}
	for (uint32_t i = 0; i < 8; i++) {
		hc_rank_hear(&r[i], &a, 20000);
		ck_assert_msg(!a.result, "%s", a.text);
	}
	hc_ranks_quit(r, 8);
	hc_node_end(&node);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_test(t, the_missing_are_named_at_the_configured_limit);
	tcase_add_test(t, the_operator_sees_the_same_list_meanwhile);
	tcase_add_test(t, who_gave_up_is_not_blamed);
	tcase_add_test(t, the_next_attempt_succeeds);
}

int main(void)
{
	return hc_suite_run("case_050_who_is_missing", add, 60);
}
