/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hcomm_channel_acquire: an end of a channel to another rank, or why there is none.
 */
#include "chantest.h"
#include "failing.h"

START_TEST(two_ranks_meet_in_one_channel)
{
	hcomm_channel ch[2], more[2];
	struct two t;

	two_fake(&t, NULL);
	two_channel(&t, ch);
	two_channel(&t, more);
	ck_assert_uint_ne(ch[0], more[0]);
	passes(ch[0], ch[1], "to and");
	passes(ch[1], ch[0], "fro");
	passes(more[0], more[1], "another one");
	two_end(&t);
}
END_TEST

START_TEST(it_may_send_before_the_other_is_there)
{
	struct hcomm_channel_args a = channel_to(1), b = channel_to(0);
	uint32_t bytes = 8;
	hcomm_channel ch[2];
	struct two t;
	char got[8];

	two_fake(&t, NULL);
	works(hcomm_channel_acquire(t.d[0], &a, 5000, &ch[0]));
	works(hcomm_channel_send(ch[0], "early", 5, 5000));
	works(hcomm_channel_acquire(t.d[1], &b, 5000, &ch[1]));
	works(hcomm_channel_recv(ch[1], got, &bytes, 5000));
	ck_assert_uint_eq(bytes, 5);
	two_end(&t);
}
END_TEST

struct seen {
	unsigned count;
	struct hcomm_event last;
};

static void note(const struct hcomm_event *e, void *context)
{
	struct seen *seen = context;

	seen->count++;
	seen->last = *e;
}

static void dispatch_until(struct hcomm_session *s, const struct seen *seen, unsigned count)
{
	uint64_t end = hc_now_ms() + hc_patience(10000);

	while (seen->count < count) {
		ck_assert_int_ge(hcomm_dispatch(s, 100), 0);
		ck_assert_uint_lt(hc_now_ms(), end);
	}
}

START_TEST(started_it_is_ended_by_an_event)
{
	struct hcomm_channel_args a = channel_to(1), b = channel_to(0);
	struct seen seen = {0};
	hcomm_channel ch[2];
	struct two t;

	two_fake(&t, NULL);
	works(hcomm_on_event(t.s[0], note, &seen));
	a.wait = 1;
	refused(hcomm_channel_acquire(t.d[0], &a, HCOMM_START, &ch[0]), HCOMM_E_IN_PROGRESS,
		"event");
	ck_assert_uint_ne(ch[0], 0);
	dispatch_until(t.s[0], &seen, 1);
	ck_assert_uint_eq(seen.last.code, HCOMM_EV_CHANNEL_GRANTED);
	ck_assert_uint_eq(seen.last.channel, ch[0]);
	ck_assert_uint_eq(seen.last.domain, t.d[0]);
	ck_assert_uint_eq(seen.last.id, id_of(t.d[0]));
	ck_assert_int_eq(seen.last.error, 0);
	works(hcomm_channel_acquire(t.d[1], &b, 5000, &ch[1]));
	passes(ch[0], ch[1], "the first use opens it");
	two_end(&t);
}
END_TEST

static bool full(struct fake_conn *c, const struct hc_frame *f, int got, void *arg)
{
	struct hc_m_channel_refused m = {.retry_after_ms = 250,
					 .text = hc_str("domain other, rank 3, holds 900 of 1000")};
	static uint8_t buf[4096];
	size_t len;

	if (f->head.type != HC_MSG_channel_want)
		return fake_good(c, f, got, arg);
	hc_want(!hc_frame_write(buf, sizeof(buf), &hc_desc_channel_refused, 1, f->head.id,
				-HC_E_AGAIN, &m, &len));
	return fake_raw(c, buf, len);
}

START_TEST(not_enough_says_when_to_come_again)
{
	struct hcomm_channel_args a = channel_to(1);
	struct seen seen = {0};
	hcomm_channel ch;
	struct two t;

	two_fake(&t, full);
	refused(hcomm_channel_acquire(t.d[0], &a, 5000, &ch), HCOMM_E_AGAIN, "holds 900 of 1000");
	ck_assert_uint_eq(hcomm_retry_after(), 250);
	ck_assert_uint_eq(ch, 0);
	works(hcomm_on_event(t.s[0], note, &seen));
	ck_assert_int_eq(hcomm_channel_acquire(t.d[0], &a, HCOMM_START, &ch), HCOMM_E_IN_PROGRESS);
	refused(hcomm_channel_send(ch, "x", 1, 100), HCOMM_E_IN_PROGRESS, "not granted yet");
	dispatch_until(t.s[0], &seen, 1);
	ck_assert_uint_eq(seen.last.code, HCOMM_EV_CHANNEL_REFUSED);
	ck_assert_uint_eq(seen.last.channel, ch);
	ck_assert_int_eq(seen.last.error, HCOMM_E_AGAIN);
	ck_assert_ptr_nonnull(strstr(seen.last.text, "holds 900"));
	refused(hcomm_channel_send(ch, "x", 1, 100), HCOMM_E_AGAIN, "was refused");
	ck_assert_uint_eq(hcomm_retry_after(), 250);
	works(hcomm_channel_release(ch));
	two_end(&t);
}
END_TEST

