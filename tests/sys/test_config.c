/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hcommctl config, without any daemon: what an operator sees before and instead of a start.
 *
 * Scripts live from the exit status and the single line on standard error, people from the origin
 * column: a site-wide file that nobody remembers must show up by name and line.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "harness.h"

static char dir[256];
static struct hc_run run;

static const char *in_dir(const char *name)
{
	static char path[4][512];
	static unsigned next;
	char *p = path[next++ % 4];

	snprintf(p, sizeof(path[0]), "%s/%s", dir, name);
	return p;
}

static void setup(void)
{
	hc_tempdir(dir, sizeof(dir));
}

/* hcommctl with up to five arguments. */
static int ctl(const char *a, const char *b, const char *c, const char *d, const char *e)
{
	const char *words[] = {a, b, c, d, e};
	char program[512], copy[5][512];
	char *argv[7] = {program};

	hc_program("hcommctl", program, sizeof(program));
	for (int i = 0; i < 5 && words[i]; i++) {
		snprintf(copy[i], sizeof(copy[i]), "%s", words[i]);
		argv[i + 1] = copy[i];
	}
	return hc_run(&run, 10000, argv);
}

static void expect_line(const char *format)
{
	char line[1024];

	snprintf(line, sizeof(line), format, dir);
	ck_assert_str_eq(run.err, line);
	ck_assert_str_eq(run.out, "");
}

START_TEST(check_tells_good_from_bad)
{
	const char *file = in_dir("hcommd.conf");

	hc_write_file(file, "aging_s = 5\n");
	ck_assert_int_eq(ctl("config", "check", file, NULL, NULL), 0);
	ck_assert_str_eq(run.err, "");
	hc_write_file(file, "connect_timeout_s = abc\n");
	ck_assert_int_eq(ctl("config", "check", file, NULL, NULL), 2);
	expect_line("hcommctl: %s/hcommd.conf:1: connect_timeout_s: 'abc' is not a number; wanted "
		    "1..7200 seconds\n");
	ck_assert_int_eq(ctl("config", "show", file, NULL, NULL), 2);
	ck_assert_int_eq(ctl("config", "check", in_dir("none"), NULL, NULL), 2);
	expect_line("hcommctl: %s/none: cannot be read: No such file or directory\n");
}
END_TEST

START_TEST(show_finds_the_setting_that_nobody_remembers)
{
	char want[512];

	hc_write_file(in_dir("hcommd.conf"), "# mine\naging_s = 5\n");
	mkdir(in_dir("conf.d"), 0700);
	hc_write_file(in_dir("conf.d/site.conf"), "# site-wide\ntopology_file = /t.json\n");
	ck_assert_int_eq(ctl("--json", "config", "show", in_dir("hcommd.conf"), NULL), 0);
	snprintf(want, sizeof(want), "\"origin\": \"%s/conf.d/site.conf:2\"", dir);
	ck_assert_msg(strstr(run.out, want) != NULL, "%s", run.out);
	ck_assert_ptr_nonnull(strstr(run.out, "\"schema_version\": 1"));
	setenv("HCOMM_LOG_RATE", "7", 1);
	ck_assert_int_eq(ctl("config", "show", in_dir("hcommd.conf"), NULL, NULL), 0);
	unsetenv("HCOMM_LOG_RATE");
	ck_assert_ptr_nonnull(strstr(run.out, "environment HCOMM_LOG_RATE"));
	ck_assert_ptr_nonnull(strstr(run.out, "/conf.d/site.conf:2"));
}
END_TEST

START_TEST(diff_says_what_a_reload_cannot_do)
{
	hc_write_file(in_dir("a.conf"), "aging_s = 5\n");
	hc_write_file(in_dir("b.conf"), "aging_s = 6\nlisten_port = 7\n");
	ck_assert_int_eq(ctl("config", "diff", in_dir("a.conf"), in_dir("a.conf"), NULL), 0);
	ck_assert_int_eq(ctl("--json", "config", "diff", in_dir("a.conf"), in_dir("b.conf")), 1);
	ck_assert_ptr_nonnull(strstr(run.out, "\"listen_port\""));
	ck_assert_ptr_nonnull(strstr(run.out, "\"reloadable\": false"));
	ck_assert_ptr_nonnull(strstr(run.out, "\"reloadable\": true"));
}
END_TEST

START_TEST(wrong_words_are_usage)
{
	ck_assert_int_eq(ctl("config", "check", "a", "b", NULL), 2);
	ck_assert_int_eq(ctl("config", "diff", "a", NULL, NULL), 2);
	ck_assert_int_eq(ctl("config", "show", "--nonsense", NULL, NULL), 2);
	ck_assert_str_ne(run.err, "");
}
END_TEST

int main(void)
{
	Suite *s = suite_create("config");
	TCase *t = tcase_create("config");
	SRunner *sr = srunner_create(s);
	int failed;

	suite_add_tcase(s, t);
	tcase_add_checked_fixture(t, setup, NULL);
	tcase_add_test(t, check_tells_good_from_bad);
	tcase_add_test(t, show_finds_the_setting_that_nobody_remembers);
	tcase_add_test(t, diff_says_what_a_reload_cannot_do);
	tcase_add_test(t, wrong_words_are_usage);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
