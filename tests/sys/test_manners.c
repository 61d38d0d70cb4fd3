/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A service with manners: it starts when little is there, says in one line what it lacks, keeps
 * its socket, and does not flood the log however it is provoked.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "ranks.h"
#include "raw.h"
#include "suite.h"
#include "users.h"

static struct hc_node node;
static struct hc_run run;
static uint8_t buf[HC_PACKET_MAX];

static bool answers(void *ctx)
{
	(void)ctx;
	return hc_socket_answers(node.socket);
}

static bool logged(void *ctx)
{
	return hc_node_logged(&node, ctx);
}

/* ---- the socket ---- */

START_TEST(a_socket_file_that_goes_away_is_made_again)
{
	struct stat st;
	struct hc_rank r;

	hc_node_start(&node, 1, NULL);
	hc_rank_spawn(&r);
	hc_ranks_join(&r, 1, 0, 0, "stays");
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(unlink(node.socket), 0);
		hc_await("the socket to be there again", answers, NULL, 5000);
		ck_assert_int_eq(stat(node.socket, &st), 0);
		ck_assert_uint_eq(st.st_mode & 0777, 0660);
	}
	ck_assert_uint_ge(hc_log_count(&node, "was gone; it is made again"), 2);
	hc_rank_must(&r, &(struct hc_order){.what = HC_DO_PING, .timeout_ms = 5000}, NULL);
	hc_rank_quit(&r);
	hc_node_end(&node);
}
END_TEST

/* What is at the path and not ours stays, and the status says so; when it goes, all is well. */
START_TEST(what_is_not_ours_is_left_alone)
{
	struct hcomm_session *s;
	char *text;

	hc_node_start(&node, 1, NULL);
	ck_assert_int_eq(hcomm_open(NULL, &s), 0);
	ck_assert_int_eq(unlink(node.socket), 0);
	hc_write_file(node.socket, "mine");
	hc_await("the log to say so", logged, (char[]){"replaced by something that is not ours"},
		 5000);
	ck_assert_int_eq(hcomm_ping(s, 5000), 0); /* those who are there are served */
	text = hc_read_file(node.socket);
	ck_assert_str_eq(text, "mine");
	free(text);
	ck_assert_int_eq(unlink(node.socket), 0);
	hc_await("the socket to be there again", answers, NULL, 5000);
	hcomm_close(s);
	hc_node_end(&node);
}
END_TEST

/* A start that was killed between making the file and giving it its mode leaves it with mode 0. */
static int starts_as_another_user(void *arg, int in, int out)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	(void)arg;
	(void)in;
	(void)out;
	hc_become(HC_UID_OWNER, HC_MEMBER_GROUP);
	memcpy(a.sun_path, node.socket, strnlen(node.socket, sizeof(a.sun_path) - 1));
	umask(0777);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	umask(022);
	close(fd);
	hc_node_run(&node);
	hc_raw_want_alive(hc_raw_session(node.socket));
	hc_node_stop(&node);
	return 0;
}

START_TEST(a_socket_of_mode_0_that_was_left_behind)
{
	static const char *const dirs[] = {"", "/run", "/state", "/sys", "/hcommd.conf"};
	struct hc_child c;
	char path[256];

	if (!hc_users_work())
		return;
	hc_users_prepare(&node, 1, NULL);
	for (size_t i = 0; i < 5; i++) {
		snprintf(path, sizeof(path), "%s%s", node.dir, dirs[i]);
		ck_assert_int_eq(chown(path, HC_UID_OWNER, HC_UID_OWNER), 0);
	}
	hc_spawn(&c, starts_as_another_user, NULL);
	ck_assert_int_eq(hc_child_wait(&c, 20000), 0);
}
END_TEST

/* ---- what is not there at boot ---- */

static unsigned lines(const char *text)
{
	unsigned n = 0;

	for (; *text; text++)
		n += *text == '\n';
	return n;
}

/* The daemon refuses to start, with one line that holds both words. */
static void refuses(const char *a, const char *b)
{
	int status = hc_raw_daemon(&run, &node, 10000);

	if (!status || status >= 124)
		hc_fail("status %d: %s", status, run.err);
	if (!strstr(run.err, a) || !strstr(run.err, b))
		hc_fail("it says: %s; wanted: %s, %s", run.err, a, b);
	ck_assert_msg(lines(run.err) == 1, "more than a line: %s", run.err);
}

START_TEST(no_state_directory)
{
	char path[256], *text;

	/* missing: made */
	hc_node_prepare(&node, 0, NULL, NULL);
	snprintf(path, sizeof(path), "%s/state", node.dir);
	ck_assert_int_eq(rmdir(path), 0);
	hc_node_run(&node);
	hc_node_stop(&node);
	/* one that cannot be made, and one that is a file */
	hc_conf_set(&node, "state_dir", "/proc/none/state");
	refuses("/proc/none/state", "state_dir");
	snprintf(path, sizeof(path), "%s/afile", node.dir);
	hc_write_file(path, "");
	hc_conf_set(&node, "state_dir", path);
	refuses(path, "is no directory");
	/* one that nobody can write; /proc is so for root, too */
	hc_conf_set(&node, "state_dir", "/proc");
	refuses("/proc", "");
	text = hc_read_file(path);
	ck_assert_str_eq(text, "");
	free(text);
	hc_node_end(&node);
}
END_TEST