/* Silent until the test says otherwise, by a register that nobody has. */
static bool silent(struct fake_conn *c, const struct hc_frame *f, int got, void *arg)
{
	if (f->head.type == HC_MSG_channel_want && !c->fake->registers[4000].state)
		return true;
	return fake_good(c, f, got, arg);
}

START_TEST(a_request_that_was_begun_is_asked_again_after_a_restart)
{
	struct hcomm_channel_args a = channel_to(1);
	struct seen seen = {0};
	hcomm_channel ch, gone;
	struct two t;

	two_fake(&t, silent);
	works(hcomm_on_event(t.s[0], note, &seen));
	a.wait = 1;
	ck_assert_int_eq(hcomm_channel_acquire(t.d[0], &a, HCOMM_START, &ch), HCOMM_E_IN_PROGRESS);
	ck_assert_int_eq(hcomm_channel_acquire(t.d[0], &a, HCOMM_START, &gone),
			 HCOMM_E_IN_PROGRESS);
	works(hcomm_channel_release(gone)); /* what it is granted goes back, without an event */
	works(hcomm_ping(t.s[0], 5000));
	fake_kill(&t.fake);
	t.fake.registers[4000].state = 1;
	fake_again(&t.fake);
	works(hcomm_ping(t.s[0], 10000));
	while (seen.last.channel != ch) {
		dispatch_until(t.s[0], &seen, seen.count + 1);
		ck_assert_uint_ne(seen.last.code, HCOMM_EV_CHANNEL_REFUSED);
	}
	ck_assert_uint_eq(seen.last.code, HCOMM_EV_CHANNEL_GRANTED);
	two_end(&t);
}
END_TEST

/* What the library is told in the place of a good grant. */
static int lie;

/* Of the right size, and no memfd. */
static int plain_file(void)
{
	FILE *f = tmpfile();

	hc_want(f && !ftruncate(fileno(f), HC_RING_FILE_BYTES(4096u)));
	return fileno(f);
}

static bool lying(struct fake_conn *c, const struct hc_frame *f, int got, void *arg)
{
	struct hc_m_channel_grant g = {.channel = FAKE_CHANNEL + 1,
				       .slot = 1,
				       .peer = 1,
				       .buffer_bytes = 4096,
				       .carries = 1};
	struct hc_m_channel_want_r r = {0};
	struct hc_m_status_slab slab = {.slab = 0};
	struct hc_m_channel_open_r o = {.channel = FAKE_CHANNEL + 1};
	uint8_t buf[256];

	if (f->head.type == HC_MSG_channel_open)
		return fake_reply(c, f, &hc_desc_channel_open_r, &o,
				  lie == 5   ? c->fake->slab_fd
				  : lie == 7 ? plain_file()
					     : -1);
	if (f->head.type != HC_MSG_channel_want)
		return fake_good(c, f, got, arg);
	c->fake->registers[1].id = FAKE_CHANNEL + 1;
	c->fake->registers[1].state = HC_STATUS_WORD(HC_W_channel_state_OK, 1);
	if (lie == 1)
		g.slot = 9; /* the register of another */
	if (lie == 2)
		g.side = 2;
	if (lie == 3)
		g.buffer_bytes = 5000;
	if (lie != 4)
		hc_want(!hc_arr_put(&r.grants, buf, sizeof(buf), &hc_desc_channel_grant, 1, &g));
	return fake_notice(c, &hc_desc_status_slab, &slab, c->fake->registers_fd) &&
	       fake_reply(c, f, &hc_desc_channel_want_r, &r, -1);
}

START_TEST(a_grant_that_cannot_be_is_not_believed)
{
	struct hcomm_channel_args a = channel_to(1);
	hcomm_channel ch;
	struct two t;

	for (lie = 1; lie <= 7; lie++) {
		two_fake(&t, lying);
		refused(hcomm_channel_acquire(t.d[0], &a, 5000, &ch), HCOMM_E_MALFORMED, "hcommd");
		ck_assert_uint_eq(ch, 0);
		two_end(&t);
	}
}
END_TEST

