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
#include <string.h>

#include "rings.h"
#include "wire.h"

struct hc_ring_watch {                /* how a waiter hears that the channel is over */
	const _Atomic uint32_t *word; /* changes when there is something to look at; or NULL */
	bool (*over)(void *context);
	void *context;
};

struct hc_ring_time {
	uint32_t ms;       /* 0: do not wait; HC_RING_FOREVER */
	bool spun;         /* the first spin is over, in vain */
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

/* The answer came within the spin. */
static inline void hc_ring_spun_well(struct hc_ring_wait *w)
{
	if (__builtin_expect(w->spins != HC_RING_SPIN_MAX, 0))
		w->spins = w->spins < HC_RING_SPIN_MAX / 2 ? 2 * w->spins : HC_RING_SPIN_MAX;
}

static inline __attribute__((always_inline)) bool hc_ring_spin(struct hc_ring_wait *w,
							       hc_ring_ready ready, void *half,
							       const struct hc_ring_time *t)
{
	uint32_t i, most = w->here || !t->ms ? 0 : w->spins;

	for (i = 0; i < most; i++) {
		if (ready(half)) {
			hc_ring_spun_well(w);
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

/* ---- the usual way, inlined into the calls of the library ---- */

/* What is in no hurry, or not as usual: more than a descriptor, no room, nothing there. */
int hc_ring_send_slow(struct hc_ring_tx *tx, const void *data, uint32_t bytes,
		      struct hc_ring_time t);
int hc_ring_recv_slow(struct hc_ring_rx *rx, void *data, uint32_t *bytes, struct hc_ring_time t);

/* Turns: an empty descriptor shows 0 in the first lap, later that of the lap before. */
#define HC_RING_TURN_OF(position) ((uint32_t)((position) + 1))
#define HC_RING_PLACE(half, at)   (&(half)->desc[(at) % HC_RING_SLOTS])

/* Inlined, gcc would warn of lengths that the caller knows its buffer not to have. */
#define HC_RING_ANY(pointer) __asm__("" : "+r"(pointer))

/*
 * Up to a descriptor's worth, in whole words: neither a call nor a loop. The least first, since
 * the longer ones take longer anyway.
 */
static inline __attribute__((always_inline)) void hc_ring_copy(uint8_t *to, const uint8_t *from,
							       uint32_t n)
{
	if (n <= 16) {
		if (n >= 8) {
			memcpy(to, from, 8);
			memcpy(to + n - 8, from + n - 8, 8);
		} else if (n >= 4) {
			memcpy(to, from, 4);
			memcpy(to + n - 4, from + n - 4, 4);
		} else if (n) {
			to[0] = from[0];
			to[n / 2] = from[n / 2];
			to[n - 1] = from[n - 1];
		}
	} else if (n == HC_RING_INLINE) {
		memcpy(to, from, HC_RING_INLINE);
	} else if (n >= 32) {
		memcpy(to, from, 32);
		memcpy(to + n - 32, from + n - 32, 32);
	} else {
		memcpy(to, from, 16);
		memcpy(to + n - 16, from + n - 16, 16);
	}
}

static inline __attribute__((always_inline)) void hc_ring_publish(struct hc_ring_tx *tx,
								  uint32_t kind, uint32_t bytes,
								  uint32_t descs)
{
	atomic_store_explicit(&HC_RING_PLACE(tx, tx->position)->word,
			      HC_RING_WORD(HC_RING_TURN_OF(tx->position), kind, bytes),
			      memory_order_release);
	tx->position += descs;
	hc_ring_notify(&tx->wait);
}

static inline __attribute__((always_inline)) void hc_ring_step(struct hc_ring_rx *rx,
							       uint32_t descs)
{
	rx->position += descs;
	rx->lap |= rx->position >= HC_RING_SLOTS;
	atomic_store_explicit(&rx->control->taken, (uint64_t)rx->lines << 32 | rx->position,
			      memory_order_release);
	hc_ring_notify(&rx->wait);
}

/* The second descriptor of two, before the first: that one is what the receiver looks at. */
static inline __attribute__((always_inline)) void hc_ring_put_more(struct hc_ring_tx *tx,
								   uint32_t position,
								   const uint8_t *data, uint32_t n)
{
	struct hc_ring_desc *d = HC_RING_PLACE(tx, position);

	hc_ring_copy(d->u.data, data, n);
	atomic_store_explicit(&d->word, HC_RING_WORD(HC_RING_TURN_OF(position), HC_RING_MORE, 0),
			      memory_order_relaxed);
}

/* 0 or as above. */
static inline __attribute__((always_inline)) int hc_ring_send(struct hc_ring_tx *tx,
							      const void *data, uint32_t bytes,
							      struct hc_ring_time t)
{
	uint32_t first = bytes, descs = 1;
	const uint8_t *from = data;

	HC_RING_ANY(from);
	/* three are left: two for the message, and that of ABORT */
	if (__builtin_expect(bytes > 2 * HC_RING_INLINE || tx->bad ||
				     tx->position - tx->taken > HC_RING_SLOTS - 3,
			     0))
		return hc_ring_send_slow(tx, data, bytes, t);
	if (bytes > HC_RING_INLINE) {
		first = HC_RING_INLINE;
		descs = 2;
		hc_ring_put_more(tx, tx->position + 1, from + first, bytes - first);
	}
	hc_ring_copy(HC_RING_PLACE(tx, tx->position)->u.data, from, first);
	hc_ring_publish(tx, HC_RING_SMALL, bytes, descs);
	return 0;
}

/* *bytes: the room, then the length. */
static inline __attribute__((always_inline)) int hc_ring_recv(struct hc_ring_rx *rx, void *data,
							      uint32_t *bytes,
							      struct hc_ring_time t)
{
	const struct hc_ring_desc *d = HC_RING_PLACE(rx, rx->position);
	const struct hc_ring_desc *next = HC_RING_PLACE(rx, rx->position + 1);
	uint32_t i = 0, most = rx->wait.here || !t.ms ? 0 : rx->wait.spins, n;
	uint32_t turn = HC_RING_TURN_OF(rx->position);
	uint8_t *to = data;
	uint64_t word;

	HC_RING_ANY(to);
	if (__builtin_expect(rx->bad || rx->total, 0))
		return hc_ring_recv_slow(rx, data, bytes, t);
	while (word = atomic_load_explicit(&d->word, memory_order_acquire),
	       HC_RING_TURN(word) != turn) {
		if (i++ == most) {
			t.spun = true;
			return hc_ring_recv_slow(rx, data, bytes, t);
		}
		hc_ring_relax();
	}
	if (i)
		hc_ring_spun_well(&rx->wait);
	/* one comparison for the kind and the length, whatever was written there */
	n = (uint32_t)(word >> 32) ^ (uint32_t)HC_RING_SMALL << 28;
	if (__builtin_expect(n > 2 * HC_RING_INLINE || n > *bytes, 0))
		return hc_ring_recv_slow(rx, data, bytes, t);
	*bytes = n;
	if (n > HC_RING_INLINE) {
		hc_ring_copy(to + HC_RING_INLINE, next->u.data, n - HC_RING_INLINE);
		hc_ring_copy(to, d->u.data, HC_RING_INLINE);
		hc_ring_step(rx, 2);
	} else {
		hc_ring_copy(to, d->u.data, n);
		hc_ring_step(rx, 1);
	}
	return 0;
}

#endif
