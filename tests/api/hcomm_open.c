/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hcomm_open: who gets a session, who does not, and what he is told.
 */
#include "apitest.h"
#include "failing.h"

#include <grp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

static struct hcomm_session *session;

static int open_at(const char *path, uint32_t timeout_ms)
{
	struct hcomm_open_args a = HCOMM_INIT(struct hcomm_open_args);

	a.socket = path;
	a.timeout_ms = timeout_ms;
	session = (struct hcomm_session *)&a; /* must be overwritten */
	return hcomm_open(&a, &session);
}

static int listen_at(const char *path, int type)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);

	memcpy(a.sun_path, path, strlen(path));
	hc_want(fd >= 0 && !bind(fd, (struct sockaddr *)&a, sizeof(a)) && !listen(fd, 4));
	return fd;
}

START_TEST(a_session_opens_and_leaves_nothing_after_close)
{
	unsigned fds, maps, threads = hc_count_threads();
	struct fake f = {0};
	int i;

	fake_start(&f, fake_good, NULL);
	fds = hc_count_fds();
	maps = hc_count_maps("memfd:"); /* those of the fake itself */
	for (i = 0; i < 3; i++) {
		session = open_session();
		ck_assert_uint_eq(hc_count_threads(), threads);
		hcomm_close(session);
	}
	ck_assert_uint_eq(hc_count_fds(), fds);
	ck_assert_uint_eq(hc_count_maps("memfd:"), maps);
	fake_end(&f);
}
END_TEST

START_TEST(wrong_arguments_are_named)
{
	struct hcomm_open_args a = HCOMM_INIT(struct hcomm_open_args);
	char job[200];

	refused(hcomm_open(&a, NULL), HCOMM_E_INVALID, "session is NULL");
	a.flags = 4;
	refused(hcomm_open(&a, &session), HCOMM_E_INVALID, "args->flags is 0x4");
	a.flags = 0;
	a.size = 0;
	refused(hcomm_open(&a, &session), HCOMM_E_INVALID, "args->size is 0");
	a.size = sizeof(a);
	memset(job, 'j', sizeof(job));
	job[199] = '\0';
	a.job = job;
	refused(hcomm_open(&a, &session), HCOMM_E_INVALID, "199 bytes; wanted: at most 127");
	ck_assert_ptr_null(session);
}
END_TEST

/* Paths of 107 bytes work, longer ones are refused whole and nothing is made under a cut name. */
START_TEST(a_path_that_does_not_fit_is_refused_with_its_length)
{
	static const size_t lengths[] = {108, 200};
	char dir[128], path[256];
	struct fake f = {0};
	size_t i;

	hc_tempdir(dir, sizeof(dir));
	for (i = 0; i < 2; i++) {
		memset(path, 'x', sizeof(path));
		memcpy(path, dir, strlen(dir));
		path[strlen(dir)] = '/';
		path[lengths[i]] = '\0';
		snprintf(f.dir, sizeof(f.dir), "%zu bytes", lengths[i]);
		refused(open_at(path, 0), HCOMM_E_INVALID, f.dir);
		refused(open_at(path, 0), HCOMM_E_INVALID, "at most 107");
		setenv("HCOMM_SOCKET", path, 1);
		refused(hcomm_open(NULL, &session), HCOMM_E_INVALID, "HCOMM_SOCKET");
		unsetenv("HCOMM_SOCKET");
	}
	ck_assert_int_eq(rmdir(dir), 0);
	refused(open_at("relative/sock", 0), HCOMM_E_INVALID, "absolute path");
}
END_TEST

START_TEST(a_path_of_107_bytes_works)
{
	char path[256], here[256];
	struct fake f = {0};

	fake_start(&f, fake_good, NULL);
	memset(path, 'x', sizeof(path));
	memcpy(path, f.dir, strlen(f.dir));
	path[strlen(f.dir)] = '/';
	path[107] = '\0';
	snprintf(here, sizeof(here), "%s", f.socket);
	ck_assert_int_eq(rename(here, path), 0);
	works(open_at(path, 0));
	works(hcomm_ping(session, 5000));
	hcomm_close(session);
	fake_end(&f);
}
END_TEST

START_TEST(no_daemon_is_told_apart_from_one_that_is_silent)
{
	char dir[128], path[160];
	struct fake f;
	uint64_t began;
	int fd;

	hc_tempdir(dir, sizeof(dir));
	snprintf(path, sizeof(path), "%s/sock", dir);
	refused(open_at(path, 0), HCOMM_E_NO_DAEMON, path);
	fd = listen_at(path, SOCK_SEQPACKET);
	close(fd);
	refused(open_at(path, 0), HCOMM_E_NO_DAEMON, "nobody listens");
	unlink(path);
	fd = listen_at(path, SOCK_STREAM);
	refused(open_at(path, 0), HCOMM_E_NO_DAEMON, "SOCK_SEQPACKET");
	close(fd);
	fake_listen(&f);
	began = hc_now_ms();
	refused(open_at(f.socket, 200), HCOMM_E_TIMEOUT, "does not answer");
	ck_assert_uint_ge(hc_now_ms() - began, 199);
	ck_assert_ptr_null(session);
	fake_end(&f);
}
END_TEST

