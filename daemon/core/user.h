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

/* May uid have one more? 0; AGAIN: the node is drained; LIMIT: it is full, or the quota, its value
 * and the uid. */
int hc_user_may(const struct hc_core *c, uint32_t uid, enum hc_charge what, char *text,
		size_t bytes);
void hc_user_charge(struct hc_core *c, uint32_t uid, enum hc_charge what);
void hc_user_release(struct hc_core *c, uint32_t uid, enum hc_charge what);

#endif
