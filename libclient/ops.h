/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operation references of a client: begin and end in shared memory (proto/pages.h, ops.c).
 *
 * The two calls are inline here, so that a call of the public API is one function: look the
 * handle up, then run the few loads and stores below. Whatever is not the common case (no line
 * yet, the shared line, no fence, a gate that is not as expected) leaves through one branch to
 * ops.c. All functions return 0 or a positive HC_E_*.
 *
 * Lifetime. A struct hc_ops_domain is a slot of the library's handle table. The slot, its seats,
 * the arena and the slab stay mapped until the session closes; releasing a domain only changes
 * `handle` (hc_ops_detach) and the slot goes to a free list. So a token or handle that outlived
 * its domain finds another handle in the slot and nothing dangling:
 *
 *	d = slot of (handle's index);
 *	if (atomic_load_explicit(&d->handle, memory_order_acquire) != handle)  -> HC_E_GONE
 *
 * A token's private_[0] is the handle, 0 once it was returned (-> HC_E_INVALID); hc_ops_end clears
 * it. With the table in MADV_WIPEONFORK memory a forked child finds no handle either, at no cost.
 */
#ifndef HC_OPS_H
#define HC_OPS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hcomm/hcomm.h"
#include "pages.h"
#include "wire.h"

struct hc_ops_domain;

struct hc_ops_hooks {
	/* A reference was returned, or is asked for, while the daemon may wait for it: send
	 * ops_ended. Any thread; must not block for long and must not call begin or end. */
	void (*wake)(struct hc_ops_domain *d, void *context);
	/* The daemon was restarted: re-attach when convenient. The reference stands meanwhile.
	 * Once for each new start number of each domain. Same rules. */
	void (*reattach)(struct hc_ops_domain *d, void *context);
	void *context;
};

struct hc_ops_seat { /* one rank of the domain in this process */
	struct hc_page_block *block;
	uint32_t rank;
	uint32_t reserved;
};

struct hc_ops_domain {
	_Alignas(64) _Atomic uint64_t handle; /* 0 = free slot; the library's, with a generation */
	_Atomic uint64_t expected;            /* gate word that means "open for me" */
	const struct hc_page_record *record;  /* mapped read-only */
	struct hc_ops_seat *seats;            /* &one, or the library's array */
	uint64_t id;
	_Atomic uint32_t fast_lines; /* HC_OPS_OWN_LINES, or 0: locked instructions */
	uint32_t nseats;
	const struct hc_ops_hooks *hooks;
	struct hc_ops_seat one;
	_Atomic uint64_t barrier; /* target of the slow path's locked instruction */
	uint32_t fence;           /* what the session agreed on */
};

/* Offset of the thread's line in a block; 0 = none yet; the shared line for threads too many. */
extern __thread uint32_t hc_ops_line
	__attribute__((tls_model("initial-exec"), visibility("hidden")));

#define HC_OPS_OWN_LINES ((uint32_t)offsetof(struct hc_page_block, shared) - 1)
#define HC_OPS_SEATS_MAX 16384u

/* Token word 1: parity of the epoch, point-to-point, seat, number of the collective. */
#define HC_OPS_P2P 2u
#define HC_OPS_TOKEN(p, p2p, seat, n)                                                              \
	((uint64_t)(p) | ((p2p) ? HC_OPS_P2P : 0u) | ((uint64_t)(seat) << 2) |                     \
	 ((uint64_t)(n) << 16))
#define HC_OPS_SEAT_OF(word)   ((uint32_t)((word) >> 2) & (HC_OPS_SEATS_MAX - 1))
#define HC_OPS_NUMBER_OF(word) ((word) >> 16)

/* Register the process for the daemon's fence; at each open (also in a child that opens its own
 * session). HC_E_NOT_SUPPORTED: say fence = 0 in hello. */
int hc_ops_register(void);

/* In `expected` until the first operation: no gate is so, and its slow path readies the blocks. */
#define HC_OPS_COLD 0x40u

/*
 * Fill a free slot: seats (nseats >= 1; copied
 * when it is one, else the array must live as long as the session), then `handle` last. start is
 * the daemon's, tag that of `joined`; fence is what hello agreed on; hooks live as long. A block
 * that is new to domain `id` is cleared at the first operation, so that a domain that runs none
 * touches no memory there.
 */
void hc_ops_attach(struct hc_ops_domain *d, uint64_t handle, uint64_t id, uint32_t start,
		   uint32_t tag, const struct hc_page_record *record, struct hc_ops_seat *seats,
		   uint32_t nseats, bool fence, const struct hc_ops_hooks *hooks);
/* After a change of members: the domain goes on with a new tag. No begin may be running. */
void hc_ops_rebase(struct hc_ops_domain *d, uint32_t start, uint32_t tag);
/* The handle ends; tokens of it are answered GONE from here on. */
void hc_ops_detach(struct hc_ops_domain *d);

/* Prove to the daemon, at hello, that this is the memory that it sees. */
void hc_ops_nonce_answer(struct hc_page_block *block);

/* Index of the seat of `rank`, or HC_NONE. */
uint32_t hc_ops_seat(const struct hc_ops_domain *d, uint32_t rank);
/* References of a seat that are not returned, as this process sees them (hcomm_leave). */
uint64_t hc_ops_running(const struct hc_ops_domain *d, uint32_t seat);
/* Wait until the record's wake word differs from `seen`, at most timeout_ns; for waits like
 * begin's (hcomm_leave waiting for its own references polls hc_ops_running). */
void hc_ops_wait(const struct hc_page_record *record, uint32_t seen, uint64_t timeout_ns);

int hc_ops_begin_slow(struct hc_ops_domain *d, uint32_t seat, uint32_t kind, uint32_t flags,
		      struct hcomm_op *op);
int hc_ops_begin_raced(struct hc_ops_domain *d, uint32_t kind, uint32_t flags, struct hcomm_op *op);
int hc_ops_end_slow(struct hc_ops_domain *d, struct hcomm_op *op);
void hc_ops_end_noticed(struct hc_ops_domain *d);

#define hc_ops_likely(x) __builtin_expect(!!(x), 1)

static inline void hc_ops_bump(_Atomic uint64_t *counter, memory_order order)
{
	atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + 1,
			      order);
}

