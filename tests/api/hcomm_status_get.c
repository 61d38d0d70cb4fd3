/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hcomm_status_get: from the shared page, also while the daemon is away.
 */
#include "apitest.h"

START_TEST(an_active_domain_is_described_without_the_daemon)
{
	struct hcomm_status st = HCOMM_INIT(struct hcomm_status);
	struct hcomm_session *s[2] = {0};
	hcomm_domain d[2];
	struct hc_node n;

	hc_node_start(&n, 2, NULL);
	form(s, d, 2, NULL);
	hc_node_kill(&n);
	works(hcomm_status_get(d[1], &st));
	ck_assert_int_eq(st.state, HCOMM_ACTIVE);
	ck_assert_uint_ne(st.id, 0);
	ck_assert_uint_eq(st.epoch, 1);
	ck_assert_uint_eq(st.nranks, 2);
	ck_assert_uint_eq(st.rank, 1);
	ck_assert_uint_eq(st.local, 0);
	ck_assert_str_eq(st.cause, "");
	ck_assert_uint_gt(strlen(st.name), 0);
	close_all(s, 2);
	hc_node_end(&n);
}
END_TEST

START_TEST(an_ended_domain_gives_its_reason)
{
	struct hcomm_status st = HCOMM_INIT(struct hcomm_status);
	struct hcomm_session *s[2] = {0};
	hcomm_domain d[2];
	struct hc_node n;
	uint64_t id;

	hc_node_start(&n, 2, NULL);
	form(s, d, 2, NULL);
	id = id_of(d[1]);
	works(hcomm_destroy(d[0], 5000));
	works(hcomm_status_get(d[1], &st));
	ck_assert_int_eq(st.state, HCOMM_DESTROYED);
	ck_assert_uint_eq(st.id, id);
	ck_assert_uint_gt(strlen(st.cause), 0);
	close_all(s, 2);
	hc_node_end(&n);
}
END_TEST

/* A writer that died while it wrote the cause holds nobody up. */
START_TEST(a_half_written_cause_is_left_out)
{
	struct hcomm_status st = HCOMM_INIT(struct hcomm_status);
	struct fake f;
	struct hcomm_session *s = open_fake(&f, NULL);
	hcomm_domain d = join_root(s, 2, 0);
	struct hc_page_record *r = &f.slab[1];

	snprintf(r->cause, sizeof(r->cause), "rank 3, pid 7, exited");
	r->number = 9;
	works(hcomm_status_get(d, &st));
	ck_assert_str_eq(st.cause, "rank 3, pid 7, exited");
	ck_assert_uint_eq(st.number, 9);
	r->seq = 1;
	works(hcomm_status_get(d, &st));
	ck_assert_str_eq(st.cause, "");
	hcomm_close(s);
	fake_end(&f);
}
END_TEST

START_TEST(a_shorter_struct_of_an_older_caller_is_honoured)
{
	struct hcomm_status st;
	hcomm_domain d;

	works(hcomm_join(NULL, NULL, 1, 0, 0, NULL, 100, &d));
	memset(&st, 0x55, sizeof(st));
	st.size = offsetof(struct hcomm_status, number);
	works(hcomm_status_get(d, &st));
	ck_assert_int_eq(st.state, HCOMM_ACTIVE);
	ck_assert_uint_eq(st.number, 0x55555555);
	works(hcomm_leave(d, 100));
}
END_TEST

START_TEST(refusals)
{
	struct hcomm_status st = HCOMM_INIT(struct hcomm_status);

	refused(hcomm_status_get(0, &st), HCOMM_E_GONE, "handle");
	refused(hcomm_status_get(0, NULL), HCOMM_E_INVALID, "status is NULL");
	st.size = 2;
	refused(hcomm_status_get(0, &st), HCOMM_E_INVALID, "no size");
}
END_TEST

TESTS("hcomm_status_get", an_active_domain_is_described_without_the_daemon,
      an_ended_domain_gives_its_reason, a_half_written_cause_is_left_out,
      a_shorter_struct_of_an_older_caller_is_honoured, refusals)
