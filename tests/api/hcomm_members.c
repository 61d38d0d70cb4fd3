/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hcomm_members: who is in the domain.
 */
#include "apitest.h"
#include "failing.h"

START_TEST(each_member_is_described)
{
	struct hcomm_member m[3];
	struct hcomm_session *s[2] = {0};
	hcomm_domain d[2];
	struct hc_node n;
	uint32_t count = 3, i;

	hc_node_start(&n, 2, "node_name = here");
	form(s, d, 2, NULL);
	for (i = 0; i < 3; i++)
		m[i] = (struct hcomm_member)HCOMM_INIT(struct hcomm_member);
	m[2].rank = 99;
	works(hcomm_members(d[0], m, &count));
	ck_assert_uint_eq(count, 2);
	for (i = 0; i < 2; i++) {
		ck_assert_uint_eq(m[i].rank, i);
		ck_assert_uint_eq(m[i].device, i);
		ck_assert_uint_eq(m[i].pid, (uint32_t)getpid());
		ck_assert_uint_eq(m[i].uid, (uint32_t)getuid());
		ck_assert_str_eq(m[i].state, "ready");
		ck_assert_str_eq(m[i].node, "here");
	}
	ck_assert_uint_eq(m[2].rank, 99);
	close_all(s, 2);
	hc_node_end(&n);
}
END_TEST

START_TEST(too_little_room_says_how_much_is_needed)
{
	struct hcomm_member one = HCOMM_INIT(struct hcomm_member);
	struct hcomm_session *s[2] = {0};
	hcomm_domain d[2];
	struct hc_node n;
	uint32_t count = 1;

	hc_node_start(&n, 2, NULL);
	form(s, d, 2, NULL);
	refused(hcomm_members(d[0], &one, &count), HCOMM_E_BUFFER_OVERFLOW, "2 members");
	ck_assert_uint_eq(count, 2);
	ck_assert_uint_eq(one.rank, 0);
	count = 0;
	refused(hcomm_members(d[0], NULL, &count), HCOMM_E_BUFFER_OVERFLOW, "2 members");
	ck_assert_uint_eq(count, 2);
	close_all(s, 2);
	hc_node_end(&n);
}
END_TEST

START_TEST(an_older_and_smaller_struct_is_filled_in_its_own_steps)
{
	struct old {
		uint32_t size, rank, device, pid;
	} old[2] = {{.size = sizeof(struct old)}, {.size = sizeof(struct old)}};
	struct hcomm_session *s[2] = {0};
	hcomm_domain d[2];
	struct hc_node n;
	uint32_t count = 2;

	hc_node_start(&n, 2, NULL);
	form(s, d, 2, NULL);
	works(hcomm_members(d[0], (struct hcomm_member *)(void *)old, &count));
	ck_assert_uint_eq(old[0].pid, (uint32_t)getpid());
	ck_assert_uint_eq(old[1].rank, 1);
	ck_assert_uint_eq(old[1].device, 1);
	close_all(s, 2);
	hc_node_end(&n);
}
END_TEST

START_TEST(refusals)
{
	struct hcomm_member m[2] = {HCOMM_INIT(struct hcomm_member), {.size = 8}};
	uint32_t count = 2;
	hcomm_domain d;

	refused(hcomm_members(0, m, NULL), HCOMM_E_INVALID, "count is NULL");
	refused(hcomm_members(0, NULL, &count), HCOMM_E_INVALID, "members is NULL");
	refused(hcomm_members(0, m, &count), HCOMM_E_INVALID, "members[1].size is 8");
	count = 1;
	refused(hcomm_members(0, m, &count), HCOMM_E_GONE, "handle");
	works(hcomm_join(NULL, NULL, 1, 0, 0, NULL, 100, &d));
	refused(hcomm_members(d, m, &count), HCOMM_E_NOT_SUPPORTED, "one rank");
	works(hcomm_leave(d, 100));
}
END_TEST

START_TEST(the_nth_allocation_fails_cleanly)
{
	struct hcomm_member m = HCOMM_INIT(struct hcomm_member);
	struct hcomm_session *s = NULL;
	struct hc_node node;
	uint32_t count = 1;
	hcomm_domain d;
	int n, r;

	hc_node_start(&node, 1, NULL);
	form(&s, &d, 1, NULL);
	for (n = 0;; n++) {
		hc_failing_begin(n);
		r = hcomm_members(d, &m, &count);
		if (!hc_failing_end())
			break;
		ck_assert_int_eq(r, HCOMM_E_NO_MEMORY);
	}
	works(r);
	ck_assert_int_eq(n > 0, HC_FAILING_WORKS);
	hcomm_close(s);
	hc_node_end(&node);
}
END_TEST

TESTS("hcomm_members", each_member_is_described, too_little_room_says_how_much_is_needed,
      an_older_and_smaller_struct_is_filled_in_its_own_steps, refusals,
      the_nth_allocation_fails_cleanly)
