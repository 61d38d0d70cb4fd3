/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that daemon and clients share, on one node: state slabs and op arenas.
 *
 * State slab: a file of 512-byte records, one for each domain of an owner uid. The daemon writes,
 * clients map it read-only. Every record opens with the *gate*, one word that op_begin loads:
 * (start number << 40) | (tag << 8) | state. The daemon gives the tag with the domain: a counter of
 * the slot's reuse and the low bits of the epoch (bit 0 is the epoch's parity), so that an old
 * handle never takes the next domain in the slot for its own. A client knows the word that means
 * "open for me"; any other value sends it to the slow path. So a new epoch, a new state, a reused
 * slot and a restarted daemon are all noticed by the one load.
 *
 * Op arena: a memfd for each session, sealed in size; 1,024-byte blocks, one for each (domain,
 * rank) of the process; zero is a valid start, untouched blocks cost nothing. The client writes,
 * the daemon reads and believes nothing beyond "this process says so". A block is a head line,
 * 14 lines of one thread each, and a line that further threads share with atomic adds. Each line
 * counts begins and ends, monotonic, for each parity of the epoch.
 *
 * The race between op_begin and a drain (Dekker's): a client stores "begun" and then loads the
 * gate; the daemon closes the gate and then loads the counters. The client's store-load fence is
 * paid by the daemon with membarrier(GLOBAL_EXPEDITED). Without membarrier clients use a locked
 * add. The daemon reads begun, then sums all ends, then all begins (acquire): equal means equal.
 *
 * A drain goes through cut_set. HC_CUT_NONE: collectives wait, point-to-point ones are admitted.
 * HC_CUT_SET: collectives up to the cut are admitted, point-to-point ones too (the partner may
 * have begun). HC_CUT_CLOSED, once every rank of the node looked quiescent: nothing is admitted;
 * who begins leaves its intent in the block, wakes the daemon and waits. The daemon fences and
 * scans again: quiescent is then final, else it goes back to HC_CUT_SET. After it has told the
 * home "done", only the home's word (the cut again) lets it go back.
 *
 * Status registers of channels: files of 32-byte registers, one slab for each 4,096 slots and owner
 * uid, written by the daemon, mapped read-only by clients. The state word is what a client looks
 * at before it trusts its channel: every change gives it a new generation, so a slot that is used
 * again never shows an old client the word that it knows. `wake` is bumped and futex-woken after
 * every change. The order of writing is id, state, wake; of reading state, then id.
 *
 * Rings of a channel: one memfd, sealed in size: a head page, two arrays of 64 descriptors (64
 * bytes each), two buffers; the first of each goes from side 0 to side 1, the second back. What
 * is in them is an affair of the two clients; the daemon makes the file, zero, hands it to both
 * ends and forgets it.
 *
 * These are host structs: both sides are the same machine. The layout is asserted here and may
 * only grow into reserved space.
 */
#ifndef HC_PAGES_H
#define HC_PAGES_H

#include <assert.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define HC_RECORD_BYTES 512u
#define HC_SLAB_RECORDS 4096u /* records in one slab file: 2 MiB, sparse */
#define HC_BLOCK_BYTES  1024u
#define HC_BLOCK_LINES  14u     /* threads with a line of their own */
#define HC_ARENA_BLOCKS 131072u /* 128 MiB, sparse: 10,000 domains of 8 ranks and more */
#define HC_CAUSE_BYTES  192u
#define HC_NONCE_BLOCK  0u /* of every arena: the proof that both sides see this memory */

#define HC_GATE(start, tag, state)                                                                 \
	(((uint64_t)(start) << 40) | ((uint64_t)(uint32_t)(tag) << 8) | (uint8_t)(state))
#define HC_TAG(reuse, epoch) ((((uint32_t)(reuse)) << 12) | ((uint32_t)(epoch)&0xfffu))
#define HC_GATE_STATE_MASK   0x7full
#define HC_GATE_LOCKED       0x80u /* or-ed to the state: begin and end with locked instructions */
#define HC_GATE_TAG_MASK     0xffffffff00ull
#define HC_GATE_START_MASK   0xffffff0000000000ull

enum hc_page_cut { HC_CUT_NONE = 0, HC_CUT_SET = 1, HC_CUT_CLOSED = 2 };
enum hc_page_drain { HC_DRAIN_DESTROY = 0, HC_DRAIN_CHANGE = 1 };

struct hc_page_record {
	_Atomic uint64_t gate;    /* HC_GATE(start, tag, state) */
	_Atomic uint64_t id;      /* domain id; 0 = free slot */
	_Atomic uint64_t cut;     /* DRAINING: begin up to this number; valid unless HC_CUT_NONE */
	_Atomic uint32_t cut_set; /* enum hc_page_cut */
	_Atomic uint32_t wake;    /* futex word: +1 at every change */
	_Atomic uint32_t number;  /* state number */
	_Atomic uint32_t nranks;
	_Atomic uint32_t cause_kind; /* enum hc_event_code of the first cause */
	_Atomic uint32_t cause_rank;
	_Atomic uint32_t cause_pid;
	_Atomic uint32_t seq; /* odd while cause is being written: readers copy and compare */
	_Atomic uint32_t epoch;
	_Atomic uint32_t drain;     /* enum hc_page_drain: beyond the cut refuse, or wait */
	char cause[HC_CAUSE_BYTES]; /* in words, NUL-terminated */
	/* the routes of the pairs of this node: two copies and an index (links between nodes) */
	_Atomic uint32_t route_index;
	uint32_t route_reserved;
	_Atomic uint64_t routes[2][12];
	uint8_t reserved[512 - 64 - HC_CAUSE_BYTES - 8 - 192];
};
static_assert(sizeof(struct hc_page_record) == HC_RECORD_BYTES, "state record");
static_assert(offsetof(struct hc_page_record, gate) == 0, "gate first");

struct hc_page_line {
	_Atomic uint64_t begins[2]; /* by parity of the epoch */
	_Atomic uint64_t ends[2];
	uint64_t reserved[4];
};
static_assert(sizeof(struct hc_page_line) == 64, "a cache line");

struct hc_page_head {
	_Atomic uint64_t begun;     /* number of the last collective begun, 0 = none */
	_Atomic uint64_t last_kind; /* enum hcomm_op_kind of it */
	_Atomic uint64_t domain;    /* id, for the reader of a core file */
	_Atomic uint64_t nonce; /* proof of shared memory: what the daemon put is echoed inverted */
	_Atomic uint64_t p2p_kind; /* kind of the last point-to-point operation */
	uint64_t reserved[3];
};
static_assert(sizeof(struct hc_page_head) == 64, "a cache line");

struct hc_page_block {
	struct hc_page_head head;
	struct hc_page_line line[HC_BLOCK_LINES];
	struct hc_page_line shared; /* further threads, with atomic adds */
};
static_assert(sizeof(struct hc_page_block) == HC_BLOCK_BYTES, "arena block");

#define HC_REGISTER_BYTES                 32u
#define HC_STATUS_SLAB                    4096u /* registers in one slab file: 128 KiB, sparse */
#define HC_STATUS_STATE(word)             ((word)&0xffu) /* enum hcomm_channel_state, HC_W_channel_state_* */
#define HC_STATUS_WORD(state, generation) ((uint32_t)(generation) << 8 | (uint8_t)(state))

struct hc_page_register {
	_Atomic uint32_t state; /* HC_STATUS_WORD(); zero: never used */
	_Atomic uint32_t wake;  /* futex word: +1 at every change */
	_Atomic uint64_t id;    /* of the channel that the slot belongs to, or belonged to last */
	_Atomic uint32_t start; /* start number of the daemon that wrote it last */
	uint32_t reserved[3];
};
static_assert(sizeof(struct hc_page_register) == HC_REGISTER_BYTES, "status register");

#define HC_RING_HEAD_BYTES        4096u
#define HC_RING_SLOTS             64u /* a quarter of a first-level cache, see doc/design.md */
#define HC_RING_SLOT_BYTES        64u
#define HC_CHANNEL_BUFFER_DEFAULT 262144u /* bytes each way */
#define HC_CHANNEL_BUFFER_MIN     4096u
#define HC_CHANNEL_BUFFER_MAX     16777216u /* others are rounded up to whole pages */
/* Offsets in the memfd, for ring 0 (from side 0 to side 1) and 1 (back); `buffer` is what
 * channel_grant says. */
#define HC_RING_SLOTS_AT(ring) (HC_RING_HEAD_BYTES + (ring)*HC_RING_SLOTS * HC_RING_SLOT_BYTES)
#define HC_RING_BUFFER_AT(ring, buffer)                                                            \
	(HC_RING_SLOTS_AT(2u) + (uint32_t)(ring) * (uint32_t)(buffer))
#define HC_RING_FILE_BYTES(buffer) HC_RING_BUFFER_AT(2u, buffer)

#endif
