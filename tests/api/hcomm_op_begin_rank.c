/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hcomm_op_begin_rank: each rank of a process counts for itself.
 */
#include "apitest.h"

static int row_running(const void *row, void *context)
{
	(void)row;
	++*(unsigned *)context;
	return 0;
}

START_TEST(each_rank_has_its_own_references)
{
	struct hcomm_filter filter = HCOMM_INIT(struct hcomm_filter);
	struct hcomm_session *s;
	struct hcomm_op a, b;
	unsigned rows = 0;
	struct hc_node n;
	hcomm_domain d;

	hc_node_start(&n, 3, NULL);
	s = open_session();
	works(hcomm_join_all_local(s, NULL, 0, NULL, 5000, &d));
	works(hcomm_op_begin_rank(d, 2, HCOMM_OP_SEND, 1, 0, &a));
	works(hcomm_op_begin_rank(d, 1, HCOMM_OP_RECV, 1, 0, &b));
	filter.id = id_of(d);
	works(hcomm_query(s, 3, &filter, row_running, &rows));
	ck_assert_uint_eq(rows, 3);
	works(hcomm_op_end(&b));
	refused(hcomm_leave(d, 300), HCOMM_E_FORCED, "");
	refused(hcomm_op_end(&a), HCOMM_E_GONE, "handle");
	hcomm_close(s);
	hc_node_end(&n);
}
END_TEST

START_TEST(refusals)
{
	struct hcomm_op op;
	hcomm_domain d;

	works(hcomm_join(NULL, NULL, 1, 0, 0, NULL, 100, &d));
	works(hcomm_op_begin_rank(d, 0, HCOMM_OP_BARRIER, 0, 0, &op));
	works(hcomm_op_end(&op));
	refused(hcomm_op_begin_rank(d, 1, HCOMM_OP_BARRIER, 0, 0, &op), HCOMM_E_INVALID, "rank");
	refused(hcomm_op_begin_rank(d, 0, 77, 0, 0, &op), HCOMM_E_INVALID, "kind");
	refused(hcomm_op_begin_rank(d, 0, HCOMM_OP_BARRIER, 0, 8, &op), HCOMM_E_INVALID, "flags");
	refused(hcomm_op_begin_rank(d, 0, HCOMM_OP_BARRIER, 0, 0, NULL), HCOMM_E_INVALID, "op");
	works(hcomm_leave(d, 0));
	refused(hcomm_op_begin_rank(d, 0, HCOMM_OP_BARRIER, 0, 0, &op), HCOMM_E_GONE, "handle");
}
END_TEST

TESTS("hcomm_op_begin_rank", each_rank_has_its_own_references, refusals)
