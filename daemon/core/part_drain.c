/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A node's share of a drain, and ranks that leave; see part.h and home_life.c.
 *
 * CUT_ASK: the record says DRAINING without a cut and the gate is fenced, so every op_begin that
 * got through is in the counters that are read next, and every later one waits for the cut. The
 * highest number begun here is reported. CUT: the record gets the cut; a seat is done when it has
 * begun up to the cut and holds no reference. Seats are read again when their process says that
 * a reference was returned, and once a second, which also gives operations their age.
 *
 * A seat that cannot be read (detached, its arena gone) counts as one running reference until its
 * process comes back or dies. A dead one holds nothing.
 *
 * A rank that leaves waits only for its own references.
 */
#include "part.h"

#include "ask.h"
#include "channel.h"
#include "digest.h"
#include "emit.h"
#include "home.h"
#include "pages.h"
#include "rights.h"
#include "row.h"
#include "session.h"
#include "told.h"

#include <stdio.h>
#include <string.h>

#define RESCAN_NS 1000000000u

/* ---- reading ---- */

static bool holds_place(const struct hc_seat *s)
{
	return s->state == HC_W_member_state_READY || s->state == HC_W_member_state_DETACHED;
}

static uint32_t now_s(const struct hc_core *c)
{
	return (uint32_t)(c->now / 1000000000u);
}

const struct hc_reading *hc_seat_reading(const struct hc_core *c, uint32_t seat)
{
	static const struct hc_reading none;

	return c->seats[seat].flags & SEAT_READ ? &c->readings[seat] : &none;
}

static struct hc_reading *reading_of(struct hc_core *c, uint32_t seat)
{
	if (!(c->seats[seat].flags & SEAT_READ))
		c->readings[seat] = (struct hc_reading){0};
	c->seats[seat].flags |= SEAT_READ;
	return &c->readings[seat];
}

void hc_part_ask_sample(struct hc_core *c, struct hc_part *p, uint32_t seat)
{
	struct hc_seat *s = &c->seats[seat];
	struct hc_action *a;
	struct hc_reading *rd;

	s->flags &= (uint8_t)~SEAT_SAMPLED;
	if (!holds_place(s) || s->process == HC_NONE || s->block == HC_NONE) {
		s->flags |= SEAT_SAMPLED;
		rd = reading_of(c, seat);
		if (!rd->running)
			rd->since_s = now_s(c);
		rd->running = holds_place(s) && s->process != HC_NONE ? 1 : 0;
		return;
	}
	a = hc_emit_action(c, HC_ACT_SCAN);
	a->session = hc_seat_session(s);
	a->u.scan.domain = p->id;
	a->u.scan.epoch = p->epoch;
	a->u.scan.rank = s->rank;
	a->u.scan.block = s->block;
	a->u.scan.pid = c->processes[s->process].pid;
	a->u.scan.started = c->processes[s->process].started;
	hc_part_busy(c, p)->samples++;
}

static void take_sample(struct hc_core *c, uint32_t seat, const struct hc_event *ev)
{
	struct hc_reading *rd = reading_of(c, seat);
	bool was = rd->running && rd->begun == ev->u.ops.begun;

	c->seats[seat].flags |= SEAT_SAMPLED;
	rd->begun = ev->u.ops.begun;
	rd->running = ev->u.ops.readable ? ev->u.ops.running : 1;
	rd->op_kind = ev->u.ops.kind;
	if (!was)
		rd->since_s = now_s(c);
}

/* ---- judging ---- */

static bool seat_done(const struct hc_core *c, const struct hc_part *p, uint32_t seat)
{
	const struct hc_part_busy *b = hc_part_now(c, p);
	const struct hc_reading *rd = hc_seat_reading(c, seat);

	if (!holds_place(&c->seats[seat]))
		return true;
	return !rd->running &&
	       (!b->cut_wait || c->seats[seat].process == HC_NONE || rd->begun >= b->cut);
}

static void report_cut(struct hc_core *c, struct hc_part *p)
{
	struct hc_m_cut_report m = {.id = p->id,
				    .epoch = p->epoch,
				    .incarnation = c->self.incarnation,
				    .number = p->number};
	uint32_t i;

	for (i = 0; i < p->nseats; i++)
		if (hc_seat_reading(c, p->seats + i)->begun > m.begun)
			m.begun = hc_seat_reading(c, p->seats + i)->begun;
	hc_part_busy(c, p)->reported = true;
	hc_emit_send(c, p->home_node, &hc_desc_cut_report, &m);
}

