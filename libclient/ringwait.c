/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How an end of a ring waits for the other: a short spin, then a futex.
 *
 * Spinning pays when the answer is under way on another core and costs the answer itself when the
 * other end needs this core. So nobody spins whose partner lay down on this processor. Otherwise
 * the length of the spin follows what it brought: it grows while answers come within it, and is
 * halved when they do not, with a long one now and then so that two ends that fell asleep find
 * back. No clock is read before it comes to sleeping.
 *
 * A sleeper watches two words at once, the other's `wake` and the word of the channel's status
 * register, so that the end of a channel ends the wait (futex_waitv, Linux 5.16). An older kernel
 * sleeps on the first in slices. In any case it looks up once a second: an other end that was
 * killed between its store and its wake leaves nobody asleep for good.
 *
 * A sleeper without membarrier cannot pay the other's half of the fence; it sleeps in slices of a
 * millisecond.
 */
#include "ring.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MS             UINT64_C(1000000)
#define LOOK_AGAIN_NS  (1000 * MS)
#define SLICE_NS       (10 * MS) /* of a sleep that does not see the register */
#define SLICE_BLIND_NS MS        /* without membarrier */
#define SPIN_MIN       32u
#define SPIN_MAX       512u /* 3 to 20 us, by processor */
#define SPIN_LONG      64u  /* every so many sleeps, as long as can be */

#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif
struct waiter { /* struct futex_waitv, which older headers lack */
	uint64_t value, address;
	uint32_t flags, reserved;
};
#define WAITER_32 2u /* FUTEX_32, shared */

static inline void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield" ::: "memory");
#endif
}

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 * MS + (uint64_t)t.tv_nsec;
}

/* ---- waking ---- */

static void raise_word(_Atomic uint32_t *word, uint32_t value)
{
	atomic_store_explicit(word, value, memory_order_release);
	/* not PRIVATE: the sleeper is another process */
	syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void hc_ring_wake(struct hc_ring_wait *w, uint32_t asleep)
{
	w->woken = asleep;
	raise_word(&w->mine->wake, ++w->wake);
}

/* The other's word, but only threads of this process have yet to look at it. */
void hc_ring_rouse(struct hc_ring_wait *w)
{
	uint32_t value = atomic_load_explicit(&w->theirs->wake, memory_order_relaxed);

	raise_word(&w->theirs->wake, value + 1);
}

/* ---- spinning ---- */

static bool partner_is_here(const struct hc_ring_wait *w)
{
	uint32_t cpu = atomic_load_explicit(&w->theirs->cpu, memory_order_relaxed);

	return cpu && cpu == (uint32_t)sched_getcpu() + 1;
}

static bool spin(struct hc_ring_wait *w, hc_ring_ready ready, void *half)
{
	uint32_t i, most = w->spins;

	if (!(w->sleeps % SPIN_LONG))
		most = SPIN_MAX;
	for (i = 0; i < most; i++) {
		if (ready(half)) {
			w->spins = w->spins < SPIN_MAX / 2 ? 2 * w->spins : SPIN_MAX;
			return true;
		}
		/* the partner may have come here since */
		if (!(i % 64) && partner_is_here(w))
			return false;
		relax();
	}
	w->spins = w->spins / 2 > SPIN_MIN ? w->spins / 2 : SPIN_MIN;
	return false;
}

/* ---- sleeping ---- */

/* Make the other's store before and its look after change no places. False: it cannot be. */
static bool fence_other(void)
{
	return !syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0);
}

static struct timespec timespec_of(uint64_t ns)
{
	return (struct timespec){.tv_sec = (time_t)(ns / (1000 * MS)),
				 .tv_nsec = (long)(ns % (1000 * MS))};
}

/* Every way out leads to another look. */
static void sleep_on(const struct hc_ring_wait *w, uint32_t wake, uint32_t seen, uint64_t until,
		     bool blind)
{
	struct waiter v[2] = {{wake, (uintptr_t)&w->theirs->wake, WAITER_32, 0},
			      {seen, (uintptr_t)w->watch->word, WAITER_32, 0}};
	uint64_t start = now(), most = LOOK_AGAIN_NS;
	struct timespec t;

	if (until <= start)
		return;
	if (blind)
		most = SLICE_BLIND_NS;
	if (until - start < most)
		most = until - start;
	if (w->watch->word) {
		t = timespec_of(start + most);
		if (syscall(SYS_futex_waitv, v, 2, 0, &t, CLOCK_MONOTONIC) >= 0 || errno != ENOSYS)
			return;
		if (most > SLICE_NS)
			most = SLICE_NS;
	}
	t = timespec_of(most);
	syscall(SYS_futex, &w->theirs->wake, FUTEX_WAIT, wake, &t, NULL, 0);
}

static bool over(const struct hc_ring_wait *w)
{
	return w->watch->over && w->watch->over(w->watch->context);
}

static uint32_t watched(const struct hc_ring_wait *w)
{
	return w->watch->word ? atomic_load_explicit(w->watch->word, memory_order_acquire) : 0;
}

/* Say that we sleep, look once more, sleep. */
static void lie_down(struct hc_ring_wait *w, hc_ring_ready ready, void *half, uint64_t until)
{
	uint32_t wake = atomic_load_explicit(&w->theirs->wake, memory_order_acquire);
	uint32_t seen = watched(w), cpu = (uint32_t)sched_getcpu() + 1;
	bool blind;

	w->sleeps++;
	if (atomic_load_explicit(&w->mine->cpu, memory_order_relaxed) != cpu)
		atomic_store_explicit(&w->mine->cpu, cpu, memory_order_relaxed);
	atomic_store_explicit(&w->mine->asleep, ++w->asleep, memory_order_seq_cst);
	blind = !fence_other();
	if (!ready(half) && !over(w))
		sleep_on(w, wake, seen, until, blind);
	atomic_store_explicit(&w->mine->asleep, ++w->asleep, memory_order_release);
}

int hc_ring_pause(struct hc_ring_wait *w, hc_ring_ready ready, void *half, struct hc_ring_time *t)
{
	uint64_t start;

	if (!t->ms)
		return over(w) && !ready(half) ? HC_E_PEER_LOST : ready(half) ? 0 : HC_E_AGAIN;
	if (!partner_is_here(w) && spin(w, ready, half))
		return 0;
	if (!t->deadline) {
		start = now();
		t->deadline = t->ms == HC_RING_FOREVER ? UINT64_MAX : start + t->ms * MS;
	}
	for (;;) {
		/* what came before the end is there when the end is seen */
		if (over(w))
			return ready(half) ? 0 : HC_E_PEER_LOST;
		if (now() >= t->deadline)
			return ready(half) ? 0 : HC_E_TIMEOUT;
		lie_down(w, ready, half, t->deadline);
		if (ready(half))
			return 0;
	}
}
