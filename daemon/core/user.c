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

static uint32_t known(struct hc_core *c, uint32_t uid)
{
	uint32_t n = hc_index_find(&c->user_index, uid);

	if (n == HC_NONE) {
		n = hc_pool_get(&c->user_pool);
		hc_assert(n != HC_NONE);
		memset(&c->users[n], 0, sizeof(c->users[n]));
		hc_index_add(&c->user_index, uid, n);
	}
	return n;
}

static void forget(struct hc_core *c, uint32_t n)
{
	const struct hc_user *u = &c->users[n];

	if (u->charged[HC_CHARGE_HOME] || u->charged[HC_CHARGE_PART] || u->held[0] || u->held[1] ||
	    u->held[2])
		return;
	hc_index_del(&c->user_index, n);
	hc_pool_put(&c->user_pool, n);
}

void hc_user_charge(struct hc_core *c, uint32_t uid, enum hc_charge what)
{
	c->users[known(c, uid)].charged[what]++;
}

void hc_user_release(struct hc_core *c, uint32_t uid, enum hc_charge what)
{
	const uint32_t n = hc_index_find(&c->user_index, uid);

	hc_assert(n != HC_NONE && c->users[n].charged[what]);
	c->users[n].charged[what]--;
	forget(c, n);
}

/* ---- channels ---- */

int hc_user_may_hold(const struct hc_core *c, uint32_t uid, enum hc_hold what, uint64_t amount,
		     char *text, size_t bytes)
{
	static const char *const name[] = {"quota_channels", "quota_waiting", "quota_memory_mib"};
	static const char *const unit[] = {"channels", "requests that wait", "KiB of rings"};
	const uint32_t n = hc_index_find(&c->user_index, uid);
	const uint64_t limit[] = {c->lim.quota_channels, c->lim.quota_waiting,
				  (uint64_t)c->lim.quota_memory_mib * 1024u};
	const uint64_t held = n == HC_NONE ? 0 : c->users[n].held[what];

	/* what is taken back at a start was within the quota of its time */
	if (!c->started || held + amount <= limit[what])
		return 0;
	snprintf(text, bytes, "uid %u has %llu %s on this node, with %llu more it would be above "
			      "%s (%llu%s)",
		 uid, (unsigned long long)held, unit[what], (unsigned long long)amount, name[what],
		 (unsigned long long)(what == HC_HOLD_MEMORY ? limit[what] / 1024u : limit[what]),
		 what == HC_HOLD_MEMORY ? " MiB" : "");
	return HC_E_LIMIT;
}

void hc_user_hold(struct hc_core *c, uint32_t uid, enum hc_hold what, uint64_t amount)
{
	if (amount)
		c->users[known(c, uid)].held[what] += amount;
}

void hc_user_unhold(struct hc_core *c, uint32_t uid, enum hc_hold what, uint64_t amount)
{
	const uint32_t n = hc_index_find(&c->user_index, uid);

	if (!amount)
		return;
	hc_assert(n != HC_NONE && c->users[n].held[what] >= amount);
	c->users[n].held[what] -= amount;
	forget(c, n);
}
