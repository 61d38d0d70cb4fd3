/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Life of a part and its state record, and the words of its home; see part.h.
 *
 * A part follows its home: each word is judged by the state and epoch that the part holds, and one
 * that does not fit is ignored, since it may be late or come twice. What has to be told to ranks
 * afterwards is left as work (part_work.c).
 */
#include "part.h"

#include "ask.h"
#include "channel.h"
#include "digest.h"
#include "device.h"
#include "emit.h"
#include "join.h"
#include "home.h"
#include "pages.h"
#include "row.h"
#include "session.h"
#include "texts.h"
#include "sync.h"
#include "told.h"
#include "user.h"

#include <stdio.h>
#include <string.h>

/* ---- the busy side ---- */

static const struct hc_part_busy at_rest = {.event_node = HC_NONE, .requests = HC_NONE};

const struct hc_part_busy *hc_part_now(const struct hc_core *c, const struct hc_part *p)
{
	return p->busy == HC_NONE ? &at_rest : &c->part_busy[p->busy];
}

struct hc_part_busy *hc_part_busy(struct hc_core *c, struct hc_part *p)
{
	if (p->busy == HC_NONE) {
		p->busy = hc_pool_get(&c->part_busy_pool);
		hc_assert(p->busy != HC_NONE); /* as many as parts */
		c->part_busy[p->busy] = at_rest;
		c->part_busy[p->busy].part = hc_part_number(c, p);
	}
	return &c->part_busy[p->busy];
}

void hc_part_alarm(struct hc_core *c, struct hc_part *p, uint64_t at)
{
	if (p->busy == HC_NONE && at == HC_NEVER)
		return;
	hc_part_busy(c, p);
	hc_timers_set(&c->timers, hc_part_busy_number(c, p), at);
}

static void drop_busy(struct hc_core *c, struct hc_part *p)
{
	const struct hc_part_busy *b = hc_part_now(c, p);

	if (p->busy == HC_NONE)
		return;
	hc_assert(!b->queued && !b->step && !b->asks.count);
	hc_part_alarm(c, p, HC_NEVER);
	if (b->requests != HC_NONE)
		hc_spans_put(&c->seat_request_spans, b->requests, b->requests_order);
	hc_pool_put_front(&c->part_busy_pool, p->busy);
	p->busy = HC_NONE;
}

void hc_part_rest(struct hc_core *c, struct hc_part *p)
{
	const struct hc_part_busy *b = hc_part_now(c, p);

	if (p->state == HC_W_domain_state_ACTIVE && !b->queued && !b->step && !b->draining &&
	    !b->samples && !b->asks.count)
		drop_busy(c, p);
}

/* ---- life ---- */

static void set_name(struct hc_core *c, struct hc_part *p, struct hc_str name)
{
	if (!name.len || p->name != HC_NONE)
		return;
	p->name = hc_name_get(c, hc_part_number(c, p), p->uid, name);
	hc_index_add_in(&c->part_by_name, p->name);
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
	p->name = p->cause = p->busy = HC_NONE;
	p->home_node = HC_SELF_NODE;
	hc_part_become(c, p, HC_W_domain_state_FORMING);
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
	hc_index_add_in(&c->part_by_key, n);
	return p;
}

const char *hc_part_name(const struct hc_core *c, const struct hc_part *p, char text[32])
{
	if (p->name != HC_NONE)
		return c->names[p->name].text;
	snprintf(text, 32, "domain-%016llx", (unsigned long long)p->id);
	return text;
}

void hc_part_of_node(struct hc_core *c, struct hc_part *p, uint32_t node)
{
	c->nfar += node != HC_SELF_NODE;
	c->nfar -= p->home_node != HC_SELF_NODE;
	p->home_node = node;
}

struct hc_part *hc_part_restore(struct hc_core *c, const struct hc_m_domain_row *m, uint32_t home,
				uint32_t seats)
{
	struct hc_part *p;

	if (!hc_pool_claim(&c->part_pool, m->slot))
		return NULL;
	p = part_begin(c, m->slot, m->uid, m->nranks, m->name);
	p->reuse = m->reuse;
	hc_part_of_node(c, p, home);
	p->kept = home != HC_SELF_NODE;
	/* all at once: growing would need room for both */
	p->seats = hc_spans_get(&c->seat_spans, seats, &p->order);
	hc_part_set_id(c, p, m->id);
	return p;
}

struct hc_part *hc_part_by_name(struct hc_core *c, uint32_t uid, struct hc_str name)
{
	struct hc_part *p;
	uint32_t n;

