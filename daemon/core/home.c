/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Making, finding, storing and ending a home; see home.h.
 *
 * A home changes in steps. A step that must be durable puts a row and waits in the core's list of
 * those who are being stored, which is in order of the rows' numbers; hc_home_stored then goes on
 * with what the step was for. Forming is not stored: after a restart libraries join again.
 */
#include "home.h"

#include "channel.h"
#include "digest.h"
#include "texts.h"
#include "emit.h"
#include "exchange.h"
#include "part.h"
#include "restore.h"
#include "rng.h"
#include "row.h"
#include "split.h"
#include "user.h"
#include "who.h"

#include <stdio.h>
#include <string.h>

uint64_t hc_home_draw_id(struct hc_core *c)
{
	uint64_t id;

	do
		id = hc_rng_u64(c);
	while (!id || hc_home_by_id(c, id) || hc_part_by_id(c, id));
	return id;
}

/* ---- find ---- */

struct hc_home *hc_home_by_id(struct hc_core *c, uint64_t id)
{
	uint32_t n = id ? hc_index_find(&c->home_by_id, id) : HC_NONE;

	return n == HC_NONE ? NULL : &c->homes[n];
}

struct hc_home *hc_home_by_key(struct hc_core *c, uint64_t key_a, uint64_t key_b)
{
	uint32_t n;

	for (n = hc_index_find(&c->home_by_key, key_a); n != HC_NONE;
	     n = hc_index_next(&c->home_by_key, n))
		if (c->home_busy[n].key_b == key_b &&
		    hc_home(c, c->home_busy[n].home)->state == HC_W_domain_state_FORMING)
			return hc_home(c, c->home_busy[n].home);
	return NULL;
}

/* One that is over keeps its name to itself no longer, though its row may not be gone yet. */
static struct hc_home *by_name(struct hc_core *c, uint32_t uid, struct hc_str name)
{
	struct hc_home *h;
	uint32_t n;

	for (n = hc_index_find(&c->home_by_name, hc_name_key(uid, name)); n != HC_NONE;
	     n = hc_index_next(&c->home_by_name, n)) {
		h = hc_home(c, c->names[n].owner);
		if (h->uid == uid && h->state < HC_W_domain_state_DESTROYED &&
		    hc_str_eq(hc_str(c->names[n].text), name))
			return h;
	}
	return NULL;
}

const char *hc_home_name(const struct hc_core *c, const struct hc_home *h, char *text, size_t bytes)
{
	if (h->name != HC_NONE)
		return c->names[h->name].text;
	snprintf(text, bytes, "domain-%016llx", (unsigned long long)h->id);
	return text;
}

struct hc_home *hc_home_named(struct hc_core *c, uint32_t uid, bool any, struct hc_str name)
{
	struct hc_home *h = name.len ? by_name(c, uid, name) : NULL;
	char text[32];
	uint32_t i;

	for (i = 0; !h && i < c->home_pool.fresh; i++)
		if (c->homes[i].id && (any || c->homes[i].uid == uid) &&
		    hc_str_eq(hc_str(hc_home_name(c, &c->homes[i], text, sizeof(text))), name))
			h = &c->homes[i];
	return h;
}

/* ---- the busy side ---- */

static const struct hc_home_busy at_rest = {.patience = HC_NONE, .cause_rank = HC_NONE};

const struct hc_home_busy *hc_home_now(const struct hc_core *c, const struct hc_home *h)
{
	return h->busy == HC_NONE ? &at_rest : &c->home_busy[h->busy];
}

struct hc_home_busy *hc_home_busy(struct hc_core *c, struct hc_home *h)
{
	if (h->busy == HC_NONE) {
		h->busy = hc_pool_get(&c->home_busy_pool);
		hc_assert(h->busy != HC_NONE); /* as many as homes */
		c->home_busy[h->busy] = at_rest;
		c->home_busy[h->busy].home = hc_home_number(c, h);
	}
	return &c->home_busy[h->busy];
}

