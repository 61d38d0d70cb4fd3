/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hcomm_error_explain: what it means and what to do.
 */
#include "apitest.h"

START_TEST(every_error_is_explained_in_sentences)
{
	int e;

	for (e = HCOMM_E_PEER_CLOSED; e <= 0; e++) {
		const char *text = hcomm_error_explain(e);
		size_t n = strlen(text);

		ck_assert_msg(n > 15 && (text[n - 1] == '.' || text[n - 1] == '?'), "%d: %s", e,
			      text);
	}
	ck_assert_uint_gt(strlen(hcomm_error_explain(77)), 15);
	ck_assert_uint_gt(strlen(hcomm_error_explain(-77)), 15);
}
END_TEST

TESTS("hcomm_error_explain", every_error_is_explained_in_sentences)
