/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Using a channel: send, receive, poll, and what it says of itself.
 *
 * The usual way takes no lock: from the handle to its slot, `busy` up, the handle once more, one
 * look at the status register, the ring, `busy` down. Everything else, and every text, is out of
 * line. The second look at the handle and who closes the end are Dekker's pair again, and it is
 * the closing side that pays.
 *
 * The register is in the daemon's slab, mapped read-only until the session closes. Its word
 * changes with every state and never shows a former value again, so a word that was found well
 * stays so while it is the same. Another word is looked at in full: state, and whose register it
 * is by now.
 */
#include "chan.h"

#include <stdio.h>

#define COLD   __attribute__((noinline, cold))
#define likely hc_ops_likely

/* ---- the register ---- */

/* Not cold: gcc would take what follows a look for cold as well, and that is the usual way. */
static __attribute__((noinline)) bool look_at_register(struct hc_channel *c)
{
	uint32_t word = atomic_load_explicit(&c->reg->state, memory_order_acquire);
	uint32_t state = HC_STATUS_STATE(word);

	if (state == HC_W_channel_state_REVOKED || state == HC_W_channel_state_NONE ||
	    atomic_load_explicit(&c->reg->id, memory_order_acquire) != c->id)
		return false;
	atomic_store_explicit(&c->word, word, memory_order_relaxed);
	return true;
}

static inline __attribute__((always_inline)) bool holds(struct hc_channel *c)
{
	uint32_t word = atomic_load_explicit(&c->reg->state, memory_order_acquire);

	return likely(word && word == atomic_load_explicit(&c->word, memory_order_relaxed)) ||
	       look_at_register(c);
}

bool hc_chan_holds(struct hc_channel *c)
{
	return holds(c);
}

/* ---- in and out ---- */

struct found { /* comes back in registers: a local whose address is taken costs a canary */
	struct hc_channel *c;
	int r;
};

static inline struct hc_channel *live(hcomm_channel handle)
{
	struct hc_channel *c = hc_chan_slot(handle);

	if (likely(handle != 0) && likely(c != NULL) &&
	    likely(atomic_load_explicit(&c->live, memory_order_acquire) == handle))
		return c;
	return NULL;
}

static int failed(const struct hc_channel *c)
{
	char text[128];

	snprintf(text, sizeof(text), "the channel was refused, or could not be opened: %s",
		 hc_error_row(c->error)->text);
	return hc_refuse_str(c->error, hc_str(text), c->retry_after_ms);
}

/* Open it if that is all that is missing, else say why it cannot be used. The slot stays. */
COLD static struct found make_live(hcomm_channel handle)
{
	struct hcomm_session *s;
	struct hc_channel *c;
	int r = hc_chan_lock(handle, &c);

	if (r)
		return (struct found){NULL, r};
	s = c->session;
	switch (c->phase) {
	case HC_CHAN_FREE:
	case HC_CHAN_TELLING:
	case HC_CHAN_ENDING: r = hc_chan_lost(handle); break;
	case HC_CHAN_WANTED:
		r = hc_refuse(HC_E_IN_PROGRESS, "the channel is not granted yet");
		break;
	case HC_CHAN_FAILED: r = failed(c); break;
	case HC_CHAN_GRANTED: r = hc_chan_open(s, handle, hc_deadline(HC_REQUEST_MS)); break;
	case HC_CHAN_OPEN: break;
	}
	pthread_mutex_unlock(&s->lock);
	return (struct found){c, r};
}

static inline __attribute__((always_inline)) bool enter(struct hc_channel *c, hcomm_channel handle,
							_Atomic uint32_t *busy)
{
	atomic_store_explicit(busy, 1, memory_order_relaxed);
	if (c->fenced)
		__sync_synchronize();
	else
		atomic_signal_fence(memory_order_seq_cst); /* the rest is the closing side's */
	if (likely(atomic_load_explicit(&c->live, memory_order_acquire) == handle))
		return true;
	atomic_store_explicit(busy, 0, memory_order_release);
	return false;
}