static void report_drain(struct hc_core *c, struct hc_part *p, bool done)
{
	struct hc_m_drain_report m = {.id = p->id,
				      .epoch = p->epoch,
				      .incarnation = c->self.incarnation,
				      .number = p->number,
				      .rank = HC_NONE};
	uint32_t i;

	for (i = 0; i < p->nseats; i++) {
		const struct hc_seat *s = &c->seats[p->seats + i];
		const struct hc_reading *rd = hc_seat_reading(c, p->seats + i);

		if (seat_done(c, p, p->seats + i))
			continue;
		m.left += rd->running;
		if (!rd->running || m.rank != HC_NONE)
			continue;
		m.rank = s->rank;
		m.pid = s->process == HC_NONE ? 0 : c->processes[s->process].pid;
		m.op_kind = rd->op_kind;
		m.op_number = rd->begun;
		m.age_s = now_s(c) - rd->since_s;
	}
	m.done = hc_part_busy(c, p)->drained = done;
	hc_emit_send(c, p->home_node, &hc_desc_drain_report, &m);
}

static bool all_done(const struct hc_core *c, const struct hc_part *p)
{
	uint32_t i;

	for (i = 0; i < p->nseats; i++)
		if (!seat_done(c, p, p->seats + i))
			return false;
	return true;
}

/*
 * Quiescent once is not yet the end: a send or a receive may have begun since the seat was read.
 * So the gate is closed for those too, fenced, and all seats are read again.
 */
static void judge_cut(struct hc_core *c, struct hc_part *p)
{
	struct hc_part_busy *b = hc_part_busy(c, p);
	bool done = all_done(c, p), closed = b->cut_set == HC_CUT_CLOSED;

	if (done == closed) {
		/* closed and done: over; open and not done: how it stands */
		report_drain(c, p, done);
		return;
	}
	b->cut_set = done ? HC_CUT_CLOSED : HC_CUT_SET;
	hc_part_publish(c, p, done);
	if (done)
		hc_part_add_work(c, p, WORK_SCAN);
	else
		report_drain(c, p, false);
}

void hc_part_judge_drain(struct hc_core *c, struct hc_part *p)
{
	const struct hc_part_busy *b = hc_part_now(c, p);

	if (b->samples || b->work & WORK_SCAN)
		return;
	hc_part_answer_leave(c, p, HC_NONE, 0, "");
	b = hc_part_now(c, p);
	if (!b->draining || b->drained || p->state != HC_W_domain_state_DRAINING)
		return;
	if (!b->reported)
		report_cut(c, p);
	else if (b->cut_set != HC_CUT_NONE)
		judge_cut(c, p);
}

void hc_part_sample(struct hc_core *c, const struct hc_event *ev)
{
	struct hc_part *p = hc_part_by_id(c, ev->u.ops.domain);
	const struct hc_part_busy *b;
	uint32_t seat;

	if (!p || p->epoch != ev->u.ops.epoch)
		return;
	seat = hc_part_find_seat(c, p, ev->u.ops.rank);
	b = hc_part_now(c, p);
	if (b->samples)
		hc_part_busy(c, p)->samples--;
	if (seat != HC_NONE)
		take_sample(c, seat, ev);
	if (!b->samples && !(b->work & WORK_SCAN))
		hc_part_judge_drain(c, p);
}

static uint64_t first_leave(const struct hc_core *c, const struct hc_part *p)
{
	uint64_t first = HC_NEVER;
	uint32_t n;

	for (n = hc_list_first(&hc_part_now(c, p)->asks); n != HC_NONE;
	     n = hc_list_next(&c->ask_links, n))
		if (c->asks[n].deadline < first)
			first = c->asks[n].deadline;
	return first;
}

