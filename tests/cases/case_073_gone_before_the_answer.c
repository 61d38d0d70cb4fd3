/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Case 73: one side is gone before the answer.
 *
 * A client that asks and closes at once killed daemons by a broken pipe: a denial of service by
 * any user. Thousands of such clients leave this daemon, and the sessions of others, as they
 * were. The other way round, a program that links the library keeps the default action of
 * SIGPIPE; a daemon that dies between request and answer must cost it an error code, not its
 * life, and its signal settings must be its own afterwards.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ranks.h"
#include "raw.h"
#include "suite.h"

/* Kept by the daemon: arenas of a process's closed sessions, dead processes. */
enum { ARENAS = 8, DEAD_KEPT = 64 };

static struct hc_node node;

/* A valid request of each sort, in the same packets as ever, and nobody to take the answer. */
static void ask_and_close(unsigned i)
{
	static uint8_t out[4096];
	const struct hc_m_hello hello = {
		.proto_min = HC_PROTO_MIN, .proto_max = HC_PROTO_MAX, .build = hc_str("hasty")};
	const struct hc_m_query query = {.view = HC_VIEW_setting};
	const struct hc_m_root_info root = {.nranks = 2};
	int fd = hc_raw_connect(node.socket);
	size_t n = hc_raw_frame(out, sizeof(out), &hc_desc_hello, 1, &hello);

	if (i % 4 == 1)
		n += hc_raw_frame(out + n, sizeof(out) - n, &hc_desc_query, 2, &query);
	else if (i % 4 == 2)
		n += hc_raw_frame(out + n, sizeof(out) - n, &hc_desc_ping, 2,
				  &(struct hc_m_ping){.value = i});
	else if (i % 4 == 3)
		n += hc_raw_frame(out + n, sizeof(out) - n, &hc_desc_root_info, 2, &root);
	if (!hc_raw_send(fd, out, n))
		hc_fail("client %u could not ask", i);
	close(fd);
}

static bool sessions_are_over(void *ctx)
{
	struct hcomm_view_status s;

	hc_ask_status(&s);
	return s.clients <= *(const uint32_t *)ctx;
}

START_TEST(hasty_clients_do_no_harm)
{
	static struct hc_rank other[2];
	unsigned count = hc_long() ? 10000 : 1000, fds;
	uint32_t clients;
	struct hcomm_view_status s;
	struct hcomm_view_domain d;

	hc_node_start(&node, 2, NULL);
	hc_ranks_start(other, 2, "steady");
	hc_ask_status(&s);
	clients = s.clients;
	fds = hc_proc_fds(node.pid);
	for (unsigned i = 0; i < count; i++)
		ask_and_close(i);
	hc_await("all their sessions to be over", sessions_are_over, &clients, 20000);
	ck_assert(hc_node_alive(&node));
	/* of the sessions of one process that lives the newest few arenas are kept */
	ck_assert_uint_le(hc_proc_fds(node.pid), fds + ARENAS + 1);
	ck_assert(hc_ask_domain("steady", &d));
	ck_assert_str_eq(d.state, "ACTIVE");
	for (int i = 0; i < 2; i++)
		hc_rank_must(&other[i], &(struct hc_order){.what = HC_DO_PING, .timeout_ms = 5000},
			     NULL);
	hc_ranks_quit(other, 2);
	hc_node_end(&node);
}
END_TEST

static int come_and_go(void *arg, int in, int out)
{
	struct hcomm_session *s;

	(void)arg;
	(void)in;
	(void)out;
	if (hcomm_open(NULL, &s))
		hc_fail("%s", hcomm_last_error());
	hcomm_close(s);
	return 0;
}

/* What is kept of the dead for a while is kept of so many, or a loop of short commands on a shell
 * uses up the daemon's descriptors. */
START_TEST(a_flood_of_short_processes_is_bounded)
{
	unsigned count = hc_long() ? 3000 : 300, fds;
	struct hc_child c;

	hc_node_start(&node, 2, NULL);
	fds = hc_proc_fds(node.pid);
	for (unsigned i = 0; i < count; i++) {
		hc_spawn(&c, come_and_go, NULL);
		ck_assert_int_eq(hc_child_wait(&c, 10000), 0);
	}
	ck_assert_uint_le(hc_proc_fds(node.pid), fds + 2 * (DEAD_KEPT + 2));
	hc_node_end(&node);
}
END_TEST

/* ---- the library ---- */

struct said {
	int before, first, second;
	bool settings_kept;
};

static int with_default_sigpipe(void *arg, int in, int out)
{
	struct hcomm_session *s;
	struct sigaction act;
	struct said said = {.settings_kept = false};
	sigset_t mask;
	int go;

	(void)arg;
	signal(SIGPIPE, SIG_DFL);
	said.before = hcomm_open(NULL, &s);
	if (!said.before)
		said.before = hcomm_ping(s, 5000);
	hc_tell(out, &said, sizeof(said));
	hc_hear(in, &go, sizeof(go), 20000);
	said.first = hcomm_ping(s, 3000); /* the daemon dies now */
	said.second = hcomm_ping(s, 100); /* and this is sent to nobody */
	sigaction(SIGPIPE, NULL, &act);
	sigprocmask(SIG_SETMASK, NULL, &mask);
	said.settings_kept = act.sa_handler == SIG_DFL && !sigismember(&mask, SIGPIPE);
	hc_tell(out, &said, sizeof(said));
	hcomm_close(s);
	return 0;
}

/* Does the child wait in the kernel for an answer? */
static bool waits_for_an_answer(void *ctx)
{
	const struct hc_child *c = ctx;
	char path[64], line[64] = "";
	ssize_t n;
	long call;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/syscall", (int)c->pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, line, sizeof(line) - 1);
	close(fd);
	if (n <= 0 || sscanf(line, "%ld", &call) != 1)
		return false;
	return call == SYS_recvmsg || call == SYS_recvfrom;
}

START_TEST(a_program_with_default_sigpipe_survives_its_daemon)
{
	struct hc_child c;
	struct said said;
	int go = 1;

	hc_node_start(&node, 2, NULL);
	hc_spawn(&c, with_default_sigpipe, NULL);
	hc_child_read(&c, &said, sizeof(said), 10000);
	ck_assert_int_eq(said.before, 0);
	kill(node.pid, SIGSTOP);
	hc_child_tell(&c, &go, sizeof(go));
	hc_await("the library to wait for its answer", waits_for_an_answer, &c, 5000);
	hc_node_kill(&node);
	hc_child_read(&c, &said, sizeof(said), 10000);
	/* it was sent again, and there was no daemon any more */
	ck_assert_msg(said.first == HCOMM_E_NO_DAEMON || said.first == HCOMM_E_PEER_CLOSED, "%s",
		      hcomm_error_name(said.first));
	ck_assert_int_ne(said.second, 0);
	ck_assert_int_eq(said.settings_kept, 1);
	ck_assert_int_eq(hc_child_wait(&c, 10000), 0); /* by exit, not by a signal */
	hc_node_end(&node);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_test(t, hasty_clients_do_no_harm);
	tcase_add_test(t, a_flood_of_short_processes_is_bounded);
	tcase_add_test(t, a_program_with_default_sigpipe_survives_its_daemon);
}

int main(void)
{
	return hc_suite_run("case_073_gone_before_the_answer", add, 60);
}
