/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hcomm_channel_poll: is there a message, without taking it?
 */
#include <pthread.h>

#include "chantest.h"

static uint8_t data[HCOMM_CHANNEL_BYTES_MAX], got[HCOMM_CHANNEL_BYTES_MAX];

START_TEST(it_says_whether_a_message_can_be_received)
{
	static const uint32_t sizes[] = {0, 8, 57, 200000};
	uint32_t bytes, i;
	hcomm_channel ch[2];
	struct two t;

	two_fake(&t, NULL);
	two_channel(&t, ch);
	for (i = 0; i < 4; i++) {
		refused(hcomm_channel_poll(ch[1], HCOMM_START), HCOMM_E_AGAIN, "no message");
		refused(hcomm_channel_poll(ch[1], 10), HCOMM_E_TIMEOUT, "rank 0");
		works(hcomm_channel_send(ch[0], data, sizes[i], 5000));
		works(hcomm_channel_poll(ch[1], 5000));
		works(hcomm_channel_poll(ch[1], HCOMM_START)); /* it is still there */
		bytes = sizeof(got);
		works(hcomm_channel_recv(ch[1], got, &bytes, HCOMM_START));
		ck_assert_uint_eq(bytes, sizes[i]);
	}
	two_end(&t);
}
END_TEST

struct job {
	hcomm_channel ch;
	int result;
};

static void *send_large(void *arg)
{
	struct job *j = arg;

	j->result = hcomm_channel_send(j->ch, data, sizeof(data), 60000);
	return NULL;
}

/* A host that only ever polls must get a message that does not fit into the buffer. */
START_TEST(a_message_larger_than_the_buffer_gets_through)
{
	struct hcomm_channel_args a = channel_to(1), b = channel_to(0);
	uint32_t bytes = sizeof(got);
	uint64_t end;
	hcomm_channel ch[2];
	pthread_t thread;
	struct job j;
	struct two t;
	size_t i;

	two_fake(&t, NULL);
	a.buffer_bytes = b.buffer_bytes = 8192;
	works(hcomm_channel_acquire(t.d[0], &a, 5000, &ch[0]));
	works(hcomm_channel_acquire(t.d[1], &b, 5000, &ch[1]));
	for (i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 7 >> 3);
	j = (struct job){.ch = ch[0]};
	pthread_create(&thread, NULL, send_large, &j);
	end = hc_now_ms() + hc_patience(20000);
	while (hcomm_channel_poll(ch[1], HCOMM_START)) {
		ck_assert_uint_lt(hc_now_ms(), end);
		usleep(10);
	}
	pthread_join(thread, NULL);
	works(j.result);
	works(hcomm_channel_recv(ch[1], got, &bytes, HCOMM_START));
	ck_assert_uint_eq(bytes, sizeof(data));
	ck_assert(!memcmp(data, got, bytes));
	two_end(&t);
}
END_TEST

START_TEST(what_had_come_before_the_end_is_still_there)
{
	uint32_t bytes = 8;
	hcomm_channel ch[2];
	struct two t;

	two_fake(&t, NULL);
	two_channel(&t, ch);
	works(hcomm_channel_send(ch[0], "x", 1, 100));
	fake_revoke(&t.fake, 1);
	works(hcomm_channel_poll(ch[1], 5000));
	works(hcomm_channel_recv(ch[1], got, &bytes, 5000));
	refused(hcomm_channel_poll(ch[1], 5000), HCOMM_E_PEER_LOST, "is over");
	refused(hcomm_channel_poll(ch[1], HCOMM_START), HCOMM_E_PEER_LOST, "is over");
	two_end(&t);
}
END_TEST

START_TEST(refusals)
{
	hcomm_channel ch[2];
	struct two t;

	two_fake(&t, NULL);
	two_channel(&t, ch);
	refused(hcomm_channel_poll(ch[0], -2), HCOMM_E_INVALID, "timeout_ms is -2");
	refused(hcomm_channel_poll(0, 1), HCOMM_E_INVALID, "handle is 0");
	works(hcomm_channel_release(ch[0]));
	refused(hcomm_channel_poll(ch[0], 1), HCOMM_E_GONE, "released");
	two_end(&t);
}
END_TEST

TESTS("hcomm_channel_poll", it_says_whether_a_message_can_be_received,
      a_message_larger_than_the_buffer_gets_through, what_had_come_before_the_end_is_still_there,
      refusals)
