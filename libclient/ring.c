/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages through the rings of a channel; see proto/rings.h for the layout and ring.h for the
 * outcomes.
 *
 * Each side counts for itself: positions, lines and offsets live here and are only compared with
 * what stands in the shared memory. All arithmetic is modulo 2^32; what is in flight never
 * exceeds 256 descriptors and the lines of a buffer, so differences are exact.
 *
 * A large message goes in fragments of a quarter of the buffer, 64 KiB at most, so that the
 * receiver copies one while the sender copies the next; the message itself may be larger than the
 * buffer. A sender that gives up in the middle says so with ABORT, for which one descriptor is
 * kept free, and the receiver drops what it had. So there are no half messages, and the next one
 * comes as if nothing had been.
 *
 * A hostile or broken partner can make an end refuse to go on (bad), deliver nonsense as data, or
 * keep it waiting until its time is up. Nothing it writes becomes an address or a length of a
 * copy before it was compared with what this side knows.
 */
#include "ring.h"

#include <string.h>

#define FRAGMENT_MAX 65536u

#define TURN(position) HC_RING_TURN_OF(position)
#define DESCS(bytes)                                                                               \
	((bytes) <= HC_RING_INLINE ? 1 : ((bytes) + HC_RING_INLINE - 1) / HC_RING_INLINE)
#define LINES(bytes) (((bytes) + HC_RING_LINE - 1) / HC_RING_LINE)
#define PLACE(half)  HC_RING_PLACE(half, (half)->position)

static uint32_t fragment_of(uint32_t buffer_bytes)
{
	uint32_t quarter = buffer_bytes / 4;

	return quarter < FRAGMENT_MAX ? quarter : FRAGMENT_MAX;
}

static void wait_init(struct hc_ring_wait *w, struct hc_ring_quiet *mine,
		      struct hc_ring_quiet *theirs, const struct hc_ring_quiet *partner,
		      const struct hc_ring_watch *watch)
{
	*w = (struct hc_ring_wait){
		.mine = mine, .theirs = theirs, .partner = partner, .watch = watch, .spins = 128};
}

void hc_ring_tx_init(struct hc_ring_tx *tx, void *map, uint32_t buffer_bytes, unsigned side,
		     const struct hc_ring_watch *watch)
{
	struct hc_ring_head *head = map;
	struct hc_ring_control *control = &head->control[side];

	memset(tx, 0, sizeof(*tx));
	tx->control = control;
	tx->desc = (void *)((uint8_t *)map + HC_RING_SLOTS_AT(side));
	tx->buffer = (uint8_t *)map + HC_RING_BUFFER_AT(side, buffer_bytes);
	tx->buffer_bytes = buffer_bytes;
	wait_init(&tx->wait, &control->producer, &control->consumer, &control->consumer, watch);
}

void hc_ring_rx_init(struct hc_ring_rx *rx, void *map, uint32_t buffer_bytes, unsigned side,
		     uint8_t *stash, const struct hc_ring_watch *watch)
{
	struct hc_ring_head *head = map;
	struct hc_ring_control *control = &head->control[1 - side];

	memset(rx, 0, sizeof(*rx));
	rx->control = control;
	rx->desc = (void *)((uint8_t *)map + HC_RING_SLOTS_AT(1 - side));
	rx->buffer = (uint8_t *)map + HC_RING_BUFFER_AT(1 - side, buffer_bytes);
	rx->buffer_bytes = buffer_bytes;
	rx->stash = stash;
	wait_init(&rx->wait, &control->consumer, &control->producer, &head->control[side].consumer,
		  watch);
}

/* ---- sending ---- */

static uint32_t free_descs(const struct hc_ring_tx *tx)
{
	return HC_RING_SLOTS - (tx->position - tx->taken);
}

static uint32_t free_lines(const struct hc_ring_tx *tx)
{
	return tx->buffer_bytes / HC_RING_LINE - (tx->lines - tx->lines_taken);
}

/* Take over what the consumer says; false: it cannot be so. */
static bool refresh(struct hc_ring_tx *tx)
{
	uint64_t word = atomic_load_explicit(&tx->control->taken, memory_order_acquire);
	uint32_t descs = (uint32_t)word, lines = (uint32_t)(word >> 32);

	if (tx->position - descs > tx->position - tx->taken ||
	    tx->lines - lines > tx->lines - tx->lines_taken)
		return false;
	tx->taken = descs;
	tx->lines_taken = lines;
	return true;
}

struct room { /* what a sender waits for */
	struct hc_ring_tx *tx;
	uint32_t descs, lines;
};

static bool has_room(void *half)
{
	const struct room *r = half;

	if (free_descs(r->tx) >= r->descs && free_lines(r->tx) >= r->lines)
		return true;
	if (!refresh(r->tx)) {
		r->tx->bad = true;
		return true;
	}
	return free_descs(r->tx) >= r->descs && free_lines(r->tx) >= r->lines;
}

