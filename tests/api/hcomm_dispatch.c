/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hcomm_dispatch and hcomm_on_event: events reach the function, once, in order, with no lock held.
 */
#include "apitest.h"

#include <pthread.h>

static struct hcomm_event seen[2048];
static unsigned nseen;

static void on_event(const struct hcomm_event *e, void *context)
{
	(void)context;
	if (nseen < 2048)
		seen[nseen] = *e;
	nseen++;
}

/* Each ping brings as many events as its remark counts, in front of its answer. */
static bool with_events(struct fake_conn *c, const struct hc_frame *f, int got, void *arg)
{
	struct hc_m_event e = {.kind = HC_W_event_code_RANK_DIED,
			       .id = 0x1001,
			       .state = HC_W_domain_state_DAMAGED,
			       .pid = 4711,
			       .node = hc_str("node-b"),
			       .text = hc_str("rank 3, pid 4711 on node-b, exited")};
	unsigned i;

	for (i = 0; f->head.type == HC_MSG_ping && i < *(unsigned *)arg; i++) {
		e.rank = i;
		if (!fake_event(c, &e))
			return false;
	}
	return fake_good(c, f, got, NULL);
}

START_TEST(events_come_in_order_and_say_what_happened)
{
	unsigned count = 3, i;
	struct fake f = {0};
	struct hcomm_session *s;
	hcomm_domain d;

	fake_start(&f, with_events, &count);
	s = open_session();
	works(hcomm_on_event(s, on_event, NULL));
	d = join_root(s, 2, 0);
	works(hcomm_ping(s, 5000));
	ck_assert_uint_eq(nseen, 0); /* only dispatch delivers */
	ck_assert_int_eq(hcomm_dispatch(s, 0), 3);
	ck_assert_uint_eq(nseen, 3);
	for (i = 0; i < 3; i++) {
		ck_assert_uint_eq(seen[i].code, HCOMM_EV_RANK_DIED);
		ck_assert_uint_eq(seen[i].rank, i);
		ck_assert_uint_eq(seen[i].id, 0x1001);
		ck_assert_uint_eq(seen[i].domain, d);
		ck_assert_uint_eq(seen[i].pid, 4711);
		ck_assert_int_eq(seen[i].state, HCOMM_DAMAGED);
		ck_assert_uint_eq(seen[i].lost, 0);
		ck_assert_str_eq(seen[i].node, "node-b");
		ck_assert_str_eq(seen[i].text, "rank 3, pid 4711 on node-b, exited");
	}
	ck_assert_int_eq(hcomm_dispatch(s, 0), 0);
	hcomm_close(s);
	fake_end(&f);
}
END_TEST

START_TEST(the_queue_is_bounded_and_says_what_was_lost)
{
	unsigned count = 1024 + 76;
	struct fake f = {0};
	struct hcomm_session *s;

	fake_start(&f, with_events, &count);
	s = open_session();
	works(hcomm_on_event(s, on_event, NULL));
	works(hcomm_ping(s, 20000));
	ck_assert_int_eq(hcomm_dispatch(s, 0), 1024);
	ck_assert_uint_eq(seen[1023].rank, 1023);
	works(hcomm_ping(s, 20000));
	ck_assert_int_eq(hcomm_dispatch(s, 0), 1024);
	ck_assert_uint_eq(seen[1024].lost, 76);
	ck_assert_uint_eq(seen[1025].lost, 0);
	hcomm_close(s);
	fake_end(&f);
}
END_TEST

START_TEST(without_a_function_nothing_is_kept)
{
	unsigned count = 5;
	struct fake f = {0};
	struct hcomm_session *s;

	fake_start(&f, with_events, &count);
	s = open_session();
	works(hcomm_ping(s, 5000));
	ck_assert_int_eq(hcomm_dispatch(s, 0), 0);
	works(hcomm_on_event(s, on_event, NULL));
	works(hcomm_ping(s, 5000));
	works(hcomm_on_event(s, NULL, NULL));
	ck_assert_int_eq(hcomm_dispatch(s, 0), 0);
	ck_assert_uint_eq(nseen, 0);
	hcomm_close(s);
	fake_end(&f);
}
END_TEST

