/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hcomm_channel_recv: the next message, whole, or why not yet or not any more.
 */
#include <pthread.h>

#include "chantest.h"
#include "rings.h"

static uint8_t data[HCOMM_CHANNEL_BYTES_MAX], got[HCOMM_CHANNEL_BYTES_MAX];

START_TEST(no_message_yet)
{
	uint32_t bytes = 8;
	hcomm_channel ch[2];
	uint64_t start;
	struct two t;

	two_fake(&t, NULL);
	two_channel(&t, ch);
	refused(hcomm_channel_recv(ch[1], got, &bytes, HCOMM_START), HCOMM_E_AGAIN, "no message");
	start = hc_now_ms();
	refused(hcomm_channel_recv(ch[1], got, &bytes, 50), HCOMM_E_TIMEOUT, "rank 0");
	ck_assert_uint_ge(hc_now_ms() - start, 50);
	ck_assert_uint_eq(bytes, 8);
	two_end(&t);
}
END_TEST

START_TEST(too_little_room_leaves_it_where_it_is)
{
	static const uint32_t sizes[] = {1, 56, 57, 100000};
	uint32_t bytes, i;
	hcomm_channel ch[2];
	struct two t;

	two_fake(&t, NULL);
	two_channel(&t, ch);
	for (i = 0; i < 4; i++) {
		works(hcomm_channel_send(ch[0], data, sizes[i], 5000));
		bytes = 0;
		refused(hcomm_channel_recv(ch[1], NULL, &bytes, 5000), HCOMM_E_BUFFER_OVERFLOW,
			"larger than the room");
		ck_assert_uint_eq(bytes, sizes[i]);
		works(hcomm_channel_recv(ch[1], got, &bytes, HCOMM_START));
		ck_assert_uint_eq(bytes, sizes[i]);
	}
	two_end(&t);
}
END_TEST

static void *revoke_soon(void *arg)
{
	usleep(20000);
	fake_revoke(arg, 1);
	return NULL;
}

START_TEST(revoked_while_it_waits)
{
	uint32_t bytes = 8;
	hcomm_channel ch[2];
	pthread_t thread;
	uint64_t start;
	struct two t;

	two_fake(&t, NULL);
	two_channel(&t, ch);
	start = hc_now_ms();
	pthread_create(&thread, NULL, revoke_soon, &t.fake);
	refused(hcomm_channel_recv(ch[1], got, &bytes, 60000), HCOMM_E_PEER_LOST, "is over");
	ck_assert_uint_lt(hc_now_ms() - start, hc_patience(900)); /* woken, not by a look around */
	pthread_join(thread, NULL);
	two_end(&t);
}
END_TEST

/* The rings as the other side has them: this process maps each end, so it can play a bad one. */
static struct hc_ring_head *rings_of_side(unsigned nth)
{
	FILE *f = fopen("/proc/self/maps", "re");
	unsigned long start = 0, at;
	char line[512];

	ck_assert_ptr_nonnull(f);
	while (fgets(line, sizeof(line), f)) {
		if (!strstr(line, "fake-rings") || sscanf(line, "%lx", &at) != 1)
			continue;
		if (!nth--)
			start = at;
	}
	fclose(f);
	return (struct hc_ring_head *)start;
}

START_TEST(nonsense_in_the_rings_ends_the_use_of_the_channel)
{
	uint32_t bytes = 8;
	struct hc_ring_head *head;
	hcomm_channel ch[2];
	struct two t;

	two_fake(&t, NULL);
	two_channel(&t, ch);
	head = rings_of_side(0);
	ck_assert_ptr_nonnull(head);
	struct hc_ring_desc *desc = (void *)((uint8_t *)head + HC_RING_SLOTS_AT(0));
	atomic_store(&desc[0].word, HC_RING_WORD(1, HC_RING_SMALL, 4000));
	refused(hcomm_channel_recv(ch[1], got, &bytes, 5000), HCOMM_E_MALFORMED,
		"rank 0 wrote into the rings");
	refused(hcomm_channel_recv(ch[1], got, &bytes, 5000), HCOMM_E_MALFORMED, "release");
	refused(hcomm_channel_send(ch[1], data, 1, 5000), HCOMM_E_MALFORMED, "release");
	works(hcomm_channel_release(ch[1]));
	two_end(&t);
}
END_TEST

