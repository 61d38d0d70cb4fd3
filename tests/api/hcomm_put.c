/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hcomm_put: a value is there for all ranks, whole, and the last one put stays.
 */
#include "apitest.h"
#include "failing.h"

START_TEST(every_length_comes_back_as_it_was)
{
	static const uint32_t lengths[] = {0, 1, 1023, 1024, 1025, 4096, 32767, 32768};
	static uint8_t value[HCOMM_VALUE_BYTES], got[HCOMM_VALUE_BYTES];
	struct hcomm_session *s[2] = {0};
	hcomm_domain d[2];
	struct hc_node n;
	uint32_t bytes;
	size_t i, k;

	hc_node_start(&n, 2, NULL);
	form(s, d, 2, NULL);
	for (i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		for (k = 0; k < lengths[i]; k++)
			value[k] = (uint8_t)(k * 7 + i);
		/* the same key again: replaced */
		works(hcomm_put(d[0], "key", lengths[i] ? value : NULL, lengths[i]));
		bytes = sizeof(got);
		works(hcomm_get(d[1], "key", got, &bytes, HCOMM_START));
		ck_assert_uint_eq(bytes, lengths[i]);
		ck_assert_int_eq(memcmp(got, value, bytes), 0);
	}
	/* the other rank replaces it, too */
	works(hcomm_put(d[1], "key", "new", 3));
	bytes = sizeof(got);
	works(hcomm_get(d[0], "key", got, &bytes, HCOMM_START));
	ck_assert_uint_eq(bytes, 3);
	close_all(s, 2);
	hc_node_end(&n);
}
END_TEST

START_TEST(the_quota_is_named_and_comes_back)
{
	static uint8_t value[HCOMM_VALUE_BYTES];
	struct hcomm_session *s = NULL;
	hcomm_domain d;
	struct hc_node n;
	char key[32];
	int i, r = 0;

	hc_node_start(&n, 1, "quota_memory_mib = 1");
	form(&s, &d, 1, NULL);
	for (i = 0; !r && i < 64; i++) {
		snprintf(key, sizeof(key), "key-%d", i);
		r = hcomm_put(d, key, value, sizeof(value));
	}
	ck_assert_int_eq(r, HCOMM_E_LIMIT);
	ck_assert_ptr_nonnull(strstr(hcomm_last_error(), "quota_memory_mib is 1"));
	ck_assert_int_eq(i, 32); /* 31 of them with their entries are a MiB less a bit */
	/* a shorter value in the place of a long one is always possible, and makes room */
	works(hcomm_put(d, "key-0", "x", 1));
	works(hcomm_put(d, "key-31", value, 16384));
	works(hcomm_leave(d, 5000));
	form(&s, &d, 1, NULL);
	works(hcomm_put(d, key, value, sizeof(value)));
	hcomm_close(s);
	hc_node_end(&n);
}
END_TEST

START_TEST(refusals)
{
	struct hcomm_session *s[2] = {0};
	char key[HCOMM_NAME_BYTES + 1];
	hcomm_domain d[2], x;
	struct hc_node n;
	uint32_t bytes = 8;

	memset(key, 'k', sizeof(key));
	key[sizeof(key) - 1] = '\0';
	hc_node_start(&n, 2, NULL);
	form(s, d, 2, NULL);
	refused(hcomm_put(d[0], NULL, "v", 1), HCOMM_E_INVALID, "key has 0 bytes");
	refused(hcomm_put(d[0], "", "v", 1), HCOMM_E_INVALID, "key has 0 bytes");
	refused(hcomm_put(d[0], "a b", "v", 1), HCOMM_E_INVALID, "without blanks");
	refused(hcomm_put(d[0], "a\xff", "v", 1), HCOMM_E_INVALID, "printable");
	refused(hcomm_put(d[0], key, "v", 1), HCOMM_E_INVALID, "key has 128 bytes");
	key[HCOMM_NAME_BYTES - 1] = '\0';
	works(hcomm_put(d[0], key, "v", 1));
	refused(hcomm_put(d[0], "hcomm/x", "v", 1), HCOMM_E_INVALID, "the library's");
	refused(hcomm_put(d[0], "k", "v", HCOMM_VALUE_BYTES + 1), HCOMM_E_INVALID, "32768");
	refused(hcomm_put(d[0], "k", NULL, 1), HCOMM_E_INVALID, "value");
	refused(hcomm_put(0, "k", "v", 1), HCOMM_E_GONE, "handle");
	works(hcomm_abort(d[1], "as told"));
	while (state_of(d[0]) != HCOMM_DAMAGED)
		ck_assert_int_ge(hcomm_dispatch(s[0], 1), 0);
	refused(hcomm_put(d[0], "k", "v", 1), HCOMM_E_DAMAGED, "as told");
	/* a rank without a daemon has a table of its own */
	works(hcomm_join(NULL, NULL, 1, 0, 0, NULL, 100, &x));
	works(hcomm_put(x, "k", "old", 3));
	works(hcomm_put(x, "k", "newer", 5));
	works(hcomm_get(x, "k", key, &bytes, 10));
	ck_assert_uint_eq(bytes, 5);
	works(hcomm_leave(x, 100));
	close_all(s, 2);
	hc_node_end(&n);
}
END_TEST

START_TEST(the_nth_allocation_fails_and_the_next_try_works)
{
	struct hcomm_session *s = NULL;
	struct hc_node node;
	hcomm_domain d;
	int n, r;

	hc_node_start(&node, 1, NULL);
	form(&s, &d, 1, NULL);
	for (n = 0;; n++) {
		hc_failing_begin(n);
		r = hcomm_put(d, "key", "value", 5);
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

TESTS("hcomm_put", every_length_comes_back_as_it_was, the_quota_is_named_and_comes_back, refusals,
      the_nth_allocation_fails_and_the_next_try_works)
