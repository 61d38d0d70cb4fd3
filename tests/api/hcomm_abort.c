/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hcomm_abort: this rank gives up; the others hear its reason and are refused.
 */
#include "apitest.h"

static char heard[HCOMM_TEXT_BYTES];

static void on_event(const struct hcomm_event *e, void *context)
{
	(void)context;
	if (e->code == HCOMM_EV_RANK_ABORTED || e->code == HCOMM_EV_DOMAIN_DAMAGED)
		snprintf(heard, sizeof(heard), "%s", e->text);
}

START_TEST(the_others_hear_the_reason)
{
	struct hcomm_status st = HCOMM_INIT(struct hcomm_status);
	uint64_t end = hc_now_ms() + hc_patience(10000);
	struct hcomm_session *s[2] = {0};
	struct hcomm_op op;
	hcomm_domain d[2];
	struct hc_node n;

	hc_node_start(&n, 2, NULL);
	form(s, d, 2, NULL);
	works(hcomm_on_event(s[1], on_event, NULL));
	works(hcomm_abort(d[0], "loss is not a number"));
	while (!strstr(heard, "loss is not a number")) {
		ck_assert_int_ge(hcomm_dispatch(s[1], 100), 0);
		ck_assert_msg(hc_now_ms() < end, "heard: %s", heard);
	}
	works(hcomm_status_get(d[1], &st));
	ck_assert_int_eq(st.state, HCOMM_DAMAGED);
	ck_assert_msg(strstr(st.cause, "loss is not a number") != NULL, "%s", st.cause);
	refused(hcomm_op_begin(d[1], HCOMM_OP_ALL_REDUCE, 1, 0, &op), HCOMM_E_DAMAGED,
		"loss is not a number");
	works(hcomm_leave(d[1], 5000));
	close_all(s, 2);
	hc_node_end(&n);
}
END_TEST

START_TEST(a_local_domain_is_damaged_too)
{
	struct hcomm_op op;
	hcomm_domain d;

	works(hcomm_join(NULL, NULL, 1, 0, 0, NULL, 100, &d));
	works(hcomm_abort(d, NULL));
	ck_assert_int_eq(state_of(d), HCOMM_DAMAGED);
	refused(hcomm_op_begin(d, HCOMM_OP_ALL_REDUCE, 1, 0, &op), HCOMM_E_DAMAGED, "damaged");
	works(hcomm_leave(d, 100));
}
END_TEST

START_TEST(refusals)
{
	refused(hcomm_abort(0, "x"), HCOMM_E_GONE, "handle");
	refused(hcomm_abort(0x500000000, "x"), HCOMM_E_GONE, "handle");
}
END_TEST

TESTS("hcomm_abort", the_others_hear_the_reason, a_local_domain_is_damaged_too, refusals)
