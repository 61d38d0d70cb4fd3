/* SPDX-License-Identifier: Apache-2.0 */
/* Status and pages of views; see view.h. */
#include "view.h"

#include "channel.h"
#include "device.h"
#include "emit.h"
#include "exchange.h"
#include "home.h"
#include "link.h"
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
	char text[HC_NAME_MAX + 64];

	h = m->id ? hc_home_by_id(c, m->id) : hc_home_named(c, uid, true, m->name);
	if (h) {
		status_home(c, h, s->id, request);
		return;
	}
	e = m->id ? hc_home_ended(c, m->id) : ended_named(c, m->name);
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

#define PAGE_BYTES 48000u

bool hc_view_put(struct hc_view_page *g, const void *row)
{
	size_t len;

	if (g->q->limit && g->rows == g->q->limit)
		g->full = true;
	if (!g->full &&
	    hc_encode(g->d, HC_PROTO_MAX, row, g->c->scratch + g->used, PAGE_BYTES - g->used, &len))
		g->full = true;
	if (g->full)
		return false;
	g->used += len;
	g->rows++;
	return true;
}

static bool wanted(const struct hc_view_page *g, uint64_t id, const char *name)
{
	if (g->q->id && g->q->id != id)
		return false;
	return !g->q->name.len || hc_str_eq(hc_str(name), g->q->name);
}

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
	return !wanted(g, h->id, hc_home_name(c, h, name, sizeof(name))) || hc_view_put(g, &r);
}

static bool ended_row(struct hc_view_page *g, const struct hc_ended *e)
{
	struct hc_m_view_domain r = {.id = e->id,
				     .name = hc_str(e->name),
				     .state = hc_str(hc_word_domain_state(e->state)),
				     .epoch = e->epoch,
				     .ranks = e->nranks,
				     .uid = e->uid,
				     .home = hc_str(g->c->self.name),
				     .age_ms = (g->c->now - e->at) / 1000000u,
				     .cause = hc_str(e->cause)};

	if (g->c->now - e->at >= g->c->set.ended_keep_ns)
		return true;
	return !wanted(g, e->id, e->name) || hc_view_put(g, &r);
}

/* Forming at another node: what that told. */
static bool forms_afar(const struct hc_part *p)
{
	return p->id && p->home_node != HC_SELF_NODE && p->state == HC_W_domain_state_FORMING;
}

static const char *part_name(const struct hc_core *c, const struct hc_part *p, char *buf,
			     size_t bytes)
{
	if (p->name != HC_NONE)
		return c->names[p->name].text;
	snprintf(buf, bytes, "domain-%016llx", (unsigned long long)p->id);
	return buf;
}

static bool part_row(struct hc_view_page *g, const struct hc_part *p)
{
	struct hc_core *c = g->c;
	char name[32], cause[HC_CAUSE_MAX];
	struct hc_m_view_domain r = {.id = p->id,
				     .state = hc_str(hc_word_domain_state(p->state)),
				     .epoch = p->epoch,
				     .ranks = p->nranks,
				     .arrived = hc_part_now(c, p)->arrived,
				     .local = p->nseats,
				     .uid = p->uid,
				     .home = hc_str(c->nodes[p->home_node].name),
				     .name = hc_str(part_name(c, p, name, sizeof(name)))};

	hc_part_missing(c, p, cause, sizeof(cause));
	r.cause = hc_str(cause);
	return !wanted(g, p->id, part_name(c, p, name, sizeof(name))) || hc_view_put(g, &r);
}

/* Cursor: number of the home + 1; the ended ones follow, then those that form at other nodes.
 * Returns the next cursor, 0 at the end. */
static uint64_t domains(struct hc_view_page *g, uint64_t at)
{
	struct hc_core *c = g->c;
	uint64_t homes = c->home_pool.fresh;

	for (; at < homes; at++)
		if (c->homes[at].id && !home_row(g, &c->homes[at]))
			return at + 1;
	for (; at - homes < c->ended_count; at++)
		if (!ended_row(g, &c->ended[at - homes]))
			return at + 1;
	for (; at - homes - c->ended_count < c->part_pool.fresh; at++)
		if (forms_afar(&c->parts[at - homes - c->ended_count]) &&
		    !part_row(g, &c->parts[at - homes - c->ended_count]))
			return at + 1;
	return 0;
}

