/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The seats of a part: the ranks of its domain that are here; see part.h.
 *
 * They stand together, in a span that is doubled when it is full, and in the order in which they
 * came. One that goes is replaced by the last. So a seat's number changes, and what knows it (its
 * process, its reading, the request that it waits for) changes with it.
 */
#include "part.h"

#include "device.h"
#include "session.h"

/* Seat `from` becomes seat number `to`, in all that knows it. */
static void seat_move(struct hc_core *c, uint32_t from, uint32_t to)
{
	struct hc_seat *s = &c->seats[to];

	*s = c->seats[from];
	if (s->flags & SEAT_READ)
		c->readings[to] = c->readings[from];
	/* in place: a process that is being reaped counts the seats that it has passed */
	if (s->process != HC_NONE)
		hc_list_move(&c->processes[s->process].seats, &c->seat_links, from, to);
}

static bool seats_grow(struct hc_core *c, struct hc_part *p)
{
	uint32_t cap = p->seats == HC_NONE ? 0 : 1u << p->order, first, i;
	uint8_t order;

	if (p->nseats < cap)
		return true;
	first = hc_spans_get(&c->seat_spans, cap ? 2 * cap : (p->nranks < 8 ? p->nranks : 8),
			     &order);
	if (first == HC_NONE)
		return false;
	for (i = 0; i < p->nseats; i++)
		seat_move(c, p->seats + i, first + i);
	if (cap)
		hc_spans_put(&c->seat_spans, p->seats, p->order);
	p->seats = first;
	p->order = order;
	return true;
}

uint32_t hc_part_add_seat(struct hc_core *c, struct hc_part *p, uint32_t rank, uint32_t device)
{
	uint32_t n;

	if (!seats_grow(c, p))
		return HC_NONE;
	n = p->seats + p->nseats++;
	hc_assert(rank < HC_RANKS_MAX && device <= HC_DEVICE_LAST);
	c->seats[n] = (struct hc_seat){.rank = (uint16_t)rank,
				       .device = (uint16_t)device,
				       .part = hc_part_number(c, p),
				       .process = HC_NONE,
				       .block = HC_NONE,
				       .state = HC_W_member_state_JOINED};
	c->nseats++;
	c->member_changes++;
	return n;
}

void hc_part_take_device(struct hc_core *c, uint32_t seat, bool shared)
{
	struct hc_seat *s = &c->seats[seat];

	hc_device_take(c, s->device, s->process, shared);
	s->flags |= (uint8_t)(SEAT_DEVICE | (shared ? SEAT_SHARED : 0));
}

void hc_part_release_seat(struct hc_core *c, uint32_t seat)
{
	struct hc_seat *s = &c->seats[seat];
	const uint32_t process = s->process;

	hc_session_unbind(c, seat);
	if (s->flags & SEAT_DEVICE)
		hc_device_release(c, s->device, process, s->flags & SEAT_SHARED);
	s->flags &= SEAT_READ;
	if (s->flags)
		c->readings[seat].running = 0;
	c->member_changes++;
}

/* A seat has gone: the last one takes its place. */
static void close_gap(struct hc_core *c, struct hc_part *p, uint32_t seat)
{
	const uint32_t last = p->seats + p->nseats - 1;

	if (seat != last) {
		hc_part_move_request(c, last, p, seat);
		seat_move(c, last, seat);
	}
	p->nseats--;
}

void hc_part_drop_seat(struct hc_core *c, struct hc_part *p, uint32_t seat)
{
	if (hc_part_now(c, p)->work & WORK_ARRIVE) /* the last one takes the place of this one */
		hc_part_busy(c, p)->cursor = 0;
	hc_part_release_seat(c, seat);
	close_gap(c, p, seat);
	c->nseats--;
}

bool hc_part_give_seat(struct hc_core *c, struct hc_part *p, uint32_t seat, struct hc_part *to)
{
	uint32_t n;

	if (!seats_grow(c, to))
		return false;
	n = to->seats + to->nseats++;
	hc_part_move_request(c, seat, to, n);
	seat_move(c, seat, n);
	c->seats[n].part = hc_part_number(c, to);
	close_gap(c, p, seat);
	return true;
}

uint32_t hc_part_find_seat(const struct hc_core *c, const struct hc_part *p, uint32_t rank)
{
	uint32_t i;

	/* ranks of one process that came together sit in their order */
	if (rank < p->nseats && c->seats[p->seats + rank].rank == rank)
		return p->seats + rank;
	for (i = 0; i < p->nseats; i++)
		if (c->seats[p->seats + i].rank == rank)
			return p->seats + i;
	return HC_NONE;
}
