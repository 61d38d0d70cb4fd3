/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hcommctl with a real daemon, and without one.
 *
 * What a person relies on: a wrong word is refused in one line that helps, before anything is
 * done. What a script relies on: the exit status, tables that can be cut at blanks, and JSON that
 * parses, has its schema version and every field of the view. So every noun and verb is run both
 * ways here, and each documented exit status is reached.
 */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "harness.h"
#include "print.h"

#define RANKS   8
#define WAIT_MS 15000

static struct hc_node node;
static struct hc_run run;

static void with_daemon(void)
{
	unsetenv("NO_COLOR");
	hc_node_start(&node, RANKS, NULL);
}

static void daemon_ends(void)
{
	hc_node_end(&node);
}

/* A node that was never started: its socket is not there. */
static void without_daemon(void)
{
	hc_node_prepare(&node, RANKS, NULL, NULL);
}

#define ctl(...) hc_ctl(&run, &node, __VA_ARGS__, (char *)NULL)

static void want_status(int status)
{
	if (run.status != status)
		hc_fail("exit status %d, wanted %d; out: %s err: %s", run.status, status, run.out,
			run.err);
}

/* One line on standard error that has `text`. */
static void want_line(const char *text)
{
	const char *end = strchr(run.err, '\n');

	if (strncmp(run.err, "hcommctl: ", 10) || !end || end[1] || !strstr(run.err, text))
		hc_fail("wanted one line with '%s', got: %s", text, run.err);
}

static json_t *parse(void)
{
	json_error_t e;
	json_t *root = json_loadb(run.out, run.out_bytes, JSON_REJECT_DUPLICATES, &e);

	if (!root)
		hc_fail("no JSON: %s at %d:%d in %s", e.text, e.line, e.column, run.out);
	ck_assert_int_eq(json_integer_value(json_object_get(root, "schema_version")), 1);
	return root;
}

/* ---- words ---- */

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

/* ---- lists ---- */

static const struct list {
	const char *noun, *verb, *view;
} lists[] = {
	{"status", NULL, "status"},        {"domain", "list", "domain"},
	{"device", "list", "device"},      {"client", "list", "client"},
	{"event", "list", "event"},        {"setting", "list", "setting"},
	{"link", "list", "link"},          {"channel", "list", "channel"},
	{"channel", "waiting", "waiting"},
};
#define LISTS (int)(sizeof(lists) / sizeof(lists[0]))

static void want_fields(const json_t *rows, const struct hc_print_view *view)
{
	size_t i;
	json_t *row;

	json_array_foreach(rows, i, row)
	{
		ck_assert_uint_eq(json_object_size(row), view->nfields);
		for (unsigned k = 0; k < view->nfields; k++)
			ck_assert_ptr_nonnull(json_object_get(row, view->fields[k].name));
	}
}

START_TEST(every_list_is_a_table_and_json)
{
	const struct list *l = &lists[_i];
	const struct hc_print_view *view = hc_view_named(l->view);
	json_t *root;
	size_t rows, lines = 0;

	ctl("--json", l->noun, l->verb);
	ck_assert_int_le(run.status, 1);
	root = parse();
	ck_assert_str_eq(json_string_value(json_object_get(root, "view")), l->view);
	want_fields(json_object_get(root, "rows"), view);
	rows = json_array_size(json_object_get(root, "rows"));
	json_decref(root);

	ctl(l->noun, l->verb ? l->verb : "-o", l->verb ? "-o" : view->fields[0].heading,
	    l->verb ? view->fields[0].heading : NULL);
	ck_assert_int_le(run.status, 1);
	ck_assert_ptr_nonnull(strstr(run.out, view->fields[0].heading));
	for (const char *p = run.out; (p = strchr(p, '\n')); p++)
		lines++;
	if (strcmp(l->view, "event") && strcmp(l->view, "client"))
		ck_assert_uint_eq(lines, rows + 1); /* those two grow while one looks */
	ck_assert_ptr_null(strchr(run.out, '\033'));
}
END_TEST

