/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The promises that hold after every step; see world.h. This file looks into the cores.
 *
 * Each check counts the same thing in two places that are kept apart in the core: seats by part,
 * by process and by session; users of a device; tickets; homes by state. A leak or a stale number
 * shows at the step that made it.
 */
#include "worldimp.h"

#include "channel.h"
#include "digest.h"
#include "drain.h"
#include "pages.h"
#include "home.h"
#include "part.h"
#include "state.h"
#include "user.h"
#include "who.h"

#include <stdlib.h>
#include <string.h>

/* ---- the store ---- */

void world_persist(struct world *w, uint32_t node, const struct hc_action *a)
{
	struct world_row r = {.id = a->u.persist.id,
			      .seq = a->u.persist.seq,
			      .node = node,
			      .what = (uint8_t)a->u.persist.what};
	struct hc_m_domain_row row;
	struct hc_m_event_row entry;

	world_want(w, r.seq == w->asked[node] + 1 && "numbers are dense and rise");
	w->asked[node] = r.seq;
	if (a->u.persist.what == HC_PUT_DOMAIN) {
		world_want(w,
			   !hc_decode(&hc_desc_domain_row, HC_PROTO_MAX, a->bytes, a->len, &row));
		world_want(w, row.id == r.id);
		r.state = row.state;
		r.len = a->len;
		r.bytes = malloc(a->len);
		if (!r.bytes)
			abort();
		memcpy(r.bytes, a->bytes, a->len);
	} else if (a->u.persist.what == HC_PUT_CHANNEL) {
		struct hc_m_channel_row channel;

		world_want(w, !hc_decode(&hc_desc_channel_row, HC_PROTO_MAX, a->bytes, a->len,
					 &channel));
		world_want(w, channel.channel == r.id);
		r.len = a->len;
		r.bytes = malloc(a->len);
		if (!r.bytes)
			abort();
		memcpy(r.bytes, a->bytes, a->len);
	} else if (a->u.persist.what == HC_ADD_EVENT) {
		world_want(w,
			   !hc_decode(&hc_desc_event_row, HC_PROTO_MAX, a->bytes, a->len, &entry));
		return;
	}
	w->rows = world_grow(w->rows, w->nrows, &w->rows_cap, sizeof(*w->rows));
	w->rows[w->nrows++] = r;
}

void world_put_row(struct world *w, uint32_t node, uint64_t id, const void *bytes, uint32_t len)
{
	struct world_row r = {.id = id, .node = node, .what = HC_PUT_DOMAIN, .len = len};

	r.bytes = malloc(len ? len : 1);
	if (!r.bytes)
		abort();
	memcpy(r.bytes, bytes, len);
	w->rows = world_grow(w->rows, w->nrows, &w->rows_cap, sizeof(*w->rows));
	w->rows[w->nrows++] = r;
}

static const struct world_row *last_row(const struct world *w, uint32_t node, uint64_t id,
					bool stored)
{
	uint32_t i;

	for (i = w->nrows; i-- > 0;)
		if (w->rows[i].node == node && w->rows[i].id == id &&
		    (!stored || w->rows[i].seq <= w->stored[node]))
			return &w->rows[i];
	return NULL;
}

bool world_is_stored(const struct world *w, uint32_t node, uint64_t id)
{
	const struct world_row *r = last_row(w, node, id, true);

	return r && r->what == HC_PUT_DOMAIN;
}

bool world_last_row(const struct world *w, uint32_t node, uint32_t at, uint8_t what)
{
	const struct world_row *r = &w->rows[at];

	return r->node == node && r->what == what && last_row(w, node, r->id, true) == r;
}

static bool home_is_here(const struct world *w, uint32_t node, uint64_t id)
{
	const struct hc_core *c = w->core[node];
	uint32_t n = hc_index_find(&c->part_by_id, id);

	return n != HC_NONE && c->parts[n].home_node == HC_SELF_NODE;
}

/* A restarted daemon finds that process in a row, and its kernel says again that it is dead. */
static bool is_found_again(struct world *w, uint32_t node, const struct world_record *r)
{
	return r->cause_kind == HC_W_event_code_RANK_DIED && world_is_stored(w, node, r->id) &&
	       world_knows_dead(w, node, r->cause_pid);
}

