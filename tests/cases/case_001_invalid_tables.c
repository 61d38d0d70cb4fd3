/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rank tables that people really had, and what is wrong with them: cases 1, 2, 4, 5, 8, 13, 14
 * and the file shapes of 17.
 *
 * Placeholders where a query failed, addresses left out, ranks mixed between servers, doubles
 * and gaps, versions left over from other hardware, two address families, annotated examples
 * pasted whole, half-written files. In the field such a table surfaced as a bare code, or much
 * later as a time-out. Here the operator's check and the join of a rank must both refuse it at
 * once, with the same words: file, line, column, kind of fault, the object and the value.
 *
 * The good controls beside them must be accepted, with the number of ranks that they have.
 */
#include <stdio.h>
#include <string.h>

#include "hcomm/hcomm.h"
#include "suite.h"

#define OPEN "tests/cases/open/"

static const struct bad {
	const char *file, *place, *kind;
	const char *names[4];
} bad[] = {
	{"c001-dash-address", ":10:24: ", "bad-address", {"node_a", "device 0", "\"-.-.-.-\""}},
	{"c001-one-dash-of-eight",
	 ":35:24: ",
	 "bad-address",
	 {"node_a", "device 5", "rank 5", "\"-.-.-.-\""}},
	{"c002-empty-ip-two-servers", ":30:", "missing-address", {"node_b", "device 1"}},
	{"c002-no-ip-two-servers", ":8:", "missing-address", {"node_a", "device 0"}},
	{"c004-crossed-ranks", ":7:", "crossed-ranks", {"node_a", "{0-2,7}", "node_b", "{3-6}"}},
	{"c005-duplicate-address", ":30:", "duplicate-address", {"192.0.2.10", "rank 0", "rank 3"}},
	{"c005-duplicate-rank", ":26:", "duplicate-rank", {"rank 1", "node_a", "node_b"}},
	{"c005-duplicate-server-id", ":21:", "duplicate-server", {"node_a"}},
	{"c005-gap-in-ranks", ":31:", "rank-gap", {"rank 3", "of 4"}},
	{"c005-same-device-twice",
	 ":29:",
	 "duplicate-device",
	 {"node_b", "device 0", "rank 2", "rank 3"}},
	{"c007-status-missing", ":1:1: ", "missing-field", {"status"}},
	{"c007-status-unknown", ":36:", "bad-status", {"\"done\"", "completed", "initializing"}},
	{"c008-says-2.0-but-is-1.0", ":1:1: ", "missing-field", {"rank_list", "2.0"}},
	{"c008-version-9", ":2:", "bad-version", {"\"9.0\"", "1.0", "1.2", "2.0"}},
	{"c008-version-missing", ":1:1: ", "missing-field", {"version"}},
	{"c013-ipv6-same-address-two-spellings",
	 ":30:",
	 "duplicate-address",
	 {"2001:db8::a", "rank 0", "rank 3"}},
	{"c013-link-local-no-scope", ":10:", "bad-address", {"fe80::1", "scope"}},
	{"c013-mixed-families", ":25:", "mixed-family", {"node_b", "IPv4", "IPv6"}},
	{"c014-duplicate-key", ":1:", "duplicate-key", {"status"}},
	{"c014-hash-comments", ":2:", "syntax", {"line 2", "JSON has no comments"}},
	{"c014-masked-address", ":10:", "bad-address", {"\"192.0.*.6\""}},
	{"c014-trailing-comma", ":6:", "syntax", {"line 6", "comma"}},
	{"c014-with-comments", ":2:", "syntax", {"line 2", "JSON has no comments"}},
	{"c017-array-at-top", ":1:1: ", "wrong-type", {"object"}},
	{"c017-empty", ":1:1: ", "empty-file", {"empty"}},
	{"c017-truncated", ":18:", "syntax", {"end of file"}},
	{"c017-two-tables", ":38:", "syntax", {"after the end"}},
};
#define BAD (int)(sizeof(bad) / sizeof(bad[0]))

static const struct good {
	const char *file, *says[2];
} good[] = {
	{"c001-control-8p-one-server", {"8 ranks", "1 server,"}},
	{"c002-control-2x2", {"4 ranks", "2 servers"}},
	{"c002-empty-ip-one-server", {"8 ranks", "1 server,"}},
	{"c002-no-ip-one-server", {"8 ranks", "1 server,"}},
	{"c008-version-2.0-two-ranks", {"version 2.0", "2 ranks"}},
	{"c013-ipv6-only", {"4 ranks", "IPv6"}},
	{"c016-address-not-local", {"2 ranks", "2 servers"}},
	{"c020-table-2-devices", {"2 ranks", ""}},
	{"c035-netns-pair", {"4 ranks", "2 servers"}},
	{"c050-eight-ranks-one-server", {"8 ranks", ""}},
	{"c064-same-host-name", {"2 ranks", "2 servers"}},
};
#define GOOD (int)(sizeof(good) / sizeof(good[0]))

