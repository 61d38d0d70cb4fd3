/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hcomm_mem_unregister: the range is gone, and its place is used again.
 */
#include "apitest.h"

#define AT(x) ((void *)(uintptr_t)(x))

START_TEST(gone_for_all_who_read_again)
{
	struct hcomm_session *s[2] = {0};
	hcomm_domain d[2];
	struct hc_node n;
	uint64_t key;
	int i;

	hc_node_start(&n, 2, NULL);
	form(s, d, 2, NULL);
	for (i = 0; i < 300; i++) { /* many times over, one place */
		works(hcomm_mem_register(d[0], AT(0x1000), 0x1000, HCOMM_MEM_HOST, 1));
		works(hcomm_mem_unregister(d[0], AT(0x1000)));
	}
	refused(hcomm_mem_lookup(d[1], 0, 0x1000, 1, &key), HCOMM_E_NOT_FOUND, "(0 ranges)");
	refused(hcomm_mem_lookup(d[0], 0, 0x1000, 1, &key), HCOMM_E_NOT_FOUND, "(0 ranges)");
	refused(hcomm_mem_unregister(d[0], AT(0x1000)), HCOMM_E_NOT_FOUND, "0x1000");
	works(hcomm_mem_register(d[0], AT(0x1000), 0x1000, HCOMM_MEM_HOST, 2));
	/* by its beginning alone, and by its owner */
	refused(hcomm_mem_unregister(d[0], AT(0x1001)), HCOMM_E_NOT_FOUND, "0x1001");
	refused(hcomm_mem_unregister(d[1], AT(0x1000)), HCOMM_E_NOT_FOUND, "0x1000");
	refused(hcomm_mem_unregister(0, AT(0x1000)), HCOMM_E_GONE, "handle");
	works(hcomm_mem_lookup(d[1], 0, 0x1000, 1, &key));
	ck_assert_uint_eq(key, 2);
	close_all(s, 2);
	hc_node_end(&n);
}
END_TEST

TESTS("hcomm_mem_unregister", gone_for_all_who_read_again)
