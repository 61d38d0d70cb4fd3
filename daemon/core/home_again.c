/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A home and a node that begins anew with it; see again.h.
 *
 * What the node says that it has is believed: a living rank that it does not name is lost, as if
 * its process had died. What the home has stored stands: a part that had only prepared is told
 * the commit.
 *
 * A node that lost its preparation, since that was not stored, has still its processes, whose
 * libraries join again. So the domain is not given up: it forms once more from the beginning, and
 * the parts of the other nodes let go what they had reserved and arrive again.
 */
#include "home.h"

#include "again.h"
#include "ask.h"
#include "channel.h"
#include "emit.h"
#include "who.h"

#include <stdio.h>
#include <string.h>

static bool forms(const struct hc_home *h)
{
	return h->id && h->state == HC_W_domain_state_FORMING && !h->step;
}

/* ---- the node begins anew ---- */

/* Its ranks come again when they are still there. */
static void withdraw(struct hc_core *c, uint64_t id, uint32_t node)
{
	struct hc_m_depart d = {.id = id, .why = HC_W_depart_WITHDRAWN};
	struct hc_home *h;
	uint32_t i;

	for (i = 0; (h = hc_home_by_id(c, id)) && i < h->nranks; i++) {
		if (!hc_who_at(c, hc_home_place(c, h, i), node))
			continue;
		d.rank = i;
		d.pid = hc_who(c, hc_home_place(c, h, i))->pid;
		hc_home_withdraw(c, h, hc_home_place(c, h, i), &d);
	}
}

void hc_home_node_again(struct hc_core *c, uint32_t node)
{
	uint32_t i;

	for (i = 0; c->nforming && i < c->home_pool.fresh; i++)
		if (forms(&c->homes[i]))
			withdraw(c, c->homes[i].id, node);
}

/* Tickets are those of a daemon that has gone, or come again. */
static void drop_asks(struct hc_core *c, struct hc_home *h, uint32_t node)
{
	uint32_t n = hc_list_first(&hc_home_now(c, h)->asks), next;

	for (; n != HC_NONE; n = next) {
		next = hc_list_next(&c->ask_links, n);
		if (c->asks[n].node == node)
			hc_ask_forget(c, &hc_home_busy(c, h)->asks, n);
	}
}

static void ask_part(struct hc_core *c, const struct hc_home *h, uint32_t node)
{
	struct hc_m_part_ask m = {
		.id = h->id, .epoch = h->epoch, .incarnation = c->self.incarnation};

	hc_emit_send(c, node, &hc_desc_part_ask, &m);
}

bool hc_home_again(struct hc_core *c, struct hc_home *h, uint32_t node)
{
	drop_asks(c, h, node);
	hc_home_rest(c, h);
	if (forms(h) || h->step == HOME_OVER || !hc_home_has_node(c, h, node))
		return false;
	hc_gang_home_again(c, h->id);
	hc_gang_unsure(c, h);
	ask_part(c, h, node);
	return true;
}

/* ---- it forms once more ---- */

static void send_form_again(struct hc_core *c, uint32_t node, uint64_t id)
{
	struct hc_m_form_again m = {.id = id, .incarnation = c->self.incarnation};

	hc_emit_send(c, node, &hc_desc_form_again, &m);
}

static void tell_form_again(struct hc_core *c, struct hc_home *h, uint32_t node)
{
	send_form_again(c, node, h->id);
}

void hc_home_form_again(struct hc_core *c, struct hc_home *h, uint32_t node)
{
	struct hc_home_busy *b = hc_home_busy(c, h);
	char text[HC_CAUSE_MAX], name[32];
	uint32_t i;

	hc_assert(h->step == HOME_PREPARING);
	HC_TEXT(text,
		"%s: the daemon of node %.64s was restarted while the domain was activating: it "
		"forms again",
		hc_home_name(c, h, name, sizeof(name)), c->nodes[node].name);
	hc_emit_log(c, HC_LOG_INFO, HC_W_event_code_DOMAIN_FORMING, h->id, HC_NONE, text);
	hc_home_each_node(c, h, tell_form_again);
	for (i = 0; i < h->nranks; i++) {
		hc_who_drop(c, hc_home_place(c, h, i));
		*hc_home_place(c, h, i) = (struct hc_place){0};
	}
	h->arrived = h->epoch = 0;
	h->step = HOME_NOTHING;
	b->pending = 0;
	hc_home_set_state(c, h, HC_W_domain_state_FORMING);
	if (b->parent)
		hc_index_add_in(&c->home_by_parent, h->busy);
	b->first = c->now;
	b->deadline = c->now + c->set.connect_timeout_ns;
	hc_home_alarm(c, h, b->deadline);
}

