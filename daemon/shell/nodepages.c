/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared memory of the node; nodepages.h has the design.
 *
 * A drain as the callers compose it, here because each step leans on the order kept below:
 *
 *	publish DRAINING (cut not set); fence; scan all ranks: the highest begun goes to the home
 *	publish the cut (HC_CUT_SET); scan: begun >= cut and nothing running, else wait for a wake
 *	publish HC_CUT_CLOSED; fence; scan again: still so? then it is final, tell the home;
 *	otherwise publish HC_CUT_SET again and wait for the next wake
 *
 * In a scan begun is read first, then all ends, then all begins. Begins only grow and never fall
 * behind ends, so equal sums mean that nothing ran at the moment between the two passes; and that
 * moment is behind the read of begun, whose reference was counted before the number was stored.
 */
#include "nodepages.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "hcomm/hcomm.h"
#include "slabs.h"

#define SLAB_BYTES  ((size_t)HC_SLAB_RECORDS * HC_RECORD_BYTES)
#define ARENA_BYTES ((size_t)HC_ARENA_BLOCKS * HC_BLOCK_BYTES)
#define ARENA_SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)
#define TMPFS_TYPE  0x01021994
#define NUMBER_MAX  (1ull << 48) /* what a client's token holds */

static const struct hc_slab_kind slab_kind = {
	.prefix = "slab", .bytes = SLAB_BYTES, .max = HC_SLABS_MAX};

struct hc_pages {
	struct hc_slabs slabs;
};

/* ---- slabs ---- */

/* Most of its records are about to be read and written: one walk instead of two faults a page. */
static void warm(struct hc_page_record *records)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), at, end = SLAB_BYTES;
	const struct hc_page_record *last;

	for (; end; end -= page) {
		last = &records[(end - page) / HC_RECORD_BYTES];
		for (at = 0; at < page / HC_RECORD_BYTES && !atomic_load(&last[at].id); at++)
			;
		if (at < page / HC_RECORD_BYTES)
			break;
	}
	if (end)
		madvise(records, end, MADV_POPULATE_WRITE); /* older kernels: as it was */
}

int hc_pages_open(const char *directory, struct hc_pages **pages)
{
	struct hc_pages *p;
	int r;

	if (mkdir(directory, 0711) && errno != EEXIST)
		return -errno;
	p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	r = hc_slabs_open(&p->slabs, &slab_kind, directory);
	if (r) {
		free(p);
		return r;
	}
	*pages = p;
	return 0;
}

struct hc_pages *hc_pages_close(struct hc_pages *pages)
{
	if (!pages)
		return NULL;
	hc_slabs_fini(&pages->slabs);
	free(pages);
	return NULL;
}

int hc_pages_record(struct hc_pages *pages, uint32_t uid, uint32_t slot,
		    struct hc_page_record **record)
{
	struct hc_page_record *records;
	void *at;
	int r = hc_slabs_get(&pages->slabs, uid, slot / HC_SLAB_RECORDS, &at);

	if (r)
		return r;
	records = at;
	*record = &records[slot % HC_SLAB_RECORDS];
	return 0;
}

void hc_pages_warm(struct hc_pages *pages, uint32_t uid, uint32_t slot)
{
	void *at;

	if (!hc_slabs_get(&pages->slabs, uid, slot / HC_SLAB_RECORDS, &at))
		warm(at);
}

int hc_pages_slab_fd(struct hc_pages *pages, uint32_t uid, uint32_t slab, int *fd)
{
	return hc_slabs_fd(&pages->slabs, uid, slab, fd);
}

void hc_pages_each(struct hc_pages *pages,
		   void (*fn)(uint32_t uid, uint32_t slot, struct hc_page_record *record,
			      void *context),
		   void *context)
{
	const struct hc_slab *s;
	struct hc_page_record *records;
	uint32_t i, k;

	for (i = 0; i < pages->slabs.count; i++) {
		s = &pages->slabs.slab[i];
		records = s->at;
		for (k = 0; k < HC_SLAB_RECORDS; k++)
			if (atomic_load_explicit(&records[k].id, memory_order_relaxed))
				fn(s->uid, s->n * HC_SLAB_RECORDS + k, &records[k], context);
	}
}