void hc_home_alarm(struct hc_core *c, struct hc_home *h, uint64_t at)
{
	if (h->busy == HC_NONE && at == HC_NEVER)
		return;
	hc_home_busy(c, h);
	hc_timers_set(&c->timers, h->busy, at);
}

static void drop_patience(struct hc_core *c, struct hc_home *h)
{
	struct hc_home_busy *b = hc_home_busy(c, h);

	if (b->patience != HC_NONE)
		hc_spans_put(&c->patience_spans, b->patience, b->patience_order);
	b->patience = HC_NONE;
}

static void drop_busy(struct hc_core *c, struct hc_home *h)
{
	if (h->busy == HC_NONE)
		return;
	hc_assert(!hc_home_now(c, h)->asks.count && !h->step);
	drop_patience(c, h);
	hc_index_del(&c->home_by_key, h->busy);
	hc_index_del(&c->home_by_parent, h->busy);
	hc_home_alarm(c, h, HC_NEVER);
	hc_pool_put_front(&c->home_busy_pool, h->busy);
	h->busy = HC_NONE;
}

void hc_home_rest(struct hc_core *c, struct hc_home *h)
{
	const struct hc_home_busy *b = hc_home_now(c, h);

	if (h->state == HC_W_domain_state_ACTIVE && !h->step && !b->asks.count && !b->gone &&
	    !b->wish_end)
		drop_busy(c, h);
}

/* ---- make ---- */

static bool name_is_fine(struct hc_str name)
{
	uint32_t i;

	for (i = 0; i < name.len; i++)
		if ((uint8_t)name.p[i] <= ' ' || name.p[i] == 0x7f)
			return false;
	return true;
}

static int may_make(struct hc_core *c, uint32_t uid, struct hc_str name, char *text, size_t bytes)
{
	const struct hc_home *other;

	if (!name_is_fine(name)) {
		snprintf(text, bytes, "the name of the domain holds blanks or control characters");
		return HC_E_INVALID;
	}
	other = name.len ? by_name(c, uid, name) : NULL;
	if (other) {
		snprintf(text, bytes,
			 "name %.*s is taken by domain %016llx of the same owner, which is %s",
			 (int)name.len, name.p, (unsigned long long)other->id,
			 hc_word_domain_state(other->state));
		return HC_E_EXISTS;
	}
	return hc_user_may(c, uid, HC_CHARGE_HOME, text, bytes);
}

int hc_home_make(struct hc_core *c, uint64_t id, uint64_t key_a, uint64_t key_b, uint32_t uid,
		 uint32_t nranks, struct hc_str name, bool staged, char *text, size_t bytes)
{
	struct hc_home_busy *b;
	struct hc_home *h;
	uint32_t n;
	int r;

	r = may_make(c, uid, name, text, bytes);
	if (r)
		return r;
	n = hc_pool_get(&c->home_pool);
	hc_assert(n != HC_NONE);
	h = &c->homes[n];
	memset(h, 0, sizeof(*h));
	h->id = id;
	h->uid = uid;
	h->since = c->now;
	h->places = h->name = h->cause = h->busy = HC_NONE;
	h->state = HC_W_domain_state_FORMING;
	h->weight = 1;
	b = hc_home_busy(c, h);
	b->key_a = key_a;
	b->key_b = key_b;
	b->first = c->now;
	b->deadline = c->now + c->set.connect_timeout_ns;
	b->staged = staged;
	if (c->wishes[n].channels)
		c->wishes[n] = (struct hc_wish){0};
	c->nforming++;
	hc_user_charge(c, uid, HC_CHARGE_HOME);
	c->domain_changes++;
	if (name.len) {
		h->name = hc_name_get(c, n, uid, name);
		hc_index_add_in(&c->home_by_name, h->name);
	}
	hc_index_add_in(&c->home_by_id, n);
	hc_index_add_in(&c->home_by_key, h->busy);
	hc_home_alarm(c, h, b->deadline);
	if (nranks && !hc_home_set_nranks(c, h, nranks)) {
		hc_home_unmake(c, id);
		snprintf(text, bytes,
			 "ranks_max is reached on this node, or a domain of %u ranks is too large",
			 nranks);
		return HC_E_LIMIT;
	}
	return 0;
}

