/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is charged to a uid.
 *
 * A domain is charged to its owner: once at its home, once at the part on each node, each against
 * quota_domains. A domain of one node is both, so its owner may have quota_domains of them; a
 * domain whose home is elsewhere counts here as a part alone.
 *
 * Shared memory is charged in bytes, against quota_memory_mib: values of the exchange, sync pages,
 * rings of channels. It hangs on domains of that owner, and may be let go a little after them.
 *
 * A user is known while anything is charged to it, so the table needs no more places than there
 * can be homes, parts, domains of which memory is left, and requests for channels that wait.
 */
#ifndef HC_USER_H
#define HC_USER_H

#include "state.h"

enum hc_charge { HC_CHARGE_HOME, HC_CHARGE_PART };

#define HC_USERS(domains) (3 * (domains)) /* places of the table */

/* May uid have one more? 0; AGAIN: the node is drained; LIMIT: it is full, or the quota, its value
 * and the uid. */
int hc_user_may(const struct hc_core *c, uint32_t uid, enum hc_charge what, char *text,
		size_t bytes);
void hc_user_charge(struct hc_core *c, uint32_t uid, enum hc_charge what);
void hc_user_release(struct hc_core *c, uint32_t uid, enum hc_charge what);
/* The same for bytes of shared memory. 0, or LIMIT: quota_memory_mib, its value and the uid. */
int hc_user_may_memory(const struct hc_core *c, uint32_t uid, uint64_t bytes, char *text,
		       size_t size);
void hc_user_charge_memory(struct hc_core *c, uint32_t uid, uint64_t bytes);
void hc_user_release_memory(struct hc_core *c, uint32_t uid, uint64_t bytes);
/* One client more, or less, that waits for the exchange of a domain of uid. */
void hc_user_wait(struct hc_core *c, uint32_t uid, int by);
uint32_t hc_user_waits(const struct hc_core *c, uint32_t uid);
uint64_t hc_user_memory(const struct hc_core *c, uint32_t uid);

enum hc_hold { HC_HOLD_CHANNELS, HC_HOLD_WAITING };

/* May uid hold that much more? 0, or LIMIT with the quota, its value and the uid. */
int hc_user_may_hold(const struct hc_core *c, uint32_t uid, enum hc_hold what, uint32_t amount,
		     char *text, size_t bytes);
void hc_user_hold(struct hc_core *c, uint32_t uid, enum hc_hold what, uint32_t amount);
void hc_user_unhold(struct hc_core *c, uint32_t uid, enum hc_hold what, uint32_t amount);

#endif
