/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hcomm_nranks: known at once, from the call that joined.
 */
#include "apitest.h"

START_TEST(it_is_known_before_and_after_the_domain_has_formed)
{
	struct fake f;
	struct hcomm_session *s = open_fake(&f, NULL);
	struct hcomm_root_info info;
	uint32_t v = 77;
	hcomm_domain d;

	works(hcomm_root_info(s, 5, NULL, &info));
	ck_assert_int_eq(hcomm_join(s, &info, 5, 3, 0, NULL, HCOMM_START, &d), HCOMM_E_IN_PROGRESS);
	works(hcomm_nranks(d, &v));
	ck_assert_uint_eq(v, 5);
	await_active(&s, &d, 1);
	works(hcomm_nranks(d, &v));
	ck_assert_uint_eq(v, 5);
	works(hcomm_leave(d, 100));
	refused(hcomm_nranks(d, &v), HCOMM_E_GONE, "handle");
	hcomm_close(s);
	fake_end(&f);
}
END_TEST

START_TEST(refusals)
{
	uint32_t v;

	refused(hcomm_nranks(0, &v), HCOMM_E_GONE, "handle");
	refused(hcomm_nranks(0, NULL), HCOMM_E_INVALID, "NULL");
}
END_TEST

TESTS("hcomm_nranks", it_is_known_before_and_after_the_domain_has_formed, refusals)
