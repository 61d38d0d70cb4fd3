/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clients and daemons in confinement: other namespaces, no membarrier, no descriptors.
 *
 * A process that the daemon cannot number is still seen to die. A user that has no number never
 * owns anything. Where the kernel's fence is denied to either side, references are counted with
 * locked instructions and a drain still waits for them. A daemon without descriptors refuses
 * newcomers, keeps those who are there, and is as before when there are some again.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "confine.h"
#include "ranks.h"
#include "raw.h"
#include "suite.h"
#include "users.h"

/* The leak checker of a sanitizer cannot look at its own process from another pid namespace. */
int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void)
{
	return 1;
}

static struct hc_node node;
static uint8_t buf[HC_PACKET_MAX];

static bool is_damaged(void *ctx)
{
	struct hcomm_view_domain d;

	return !hc_ask_domain(ctx, &d) || !strcmp(d.state, "DAMAGED") ||
	       !strcmp(d.state, "DESTROYED");
}

/* ---- pid namespaces ---- */

enum keeper { KEEP_PIDS, KEEP_USERS };

/* The daemon runs in another namespace than the test, until the test says otherwise. */
static int keeps_a_daemon(void *arg, int in, int out)
{
	const enum keeper kind = *(const enum keeper *)arg;
	int ok = kind == KEEP_PIDS ? hc_confine_pids() : hc_confine_users(), stop;

	hc_tell(out, &ok, sizeof(ok));
	if (!ok)
		return 0;
	hc_node_run(&node);
	hc_tell(out, &node.pid, sizeof(node.pid));
	hc_hear(in, &stop, sizeof(stop), 60000);
	hc_node_stop(&node);
	return 0;
}

static bool keep_daemon(struct hc_child *keeper, enum keeper kind)
{
	int ok;

	setenv("HCOMM_SOCKET", node.socket, 1);
	hc_spawn(keeper, keeps_a_daemon, &kind);
	hc_child_read(keeper, &ok, sizeof(ok), 10000);
	if (ok) {
		hc_child_read(keeper, &node.pid, sizeof(node.pid), 20000);
		return true;
	}
	printf("SKIP: another namespace needs root\n");
	hc_child_wait(keeper, 5000);
	return false;
}

static void release(struct hc_child *keeper)
{
	int stop = 1;

	hc_child_tell(keeper, &stop, sizeof(stop));
	ck_assert_int_eq(hc_child_wait(keeper, 20000), 0);
}

START_TEST(clients_without_a_number_are_served_and_seen_to_die)
{
	struct hc_child keeper;
	struct hcomm_view_domain d;
	struct hcomm_view_member m;
	struct hc_rank r[2];

	hc_node_prepare(&node, 2, "orphan_grace_s = 1", NULL);
	if (!keep_daemon(&keeper, KEEP_PIDS))
		return;
	hc_ranks_start(r, 2, "foreign");
	ck_assert(hc_ask_domain("foreign", &d));
	ck_assert_str_eq(d.state, "ACTIVE");
	ck_assert(hc_ask_member("foreign", 0, &m));
	ck_assert_uint_eq(m.pid, 0); /* it has none there */
	hc_rank_must(&r[1], &(struct hc_order){.what = HC_DO_BEGIN, .kind = HCOMM_OP_BARRIER},
		     NULL);
	hc_rank_must(&r[1], &(struct hc_order){.what = HC_DO_END}, NULL);
	/* two processes without a number are not taken for one */
	hc_rank_kill(&r[0]);
	hc_await("the death of rank 0", is_damaged, (char[]){"foreign"}, 5000);
	hc_rank_must(&r[1], &(struct hc_order){.what = HC_DO_PING, .timeout_ms = 5000}, NULL);
	hc_rank_kill(&r[1]);
	release(&keeper);
}
END_TEST

/* A container's process: the daemon, outside, has a number for it. */
static int in_a_namespace(void *arg, int in, int out)
{
	struct hc_rank r;
	int ok = hc_confine_pids(), stop;

	(void)arg;
	hc_tell(out, &ok, sizeof(ok));
	if (!ok)
		return 0;
	hc_rank_spawn(&r);
	hc_ranks_join(&r, 1, 0, 0, "inner");
	hc_tell(out, &r.child.pid, sizeof(r.child.pid));
	hc_hear(in, &stop, sizeof(stop), 60000);
	hc_rank_kill(&r);
	hc_tell(out, &ok, sizeof(ok));
	hc_hear(in, &stop, sizeof(stop), 60000);
	return 0;
}

static bool is_over(void *ctx)
{
	struct hcomm_view_domain d;

	return hc_ask_domain(ctx, &d) && !strcmp(d.state, "DESTROYED");
}