/* Of a domain that forms at another node: the ranks that are here, and those that are missing. */
static bool part_member(struct hc_view_page *g, const struct hc_part *p, uint32_t rank)
{
	struct hc_core *c = g->c;
	const struct hc_part_busy *b = hc_part_now(c, p);
	const uint32_t seat = hc_part_find_seat(c, p, rank);
	const struct hc_roll_entry *e = hc_roll_find(c, b->list_a, b->list_b, rank);
	struct hc_m_view_member r = {
		.domain = p->id, .rank = rank, .uid = p->uid, .device = e ? e->device : HC_NONE};
	char addr[64] = "";
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
	}
	r.address = hc_str(addr);
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
	char addr[64] = "";
	struct hc_m_view_member r = {.domain = h->id,
				     .rank = rank,
				     .state = hc_str(hc_word_member_state(pl->state)),
				     .device = pl->device,
				     .pid = who->pid,
				     .uid = h->uid};

	if (pl->state == HC_W_member_state_EXPECTED) {
		r.node = hc_str(e ? e->server : "");
		r.device = e ? e->device : HC_NONE;
	} else {
		r.node = hc_str(c->nodes[who->node].name);
		d = who->node == HC_SELF_NODE ? hc_device_get(c, pl->device) : NULL;
		if (d)
			hc_addr_text(&d->fact.addr, addr);
	}
	if (!addr[0] && e)
		hc_addr_text(&e->addr, addr);
	r.address = hc_str(addr);
	if (seat != HC_NONE && who->node == HC_SELF_NODE) {
		r.begun = hc_seat_reading(c, seat)->begun;
		r.running = hc_seat_reading(c, seat)->running;
		if (c->seats[seat].state == HC_W_member_state_DETACHED)
			r.state = hc_str(hc_word_member_state(HC_W_member_state_DETACHED));
	}
	return hc_view_put(g, &r);
}

/* Cursor: number of the home << 20 | rank, + 1; then of the parts in the same way. */
static uint64_t members(struct hc_view_page *g, uint64_t at)
{
	struct hc_core *c = g->c;
	uint64_t n = at >> 20, rank = at & 0xfffff, homes = c->home_pool.fresh;
	char name[32];

	for (; n < homes; n++, rank = 0) {
		struct hc_home *h = &c->homes[n];

		if (!h->id || !wanted(g, h->id, hc_home_name(c, h, name, sizeof(name))))
			continue;
		for (; rank < h->nranks; rank++)
			if (!member_row(g, h, (uint32_t)rank))
				return (n << 20 | rank) + 1;
	}
	for (; n - homes < c->part_pool.fresh; n++, rank = 0) {
		const struct hc_part *p = &c->parts[n - homes];

		if (!forms_afar(p) || !wanted(g, p->id, part_name(c, p, name, sizeof(name))))
			continue;
		for (; rank < p->nranks; rank++)
			if (!part_member(g, p, (uint32_t)rank))
				return (n << 20 | rank) + 1;
	}
	return 0;
}

static uint64_t clients(struct hc_view_page *g, uint64_t at)
{
	struct hc_core *c = g->c;

	for (; at < c->lim.sessions; at++) {
		const struct hc_session *s = &c->sessions[at];
		struct hc_m_view_client r = {.session = s->id};

		if (!s->id)
			continue;
		r.pid = c->processes[s->process].pid;
		r.uid = c->processes[s->process].uid;
		r.role = hc_str(hc_word_role(s->role));
		r.build = hc_str(s->build);
		r.job = hc_str(s->job);
		r.seats = s->seats;
		r.requests = s->requests;
		r.events_lost = s->events_lost;
		if (!hc_view_put(g, &r))
			return at + 1;
	}
	return 0;
}

static uint64_t devices(struct hc_view_page *g, uint64_t at)
{
	struct hc_core *c = g->c;
	char addr[64];

	for (; at < c->ndevices; at++) {
		const struct hc_device *d = &c->devices[at];
		struct hc_m_view_device r = {.index = d->fact.index,
					     .kind = hc_str(d->fact.kind),
					     .model = hc_str(d->fact.model),
					     .pci = hc_str(d->fact.pci),
					     .numa = d->fact.numa,
					     .port = hc_str(d->fact.port),
					     .health = hc_str(d->fact.health),
					     .simulated = d->fact.simulated,
					     .source = hc_str(d->fact.source),
					     .address_source = hc_str(d->fact.addr_source),
					     .domains = d->users};

		hc_addr_text(&d->fact.addr, addr);
		r.address = hc_str(addr);
		if (d->users && d->holder != HC_NONE)
			r.holder = c->processes[d->holder].pid;
		if (d->fact.present && !hc_view_put(g, &r))
			return at + 1;
	}
	return 0;
}

