/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Life of a part, its seats and its state record, and the words of its home; see part.h.
 *
 * A part follows its home: each word is judged by the state and epoch that the part holds, and one
 * that does not fit is ignored, since it may be late or come twice. What has to be told to ranks
 * afterwards is left as work (part_work.c).
 */
#include "part.h"

#include "channel.h"
#include "device.h"
#include "emit.h"
#include "pages.h"
#include "session.h"
#include "sync.h"
#include "user.h"

#include <stdio.h>
#include <string.h>

/* ---- life ---- */

uint64_t hc_name_key(uint32_t uid, struct hc_str name)
{
	const struct hc_hash_key k = {0x68636f6d6d2d6e6d, uid};

	return hc_hash(&k, name.p, name.len);
}

static void set_name(struct hc_core *c, struct hc_part *p, struct hc_str name)
{
	if (!name.len || p->name != HC_NONE)
		return;
	p->name = hc_pool_get(&c->name_pool);
	hc_assert(p->name != HC_NONE);
	hc_str_copy(name, c->names[p->name], HC_PART_NAME);
	hc_index_add(&c->part_by_name, hc_name_key(p->uid, name), hc_part_number(c, p));
}

static struct hc_part *part_begin(struct hc_core *c, uint32_t n, uint32_t uid, uint32_t nranks,
				  struct hc_str name)
{
	struct hc_part *p = hc_part(c, n);
	uint32_t reuse = p->reuse;

	memset(p, 0, sizeof(*p));
	p->reuse = reuse;
	p->uid = uid;
	p->nranks = nranks;
	p->seats = HC_NONE;
	p->name = p->cause = p->event_node = HC_NONE;
	p->home_node = HC_SELF_NODE;
	p->state = HC_W_domain_state_FORMING;
	set_name(c, p, name);
	hc_user_charge(c, uid, HC_CHARGE_PART);
	return p;
}

struct hc_part *hc_part_open(struct hc_core *c, uint64_t key_a, uint64_t key_b, uint32_t uid,
			     uint32_t nranks, struct hc_str name)
{
	struct hc_part *p;
	uint32_t n;

	if (hc_user_may(c, uid, HC_CHARGE_PART, NULL, 0))
		return NULL;
	n = hc_pool_get(&c->part_pool);
	hc_assert(n != HC_NONE);
	p = part_begin(c, n, uid, nranks, name);
	p->key_a = key_a;
	p->key_b = key_b;
	hc_index_add(&c->part_by_key, hc_part_key(key_a, key_b), n);
	return p;
}

struct hc_part *hc_part_restore(struct hc_core *c, uint32_t slot, uint32_t reuse, uint64_t id,
				uint32_t uid, uint32_t nranks, struct hc_str name)
{
	struct hc_part *p;

	if (!hc_pool_claim(&c->part_pool, slot))
		return NULL;
	p = part_begin(c, slot, uid, nranks, name);
	p->reuse = reuse;
	/* all at once: growing would need room for both */
	p->seats = hc_spans_get(&c->seat_spans, nranks, &p->order);
	hc_part_set_id(c, p, id);
	return p;
}

void hc_part_restored(struct hc_core *c, struct hc_part *p, const struct hc_m_domain_row *m)
{
	p->epoch = m->epoch;
	p->number = m->number;
	p->state = m->state;
	p->priority = m->priority;
	p->weight = m->weight;
	p->key_a = m->key_a;
	p->key_b = m->key_b;
	hc_index_add(&c->part_by_key, hc_part_key(p->key_a, p->key_b), hc_part_number(c, p));
	p->cut = m->cut;
	p->cut_set = m->state == HC_W_domain_state_DRAINING ? HC_CUT_SET : HC_CUT_NONE;
	if (m->state == HC_W_domain_state_DAMAGED)
		hc_part_set_cause(c, p, HC_W_event_code_DOMAIN_DAMAGED, HC_NONE, 0, m->cause);
}

struct hc_part *hc_part_by_name(struct hc_core *c, uint32_t uid, struct hc_str name)
{
	uint32_t n;

	for (n = hc_index_find(&c->part_by_name, hc_name_key(uid, name)); n != HC_NONE;
	     n = hc_index_next(&c->part_by_name, n))
		if (c->parts[n].uid == uid && hc_str_eq(hc_str(c->names[c->parts[n].name]), name))
			return &c->parts[n];
	return NULL;
}

struct hc_part *hc_part_by_id(struct hc_core *c, uint64_t id)
{
	uint32_t n = id ? hc_index_find(&c->part_by_id, id) : HC_NONE;

