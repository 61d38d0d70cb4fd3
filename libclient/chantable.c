/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of channel handles, one for the process; see handles.c, whose rules it follows.
 *
 * It is reserved at the first channel and given back with the table of domains, once no session
 * is open: until then any stale handle may be looked up. Freed slots wait in a queue, so that it
 * is long before one is used again. Registers of status come as slabs like the state records of
 * domains; each file is mapped once for a session and stays until it closes.
 */
#include "chan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define TABLE_BYTES ((size_t)HC_CHANS * HC_CHAN_BYTES)
#define SLAB_BYTES  ((size_t)HC_STATUS_SLAB * HC_REGISTER_BYTES)
#define NO_SLOT     UINT32_MAX

_Atomic(unsigned char *) hc_chans;

static struct {
	pthread_mutex_t lock;
	uint32_t slots; /* in use or in the queue */
	uint32_t first_free, last_free;
	uint32_t generation;
	uint32_t forked; /* generations up to this are a parent's */
} table = {.lock = PTHREAD_MUTEX_INITIALIZER, .first_free = NO_SLOT, .last_free = NO_SLOT};

static struct hc_channel *slot_at(uint32_t index)
{
	return hc_chan_at(atomic_load(&hc_chans), index << HC_CHAN_BITS);
}

void hc_chans_drop(bool child)
{
	unsigned char *slots = atomic_exchange(&hc_chans, NULL);

	if (child) {
		pthread_mutex_init(&table.lock, NULL);
		table.forked = table.generation;
	}
	if (slots)
		munmap(slots, TABLE_BYTES);
	table.slots = 0;
	table.first_free = table.last_free = NO_SLOT;
}

/* ---- slots ---- */

