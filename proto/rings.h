/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of a channel within a node: two rings in one sealed memfd, a ring for each direction.
 *
 * The daemon makes the file (pages.h says how large) and never looks into it again; the two ends
 * map it. Ring 0 goes from side 0 to side 1.
 *
 *	head page          room for people, and the control lines of both rings
 *	64 descriptors     of ring 0, then of ring 1: 64 bytes each; a message of up to 224 bytes
 *	                   stands in one to four of them, 56 bytes in each
 *	buffer             of ring 0, then of ring 1: larger messages, in fragments of whole lines,
 *	                   each with a descriptor
 *
 * Owners. Every word has one writer. The producer writes descriptors, the buffer and its quiet
 * line; the consumer writes `taken` and its own quiet line. Zero is a valid start. Lines that
 * different sides write are 128 bytes apart, since processors fetch lines in pairs.
 *
 * Order. A descriptor's word holds its turn (position + 1) and what it carries. The producer
 * fills the line and the buffer, then stores the word (release); the consumer, which looks at
 * that one line, loads it (acquire). So a small message is one line that moves from one core to
 * the other, and no index is shared. The consumer copies, then stores `taken` (release): the
 * producer loads it only when it believes the ring to be full.
 *
 * Sleeping. Who waits makes its `asleep` odd, looks once more and sleeps on the other's `wake`.
 * Who has stored something looks at `asleep`, and only for an odd value that it has not answered
 * raises its `wake` and makes a system call. There is no fence between that store and the look
 * that follows, so the processor may look before the store is seen: the other may have gone to
 * sleep in between. But a store is seen soon, whatever follows it. So the sleeper looks for a
 * moment longer before it sleeps, its first sleep is short, and it looks once more behind that: a
 * wake that fell into the gap is late by that short sleep and never lost. Who sends pays nothing.
 * `cpu` lets a waiter see that its partner is on the same processor, where there is no such gap,
 * and where spinning is of no use.
 *
 * Belief. None: the other end may write anything anywhere at any time. Each word is loaded once
 * and checked: a turn must be this one or the one before, lengths are bounded by the message and
 * the buffer, `taken` only grows and not beyond what was sent. Offsets are never taken from the
 * memory; each side counts for itself. Data are copied out once, and only that copy is looked at.
 * What breaks a rule makes the end unusable (MALFORMED).
 *
 * The descriptors behind the first one of a small message are MORE; they have a turn, so that the
 * next lap finds what it expects, and appear before the first does. A larger message is FIRST,
 * then CONT until its length is reached. ABORT, for
 * which one descriptor is always left, says that the rest will not come. Host structs: both ends
 * are on one machine.
 */
#ifndef HC_RINGS_H
#define HC_RINGS_H

#include "pages.h"

#define HC_RING_INLINE      56u  /* in a descriptor */
#define HC_RING_SMALL_MAX   224u /* in descriptors */
#define HC_RING_LINE        HC_RING_SLOT_BYTES
#define HC_RING_MESSAGE_MAX 1048576u

enum hc_ring_kind {
	HC_RING_SMALL = 1,
	HC_RING_FIRST = 2,
	HC_RING_CONT = 3,
	HC_RING_ABORT = 4,
	HC_RING_MORE = 5
};

/* A descriptor's word; `bytes` is the length of the whole message. */
#define HC_RING_WORD(turn, kind, bytes)                                                            \
	((uint64_t)(uint32_t)(turn) | (uint64_t)((uint32_t)(kind) << 28 | (bytes)) << 32)
#define HC_RING_TURN(word)  ((uint32_t)(word))
#define HC_RING_KIND(word)  ((uint32_t)((word) >> 60))
#define HC_RING_BYTES(word) ((uint32_t)((word) >> 32) & 0x0fffffffu)

struct hc_ring_desc {
	_Atomic uint64_t word;
	union {
		uint8_t data[HC_RING_INLINE];
		_Atomic uint32_t fragment; /* FIRST, CONT: bytes in the buffer */
	} u;
};
static_assert(sizeof(struct hc_ring_desc) == HC_RING_LINE, "a descriptor is a line");

/* Written only by who goes to sleep, or wakes the other. */
struct hc_ring_quiet {
	_Atomic uint32_t asleep; /* +1 when it lies down and when it gets up: odd = asleep */
	_Atomic uint32_t wake;   /* futex word that the other sleeps on */
	_Atomic uint32_t cpu;    /* where it lay down, + 1; 0 = not known */
	uint8_t pad[116];
};
static_assert(sizeof(struct hc_ring_quiet) == 128, "a pair of lines");

struct hc_ring_control {
	struct hc_ring_quiet producer;
	struct hc_ring_quiet consumer;
	_Atomic uint64_t taken; /* lines of the buffer << 32 | descriptors, both modulo 2^32 */
	uint8_t pad[248];
};
static_assert(sizeof(struct hc_ring_control) == 512, "three pairs of lines, and one spare");

struct hc_ring_head {
	char people[512]; /* what it is; no program reads it */
	struct hc_ring_control control[2];
	uint8_t pad[HC_RING_HEAD_BYTES - 1536];
};
static_assert(sizeof(struct hc_ring_head) == HC_RING_HEAD_BYTES, "the head page");

#endif