static inline struct hc_page_line *hc_ops_own(struct hc_page_block *block, uint32_t offset)
{
	return (struct hc_page_line *)((unsigned char *)block + offset);
}

/*
 * INVALID (seat or kind), SUSPENDED (only with HCOMM_OP_NOWAIT), DAMAGED, GONE; STALE: the domain
 * has a new epoch, hc_ops_rebase and begin again. Refused: no reference is held.
 */
static inline __attribute__((always_inline)) int hc_ops_begin(struct hc_ops_domain *d,
							      uint32_t seat, uint32_t kind,
							      uint32_t flags, struct hcomm_op *op)
{
	const struct hc_page_record *record = d->record;
	uint64_t want = atomic_load_explicit(&d->expected, memory_order_relaxed);
	uint32_t offset = hc_ops_line;
	bool p2p = kind > HCOMM_OP_OTHER;
	unsigned parity = (unsigned)(want >> 8) & 1;
	struct hc_page_block *block;
	uint64_t number = 0;

	if (!hc_ops_likely(
		    (offset - 1 < atomic_load_explicit(&d->fast_lines, memory_order_relaxed)) &&
		    (seat < d->nseats) && (kind - 1 < HCOMM_OP_RECV) &&
		    (atomic_load_explicit(&record->gate, memory_order_relaxed) == want)))
		return hc_ops_begin_slow(d, seat, kind, flags, op);
	block = d->seats[seat].block;
	hc_ops_bump(&hc_ops_own(block, offset)->begins[parity], memory_order_relaxed);
	if (hc_ops_likely(!p2p)) {
		number = atomic_load_explicit(&block->head.begun, memory_order_relaxed) + 1;
		atomic_store_explicit(&block->head.begun, number, memory_order_release);
		atomic_store_explicit(&block->head.last_kind, kind, memory_order_relaxed);
	} else {
		atomic_store_explicit(&block->head.p2p_kind, kind, memory_order_relaxed);
	}
	op->private_[0] = atomic_load_explicit(&d->handle, memory_order_relaxed);
	op->private_[1] = HC_OPS_TOKEN(parity, p2p, seat, number);
	/* the processor's half of this fence is the daemon's membarrier */
	atomic_signal_fence(memory_order_seq_cst);
	if (hc_ops_likely(atomic_load_explicit(&record->gate, memory_order_acquire) == want))
		return 0;
	return hc_ops_begin_raced(d, kind, flags, op);
}

/* Return a reference, by any thread. The caller has matched private_[0] with d->handle. */
static inline __attribute__((always_inline)) int hc_ops_end(struct hc_ops_domain *d,
							    struct hcomm_op *op)
{
	uint64_t word = op->private_[1];
	uint32_t offset = hc_ops_line;
	uint32_t seat = HC_OPS_SEAT_OF(word);
	struct hc_page_line *line;

	if (!hc_ops_likely(
		    (offset - 1 < atomic_load_explicit(&d->fast_lines, memory_order_relaxed)) &&
		    (seat < d->nseats)))
		return hc_ops_end_slow(d, op);
	op->private_[0] = 0;
	line = hc_ops_own(d->seats[seat].block, offset);
	hc_ops_bump(&line->ends[word & 1], memory_order_release);
	atomic_signal_fence(memory_order_seq_cst);
	if (!hc_ops_likely(atomic_load_explicit(&d->record->gate, memory_order_acquire) ==
			   atomic_load_explicit(&d->expected, memory_order_relaxed)))
		hc_ops_end_noticed(d);
	return 0;
}

#endif
