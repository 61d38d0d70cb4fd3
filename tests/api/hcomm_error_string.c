/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hcomm_error_string: a short text for every number, never NULL.
 */
#include "apitest.h"

START_TEST(every_number_has_a_text)
{
	int e;

	ck_assert_str_eq(hcomm_error_string(0), "success");
	ck_assert_str_eq(hcomm_error_string(HCOMM_E_TIMEOUT), "timed out");
	ck_assert_str_eq(hcomm_error_string(HCOMM_E_PEER_CLOSED), "connection to the daemon lost");
	for (e = HCOMM_E_PEER_CLOSED; e <= 0; e++) {
		ck_assert_uint_gt(strlen(hcomm_error_string(e)), 2);
		ck_assert_str_ne(hcomm_error_string(e), "unknown error");
	}
	ck_assert_str_eq(hcomm_error_string(1), "unknown error");
	ck_assert_str_eq(hcomm_error_string(-4000), "unknown error");
	ck_assert_str_eq(hcomm_error_string(-2147483647 - 1), "unknown error");
}
END_TEST

TESTS("hcomm_error_string", every_number_has_a_text)
