/* SPDX-License-Identifier: Apache-2.0 */
/* Barrier and exchange at the part; see sync.h. */
#include "sync.h"

#include "emit.h"
#include "part.h"
#include "session.h"
#include "syncpage.h"
#include "user.h"

#include "hcomm/hcomm.h"

#include <stdio.h>

#define COME_AGAIN_MS 20u /* when the page of an earlier daemon may still be brought */

/* ---- who asks ---- */

/* The seat of a rank of the caller's process: a seat that it comes back to is its own, too. */
static uint32_t own_seat(struct hc_core *c, const struct hc_session *s, const struct hc_part *p,
			 uint32_t rank)
{
	uint32_t seat = hc_part_find_seat(c, p, rank);
	const struct hc_seat *t = seat == HC_NONE ? NULL : &c->seats[seat];

	if (!t || t->process != s->process ||
	    (t->state != HC_W_member_state_READY && t->state != HC_W_member_state_DETACHED))
		return HC_NONE;
	return seat;
}

/* The part that a request speaks of, or NULL and the refusal has been sent. */
static struct hc_part *part_of(struct hc_core *c, const struct hc_session *s, uint32_t request,
			       uint64_t id, uint32_t epoch)
{
	struct hc_part *p = hc_part_by_id(c, id);
	char text[128];

	if (!p || p->state > HC_W_domain_state_DRAINING) {
		hc_emit_error(c, s->id, request, HC_E_GONE, "the domain is gone");
		return NULL;
	}
	if (p->epoch != epoch || p->state < HC_W_domain_state_ACTIVE) {
		HC_TEXT(text, "epoch %u: the domain is %s in epoch %u", epoch,
			hc_word_domain_state(p->state), p->epoch);
		hc_emit_error(c, s->id, request, HC_E_GONE, text);
		return NULL;
	}
	return p;
}

static bool is_own(struct hc_core *c, const struct hc_session *s, uint32_t request,
		   const struct hc_part *p, uint32_t rank)
{
	char text[128];

	if (own_seat(c, s, p, rank) != HC_NONE)
		return true;
	HC_TEXT(text, "rank %u is not a rank of this process (pid %u)", rank,
		c->processes[s->process].pid);
	hc_emit_error(c, s->id, request, HC_E_PERMISSION, text);
	return false;
}

/* At least one, and all of them the caller's. */
static bool are_own(struct hc_core *c, const struct hc_session *s, uint32_t request,
		    const struct hc_part *p, struct hc_arr ranks)
{
	struct hc_m_rank r;

	if (!ranks.count) {
		hc_emit_error(c, s->id, request, HC_E_INVALID, "no rank is named");
		return false;
	}
	while (hc_arr_next(&ranks, &hc_desc_rank, s->proto, &r))
		if (!is_own(c, s, request, p, r.rank))
			return false;
	return true;
}

/* ---- the page ---- */

uint32_t hc_sync_untold(const struct hc_core *c, const struct hc_part *p)
{
	const struct hc_seat *t;
	uint32_t i;

	for (i = 0; i < p->nseats; i++) {
		t = &c->seats[p->seats + i];
		/* a seat that was read from its row has no session before its process attaches */
		if (t->process != HC_NONE && !hc_seat_session(t) &&
		    t->state == HC_W_member_state_DETACHED)
			return t->rank;
	}
	return HC_NONE;
}

static struct hc_sync *sync_of(struct hc_core *c, const struct hc_part *p)
{
	return &c->syncs[hc_part_number(c, p)];
}

static void let_go(struct hc_core *c, struct hc_part *p)
{
	struct hc_action *a = hc_emit_action(c, HC_ACT_SYNC);

	a->u.sync.slot = hc_part_number(c, p);
}

void hc_sync_part_over(struct hc_core *c, struct hc_part *p)
{
	struct hc_sync *y = sync_of(c, p);

	if (y->state == SYNC_NONE)
		return;
	if (y->state == SYNC_OPEN)
		let_go(c, p);
	hc_user_release_memory(c, p->uid, y->bytes);
	*y = (struct hc_sync){0};
}

static void begin_page(struct hc_core *c, struct hc_part *p)
{
	*sync_of(c, p) = (struct hc_sync){
		.epoch = p->epoch, .bytes = HC_SYNC_BYTES(p->nseats), .state = SYNC_OPEN};
	hc_user_charge_memory(c, p->uid, HC_SYNC_BYTES(p->nseats));
}

static void come_again(struct hc_core *c, uint64_t session, uint32_t request, uint32_t rank)
{
	char text[160];

	HC_TEXT(text, "rank %u has not come back since hcommd was restarted, and may have the page",
		rank);
	hc_emit_again(c, session, request, COME_AGAIN_MS, text);
}

