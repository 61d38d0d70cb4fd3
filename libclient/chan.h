/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Channels of a process: what their files share.
 *
 * A struct hc_channel is a slot of a table (slots.h): it never moves, and in a forked child all
 * read as zero. Its first part is what send
 * and recv use, without a lock: `live` is the handle while this end is open. The rest is under the
 * session's lock.
 *
 * Who is in send or recv says so in `busy` of that half. Who closes an end clears `live`, makes
 * the two change no places (membarrier), rouses those who sleep and waits until
 * nobody is busy; only then the memory goes. One thread sends and one receives at a time, so the
 * word needs no counting.
 *
 *	WANTED     asked for, the answer is under way
 *	GRANTED    ours, not collected: the first use opens it
 *	OPEN       collected; `live` is set
 *	FAILED     refused, or not to be opened; the handle says why until it is released
 *	TELLING    released; the daemon is being told
 *	ENDING     released while the daemon was away, which has yet to hear of it
 */
#ifndef HC_CHAN_H
#define HC_CHAN_H

#include "client.h"
#include "ring.h"

enum hc_chan_phase {
	HC_CHAN_FREE,
	HC_CHAN_WANTED,
	HC_CHAN_GRANTED,
	HC_CHAN_OPEN,
	HC_CHAN_FAILED,
	HC_CHAN_TELLING,
	HC_CHAN_ENDING
};

struct hc_chan_tx {
	_Alignas(128) _Atomic uint32_t busy;
	struct hc_ring_tx ring;
};

struct hc_chan_rx {
	_Alignas(128) _Atomic uint32_t busy;
	struct hc_ring_rx ring;
};

struct hc_channel {
	_Alignas(128) _Atomic uint64_t live;
	const struct hc_page_register *reg;
	uint64_t id;
	_Atomic uint32_t word;  /* of the register, when it was last looked at and found well */
	_Atomic uint32_t ended; /* on this side */
	_Atomic uint32_t bad;
	uint32_t carries;
	uint32_t usual_ms; /* what HCOMM_DEFAULT means */
	bool fenced;
	struct hc_ring_watch watch;

	struct hc_chan_tx tx;
	struct hc_chan_rx rx;

	uint64_t handle; /* under the table's lock */
	struct hcomm_session *session;
	struct hc_channel *next, **link; /* of the session */
	hcomm_domain domain;
	enum hc_chan_phase phase;
	int error; /* FAILED: why */
	uint32_t retry_after_ms;
	struct hc_slot_link place;
	uint32_t rank, side;
	void *map;
	size_t map_bytes; /* with the stash behind the rings */
	struct hcomm_channel_info info;
};

#define HC_CHAN_BITS  10u
#define HC_CHAN_BYTES (1u << HC_CHAN_BITS)
#define HC_CHANS      65536u
static_assert(sizeof(struct hc_channel) <= HC_CHAN_BYTES, "a channel in its slot");
extern _Atomic(unsigned char *) hc_chans __attribute__((visibility("hidden")));

static inline struct hc_channel *hc_chan_at(unsigned char *slots, uint32_t offset)
{
	return (struct hc_channel *)(void *)(slots + offset);
}

/* The slot that a handle leads to, or NULL before the first one. Its handle may be another. */
static inline struct hc_channel *hc_chan_slot(hcomm_channel handle)
{
	unsigned char *slots = atomic_load_explicit(&hc_chans, memory_order_acquire);

	if (!slots)
		return NULL;
	return hc_chan_at(slots, (uint32_t)handle & ((HC_CHANS - 1) << HC_CHAN_BITS));
}

/* ---- chantable.c ---- */
/* A slot in phase WANTED with a handle, in the session's list; its lock is held. NO_MEMORY,
 * LIMIT. */
int hc_chan_new(struct hcomm_session *s, struct hc_channel **c);
/* No handle leads to it any more. */
void hc_chan_hide(struct hc_channel *c);
void hc_chan_free(struct hc_channel *c);
/* Find the slot and lock its session. 0, GONE, FORKED. */
int hc_chan_lock(hcomm_channel handle, struct hc_channel **c);
/* With the session's lock held: the slot of a handle, or NULL. */
struct hc_channel *hc_chan_of(struct hcomm_session *s, hcomm_channel handle);
/* Why a handle leads nowhere: FORKED or GONE, with its text. */
int hc_chan_lost(hcomm_channel handle);

/* ---- chanlife.c; the session's lock is held ---- */
/* Open an end that was granted; gives the lock back while it waits. `handle` may be gone then. */
int hc_chan_open(struct hcomm_session *s, hcomm_channel handle, uint64_t deadline);
/* Ask for an end to be ended at the daemon without waiting. */
void hc_chan_give_back(struct hcomm_session *s, uint64_t id, uint32_t rank);
/* Nobody is in it behind this, the memory is gone, and so is the handle. */
void hc_chan_shut(struct hc_channel *c);

/* ---- chanuse.c ---- */
/* Is the channel still there, by the register? */
bool hc_chan_holds(struct hc_channel *c);

#endif
