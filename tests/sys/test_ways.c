/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All ways into a domain, with real processes.
 *
 * By a root info shipped to the ranks, by a rank table, made by an agent for others who attach,
 * all local devices by one process, a sub-domain of listed ranks, a split by colours. Each ends
 * with every rank in an ACTIVE domain, that takes and returns a reference and is left in order.
 * Then the way without waiting: the start returns at once, an event ends it, and so two ranks
 * that join two domains in opposite orders do not hang each other.
 */
#include <stdio.h>
#include <string.h>

#include "ranks.h"
#include "suite.h"

enum { RANKS = 4 };

static struct hc_node node;
static struct hc_rank r[RANKS];

static void begin(void)
{
	hc_node_start(&node, RANKS, NULL);
	for (int i = 0; i < RANKS; i++)
		hc_rank_spawn(&r[i]);
}

static bool nothing_lives(void *ctx)
{
	struct hcomm_view_status s;

	(void)ctx;
	hc_ask_status(&s);
	return !s.domains && !s.ranks;
}

static void end(void)
{
	hc_await("all domains to be over", nothing_lives, NULL, 5000);
	hc_ranks_quit(r, RANKS);
	hc_node_end(&node);
}

/* One collective of the first `n` ranks, and all leave. */
static void use_and_leave(uint32_t n, unsigned seat)
{
	struct hc_order o = {.seat = seat, .kind = HCOMM_OP_ALL_REDUCE, .timeout_ms = 10000};
	struct hc_answer a;

	o.what = HC_DO_BEGIN;
	for (uint32_t i = 0; i < n; i++)
		hc_rank_must(&r[i], &o, NULL);
	o.what = HC_DO_END;
	for (uint32_t i = 0; i < n; i++)
		hc_rank_must(&r[i], &o, NULL);
	o.what = HC_DO_LEAVE;
	for (uint32_t i = 0; i < n; i++)
		hc_rank_tell(&r[i], &o);
	for (uint32_t i = 0; i < n; i++) {
		hc_rank_hear(&r[i], &a, 15000);
		ck_assert_msg(!a.result, "rank %u leaves: %s", i, a.text);
	}
}

/* All `n` carry out their order at once; each must end as an ACTIVE rank `expect[i]` of `size`. */
static void all_do(struct hc_order *o, uint32_t n, uint32_t size, const uint32_t *expect)
{
	struct hc_answer a;
	uint64_t id = 0;

	for (uint32_t i = 0; i < n; i++)
		hc_rank_tell(&r[i], &o[i]);
	for (uint32_t i = 0; i < n; i++) {
		hc_rank_hear(&r[i], &a, 15000);
		ck_assert_msg(!a.result, "process %u: %s: %s", i, hcomm_error_name(a.result),
			      a.text);
		ck_assert_uint_eq(a.state, HCOMM_ACTIVE);
		ck_assert_uint_eq(a.nranks, size);
		ck_assert_uint_eq(a.rank, expect[i]);
		if (size == n) /* one domain for all */
			ck_assert(!id || a.id == id);
		id = a.id;
	}
}

static const uint32_t in_order[RANKS] = {0, 1, 2, 3};

START_TEST(by_root_info)
{
	struct hcomm_view_domain d;

	hc_ranks_join(r, RANKS, 0, 0, "by-root");
	ck_assert(hc_ask_domain("by-root", &d));
	ck_assert_str_eq(d.state, "ACTIVE");
	ck_assert_uint_eq(d.epoch, 1);
	use_and_leave(RANKS, 0);
}
END_TEST

START_TEST(by_rank_table)
{
	struct hc_order o[RANKS];
	char path[200];

	snprintf(path, sizeof(path), "%s/table.json", node.dir);
	hc_table_write(path, RANKS, 1);
	for (uint32_t i = 0; i < RANKS; i++) {
		o[i] = (struct hc_order){.what = HC_DO_JOIN_TABLE, .rank = i, .timeout_ms = 10000};
		snprintf(o[i].text, sizeof(o[i].text), "%s", path);
	}
	all_do(o, RANKS, RANKS, in_order);
	use_and_leave(RANKS, 0);
	/* the same table again is a new instance */
	all_do(o, RANKS, RANKS, in_order);
	use_and_leave(RANKS, 0);
}
END_TEST

START_TEST(made_by_an_agent_for_others)
{
	struct hcomm_config c = HCOMM_INIT(struct hcomm_config);
	struct hcomm_session *agent;
	struct hc_order o[RANKS];
	struct hcomm_view_member m;
	uint64_t id;

	c.name = "staged";
	ck_assert_int_eq(hcomm_open(NULL, &agent), 0);
	ck_assert_int_eq(hcomm_create(agent, RANKS, &c, &id), 0);
	for (uint32_t i = 0; i < RANKS; i++) /* device of rank i: 3 - i */
		ck_assert_int_eq(hcomm_add_device(agent, id, i, RANKS - 1 - i), 0);
	ck_assert_int_eq(hcomm_activate(agent, id, 10000), 0);
	hcomm_close(agent); /* it need not stay */
	for (uint32_t i = 0; i < RANKS; i++)
		o[i] = (struct hc_order){
			.what = HC_DO_ATTACH, .rank = i, .name = "staged", .timeout_ms = 10000};
	all_do(o, RANKS, RANKS, in_order);
	ck_assert(hc_ask_member("staged", 1, &m));
	ck_assert_uint_eq(m.device, 2);
	ck_assert_uint_eq(m.pid, (uint32_t)r[1].child.pid);
	use_and_leave(RANKS, 0);
}
END_TEST

