/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hcomm_on_event: what the ranks of a domain hear of each other, from the real daemon. (How the
 * library delivers is in hcomm_dispatch.c.)
 */
#include "apitest.h"
#include "ranks.h"

static struct hcomm_event last;
static uint32_t wanted;

static void on_event(const struct hcomm_event *e, void *context)
{
	if (e->code == wanted) {
		last = *e;
		++*(unsigned *)context;
	}
}

static void await_event(struct hcomm_session *s, uint32_t code, unsigned *count)
{
	uint64_t end = hc_now_ms() + hc_patience(20000);

	wanted = code;
	while (!*count) {
		ck_assert_int_ge(hcomm_dispatch(s, 100), 0);
		ck_assert_msg(hc_now_ms() < end, "no event %u", code);
	}
}

START_TEST(the_death_of_a_rank_is_told_with_its_process)
{
	struct hc_node n;
	struct hcomm_session *s;
	struct hcomm_root_info info;
	struct hc_order join = {
		.what = HC_DO_JOIN, .nranks = 2, .rank = 1, .device = 1, .timeout_ms = 20000};
	struct hc_rank other;
	struct hc_answer a;
	unsigned count = 0;
	hcomm_domain d;
	pid_t pid;

	hc_node_start(&n, 2, NULL);
	s = open_session();
	works(hcomm_on_event(s, on_event, &count));
	works(hcomm_root_info(s, 2, NULL, &info));
	hc_rank_spawn(&other);
	pid = other.child.pid;
	join.info = info;
	hc_rank_tell(&other, &join);
	works(hcomm_join(s, &info, 2, 0, 0, NULL, 20000, &d));
	hc_rank_hear(&other, &a, 20000);
	ck_assert_int_eq(a.result, 0);
	wanted = HCOMM_EV_RANK_DIED;
	hc_rank_kill(&other);
	await_event(s, HCOMM_EV_RANK_DIED, &count);
	ck_assert_uint_eq(last.rank, 1);
	ck_assert_uint_eq(last.pid, (uint32_t)pid);
	ck_assert_uint_eq(last.domain, d);
	ck_assert_uint_eq(last.id, id_of(d));
	ck_assert_int_eq(state_of(d), HCOMM_DAMAGED);
	hcomm_close(s);
	hc_node_end(&n);
}
END_TEST

START_TEST(the_end_of_a_started_join_is_an_event)
{
	struct hcomm_session *s[2] = {0};
	struct hcomm_root_info info;
	unsigned count = 0, i;
	hcomm_domain d[2];
	struct hc_node n;

	hc_node_start(&n, 2, NULL);
	wanted = HCOMM_EV_JOIN_DONE;
	for (i = 0; i < 2; i++)
		s[i] = open_session();
	works(hcomm_on_event(s[0], on_event, &count));
	works(hcomm_root_info(s[0], 2, NULL, &info));
	for (i = 0; i < 2; i++)
		ck_assert_int_eq(hcomm_join(s[i], &info, 2, i, i, NULL, HCOMM_START, &d[i]),
				 HCOMM_E_IN_PROGRESS);
	await_event(s[0], HCOMM_EV_JOIN_DONE, &count);
	ck_assert_uint_eq(last.domain, d[0]);
	ck_assert_uint_eq(last.rank, 0);
	ck_assert_int_eq(last.error, 0);
	ck_assert_int_eq(state_of(d[0]), HCOMM_ACTIVE);
	close_all(s, 2);
	hc_node_end(&n);
}
END_TEST

START_TEST(a_started_join_that_fails_says_why)
{
	struct hcomm_session *s;
	struct hcomm_root_info info;
	struct hcomm_op op;
	unsigned count = 0;
	hcomm_domain d;
	struct hc_node n;

	hc_node_start(&n, 2, NULL);
	s = open_session();
	wanted = HCOMM_EV_JOIN_FAILED;
	works(hcomm_on_event(s, on_event, &count));
	works(hcomm_root_info(s, 2, NULL, &info));
	ck_assert_int_eq(hcomm_join(s, &info, 2, 0, 77, NULL, HCOMM_START, &d),
			 HCOMM_E_IN_PROGRESS);
	await_event(s, HCOMM_EV_JOIN_FAILED, &count);
	ck_assert_uint_eq(last.domain, d);
	ck_assert_int_eq(last.error, HCOMM_E_DEVICE_OFFLINE);
	ck_assert_ptr_nonnull(strstr(last.text, "77"));
	ck_assert_int_eq(state_of(d), HCOMM_FAILED);
	ck_assert_int_eq(hcomm_op_begin(d, HCOMM_OP_BARRIER, 0, 0, &op), HCOMM_E_DEVICE_OFFLINE);
	works(hcomm_leave(d, 1000));
	hcomm_close(s);
	hc_node_end(&n);
}
END_TEST

START_TEST(refusals)
{
	refused(hcomm_on_event(NULL, on_event, NULL), HCOMM_E_INVALID, "session is NULL");
}
END_TEST

TESTS("hcomm_on_event", the_death_of_a_rank_is_told_with_its_process,
      the_end_of_a_started_join_is_an_event, a_started_join_that_fails_says_why, refusals)
