/* SPDX-License-Identifier: Apache-2.0 */
/* Domains from their rows; see restore.h. A row that cannot be is said and left where it is. */
#include "restore.h"

#include "channel.h"
#include "device.h"
#include "digest.h"
#include "emit.h"
#include "home.h"
#include "pages.h"
#include "part.h"
#include "session.h"
#include "who.h"

#include <stdio.h>
#include <string.h>

#define NUMBERS_OF_START 12u /* bits: state numbers that one start of the daemon may give */

/* A row, and what its nodes are here. */
struct taken {
	const struct hc_m_domain_row *m;
	uint32_t home;   /* HC_SELF_NODE: the home is here */
	uint32_t *nodes; /* c->row_nodes: of the row, from 1 on; 0 is this one */
	uint32_t here;   /* members on this node */
	/* of the last seat, HC_NONE: ranks of a process mostly come one behind the other */
	uint32_t process, pid;
	uint64_t started;
};

static bool is_elsewhere(const struct hc_m_domain_row *m)
{
	static const uint8_t none[16];

	return memcmp(m->home_id.b, none, sizeof(none)) != 0;
}

static bool may_be(uint8_t state, bool elsewhere)
{
	return state == HC_W_domain_state_ACTIVE || state == HC_W_domain_state_DAMAGED ||
	       state == HC_W_domain_state_DRAINING ||
	       (elsewhere && state == HC_W_domain_state_ACTIVATING);
}

static const char *check(const struct hc_core *c, const struct hc_m_domain_row *m)
{
	const bool elsewhere = is_elsewhere(m);

	if (!m->id || hc_index_find(&c->home_by_id, m->id) != HC_NONE ||
	    hc_index_find(&c->part_by_id, m->id) != HC_NONE)
		return "its id is taken";
	if (!m->nranks || m->nranks > c->lim.ranks_per_domain)
		return "its number of ranks is above the limit";
	if (elsewhere ? !m->members.count || m->members.count > m->nranks
		      : m->members.count != m->nranks)
		return "its members are not all there";
	if (m->at.count && (elsewhere || m->at.count != m->nranks))
		return "its members' nodes are not all there";
	if (!may_be(m->state, elsewhere))
		return "its state is none that is stored";
	return NULL;
}

/* A node that a row names. It is expected to come, as it was; rows that differ in that say nothing
 * of it, and then it is asked what it has. */
static bool node_of(struct hc_core *c, const uint8_t id[16], struct hc_str name,
		    uint64_t incarnation, uint32_t *node)
{
	char text[HC_NAME_MAX + 1];
	struct hc_known_node *n;

	*node = hc_core_find_node(c, id);
	if (*node == HC_NONE)
		*node = hc_core_node(c, id, hc_str_copy(name, text, sizeof(text)));
	if (*node == HC_NONE || *node == HC_SELF_NODE)
		return false;
	n = &c->nodes[*node];
	if (!n->expected)
		n->incarnation = incarnation;
	else if (n->incarnation != incarnation)
		n->incarnation = 0;
	n->expected = true;
	return true;
}

static const char *nodes(struct hc_core *c, struct taken *t)
{
	const struct hc_m_domain_row *m = t->m;
	struct hc_arr a = m->far;
	struct hc_m_far_node f;
	struct hc_m_member_at at;
	uint32_t n = 0;

	t->home = HC_SELF_NODE;
	if (is_elsewhere(m) && !node_of(c, m->home_id.b, m->home, m->home_incarnation, &t->home))
		return "its home is no node that this one can know";
	t->nodes = c->row_nodes;
	while (n < c->lim.ranks_per_domain && hc_arr_next(&a, &hc_desc_far_node, HC_PROTO_MAX, &f))
		if (!node_of(c, f.id.b, f.name, f.incarnation, &t->nodes[++n]))
			return "one of its nodes is none that this one can know";
	t->here = m->at.count ? 0 : m->members.count;
	for (a = m->at; hc_arr_next(&a, &hc_desc_member_at, HC_PROTO_MAX, &at);) {
		if (at.node > n)
			return "a member of it is on a node that it does not name";
		t->here += !at.node;
	}
	return NULL;
}

