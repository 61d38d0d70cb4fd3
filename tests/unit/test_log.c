/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Log records as an operator meets them: one line each whatever a client sends, a flood of one
 * kind neither hides the others nor goes unmentioned.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "log.h"

#define SECOND 1000000000ull

static char *read_back(FILE *f)
{
	static char text[65536];
	size_t n;

	rewind(f);
	n = fread(text, 1, sizeof(text) - 1, f);
	text[n] = '\0';
	return text;
}

static unsigned count(const char *text, const char *word)
{
	unsigned n = 0;

	while ((text = strstr(text, word))) {
		n++;
		text += strlen(word);
	}
	return n;
}

START_TEST(a_flood_of_one_kind_is_cut_and_counted)
{
	struct hc_log_limit *limit = calloc(1, sizeof(*limit));
	uint32_t held, i, passed = 0;

	for (i = 0; i < 1000; i++)
		passed += hc_log_limit_pass(limit, 7, 10, 5 * SECOND + i, &held);
	ck_assert_uint_eq(passed, 10);
	/* the next second begins anew and tells what was held back */
	ck_assert(hc_log_limit_pass(limit, 7, 10, 6 * SECOND, &held));
	ck_assert_uint_eq(held, 990);
	ck_assert(hc_log_limit_pass(limit, 7, 10, 6 * SECOND + 1, &held));
	ck_assert_uint_eq(held, 0);
	free(limit);
}
END_TEST

START_TEST(a_flood_does_not_hide_another_kind)
{
	struct hc_log_limit *limit = calloc(1, sizeof(*limit));
	uint32_t held, i;

	for (i = 0; i < 100; i++)
		hc_log_limit_pass(limit, 7, 10, SECOND, &held);
	ck_assert(!hc_log_limit_pass(limit, 7, 10, SECOND, &held));
	ck_assert(hc_log_limit_pass(limit, 8, 10, SECOND, &held));
	free(limit);
}
END_TEST

START_TEST(more_kinds_than_places_are_still_judged)
{
	struct hc_log_limit *limit = calloc(1, sizeof(*limit));
	uint32_t held, kind, passed = 0;

	for (kind = 1; kind <= 10000; kind++)
		passed += hc_log_limit_pass(limit, kind * 64u, 1, SECOND, &held);
	/* at least one of each place, at most one of each kind */
	ck_assert_uint_ge(passed, 128);
	ck_assert_uint_le(passed, 10000);
	free(limit);
}
END_TEST

START_TEST(text_from_outside_stays_on_its_line)
{
	FILE *f = tmpfile();
	struct hc_log_about about = {.code = HC_W_event_code_RANK_DIED, .domain = 1, .rank = 2};
	char *text;

	hc_log_open(HC_LOG_STDERR, HC_LOG_INFO, 10);
	hc_log_to(fileno(f));
	hc_log(HC_LOG_WARN, "name %s", "a\nb\x1b[31mred\x7f");
	hc_log_event(HC_LOG_INFO, &about, hc_str("rank\r\n2"));
	hc_log_to(STDERR_FILENO);
	text = read_back(f);
	ck_assert_uint_eq(count(text, "\n"), 2);
	ck_assert_ptr_null(strchr(text, '\x1b'));
	ck_assert_ptr_null(strchr(text, '\r'));
	ck_assert_ptr_nonnull(strstr(text, "a\\x0ab\\x1b[31mred"));
	fclose(f);
}
END_TEST

START_TEST(lines_begin_with_time_and_level_and_obey_the_level)
{
	FILE *f = tmpfile();
	int year, month, day, hour, minute, second, milli, pid;
	char *text, level[16];

	hc_log_open(HC_LOG_STDERR, HC_LOG_WARN, 10);
	hc_log_to(fileno(f));
	hc_log(HC_LOG_INFO, "not wanted");
	hc_log(HC_LOG_ERROR, "wanted");
	hc_log_set(HC_LOG_DEBUG, 10);
	hc_log(HC_LOG_DEBUG, "wanted now");
	hc_log_to(STDERR_FILENO);
	text = read_back(f);
	ck_assert_ptr_null(strstr(text, "not wanted"));
	ck_assert_uint_eq(count(text, "wanted"), 2);
	ck_assert_int_eq(sscanf(text, "%4d-%2d-%2dT%2d:%2d:%2d.%3dZ hcommd[%d] %15[a-z]:", &year,
				&month, &day, &hour, &minute, &second, &milli, &pid, level),
			 9);
	ck_assert_str_eq(level, "error");
	ck_assert_int_eq(pid, (int)getpid());
	fclose(f);
}
END_TEST

START_TEST(records_held_back_are_told_at_last)
{
	FILE *f = tmpfile();
	struct hc_log_about about = {.code = HC_W_event_code_RANK_LEFT, .rank = HC_NONE};
	char *text;
	int i;

	hc_log_open(HC_LOG_STDERR, HC_LOG_INFO, 2);
	hc_log_to(fileno(f));
	for (i = 0; i < 50; i++)
		hc_log_event(HC_LOG_INFO, &about, hc_str("a rank left"));
	/* the tick tells once the kind has been silent for a second */
	for (i = 0; i < 400 && !strstr(read_back(f), "held back"); i++) {
		usleep(10000);
		fseek(f, 0, SEEK_END);
		hc_log_tick();
	}
	hc_log_to(STDERR_FILENO);
	text = read_back(f);
	ck_assert_ptr_nonnull(strstr(text, "records were held back"));
	ck_assert_uint_le(count(text, "a rank left"), 6);
	fclose(f);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("log");
	TCase *t = tcase_create("log");
	SRunner *r;
	int failed;

	tcase_add_test(t, a_flood_of_one_kind_is_cut_and_counted);
	tcase_add_test(t, a_flood_does_not_hide_another_kind);
	tcase_add_test(t, more_kinds_than_places_are_still_judged);
	tcase_add_test(t, text_from_outside_stays_on_its_line);
	tcase_add_test(t, lines_begin_with_time_and_level_and_obey_the_level);
	tcase_add_test(t, records_held_back_are_told_at_last);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
