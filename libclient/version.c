/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which version this is, and whether a program may use it.
 *
 * Within one major number the library only grows, so it serves every program built with the same
 * minor number or an older one. The soname changes with the major number (0 stands for the series
 * before it); a program built with another one has the wrong library in front of it.
 */
#include "client.h"

#define MAJOR(v) ((v) >> 16)
#define MINOR(v) ((v) >> 8 & 0xff)
#define PATCH(v) ((v)&0xff)

HC_EXPORT const char *hcomm_version(void)
{
	return HC_VERSION;
}

HC_EXPORT uint32_t hcomm_version_number(void)
{
	return HCOMM_VERSION;
}

HC_EXPORT int hcomm_check_version(uint32_t built_with)
{
	uint32_t have = HCOMM_VERSION;
	bool newer = MAJOR(built_with) > MAJOR(have) ||
		     (MAJOR(built_with) == MAJOR(have) && MINOR(built_with) > MINOR(have));

	if (MAJOR(built_with) == MAJOR(have) && !newer)
		return 0;
	return -hc_refuse(HC_E_VERSION,
			  "found libhcomm %s, the program was built with %u.%u.%u: %s", HC_VERSION,
			  MAJOR(built_with), MINOR(built_with), PATCH(built_with),
			  newer ? "upgrade hcomm" : "build the program anew");
}
