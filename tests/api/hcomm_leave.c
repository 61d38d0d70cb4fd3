/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hcomm_leave: in order, by force, twice; the last one out ends the domain.
 */
#include "apitest.h"

START_TEST(the_last_one_out_ends_the_domain)
{
	struct hcomm_status st = HCOMM_INIT(struct hcomm_status);
	struct hcomm_session *s[2] = {0};
	hcomm_domain d[2];
	struct hc_node n;
	uint64_t id;

	hc_node_start(&n, 2, NULL);
	form(s, d, 2, NULL);
	id = id_of(d[0]);
	works(hcomm_leave(d[0], 5000));
	refused(hcomm_leave(d[0], 5000), HCOMM_E_GONE, "handle");
	works(hcomm_by_name(s[0], id, NULL, &st));
	ck_assert_int_ne(st.state, HCOMM_DAMAGED); /* leaving is no loss */
	works(hcomm_leave(d[1], HCOMM_DEFAULT));
	works(hcomm_by_name(s[0], id, NULL, &st));
	ck_assert_int_eq(st.state, HCOMM_DESTROYED);
	close_all(s, 2);
	hc_node_end(&n);
}
END_TEST

START_TEST(a_reference_that_stays_makes_it_forced)
{
	struct hcomm_session *s = NULL;
	struct hcomm_op op;
	struct hc_node n;
	hcomm_domain d;
	uint64_t began;

	hc_node_start(&n, 1, NULL);
	form(&s, &d, 1, NULL);
	works(hcomm_op_begin(d, HCOMM_OP_ALL_REDUCE, 1, 0, &op));
	began = hc_now_ms();
	refused(hcomm_leave(d, 300), HCOMM_E_FORCED, "1");
	ck_assert_uint_ge(hc_now_ms() - began, 290);
	refused(hcomm_op_end(&op), HCOMM_E_GONE, "handle");
	refused(hcomm_leave(d, 300), HCOMM_E_GONE, "handle");
	hcomm_close(s);
	hc_node_end(&n);
}
END_TEST

START_TEST(started_it_ends_the_handle_at_once)
{
	struct hcomm_status st = HCOMM_INIT(struct hcomm_status);
	struct hcomm_session *s = NULL;
	struct hc_node n;
	hcomm_domain d;
	uint64_t id;

	hc_node_start(&n, 1, NULL);
	form(&s, &d, 1, NULL);
	id = id_of(d);
	refused(hcomm_leave(d, HCOMM_START), HCOMM_E_IN_PROGRESS, "leaving");
	refused(hcomm_leave(d, HCOMM_START), HCOMM_E_GONE, "handle");
	works(hcomm_ping(s, 5000));
	works(hcomm_by_name(s, id, NULL, &st));
	ck_assert_int_eq(st.state, HCOMM_DESTROYED);
	hcomm_close(s);
	hc_node_end(&n);
}
END_TEST

START_TEST(a_domain_that_still_forms_can_be_left)
{
	struct hcomm_root_info info;
	struct hcomm_session *s;
	struct hc_node n;
	hcomm_domain d;

	hc_node_start(&n, 1, NULL);
	s = open_session();
	works(hcomm_root_info(s, 2, NULL, &info));
	ck_assert_int_eq(hcomm_join(s, &info, 2, 0, 0, NULL, HCOMM_START, &d), HCOMM_E_IN_PROGRESS);
	works(hcomm_leave(d, 1000));
	refused(hcomm_leave(d, 1000), HCOMM_E_GONE, "handle");
	hcomm_close(s);
	hc_node_end(&n);
}
END_TEST

START_TEST(without_a_daemon_the_handle_stays_for_another_try)
{
	struct fake f;
	struct hcomm_session *s = open_fake(&f, NULL);
	hcomm_domain d = join_root(s, 2, 0);
	uint32_t v;

	fake_kill(&f);
	ck_assert_int_lt(hcomm_leave(d, 50), 0);
	works(hcomm_rank(d, &v));
	fake_again(&f);
	works(hcomm_ping(s, 5000));
	works(hcomm_leave(d, 5000));
	hcomm_close(s);
	fake_end(&f);
}
END_TEST

START_TEST(refusals)
{
	struct fake f;
	struct hcomm_session *s = open_fake(&f, NULL);
	hcomm_domain d = join_root(s, 2, 0);

	refused(hcomm_leave(0, 100), HCOMM_E_GONE, "handle");
	refused(hcomm_leave(UINT64_MAX, 100), HCOMM_E_GONE, "handle");
	refused(hcomm_leave(d, -2), HCOMM_E_INVALID, "timeout_ms is -2");
	works(hcomm_leave(d, 100));
	hcomm_close(s);
	fake_end(&f);
}
END_TEST

TESTS("hcomm_leave", the_last_one_out_ends_the_domain, a_reference_that_stays_makes_it_forced,
      started_it_ends_the_handle_at_once, a_domain_that_still_forms_can_be_left,
      without_a_daemon_the_handle_stays_for_another_try, refusals)
