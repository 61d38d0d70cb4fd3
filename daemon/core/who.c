/* SPDX-License-Identifier: Apache-2.0 */
/* Processes behind places; see who.h. */
#include "who.h"

static bool is(const struct hc_core *c, const struct hc_who *who, uint32_t node, uint32_t pid,
	       uint64_t started)
{
	return who->pid == pid && who->node == node && who->started == started &&
	       who->life == c->nodes[node].life;
}

static uint64_t key_of(uint32_t node, uint32_t pid)
{
	return (uint64_t)node << 32 | pid;
}

static uint32_t find(const struct hc_core *c, uint32_t node, uint32_t pid, uint64_t started)
{
	uint32_t n;

	for (n = hc_index_find(&c->who_index, key_of(node, pid)); n != HC_NONE;
	     n = hc_index_next(&c->who_index, n))
		if (is(c, &c->whos[n], node, pid, started))
			return n;
	return HC_NONE;
}

static uint32_t add(struct hc_core *c, uint32_t node, uint32_t pid, uint64_t started)
{
	uint32_t n = hc_pool_get(&c->who_pool);

	hc_assert(n != HC_NONE);
	c->whos[n] = (struct hc_who){.key = key_of(node, pid),
				     .started = started,
				     .pid = pid,
				     .node = node,
				     .life = c->nodes[node].life};
	hc_index_add_in(&c->who_index, n);
	return n;
}

void hc_who_take(struct hc_core *c, struct hc_place *pl, uint32_t node, uint32_t pid,
		 uint64_t started)
{
	const struct hc_who *last = &c->whos[c->who_last];

	hc_assert(!pl->who);
	if (node == HC_SELF_NODE && !pid)
		return;
	/* ranks of a process mostly come one behind the other */
	if (last->places && is(c, last, node, pid, started))
		pl->who = c->who_last;
	else
		pl->who = find(c, node, pid, started);
	if (pl->who == HC_NONE)
		pl->who = add(c, node, pid, started);
	c->who_last = pl->who;
	c->whos[pl->who].places++;
}

void hc_who_drop(struct hc_core *c, struct hc_place *pl)
{
	struct hc_who *who = &c->whos[pl->who];

	if (!pl->who)
		return;
	hc_assert(who->places > 0);
	if (!--who->places) {
		hc_index_del(&c->who_index, pl->who);
		hc_pool_put_front(&c->who_pool, pl->who);
	}
	pl->who = 0;
}
