/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions and processes; see session.h. */
#include "session.h"

#include "drain.h"
#include "emit.h"
#include "pages.h"
#include "part.h"
#include "rights.h"
#include "seek.h"
#include "sync.h"

#include <stdio.h>
#include <string.h>

#define BLOCK_WORDS (HC_ARENA_BLOCKS / 64)

struct hc_session *hc_session_get(struct hc_core *c, uint64_t id)
{
	uint32_t slot = (uint32_t)id;

	if (!id || slot >= c->lim.sessions || c->sessions[slot].id != id)
		return NULL;
	return &c->sessions[slot];
}

/* ---- processes ---- */

static uint32_t process_find(struct hc_core *c, uint32_t pid, uint64_t started)
{
	const struct hc_process *last = &c->processes[c->process_last];
	uint32_t n;

	if ((last->sessions || last->seats.count) && last->pid == pid && last->started == started)
		return c->process_last;
	for (n = hc_index_find(&c->process_index, pid); n != HC_NONE;
	     n = hc_index_next(&c->process_index, n))
		if (c->processes[n].started == started)
			return c->process_last = n;
	return HC_NONE;
}

uint32_t hc_session_process(struct hc_core *c, const struct hc_cred *cred, bool *fresh)
{
	uint32_t n = process_find(c, cred->pid, cred->started);

	*fresh = n == HC_NONE;

	if (n == HC_NONE) {
		n = hc_pool_get(&c->process_pool);
		if (n == HC_NONE)
			return n;
		memset(&c->processes[n], 0, sizeof(c->processes[n]));
		c->processes[n].pid = cred->pid;
		c->processes[n].uid = cred->uid;
		c->processes[n].started = cred->started;
		hc_index_add_in(&c->process_index, n);
	}
	return n;
}

static void process_leave(struct hc_core *c, uint32_t n)
{
	struct hc_process *p = &c->processes[n];

	if (p->sessions || p->seats.count || p->reaping)
		return;
	hc_index_del(&c->process_index, n);
	hc_pool_put(&c->process_pool, n);
}

/* ---- hello ---- */

static void hello_answer(struct hc_core *c, struct hc_session *s, uint32_t request, uint32_t uid)
{
	struct hc_m_hello_r m = {
		.proto = s->proto,
		.fence = s->fence,
		.start = c->self.start,
		.session = s->id,
		.incarnation = c->self.incarnation,
		.node_name = hc_str(c->self.name),
		.build = hc_str(c->self.build),
		.blocks = HC_ARENA_BLOCKS,
		.uid = uid,
		.role = s->role,
		.connect_timeout_ms = (uint32_t)(c->set.connect_timeout_ns / 1000000u),
	};

	memcpy(m.node.b, c->self.node_id, sizeof(m.node.b));
	hc_emit_grant(c, s->id, request, &hc_desc_hello_r, &m, HC_GRANT_ARENA, uid, 0);
}