bool world_may_publish(struct world *w, uint32_t node, const struct world_record *r)
{
	const struct world_row *row = last_row(w, node, r->id, true);

	switch (r->state) {
	case HC_W_domain_state_ACTIVE: return world_is_stored(w, node, r->id);
	case HC_W_domain_state_DAMAGED:
		return row &&
		       (!home_is_here(w, node, r->id) || row->what == HC_DEL_DOMAIN ||
			row->state == HC_W_domain_state_DAMAGED || is_found_again(w, node, r));
	case HC_W_domain_state_DESTROYED:
		return row && (!home_is_here(w, node, r->id) || row->what == HC_DEL_DOMAIN);
	}
	return true;
}

const struct world_record *world_record(const struct world *w, uint32_t node, uint64_t id)
{
	uint32_t i;

	for (i = 0; i < WORLD_RECORDS; i++)
		if (w->records[node][i].id == id)
			return &w->records[node][i];
	return NULL;
}

/* ---- seats, sessions, devices ---- */

struct tally {
	uint32_t seats, bound, devices, work, busy;
};

static void check_record(struct world *w, uint32_t node, const struct hc_part *p)
{
	const struct hc_core *c = w->core[node];
	const struct world_record *r = &w->records[node][p - c->parts];
	const struct hc_part_busy *b = hc_part_now(c, p);

	world_want(w, r->id == p->id && r->state == p->state && r->epoch == p->epoch);
	world_want(w, r->number == p->number && r->nranks == p->nranks);
	world_want(w, r->cut_set == b->cut_set && (!b->cut_set || r->cut == b->cut));
	world_want(w, r->tag == HC_TAG(p->reuse, p->epoch) && r->uid == p->uid);
	world_want(w, r->cause_kind == b->cause_kind && r->cause_rank == b->cause_rank);
}

static void check_seat(struct world *w, const struct hc_core *c, uint32_t part, uint32_t seat,
		       struct tally *t)
{
	const struct hc_seat *s = &c->seats[seat];
	const uint64_t session = hc_seat_session(s);
	const struct hc_session *e;

	world_want(w, s->part == part);
	world_want(w, s->state <= HC_W_member_state_LEFT);
	t->seats++;
	t->devices += s->flags & SEAT_DEVICE ? 1 : 0;
	if (s->process == HC_NONE) {
		world_want(w, !session && s->block == HC_NONE);
		return;
	}
	t->bound++;
	world_want(w, s->process < c->process_pool.fresh && c->processes[s->process].pid);
	if (!session || c->sessions[(uint32_t)session].id != session)
		return; /* detached, or about to be */
	e = &c->sessions[(uint32_t)session];
	world_want(w, e->process == s->process);
	if (s->block != HC_NONE)
		world_want(w, e->blocks[s->block / 64] >> (s->block % 64) & 1);
}

static void check_part(struct world *w, uint32_t node, uint32_t n, struct tally *t)
{
	const struct hc_core *c = w->core[node];
	const struct hc_part *p = &c->parts[n];
	const struct hc_part_busy *b = hc_part_now(c, p);
	uint32_t i, k;

	if (p->published)
		check_record(w, node, p);
	world_want(w, b->queued == (b->work != 0));
	world_want(w, p->busy == HC_NONE || b->part == n);
	t->work += b->queued;
	t->busy += p->busy != HC_NONE;
	if (p->state == HC_W_domain_state_ACTIVE && !b->queued && !b->samples && !b->asks.count)
		world_want(w, p->busy == HC_NONE); /* at rest */
	for (i = 0; i < p->nseats; i++) {
		check_seat(w, c, n, p->seats + i, t);
		for (k = 0; p->nseats <= 64 && k < i; k++)
			world_want(w, c->seats[p->seats + k].rank != c->seats[p->seats + i].rank);
	}
}

/* A part is in use while one of its indexes knows it. */
static bool part_used(const struct hc_core *c, uint32_t n)
{
	return c->parts[n].state != HC_W_domain_state_NONE;
}

static void check_device(struct world *w, const struct hc_core *c, const struct hc_device *d)
{
	world_want(w, d->held + d->idle <= d->users && d->alone <= d->users);
	if (d->holder == HC_NONE)
		world_want(w, !d->held && d->users == d->idle);
	else
		world_want(w, d->held && c->processes[d->holder].seats.count >= d->held);
}

static void check_parts(struct world *w, uint32_t node)
{
	const struct hc_core *c = w->core[node];
	struct tally t = {0};
	uint32_t n, used = 0, bound = 0, sessions = 0, users = 0;

	for (n = 0; n < c->part_pool.fresh; n++) {
		if (!part_used(c, n))
			continue;
		used++;
		check_part(w, node, n, &t);
	}
	world_want(w, used == c->part_pool.used && t.busy == c->part_busy_pool.used);
	world_want(w, t.seats == c->nseats && t.work == c->work.count);
	for (n = 0; n < c->process_pool.fresh; n++) {
		bound += c->processes[n].seats.count;
		sessions += c->processes[n].sessions;
	}
	world_want(w, bound == t.bound && sessions == c->nsessions);
	for (n = 0; n < c->ndevices; n++) {
		check_device(w, c, &c->devices[n]);
		users += c->devices[n].users;
	}
	world_want(w, users == t.devices);
}