/* It was said twice, or the node was restarted and has lost its preparation: the node knows. */
bool hc_home_comes_again(struct hc_core *c, uint32_t node, const struct hc_m_arrive *m)
{
	const struct hc_who *who;
	struct hc_home *h;
	uint32_t n;

	if (node == HC_SELF_NODE)
		return false;
	for (n = hc_index_find(&c->home_by_key, m->key_a); n != HC_NONE;
	     n = hc_index_next(&c->home_by_key, n)) {
		h = hc_home(c, c->home_busy[n].home);
		if (c->home_busy[n].key_b != m->key_b || h->step != HOME_PREPARING ||
		    m->rank >= h->nranks)
			continue;
		who = hc_who(c, hc_home_place(c, h, m->rank));
		if (who->node != node || who->pid != m->pid || who->started != m->started)
			continue;
		ask_part(c, h, node);
		return true;
	}
	return false;
}

/* ---- what the node has ---- */

static void send_cancel(struct hc_core *c, uint32_t node, const struct hc_m_part_back *m,
			const struct hc_ended *e)
{
	struct hc_m_cancel g = {.id = m->id,
				.epoch = m->epoch,
				.incarnation = c->self.incarnation,
				.code = HC_E_GONE,
				.text = hc_str(e->cause),
				.retry_after_ms = HC_NONE};

	hc_emit_send(c, node, &hc_desc_cancel, &g);
}

/* Never committed here, or over. */
static void unknown(struct hc_core *c, uint32_t node, const struct hc_m_part_back *m)
{
	const struct hc_ended *e = hc_home_ended(c, m->id);

	if (m->state == HC_W_domain_state_NONE)
		return;
	/* committed, and over before that node heard of it: it was, and is told so */
	if (m->state >= HC_W_domain_state_ACTIVE || (e && e->state == HC_W_domain_state_DESTROYED))
		hc_home_say_over(c, node, m->id, m->epoch);
	else if (e)
		send_cancel(c, node, m, e);
	else
		send_form_again(c, node, m->id);
}

static void gone(struct hc_core *c, struct hc_home *h, uint32_t node, uint32_t rank, uint8_t why,
		 uint64_t begun)
{
	struct hc_m_depart d = {.id = h->id,
				.epoch = h->epoch,
				.rank = rank,
				.pid = hc_who(c, hc_home_place(c, h, rank))->pid,
				.why = why,
				.begun = begun,
				.text = hc_str(why == HC_W_depart_ABORTED
						       ? "its node had given the domain up"
						       : "")};

	hc_home_on_depart(c, node, &d);
}

static bool lives_at(struct hc_core *c, struct hc_home *h, uint32_t rank, uint32_t node)
{
	return rank < h->nranks && hc_who_lives(hc_home_place(c, h, rank)) &&
	       hc_who(c, hc_home_place(c, h, rank))->node == node;
}

static bool is_alive(const struct hc_m_part_rank *r)
{
	return r->state != HC_W_member_state_LEFT && r->state != HC_W_member_state_DEAD;
}

/* Marks those that live there in c->rank_place, which is zero between uses. */
static void mark_living(struct hc_core *c, struct hc_home *h, uint32_t node,
			const struct hc_m_part_back *m, uint32_t mark)
{
	struct hc_arr a = m->ranks;
	struct hc_m_part_rank r;

	while (hc_arr_next(&a, &hc_desc_part_rank, HC_PROTO_MAX, &r))
		if (r.rank < h->nranks &&
		    (!mark || (is_alive(&r) && lives_at(c, h, r.rank, node) &&
			       hc_who(c, hc_home_place(c, h, r.rank))->pid == r.pid)))
			c->rank_place[r.rank] = mark;
}

/* The first rank that lives here and not there; HC_NONE. */
static uint32_t first_missing(struct hc_core *c, struct hc_home *h, uint32_t node,
			      const struct hc_m_part_back *m)
{
	uint32_t i, found = HC_NONE;

	mark_living(c, h, node, m, 1);
	for (i = 0; i < h->nranks && found == HC_NONE; i++)
		if (lives_at(c, h, i, node) && !c->rank_place[i])
			found = i;
	mark_living(c, h, node, m, 0);
	return found;
}

