/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hcomm_version: text, number and header of one build agree.
 */
#include "apitest.h"

START_TEST(text_number_and_header_agree)
{
	char text[32];

	snprintf(text, sizeof(text), "%d.%d.%d", HCOMM_VERSION_MAJOR, HCOMM_VERSION_MINOR,
		 HCOMM_VERSION_PATCH);
	ck_assert_str_eq(hcomm_version(), text);
	ck_assert_uint_eq(hcomm_version_number(), HCOMM_VERSION);
}
END_TEST

TESTS("hcomm_version", text_number_and_header_agree)
