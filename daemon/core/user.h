/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is charged to a uid.
 *
 * A domain is charged to its owner: once at its home, once at the part on each node, each against
 * quota_domains. A domain of one node is both, so its owner may have quota_domains of them; a
 * domain whose home is elsewhere counts here as a part alone. A user is known while anything is
 * charged to it, so the table needs no more places than there can be homes and parts.
 */
#ifndef HC_USER_H
#define HC_USER_H

#include "state.h"

enum hc_charge { HC_CHARGE_HOME, HC_CHARGE_PART };

/* May uid have one more? 0, or LIMIT: the node is full, or the quota, its value and the uid. */
int hc_user_may(const struct hc_core *c, uint32_t uid, enum hc_charge what, char *text,
		size_t bytes);
void hc_user_charge(struct hc_core *c, uint32_t uid, enum hc_charge what);
void hc_user_release(struct hc_core *c, uint32_t uid, enum hc_charge what);

enum hc_hold { HC_HOLD_CHANNELS, HC_HOLD_WAITING, HC_HOLD_MEMORY /* KiB */ };

/* May uid hold that much more? 0, or LIMIT with the quota, its value and the uid. */
int hc_user_may_hold(const struct hc_core *c, uint32_t uid, enum hc_hold what, uint64_t amount,
		     char *text, size_t bytes);
void hc_user_hold(struct hc_core *c, uint32_t uid, enum hc_hold what, uint64_t amount);
void hc_user_unhold(struct hc_core *c, uint32_t uid, enum hc_hold what, uint64_t amount);

#endif
