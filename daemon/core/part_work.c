/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Telling the ranks of a part; see part.h.
 *
 * Telling many ranks is cut into slices: a part has `work` bits, a cursor, and a place in the
 * core's list. One call of hc_part_work does a few seats of the oldest part. No message of the
 * home is taken before all such work is done, so the notification under way always speaks of the
 * state that the part holds.
 *
 * A join is answered once for all seats that wait for the same request: by itself, or as an item
 * of a batch, which then knows its outcome.
 */
#include "part.h"

#include "emit.h"
#include "pages.h"
#include "session.h"
#include "told.h"

#include <stdio.h>
#include <string.h>

#define SLICE 32u /* seats that one call of hc_part_work does */

/* ---- what seats wait for ---- */

/* Room for the request of each seat that the part has room for. */
static uint32_t *requests_of(struct hc_core *c, struct hc_part *p)
{
	struct hc_part_busy *b = hc_part_busy(c, p);
	const struct hc_part_busy old = *b;

	if (old.requests != HC_NONE && old.requests_order >= p->order)
		return &c->seat_requests[old.requests];
	b->requests = hc_spans_get(&c->seat_request_spans, 1u << p->order, &b->requests_order);
	hc_assert(b->requests != HC_NONE); /* there is room for all, see core.c */
	if (old.requests != HC_NONE) {
		memcpy(&c->seat_requests[b->requests], &c->seat_requests[old.requests],
		       sizeof(*c->seat_requests) << old.requests_order);
		hc_spans_put(&c->seat_request_spans, old.requests, old.requests_order);
	}
	return &c->seat_requests[b->requests];
}

void hc_part_wait(struct hc_core *c, uint32_t seat, uint32_t request, bool batch)
{
	struct hc_seat *s = &c->seats[seat];
	struct hc_part *p = hc_part(c, s->part);

	requests_of(c, p)[seat - p->seats] = request;
	s->flags = (uint8_t)((s->flags & ~SEAT_BATCH) | SEAT_WAITS | (batch ? SEAT_BATCH : 0));
}

/* Of a seat that waits. */
static uint32_t request_of(const struct hc_core *c, uint32_t seat)
{
	const struct hc_part *p = &c->parts[c->seats[seat].part];

	return c->seat_requests[hc_part_now(c, p)->requests + (seat - p->seats)];
}

void hc_part_move_request(struct hc_core *c, uint32_t from, struct hc_part *p, uint32_t to)
{
	const bool waits = c->seats[from].flags & SEAT_WAITS;
	const uint32_t request = waits ? request_of(c, from) : 0;

	if (waits)
		requests_of(c, p)[to - p->seats] = request;
}

/* ---- answers to joins ---- */

static void refuse(struct hc_core *c, const struct hc_seat *s, uint32_t request, int code,
		   const char *text)
{
	const uint64_t session = hc_seat_session(s);
	const struct hc_part *p = hc_part(c, s->part);

	if (s->flags & SEAT_BATCH)
		hc_batch_refused(c, session, request, code, text);
	else if (hc_session_get(c, session) && code == HC_E_AGAIN &&
		 p->state == HC_W_domain_state_FAILED)
		hc_emit_again(c, session, request, (uint32_t)hc_part_now(c, p)->cut, text);
	else if (hc_session_get(c, session))
		hc_emit_error(c, session, request, code, text);
}

void hc_part_refuse(struct hc_core *c, uint32_t seat, int code, const char *text)
{
	if (c->seats[seat].flags & SEAT_WAITS)
		refuse(c, &c->seats[seat], request_of(c, seat), code, text);
}

/* Does the seat wait for that request of the seat `s`? */
static bool waits_for(const struct hc_core *c, uint32_t seat, const struct hc_seat *s,
		      uint32_t request)
{
	const struct hc_seat *t = &c->seats[seat];

	return t->flags & SEAT_WAITS && !((t->flags ^ s->flags) & SEAT_BATCH) &&
	       hc_seat_session(t) == hc_seat_session(s) && request_of(c, seat) == request;
}

