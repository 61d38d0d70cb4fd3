/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hcomm_mem_lookup: the key of the range that holds all of it, or whose table lacks what.
 */
#include "apitest.h"

#define AT(x) ((void *)(uintptr_t)(x))

START_TEST(a_miss_says_whose_table_lacks_what)
{
	struct hcomm_session *s[2] = {0};
	hcomm_domain d[2];
	struct hc_node n;
	uint64_t key = 0;

	hc_node_start(&n, 2, NULL);
	form(s, d, 2, NULL);
	refused(hcomm_mem_lookup(d[0], 1, 0x1000, 16, &key), HCOMM_E_NOT_FOUND,
		"rank 1's table (0 ranges) has none that holds [0x1000, 0x1010)");
	works(hcomm_mem_register(d[1], AT(0x1000), 0x1000, HCOMM_MEM_HOST, 11));
	works(hcomm_mem_lookup(d[0], 1, 0x1000, 0x1000, &key));
	ck_assert_uint_eq(key, 11);
	/* what came later is found: a miss reads again */
	works(hcomm_mem_register(d[1], AT(0x4000), 0x1000, HCOMM_MEM_HOST, 12));
	works(hcomm_mem_lookup(d[0], 1, 0x4fff, 1, &key));
	ck_assert_uint_eq(key, 12);
	refused(hcomm_mem_lookup(d[0], 1, 0x1fff, 2, &key), HCOMM_E_NOT_FOUND,
		"rank 1's table (2 ranges) has none that holds [0x1fff, 0x2001)");
	refused(hcomm_mem_lookup(d[0], 0, 0x1000, 1, &key), HCOMM_E_NOT_FOUND,
		"rank 0's table (0 ranges)");
	/* its own, and one that is no rank */
	works(hcomm_mem_lookup(d[1], 1, 0x1000, 1, &key));
	refused(hcomm_mem_lookup(d[0], 2, 0x1000, 1, &key), HCOMM_E_INVALID, "rank is 2");
	refused(hcomm_mem_lookup(d[0], 1, 0x1000, 0, &key), HCOMM_E_INVALID, "bytes is 0");
	refused(hcomm_mem_lookup(d[0], 1, 2, UINT64_MAX, &key), HCOMM_E_INVALID, "wrap");
	refused(hcomm_mem_lookup(d[0], 1, 2, 1, NULL), HCOMM_E_INVALID, "NULL");
	refused(hcomm_mem_lookup(0, 1, 2, 1, &key), HCOMM_E_GONE, "handle");
	close_all(s, 2);
	hc_node_end(&n);
}
END_TEST

/* A process of two ranks has one table, which both of its ranks lead to. */
START_TEST(the_ranks_of_one_process_share_a_table)
{
	static const uint32_t ranks[] = {0, 1};
	struct hcomm_batch_item item = HCOMM_INIT(struct hcomm_batch_item);
	struct hcomm_session *s;
	hcomm_domain all;
	struct hc_node n;
	uint64_t key;

	hc_node_start(&n, 2, NULL);
	s = open_session();
	works(hcomm_join_all_local(s, NULL, 0, NULL, 10000, &all));
	item.ranks = ranks;
	item.count = 2;
	works(hcomm_batch(all, &item, 1, 10000));
	works(hcomm_mem_register(item.domain, AT(0x1000), 16, HCOMM_MEM_HOST, 5));
	works(hcomm_mem_lookup(item.domain, 0, 0x1000, 16, &key));
	works(hcomm_mem_lookup(item.domain, 1, 0x1000, 16, &key));
	ck_assert_uint_eq(key, 5);
	hcomm_close(s);
	hc_node_end(&n);
}
END_TEST

TESTS("hcomm_mem_lookup", a_miss_says_whose_table_lacks_what,
      the_ranks_of_one_process_share_a_table)
