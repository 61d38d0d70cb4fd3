/* SPDX-License-Identifier: Apache-2.0 */
/* Judge of quota_link_percent, for worlds and the simulator: see worldquota.c. */
#ifndef HC_WORLDQUOTA_H
#define HC_WORLDQUOTA_H

#include "core.h"

/* What is wrong, or NULL. */
const char *quota_wrong(struct hc_core *c, uint32_t percent);

#endif