	for (n = hc_index_find(&c->part_by_name, hc_name_key(uid, name)); n != HC_NONE;
	     n = hc_index_next(&c->part_by_name, n)) {
		p = hc_part(c, c->names[n].owner);
		if (p->uid == uid && hc_str_eq(hc_str(c->names[n].text), name))
			return p;
	}
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

	return p && p->home_node == node && !p->orphan ? p : NULL;
}

void hc_part_set_id(struct hc_core *c, struct hc_part *p, uint64_t id)
{
	if (p->id)
		return;
	p->id = id;
	p->home_life = c->nodes[p->home_node].life;
	hc_index_add_in(&c->part_by_id, hc_part_number(c, p));
}

void hc_part_unset_id(struct hc_core *c, struct hc_part *p)
{
	hc_index_del(&c->part_by_id, hc_part_number(c, p));
	p->id = 0;
	p->home_life = c->nodes[p->home_node].life;
}

void hc_part_free(struct hc_core *c, struct hc_part *p)
{
	uint32_t n = hc_part_number(c, p);

	hc_assert(!p->nseats);
	hc_digest_part(c, p);
	drop_busy(c, p);
	hc_index_del(&c->part_by_key, n);
	hc_index_del(&c->part_by_id, n);
	if (p->seats != HC_NONE)
		hc_spans_put(&c->seat_spans, p->seats, p->order);
	if (p->name != HC_NONE) {
		hc_index_del(&c->part_by_name, p->name);
		hc_pool_put_front(&c->name_pool, p->name);
	}
	if (p->cause != HC_NONE)
		hc_pool_put_front(&c->cause_pool, p->cause);
	p->name = p->cause = p->seats = HC_NONE;
	hc_part_of_node(c, p, HC_SELF_NODE);
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
	if (!p->nseats && !hc_part_now(c, p)->work && p->state == HC_W_domain_state_FORMING)
		hc_part_free(c, p);
}

/* ---- the state record ---- */

void hc_part_set_cause(struct hc_core *c, struct hc_part *p, uint16_t kind, uint32_t rank,
		       uint32_t pid, struct hc_str text)
{
	struct hc_part_busy *b = hc_part_busy(c, p);

	b->cause_kind = kind;
	b->cause_rank = b->event_rank = rank;
	b->cause_pid = b->event_pid = pid;
	hc_cause_set(c, &p->cause, text);
}

const char *hc_part_cause(const struct hc_core *c, const struct hc_part *p)
{
	return hc_cause_text(c, p->cause);
}