/* Seats by session: only those of open sessions are counted there. */
static void check_sessions(struct world *w, uint32_t node)
{
	const struct hc_core *c = w->core[node];
	uint32_t slot, n, i, seats = 0, counted = 0;

	for (slot = 0; slot < c->lim.sessions; slot++)
		if (c->sessions[slot].id)
			counted += c->sessions[slot].seats;
	for (n = 0; n < c->part_pool.fresh; n++)
		for (i = 0; part_used(c, n) && i < c->parts[n].nseats; i++) {
			const uint64_t s = hc_seat_session(&c->seats[c->parts[n].seats + i]);

			seats += s && c->sessions[(uint32_t)s].id == s;
		}
	world_want(w, seats == counted);
}

/* ---- homes ---- */

static void check_home(struct world *w, const struct hc_core *c, const struct hc_home *h,
		       uint32_t *known)
{
	const struct hc_home_busy *b = hc_home_now(c, h);
	uint32_t r, arrived = 0, gone = 0, untold = 0;

	for (r = 0; r < h->nranks; r++) {
		const struct hc_place *pl = &c->places[h->places + r];

		arrived += pl->state != HC_W_member_state_EXPECTED;
		gone += pl->state == HC_W_member_state_DEAD || pl->state == HC_W_member_state_LEFT;
		untold += pl->state == HC_W_member_state_DEAD && !pl->told;
		world_want(w, hc_who(c, pl)->node < c->nnodes &&
				      hc_who(c, pl)->places <= c->lim.ranks);
		*known += pl->who != 0;
	}
	world_want(w, arrived == h->arrived && gone == b->gone && untold == b->untold);
	if (h->state == HC_W_domain_state_ACTIVE && !h->step && !gone && !b->asks.count)
		world_want(w, h->busy == HC_NONE); /* at rest */
	if (h->state >= HC_W_domain_state_ACTIVE && h->state != HC_W_domain_state_FAILED)
		world_want(w, h->arrived == h->nranks && h->epoch > 0);
}

static void check_homes(struct world *w, uint32_t node)
{
	const struct hc_core *c = w->core[node];
	uint32_t n, used = 0, active = 0, forming = 0, damaged = 0, storing = 0, over = 0;
	uint32_t busy = 0, known = 0, far = 0;
	struct hc_core_counts counts;

	for (n = 0; n < c->home_pool.fresh; n++) {
		const struct hc_home *h = &c->homes[n];

		if (!h->id)
			continue;
		used++;
		check_home(w, c, h, &known);
		busy += h->busy != HC_NONE;
		world_want(w, h->busy == HC_NONE || c->home_busy[h->busy].home == n);
		active += h->state == HC_W_domain_state_ACTIVE;
		forming += h->state < HC_W_domain_state_ACTIVE;
		damaged += h->state == HC_W_domain_state_DAMAGED;
		storing += h->step == HOME_COMMITTING || h->step == HOME_DAMAGING ||
			   h->step == HOME_ENDING;
		over += h->step == HOME_OVER;
	}
	for (n = 0; n < c->part_pool.fresh; n++) {
		const struct hc_part *p = &c->parts[n];

		storing += part_used(c, n) && hc_part_now(c, p)->step != PART_NOTHING;
		if (!part_used(c, n) || p->home_node == HC_SELF_NODE)
			continue;
		far++;
		active += p->state == HC_W_domain_state_ACTIVE;
		forming += p->state < HC_W_domain_state_ACTIVE;
		damaged += p->state == HC_W_domain_state_DAMAGED;
	}
	world_want(w, far == c->nfar);
	world_want(w, busy == c->home_busy_pool.used);
	for (n = 1; n < c->who_pool.fresh; n++)
		known -= c->whos[n].places;
	world_want(w, !known);
	world_want(w, storing == c->storing.count && over == c->over.count);
	hc_core_counts(c, &counts);
	world_want(w, counts.domains == used + far && counts.active == active);
	world_want(w, counts.forming == forming && counts.damaged == damaged);
	world_want(w, counts.ranks == c->nseats && counts.sessions == c->nsessions);
}

