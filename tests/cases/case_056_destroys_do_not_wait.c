/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Case 56: the end of one domain does not wait for another.
 *
 * In one process, destroying A blocked behind B's running work, and destroying several one after
 * the other on different ranks dead-locked. Here a busy domain holds up only its own end, and
 * all orders of ending four domains come through, from threads of one process and from two
 * processes that take opposite orders.
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "ranks.h"
#include "suite.h"

enum { DOMAINS = 4, ORDERS = 24 };

static struct hc_node node;
static struct hcomm_session *session;

static hcomm_domain make(const char *name)
{
	static const uint32_t devices[2] = {0, 1};
	struct hcomm_config c = HCOMM_INIT(struct hcomm_config);
	hcomm_domain d;
	int r;

	c.name = name;
	r = hcomm_join_all_local(session, devices, 2, &c, 10000, &d);
	if (r)
		hc_fail("%s: %s: %s", name, hcomm_error_name(r), hcomm_last_error());
	return d;
}

static void begin(void)
{
	hc_node_start(&node, 2, NULL);
	ck_assert_int_eq(hcomm_open(NULL, &session), 0);
}

static void end(void)
{
	hcomm_close(session);
	hc_node_end(&node);
}

/* A collective is begun by every rank, or its domain rightly waits for those that lack. */
static void begin_both(hcomm_domain d, struct hcomm_op op[2])
{
	for (uint32_t i = 0; i < 2; i++)
		ck_assert_int_eq(hcomm_op_begin_rank(d, i, HCOMM_OP_ALL_REDUCE, 64, 0, &op[i]), 0);
}

static void end_both(struct hcomm_op op[2])
{
	ck_assert_int_eq(hcomm_op_end(&op[0]), 0);
	ck_assert_int_eq(hcomm_op_end(&op[1]), 0);
}

START_TEST(a_busy_domain_does_not_hold_the_other)
{
	struct hcomm_status s = HCOMM_INIT(struct hcomm_status);
	struct hcomm_op op[2];
	hcomm_domain a = make("a"), b = make("b");
	uint64_t began;

	begin_both(b, op);
	began = hc_now_ms();
	ck_assert_int_eq(hcomm_destroy(a, 10000), 0);
	ck_assert_uint_lt(hc_now_ms() - began, hc_patience(100));
	ck_assert_int_eq(hcomm_status_get(b, &s), 0);
	ck_assert_int_eq(s.state, HCOMM_ACTIVE); /* unharmed */
	end_both(op);
	ck_assert_int_eq(hcomm_destroy(b, 10000), 0);
}
END_TEST

struct ending {
	hcomm_domain domain;
	int timeout_ms, result;
	uint64_t end_ns;
};

static void *destroy_one(void *arg)
{
	struct ending *e = arg;

	e->result = hcomm_destroy(e->domain, e->timeout_ms);
	e->end_ns = hc_now_ns();
	return NULL;
}

START_TEST(two_threads_end_two_domains_each_at_its_time)
{
	struct hcomm_op op[2];
	struct ending e[2] = {{make("a"), 10000, 1, 0}, {make("b"), 10000, 1, 0}};
	pthread_t t[2];
	uint64_t returned;

	begin_both(e[1].domain, op);
	ck_assert_int_eq(pthread_create(&t[1], NULL, destroy_one, &e[1]), 0);
	ck_assert_int_eq(pthread_create(&t[0], NULL, destroy_one, &e[0]), 0);
	pthread_join(t[0], NULL); /* the busy one has not ended */
	ck_assert_int_eq(e[0].result, 0);
	returned = hc_now_ns();
	end_both(op);
	pthread_join(t[1], NULL);
	ck_assert_int_eq(e[1].result, 0);
	ck_assert_uint_gt(e[1].end_ns, returned);
	ck_assert_uint_lt((e[1].end_ns - returned) / 1000000, hc_patience(500));
}
END_TEST

static void nth_order(unsigned n, unsigned out[DOMAINS])
{
	unsigned left[DOMAINS] = {0, 1, 2, 3}, i, k;

	for (i = 0; i < DOMAINS; i++) {
		static const unsigned weight[DOMAINS] = {6, 2, 1, 1};

		k = n / weight[i] % (DOMAINS - i);
		n %= weight[i];
		out[i] = left[k];
		memmove(&left[k], &left[k + 1], (DOMAINS - 1 - k) * sizeof(left[0]));
	}
}

START_TEST(every_order_from_threads_comes_through)
{
	for (unsigned n = 0; n < ORDERS; n++) {
		struct ending e[DOMAINS];
		pthread_t t[DOMAINS];
		unsigned order[DOMAINS];
		char name[16];

		for (int i = 0; i < DOMAINS; i++) {
			snprintf(name, sizeof(name), "d%d", i);
			e[i] = (struct ending){make(name), 10000, 1, 0};
		}
		nth_order(n, order);
		for (int i = 0; i < DOMAINS; i++)
			ck_assert_int_eq(pthread_create(&t[i], NULL, destroy_one, &e[order[i]]), 0);
		for (int i = 0; i < DOMAINS; i++)
			pthread_join(t[i], NULL);
		for (int i = 0; i < DOMAINS; i++)
			ck_assert_msg(!e[i].result, "order %u, domain %d: %d", n, i, e[i].result);
	}
}
END_TEST

/* Two processes that share four domains leave them in orders of their own. */
START_TEST(opposite_orders_of_two_processes_come_through)
{
	static struct hc_rank r[2];
	struct hc_order leave = {.what = HC_DO_LEAVE, .timeout_ms = 10000};
	struct hc_answer a;
	unsigned order[2][DOMAINS], rounds = ORDERS;

	for (int i = 0; i < 2; i++)
		hc_rank_spawn(&r[i]);
	for (unsigned n = 0; n < rounds; n++) {
		for (unsigned d = 0; d < DOMAINS; d++) {
			char name[16];

			snprintf(name, sizeof(name), "p%u", d);
			hc_ranks_join(r, 2, d, 0, name);
		}
		nth_order(n, order[0]);
		nth_order(ORDERS - 1 - n, order[1]);
		for (unsigned step = 0; step < DOMAINS; step++) {
			for (int i = 0; i < 2; i++) {
				leave.seat = order[i][step];
				hc_rank_tell(&r[i], &leave);
			}
			for (int i = 0; i < 2; i++) {
				hc_rank_hear(&r[i], &a, 10000);
				ck_assert_msg(!a.result, "order %u: %s", n, a.text);
			}
		}
	}
	hc_ranks_quit(r, 2);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_checked_fixture(t, begin, end);
	tcase_add_test(t, a_busy_domain_does_not_hold_the_other);
	tcase_add_test(t, two_threads_end_two_domains_each_at_its_time);
	tcase_add_test(t, every_order_from_threads_comes_through);
	tcase_add_test(t, opposite_orders_of_two_processes_come_through);
}

int main(void)
{
	return hc_suite_run("case_056_destroys_do_not_wait", add, 60);
}
