/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hcomm_ping: a round trip; and what holds for every request: no allocation, no SIGPIPE, one
 * reader for many threads, a new connection after a lost one.
 */
#include "apitest.h"
#include "failing.h"

#include <pthread.h>
#include <signal.h>

START_TEST(a_ping_is_answered_and_allocates_nothing)
{
	struct fake f;
	struct hcomm_session *s = open_fake(&f, NULL);
	int r;

	works(hcomm_ping(s, 5000));
	works(hcomm_ping(s, HCOMM_DEFAULT));
	hc_failing_begin(0);
	r = hcomm_ping(s, 5000);
	ck_assert(!hc_failing_end());
	works(r);
	hcomm_close(s);
	fake_end(&f);
}
END_TEST

START_TEST(wrong_arguments_are_named)
{
	struct fake f;
	struct hcomm_session *s = open_fake(&f, NULL);

	refused(hcomm_ping(NULL, 100), HCOMM_E_INVALID, "session is NULL");
	refused(hcomm_ping(s, 0), HCOMM_E_INVALID, "timeout_ms is 0");
	refused(hcomm_ping(s, -2), HCOMM_E_INVALID, "timeout_ms is -2");
	hcomm_close(s);
	fake_end(&f);
}
END_TEST

static bool odd(struct fake_conn *c, const struct hc_frame *f, int got, void *arg)
{
	(void)got;
	switch (*(char *)arg) {
	case 's': return true;
	case 'v': return fake_done(c, f, 1, "");
	case 'g': return fake_raw(c, "no message at all", 17);
	case 't': return fake_error(c, f, HC_E_AGAIN, "busy", 40);
	default: return false;
	}
}

START_TEST(a_silent_daemon_is_a_timeout_at_the_time_given)
{
	struct fake f = {0};
	char how = 's';
	struct hcomm_session *s;
	uint64_t began;

	fake_start(&f, odd, &how);
	s = open_session();
	began = hc_now_ms();
	refused(hcomm_ping(s, 150), HCOMM_E_TIMEOUT, f.socket);
	ck_assert_uint_ge(hc_now_ms() - began, 149);
	setenv("HCOMM_TIMEOUT_SEC", "1", 1);
	hcomm_close(s);
	s = open_session();
	began = hc_now_ms();
	refused(hcomm_ping(s, HCOMM_DEFAULT), HCOMM_E_TIMEOUT, f.socket);
	ck_assert_uint_ge(hc_now_ms() - began, 999);
	hcomm_close(s);
	fake_end(&f);
}
END_TEST

START_TEST(odd_answers_are_refused)
{
	static const struct {
		char how;
		int error;
		const char *text;
	} rows[] = {
		{'v', HCOMM_E_MALFORMED, "another value"},
		{'g', HCOMM_E_PEER_CLOSED, "closed the connection"},
		{'t', HCOMM_E_AGAIN, "busy"},
	};
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct fake f = {0};
		char how = rows[i].how;
		struct hcomm_session *s;

		fake_start(&f, odd, &how);
		s = open_session();
		refused(hcomm_ping(s, 5000), rows[i].error, rows[i].text);
		ck_assert_uint_eq(hcomm_retry_after(),
				  rows[i].error == HCOMM_E_AGAIN ? 40 : HCOMM_UNKNOWN);
		hcomm_close(s);
		fake_end(&f);
	}
}
END_TEST

/* The daemon dies between request and answer, in a program that never heard of SIGPIPE. */
START_TEST(a_daemon_that_dies_in_the_call_raises_no_signal)
{
	struct fake f = {0};
	char how = 'c';
	struct hcomm_session *s;
	struct sigaction action;
	int i;

	signal(SIGPIPE, SIG_DFL);
	fake_start(&f, odd, &how);
	s = open_session();
	refused(hcomm_ping(s, 5000), HCOMM_E_PEER_CLOSED, "next call connects again");
	fake_kill(&f);
	for (i = 0; i < 3; i++)
		refused(hcomm_ping(s, 50), HCOMM_E_NO_DAEMON, f.socket);
	sigaction(SIGPIPE, NULL, &action);
	ck_assert_ptr_eq(action.sa_handler, SIG_DFL);
	hcomm_close(s);
	fake_end(&f);
}
END_TEST