/* Tickets: of clients (they have a session), at homes, and of ranks that leave. */
static void check_asks(struct world *w, uint32_t node)
{
	const struct hc_core *c = w->core[node];
	uint32_t n, used = 0, at_homes = 0, leaving = 0;

	for (n = 0; n < c->ask_pool.fresh; n++)
		used += c->asks[n].ticket && c->asks[n].session;
	for (n = 0; n < c->home_pool.fresh; n++)
		at_homes += c->homes[n].id ? hc_home_now(c, &c->homes[n])->asks.count : 0;
	for (n = 0; n < c->part_pool.fresh; n++)
		leaving += part_used(c, n) ? hc_part_now(c, &c->parts[n])->asks.count : 0;
	world_want(w, used + at_homes + leaving + c->departed.count == c->ask_pool.used);
}

static void check_timers(struct world *w, uint32_t node)
{
	const struct hc_core *c = w->core[node];
	uint32_t i, n;

	for (i = 0; i < c->timers.count; i++) {
		n = c->timers.heap[i].number;
		world_want(w, c->timers.place[n] == i + 1);
		if (n < c->lim.domains)
			world_want(w, c->homes[c->home_busy[n].home].busy == n);
		else if (n < 2 * c->lim.domains)
			world_want(w, c->parts[c->part_busy[n - c->lim.domains].part].busy ==
					      n - c->lim.domains);
		else if (n == hc_drain_timer(c))
			world_want(w, c->drain.on && c->drain.session);
		else
			world_want(w, c->gathers[n - 2 * c->lim.domains].parent);
	}
}

/* ---- channels ---- */

static uint64_t ring_bytes(const struct hc_channel *ch)
{
	return ch->buffer ? HC_RING_FILE_BYTES(ch->buffer) : 0;
}

/* What a channel holds is what the admission has given, and what its register says. */
static void check_channel(struct world *w, uint32_t node, uint32_t n)
{
	const struct hc_core *c = w->core[node];
	const struct hc_channel *ch = &c->chan->at[n];
	const struct world_register *r = &w->registers[node][n];
	struct hc_admit_place place;
	unsigned side;

	for (side = 0; side < 2 && ch->state != CHANNEL_FREE; side++)
		world_want(w, ch->want[side] == HC_NONE ||
				      c->chan->wants[ch->want[side]].state != WANT_FREE);
	if (ch->state == CHANNEL_GRANTED) {
		world_want(w, ch->request != HC_NONE &&
				      hc_admit_state(c->admit, ch->request) == HC_ADMIT_HELD);
		hc_admit_piece_place(c->admit, ch->request, ch->piece, &place);
		world_want(w, place.link == ch->link && place.vc == ch->vc);
		world_want(w, !ch->row || (r->id == ch->id && r->state == HC_W_channel_state_OK));
		world_want(w, (ch->pair != HC_NONE) ==
				      (hc_channel_lacks(ch, 0) || hc_channel_lacks(ch, 1)));
	} else if (ch->state == CHANNEL_FREE) {
		world_want(w, !r->id || r->state == HC_W_channel_state_REVOKED);
	}
}

static void check_channels(struct world *w, uint32_t node)
{
	const struct hc_core *c = w->core[node];
	const struct hc_channels *x = c->chan;
	uint64_t mbps[2][64] = {{0}}, used[2] = {0}, held[2] = {0}, charged[3] = {0}, memory = 0;
	uint32_t n, i, count = 0, granted = 0, waits = 0, wants = 0;
	struct hc_admit_use use;

	hc_admit_check(c->admit);
	for (n = 0; n < x->pool.fresh; n++) {
		const struct hc_channel *ch = &x->at[n];

		check_channel(w, node, n);
		count += ch->state != CHANNEL_FREE;
		if (ch->state == CHANNEL_GRANTED) {
			granted++;
			world_want(w, ch->link < 64);
			mbps[0][ch->link] += ch->mbps[0];
			mbps[1][ch->link] += ch->mbps[1];
		}
		if (ch->state == CHANNEL_FREE || ch->state == CHANNEL_ENDING)
			continue;
		held[HC_HOLD_CHANNELS]++;
		memory += ring_bytes(ch);
	}
	world_want(w, count == x->pool.used && granted == x->granted);
	for (n = 0; n < x->want_pool.fresh; n++) {
		wants += x->wants[n].state != WANT_FREE;
		waits += x->wants[n].state != WANT_FREE && x->wants[n].code == HC_E_IN_PROGRESS;
	}
	world_want(w, wants == x->want_pool.used && waits == x->waiting);
	held[HC_HOLD_WAITING] = waits;
	for (n = 0; n < c->user_pool.fresh; n++) {
		for (i = 0; i < 2; i++)
			charged[i] += c->user_index.link[n] ? c->users[n].held[i] : 0;
		charged[2] += c->user_index.link[n] ? c->users[n].memory : 0;
	}
	world_want(w, memory <= charged[2]); /* others charge theirs there too */
	for (i = 0; i < 2; i++)
		world_want(w, held[i] == charged[i] && "what a uid is charged is what it has");
	for (n = 0; n < c->nlinks && n < 64; n++) {
		hc_admit_link_use(c->admit, n, &use);
		used[0] = use.used_mbps[0] + use.used_mbps[1];
		used[1] = mbps[0][n] + mbps[1][n];
		world_want(w, use.used_mbps[0] <= use.limit_mbps &&
				      use.used_mbps[1] <= use.limit_mbps);
		/* more is given only to a ticket whose caller is away */
		world_want(w, used[0] >= used[1] &&
				      (used[0] == used[1] || x->waiting || x->keep_pool.used));
	}
}

