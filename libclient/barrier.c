/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The barrier of the ranks of one node, in their sync page (proto/syncpage.h).
 *
 * The daemon gives the page at the first barrier of this process and is not asked again. A rank
 * that has to wait sleeps on two words at once, the generation of the page and the wake word of
 * the domain's state record, so a death or a suspension ends its sleep as surely as the last rank
 * does. A kernel without futex_waitv sleeps on the first alone, in short slices.
 *
 * Before it sleeps it looks for a while: on the spot when there is a processor for each rank, else
 * by giving its own to the others, who may be the ones that are missing.
 *
 * What is read in the page was written by other processes of the same job. A count or a generation
 * that cannot be is an error of the call, and all there is to fear.
 *
 * A barrier that was given up (time-out, suspended) is still the one that this rank has come to:
 * the next call goes on with it.
 */
#include "join.h"
#include "shared.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif

#define SLICE_NS       250000000u /* then it looks whether hcommd was restarted */
#define SHORT_SLICE_NS 10000000u  /* without futex_waitv: how late an error may be */
#define SPINS          200u       /* some microseconds */
#define YIELDS         4u         /* each lets one of those who share the processor come */
#define YIELDS_LONG_NS 300000u    /* then others than our ranks want it: not again for a while, */
#define SKIP_FIRST     64u        /* so many barriers, */
#define SKIP_MOST      8192u      /* doubled each time up to so many */

struct meeting {
	struct hc_shared *sh;
	struct hc_sync_page *page;
	uint64_t deadline;
	uint32_t number; /* of this barrier */
	uint32_t start;  /* of the daemon, as the gate shows it */
};

/* ---- the page ---- */

static int map_page(struct hc_shared *sh, const struct hc_m_sync_open_r *m, int fd)
{
	const int seals = fd < 0 ? -1 : fcntl(fd, F_GET_SEALS); /* -1: no memfd at all */
	struct hc_sync_page *page;
	struct stat st;

	/* one that could shrink would be a SIGBUS in the host */
	if (fd < 0 || fstat(fd, &st) || m->lines > HC_SYNC_LINES || !m->lines ||
	    m->bytes != HC_SYNC_BYTES(m->lines) || (uint64_t)st.st_size < m->bytes || seals < 0 ||
	    !(seals & F_SEAL_SHRINK))
		return hc_refuse(HC_E_MALFORMED,
				 "the sync page of hcommd is not a sealed file for %u ranks",
				 m->lines);
	if (m->lines != sh->nranks)
		return hc_refuse(HC_E_NOT_SUPPORTED,
				 "%u of the %u ranks are on this node: a barrier over several "
				 "nodes is not in version %s",
				 m->lines, sh->nranks, HC_VERSION);
	page = mmap(NULL, m->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED)
		return hc_refuse(HC_E_NO_MEMORY, "mapping the sync page (%u bytes): %s", m->bytes,
				 strerror(errno));
	if (page->magic != HC_SYNC_MAGIC || page->id != sh->id || page->epoch != sh->epoch) {
		munmap(page, m->bytes);
		return hc_refuse(HC_E_MALFORMED,
				 "the sync page is that of another domain or epoch, or a rank has "
				 "written into its head");
	}
	madvise(page, m->bytes, MADV_DONTFORK);
	sh->page = page;
	sh->fd = fd;
	sh->lines = m->lines;
	sh->bytes = m->bytes;
	return 0;
}

/* Nobody waits for the answer: the daemon only lets its own descriptor go by it. */
static void say_have(struct hc_shared *sh)
{
	struct hc_m_sync_have m = {.id = sh->id, .epoch = sh->epoch, .page = 1};
	uint8_t *bytes;

	if (!hc_shared_ranks(sh, &m.ranks, &bytes))
		hc_call_fire(sh->session, HC_MSG_done, &hc_desc_sync_have, &m);
	free(bytes);
}

