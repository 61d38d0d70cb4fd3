/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who has registered what memory: tables in the exchange.
 *
 * The ranges of a rank lie in pages of 128, each a value "hcomm/mem/<rank>/<page>". A range keeps
 * its place, so that registering or unregistering one rewrites one page. The first page says how
 * many there are, and of which rank they are: a process of several ranks has one table, and the
 * others of its ranks a page that leads there.
 *
 * A look-up is answered from the pages that were read before. Only when they do not hold the
 * range they are read again, each with the version that is known, so that what has not changed
 * costs a few bytes. So a range that was unregistered may be found by others until they read
 * again: its owner says so to its peers before it takes memory away, as it has to anyway.
 *
 * Pages come from other processes: what does not fit together is no table.
 */
#include "shared.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAGE_RANGES 128u
#define PAGES_MAX   512u
#define HEAD_BYTES  16u
#define RANGE_BYTES 28u
#define PAGE_BYTES  (HEAD_BYTES + PAGE_RANGES * RANGE_BYTES)
#define MAGIC       0x686d656du /* "hmem" */
#define KEY_BYTES   48u

struct range {
	uint64_t address, bytes, key; /* bytes 0: a free place */
	uint32_t kind;
};

struct table { /* of another process */
	struct table *next;
	uint32_t rank, of; /* asked for, and whose table it is */
	uint32_t pages, ranges, room;
	uint64_t *versions; /* of the pages */
	struct range *at;   /* PAGE_RANGES for each page */
	uint64_t head;      /* version of the page that leads to `of` */
};

struct hc_memory {
	struct range *at; /* ours */
	uint32_t places, pages, ranges;
	bool led; /* the others of our ranks have their page */
	struct table *tables;
};

void hc_memory_free(struct hc_memory *m)
{
	struct table *t;

	if (!m)
		return;
	while ((t = m->tables)) {
		m->tables = t->next;
		free(t->versions);
		free(t->at);
		free(t);
	}
	free(m->at);
	free(m);
}

/* ---- pages ---- */

static uint8_t *w32(uint8_t *p, uint32_t v)
{
	unsigned i;

	for (i = 0; i < 4; i++)
		p[i] = (uint8_t)(v >> (24 - 8 * i));
	return p + 4;
}

static uint8_t *w64(uint8_t *p, uint64_t v)
{
	return w32(w32(p, (uint32_t)(v >> 32)), (uint32_t)v);
}

static uint32_t r32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static uint64_t r64(const uint8_t *p)
{
	return (uint64_t)r32(p) << 32 | r32(p + 4);
}

static void page_key(char key[KEY_BYTES], uint32_t rank, uint32_t page)
{
	snprintf(key, KEY_BYTES, "hcomm/mem/%" PRIu32 "/%" PRIu32, rank, page);
}

/* Returns its length. */
static uint32_t page_write(const struct hc_memory *m, uint32_t of, uint32_t page, uint8_t *to)
{
	const struct range *at = m->at + (size_t)page * PAGE_RANGES;
	uint32_t n = m->places - page * PAGE_RANGES, i;
	uint8_t *p = to;

	if (n > PAGE_RANGES)
		n = PAGE_RANGES;
	p = w32(w32(w32(w32(p, MAGIC), of), m->pages), n);
	for (i = 0; i < n; i++)
		p = w32(w64(w64(w64(p, at[i].address), at[i].bytes), at[i].key), at[i].kind);
	return (uint32_t)(p - to);
}

static int put_page(struct hc_shared *sh, uint32_t page)
{
	uint8_t bytes[PAGE_BYTES];
	char key[KEY_BYTES];

	page_key(key, sh->rank, page);
	return hc_exchange_put(sh, key, bytes, page_write(sh->memory, sh->rank, page, bytes));
}

/* The other ranks of this process: a page that leads to ours. */
static int lead(struct hc_shared *sh)
{
	uint8_t bytes[HEAD_BYTES];
	char key[KEY_BYTES];
	uint32_t i;
	int r = 0;

	w32(w32(w32(w32(bytes, MAGIC), sh->rank), 0), 0);
	for (i = 1; !r && i < sh->nseats; i++) {
		page_key(key, sh->seats[i].rank, 0);
		r = hc_exchange_put(sh, key, bytes, sizeof(bytes));
	}
	sh->memory->led = !r;
	return r;
}

