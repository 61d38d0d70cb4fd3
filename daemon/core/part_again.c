/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A part and the node of its home that begins anew with it; see again.h.
 *
 * A part that has prepared cannot decide: what its home has stored counts. It asks, once a second,
 * until it is told; when the home cannot be reached for prepare_limit_s it gives back what it had
 * reserved, and says so in mail, in case the home had committed after all.
 */
#include "join.h"

#include "again.h"
#include "channel.h"
#include "emit.h"
#include "row.h"
#include "session.h"

#include <stdio.h>

#define ASK_NS 1000000000u

/* ---- what is here ---- */

static uint8_t said_state(const struct hc_core *c, const struct hc_part *p)
{
	if (p->state == HC_W_domain_state_ACTIVATING && !hc_part_now(c, p)->prepared)
		return HC_W_domain_state_PROBING;
	return p->state;
}

void hc_part_say(struct hc_core *c, const struct hc_part *p)
{
	struct hc_m_part_back m = {.id = p->id,
				   .epoch = p->epoch,
				   .incarnation = c->self.incarnation,
				   .number = p->number,
				   .state = said_state(c, p)};
	uint32_t i;

	for (i = 0; i < p->nseats; i++) {
		const struct hc_seat *s = &c->seats[p->seats + i];
		const struct hc_m_part_rank r = {
			.rank = s->rank,
			.pid = s->process == HC_NONE ? 0 : c->processes[s->process].pid,
			.state = s->state,
			.begun = hc_seat_reading(c, p->seats + i)->begun};

		hc_assert(!hc_arr_put(&m.ranks, c->scratch, HC_OUT_BYTES, &hc_desc_part_rank,
				      HC_PROTO_MAX, &r));
	}
	hc_emit_send(c, p->home_node, &hc_desc_part_back, &m);
}

void hc_part_on_ask(struct hc_core *c, uint32_t node, const struct hc_m_part_ask *m)
{
	const struct hc_part *p = hc_part_of_home(c, node, m->id);
	struct hc_m_part_back none = {.id = m->id,
				      .epoch = m->epoch,
				      .incarnation = c->self.incarnation,
				      .state = HC_W_domain_state_NONE};

	if (p && p->state < HC_W_domain_state_DESTROYED)
		hc_part_say(c, p);
	else
		hc_emit_send(c, node, &hc_desc_part_back, &none);
}

/* ---- arriving again ---- */

void hc_part_arrive_again(struct hc_core *c, const struct hc_part *p, uint32_t seat)
{
	const struct hc_seat *s = &c->seats[seat];
	const struct hc_part_busy *b = hc_part_now(c, p);
	const bool odd = (b->odd_a || b->odd_b) && b->odd_rank == s->rank;
	struct hc_m_arrive m = {.key_a = p->key_a,
				.key_b = p->key_b,
				.uid = p->uid,
				.nranks = p->nranks,
				.rank = s->rank,
				.device = s->device,
				.list_a = odd ? b->odd_a : b->list_a,
				.list_b = odd ? b->odd_b : b->list_b,
				.timeout_ms = b->timeout_ms,
				.priority = p->priority,
				.weight = p->weight ? p->weight : 1,
				.incarnation = c->self.incarnation,
				.channels = b->wish.channels,
				.channel_mbps = b->wish.mbps,
				.channel_hold_ms = b->wish.hold_ms,
				.channel_wait = b->wish.wait,
				.parent = b->parent};

	if (p->state != HC_W_domain_state_FORMING || s->process == HC_NONE)
		return;
	if (p->name != HC_NONE)
		m.name = hc_str(c->names[p->name].text);
	m.pid = c->processes[s->process].pid;
	m.started = c->processes[s->process].started;
	hc_emit_send(c, p->home_node, &hc_desc_arrive, &m);
}

/* By its key: the id may be one that nobody knows any more. */
static void form(struct hc_core *c, struct hc_part *p)
{
	hc_part_unset_id(c, p);
	hc_part_add_work(c, p, WORK_ARRIVE);
}

/* Nobody waits for these: their processes, when they live, join again. */
static void drop_idle(struct hc_core *c, struct hc_part *p)
{
	uint32_t i;

	for (i = p->nseats; i-- > 0;)
		if (!(c->seats[p->seats + i].flags & SEAT_WAITS))
			hc_part_drop_seat(c, p, p->seats + i);
}

/* The domain is not known here: this daemon was restarted since. It may be any of those that wait
 * for that home's first word. */
static void form_unknown(struct hc_core *c, uint32_t node)
{
	struct hc_part *p;
	uint32_t n;

	for (n = 0; n < c->part_busy_pool.fresh; n++) {
		p = hc_part(c, c->part_busy[n].part);
		if (p->busy == n && p->state == HC_W_domain_state_FORMING && !p->id &&
		    p->home_node == node)
			hc_part_add_work(c, p, WORK_ARRIVE);
	}
}