bool hc_home_set_nranks(struct hc_core *c, struct hc_home *h, uint32_t nranks)
{
	struct hc_home_busy *b = hc_home_busy(c, h);

	if (nranks > c->lim.ranks_per_domain)
		return false;
	b->patience = hc_spans_get(&c->patience_spans, nranks, &b->patience_order);
	if (b->patience == HC_NONE)
		return false;
	h->places = hc_spans_get(&c->place_spans, nranks, &h->order);
	if (h->places == HC_NONE) {
		drop_patience(c, h);
		return false;
	}
	memset(&c->places[h->places], 0, nranks * sizeof(*c->places));
	h->nranks = nranks;
	return true;
}

void hc_home_restore(struct hc_core *c, struct hc_home *h, const struct hc_m_domain_row *m)
{
	char text[HC_CAUSE_MAX];

	drop_busy(c, h); /* it does not form */
	hc_home_set_state(c, h, m->state);
	hc_digest_home(c, h);
	h->epoch = m->epoch;
	h->number = m->number;
	hc_digest_home(c, h);
	h->priority = m->priority;
	h->weight = m->weight;
	h->lost = m->state == HC_W_domain_state_DAMAGED;
	h->leaving = m->state == HC_W_domain_state_DRAINING;
	if (m->cut)
		hc_home_busy(c, h)->cut = m->cut;
	if (m->cause.len)
		hc_home_set_cause(c, h, hc_restore_kind(m), hc_restore_rank(m), m->cause_pid,
				  hc_str_copy(m->cause, text, sizeof(text)));
	if (h->lost)
		hc_home_busy(c, h)->said = true; /* stored with its entry */
}

struct hc_place *hc_home_place(struct hc_core *c, struct hc_home *h, uint32_t rank)
{
	hc_assert(rank < h->nranks);
	return &c->places[h->places + rank];
}

static void count_state(struct hc_core *c, uint8_t state, uint32_t by)
{
	if (state < HC_W_domain_state_ACTIVE)
		c->nforming += by;
	else if (state == HC_W_domain_state_ACTIVE)
		c->nactive += by;
	else if (state == HC_W_domain_state_SUSPENDED)
		c->nsuspended += by;
	else if (state == HC_W_domain_state_DAMAGED)
		c->ndamaged += by;
}

void hc_home_unmake(struct hc_core *c, uint64_t id)
{
	struct hc_home *h = hc_home_by_id(c, id);
	uint32_t n, i;

	if (!h)
		return;
	n = hc_home_number(c, h);
	drop_busy(c, h);
	hc_exchange_over(c, id, "the domain is gone");
	count_state(c, h->state, (uint32_t)-1);
	hc_digest_home(c, h);
	hc_index_del(&c->home_by_id, n);
	for (i = 0; i < h->nranks; i++)
		hc_who_drop(c, hc_home_place(c, h, i));
	if (h->places != HC_NONE)
		hc_spans_put(&c->place_spans, h->places, h->order);
	if (h->name != HC_NONE) {
		hc_index_del(&c->home_by_name, h->name);
		hc_pool_put_front(&c->name_pool, h->name);
	}
	if (h->cause != HC_NONE)
		hc_pool_put_front(&c->cause_pool, h->cause);
	hc_user_release(c, h->uid, HC_CHARGE_HOME);
	h->id = 0;
	h->state = HC_W_domain_state_NONE;
	c->domain_changes++;
	hc_pool_put_front(&c->home_pool, n);
}

/* ---- state ---- */

const char *hc_home_cause(const struct hc_core *c, const struct hc_home *h)
{
	return hc_cause_text(c, h->cause);
}

void hc_home_set_cause(struct hc_core *c, struct hc_home *h, uint16_t kind, uint32_t rank,
		       uint32_t pid, const char *text)
{
	struct hc_home_busy *b = hc_home_busy(c, h);

	b->cause_kind = kind;
	b->cause_rank = rank;
	b->cause_pid = pid;
	hc_cause_set(c, &h->cause, hc_str(text));
}

