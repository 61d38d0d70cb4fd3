/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Assertions in processes that a test forks (tests/lib/forked.c): what libcheck keeps for its
 * runner is written by the test's own process alone, and a child that finds something wrong says
 * what, and ends with 1.
 */
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "suite.h"

/* A write to any file kills it from here on. */
static void write_no_more(void)
{
	const struct rlimit none = {0, 0};

	if (setrlimit(RLIMIT_FSIZE, &none))
		_exit(99);
}

START_TEST(what_holds_in_a_child_is_told_to_nobody)
{
	const pid_t pid = fork();
	int status;

	ck_assert_int_ge(pid, 0);
	if (!pid) {
		write_no_more();
		for (int i = 0; i < 100; i++)
			ck_assert_int_eq(i, i);
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
}
END_TEST

static void find_something_wrong(bool text)
{
	write_no_more();
	if (text)
		ck_abort_msg("the %s is gone", "cheese");
	ck_assert_str_eq("cheese", "gone");
	_exit(0);
}

/* Ends as what it forks does. */
static void fork_again(bool text)
{
	const pid_t pid = fork();
	int status;

	if (!pid)
		find_something_wrong(text);
	_exit(pid < 0 || waitpid(pid, &status, 0) != pid ? 98 : WEXITSTATUS(status));
}

/* Also in a child of a child, and with a text or without. */
START_TEST(what_does_not_is_said_and_ends_the_child)
{
	char said[1000];
	int fds[2], status;
	ssize_t n;
	pid_t pid;

	ck_assert_int_eq(pipe(fds), 0);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (!pid) {
		dup2(fds[1], STDERR_FILENO);
		if (_i / 2)
			fork_again(_i % 2);
		find_something_wrong(_i % 2);
	}
	close(fds[1]);
	n = read(fds[0], said, sizeof(said) - 1);
	ck_assert_int_gt(n, 0);
	said[n] = '\0';
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 1);
	ck_assert_msg(strstr(said, "test_forked.c:") && strstr(said, "cheese") &&
			      strstr(said, "gone"),
		      "%s", said);
}
END_TEST

/* As often as it takes to be hit in the middle of one. */
START_TEST(one_that_is_killed_spoils_nothing)
{
	for (int i = 0; i < 200; i++) {
		const pid_t pid = fork();
		int status;

		ck_assert_int_ge(pid, 0);
		if (!pid)
			for (;;)
				ck_assert_int_eq(i, i);
		for (int k = 0; k < 100; k++)
			ck_assert_int_eq(k, k);
		ck_assert_int_eq(kill(pid, SIGKILL), 0);
		ck_assert_int_eq(waitpid(pid, &status, 0), pid);
		ck_assert(WIFSIGNALED(status));
	}
}
END_TEST

static void add(TCase *t)
{
	tcase_add_test(t, what_holds_in_a_child_is_told_to_nobody);
	tcase_add_loop_test(t, what_does_not_is_said_and_ends_the_child, 0, 4);
	tcase_add_test(t, one_that_is_killed_spoils_nothing);
}

int main(void)
{
	return hc_suite_run("forked", add, 60);
}