START_TEST(no_group)
{
	struct hcomm_view_status st;

	hc_node_prepare(&node, 1, NULL, NULL);
	hc_conf_set(&node, "socket_group", "no-such-group");
	setenv("HCOMM_SOCKET", node.socket, 1);
	hc_node_run(&node);
	hc_ask_status(&st); /* root, or the daemon's own user, is served */
	ck_assert_uint_eq(hc_log_count(&node, "there is no group no-such-group"), 1);
	hc_node_end(&node);
}
END_TEST

static int without_a_network(void *arg, int in, int out)
{
	struct hcomm_session *s;
	hcomm_domain d;
	int ok = !unshare(CLONE_NEWNET);

	(void)arg;
	(void)in;
	hc_tell(out, &ok, sizeof(ok));
	if (!ok)
		return 0;
	hc_node_start(&node, 2, NULL);
	ck_assert_int_eq(hcomm_open(NULL, &s), 0);
	ck_assert_int_eq(hcomm_join_all_local(s, NULL, 0, NULL, 5000, &d), 0);
	ck_assert_int_eq(hcomm_destroy(d, 5000), 0);
	hcomm_close(s);
	hc_node_end(&node);
	return 0;
}

START_TEST(no_network)
{
	struct hc_child c;
	int ok;

	hc_spawn(&c, without_a_network, NULL);
	hc_child_read(&c, &ok, sizeof(ok), 10000);
	if (!ok)
		printf("SKIP: a network namespace needs root\n");
	ck_assert_int_eq(hc_child_wait(&c, 20000), 0);
}
END_TEST

START_TEST(no_device_and_no_key)
{
	struct hcomm_view_status st;

	hc_node_start(&node, 0, NULL);
	hc_ask_status(&st);
	ck_assert_uint_eq(st.devices, 0);
	ck_assert_ptr_nonnull(strstr(st.remark, "no device is known here"));
	ck_assert_uint_eq(hc_log_count(&node, "no device is known here"), 1);
	hc_node_end(&node);
}
END_TEST

/* ---- the log ---- */

START_TEST(provoked_without_end_it_stays_short)
{
	enum { PROVOKED = 800, RATE = 5 };
	const uint64_t began = hc_now_ms();
	unsigned said, seconds;
	char *log, *at;
	unsigned long held = 0;

	hc_node_start(&node, 1, "log_rate = 5");
	for (unsigned i = 0; i < PROVOKED; i++) {
		int fd = hc_raw_session(node.socket);

		memset(buf, 0xee, 64);
		hc_raw_send(fd, buf, 64);
		close(fd);
	}
	hc_raw_want_alive(hc_raw_session(node.socket));
	hc_await("a word of what was held back", logged, (char[]){"held back"}, 6000);
	seconds = (unsigned)((hc_now_ms() - began) / 1000 + 2);
	said = hc_log_count(&node, "it is disconnected");
	ck_assert_uint_ge(said, 1);
	ck_assert_msg(said <= RATE * seconds, "%u lines in %u s", said, seconds);
	/* none is lost without a word: said and held back make the whole, once the count is told */
	for (uint64_t end = hc_now_ms() + hc_patience(10000);;) {
		log = hc_read_file(node.log);
		held = 0;
		for (at = log; (at = strstr(at, " (")); at += 2)
			if (strstr(at, " more like this were held back") ==
			    at + 2 + strspn(at + 2, "0123456789"))
				held += strtoul(at + 2, NULL, 10);
		for (at = log; (at = strstr(at, " log records were held back")); at += 2) {
			char *digits = at;

			while (digits > log && digits[-1] >= '0' && digits[-1] <= '9')
				digits--;
			held += strtoul(digits, NULL, 10);
		}
		free(log);
		if (hc_log_count(&node, "it is disconnected") + held >= PROVOKED)
			break;
		ck_assert_msg(hc_now_ms() < end, "%lu held back and %u said of %d", held, said,
			      PROVOKED);
	}
	hc_node_end(&node);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_test(t, a_socket_file_that_goes_away_is_made_again);
	tcase_add_test(t, what_is_not_ours_is_left_alone);
	tcase_add_test(t, a_socket_of_mode_0_that_was_left_behind);
	tcase_add_test(t, no_state_directory);
	tcase_add_test(t, no_group);
	tcase_add_test(t, no_network);
	tcase_add_test(t, no_device_and_no_key);
	tcase_add_test(t, provoked_without_end_it_stays_short);
}

int main(void)
{
	return hc_suite_run("manners", add, 60);
}