/* Refuse the join that this seat waits for, once for all seats of the request. */
void hc_part_fail_join(struct hc_core *c, struct hc_part *p, uint32_t seat, int code,
		       const char *text)
{
	const struct hc_seat s = c->seats[seat];
	uint32_t request, i;

	if (!(s.flags & SEAT_WAITS))
		return;
	request = request_of(c, seat);
	for (i = p->seats; i < p->seats + p->nseats; i++)
		if (waits_for(c, i, &s, request))
			c->seats[i].flags &= (uint8_t) ~(SEAT_WAITS | SEAT_BATCH);
	refuse(c, &s, request, code, text);
}

void hc_part_answer_joined(struct hc_core *c, struct hc_part *p, uint32_t seat)
{
	const struct hc_seat first = c->seats[seat];
	const uint32_t request = request_of(c, seat);
	const uint64_t session = hc_seat_session(&first);
	struct hc_session *s = hc_session_get(c, session);
	uint32_t slab = hc_part_number(c, p) / HC_SLAB_RECORDS, i;
	struct hc_m_joined m = {.id = p->id,
				.epoch = p->epoch,
				.nranks = p->nranks,
				.slot = hc_part_number(c, p),
				.tag = HC_TAG(p->reuse, p->epoch)};
	char name[32];

	if (!(first.flags & SEAT_BATCH)) /* that is told by its batch */
		m.name = hc_str(hc_part_name(c, p, name));
	for (i = p->seats; i < p->seats + p->nseats; i++) {
		struct hc_seat *t = &c->seats[i];
		struct hc_m_seat r = {.rank = t->rank, .device = t->device, .block = t->block};

		if (!waits_for(c, i, &first, request))
			continue;
		t->flags &= (uint8_t) ~(SEAT_WAITS | SEAT_BATCH);
		if (first.flags & SEAT_BATCH)
			continue;
		hc_assert(!hc_arr_put(&m.seats, c->scratch, HC_OUT_BYTES, &hc_desc_seat,
				      HC_PROTO_MAX, &r));
	}
	if (first.flags & SEAT_BATCH)
		hc_batch_joined(c, session, request, p);
	if (!s || first.flags & SEAT_BATCH)
		return;
	m.slab_sent = !(s->slabs >> (slab & 63) & 1);
	s->slabs |= 1ull << (slab & 63);
	hc_emit_grant(c, session, request, &hc_desc_joined, &m,
		      m.slab_sent ? HC_GRANT_SLAB : HC_GRANT_NONE, p->uid, slab);
}

/* ---- slices ---- */

void hc_part_add_work(struct hc_core *c, struct hc_part *p, unsigned bits)
{
	struct hc_part_busy *b = hc_part_busy(c, p);

	if (!b->work)
		b->cursor = 0;
	/* what is being told changes, or something comes before it: begin that again */
	if (b->work && (bits & -bits) <= (unsigned)(b->work & -b->work))
		b->cursor = 0;
	b->work |= (uint8_t)bits;
	if (!b->queued) {
		b->queued = true;
		hc_list_push(&c->work, &c->work_links, p->busy);
	}
}

static void write_event(struct hc_core *c, const struct hc_part *p, uint64_t session)
{
	const struct hc_part_busy *b = hc_part_now(c, p);
	struct hc_m_event e = {.kind = b->event,
			       .id = p->id,
			       .epoch = p->epoch,
			       .state = p->state,
			       .number = p->number,
			       .rank = HC_NONE,
			       .node = hc_str(c->nodes[p->home_node].name)};
	char text[HC_NAME_MAX + 64];

	if (p->state != HC_W_domain_state_ACTIVE) {
		e.rank = b->event_rank;
		e.pid = b->event_pid;
		if (b->event_rank != HC_NONE && b->event_node != HC_NONE)
			e.node = hc_str(c->nodes[b->event_node].name);
		HC_TEXT(text, "rank %u, pid %u on node %.*s, %s", e.rank, e.pid, (int)e.node.len,
			e.node.p, b->event == HC_W_event_code_RANK_ABORTED ? "aborted" : "exited");
		e.text = hc_str(b->event_rank == b->cause_rank ? hc_part_cause(c, p) : text);
	}
	hc_emit_event(c, session, &e);
}