/* 0, or the outcome with the reason. */
static int page_check(struct hc_core *c, struct hc_part *p, char *text, size_t bytes)
{
	struct hc_sync *y = sync_of(c, p);

	if (p->state == HC_W_domain_state_DAMAGED) {
		snprintf(text, bytes, "%s", hc_part_cause(c, p));
		return HC_E_DAMAGED;
	}
	if (p->nseats != p->nranks) {
		snprintf(text, bytes,
			 "%u of the %u ranks are on this node: a barrier over several nodes is not "
			 "in this version",
			 p->nseats, p->nranks);
		return HC_E_NOT_SUPPORTED;
	}
	if (y->state != SYNC_NONE && y->epoch != p->epoch)
		hc_sync_part_over(c, p);
	if (y->state == SYNC_GIVEN) {
		snprintf(text, bytes,
			 "all ranks were given the page of the barrier; this one's was lost with "
			 "the session that it closed");
		return HC_E_GONE;
	}
	if (y->state == SYNC_NONE)
		return hc_user_may_memory(c, p->uid, HC_SYNC_BYTES(p->nseats), text, bytes);
	return 0;
}

void hc_sync_open(struct hc_core *c, struct hc_session *s, uint32_t request,
		  const struct hc_m_sync_open *m)
{
	struct hc_part *p = part_of(c, s, request, m->id, m->epoch);
	struct hc_m_sync_open_r r = {.id = m->id, .epoch = m->epoch};
	char text[HC_CAUSE_MAX];
	struct hc_action *a;
	uint32_t untold;
	int code;

	if (!p || !is_own(c, s, request, p, m->rank))
		return;
	code = page_check(c, p, text, sizeof(text));
	if (code) {
		hc_emit_error(c, s->id, request, code, text);
		return;
	}
	if (sync_of(c, p)->state == SYNC_NONE) {
		untold = hc_sync_untold(c, p);
		if (untold != HC_NONE) {
			come_again(c, s->id, request, untold);
			return;
		}
		begin_page(c, p);
	}
	r.lines = p->nseats;
	r.bytes = sync_of(c, p)->bytes;
	a = &c->out->acts[c->out->count];
	hc_emit_grant(c, s->id, request, &hc_desc_sync_open_r, &r, HC_GRANT_SYNC, p->uid, 0);
	a->u.reply.slot = hc_part_number(c, p);
	a->u.reply.lines = p->nseats;
	a->u.reply.epoch = p->epoch;
	a->u.reply.id = p->id;
}

/* The page is with these ranks; the last of all makes an end of ours. */
static void page_with(struct hc_core *c, struct hc_part *p, struct hc_arr ranks, uint16_t proto)
{
	struct hc_sync *y = sync_of(c, p);
	struct hc_m_rank r;
	uint32_t i;

	while (hc_arr_next(&ranks, &hc_desc_rank, proto, &r))
		c->seats[hc_part_find_seat(c, p, r.rank)].flags |= SEAT_PAGE;
	if (y->state != SYNC_OPEN)
		return;
	for (i = 0; i < p->nseats; i++)
		if (!(c->seats[p->seats + i].flags & SEAT_PAGE))
			return;
	y->state = SYNC_GIVEN;
	let_go(c, p);
}

static void keep_page(struct hc_core *c, struct hc_part *p)
{
	struct hc_action *a = hc_emit_action(c, HC_ACT_SYNC);

	a->u.sync.slot = hc_part_number(c, p);
	a->u.sync.keep = true;
	begin_page(c, p);
}

void hc_sync_have(struct hc_core *c, struct hc_session *s, uint32_t request,
		  const struct hc_m_sync_have *m, uint32_t page)
{
	struct hc_part *p = part_of(c, s, request, m->id, m->epoch);
	struct hc_m_exch_back w = {.id = m->id,
				   .epoch = m->epoch,
				   .incarnation = c->self.incarnation,
				   .fences = m->fences};

	if (!p || !are_own(c, s, request, p, m->ranks))
		return;
	if (m->page == 1 && sync_of(c, p)->state == SYNC_NONE) {
		if (page != HC_SYNC_BYTES(p->nseats)) {
			hc_emit_error(c, s->id, request, HC_E_INVALID,
				      "no sync page of this domain came with it");
			return;
		}
		keep_page(c, p);
	}
	if (m->page == 1)
		page_with(c, p, m->ranks, s->proto);
	if (m->fences)
		hc_emit_send(c, p->home_node, &hc_desc_exch_back, &w);
	hc_emit_done(c, s->id, request, 0, "");
}

/* ---- tickets ---- */