static inline void leave(_Atomic uint32_t *busy)
{
	atomic_store_explicit(busy, 0, memory_order_release);
}

COLD static int taken(const char *what)
{
	return hc_refuse(HC_E_BUSY, "another thread %s this end; wanted: one at a time", what);
}

/* A text for what the rings say. */
COLD static int explain(struct hc_channel *c, int outcome, uint32_t bytes)
{
	unsigned long long id = c->id;
	uint32_t peer = c->info.peer;

	switch (outcome) {
	case HC_E_AGAIN:
		hc_refuse(outcome, "channel %016llx: no room, or no message, at this moment", id);
		break;
	case HC_E_TIMEOUT:
		hc_refuse(outcome,
			  "channel %016llx: rank %u has neither sent nor taken anything that would "
			  "let this call go on within the time given",
			  id, peer);
		break;
	case HC_E_PEER_LOST:
		if (atomic_load(&c->ended))
			return hc_refuse(HC_E_GONE, "channel %016llx to rank %u was released", id,
					 peer);
		hc_refuse(outcome, "channel %016llx to rank %u is over", id, peer);
		break;
	case HC_E_MALFORMED:
		atomic_store(&c->bad, 1);
		hc_refuse(outcome,
			  "rank %u wrote into the rings of channel %016llx what cannot be; release "
			  "the channel",
			  peer, id);
		break;
	case HC_E_BUFFER_OVERFLOW:
		hc_refuse(outcome,
			  "a message of %u bytes is larger than the room for it (channel %016llx, "
			  "buffer %u)",
			  bytes, id, c->info.buffer_bytes);
		break;
	default: hc_refuse(outcome, "channel %016llx: %s", id, hc_error_row(outcome)->text); break;
	}
	return outcome;
}

/* Why a live channel is not to be used for data; 0: it may be. */
COLD static int no_data(struct hc_channel *c)
{
	if (!c->carries)
		return hc_refuse(HC_E_NOT_SUPPORTED,
				 "channel %016llx is a grant only: its holder moves the data",
				 (unsigned long long)c->id);
	return explain(c, HC_E_MALFORMED, 0);
}

static inline bool usable(struct hc_channel *c)
{
	return likely(c->carries && !atomic_load_explicit(&c->bad, memory_order_relaxed));
}

static inline bool ended(struct hc_channel *c)
{
	return atomic_load_explicit(&c->ended, memory_order_relaxed) != 0;
}

COLD static int bad_call(const char *what, int timeout_ms)
{
	if (timeout_ms < HCOMM_DEFAULT)
		return hc_refuse(HC_E_INVALID,
				 "timeout_ms is %d; wanted: milliseconds, HCOMM_START or "
				 "HCOMM_DEFAULT",
				 timeout_ms);
	return hc_refuse(HC_E_INVALID, "%s", what);
}

static inline struct hc_ring_time time_of(const struct hc_channel *c, int timeout_ms)
{
	return HC_RING_WAIT(timeout_ms < 0 ? c->usual_ms : (uint32_t)timeout_ms);
}

/* ---- the calls ---- */

HC_EXPORT int hcomm_channel_send(hcomm_channel channel, const void *data, uint32_t bytes,
				 int timeout_ms)
{
	struct found f = {live(channel), 0};
	int r;

	if (!likely(bytes <= HCOMM_CHANNEL_BYTES_MAX && (data || !bytes) &&
		    timeout_ms >= HCOMM_DEFAULT))
		return -bad_call(data || !bytes ? "bytes is over HCOMM_CHANNEL_BYTES_MAX"
						: "data is NULL and bytes is not 0",
				 timeout_ms);
	if (!likely(f.c != NULL)) {
		f = make_live(channel);
		if (f.r)
			return -f.r;
	}
	if (!usable(f.c))
		return -no_data(f.c);
	if (!likely(!atomic_load_explicit(&f.c->tx.busy, memory_order_relaxed)))
		return -taken("sends on");
	if (!likely(enter(f.c, channel, &f.c->tx.busy)))
		return -hc_chan_lost(channel);
	if (likely(!ended(f.c) && holds(f.c)))
		r = hc_ring_send(&f.c->tx.ring, data, bytes, time_of(f.c, timeout_ms));
	else
		r = HC_E_PEER_LOST;
	if (!likely(!r))
		r = explain(f.c, r, bytes);
	leave(&f.c->tx.busy);
	return -r;
}