void hc_session_hello(struct hc_core *c, const struct hc_event *ev)
{
	const struct hc_cred *cred = ev->u.request.cred;
	const struct hc_frame *f = ev->u.request.frame;
	uint32_t slot = (uint32_t)ev->session, n;
	struct hc_m_hello m;
	struct hc_session *s;
	bool fresh;
	char text[160];

	hc_assert(slot < c->lim.sessions && !c->sessions[slot].id);
	if (hc_decode(&hc_desc_hello, HC_PROTO_MIN, f->body, f->body_len, &m)) {
		hc_emit_error(c, ev->session, f->head.id, HC_E_MALFORMED, "hello: malformed");
		return;
	}
	if (m.proto_min > HC_PROTO_MAX || m.proto_max < HC_PROTO_MIN) {
		HC_TEXT(text,
			"the library speaks protocol %u to %u, the daemon %d to %d: upgrade the %s",
			m.proto_min, m.proto_max, HC_PROTO_MIN, HC_PROTO_MAX,
			m.proto_min > HC_PROTO_MAX ? "daemon" : "library");
		hc_emit_error(c, ev->session, f->head.id, HC_E_VERSION, text);
		return;
	}
	if (!hc_right_role(HC_MSG_hello, cred->role)) {
		hc_emit_error(c, ev->session, f->head.id, HC_E_PERMISSION,
			      hc_right_text(HC_MSG_hello));
		return;
	}
	n = hc_session_process(c, cred, &fresh);
	if (n == HC_NONE) {
		hc_emit_error(c, ev->session, f->head.id, HC_E_LIMIT,
			      "too many client processes: clients_max is reached");
		return;
	}
	s = &c->sessions[slot];
	memset(s, 0, sizeof(*s));
	s->blocks = &c->session_blocks[(size_t)slot * BLOCK_WORDS];
	s->blocks[0] = 1ull << HC_NONCE_BLOCK; /* never given to a rank */
	s->id = ev->session;
	s->process = n;
	s->proto = m.proto_max < HC_PROTO_MAX ? m.proto_max : HC_PROTO_MAX;
	s->role = cred->role;
	s->fence = m.fence && ev->u.request.fence && c->self.fence;
	hc_str_copy(m.build, s->build, sizeof(s->build));
	hc_str_copy(m.job, s->job, sizeof(s->job));
	c->processes[n].sessions++;
	c->nsessions++;
	c->session_changes++;
	hello_answer(c, s, f->head.id, cred->uid);
}

/* A session is on the list of watchers while it watches anything. */
static void watch(struct hc_core *c, struct hc_session *s, bool all, uint64_t domain)
{
	bool was = s->subscribed || s->watching;
	bool is = all || domain;

	s->subscribed = all;
	s->watching = domain;
	if (is && !was)
		hc_list_push(&c->watchers, &c->session_links, (uint32_t)s->id);
	if (was && !is)
		hc_list_del(&c->watchers, &c->session_links, (uint32_t)s->id);
}

void hc_session_subscribe(struct hc_core *c, struct hc_session *s, uint32_t request,
			  const struct hc_m_subscribe *m)
{
	if (!m->id) {
		watch(c, s, m->on != 0, s->watching);
		hc_emit_done(c, s->id, request, 0, "");
		return;
	}
	if (!hc_part_by_id(c, m->id)) {
		hc_emit_error(c, s->id, request, HC_E_NOT_FOUND, "no such domain on this node");
		return;
	}
	watch(c, s, s->subscribed, m->on ? m->id : 0);
	hc_emit_done(c, s->id, request, 0, "");
}

void hc_session_unread(struct hc_core *c, uint64_t id, uint64_t events)
{
	struct hc_session *s = hc_session_get(c, id);

	if (s)
		s->events_lost = events;
}

/* ---- the end of a session, the end of a process ---- */

static void reap(struct hc_core *c, uint32_t n)
{
	struct hc_process *p = &c->processes[n];

	p->reap_left = p->seats.count;
	if (p->reaping)
		return;
	p->reaping = true;
	hc_list_push(&c->reaping, &c->process_links, n);
}

void hc_session_lost(struct hc_core *c, uint64_t id)
{
	struct hc_session *s = hc_session_get(c, id);
	uint32_t n;

	if (!s)
		return;
	n = s->process;
	watch(c, s, false, 0);
	hc_batch_session_lost(c, id);
	hc_seek_session_lost(c, id);
	hc_sync_session_lost(c, id);
	hc_drain_session_lost(c, id);
	s->id = 0;
	memset(s->blocks, 0, BLOCK_WORDS * sizeof(*s->blocks));
	c->nsessions--;
	c->session_changes++;
	c->processes[n].sessions--;
	if (s->seats)
		reap(c, n);
	process_leave(c, n);
}

