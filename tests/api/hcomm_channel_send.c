/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hcomm_channel_send: messages of every size, when there is room, or not at all.
 */
#include "chantest.h"
#include "failing.h"
#include "rings.h"

static uint8_t data[HCOMM_CHANNEL_BYTES_MAX + 1], got[HCOMM_CHANNEL_BYTES_MAX];

static void small_channel(struct two *t, hcomm_channel ch[2])
{
	struct hcomm_channel_args a = channel_to(1), b = channel_to(0);

	a.buffer_bytes = b.buffer_bytes = 4096;
	works(hcomm_channel_acquire(t->d[0], &a, 5000, &ch[0]));
	works(hcomm_channel_acquire(t->d[1], &b, 5000, &ch[1]));
}

static void fill(uint32_t seed)
{
	size_t i;

	for (i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)((i * 2654435761u + seed) >> 13);
}

START_TEST(every_size_arrives_as_it_was_sent)
{
	static const uint32_t sizes[] = {0, 1, 8, 55, 56, 57, 64, 1000, 65536, 65537, 262144};
	uint32_t bytes, i;
	hcomm_channel ch[2];
	struct two t;

	two_fake(&t, NULL);
	two_channel(&t, ch);
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		fill(i);
		works(hcomm_channel_send(ch[0], data, sizes[i], 5000));
		bytes = sizeof(got);
		works(hcomm_channel_recv(ch[1], got, &bytes, 5000));
		ck_assert_uint_eq(bytes, sizes[i]);
		ck_assert(!memcmp(data, got, bytes));
	}
	two_end(&t);
}
END_TEST

static int receive_large(void *arg, int in, int out)
{
	struct hcomm_channel_args b = channel_to(0);
	uint32_t bytes, i, ok = 0;
	hcomm_channel ch;
	hcomm_domain d;
	struct hcomm_session *s;

	(void)arg;
	(void)in;
	s = open_session();
	d = join_root(s, 2, 1);
	works(hcomm_channel_acquire(d, &b, 5000, &ch));
	for (i = 0; i < 20; i++) {
		fill(i);
		bytes = sizeof(got);
		works(hcomm_channel_recv(ch, got, &bytes, 60000));
		ok += bytes == HCOMM_CHANNEL_BYTES_MAX - i && !memcmp(data, got, bytes);
	}
	hc_tell(out, &ok, sizeof(ok));
	hcomm_close(s);
	return 0;
}

START_TEST(larger_than_the_buffer_and_to_another_process)
{
	struct hcomm_channel_args a = channel_to(1);
	struct hc_child c;
	hcomm_channel ch;
	struct two t;
	uint32_t i, ok;

	two_fake(&t, NULL);
	a.buffer_bytes = 10000;
	works(hcomm_channel_acquire(t.d[0], &a, 5000, &ch));
	hc_spawn(&c, receive_large, NULL);
	for (i = 0; i < 20; i++) {
		fill(i);
		works(hcomm_channel_send(ch, data, HCOMM_CHANNEL_BYTES_MAX - i, 60000));
	}
	hc_child_read(&c, &ok, sizeof(ok), 60000);
	ck_assert_uint_eq(ok, 20);
	ck_assert_int_eq(hc_child_wait(&c, 10000), 0);
	two_end(&t);
}
END_TEST

START_TEST(without_room_it_says_so)
{
	hcomm_channel ch[2];
	uint32_t n, bytes;
	struct two t;
	int r;

	two_fake(&t, NULL);
	small_channel(&t, ch);
	for (n = 0; !(r = hcomm_channel_send(ch[0], "12345678", 8, HCOMM_START)); n++)
		ck_assert_uint_lt(n, 10000);
	refused(r, HCOMM_E_AGAIN, "no room");
	refused(hcomm_channel_send(ch[0], "12345678", 8, 20), HCOMM_E_TIMEOUT, "rank 1");
	/* too large for the buffer: only a send that waits can do that */
	refused(hcomm_channel_send(ch[0], data, 4097, HCOMM_START), HCOMM_E_BUFFER_OVERFLOW,
		"4097 bytes");
	for (; n; n--) {
		bytes = 8;
		works(hcomm_channel_recv(ch[1], got, &bytes, HCOMM_START));
	}
	/* given up in the middle: nothing of it arrives */
	refused(hcomm_channel_send(ch[0], data, 20000, 20), HCOMM_E_TIMEOUT, "time given");
	works(hcomm_channel_send(ch[0], "next", 4, HCOMM_START));
	bytes = sizeof(got);
	works(hcomm_channel_recv(ch[1], got, &bytes, 5000));
	ck_assert_uint_eq(bytes, 4);
	two_end(&t);
}
END_TEST

