/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process with a domain and traffic forks children, as data loaders do.
 *
 * Whatever they do (exit, _exit, exec, call the library, die), the parent's session, domain and
 * references stay as they are; calls in a child are refused, or it opens a session of its own;
 * nothing dead-locks, although other threads of the parent are inside calls when it forks.
 */
#include "apitest.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

/* The leak checker of a sanitizer stops the threads of its process; in a child by fork of a process
 * with threads it waits for those that are not there. */
int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void)
{
	return 1;
}

static struct hcomm_session *session;
static hcomm_domain domain, local;
static struct hcomm_op held;
static _Atomic bool stop;

static _Atomic int worst; /* of the threads: an assertion of libcheck would allocate */

static void *ask_always(void *arg)
{
	struct hcomm_status st = HCOMM_INIT(struct hcomm_status);
	struct hcomm_op op;
	int r = 0;

	(void)arg;
	while (!stop && !r) {
		r = hcomm_ping(session, 20000);
		if (!r)
			r = hcomm_status_get(domain, &st);
		if (!r)
			r = hcomm_op_begin(domain, HCOMM_OP_SEND, 1, 0, &op);
		if (!r)
			r = hcomm_op_end(&op);
	}
	if (r)
		worst = r;
	return NULL;
}

/* Every call is refused, and none hangs. */
static int call_everything(void *arg, int in, int out)
{
	struct hcomm_status st = HCOMM_INIT(struct hcomm_status);
	struct hcomm_op op, copy = held;

	(void)arg;
	(void)in;
	(void)out;
	refused(hcomm_ping(session, 1000), HCOMM_E_FORKED, "fork");
	refused(hcomm_dispatch(session, 0), HCOMM_E_FORKED, "fork");
	refused(hcomm_status_get(domain, &st), HCOMM_E_FORKED, "fork");
	refused(hcomm_op_begin(domain, HCOMM_OP_ALL_REDUCE, 1, 0, &op), HCOMM_E_FORKED, "fork");
	refused(hcomm_op_begin(local, HCOMM_OP_ALL_REDUCE, 1, 0, &op), HCOMM_E_FORKED, "fork");
	refused(hcomm_op_end(&copy), HCOMM_E_FORKED, "fork");
	refused(hcomm_leave(domain, 1000), HCOMM_E_FORKED, "fork");
	refused(hcomm_destroy(domain, 1000), HCOMM_E_FORKED, "fork");
	ck_assert_int_eq(hcomm_fd(session), -1);
	hcomm_close(session);
	return 0;
}

static int open_own(void *arg, int in, int out)
{
	struct hcomm_session_info info = HCOMM_INIT(struct hcomm_session_info);
	struct hcomm_session *own;
	struct hcomm_op op;
	hcomm_domain d;

	(void)arg;
	(void)in;
	own = open_session();
	works(hcomm_ping(own, 10000));
	works(hcomm_session_get(own, &info));
	/* the parent's handle is still none of ours */
	refused(hcomm_op_begin(domain, HCOMM_OP_ALL_REDUCE, 1, 0, &op), HCOMM_E_FORKED, "fork");
	refused(hcomm_ping(session, 1000), HCOMM_E_FORKED, "fork");
	works(hcomm_join(NULL, NULL, 1, 0, 0, NULL, 1000, &d));
	works(hcomm_op_begin(d, HCOMM_OP_ALL_REDUCE, 1, 0, &op));
	works(hcomm_op_end(&op));
	works(hcomm_leave(d, 1000));
	hcomm_close(session);
	hcomm_close(own);
	hc_tell(out, &info.session, sizeof(info.session));
	return 0;
}

static int exit_at_once(void *arg, int in, int out)
{
	(void)arg;
	(void)in;
	(void)out;
	return 0;
}

static int exit_hard(void *arg, int in, int out)
{
	(void)arg;
	(void)in;
	(void)out;
	_exit(0);
}

static int run_another(void *arg, int in, int out)
{
	(void)arg;
	(void)in;
	(void)out;
	execl("/bin/true", "true", NULL);
	return 1;
}

/* No descriptor of the library goes over into another program. */
static int count_sockets(void *arg, int in, int out)
{
	char command[128];

	(void)arg;
	(void)in;
	(void)out;
	snprintf(command, sizeof(command), "! ls -l /proc/self/fd | grep -q -e socket: -e memfd:");
	execl("/bin/sh", "sh", "-c", command, NULL);
	return 1;
}

static int kill_itself(void *arg, int in, int out)
{
	(void)arg;
	(void)in;
	(void)out;
	raise(SIGKILL);
	return 1;
}

START_TEST(children_change_nothing_for_their_parent)
{
	static const struct {
		hc_child_fn fn;
		int status;
	} kinds[] = {{exit_at_once, 0},  {exit_hard, 0},     {run_another, 0},
		     {count_sockets, 0}, {kill_itself, 137}, {call_everything, 0}};
	struct hcomm_session_info before = HCOMM_INIT(struct hcomm_session_info), after = before;
	pthread_t threads[2];
	struct hc_node n;
	unsigned i, round, fds, maps, running;

	hc_node_start(&n, 1, NULL);
	session = open_session();
	domain = join_root(session, 1, 0);
	works(hcomm_join(NULL, NULL, 1, 0, 0, NULL, 1000, &local));
	works(hcomm_session_get(session, &before));
	works(hcomm_op_begin(domain, HCOMM_OP_ALL_REDUCE, 1, 0, &held));
	for (i = 0; i < 2; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, ask_always, NULL), 0);
	fds = hc_count_fds();
	maps = hc_count_maps("hcomm");
	running = hc_count_threads();
	for (round = 0; round < 4; round++) {
		struct hc_child c[6];

		for (i = 0; i < 6; i++)
			hc_spawn(&c[i], kinds[i].fn, NULL);
		for (i = 0; i < 6; i++)
			ck_assert_msg(hc_child_wait(&c[i], 20000) == kinds[i].status,
				      "child %u: %d", i, c[i].status);
	}
	for (round = 0; round < 4; round++) {
		struct hc_child c;
		uint64_t number;

		hc_spawn(&c, open_own, NULL);
		hc_child_read(&c, &number, sizeof(number), 20000);
		ck_assert_uint_ne(number, before.session);
		ck_assert_int_eq(hc_child_wait(&c, 20000), 0);
	}
	ck_assert_uint_eq(hc_count_fds(), fds);
	ck_assert_uint_eq(hc_count_maps("hcomm"), maps);
	ck_assert_uint_eq(hc_count_threads(), running);
	stop = true;
	for (i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	ck_assert_int_eq(worst, 0);
	works(hcomm_session_get(session, &after));
	ck_assert_uint_eq(after.session, before.session); /* never reconnected */
	ck_assert_int_eq(state_of(domain), HCOMM_ACTIVE);
	works(hcomm_op_end(&held));
	works(hcomm_leave(domain, 5000)); /* exactly no reference was left */
	works(hcomm_leave(local, 100));
	hcomm_close(session);
	hc_node_end(&n);
}
END_TEST

TESTS("case_061_fork", children_change_nothing_for_their_parent)
