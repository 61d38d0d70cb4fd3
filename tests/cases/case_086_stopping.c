/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Case 86. A stop with work in flight takes for ever, and the machine cannot reboot.
 *
 * Here SIGTERM and SIGINT end the daemon with exit 0 within a second, whatever is held: the
 * manager hears of it first, the database is closed without a log beside it, and the domains are
 * there again at the next start.
 *
 * Who wants jobs to end first says so: `hcommctl drain` takes no new domains and waits, within its
 * limit; a second call ends the wait. The unit does that when the machine goes down, and then
 * alone.
 */
#include <hcomm/views.h>

#include "manager.h"
#include "ranks.h"
#include "suite.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LIMIT_MS = 1000, RANKS = 2 };

static struct hc_node node;
static struct hc_manager manager;
static struct hc_rank rank[RANKS];

static void start(void)
{
	hc_node_prepare(&node, 4, NULL, NULL);
	setenv("HCOMM_SOCKET", node.socket, 1);
	hc_manager_start(&manager, &node);
	hc_node_run(&node);
}

static void end(void)
{
	hc_node_end(&node);
	hc_manager_end(&manager);
}

/* What a signal that was sent at `began` must have led to. */
static void want_ended(uint64_t began)
{
	char path[200];
	int status = hc_wait_pid(node.pid, LIMIT_MS);
	uint64_t took = hc_now_ms() - began;

	ck_assert_msg(!status, "status %d (-1: it lives) after %u ms", status, (unsigned)took);
	node.pid = 0;
	ck_assert_uint_lt(took, hc_patience(LIMIT_MS));
	hc_manager_read(&manager);
	ck_assert_uint_eq(manager.stopping, 1);
	/* told at once, before the work of stopping */
	ck_assert_uint_lt(manager.stopping_ns / 1000000u, began + hc_patience(LIMIT_MS));
	snprintf(path, sizeof(path), "%s/state/state.db-wal", node.dir);
	ck_assert_msg(access(path, F_OK), "%s is left", path);
	ck_assert_msg(access(node.socket, F_OK), "%s is left", node.socket);
}

static void stop_with(int number)
{
	uint64_t began = hc_now_ms();

	kill(node.pid, number);
	want_ended(began);
}

START_TEST(with_nothing_held)
{
	static const int numbers[] = {SIGTERM, SIGINT};

	start();
	stop_with(numbers[_i]);
	end();
}
END_TEST

START_TEST(with_a_reference_held_for_ever)
{
	struct hc_order begin = {.what = HC_DO_BEGIN, .kind = 1};
	struct hcomm_view_domain before, after;

	start();
	hc_ranks_start(rank, RANKS, "held");
	hc_rank_must(&rank[0], &begin, NULL);
	ck_assert(hc_ask_domain("held", &before));
	stop_with(SIGTERM);
	hc_rank_must(&rank[0], &(struct hc_order){.what = HC_DO_END}, NULL);
	hc_rank_must(&rank[0], &begin, NULL);
	hc_node_run(&node);
	ck_assert(hc_ask_domain("held", &after));
	ck_assert_uint_eq(before.id, after.id);
	ck_assert_str_eq(after.state, "ACTIVE");
	hc_rank_must(&rank[0], &(struct hc_order){.what = HC_DO_END}, NULL);
	hc_ranks_quit(rank, RANKS);
	end();
}
END_TEST

/* While a destroy waits for a reference, too. */
START_TEST(in_the_middle_of_a_drain)
{
	struct hc_order begin = {.what = HC_DO_BEGIN, .kind = 1};
	struct hc_order destroy = {.what = HC_DO_DESTROY, .timeout_ms = 20000};
	struct hc_answer a;

	start();
	hc_ranks_start(rank, RANKS, "held");
	hc_rank_must(&rank[0], &begin, NULL);
	hc_rank_must(&rank[1], &begin, NULL);
	hc_rank_must(&rank[1], &(struct hc_order){.what = HC_DO_END}, NULL);
	hc_rank_tell(&rank[1], &destroy);
	stop_with(SIGTERM);
	hc_node_run(&node);
	hc_rank_must(&rank[0], &(struct hc_order){.what = HC_DO_END}, NULL);
	hc_rank_hear(&rank[1], &a, 30000);
	ck_assert_msg(!a.result, "%s", a.text);
	hc_ranks_quit(rank, RANKS);
	end();
}
END_TEST