static void link_end(uint32_t device, char text[16])
{
	if (device == HC_NONE)
		snprintf(text, 16, "any");
	else if (device == HC_END_NET)
		snprintf(text, 16, "out");
	else
		snprintf(text, 16, "%u", device);
}

static bool link_row(struct hc_view_page *g, uint32_t n)
{
	const struct hc_link_fact *f = &g->c->link_facts[n];
	char name[HC_LINK_NAME], a[16], b[16];
	struct hc_admit_use u;
	struct hc_m_view_link r = {.number = n,
				   .type = hc_str(hc_word_link_type(f->type)),
				   .state = hc_str(hc_link_state(g->c, n)),
				   .bandwidth_mbps = f->mbps,
				   .vcs = f->vcs,
				   .latency_us = f->latency_us,
				   .via = hc_str(f->via),
				   .source = hc_str(f->source),
				   .bandwidth_source = hc_str(f->mbps_source),
				   .latency_source = hc_str(f->latency_source),
				   .vcs_source = hc_str(f->vcs_source)};

	hc_admit_link_use(g->c->admit, n, &u);
	r.limit_mbps = u.limit_mbps;
	r.used_ab_mbps = u.used_mbps[0];
	r.used_ba_mbps = u.used_mbps[1];
	r.vcs_used = u.used_vcs;
	r.waiting = u.waiting;
	r.grants = u.grants;
	link_end(f->a, a);
	link_end(f->b, b);
	r.a = hc_str(a);
	r.b = hc_str(b);
	r.name = hc_str(hc_link_name(g->c, n, name, sizeof(name)));
	return (g->q->name.len && !hc_str_eq(r.name, g->q->name)) || hc_view_put(g, &r);
}

static uint64_t links(struct hc_view_page *g, uint64_t at)
{
	for (; at < g->c->nlinks; at++)
		if (hc_link_known(g->c, (uint32_t)at) && !link_row(g, (uint32_t)at))
			return at + 1;
	return 0;
}

static uint32_t pid_of(const struct hc_core *c, const struct hc_part *p, uint32_t rank)
{
	const uint32_t seat = p ? hc_part_find_seat(c, p, rank) : HC_NONE;

	return seat == HC_NONE || c->seats[seat].process == HC_NONE
		       ? 0
		       : c->processes[c->seats[seat].process].pid;
}

static uint64_t channels(struct hc_view_page *g, uint64_t at)
{
	struct hc_core *c = g->c;
	char link[HC_NAME_MAX + 1];

	for (; at < c->chan->pool.fresh; at++) {
		const struct hc_channel *ch = &c->chan->at[at];
		const struct hc_part *p = hc_part_by_id(c, ch->domain);
		const struct hc_admit_link *fact = hc_admit_link_fact(c->admit, ch->link);
		struct hc_m_view_channel r = {
			.id = ch->id,
			.domain = ch->domain,
			.rank = ch->rank[0],
			.peer = ch->rank[1],
			.pid = pid_of(c, p, ch->rank[0]),
			.peer_pid = pid_of(c, p, ch->rank[1]),
			.mbps = ch->mbps[0],
			.back_mbps = ch->mbps[1],
			.vc = ch->vc,
			.priority = ch->priority,
			.age_ms = (c->now - ch->since) / 1000000u,
			.hold_ms = ch->hold_ms,
			.collected = (uint8_t)((ch->ends >> 1 & 1) + (ch->ends >> 3 & 1))};

		if (ch->state != CHANNEL_GRANTED || (g->q->id && g->q->id != ch->domain))
			continue;
		r.link = hc_str(hc_channel_link_name(c, ch->link, link, sizeof(link)));
		r.type = hc_str(fact ? hc_word_link_type(fact->type) : "");
		r.state = hc_str(hc_word_channel_state(HC_W_channel_state_OK));
		if (!hc_view_put(g, &r))
			return at + 1;
	}
	return 0;
}

/* A request of the admission that this want waits for. */
static uint32_t awaited(const struct hc_core *c, const struct hc_want *w)
{
	const struct hc_channel *ch;
	uint32_t i, ref;

	if (w->state == WANT_TICKET)
		return w->admit;
	for (i = 0; i < w->count; i++) {
		ref = c->chan->refs[w->refs + i];
		ch = ref == HC_NONE ? NULL : &c->chan->at[REF_CHANNEL(ref)];
		if (ch && ch->state == CHANNEL_WAITING && ch->request != HC_NONE)
			return ch->request;
	}
	return HC_NONE;
}

