/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Channels of the command line's own: what `channel hold` and `perf` share.
 *
 * Both have a domain of two ranks of their own, on two devices that the caller names or that
 * nobody uses.
 */
#ifndef HC_CTL_CHANNEL_H
#define HC_CTL_CHANNEL_H

#include "ctl.h"

int ctl_channel_hold(struct ctl *c);

/* ---- pair.c ---- */
/* The two devices of --devices, or two that nobody uses. Opens the session. An exit status, and
 * said why. */
int ctl_pair_devices(struct ctl *c, uint32_t devices[2]);
/* --name, --class and --weight. False: said why. */
bool ctl_pair_config(const struct ctl *c, struct hcomm_config *config);
/* Value of a numeric option, `otherwise` when it was not given. False: said why. */
bool ctl_opt_number(const struct ctl *c, const char *name, uint32_t lo, uint32_t hi,
		    uint32_t otherwise, uint32_t *out);

#endif