static inline __attribute__((always_inline)) struct found enter_rx(hcomm_channel channel)
{
	struct found f = {live(channel), 0};

	if (!likely(f.c != NULL)) {
		f = make_live(channel);
		if (f.r)
			return f;
	}
	if (!usable(f.c))
		f.r = no_data(f.c);
	else if (!likely(!atomic_load_explicit(&f.c->rx.busy, memory_order_relaxed)))
		f.r = taken("receives on");
	else if (!likely(enter(f.c, channel, &f.c->rx.busy)))
		f.r = hc_chan_lost(channel);
	return f;
}

HC_EXPORT int hcomm_channel_recv(hcomm_channel channel, void *data, uint32_t *bytes, int timeout_ms)
{
	struct found f;
	int r;

	if (!likely(bytes && (data || !*bytes) && timeout_ms >= HCOMM_DEFAULT))
		return -bad_call(bytes ? "data is NULL and *bytes is not 0" : "bytes is NULL",
				 timeout_ms);
	f = enter_rx(channel);
	if (!likely(!f.r))
		return -f.r;
	r = hc_ring_recv(&f.c->rx.ring, data, bytes, time_of(f.c, timeout_ms));
	if (!likely(!r))
		r = explain(f.c, r, *bytes);
	leave(&f.c->rx.busy);
	return -r;
}

HC_EXPORT int hcomm_channel_poll(hcomm_channel channel, int timeout_ms)
{
	struct found f;
	int r;

	if (timeout_ms < HCOMM_DEFAULT)
		return -bad_call(NULL, timeout_ms);
	f = enter_rx(channel);
	if (f.r)
		return -f.r;
	r = hc_ring_poll(&f.c->rx.ring, time_of(f.c, timeout_ms));
	if (r)
		r = explain(f.c, r, 0);
	leave(&f.c->rx.busy);
	return -r;
}

/* Of a register that is no longer the channel's: over. */
static uint32_t status_of(const struct hc_channel *c)
{
	uint32_t word = atomic_load_explicit(&c->reg->state, memory_order_acquire);

	if (atomic_load_explicit(&c->reg->id, memory_order_acquire) == c->id &&
	    HC_STATUS_STATE(word) != HC_W_channel_state_NONE && !atomic_load(&c->ended))
		return word;
	return (word & ~0xffu) | HC_W_channel_state_REVOKED;
}

HC_EXPORT int hcomm_channel_status(hcomm_channel channel, uint32_t *status)
{
	struct found f = {live(channel), 0};
	uint32_t word;

	if (!status)
		return -hc_refuse(HC_E_INVALID, "status is NULL; wanted: where to put it");
	if (!f.c)
		f = make_live(channel);
	if (f.r)
		return -f.r;
	word = status_of(f.c);
	/* the slab stays; was the slot ours all the time? */
	if (atomic_load_explicit(&f.c->live, memory_order_acquire) != channel)
		return -hc_chan_lost(channel);
	*status = word;
	return 0;
}

HC_EXPORT int hcomm_channel_info(hcomm_channel channel, struct hcomm_channel_info *info)
{
	struct found f = {live(channel), 0};
	struct hc_channel *c;
	int r;

	if (!info || info->size < sizeof(info->size))
		return -hc_refuse(HC_E_INVALID,
				  "info is NULL or has no size; wanted: set by HCOMM_INIT");
	if (!f.c)
		f = make_live(channel);
	r = f.r ? f.r : hc_chan_lock(channel, &c);
	if (r)
		return -r;
	hc_give(info, &c->info, sizeof(c->info));
	pthread_mutex_unlock(&c->session->lock);
	return 0;
}