START_TEST(after_a_restart_the_next_call_connects_again)
{
	struct hcomm_session_info info = HCOMM_INIT(struct hcomm_session_info);
	struct fake f;
	struct hcomm_session *s = open_fake(&f, NULL);
	unsigned fds = hc_count_fds();

	works(hcomm_ping(s, 5000));
	fake_kill(&f);
	refused(hcomm_ping(s, 50), HCOMM_E_NO_DAEMON, f.socket);
	fake_again(&f);
	works(hcomm_ping(s, 5000));
	works(hcomm_session_get(s, &info));
	ck_assert_uint_eq(hc_count_fds(), fds);
	hcomm_close(s);
	fake_end(&f);
}
END_TEST

static pthread_barrier_t answered;

/* The fake dies with the thread that started it, so that has to stay. */
static void *start_again(void *arg)
{
	fake_again(arg);
	pthread_barrier_wait(&answered);
	return NULL;
}

/* A call that finds no daemon waits for it, up to its deadline. */
START_TEST(a_call_waits_for_the_daemon_to_come_back)
{
	struct fake f;
	struct hcomm_session *s = open_fake(&f, NULL);
	pthread_t thread;

	fake_kill(&f);
	refused(hcomm_ping(s, 30), HCOMM_E_NO_DAEMON, f.socket);
	pthread_barrier_init(&answered, NULL, 2);
	ck_assert_int_eq(pthread_create(&thread, NULL, start_again, &f), 0);
	works(hcomm_ping(s, 20000));
	pthread_barrier_wait(&answered);
	pthread_join(thread, NULL);
	hcomm_close(s);
	fake_end(&f);
}
END_TEST

/* Two answers in reverse order, once two requests are there. */
static bool backwards(struct fake_conn *c, const struct hc_frame *f, int got, void *arg)
{
	static struct hc_frame kept;
	struct hc_m_ping m;

	(void)got;
	(void)arg;
	hc_want(!hc_decode(&hc_desc_ping, 1, f->body, f->body_len, &m));
	if (!kept.head.id) {
		kept = *f;
		return true;
	}
	if (!fake_done(c, f, m.value, "") || !fake_done(c, &kept, m.value, ""))
		return false;
	kept.head.id = 0;
	return true;
}

static void *ping_often(void *arg)
{
	int i;

	for (i = 0; i < 500; i++)
		works(hcomm_ping(arg, 10000));
	return NULL;
}

START_TEST(each_thread_gets_its_own_answer_in_whatever_order)
{
	struct fake f;
	struct hcomm_session *s = open_fake(&f, backwards);
	pthread_t threads[2];
	int i;

	for (i = 0; i < 2; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, ping_often, s), 0);
	for (i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	hcomm_close(s);
	fake_end(&f);
}
END_TEST

START_TEST(many_threads_share_one_session)
{
	struct fake f;
	struct hcomm_session *s = open_fake(&f, NULL);
	pthread_t threads[8];
	int i;

	for (i = 0; i < 8; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, ping_often, s), 0);
	for (i = 0; i < 8; i++)
		pthread_join(threads[i], NULL);
	hcomm_close(s);
	fake_end(&f);
}
END_TEST

TESTS("hcomm_ping", a_ping_is_answered_and_allocates_nothing, wrong_arguments_are_named,
      a_silent_daemon_is_a_timeout_at_the_time_given, odd_answers_are_refused,
      a_daemon_that_dies_in_the_call_raises_no_signal, after_a_restart_the_next_call_connects_again,
      a_call_waits_for_the_daemon_to_come_back, each_thread_gets_its_own_answer_in_whatever_order,
      many_threads_share_one_session)