static uint64_t wait_open(struct hc_core *c, const struct hc_session *s, uint32_t request,
			  const struct hc_part *p)
{
	const uint32_t most = c->wait_pool.cap - c->wait_pool.cap / 16;
	uint32_t n = hc_user_waits(c, p->uid) < most ? hc_pool_get(&c->wait_pool) : HC_NONE;

	if (n == HC_NONE) {
		hc_emit_error(c, s->id, request, HC_E_LIMIT,
			      "too many requests of this user wait for an answer");
		return 0;
	}
	c->waits[n] = (struct hc_wait){.ticket = (uint64_t)++c->wait_generation << 32 | n,
				       .session = s->id,
				       .domain = p->id,
				       .request = request,
				       .home = p->home_node,
				       .uid = p->uid};
	hc_index_add(&c->wait_by_session, s->id, n);
	hc_user_wait(c, p->uid, 1);
	return c->waits[n].ticket;
}

static void wait_end(struct hc_core *c, uint32_t n)
{
	struct hc_wait *w = &c->waits[n];

	if (!w->session)
		hc_list_del(&c->wait_drops, &c->wait_links, n);
	hc_index_del(&c->wait_by_session, n);
	hc_user_wait(c, w->uid, -1);
	*w = (struct hc_wait){0};
	hc_pool_put(&c->wait_pool, n);
}

/* Who that was, and forget it; false when nobody is left to answer. */
static bool wait_take(struct hc_core *c, uint64_t ticket, uint64_t *session, uint32_t *request)
{
	uint32_t n = (uint32_t)ticket;

	if (!ticket || n >= c->wait_pool.fresh || c->waits[n].ticket != ticket)
		return false;
	*session = c->waits[n].session;
	*request = c->waits[n].request;
	wait_end(c, n);
	return hc_session_get(c, *session) != NULL;
}

void hc_sync_session_lost(struct hc_core *c, uint64_t session)
{
	uint32_t n;

	while ((n = hc_index_find(&c->wait_by_session, session)) != HC_NONE) {
		hc_index_del(&c->wait_by_session, n);
		c->waits[n].session = 0;
		hc_list_push(&c->wait_drops, &c->wait_links, n);
	}
}

/* Its home is lost. It may be there, but not within reach: then between whom it broke. */
static void answer_lost(struct hc_core *c, const struct hc_wait *w, const struct hc_part *p)
{
	const struct hc_known_node *n = &c->nodes[p->home_node];
	char text[HC_CAUSE_MAX];
	uint32_t i, rank = p->nseats ? c->seats[p->seats].rank : HC_NONE;

	for (i = p->seats; i < p->seats + p->nseats; i++)
		if (hc_seat_session(&c->seats[i]) == w->session) {
			rank = c->seats[i].rank;
			break;
		}
	if (n->lost_kind != HC_W_event_code_NODE_UNREACHABLE || rank == HC_NONE) {
		hc_emit_error(c, w->session, w->request, HC_E_DAMAGED, hc_part_cause(c, p));
		return;
	}
	HC_TEXT(text, "no path between rank %u on node %.64s and %s node %.64s, which %s", rank,
		c->self.name, p->first_home ? "rank 0 on" : "the home of the domain,", n->name,
		n->why);
	hc_emit_error(c, w->session, w->request, HC_E_LINK_UNAVAILABLE, text);
}

bool hc_sync_lost(struct hc_core *c)
{
	const struct hc_part *p;
	uint32_t n;

	for (n = 0; c->wait_pool.used && n < c->wait_pool.fresh; n++) {
		const struct hc_wait *w = &c->waits[n];

		p = w->ticket && w->session ? hc_part_by_id(c, w->domain) : NULL;
		if (!p || !p->orphan)
			continue;
		if (!hc_emit_room(c))
			return false;
		answer_lost(c, w, p);
		wait_end(c, n);
	}
	return true;
}

bool hc_sync_home_again(struct hc_core *c, uint32_t node)
{
	struct hc_m_exch_done m = {.code = HC_E_PEER_LOST};
	char text[HC_NAME_MAX + 96];
	uint32_t n;

	for (n = 0; n < c->wait_pool.fresh; n++)
		if (c->waits[n].ticket && c->waits[n].home == node && c->waits[n].session)
			break;
	if (n == c->wait_pool.fresh)
		return false;
	HC_TEXT(text, "the daemon of node %s, the home of the domain, was restarted meanwhile",
		c->nodes[node].name);
	m.ticket = c->waits[n].ticket;
	m.text = hc_str(text);
	hc_sync_on_done(c, &m);
	return true;
}

bool hc_sync_work(struct hc_core *c)
{
	uint32_t n = hc_list_first(&c->wait_drops);
	struct hc_m_exch_drop m = {.incarnation = c->self.incarnation};

	if (n == HC_NONE || !hc_emit_ring_spare(c))
		return false;
	m.id = c->waits[n].domain;
	m.ticket = c->waits[n].ticket;
	hc_emit_send(c, c->waits[n].home, &hc_desc_exch_drop, &m);
	wait_end(c, n);
	return true;
}