static int open_page(struct hc_shared *sh, uint64_t deadline)
{
	struct hc_m_sync_open m = {.id = sh->id, .epoch = sh->epoch, .rank = sh->rank};
	struct hc_m_sync_open_r a = {0};
	struct hc_call c;
	int r;

	hc_call_init(&c, HC_MSG_sync_open_r);
	r = hc_shared_ask(sh, &c, &hc_desc_sync_open, &m, deadline);
	if (r == HC_E_AGAIN)
		r = hc_refuse(HC_E_TIMEOUT, "barrier: not all ranks have come back since hcommd "
					    "was restarted");
	if (!r && hc_call_answer(&sh->session->sess, &c, &hc_desc_sync_open_r, &a))
		r = hc_refuse(HC_E_MALFORMED, "hcommd gave an answer that is no `sync_open_r`");
	if (!r)
		r = map_page(sh, &a, c.fd);
	if (!r)
		c.fd = -1;
	hc_call_fini(&c);
	if (!r)
		say_have(sh);
	return r;
}

/* ---- the domain ---- */

static int refuse(const struct meeting *m, int outcome, const char *what)
{
	char cause[HC_CAUSE_BYTES + 1];

	hc_record_cause(m->sh->record, m->sh->id, cause, sizeof(cause));
	return hc_refuse(outcome, "barrier of domain %016llx: %s%s%s",
			 (unsigned long long)m->sh->id, what, cause[0] ? ": " : "", cause);
}

/* Can it still end well? */
static int look(struct meeting *m)
{
	const struct hc_page_record *record = m->sh->record;
	const uint64_t gate = atomic_load_explicit(&record->gate, memory_order_acquire);
	const uint32_t start = (uint32_t)((gate & HC_GATE_START_MASK) >> 40);
	const uint32_t kind = atomic_load_explicit(&record->cause_kind, memory_order_relaxed);

	if (m->sh->gone || atomic_load_explicit(&record->id, memory_order_relaxed) != m->sh->id)
		return refuse(m, HC_E_GONE, "the domain is gone");
	if ((uint32_t)((gate & HC_GATE_TAG_MASK) >> 8) != m->sh->tag)
		return refuse(m, HC_E_STALE, "the domain has a new epoch");
	if (start != m->start && hc_session_touch(m->sh->session, start))
		m->start = start;
	switch ((enum hcomm_state)(gate & HC_GATE_STATE_MASK)) {
	case HCOMM_ACTIVE: return 0;
	case HCOMM_FORMING:
	case HCOMM_PROBING:
	case HCOMM_ACTIVATING:
	case HCOMM_SUSPENDED: return refuse(m, HC_E_SUSPENDED, "suspended");
	case HCOMM_DAMAGED:
		if (kind == HC_W_event_code_RANK_ABORTED)
			return refuse(m, HC_E_ABORTED, "damaged");
		return refuse(m, HC_E_DAMAGED, "damaged");
	case HCOMM_DRAINING: return refuse(m, HC_E_GONE, "not all ranks will come any more");
	case HCOMM_DESTROYED:
	case HCOMM_FAILED: return refuse(m, HC_E_GONE, "the domain has ended");
	}
	return refuse(m, HC_E_GONE, "the domain has ended");
}

static int late(const struct meeting *m)
{
	char text[512];
	uint32_t i, missing = 0;
	size_t at = 0;

	text[0] = '\0';
	for (i = 0; i < m->sh->lines; i++) {
		if (atomic_load_explicit(&m->page->line[i].came, memory_order_relaxed) == m->number)
			continue;
		missing++;
		if (at + 16 < sizeof(text))
			at += (size_t)snprintf(text + at, sizeof(text) - at, " %u", i);
	}
	return hc_refuse(HC_E_TIMEOUT, "barrier #%u: no word from rank%s (%u of %u)", m->number,
			 text, missing, m->sh->lines);
}

static int nonsense(const struct meeting *m)
{
	return hc_refuse(
		HC_E_MALFORMED,
		"barrier #%u: a rank of the domain has written nonsense into its sync page",
		m->number);
}