START_TEST(a_client_in_a_pid_namespace)
{
	struct hc_child c;
	struct hcomm_view_member m;
	int ok, go = 1;
	pid_t pid;

	hc_node_start(&node, 1, "orphan_grace_s = 1");
	hc_spawn(&c, in_a_namespace, NULL);
	hc_child_read(&c, &ok, sizeof(ok), 10000);
	if (!ok) {
		printf("SKIP: a pid namespace needs root\n");
	} else {
		hc_child_read(&c, &pid, sizeof(pid), 20000);
		ck_assert(hc_ask_member("inner", 0, &m));
		ck_assert_uint_ne(m.pid, 0);
		hc_child_tell(&c, &go, sizeof(go));
		hc_child_read(&c, &ok, sizeof(ok), 10000);
		hc_await("the end of its domain", is_over, (char[]){"inner"}, 10000);
		hc_child_tell(&c, &go, sizeof(go));
	}
	ck_assert_int_eq(hc_child_wait(&c, 10000), 0);
	hc_node_end(&node);
}
END_TEST

/* ---- user namespaces ---- */

static int without_a_uid(void *arg, int in, int out)
{
	const struct hc_m_hello hello = {
		.proto_min = HC_PROTO_MIN, .proto_max = HC_PROTO_MAX, .build = hc_str("nobody")};
	struct hc_m_error e;
	struct hc_frame f;
	int fd;

	(void)arg;
	(void)in;
	(void)out;
	hc_become(HC_UID_OTHER, HC_MEMBER_GROUP);
	fd = hc_raw_connect(node.socket);
	ck_assert(hc_raw_ask(fd, &hc_desc_hello, 1, &hello, buf, &f));
	ck_assert_uint_eq(f.head.type, HC_MSG_error);
	ck_assert_int_eq(-f.head.status, HC_E_PERMISSION);
	ck_assert_int_eq(hc_decode(&hc_desc_error, 1, f.body, f.body_len, &e), 0);
	ck_assert_ptr_nonnull(memmem(e.text.p, e.text.len, "user namespace", 14));
	return 0;
}

START_TEST(a_user_without_a_number_owns_nothing)
{
	struct hc_child keeper, c;

	if (!hc_users_work())
		return;
	hc_users_prepare(&node, 1, NULL);
	hc_conf_set(&node, "socket_group", "root");
	hc_conf_set(&node, "socket_mode", "0666");
	if (!keep_daemon(&keeper, KEEP_USERS))
		return;
	hc_spawn(&c, without_a_uid, NULL);
	ck_assert_int_eq(hc_child_wait(&c, 20000), 0);
	ck_assert(hc_node_logged(&node, "uid 65534 is refused"));
	hc_raw_want_alive(hc_raw_session(node.socket)); /* root has a number there */
	release(&keeper);
}
END_TEST

/* ---- no membarrier ---- */

static uint32_t fence_of(struct hcomm_session *s)
{
	struct hcomm_session_info info = HCOMM_INIT(struct hcomm_session_info);

	ck_assert_int_eq(hcomm_session_get(s, &info), 0);
	return info.fence;
}

/* A destroy waits for the reference of this process, whatever the fence is. */
static int drains_without_a_fence(void *arg, int in, int out)
{
	struct hcomm_session *s, *t;
	struct hcomm_op op;
	hcomm_domain d;

	(void)in;
	(void)out;
	if (arg)
		hc_confine_membarrier();
	ck_assert_int_eq(hcomm_open(NULL, &s), 0);
	ck_assert_int_eq(hcomm_open(NULL, &t), 0);
	ck_assert_uint_eq(fence_of(s), 0);
	ck_assert_int_eq(hcomm_join_all_local(s, NULL, 0, NULL, 5000, &d), 0);
	for (int i = 0; i < 20000; i++) {
		ck_assert_int_eq(hcomm_op_begin(d, HCOMM_OP_ALL_REDUCE, 1, 0, &op), 0);
		ck_assert_int_eq(hcomm_op_end(&op), 0);
	}
	ck_assert_int_eq(hcomm_op_begin(d, HCOMM_OP_ALL_REDUCE, 1, 0, &op), 0);
	ck_assert_int_eq(hcomm_destroy(d, (int)hc_patience(300)), HCOMM_E_FORCED);
	if (!strstr(hcomm_last_error(), "1 reference left"))
		hc_fail("it says: %s", hcomm_last_error());
	hcomm_op_end(&op);
	ck_assert_int_eq(hcomm_join_all_local(s, NULL, 0, NULL, 5000, &d), 0);
	ck_assert_int_eq(hcomm_op_begin(d, HCOMM_OP_ALL_REDUCE, 1, 0, &op), 0);
	ck_assert_int_eq(hcomm_op_end(&op), 0);
	ck_assert_int_eq(hcomm_destroy(d, 5000), 0);
	hcomm_close(t);
	hcomm_close(s);
	return 0;
}