static int reserve(void)
{
	void *map;

	if (table.slots == HC_CHANS)
		return hc_refuse(HC_E_LIMIT, "this process has %u channels, which is the limit",
				 table.slots);
	if (atomic_load(&hc_chans))
		return 0;
	map = mmap(NULL, TABLE_BYTES, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (map == MAP_FAILED)
		return hc_refuse(HC_E_NO_MEMORY, "no memory for the table of channels");
	madvise(map, TABLE_BYTES, MADV_WIPEONFORK);
	atomic_store(&hc_chans, map);
	return 0;
}

static int take_slot(struct hc_channel **c)
{
	uint32_t i = table.first_free;
	int r;

	if (i != NO_SLOT) {
		*c = slot_at(i);
		table.first_free = (*c)->next_free;
		if (table.first_free == NO_SLOT)
			table.last_free = NO_SLOT;
		return 0;
	}
	r = reserve();
	if (r)
		return r;
	*c = slot_at(table.slots);
	(*c)->index = table.slots++;
	return 0;
}

static void put_slot(struct hc_channel *c)
{
	c->next_free = NO_SLOT;
	if (table.last_free == NO_SLOT)
		table.first_free = c->index;
	else
		slot_at(table.last_free)->next_free = c->index;
	table.last_free = c->index;
}

/* Everything but what a late look at `live` or `busy` may meet. */
static void clear(struct hc_channel *c)
{
	c->reg = NULL;
	c->id = 0;
	c->word = 0;
	c->ended = c->bad = 0;
	c->carries = 0;
	c->error = 0;
	c->domain = 0;
	c->map = NULL;
	c->map_bytes = 0;
	c->info = (struct hcomm_channel_info)HCOMM_INIT(struct hcomm_channel_info);
}

int hc_chan_new(struct hcomm_session *s, struct hc_channel **out)
{
	struct hc_channel *c;
	int r;

	pthread_mutex_lock(&table.lock);
	r = take_slot(&c);
	if (!r) {
		if (!++table.generation)
			table.generation = 1;
		clear(c);
		c->phase = HC_CHAN_WANTED;
		c->session = s;
		c->next = s->channels;
		c->link = &s->channels;
		if (c->next)
			c->next->link = &c->next;
		s->channels = c;
		c->handle = (uint64_t)table.generation << 32 | c->index << HC_CHAN_BITS;
		*out = c;
	}
	pthread_mutex_unlock(&table.lock);
	return r;
}

void hc_chan_hide(struct hc_channel *c)
{
	pthread_mutex_lock(&table.lock);
	c->handle = 0;
	pthread_mutex_unlock(&table.lock);
}

void hc_chan_free(struct hc_channel *c)
{
	pthread_mutex_lock(&table.lock);
	*c->link = c->next;
	if (c->next)
		c->next->link = c->link;
	c->handle = 0;
	c->session = NULL;
	c->next = NULL;
	c->link = NULL;
	c->phase = HC_CHAN_FREE;
	put_slot(c);
	pthread_mutex_unlock(&table.lock);
}

/* ---- handles ---- */

int hc_chan_lost(hcomm_channel handle)
{
	bool child = !hc_process_known() && table.generation;

	if (!handle)
		return hc_refuse(HC_E_INVALID, "the channel's handle is 0");
	if (child || (handle >> 32 && handle >> 32 <= table.forked))
		return hc_refuse(
			HC_E_FORKED,
			"the channel belongs to the process that opened the session; this is a "
			"child of it by fork");
	return hc_refuse(HC_E_GONE,
			 "handle %#llx is that of no channel, or of one that was released",
			 (unsigned long long)handle);
}

int hc_chan_lock(hcomm_channel handle, struct hc_channel **out)
{
	struct hcomm_session *s = NULL;
	struct hc_channel *c;

	/* in a child the lock below may be held for ever */
	if (!handle || !hc_process_known())
		return hc_chan_lost(handle);
	pthread_mutex_lock(&table.lock);
	c = hc_chan_slot(handle);
	if (c && c->handle == handle)
		s = c->session;
	pthread_mutex_unlock(&table.lock);
	if (!s)
		return hc_chan_lost(handle);
	pthread_mutex_lock(&s->lock);
	if (hc_chan_of(s, handle) != c) {
		/* released while the lock was waited for */
		pthread_mutex_unlock(&s->lock);
		return hc_chan_lost(handle);
	}
	*out = c;
	return 0;
}

struct hc_channel *hc_chan_of(struct hcomm_session *s, hcomm_channel handle)
{
	struct hc_channel *c = hc_chan_slot(handle);

	return handle && c && c->handle == handle && c->session == s ? c : NULL;
}

/* ---- registers ---- */

int hc_chan_slab(struct hcomm_session *s, uint32_t index, int fd)
{
	struct hc_status_slab *slab;
	struct stat st;
	void *map;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || (uint64_t)st.st_size < SLAB_BYTES)
		return hc_refuse(HC_E_MALFORMED,
				 "the status slab of hcommd is no file of %zu bytes", SLAB_BYTES);
	for (slab = s->status_slabs; slab; slab = slab->next) {
		if (slab->device == st.st_dev && slab->inode == st.st_ino)
			return 0;
	}
	slab = calloc(1, sizeof(*slab));
	if (!slab)
		return hc_refuse(HC_E_NO_MEMORY, "no memory for the channel");
	map = mmap(NULL, SLAB_BYTES, PROT_READ, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED) {
		free(slab);
		return hc_refuse(HC_E_NO_MEMORY, "mapping a status slab: %s", strerror(errno));
	}
	madvise(map, SLAB_BYTES, MADV_DONTFORK);
	slab->registers = map;
	slab->index = index;
	slab->device = st.st_dev;
	slab->inode = st.st_ino;
	slab->next = s->status_slabs;
	s->status_slabs = slab;
	return 0;
}

const struct hc_page_register *hc_chan_register(const struct hcomm_session *s, uint64_t id,
						uint32_t slot)
{
	const struct hc_page_register *r;
	const struct hc_status_slab *slab;

	for (slab = s->status_slabs; slab; slab = slab->next) {
		if (slab->index != slot / HC_STATUS_SLAB)
			continue;
		r = &slab->registers[slot % HC_STATUS_SLAB];
		if (atomic_load_explicit(&r->id, memory_order_acquire) == id)
			return r;
	}
	return NULL;
}

void hc_chan_slabs_free(struct hcomm_session *s, bool mapped)
{
	while (s->status_slabs) {
		struct hc_status_slab *slab = s->status_slabs;
		union {
			const void *from;
			void *to;
		} map = {.from = slab->registers};

		s->status_slabs = slab->next;
		if (mapped)
			munmap(map.to, SLAB_BYTES);
		free(slab);
	}
}