/* ---- records ---- */

static void wake(struct hc_page_record *record)
{
	atomic_fetch_add_explicit(&record->wake, 1, memory_order_seq_cst);
	syscall(SYS_futex, &record->wake, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static void cause_write(struct hc_page_record *record, const struct hc_pages_state *s)
{
	uint32_t seq = atomic_load_explicit(&record->seq, memory_order_relaxed) | 1;
	uint32_t len = s->cause.len < HC_CAUSE_BYTES ? s->cause.len : HC_CAUSE_BYTES - 1;

	/* not in the middle of a UTF-8 character */
	while (len && len < s->cause.len && ((uint8_t)s->cause.p[len] & 0xc0) == 0x80)
		len--;
	atomic_exchange_explicit(&record->seq, seq, memory_order_seq_cst);
	if (len)
		memcpy(record->cause, s->cause.p, len);
	memset(record->cause + len, 0, HC_CAUSE_BYTES - len);
	atomic_store_explicit(&record->cause_kind, s->cause_kind, memory_order_relaxed);
	atomic_store_explicit(&record->cause_rank, s->cause_rank, memory_order_relaxed);
	atomic_store_explicit(&record->cause_pid, s->cause_pid, memory_order_relaxed);
	atomic_store_explicit(&record->seq, seq + 1, memory_order_release);
}

static void cut_write(struct hc_page_record *record, const struct hc_pages_state *s)
{
	if (s->state != HCOMM_DRAINING)
		return;
	/* closed to open and open to closed keep the number, so no reader meets a wrong pair */
	if (s->cut_set == HC_CUT_NONE)
		atomic_store_explicit(&record->cut_set, HC_CUT_NONE, memory_order_seq_cst);
	atomic_store_explicit(&record->cut, s->cut, memory_order_relaxed);
	atomic_store_explicit(&record->drain, s->drain, memory_order_relaxed);
	atomic_store_explicit(&record->cut_set, s->cut_set, memory_order_seq_cst);
}

/* Does it say the same to who waits, but by another daemon? They may sleep on. */
static bool same_but_start(const struct hc_page_record *record, uint64_t gate,
			   const struct hc_pages_state *s)
{
	uint64_t was = atomic_load_explicit(&record->gate, memory_order_relaxed);

	return was != gate && !((was ^ gate) & ~HC_GATE_START_MASK) && s->state == HCOMM_ACTIVE &&
	       atomic_load_explicit(&record->id, memory_order_relaxed) == s->id;
}

void hc_pages_publish(struct hc_page_record *record, const struct hc_pages_state *s)
{
	uint64_t id = atomic_load_explicit(&record->id, memory_order_relaxed);
	unsigned state = s->state | (s->locked ? HC_GATE_LOCKED : 0);
	uint64_t gate = HC_GATE(s->start, s->tag, state);
	bool quiet = same_but_start(record, gate, s), fresh = id != s->id;

	if (id && fresh)
		hc_pages_free(record);
	cause_write(record, s);
	atomic_store_explicit(&record->epoch, s->epoch, memory_order_relaxed);
	atomic_store_explicit(&record->number, s->number, memory_order_relaxed);
	atomic_store_explicit(&record->nranks, s->nranks, memory_order_relaxed);
	cut_write(record, s);
	atomic_store_explicit(&record->id, s->id, memory_order_release);
	atomic_store_explicit(&record->gate, gate, memory_order_seq_cst);
	/* nobody can wait for a domain that nobody has heard of */
	if (fresh)
		atomic_fetch_add_explicit(&record->wake, 1, memory_order_seq_cst);
	else if (!quiet)
		wake(record);
}

/* Does it say, whole, that a rank of this very domain has died, when the row does not? */
static bool death_was_told(const struct hc_page_record *record, const struct hc_pages_state *s)
{
	uint64_t was = atomic_load_explicit(&record->gate, memory_order_relaxed);

	return s->state != HCOMM_DAMAGED &&
	       !((was ^ HC_GATE(0, s->tag, HCOMM_DAMAGED)) &
		 (HC_GATE_TAG_MASK | HC_GATE_STATE_MASK)) &&
	       atomic_load_explicit(&record->id, memory_order_relaxed) == s->id &&
	       atomic_load_explicit(&record->cause_kind, memory_order_relaxed) ==
		       HCOMM_EV_RANK_DIED &&
	       !(atomic_load_explicit(&record->seq, memory_order_relaxed) & 1);
}

void hc_pages_restore(struct hc_page_record *record, const struct hc_pages_state *s)
{
	unsigned state = HCOMM_DAMAGED | (s->locked ? HC_GATE_LOCKED : 0);

	if (death_was_told(record, s))
		atomic_store_explicit(&record->gate, HC_GATE(s->start, s->tag, state),
				      memory_order_seq_cst);
	else
		hc_pages_publish(record, s);
}

uint8_t hc_pages_shown(const struct hc_page_record *record, uint64_t id, uint32_t tag,
		       uint64_t *cut)
{
	const uint64_t gate = atomic_load_explicit(&record->gate, memory_order_relaxed);
	const uint8_t state = gate & HC_GATE_STATE_MASK;

	*cut = 0;
	if (atomic_load_explicit(&record->id, memory_order_relaxed) != id ||
	    (gate ^ HC_GATE(0, tag, 0)) & HC_GATE_TAG_MASK || state < HCOMM_ACTIVE ||
	    state > HCOMM_DRAINING)
		return 0;
	if (state == HCOMM_DRAINING &&
	    atomic_load_explicit(&record->cut_set, memory_order_relaxed) != HC_CUT_NONE)
		*cut = atomic_load_explicit(&record->cut, memory_order_relaxed);
	return state;
}

void hc_pages_free(struct hc_page_record *record)
{
	uint64_t gate = atomic_load_explicit(&record->gate, memory_order_relaxed);
	uint64_t state = gate & HC_GATE_STATE_MASK;

	if (state != HCOMM_DESTROYED && state != HCOMM_FAILED)
		atomic_store_explicit(&record->gate, (gate & ~HC_GATE_STATE_MASK) | HCOMM_DESTROYED,
				      memory_order_seq_cst);
	atomic_store_explicit(&record->id, 0, memory_order_release);
	wake(record);
}

/* ---- the fence ---- */

static long membarrier(int command)
{
	return syscall(SYS_membarrier, command, 0, 0);
}

bool hc_pages_fence_supported(void)
{
	const long need =
		MEMBARRIER_CMD_GLOBAL_EXPEDITED | MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED;
	long have = membarrier(MEMBARRIER_CMD_QUERY);

	return have > 0 && (have & need) == need;
}

int hc_pages_fence(void)
{
	if (!membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED))
		return 0;
	if (!membarrier(MEMBARRIER_CMD_GLOBAL))
		return HC_E_NOT_SUPPORTED;
	return -errno;
}

/* ---- arenas ---- */

static int arena_map(int fd, struct hc_arena *arena)
{
	void *at =
		mmap(NULL, ARENA_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);

	if (at == MAP_FAILED)
		return -errno;
	arena->fd = fd;
	arena->blocks = at;
	return 0;
}

int hc_arena_make(struct hc_arena *arena)
{
	int fd = memfd_create("hcomm-ops", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int r;

	if (fd < 0)
		return -errno;
	if (ftruncate(fd, (off_t)ARENA_BYTES) || fcntl(fd, F_ADD_SEALS, ARENA_SEALS))
		r = -errno;
	else
		r = arena_map(fd, arena);
	if (r)
		close(fd);
	return r;
}

int hc_arena_adopt(int fd, struct hc_arena *arena)
{
	struct statfs fs;
	struct stat st;
	int flags, seals;

	flags = fcntl(fd, F_GETFL);
	seals = fcntl(fd, F_GET_SEALS);
	if (flags < 0 || (flags & O_ACCMODE) != O_RDWR || seals != ARENA_SEALS)
		return HC_E_INVALID;
	/* huge pages have seals too, but a read may find none left and kill the reader */
	if (fstatfs(fd, &fs) || fs.f_type != TMPFS_TYPE)
		return HC_E_INVALID;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_size != (off_t)ARENA_BYTES)
		return HC_E_INVALID;
	return arena_map(fd, arena);
}

bool hc_arena_same(const struct hc_arena *arena, int fd)
{
	struct stat a, b;

	return !fstat(arena->fd, &a) && !fstat(fd, &b) && a.st_dev == b.st_dev &&
	       a.st_ino == b.st_ino;
}

void hc_arena_drop(struct hc_arena *arena)
{
	if (!arena->blocks)
		return;
	munmap(arena->blocks, ARENA_BYTES);
	close(arena->fd);
	arena->blocks = NULL;
	arena->fd = -1;
}

static uint64_t block_ends(const struct hc_page_block *b, unsigned parity)
{
	uint64_t sum = atomic_load_explicit(&b->shared.ends[parity], memory_order_acquire);
	unsigned i;

	for (i = 0; i < HC_BLOCK_LINES; i++)
		sum += atomic_load_explicit(&b->line[i].ends[parity], memory_order_acquire);
	return sum;
}

static uint64_t block_begins(const struct hc_page_block *b, unsigned parity)
{
	uint64_t sum = atomic_load_explicit(&b->shared.begins[parity], memory_order_acquire);
	unsigned i;

	for (i = 0; i < HC_BLOCK_LINES; i++)
		sum += atomic_load_explicit(&b->line[i].begins[parity], memory_order_acquire);
	return sum;
}

int hc_arena_scan(const struct hc_arena *arena, uint32_t block, uint64_t id, unsigned parity,
		  struct hc_arena_sample *sample)
{
	const struct hc_page_block *b;
	uint64_t begun, ends, running, kind;

	if (!arena->blocks || block >= HC_ARENA_BLOCKS)
		return HC_E_INVALID;
	b = &arena->blocks[block];
	*sample = (struct hc_arena_sample){.sane = true};
	if (atomic_load_explicit(&b->head.domain, memory_order_acquire) != id)
		return 0;
	begun = atomic_load_explicit(&b->head.begun, memory_order_acquire);
	ends = block_ends(b, parity & 1);
	running = block_begins(b, parity & 1) - ends;
	kind = atomic_load_explicit(begun ? &b->head.last_kind : &b->head.p2p_kind,
				    memory_order_relaxed);
	if (running > HC_ARENA_RUNNING_MAX || begun >= NUMBER_MAX) {
		sample->sane = false;
		return 0;
	}
	sample->begun = begun;
	sample->running = (uint32_t)running;
	sample->kind = kind <= HCOMM_OP_RECV ? (uint8_t)kind : 0;
	return 0;
}

int hc_arena_nonce_put(const struct hc_arena *arena, uint32_t block, uint64_t nonce)
{
	if (!arena->blocks || block >= HC_ARENA_BLOCKS)
		return HC_E_INVALID;
	atomic_store_explicit(&arena->blocks[block].head.nonce, nonce, memory_order_seq_cst);
	return 0;
}

bool hc_arena_nonce_proved(const struct hc_arena *arena, uint32_t block, uint64_t nonce)
{
	return arena->blocks && block < HC_ARENA_BLOCKS &&
	       atomic_load_explicit(&arena->blocks[block].head.nonce, memory_order_acquire) ==
		       ~nonce;
}
