/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hcomm_mem_register: ranges that do not overlap, as many as a job has.
 */
#include "apitest.h"
#include "failing.h"

#define AT(x) ((void *)(uintptr_t)(x))

START_TEST(ranges_side_by_side)
{
	struct hcomm_session *s[2] = {0};
	hcomm_domain d[2];
	struct hc_node n;
	uint64_t key, i;

	hc_node_start(&n, 2, NULL);
	form(s, d, 2, NULL);
	/* more than a page of the table, and than two */
	for (i = 1; i <= 300; i++)
		works(hcomm_mem_register(d[0], AT(i * 0x1000), 0x1000, HCOMM_MEM_HBM, 1000 + i));
	for (i = 1; i <= 300; i++) {
		works(hcomm_mem_lookup(d[1], 0, i * 0x1000, 0x1000, &key));
		ck_assert_uint_eq(key, 1000 + i);
	}
	refused(hcomm_mem_register(d[0], AT(0x1fff), 2, HCOMM_MEM_HOST, 1), HCOMM_E_EXISTS,
		"[0x1000, 0x2000)");
	refused(hcomm_mem_register(d[0], AT(0xff0), 0x11, HCOMM_MEM_HOST, 1), HCOMM_E_EXISTS,
		"[0x1000, 0x2000)");
	works(hcomm_mem_register(d[0], AT(0xff0), 0x10, HCOMM_MEM_HOST, 1));
	/* another rank has addresses of its own */
	works(hcomm_mem_register(d[1], AT(0x1000), 0x1000, HCOMM_MEM_DDR, 7));
	works(hcomm_mem_lookup(d[0], 1, 0x1000, 1, &key));
	ck_assert_uint_eq(key, 7);
	close_all(s, 2);
	hc_node_end(&n);
}
END_TEST

START_TEST(refusals)
{
	struct hcomm_session *s = NULL;
	struct hc_node node;
	hcomm_domain d, x;
	uint64_t key;
	int n, r;

	hc_node_start(&node, 1, NULL);
	form(&s, &d, 1, NULL);
	refused(hcomm_mem_register(d, AT(16), 0, HCOMM_MEM_HOST, 1), HCOMM_E_INVALID, "0 bytes");
	refused(hcomm_mem_register(d, AT(16), UINT64_MAX, HCOMM_MEM_HOST, 1), HCOMM_E_INVALID,
		"wrap");
	refused(hcomm_mem_register(d, AT(16), 1, 0, 1), HCOMM_E_INVALID, "kind is 0");
	refused(hcomm_mem_register(d, AT(16), 1, 4, 1), HCOMM_E_INVALID, "kind is 4");
	refused(hcomm_mem_register(0, AT(16), 1, HCOMM_MEM_HOST, 1), HCOMM_E_GONE, "handle");
	for (n = 0;; n++) {
		hc_failing_begin(n);
		r = hcomm_mem_register(d, AT(16), 16, HCOMM_MEM_HOST, 1);
		if (!hc_failing_end() || !r)
			break;
		/* and then nothing is registered */
		ck_assert_int_eq(r, HCOMM_E_NO_MEMORY);
	}
	works(r);
	ck_assert_int_eq(n > 0, HC_FAILING_WORKS);
	/* also without a daemon */
	works(hcomm_join(NULL, NULL, 1, 0, 0, NULL, 100, &x));
	works(hcomm_mem_register(x, AT(16), 16, HCOMM_MEM_HOST, 3));
	works(hcomm_mem_lookup(x, 0, 20, 4, &key));
	ck_assert_uint_eq(key, 3);
	works(hcomm_leave(x, 100));
	hcomm_close(s);
	hc_node_end(&node);
}
END_TEST

TESTS("hcomm_mem_register", ranges_side_by_side, refusals)