void hc_session_dead(struct hc_core *c, uint32_t pid, uint64_t started)
{
	uint32_t n = process_find(c, pid, started);

	if (n == HC_NONE)
		return;
	c->processes[n].dead = true;
	reap(c, n);
}

static void reap_one(struct hc_core *c, struct hc_process *p)
{
	uint32_t seat = hc_list_first(&p->seats);
	uint64_t id;

	if (p->dead) {
		hc_part_seat_died(c, seat);
		return;
	}
	/* to the end of the list: each seat is looked at once */
	p->reap_left--;
	hc_list_del(&p->seats, &c->seat_links, seat);
	hc_list_push(&p->seats, &c->seat_links, seat);
	id = hc_seat_session(&c->seats[seat]);
	if (id && !hc_session_get(c, id))
		hc_part_seat_detached(c, seat);
}

bool hc_session_reap(struct hc_core *c)
{
	uint32_t n = hc_list_first(&c->reaping);
	struct hc_process *p;

	if (n == HC_NONE)
		return false;
	p = &c->processes[n];
	if (p->seats.count && (p->dead || p->reap_left)) {
		reap_one(c, p);
	} else {
		hc_list_del(&c->reaping, &c->process_links, n);
		p->reaping = false;
		process_leave(c, n);
	}
	return true;
}

/* ---- blocks of the arena ---- */

uint32_t hc_session_block(struct hc_core *c, struct hc_session *s)
{
	uint32_t i, w;

	(void)c;
	for (i = 0; i < BLOCK_WORDS; i++) {
		w = (s->block_hint + i) % BLOCK_WORDS;
		if (~s->blocks[w]) {
			uint32_t bit = (uint32_t)__builtin_ctzll(~s->blocks[w]);

			s->blocks[w] |= 1ull << bit;
			s->block_hint = w;
			return w * 64 + bit;
		}
	}
	return HC_NONE;
}

void hc_session_block_free(struct hc_core *c, uint64_t session, uint32_t block)
{
	struct hc_session *s = hc_session_get(c, session);

	if (!s || block == HC_NONE)
		return;
	s->blocks[block / 64] &= ~(1ull << (block % 64));
	if (block / 64 < s->block_hint)
		s->block_hint = block / 64;
}

bool hc_session_block_claim(struct hc_session *s, uint32_t block)
{
	if (block >= HC_ARENA_BLOCKS || s->blocks[block / 64] >> (block % 64) & 1)
		return false;
	s->blocks[block / 64] |= 1ull << (block % 64);
	return true;
}

/* ---- seats ---- */

static void set_session(struct hc_seat *t, uint64_t id)
{
	t->session_serial = (uint32_t)(id >> 32);
	t->session_slot = (uint16_t)id; /* below sessions, which is at most HC_SESSIONS_MAX */
}

void hc_session_hold(struct hc_core *c, uint32_t seat, uint32_t process)
{
	hc_assert(c->seats[seat].process == HC_NONE);
	c->seats[seat].process = process;
	hc_list_push(&c->processes[process].seats, &c->seat_links, seat);
}

void hc_session_bind(struct hc_core *c, uint32_t seat, struct hc_session *s)
{
	struct hc_seat *t = &c->seats[seat];

	hc_assert(t->process == HC_NONE);
	t->process = s->process;
	set_session(t, s->id);
	s->seats++;
	hc_list_push(&c->processes[s->process].seats, &c->seat_links, seat);
}

void hc_session_unbind(struct hc_core *c, uint32_t seat)
{
	struct hc_seat *t = &c->seats[seat];
	const uint64_t session = hc_seat_session(t);
	struct hc_session *s = hc_session_get(c, session);
	uint32_t n = t->process;

	if (n == HC_NONE)
		return;
	if (s)
		s->seats--;
	hc_session_block_free(c, session, t->block);
	t->block = HC_NONE;
	set_session(t, 0);
	t->process = HC_NONE;
	hc_list_del(&c->processes[n].seats, &c->seat_links, seat);
	process_leave(c, n);
}