START_TEST(twice)
{
	uint64_t began;

	start();
	began = hc_now_ms();
	kill(node.pid, SIGTERM);
	kill(node.pid, SIGTERM);
	kill(node.pid, SIGINT);
	want_ended(began);
	end();
}
END_TEST

static bool lock_is_written(void *arg)
{
	char path[200];
	struct stat st;

	(void)arg;
	snprintf(path, sizeof(path), "%s/state/lock", node.dir);
	return !stat(path, &st) && st.st_size > 0;
}

START_TEST(during_the_start)
{
	uint64_t began;

	hc_node_prepare(&node, 4, NULL, NULL);
	setenv("HCOMM_SOCKET", node.socket, 1);
	hc_manager_start(&manager, &node);
	hc_node_launch(&node);
	/* it has begun, and reads its database now */
	hc_await("the lock is taken", lock_is_written, NULL, 5000);
	began = hc_now_ms();
	kill(node.pid, SIGTERM);
	want_ended(began);
	hc_node_run(&node);
	hc_node_stop(&node);
	end();
}
END_TEST

/* The manager does not read what it is told. */
START_TEST(with_a_manager_that_is_stuck)
{
	unsigned i;
	uint64_t began;
	int status;

	start();
	for (i = 0; i < 600; i++)
		kill(node.pid, SIGHUP); /* each reload is told */
	hc_ranks_start(rank, RANKS, "held");
	began = hc_now_ms();
	kill(node.pid, SIGTERM);
	status = hc_wait_pid(node.pid, LIMIT_MS);
	ck_assert_msg(!status, "status %d (-1: it lives)", status);
	ck_assert_uint_lt(hc_now_ms() - began, hc_patience(LIMIT_MS));
	node.pid = 0;
	hc_ranks_quit(rank, RANKS);
	end();
}
END_TEST

/* ---- drain ---- */

struct call {
	struct hc_child child;
	char err[600];
};

static int drains(void *arg, int in, int out)
{
	static struct hc_run run;
	char err[600] = "";

	(void)arg;
	(void)in;
	hc_ctl(&run, &node, "drain", (char *)NULL);
	snprintf(err, sizeof(err), "%.590s", run.err);
	hc_tell(out, err, sizeof(err));
	return run.status;
}

static void call_drain(struct call *c)
{
	hc_spawn(&c->child, drains, NULL);
}

static int end_of(struct call *c)
{
	hc_child_read(&c->child, c->err, sizeof(c->err), 20000);
	return hc_child_wait(&c->child, 5000);
}

static bool status_says_waiting(void *arg)
{
	struct hcomm_view_status s;

	(void)arg;
	hc_ask_status(&s);
	return strstr(s.drain, "waiting at most");
}

static void prepare(const char *top)
{
	hc_node_start(&node, 4, top);
}

/* Nobody gets in, and the word says why. */
static void want_closed_to_new(void)
{
	const uint32_t device = 3; /* nobody has it */
	struct hcomm_session *s;
	hcomm_domain d;

	ck_assert_int_eq(hcomm_open(NULL, &s), 0);
	ck_assert_int_eq(hcomm_join_all_local(s, &device, 1, NULL, 5000, &d), HCOMM_E_AGAIN);
	ck_assert_ptr_nonnull(strstr(hcomm_last_error(), "is being drained"));
	hcomm_close(s);
}

static void leave(unsigned i)
{
	hc_rank_must(&rank[i], &(struct hc_order){.what = HC_DO_LEAVE, .timeout_ms = 5000}, NULL);
}

