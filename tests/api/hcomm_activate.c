/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hcomm_activate: the two phases of a created domain.
 */
#include "apitest.h"

START_TEST(a_complete_domain_becomes_active_and_an_incomplete_one_does_not)
{
	struct hcomm_status st = HCOMM_INIT(struct hcomm_status);
	struct hcomm_session *s;
	struct hc_node n;
	uint64_t id;

	hc_node_start(&n, 2, NULL);
	s = open_session();
	works(hcomm_create(s, 2, NULL, &id));
	works(hcomm_add_device(s, id, 0, 0));
	ck_assert_int_lt(hcomm_activate(s, id, 300), 0);
	ck_assert_ptr_nonnull(strstr(hcomm_last_error(), "1"));
	works(hcomm_create(s, 2, NULL, &id));
	works(hcomm_add_device(s, id, 0, 0));
	works(hcomm_add_device(s, id, 1, 1));
	works(hcomm_activate(s, id, 5000));
	works(hcomm_by_name(s, id, NULL, &st));
	ck_assert_int_eq(st.state, HCOMM_ACTIVE);
	ck_assert_int_lt(hcomm_activate(s, id, 1000), 0); /* it is */
	hcomm_close(s);
	hc_node_end(&n);
}
END_TEST

static bool is_active(void *ctx)
{
	struct hcomm_status st = HCOMM_INIT(struct hcomm_status);

	works(hcomm_by_name(ctx, 0, "started", &st));
	return st.state == HCOMM_ACTIVE;
}

START_TEST(started_it_goes_on_by_itself)
{
	struct hcomm_config c = HCOMM_INIT(struct hcomm_config);
	struct hcomm_session *s;
	struct hc_node n;
	uint64_t id;

	hc_node_start(&n, 1, NULL);
	s = open_session();
	c.name = "started";
	works(hcomm_create(s, 1, &c, &id));
	works(hcomm_add_device(s, id, 0, 0));
	refused(hcomm_activate(s, id, HCOMM_START), HCOMM_E_IN_PROGRESS, "event");
	hc_await("the domain is ACTIVE", is_active, s, 10000);
	hcomm_close(s);
	hc_node_end(&n);
}
END_TEST

START_TEST(refusals)
{
	struct fake f;
	struct hcomm_session *s = open_fake(&f, NULL);

	refused(hcomm_activate(NULL, 1, 100), HCOMM_E_INVALID, "session is NULL");
	refused(hcomm_activate(s, 0, 100), HCOMM_E_INVALID, "id is 0");
	refused(hcomm_activate(s, 1, -9), HCOMM_E_INVALID, "timeout_ms is -9");
	hcomm_close(s);
	fake_end(&f);
}
END_TEST

TESTS("hcomm_activate", a_complete_domain_becomes_active_and_an_incomplete_one_does_not,
      started_it_goes_on_by_itself, refusals)
