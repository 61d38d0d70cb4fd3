/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared memory of the node: slabs of state records and op arenas (proto/pages.h).
 *
 * Slabs. A file "slab-<uid>-<n>" for each 4,096 slots of an owner; slabs.h says who may do what
 * with it, and that it outlives the daemon.
 *
 * Publishing. What a client reads behind the gate is written before it: cause (under seq),
 * number, cut, and the gate last. The cut is set back only on the way into DRAINING: on the way
 * out a begin that still sees the old gate must not find a weaker cut than the one that the
 * release was decided under.
 *
 * Arenas. A memfd for each session whose size is sealed, made here or handed back after a
 * restart; then type, size and seals are checked, so that no access can fault. Its contents are
 * what the process says about itself: a scan copies counters and calls nonsense nonsense.
 *
 * All functions: 0, an HC_E_* (> 0) that is listed, or a fatal -errno.
 */
#ifndef HC_NODEPAGES_H
#define HC_NODEPAGES_H

#include <stdbool.h>
#include <stdint.h>

#include "pages.h"
#include "wire.h"

#define HC_SLABS_MAX         4096u      /* of one owner: 16 M slots */
#define HC_ARENA_RUNNING_MAX (1u << 20) /* more references of one rank are nonsense */

struct hc_pages;

/* The directory is made when it is missing (0711: clients need no name in it). */
int hc_pages_open(const char *directory, struct hc_pages **pages);
/* Unmaps; the files stay. NULL is fine. Returns NULL. */
struct hc_pages *hc_pages_close(struct hc_pages *pages);

/* The record of a slot; its slab is made when it is missing. HC_E_LIMIT: no such slot. */
int hc_pages_record(struct hc_pages *pages, uint32_t uid, uint32_t slot,
		    struct hc_page_record **record);
/* Most records of the slab of this slot are about to be written. */
void hc_pages_warm(struct hc_pages *pages, uint32_t uid, uint32_t slot);
/* A read-only descriptor of a slab, for a client; the caller closes it. HC_E_NOT_FOUND. */
int hc_pages_slab_fd(struct hc_pages *pages, uint32_t uid, uint32_t slab, int *fd);
/* Calls fn for each record in use, for a daemon that was restarted. */
void hc_pages_each(struct hc_pages *pages,
		   void (*fn)(uint32_t uid, uint32_t slot, struct hc_page_record *record,
			      void *context),
		   void *context);

struct hc_pages_state {
	uint64_t id; /* not 0 */
	uint32_t start, tag, epoch, number, nranks;
	uint8_t state;   /* HC_W_domain_state_* */
	uint8_t cut_set; /* enum hc_page_cut; with DRAINING */
	uint8_t drain;   /* enum hc_page_drain; with DRAINING */
	bool locked;     /* clients use locked instructions: the fence fails */
	uint64_t cut;
	uint32_t cause_kind, cause_rank, cause_pid;
	struct hc_str cause; /* cut at HC_CAUSE_BYTES - 1, at the start of a character */
};
/* Write a record and wake who waits on it. */
void hc_pages_publish(struct hc_page_record *record, const struct hc_pages_state *state);
/*
 * The same for a stored domain at the start of a daemon. A death is told before its row is stored,
 * so the record may say more than the row: then it stays, under the new start number, until the
 * kernel has said again who is dead. What was told is never taken back.
 */
void hc_pages_restore(struct hc_page_record *record, const struct hc_pages_state *state);
/*
 * As what a daemon has shown that domain: the state, ACTIVE to DRAINING, and the cut, 0 when there
 * is none; 0 when it was not committed yet or is over. What is shown is written whole before the
 * gate says the tag and state.
 */
uint8_t hc_pages_shown(const struct hc_page_record *record, uint64_t id, uint32_t tag,
		       uint64_t *cut);
/* Free the slot: its domain is gone. */
void hc_pages_free(struct hc_page_record *record);

/*
 * The fence of the drain: behind it every begin has either seen what was published or is seen by a
 * scan. HC_E_NOT_SUPPORTED: it was done the slow way (milliseconds), the fast one fails: publish
 * with `locked` from now on. < 0: there was no fence; do not decide a drain, try again later.
 */
int hc_pages_fence(void);
bool hc_pages_fence_supported(void);

struct hc_arena {
	int fd;
	struct hc_page_block *blocks; /* NULL: none */
};
int hc_arena_make(struct hc_arena *arena);
/* A descriptor that came from outside; the arena owns it on success. HC_E_INVALID: it is no
 * memfd of that size, or not sealed. */
int hc_arena_adopt(int fd, struct hc_arena *arena);
/* Is this descriptor the same memory? */
bool hc_arena_same(const struct hc_arena *arena, int fd);
void hc_arena_drop(struct hc_arena *arena);

struct hc_arena_sample {
	uint64_t begun;   /* last collective begun, or intended */
	uint32_t running; /* begins - ends */
	uint8_t kind;     /* enum hcomm_op_kind of the last collective, else of the last p2p; 0 */
	bool sane;        /* false: the counters are nonsense, and all of the above is 0 */
};
/*
 * Read the block of a rank of domain `id`; parity is that of the epoch. A block in which the
 * process has not yet attached to that domain counts as empty. HC_E_INVALID: no such block.
 */
int hc_arena_scan(const struct hc_arena *arena, uint32_t block, uint64_t id, unsigned parity,
		  struct hc_arena_sample *sample);
/* Proof that the client maps the same memory: put a number, later see whether it was inverted. */
int hc_arena_nonce_put(const struct hc_arena *arena, uint32_t block, uint64_t nonce);
bool hc_arena_nonce_proved(const struct hc_arena *arena, uint32_t block, uint64_t nonce);

#endif