START_TEST(the_nth_allocation_fails)
{
	struct hcomm_channel_args a = channel_to(1), b = channel_to(0);
	unsigned fds = hc_count_fds(), maps;
	hcomm_channel ch, other;
	struct two t;
	int n, r, pass;

	if (!HC_FAILING_WORKS)
		return;
	two_fake(&t, NULL);
	fds = hc_count_fds();
	/* twice, since what the first calls have set up stays: the table, the registers */
	for (pass = 0; pass < 2; pass++) {
		for (n = 0;; n++) {
			hc_failing_begin(n);
			r = hcomm_channel_acquire(t.d[0], &a, 5000, &ch);
			if (!hc_failing_end())
				break;
			if (!r) { /* only a grant that nobody wanted could not be given back */
				works(hcomm_channel_release(ch));
				continue;
			}
			refused(r, HCOMM_E_NO_MEMORY, "");
			ck_assert_uint_eq(ch, 0);
		}
		ck_assert_int_ge(n, 2);
		works(r);
		if (!pass)
			works(hcomm_channel_release(ch));
	}
	maps = hc_count_maps("fake-rings");
	ck_assert_uint_eq(maps, 1); /* nothing of the attempts is left */
	ck_assert_uint_eq(hc_count_fds(), fds);
	do { /* those that were granted in vain have an other end, too */
		works(hcomm_channel_acquire(t.d[1], &b, 5000, &other));
		works(hcomm_channel_send(ch, "x", 1, 5000));
		r = hcomm_channel_poll(other, HCOMM_START);
	} while (r);
	two_end(&t);
	ck_assert_uint_eq(hc_count_maps("fake-rings"), 0);
}
END_TEST

START_TEST(refusals)
{
	struct hcomm_channel_args a = channel_to(1), bad;
	hcomm_channel ch = 0;
	hcomm_domain alone;
	struct two t;

	two_fake(&t, NULL);
	refused(hcomm_channel_acquire(t.d[0], NULL, 100, &ch), HCOMM_E_INVALID, "args is NULL");
	refused(hcomm_channel_acquire(t.d[0], &a, 100, NULL), HCOMM_E_INVALID, "channel is NULL");
	refused(hcomm_channel_acquire(t.d[0], &a, -2, &ch), HCOMM_E_INVALID, "timeout_ms is -2");
	refused(hcomm_channel_acquire(0, &a, 100, &ch), HCOMM_E_GONE, "handle");
	bad = a;
	bad.size = 4;
	refused(hcomm_channel_acquire(t.d[0], &bad, 100, &ch), HCOMM_E_INVALID, "size");
	bad = a;
	bad.peer = 0;
	refused(hcomm_channel_acquire(t.d[0], &bad, 100, &ch), HCOMM_E_INVALID, "peer is 0");
	bad.peer = 2;
	refused(hcomm_channel_acquire(t.d[0], &bad, 100, &ch), HCOMM_E_INVALID, "peer is 2");
	bad = a;
	bad.wait = 2;
	refused(hcomm_channel_acquire(t.d[0], &bad, 100, &ch), HCOMM_E_INVALID, "wait is 2");
	bad = a;
	bad.path_type = 8;
	refused(hcomm_channel_acquire(t.d[0], &bad, 100, &ch), HCOMM_E_INVALID, "path_type is 8");
	bad = a;
	bad.flags = 4;
	refused(hcomm_channel_acquire(t.d[0], &bad, 100, &ch), HCOMM_E_INVALID, "flags is 0x4");
	bad.flags = HCOMM_CHANNEL_FROM;
	bad.rank = 1;
	refused(hcomm_channel_acquire(t.d[0], &bad, 100, &ch), HCOMM_E_INVALID, "rank is 1");
	bad = a;
	bad.buffer_bytes = 4095;
	refused(hcomm_channel_acquire(t.d[0], &bad, 100, &ch), HCOMM_E_INVALID,
		"buffer_bytes is 4095");
	bad.buffer_bytes = 16777217;
	refused(hcomm_channel_acquire(t.d[0], &bad, 100, &ch), HCOMM_E_INVALID,
		"buffer_bytes is 16777217");
	works(hcomm_join(NULL, NULL, 1, 0, 0, NULL, 100, &alone));
	refused(hcomm_channel_acquire(alone, &a, 100, &ch), HCOMM_E_INVALID, "one rank");
	works(hcomm_leave(alone, 0));
	works(hcomm_leave(t.d[0], 100));
	refused(hcomm_channel_acquire(t.d[0], &a, 100, &ch), HCOMM_E_GONE, "handle");
	two_end(&t);
}
END_TEST

TESTS("hcomm_channel_acquire", two_ranks_meet_in_one_channel, it_may_send_before_the_other_is_there,
      started_it_is_ended_by_an_event, not_enough_says_when_to_come_again,
      a_request_that_was_begun_is_asked_again_after_a_restart,
      a_grant_that_cannot_be_is_not_believed, the_nth_allocation_fails, refusals)
