/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of domain handles, one for the process (slots.h), and how a forked child is told apart.
 *
 * When the last session and the last local domain have gone, the table is given back. It is wiped
 * in a child by fork. The same advice on a page of .bss keeps the stamp of the process: 0 means
 * that this is a child (or that nothing was opened yet), and the first open in a child begins a
 * table of its own. Locks are made anew there: a thread of the parent may have held them when the
 * child was made.
 */
#include "client.h"
#include "shared.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE_MAX 65536u
#define BUSY     1u /* stamp while a child begins anew */

_Atomic(unsigned char *) hc_slots;

static struct hc_slot_table table = HC_SLOT_TABLE(&hc_slots, "domains", HC_SLOT_BITS, HC_SLOTS,
						  offsetof(struct hc_domain, place));
static uint32_t users; /* of the table, under its lock */
static uint64_t last_stamp = BUSY;

/* Room for one page at any page size. */
static unsigned char wiped[2 * PAGE_MAX];

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

static void begin_anew(_Atomic uint64_t *word)
{
	uint64_t none = 0;

	if (!atomic_compare_exchange_strong(word, &none, BUSY)) {
		while (atomic_load(word) == BUSY)
			sched_yield();
		return;
	}
	users = 0;
	hc_slots_drop(&table, true);
	hc_chans_drop(true);
	hc_splits_drop();
	atomic_store(word, ++last_stamp);
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
	users++;
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
	const struct hc_domain *d;
	uint32_t i;

	for (i = 0; i < table.used; i++) {
		d = hc_slot_number(&table, i);
		if (d->local)
			munmap(d->local, sizeof(struct hc_local));
	}
}

void hc_process_leave(uint64_t stamp)
{
	if (!hc_process_same(stamp))
		return;
	pthread_mutex_lock(&table.lock);
	if (!--users) {
		free_locals();
		hc_slots_drop(&table, false);
		hc_chans_drop(false);
	}
	pthread_mutex_unlock(&table.lock);
}

/* ---- slots ---- */

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
	uint64_t handle;
	void *slot;
	int r;

	pthread_mutex_lock(&table.lock);
	r = hc_slot_take(&table, &slot, &handle);
	if (!r) {
		d = slot;
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
		d->handle = handle;
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
	if (d->ending)
		hc_split_forget(d->id, d->rank);
	pthread_mutex_lock(&table.lock);
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
	hc_slot_put(&table, d);
	pthread_mutex_unlock(&table.lock);
}

int hc_domain_lost(hcomm_domain handle)
{
	if (handle && hc_slot_of_parent(&table, handle, !hc_process_known()))
		return hc_refuse(
			HC_E_FORKED,
			"the domain belongs to the process that opened the session; this is a "
			"child of it by fork");
	return hc_refuse(HC_E_GONE, "handle %#llx is that of no domain, or of one that has ended",
			 (unsigned long long)handle);
}

bool hc_domain_known(hcomm_domain handle)
{
	const struct hc_domain *d;
	bool known;

	pthread_mutex_lock(&table.lock);
	d = hc_slot(handle);
	known = handle && d && d->handle == handle;
	pthread_mutex_unlock(&table.lock);
	return known;
}

int hc_domain_lock(hcomm_domain handle, struct hc_domain **out)
{
	struct hcomm_session *s = NULL;
	struct hc_domain *d;
	bool found;

	/* in a child the lock below may be held for ever */
	if (!hc_process_known())
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
