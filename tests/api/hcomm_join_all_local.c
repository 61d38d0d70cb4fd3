/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hcomm_join_all_local: one process is several ranks behind one handle.
 */
#include "apitest.h"
#include "failing.h"

START_TEST(all_devices_of_the_node_become_ranks)
{
	struct hcomm_session *s;
	struct hcomm_op op[4];
	struct hc_node n;
	hcomm_domain d;
	uint32_t i, v;

	hc_node_start(&n, 4, NULL);
	s = open_session();
	works(hcomm_join_all_local(s, NULL, 0, NULL, 5000, &d));
	works(hcomm_nranks(d, &v));
	ck_assert_uint_eq(v, 4);
	works(hcomm_rank(d, &v));
	ck_assert_uint_eq(v, HCOMM_NO_RANK);
	for (i = 0; i < 4; i++)
		works(hcomm_op_begin_rank(d, i, HCOMM_OP_ALL_REDUCE, 64, 0, &op[i]));
	for (i = 0; i < 4; i++)
		works(hcomm_op_end(&op[i]));
	works(hcomm_leave(d, 5000));
	hcomm_close(s);
	hc_node_end(&n);
}
END_TEST

START_TEST(the_listed_devices_are_taken_in_order)
{
	static const uint32_t list[] = {3, 1};
	struct hcomm_member m[2] = {HCOMM_INIT(struct hcomm_member),
				    HCOMM_INIT(struct hcomm_member)};
	struct hcomm_session *s;
	struct hc_node n;
	uint32_t count = 2;
	hcomm_domain d;

	hc_node_start(&n, 4, NULL);
	s = open_session();
	works(hcomm_join_all_local(s, list, 2, NULL, 5000, &d));
	works(hcomm_members(d, m, &count));
	ck_assert_uint_eq(count, 2);
	ck_assert_uint_eq(m[0].device, 3);
	ck_assert_uint_eq(m[1].device, 1);
	hcomm_close(s);
	hc_node_end(&n);
}
END_TEST

START_TEST(what_the_daemon_refuses_is_told_in_its_words)
{
	static const uint32_t twice[] = {1, 1}, absent[] = {0, 9};
	struct hcomm_session *s;
	struct hc_node n;
	hcomm_domain d;

	hc_node_start(&n, 2, NULL);
	s = open_session();
	refused(hcomm_join_all_local(s, twice, 2, NULL, 5000, &d), HCOMM_E_INVALID, "twice");
	refused(hcomm_join_all_local(s, absent, 2, NULL, 5000, &d), HCOMM_E_DEVICE_OFFLINE, "9");
	works(hcomm_join_all_local(s, NULL, 0, NULL, 5000, &d)); /* nothing was kept */
	hcomm_close(s);
	hc_node_end(&n);
}
END_TEST

START_TEST(refusals)
{
	static const uint32_t list[1025];
	struct fake f;
	struct hcomm_session *s = open_fake(&f, NULL);
	hcomm_domain d;

	refused(hcomm_join_all_local(NULL, NULL, 0, NULL, 1, &d), HCOMM_E_INVALID, "session");
	refused(hcomm_join_all_local(s, NULL, 2, NULL, 1, &d), HCOMM_E_INVALID, "devices");
	refused(hcomm_join_all_local(s, NULL, 0, NULL, 1, NULL), HCOMM_E_INVALID, "domain");
	refused(hcomm_join_all_local(s, list, 1025, NULL, 1, &d), HCOMM_E_INVALID, "1025");
	hcomm_close(s);
	fake_end(&f);
}
END_TEST

START_TEST(the_nth_allocation_fails_and_the_next_try_works)
{
	struct hcomm_session *s;
	struct hc_node node;
	hcomm_domain d;
	int n, r;

	hc_node_start(&node, 2, NULL);
	s = open_session();
	for (n = 0;; n++) {
		hc_failing_begin(n);
		r = hcomm_join_all_local(s, NULL, 0, NULL, 5000, &d);
		if (!hc_failing_end() || !r)
			break;
		ck_assert_int_eq(r, HCOMM_E_NO_MEMORY);
		works(hcomm_ping(s, 5000));
	}
	works(r);
	ck_assert_int_eq(n > 0, HC_FAILING_WORKS);
	hcomm_close(s);
	hc_node_end(&node);
}
END_TEST

TESTS("hcomm_join_all_local", all_devices_of_the_node_become_ranks,
      the_listed_devices_are_taken_in_order, what_the_daemon_refuses_is_told_in_its_words, refusals,
      the_nth_allocation_fails_and_the_next_try_works)
