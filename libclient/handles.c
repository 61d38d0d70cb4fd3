/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of domain handles, one for the process, and how a forked child is told apart.
 *
 * A handle is generation << 32 | place of the slot in the table. The generation is one counter for
 * the process, so no handle is ever given twice, also over a close of all sessions. The table is
 * reserved once, untouched pages cost nothing, and a slot never moves; a free one waits at the end
 * of a queue, so that it is long before it is used again. When the last session and the last local
 * domain have gone, the table is unmapped.
 *
 * The table is MADV_WIPEONFORK: in a child all slots read as zero, so a parent's handle matches
 * nothing and op_begin needs no check of its own. The same advice on a page of .bss keeps the
 * stamp of the process: 0 means that this is a child (or that nothing was opened yet), and the
 * first open in a child begins a table of its own. Locks are made anew there: a thread of the
 * parent may have held them when the child was made.
 *
 * How often each rank of this process has split its domain is kept beside the table, and not in the
 * slot: a rank belongs to the process, which may take it up by another handle or session, and what
 * it says next has to be the number that the other ranks say. Forgotten when the rank leaves.
 */
#include "client.h"
#include "shared.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define TABLE_BYTES ((size_t)HC_SLOTS * HC_SLOT_BYTES)
#define PAGE_MAX    65536u
#define BUSY        1u /* stamp while a child begins anew */
#define NO_SLOT     UINT32_MAX

_Atomic(unsigned char *) hc_slots;

struct splits {
	uint64_t id;
	hcomm_domain busy; /* under way, for that handle; HC_SPLIT_WAITS; 0 = none is */
	uint32_t rank, over;
};

static struct {
	pthread_mutex_t lock;
	uint32_t users;
	uint32_t slots; /* in use or in the queue */
	uint32_t first_free, last_free;
	uint32_t generation;
	uint32_t forked; /* generations up to this are a parent's */
	uint64_t stamp;
	struct splits *splits;
	uint32_t nsplits, splits_cap;
} table = {.lock = PTHREAD_MUTEX_INITIALIZER,
	   .first_free = NO_SLOT,
	   .last_free = NO_SLOT,
	   .stamp = BUSY};

/* Room for one page at any page size. */
static unsigned char wiped[2 * PAGE_MAX];

static struct hc_domain *slot_at(uint32_t index)
{
	return hc_slot_at(atomic_load(&hc_slots), index << HC_SLOT_BITS);
}

static size_t page_bytes(void)
{
	long n = sysconf(_SC_PAGESIZE);

	return n > 0 && n <= (long)PAGE_MAX ? (size_t)n : PAGE_MAX;
}

static unsigned char *stamp_page(void)
{
	uintptr_t page = page_bytes(), at = (uintptr_t)wiped;

	return wiped + (((at + page - 1) & ~(page - 1)) - at);
}

static _Atomic uint64_t *stamp_word(void)
{
	static _Atomic(_Atomic uint64_t *) word;
	_Atomic uint64_t *w = atomic_load_explicit(&word, memory_order_relaxed);

	if (!w) {
		w = (_Atomic uint64_t *)(void *)stamp_page();
		atomic_store_explicit(&word, w, memory_order_relaxed);
	}
	return w;
}

static void drop_table(void)
{
	unsigned char *slots = atomic_exchange(&hc_slots, NULL);

	if (slots)
		munmap(slots, TABLE_BYTES);
	table.slots = 0;
	table.first_free = table.last_free = NO_SLOT;
}

static void begin_anew(_Atomic uint64_t *word)
{
	uint64_t none = 0;

	if (!atomic_compare_exchange_strong(word, &none, BUSY)) {
		while (atomic_load(word) == BUSY)
			sched_yield();
		return;
	}
	pthread_mutex_init(&table.lock, NULL);
	table.users = table.nsplits = 0;
	table.forked = table.generation;
	drop_table();
	hc_chans_drop(true);
	atomic_store(word, ++table.stamp);
}

int hc_process_enter(uint64_t *stamp)
{
	_Atomic uint64_t *word = stamp_word();

	if (madvise(stamp_page(), page_bytes(), MADV_WIPEONFORK))
		return hc_refuse(HC_E_SYSTEM,
				 "madvise(MADV_WIPEONFORK): %s; wanted: Linux 4.14 or later",
				 strerror(errno));
	begin_anew(word);
	pthread_mutex_lock(&table.lock);
	table.users++;
	*stamp = atomic_load(word);
	pthread_mutex_unlock(&table.lock);
	return 0;
}