/* ---- the exchange ---- */

#define RING_IDLE (16u * 1024u)

/*
 * An answer may be many times as long as its question, and has to find room in the ring behind all
 * that is in there. So a question is taken while next to nothing is.
 */
static bool may_ask(struct hc_core *c, const struct hc_session *s, uint32_t request)
{
	if (hc_emit_ring_holds(c, HC_RING_BYTES - HC_RING_SPARE - RING_IDLE))
		return true;
	hc_emit_again(c, s->id, request, 1, "the daemon is busy");
	return false;
}

static bool key_is_fine(struct hc_core *c, const struct hc_session *s, uint32_t request,
			struct hc_str key)
{
	uint32_t i;

	for (i = 0; i < key.len; i++)
		if ((uint8_t)key.p[i] <= ' ' || (uint8_t)key.p[i] >= 0x7f)
			break;
	if (key.len && i == key.len)
		return true;
	hc_emit_error(c, s->id, request, HC_E_INVALID,
		      "a key has 1 to 127 bytes, printable ASCII without blanks");
	return false;
}

void hc_sync_put(struct hc_core *c, struct hc_session *s, uint32_t request,
		 const struct hc_m_put *m)
{
	struct hc_part *p = part_of(c, s, request, m->id, m->epoch);
	struct hc_m_exch_put w = {.id = m->id,
				  .epoch = m->epoch,
				  .incarnation = c->self.incarnation,
				  .rank = m->rank,
				  .version = m->version,
				  .key = m->key,
				  .value = m->value};

	if (!p || !is_own(c, s, request, p, m->rank) || !key_is_fine(c, s, request, m->key))
		return;
	if (m->value.len > HCOMM_VALUE_BYTES) {
		hc_emit_error(c, s->id, request, HC_E_INVALID, "a value has 32768 bytes at most");
		return;
	}
	if (!may_ask(c, s, request))
		return;
	w.ticket = wait_open(c, s, request, p);
	if (w.ticket)
		hc_emit_send(c, p->home_node, &hc_desc_exch_put, &w);
}

void hc_sync_get(struct hc_core *c, struct hc_session *s, uint32_t request,
		 const struct hc_m_get *m)
{
	struct hc_part *p = part_of(c, s, request, m->id, m->epoch);
	struct hc_m_exch_get w = {.id = m->id,
				  .epoch = m->epoch,
				  .incarnation = c->self.incarnation,
				  .timeout_ms = m->timeout_ms,
				  .known = m->known,
				  .whole = m->whole == 1,
				  .key = m->key};

	if (!p || !is_own(c, s, request, p, m->rank) || !key_is_fine(c, s, request, m->key) ||
	    !may_ask(c, s, request))
		return;
	w.ticket = wait_open(c, s, request, p);
	if (w.ticket)
		hc_emit_send(c, p->home_node, &hc_desc_exch_get, &w);
}

void hc_sync_fence(struct hc_core *c, struct hc_session *s, uint32_t request,
		   const struct hc_m_fence *m)
{
	struct hc_part *p = part_of(c, s, request, m->id, m->epoch);
	struct hc_m_exch_fence w = {.id = m->id,
				    .epoch = m->epoch,
				    .incarnation = c->self.incarnation,
				    .number = m->number,
				    .timeout_ms = m->timeout_ms,
				    .ranks = m->ranks};

	if (!p || !are_own(c, s, request, p, m->ranks))
		return;
	if (!may_ask(c, s, request))
		return;
	w.ticket = wait_open(c, s, request, p);
	if (w.ticket)
		hc_emit_send(c, p->home_node, &hc_desc_exch_fence, &w);
}

/* ---- words of the home ---- */

void hc_sync_on_got(struct hc_core *c, const struct hc_m_exch_got *m)
{
	struct hc_m_get_r r = {.version = m->version, .bytes = m->bytes, .value = m->value};
	uint64_t session;
	uint32_t request;

	if (wait_take(c, m->ticket, &session, &request))
		hc_emit_reply(c, session, request, &hc_desc_get_r, &r);
}

void hc_sync_on_done(struct hc_core *c, const struct hc_m_exch_done *m)
{
	char text[HC_TEXT_MAX + 1];
	uint64_t session;
	uint32_t request;

	if (!wait_take(c, m->ticket, &session, &request))
		return;
	hc_str_copy(m->text, text, sizeof(text));
	if (m->code)
		hc_emit_error(c, session, request, m->code, text);
	else
		hc_emit_done(c, session, request, m->value, text);
}
