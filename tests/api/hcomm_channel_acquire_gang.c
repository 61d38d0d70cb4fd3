/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hcomm_channel_acquire_gang: a set of channels, all or none.
 */
#include "chantest.h"
#include "failing.h"

enum { MANY = 1024 };

START_TEST(a_set_is_granted_and_opened_whole)
{
	struct hcomm_channel_args a[5], b = channel_to(0);
	hcomm_channel ch[5], other;
	struct two t;
	unsigned i;

	two_fake(&t, NULL);
	for (i = 0; i < 5; i++)
		a[i] = channel_to(1);
	works(hcomm_channel_acquire_gang(t.d[0], a, 5, 5000, ch));
	for (i = 0; i < 5; i++) {
		works(hcomm_channel_acquire(t.d[1], &b, 5000, &other));
		passes(ch[i], other, "in order of the calls");
	}
	two_end(&t);
}
END_TEST

START_TEST(as_many_as_may_be)
{
	static struct hcomm_channel_args a[MANY + 1];
	static hcomm_channel ch[MANY + 1];
	struct two t;
	unsigned i;

	two_fake(&t, NULL);
	for (i = 0; i <= MANY; i++) {
		a[i] = channel_to(1);
		a[i].flags = HCOMM_CHANNEL_GRANT_ONLY;
	}
	refused(hcomm_channel_acquire_gang(t.d[0], a, MANY + 1, 5000, ch), HCOMM_E_INVALID,
		"count is 1025");
	works(hcomm_channel_acquire_gang(t.d[0], a, MANY, 5000, ch));
	for (i = 0; i < MANY; i++) {
		ck_assert_uint_eq(channel_state(ch[i]), HCOMM_CHANNEL_OK);
		works(hcomm_channel_release(ch[i]));
	}
	two_end(&t);
}
END_TEST

/* Programs built with a shorter struct go on working: the array's stride is its size. */
struct older {
	uint32_t size, peer, bandwidth_mbps, hold_ms, wait;
};

START_TEST(a_shorter_struct_of_an_older_caller)
{
	struct older a[2] = {{sizeof(a[0]), 1, 10, 0, 0}, {sizeof(a[0]), 1, 20, 0, 0}};
	struct hcomm_channel_info info = HCOMM_INIT(struct hcomm_channel_info);
	const struct hcomm_channel_args *args = (const void *)a;
	hcomm_channel ch[2];
	struct two t;

	two_fake(&t, NULL);
	works(hcomm_channel_acquire_gang(t.d[0], args, 2, 5000, ch));
	works(hcomm_channel_info(ch[1], &info));
	ck_assert_uint_eq(info.bandwidth_mbps, 20);
	a[1].size = 24;
	refused(hcomm_channel_acquire_gang(t.d[0], args, 2, 5000, ch), HCOMM_E_INVALID,
		"args[1].size is 24");
	two_end(&t);
}
END_TEST

static bool second_is_gone(struct fake_conn *c, const struct hc_frame *f, int got, void *arg)
{
	struct hc_m_channel_open m;

	if (f->head.type == HC_MSG_channel_open) {
		hc_want(!hc_decode(&hc_desc_channel_open, 1, f->body, f->body_len, &m));
		if (m.channel == FAKE_CHANNEL + 2)
			return fake_error(c, f, HC_E_GONE, "rank 1 has left", HC_NONE);
	}
	return fake_good(c, f, got, arg);
}

START_TEST(one_that_cannot_be_opened_gives_all_back)
{
	struct hcomm_channel_args a[3] = {channel_to(1), channel_to(1), channel_to(1)};
	hcomm_channel ch[3] = {7, 7, 7};
	struct two t;
	unsigned i;

	two_fake(&t, second_is_gone);
	refused(hcomm_channel_acquire_gang(t.d[0], a, 3, 5000, ch), HCOMM_E_GONE,
		"rank 1 has left");
	works(hcomm_ping(t.s[0], 5000)); /* the daemon has heard of it by then */
	for (i = 0; i < 3; i++) {
		ck_assert_uint_eq(ch[i], 0);
		ck_assert_uint_eq(HC_STATUS_STATE(t.fake.registers[i + 1].state),
				  HCOMM_CHANNEL_REVOKED);
	}
	ck_assert_uint_eq(hc_count_maps("fake-rings"), 0);
	two_end(&t);
}
END_TEST

START_TEST(the_nth_allocation_fails)
{
	struct hcomm_channel_args a[8];
	hcomm_channel ch[8];
	unsigned i, fds;
	struct two t;
	int n, r;

	if (!HC_FAILING_WORKS)
		return;
	two_fake(&t, NULL);
	for (i = 0; i < 8; i++)
		a[i] = channel_to(1);
	works(hcomm_channel_acquire_gang(t.d[0], a, 8, 5000, ch));
	fds = hc_count_fds();
	for (n = 0;; n++) {
		hc_failing_begin(n);
		r = hcomm_channel_acquire_gang(t.d[0], a, 8, 5000, ch);
		if (!hc_failing_end())
			break;
		refused(r, HCOMM_E_NO_MEMORY, "");
		for (i = 0; i < 8; i++)
			ck_assert_uint_eq(ch[i], 0);
		ck_assert_uint_eq(hc_count_maps("fake-rings"), 8);
	}
	works(r);
	ck_assert_int_ge(n, 17); /* the request, and two mappings for each */
	ck_assert_uint_eq(hc_count_fds(), fds);
	two_end(&t);
}
END_TEST

START_TEST(refusals)
{
	struct hcomm_channel_args a[2] = {channel_to(1), channel_to(0)};
	hcomm_channel ch[2];
	struct two t;

	two_fake(&t, NULL);
	refused(hcomm_channel_acquire_gang(t.d[0], a, 0, 100, ch), HCOMM_E_INVALID, "count is 0");
	refused(hcomm_channel_acquire_gang(t.d[0], a, 1, 100, NULL), HCOMM_E_INVALID,
		"channels is NULL");
	refused(hcomm_channel_acquire_gang(t.d[0], NULL, 1, 100, ch), HCOMM_E_INVALID,
		"args is NULL");
	refused(hcomm_channel_acquire_gang(t.d[0], a, 2, 100, ch), HCOMM_E_INVALID, "peer is 0");
	ck_assert_uint_eq(ch[0], 0);
	two_end(&t);
}
END_TEST

TESTS("hcomm_channel_acquire_gang", a_set_is_granted_and_opened_whole, as_many_as_may_be,
      a_shorter_struct_of_an_older_caller, one_that_cannot_be_opened_gives_all_back,
      the_nth_allocation_fails, refusals)