void hc_home_set_state(struct hc_core *c, struct hc_home *h, uint8_t state)
{
	hc_digest_home(c, h);
	count_state(c, h->state, (uint32_t)-1);
	count_state(c, state, 1);
	h->state = state;
	h->number++;
	h->since = c->now;
	hc_digest_home(c, h);
	c->domain_changes++;
}

bool hc_home_has_node(const struct hc_core *c, const struct hc_home *h, uint32_t node)
{
	uint32_t i;

	for (i = 0; i < h->nranks; i++)
		if (hc_who_at(c, &c->places[h->places + i], node))
			return true;
	return false;
}

/* asked: only those that still have what they had, and can answer for it. */
static uint32_t each_node(struct hc_core *c, struct hc_home *h, hc_home_node_fn fn, bool asked)
{
	const struct hc_place *pl;
	uint32_t i, n = 0, node;

	c->node_round++;
	for (i = 0; i < h->nranks; i++) {
		pl = &c->places[h->places + i];
		node = hc_who(c, pl)->node;
		if (pl->state == HC_W_member_state_EXPECTED ||
		    c->node_mark[node] == c->node_round || (asked && hc_who_lost(c, pl)))
			continue;
		c->node_mark[node] = c->node_round;
		fn(c, h, node);
		n++;
	}
	return n;
}

uint32_t hc_home_each_node(struct hc_core *c, struct hc_home *h, hc_home_node_fn fn)
{
	return each_node(c, h, fn, false);
}

void hc_home_ask_each(struct hc_core *c, struct hc_home *h, hc_home_node_fn fn)
{
	struct hc_place *pl;
	uint32_t i;

	for (i = 0; i < h->nranks; i++) {
		pl = hc_home_place(c, h, i);
		pl->heard = hc_who_lost(c, pl);
	}
	hc_home_busy(c, h)->pending = each_node(c, h, fn, true);
}

bool hc_home_heard(struct hc_core *c, struct hc_home *h, uint32_t node)
{
	struct hc_home_busy *b = hc_home_busy(c, h);
	struct hc_place *pl;
	bool news = false;
	uint32_t i;

	for (i = 0; i < h->nranks; i++) {
		pl = hc_home_place(c, h, i);
		if (pl->state == HC_W_member_state_EXPECTED || hc_who(c, pl)->node != node ||
		    pl->heard)
			continue;
		pl->heard = news = true;
	}
	hc_assert(!news || b->pending > 0);
	b->pending -= news;
	return news;
}

static void send_state(struct hc_core *c, struct hc_home *h, uint32_t node)
{
	struct hc_home_busy *b = hc_home_busy(c, h);
	struct hc_m_state m = {.id = h->id,
			       .epoch = h->epoch,
			       .incarnation = c->self.incarnation,
			       .number = h->number,
			       .state = h->state,
			       .kind = b->cause_kind,
			       .rank = b->cause_rank,
			       .pid = b->cause_pid,
			       .node = hc_str(c->self.name),
			       .text = hc_str(hc_home_cause(c, h))};

	if (b->cause_rank < h->nranks)
		m.node = hc_str(c->nodes[hc_who(c, hc_home_place(c, h, b->cause_rank))->node].name);
	hc_emit_send(c, node, &hc_desc_state, &m);
}

void hc_home_tell_one(struct hc_core *c, struct hc_home *h, uint32_t node)
{
	send_state(c, h, node);
	hc_home_rest(c, h);
}

void hc_home_tell_state(struct hc_core *c, struct hc_home *h)
{
	hc_home_each_node(c, h, send_state);
}

/* ---- store ---- */

uint64_t hc_home_put(struct hc_core *c, struct hc_home *h)
{
	return hc_row_put_home(c, h,
			       h->lost      ? HC_W_domain_state_DAMAGED
			       : h->leaving ? HC_W_domain_state_DRAINING
					    : HC_W_domain_state_ACTIVE);
}

