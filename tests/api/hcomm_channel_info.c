/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hcomm_channel_info: what was granted.
 */
#include "chantest.h"

START_TEST(it_says_what_was_granted)
{
	struct hcomm_channel_info info = HCOMM_INIT(struct hcomm_channel_info);
	struct hcomm_channel_args a = channel_to(1);
	hcomm_channel ch, grant;
	struct two t;

	two_fake(&t, NULL);
	a.bandwidth_mbps = 100;
	a.back_mbps = 7;
	a.buffer_bytes = 5000;
	works(hcomm_channel_acquire(t.d[0], &a, 5000, &ch));
	works(hcomm_channel_info(ch, &info));
	ck_assert_uint_eq(info.rank, 0);
	ck_assert_uint_eq(info.peer, 1);
	ck_assert_uint_eq(info.path_type, HCOMM_LINK_SHM);
	ck_assert_uint_eq(info.bandwidth_mbps, 100);
	ck_assert_uint_eq(info.back_mbps, 7);
	ck_assert_uint_eq(info.virtual_channel, 1);
	ck_assert_uint_eq(info.service_level, 3);
	ck_assert_uint_eq(info.dscp, 26);
	ck_assert_uint_eq(info.carries, 1);
	ck_assert_uint_eq(info.buffer_bytes, 8192); /* whole pages */
	ck_assert_uint_eq(info.latency_us, 2);
	ck_assert_uint_eq(info.id, FAKE_CHANNEL + 1);
	ck_assert_str_eq(info.link, "0-1");
	a.flags = HCOMM_CHANNEL_GRANT_ONLY;
	works(hcomm_channel_acquire(t.d[0], &a, 5000, &grant));
	works(hcomm_channel_info(grant, &info));
	ck_assert_uint_eq(info.carries, 0);
	ck_assert_uint_eq(info.buffer_bytes, 0);
	two_end(&t);
}
END_TEST

START_TEST(a_shorter_struct_is_honoured)
{
	struct {
		uint32_t size, rank, peer, after;
	} older = {12, 0, 0, 0x33};
	hcomm_channel ch[2];
	struct two t;

	two_fake(&t, NULL);
	two_channel(&t, ch);
	works(hcomm_channel_info(ch[1], (struct hcomm_channel_info *)(void *)&older));
	ck_assert_uint_eq(older.size, 12);
	ck_assert_uint_eq(older.rank, 1);
	ck_assert_uint_eq(older.peer, 0);
	ck_assert_uint_eq(older.after, 0x33);
	two_end(&t);
}
END_TEST

START_TEST(refusals)
{
	struct hcomm_channel_info info = HCOMM_INIT(struct hcomm_channel_info);
	hcomm_channel ch[2];
	struct two t;

	two_fake(&t, NULL);
	two_channel(&t, ch);
	refused(hcomm_channel_info(ch[0], NULL), HCOMM_E_INVALID, "info is NULL");
	refused(hcomm_channel_info(0, &info), HCOMM_E_INVALID, "handle is 0");
	info.size = 0;
	refused(hcomm_channel_info(ch[0], &info), HCOMM_E_INVALID, "no size");
	two_end(&t);
}
END_TEST

TESTS("hcomm_channel_info", it_says_what_was_granted, a_shorter_struct_is_honoured, refusals)