bool hc_process_known(void)
{
	return atomic_load_explicit(stamp_word(), memory_order_relaxed) != 0;
}

bool hc_process_same(uint64_t stamp)
{
	return atomic_load_explicit(stamp_word(), memory_order_relaxed) == stamp;
}

int hc_local_map(struct hc_local **local)
{
	void *map = mmap(NULL, sizeof(**local), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			 -1, 0);

	if (map == MAP_FAILED)
		return hc_refuse(HC_E_NO_MEMORY, "no memory for the domain");
	madvise(map, sizeof(**local), MADV_DONTFORK);
	*local = map;
	return 0;
}

static void free_locals(void)
{
	uint32_t i;

	for (i = 0; i < table.slots; i++) {
		if (slot_at(i)->local)
			munmap(slot_at(i)->local, sizeof(struct hc_local));
	}
}

void hc_process_leave(uint64_t stamp)
{
	if (!hc_process_same(stamp))
		return;
	pthread_mutex_lock(&table.lock);
	if (!--table.users) {
		free_locals();
		drop_table();
		hc_chans_drop(false);
	}
	pthread_mutex_unlock(&table.lock);
}

/* ---- splits ---- */

static struct splits *splits_of(uint64_t id, uint32_t rank)
{
	uint32_t i;

	for (i = 0; i < table.nsplits; i++)
		if (table.splits[i].id == id && table.splits[i].rank == rank)
			return &table.splits[i];
	return NULL;
}

static struct splits *splits_add(uint64_t id, uint32_t rank)
{
	const uint32_t cap = table.splits_cap ? 2 * table.splits_cap : 8;
	struct splits *all = table.splits;

	if (table.nsplits == table.splits_cap) {
		all = realloc(all, cap * sizeof(*all));
		if (!all)
			return NULL;
		table.splits = all;
		table.splits_cap = cap;
	}
	all += table.nsplits++;
	*all = (struct splits){.id = id, .rank = rank};
	return all;
}

static void splits_forget(uint64_t id, uint32_t rank)
{
	struct splits *n = splits_of(id, rank);

	if (n)
		*n = table.splits[--table.nsplits];
}

/* A handle that has ended waits for nothing. */
static bool is_busy(const struct splits *n)
{
	const struct hc_domain *d = n->busy == HC_SPLIT_WAITS ? NULL : hc_slot(n->busy);

	return n->busy == HC_SPLIT_WAITS || (n->busy && d && d->handle == n->busy);
}

int hc_split_enter(uint64_t id, uint32_t rank, hcomm_domain busy, uint32_t *number)
{
	struct splits *n;
	int r = 0;

	pthread_mutex_lock(&table.lock);
	n = splits_of(id, rank);
	if (!n)
		n = splits_add(id, rank);
	if (!n)
		r = HC_E_NO_MEMORY;
	else if (is_busy(n))
		r = HC_E_INVALID;
	if (!r) {
		n->busy = busy;
		*number = n->over + 1;
	}
	pthread_mutex_unlock(&table.lock);
	if (r == HC_E_INVALID)
		return hc_refuse(r, "another split of this domain by rank %u is under way", rank);
	return r ? hc_refuse(r, "no memory for the count of splits") : 0;
}

void hc_split_leave(uint64_t id, uint32_t rank, hcomm_domain busy, uint32_t over)
{
	struct splits *n;

	/* in a child the lock may be held for ever */
	if (!atomic_load_explicit(stamp_word(), memory_order_relaxed))
		return;
	pthread_mutex_lock(&table.lock);
	n = splits_of(id, rank);
	if (n && n->over < over)
		n->over = over;
	if (n && n->busy == busy)
		n->busy = 0;
	pthread_mutex_unlock(&table.lock);
}

/* ---- slots ---- */