START_TEST(simulated_devices_are_said_to_be_simulated)
{
	ctl("device", "list", "--no-headings", "-o", "simulated");
	want_status(0);
	ck_assert_str_eq(run.out, "1\n1\n1\n1\n1\n1\n1\n1\n");
	ctl("status", "-o", "devices,SIMULATED", "--no-headings");
	ck_assert_int_eq(atoi(run.out), RANKS);
	ck_assert_ptr_nonnull(strstr(run.out, " 8"));
}
END_TEST

START_TEST(status_is_a_health_check)
{
	json_t *root;
	const char *health;

	ctl("status", "--json");
	root = parse();
	health = json_string_value(
		json_object_get(json_array_get(json_object_get(root, "rows"), 0), "health"));
	ck_assert_int_eq(run.status, strcmp(health, "ok") ? 1 : 0);
	json_decref(root);
	ctl("status");
	ck_assert_ptr_nonnull(strstr(run.out, "HEALTH"));
	ck_assert_ptr_nonnull(strstr(run.out, node.socket));
}
END_TEST

START_TEST(version_names_the_daemon)
{
	ctl("version");
	want_status(0);
	ck_assert_ptr_nonnull(strstr(run.out, "daemon   " HC_VERSION " on "));
}
END_TEST

/* ---- a terminal ---- */

/* Output of hcommctl device list on a terminal of its own. */
static void on_terminal(const char *no_color, char *out, size_t size)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	size_t n = 0;
	ssize_t got;
	int status;
	pid_t pid;

	ck_assert_int_ge(master, 0);
	ck_assert(!grantpt(master) && !unlockpt(master));
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (!pid) {
		char program[1200];
		int tty;

		setsid();
		tty = open(ptsname(master), O_RDWR);
		if (tty < 0 || dup2(tty, 1) < 0 || dup2(tty, 2) < 0)
			_exit(99);
		setenv("TERM", "xterm", 1);
		if (no_color)
			setenv("NO_COLOR", no_color, 1);
		execl(hc_program("hcommctl", program, sizeof(program)), "hcommctl", "device",
		      "list", (char *)NULL);
		_exit(99);
	}
	while (n < size - 1 && (got = read(master, out + n, size - 1 - n)) > 0)
		n += (size_t)got;
	out[n] = '\0';
	close(master);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
}

START_TEST(colours_are_for_a_terminal_without_no_color)
{
	static char out[65536];

	on_terminal(NULL, out, sizeof(out));
	ck_assert_ptr_nonnull(strstr(out, "DEVICE"));
	ck_assert_ptr_nonnull(strchr(out, '\033'));
	on_terminal("1", out, sizeof(out));
	ck_assert_ptr_nonnull(strstr(out, "DEVICE"));
	ck_assert_ptr_null(strchr(out, '\033'));
}
END_TEST

START_TEST(watch_repeats_until_its_reader_goes)
{
	char program[1200], line[2400];
	char bash[] = "/bin/bash", option[] = "-c";
	char *argv[] = {bash, option, line, NULL};

	hc_program("hcommctl", program, sizeof(program));
	snprintf(line, sizeof(line),
		 "'%s' domain list --watch=0.05 -o STATE | grep -c --line-buffered -m3 STATE",
		 program);
	ck_assert_int_eq(hc_run(&run, WAIT_MS, argv), 0);
	ck_assert_str_eq(run.out, "3\n");
}
END_TEST

/* ---- domains ---- */

static char table[256];

static void write_table(unsigned servers)
{
	snprintf(table, sizeof(table), "%s/table.json", node.dir);
	hc_table_write(table, RANKS, servers);
}

static bool only_domain_is(void *state)
{
	char want[64];

	snprintf(want, sizeof(want), "%s\n", (const char *)state);
	ctl("domain", "list", "--no-headings", "-o", "STATE");
	return !strcmp(run.out, want);
}

static bool no_domain_lives(void *unused)
{
	static const char *const alive[] = {"FORMING", "PROBING",   "ACTIVATING", "ACTIVE",
					    "DAMAGED", "SUSPENDED", "DRAINING"};

	(void)unused;
	ctl("domain", "list", "--no-headings", "-o", "STATE");
	for (size_t i = 0; i < sizeof(alive) / sizeof(alive[0]); i++) {
		if (strstr(run.out, alive[i]))
			return false;
	}
	return !run.status;
}