/* ---- ours ---- */

static int need(struct hc_shared *sh)
{
	if (!sh->memory)
		sh->memory = calloc(1, sizeof(*sh->memory));
	return sh->memory ? 0 : hc_refuse(HC_E_NO_MEMORY, "no memory for the table of memory");
}

static bool overlaps(const struct range *a, uint64_t address, uint64_t bytes)
{
	return a->bytes && address - a->address < a->bytes
		       ? true
		       : a->bytes && a->address - address < bytes;
}

/* A free place, and the page that it is in is there; HC_NONE and the refusal. */
static uint32_t place(struct hc_memory *m, int *r)
{
	struct range *more;
	uint32_t i;

	for (i = 0; i < m->places; i++)
		if (!m->at[i].bytes)
			return i;
	if (m->places == PAGES_MAX * PAGE_RANGES) {
		*r = hc_refuse(HC_E_LIMIT,
			       "this process has registered %u ranges, which is the limit",
			       m->ranges);
		return HC_NONE;
	}
	if (m->places == m->pages * PAGE_RANGES) {
		more = realloc(m->at, (size_t)(m->pages + 1) * PAGE_RANGES * sizeof(*more));
		if (!more) {
			*r = hc_refuse(HC_E_NO_MEMORY, "no memory for another range");
			return HC_NONE;
		}
		m->at = more;
		memset(m->at + m->places, 0, PAGE_RANGES * sizeof(*more));
		m->pages++;
	}
	return m->places++;
}

static int check_overlap(const struct hc_memory *m, uint64_t address, uint64_t bytes)
{
	uint32_t i;

	for (i = 0; i < m->places; i++)
		if (overlaps(&m->at[i], address, bytes))
			return hc_refuse(HC_E_EXISTS,
					 "[%#" PRIx64 ", %#" PRIx64
					 ") overlaps the range [%#" PRIx64 ", %#" PRIx64
					 "), which is registered",
					 address, address + bytes, m->at[i].address,
					 m->at[i].address + m->at[i].bytes);
	return 0;
}

/* The page, and after it the first one where that is news of another page. */
static int tell(struct hc_shared *sh, uint32_t page, bool fresh)
{
	int r = put_page(sh, page);

	if (!r && fresh && page)
		r = put_page(sh, 0);
	if (!r && !sh->memory->led)
		r = lead(sh);
	return r;
}

static int add(struct hc_shared *sh, const struct range *range)
{
	struct hc_memory *m;
	uint32_t i, pages;
	int r = need(sh);

	if (r)
		return r;
	m = sh->memory;
	r = check_overlap(m, range->address, range->bytes);
	if (r)
		return r;
	pages = m->pages;
	i = place(m, &r);
	if (i == HC_NONE)
		return r;
	m->at[i] = *range;
	m->ranges++;
	r = tell(sh, i / PAGE_RANGES, m->pages != pages);
	if (r) {
		m->at[i] = (struct range){0};
		m->ranges--;
	}
	return r;
}

HC_EXPORT int hcomm_mem_register(hcomm_domain domain, void *address, uint64_t bytes,
				 enum hcomm_memory_kind kind, uint64_t key)
{
	const struct range range = {
		.address = (uintptr_t)address, .bytes = bytes, .key = key, .kind = (uint32_t)kind};
	struct hc_shared *sh;
	int r = 0;

	if (!bytes || range.address + bytes < range.address)
		r = hc_refuse(HC_E_INVALID,
			      "%" PRIu64 " bytes at %p; wanted: 1 or more, and no wrap around",
			      bytes, address);
	else if (kind < HCOMM_MEM_HOST || kind > HCOMM_MEM_DDR)
		r = hc_refuse(HC_E_INVALID, "kind is %d; wanted: one of HCOMM_MEM_*", (int)kind);
	if (!r)
		r = hc_shared_enter(domain, &sh);
	if (r)
		return -r;
	pthread_mutex_unlock(sh->lock);
	pthread_mutex_lock(&sh->memory_lock);
	r = add(sh, &range);
	pthread_mutex_unlock(&sh->memory_lock);
	pthread_mutex_lock(sh->lock);
	hc_shared_leave(sh);
	return -r;
}

