/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hcommctl without a daemon: what a person relies on.
 *
 * A wrong word is refused in one line that helps, before anything is done; no word at all is usage;
 * a daemon that is not there is named by its socket; help and explain know all that there is.
 */
#include "ctltest.h"
#include "print.h"

static const struct wrong {
	const char *words[6];
	const char *says;
} wrongs[] = {
	{{"domian", "list"}, "unknown command 'domian'; did you mean 'domain'?"},
	{{"frobnicate"}, "unknown command 'frobnicate'; see hcommctl --help"},
	{{"domain"}, "domain needs a verb: list, show, create, destroy"},
	{{"domain", "shwo"}, "did you mean 'show'?"},
	{{"domain", "fly"}, "wanted: list, show, create, destroy"},
	{{"domain", "show"}, "needs ID|NAME"},
	{{"domain", "show", ""}, "ID|NAME of domain show is empty"},
	{{"domain", "destroy", ""}, "ID|NAME of domain destroy is empty"},
	{{"link", "show", ""}, "NAME of link show is empty"},
	{{"node", "show", ""}, "NODE of node show is empty"},
	{{"path", "show", ""}, "NODE of path show is empty"},
	{{"channel", "list", "--domain", ""}, "--domain is empty"},
	{{"channel", "waiting", "--domain="}, "--domain is empty"},
	{{"event", "list", "--domain", ""}, "--domain is empty"},
	{{"domain", "list", "all"}, "'all' is one word too many"},
	{{"--jsno", "status"}, "did you mean '--json'?"},
	{{"channel"}, "channel needs a verb: list, show, waiting, hold"},
	{{"channel", "lsit"}, "did you mean 'list'?"},
	{{"channel", "show"}, "needs ID"},
	{{"channel", "show", "7"}, "channel is '7'; wanted: 16 hexadecimal digits"},
	{{"channel", "list", "-o", "ID,COLOUR"}, "unknown column 'COLOUR'; wanted: ID, DOMAIN"},
	{{"channel", "waiting", "-o", "ID"}, "unknown column 'ID'; wanted: DOMAIN, RANK"},
	{{"channel", "hold", "--wait", "--retry"}, "give one of them"},
	{{"channel", "hold", "--class", "8"}, "--class is '8'; wanted: a whole number 0..7"},
	{{"channel", "hold", "--path", "wire"}, "--path is 'wire'; wanted: any, hccs"},
	{{"channel", "hold", "--for", "0"}, "--for is '0'; wanted: seconds"},
	{{"channel", "hold", "--shared"}, "give --devices"},
	{{"channel", "hold", "--devices", "1,1"}, "two different ones"},
	{{"channel", "hold", "--devices", "1"}, "two device numbers"},
	{{"perf"}, "perf needs a verb: server, client"},
	{{"perf", "client", "--sizes", "8,2M"}, "size is '2M'; wanted: bytes up to 1048576"},
	{{"perf", "client", "--sizes", "8,,9"}, "size is ''"},
	{{"perf", "client", "--buffer", "17M"}, "--buffer is '17M'"},
	{{"perf", "client", "--iterations", "0"}, "--iterations is '0'"},
	{{"perf", "client", "-o", "COLOUR"}, "unknown column 'COLOUR'; wanted: SIZE, COUNT"},
	{{"perf", "server", "--weight", "101"}, "--weight is '101'"},
	{{"event", "list", "--sinse", "1h"}, "did you mean '--since'?"},
	{{"event", "list", "--since"}, "--since needs a value"},
	{{"event", "list", "--since", "soon"}, "--since is 'soon'; wanted: a time"},
	{{"event", "list", "--since=1h", "--since=2h"}, "--since is given twice"},
	{{"event", "list", "--limit", "0"}, "--limit is '0'; wanted: a whole number 1.."},
	{{"--json=yes", "status"}, "--json takes no value"},
	{{"--timeout", "0", "status"}, "--timeout is '0'; wanted: seconds"},
	{{"--timeout", "x", "status"}, "--timeout is 'x'"},
	{{"status", "--watch=never"}, "--watch is 'never'"},
	{{"domain", "list", "-o", "ID,COLOUR"}, "unknown column 'COLOUR'; wanted: ID, NAME, STATE"},
	{{"domain", "list", "-o", "ID", "--json"}, "-o is for tables"},
	{{"domain", "create"}, "needs --rank-table FILE"},
	{{"domain", "create", "--rank-table", "/nowhere/t.json"}, "/nowhere/t.json: "},
	{{"domain", "create", "--rank-table", "x", "--ops", "3"}, "give --hold too"},
	{{"log", "level", "loud"}, "wanted: error, warn, info or debug"},
	{{"explain", "TIMEOT"}, "did you mean 'TIMEOUT'?"},
	{{"explain", "EI006"}, "did you mean 'EI0006'?"},
};
#define WRONGS (int)(sizeof(wrongs) / sizeof(wrongs[0]))

START_TEST(a_wrong_word_is_refused_in_one_line)
{
	const struct wrong *w = &wrongs[_i];

	hc_ctl(&run, &node, w->words[0], w->words[1], w->words[2], w->words[3], w->words[4],
	       w->words[5], (char *)NULL);
	want_status(2);
	want_line(w->says);
	ck_assert_str_eq(run.out, "");
}
END_TEST

START_TEST(no_word_at_all_is_usage)
{
	hc_ctl(&run, &node, (char *)NULL);
	want_status(2);
	want_line("no command; see hcommctl --help");
}
END_TEST

