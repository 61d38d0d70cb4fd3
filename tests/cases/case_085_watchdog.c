/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Case 85: the service manager's watchdog.
 *
 * A healthy daemon was killed again and again since its limit was shorter than its work, or a
 * dead one lived since a side thread sent the pings. The test is the service manager: a socket
 * of its own that takes what the daemon tells. READY comes when the client socket answers, pings
 * come in time also while large tables are read, and stop when the main thread does, though all
 * other threads run. A limit that cannot be met is named once.
 *
 * A disk that stands still is one of the reasons for such a limit to pass. Here the thread of the
 * database waits for it, with those whose join or end has to be stored; all else goes on, the
 * status says what is the matter, and a stop does not wait.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <hcomm/hcomm.h>
#include <hcomm/views.h>

#include "ranks.h"
#include "raw.h"
#include "suite.h"

static struct hc_node node;
static struct hc_child daemon_;
static int manager; /* the service manager's socket */

struct start {
	const char *watchdog_us;
	bool slow_disk; /* as slow as the flag says */
};

static char flag[200]; /* while this file is there, the disk stands still */

static void set_disk(bool stuck)
{
	if (stuck)
		hc_write_file(flag, "");
	else
		ck_assert_int_eq(unlink(flag), 0);
}

static void use_slow_disk(void)
{
	hc_preload("slowdisk.so");
	setenv("HC_SLOW_DISK", flag, 1);
	setenv("HC_SLOW_PATH", "/state/state.db", 1);
}

static int run_daemon(void *arg, int in, int out)
{
	const struct start *s = arg;
	char program[1200], notify[200];

	(void)in;
	(void)out;
	snprintf(notify, sizeof(notify), "%s/notify", node.dir);
	setenv("NOTIFY_SOCKET", notify, 1);
	if (s->watchdog_us)
		setenv("WATCHDOG_USEC", s->watchdog_us, 1);
	unsetenv("WATCHDOG_PID");
	if (s->slow_disk)
		use_slow_disk();
	hc_program("hcommd", program, sizeof(program));
	if (!freopen(node.log, "a", stderr))
		return 1;
	execl(program, program, "--config", node.conf, (char *)NULL);
	return 1;
}

static void start_with(struct start s, bool stuck)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};

	hc_node_prepare(&node, 2, NULL, NULL);
	snprintf(flag, sizeof(flag), "%s/stuck", node.dir);
	if (stuck)
		set_disk(true);
	setenv("HCOMM_SOCKET", node.socket, 1);
	snprintf(a.sun_path, sizeof(a.sun_path), "%.90s/notify", node.dir);
	manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(bind(manager, (struct sockaddr *)&a, sizeof(a)), 0);
	hc_spawn(&daemon_, run_daemon, &s);
}

static void start(const char *watchdog_us)
{
	start_with((struct start){.watchdog_us = watchdog_us}, false);
}

/* The next word of the daemon, at the latest after so many ms; false: it said nothing. */
static bool hear(char *text, size_t size, unsigned ms)
{
	struct pollfd p = {.fd = manager, .events = POLLIN};
	ssize_t n;

	if (poll(&p, 1, (int)ms) != 1)
		return false;
	n = recv(manager, text, size - 1, 0);
	ck_assert_int_gt((int)n, 0);
	text[n] = '\0';
	return true;
}

static void await_word(const char *word)
{
	char text[1024];

	do {
		if (!hear(text, sizeof(text), hc_patience(10000)))
			hc_fail("the daemon does not say %s", word);
	} while (!strstr(text, word));
}

static void stop(void)
{
	kill(daemon_.pid, SIGTERM);
	await_word("STOPPING=1");
	ck_assert_int_eq(hc_child_wait(&daemon_, 5000), 0);
	close(manager);
}

START_TEST(ready_is_said_when_the_socket_answers)
{
	for (int i = 0; i < 5; i++) {
		start(NULL);
		await_word("READY=1");
		ck_assert(hc_socket_answers(node.socket)); /* at once, the first time */
		stop();
	}
}
END_TEST

/* The longest time between two pings in a span, in ms. */
static unsigned worst_gap(unsigned span_ms)
{
	uint64_t from = hc_now_ms(), last = from, now;
	unsigned worst = 0;
	char text[1024];

	while ((now = hc_now_ms()) - from < span_ms) {
		if (hear(text, sizeof(text), 50) && !strstr(text, "WATCHDOG=1"))
			continue;
		now = hc_now_ms();
		if (now - last > worst)
			worst = (unsigned)(now - last);
		if (strstr(text, "WATCHDOG=1"))
			last = now;
		text[0] = '\0';
	}
	return worst;
}