static int take_away(struct hc_shared *sh, uint64_t address)
{
	struct hc_memory *m = sh->memory;
	struct range old;
	uint32_t i;
	int r;

	for (i = 0; m && i < m->places; i++)
		if (m->at[i].bytes && m->at[i].address == address)
			break;
	if (!m || i == m->places)
		return hc_refuse(HC_E_NOT_FOUND,
				 "no range that begins at %#" PRIx64 " is registered here",
				 address);
	old = m->at[i];
	m->at[i] = (struct range){0};
	r = put_page(sh, i / PAGE_RANGES);
	if (r)
		m->at[i] = old;
	else
		m->ranges--;
	return r;
}

HC_EXPORT int hcomm_mem_unregister(hcomm_domain domain, void *address)
{
	struct hc_shared *sh;
	int r = hc_shared_enter(domain, &sh);

	if (r)
		return -r;
	pthread_mutex_unlock(sh->lock);
	pthread_mutex_lock(&sh->memory_lock);
	r = take_away(sh, (uintptr_t)address);
	pthread_mutex_unlock(&sh->memory_lock);
	pthread_mutex_lock(sh->lock);
	hc_shared_leave(sh);
	return -r;
}

/* ---- those of others ---- */

static struct table *table_of(struct hc_memory *m, uint32_t rank)
{
	struct table *t;

	for (t = m->tables; t; t = t->next)
		if (t->rank == rank)
			return t;
	t = calloc(1, sizeof(*t));
	if (!t)
		return NULL;
	t->rank = t->of = rank;
	t->next = m->tables;
	m->tables = t;
	return t;
}

static int make_room(struct table *t, uint32_t pages)
{
	uint64_t *versions;
	struct range *at;

	if (pages <= t->room)
		return 0;
	versions = realloc(t->versions, pages * sizeof(*versions));
	if (versions)
		t->versions = versions;
	at = realloc(t->at, (size_t)pages * PAGE_RANGES * sizeof(*at));
	if (at)
		t->at = at;
	if (!versions || !at)
		return hc_refuse(HC_E_NO_MEMORY, "no memory for a table of %u pages", pages);
	memset(versions + t->room, 0, (pages - t->room) * sizeof(*versions));
	memset(at + (size_t)t->room * PAGE_RANGES, 0,
	       (size_t)(pages - t->room) * PAGE_RANGES * sizeof(*at));
	t->room = pages;
	return 0;
}

static int malformed(const struct table *t)
{
	return hc_refuse(HC_E_MALFORMED, "rank %u's table of memory is no such table", t->rank);
}

/* *pages: how many there are, as the page says. */
static int page_read(struct table *t, uint32_t page, const uint8_t *p, uint32_t bytes, uint32_t *of,
		     uint32_t *pages)
{
	uint32_t n, i;
	struct range *at;
	int r;

	if (bytes < HEAD_BYTES || r32(p) != MAGIC)
		return malformed(t);
	*of = r32(p + 4);
	*pages = r32(p + 8);
	n = r32(p + 12);
	if (*pages > PAGES_MAX || n > PAGE_RANGES || bytes != HEAD_BYTES + n * RANGE_BYTES)
		return malformed(t);
	r = make_room(t, page + 1);
	if (r)
		return r;
	at = t->at + (size_t)page * PAGE_RANGES;
	memset(at, 0, PAGE_RANGES * sizeof(*at));
	for (i = 0, p += HEAD_BYTES; i < n; i++, p += RANGE_BYTES) {
		at[i] = (struct range){r64(p), r64(p + 8), r64(p + 16), r32(p + 24)};
		if (at[i].address + at[i].bytes < at[i].address)
			at[i].bytes = 0; /* no such range */
	}
	return 0;
}

/* Read a page again, if it is another than is known. */
static int refresh_page(struct hc_shared *sh, struct table *t, uint32_t page, uint32_t *of,
			uint32_t *pages)
{
	uint8_t bytes[PAGE_BYTES];
	uint32_t got = sizeof(bytes);
	uint64_t known = page < t->room ? t->versions[page] : 0, version;
	char key[KEY_BYTES];
	int r;

	page_key(key, t->of, page);
	r = hc_exchange_look(sh, key, known, bytes, &got, &version);
	if (r || (known && version == known))
		return r;
	r = page_read(t, page, bytes, got, of, pages);
	if (!r)
		t->versions[page] = version;
	return r;
}