static void call_again(const struct hcomm_event *e, void *context)
{
	(void)e;
	nseen++;
	works(hcomm_ping(context, 5000));
}

START_TEST(any_call_is_allowed_inside_the_function)
{
	unsigned count = 2;
	struct fake f = {0};
	struct hcomm_session *s;

	fake_start(&f, with_events, &count);
	s = open_session();
	works(hcomm_on_event(s, call_again, s));
	works(hcomm_ping(s, 5000));
	/* the pings inside bring events too: those are for the next call */
	ck_assert_int_eq(hcomm_dispatch(s, 0), 2);
	ck_assert_uint_eq(nseen, 2);
	ck_assert_int_eq(hcomm_dispatch(s, 0), 4);
	hcomm_close(s);
	fake_end(&f);
}
END_TEST

static void *dispatch_long(void *arg)
{
	ck_assert_int_eq(hcomm_dispatch(arg, 30000), 1);
	return NULL;
}

/* One thread waits in dispatch and reads for another one, which asks meanwhile. */
START_TEST(a_waiting_dispatch_hands_answers_to_the_others)
{
	unsigned count = 1;
	struct fake f = {0};
	struct hcomm_session *s;
	pthread_t thread;

	fake_start(&f, with_events, &count);
	s = open_session();
	works(hcomm_on_event(s, on_event, NULL));
	ck_assert_int_eq(pthread_create(&thread, NULL, dispatch_long, s), 0);
	works(hcomm_ping(s, 20000));
	pthread_join(thread, NULL); /* it returns once it has delivered the event */
	ck_assert_uint_eq(nseen, 1);
	hcomm_close(s);
	fake_end(&f);
}
END_TEST

START_TEST(it_waits_as_long_as_it_was_told)
{
	struct fake f;
	struct hcomm_session *s = open_fake(&f, NULL);
	uint64_t began = hc_now_ms();

	ck_assert_int_eq(hcomm_dispatch(s, 120), 0);
	ck_assert_uint_ge(hc_now_ms() - began, 119);
	hcomm_close(s);
	fake_end(&f);
}
END_TEST

static bool dispatches(void *session)
{
	return !hcomm_dispatch(session, 0);
}

START_TEST(a_host_that_only_dispatches_connects_again)
{
	struct fake f;
	struct hcomm_session *s = open_fake(&f, NULL);
	uint64_t began;

	fake_kill(&f);
	refused(hcomm_dispatch(s, 0), HCOMM_E_PEER_CLOSED, f.socket);
	began = hc_now_ms();
	refused(hcomm_dispatch(s, 0), HCOMM_E_NO_DAEMON, f.socket);
	refused(hcomm_dispatch(s, 120), HCOMM_E_NO_DAEMON, f.socket);
	ck_assert_uint_ge(hc_now_ms() - began, 40); /* no busy loop for who waits */
	ck_assert_int_eq(hcomm_fd(s), -1);
	fake_again(&f);
	/* not at once: thousands of processes may have lost their daemon at the same moment */
	ck_assert(hc_wait_until(dispatches, s, 5000));
	ck_assert_int_ge(hcomm_fd(s), 0);
	hcomm_close(s);
	fake_end(&f);
}
END_TEST

START_TEST(refusals)
{
	struct fake f;
	struct hcomm_session *s = open_fake(&f, NULL);

	refused(hcomm_dispatch(NULL, 0), HCOMM_E_INVALID, "session is NULL");
	refused(hcomm_dispatch(s, -2), HCOMM_E_INVALID, "timeout_ms is -2");
	refused(hcomm_on_event(NULL, on_event, NULL), HCOMM_E_INVALID, "session is NULL");
	fake_kill(&f);
	refused(hcomm_dispatch(s, 0), HCOMM_E_PEER_CLOSED, f.socket);
	hcomm_close(s);
	fake_end(&f);
}
END_TEST

TESTS("hcomm_dispatch", events_come_in_order_and_say_what_happened,
      the_queue_is_bounded_and_says_what_was_lost, without_a_function_nothing_is_kept,
      any_call_is_allowed_inside_the_function, a_waiting_dispatch_hands_answers_to_the_others,
      it_waits_as_long_as_it_was_told, a_host_that_only_dispatches_connects_again, refusals)
