/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hcomm_destroy: one rank ends the domain for all; references are waited for, then taken.
 */
#include "apitest.h"

static bool is_over(void *ctx)
{
	struct hcomm_op op;
	int r = hcomm_op_begin(*(hcomm_domain *)ctx, HCOMM_OP_BARRIER, 0, HCOMM_OP_NOWAIT, &op);

	if (!r)
		works(hcomm_op_end(&op));
	return r == HCOMM_E_GONE;
}

START_TEST(all_ranks_see_the_end)
{
	struct hcomm_status st = HCOMM_INIT(struct hcomm_status);
	struct hcomm_session *s[2] = {0};
	hcomm_domain d[2];
	struct hc_node n;
	uint64_t id;

	hc_node_start(&n, 2, NULL);
	form(s, d, 2, NULL);
	id = id_of(d[0]);
	works(hcomm_destroy(d[0], 5000));
	refused(hcomm_destroy(d[0], 5000), HCOMM_E_GONE, "handle");
	hc_await("rank 1 is refused", is_over, &d[1], 5000);
	ck_assert_int_eq(state_of(d[1]), HCOMM_DESTROYED);
	refused(hcomm_leave(d[1], 1000), HCOMM_E_GONE, "");
	works(hcomm_by_name(s[0], id, NULL, &st));
	ck_assert_int_eq(st.state, HCOMM_DESTROYED);
	close_all(s, 2);
	hc_node_end(&n);
}
END_TEST

START_TEST(who_holds_on_is_named_when_it_is_forced)
{
	struct hcomm_session *s[2] = {0};
	struct hcomm_op op;
	hcomm_domain d[2];
	struct hc_node n;

	hc_node_start(&n, 2, NULL);
	form(s, d, 2, NULL);
	works(hcomm_op_begin(d[1], HCOMM_OP_ALL_REDUCE, 1, 0, &op));
	refused(hcomm_destroy(d[0], 300), HCOMM_E_FORCED, "rank 1");
	refused(hcomm_destroy(d[0], 300), HCOMM_E_GONE, "handle");
	works(hcomm_op_end(&op)); /* the handle of rank 1 lives, its domain does not */
	close_all(s, 2);
	hc_node_end(&n);
}
END_TEST

START_TEST(refusals)
{
	struct fake f;
	struct hcomm_session *s = open_fake(&f, NULL);
	hcomm_domain d = join_root(s, 2, 0);

	refused(hcomm_destroy(0, 100), HCOMM_E_GONE, "handle");
	refused(hcomm_destroy(d, -2), HCOMM_E_INVALID, "timeout_ms is -2");
	refused(hcomm_destroy(d, HCOMM_START), HCOMM_E_IN_PROGRESS, "destroying");
	hcomm_close(s);
	fake_end(&f);
}
END_TEST

TESTS("hcomm_destroy", all_ranks_see_the_end, who_holds_on_is_named_when_it_is_forced, refusals)