/* One descriptor more than is asked for: that of ABORT. */
static int await_room(struct hc_ring_tx *tx, uint32_t descs, uint32_t lines, struct hc_ring_time *t)
{
	struct room r = {tx, descs + 1, lines};
	int outcome = 0;

	if (!has_room(&r))
		outcome = hc_ring_spin(&tx->wait, has_room, &r, t)
				  ? 0
				  : hc_ring_pause(&tx->wait, has_room, &r, t);
	return tx->bad ? HC_E_MALFORMED : outcome;
}

static void put_fragment(struct hc_ring_tx *tx, const uint8_t *data, uint32_t bytes)
{
	uint32_t first = tx->buffer_bytes - tx->offset;

	if (first > bytes)
		first = bytes;
	memcpy(tx->buffer + tx->offset, data, first);
	memcpy(tx->buffer, data + first, bytes - first);
	tx->lines += LINES(bytes);
	tx->offset = (tx->offset + LINES(bytes) * HC_RING_LINE) % tx->buffer_bytes;
	atomic_store_explicit(&PLACE(tx)->u.fragment, bytes, memory_order_relaxed);
}

static int send_large(struct hc_ring_tx *tx, const uint8_t *data, uint32_t bytes,
		      struct hc_ring_time *t)
{
	uint32_t most = fragment_of(tx->buffer_bytes), sent = 0, n;
	int r = 0;

	if (!t->ms && LINES(bytes) > tx->buffer_bytes / HC_RING_LINE)
		return HC_E_BUFFER_OVERFLOW;
	if (!t->ms) /* all of it at once, or nothing */
		r = await_room(tx, (bytes + most - 1) / most, LINES(bytes), t);
	while (!r && sent < bytes) {
		n = bytes - sent < most ? bytes - sent : most;
		r = await_room(tx, 1, LINES(n), t);
		if (r)
			break;
		put_fragment(tx, data + sent, n);
		hc_ring_publish(tx, sent ? HC_RING_CONT : HC_RING_FIRST, bytes, 1);
		sent += n;
	}
	if (r == HC_E_TIMEOUT && sent)
		hc_ring_publish(tx, HC_RING_ABORT, 0, 1);
	return r;
}

/* The first descriptor of several last: it is the one that the receiver looks at. */
static void put_small(struct hc_ring_tx *tx, const uint8_t *data, uint32_t bytes)
{
	uint32_t at = HC_RING_INLINE, position = tx->position + 1, n;
	struct hc_ring_desc *d;

	for (; at < bytes; at += n, position++) {
		n = bytes - at < HC_RING_INLINE ? bytes - at : HC_RING_INLINE;
		d = HC_RING_PLACE(tx, position);
		hc_ring_copy(d->u.data, data + at, n);
		atomic_store_explicit(&d->word, HC_RING_WORD(TURN(position), HC_RING_MORE, 0),
				      memory_order_relaxed);
	}
	hc_ring_copy(PLACE(tx)->u.data, data, bytes < HC_RING_INLINE ? bytes : HC_RING_INLINE);
	hc_ring_publish(tx, HC_RING_SMALL, bytes, DESCS(bytes));
}

int hc_ring_send_slow(struct hc_ring_tx *tx, const void *data, uint32_t bytes,
		      struct hc_ring_time t)
{
	int r;

	if (__builtin_expect(tx->bad, 0))
		return HC_E_MALFORMED;
	if (bytes > HC_RING_SMALL_MAX)
		return send_large(tx, data, bytes, &t);
	if (__builtin_expect(free_descs(tx) <= DESCS(bytes), 0)) {
		r = await_room(tx, DESCS(bytes), 0, &t);
		if (r)
			return r;
	}
	put_small(tx, data, bytes);
	return 0;
}

/* ---- receiving ---- */

static inline bool next_word(struct hc_ring_rx *rx, uint64_t *word)
{
	uint32_t empty = rx->lap ? TURN(rx->position) - HC_RING_SLOTS : 0;

	*word = atomic_load_explicit(&PLACE(rx)->word, memory_order_acquire);
	if (HC_RING_TURN(*word) == TURN(rx->position))
		return true;
	if (HC_RING_TURN(*word) != empty)
		rx->bad = true;
	return rx->bad;
}

static bool has_word(void *half)
{
	uint64_t word;

	return next_word(half, &word);
}

static int broken(struct hc_ring_rx *rx)
{
	rx->bad = true;
	return HC_E_MALFORMED;
}

/* The next descriptor's word, waiting for it. */
static int await_word(struct hc_ring_rx *rx, uint64_t *word, struct hc_ring_time *t)
{
	int r;

	while (!next_word(rx, word)) {
		if (!t->spun && hc_ring_spin(&rx->wait, has_word, rx, t))
			continue;
		t->spun = false;
		r = hc_ring_pause(&rx->wait, has_word, rx, t);
		if (r)
			return r;
	}
	return rx->bad ? HC_E_MALFORMED : 0;
}

