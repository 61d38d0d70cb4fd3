/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Domains and their members, for people: status and rows of views.
 *
 * The home of a domain knows every rank of it; a part knows its own ranks, and while the domain
 * forms also what the home told of those that are missing. Both are shown by the same rows, each
 * by what is known here. Ended domains follow for as long as they are kept.
 */
#include "view.h"

#include "device.h"
#include "emit.h"
#include "exchange.h"
#include "home.h"
#include "net.h"
#include "part.h"
#include "session.h"
#include "who.h"

#include <stdio.h>
#include <string.h>

/* ---- status of a domain ---- */

#define ABSENT_MAX 64u

static void put_absent(struct hc_core *c, struct hc_home *h, struct hc_arr *a)
{
	const struct hc_roll_entry *e;
	char addr[64];
	uint32_t i;

	for (i = 0; i < h->nranks && a->count < ABSENT_MAX; i++) {
		struct hc_m_absent r = {.rank = i};

		if (hc_home_place(c, h, i)->state != HC_W_member_state_EXPECTED)
			continue;
		e = hc_home_roll(c, h, i);
		if (e) {
			hc_addr_text(&e->addr, addr);
			r.server = hc_str(e->server);
			r.address = hc_str(addr);
		}
		hc_assert(!hc_arr_put(a, c->scratch, HC_OUT_BYTES, &hc_desc_absent, HC_PROTO_MAX,
				      &r));
	}
}

static void status_home(struct hc_core *c, struct hc_home *h, uint64_t session, uint32_t request)
{
	char name[32], cause[HC_CAUSE_MAX], missing[300];
	struct hc_m_status_r m = {.id = h->id,
				  .epoch = h->epoch,
				  .state = h->state,
				  .number = h->number,
				  .nranks = h->nranks,
				  .arrived = h->arrived};

	m.name = hc_str(hc_home_name(c, h, name, sizeof(name)));
	m.cause = hc_str(hc_home_cause(c, h));
	if (h->state == HC_W_domain_state_FORMING) {
		hc_home_missing(c, h, missing, sizeof(missing));
		HC_TEXT(cause, "waiting for rank %s", missing);
		m.cause = hc_str(cause);
		put_absent(c, h, &m.absent);
	}
	hc_emit_reply(c, session, request, &hc_desc_status_r, &m);
}

/* What this node has of a domain that another one is the home of. */
static bool is_far(const struct hc_part *p)
{
	return p->id && hc_part_is_far(p);
}

/* While it forms, what the home last told. */
static uint32_t part_arrived(const struct hc_core *c, const struct hc_part *p)
{
	return p->state >= HC_W_domain_state_ACTIVE ? p->nranks : hc_part_now(c, p)->arrived;
}

static const char *part_cause(const struct hc_core *c, const struct hc_part *p,
			      char text[HC_CAUSE_MAX])
{
	if (p->state != HC_W_domain_state_FORMING)
		return hc_part_cause(c, p);
	hc_part_missing(c, p, text, HC_CAUSE_MAX);
	return text;
}

static void status_part(struct hc_core *c, const struct hc_part *p, uint64_t session,
			uint32_t request)
{
	char name[32], cause[HC_CAUSE_MAX];
	struct hc_m_status_r m = {.id = p->id,
				  .epoch = p->epoch,
				  .state = p->state,
				  .number = p->number,
				  .nranks = p->nranks,
				  .arrived = part_arrived(c, p),
				  .name = hc_str(hc_part_name(c, p, name)),
				  .cause = hc_str(part_cause(c, p, cause))};

	hc_emit_reply(c, session, request, &hc_desc_status_r, &m);
}

static void status_ended(struct hc_core *c, const struct hc_ended *e, uint64_t session,
			 uint32_t request)
{
	struct hc_m_status_r m = {.id = e->id,
				  .epoch = e->epoch,
				  .state = e->state,
				  .nranks = e->nranks,
				  .name = hc_str(e->name),
				  .cause = hc_str(e->cause)};

	hc_emit_reply(c, session, request, &hc_desc_status_r, &m);
}

