/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One end of a channel in shared memory (proto/rings.h): a ring to send into, one to receive from.
 *
 * One thread at a time sends and one receives; the two halves share nothing, so they may be two
 * threads. Nothing here allocates, locks or knows of sessions. The functions return 0 or a
 * positive HC_E_*:
 *
 *	AGAIN            nothing waited for (time of 0): no room, no message
 *	TIMEOUT          the same after the time
 *	PEER_LOST        the watch says that the channel is over; received before that: all of it
 *	MALFORMED        the other end broke a rule, and this half is of no more use
 *	BUFFER_OVERFLOW  recv: *bytes is the length, the message stays; send without waiting: the
 *	                 message is larger than the buffer, so it can never go at once
 *
 * A send that fails has delivered nothing, also when it failed in the middle. A receive that runs
 * out of time in the middle keeps what it has in `stash` (HC_RING_MESSAGE_MAX bytes, of the
 * caller's) and goes on from there the next time; the same for poll, which is to say that a whole
 * message is there.
 */
#ifndef HC_RING_H
#define HC_RING_H

#include <stdbool.h>

#include "rings.h"
#include "wire.h"

struct hc_ring_watch {                /* how a waiter hears that the channel is over */
	const _Atomic uint32_t *word; /* changes when there is something to look at; or NULL */
	bool (*over)(void *context);
	void *context;
};

struct hc_ring_time {
	uint32_t ms;       /* 0: do not wait; HC_RING_FOREVER */
	uint64_t deadline; /* 0; filled in when it comes to sleeping */
};
#define HC_RING_FOREVER UINT32_MAX
#define HC_RING_WAIT(t) ((struct hc_ring_time){.ms = (t)})

struct hc_ring_wait { /* state of one who waits, and of the same one who wakes the other */
	struct hc_ring_quiet *mine, *theirs;
	const struct hc_ring_quiet *partner; /* where the other lies down to receive */
	const struct hc_ring_watch *watch;
	uint32_t asleep, wake; /* what stands in `mine` */
	uint32_t woken;        /* the other's sleep that was answered */
	uint32_t spins, sleeps;
	bool here; /* the partner was on this processor when one of the two last slept */
};

struct hc_ring_tx {
	struct hc_ring_control *control;
	struct hc_ring_desc *desc;
	uint8_t *buffer;
	uint32_t buffer_bytes;
	uint32_t position; /* descriptors written; all three modulo 2^32 */
	uint32_t taken;    /* of them, as last seen */
	uint32_t lines, lines_taken;
	uint32_t offset; /* in the buffer */
	bool bad;
	struct hc_ring_wait wait;
};

struct hc_ring_rx {
	struct hc_ring_control *control;
	struct hc_ring_desc *desc;
	uint8_t *buffer, *stash;
	uint32_t buffer_bytes;
	uint32_t position, lines, offset;
	uint32_t total, got; /* of the message in the middle; total 0: none */
	bool lap;            /* the first one is over */
	bool bad;
	struct hc_ring_wait wait;
};

/*
 * `map` is the whole file, `side` 0 or 1. Watch and stash must outlive the halves.
 */
void hc_ring_tx_init(struct hc_ring_tx *tx, void *map, uint32_t buffer_bytes, unsigned side,
		     const struct hc_ring_watch *watch);
void hc_ring_rx_init(struct hc_ring_rx *rx, void *map, uint32_t buffer_bytes, unsigned side,
		     uint8_t *stash, const struct hc_ring_watch *watch);

int hc_ring_send(struct hc_ring_tx *tx, const void *data, uint32_t bytes, struct hc_ring_time t);
/* *bytes: the room, then the length. */
int hc_ring_recv(struct hc_ring_rx *rx, void *data, uint32_t *bytes, struct hc_ring_time t);
int hc_ring_poll(struct hc_ring_rx *rx, struct hc_ring_time t);
/* Get the own threads that sleep in these halves to look at the watch. */
void hc_ring_rouse(struct hc_ring_wait *w);

/* ringwait.c. Wait until `ready`, behind a spin in vain; 0, AGAIN, TIMEOUT, PEER_LOST. */
typedef bool (*hc_ring_ready)(void *half);
int hc_ring_pause(struct hc_ring_wait *w, hc_ring_ready ready, void *half, struct hc_ring_time *t);
void hc_ring_wake(struct hc_ring_wait *w, uint32_t asleep);

#define HC_RING_SPIN_MAX 512u /* 3 to 20 us, by processor */

static inline void hc_ring_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield" ::: "memory");
#endif
}

static inline __attribute__((always_inline)) bool hc_ring_spin(struct hc_ring_wait *w,
							       hc_ring_ready ready, void *half,
							       const struct hc_ring_time *t)
{
	uint32_t i, most = w->here || !t->ms ? 0 : w->spins;

	for (i = 0; i < most; i++) {
		if (ready(half)) {
			w->spins =
				w->spins < HC_RING_SPIN_MAX / 2 ? 2 * w->spins : HC_RING_SPIN_MAX;
			return true;
		}
		hc_ring_relax();
	}
	return false;
}

/* Behind a store that the other may wait for; no fence, see rings.h. */
static inline __attribute__((always_inline)) void hc_ring_notify(struct hc_ring_wait *w)
{
	uint32_t asleep;

	asleep = atomic_load_explicit(&w->theirs->asleep, memory_order_relaxed);
	if (__builtin_expect((asleep & 1) && asleep != w->woken, 0))
		hc_ring_wake(w, asleep);
}

#endif
