/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hcomm_op_begin: references are taken while the domain is open, and refused once it is not.
 */
#include "apitest.h"
#include "failing.h"

START_TEST(every_kind_counts_and_allocates_nothing)
{
	struct fake f;
	struct hcomm_session *s = open_fake(&f, NULL);
	hcomm_domain d = join_root(s, 2, 0);
	struct hcomm_op op;
	int kind, r;

	works(hcomm_op_begin(d, HCOMM_OP_ALL_REDUCE, 8, 0, &op)); /* the thread gets its line */
	works(hcomm_op_end(&op));
	for (kind = HCOMM_OP_ALL_REDUCE; kind <= HCOMM_OP_RECV; kind++) {
		hc_failing_begin(0);
		r = hcomm_op_begin(d, (enum hcomm_op_kind)kind, 1024, HCOMM_OP_NOWAIT, &op);
		if (!r)
			r = hcomm_op_end(&op);
		ck_assert(!hc_failing_end());
		works(r);
	}
	hcomm_close(s);
	fake_end(&f);
}
END_TEST

START_TEST(a_closed_gate_refuses_with_the_cause)
{
	struct fake f;
	struct hcomm_session *s = open_fake(&f, NULL);
	hcomm_domain d = join_root(s, 2, 0);
	struct hc_page_record *r = &f.slab[1];
	struct hcomm_op op;

	snprintf(r->cause, sizeof(r->cause), "rank 1, pid 7, exited");
	r->gate = HC_GATE(FAKE_START, HC_TAG(1, 1), HCOMM_DAMAGED);
	refused(hcomm_op_begin(d, HCOMM_OP_BARRIER, 0, 0, &op), HCOMM_E_DAMAGED,
		"rank 1, pid 7, exited");
	r->gate = HC_GATE(FAKE_START, HC_TAG(1, 1), HCOMM_SUSPENDED);
	refused(hcomm_op_begin(d, HCOMM_OP_BARRIER, 0, HCOMM_OP_NOWAIT, &op), HCOMM_E_SUSPENDED,
		"suspended");
	r->gate = HC_GATE(FAKE_START, HC_TAG(1, 1), HCOMM_ACTIVE);
	works(hcomm_op_begin(d, HCOMM_OP_BARRIER, 0, 0, &op));
	works(hcomm_op_end(&op));
	r->id = 4; /* the slot is another domain's */
	refused(hcomm_op_begin(d, HCOMM_OP_BARRIER, 0, 0, &op), HCOMM_E_GONE, "gone");
	hcomm_close(s);
	fake_end(&f);
}
END_TEST

START_TEST(the_absence_of_the_daemon_stops_nobody)
{
	struct fake f;
	struct hcomm_session *s = open_fake(&f, NULL);
	hcomm_domain d = join_root(s, 2, 0);
	struct hcomm_op op;

	fake_kill(&f);
	works(hcomm_op_begin(d, HCOMM_OP_ALL_REDUCE, 8, 0, &op));
	works(hcomm_op_end(&op));
	hcomm_close(s);
	fake_end(&f);
}
END_TEST

static bool silent_join(struct fake_conn *c, const struct hc_frame *f, int got, void *arg)
{
	return f->head.type == HC_MSG_join_root ? true : fake_good(c, f, got, arg);
}

START_TEST(refusals)
{
	struct fake f;
	struct hcomm_session *s = open_fake(&f, silent_join);
	struct hcomm_root_info info;
	struct hcomm_op op;
	hcomm_domain d;

	works(hcomm_root_info(s, 2, NULL, &info));
	ck_assert_int_eq(hcomm_join(s, &info, 2, 0, 0, NULL, HCOMM_START, &d), HCOMM_E_IN_PROGRESS);
	refused(hcomm_op_begin(d, HCOMM_OP_BARRIER, 0, 0, &op), HCOMM_E_IN_PROGRESS, "forming");
	refused(hcomm_op_begin(0, HCOMM_OP_BARRIER, 0, 0, &op), HCOMM_E_INVALID, "handle is 0");
	refused(hcomm_op_begin(~d, HCOMM_OP_BARRIER, 0, 0, &op), HCOMM_E_GONE, "handle");
	works(hcomm_join(NULL, NULL, 1, 0, 0, NULL, 100, &d));
	refused(hcomm_op_begin(d, 0, 0, 0, &op), HCOMM_E_INVALID, "kind");
	refused(hcomm_op_begin(d, 13, 0, 0, &op), HCOMM_E_INVALID, "kind");
	refused(hcomm_op_begin(d, HCOMM_OP_BARRIER, 0, 2, &op), HCOMM_E_INVALID, "flags");
	refused(hcomm_op_begin(d, HCOMM_OP_BARRIER, 0, 0, NULL), HCOMM_E_INVALID, "op is NULL");
	works(hcomm_leave(d, 0)); /* nothing was counted */
	hcomm_close(s);
	fake_end(&f);
}
END_TEST

TESTS("hcomm_op_begin", every_kind_counts_and_allocates_nothing,
      a_closed_gate_refuses_with_the_cause, the_absence_of_the_daemon_stops_nobody, refusals)