void hc_part_publish(struct hc_core *c, struct hc_part *p, bool fence)
{
	const struct hc_part_busy *b = hc_part_now(c, p);
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
	a->u.publish.cut_set = b->cut_set;
	a->u.publish.cut = b->cut;
	a->u.publish.fence = fence;
	a->u.publish.cause_kind = b->cause_kind;
	a->u.publish.cause_rank = b->cause_rank;
	a->u.publish.cause_pid = b->cause_pid;
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
		if (hc_part_has(c, p, m->rank, m->pid)) {
			hc_join_tell_limit(c, p, m);
			return;
		}
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
		s = hc_session_get(c, hc_seat_session(t));
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

/* The answer to PREPARE waits for the row. */
static void store_prepared(struct hc_core *c, struct hc_part *p)
{
	struct hc_part_busy *b = hc_part_busy(c, p);

	b->stored = hc_row_put_part(c, p);
	if (!b->step)
		hc_list_push(&c->storing, &c->store_links, hc_part_busy_number(c, p));
	b->step = PART_PREPARING;
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

	if (!p || p->state > HC_W_domain_state_ACTIVATING || hc_part_now(c, p)->step ||
	    !p->nseats) {
		hc_emit_send(c, node, &hc_desc_prepared, &no);
		return;
	}
	hc_part_become(c, p, HC_W_domain_state_ACTIVATING);
	p->home_life = c->nodes[node].life;
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
	if (code || !persist) {
		answer_prepare(c, p, p->home_node, code, retry_ms, text);
		return;
	}
	store_prepared(c, p);
	hc_part_await_home(c, p);
}

/* One whose session was lost with an earlier daemon comes back later. */
static uint8_t seated(struct hc_core *c, const struct hc_seat *s)
{
	const bool lost = s->process != HC_NONE && !hc_session_get(c, hc_seat_session(s));

	return lost ? HC_W_member_state_DETACHED : HC_W_member_state_READY;
}

static void open_part(struct hc_core *c, struct hc_part *p)
{
	uint32_t i;

	hc_part_become(c, p, HC_W_domain_state_ACTIVE);
	hc_digest_part(c, p);
	hc_part_alarm(c, p, HC_NEVER);
	hc_part_busy(c, p)->prepared = false;
	p->roll = hc_roll_of(c, hc_part_now(c, p)->list_a, hc_part_now(c, p)->list_b);
	for (i = 0; i < p->nseats; i++)
		c->seats[p->seats + i].state = seated(c, &c->seats[p->seats + i]);
	hc_part_publish(c, p, false);
	hc_part_busy(c, p)->event = HC_W_event_code_DOMAIN_ACTIVE;
	hc_part_add_work(c, p, WORK_JOINED | WORK_NOTIFY);
}

void hc_part_on_commit(struct hc_core *c, uint32_t node, const struct hc_m_commit *m)
{
	struct hc_part *p = hc_part_of_home(c, node, m->id);

	if (!p || p->state != HC_W_domain_state_ACTIVATING || p->epoch != m->epoch ||
	    hc_part_now(c, p)->step)
		return;
	p->nranks = m->nranks;
	if (m->number > p->number) /* told again after a restart it has none */
		p->number = m->number;
	open_part(c, p);
	hc_part_busy(c, p)->formed = true;
	/* not waited for: should it be lost, what was prepared is stored, and the home knows */
	if (!m->stored || node != HC_SELF_NODE)
		hc_row_put_part(c, p);
}

void hc_part_stored(struct hc_core *c, struct hc_part *p)
{
	struct hc_part_busy *b = hc_part_busy(c, p);
	enum hc_part_step step = b->step;

	b->step = PART_NOTHING;
	switch (step) {
	case PART_NOTHING: return;
	case PART_PREPARING:
		b->prepared = true;
		answer_prepare(c, p, p->home_node, 0, HC_NONE, "");
		return;
	}
}

void hc_part_forget_step(struct hc_core *c, struct hc_part *p)
{
	struct hc_part_busy *b = hc_part_busy(c, p); /* it goes on to end */

	if (b->step)
		hc_list_del(&c->storing, &c->store_links, hc_part_busy_number(c, p));
	b->step = PART_NOTHING;
}

void hc_part_on_cancel(struct hc_core *c, uint32_t node, const struct hc_m_cancel *m)
{
	struct hc_part *p = hc_part_of_home(c, node, m->id);

	if (p && p->state < HC_W_domain_state_ACTIVE)
		hc_part_fail(c, p, m->code, m->retry_after_ms, m->text);
}

void hc_part_fail(struct hc_core *c, struct hc_part *p, uint16_t code, uint32_t retry_ms,
		  struct hc_str text)
{
	struct hc_part_busy *b;

	if (p->kept)
		hc_emit_del_domain(c, p->id);
	p->kept = false;
	hc_part_forget_step(c, p);
	hc_part_become(c, p, HC_W_domain_state_FAILED);
	b = hc_part_busy(c, p);
	b->work &= (uint8_t)~WORK_ARRIVE;
	hc_part_alarm(c, p, HC_NEVER);
	b->code = code;
	b->cut = retry_ms; /* of a domain that never was: when to come again */
	hc_part_set_cause(c, p, HC_W_event_code_DOMAIN_FAILED, HC_NONE, 0, text);
	hc_part_told_end(c, p);
	hc_ended_far(c, p, text);
	hc_channel_part_gone(c, p);
	hc_index_del(&c->part_by_key, hc_part_number(c, p));
	b->event = HC_W_event_code_DOMAIN_FAILED;
	hc_part_add_work(c, p, WORK_FAIL | WORK_NOTIFY | WORK_CLOSE);
}

/* The home was restarted, and knows of no drain: who asked for it asks again. */
static void reopen(struct hc_core *c, struct hc_part *p)
{
	struct hc_part_busy *b = hc_part_busy(c, p);

	b->draining = b->reported = b->drained = false;
	b->cut_set = HC_CUT_NONE;
	b->cut = 0;
}

void hc_part_on_state(struct hc_core *c, uint32_t node, const struct hc_m_state *m)
{
	struct hc_part *p = hc_part_of_home(c, node, m->id);
	struct hc_part_busy *b;
	char name[HC_NAME_MAX + 1];
	bool closes, same, drains;

	if (!p || p->epoch != m->epoch || m->number <= p->number ||
	    p->state < HC_W_domain_state_ACTIVE || m->state < HC_W_domain_state_ACTIVE ||
	    m->state > HC_W_domain_state_DRAINING)
		return;
	/* it gave its home up, and was restarted: that is final, as the home hears of it */
	if (p->state == HC_W_domain_state_DAMAGED && m->state < HC_W_domain_state_DAMAGED)
		return;
	hc_part_told_state(c, p, m);
	same = p->state == m->state;
	closes = p->state == HC_W_domain_state_ACTIVE;
	drains = p->state == HC_W_domain_state_DRAINING;
	hc_digest_part(c, p);
	p->number = m->number;
	hc_part_become(c, p, m->state);
	hc_digest_part(c, p);
	b = hc_part_busy(c, p);
	b->event = m->kind;
	p->away = false; /* the home has spoken */
	if ((drains || b->draining) && m->state != HC_W_domain_state_DRAINING)
		reopen(c, p);
	/* what comes to the same state later is told, but the first cause stays: of a loss, for
	 * which that of a drain gives way */
	if (m->state == HC_W_domain_state_ACTIVE)
		hc_part_set_cause(c, p, 0, 0, 0, (struct hc_str){0});
	else if (!same || m->state == HC_W_domain_state_SUSPENDED ||
		 b->cause_kind == HC_W_event_code_DOMAIN_DRAINING)
		hc_part_set_cause(c, p, m->kind, m->rank, m->pid, m->text);
	if (m->state == HC_W_domain_state_ACTIVE)
		b->event = HC_W_event_code_DOMAIN_ACTIVE;
	b->event_rank = m->rank;
	b->event_pid = m->pid;
	b->event_node = hc_core_node_named(c, hc_str_copy(m->node, name, sizeof(name)));
	if (m->state == HC_W_domain_state_DAMAGED)
		hc_channel_part_gone(c, p);
	hc_part_publish(c, p, closes && m->state == HC_W_domain_state_SUSPENDED);
	if (drains || m->state >= HC_W_domain_state_DAMAGED)
		hc_row_changed(c, p);
	if (same && m->state == HC_W_domain_state_ACTIVE) /* a restarted home: nothing is new */
		hc_part_rest(c, p);
	else
		hc_part_add_work(c, p, WORK_NOTIFY);
}

void hc_part_on_gone(struct hc_core *c, uint32_t node, const struct hc_m_gone *m)
{
	struct hc_part *p = hc_part_by_id(c, m->id);

	/* an orphan, too, takes this from the home that was lost */
	if (!p || p->home_node != node || p->epoch != m->epoch ||
	    p->state >= HC_W_domain_state_DESTROYED ||
	    (m->state != HC_W_domain_state_DESTROYED && m->state != HC_W_domain_state_FAILED))
		return;
	hc_part_end(c, p, m->state, m->text);
}

void hc_part_end(struct hc_core *c, struct hc_part *p, uint8_t state, struct hc_str text)
{
	struct hc_part_busy *b;

	if (p->kept && p->home_node != HC_SELF_NODE)
		hc_emit_del_domain(c, p->id);
	p->kept = false;
	hc_part_forget_step(c, p);
	hc_digest_part(c, p);
	hc_part_become(c, p, state);
	p->number++;
	p->away = false;
	hc_part_alarm(c, p, HC_NEVER); /* it may have asked its home whether it had committed */
	b = hc_part_busy(c, p);
	b->event = state == HC_W_domain_state_FAILED ? HC_W_event_code_DOMAIN_FAILED
						     : HC_W_event_code_DOMAIN_DESTROYED;
	b->code = HC_E_GONE;
	hc_part_set_cause(c, p, b->event, HC_NONE, 0, text);
	hc_part_told_end(c, p);
	hc_ended_far(c, p, text);
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
				.begun = hc_seat_reading(c, seat)->begun,
				.ticket = ticket,
				.text = hc_str(text)};

	if (ticket && !text[0])
		hc_ask_keep(c, ticket, &hc_desc_depart, &m);
	if (p->orphan) /* nobody is there to hear it */
		hc_ask_answer(c, ticket, 0, "");
	else
		hc_emit_send(c, p->home_node, &hc_desc_depart, &m);
}

void hc_part_seat_died(struct hc_core *c, uint32_t seat)
{
	struct hc_seat *s = &c->seats[seat];
	struct hc_part *p = hc_part(c, s->part);

	hc_channel_rank_gone(c, p, seat, WHY_DIED);
	hc_part_depart(c, p, seat, HC_W_depart_DIED, "", 0);
	hc_part_told_death(c, p, seat);
	hc_part_answer_leave(c, p, seat, HC_E_PEER_LOST, "the process exited");
	if (p->state < HC_W_domain_state_ACTIVE) {
		hc_part_drop_seat(c, p, seat);
		hc_part_close_if_empty(c, p);
		return;
	}
	hc_part_release_seat(c, seat);
	s->state = HC_W_member_state_DEAD;
	if (hc_part_now(c, p)->draining)
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
