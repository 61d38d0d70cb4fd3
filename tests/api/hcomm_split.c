/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hcomm_split: colours make groups, keys their order.
 */
#include "apitest.h"

#include <pthread.h>

struct call {
	hcomm_domain parent, sub;
	int32_t color, key;
	int result;
	char text[HCOMM_TEXT_BYTES];
};

static void *call_split(void *arg)
{
	struct call *c = arg;

	c->result = hcomm_split(c->parent, c->color, c->key, NULL, 20000, &c->sub);
	snprintf(c->text, sizeof(c->text), "%s", hcomm_last_error());
	return NULL;
}

START_TEST(colours_make_groups_and_keys_their_order)
{
	static const int32_t colors[] = {1, 0, 1, -1, 0}, keys[] = {5, 0, 3, 0, 0};
	static const uint32_t ranks[] = {1, 0, 0, 0, 1};
	struct hcomm_session *s[5] = {0};
	struct call c[5];
	pthread_t threads[5];
	hcomm_domain d[5];
	struct hc_node n;
	uint32_t v;
	int i;

	hc_node_start(&n, 5, NULL);
	form(s, d, 5, NULL);
	for (i = 0; i < 5; i++) {
		c[i] = (struct call){.parent = d[i], .sub = 1, .color = colors[i], .key = keys[i]};
		ck_assert_int_eq(pthread_create(&threads[i], NULL, call_split, &c[i]), 0);
	}
	for (i = 0; i < 5; i++) {
		pthread_join(threads[i], NULL);
		ck_assert_msg(!c[i].result, "rank %d: %s", i, c[i].text);
	}
	ck_assert_uint_eq(c[3].sub, 0); /* in none */
	for (i = 0; i < 5; i++) {
		if (colors[i] < 0)
			continue;
		works(hcomm_rank(c[i].sub, &v));
		ck_assert_uint_eq(v, ranks[i]);
		works(hcomm_nranks(c[i].sub, &v));
		ck_assert_uint_eq(v, 2);
	}
	ck_assert_uint_eq(id_of(c[0].sub), id_of(c[2].sub));
	ck_assert_uint_eq(id_of(c[1].sub), id_of(c[4].sub));
	ck_assert_uint_ne(id_of(c[0].sub), id_of(c[1].sub));
	close_all(s, 5);
	hc_node_end(&n);
}
END_TEST

static unsigned done;

static void on_event(const struct hcomm_event *e, void *context)
{
	(void)context;
	done += e->code == HCOMM_EV_JOIN_DONE;
}

START_TEST(started_both_requests_go_on_by_themselves)
{
	struct hcomm_session *s[2] = {0};
	hcomm_domain d[2], sub[2];
	struct hc_node n;
	uint32_t i, v;

	hc_node_start(&n, 2, NULL);
	form(s, d, 2, NULL);
	for (i = 0; i < 2; i++) {
		works(hcomm_on_event(s[i], on_event, NULL));
		refused(hcomm_split(d[i], 3, -(int32_t)i, NULL, HCOMM_START, &sub[i]),
			HCOMM_E_IN_PROGRESS, "event");
		ck_assert_int_eq(state_of(sub[i]), HCOMM_FORMING);
	}
	await_active(s, sub, 2);
	ck_assert_uint_eq(done, 2);
	works(hcomm_rank(sub[0], &v));
	ck_assert_uint_eq(v, 1); /* the lower key goes first */
	close_all(s, 2);
	hc_node_end(&n);
}
END_TEST

START_TEST(a_started_split_into_no_group_ends_too)
{
	struct hcomm_session *s = NULL;
	uint64_t end = hc_now_ms() + hc_patience(10000);
	hcomm_domain d, sub;
	struct hc_node n;

	hc_node_start(&n, 1, NULL);
	form(&s, &d, 1, NULL);
	works(hcomm_on_event(s, on_event, NULL));
	ck_assert_int_eq(hcomm_split(d, -1, 0, NULL, HCOMM_START, &sub), HCOMM_E_IN_PROGRESS);
	while (!done) {
		ck_assert_int_ge(hcomm_dispatch(s, 100), 0);
		ck_assert_uint_lt(hc_now_ms(), end);
	}
	refused(hcomm_nranks(sub, &(uint32_t){0}), HCOMM_E_GONE, "handle");
	hcomm_close(s);
	hc_node_end(&n);
}
END_TEST

START_TEST(refusals)
{
	struct hcomm_session *s[2] = {0};
	hcomm_domain d[2], x;
	struct hc_node n;

	hc_node_start(&n, 2, NULL);
	form(s, d, 2, NULL);
	refused(hcomm_split(d[0], 0, 0, NULL, 100, NULL), HCOMM_E_INVALID, "domain is NULL");
	refused(hcomm_split(d[0], 0, 0, NULL, -4, &x), HCOMM_E_INVALID, "timeout_ms is -4");
	refused(hcomm_split(1, 0, 0, NULL, 100, &x), HCOMM_E_GONE, "handle");
	refused(hcomm_split(d[0], 0, 0, NULL, 200, &x), HCOMM_E_TIMEOUT, "1");
	close_all(s, 2);
	hc_node_end(&n);
}
END_TEST

TESTS("hcomm_split", colours_make_groups_and_keys_their_order,
      started_both_requests_go_on_by_themselves, a_started_split_into_no_group_ends_too, refusals)