/* ---- sleeping ---- */

struct waitv { /* struct futex_waitv */
	uint64_t value, address;
	uint32_t flags, reserved;
};

/* Until one of the words changes, at most until `deadline` (monotonic). */
static void sleep_on(struct meeting *m, uint32_t generation, uint32_t wake, uint64_t deadline)
{
	static _Atomic bool no_waitv;
	struct waitv v[2] = {
		{.value = generation,
		 .address = (uintptr_t)&m->page->generation,
		 .flags = 2 /* 32 bits, shared */},
		{.value = wake, .address = (uintptr_t)&m->sh->record->wake, .flags = 2}};
	struct timespec t = {.tv_sec = (time_t)(deadline / HC_SECOND),
			     .tv_nsec = (long)(deadline % HC_SECOND)};
	const uint64_t soon = hc_now() + SHORT_SLICE_NS;

	if (!atomic_load_explicit(&no_waitv, memory_order_relaxed)) {
		if (syscall(SYS_futex_waitv, v, 2, 0, &t, CLOCK_MONOTONIC) >= 0 ||
		    (errno != ENOSYS && errno != EPERM && errno != EINVAL))
			return;
		atomic_store_explicit(&no_waitv, true, memory_order_relaxed);
	}
	if (soon < deadline)
		t = (struct timespec){.tv_sec = (time_t)(soon / HC_SECOND),
				      .tv_nsec = (long)(soon % HC_SECOND)};
	/* BITSET, since its time-out is a moment and not a span */
	syscall(SYS_futex, &m->page->generation, FUTEX_WAIT_BITSET, generation, &t, NULL,
		FUTEX_BITSET_MATCH_ANY);
}

/* ---- meeting ---- */

static void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

static bool ended(const struct meeting *m)
{
	return atomic_load_explicit(&m->page->generation, memory_order_acquire) == m->number;
}

static bool spin(const struct meeting *m)
{
	uint32_t i;

	for (i = 0; i < SPINS && !ended(m); i++)
		relax();
	return ended(m);
}

/* On a processor that other programs want, too, it comes back after their turns, which are long. */
static bool yield(const struct meeting *m)
{
	struct hc_shared *sh = m->sh;
	uint64_t began;
	uint32_t i;

	if (sh->skip) {
		sh->skip--;
		return ended(m);
	}
	began = hc_now();
	for (i = 0; i < YIELDS && !ended(m); i++)
		sched_yield();
	if (hc_now() - began < YIELDS_LONG_NS) {
		sh->skip_next = SKIP_FIRST;
		return ended(m);
	}
	sh->skip = sh->skip_next ? sh->skip_next : SKIP_FIRST;
	sh->skip_next = sh->skip < SKIP_MOST ? 2 * sh->skip : SKIP_MOST;
	return ended(m);
}

/* A short while without the kernel's sleep. */
static bool ends_soon(const struct meeting *m)
{
	static _Atomic uint32_t processors;
	uint32_t n = atomic_load_explicit(&processors, memory_order_relaxed);
	long online;

	/* of the machine: ranks are often bound to one each */
	if (!n) {
		online = sysconf(_SC_NPROCESSORS_ONLN);
		n = online > 0 && online < (long)HC_SYNC_LINES ? (uint32_t)online : 1;
		atomic_store_explicit(&processors, n, memory_order_relaxed);
	}
	return m->sh->lines <= n ? spin(m) : yield(m);
}

/* All have come but us; or not. Returns whether that was the last. */
static int come(struct meeting *m, bool *last)
{
	struct hc_shared *sh = m->sh;
	uint32_t i, n;

	m->number = atomic_load_explicit(&m->page->generation, memory_order_acquire) + 1;
	for (i = 0; i < sh->nseats; i++) {
		if (sh->seats[i].rank >= sh->lines)
			return nonsense(m);
		atomic_store_explicit(&m->page->line[sh->seats[i].rank].came, m->number,
				      memory_order_relaxed);
	}
	sh->number = m->number;
	sh->came = true;
	n = atomic_fetch_add_explicit(&m->page->arrived, sh->nseats, memory_order_acq_rel) +
	    sh->nseats;
	*last = n == sh->lines;
	return n > sh->lines ? nonsense(m) : 0;
}