/* Once for each process; a row may name thousands, so it happens in units of work. */
static void watch_later(struct hc_core *c, uint32_t process)
{
	c->processes[process].unwatched = true;
	if (c->watch_from == c->watch_to || process < c->watch_from)
		c->watch_from = process;
	if (process >= c->watch_to)
		c->watch_to = process + 1;
}

bool hc_restore_watch(struct hc_core *c)
{
	struct hc_process *p;
	struct hc_action *a;

	if (c->watch_from == c->watch_to)
		return false;
	p = &c->processes[c->watch_from++];
	if (!p->unwatched)
		return true;
	p->unwatched = false;
	a = hc_emit_action(c, HC_ACT_WATCH);
	a->u.watch.pid = p->pid;
	a->u.watch.started = p->started;
	return true;
}

/* Number of the process of a member, HC_NONE when there are too many. */
static uint32_t process_of(struct hc_core *c, struct taken *t, const struct hc_m_member_row *r)
{
	const struct hc_cred cred = {.pid = r->pid, .uid = r->uid, .started = r->started};
	bool fresh;

	if (t->process != HC_NONE && t->pid == r->pid && t->started == r->started)
		return t->process;
	t->process = hc_session_process(c, &cred, &fresh);
	t->pid = r->pid;
	t->started = r->started;
	if (t->process != HC_NONE && fresh)
		watch_later(c, t->process);
	return t->process;
}

/* The seat of a member that was here. The shell watches its process. */
static bool seat(struct hc_core *c, struct hc_part *p, struct taken *t,
		 const struct hc_m_member_row *r)
{
	uint32_t seat = hc_part_add_seat(c, p, r->rank, r->device), process;
	struct hc_seat *s;

	if (seat == HC_NONE)
		return false;
	s = &c->seats[seat];
	s->state = r->state;
	if (r->state == HC_W_member_state_DEAD || r->state == HC_W_member_state_LEFT)
		return true;
	s->state = r->pid ? HC_W_member_state_DETACHED : HC_W_member_state_READY;
	s->block = r->block;
	if (r->pid) {
		process = process_of(c, t, r);
		if (process == HC_NONE)
			return false;
		hc_session_hold(c, seat, process);
	}
	if (hc_device_get(c, r->device))
		hc_part_take_device(c, seat, r->shared == 1);
	return true;
}

static void place(struct hc_core *c, struct hc_home *h, const struct hc_m_member_row *r,
		  uint32_t node)
{
	struct hc_place *pl = hc_home_place(c, h, r->rank);

	*pl = (struct hc_place){
		.device = (uint16_t)r->device,
		.state = r->state == HC_W_member_state_JOINED ? HC_W_member_state_READY : r->state,
		.told = r->state == HC_W_member_state_DEAD ? 2 : 0};
	hc_who_take(c, pl, node, r->pid, r->started);
	h->arrived++;
	if (r->state == HC_W_member_state_DEAD || r->state == HC_W_member_state_LEFT)
		hc_home_busy(c, h)->gone++;
}

static bool may_sit(struct hc_core *c, const struct hc_home *h, const struct hc_part *p,
		    const struct hc_m_member_row *r, uint32_t nranks)
{
	if (r->rank >= nranks || r->device > HC_DEVICE_LAST || r->state > HC_W_member_state_LEFT)
		return false;
	return h ? c->places[h->places + r->rank].state == HC_W_member_state_EXPECTED
		 : hc_part_find_seat(c, p, r->rank) == HC_NONE;
}