void hc_home_store(struct hc_core *c, struct hc_home *h, enum hc_home_step step, uint16_t event,
		   const char *text)
{
	struct hc_home_busy *b = hc_home_busy(c, h);

	hc_assert(!h->step || h->step == HOME_PREPARING || h->step == HOME_CUTTING ||
		  h->step == HOME_DRAINING);
	if (step == HOME_ENDING)
		hc_emit_del_domain(c, h->id);
	else
		b->stored = hc_row_put_home(c, h,
					    step == HOME_COMMITTING ? HC_W_domain_state_ACTIVE
								    : HC_W_domain_state_DAMAGED);
	/* one of a batch: the batch has one entry for all */
	if (event && (!b->quiet || step != HOME_COMMITTING))
		b->stored = hc_emit_journal(c, event, h->id, h->epoch, b->cause_rank, b->cause_pid,
					    h->uid, text);
	if (step == HOME_COMMITTING)
		h->row = b->stored;
	h->step = (uint8_t)step;
	hc_list_push(&c->storing, &c->store_links, h->busy);
}

/* ---- the end ---- */

void hc_home_say_over(struct hc_core *c, uint32_t node, uint64_t id, uint32_t epoch)
{
	const struct hc_ended *e = hc_home_ended(c, id);
	struct hc_m_gone m = {.id = id,
			      .epoch = epoch,
			      .incarnation = c->self.incarnation,
			      .state = e ? e->state : HC_W_domain_state_DESTROYED,
			      .text = hc_str(e ? e->cause : "its home does not know it any more")};

	hc_emit_send(c, node, &hc_desc_gone, &m);
}

static void send_gone(struct hc_core *c, struct hc_home *h, uint32_t node)
{
	struct hc_m_gone m = {.id = h->id,
			      .epoch = h->epoch,
			      .incarnation = c->self.incarnation,
			      .state = h->state,
			      .text = hc_str(hc_home_cause(c, h))};

	hc_emit_send(c, node, &hc_desc_gone, &m);
}

/* In a ring: the oldest makes room. */
static struct hc_ended *next_ended(struct hc_core *c)
{
	struct hc_ended *e = &c->ended[c->ended_at];

	c->ended_at = (c->ended_at + 1) % c->lim.ended;
	if (c->ended_count < c->lim.ended)
		c->ended_count++;
	return e;
}

static struct hc_ended *ended_find(const struct hc_core *c, uint64_t id)
{
	uint32_t i;

	for (i = 0; i < c->ended_count; i++)
		if (c->ended[i].id == id && c->now - c->ended[i].at < c->set.ended_keep_ns)
			return &c->ended[i];
	return NULL;
}

static void remember(struct hc_core *c, struct hc_ended *e, const struct hc_ended *what,
		     const char *name, struct hc_str cause)
{
	*e = *what;
	e->at = c->now;
	hc_str_copy(hc_str(name), e->name, sizeof(e->name));
	hc_str_copy(cause, e->cause, sizeof(e->cause));
}

void hc_home_remember(struct hc_core *c, struct hc_home *h, uint8_t state)
{
	const struct hc_ended e = {.id = h->id,
				   .uid = h->uid,
				   .epoch = h->epoch,
				   .nranks = h->nranks,
				   .home = HC_SELF_NODE,
				   .state = state};
	char name[32];

	remember(c, next_ended(c), &e, hc_home_name(c, h, name, sizeof(name)),
		 hc_str(hc_home_cause(c, h)));
}

/* For people of this node, who would have to know where its home was. */
void hc_ended_far(struct hc_core *c, const struct hc_part *p, struct hc_str cause)
{
	const struct hc_ended e = {.id = p->id,
				   .uid = p->uid,
				   .epoch = p->epoch,
				   .nranks = p->nranks,
				   .home = p->home_node,
				   .state = p->state};
	struct hc_ended *was;
	char name[32];

	if (!p->id || !hc_part_is_far(p))
		return;
	was = ended_find(c, p->id); /* it may fail here, form again, and end */
	remember(c, was ? was : next_ended(c), &e, hc_part_name(c, p, name), cause);
}

