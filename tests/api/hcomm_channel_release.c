/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hcomm_channel_release: the end of a channel, for both ends, and for whoever waits in it.
 */
#include <pthread.h>

#include "chantest.h"
#include "failing.h"

START_TEST(both_ends_are_over)
{
	uint32_t bytes = 8;
	hcomm_channel ch[2];
	struct two t;
	char got[8];

	two_fake(&t, NULL);
	two_channel(&t, ch);
	works(hcomm_channel_send(ch[0], "last", 4, 5000));
	works(hcomm_channel_release(ch[0]));
	refused(hcomm_channel_send(ch[0], "x", 1, 5000), HCOMM_E_GONE, "released");
	refused(hcomm_channel_release(ch[0]), HCOMM_E_GONE, "released");
	/* what had come before is delivered, then it is over */
	works(hcomm_channel_recv(ch[1], got, &bytes, 5000));
	ck_assert_uint_eq(bytes, 4);
	refused(hcomm_channel_recv(ch[1], got, &bytes, 5000), HCOMM_E_PEER_LOST, "is over");
	refused(hcomm_channel_send(ch[1], got, 1, 5000), HCOMM_E_PEER_LOST, "rank 0 is over");
	ck_assert_uint_eq(channel_state(ch[1]), HCOMM_CHANNEL_REVOKED);
	works(hcomm_channel_release(ch[1]));
	ck_assert_uint_eq(hc_count_maps("fake-rings"), 0);
	two_end(&t);
}
END_TEST

struct waiter {
	hcomm_channel ch;
	_Atomic bool there;
	int result;
};

static void *wait_for_ever(void *arg)
{
	struct waiter *w = arg;
	uint32_t bytes = 8;
	char got[8];

	atomic_store(&w->there, true);
	w->result = hcomm_channel_recv(w->ch, got, &bytes, 60000);
	return NULL;
}

START_TEST(a_thread_that_waits_in_it_comes_back)
{
	hcomm_channel ch[2];
	pthread_t thread;
	struct waiter w;
	struct two t;
	unsigned i;

	two_fake(&t, NULL);
	for (i = 0; i < 50; i++) {
		two_channel(&t, ch);
		w = (struct waiter){.ch = ch[i % 2]};
		pthread_create(&thread, NULL, wait_for_ever, &w);
		while (!atomic_load(&w.there))
			usleep(50);
		usleep(i * 20);
		if (i == 20) /* the daemon is not needed for that */
			fake_kill(&t.fake);
		if (i < 20)
			works(hcomm_channel_release(ch[i % 2]));
		else
			break;
		pthread_join(thread, NULL);
		ck_assert_int_eq(w.result, HCOMM_E_GONE);
		hcomm_channel_release(ch[1 - i % 2]);
	}
	works(hcomm_channel_release(ch[i % 2]));
	pthread_join(thread, NULL);
	ck_assert_int_eq(w.result, HCOMM_E_GONE);
	two_end(&t);
}
END_TEST

START_TEST(leaving_and_closing_end_it)
{
	unsigned fds = hc_count_fds();
	hcomm_channel ch[2];
	struct two t;

	two_fake(&t, NULL);
	two_channel(&t, ch);
	works(hcomm_leave(t.d[0], 5000));
	refused(hcomm_channel_send(ch[0], "x", 1, 100), HCOMM_E_GONE, "released");
	refused(hcomm_channel_release(ch[0]), HCOMM_E_GONE, "handle");
	ck_assert_uint_eq(hc_count_maps("fake-rings"), 1);
	two_end(&t);
	ck_assert_uint_eq(hc_count_maps("fake-rings"), 0);
	ck_assert_uint_eq(hc_count_fds(), fds);
	refused(hcomm_channel_release(ch[1]), HCOMM_E_GONE, "handle");
}
END_TEST

START_TEST(a_daemon_that_was_away_hears_of_it)
{
	hcomm_channel ch[2];
	struct two t;

	two_fake(&t, NULL);
	two_channel(&t, ch);
	fake_kill(&t.fake);
	works(hcomm_channel_release(ch[0]));
	ck_assert_uint_eq(HC_STATUS_STATE(t.fake.registers[1].state), HCOMM_CHANNEL_OK);
	fake_again(&t.fake);
	works(hcomm_ping(t.s[0], 10000)); /* connects; then it is told */
	works(hcomm_ping(t.s[0], 10000));
	ck_assert_uint_eq(HC_STATUS_STATE(t.fake.registers[1].state), HCOMM_CHANNEL_REVOKED);
	two_end(&t);
}
END_TEST

static int in_child(void *arg, int in, int out)
{
	hcomm_channel ch = *(hcomm_channel *)arg;
	uint32_t n = 0;
	char x;

	(void)in;
	(void)out;
	return !(hcomm_channel_send(ch, "x", 1, 0) == HCOMM_E_FORKED &&
		 hcomm_channel_recv(ch, &x, &n, 0) == HCOMM_E_FORKED &&
		 hcomm_channel_poll(ch, 0) == HCOMM_E_FORKED &&
		 hcomm_channel_status(ch, &n) == HCOMM_E_FORKED &&
		 hcomm_channel_release(ch) == HCOMM_E_FORKED && hc_count_maps("fake-rings") == 0);
}

START_TEST(a_child_has_no_channel)
{
	hcomm_channel ch[2];
	struct hc_child c;
	struct two t;

	two_fake(&t, NULL);
	two_channel(&t, ch);
	hc_spawn(&c, in_child, &ch[0]);
	ck_assert_int_eq(hc_child_wait(&c, 10000), 0);
	passes(ch[0], ch[1], "the parent's is as it was");
	two_end(&t);
}
END_TEST

START_TEST(handles_are_not_given_twice)
{
	hcomm_channel ch[2], old = 0;
	struct two t;
	unsigned i;

	two_fake(&t, NULL);
	for (i = 0; i < 20; i++) {
		two_channel(&t, ch);
		ck_assert_uint_ne(ch[0], old);
		if (old)
			refused(hcomm_channel_send(old, "x", 1, 100), HCOMM_E_GONE, "handle");
		old = ch[0];
		works(hcomm_channel_release(ch[0]));
		works(hcomm_channel_release(ch[1]));
	}
	refused(hcomm_channel_release(0), HCOMM_E_INVALID, "handle is 0");
	two_end(&t);
}
END_TEST

TESTS("hcomm_channel_release", both_ends_are_over, a_thread_that_waits_in_it_comes_back,
      leaving_and_closing_end_it, a_daemon_that_was_away_hears_of_it, a_child_has_no_channel,
      handles_are_not_given_twice)