START_TEST(a_client_that_may_not_membarrier)
{
	struct hcomm_session *s;
	struct hc_child c;
	int yes = 1;

	hc_node_start(&node, 1, NULL);
	ck_assert_int_eq(hcomm_open(NULL, &s), 0);
	if (!fence_of(s)) {
		printf("SKIP: the kernel has no membarrier\n");
	} else {
		hc_spawn(&c, drains_without_a_fence, &yes);
		ck_assert_int_eq(hc_child_wait(&c, 30000), 0);
		ck_assert_uint_eq(fence_of(s), 1); /* others keep theirs */
	}
	hcomm_close(s);
	hc_node_end(&node);
}
END_TEST

static int a_daemon_without_a_fence(void *arg, int in, int out)
{
	struct hcomm_view_status s;

	hc_confine_membarrier();
	hc_node_start(&node, 1, NULL);
	hc_ask_status(&s);
	ck_assert_str_eq(s.fence, "atomics");
	drains_without_a_fence(arg, in, out);
	hc_node_end(&node);
	return 0;
}

START_TEST(a_daemon_that_may_not_membarrier)
{
	struct hc_child c;

	hc_spawn(&c, a_daemon_without_a_fence, NULL);
	ck_assert_int_eq(hc_child_wait(&c, 40000), 0);
}
END_TEST

/* ---- no descriptors ---- */

static bool lets_in(void *ctx)
{
	(void)ctx;
	return hc_socket_answers(node.socket);
}

/* It takes its guests in turns, and may not have come to the limit when it serves others. */
static bool says_too_many(void *ctx)
{
	(void)ctx;
	return hc_node_logged(&node, "descriptor") || hc_node_logged(&node, "Too many open");
}

static bool few_fds(void *ctx)
{
	return hc_proc_fds(node.pid) <= *(const unsigned *)ctx + 2 * 16;
}

START_TEST(a_daemon_out_of_descriptors)
{
	const struct hc_m_hello hello = {
		.proto_min = HC_PROTO_MIN, .proto_max = HC_PROTO_MAX, .build = hc_str("many")};
	struct rlimit few, before;
	struct hcomm_view_domain d;
	int open_fd[128], first;
	struct hc_rank r[2];
	unsigned fds, n;
	size_t len;

	hc_node_start(&node, 2, NULL);
	hc_ranks_start(r, 2, "innocent");
	first = hc_raw_session(node.socket);
	fds = hc_proc_fds(node.pid);
	ck_assert_int_eq(prlimit(node.pid, RLIMIT_NOFILE, NULL, &before), 0);
	few = before;
	few.rlim_cur = 64;
	ck_assert_int_eq(prlimit(node.pid, RLIMIT_NOFILE, &few, NULL), 0);
	for (n = 0; n < 128; n++) { /* far more than there are; nobody waits for an answer */
		open_fd[n] = hc_raw_connect(node.socket);
		len = hc_raw_frame(buf, sizeof(buf), &hc_desc_hello, 1, &hello);
		hc_raw_send(open_fd[n], buf, len);
	}
	hc_raw_want_alive(first);
	ck_assert(hc_node_alive(&node));
	hc_rank_must(&r[0], &(struct hc_order){.what = HC_DO_PING, .timeout_ms = 5000}, NULL);
	hc_rank_must(&r[0], &(struct hc_order){.what = HC_DO_BEGIN, .kind = HCOMM_OP_BARRIER},
		     NULL);
	hc_rank_must(&r[0], &(struct hc_order){.what = HC_DO_END}, NULL);
	hc_await("a word of the limit", says_too_many, NULL, 5000);
	ck_assert(!hc_node_logged(&node, "is gone")); /* all of them live */
	for (n = 0; n < 128; n++)
		close(open_fd[n]);
	ck_assert_int_eq(prlimit(node.pid, RLIMIT_NOFILE, &before, NULL), 0);
	hc_await("a new client to be let in", lets_in, NULL, 10000);
	hc_raw_want_alive(first);
	ck_assert(hc_ask_domain("innocent", &d));
	ck_assert_str_eq(d.state, "ACTIVE");
	hc_await("descriptors as before", few_fds, &fds, 10000);
	close(first);
	hc_ranks_quit(r, 2);
	hc_node_end(&node);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_test(t, clients_without_a_number_are_served_and_seen_to_die);
	tcase_add_test(t, a_client_in_a_pid_namespace);
	tcase_add_test(t, a_user_without_a_number_owns_nothing);
	tcase_add_test(t, a_client_that_may_not_membarrier);
	tcase_add_test(t, a_daemon_that_may_not_membarrier);
	tcase_add_test(t, a_daemon_out_of_descriptors);
}

int main(void)
{
	return hc_suite_run("confined", add, 60);
}
