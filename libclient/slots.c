/* SPDX-License-Identifier: Apache-2.0 */
/* See slots.h. */
#include "slots.h"

#include "client.h"

#include <sys/mman.h>

static size_t table_bytes(const struct hc_slot_table *t)
{
	return (size_t)t->slots << t->bits;
}

void *hc_slot_number(const struct hc_slot_table *t, uint32_t index)
{
	return atomic_load(t->base) + ((size_t)index << t->bits);
}

static struct hc_slot_link *link_of(const struct hc_slot_table *t, void *slot)
{
	return (struct hc_slot_link *)(void *)((unsigned char *)slot + t->link_at);
}

static int reserve(struct hc_slot_table *t)
{
	void *map;

	if (t->used == t->slots)
		return hc_refuse(HC_E_LIMIT, "this process has %u %s, which is the limit", t->used,
				 t->what);
	if (atomic_load(t->base))
		return 0;
	map = mmap(NULL, table_bytes(t), PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (map == MAP_FAILED)
		return hc_refuse(HC_E_NO_MEMORY, "no memory for the table of %s", t->what);
	madvise(map, table_bytes(t), MADV_WIPEONFORK);
	atomic_store(t->base, map);
	return 0;
}

static void *take_free(struct hc_slot_table *t)
{
	void *slot = hc_slot_number(t, t->first_free);

	t->first_free = link_of(t, slot)->next_free;
	if (t->first_free == HC_SLOT_NONE)
		t->last_free = HC_SLOT_NONE;
	return slot;
}

int hc_slot_take(struct hc_slot_table *t, void **slot, uint64_t *handle)
{
	int r;

	if (t->first_free != HC_SLOT_NONE) {
		*slot = take_free(t);
	} else {
		r = reserve(t);
		if (r)
			return r;
		*slot = hc_slot_number(t, t->used);
		link_of(t, *slot)->index = t->used++;
	}
	if (!++t->generation)
		t->generation = 1;
	*handle = (uint64_t)t->generation << 32 | link_of(t, *slot)->index << t->bits;
	return 0;
}

void hc_slot_put(struct hc_slot_table *t, void *slot)
{
	struct hc_slot_link *l = link_of(t, slot);

	l->next_free = HC_SLOT_NONE;
	if (t->last_free == HC_SLOT_NONE)
		t->first_free = l->index;
	else
		link_of(t, hc_slot_number(t, t->last_free))->next_free = l->index;
	t->last_free = l->index;
}

void hc_slots_drop(struct hc_slot_table *t, bool child)
{
	unsigned char *memory = atomic_exchange(t->base, NULL);

	if (child) {
		pthread_mutex_init(&t->lock, NULL);
		t->forked = t->generation;
	}
	if (memory)
		munmap(memory, table_bytes(t));
	t->used = 0;
	t->first_free = t->last_free = HC_SLOT_NONE;
}

bool hc_slot_of_parent(const struct hc_slot_table *t, uint64_t handle, bool child)
{
	return (child && t->generation) || (handle >> 32 && handle >> 32 <= t->forked);
}