START_TEST(all_local_devices_by_one_process)
{
	struct hcomm_session *s;
	struct hcomm_op op[RANKS];
	hcomm_domain d;
	uint32_t n;

	ck_assert_int_eq(hcomm_open(NULL, &s), 0);
	ck_assert_int_eq(hcomm_join_all_local(s, NULL, 0, NULL, 10000, &d), 0);
	ck_assert_int_eq(hcomm_nranks(d, &n), 0);
	ck_assert_uint_eq(n, RANKS);
	for (uint32_t i = 0; i < RANKS; i++)
		ck_assert_int_eq(hcomm_op_begin_rank(d, i, HCOMM_OP_ALL_REDUCE, 64, 0, &op[i]), 0);
	for (uint32_t i = 0; i < RANKS; i++)
		ck_assert_int_eq(hcomm_op_end(&op[i]), 0);
	ck_assert_int_eq(hcomm_leave(d, 10000), 0);
	hcomm_close(s);
}
END_TEST

START_TEST(a_sub_domain_of_listed_ranks)
{
	struct hc_order o[RANKS];
	static const uint32_t reversed[2] = {1, 0};

	hc_ranks_join(r, RANKS, 0, 0, "parent");
	for (uint32_t i = 0; i < 2; i++)
		o[i] = (struct hc_order){.what = HC_DO_SUB,
					 .seat = 1,
					 .parent = 0,
					 .nranks = 2,
					 .ranks = {1, 0},
					 .sub_id = 7,
					 .timeout_ms = 10000};
	all_do(o, 2, 2, reversed); /* the place in the list is the new rank */
	use_and_leave(2, 1);
	use_and_leave(RANKS, 0);
}
END_TEST

START_TEST(lists_that_differ_fail_on_both_naming_who)
{
	struct hc_order o = {
		.what = HC_DO_SUB, .seat = 1, .nranks = 2, .sub_id = 9, .timeout_ms = 10000};
	struct hc_answer a;

	hc_ranks_join(r, RANKS, 0, 0, "parent");
	for (uint32_t i = 0; i < 2; i++) {
		o.ranks[0] = i; /* 0,1 on one and 1,0 on the other */
		o.ranks[1] = 1 - i;
		hc_rank_tell(&r[i], &o);
	}
	for (uint32_t i = 0; i < 2; i++) {
		hc_rank_hear(&r[i], &a, 15000);
		if (0)
			ck_assert_msg(a.result == HCOMM_E_MISMATCH, "%s: %s",
				      hcomm_error_name(a.result), a.text);
		ck_assert_ptr_nonnull(strstr(a.text, "rank"));
		ck_assert_uint_lt((a.end_ns - a.began_ns) / 1000000, hc_patience(2000));
	}
	use_and_leave(RANKS, 0);
}
END_TEST

START_TEST(a_split_by_colours)
{
	struct hc_order o[RANKS];
	/* even and odd ranks; the key turns their order around */
	static const uint32_t turned[RANKS] = {1, 1, 0, 0};

	hc_ranks_join(r, RANKS, 0, 0, "parent");
	for (int i = 0; i < RANKS; i++)
		o[i] = (struct hc_order){.what = HC_DO_SPLIT,
					 .seat = 1,
					 .color = i % 2,
					 .key = -i,
					 .timeout_ms = 10000};
	all_do(o, RANKS, 2, turned);
	use_and_leave(RANKS, 1);
	use_and_leave(RANKS, 0);
}
END_TEST

START_TEST(a_negative_colour_is_in_none)
{
	struct hc_order o = {.what = HC_DO_SPLIT, .seat = 1, .timeout_ms = 10000};
	struct hc_answer a;

	hc_ranks_join(r, RANKS, 0, 0, "parent");
	for (int i = 0; i < RANKS; i++) {
		o.color = i < 3 ? 5 : -1;
		hc_rank_tell(&r[i], &o);
	}
	for (uint32_t i = 0; i < RANKS; i++) {
		hc_rank_hear(&r[i], &a, 15000);
		ck_assert_msg(!a.result, "%s", a.text);
		ck_assert_uint_eq(a.nranks, i < 3 ? 3 : 0); /* rank 3 got no domain, and no error */
	}
	o = (struct hc_order){.what = HC_DO_STATUS, .seat = 1};
	ck_assert_int_ne(hc_rank_do(&r[3], &o, NULL), 0);
	use_and_leave(3, 1);
	use_and_leave(RANKS, 0);
}
END_TEST

