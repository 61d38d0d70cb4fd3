/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hcomm_check_version: older programs may use this library, newer ones hear what to upgrade.
 */
#include "apitest.h"

#define V(a, b, c) ((uint32_t)(a) << 16 | (uint32_t)(b) << 8 | (uint32_t)(c))

START_TEST(older_is_served_and_newer_is_told_what_to_upgrade)
{
	works(hcomm_check_version(HCOMM_VERSION));
	works(hcomm_check_version(V(HCOMM_VERSION_MAJOR, 0, 0)));
	works(hcomm_check_version(V(HCOMM_VERSION_MAJOR, HCOMM_VERSION_MINOR, 255)));
	refused(hcomm_check_version(V(HCOMM_VERSION_MAJOR, HCOMM_VERSION_MINOR + 3, 1)),
		HCOMM_E_VERSION, "upgrade hcomm");
	refused(hcomm_check_version(V(HCOMM_VERSION_MAJOR, HCOMM_VERSION_MINOR + 3, 1)),
		HCOMM_E_VERSION, hcomm_version());
	refused(hcomm_check_version(V(9, 7, 5)), HCOMM_E_VERSION, "9.7.5");
}
END_TEST

TESTS("hcomm_check_version", older_is_served_and_newer_is_told_what_to_upgrade)
