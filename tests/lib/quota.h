/* SPDX-License-Identifier: Apache-2.0 */
/* Judge of quota_link_percent, for worlds and the simulator: see quota.c. */
#ifndef HC_TEST_QUOTA_H
#define HC_TEST_QUOTA_H

#include "core.h"

/* What is wrong, or NULL. */
const char *quota_wrong(struct hc_core *c, uint32_t percent);

#endif