	return n == HC_NONE ? NULL : &c->parts[n];
}

struct hc_part *hc_part_of_home(struct hc_core *c, uint32_t node, uint64_t id)
{
	struct hc_part *p = hc_part_by_id(c, id);

	return p && p->home_node == node ? p : NULL;
}

void hc_part_set_id(struct hc_core *c, struct hc_part *p, uint64_t id)
{
	if (p->id)
		return;
	p->id = id;
	hc_index_add(&c->part_by_id, id, hc_part_number(c, p));
}

void hc_part_free(struct hc_core *c, struct hc_part *p)
{
	uint32_t n = hc_part_number(c, p);

	hc_assert(!p->nseats && !p->queued && !p->asks.count);
	hc_index_del(&c->part_by_key, n);
	hc_index_del(&c->part_by_id, n);
	hc_index_del(&c->part_by_name, n);
	hc_timers_set(&c->timers, hc_part_timer(c, n), HC_NEVER);
	if (p->seats != HC_NONE)
		hc_spans_put(&c->seat_spans, p->seats, p->order);
	if (p->name != HC_NONE)
		hc_pool_put(&c->name_pool, p->name);
	if (p->cause != HC_NONE)
		hc_pool_put(&c->cause_pool, p->cause);
	p->name = p->cause = p->seats = HC_NONE;
	hc_sync_part_over(c, p);
	hc_user_release(c, p->uid, HC_CHARGE_PART);
	p->id = 0;
	p->state = HC_W_domain_state_NONE;
	p->reuse++;
	if (c->started)
		hc_pool_put(&c->part_pool, n);
	else
		hc_pool_unclaim(&c->part_pool, n);
}

void hc_part_close_if_empty(struct hc_core *c, struct hc_part *p)
{
	if (!p->nseats && !p->work && p->state == HC_W_domain_state_FORMING)
		hc_part_free(c, p);
}

/* ---- seats ---- */