START_TEST(a_drain_waits_for_the_jobs)
{
	struct hc_order begin = {.what = HC_DO_BEGIN, .kind = 1};
	struct hcomm_view_status s;
	static struct hc_run run;
	struct hcomm_session *session;
	hcomm_domain d;
	struct call c;

	prepare(NULL);
	hc_ranks_start(rank, RANKS, "job");
	hc_ask_status(&s);
	ck_assert_str_eq(s.drain, "no");
	call_drain(&c);
	hc_await("the status shows the drain", status_says_waiting, NULL, 5000);
	want_closed_to_new();
	hc_rank_must(&rank[0], &begin, NULL); /* what runs goes on */
	hc_rank_must(&rank[0], &(struct hc_order){.what = HC_DO_END}, NULL);
	leave(0);
	ck_assert(status_says_waiting(NULL));
	leave(1);
	ck_assert_msg(!end_of(&c), "%s", c.err);
	want_closed_to_new();
	hc_ask_status(&s);
	ck_assert_str_eq(s.drain, "0 domains left, no new ones");
	ck_assert_ptr_nonnull(strstr(s.remark, "hcommctl drain --off"));
	ck_assert_str_eq(s.health, "ok"); /* as somebody wanted it */

	ck_assert_int_eq(hc_ctl(&run, &node, "drain", "--off", (char *)NULL), 0);
	ck_assert_int_eq(hcomm_open(NULL, &session), 0);
	ck_assert_int_eq(hcomm_join_all_local(session, NULL, 0, NULL, 5000, &d), 0);
	hcomm_close(session);
	hc_ranks_quit(rank, RANKS);
	hc_node_end(&node);
}
END_TEST

START_TEST(it_waits_no_longer_than_its_limit)
{
	struct hc_order begin = {.what = HC_DO_BEGIN, .kind = 1};
	struct hcomm_view_domain row;
	uint64_t began, took;
	struct call c;

	prepare("drain_timeout_s = 1");
	hc_ranks_start(rank, RANKS, "held");
	hc_rank_must(&rank[0], &begin, NULL);
	began = hc_now_ms();
	call_drain(&c);
	ck_assert_int_eq(end_of(&c), 124);
	took = hc_now_ms() - began;
	ck_assert_uint_ge(took, 990);
	ck_assert_uint_lt(took, hc_patience(2000));
	ck_assert_msg(strstr(c.err, "1 domain is left: held after 1 s (drain_timeout_s, "), "%s",
		      c.err);
	ck_assert(hc_ask_domain("held", &row));
	ck_assert_str_eq(row.state, "ACTIVE"); /* nothing was taken from it */
	hc_rank_must(&rank[0], &(struct hc_order){.what = HC_DO_END}, NULL);
	hc_ranks_quit(rank, RANKS);
	hc_node_end(&node);
}
END_TEST

START_TEST(a_second_call_ends_the_wait)
{
	struct call first, second;
	uint64_t began;

	prepare(NULL);
	hc_ranks_start(rank, RANKS, "held");
	call_drain(&first);
	hc_await("somebody waits", status_says_waiting, NULL, 5000);
	began = hc_now_ms();
	call_drain(&second);
	ck_assert_msg(!end_of(&second), "%s", second.err);
	ck_assert_int_eq(end_of(&first), 75);
	ck_assert_uint_lt(hc_now_ms() - began, hc_patience(LIMIT_MS));
	ck_assert_msg(strstr(first.err, "ended the wait"), "%s", first.err);
	ck_assert(!status_says_waiting(NULL));
	want_closed_to_new();
	hc_ranks_quit(rank, RANKS);
	hc_node_end(&node);
}
END_TEST

/* A stop in the middle: it is no drain, so the domain is there again, and new ones are welcome. */
START_TEST(a_stop_ends_the_drain_and_no_domain)
{
	struct hcomm_view_domain row;
	struct hcomm_view_status s;
	struct call c;
	uint64_t began;

	start();
	hc_ranks_start(rank, RANKS, "held");
	call_drain(&c);
	hc_await("somebody waits", status_says_waiting, NULL, 5000);
	kill(c.child.pid, SIGKILL); /* the operator's terminal goes too */
	hc_child_kill(&c.child);
	began = hc_now_ms();
	kill(node.pid, SIGTERM);
	want_ended(began);
	hc_node_run(&node);
	hc_ask_status(&s);
	ck_assert_str_eq(s.drain, "no");
	ck_assert(hc_ask_domain("held", &row));
	hc_ranks_quit(rank, RANKS);
	end();
}
END_TEST

static int on_terminal(void *arg, int in, int out)
{
	char program[1200];
	int fd = open(arg, O_RDWR | O_NOCTTY);

	(void)in;
	(void)out;
	if (fd < 0 || dup2(fd, STDERR_FILENO) < 0)
		return 99;
	hc_program("hcommctl", program, sizeof(program));
	execl(program, program, "drain", (char *)NULL);
	return 98;
}

