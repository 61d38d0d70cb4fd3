/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hcomm_destroy_named: for those who are no member.
 */
#include "apitest.h"

START_TEST(by_name_and_by_id)
{
	struct hcomm_status st = HCOMM_INIT(struct hcomm_status);
	struct hcomm_config c = HCOMM_INIT(struct hcomm_config);
	struct hcomm_session *s[2] = {0}, *agent;
	hcomm_domain d[2];
	struct hc_node n;
	uint64_t id;

	hc_node_start(&n, 3, NULL);
	agent = open_session();
	c.name = "to-be-ended";
	works(hcomm_create(agent, 1, &c, &id));
	works(hcomm_add_device(agent, id, 0, 2));
	works(hcomm_activate(agent, id, 5000));
	works(hcomm_destroy_named(agent, 0, "to-be-ended", 5000));
	works(hcomm_by_name(agent, id, NULL, &st));
	ck_assert_int_eq(st.state, HCOMM_DESTROYED);
	ck_assert_int_lt(hcomm_destroy_named(agent, 0, "to-be-ended", 5000), 0);
	form(s, d, 2, NULL);
	works(hcomm_destroy_named(agent, id_of(d[0]), NULL, 5000));
	ck_assert_int_eq(state_of(d[1]), HCOMM_DESTROYED);
	c.name = "by-its-root-info";
	form(s, d, 2, &c);
	works(hcomm_destroy_named(agent, 0, c.name, 5000));
	ck_assert_int_eq(state_of(d[1]), HCOMM_DESTROYED);
	hcomm_close(agent);
	close_all(s, 2);
	hc_node_end(&n);
}
END_TEST

START_TEST(refusals)
{
	struct fake f;
	struct hcomm_session *s = open_fake(&f, NULL);
	char name[140];

	memset(name, 'n', sizeof(name));
	name[128] = '\0';
	refused(hcomm_destroy_named(NULL, 1, NULL, 100), HCOMM_E_INVALID, "session is NULL");
	refused(hcomm_destroy_named(s, 0, NULL, 100), HCOMM_E_INVALID, "neither id nor name");
	refused(hcomm_destroy_named(s, 0, "", 100), HCOMM_E_INVALID, "neither id nor name");
	refused(hcomm_destroy_named(s, 0, name, 100), HCOMM_E_INVALID, "128 bytes");
	refused(hcomm_destroy_named(s, 1, NULL, -2), HCOMM_E_INVALID, "timeout_ms is -2");
	refused(hcomm_destroy_named(s, 1, NULL, HCOMM_START), HCOMM_E_IN_PROGRESS, "destroying");
	hcomm_close(s);
	fake_end(&f);
}
END_TEST

TESTS("hcomm_destroy_named", by_name_and_by_id, refusals)