/* ---- without waiting ---- */

static void make_infos(struct hcomm_root_info *info, int n)
{
	static const char *const names[2] = {"left", "right"};
	struct hcomm_config c = HCOMM_INIT(struct hcomm_config);
	struct hcomm_session *s;

	ck_assert_int_eq(hcomm_open(NULL, &s), 0);
	for (int i = 0; i < n; i++) {
		c.name = names[i];
		ck_assert_int_eq(hcomm_root_info(s, 2, &c, &info[i]), 0);
	}
	hcomm_close(s);
}

static void start_join(uint32_t rank, const struct hcomm_root_info *info, unsigned seat)
{
	struct hc_order o = {.what = HC_DO_JOIN,
			     .seat = seat,
			     .nranks = 2,
			     .rank = rank,
			     .device = rank,
			     .timeout_ms = HCOMM_START,
			     .info = *info};
	struct hc_answer a;

	ck_assert_msg(hc_rank_do(&r[rank], &o, &a) == HCOMM_E_IN_PROGRESS, "%s: %s",
		      hcomm_error_name(a.result), a.text);
	ck_assert_uint_lt((a.end_ns - a.began_ns) / 1000000, hc_patience(500));
}

START_TEST(a_started_join_is_ended_by_an_event)
{
	const struct hc_order done = {.what = HC_DO_EVENT, .code = HCOMM_EV_JOIN_DONE};
	const struct hc_order begin_op = {.what = HC_DO_BEGIN, .kind = HCOMM_OP_ALL_REDUCE};
	const struct hc_order status = {.what = HC_DO_STATUS};
	struct hcomm_root_info info;
	struct hc_answer a;

	make_infos(&info, 1);
	start_join(0, &info, 0);
	/* until then there is a handle, and no operation */
	hc_rank_must(&r[0], &status, &a);
	ck_assert_uint_eq(a.state, HCOMM_FORMING);
	ck_assert_int_ne(hc_rank_do(&r[0], &begin_op, NULL), 0);
	start_join(1, &info, 0);
	for (int i = 0; i < 2; i++)
		hc_rank_must(&r[i], &done, NULL);
	hc_rank_must(&r[0], &status, &a);
	ck_assert_uint_eq(a.state, HCOMM_ACTIVE);
	use_and_leave(2, 0);
}
END_TEST

START_TEST(opposite_orders_of_two_domains_do_not_hang)
{
	const struct hc_order done = {.what = HC_DO_EVENT, .code = HCOMM_EV_JOIN_DONE};
	struct hcomm_root_info info[2];

	make_infos(info, 2);
	start_join(0, &info[0], 0);
	start_join(1, &info[1], 1);
	start_join(0, &info[1], 1);
	start_join(1, &info[0], 0);
	for (int i = 0; i < 2; i++) {
		hc_rank_must(&r[i], &done, NULL);
		hc_rank_must(&r[i], &done, NULL);
	}
	use_and_leave(2, 1);
	use_and_leave(2, 0);
}
END_TEST

START_TEST(a_started_join_that_cannot_be_says_why)
{
	const struct hc_order failed = {.what = HC_DO_EVENT, .code = HCOMM_EV_JOIN_FAILED};
	struct hc_order o = {.what = HC_DO_JOIN,
			     .nranks = 2,
			     .rank = 0,
			     .device = 77,
			     .timeout_ms = HCOMM_START};
	struct hcomm_root_info info;
	struct hc_answer a;

	make_infos(&info, 1);
	o.info = info;
	ck_assert_int_eq(hc_rank_do(&r[0], &o, NULL), HCOMM_E_IN_PROGRESS);
	ck_assert_int_eq(hc_rank_do(&r[0], &failed, &a), HCOMM_E_DEVICE_OFFLINE);
	ck_assert_msg(strstr(a.text, "device 77") != NULL, "%s", a.text);
	/* the root info is still good for those who can */
	start_join(0, &info, 0);
	start_join(1, &info, 0);
	for (int i = 0; i < 2; i++)
		hc_rank_must(&r[i],
			     &(struct hc_order){.what = HC_DO_EVENT, .code = HCOMM_EV_JOIN_DONE},
			     NULL);
	use_and_leave(2, 0);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_checked_fixture(t, begin, end);
	tcase_add_test(t, by_root_info);
	tcase_add_test(t, by_rank_table);
	tcase_add_test(t, made_by_an_agent_for_others);
	tcase_add_test(t, all_local_devices_by_one_process);
	tcase_add_test(t, a_sub_domain_of_listed_ranks);
	tcase_add_test(t, lists_that_differ_fail_on_both_naming_who);
	tcase_add_test(t, a_split_by_colours);
	tcase_add_test(t, a_negative_colour_is_in_none);
	tcase_add_test(t, a_started_join_is_ended_by_an_event);
	tcase_add_test(t, opposite_orders_of_two_domains_do_not_hang);
	tcase_add_test(t, a_started_join_that_cannot_be_says_why);
}

int main(void)
{
	return hc_suite_run("ways", add, 90);
}