/* All hear the same: it is written for the first of a slice, since that takes most of the time. */
static void tell(struct hc_core *c, const struct hc_part *p, struct hc_session *s,
		 const struct hc_action **said)
{
	if (!s || s->mark == c->mark)
		return;
	s->mark = c->mark;
	if (*said) {
		hc_emit_same(c, s->id, *said);
		return;
	}
	write_event(c, p, s->id);
	*said = hc_emit_last(c);
}

/* Who was told already in this round is passed over; false when there is no room for the rest. */
static bool tell_watchers(struct hc_core *c, const struct hc_part *p, const struct hc_action **said)
{
	uint32_t slot = hc_list_first(&c->watchers);
	struct hc_session *s;

	for (; slot != HC_NONE; slot = hc_list_next(&c->session_links, slot)) {
		s = &c->sessions[slot];
		if (!hc_emit_room(c))
			return false;
		if (s->watching == p->id ||
		    (s->subscribed &&
		     (s->role == HC_W_role_ADMIN || c->processes[s->process].uid == p->uid)))
			tell(c, p, s, said);
	}
	return true;
}

/* One seat's share of the work of kind `bit`. */
static void work_seat(struct hc_core *c, struct hc_part *p, enum hc_work bit, uint32_t seat,
		      const struct hc_action **said)
{
	struct hc_part_busy *b = hc_part_busy(c, p);
	struct hc_seat *s = &c->seats[seat];

	switch (bit) {
	case WORK_SCAN: hc_part_ask_sample(c, p, seat); return;
	case WORK_JOINED:
		if (s->flags & SEAT_WAITS)
			hc_part_answer_joined(c, p, seat);
		return;
	case WORK_NOTIFY:
		if (!b->quiet || b->event != HC_W_event_code_DOMAIN_ACTIVE)
			tell(c, p, hc_session_get(c, hc_seat_session(s)), said);
		return;
	case WORK_FAIL: hc_part_fail_join(c, p, seat, b->code, hc_part_cause(c, p)); return;
	case WORK_CLOSE: hc_part_drop_seat(c, p, seat); return;
	case WORK_ARRIVE: hc_part_arrive_again(c, p, seat); return;
	}
}

/* All seats have had their share of `bit`. */
static void work_over(struct hc_core *c, struct hc_part *p, enum hc_work bit,
		      const struct hc_action **said)
{
	struct hc_part_busy *b = hc_part_busy(c, p);

	if (bit == WORK_NOTIFY && !tell_watchers(c, p, said)) {
		b->cursor = HC_NONE; /* the seats have been told */
		return;
	}
	if (bit == WORK_CLOSE && !hc_part_answer_leave(c, p, HC_NONE, 0, hc_part_cause(c, p)))
		return;
	if (bit == WORK_NOTIFY)
		hc_part_told_active(c, p);
	b->work &= (uint8_t)~bit;
	b->cursor = 0;
	if (bit == WORK_SCAN)
		hc_part_judge_drain(c, p);
	if (b->work)
		return;
	hc_list_del(&c->work, &c->work_links, p->busy);
	b->queued = false;
	if (bit == WORK_CLOSE)
		hc_part_free(c, p);
	else if (p->state == HC_W_domain_state_FORMING)
		hc_part_close_if_empty(c, p);
	else
		hc_part_rest(c, p);
}

bool hc_part_work(struct hc_core *c)
{
	uint32_t n = hc_list_first(&c->work), i;
	const struct hc_action *said = NULL;
	struct hc_part_busy *b;
	struct hc_part *p;
	enum hc_work bit;

	if (n == HC_NONE)
		return false;
	b = &c->part_busy[n];
	p = hc_part(c, b->part);
	bit = (enum hc_work)(b->work & -b->work);
	if (bit == WORK_NOTIFY && !b->cursor)
		c->mark++;
	for (i = 0; i < SLICE && hc_emit_room(c); i++) {
		/* seats go from the end while closing, so that the rest stays where it is */
		if (bit == WORK_CLOSE ? !p->nseats : b->cursor >= p->nseats) {
			work_over(c, p, bit, &said);
			return true;
		}
		if (bit == WORK_CLOSE)
			work_seat(c, p, bit, p->seats + p->nseats - 1, &said);
		else
			work_seat(c, p, bit, p->seats + b->cursor++, &said);
	}
	return true;
}