static void find_rank(const struct hc_m_part_back *m, uint32_t rank, struct hc_m_part_rank *found)
{
	struct hc_arr a = m->ranks;
	struct hc_m_part_rank r;

	*found = (struct hc_m_part_rank){.state = HC_W_member_state_DEAD};
	while (hc_arr_next(&a, &hc_desc_part_rank, HC_PROTO_MAX, &r))
		if (r.rank == rank)
			*found = r;
}

/* Ranks that have gone meanwhile. False: there are more than fit, and it is asked again. */
static bool take_gone(struct hc_core *c, uint32_t node, const struct hc_m_part_back *m)
{
	const bool given_up = m->state == HC_W_domain_state_DAMAGED,
		   none = m->state == HC_W_domain_state_NONE;
	struct hc_m_part_rank r;
	struct hc_home *h;
	uint32_t rank;

	while ((h = hc_home_by_id(c, m->id)) && h->step != HOME_OVER) {
		rank = first_missing(c, h, node, m);
		if (rank == HC_NONE && given_up && !h->lost)
			for (rank = 0; rank < h->nranks && !lives_at(c, h, rank, node);)
				rank++;
		if (rank == HC_NONE || rank >= h->nranks)
			return true;
		if (!hc_emit_room(c) || !hc_emit_ring_spare(c)) {
			ask_part(c, h, node);
			return false;
		}
		find_rank(m, rank, &r);
		gone(c, h, node, rank,
		     none || is_alive(&r)                ? (uint8_t)HC_W_depart_ABORTED
		     : r.state == HC_W_member_state_LEFT ? (uint8_t)HC_W_depart_LEFT
							 : (uint8_t)HC_W_depart_DIED,
		     r.begun);
	}
	return true;
}

static void send_commit_again(struct hc_core *c, const struct hc_home *h, uint32_t node)
{
	struct hc_m_commit m = {.id = h->id,
				.epoch = h->epoch,
				.incarnation = c->self.incarnation,
				.nranks = h->nranks,
				.number = h->number};

	if (h->state != HC_W_domain_state_ACTIVE)
		m.number--; /* the state follows, and is newer */
	hc_emit_send(c, node, &hc_desc_commit, &m);
}

/* It is committed: the node is told what it lacks. */
static void tell(struct hc_core *c, struct hc_home *h, uint32_t node,
		 const struct hc_m_part_back *m)
{
	if (m->state < HC_W_domain_state_ACTIVE)
		send_commit_again(c, h, node);
	if (h->step == HOME_CUTTING || h->step == HOME_DRAINING) {
		hc_home_ask_cut(c, h);
		return;
	}
	if (m->state < HC_W_domain_state_ACTIVE ? h->state != HC_W_domain_state_ACTIVE
						: m->number != h->number)
		hc_home_tell_one(c, h, node);
	if (h->leaving && h->state == HC_W_domain_state_DRAINING)
		hc_home_send_cut(c, h, node);
}

static void prepared(struct hc_core *c, struct hc_home *h, uint32_t node,
		     const struct hc_m_part_back *m)
{
	const struct hc_m_prepared yes = {.id = m->id, .epoch = m->epoch};
	uint32_t rank;

	if (m->state == HC_W_domain_state_PROBING)
		return; /* not prepared yet */
	if (m->state != HC_W_domain_state_ACTIVATING) {
		hc_home_form_again(c, h, node);
		return;
	}
	rank = first_missing(c, h, node, m);
	if (rank == HC_NONE)
		hc_home_on_prepared(c, node, &yes);
	else
		gone(c, h, node, rank, HC_W_depart_DIED, 0);
}

void hc_home_on_part_back(struct hc_core *c, uint32_t node, const struct hc_m_part_back *m)
{
	struct hc_home *h = hc_home_by_id(c, m->id);

	if (!h || h->step == HOME_OVER || !(hc_home_has_node(c, h, node) || forms(h))) {
		unknown(c, node, m);
		return;
	}
	if (h->step == HOME_COMMITTING || h->step == HOME_ENDING)
		return; /* it is told when that is stored */
	if (forms(h)) {
		if (m->state != HC_W_domain_state_NONE)
			send_form_again(c, node, m->id);
		return;
	}
	if (m->epoch != h->epoch)
		return;
	if (h->step == HOME_PREPARING) {
		prepared(c, h, node, m);
		return;
	}
	if (!take_gone(c, node, m))
		return;
	h = hc_home_by_id(c, m->id);
	if (h && h->step != HOME_OVER && h->step != HOME_ENDING &&
	    m->state != HC_W_domain_state_NONE)
		tell(c, h, node, m);
}
