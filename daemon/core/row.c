/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of domains; see row.h. The arrays of a row are made one behind the other in the scratch. */
#include "row.h"

#include "emit.h"
#include "home.h"
#include "part.h"
#include "who.h"

#include <string.h>

struct maker {
	struct hc_core *c;
	struct hc_m_domain_row row;
	uint32_t used; /* of the scratch */
};

static void add(struct maker *m, struct hc_arr *to, const struct hc_desc *d, const void *rec)
{
	const uint32_t before = to->len;

	hc_assert(!hc_arr_put(to, m->c->scratch + m->used, HC_OUT_BYTES - m->used, d, HC_PROTO_MAX,
			      rec));
	hc_assert(to->len > before);
}

/* The array is whole: the next one begins behind it. */
static void next(struct maker *m, const struct hc_arr *whole)
{
	m->used += whole->len;
}

/* ---- of a home ---- */

static void add_members(struct maker *m, struct hc_home *h)
{
	struct hc_core *c = m->c;
	struct hc_part *p = hc_part_by_id(c, h->id);
	uint32_t i, seat;

	for (i = 0; i < h->nranks; i++) {
		const struct hc_place *pl = &c->places[h->places + i];
		struct hc_m_member_row r = {.rank = i,
					    .device = pl->device,
					    .pid = hc_who(c, pl)->pid,
					    .started = hc_who(c, pl)->started,
					    .uid = h->uid,
					    .state = pl->state,
					    .block = HC_NONE};

		seat = p ? hc_part_find_seat(c, p, i) : HC_NONE;
		if (seat != HC_NONE) {
			r.block = c->seats[seat].block;
			r.shared = c->seats[seat].flags & SEAT_SHARED ? 1 : 0;
		}
		add(m, &m->row.members, &hc_desc_member_row, &r);
	}
	next(m, &m->row.members);
}

/* A node that has lost what it had is not the one of these members any more. */
static void add_node(struct maker *m, uint32_t node)
{
	const struct hc_known_node *n = &m->c->nodes[node];
	struct hc_m_far_node f = {.name = hc_str(n->name), .incarnation = n->incarnation};

	memcpy(f.id.b, n->id, sizeof(f.id.b));
	add(m, &m->row.far, &hc_desc_far_node, &f);
}

/* c->node_mark is the number of a node in the row, above that of the round's begin. */
static void add_nodes(struct maker *m, struct hc_home *h)
{
	struct hc_core *c = m->c;
	const uint32_t base = ++c->node_round;
	struct hc_m_member_at at;
	uint32_t i, node;

	for (i = 0; i < h->nranks; i++) {
		node = hc_who(c, &c->places[h->places + i])->node;
		if (node == HC_SELF_NODE || c->node_mark[node] >= base)
			continue;
		add_node(m, node);
		c->node_mark[node] = base + m->row.far.count;
	}
	c->node_round = base + m->row.far.count;
	if (!m->row.far.count)
		return;
	next(m, &m->row.far);
	for (i = 0; i < h->nranks; i++) {
		node = hc_who(c, &c->places[h->places + i])->node;
		at.node = node == HC_SELF_NODE ? 0 : (uint16_t)(c->node_mark[node] - base);
		add(m, &m->row.at, &hc_desc_member_at, &at);
	}
}

uint64_t hc_row_put_home(struct hc_core *c, struct hc_home *h, uint8_t state)
{
	struct maker m = {.c = c,
			  .row = {.id = h->id,
				  .epoch = h->epoch,
				  .state = state,
				  .number = h->number,
				  .uid = h->uid,
				  .nranks = h->nranks,
				  .priority = h->priority,
				  .weight = h->weight,
				  .cut = h->leaving ? hc_home_now(c, h)->cut : 0,
				  .cause = hc_str(hc_home_cause(c, h)),
				  .cause_kind = hc_home_now(c, h)->cause_kind,
				  .cause_rank = hc_home_now(c, h)->cause_rank,
				  .cause_pid = hc_home_now(c, h)->cause_pid}};
	const struct hc_part *p = hc_part_by_id(c, h->id);

	if (h->name != HC_NONE)
		m.row.name = hc_str(c->names[h->name].text);
	if (p) {
		m.row.slot = hc_part_number(c, p);
		m.row.reuse = p->reuse;
		m.row.key_a = p->key_a;
		m.row.key_b = p->key_b;
	}
	add_members(&m, h);
	add_nodes(&m, h);
	return hc_emit_put_domain(c, h->id, &m.row);
}

