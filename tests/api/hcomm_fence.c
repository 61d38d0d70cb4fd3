/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hcomm_fence: behind it each rank sees what any had put before.
 */
#include "apitest.h"
#include "failing.h"
#include "suite.h"

#include <pthread.h>

enum { RANKS = 3, ROUNDS = 20 };

struct call {
	hcomm_domain domain;
	unsigned rank;
	int timeout_ms, result;
	char text[HCOMM_TEXT_BYTES];
};

static void *call_fence(void *arg)
{
	struct call *c = arg;

	c->result = hcomm_fence(c->domain, c->timeout_ms);
	snprintf(c->text, sizeof(c->text), "%s", hcomm_last_error());
	return NULL;
}

static void *call_rounds(void *arg)
{
	struct call *c = arg;
	uint32_t bytes, got;
	char key[32];
	unsigned i, k;

	for (i = 0; i < ROUNDS && !c->result; i++) {
		snprintf(key, sizeof(key), "of-%u", c->rank);
		c->result = hcomm_put(c->domain, key, &i, sizeof(i));
		if (!c->result)
			c->result = hcomm_fence(c->domain, c->timeout_ms);
		for (k = 0; k < RANKS && !c->result; k++) {
			snprintf(key, sizeof(key), "of-%u", k);
			bytes = sizeof(got);
			c->result = hcomm_get(c->domain, key, &got, &bytes, HCOMM_START);
			/* the others may be a round ahead, and no more */
			if (!c->result && got != i && got != i + 1)
				c->result = HCOMM_E_INTERNAL;
		}
	}
	snprintf(c->text, sizeof(c->text), "%s", hcomm_last_error());
	return NULL;
}

START_TEST(what_was_put_before_is_seen_behind)
{
	struct hcomm_session *s[RANKS] = {0};
	pthread_t threads[RANKS];
	struct call c[RANKS];
	hcomm_domain d[RANKS];
	struct hc_node n;
	unsigned i;

	hc_node_start(&n, RANKS, NULL);
	form(s, d, RANKS, NULL);
	for (i = 0; i < RANKS; i++) {
		c[i] = (struct call){.domain = d[i], .rank = i, .timeout_ms = 20000};
		ck_assert_int_eq(pthread_create(&threads[i], NULL, call_rounds, &c[i]), 0);
	}
	for (i = 0; i < RANKS; i++) {
		pthread_join(threads[i], NULL);
		ck_assert_msg(!c[i].result, "rank %u: %s %s", i, hcomm_error_name(c[i].result),
			      c[i].text);
	}
	close_all(s, RANKS);
	hc_node_end(&n);
}
END_TEST

START_TEST(who_is_missing_is_named)
{
	struct hcomm_session *s[RANKS] = {0};
	hcomm_domain d[RANKS];
	pthread_t thread;
	struct hc_node n;
	struct call c;

	hc_node_start(&n, RANKS, NULL);
	form(s, d, RANKS, NULL);
	refused(hcomm_fence(d[1], 200), HCOMM_E_TIMEOUT, "no word from rank 0 2 (2 of 3)");
	/* who gave up is out of it */
	refused(hcomm_fence(d[2], 200), HCOMM_E_TIMEOUT, "no word from rank 0 1 (2 of 3)");
	c = (struct call){.domain = d[0], .timeout_ms = 60000};
	ck_assert_int_eq(pthread_create(&thread, NULL, call_fence, &c), 0);
	if (_i) {
		works(hcomm_abort(d[1], "as told"));
		pthread_join(thread, NULL);
		ck_assert_int_eq(c.result, HCOMM_E_DAMAGED);
		ck_assert_ptr_nonnull(strstr(c.text, "rank 1"));
	} else {
		works(hcomm_leave(d[1], 5000));
		pthread_join(thread, NULL);
		ck_assert_int_eq(c.result, HCOMM_E_GONE);
		ck_assert_ptr_nonnull(strstr(c.text, "rank 1"));
	}
	close_all(s, RANKS);
	hc_node_end(&n);
}
END_TEST

START_TEST(one_handle_for_all_ranks)
{
	struct hcomm_session *s;
	struct hc_node node;
	hcomm_domain d, x;
	int n, r;

	hc_node_start(&node, 4, NULL);
	s = open_session();
	works(hcomm_join_all_local(s, NULL, 0, NULL, 10000, &d));
	works(hcomm_fence(d, 1000));
	refused(hcomm_fence(d, HCOMM_START), HCOMM_E_INVALID, "timeout_ms is 0");
	refused(hcomm_fence(d, -2), HCOMM_E_INVALID, "timeout_ms is -2");
	refused(hcomm_fence(0, 10), HCOMM_E_GONE, "handle");
	works(hcomm_join(NULL, NULL, 1, 0, 0, NULL, 100, &x));
	works(hcomm_fence(x, 10));
	works(hcomm_leave(x, 100));
	for (n = 0;; n++) {
		hc_failing_begin(n);
		r = hcomm_fence(d, 5000);
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

static void add(TCase *t)
{
	tcase_add_test(t, what_was_put_before_is_seen_behind);
	tcase_add_loop_test(t, who_is_missing_is_named, 0, 2);
	tcase_add_test(t, one_handle_for_all_ranks);
}

int main(void)
{
	int status;

	hc_tests_begin();
	status = hc_suite_run("hcomm_fence", add, 60);
	hc_tests_end(status != 0);
	return status;
}