/* The default of the first contact is two seconds, not the time-out of a request. */
START_TEST(silence_is_reported_after_two_seconds)
{
	uint64_t began = hc_now_ms();
	struct fake f;

	fake_listen(&f);
	refused(open_at(NULL, 0), HCOMM_E_TIMEOUT, f.socket);
	ck_assert_uint_ge(hc_now_ms() - began, 1990);
	ck_assert_uint_le(hc_now_ms() - began, 20000);
	fake_end(&f);
}
END_TEST

/* Who gives more time gets it, not those two seconds. */
START_TEST(silence_is_borne_as_long_as_the_caller_says)
{
	uint64_t began = hc_now_ms();
	struct fake f;

	fake_listen(&f);
	refused(open_at(NULL, 2600), HCOMM_E_TIMEOUT, f.socket);
	ck_assert_uint_ge(hc_now_ms() - began, 2590);
	fake_end(&f);
}
END_TEST

static bool odd_hello(struct fake_conn *c, const struct hc_frame *f, int got, void *arg)
{
	const char *how = arg;
	struct hc_m_hello_r m = {.proto = 1};

	(void)got;
	if (!strcmp(how, "garbage"))
		return fake_raw(c, "\xa5\x5a\xff\xff garbage, and more of it", 29);
	if (!strcmp(how, "short"))
		return fake_raw(c, "\0\0\0\x10", 4);
	if (!strcmp(how, "newer"))
		return fake_hello(c, f, HC_PROTO_MAX + 1);
	if (!strcmp(how, "older"))
		return fake_hello(c, f, HC_PROTO_MIN - 1);
	if (!strcmp(how, "refuses"))
		return fake_error(c, f, HC_E_PERMISSION, "uid 7 is not in group hcomm", HC_NONE);
	if (!strcmp(how, "no arena")) { /* a descriptor that is not what it should be */
		m.blocks = 10;
		return fake_reply(c, f, &hc_desc_hello_r, &m, 0);
	}
	return false; /* "closes" */
}

START_TEST(odd_answers_to_hello_are_refused_and_named)
{
	static const struct {
		const char *how;
		int error;
		const char *text;
	} rows[] = {
		{"garbage", HCOMM_E_MALFORMED, "no hcommd"},
		{"short", HCOMM_E_MALFORMED, "4 bytes"},
		{"newer", HCOMM_E_VERSION, "upgrade libhcomm"},
		{"newer", HCOMM_E_VERSION, "hcommd 9.8.7"},
		{"older", HCOMM_E_VERSION, "upgrade hcommd"},
		{"refuses", HCOMM_E_PERMISSION, "uid 7 is not in group hcomm"},
		{"no arena", HCOMM_E_MALFORMED, "op arena"},
		{"closes", HCOMM_E_PEER_CLOSED, "closed the connection"},
	};
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct fake f = {.own_hello = true};
		char how[32];
		unsigned fds;

		snprintf(how, sizeof(how), "%s", rows[i].how);
		fake_start(&f, odd_hello, how);
		fds = hc_count_fds();
		refused(open_at(NULL, 3000), rows[i].error, rows[i].text);
		ck_assert_ptr_null(session);
		ck_assert_uint_eq(hc_count_fds(), fds);
		fake_end(&f);
	}
}
END_TEST

START_TEST(a_bad_variable_is_refused_with_name_value_and_wanted)
{
	static const char *const rows[][3] = {
		{"HCOMM_TIMEOUT_SEC", "soon",
		 "HCOMM_TIMEOUT_SEC is 'soon'; wanted: seconds, 1 to 86400"},
		{"HCOMM_TIMEOUT_SEC", "0", "is '0'"},
		{"HCOMM_TIMEOUT_SEC", "-1", "is '-1'"},
		{"HCOMM_TIMEOUT_SEC", "86401", "is '86401'"},
		{"HCOMM_TIMEOUT_SEC", "10s", "is '10s'"},
		{"HCOMM_TIMEOUT_SEC", "99999999999999999999", "is '99999999999999999999'"},
		{"HCOMM_LOG_LEVEL", "loud",
		 "HCOMM_LOG_LEVEL is 'loud'; wanted: error, warn, info or debug"},
		{"HCOMM_LOG_FILE", "/nowhere/at/all",
		 "HCOMM_LOG_FILE is '/nowhere/at/all': No such"},
		{"HCOMM_DISABLE", "yes", "HCOMM_DISABLE is 'yes'; wanted: 0 or 1"},
		{"HCOMM_JOB_ID", "a\nb", "HCOMM_JOB_ID has a control character at byte 2"},
	};
	struct fake f = {0};
	size_t i;

	fake_start(&f, fake_good, NULL);
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		setenv(rows[i][0], rows[i][1], 1);
		refused(hcomm_open(NULL, &session), HCOMM_E_INVALID, rows[i][2]);
		setenv(rows[i][0], "", 1); /* empty: as if it were not there */
		session = open_session();
		hcomm_close(session);
		unsetenv(rows[i][0]);
	}
	fake_end(&f);
}
END_TEST

