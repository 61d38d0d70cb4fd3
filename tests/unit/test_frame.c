/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames: the header byte by byte, packets of several messages, and lengths that lie.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "frame.h"

static uint8_t buf[512];

static size_t put_ping(uint8_t *at, size_t cap, uint32_t id)
{
	const struct hc_m_ping ping = {.value = id};
	size_t len = 0;

	ck_assert_int_eq(hc_frame_write(at, cap, &hc_desc_ping, 1, id, 0, &ping, &len), 0);
	return len;
}

START_TEST(header_is_big_endian_and_packed)
{
	static const uint8_t want[] = {
		0,    0,    0,    22,   0x01, 0x02, 0,    3,    /* length, version, type error */
		0xa1, 0xb2, 0xc3, 0xd4, 0xff, 0xff, 0xff, 0xfa, /* id, status -6 */
		0,    0,    0,    9,    0,    0,                /* retry_after_ms, empty text */
	};
	const struct hc_m_error m = {.retry_after_ms = 9};
	const uint8_t *p = buf;
	struct hc_frame f;
	size_t len, left;

	ck_assert_int_eq(hc_frame_write(buf, sizeof(buf), &hc_desc_error, 0x0102, 0xa1b2c3d4,
					-HC_E_TIMEOUT, &m, &len),
			 0);
	ck_assert_uint_eq(len, sizeof(want));
	ck_assert_mem_eq(buf, want, sizeof(want));
	left = len;
	ck_assert_int_eq(hc_frame_next(&p, &left, &f), 0);
	ck_assert_uint_eq(left, 0);
	ck_assert_ptr_eq(p, buf + len);
	ck_assert_uint_eq(f.head.length, 22);
	ck_assert_uint_eq(f.head.version, 0x0102);
	ck_assert_uint_eq(f.head.type, HC_MSG_error);
	ck_assert_uint_eq(f.head.id, 0xa1b2c3d4);
	ck_assert_int_eq(f.head.status, -HC_E_TIMEOUT);
	ck_assert_uint_eq(f.body_len, 6);
	ck_assert_ptr_eq(f.body, buf + HC_HEAD_BYTES);
}
END_TEST

START_TEST(a_packet_holds_several_messages)
{
	const uint8_t *p = buf;
	struct hc_m_ping ping;
	struct hc_frame f;
	size_t left = 0;
	uint32_t id;

	for (id = 1; id <= 10; id++)
		left += put_ping(buf + left, sizeof(buf) - left, id);
	for (id = 1; id <= 10; id++) {
		ck_assert_int_eq(hc_frame_next(&p, &left, &f), 0);
		ck_assert_uint_eq(f.head.id, id);
		ck_assert_int_eq(hc_decode(&hc_desc_ping, 1, f.body, f.body_len, &ping), 0);
		ck_assert_uint_eq(ping.value, id);
	}
	ck_assert_uint_eq(left, 0);
	ck_assert_int_eq(hc_frame_next(&p, &left, &f), HC_E_MALFORMED);
}
END_TEST

START_TEST(a_length_that_lies_is_refused)
{
	static const uint32_t lies[] = {0,          1,          15,         25,         0x10000,
					0x40000000, 0x7fffffff, 0x80000000, 0xfffffff0, 0xffffffff};
	const size_t len = put_ping(buf, sizeof(buf), 1);
	const uint8_t *p;
	struct hc_frame f;
	size_t left;
	unsigned i;

	ck_assert_uint_eq(len, 24);
	for (i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		buf[0] = (uint8_t)(lies[i] >> 24);
		buf[1] = (uint8_t)(lies[i] >> 16);
		buf[2] = (uint8_t)(lies[i] >> 8);
		buf[3] = (uint8_t)lies[i];
		p = buf;
		left = len;
		ck_assert_msg(hc_frame_next(&p, &left, &f) == HC_E_MALFORMED, "length %#x",
			      lies[i]);
		ck_assert_ptr_eq(p, buf);
		ck_assert_uint_eq(left, len);
	}
}
END_TEST

START_TEST(less_than_a_header_is_refused)
{
	size_t n;

	put_ping(buf, sizeof(buf), 1);
	for (n = 0; n < 24; n++) {
		uint8_t *exact = malloc(n ? n : 1);
		const uint8_t *p = exact;
		size_t left = n;
		struct hc_frame f;

		memcpy(exact, buf, n);
		ck_assert_int_eq(hc_frame_next(&p, &left, &f), HC_E_MALFORMED);
		free(exact);
	}
}
END_TEST

/* 16 bytes and no body is a frame; whether its message may be empty is the decoder's to say. */
START_TEST(an_empty_body_is_left_to_the_decoder)
{
	const uint8_t *p = buf;
	struct hc_m_ping ping;
	struct hc_frame f;
	size_t left = put_ping(buf, sizeof(buf), 1);

	buf[3] = 16;
	ck_assert_int_eq(hc_frame_next(&p, &left, &f), 0);
	ck_assert_uint_eq(f.body_len, 0);
	ck_assert_uint_eq(left, 8);
	ck_assert_int_eq(hc_decode(&hc_desc_ping, 1, f.body, f.body_len, &ping), HC_E_MALFORMED);
	ck_assert_int_eq(hc_frame_next(&p, &left, &f), HC_E_MALFORMED);
}
END_TEST

START_TEST(a_frame_that_does_not_fit_is_not_written)
{
	const struct hc_m_ping ping = {.value = 1};
	size_t cap, len;

	for (cap = 0; cap < 24; cap++) {
		memset(buf, 0x5a, sizeof(buf));
		ck_assert_int_eq(hc_frame_write(buf, cap, &hc_desc_ping, 1, 1, 0, &ping, &len),
				 HC_E_BUFFER_OVERFLOW);
		ck_assert_uint_eq(buf[cap], 0x5a);
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("frame");
	TCase *t = tcase_create("frame");
	SRunner *r;
	int failed;

	tcase_add_test(t, header_is_big_endian_and_packed);
	tcase_add_test(t, a_packet_holds_several_messages);
	tcase_add_test(t, a_length_that_lies_is_refused);
	tcase_add_test(t, less_than_a_header_is_refused);
	tcase_add_test(t, an_empty_body_is_left_to_the_decoder);
	tcase_add_test(t, a_frame_that_does_not_fit_is_not_written);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