static int exec_hold(void *arg, int in, int out)
{
	char program[1200];

	(void)in;
	dup2(out, 1);
	hc_program("hcommctl", program, sizeof(program));
	execl(program, "hcommctl", "domain", "create", "--rank-table", (const char *)arg, "--name",
	      "held", "--hold", "--ops", "1000", (char *)NULL);
	return 99;
}

static char active[] = "ACTIVE", damaged[] = "DAMAGED";

START_TEST(hold_runs_a_domain_until_it_is_interrupted)
{
	struct hc_child child;
	json_t *root;
	const json_t *rows, *members;

	write_table(1);
	hc_spawn(&child, exec_hold, table);
	hc_await("the held domain to be ACTIVE", only_domain_is, active, WAIT_MS);

	ctl("domain", "show", "held", "--json");
	want_status(0);
	root = parse();
	rows = json_object_get(root, "rows");
	members = json_object_get(root, "members");
	want_fields(rows, hc_view_named("domain"));
	want_fields(members, hc_view_named("member"));
	ck_assert_uint_eq(json_array_size(rows), 1);
	ck_assert_uint_eq(json_array_size(members), RANKS);
	json_decref(root);

	ctl("domain", "show", "held");
	want_status(0);
	ck_assert_ptr_nonnull(strstr(run.out, "RANK"));
	ck_assert_ptr_null(strstr(run.out, "missing"));
	ctl("domain", "show", "held", "-o", "rank", "--no-headings");
	ck_assert_str_eq(run.out, "0\n1\n2\n3\n4\n5\n6\n7\n");
	/* nobody gives signs of life yet, so no column says when the last came */
	ctl("domain", "show", "held", "-o", "seen-ms");
	want_status(2);

	kill(child.pid, SIGTERM);
	ck_assert_int_eq(hc_child_wait(&child, WAIT_MS), 0);
	hc_await("the domain to end after its ranks left", no_domain_lives, NULL, WAIT_MS);
}
END_TEST

static uint32_t pid_of_rank(const char *rank)
{
	char *line;

	ctl("domain", "show", "held", "-o", "RANK,PID", "--no-headings");
	for (line = strtok(run.out, "\n"); line; line = strtok(NULL, "\n")) {
		unsigned k, pid;

		if (sscanf(line, "%u %u", &k, &pid) == 2 && k == (unsigned)atoi(rank))
			return pid;
	}
	hc_fail("rank %s is not listed", rank);
}

START_TEST(a_killed_rank_is_seen_in_state_journal_and_status_of_hold)
{
	struct hc_child child;
	char said[64];
	uint32_t pid;

	write_table(1);
	hc_spawn(&child, exec_hold, table);
	hc_await("the held domain to be ACTIVE", only_domain_is, active, WAIT_MS);
	pid = pid_of_rank("5");
	kill((pid_t)pid, SIGKILL);
	hc_await("the domain to be DAMAGED", only_domain_is, damaged, WAIT_MS);

	snprintf(said, sizeof(said), "%u", pid);
	ctl("event", "list", "--since", "1h", "--domain", "held", "-o", "EVENT,RANK,PID",
	    "--no-headings");
	want_status(0);
	ck_assert_ptr_nonnull(strstr(run.out, "rank-died"));
	ck_assert_ptr_nonnull(strstr(run.out, said));

	kill(child.pid, SIGINT);
	ck_assert_int_eq(hc_child_wait(&child, WAIT_MS), 1);
}
END_TEST

START_TEST(ranks_that_do_not_come_are_named_and_the_status_is_124)
{
	write_table(2);
	ctl("domain", "create", "--rank-table", table, "--hold");
	want_status(2);
	want_line("has 2 servers (node_0, node_1), none by the name of this node");
	want_line("which one is it: --server NAME");
	ctl("domain", "create", "--rank-table", table, "--hold", "--server", "node_9");
	want_status(2);
	want_line("no server 'node_9'; it has node_0, node_1");
	ctl("domain", "create", "--rank-table", table, "--hold", "--server", "node_0", "--timeout",
	    "0.4");
	want_status(124);
	ck_assert_ptr_nonnull(strstr(run.err, "hcommctl: rank "));
	hc_await("nothing to be left of it", no_domain_lives, NULL, WAIT_MS);
}
END_TEST