/* Seat `from` becomes seat number `to`, in all that knows it. */
static void seat_move(struct hc_core *c, uint32_t from, uint32_t to)
{
	struct hc_seat *s = &c->seats[to];

	*s = c->seats[from];
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
	c->seats[n] = (struct hc_seat){.rank = rank,
				       .device = device,
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
	s->flags = 0;
	s->running = 0;
	c->member_changes++;
}

void hc_part_drop_seat(struct hc_core *c, struct hc_part *p, uint32_t seat)
{
	uint32_t last = p->seats + p->nseats - 1;

	hc_part_release_seat(c, seat);
	if (seat != last)
		seat_move(c, last, seat);
	p->nseats--;
	c->nseats--;
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

/* ---- the state record ---- */

void hc_part_set_cause(struct hc_core *c, struct hc_part *p, uint16_t kind, uint32_t rank,
		       uint32_t pid, struct hc_str text)
{
	p->cause_kind = kind;
	p->cause_rank = p->event_rank = rank;
	p->cause_pid = p->event_pid = pid;
	if (p->cause == HC_NONE)
		p->cause = hc_pool_get(&c->cause_pool);
	if (p->cause != HC_NONE)
		hc_str_copy(text, c->causes[p->cause], HC_CAUSE_MAX);
}

const char *hc_part_cause(const struct hc_core *c, const struct hc_part *p)
{
	return p->cause == HC_NONE ? "" : c->causes[p->cause];
}

void hc_part_publish(struct hc_core *c, struct hc_part *p, bool fence)
{
	struct hc_action *a = hc_emit_action(c, HC_ACT_PUBLISH);
	size_t len = strlen(hc_part_cause(c, p));

	a->u.publish.uid = p->uid;
	a->u.publish.slot = hc_part_number(c, p);
	a->u.publish.id = p->id;
	a->u.publish.tag = HC_TAG(p->reuse, p->epoch);
	a->u.publish.epoch = p->epoch;
	a->u.publish.number = p->number;
	a->u.publish.nranks = p->nranks;
	a->u.publish.state = p->state;
	a->u.publish.cut_set = p->cut_set;
	a->u.publish.cut = p->cut;
	a->u.publish.fence = fence;
	a->u.publish.cause_kind = p->cause_kind;
	a->u.publish.cause_rank = p->cause_rank;
	a->u.publish.cause_pid = p->cause_pid;
	memcpy(c->out->bytes + c->out->used, hc_part_cause(c, p), len);
	a->len = (uint32_t)len;
	c->out->used += (uint32_t)len;
	p->published = true;
}

/* ---- words of the home ---- */

/* The rank has gone while its arrival was on the way: the home hears it now. */
static void too_late(struct hc_core *c, uint32_t node, const struct hc_m_verdict *m)
{
	struct hc_m_depart d = {.id = m->id,
				.incarnation = c->self.incarnation,
				.rank = m->rank,
				.pid = m->pid,
				.why = HC_W_depart_WITHDRAWN};

	hc_emit_send(c, node, &hc_desc_depart, &d);
}

/* The part that the home speaks of: that of the rank, or at least of the domain. */
static struct hc_part *part_of(struct hc_core *c, const struct hc_m_verdict *m, uint32_t node)
{
	struct hc_part *p = hc_part_by_key(c, m->key_a, m->key_b, m->rank, m->pid);

	return p && p->home_node == node ? p : NULL;
}

static void refuse_rank(struct hc_core *c, struct hc_part *p, const struct hc_m_verdict *m,
			int code, const char *text)
{
	uint32_t seat = hc_part_find_seat(c, p, m->rank);

	if (!hc_part_has(c, p, m->rank, m->pid))
		return;
	/* an earlier arrival of the same process may stand at the part's own home */
	if (p->id)
		hc_part_depart(c, p, seat, HC_W_depart_WITHDRAWN, "", 0);
	hc_part_fail_join(c, p, seat, code, text);
	hc_part_drop_seat(c, p, seat);
	hc_part_close_if_empty(c, p);
}

void hc_part_on_verdict(struct hc_core *c, uint32_t node, const struct hc_m_verdict *m)
{
	struct hc_part *p = part_of(c, m, node);
	char text[HC_TEXT_MAX + 1];

	hc_str_copy(m->text, text, sizeof(text));
	if (m->code) {
		if (p)
			refuse_rank(c, p, m, m->code, text);
		/* it may have arrived a second time meanwhile, on the word of this seat */
		if (p && m->pid)
			too_late(c, node, m);
		return;
	}
	if (p && (!p->id || p->id == m->id)) {
		hc_part_set_id(c, p, m->id);
		set_name(c, p, m->text);
		if (hc_part_has(c, p, m->rank, m->pid))
			return;
	} else if (p) {
		/* the home took it for the first rank of the next domain of that key */
		refuse_rank(c, p, m, HC_E_BUSY, "the domain was complete before this rank came");
	}
	if (m->pid)
		too_late(c, node, m);
}

static bool reserve(struct hc_core *c, struct hc_part *p)
{
	struct hc_session *s;
	struct hc_seat *t;
	uint32_t i;

	for (i = 0; i < p->nseats; i++) {
		t = &c->seats[p->seats + i];
		s = hc_session_get(c, t->session);
		if (!s || t->block != HC_NONE)
			continue;
		t->block = hc_session_block(c, s);
		if (t->block == HC_NONE)
			return false; /* blocks given so far go back with their seats */
	}
	return true;
}

static void answer_prepare(struct hc_core *c, struct hc_part *p, uint32_t node, int code,
			   uint32_t retry_ms, const char *text)
{
	struct hc_m_prepared m = {.id = p->id,
				  .epoch = p->epoch,
				  .incarnation = c->self.incarnation,
				  .code = (uint16_t)code,
				  .text = hc_str(text),
				  .retry_after_ms = retry_ms};

	hc_emit_send(c, node, &hc_desc_prepared, &m);
}

/* Store this node's rows; the part goes on with its step when they are. */
static void store(struct hc_core *c, struct hc_part *p, enum hc_part_step step)
{
	struct hc_m_domain_row row = {.id = p->id,
				      .epoch = p->epoch,
				      .state = p->state,
				      .number = p->number,
				      .uid = p->uid,
				      .nranks = p->nranks,
				      .slot = hc_part_number(c, p),
				      .priority = p->priority,
				      .weight = p->weight};
	uint32_t i;

	if (p->name != HC_NONE)
		row.name = hc_str(c->names[p->name]);
	for (i = 0; i < p->nseats; i++) {
		const struct hc_seat *s = &c->seats[p->seats + i];
		struct hc_m_member_row r = {
			.rank = s->rank, .device = s->device, .state = s->state};

		if (s->process != HC_NONE) {
			r.pid = c->processes[s->process].pid;
			r.started = c->processes[s->process].started;
			r.uid = c->processes[s->process].uid;
		}
		hc_assert(!hc_arr_put(&row.members, c->scratch, HC_OUT_BYTES, &hc_desc_member_row,
				      HC_PROTO_MAX, &r));
	}
	p->stored = hc_emit_put_domain(c, p->id, &row);
	if (!p->step)
		hc_list_push(&c->storing, &c->store_links, hc_part_timer(c, hc_part_number(c, p)));
	p->step = (uint8_t)step;
}

void hc_part_on_prepare(struct hc_core *c, uint32_t node, const struct hc_m_prepare *m)
{
	struct hc_part *p = hc_part_of_home(c, node, m->id);
	struct hc_m_prepared no = {.id = m->id,
				   .epoch = m->epoch,
				   .incarnation = c->self.incarnation,
				   .code = HC_E_GONE,
				   .text = hc_str("no rank of this domain is here any more"),
				   .retry_after_ms = HC_NONE};
	char text[900] = "";
	uint32_t retry_ms = HC_NONE;
	int r;

	if (!p || p->state > HC_W_domain_state_ACTIVATING || p->step || !p->nseats) {
		hc_emit_send(c, node, &hc_desc_prepared, &no);
		return;
	}
	p->state = HC_W_domain_state_ACTIVATING;
	p->epoch = m->epoch;
	p->priority = m->priority;
	p->weight = m->weight;
	if (!reserve(c, p)) {
		answer_prepare(c, p, node, HC_E_LIMIT, HC_NONE,
			       "the op arena of a process is full: it is in too many domains");
		return;
	}
	r = m->channels ? hc_channel_reserve(c, p, m, &retry_ms, text, sizeof(text)) : 0;
	if (r != HC_E_IN_PROGRESS)
		hc_part_reserved(c, p, m->persist == 1, r, retry_ms, text);
}

void hc_part_reserved(struct hc_core *c, struct hc_part *p, bool persist, int code,
		      uint32_t retry_ms, const char *text)
{
	if (p->state != HC_W_domain_state_ACTIVATING)
		return;
	if (code || !persist)
		answer_prepare(c, p, p->home_node, code, retry_ms, text);
	else
		store(c, p, PART_PREPARING);
}

static void open_part(struct hc_core *c, struct hc_part *p)
{
	uint32_t i;

	p->state = HC_W_domain_state_ACTIVE;
	for (i = 0; i < p->nseats; i++)
		c->seats[p->seats + i].state = HC_W_member_state_READY;
	hc_part_publish(c, p, false);
	p->event = HC_W_event_code_DOMAIN_ACTIVE;
	hc_part_add_work(c, p, WORK_JOINED | WORK_NOTIFY);
}

void hc_part_on_commit(struct hc_core *c, uint32_t node, const struct hc_m_commit *m)
{
	struct hc_part *p = hc_part_of_home(c, node, m->id);

	if (!p || p->state != HC_W_domain_state_ACTIVATING || p->epoch != m->epoch || p->step)
		return;
	p->nranks = m->nranks;
	p->number = m->number;
	if (m->stored && node == HC_SELF_NODE)
		open_part(c, p);
	else
		store(c, p, PART_COMMITTING);
}

void hc_part_stored(struct hc_core *c, struct hc_part *p)
{
	enum hc_part_step step = p->step;

	p->step = PART_NOTHING;
	switch (step) {
	case PART_NOTHING: return;
	case PART_PREPARING: answer_prepare(c, p, p->home_node, 0, HC_NONE, ""); return;
	case PART_COMMITTING: open_part(c, p); return;
	}
}

/* What is being stored is not waited for any more. */
static void forget_step(struct hc_core *c, struct hc_part *p)
{
	if (p->step)
		hc_list_del(&c->storing, &c->store_links, hc_part_timer(c, hc_part_number(c, p)));
	p->step = PART_NOTHING;
}

void hc_part_on_cancel(struct hc_core *c, uint32_t node, const struct hc_m_cancel *m)
{
	struct hc_part *p = hc_part_of_home(c, node, m->id);

	if (!p || p->state >= HC_W_domain_state_ACTIVE)
		return;
	if (p->stored)
		hc_emit_del_domain(c, p->id);
	forget_step(c, p);
	p->state = HC_W_domain_state_FAILED;
	p->code = m->code;
	p->cut = m->retry_after_ms; /* of a domain that never was: when to come again */
	hc_part_set_cause(c, p, HC_W_event_code_DOMAIN_FAILED, HC_NONE, 0, m->text);
	hc_channel_part_gone(c, p);
	hc_index_del(&c->part_by_key, hc_part_number(c, p));
	p->event = HC_W_event_code_DOMAIN_FAILED;
	hc_part_add_work(c, p, WORK_FAIL | WORK_NOTIFY | WORK_CLOSE);
}

void hc_part_on_state(struct hc_core *c, uint32_t node, const struct hc_m_state *m)
{
	struct hc_part *p = hc_part_of_home(c, node, m->id);
	char name[HC_NAME_MAX + 1];
	bool closes, same;

	if (!p || p->epoch != m->epoch || m->number <= p->number ||
	    p->state < HC_W_domain_state_ACTIVE || m->state < HC_W_domain_state_ACTIVE ||
	    m->state > HC_W_domain_state_DRAINING)
		return;
	same = p->state == m->state;
	closes = p->state == HC_W_domain_state_ACTIVE;
	p->number = m->number;
	p->state = m->state;
	p->event = m->kind;
	/* what comes to the same state later is told, but the first cause stays */
	if (!same)
		hc_part_set_cause(c, p, m->kind, m->rank, m->pid, m->text);
	p->event_rank = m->rank;
	p->event_pid = m->pid;
	p->event_node = hc_core_find_node(c, hc_str_copy(m->node, name, sizeof(name)));
	if (m->state == HC_W_domain_state_DAMAGED)
		hc_channel_part_gone(c, p);
	hc_part_publish(c, p, closes && m->state == HC_W_domain_state_SUSPENDED);
	hc_part_add_work(c, p, WORK_NOTIFY);
}

void hc_part_on_gone(struct hc_core *c, uint32_t node, const struct hc_m_gone *m)
{
	struct hc_part *p = hc_part_of_home(c, node, m->id);

	if (!p || p->epoch != m->epoch ||
	    (m->state != HC_W_domain_state_DESTROYED && m->state != HC_W_domain_state_FAILED))
		return;
	if (p->stored && node != HC_SELF_NODE)
		hc_emit_del_domain(c, p->id);
	forget_step(c, p);
	p->state = m->state;
	p->number++;
	p->event = m->state == HC_W_domain_state_FAILED ? HC_W_event_code_DOMAIN_FAILED
							: HC_W_event_code_DOMAIN_DESTROYED;
	p->code = HC_E_GONE;
	hc_part_set_cause(c, p, p->event, HC_NONE, 0, m->text);
	hc_channel_part_gone(c, p);
	hc_index_del(&c->part_by_key, hc_part_number(c, p));
	if (p->published)
		hc_part_publish(c, p, false);
	hc_part_add_work(c, p, WORK_FAIL | WORK_NOTIFY | WORK_CLOSE);
}

/* ---- told by sessions ---- */

void hc_part_depart(struct hc_core *c, struct hc_part *p, uint32_t seat, uint8_t why,
		    const char *text, uint64_t ticket)
{
	struct hc_seat *s = &c->seats[seat];
	struct hc_m_depart m = {.id = p->id,
				.epoch = p->epoch,
				.incarnation = c->self.incarnation,
				.rank = s->rank,
				.pid = s->process == HC_NONE ? 0 : c->processes[s->process].pid,
				.why = why,
				.begun = s->begun,
				.ticket = ticket,
				.text = hc_str(text)};

	hc_emit_send(c, p->home_node, &hc_desc_depart, &m);
}

void hc_part_seat_died(struct hc_core *c, uint32_t seat)
{
	struct hc_seat *s = &c->seats[seat];
	struct hc_part *p = hc_part(c, s->part);

	hc_channel_rank_gone(c, p, seat, WHY_DIED);
	hc_part_depart(c, p, seat, HC_W_depart_DIED, "", 0);
	hc_part_answer_leave(c, p, seat, HC_E_PEER_LOST, "the process exited");
	if (p->state < HC_W_domain_state_ACTIVE) {
		hc_part_drop_seat(c, p, seat);
		hc_part_close_if_empty(c, p);
		return;
	}
	hc_part_release_seat(c, seat);
	s->state = HC_W_member_state_DEAD;
	if (p->draining)
		hc_part_judge_drain(c, p);
}

void hc_part_seat_detached(struct hc_core *c, uint32_t seat)
{
	struct hc_seat *s = &c->seats[seat];
	struct hc_part *p = hc_part(c, s->part);

	c->member_changes++;
	if (p->state < HC_W_domain_state_ACTIVE && s->flags & SEAT_WAITS) {
		hc_channel_rank_gone(c, p, seat, WHY_LEFT);
		hc_part_depart(c, p, seat, HC_W_depart_WITHDRAWN, "", 0);
		hc_part_drop_seat(c, p, seat);
		hc_part_close_if_empty(c, p);
		return;
	}
	/* its references are still read in the arena that it had */
	if (s->state == HC_W_member_state_READY)
		s->state = HC_W_member_state_DETACHED;
}
