/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of channel handles, one for the process; see slots.h.
 *
 * It is reserved at the first channel and given back with the table of domains, once no session
 * is open: until then any stale handle may be looked up. Registers of status come as slabs like the
 * state records of domains; each file is mapped once for a session and stays until it closes.
 */
#include "chan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define SLAB_BYTES ((size_t)HC_STATUS_SLAB * HC_REGISTER_BYTES)

_Atomic(unsigned char *) hc_chans;

static struct hc_slot_table table = HC_SLOT_TABLE(&hc_chans, "channels", HC_CHAN_BITS, HC_CHANS,
						  offsetof(struct hc_channel, place));

void hc_chans_drop(bool child)
{
	hc_slots_drop(&table, child);
}

/* ---- slots ---- */

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
	uint64_t handle;
	void *slot;
	int r;

	pthread_mutex_lock(&table.lock);
	r = hc_slot_take(&table, &slot, &handle);
	if (!r) {
		c = slot;
		clear(c);
		c->phase = HC_CHAN_WANTED;
		c->session = s;
		c->next = s->channels;
		c->link = &s->channels;
		if (c->next)
			c->next->link = &c->next;
		s->channels = c;
		c->handle = handle;
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
	hc_slot_put(&table, c);
	pthread_mutex_unlock(&table.lock);
}

/* ---- handles ---- */

int hc_chan_lost(hcomm_channel handle)
{
	if (!handle)
		return hc_refuse(HC_E_INVALID, "the channel's handle is 0");
	if (hc_slot_of_parent(&table, handle, !hc_process_known()))
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