static uint8_t class_now(const struct hc_core *c, const struct hc_want *w)
{
	const uint64_t aged = c->set.aging_ns ? (c->now - w->since) / c->set.aging_ns : 0;

	return (uint8_t)(w->priority + aged < 7 ? w->priority + aged : 7);
}

static uint64_t waiting(struct hc_view_page *g, uint64_t at)
{
	struct hc_core *c = g->c;
	char estimate[24];

	for (; at < c->chan->want_pool.fresh; at++) {
		const struct hc_want *w = &c->chan->wants[at];
		const bool ticket = w->state == WANT_TICKET;
		struct hc_m_view_waiting r = {.domain = w->domain,
					      .rank = w->rank,
					      .pid = w->pid,
					      .uid = w->uid,
					      .priority = class_now(c, w),
					      .pieces = ticket ? w->lost_rank : w->count,
					      .mbps = w->mbps,
					      .waited_ms = (c->now - w->since) / 1000000u};
		const uint32_t request =
			ticket || w->state == WANT_WAITING ? awaited(c, w) : HC_NONE;
		uint64_t ns;

		if (request == HC_NONE || (g->q->id && g->q->id != w->domain))
			continue;
		hc_admit_outlook(c->admit, c->now, request, &r.place, &ns);
		HC_TEXT(estimate, "unknown");
		if (ns != HC_ADMIT_HINT_NONE)
			HC_TEXT(estimate, "%llu", (unsigned long long)(ns / 1000000u));
		r.estimate_ms = hc_str(estimate);
		r.kind = hc_str(ticket ? "ticket" : w->kind == WANT_DOMAIN ? "domain" : "wait");
		if (!hc_view_put(g, &r))
			return at + 1;
	}
	return 0;
}

static uint64_t snapshot_of(const struct hc_core *c, uint32_t view)
{
	switch (view) {
	case HC_VIEW_domain: return 1 + c->domain_changes;
	case HC_VIEW_member: return 1 + c->domain_changes + c->member_changes;
	case HC_VIEW_client: return 1 + c->session_changes;
	case HC_VIEW_channel: return 1 + c->chan->changes;
	case HC_VIEW_waiting: return 1 + c->chan->changes;
	case HC_VIEW_node: return 1 + c->net->node_changes;
	case HC_VIEW_path: return 1 + c->net->path_changes;
	case HC_VIEW_port: return 1 + c->net->port_changes;
	}
	return 1;
}

void hc_view_query(struct hc_core *c, struct hc_session *s, uint32_t request,
		   const struct hc_m_query *m)
{
	struct hc_view_page g = {.c = c, .q = m, .d = hc_desc_view(m->view)};
	struct hc_m_query_r r = {.view = m->view, .snapshot = snapshot_of(c, m->view)};
	uint64_t from = m->cursor ? m->cursor - 1 : 0;

	if (m->cursor && m->snapshot && m->snapshot != r.snapshot) {
		hc_emit_error(c, s->id, request, HC_E_STALE, "the list changed while it was read");
		return;
	}
	switch (m->view) {
	case HC_VIEW_domain: r.cursor = domains(&g, from); break;
	case HC_VIEW_member: r.cursor = members(&g, from); break;
	case HC_VIEW_client: r.cursor = clients(&g, from); break;
	case HC_VIEW_device: r.cursor = devices(&g, from); break;
	case HC_VIEW_link: r.cursor = links(&g, from); break;
	case HC_VIEW_channel: r.cursor = channels(&g, from); break;
	case HC_VIEW_waiting: r.cursor = waiting(&g, from); break;
	case HC_VIEW_node: r.cursor = hc_netview_nodes(&g, from); break;
	case HC_VIEW_path: r.cursor = hc_netview_paths(&g, from); break;
	case HC_VIEW_port: r.cursor = hc_netview_ports(&g, from); break;
	default:
		hc_emit_error(c, s->id, request, HC_E_NOT_FOUND, "there is no view of that number");
		return;
	}
	r.nrows = g.rows;
	r.rows = (struct hc_str){(const char *)c->scratch, (uint32_t)g.used};
	if (m->limit && g.rows == m->limit)
		r.cursor = 0;
	hc_emit_reply(c, s->id, request, &hc_desc_query_r, &r);
}
