/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hcomm_sub: listed ranks of a domain form another one, or all of them hear who said otherwise.
 */
#include "apitest.h"
#include "failing.h"

#include <pthread.h>

struct call {
	hcomm_domain parent, sub;
	const uint32_t *ranks;
	uint32_t count;
	int result;
	char text[HCOMM_TEXT_BYTES];
};

static void *call_sub(void *arg)
{
	struct call *c = arg;

	c->result = hcomm_sub(c->parent, c->ranks, c->count, 42, NULL, 20000, &c->sub);
	snprintf(c->text, sizeof(c->text), "%s", hcomm_last_error());
	return NULL;
}

static void call_all(struct call *c, unsigned n)
{
	pthread_t threads[8];
	unsigned i;

	for (i = 0; i < n; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, call_sub, &c[i]), 0);
	for (i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
}

START_TEST(the_index_in_the_list_is_the_new_rank)
{
	static const uint32_t list[] = {2, 0};
	struct hcomm_session *s[3] = {0};
	struct call c[2];
	hcomm_domain d[3];
	struct hc_node n;
	uint32_t v;

	hc_node_start(&n, 3, NULL);
	form(s, d, 3, NULL);
	c[0] = (struct call){.parent = d[0], .ranks = list, .count = 2};
	c[1] = (struct call){.parent = d[2], .ranks = list, .count = 2};
	call_all(c, 2);
	ck_assert_msg(!c[0].result && !c[1].result, "%s / %s", c[0].text, c[1].text);
	ck_assert_uint_eq(id_of(c[0].sub), id_of(c[1].sub));
	works(hcomm_rank(c[0].sub, &v));
	ck_assert_uint_eq(v, 1);
	works(hcomm_rank(c[1].sub, &v));
	ck_assert_uint_eq(v, 0);
	works(hcomm_nranks(c[1].sub, &v));
	ck_assert_uint_eq(v, 2);
	close_all(s, 3);
	hc_node_end(&n);
}
END_TEST

START_TEST(a_list_that_differs_fails_on_every_rank)
{
	static const uint32_t a[] = {0, 1, 2}, b[] = {2, 1, 0};
	struct hcomm_session *s[3] = {0};
	struct call c[2];
	hcomm_domain d[3];
	struct hc_node n;

	hc_node_start(&n, 3, NULL);
	form(s, d, 3, NULL);
	c[0] = (struct call){.parent = d[0], .ranks = a, .count = 3};
	c[1] = (struct call){.parent = d[1], .ranks = b, .count = 3};
	call_all(c, 2);
	ck_assert_msg(c[0].result == HCOMM_E_MISMATCH, "%d %s", c[0].result, c[0].text);
	ck_assert_msg(c[1].result == HCOMM_E_MISMATCH, "%d %s", c[1].result, c[1].text);
	ck_assert_uint_eq(c[0].sub, 0);
	close_all(s, 3);
	hc_node_end(&n);
}
END_TEST

START_TEST(started_it_ends_with_an_event)
{
	static const uint32_t list[] = {0, 1};
	struct hcomm_session *s[2] = {0};
	hcomm_domain d[2], sub[2];
	struct hc_node n;
	unsigned i;

	hc_node_start(&n, 2, NULL);
	form(s, d, 2, NULL);
	for (i = 0; i < 2; i++)
		refused(hcomm_sub(d[i], list, 2, 7, NULL, HCOMM_START, &sub[i]),
			HCOMM_E_IN_PROGRESS, "event");
	await_active(s, sub, 2);
	close_all(s, 2);
	hc_node_end(&n);
}
END_TEST

START_TEST(refusals)
{
	static const uint32_t list[] = {0, 1, 2};
	struct hcomm_session *s[2] = {0};
	hcomm_domain d[2], x;
	struct hc_node n;

	hc_node_start(&n, 2, NULL);
	form(s, d, 2, NULL);
	refused(hcomm_sub(d[0], list, 0, 1, NULL, 100, &x), HCOMM_E_INVALID, "count is 0");
	refused(hcomm_sub(d[0], NULL, 1, 1, NULL, 100, &x), HCOMM_E_INVALID, "NULL");
	refused(hcomm_sub(d[0], list, 1, 1, NULL, 100, NULL), HCOMM_E_INVALID, "NULL");
	refused(hcomm_sub(d[0], list, 3, 1, NULL, 100, &x), HCOMM_E_INVALID, "ranks[2] is 2");
	refused(hcomm_sub(d[0], list + 1, 1, 1, NULL, 100, &x), HCOMM_E_INVALID, "not in the list");
	refused(hcomm_sub(d[0], list, 1, 1, NULL, -4, &x), HCOMM_E_INVALID, "timeout_ms is -4");
	refused(hcomm_sub(d[0], list, 2, 1, NULL, 200, &x), HCOMM_E_TIMEOUT, "1");
	refused(hcomm_sub(d[0] + 1, list, 1, 1, NULL, 100, &x), HCOMM_E_GONE, "handle");
	refused(hcomm_sub(0, list, 1, 1, NULL, 100, &x), HCOMM_E_GONE, "handle");
	works(hcomm_join(NULL, NULL, 1, 0, 0, NULL, 100, &x));
	refused(hcomm_sub(x, list, 1, 1, NULL, 100, &d[0]), HCOMM_E_NOT_SUPPORTED, "one rank");
	works(hcomm_leave(x, 100));
	close_all(s, 2);
	hc_node_end(&n);
}
END_TEST

START_TEST(the_nth_allocation_fails_and_the_next_try_works)
{
	static const uint32_t list[] = {0};
	struct hcomm_session *s = NULL;
	hcomm_domain d, sub;
	struct hc_node node;
	int n, r;

	hc_node_start(&node, 1, NULL);
	form(&s, &d, 1, NULL);
	for (n = 0;; n++) {
		hc_failing_begin(n);
		r = hcomm_sub(d, list, 1, (uint64_t)n, NULL, 5000, &sub);
		if (!hc_failing_end() || !r)
			break;
		ck_assert_int_eq(r, HCOMM_E_NO_MEMORY);
	}
	works(r);
	ck_assert_int_eq(n > 0, HC_FAILING_WORKS);
	hcomm_close(s);
	hc_node_end(&node);
}
END_TEST

TESTS("hcomm_sub", the_index_in_the_list_is_the_new_rank, a_list_that_differs_fails_on_every_rank,
      started_it_ends_with_an_event, refusals, the_nth_allocation_fails_and_the_next_try_works)