static void end_it(const struct meeting *m)
{
	struct hc_sync_page *page = m->page;

	atomic_store_explicit(&page->arrived, 0, memory_order_relaxed);
	atomic_store_explicit(&page->generation, m->number, memory_order_seq_cst);
	if (atomic_load_explicit(&page->sleepers, memory_order_seq_cst))
		syscall(SYS_futex, &page->generation, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static int wait(struct meeting *m)
{
	struct hc_sync_page *page = m->page;
	const struct hc_page_record *record = m->sh->record;
	uint32_t seen, wake;
	uint64_t now, until;
	int r;

	if (ends_soon(m))
		return 0;
	for (;;) {
		wake = atomic_load_explicit(&record->wake, memory_order_acquire);
		r = look(m);
		/* it may have ended well before that happened */
		seen = atomic_load_explicit(&page->generation, memory_order_acquire);
		if (seen == m->number)
			return 0;
		if (r)
			return r;
		if (seen + 1 != m->number)
			return nonsense(m);
		now = hc_now();
		if (now >= m->deadline)
			return late(m);
		until = now + SLICE_NS < m->deadline ? now + SLICE_NS : m->deadline;
		atomic_fetch_add_explicit(&page->sleepers, 1, memory_order_seq_cst);
		sleep_on(m, seen, wake, until);
		atomic_fetch_sub_explicit(&page->sleepers, 1, memory_order_relaxed);
	}
}

static int meet(struct meeting *m)
{
	bool last = false;
	int r;

	m->page = m->sh->page;
	if (m->sh->came) {
		m->number = m->sh->number;
		return wait(m);
	}
	r = look(m);
	if (!r)
		r = come(m, &last);
	if (r)
		return r;
	if (!last)
		return wait(m);
	end_it(m);
	return 0;
}

/* Nobody else is there to wait for. */
static int alone(struct hc_shared *sh)
{
	const uint64_t gate = atomic_load_explicit(&sh->record->gate, memory_order_acquire);

	if ((gate & HC_GATE_STATE_MASK) != HCOMM_ACTIVE)
		return hc_refuse(HC_E_ABORTED, "the domain was aborted");
	return 0;
}

static int begin(struct hc_shared *sh, int timeout_ms, struct meeting *m)
{
	uint32_t ms;
	int r;

	if (timeout_ms == HCOMM_START)
		return hc_refuse(HC_E_INVALID, "timeout_ms is 0; wanted: a time to wait");
	r = hc_timeout(sh->session, timeout_ms, sh->session->connect_timeout_ms, &ms, &m->deadline);
	if (!r && sh->meeting)
		r = hc_refuse(HC_E_INVALID, "another thread is in hcomm_barrier of this handle");
	if (r)
		return r;
	sh->meeting = true;
	m->sh = sh;
	m->start = sh->session->start & 0xffffffu;
	r = look(m);
	if (!r && !sh->page)
		r = open_page(sh, m->deadline);
	if (r == HC_E_DAMAGED && look(m)) /* the record knows better how */
		r = look(m);
	if (r)
		sh->meeting = false;
	return r;
}

HC_EXPORT int hcomm_barrier(hcomm_domain domain, int timeout_ms)
{
	struct meeting m = {0};
	struct hc_shared *sh;
	int r = hc_shared_enter(domain, &sh);

	if (r)
		return -r;
	r = sh->session ? begin(sh, timeout_ms, &m) : alone(sh);
	if (!r && sh->session) {
		pthread_mutex_unlock(sh->lock);
		r = meet(&m);
		pthread_mutex_lock(sh->lock);
		sh->came = sh->came && r;
		sh->meeting = false;
	}
	hc_shared_leave(sh);
	return -r;
}