static struct hc_run run;
static struct hc_node node;

static void check_file(const char *name)
{
	char program[1200], noun[] = "ranktable", verb[] = "check", file[256];
	char *argv[] = {program, noun, verb, file, NULL};

	snprintf(file, sizeof(file), OPEN "%s.json", name);
	hc_program("hcommctl", program, sizeof(program));
	hc_run(&run, 20000, argv);
}

static void want_words(const struct bad *b, const char *text)
{
	char place[256];

	snprintf(place, sizeof(place), "%s.json%s", b->file, b->place);
	if (!strstr(text, place) || !strstr(text, b->kind))
		hc_fail("%s: no '%s' or '%s' in: %s", b->file, place, b->kind, text);
	for (int i = 0; i < 4 && b->names[i]; i++) {
		if (!strstr(text, b->names[i]))
			hc_fail("%s: '%s' is not named in: %s", b->file, b->names[i], text);
	}
}

START_TEST(the_check_refuses_it_in_one_line)
{
	const char *end;

	check_file(bad[_i].file);
	ck_assert_int_eq(run.status, 2); /* the same for all invalid tables */
	ck_assert_str_eq(run.out, "");
	end = strchr(run.err, '\n');
	ck_assert_msg(end && !end[1], "not one line: %s", run.err);
	want_words(&bad[_i], run.err);
}
END_TEST

START_TEST(only_the_broken_device_is_named)
{
	static const char *const others[] = {"rank 0", "rank 1", "rank 2", "rank 3",
					     "rank 4", "rank 6", "rank 7"};

	check_file("c001-one-dash-of-eight");
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		ck_assert_msg(!strstr(run.err, others[i]), "%s in %s", others[i], run.err);
}
END_TEST

START_TEST(a_control_is_accepted)
{
	check_file(good[_i].file);
	ck_assert_int_eq(run.status, 0);
	ck_assert_str_eq(run.err, "");
	for (int i = 0; i < 2; i++)
		ck_assert_msg(strstr(run.out, good[_i].says[i]) != NULL, "%s", run.out);
}
END_TEST

/* All of them through one session: a refusal leaves it, and the daemon, as they were. */
START_TEST(a_join_is_refused_with_the_same_words)
{
	struct hcomm_session *s;
	hcomm_domain domain;
	char path[256];
	uint64_t began;
	int r;

	hc_node_start(&node, 8, NULL);
	ck_assert_int_eq(hcomm_open(NULL, &s), 0);
	for (int i = 0; i < BAD; i++) {
		snprintf(path, sizeof(path), OPEN "%s.json", bad[i].file);
		began = hc_now_ms();
		r = hcomm_join_table(s, path, 0, NULL, 10000, &domain);
		if (r != HCOMM_E_INVALID)
			hc_fail("%s: %s: %s", bad[i].file, hcomm_error_name(r), hcomm_last_error());
		ck_assert_uint_eq(domain, 0);
		ck_assert_uint_lt(hc_now_ms() - began, hc_patience(1000)); /* not a time-out */
		check_file(bad[i].file);
		want_words(&bad[i], hcomm_last_error());
		/* word for word what the check says, but for the final newline */
		run.err[run.err_bytes - 1] = '\0';
		ck_assert_msg(strstr(hcomm_last_error(), strstr(run.err, bad[i].kind)) != NULL,
			      "check: %s\njoin: %s", run.err, hcomm_last_error());
	}
	ck_assert_int_eq(hcomm_ping(s, 5000), 0);
	hcomm_close(s);
	hc_ctl(&run, &node, "domain", "list", "--no-headings", (char *)NULL);
	ck_assert_str_eq(run.out, ""); /* nothing came of any of them */
	hc_node_end(&node);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_loop_test(t, the_check_refuses_it_in_one_line, 0, BAD);
	tcase_add_test(t, only_the_broken_device_is_named);
	tcase_add_loop_test(t, a_control_is_accepted, 0, GOOD);
	tcase_add_test(t, a_join_is_refused_with_the_same_words);
}

int main(void)
{
	return hc_suite_run("case_001_invalid_tables", add, 60);
}