static int reads_tables(void *arg, int in, int out)
{
	struct hcomm_config config = HCOMM_INIT(struct hcomm_config);
	struct hcomm_session *s;
	hcomm_domain d;
	int r;

	(void)in;
	(void)out;
	config.server = "node_0";
	if (hcomm_open(NULL, &s))
		return 1;
	for (unsigned i = 0; i < 40; i++) {
		char name[32];

		snprintf(name, sizeof(name), "load-%u", i);
		config.name = name;
		r = hcomm_join_table(s, arg, 0, &config, 20, &d);
		if (r != HCOMM_E_TIMEOUT)
			hc_fail("load %u: %d: %s", i, r, hcomm_last_error());
	}
	hcomm_close(s);
	return 0;
}

START_TEST(pings_come_in_time_also_under_load)
{
	struct hc_child c;
	char table[256];
	unsigned gap;

	start("1000000");
	await_word("READY=1");
	await_word("WATCHDOG=1");
	snprintf(table, sizeof(table), "%s/large.json", node.dir);
	hc_table_write(table, 4096, 128);
	hc_spawn(&c, reads_tables, table);
	gap = worst_gap(2000);
	/* half of the limit is wanted; the limit itself is what kills */
	ck_assert_msg(gap < hc_patience(1000), "%u ms without a ping", gap);
	ck_assert_int_eq(hc_child_wait(&c, 30000), 0);
	stop();
}
END_TEST

/* ---- a disk that stands still ---- */

static int joins(void *arg, int in, int out)
{
	const uint32_t device = 1; /* the tables want the other one */
	struct hcomm_session *s;
	hcomm_domain d;
	int r;

	(void)arg;
	(void)in;
	(void)out;
	if (hcomm_open(NULL, &s))
		return 1;
	r = hcomm_join_all_local(s, &device, 1, NULL, 60000, &d);
	if (r)
		hc_fail("join: %d: %s", r, hcomm_last_error());
	r = hcomm_leave(d, 5000);
	hcomm_close(s);
	return r ? 2 : 0;
}

static struct hcomm_view_status status_now(void)
{
	struct hcomm_view_status s;

	hc_ask_status(&s);
	return s;
}

static bool storage_is_slow(void *arg)
{
	(void)arg;
	return !strncmp(status_now().storage, "slow: a write has taken ", 24);
}

static bool storage_is_well(void *arg)
{
	(void)arg;
	return !strcmp(status_now().storage, "ok");
}

static void want_quick_answers(void)
{
	struct hcomm_session *s;

	ck_assert_int_eq(hcomm_open(NULL, &s), 0);
	for (int i = 0; i < 100; i++) {
		uint64_t began = hc_now_ms();

		ck_assert_int_eq(hcomm_ping(s, 5000), 0);
		ck_assert_uint_lt(hc_now_ms() - began, hc_patience(200));
	}
	hcomm_close(s);
}

static void start_slow(const char *watchdog_us)
{
	start_with((struct start){.watchdog_us = watchdog_us, .slow_disk = true}, false);
	await_word("READY=1");
}

START_TEST(a_slow_disk_holds_up_only_what_it_has_to)
{
	struct hcomm_view_status s;
	struct hc_child c, load;
	char table[256];
	unsigned gap;

	start_slow("1000000");
	await_word("WATCHDOG=1");
	snprintf(table, sizeof(table), "%s/large.json", node.dir);
	hc_table_write(table, 4096, 128);
	set_disk(true);
	hc_spawn(&c, joins, NULL);
	hc_spawn(&load, reads_tables, table);
	gap = worst_gap(2000);
	ck_assert_msg(gap < hc_patience(1000), "%u ms without a ping", gap);
	hc_await("the status says that the disk is slow", storage_is_slow, NULL, 10000);
	want_quick_answers();
	ck_assert_int_eq(hc_child_wait(&load, 30000), 0);
	s = status_now();
	ck_assert_str_eq(s.health, "degraded");
	ck_assert_ptr_nonnull(strstr(s.remark, "the disk of state_dir is slow"));
	ck_assert_int_eq(waitpid(c.pid, NULL, WNOHANG), 0); /* not told before it is stored */
	set_disk(false);
	ck_assert_int_eq(hc_child_wait(&c, 20000), 0);
	hc_await("the status is well again", storage_is_well, NULL, 5000);
	ck_assert_str_eq(status_now().health, "ok");
	while (!hc_node_logged(&node, "the disk of state_dir goes on"))
		await_word("WATCHDOG=1");
	ck_assert_uint_eq(hc_log_count(&node, "the disk of state_dir is slow"), 1);
	stop();
}
END_TEST