START_TEST(a_revoked_channel_takes_nothing)
{
	hcomm_channel ch[2];
	struct two t;

	two_fake(&t, NULL);
	two_channel(&t, ch);
	t.fake.registers[1].state = HC_STATUS_WORD(HCOMM_CHANNEL_CONGESTED, 2);
	works(hcomm_channel_send(ch[0], "x", 1, 100));
	t.fake.registers[1].state = HC_STATUS_WORD(HCOMM_CHANNEL_DOWN, 3);
	works(hcomm_channel_send(ch[0], "x", 1, 100));
	fake_revoke(&t.fake, 1);
	refused(hcomm_channel_send(ch[0], "x", 1, 100), HCOMM_E_PEER_LOST, "rank 1 is over");
	/* the register of the next channel in that slot is not taken for ours */
	t.fake.registers[1].id = 99;
	t.fake.registers[1].state = HC_STATUS_WORD(HCOMM_CHANNEL_OK, 5);
	refused(hcomm_channel_send(ch[0], "x", 1, 100), HCOMM_E_PEER_LOST, "rank 1 is over");
	two_end(&t);
}
END_TEST

START_TEST(the_daemon_is_not_needed_and_nothing_is_allocated)
{
	hcomm_channel ch[2];
	uint32_t i, bytes;
	struct two t;
	int r = 0;

	two_fake(&t, NULL);
	two_channel(&t, ch);
	fake_kill(&t.fake);
	hc_failing_begin(0);
	for (i = 0; !r && i < 5000; i++) {
		bytes = sizeof(got);
		r = hcomm_channel_send(ch[i % 2], data, i, 1000);
		if (!r)
			r = hcomm_channel_recv(ch[1 - i % 2], got, &bytes, 1000);
	}
	ck_assert(!hc_failing_end());
	works(r);
	two_end(&t);
}
END_TEST

START_TEST(refusals)
{
	struct hcomm_channel_args a = channel_to(1);
	hcomm_channel ch[2], grant;
	struct two t;

	two_fake(&t, NULL);
	two_channel(&t, ch);
	refused(hcomm_channel_send(ch[0], data, HCOMM_CHANNEL_BYTES_MAX + 1, 100), HCOMM_E_INVALID,
		"HCOMM_CHANNEL_BYTES_MAX");
	refused(hcomm_channel_send(ch[0], NULL, 1, 100), HCOMM_E_INVALID, "data is NULL");
	works(hcomm_channel_send(ch[0], NULL, 0, 100));
	refused(hcomm_channel_send(ch[0], data, 1, -2), HCOMM_E_INVALID, "timeout_ms is -2");
	refused(hcomm_channel_send(0, data, 1, 100), HCOMM_E_INVALID, "handle is 0");
	refused(hcomm_channel_send(ch[0] + 1, data, 1, 100), HCOMM_E_GONE, "handle");
	a.flags = HCOMM_CHANNEL_GRANT_ONLY;
	works(hcomm_channel_acquire(t.d[0], &a, 5000, &grant));
	refused(hcomm_channel_send(grant, data, 1, 100), HCOMM_E_NOT_SUPPORTED, "grant only");
	two_end(&t);
}
END_TEST

TESTS("hcomm_channel_send", every_size_arrives_as_it_was_sent,
      larger_than_the_buffer_and_to_another_process, without_room_it_says_so,
      a_revoked_channel_takes_nothing, the_daemon_is_not_needed_and_nothing_is_allocated, refusals)
