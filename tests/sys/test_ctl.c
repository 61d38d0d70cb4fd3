/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hcommctl with a real daemon.
 *
 * What a script relies on: the exit status, tables that can be cut at blanks, and JSON that parses,
 * has its schema version and every field of the view. So every noun and verb is run both ways here,
 * and each documented exit status is reached. Wrong words are in test_ctl_words.
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
#include "ctltest.h"
#include "print.h"

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
	char first;

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

	/* its line comes when each of its ranks has heard that the domain is ACTIVE */
	hc_child_read(&child, &first, 1, WAIT_MS);
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

static void add(TCase *t)
{
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
	return hc_suite_run("ctl", add, 120);
}
