/* SPDX-License-Identifier: Apache-2.0 */
/* What is charged to a uid; see user.h. */
#include "user.h"

#include <stdio.h>
#include <string.h>

int hc_user_may(const struct hc_core *c, uint32_t uid, enum hc_charge what, char *text,
		size_t bytes)
{
	const struct hc_pool *pool = what == HC_CHARGE_HOME ? &c->home_pool : &c->part_pool;
	const uint32_t n = hc_index_find(&c->user_index, uid);

	if (pool->used >= c->lim.domains) {
		snprintf(text, bytes, "domains_max (%u) is reached on this node", c->lim.domains);
		return HC_E_LIMIT;
	}
	/* what is taken back at a start was within the quota of its time */
	if (n == HC_NONE || !c->started || c->users[n].charged[what] < c->lim.quota_domains)
		return 0;
	snprintf(text, bytes,
		 "uid %u has %u domains on this node, which is quota_domains (%u); end one of them",
		 uid, c->users[n].charged[what], c->lim.quota_domains);
	return HC_E_LIMIT;
}

void hc_user_charge(struct hc_core *c, uint32_t uid, enum hc_charge what)
{
	uint32_t n = hc_index_find(&c->user_index, uid);

	if (n == HC_NONE) {
		n = hc_pool_get(&c->user_pool);
		hc_assert(n != HC_NONE);
		memset(&c->users[n], 0, sizeof(c->users[n]));
		c->users[n].uid = uid;
		hc_index_add(&c->user_index, n);
	}
	c->users[n].charged[what]++;
}

void hc_user_release(struct hc_core *c, uint32_t uid, enum hc_charge what)
{
	const uint32_t n = hc_index_find(&c->user_index, uid);

	hc_assert(n != HC_NONE && c->users[n].charged[what]);
	c->users[n].charged[what]--;
	if (c->users[n].charged[HC_CHARGE_HOME] || c->users[n].charged[HC_CHARGE_PART])
		return;
	hc_index_del(&c->user_index, n);
	hc_pool_put(&c->user_pool, n);
}