static const struct hc_ended *ended_named(const struct hc_core *c, struct hc_str name)
{
	const struct hc_ended *last = NULL;
	uint32_t i;

	for (i = 0; i < c->ended_count; i++)
		if (hc_str_eq(hc_str(c->ended[i].name), name) &&
		    c->now - c->ended[i].at < c->set.ended_keep_ns &&
		    (!last || c->ended[i].at >= last->at))
			last = &c->ended[i];
	return last;
}

void hc_view_status(struct hc_core *c, struct hc_session *s, uint32_t request,
		    const struct hc_m_status *m)
{
	const uint32_t uid = c->processes[s->process].uid;
	struct hc_home *h;
	const struct hc_ended *e;
	const struct hc_part *p;
	char text[HC_NAME_MAX + 64];

	h = m->id ? hc_home_by_id(c, m->id) : hc_home_named(c, uid, true, m->name);
	if (h) {
		status_home(c, h, s->id, request);
		return;
	}
	p = m->id ? hc_part_by_id(c, m->id) : hc_part_by_name(c, uid, m->name);
	if (p && is_far(p)) {
		status_part(c, p, s->id, request);
		return;
	}
	e = m->id ? hc_ended_any(c, m->id) : ended_named(c, m->name);
	if (e) {
		status_ended(c, e, s->id, request);
		return;
	}
	if (m->id)
		HC_TEXT(text, "no domain %016llx on this node", (unsigned long long)m->id);
	else
		HC_TEXT(text, "no domain named %.*s on this node", (int)m->name.len, m->name.p);
	hc_emit_error(c, s->id, request, HC_E_NOT_FOUND, text);
}

/* ---- pages ---- */

static bool home_row(struct hc_view_page *g, struct hc_home *h)
{
	struct hc_core *c = g->c;
	char name[32], cause[HC_CAUSE_MAX], missing[300];
	struct hc_part *p = hc_part_by_id(c, h->id);
	struct hc_m_view_domain r = {.id = h->id,
				     .state = hc_str(hc_word_domain_state(h->state)),
				     .epoch = h->epoch,
				     .number = h->number,
				     .ranks = h->nranks,
				     .arrived = h->arrived,
				     .local = p ? p->nseats : 0,
				     .uid = h->uid,
				     .priority = h->priority,
				     .weight = h->weight,
				     .home = hc_str(c->self.name),
				     .age_ms = (c->now - h->since) / 1000000u,
				     .persistent = h->state >= HC_W_domain_state_ACTIVE &&
						   h->row <= c->kept,
				     .cause = hc_str(hc_home_cause(c, h))};

	r.name = hc_str(hc_home_name(c, h, name, sizeof(name)));
	hc_exchange_count(c, h->id, &r.values, &r.value_bytes);
	if (h->state == HC_W_domain_state_FORMING) {
		hc_home_missing(c, h, missing, sizeof(missing));
		HC_TEXT(cause, "waiting for rank %s", missing);
		r.cause = hc_str(cause);
	}
	return !hc_view_wants(g, h->id, hc_home_name(c, h, name, sizeof(name))) ||
	       hc_view_put(g, &r);
}

static bool part_row(struct hc_view_page *g, struct hc_part *p)
{
	struct hc_core *c = g->c;
	char name[32], cause[HC_CAUSE_MAX];
	struct hc_m_view_domain r = {.id = p->id,
				     .name = hc_str(hc_part_name(c, p, name)),
				     .state = hc_str(hc_word_domain_state(p->state)),
				     .epoch = p->epoch,
				     .number = p->number,
				     .ranks = p->nranks,
				     .arrived = part_arrived(c, p),
				     .local = p->nseats,
				     .uid = p->uid,
				     .priority = p->priority,
				     .weight = p->weight,
				     .home = hc_str(c->nodes[p->home_node].name),
				     .age_ms = (c->now - (uint64_t)p->since_ds * HC_PART_SINCE_NS) /
					       1000000u,
				     .persistent = p->kept && c->kept == HC_NEVER,
				     .cause = hc_str(part_cause(c, p, cause))};

	if (!is_far(p))
		return true;
	return !hc_view_wants(g, p->id, hc_part_name(c, p, name)) || hc_view_put(g, &r);
}