const struct hc_ended *hc_ended_any(const struct hc_core *c, uint64_t id)
{
	return ended_find(c, id);
}

const struct hc_ended *hc_home_ended(const struct hc_core *c, uint64_t id)
{
	const struct hc_ended *e = hc_ended_any(c, id);

	return e && e->home == HC_SELF_NODE ? e : NULL;
}

void hc_home_over(struct hc_core *c, struct hc_home *h)
{
	hc_home_busy(c, h);
	hc_index_del(&c->home_by_key, h->busy);
	hc_index_del(&c->home_by_parent, h->busy);
	if (h->name != HC_NONE)
		hc_index_del(&c->home_by_name, h->name);
	hc_home_alarm(c, h, HC_NEVER);
	h->step = HOME_OVER;
	hc_list_push(&c->over, &c->store_links, h->busy);
}

bool hc_home_work(struct hc_core *c)
{
	uint32_t n = hc_list_first(&c->over), i, ask;
	const struct hc_home_busy *b;
	struct hc_home *h;
	const struct hc_ask *a;

	if (n == HC_NONE)
		return false;
	b = &c->home_busy[n];
	h = hc_home(c, b->home);
	for (i = 0; i < 16 && (ask = hc_list_first(&b->asks)) != HC_NONE; i++) {
		a = &c->asks[ask];
		hc_home_answer(c, h, ask, b->wish_end && !a->active ? 0 : b->end_code);
	}
	if (b->asks.count)
		return true;
	hc_list_del(&c->over, &c->store_links, n);
	h->step = HOME_NOTHING;
	hc_home_unmake(c, h->id);
	return true;
}

/* The end is stored: tell all, answer, forget. */
static void over(struct hc_core *c, struct hc_home *h)
{
	char text[HC_CAUSE_MAX + 64], name[32];

	HC_TEXT(text, "%s: %s", hc_home_name(c, h, name, sizeof(name)), hc_home_cause(c, h));
	hc_emit_log(c, HC_LOG_INFO, HC_W_event_code_DOMAIN_DESTROYED, h->id, HC_NONE, text);
	hc_home_each_node(c, h, send_gone);
	hc_home_remember(c, h, h->state);
	hc_home_over(c, h);
}

void hc_home_end(struct hc_core *c, struct hc_home *h, uint8_t state, int code, const char *text)
{
	struct hc_home_busy *b = hc_home_busy(c, h);

	hc_home_set_cause(c, h,
			  code == HC_E_FORCED ? HC_W_event_code_FORCED_RELEASE
					      : HC_W_event_code_DOMAIN_DESTROYED,
			  HC_NONE, 0, text);
	hc_home_set_state(c, h, state);
	b->end_code = (uint16_t)code;
	hc_split_parent_over(c, h->id, HC_E_GONE, text);
	hc_gang_home_gone(c, h->id);
	hc_exchange_over(c, h->id, text);
	hc_home_alarm(c, h, HC_NEVER);
	hc_home_store(c, h, HOME_ENDING, b->cause_kind, text);
}

void hc_home_stored(struct hc_core *c, struct hc_home *h)
{
	enum hc_home_step step = h->step;

	h->step = HOME_NOTHING;
	switch (step) {
	case HOME_COMMITTING: hc_home_commit(c, h); return;
	case HOME_DAMAGING: hc_home_damaged(c, h); return;
	case HOME_ENDING: over(c, h); return;
	case HOME_NOTHING:
	case HOME_PREPARING:
	case HOME_CUTTING:
	case HOME_OVER:
	case HOME_DRAINING: break;
	}
	hc_assert(step == HOME_COMMITTING); /* the others wait for no row */
}

void hc_home_timeout(struct hc_core *c, struct hc_home *h)
{
	if (h->state < HC_W_domain_state_ACTIVE)
		hc_home_form_timeout(c, h);
	else
		hc_home_life_timeout(c, h);
}
