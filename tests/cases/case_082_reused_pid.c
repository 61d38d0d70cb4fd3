/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Case 82. Process numbers are reused.
 *
 * The number that an old daemon left in its lock file is that of a live stranger now: the start
 * does not care, and nobody is signalled. A client dies and its number goes to another process,
 * while the daemon looks or while it is away: the rank is dead all the same, and its references
 * are released. A number alone is nobody; with the start time it is.
 */
#include "ranks.h"
#include "suite.h"

#include <errno.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static struct hc_node node;
static struct hc_rank rank[2];

static void write_lock(pid_t pid)
{
	char path[200], text[32];

	snprintf(path, sizeof(path), "%s/state/lock", node.dir);
	snprintf(text, sizeof(text), "%d\n", (int)pid);
	hc_write_file(path, text);
}

static int sleeper(void *arg, int in, int out)
{
	char byte;

	(void)arg;
	hc_tell(out, "r", 1);
	hc_hear(in, &byte, 1, 60000);
	return 0;
}

START_TEST(the_number_in_the_lock_file_is_a_strangers)
{
	struct hc_child stranger;
	char byte;

	hc_node_prepare(&node, 2, NULL, NULL);
	setenv("HCOMM_SOCKET", node.socket, 1);
	hc_spawn(&stranger, sleeper, NULL);
	hc_child_read(&stranger, &byte, 1, 5000);
	write_lock(_i == 0 ? stranger.pid : _i == 1 ? 1 : getpid());
	hc_node_run(&node);
	hc_node_kill(&node);
	write_lock(stranger.pid);
	hc_node_run(&node);
	hc_node_stop(&node);
	/* it was not signalled: it still hears, and ends well */
	hc_child_tell(&stranger, "x", 1);
	ck_assert_int_eq(hc_child_wait(&stranger, 5000), 0);
	hc_node_end(&node);
}
END_TEST

/* A process with that number. 0: it may not be chosen here. */
static pid_t take_number(pid_t wanted)
{
	struct clone_args args = {
		.exit_signal = SIGCHLD, .set_tid = (uint64_t)(uintptr_t)&wanted, .set_tid_size = 1};
	long pid = syscall(SYS_clone3, &args, sizeof(args));

	if (!pid) {
		for (;;)
			pause();
	}
	if (pid < 0 && (errno == EPERM || errno == ENOSYS || errno == EINVAL))
		return 0;
	if (pid < 0)
		hc_fail("clone3 with pid %d: %s", (int)wanted, strerror(errno));
	return (pid_t)pid;
}

/* Start times are counted in hundredths of a second. */
static bool is_later(void *arg)
{
	return hc_now_ms() > *(uint64_t *)arg + 30;
}

static bool is_dead(void *arg)
{
	struct hcomm_view_member m;

	(void)arg;
	return hc_ask_member("job", 1, &m) && !strcmp(m.state, "dead");
}

START_TEST(the_number_of_a_dead_rank_is_taken)
{
	struct hc_order begin = {.what = HC_DO_BEGIN, .kind = 1};
	struct hc_order destroy = {.what = HC_DO_DESTROY, .timeout_ms = 10000};
	pid_t number, other;
	uint64_t started;

	hc_node_start(&node, 2, NULL);
	hc_ranks_start(rank, 2, "job");
	started = hc_now_ms();
	hc_rank_must(&rank[1], &begin, NULL);
	number = rank[1].child.pid;
	if (_i) /* while the daemon is away */
		hc_node_kill(&node);
	hc_rank_kill(&rank[1]);
	hc_await("the clock of start times moves", is_later, &started, 1000);
	other = take_number(number);
	if (_i)
		hc_node_run(&node);
	if (!other) {
		printf("SKIP: the number of a process cannot be chosen here (wanted: root)\n");
	} else {
		hc_await("rank 1 is dead", is_dead, NULL, 5000);
		ck_assert_int_eq(kill(number, 0), 0); /* its number lives */
		/* and what it held is not waited for */
		hc_rank_must(&rank[0], &destroy, NULL);
		kill(other, SIGKILL);
		waitpid(other, NULL, 0);
	}
	hc_rank_quit(&rank[0]);
	hc_node_end(&node);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_loop_test(t, the_number_in_the_lock_file_is_a_strangers, 0, 3);
	tcase_add_loop_test(t, the_number_of_a_dead_rank_is_taken, 0, 2);
}

int main(void)
{
	return hc_suite_run("case_082_reused_pid", add, 60);
}