/* Begun here while `p` was complete, and for the same home. */
static struct hc_part *next_of(struct hc_core *c, const struct hc_part *p)
{
	struct hc_part *q;
	uint32_t n;

	for (n = hc_index_find(&c->part_by_key, p->key_a); n != HC_NONE;
	     n = hc_index_next(&c->part_by_key, n)) {
		q = &c->parts[n];
		if (q != p && q->key_a == p->key_a && q->key_b == p->key_b &&
		    q->home_node == p->home_node && q->uid == p->uid &&
		    q->state == HC_W_domain_state_FORMING)
			return q;
	}
	return NULL;
}

/* Who came first has the rank; no two have one. */
static void make_way(struct hc_core *c, struct hc_part *next, uint32_t rank)
{
	const uint32_t seat = hc_part_find_seat(c, next, rank);

	if (seat == HC_NONE)
		return;
	if (next->id)
		hc_part_depart(c, next, seat, HC_W_depart_WITHDRAWN, "", 0);
	hc_part_fail_join(c, next, seat, HC_E_BUSY,
			  "the rank is held by the process that joined first");
	hc_part_drop_seat(c, next, seat);
}

/*
 * Who joined while `p` was complete began the next domain of that key. Now `p` is made anew, and
 * for the home both are the same one, so they are here.
 */
static void unite(struct hc_core *c, struct hc_part *p, struct hc_part *next)
{
	const struct hc_part_busy *b = hc_part_now(c, p);
	struct hc_part_busy *of = hc_part_busy(c, next);
	uint32_t rank;

	if ((b->list_a != of->list_a || b->list_b != of->list_b) && (b->list_a || b->list_b)) {
		of->odd_rank = c->seats[p->seats].rank;
		of->odd_a = b->list_a;
		of->odd_b = b->list_b;
	}
	while (p->nseats) {
		rank = c->seats[p->seats].rank;
		make_way(c, next, rank);
		if (hc_part_give_seat(c, p, p->seats, next))
			continue;
		hc_part_fail_join(c, p, p->seats, HC_E_LIMIT, "ranks_max is reached on this node");
		hc_part_drop_seat(c, p, p->seats);
	}
	hc_part_add_work(c, next, WORK_ARRIVE);
}

void hc_part_on_form_again(struct hc_core *c, uint32_t node, const struct hc_m_form_again *m)
{
	struct hc_part *p = hc_part_of_home(c, node, m->id), *next;

	if (!p) {
		form_unknown(c, node);
		return;
	}
	if (p->state >= HC_W_domain_state_ACTIVE)
		return;
	hc_part_forget_step(c, p);
	hc_part_become(c, p, HC_W_domain_state_FORMING);
	hc_channel_part_gone(c, p);
	if (p->kept)
		hc_emit_del_domain(c, p->id);
	p->kept = false;
	p->epoch = 0;
	hc_part_busy(c, p)->prepared = false;
	hc_part_alarm(c, p, HC_NEVER);
	drop_idle(c, p);
	next = next_of(c, p);
	if (next && p->nseats)
		unite(c, p, next);
	if (p->nseats)
		form(c, p);
	else
		hc_part_close_if_empty(c, p);
}

/* ---- its home begins anew ---- */

bool hc_part_again(struct hc_core *c, struct hc_part *p, uint32_t node)
{
	if (p->state == HC_W_domain_state_NONE || p->orphan ||
	    p->state >= HC_W_domain_state_DESTROYED)
		return false;
	hc_gang_say(c, p);
	if (p->home_node != node)
		return false;
	if (p->state == HC_W_domain_state_FORMING) {
		form(c, p);
		return true;
	}
	hc_gang_part_again(c, p);
	hc_part_say(c, p);
	return true;
}

/* ---- prepared ---- */

void hc_part_await_home(struct hc_core *c, struct hc_part *p)
{
	if (p->home_node != HC_SELF_NODE)
		hc_part_alarm(c, p, c->now + ASK_NS);
}

static void give_back(struct hc_core *c, struct hc_part *p)
{
	const struct hc_known_node *n = &c->nodes[p->home_node];
	char text[HC_CAUSE_MAX];

	HC_TEXT(text,
		"its home, node %.64s, could not be reached for %llu s (prepare_limit_s) while the "
		"domain was activating: %s",
		n->name, (unsigned long long)((c->now - n->away_since) / 1000000000u), n->why);
	hc_part_withdraw(c, p, text);
}

void hc_part_await_timeout(struct hc_core *c, struct hc_part *p)
{
	const struct hc_known_node *n = &c->nodes[p->home_node];

	if (n->away && c->now >= n->away_since + c->set.prepare_limit_ns) {
		give_back(c, p);
		return;
	}
	if (!n->away)
		hc_part_say(c, p);
	hc_part_await_home(c, p);
}
