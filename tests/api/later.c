/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calls that are declared and come later: each says so, and touches nothing.
 */
#include "apitest.h"

#define LATER(call) refused(call, HCOMM_E_NOT_SUPPORTED, "is not in version")

START_TEST(each_says_so_and_touches_nothing)
{
	struct hcomm_advice advice;
	struct hcomm_health health;
	hcomm_domain d = 77;
	uint64_t u64 = 79;
	uint32_t u32 = 80;
	char text[8] = "text";

	LATER(hcomm_grow(1, 2, 100, NULL));
	LATER(hcomm_shrink(1, NULL, 3, 100));
	LATER(hcomm_replace(1, 0, 0, 100));
	LATER(hcomm_rebuild(1, NULL, 100, &d));
	LATER(hcomm_suspend(1, 100));
	LATER(hcomm_resume(1, 100));
	LATER(hcomm_set_heartbeat(1, 100, 3));
	LATER(hcomm_op_record(1, 1));
	LATER(hcomm_bandwidth(1, 0, 1, &u64));
	LATER(hcomm_route(1, 0, 1, text, sizeof(text)));
	memset(&advice, 0x33, sizeof(advice));
	LATER(hcomm_advise(1, HCOMM_OP_ALL_REDUCE, 1, &advice));
	memset(&health, 0x33, sizeof(health));
	LATER(hcomm_health_get(1, &health));
	ck_assert_uint_eq(d, 77);
	ck_assert_uint_eq(u64, 79);
	ck_assert_uint_eq(u32, 80);
	ck_assert_str_eq(text, "text");
	ck_assert_uint_eq(advice.size, 0x33333333);
	ck_assert_uint_eq(health.size, 0x33333333);
	ck_assert_ptr_nonnull(strstr(hcomm_last_error(), "hcomm_health_get"));
}
END_TEST

TESTS("later", each_says_so_and_touches_nothing)