/* While anything waits for references: look again in a second, or at a leave's deadline. */
static void arm(struct hc_core *c, struct hc_part *p)
{
	const struct hc_part_busy *b = hc_part_now(c, p);
	uint64_t at = HC_NEVER, leave = first_leave(c, p);

	if ((b->draining && !b->drained) || b->asks.count)
		at = c->now + RESCAN_NS;
	if (p->orphan && at == HC_NEVER)
		at = c->now + c->set.orphan_grace_ns;
	/* one that has passed is answered as soon as its seat has been read */
	if (leave > c->now && leave < at)
		at = leave;
	hc_part_alarm(c, p, at);
}

/* ---- the home's words ---- */

void hc_part_on_cut_ask(struct hc_core *c, uint32_t node, const struct hc_m_cut_ask *m)
{
	static const struct hc_told t = {HC_LOG_INFO, HC_W_event_code_DOMAIN_DRAINING, HC_NONE, 0};
	struct hc_part *p = hc_part_of_home(c, node, m->id);
	char text[HC_CAUSE_MAX];
	struct hc_part_busy *b;
	bool first, known;

	if (!p || p->epoch != m->epoch || m->number <= p->number ||
	    p->state < HC_W_domain_state_ACTIVE || p->state > HC_W_domain_state_DRAINING)
		return;
	b = hc_part_busy(c, p);
	first = !b->draining;
	/* the home has told the loss before: the first cause stays */
	known = p->state >= HC_W_domain_state_DAMAGED && !m->wait_cut;
	hc_digest_part(c, p);
	p->number = m->number;
	hc_part_become(c, p, HC_W_domain_state_DRAINING);
	hc_digest_part(c, p);
	p->away = false;
	b->draining = true;
	b->reported = b->drained = false;
	b->cut_wait = m->wait_cut == 1;
	b->cut_set = HC_CUT_NONE;
	if (!known)
		hc_part_set_cause(c, p, HC_W_event_code_DOMAIN_DRAINING, HC_NONE, 0, m->text);
	if (first) {
		hc_part_told(c, p, &t, hc_str_copy(m->text, text, sizeof(text)));
		b->event = HC_W_event_code_DOMAIN_DRAINING;
	}
	hc_part_publish(c, p, true);
	hc_row_changed(c, p);
	hc_part_add_work(c, p, first ? WORK_SCAN | WORK_NOTIFY : WORK_SCAN);
	arm(c, p);
}

void hc_part_on_cut(struct hc_core *c, uint32_t node, const struct hc_m_cut *m)
{
	struct hc_part *p = hc_part_of_home(c, node, m->id);
	struct hc_part_busy *b;

	if (!p || p->epoch != m->epoch || p->state != HC_W_domain_state_DRAINING)
		return;
	b = hc_part_busy(c, p);
	b->cut = m->cut;
	b->cut_set = HC_CUT_SET;
	b->drained = false;
	hc_part_publish(c, p, false);
	hc_row_changed(c, p);
	if (b->draining)
		hc_part_add_work(c, p, WORK_SCAN);
}

/* ---- clients ---- */

static bool waits_for_references(const struct hc_core *c, const struct hc_part *p)
{
	return hc_part_now(c, p)->draining || hc_part_now(c, p)->asks.count;
}

void hc_part_ops_ended(struct hc_core *c, struct hc_session *s, uint64_t id)
{
	struct hc_part *p = hc_part_by_id(c, id);
	uint32_t i;

	if (!p || !waits_for_references(c, p))
		return;
	for (i = 0; i < p->nseats && hc_emit_room(c); i++)
		if (hc_seat_session(&c->seats[p->seats + i]) == s->id)
			hc_part_ask_sample(c, p, p->seats + i);
}

void hc_part_timeout(struct hc_core *c, struct hc_part *p)
{
	if (p->state == HC_W_domain_state_ACTIVATING) {
		hc_part_await_timeout(c, p);
		return;
	}
	if (waits_for_references(c, p))
		hc_part_add_work(c, p, WORK_SCAN);
	if (hc_part_answer_leave(c, p, HC_NONE, 0, ""))
		arm(c, p);
	if (p->orphan && !hc_part_now(c, p)->asks.count)
		hc_part_orphan_timeout(c, p);
}

