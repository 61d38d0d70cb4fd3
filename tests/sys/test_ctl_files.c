/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hcommctl ranktable and topology, as a person or a script uses them: exit statuses, one line on
 * the right stream, JSON that another program can read. No daemon runs here.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "harness.h"

#define OPEN "tests/cases/open/"

static struct hc_run run;

/* Words up to NULL after the program's name. Returns the exit status. */
static int ctl(const char *const *words)
{
	char copy[12][256], *argv[13] = {copy[0]};
	int n;

	hc_program("hcommctl", copy[0], sizeof(copy[0]));
	for (n = 1; n < 12 && words[n - 1]; n++) {
		snprintf(copy[n], sizeof(copy[n]), "%s", words[n - 1]);
		argv[n] = copy[n];
	}
	return hc_run(&run, 20000, argv);
}

#define CTL(...) ctl((const char *const[]){__VA_ARGS__, NULL})

static int lines(const char *text)
{
	int n = 0;

	for (; *text; text++)
		n += *text == '\n';
	return n;
}

START_TEST(check_says_one_line_and_the_status)
{
	ck_assert_int_eq(CTL("ranktable", "check", OPEN "c002-control-2x2.json"), 0);
	ck_assert_str_eq(run.out, OPEN "c002-control-2x2.json: ok: version 1.0, 4 ranks on 2 "
				       "servers, IPv4\n");
	ck_assert_str_eq(run.err, "");
	ck_assert_int_eq(CTL("ranktable", "check", OPEN "c001-one-dash-of-eight.json"), 2);
	ck_assert_str_eq(run.out, "");
	ck_assert_int_eq(lines(run.err), 1);
	ck_assert_ptr_nonnull(
		strstr(run.err, OPEN "c001-one-dash-of-eight.json:35:24: bad-address: "));
	ck_assert_int_eq(CTL("ranktable", "check", OPEN "c007-initializing-only.json"), 75);
	ck_assert_int_eq(CTL("topology", "check", OPEN "c019-topo-two-peers.json"), 0);
	ck_assert_ptr_nonnull(strstr(run.out, "2 peers, 3 edges"));
	ck_assert_int_eq(CTL("topology", "check", OPEN "c022-topo-unknown-peer.json"), 2);
	ck_assert_int_eq(CTL("ranktable", "check", "/nonexistent.json"), 2);
	ck_assert_ptr_nonnull(strstr(run.err, "No such file"));
}
END_TEST

START_TEST(several_files_give_the_worst_status)
{
	ck_assert_int_eq(CTL("ranktable", "check", OPEN "c002-control-2x2.json",
			     OPEN "c007-initializing-only.json"),
			 75);
	ck_assert_int_eq(CTL("ranktable", "check", OPEN "c008-version-9.json",
			     OPEN "c007-initializing-only.json", OPEN "c002-control-2x2.json"),
			 2);
	ck_assert_int_eq(lines(run.out), 1);
	ck_assert_int_eq(lines(run.err), 2);
}
END_TEST

static void is_object(const char *has)
{
	ck_assert_str_eq(run.err, "");
	ck_assert_int_eq(lines(run.out), 1);
	ck_assert_ptr_eq(strstr(run.out, "{\"schema_version\":1,\"file\":\""), run.out);
	ck_assert_str_eq(run.out + run.out_bytes - 2, "}\n");
	ck_assert_msg(strstr(run.out, has) != NULL, "no %s in: %s", has, run.out);
}

START_TEST(json_is_one_object_a_line)
{
	ck_assert_int_eq(CTL("ranktable", "check", "--json", OPEN "c005-gap-in-ranks.json"), 2);
	is_object("\"verdict\":\"reject\",\"kind\":\"rank-gap\","
		  "\"path\":\"server_list[1].device[1].rank_id\",\"line\":31,");
	ck_assert_int_eq(CTL("--json", "ranktable", "show", OPEN "c010-physical-4-and-7.json"), 0);
	is_object("{\"rank\":1,\"server\":\"node_a\",\"device\":7,\"address\":\"192.0.2.17\","
		  "\"port\":null}");
	ck_assert_int_eq(CTL("topology", "show", OPEN "c020-topo-four-peers.json", "--json"), 0);
	is_object("\"peers\":[0,1,2,3]");
	ck_assert_int_eq(CTL("ranktable", "show", "--json", OPEN "c007-initializing-only.json"),
			 75);
	is_object("\"verdict\":\"not-ready\"");
}
END_TEST

START_TEST(show_prints_a_table)
{
	ck_assert_int_eq(CTL("ranktable", "show", OPEN "c010-physical-4-and-7.json"), 0);
	ck_assert_ptr_nonnull(strstr(run.out, "RANK"));
	ck_assert_ptr_nonnull(strstr(run.out, "rank 1 = device 7"));
	ck_assert_int_eq(CTL("ranktable", "show", "--no-headings", "-o", "address,rank",
			     OPEN "c011-eight-devices-use-2-3.json"),
			 0);
	ck_assert_int_eq(lines(run.out), 8);
	ck_assert_ptr_nonnull(strstr(run.out, "192.0.2.62    2\n"));
	ck_assert_int_eq(CTL("ranktable", "show", OPEN "c008-version-9.json"), 2);
	ck_assert_str_eq(run.out, "");
	ck_assert_int_eq(CTL("topology", "show", OPEN "c019-topo-two-peers.json"), 0);
	ck_assert_ptr_nonnull(strstr(run.out, "0:0/4,0/5 net"));
}
END_TEST

START_TEST(wrong_words_are_refused_in_one_line)
{
	static char file[] = OPEN "c002-control-2x2.json";

	ck_assert_int_eq(CTL("ranktable", "check"), 2);
	ck_assert_int_eq(lines(run.err), 1);
	ck_assert_int_eq(CTL("ranktable", "verify", file), 2);
	ck_assert_int_eq(lines(run.err), 1);
	ck_assert_int_eq(CTL("ranktable", "check", "--strict", file), 2);
	ck_assert_int_eq(lines(run.err), 1);
	ck_assert_ptr_nonnull(strstr(run.err, "--strict"));
	ck_assert_int_eq(CTL("ranktable", "show", file, file), 2);
	ck_assert_int_eq(CTL("ranktable", "show", "-o", "colour", file), 2);
	ck_assert_ptr_nonnull(strstr(run.err, "colour"));
	ck_assert_int_eq(CTL("ranktable", "check", "--", "-x.json"), 2);
	ck_assert_ptr_nonnull(strstr(run.err, "-x.json: unreadable"));
}
END_TEST

START_TEST(a_dash_is_standard_input)
{
	/* hc_run gives an empty one */
	ck_assert_int_eq(CTL("ranktable", "check", "-"), 2);
	ck_assert_ptr_nonnull(strstr(run.err, "(standard input):1:1: empty-file"));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("ctl_files");
	TCase *t = tcase_create("ctl_files");
	SRunner *r;
	int failed;

	tcase_set_timeout(t, 60);
	tcase_add_test(t, check_says_one_line_and_the_status);
	tcase_add_test(t, several_files_give_the_worst_status);
	tcase_add_test(t, json_is_one_object_a_line);
	tcase_add_test(t, show_prints_a_table);
	tcase_add_test(t, wrong_words_are_refused_in_one_line);
	tcase_add_test(t, a_dash_is_standard_input);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