/* The digest of each pair is that of the domains, counted anew. */
static void check_digests(struct world *w, uint32_t node)
{
	struct hc_core *c = w->core[node];
	uint64_t kept[WORLD_NODES + 1] = {0};
	uint32_t i, twice;

	if (c->nnodes < 2)
		return;
	world_want(w, c->nnodes <= WORLD_NODES + 1);
	for (i = 0; i < c->nnodes; i++)
		kept[i] = hc_digest_of(c, i);
	for (twice = 0; twice < 2; twice++) {
		for (i = 0; i < c->home_pool.fresh; i++)
			if (c->homes[i].id)
				hc_digest_home(c, &c->homes[i]);
		for (i = 0; i < c->part_pool.fresh; i++)
			if (c->parts[i].id)
				hc_digest_part(c, &c->parts[i]);
		for (i = 0; i < c->nnodes && !twice; i++)
			world_want(w, !hc_digest_of(c, i) && "nothing else is in a digest");
	}
	for (i = 0; i < c->nnodes; i++)
		world_want(w, hc_digest_of(c, i) == kept[i]);
}

void world_check(struct world *w, uint32_t node)
{
	const struct hc_core *c = w->core[node];

	check_parts(w, node);
	check_sessions(w, node);
	check_homes(w, node);
	check_asks(w, node);
	check_timers(w, node);
	world_check_sync(w, node);
	check_channels(w, node);
	check_digests(w, node);
	world_want(w, c->ring_used <= HC_RING_BYTES);
}

/* ---- the end ---- */

static void check_blocks(struct world *w, const struct hc_core *c)
{
	uint32_t slot, i;

	for (slot = 0; slot < c->lim.sessions; slot++)
		for (i = 0; c->sessions[slot].blocks && i < HC_ARENA_BLOCKS / 64; i++)
			world_want(w, !c->sessions[slot].blocks[i]);
}

void world_check_empty(struct world *w)
{
	uint32_t n, i;

	for (i = 0; i < w->nclients; i++)
		world_want(w, !w->clients[i]->nwaits && "every request is answered");
	for (n = 0; n < w->nodes; n++) {
		const struct hc_core *c = w->core[n];

		world_check(w, n);
		world_want(w, !c->home_pool.used && !c->part_pool.used && !c->nseats);
		world_want(w, !c->process_pool.used || c->nsessions);
		world_want(w, !c->chan->pool.used && !c->chan->pair_pool.used);
		world_want(w, !c->chan->later_pool.used && !c->chan->timers.count);
		world_want(w, !c->chan->want_pool.used && !c->chan->gang_pool.used &&
				      !c->chan->keep_pool.used);
		world_want(w, !c->user_pool.used); /* nobody is charged for what is over */
		world_want(w, !c->ask_pool.used && !c->name_pool.used && !c->cause_pool.used);
		world_want(w, !c->timers.count && !c->storing.count && !c->ring_used);
		world_want(w, !c->wait_pool.used && !c->waiter_pool.used && !c->exch_pool.used);
		world_want(w, !c->entry_pool.used && !c->cell_pool.used);
		world_want(w,
			   !c->work.count && !c->reaping.count && !c->answering && !c->over.count);
		for (i = 0; i < c->ndevices; i++)
			world_want(w, !c->devices[i].users && c->devices[i].holder == HC_NONE);
		for (i = 0; i < HC_GATHERS; i++)
			world_want(w, !c->gathers[i].parent);
		if (!c->nsessions)
			check_blocks(w, c);
	}
}
