/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hcomm_error_name: the names of hcomm.h, so that a log can be searched for them.
 */
#include "apitest.h"

START_TEST(names_are_those_of_the_header)
{
	int e;

	ck_assert_str_eq(hcomm_error_name(HCOMM_OK), "HCOMM_OK");
	ck_assert_str_eq(hcomm_error_name(HCOMM_E_INVALID), "HCOMM_E_INVALID");
	ck_assert_str_eq(hcomm_error_name(HCOMM_E_FORCED), "HCOMM_E_FORCED");
	ck_assert_str_eq(hcomm_error_name(HCOMM_E_PEER_CLOSED), "HCOMM_E_PEER_CLOSED");
	for (e = HCOMM_E_PEER_CLOSED; e < 0; e++)
		ck_assert_int_eq(strncmp(hcomm_error_name(e), "HCOMM_E_", 8), 0);
	ck_assert_str_eq(hcomm_error_name(1), "HCOMM_E_?");
	ck_assert_str_eq(hcomm_error_name(HCOMM_E_PEER_CLOSED - 1), "HCOMM_E_?");
	ck_assert_str_eq(hcomm_error_name(-2147483647 - 1), "HCOMM_E_?");
}
END_TEST

TESTS("hcomm_error_name", names_are_those_of_the_header)
