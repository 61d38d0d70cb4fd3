/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hcomm_add_device: each rank of a created domain gets its device, once.
 */
#include "apitest.h"

START_TEST(ranks_get_their_devices_and_contradictions_are_named)
{
	struct hcomm_status st = HCOMM_INIT(struct hcomm_status);
	struct hcomm_session *s;
	struct hc_node n;
	uint64_t id;

	hc_node_start(&n, 2, NULL);
	s = open_session();
	works(hcomm_create(s, 2, NULL, &id));
	works(hcomm_add_device(s, id, 1, 0));
	works(hcomm_by_name(s, id, NULL, &st));
	ck_assert_uint_eq(st.arrived, 1);
	ck_assert_uint_eq(st.missing_count, 1);
	ck_assert_uint_eq(st.missing[0], 0);
	refused(hcomm_add_device(s, id, 1, 1), HCOMM_E_EXISTS, "rank 1");
	refused(hcomm_add_device(s, id, 0, 7), HCOMM_E_DEVICE_OFFLINE, "7");
	ck_assert_int_ne(hcomm_add_device(s, id, 2, 1), 0);
	refused(hcomm_add_device(s, id + 1, 0, 1), HCOMM_E_NOT_FOUND, "no such domain");
	hcomm_close(s);
	hc_node_end(&n);
}
END_TEST

START_TEST(refusals)
{
	struct fake f;
	struct hcomm_session *s = open_fake(&f, NULL);

	refused(hcomm_add_device(NULL, 1, 0, 0), HCOMM_E_INVALID, "session is NULL");
	refused(hcomm_add_device(s, 0, 0, 0), HCOMM_E_INVALID, "id is 0");
	hcomm_close(s);
	fake_end(&f);
}
END_TEST

TESTS("hcomm_add_device", ranks_get_their_devices_and_contradictions_are_named, refusals)
