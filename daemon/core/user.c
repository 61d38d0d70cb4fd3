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

	if (c->drain.on) {
		snprintf(text, bytes,
			 "node %s is being drained: it takes no new domains until a restart or "
			 "hcommctl drain --off",
			 c->self.name);
		return HC_E_AGAIN;
	}
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

/* Its number; added when it is new. */
static uint32_t user(struct hc_core *c, uint32_t uid)
{
	uint32_t n = hc_index_find(&c->user_index, uid);

	if (n != HC_NONE)
		return n;
	n = hc_pool_get(&c->user_pool);
	hc_assert(n != HC_NONE);
	memset(&c->users[n], 0, sizeof(c->users[n]));
	c->users[n].uid = uid;
	hc_index_add_in(&c->user_index, n);
	return n;
}

/* Known no longer once nothing is charged to it. */
static void settle(struct hc_core *c, uint32_t n)
{
	const struct hc_user *u = &c->users[n];

	if (u->charged[HC_CHARGE_HOME] || u->charged[HC_CHARGE_PART] || u->memory || u->waits ||
	    u->held[HC_HOLD_CHANNELS] || u->held[HC_HOLD_WAITING])
		return;
	hc_index_del(&c->user_index, n);
	hc_pool_put(&c->user_pool, n);
}

void hc_user_charge(struct hc_core *c, uint32_t uid, enum hc_charge what)
{
	c->users[user(c, uid)].charged[what]++;
}

void hc_user_release(struct hc_core *c, uint32_t uid, enum hc_charge what)
{
	const uint32_t n = hc_index_find(&c->user_index, uid);

	hc_assert(n != HC_NONE && c->users[n].charged[what]);
	c->users[n].charged[what]--;
	settle(c, n);
}

/* ---- memory ---- */

uint64_t hc_user_memory(const struct hc_core *c, uint32_t uid)
{
	const uint32_t n = hc_index_find(&c->user_index, uid);

	return n == HC_NONE ? 0 : c->users[n].memory;
}

int hc_user_may_memory(const struct hc_core *c, uint32_t uid, uint64_t bytes, char *text,
		       size_t size)
{
	const uint64_t has = hc_user_memory(c, uid), quota = c->lim.quota_memory;

	if (has <= quota && bytes <= quota - has)
		return 0;
	snprintf(text, size,
		 "uid %u has %llu KiB of shared memory on this node and asks for %llu more; "
		 "quota_memory_mib is %llu",
		 uid, (unsigned long long)(has >> 10), (unsigned long long)((bytes + 1023) >> 10),
		 (unsigned long long)(quota >> 20));
	return HC_E_LIMIT;
}

void hc_user_charge_memory(struct hc_core *c, uint32_t uid, uint64_t bytes)
{
	if (bytes)
		c->users[user(c, uid)].memory += bytes;
}

void hc_user_release_memory(struct hc_core *c, uint32_t uid, uint64_t bytes)
{
	const uint32_t n = bytes ? hc_index_find(&c->user_index, uid) : HC_NONE;

	if (!bytes)
		return;
	hc_assert(n != HC_NONE && c->users[n].memory >= bytes);
	c->users[n].memory -= bytes;
	settle(c, n);
}

/* ---- waiting ---- */

uint32_t hc_user_waits(const struct hc_core *c, uint32_t uid)
{
	const uint32_t n = hc_index_find(&c->user_index, uid);

	return n == HC_NONE ? 0 : c->users[n].waits;
}

void hc_user_wait(struct hc_core *c, uint32_t uid, int by)
{
	const uint32_t n = user(c, uid);

	hc_assert(by > 0 || c->users[n].waits);
	c->users[n].waits += (uint32_t)by;
	settle(c, n);
}

/* ---- channels ---- */

int hc_user_may_hold(const struct hc_core *c, uint32_t uid, enum hc_hold what, uint32_t amount,
		     char *text, size_t bytes)
{
	static const char *const name[] = {"quota_channels", "quota_waiting"};
	static const char *const unit[] = {"channels", "requests that wait"};
	const uint32_t limit[] = {c->lim.quota_channels, c->lim.quota_waiting};
	const uint32_t n = hc_index_find(&c->user_index, uid);
	const uint32_t held = n == HC_NONE ? 0 : c->users[n].held[what];

	/* what is taken back at a start was within the quota of its time */
	if (!c->started || (held <= limit[what] && amount <= limit[what] - held))
		return 0;
	snprintf(text, bytes,
		 "uid %u has %u %s on this node and asks for %u more, which is above %s (%u)", uid,
		 held, unit[what], amount, name[what], limit[what]);
	return HC_E_LIMIT;
}

void hc_user_hold(struct hc_core *c, uint32_t uid, enum hc_hold what, uint32_t amount)
{
	if (amount)
		c->users[user(c, uid)].held[what] += amount;
}

void hc_user_unhold(struct hc_core *c, uint32_t uid, enum hc_hold what, uint32_t amount)
{
	const uint32_t n = amount ? hc_index_find(&c->user_index, uid) : HC_NONE;

	if (!amount)
		return;
	hc_assert(n != HC_NONE && c->users[n].held[what] >= amount);
	c->users[n].held[what] -= amount;
	settle(c, n);
}