START_TEST(help_knows_every_noun)
{
	static const char *const nouns[] = {"status",    "domain",   "device", "link",
					    "client",    "channel",  "perf",   "event",
					    "ranktable", "topology", "config", "setting",
					    "explain",   "log",      "reload", "version"};

	ctl("--help");
	want_status(0);
	for (size_t i = 0; i < sizeof(nouns) / sizeof(nouns[0]); i++) {
		char head[64];

		snprintf(head, sizeof(head), "hcommctl %s", nouns[i]);
		ck_assert_ptr_nonnull(strstr(run.out, head));
	}
	for (size_t i = 0; i < sizeof(nouns) / sizeof(nouns[0]); i++) {
		ctl(nouns[i], "-h");
		want_status(0);
		ck_assert_ptr_nonnull(strstr(run.out, nouns[i]));
		ck_assert_ptr_nonnull(strstr(run.out, "--no-headings"));
	}
}
END_TEST

/* ---- without a daemon ---- */

START_TEST(no_daemon_is_3_and_names_the_socket)
{
	static const char *const asks[][3] = {
		{"status"},
		{"domain", "list"},
		{"domain", "show", "x"},
		{"device", "list"},
		{"client", "list"},
		{"event", "list"},
		{"link", "list"},
		{"link", "show", "shm"},
		{"channel", "list"},
		{"channel", "show", "0123456789abcdef"},
		{"channel", "waiting"},
		{"channel", "hold"},
		{"perf", "server"},
		{"perf", "client"},
		{"event", "follow"},
		{"setting", "list"},
		{"domain", "destroy", "x"},
		{"reload"},
		{"log", "level", "info"},
	};

	for (size_t i = 0; i < sizeof(asks) / sizeof(asks[0]); i++) {
		ctl(asks[i][0], asks[i][1], asks[i][2]);
		want_status(3);
		want_line(node.socket);
	}
	ctl("--socket", "/nowhere/hcommd.sock", "status");
	want_status(3);
	want_line("/nowhere/hcommd.sock");
}
END_TEST

START_TEST(version_without_a_daemon_still_says_its_own)
{
	json_t *root;

	ctl("version");
	want_status(3);
	ck_assert_ptr_nonnull(strstr(run.out, "hcommctl " HC_VERSION "\n"));
	ctl("version", "--json");
	want_status(3);
	root = parse();
	ck_assert_str_eq(json_string_value(json_object_get(root, "library")), HC_VERSION);
	ck_assert(json_is_null(json_object_get(root, "daemon")));
	json_decref(root);
	ctl("--version");
	want_status(0);
	ck_assert_str_eq(run.out, "hcommctl " HC_VERSION "\n");
}
END_TEST

START_TEST(a_socket_path_of_108_bytes_is_refused_by_length)
{
	char path[110];

	memset(path, 'x', sizeof(path));
	path[0] = '/';
	path[108] = '\0';
	ctl("status", "--socket", path);
	want_status(2);
	want_line("107");
	path[107] = '\0'; /* that fits, and is not there */
	ctl("status", "--socket", path);
	want_status(3);
}
END_TEST

START_TEST(explain_knows_all_three_families)
{
	static const struct {
		const char *word, *says[3];
	} codes[] = {
		{"HCOMM_E_TIMEOUT", {"HCOMM_E_TIMEOUT (-6): timed out", "HCCL_E_TIMEOUT (9)"}},
		{"timeout", {"HCOMM_E_TIMEOUT (-6)", "HCCL_E_TIMEOUT (9)"}},
		{"-6", {"HCOMM_E_TIMEOUT (-6)", "ncclRemoteError (6)"}},
		{"9", {"HCCL_E_TIMEOUT (9)", "HCOMM_E_NOT_READY (-9)"}},
		{"HCCL_E_PARA", {"HCCL_E_PARA (1): bad argument"}},
		{"1041", {"HCCL_E_IN_STATUS (1041)"}},
		{"ei0004", {"EI0004: rank table file", "ranktable check"}},
		{"EJ0003", {"EJ0003: port"}},
	};

	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		ctl("explain", codes[i].word);
		want_status(0);
		for (int k = 0; k < 3 && codes[i].says[k]; k++) {
			if (!strstr(run.out, codes[i].says[k]))
				hc_fail("explain %s has no '%s': %s", codes[i].word,
					codes[i].says[k], run.out);
		}
	}
}
END_TEST

START_TEST(explain_knows_every_error_of_the_table)
{
	for (const struct hc_error_row *row = hc_error_rows; row->name; row++) {
		json_t *root, *first;
		char number[16];

		snprintf(number, sizeof(number), "-%d", row->number);
		ctl("explain", number, "--json");
		want_status(0);
		root = parse();
		first = json_array_get(json_object_get(root, "codes"), 0);
		ck_assert_int_eq(json_integer_value(json_object_get(first, "number")),
				 -row->number);
		ck_assert_str_eq(json_string_value(json_object_get(first, "explain")),
				 row->explain);
		json_decref(root);
	}
}
END_TEST

static void add(TCase *t)
{
	tcase_add_checked_fixture(t, without_daemon, daemon_ends);
	tcase_add_loop_test(t, a_wrong_word_is_refused_in_one_line, 0, WRONGS);
	tcase_add_test(t, no_word_at_all_is_usage);
	tcase_add_test(t, help_knows_every_noun);
	tcase_add_test(t, no_daemon_is_3_and_names_the_socket);
	tcase_add_test(t, version_without_a_daemon_still_says_its_own);
	tcase_add_test(t, a_socket_path_of_108_bytes_is_refused_by_length);
	tcase_add_test(t, explain_knows_all_three_families);
	tcase_add_test(t, explain_knows_every_error_of_the_table);
}

int main(void)
{
	return hc_suite_run("ctl_words", add, 60);
}
