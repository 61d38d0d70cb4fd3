/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hcomm_to_nccl: the same outcome as ncclResult_t. Every row is written out, since programs built
 * against NCCL's header compare with these numbers.
 */
#include "apitest.h"

START_TEST(every_error_has_its_result)
{
	static const int want[] = {0, 4, 5, 2, 5, 2, 6, 7, 7, 6, 4, 4, 4, 7, 5, 2, 2,
				   7, 3, 7, 6, 6, 6, 5, 3, 7, 2, 2, 2, 2, 2, 3, 6, 7};
	int e;

	ck_assert_uint_eq(sizeof(want) / sizeof(want[0]), 1 - HCOMM_E_PEER_CLOSED);
	for (e = 0; e >= HCOMM_E_PEER_CLOSED; e--)
		ck_assert_msg(hcomm_to_nccl(e) == want[-e], "%s gives %d; wanted %d",
			      hcomm_error_name(e), hcomm_to_nccl(e), want[-e]);
	ck_assert_int_eq(hcomm_to_nccl(-99), 3);
	ck_assert_int_eq(hcomm_to_nccl(99), 3);
}
END_TEST

TESTS("hcomm_to_nccl", every_error_has_its_result)