static int reserve(void)
{
	void *map;

	if (table.slots == HC_SLOTS)
		return hc_refuse(HC_E_LIMIT, "this process has %u domains, which is the limit",
				 table.slots);
	if (atomic_load(&hc_slots))
		return 0;
	map = mmap(NULL, TABLE_BYTES, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (map == MAP_FAILED)
		return hc_refuse(HC_E_NO_MEMORY, "no memory for the table of domains");
	madvise(map, TABLE_BYTES, MADV_WIPEONFORK);
	atomic_store(&hc_slots, map);
	return 0;
}

static int take_slot(struct hc_domain **d)
{
	uint32_t i = table.first_free;
	int r;

	if (i != NO_SLOT) {
		*d = slot_at(i);
		table.first_free = (*d)->next_free;
		if (table.first_free == NO_SLOT)
			table.last_free = NO_SLOT;
		return 0;
	}
	r = reserve();
	if (r)
		return r;
	*d = slot_at(table.slots);
	(*d)->index = table.slots++;
	return 0;
}

static void put_slot(struct hc_domain *d)
{
	d->next_free = NO_SLOT;
	if (table.last_free == NO_SLOT)
		table.first_free = d->index;
	else
		slot_at(table.last_free)->next_free = d->index;
	table.last_free = d->index;
}

static void link_session(struct hc_domain *d, struct hcomm_session *s)
{
	d->session = s;
	d->next = NULL;
	d->link = NULL;
	if (!s)
		return;
	d->next = s->domains;
	d->link = &s->domains;
	if (d->next)
		d->next->link = &d->next;
	s->domains = d;
}

int hc_domain_new(struct hcomm_session *session, struct hc_domain **out)
{
	struct hc_domain *d;
	int r;

	pthread_mutex_lock(&table.lock);
	r = take_slot(&d);
	if (!r) {
		if (!++table.generation)
			table.generation = 1;
		d->phase = HC_PHASE_FORMING;
		d->error = 0;
		d->ending = d->attached = false;
		d->asked = d->asked_seats = 0;
		d->id = 0;
		d->shared = NULL;
		d->rank = HC_NONE;
		d->nranks = d->epoch = d->tag = 0;
		d->name[0] = '\0';
		link_session(d, session);
		d->handle = (uint64_t)table.generation << 32 | d->index << HC_SLOT_BITS;
		*out = d;
	}
	pthread_mutex_unlock(&table.lock);
	return r;
}

void hc_domain_free(struct hc_domain *d)
{
	hc_chans_end(d);
	hc_ops_detach(&d->ops);
	hc_shared_drop(d);
	pthread_mutex_lock(&table.lock);
	if (d->ending)
		splits_forget(d->id, d->rank);
	if (d->link) {
		*d->link = d->next;
		if (d->next)
			d->next->link = d->link;
	}
	d->handle = 0;
	d->session = NULL;
	d->next = NULL;
	d->link = NULL;
	d->phase = HC_PHASE_FREE;
	put_slot(d);
	pthread_mutex_unlock(&table.lock);
}

int hc_domain_lost(hcomm_domain handle)
{
	bool child = !atomic_load_explicit(stamp_word(), memory_order_relaxed) && table.generation;

	if (handle && (child || (handle >> 32 && handle >> 32 <= table.forked)))
		return hc_refuse(
			HC_E_FORKED,
			"the domain belongs to the process that opened the session; this is a "
			"child of it by fork");
	return hc_refuse(HC_E_GONE, "handle %#llx is that of no domain, or of one that has ended",
			 (unsigned long long)handle);
}

int hc_domain_lock(hcomm_domain handle, struct hc_domain **out)
{
	struct hcomm_session *s = NULL;
	struct hc_domain *d;
	bool found;

	/* in a child the lock below may be held for ever */
	if (!atomic_load_explicit(stamp_word(), memory_order_relaxed))
		return hc_domain_lost(handle);
	pthread_mutex_lock(&table.lock);
	d = hc_slot(handle);
	found = handle && d && d->handle == handle;
	if (found)
		s = d->session;
	pthread_mutex_unlock(&table.lock);
	if (!found)
		return hc_domain_lost(handle);
	if (s) {
		pthread_mutex_lock(&s->lock);
		/* it may have ended while the lock was waited for */
		if (d->handle != handle || d->session != s) {
			pthread_mutex_unlock(&s->lock);
			return hc_domain_lost(handle);
		}
	}
	*out = d;
	return 0;
}

void hc_domain_unlock(struct hc_domain *d)
{
	if (d->session)
		pthread_mutex_unlock(&d->session->lock);
}

void hc_domain_forget(hcomm_domain handle)
{
	struct hcomm_session *s;
	struct hc_domain *d;
	uint64_t stamp;

	if (hc_domain_lock(handle, &d))
		return;
	s = d->session;
	stamp = d->stamp;
	hc_domain_free(d);
	if (s)
		pthread_mutex_unlock(&s->lock);
	else
		hc_process_leave(stamp);
}