static int send_and_die(void *arg, int in, int out)
{
	struct hcomm_channel_args a = channel_to(1);
	struct hcomm_session *s;
	hcomm_channel ch;
	hcomm_domain d;

	(void)arg;
	(void)in;
	s = open_session();
	d = join_root(s, 2, 0);
	a.buffer_bytes = 4096;
	works(hcomm_channel_acquire(d, &a, 5000, &ch));
	works(hcomm_channel_send(ch, "before", 6, 5000));
	hc_tell(out, "x", 1);
	hcomm_channel_send(ch, data, sizeof(data), 60000); /* nobody takes all of it */
	return 0;
}

START_TEST(the_sender_dies_in_the_middle_of_a_message)
{
	struct hcomm_channel_args b = channel_to(0);
	uint32_t bytes = sizeof(got);
	struct hc_child c;
	hcomm_channel ch;
	struct two t;
	char x;
	int r;

	two_fake(&t, NULL);
	b.buffer_bytes = 4096;
	hc_spawn(&c, send_and_die, NULL);
	hc_child_read(&c, &x, 1, 10000);
	works(hcomm_channel_acquire(t.d[1], &b, 5000, &ch));
	works(hcomm_channel_recv(ch, got, &bytes, 5000));
	ck_assert_uint_eq(bytes, 6);
	do { /* until the first part has come */
		bytes = 8;
		r = hcomm_channel_recv(ch, got, &bytes, 5000);
	} while (r == HCOMM_E_TIMEOUT);
	ck_assert_int_eq(r, HCOMM_E_BUFFER_OVERFLOW);
	hc_child_kill(&c);
	fake_revoke(&t.fake, 1);
	bytes = sizeof(got);
	refused(hcomm_channel_recv(ch, got, &bytes, 5000), HCOMM_E_PEER_LOST, "is over");
	two_end(&t);
}
END_TEST

static int ping_back(void *arg, int in, int out)
{
	struct hcomm_channel_args b = channel_to(0);
	unsigned n = *(unsigned *)arg;
	struct hcomm_session *s;
	hcomm_channel ch;
	hcomm_domain d;
	uint32_t bytes, x;

	(void)in;
	(void)out;
	s = open_session();
	d = join_root(s, 2, 1);
	works(hcomm_channel_acquire(d, &b, 5000, &ch));
	while (n--) {
		bytes = sizeof(x);
		works(hcomm_channel_recv(ch, &x, &bytes, 30000));
		works(hcomm_channel_send(ch, &x, bytes, 30000));
	}
	bytes = 0;
	ck_assert_int_eq(hcomm_channel_recv(ch, &x, &bytes, 30000), HCOMM_E_PEER_LOST);
	hcomm_close(s);
	return 0;
}

START_TEST(two_processes_answer_each_other)
{
	struct hcomm_channel_args a = channel_to(1);
	unsigned n = 20000, i;
	struct hc_child c;
	uint32_t bytes, x;
	hcomm_channel ch;
	struct two t;

	two_fake(&t, NULL);
	works(hcomm_channel_acquire(t.d[0], &a, 5000, &ch));
	hc_spawn(&c, ping_back, &n);
	for (i = 0; i < n; i++) {
		works(hcomm_channel_send(ch, &i, sizeof(i), 30000));
		bytes = sizeof(x);
		works(hcomm_channel_recv(ch, &x, &bytes, 30000));
		ck_assert_uint_eq(x, i);
	}
	works(hcomm_channel_release(ch));
	ck_assert_int_eq(hc_child_wait(&c, 30000), 0);
	two_end(&t);
}
END_TEST

START_TEST(refusals)
{
	hcomm_channel ch[2];
	uint32_t bytes = 1;
	struct two t;

	two_fake(&t, NULL);
	two_channel(&t, ch);
	refused(hcomm_channel_recv(ch[0], got, NULL, 100), HCOMM_E_INVALID, "bytes is NULL");
	refused(hcomm_channel_recv(ch[0], NULL, &bytes, 100), HCOMM_E_INVALID, "data is NULL");
	refused(hcomm_channel_recv(ch[0], got, &bytes, -2), HCOMM_E_INVALID, "timeout_ms is -2");
	refused(hcomm_channel_recv(0, got, &bytes, 100), HCOMM_E_INVALID, "handle is 0");
	refused(hcomm_channel_recv(~ch[0], got, &bytes, 100), HCOMM_E_GONE, "handle");
	two_end(&t);
}
END_TEST

TESTS("hcomm_channel_recv", no_message_yet, too_little_room_leaves_it_where_it_is,
      revoked_while_it_waits, nonsense_in_the_rings_ends_the_use_of_the_channel,
      the_sender_dies_in_the_middle_of_a_message, two_processes_answer_each_other, refusals)