/* ---- of a part ---- */

static void add_seats(struct maker *m, const struct hc_part *p)
{
	struct hc_core *c = m->c;
	uint32_t i;

	for (i = 0; i < p->nseats; i++) {
		const struct hc_seat *s = &c->seats[p->seats + i];
		struct hc_m_member_row r = {.rank = s->rank,
					    .device = s->device,
					    .state = s->state,
					    .block = s->block,
					    .shared = s->flags & SEAT_SHARED ? 1 : 0};

		if (s->process != HC_NONE) {
			r.pid = c->processes[s->process].pid;
			r.started = c->processes[s->process].started;
			r.uid = c->processes[s->process].uid;
		}
		add(m, &m->row.members, &hc_desc_member_row, &r);
	}
	next(m, &m->row.members);
}

static void add_gone(struct maker *m, const struct hc_part *p)
{
	struct hc_core *c = m->c;
	uint32_t i;

	for (i = 0; i < p->nseats; i++) {
		const struct hc_m_member_begun r = {
			.rank = c->seats[p->seats + i].rank,
			.begun = hc_seat_reading(c, p->seats + i)->begun};

		if (c->seats[p->seats + i].state == HC_W_member_state_LEFT)
			add(m, &m->row.gone, &hc_desc_member_begun, &r);
	}
}

/* SUSPENDED is what is seen of the network at the moment: it is not stored. */
static uint8_t stored_state(uint8_t state)
{
	return state == HC_W_domain_state_SUSPENDED ? (uint8_t)HC_W_domain_state_ACTIVE : state;
}

uint64_t hc_row_put_part(struct hc_core *c, struct hc_part *p)
{
	const struct hc_known_node *n = &c->nodes[p->home_node];
	struct maker m = {.c = c,
			  .row = {.id = p->id,
				  .epoch = p->epoch,
				  .state = stored_state(p->state),
				  .number = p->number,
				  .uid = p->uid,
				  .nranks = p->nranks,
				  .slot = hc_part_number(c, p),
				  .reuse = p->reuse,
				  .priority = p->priority,
				  .weight = p->weight,
				  .key_a = p->key_a,
				  .key_b = p->key_b,
				  .home = hc_str(n->name),
				  .home_incarnation = n->incarnation,
				  .cause_rank = HC_NONE}};

	if (p->home_node != HC_SELF_NODE)
		memcpy(m.row.home_id.b, n->id, sizeof(m.row.home_id.b));
	if (m.row.state == HC_W_domain_state_DRAINING && hc_part_now(c, p)->cut_set)
		m.row.cut = hc_part_now(c, p)->cut;
	if (m.row.state >= HC_W_domain_state_DAMAGED) {
		m.row.cause = hc_str(hc_part_cause(c, p));
		m.row.cause_kind = hc_part_now(c, p)->cause_kind;
		m.row.cause_rank = hc_part_now(c, p)->cause_rank;
		m.row.cause_pid = hc_part_now(c, p)->cause_pid;
	}
	if (p->name != HC_NONE)
		m.row.name = hc_str(c->names[p->name].text);
	add_seats(&m, p);
	add_gone(&m, p);
	p->kept = true;
	return hc_emit_put_domain(c, p->id, &m.row);
}

void hc_row_changed(struct hc_core *c, struct hc_part *p)
{
	if (p->kept && p->home_node != HC_SELF_NODE && p->state < HC_W_domain_state_DESTROYED)
		hc_row_put_part(c, p);
}