static int take_fragment(struct hc_ring_rx *rx, uint8_t *to)
{
	uint32_t n = atomic_load_explicit(&PLACE(rx)->u.fragment, memory_order_relaxed);
	uint32_t first = rx->buffer_bytes - rx->offset;

	if (!n || n > rx->buffer_bytes || n > rx->total - rx->got)
		return broken(rx);
	if (first > n)
		first = n;
	memcpy(to + rx->got, rx->buffer + rx->offset, first);
	memcpy(to + rx->got + first, rx->buffer, n - first);
	rx->got += n;
	rx->lines += LINES(n);
	rx->offset = (rx->offset + LINES(n) * HC_RING_LINE) % rx->buffer_bytes;
	hc_ring_step(rx, 1);
	return 0;
}

static int begin_large(struct hc_ring_rx *rx, uint64_t word)
{
	uint32_t total = HC_RING_BYTES(word);

	if (total <= HC_RING_SMALL_MAX || total > HC_RING_MESSAGE_MAX)
		return broken(rx);
	rx->total = total;
	rx->got = 0;
	return 0;
}

/* The rest of the message in the middle. AGAIN: it was given up by its sender, there is none. */
static int take_rest(struct hc_ring_rx *rx, uint8_t *to, struct hc_ring_time *t, bool *aborted)
{
	uint64_t word;
	int r = 0;

	*aborted = false;
	while (!r && rx->got < rx->total) {
		r = await_word(rx, &word, t);
		if (r)
			return r;
		if (HC_RING_KIND(word) == HC_RING_ABORT && rx->got) {
			rx->total = rx->got = 0;
			hc_ring_step(rx, 1);
			*aborted = true;
			return 0;
		}
		if (HC_RING_KIND(word) != (rx->got ? HC_RING_CONT : HC_RING_FIRST) ||
		    HC_RING_BYTES(word) != rx->total)
			return broken(rx);
		r = take_fragment(rx, to);
	}
	return r;
}

/* A message in the middle whose first part is in the stash, or which has none yet. */
static int recv_large(struct hc_ring_rx *rx, uint8_t *data, uint32_t *bytes, struct hc_ring_time *t,
		      bool *aborted)
{
	uint32_t total = rx->total;
	int r;

	*aborted = false;
	if (total > *bytes) {
		if (!rx->got)
			rx->total = 0;
		*bytes = total;
		return HC_E_BUFFER_OVERFLOW;
	}
	if (rx->got)
		memcpy(data, rx->stash, rx->got);
	r = take_rest(rx, data, t, aborted);
	if (r == HC_E_TIMEOUT || r == HC_E_AGAIN)
		memcpy(rx->stash, data, rx->got);
	if (!r && !*aborted) {
		*bytes = total;
		rx->total = rx->got = 0;
	}
	return r;
}

static inline int recv_small(struct hc_ring_rx *rx, uint64_t word, uint8_t *data, uint32_t *bytes)
{
	uint32_t n = HC_RING_BYTES(word), room = *bytes, position = rx->position, at = 0, part;

	if (n > HC_RING_SMALL_MAX)
		return broken(rx);
	*bytes = n;
	if (n > room)
		return HC_E_BUFFER_OVERFLOW;
	for (; at < n; at += part, position++) {
		part = n - at < HC_RING_INLINE ? n - at : HC_RING_INLINE;
		hc_ring_copy(data + at, HC_RING_PLACE(rx, position)->u.data, part);
	}
	hc_ring_step(rx, DESCS(n));
	return 0;
}

int hc_ring_recv_slow(struct hc_ring_rx *rx, void *data, uint32_t *bytes, struct hc_ring_time t)
{
	bool aborted = true;
	uint64_t word;
	int r = 0;

	if (__builtin_expect(rx->bad, 0))
		return HC_E_MALFORMED;
	while (!r && aborted) {
		if (!rx->total) {
			r = await_word(rx, &word, &t);
			if (r)
				return r;
			if (HC_RING_KIND(word) == HC_RING_SMALL)
				return recv_small(rx, word, data, bytes);
			r = HC_RING_KIND(word) == HC_RING_FIRST ? begin_large(rx, word)
								: broken(rx);
		}
		if (!r)
			r = recv_large(rx, data, bytes, &t, &aborted);
	}
	return r;
}

/* Is the message that begins here in one piece? */
static bool in_one_piece(struct hc_ring_rx *rx, uint64_t word)
{
	return HC_RING_KIND(word) == HC_RING_SMALL ||
	       atomic_load_explicit(&PLACE(rx)->u.fragment, memory_order_relaxed) ==
		       HC_RING_BYTES(word);
}

int hc_ring_poll(struct hc_ring_rx *rx, struct hc_ring_time t)
{
	bool aborted = true;
	uint64_t word;
	int r = 0;

	if (rx->bad)
		return HC_E_MALFORMED;
	while (!r && aborted) {
		if (!rx->total) {
			r = await_word(rx, &word, &t);
			if (r || in_one_piece(rx, word))
				return r;
			r = HC_RING_KIND(word) == HC_RING_FIRST ? begin_large(rx, word)
								: broken(rx);
		}
		if (!r)
			r = take_rest(rx, rx->stash, &t, &aborted);
	}
	return r;
}