/* The seat that a request names, when it is the caller's own. */
static uint32_t own_seat(struct hc_core *c, struct hc_session *s, uint32_t request, uint64_t id,
			 uint32_t rank, struct hc_part **part)
{
	struct hc_part *p = hc_part_by_id(c, id);
	uint32_t seat = p ? hc_part_find_seat(c, p, rank) : HC_NONE;
	char text[128];

	*part = p;
	if (!p) {
		hc_emit_error(c, s->id, request, HC_E_GONE, "the domain is gone");
	} else if (seat == HC_NONE || c->seats[seat].process != s->process) {
		HC_TEXT(text, "rank %u is not a rank of this process (pid %u)", rank,
			c->processes[s->process].pid);
		hc_emit_error(c, s->id, request, HC_E_PERMISSION, text);
		seat = HC_NONE;
	} else if (!holds_place(&c->seats[seat])) {
		hc_emit_error(c, s->id, request, HC_E_GONE,
			      "this rank has not joined yet, or has left");
		seat = HC_NONE;
	}
	return seat;
}

static void let_go(struct hc_core *c, struct hc_part *p, uint32_t seat, uint64_t ticket)
{
	hc_channel_rank_gone(c, p, seat, WHY_LEFT);
	hc_part_depart(c, p, seat, HC_W_depart_LEFT, "", ticket);
	hc_part_release_seat(c, seat);
	c->seats[seat].state = HC_W_member_state_LEFT;
	hc_row_changed(c, p);
	if (p->kept)
		hc_ask_after(c, ticket, c->persist_seq);
}

void hc_part_leave(struct hc_core *c, struct hc_session *s, uint32_t request,
		   const struct hc_m_leave *m)
{
	struct hc_part *p;
	uint32_t seat = own_seat(c, s, request, m->id, m->rank, &p), n;

	if (seat == HC_NONE)
		return;
	n = hc_pool_get(&c->ask_pool);
	if (n == HC_NONE) {
		hc_emit_error(c, s->id, request, HC_E_LIMIT,
			      "too many requests wait for an answer");
		return;
	}
	c->asks[n] =
		(struct hc_ask){.session = s->id,
				.request = request,
				.rank = m->rank,
				.deadline = c->now + (m->timeout_ms ? m->timeout_ms * 1000000ull
								    : c->set.drain_timeout_ns)};
	hc_list_push(&hc_part_busy(c, p)->asks, &c->ask_links, n);
	c->seats[seat].flags |= SEAT_LEAVING;
	hc_part_ask_sample(c, p, seat);
	arm(c, p);
	if (!hc_part_now(c, p)->samples)
		hc_part_judge_drain(c, p);
}

/* One rank that leaves: gone when it holds nothing, or by force. Returns whether it is answered. */
static bool leave_one(struct hc_core *c, struct hc_part *p, struct hc_ask *a)
{
	uint32_t seat = hc_part_find_seat(c, p, a->rank);
	struct hc_seat *s = seat == HC_NONE ? NULL : &c->seats[seat];
	const struct hc_reading *rd;
	uint64_t ticket;
	char text[256];
	int code = 0;

	if (s && holds_place(s)) {
		rd = hc_seat_reading(c, seat);
		if (!(s->flags & SEAT_SAMPLED) || (rd->running && c->now < a->deadline))
			return false;
		if (rd->running) {
			HC_TEXT(text,
				"rank %u left by force: %u reference%s left, the last %s #%llu",
				a->rank, rd->running, rd->running == 1 ? "" : "s",
				hc_word_op_kind(rd->op_kind), (unsigned long long)rd->begun);
			code = HC_E_FORCED;
		}
		ticket = code ? 0 : hc_ask_open(c, a->session, a->request);
		hc_ask_to(c, ticket, p->home_node, true);
		let_go(c, p, seat, ticket);
		if (!code)
			return true; /* answered when it is stored */
	}
	if (!hc_session_get(c, a->session))
		return true;
	if (code)
		hc_emit_error(c, a->session, a->request, code, text);
	else
		hc_emit_done(c, a->session, a->request, 0, "");
	return true;
}