START_TEST(a_start_waits_for_its_disk_and_says_so_by_silence)
{
	char text[1024];

	start_with((struct start){.watchdog_us = "1000000", .slow_disk = true}, true);
	ck_assert_msg(!hear(text, sizeof(text), 500), "said %s", text);
	set_disk(false);
	await_word("READY=1");
	ck_assert(hc_socket_answers(node.socket));
	stop();
}
END_TEST

START_TEST(a_stop_does_not_wait_for_a_disk)
{
	struct hc_child c;
	uint64_t began;

	start_slow(NULL);
	set_disk(true);
	hc_spawn(&c, joins, NULL);
	hc_await("the store is at it", storage_is_slow, NULL, 10000);
	began = hc_now_ms();
	kill(daemon_.pid, SIGTERM);
	await_word("STOPPING=1");
	ck_assert_int_eq(hc_child_wait(&daemon_, 1000), 0);
	ck_assert_uint_lt(hc_now_ms() - began, hc_patience(1000));
	hc_child_kill(&c);
	close(manager);
}
END_TEST

/* Only the main thread stands still: a ping from any other thread would be a lie. */
START_TEST(pings_stop_with_the_main_thread)
{
	char text[1024];
	uint64_t end;
	unsigned late = 0;
	int status;

	start("1000000");
	await_word("READY=1");
	await_word("WATCHDOG=1");
	if (ptrace(PTRACE_SEIZE, daemon_.pid, 0, 0)) {
		printf("SKIP: no thread may be stopped alone here: %s\n", strerror(errno));
		stop();
		return;
	}
	ck_assert_int_eq((int)ptrace(PTRACE_INTERRUPT, daemon_.pid, 0, 0), 0);
	ck_assert_int_eq(waitpid(daemon_.pid, &status, __WALL), daemon_.pid);
	ck_assert(WIFSTOPPED(status));
	while (hear(text, sizeof(text), 0)) /* what was said before */
		;
	for (end = hc_now_ms() + 1500; hc_now_ms() < end;)
		late += hear(text, sizeof(text), 100) && strstr(text, "WATCHDOG=1");
	ck_assert_uint_eq(late, 0);
	ck_assert_int_eq((int)ptrace(PTRACE_DETACH, daemon_.pid, 0, 0), 0);
	await_word("WATCHDOG=1");
	ck_assert(hc_socket_answers(node.socket));
	stop();
}
END_TEST

START_TEST(a_limit_that_cannot_be_met_is_named_once)
{
	start("20000");
	await_word("READY=1");
	for (int i = 0; i < 20; i++)
		await_word("WATCHDOG=1");
	stop();
	ck_assert_uint_eq(hc_log_count(&node, "watchdog of 20000 us is shorter"), 1);
}
END_TEST

/* What the unit says of restarts: a daemon that cannot run is not started for ever. */
START_TEST(the_unit_limits_restarts)
{
	char *unit = hc_read_file("systemd/hcommd.service");

	if (!unit) {
		printf("SKIP: systemd/hcommd.service is not below the working directory\n");
		return;
	}
	ck_assert_ptr_nonnull(strstr(unit, "\nStartLimitBurst="));
	ck_assert_ptr_nonnull(strstr(unit, "\nStartLimitIntervalSec="));
	ck_assert_ptr_nonnull(strstr(unit, "\nWatchdogSec="));
	ck_assert_ptr_nonnull(strstr(unit, "\nType=notify"));
	free(unit);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_test(t, ready_is_said_when_the_socket_answers);
	tcase_add_test(t, pings_come_in_time_also_under_load);
	tcase_add_test(t, pings_stop_with_the_main_thread);
	tcase_add_test(t, a_slow_disk_holds_up_only_what_it_has_to);
	tcase_add_test(t, a_start_waits_for_its_disk_and_says_so_by_silence);
	tcase_add_test(t, a_stop_does_not_wait_for_a_disk);
	tcase_add_test(t, a_limit_that_cannot_be_met_is_named_once);
	tcase_add_test(t, the_unit_limits_restarts);
}

int main(void)
{
	return hc_suite_run("case 85", add, 60);
}