static void count(struct table *t)
{
	uint32_t i;

	t->ranges = 0;
	for (i = 0; i < t->pages * PAGE_RANGES; i++)
		t->ranges += t->at[i].bytes != 0;
}

static int refresh(struct hc_shared *sh, struct table *t)
{
	uint32_t of = t->of, pages = t->pages, i, ignored;
	int r = refresh_page(sh, t, 0, &of, &pages);

	if (!r && of != t->of && t->of == t->rank) { /* it leads elsewhere, once and for good */
		t->of = of;
		if (t->room)
			t->versions[0] = 0;
		r = refresh_page(sh, t, 0, &of, &pages);
	}
	if (r == HC_E_NOT_FOUND) {
		t->pages = t->ranges = 0;
		return 0;
	}
	if (!r && (of != t->of || !pages))
		r = malformed(t);
	for (i = 1; !r && i < pages; i++) {
		r = refresh_page(sh, t, i, &ignored, &ignored);
		if (r == HC_E_NOT_FOUND)
			r = malformed(t);
	}
	if (r)
		return r;
	t->pages = pages;
	count(t);
	return 0;
}

static const struct range *search(const struct range *at, uint32_t n, uint64_t address,
				  uint64_t bytes)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		if (at[i].bytes && address >= at[i].address &&
		    address - at[i].address <= at[i].bytes &&
		    bytes <= at[i].bytes - (address - at[i].address))
			return &at[i];
	return NULL;
}

static int missing(uint32_t rank, uint32_t ranges, uint64_t address, uint64_t bytes)
{
	return hc_refuse(HC_E_NOT_FOUND,
			 "rank %u's table (%u range%s) has none that holds [%#" PRIx64 ", %#" PRIx64
			 ")",
			 rank, ranges, ranges == 1 ? "" : "s", address, address + bytes);
}

static bool is_ours(const struct hc_shared *sh, uint32_t rank)
{
	uint32_t i;

	for (i = 0; i < sh->nseats; i++)
		if (sh->seats[i].rank == rank)
			return true;
	return false;
}

static int look_up(struct hc_shared *sh, uint32_t rank, uint64_t address, uint64_t bytes,
		   uint64_t *key)
{
	const struct range *found;
	struct hc_memory *m;
	struct table *t;
	int r = need(sh);

	if (r)
		return r;
	m = sh->memory;
	if (is_ours(sh, rank)) {
		found = search(m->at, m->places, address, bytes);
		if (!found)
			return missing(rank, m->ranges, address, bytes);
		*key = found->key;
		return 0;
	}
	t = table_of(m, rank);
	if (!t)
		return hc_refuse(HC_E_NO_MEMORY, "no memory for the table of rank %u", rank);
	found = search(t->at, t->pages * PAGE_RANGES, address, bytes);
	if (!found) {
		r = refresh(sh, t);
		if (r)
			return r;
		found = search(t->at, t->pages * PAGE_RANGES, address, bytes);
	}
	if (!found)
		return missing(rank, t->ranges, address, bytes);
	*key = found->key;
	return 0;
}

HC_EXPORT int hcomm_mem_lookup(hcomm_domain domain, uint32_t rank, uint64_t address, uint64_t bytes,
			       uint64_t *key)
{
	struct hc_shared *sh;
	int r = 0;

	if (!key || !bytes || address + bytes < address)
		r = hc_refuse(HC_E_INVALID,
			      "key is NULL, or bytes is %" PRIu64 " at %#" PRIx64
			      "; wanted: 1 or more, and no wrap around",
			      bytes, address);
	if (!r)
		r = hc_shared_enter(domain, &sh);
	if (r)
		return -r;
	if (rank >= sh->nranks)
		r = hc_refuse(HC_E_INVALID, "rank is %u; wanted: below %u", rank, sh->nranks);
	pthread_mutex_unlock(sh->lock);
	if (!r) {
		pthread_mutex_lock(&sh->memory_lock);
		r = look_up(sh, rank, address, bytes, key);
		pthread_mutex_unlock(&sh->memory_lock);
	}
	pthread_mutex_lock(sh->lock);
	hc_shared_leave(sh);
	return -r;
}