bool hc_part_answer_leave(struct hc_core *c, struct hc_part *p, uint32_t seat, int code,
			  const char *text)
{
	uint32_t n = hc_list_first(&hc_part_now(c, p)->asks), next;
	struct hc_ask *a;

	for (; n != HC_NONE; n = next) {
		if (!hc_emit_room(c)) {
			hc_part_alarm(c, p, c->now);
			return false;
		}
		next = hc_list_next(&c->ask_links, n);
		a = &c->asks[n];
		if (seat != HC_NONE && c->seats[seat].rank != a->rank)
			continue;
		if (code && hc_session_get(c, a->session))
			hc_emit_error(c, a->session, a->request, code, text);
		else if (!code && !leave_one(c, p, a))
			continue;
		hc_ask_forget(c, &hc_part_busy(c, p)->asks, n);
	}
	hc_part_rest(c, p);
	return true;
}

void hc_part_abort(struct hc_core *c, struct hc_session *s, uint32_t request,
		   const struct hc_m_abort *m)
{
	struct hc_part *p;
	uint32_t seat = own_seat(c, s, request, m->id, m->rank, &p);
	char text[HC_TEXT_MAX + 1];

	if (seat == HC_NONE)
		return;
	hc_channel_rank_gone(c, p, seat, WHY_ABORTED);
	hc_part_depart(c, p, seat, HC_W_depart_ABORTED, hc_str_copy(m->reason, text, sizeof(text)),
		       0);
	hc_part_release_seat(c, seat);
	c->seats[seat].state = HC_W_member_state_DEAD;
	hc_row_changed(c, p);
	hc_emit_done(c, s->id, request, 0, "");
	hc_part_judge_drain(c, p);
}

/* No rank of it is here, or none of that name: its home may be. */
static struct hc_home *home_to_end(struct hc_core *c, const struct hc_session *s,
				   const struct hc_m_destroy *m)
{
	if (m->id)
		return hc_home_by_id(c, m->id);
	return hc_home_named(c, c->processes[s->process].uid, s->role == HC_W_role_ADMIN, m->name);
}

/* Its home is lost: the owner's word is enough, and nothing is waited for. */
static void destroy_orphan(struct hc_core *c, struct hc_part *p, const struct hc_session *s,
			   uint32_t request)
{
	const uint32_t uid = c->processes[s->process].uid;
	char text[128];

	if (!hc_right_owner(HC_MSG_destroy, s->role, uid, p->uid)) {
		HC_TEXT(text,
			"the domain belongs to uid %u, this is uid %u: only its owner, root and "
			"hcomm-admin may destroy it",
			p->uid, uid);
		hc_emit_error(c, s->id, request, HC_E_PERMISSION, text);
		return;
	}
	HC_TEXT(text, "destroyed by uid %u, its home being lost", uid);
	if (p->state < HC_W_domain_state_DESTROYED)
		hc_part_end(c, p, HC_W_domain_state_DESTROYED, hc_str(text));
	hc_emit_done(c, s->id, request, 0, "");
}

void hc_part_destroy(struct hc_core *c, struct hc_session *s, uint32_t request,
		     const struct hc_m_destroy *m)
{
	const uint32_t uid = c->processes[s->process].uid;
	struct hc_part *p = m->id ? hc_part_by_id(c, m->id) : hc_part_by_name(c, uid, m->name);
	struct hc_home *h = p ? NULL : home_to_end(c, s, m);
	struct hc_m_control w = {.incarnation = c->self.incarnation,
				 .uid = uid,
				 .role = s->role,
				 .timeout_ms = m->timeout_ms};
	bool known = m->id && hc_ended_any(c, m->id);

	w.id = p ? p->id : h ? h->id : 0;
	if (!w.id) {
		hc_emit_error(c, s->id, request, known ? HC_E_GONE : HC_E_NOT_FOUND,
			      known ? "the domain has ended already"
				    : "no such domain on this node");
		return;
	}
	if (p && p->orphan) {
		destroy_orphan(c, p, s, request);
		return;
	}
	w.ticket = hc_ask_open(c, s->id, request);
	if (!w.ticket) {
		hc_emit_error(c, s->id, request, HC_E_LIMIT,
			      "too many requests wait for an answer");
		return;
	}
	hc_ask_to(c, w.ticket, p ? p->home_node : HC_SELF_NODE, false);
	hc_ask_keep(c, w.ticket, &hc_desc_control, &w);
	hc_emit_send(c, p ? p->home_node : HC_SELF_NODE, &hc_desc_control, &w);
}