START_TEST(a_terminal_shows_what_is_left)
{
	char seen[4096] = "", name[64];
	struct hc_child c;
	size_t used = 0;
	ssize_t n;
	int pty;

	prepare(NULL);
	pty = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (pty < 0 || grantpt(pty) || unlockpt(pty) || ptsname_r(pty, name, sizeof(name))) {
		printf("SKIP: no pseudo terminal here\n");
		hc_node_end(&node);
		return;
	}
	hc_ranks_start(rank, RANKS, "held");
	hc_spawn(&c, on_terminal, name);
	while (!strstr(seen, "draining: 1 domain left, waiting at most ")) {
		n = read(pty, seen + used, sizeof(seen) - 1 - used);
		ck_assert_msg(n > 0, "the terminal ended after: %s", seen);
		used += (size_t)n;
		seen[used] = '\0';
	}
	leave(0);
	leave(1);
	ck_assert_int_eq(hc_child_wait(&c, 5000), 0);
	hc_ranks_quit(rank, RANKS);
	close(pty);
	hc_node_end(&node);
}
END_TEST

/* The line of the unit, with this build's program and a machine that says `state`. */
static int run_exec_stop(const char *state)
{
	char program[1200], tool[200], path[400], script[3000], *unit, *line, *end, *at;
	static struct hc_run run;
	char *argv[] = {script, NULL};

	unit = hc_read_file("systemd/hcommd.service");
	ck_assert_ptr_nonnull(unit);
	line = strstr(unit, "\nExecStop=-/bin/sh -c '");
	ck_assert_ptr_nonnull(line);
	line = strchr(line, '\'') + 1;
	end = strchr(line, '\'');
	ck_assert_ptr_nonnull(end);
	*end = '\0';
	at = strstr(line, "/usr/bin/hcommctl");
	ck_assert_ptr_nonnull(at);
	*at = '\0';
	snprintf(tool, sizeof(tool), "%s/systemctl", node.dir);
	snprintf(path, sizeof(path), "#!/bin/sh\necho %s\n", state);
	hc_write_file(tool, path);
	chmod(tool, 0755);
	snprintf(path, sizeof(path), "%s/stop", node.dir);
	hc_program("hcommctl", program, sizeof(program));
	snprintf(script, sizeof(script), "#!/bin/sh\nPATH=%s:$PATH\n%.300s%s%.100s\n", node.dir,
		 line, program, at + strlen("/usr/bin/hcommctl"));
	while ((at = strstr(script, "$$"))) /* as the manager reads it */
		memmove(at, at + 1, strlen(at));
	hc_write_file(path, script);
	chmod(path, 0755);
	snprintf(script, sizeof(script), "%s", path);
	free(unit);
	hc_run(&run, 20000, argv);
	return run.status;
}

START_TEST(the_unit_drains_at_shutdown_alone)
{
	struct hcomm_view_status s;

	prepare("drain_timeout_s = 1");
	if (access("systemd/hcommd.service", R_OK)) {
		printf("SKIP: systemd/hcommd.service is not below the working directory\n");
		hc_node_end(&node);
		return;
	}
	ck_assert_int_eq(run_exec_stop("running"), 0);
	hc_ask_status(&s);
	ck_assert_str_eq(s.drain, "no");
	ck_assert_int_eq(run_exec_stop("stopping"), 0);
	hc_ask_status(&s);
	ck_assert_str_ne(s.drain, "no");
	hc_node_end(&node);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_loop_test(t, with_nothing_held, 0, 2);
	tcase_add_test(t, with_a_reference_held_for_ever);
	tcase_add_test(t, in_the_middle_of_a_drain);
	tcase_add_test(t, twice);
	tcase_add_loop_test(t, during_the_start, 0, 10);
	tcase_add_test(t, with_a_manager_that_is_stuck);
	tcase_add_test(t, a_drain_waits_for_the_jobs);
	tcase_add_test(t, it_waits_no_longer_than_its_limit);
	tcase_add_test(t, a_second_call_ends_the_wait);
	tcase_add_test(t, a_stop_ends_the_drain_and_no_domain);
	tcase_add_test(t, a_terminal_shows_what_is_left);
	tcase_add_test(t, the_unit_drains_at_shutdown_alone);
}

int main(void)
{
	return hc_suite_run("case_086_stopping", add, 60);
}
