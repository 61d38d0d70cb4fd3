/* SPDX-License-Identifier: Apache-2.0 */
/* Processes behind places; see who.h. */
#include "who.h"

static bool same(const struct hc_who *a, const struct hc_who *b)
{
	return a->key == b->key && a->started == b->started && a->life == b->life;
}

static uint32_t find(const struct hc_core *c, const struct hc_who *who)
{
	uint32_t n;

	for (n = hc_index_find(&c->who_index, who->key); n != HC_NONE;
	     n = hc_index_next(&c->who_index, n))
		if (same(&c->whos[n], who))
			return n;
	return HC_NONE;
}

static uint32_t add(struct hc_core *c, const struct hc_who *who)
{
	uint32_t n = hc_pool_get(&c->who_pool);

	hc_assert(n != HC_NONE);
	c->whos[n] = *who;
	hc_index_add_in(&c->who_index, n);
	return n;
}

void hc_who_take(struct hc_core *c, struct hc_place *pl, uint32_t node, uint32_t pid,
		 uint64_t started)
{
	const struct hc_who *last;
	const struct hc_who who = {.key = (uint64_t)node << 32 | pid,
				   .started = started,
				   .pid = pid,
				   .node = node,
				   .life = c->nodes[node].life};

	hc_assert(!pl->who);
	if (node == HC_SELF_NODE && !pid)
		return;
	/* ranks of a process mostly come one behind the other */
	last = &c->whos[c->who_last];
	if (last->places && same(last, &who))
		pl->who = c->who_last;
	else
		pl->who = find(c, &who);
	if (pl->who == HC_NONE)
		pl->who = add(c, &who);
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