/* h NULL: the home is elsewhere; p NULL: no member is here. */
static bool members(struct hc_core *c, struct hc_home *h, struct hc_part *p, struct taken *t)
{
	struct hc_arr a = t->m->members, where = t->m->at;
	struct hc_m_member_at at = {0};
	struct hc_m_member_row r;

	while (hc_arr_next(&a, &hc_desc_member_row, HC_PROTO_MAX, &r)) {
		if (where.count)
			hc_arr_next(&where, &hc_desc_member_at, HC_PROTO_MAX, &at);
		if (!may_sit(c, h, p, &r, t->m->nranks))
			return false;
		if (h)
			place(c, h, &r, t->nodes[at.node]);
		if (!at.node && !seat(c, p, t, &r))
			return false;
	}
	return true;
}

/* What those who left had begun: the home may not have heard it. */
static void begun(struct hc_core *c, const struct hc_part *p, struct hc_arr a)
{
	struct hc_m_member_begun r;
	uint32_t seat;

	while (hc_arr_next(&a, &hc_desc_member_begun, HC_PROTO_MAX, &r)) {
		seat = hc_part_find_seat(c, p, r.rank);
		if (seat == HC_NONE)
			continue;
		c->readings[seat] = (struct hc_reading){.begun = r.begun};
		c->seats[seat].flags |= SEAT_READ;
	}
}

static void restored_drain(struct hc_core *c, struct hc_part *p, const struct hc_m_domain_row *m)
{
	struct hc_part_busy *b = hc_part_busy(c, p);

	/* of another home's drain the cut may not have been known yet */
	if (p->home_node != HC_SELF_NODE)
		hc_part_set_cause(c, p, HC_W_event_code_DOMAIN_DRAINING, HC_NONE, 0, m->cause);
	if (p->home_node != HC_SELF_NODE && !m->cut)
		return;
	b->cut = m->cut;
	b->cut_set = HC_CUT_SET;
}

uint16_t hc_restore_kind(const struct hc_m_domain_row *m)
{
	return m->cause_kind ? m->cause_kind : (uint16_t)HC_W_event_code_DOMAIN_DAMAGED;
}

uint32_t hc_restore_rank(const struct hc_m_domain_row *m)
{
	return m->cause_rank < m->nranks ? m->cause_rank : HC_NONE;
}

static void part_state(struct hc_core *c, struct hc_part *p, const struct hc_m_domain_row *m)
{
	p->epoch = m->epoch;
	p->number = m->number;
	hc_part_become(c, p, m->state);
	p->priority = m->priority;
	p->weight = m->weight;
	p->key_a = m->key_a;
	p->key_b = m->key_b;
	hc_index_add_in(&c->part_by_key, hc_part_number(c, p));
	if (m->state == HC_W_domain_state_DRAINING)
		restored_drain(c, p, m);
	if (m->state == HC_W_domain_state_DAMAGED)
		hc_part_set_cause(c, p, hc_restore_kind(m), hc_restore_rank(m), m->cause_pid,
				  m->cause);
	if (m->state == HC_W_domain_state_ACTIVATING) {
		hc_part_busy(c, p)->prepared = true;
		hc_part_await_home(c, p);
	}
}

static void say(struct hc_core *c, const struct hc_m_domain_row *m, const char *why)
{
	char text[HC_CAUSE_MAX + 80];

	HC_TEXT(text, "stored domain %016llx is not taken back: %s", (unsigned long long)m->id,
		why);
	hc_emit_log(c, HC_LOG_ERROR, 0, m->id, HC_NONE, text);
}

static void undo(struct hc_core *c, struct hc_part *p, uint64_t id)
{
	while (p && p->nseats)
		hc_part_drop_seat(c, p, p->seats + p->nseats - 1);
	if (p) {
		hc_part_alarm(c, p, HC_NEVER);
		p->state = HC_W_domain_state_FORMING;
		hc_part_close_if_empty(c, p);
	}
	hc_home_unmake(c, id);
}

