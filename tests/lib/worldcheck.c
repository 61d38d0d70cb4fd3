/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The promises that hold after every step; see world.h. This file looks into the cores: that each
 * agrees with itself (worldcore.h), and with the records, rows and channels that the world saw.
 */
#include "worldcore.h"
#include "worldimp.h"

#include "channel.h"
#include "drain.h"
#include "pages.h"
#include "part.h"
#include "worldquota.h"
#include "state.h"
#include "user.h"

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
		world_line(w, SHOW_JOURNAL, "%c journal: %s: %.*s", (char)('a' + node),
			   hc_word_event_code(entry.kind), (int)entry.text.len, entry.text.p);
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

/* ---- records, timers ---- */

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

static void check_records(struct world *w, uint32_t node)
{
	const struct hc_core *c = w->core[node];
	uint32_t n;

	for (n = 0; n < c->part_pool.fresh; n++)
		if (c->parts[n].state != HC_W_domain_state_NONE && c->parts[n].published)
			check_record(w, node, &c->parts[n]);
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

static void want_none(struct world *w, const char *wrong)
{
	if (wrong)
		world_broken(w, __FILE__, __LINE__, wrong);
}

void world_check(struct world *w, uint32_t node)
{
	world_want(w, w->core[node]->nnodes <= WORLD_NODES + 1);
	want_none(w, world_core_wrong(w->core[node]));
	check_records(w, node);
	check_timers(w, node);
	world_check_sync(w, node);
	check_channels(w, node);
	if (w->settings.quota_link_percent)
		want_none(w, quota_wrong(w->core[node], w->settings.quota_link_percent));
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
		want_none(w, world_core_left(c));
		if (!c->nsessions)
			check_blocks(w, c);
	}
}
