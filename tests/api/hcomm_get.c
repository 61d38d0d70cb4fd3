/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hcomm_get: waits until somebody has put it; says what is missing when nobody does.
 */
#include "apitest.h"
#include "failing.h"

#include <pthread.h>

enum { GETTERS = 400, BYTES = 32768 };

struct call {
	hcomm_domain domain;
	int timeout_ms, result;
	uint32_t bytes;
	char text[HCOMM_TEXT_BYTES];
	uint8_t value[BYTES];
};

static void *call_get(void *arg)
{
	struct call *c = arg;

	c->bytes = sizeof(c->value);
	c->result = hcomm_get(c->domain, "key", c->value, &c->bytes, c->timeout_ms);
	snprintf(c->text, sizeof(c->text), "%s", hcomm_last_error());
	return NULL;
}

/*
 * Many threads of one process, and a long value: more than may be queued for it at once. Those that
 * wait for their turn must not keep the reader's role from those whose turn it is.
 */
START_TEST(all_who_wait_get_it)
{
	static struct call c[GETTERS];
	static uint8_t value[BYTES];
	struct hcomm_session *s[2] = {0};
	pthread_t threads[GETTERS];
	hcomm_domain d[2];
	struct hc_node n;
	unsigned i;

	memset(value, 0x5a, sizeof(value));
	hc_node_start(&n, 2, NULL);
	form(s, d, 2, NULL);
	for (i = 0; i < GETTERS; i++) {
		c[i] = (struct call){.domain = d[0], .timeout_ms = 30000};
		ck_assert_int_eq(pthread_create(&threads[i], NULL, call_get, &c[i]), 0);
	}
	/* some of them have asked, some have not */
	works(hcomm_put(d[1], "another", value, 10));
	works(hcomm_put(d[1], "key", value, BYTES));
	for (i = 0; i < GETTERS; i++) {
		pthread_join(threads[i], NULL);
		ck_assert_msg(!c[i].result, "%s", c[i].text);
		ck_assert_uint_eq(c[i].bytes, BYTES);
		ck_assert_int_eq(memcmp(c[i].value, value, BYTES), 0);
	}
	close_all(s, 2);
	hc_node_end(&n);
}
END_TEST

START_TEST(what_is_not_there)
{
	struct hcomm_session *s[2] = {0};
	uint32_t bytes = 4;
	hcomm_domain d[2], x;
	uint8_t value[8];
	struct hc_node n;

	hc_node_start(&n, 2, NULL);
	form(s, d, 2, NULL);
	refused(hcomm_get(d[0], "key", value, &bytes, HCOMM_START), HCOMM_E_NOT_FOUND, "key key");
	refused(hcomm_get(d[0], "key", value, &bytes, 100), HCOMM_E_TIMEOUT, "the key key");
	works(hcomm_put(d[1], "key", "12345", 5));
	refused(hcomm_get(d[0], "key", value, &bytes, 100), HCOMM_E_BUFFER_OVERFLOW, "5 bytes");
	ck_assert_uint_eq(bytes, 5);
	works(hcomm_get(d[0], "key", value, &bytes, 100));
	/* how long is it? */
	bytes = 0;
	refused(hcomm_get(d[0], "key", NULL, &bytes, 100), HCOMM_E_BUFFER_OVERFLOW, "5 bytes");
	refused(hcomm_get(d[0], "key", value, NULL, 100), HCOMM_E_INVALID, "NULL");
	refused(hcomm_get(d[0], "key", NULL, &bytes, 100), HCOMM_E_INVALID, "NULL");
	refused(hcomm_get(d[0], "k y", value, &bytes, 100), HCOMM_E_INVALID, "key");
	refused(hcomm_get(d[0], "key", value, &bytes, -3), HCOMM_E_INVALID, "timeout_ms is -3");
	refused(hcomm_get(0, "key", value, &bytes, 100), HCOMM_E_GONE, "handle");
	works(hcomm_join(NULL, NULL, 1, 0, 0, NULL, 100, &x));
	refused(hcomm_get(x, "key", value, &bytes, HCOMM_START), HCOMM_E_NOT_FOUND, "key");
	refused(hcomm_get(x, "key", value, &bytes, 100), HCOMM_E_TIMEOUT, "key");
	works(hcomm_leave(x, 100));
	close_all(s, 2);
	hc_node_end(&n);
}
END_TEST

START_TEST(the_end_of_the_domain_ends_the_wait)
{
	static struct call c;
	struct hcomm_session *s[2] = {0};
	hcomm_domain d[2];
	pthread_t thread;
	struct hc_node n;

	hc_node_start(&n, 2, NULL);
	form(s, d, 2, NULL);
	c = (struct call){.domain = d[0], .timeout_ms = 60000};
	ck_assert_int_eq(pthread_create(&thread, NULL, call_get, &c), 0);
	works(hcomm_abort(d[1], "as told"));
	pthread_join(thread, NULL);
	ck_assert_int_eq(c.result, HCOMM_E_DAMAGED);
	ck_assert_ptr_nonnull(strstr(c.text, "as told"));
	close_all(s, 2);
	hc_node_end(&n);
}
END_TEST

START_TEST(the_nth_allocation_fails_and_the_next_try_works)
{
	static uint8_t value[BYTES];
	struct hcomm_session *s = NULL;
	uint32_t bytes;
	struct hc_node node;
	hcomm_domain d;
	int n, r;

	hc_node_start(&node, 1, NULL);
	form(&s, &d, 1, NULL);
	works(hcomm_put(d, "key", value, BYTES));
	for (n = 0;; n++) {
		bytes = BYTES;
		hc_failing_begin(n);
		r = hcomm_get(d, "key", value, &bytes, 5000);
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

TESTS("hcomm_get", all_who_wait_get_it, what_is_not_there, the_end_of_the_domain_ends_the_wait,
      the_nth_allocation_fails_and_the_next_try_works)
