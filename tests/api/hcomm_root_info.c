/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hcomm_root_info: the block that ranks join by.
 */
#include "apitest.h"
#include "failing.h"

START_TEST(every_block_is_another_one)
{
	struct hcomm_config c = HCOMM_INIT(struct hcomm_config);
	struct hcomm_root_info a, b;
	struct hcomm_session *s;
	struct hc_node n;

	hc_node_start(&n, 1, NULL);
	s = open_session();
	memset(&a, 0xff, sizeof(a));
	works(hcomm_root_info(s, 4, NULL, &a));
	ck_assert_uint_eq(a.bytes[HCOMM_ROOT_INFO_BYTES - 1], 0); /* written to the end */
	works(hcomm_root_info(s, 0, NULL, &b));
	ck_assert_int_ne(memcmp(&a, &b, sizeof(a)), 0);
	c.name = "of-mine";
	works(hcomm_root_info(s, 4, &c, &b));
	refused(hcomm_root_info(s, 4, &c, &a), HCOMM_E_EXISTS, "of-mine");
	hcomm_close(s);
	hc_node_end(&n);
}
END_TEST

static bool odd(struct fake_conn *c, const struct hc_frame *f, int got, void *arg)
{
	static char big[HC_BLOB_MAX];
	struct hc_m_root_info_r m = {.info = {big, *(char *)arg == 'e' ? 0 : HC_BLOB_MAX}};

	(void)got;
	return fake_reply(c, f, &hc_desc_root_info_r, &m, -1);
}

START_TEST(a_block_that_does_not_fit_is_refused)
{
	const char *how = "eb";

	for (; *how; how++) {
		struct hcomm_root_info info;
		struct hcomm_session *s;
		struct fake f = {0};
		char one = *how;

		fake_start(&f, odd, &one);
		s = open_session();
		refused(hcomm_root_info(s, 2, NULL, &info), HCOMM_E_MALFORMED, "root info");
		hcomm_close(s);
		fake_end(&f);
	}
}
END_TEST

START_TEST(refusals)
{
	struct hcomm_config c = HCOMM_INIT(struct hcomm_config);
	struct hcomm_root_info info;
	struct fake f;
	struct hcomm_session *s = open_fake(&f, NULL);
	char name[140];

	refused(hcomm_root_info(NULL, 2, NULL, &info), HCOMM_E_INVALID, "session is NULL");
	refused(hcomm_root_info(s, 2, NULL, NULL), HCOMM_E_INVALID, "info is NULL");
	memset(name, 'n', sizeof(name));
	name[128] = '\0';
	c.name = name;
	refused(hcomm_root_info(s, 2, &c, &info), HCOMM_E_INVALID,
		"128 bytes; wanted: at most 127");
	name[127] = '\0';
	works(hcomm_root_info(s, 2, &c, &info));
	c.priority = 8;
	refused(hcomm_root_info(s, 2, &c, &info), HCOMM_E_INVALID, "priority is 8; wanted: 0 to 7");
	c.priority = 7;
	c.weight = 101;
	refused(hcomm_root_info(s, 2, &c, &info), HCOMM_E_INVALID, "weight is 101");
	c.weight = 100;
	c.shared = 2;
	refused(hcomm_root_info(s, 2, &c, &info), HCOMM_E_INVALID, "shared is 2");
	c.size = 3;
	refused(hcomm_root_info(s, 2, &c, &info), HCOMM_E_INVALID, "config->size is 3");
	hcomm_close(s);
	fake_end(&f);
}
END_TEST

START_TEST(it_allocates_nothing)
{
	struct hcomm_root_info info;
	struct fake f;
	struct hcomm_session *s = open_fake(&f, NULL);
	int r;

	hc_failing_begin(0);
	r = hcomm_root_info(s, 2, NULL, &info);
	ck_assert(!hc_failing_end());
	works(r);
	hcomm_close(s);
	fake_end(&f);
}
END_TEST

TESTS("hcomm_root_info", every_block_is_another_one, a_block_that_does_not_fit_is_refused, refusals,
      it_allocates_nothing)