/* State numbers only rise, and those of an earlier start were not all stored. */
static uint32_t next_number(const struct hc_core *c, uint32_t stored)
{
	uint32_t base = c->self.start << NUMBERS_OF_START;

	return stored < base ? base : stored + 1;
}

/* The part that is here, if any; NULL and *why when it cannot be. */
static struct hc_part *part(struct hc_core *c, const struct taken *t, const char **why)
{
	struct hc_part *p;

	if (!t->here)
		return NULL;
	p = hc_part_restore(c, t->m, t->home, is_elsewhere(t->m) ? t->here : t->m->nranks);
	if (!p)
		*why = "the slot of its record is taken, or above domains_max";
	else
		part_state(c, p, t->m);
	return p;
}

static const char *take(struct hc_core *c, struct hc_home *h, struct taken *t)
{
	const char *why = NULL;
	struct hc_part *p = part(c, t, &why);

	if (why) {
		hc_home_unmake(c, t->m->id);
		return why;
	}
	if (h)
		hc_home_restore(c, h, t->m);
	if (!members(c, h, p, t)) {
		undo(c, p, t->m->id);
		return "its members contradict each other, or are above ranks_max";
	}
	if (h) {
		hc_digest_home(c, h); /* the nodes are there now */
		hc_home_restored(c, h);
	}
	if (p) {
		begun(c, p, t->m->gone);
		hc_digest_part(c, p);
		if (p->state >= HC_W_domain_state_ACTIVE)
			hc_part_publish(c, p, false);
		hc_part_rest(c, p);
	}
	if (h)
		hc_home_rest(c, h);
	return NULL;
}

/* Its node may have been told more, and told that to its ranks, before it was stored. */
static bool may_be_behind(const struct hc_m_domain_row *m)
{
	return is_elsewhere(m) && m->state <= HC_W_domain_state_ACTIVE;
}

static void take_shown(struct hc_m_domain_row *m, const struct hc_shown *shown)
{
	static const char why[] = "its node's daemon was restarted while it was drained";

	if (!shown->state)
		return;
	m->state = HC_W_domain_state_ACTIVE;
	if (shown->state != HC_W_domain_state_DRAINING)
		return;
	m->state = HC_W_domain_state_DRAINING;
	m->cut = shown->cut;
	m->cause = hc_str(why);
}

static void recall(struct hc_core *c, const struct hc_m_domain_row *m)
{
	struct hc_action *a = hc_emit_action(c, HC_ACT_RECALL);

	a->u.recall.uid = m->uid;
	a->u.recall.slot = m->slot;
	a->u.recall.id = m->id;
	a->u.recall.tag = HC_TAG(m->reuse, m->epoch);
}

void hc_restore_row(struct hc_core *c, struct hc_str row, const struct hc_shown *shown)
{
	struct hc_m_domain_row m = {0};
	struct taken t = {.m = &m, .process = HC_NONE};
	const char *why;
	char text[HC_CAUSE_MAX];

	if (hc_decode(&hc_desc_domain_row, HC_PROTO_MAX, (const uint8_t *)row.p, row.len, &m)) {
		say(c, &m, "its row is malformed");
		return;
	}
	why = check(c, &m);
	if (!why && may_be_behind(&m) && !shown->asked) {
		recall(c, &m);
		return;
	}
	if (may_be_behind(&m))
		take_shown(&m, shown);
	if (!why)
		why = nodes(c, &t);
	if (!why && t.home == HC_SELF_NODE) {
		m.number = next_number(c, m.number); /* that of a home elsewhere counts there */
		if (hc_home_make(c, m.id, m.id, ~m.id, m.uid, m.nranks, m.name, false, text,
				 sizeof(text)))
			why = text;
	}
	if (!why)
		why = take(c, hc_home_by_id(c, m.id), &t);
	if (why)
		say(c, &m, why);
}

void hc_restore_start(struct hc_core *c)
{
	hc_pool_settle(&c->part_pool);
	hc_channel_restored(c);
	c->started = true;
}
