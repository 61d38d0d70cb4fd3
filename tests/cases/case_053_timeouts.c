/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Case 53: a rank comes late, and what the time-out means.
 *
 * A rank that loads data for minutes arrives after a limit that its users did not know, set
 * where they did not look. The error names the setting, its value and where the value comes
 * from; a rank that comes within the limit is in at once. A bad value is never read as zero or
 * as for ever: it is refused at the start, with the name and what stood there.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ranks.h"
#include "raw.h"
#include "suite.h"

#define OPEN "tests/cases/open/"

static struct hc_node node;
static struct hc_run run;
static char table[256];

enum { RANKS = 4, LATE = 3 };

static void start(const char *top)
{
	hc_node_start(&node, RANKS, top);
	snprintf(table, sizeof(table), "%s/table.json", node.dir);
	hc_table_write(table, RANKS, 1);
}

static void tell(struct hc_rank *r, uint32_t rank)
{
	struct hc_order o = {.what = HC_DO_JOIN_TABLE,
			     .rank = rank,
			     .timeout_ms = HCOMM_DEFAULT,
			     .name = "late"};

	snprintf(o.text, sizeof(o.text), "%s", table);
	hc_rank_tell(r, &o);
}

static bool three_are_there(void *ctx)
{
	struct hcomm_view_domain d;

	(void)ctx;
	return hc_ask_domain("late", &d) && d.arrived == LATE;
}

START_TEST(too_late_names_setting_value_and_origin)
{
	static struct hc_rank r[RANKS];
	unsigned limit_s = hc_long() ? 2 : 1;
	struct hc_answer a;
	char top[64], value[32];

	snprintf(top, sizeof(top), "connect_timeout_s = %u", limit_s);
	start(top);
	for (uint32_t i = 0; i < LATE; i++) {
		hc_rank_spawn(&r[i]);
		tell(&r[i], i);
	}
	snprintf(value, sizeof(value), "connect_timeout_s = %u,", limit_s);
	for (uint32_t i = 0; i < LATE; i++) {
		uint64_t ms;

		hc_rank_hear(&r[i], &a, 20000);
		ms = (a.end_ns - a.began_ns) / 1000000;
		ck_assert_int_eq(a.result, HCOMM_E_TIMEOUT);
		ck_assert_msg(strstr(a.text, value) && strstr(a.text, node.conf),
			      "no name, '%s' or origin in: %s", value, a.text);
		ck_assert_uint_ge(ms + 200, limit_s * 1000);
		ck_assert_uint_lt(ms, limit_s * 1000 + hc_patience(500));
	}
	hc_ranks_quit(r, LATE);
	hc_node_end(&node);
}
END_TEST

START_TEST(in_time_is_in_at_once)
{
	static struct hc_rank r[RANKS];
	struct hc_answer a;
	uint64_t told;

	start("connect_timeout_s = 10");
	for (uint32_t i = 0; i < LATE; i++) {
		hc_rank_spawn(&r[i]);
		tell(&r[i], i);
	}
	hc_await("three ranks to wait", three_are_there, NULL, 5000);
	hc_rank_spawn(&r[LATE]);
	told = hc_now_ns();
	tell(&r[LATE], LATE);
	for (uint32_t i = 0; i < RANKS; i++) {
		hc_rank_hear(&r[i], &a, 20000);
		ck_assert_msg(!a.result, "%s", a.text);
		ck_assert_uint_lt((a.end_ns - told) / 1000000, hc_patience(1000));
	}
	hc_ranks_quit(r, RANKS);
	hc_node_end(&node);
}
END_TEST

/* ---- values ---- */

static const char *const values[] = {"abc", "-1", "0", "1e3", "99999999999", "", "1 2", "0x10"};
#define VALUES (int)(sizeof(values) / sizeof(values[0]))

static void want_refused(const char *name, const char *value)
{
	char quoted[64];

	ck_assert_int_ne(run.status, 0);
	ck_assert_int_lt(run.status, 124);
	snprintf(quoted, sizeof(quoted), "'%s'", value);
	ck_assert_msg(strstr(run.err, name) != NULL, "no %s in: %s", name, run.err);
	ck_assert_msg(strstr(run.err, *value ? quoted : "empty") || strstr(run.err, quoted),
		      "no %s in: %s", quoted, run.err);
	ck_assert_msg(strstr(run.err, "1..7200") != NULL, "no range in: %s", run.err);
}

START_TEST(a_bad_value_in_the_file_is_refused)
{
	char top[128], place[200];

	snprintf(top, sizeof(top), "connect_timeout_s = %s", values[_i]);
	hc_node_prepare(&node, 1, top, NULL);
	hc_raw_daemon(&run, &node, 10000);
	want_refused("connect_timeout_s", values[_i]);
	snprintf(place, sizeof(place), "%s:", node.conf);
	ck_assert_ptr_nonnull(strstr(run.err, place));
	ck_assert_int_eq(hc_ctl(&run, &node, "config", "check", node.conf, (char *)NULL), 2);
	want_refused("connect_timeout_s", values[_i]);
}
END_TEST

START_TEST(a_bad_value_in_the_environment_is_refused)
{
	hc_node_prepare(&node, 1, NULL, NULL);
	setenv("HCOMM_CONNECT_TIMEOUT_S", values[_i], 1);
	hc_raw_daemon(&run, &node, 10000);
	unsetenv("HCOMM_CONNECT_TIMEOUT_S");
	want_refused("HCOMM_CONNECT_TIMEOUT_S", values[_i]);
}
END_TEST

START_TEST(a_bad_value_of_the_client_is_refused_at_open)
{
	struct hcomm_session *s;

	hc_node_start(&node, 1, NULL);
	setenv("HCOMM_TIMEOUT_SEC", values[_i], 1);
	if (*values[_i]) {
		ck_assert_int_eq(hcomm_open(NULL, &s), HCOMM_E_INVALID);
		ck_assert_msg(strstr(hcomm_last_error(), "HCOMM_TIMEOUT_SEC") &&
				      strstr(hcomm_last_error(), values[_i]),
			      "%s", hcomm_last_error());
	} else { /* so launchers take a variable away: as if it were not set */
		ck_assert_int_eq(hcomm_open(NULL, &s), 0);
		hcomm_close(s);
	}
	unsetenv("HCOMM_TIMEOUT_SEC");
	hc_node_end(&node);
}
END_TEST

START_TEST(the_file_of_the_field)
{
	hc_node_prepare(&node, 1, NULL, NULL);
	ck_assert_int_eq(
		hc_ctl(&run, &node, "config", "check", OPEN "c053-timeouts-bad.conf", (char *)NULL),
		2);
	ck_assert_ptr_nonnull(strstr(run.err, "c053-timeouts-bad.conf:1: "));
	want_refused("connect_timeout_s", "abc");
}
END_TEST

static void add(TCase *t)
{
	tcase_add_test(t, too_late_names_setting_value_and_origin);
	tcase_add_test(t, in_time_is_in_at_once);
	tcase_add_loop_test(t, a_bad_value_in_the_file_is_refused, 0, VALUES);
	tcase_add_loop_test(t, a_bad_value_in_the_environment_is_refused, 0, VALUES);
	tcase_add_loop_test(t, a_bad_value_of_the_client_is_refused_at_open, 0, VALUES);
	tcase_add_test(t, the_file_of_the_field);
}

int main(void)
{
	return hc_suite_run("case_053_timeouts", add, 60);
}
