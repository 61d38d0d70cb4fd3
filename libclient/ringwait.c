/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How an end of a ring waits for the other: a short spin, then a futex.
 *
 * Spinning pays when the answer is under way on another core and costs the answer itself when the
 * other end needs this core. So nobody spins whose partner lay down on this processor. Otherwise
 * the length of the spin follows what it brought: it grows while answers come within it, and is
 * halved when they do not, with a long one now and then so that two ends that fell asleep find
 * back. No clock is read before it comes to sleeping. The spin itself is in ring.h, where it is
 * inlined with the look that it repeats.
 *
 * The first sleep is on the other's `wake` alone, the cheapest that there is, and short: behind it
 * the end of the channel is seen, and a message whose wake fell into the gap that rings.h tells of.
 * It is not shorter than a tick, though: a time-out before the next tick makes the kernel set the
 * processor's clock, which costs more than all the rest where that clock is a hypervisor's.
 * Further sleeps watch two words at once, `wake` and the word of the channel's status register, so
 * that the end of the channel ends them (futex_waitv, Linux 5.16; on a page that is mapped to read
 * it makes a sleep a quarter dearer). An older kernel sleeps on the first in slices. They
 * last a second at most: an other end that was killed between its store and its wake leaves nobody
 * asleep for good.
 */
#include "ring.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MS            UINT64_C(1000000)
#define LOOK_AGAIN_NS (1000 * MS)
#define SLICE_NS      (10 * MS) /* of a sleep that does not see the register */
#define FIRST_NS      (10 * MS)
#define DRAIN         16u /* looks, half a microsecond or so: what was stored before is seen */
#define SPIN_MIN      32u
#define SPIN_MAX      512u /* 3 to 20 us, by processor */
#define SPIN_LONG     64u  /* every so many sleeps, as long as can be */

#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif
struct waiter { /* struct futex_waitv, which older headers lack */
	uint64_t value, address;
	uint32_t flags, reserved;
};
#define WAITER_32 2u /* FUTEX_32, shared */

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

/* By where it lay down last, to receive or for room. */
static bool partner_is_here(const struct hc_ring_wait *w)
{
	uint32_t a = atomic_load_explicit(&w->theirs->cpu, memory_order_relaxed);
	uint32_t b = atomic_load_explicit(&w->partner->cpu, memory_order_relaxed);
	uint32_t here;

	if (!(a | b))
		return false;
	here = (uint32_t)sched_getcpu() + 1;
	return a == here || b == here;
}

/* ---- sleeping ---- */

static struct timespec timespec_of(uint64_t ns)
{
	return (struct timespec){.tv_sec = (time_t)(ns / (1000 * MS)),
				 .tv_nsec = (long)(ns % (1000 * MS))};
}

/* Every way out leads to another look. */
static void sleep_on(const struct hc_ring_wait *w, uint32_t wake, uint64_t ns)
{
	struct timespec t = timespec_of(ns);

	syscall(SYS_futex, &w->theirs->wake, FUTEX_WAIT, wake, &t, NULL, 0);
}

static void sleep_on_both(const struct hc_ring_wait *w, uint32_t wake, uint32_t seen,
			  uint64_t until, uint64_t ns)
{
	struct waiter v[2] = {{wake, (uintptr_t)&w->theirs->wake, WAITER_32, 0},
			      {seen, (uintptr_t)w->watch->word, WAITER_32, 0}};
	struct timespec t = timespec_of(until);

	if (syscall(SYS_futex_waitv, v, 2, 0, &t, CLOCK_MONOTONIC) < 0 && errno == ENOSYS)
		sleep_on(w, wake, ns < SLICE_NS ? ns : SLICE_NS);
}

static bool over(const struct hc_ring_wait *w)
{
	return w->watch->over && w->watch->over(w->watch->context);
}

static uint32_t watched(const struct hc_ring_wait *w)
{
	return w->watch->word ? atomic_load_explicit(w->watch->word, memory_order_acquire) : 0;
}

/* Only on another processor can there be a store that is not seen yet. */
static bool ready_soon(const struct hc_ring_wait *w, hc_ring_ready ready, void *half)
{
	uint32_t i, looks = w->here ? 1 : DRAIN;

	for (i = 0; i < looks; i++) {
		if (ready(half))
			return true;
		hc_ring_relax();
	}
	return false;
}

/* Say that we sleep, look once more, sleep. */
static void lie_down(struct hc_ring_wait *w, hc_ring_ready ready, void *half, uint64_t at,
		     uint64_t ns)
{
	uint32_t wake = atomic_load_explicit(&w->theirs->wake, memory_order_acquire);
	uint32_t seen = watched(w), cpu = (uint32_t)sched_getcpu() + 1;

	w->sleeps++;
	if (atomic_load_explicit(&w->mine->cpu, memory_order_relaxed) != cpu)
		atomic_store_explicit(&w->mine->cpu, cpu, memory_order_relaxed);
	atomic_store_explicit(&w->mine->asleep, ++w->asleep, memory_order_seq_cst);
	if (!ready_soon(w, ready, half) && !over(w)) {
		if (ns <= FIRST_NS || !w->watch->word)
			sleep_on(w, wake, ns);
		else
			sleep_on_both(w, wake, seen, at + ns, ns);
	}
	atomic_store_explicit(&w->mine->asleep, ++w->asleep, memory_order_release);
}

/* How long to spin the next time, after a spin that brought nothing. */
static void adapt(struct hc_ring_wait *w)
{
	uint32_t less = w->spins / 2 > SPIN_MIN ? w->spins / 2 : SPIN_MIN;

	w->spins = w->sleeps % SPIN_LONG ? less : HC_RING_SPIN_MAX;
	w->here = partner_is_here(w);
}

int hc_ring_pause(struct hc_ring_wait *w, hc_ring_ready ready, void *half, struct hc_ring_time *t)
{
	uint64_t at, most = FIRST_NS;

	if (!t->ms)
		return over(w) && !ready(half) ? HC_E_PEER_LOST : ready(half) ? 0 : HC_E_AGAIN;
	adapt(w);
	for (;;) {
		/* what came before the end is there when the end is seen */
		if (over(w))
			return ready(half) ? 0 : HC_E_PEER_LOST;
		at = now();
		if (!t->deadline)
			t->deadline = t->ms == HC_RING_FOREVER ? UINT64_MAX : at + t->ms * MS;
		if (at >= t->deadline)
			return ready(half) ? 0 : HC_E_TIMEOUT;
		lie_down(w, ready, half, at, t->deadline - at < most ? t->deadline - at : most);
		w->here = partner_is_here(w);
		if (ready(half))
			return 0;
		most = LOOK_AGAIN_NS;
	}
}