START_TEST(disabled_means_no_daemon)
{
	struct fake f = {0};

	fake_start(&f, fake_good, NULL);
	setenv("HCOMM_DISABLE", "1", 1);
	refused(hcomm_open(NULL, &session), HCOMM_E_NO_DAEMON, "HCOMM_DISABLE=1");
	setenv("HCOMM_DISABLE", "0", 1);
	session = open_session();
	hcomm_close(session);
	fake_end(&f);
}
END_TEST

START_TEST(the_log_goes_where_it_was_told)
{
	char path[256];
	struct fake f = {0};
	char *text;

	fake_start(&f, fake_good, NULL);
	snprintf(path, sizeof(path), "%s/log", f.dir);
	setenv("HCOMM_LOG_FILE", path, 1);
	setenv("HCOMM_LOG_LEVEL", "info", 1);
	session = open_session();
	hcomm_close(session);
	text = hc_read_file(path);
	ck_assert_ptr_nonnull(text);
	ck_assert_ptr_nonnull(strstr(text, "connected to hcommd 9.8.7"));
	free(text);
	fake_end(&f);
}
END_TEST

static int open_as_nobody(void *arg, int in, int out)
{
	int r;

	(void)in;
	if (setgroups(0, NULL) || setgid(65534) || setuid(65534))
		return 1;
	r = open_at(arg, 0);
	hc_tell(out, &r, sizeof(r));
	ck_assert_ptr_nonnull(strstr(hcomm_last_error(), "uid 65534"));
	return 0;
}

START_TEST(a_stranger_is_kept_out_by_the_mode_of_the_socket)
{
	struct hc_child child;
	struct fake f = {0};
	int r;

	if (getuid()) {
		puts("SKIP: only root can become a stranger");
		return;
	}
	fake_start(&f, fake_good, NULL);
	ck_assert_int_eq(chmod(f.dir, 0755), 0);
	ck_assert_int_eq(chmod(f.socket, 0600), 0);
	hc_spawn(&child, open_as_nobody, f.socket);
	hc_child_read(&child, &r, sizeof(r), 5000);
	ck_assert_int_eq(r, HCOMM_E_PERMISSION);
	ck_assert_int_eq(hc_child_wait(&child, 5000), 0);
	fake_end(&f);
}
END_TEST

START_TEST(the_nth_allocation_fails_and_nothing_is_left)
{
	struct fake f = {0};
	unsigned fds, maps;
	int n, r;

	fake_start(&f, fake_good, NULL);
	fds = hc_count_fds();
	maps = hc_count_maps("memfd:");
	for (n = 0;; n++) {
		hc_failing_begin(n);
		r = hcomm_open(NULL, &session);
		if (!hc_failing_end())
			break;
		ck_assert_int_eq(r, HCOMM_E_NO_MEMORY);
		ck_assert_ptr_null(session);
		ck_assert_uint_eq(hc_count_fds(), fds);
		ck_assert_uint_eq(hc_count_maps("memfd:"), maps);
	}
	works(r);
	ck_assert_int_eq(n >= 2, HC_FAILING_WORKS);
	hcomm_close(session);
	fake_end(&f);
}
END_TEST

TESTS("hcomm_open", a_session_opens_and_leaves_nothing_after_close, wrong_arguments_are_named,
      a_path_that_does_not_fit_is_refused_with_its_length, a_path_of_107_bytes_works,
      no_daemon_is_told_apart_from_one_that_is_silent, silence_is_reported_after_two_seconds,
      silence_is_borne_as_long_as_the_caller_says, odd_answers_to_hello_are_refused_and_named,
      a_bad_variable_is_refused_with_name_value_and_wanted, disabled_means_no_daemon,
      the_log_goes_where_it_was_told, a_stranger_is_kept_out_by_the_mode_of_the_socket,
      the_nth_allocation_fails_and_nothing_is_left)
