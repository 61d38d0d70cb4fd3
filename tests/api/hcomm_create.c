/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hcomm_create: a domain for others, named and numbered before any rank is there.
 */
#include "apitest.h"

START_TEST(a_created_domain_waits_for_its_devices)
{
	struct hcomm_status st = HCOMM_INIT(struct hcomm_status);
	struct hcomm_config c = HCOMM_INIT(struct hcomm_config);
	struct hcomm_session *s;
	struct hc_node n;
	uint64_t a = 0, b = 0;

	hc_node_start(&n, 2, NULL);
	s = open_session();
	c.name = "agents";
	works(hcomm_create(s, 2, &c, &a));
	works(hcomm_create(s, 2, NULL, &b));
	ck_assert_uint_ne(a, 0);
	ck_assert_uint_ne(a, b);
	works(hcomm_by_name(s, 0, "agents", &st));
	ck_assert_uint_eq(st.id, a);
	ck_assert_int_eq(st.state, HCOMM_FORMING);
	ck_assert_uint_eq(st.nranks, 2);
	refused(hcomm_create(s, 2, &c, &b), HCOMM_E_EXISTS, "agents");
	hcomm_close(s);
	hc_node_end(&n);
}
END_TEST

START_TEST(refusals)
{
	struct fake f;
	struct hcomm_session *s = open_fake(&f, NULL);
	uint64_t id;

	refused(hcomm_create(NULL, 2, NULL, &id), HCOMM_E_INVALID, "session is NULL");
	refused(hcomm_create(s, 0, NULL, &id), HCOMM_E_INVALID, "nranks is 0");
	refused(hcomm_create(s, 2, NULL, NULL), HCOMM_E_INVALID, "id is NULL");
	hcomm_close(s);
	fake_end(&f);
}
END_TEST

TESTS("hcomm_create", a_created_domain_waits_for_its_devices, refusals)