static bool ended_row(struct hc_view_page *g, const struct hc_ended *e)
{
	struct hc_m_view_domain r = {.id = e->id,
				     .name = hc_str(e->name),
				     .state = hc_str(hc_word_domain_state(e->state)),
				     .epoch = e->epoch,
				     .ranks = e->nranks,
				     .uid = e->uid,
				     .home = hc_str(e->home == HC_SELF_NODE
							    ? g->c->self.name
							    : g->c->nodes[e->home].name),
				     .age_ms = (g->c->now - e->at) / 1000000u,
				     .cause = hc_str(e->cause)};

	if (g->c->now - e->at >= g->c->set.ended_keep_ns)
		return true;
	if (e->home != HC_SELF_NODE && hc_part_by_id(g->c, e->id))
		return true; /* it did not form here, and then did; or it is being closed */
	return !hc_view_wants(g, e->id, e->name) || hc_view_put(g, &r);
}

/*
 * Cursor: number of the home + 1; from domains_max on parts of other homes, and from twice that
 * on the ended ones. Returns the next cursor, 0 at the end.
 */
uint64_t hc_domainview_domains(struct hc_view_page *g, uint64_t at)
{
	struct hc_core *c = g->c;
	const uint64_t parts = c->lim.domains, ended = 2 * parts;

	for (; at < c->home_pool.fresh; at++)
		if (c->homes[at].id && !home_row(g, &c->homes[at]))
			return at + 1;
	for (at = at < parts ? parts : at; at < parts + c->part_pool.fresh; at++)
		if (!part_row(g, &c->parts[at - parts]))
			return at + 1;
	for (at = at < ended ? ended : at; at - ended < c->ended_count; at++)
		if (!ended_row(g, &c->ended[at - ended]))
			return at + 1;
	return 0;
}

/* Of a domain that forms: the ranks that are here, and those that are missing. */
static bool part_member(struct hc_view_page *g, const struct hc_part *p, uint32_t rank)
{
	struct hc_core *c = g->c;
	const struct hc_part_busy *b = hc_part_now(c, p);
	const uint32_t seat = hc_part_find_seat(c, p, rank);
	const struct hc_roll_entry *e = hc_roll_find(c, b->list_a, b->list_b, rank);
	struct hc_m_view_member r = {
		.domain = p->id, .rank = rank, .uid = p->uid, .device = e ? e->device : HC_NONE};
	char addr[64] = "", sign[HC_NAME_MAX + 1] = "";
	uint32_t i;

	for (i = 0; i < b->nmissing && b->missing[i] != rank; i++)
		;
	if (seat == HC_NONE && i == b->nmissing)
		return true;
	r.state = hc_str(hc_word_member_state(HC_W_member_state_EXPECTED));
	r.node = hc_str(e ? e->server : "");
	if (e)
		hc_addr_text(&e->addr, addr);
	if (seat != HC_NONE) {
		r.state = hc_str(hc_word_member_state(HC_W_member_state_JOINED));
		r.node = hc_str(c->self.name);
		r.device = c->seats[seat].device;
		r.pid = c->seats[seat].process == HC_NONE
				? 0
				: c->processes[c->seats[seat].process].pid;
	} else if (e) {
		hc_missing_sign(c, e, sign, sizeof(sign));
	}
	r.address = hc_str(addr);
	r.sign = hc_str(sign);
	return hc_view_put(g, &r);
}

