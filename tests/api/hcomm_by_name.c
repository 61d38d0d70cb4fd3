/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hcomm_by_name: anybody who may see it asks how a domain is, also who is missing.
 */
#include "apitest.h"

START_TEST(a_forming_domain_says_who_is_missing)
{
	struct hcomm_status st = HCOMM_INIT(struct hcomm_status);
	struct hcomm_config c = HCOMM_INIT(struct hcomm_config);
	struct hcomm_session *s, *watcher;
	struct hcomm_root_info info;
	struct hc_node n;
	hcomm_domain d;

	hc_node_start(&n, 3, NULL);
	s = open_session();
	watcher = open_session();
	c.name = "watched";
	works(hcomm_root_info(s, 3, &c, &info));
	ck_assert_int_eq(hcomm_join(s, &info, 3, 1, 0, NULL, HCOMM_START, &d), HCOMM_E_IN_PROGRESS);
	works(hcomm_ping(s, 5000));
	works(hcomm_by_name(watcher, 0, "watched", &st));
	ck_assert_int_eq(st.state, HCOMM_FORMING);
	ck_assert_uint_eq(st.nranks, 3);
	ck_assert_uint_eq(st.arrived, 1);
	ck_assert_uint_eq(st.rank, HCOMM_NO_RANK);
	ck_assert_uint_eq(st.missing_count, 2);
	ck_assert_uint_eq(st.missing[0], 0);
	ck_assert_uint_eq(st.missing[1], 2);
	hcomm_close(watcher);
	hcomm_close(s);
	hc_node_end(&n);
}
END_TEST

START_TEST(refusals)
{
	struct hcomm_status st = HCOMM_INIT(struct hcomm_status);
	struct hcomm_session *s;
	struct hc_node n;
	char name[140];

	hc_node_start(&n, 1, NULL);
	s = open_session();
	memset(name, 'n', sizeof(name));
	name[128] = '\0';
	refused(hcomm_by_name(NULL, 1, NULL, &st), HCOMM_E_INVALID, "session is NULL");
	refused(hcomm_by_name(s, 1, NULL, NULL), HCOMM_E_INVALID, "status is NULL");
	refused(hcomm_by_name(s, 0, NULL, &st), HCOMM_E_INVALID, "neither id nor name");
	refused(hcomm_by_name(s, 0, name, &st), HCOMM_E_INVALID, "127 bytes");
	refused(hcomm_by_name(s, 0, "nobody", &st), HCOMM_E_NOT_FOUND, "nobody");
	refused(hcomm_by_name(s, 12345, NULL, &st), HCOMM_E_NOT_FOUND, "0000000000003039");
	hcomm_close(s);
	hc_node_end(&n);
}
END_TEST

TESTS("hcomm_by_name", a_forming_domain_says_who_is_missing, refusals)
