/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hcomm_retry_after: the hint that came with "try again later", and no other.
 */
#include "apitest.h"

static bool busy(struct fake_conn *c, const struct hc_frame *f, int got, void *arg)
{
	(void)got;
	(void)arg;
	if (f->head.type == HC_MSG_ping)
		return fake_error(c, f, HC_E_AGAIN, "all channels are taken", 350);
	return fake_error(c, f, HC_E_AGAIN, "nobody knows for how long", HC_NONE);
}

START_TEST(the_hint_belongs_to_the_last_failure)
{
	struct hcomm_root_info info;
	struct fake f;
	struct hcomm_session *s = open_fake(&f, busy);

	ck_assert_uint_eq(hcomm_retry_after(), HCOMM_UNKNOWN);
	refused(hcomm_ping(s, 5000), HCOMM_E_AGAIN, "all channels are taken");
	ck_assert_uint_eq(hcomm_retry_after(), 350);
	refused(hcomm_root_info(s, 2, NULL, &info), HCOMM_E_AGAIN, "nobody knows");
	ck_assert_uint_eq(hcomm_retry_after(), HCOMM_UNKNOWN);
	refused(hcomm_ping(s, 5000), HCOMM_E_AGAIN, "all channels are taken");
	refused(hcomm_ping(s, 0), HCOMM_E_INVALID, "timeout_ms");
	ck_assert_uint_eq(hcomm_retry_after(), HCOMM_UNKNOWN);
	hcomm_close(s);
	fake_end(&f);
}
END_TEST

TESTS("hcomm_retry_after", the_hint_belongs_to_the_last_failure)