/* The daemon knows what this node is called, so nobody has to say which server it is. */
START_TEST(a_server_of_the_name_of_this_node_is_this_node)
{
	hc_node_end(&node);
	hc_node_start(&node, RANKS, "node_name = node_1");
	write_table(2);
	ctl("domain", "create", "--rank-table", table, "--hold", "--timeout", "0.4");
	want_status(124); /* nobody holds the ranks of node_0 */
	ck_assert_msg(strstr(run.err, "hcommctl: rank 4") || strstr(run.err, "hcommctl: rank 5") ||
			      strstr(run.err, "hcommctl: rank 6") ||
			      strstr(run.err, "hcommctl: rank 7"),
		      "%s", run.err);
	hc_await("nothing to be left of it", no_domain_lives, NULL, WAIT_MS);
}
END_TEST

START_TEST(a_domain_made_for_others_can_be_seen_and_destroyed)
{
	json_t *root;
	char id[32];

	write_table(1);
	ctl("domain", "create", "--rank-table", table, "--name", "agent", "--json");
	want_status(0);
	root = parse();
	snprintf(id, sizeof(id), "%s", json_string_value(json_object_get(root, "id")));
	ck_assert_uint_eq(strlen(id), 16);
	json_decref(root);

	ctl("domain", "create", "--rank-table", table, "--name", "agent");
	want_status(1);
	want_line("agent");
	ctl("domain", "show", id);
	want_status(0);
	ck_assert_ptr_nonnull(strstr(run.out, "agent"));
	ctl("domain", "show", "agnet");
	want_status(1);
	want_line("agnet");

	ctl("domain", "destroy", "agent");
	want_status(0);
	ck_assert_ptr_nonnull(strstr(run.out, id));
	ctl("domain", "destroy", id);
	want_status(1);
}
END_TEST

static int exec_follow(void *arg, int in, int out)
{
	char program[1200];

	(void)arg;
	(void)in;
	dup2(out, 1);
	hc_program("hcommctl", program, sizeof(program));
	execl(program, "hcommctl", "event", "follow", "--json", (char *)NULL);
	return 99;
}

/* One more domain comes and goes; has the follower said anything? It may not listen yet. */
static bool something_is_heard(void *arg)
{
	struct pollfd p = {.fd = ((struct hc_child *)arg)->in, .events = POLLIN};

	ctl("domain", "create", "--rank-table", table, "--name", "seen");
	want_status(0);
	ctl("domain", "destroy", "seen");
	want_status(0);
	return poll(&p, 1, 100) == 1;
}

START_TEST(follow_prints_events_as_they_happen)
{
	struct hc_child child;
	json_error_t e;
	json_t *event;
	ssize_t got;

	write_table(1);
	hc_spawn(&child, exec_follow, NULL);
	hc_await("an event to be followed", something_is_heard, &child, WAIT_MS);
	got = read(child.in, run.out, sizeof(run.out) - 1);
	ck_assert_int_gt(got, 0);
	run.out[got] = '\0';
	event = json_loads(run.out, JSON_DISABLE_EOF_CHECK, &e); /* the first of perhaps many */
	ck_assert_ptr_nonnull(event);
	ck_assert_ptr_nonnull(json_string_value(json_object_get(event, "code")));
	ck_assert_uint_eq(strlen(json_string_value(json_object_get(event, "domain"))), 16);
	json_decref(event);
	hc_child_kill(&child);
}
END_TEST

