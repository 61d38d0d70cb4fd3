/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table of slots behind handles: of domains (handles.c) and of channels (chantable.c).
 *
 * A handle is generation << 32 | place of the slot in the table. The generation is one counter for
 * the process, so no handle is ever given twice, also over a close of all sessions. The memory is
 * reserved once, untouched pages cost nothing, and a slot never moves; a free one waits at the end
 * of a queue, so that it is long before it is used again.
 *
 * The memory is MADV_WIPEONFORK: in a child all slots read as zero, so a parent's handle matches
 * nothing, and what is called most needs no check of its own. How a handle leads to its slot is
 * there, too: each kind has its own base, read without a lock.
 */
#ifndef HC_SLOTS_H
#define HC_SLOTS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct hc_slot_link { /* somewhere in each slot; zero is its beginning */
	uint32_t index;
	uint32_t next_free;
};

struct hc_slot_table {
	_Atomic(unsigned char *) *base; /* NULL before the first slot is taken */
	const char *what;               /* for people: domains, channels */
	uint32_t bits, slots;           /* bytes of a slot, as a power of two; how many */
	uint32_t link_at;               /* bytes from the slot to its struct hc_slot_link */
	/* under the lock */
	pthread_mutex_t lock;
	uint32_t used; /* in use or in the queue */
	uint32_t first_free, last_free;
	uint32_t generation;
	uint32_t forked; /* generations up to this are a parent's */
};
#define HC_SLOT_NONE UINT32_MAX
#define HC_SLOT_TABLE(memory, word, power, count, offset)                                          \
	{                                                                                          \
		.base = (memory), .what = (word), .bits = (power), .slots = (count),               \
		.link_at = (uint32_t)(offset), .lock = PTHREAD_MUTEX_INITIALIZER,                  \
		.first_free = HC_SLOT_NONE, .last_free = HC_SLOT_NONE                              \
	}

/* With the table's lock held. A slot, zero or as it was put back, and a new handle to it: 0,
 * LIMIT, NO_MEMORY. */
int hc_slot_take(struct hc_slot_table *t, void **slot, uint64_t *handle);
void hc_slot_put(struct hc_slot_table *t, void *slot);
void *hc_slot_number(const struct hc_slot_table *t, uint32_t index); /* below `used` */

/* Nobody uses a slot any more. child: in a fork, whose locks are made anew. */
void hc_slots_drop(struct hc_slot_table *t, bool child);
/* Is it a handle of the process that this one was forked from? child: we know that we are one. */
bool hc_slot_of_parent(const struct hc_slot_table *t, uint64_t handle, bool child);

#endif