static bool member_row(struct hc_view_page *g, struct hc_home *h, uint32_t rank)
{
	struct hc_core *c = g->c;
	const struct hc_place *pl = hc_home_place(c, h, rank);
	const struct hc_who *who = hc_who(c, pl);
	const struct hc_roll_entry *e = hc_home_roll(c, h, rank);
	struct hc_part *p = hc_part_by_id(c, h->id);
	uint32_t seat = p ? hc_part_find_seat(c, p, rank) : HC_NONE;
	const struct hc_device *d;
	char addr[64] = "", sign[HC_NAME_MAX + 1] = "";
	struct hc_m_view_member r = {.domain = h->id,
				     .rank = rank,
				     .state = hc_str(hc_word_member_state(pl->state)),
				     .device = pl->device,
				     .pid = who->pid,
				     .uid = h->uid};

	if (pl->state == HC_W_member_state_EXPECTED) {
		r.node = hc_str(e ? e->server : "");
		r.device = e ? e->device : HC_NONE;
		if (e)
			hc_missing_sign(c, e, sign, sizeof(sign));
	} else {
		r.node = hc_str(c->nodes[who->node].name);
		d = who->node == HC_SELF_NODE ? hc_device_get(c, pl->device) : NULL;
		if (d)
			hc_addr_text(&d->fact.addr, addr);
	}
	if (!addr[0] && e)
		hc_addr_text(&e->addr, addr);
	r.address = hc_str(addr);
	r.sign = hc_str(sign);
	if (seat != HC_NONE && who->node == HC_SELF_NODE) {
		r.begun = hc_seat_reading(c, seat)->begun;
		r.running = hc_seat_reading(c, seat)->running;
		if (c->seats[seat].state == HC_W_member_state_DETACHED)
			r.state = hc_str(hc_word_member_state(HC_W_member_state_DETACHED));
	}
	return hc_view_put(g, &r);
}

/* A rank of this node in a domain of another home. */
static bool seat_row(struct hc_view_page *g, const struct hc_part *p, uint32_t seat)
{
	struct hc_core *c = g->c;
	const struct hc_seat *s = &c->seats[seat];
	const struct hc_device *d = hc_device_get(c, s->device);
	char addr[64] = "";
	struct hc_m_view_member r = {.domain = p->id,
				     .rank = s->rank,
				     .state = hc_str(hc_word_member_state(s->state)),
				     .node = hc_str(c->self.name),
				     .device = s->device,
				     .uid = p->uid,
				     .begun = hc_seat_reading(c, seat)->begun,
				     .running = hc_seat_reading(c, seat)->running};

	if (s->process != HC_NONE)
		r.pid = c->processes[s->process].pid;
	if (d)
		hc_addr_text(&d->fact.addr, addr);
	r.address = hc_str(addr);
	return hc_view_put(g, &r);
}

/* Those of other homes: the ranks of this node, and while it forms those that are missing. */
static uint64_t far_members(struct hc_view_page *g, uint64_t at)
{
	struct hc_core *c = g->c;
	const uint64_t first = c->lim.domains;
	uint64_t n = at >> 20, seat = at & 0xfffff;
	char name[32];

	for (; n < first + c->part_pool.fresh; n++, seat = 0) {
		const struct hc_part *p = &c->parts[n - first];

		if (!is_far(p) || !hc_view_wants(g, p->id, hc_part_name(c, p, name)))
			continue;
		if (p->state == HC_W_domain_state_FORMING) {
			for (; seat < p->nranks; seat++)
				if (!part_member(g, p, (uint32_t)seat))
					return (n << 20 | seat) + 1;
			continue;
		}
		for (; seat < p->nseats; seat++)
			if (!seat_row(g, p, p->seats + (uint32_t)seat))
				return (n << 20 | seat) + 1;
	}
	return 0;
}

uint64_t hc_domainview_members(struct hc_view_page *g, uint64_t at)
{
	struct hc_core *c = g->c;
	uint64_t n = at >> 20, rank = at & 0xfffff, homes = c->home_pool.fresh;
	char name[32];

	for (; n < homes; n++, rank = 0) {
		struct hc_home *h = &c->homes[n];

		if (!h->id || !hc_view_wants(g, h->id, hc_home_name(c, h, name, sizeof(name))))
			continue;
		for (; rank < h->nranks; rank++)
			if (!member_row(g, h, (uint32_t)rank))
				return (n << 20 | rank) + 1;
	}
	return far_members(g, (uint64_t)c->lim.domains << 20);
}
