/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hcomm_to_hccl: the same outcome as HcclResult. Every row is written out, since programs built
 * against HCCL's header compare with these numbers.
 */
#include "apitest.h"

START_TEST(every_error_has_its_result)
{
	static const int want[] = {0,  1, 5,  7,  5,  7,  9, 20, 20, 9, 6, 6, 1, 20, 1, 19, 7,
				   20, 3, 22, 21, 21, 21, 5, 3,  20, 7, 8, 3, 7, 8,  4, 9,  20};
	int e;

	ck_assert_uint_eq(sizeof(want) / sizeof(want[0]), 1 - HCOMM_E_PEER_CLOSED);
	for (e = 0; e >= HCOMM_E_PEER_CLOSED; e--)
		ck_assert_msg(hcomm_to_hccl(e) == want[-e], "%s gives %d; wanted %d",
			      hcomm_error_name(e), hcomm_to_hccl(e), want[-e]);
	ck_assert_int_eq(hcomm_to_hccl(-99), 4);
	ck_assert_int_eq(hcomm_to_hccl(99), 4);
}
END_TEST

TESTS("hcomm_to_hccl", every_error_has_its_result)