START_TEST(a_bad_table_is_refused_before_the_daemon_is_asked)
{
	snprintf(table, sizeof(table), "%s/bad.json", node.dir);
	hc_write_file(table, "{\"version\":\"1.0\",\n \"status\":\"completed\",\n"
			     " \"server_list\":[{\"server_id\":\"a\",\"device\":[\n"
			     "  {\"device_id\":\"0\",\"rank_id\":\"0\"},\n"
			     "  {\"device_id\":\"1\",\"rank_id\":\"0\"}]}]}\n");
	ctl("domain", "create", "--rank-table", table, "--hold");
	want_status(2);
	want_line("bad.json:5:");
	hc_write_file(table, "{\"version\":\"1.0\",\"status\":\"initializing\"}\n");
	ctl("domain", "create", "--rank-table", table, "--hold");
	want_status(75);
}
END_TEST

/* ---- an operator's words ---- */

START_TEST(reload_and_log_level_are_carried_out)
{
	char bad[512];

	ctl("log", "level", "warn");
	want_status(0);
	ctl("reload");
	want_status(0);
	snprintf(bad, sizeof(bad), "conect_timeout_s = 5\n");
	hc_write_file(node.conf, bad);
	ctl("reload");
	want_status(2);
	want_line("connect_timeout_s");
}
END_TEST

START_TEST(settings_show_where_they_come_from)
{
	ctl("setting", "list", "--no-headings", "-o", "NAME,ORIGIN");
	want_status(0);
	ck_assert_ptr_nonnull(strstr(run.out, "state_dir"));
	ck_assert_ptr_nonnull(strstr(run.out, node.conf));
	ck_assert_ptr_nonnull(strstr(run.out, "default"));
}
END_TEST

START_TEST(somebody_else_is_not_permitted)
{
	char program[1200];
	int status;
	pid_t pid;

	if (geteuid()) {
		printf("SKIP: only root can become another user\n");
		return;
	}
	hc_program("hcommctl", program, sizeof(program));
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (!pid) {
		int program_fd = open(program, O_RDONLY); /* the path may be closed to others */
		char *argv[] = {program, NULL, NULL, NULL, NULL};
		char socket[] = "--socket", word[] = "status";

		argv[1] = socket;
		argv[2] = node.socket;
		argv[3] = word;
		if (program_fd < 0 || setgroups(0, NULL) || setgid(65534) || setuid(65534))
			_exit(99);
		fexecve(program_fd, argv, environ);
		_exit(98);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status));
	ck_assert_int_eq(WEXITSTATUS(status), 4);
}
END_TEST

static void add_offline(Suite *s)
{
	TCase *t = tcase_create("offline");

	suite_add_tcase(s, t);
	tcase_set_timeout(t, 60);
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

static void add_online(Suite *s)
{
	TCase *t = tcase_create("online");

	suite_add_tcase(s, t);
	tcase_set_timeout(t, 120);
	tcase_add_checked_fixture(t, with_daemon, daemon_ends);
	tcase_add_loop_test(t, every_list_is_a_table_and_json, 0, LISTS);
	tcase_add_test(t, simulated_devices_are_said_to_be_simulated);
	tcase_add_test(t, status_is_a_health_check);
	tcase_add_test(t, version_names_the_daemon);
	tcase_add_test(t, colours_are_for_a_terminal_without_no_color);
	tcase_add_test(t, watch_repeats_until_its_reader_goes);
	tcase_add_test(t, hold_runs_a_domain_until_it_is_interrupted);
	tcase_add_test(t, a_killed_rank_is_seen_in_state_journal_and_status_of_hold);
	tcase_add_test(t, ranks_that_do_not_come_are_named_and_the_status_is_124);
	tcase_add_test(t, a_server_of_the_name_of_this_node_is_this_node);
	tcase_add_test(t, a_domain_made_for_others_can_be_seen_and_destroyed);
	tcase_add_test(t, follow_prints_events_as_they_happen);
	tcase_add_test(t, a_bad_table_is_refused_before_the_daemon_is_asked);
	tcase_add_test(t, reload_and_log_level_are_carried_out);
	tcase_add_test(t, settings_show_where_they_come_from);
	tcase_add_test(t, somebody_else_is_not_permitted);
}

int main(void)
{
	Suite *s = suite_create("ctl");
	SRunner *sr;
	int failed;

	add_offline(s);
	add_online(s);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
