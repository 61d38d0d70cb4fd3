/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes that take their seat in a domain that is there already; see part.h.
 *
 * attach is how a rank of a created domain comes, and how a process comes back after it lost its
 * session or the daemon was restarted. It brings the block of its op arena, so its references are
 * where they were; what of that is new to the stored row is stored.
 *
 * A join may have been carried out and its answer lost. The library attaches all that it knows
 * before it asks for anything else, so a seat that a process holds without a session is then one
 * that nobody stands for, and a repeated join of the same key and rank is given that seat.
 */
#include "join.h"

#include "device.h"
#include "emit.h"
#include "exchange.h"
#include "home.h"
#include "rights.h"
#include "row.h"
#include "session.h"

#include <stdio.h>
#include <string.h>

static const char arena_full[] = "the op arena of this process is full: it is in too many domains";

static void refuse(struct hc_core *c, const struct hc_session *s, uint32_t request, int code,
		   const char *text)
{
	hc_emit_error(c, s->id, request, code, text);
}

bool hc_part_has(const struct hc_core *c, const struct hc_part *p, uint32_t rank, uint32_t pid)
{
	uint32_t seat = hc_part_find_seat(c, p, rank), process;

	if (seat == HC_NONE)
		return false;
	process = c->seats[seat].process;
	return pid == (process == HC_NONE ? 0 : c->processes[process].pid);
}

struct hc_part *hc_part_by_key(struct hc_core *c, uint64_t key_a, uint64_t key_b, uint32_t rank,
			       uint32_t pid)
{
	struct hc_part *p, *forming = NULL;
	uint32_t n;

	for (n = hc_index_find(&c->part_by_key, key_a); n != HC_NONE;
	     n = hc_index_next(&c->part_by_key, n)) {
		p = &c->parts[n];
		if (p->key_a != key_a || p->key_b != key_b || p->state >= HC_W_domain_state_ACTIVE)
			continue;
		if (hc_part_has(c, p, rank, pid))
			return p;
		if (p->state == HC_W_domain_state_FORMING)
			forming = p;
	}
	return forming;
}

static bool lives(const struct hc_core *c, const struct hc_part *p)
{
	uint32_t i;

	for (i = p->seats; i < p->seats + p->nseats; i++)
		if (hc_seat_lives(&c->seats[i]))
			return true;
	return false;
}

const struct hc_part *hc_part_rival(struct hc_core *c, uint64_t key_a, uint64_t key_b,
				    const struct hc_roll_other *said, char *where, size_t bytes)
{
	const struct hc_part *p;
	uint32_t n;

	for (n = hc_index_find(&c->part_by_key, key_a); n != HC_NONE;
	     n = hc_index_next(&c->part_by_key, n)) {
		p = &c->parts[n];
		if (p->key_a == key_a && p->key_b == key_b &&
		    (p->state == HC_W_domain_state_ACTIVE ||
		     p->state == HC_W_domain_state_SUSPENDED) &&
		    lives(c, p) && hc_roll_differ(c, p->roll, said, where, bytes))
			return p;
	}
	return NULL;
}

/* May this session take the seat? Returns 0, or the outcome with the reason. */
static int attach_check(struct hc_core *c, const struct hc_part *p, uint32_t seat,
			const struct hc_session *s, const struct hc_m_attach *m, char *text,
			size_t bytes)
{
	const struct hc_seat *t = seat == HC_NONE ? NULL : &c->seats[seat];

	if (p->state < HC_W_domain_state_ACTIVE || p->state > HC_W_domain_state_DRAINING) {
		snprintf(text, bytes, "the domain is %s", hc_word_domain_state(p->state));
		return p->state < HC_W_domain_state_ACTIVE ? HC_E_NOT_READY : HC_E_GONE;
	}
	if (m->epoch && m->epoch != p->epoch) {
		snprintf(text, bytes, "epoch %u: the domain is in epoch %u", m->epoch, p->epoch);
		return HC_E_GONE;
	}
	if (!t) {
		snprintf(text, bytes, "rank %u has no place on this node", m->rank);
		return HC_E_NOT_FOUND;
	}
	if (t->state == HC_W_member_state_DEAD || t->state == HC_W_member_state_LEFT) {
		snprintf(text, bytes, "rank %u has %s", m->rank,
			 t->state == HC_W_member_state_DEAD ? "died" : "left");
		return HC_E_GONE;
	}
	if (t->process != HC_NONE && t->process != s->process) {
		snprintf(text, bytes, "rank %u is held by process %u", m->rank,
			 c->processes[t->process].pid);
		return HC_E_BUSY;
	}
	if (t->process == HC_NONE)
		return hc_device_check(c, t->device, m->rank, s->process, false, NULL, text, bytes);
	return 0;
}

/* The block that the client brought with its arena, or a new one. */
static int attach_block(struct hc_core *c, struct hc_session *s, const struct hc_seat *t,
			uint32_t wanted, uint32_t *block, char *text, size_t bytes)
{
	bool own = hc_seat_session(t) == s->id && t->block == wanted;

	*block = wanted == HC_NONE ? hc_session_block(c, s) : wanted;
	if (*block == HC_NONE) {
		snprintf(text, bytes, "%s", arena_full);
		return HC_E_LIMIT;
	}
	if (wanted != HC_NONE && !own && !hc_session_block_claim(s, wanted)) {
		snprintf(text, bytes, "block %u of the op arena is none, or another rank's",
			 wanted);
		return HC_E_INVALID;
	}
	return 0;
}

/* The seat is this session's from now on; the answer is still to be given. */
static void take_seat(struct hc_core *c, struct hc_part *p, struct hc_session *s, uint32_t request,
		      bool batch, uint32_t seat, uint32_t block)
{
	struct hc_seat *t = &c->seats[seat];
	const bool shared = t->flags & SEAT_SHARED;
	const uint8_t page = t->flags & SEAT_PAGE;
	const bool known = t->process != HC_NONE && t->block == block;

	if (t->process == HC_NONE)
		hc_home_attached(c, p->id, t->rank, s->process);
	hc_part_refuse(c, seat, HC_E_IN_PROGRESS,
		       "the same process asked for this rank again; that request is answered");
	hc_part_release_seat(c, seat);
	hc_session_bind(c, seat, s);
	hc_part_take_device(c, seat, shared);
	hc_session_block_claim(s, block); /* its own before: the release gave it back */
	t->block = block;
	hc_part_wait(c, seat, request, batch);
	t->flags |= page;
	t->state = HC_W_member_state_READY;
	c->member_changes++;
	if (!known) {
		hc_home_changed(c, p->id);
		hc_row_changed(c, p);
	}
	hc_exchange_told(c, p);
}

/* What happened while nobody of that session could be told. */
static void tell_state(struct hc_core *c, const struct hc_part *p, const struct hc_session *s,
		       uint32_t seat)
{
	const struct hc_part_busy *b = hc_part_now(c, p);
	struct hc_m_event e = {.kind = b->cause_kind,
			       .id = p->id,
			       .epoch = p->epoch,
			       .state = p->state,
			       .number = p->number,
			       .rank = b->cause_rank,
			       .pid = b->cause_pid,
			       .node = hc_str(c->nodes[p->home_node].name)};
	uint32_t i;

	if (p->state == HC_W_domain_state_ACTIVE || b->work & WORK_NOTIFY)
		return;
	for (i = p->seats; i < p->seats + p->nseats; i++)
		if (i != seat && hc_seat_session(&c->seats[i]) == s->id)
			return; /* told with another rank */
	if (p->cause != HC_NONE)
		e.text = hc_str(c->causes[p->cause]);
	hc_emit_event(c, s->id, &e);
}

void hc_join_attach(struct hc_core *c, struct hc_session *s, uint32_t request,
		    const struct hc_m_attach *m)
{
	struct hc_part *p = m->id ? hc_part_by_id(c, m->id)
				  : hc_part_by_name(c, c->processes[s->process].uid, m->name);
	uint32_t seat, block;
	char text[512];
	bool back;
	int r;

	if (!p || !hc_right_owner(HC_MSG_attach, s->role, c->processes[s->process].uid, p->uid)) {
		refuse(c, s, request, p ? HC_E_PERMISSION : HC_E_NOT_FOUND,
		       p ? "the domain belongs to another user" : "no such domain of yours here");
		return;
	}
	seat = hc_part_find_seat(c, p, m->rank);
	r = attach_check(c, p, seat, s, m, text, sizeof(text));
	if (!r)
		r = attach_block(c, s, &c->seats[seat], m->block, &block, text, sizeof(text));
	if (r) {
		refuse(c, s, request, r, text);
		return;
	}
	back = c->seats[seat].process != HC_NONE && hc_seat_session(&c->seats[seat]) != s->id;
	take_seat(c, p, s, request, false, seat, block);
	hc_part_answer_joined(c, p, seat);
	if (back)
		tell_state(c, p, s, seat);
	hc_part_rest(c, p);
}

/* ---- a join whose answer was lost ---- */

/* The process holds it, and no session of it that lives: nobody stands for it. */
static bool is_lost(struct hc_core *c, const struct hc_seat *t, uint32_t process)
{
	return t->process == process && t->state == HC_W_member_state_DETACHED &&
	       !hc_session_get(c, hc_seat_session(t));
}

static bool may_come_back(const struct hc_part *p)
{
	return p->state == HC_W_domain_state_ACTIVE || p->state == HC_W_domain_state_DAMAGED;
}

bool hc_part_come_back(struct hc_core *c, struct hc_session *s, uint32_t request, uint64_t key_a,
		       uint64_t key_b, uint32_t rank)
{
	struct hc_part *p;
	uint32_t seat = HC_NONE, block, n;

	for (n = hc_index_find(&c->part_by_key, key_a); n != HC_NONE;
	     n = hc_index_next(&c->part_by_key, n)) {
		p = &c->parts[n];
		if (p->key_a != key_a || p->key_b != key_b || !may_come_back(p))
			continue;
		seat = hc_part_find_seat(c, p, rank);
		if (seat != HC_NONE && is_lost(c, &c->seats[seat], s->process))
			break;
	}
	if (n == HC_NONE)
		return false;
	block = hc_session_block(c, s);
	if (block == HC_NONE) {
		refuse(c, s, request, HC_E_LIMIT, arena_full);
		return true;
	}
	take_seat(c, p, s, request, false, seat, block);
	hc_part_answer_joined(c, p, seat);
	hc_part_rest(c, p);
	return true;
}

static bool all_lost(struct hc_core *c, const struct hc_part *p, uint32_t process,
		     const struct hc_comer *list, uint32_t n)
{
	uint32_t i, seat;

	for (i = 0; i < n; i++) {
		seat = hc_part_find_seat(c, p, list[i].rank);
		if (seat == HC_NONE || !is_lost(c, &c->seats[seat], process))
			return false;
	}
	return true;
}

bool hc_join_back_together(struct hc_core *c, const struct join *j, const struct hc_comer *list,
			   uint32_t n)
{
	struct hc_part *p = NULL;
	uint32_t i, first = HC_NONE;

	for (i = hc_index_find(&c->part_by_key, j->key_a); i != HC_NONE;
	     i = hc_index_next(&c->part_by_key, i)) {
		p = &c->parts[i];
		if (p->key_a == j->key_a && p->key_b == j->key_b && may_come_back(p) &&
		    all_lost(c, p, j->s->process, list, n))
			break;
	}
	if (i == HC_NONE)
		return false;
	/* they are all that this process has of it; the list may be where rows are written */
	for (i = p->seats; i < p->seats + p->nseats; i++)
		if (is_lost(c, &c->seats[i], j->s->process)) {
			take_seat(c, p, j->s, j->request, j->batch, i, hc_session_block(c, j->s));
			first = first == HC_NONE ? i : first;
		}
	hc_part_answer_joined(c, p, first);
	hc_part_rest(c, p);
	return true;
}

/* Does the part look like the answer to this request, with nobody who got it? */
static bool is_lost_local(struct hc_core *c, struct hc_part *p, uint32_t process,
			  struct hc_str name, const uint32_t *devices, uint32_t n)
{
	const struct hc_seat *t;
	uint32_t i, seat;

	if (p->nranks != n || p->nseats != n || !may_come_back(p))
		return false;
	if (name.len ? p->name == HC_NONE || !hc_str_eq(hc_str(c->names[p->name].text), name)
		     : p->name != HC_NONE)
		return false;
	for (i = 0; i < n; i++) {
		seat = hc_part_find_seat(c, p, i);
		t = seat == HC_NONE ? NULL : &c->seats[seat];
		if (!t || t->device != devices[i] || !is_lost(c, t, process))
			return false;
	}
	return true;
}

bool hc_part_local_back(struct hc_core *c, struct hc_session *s, uint32_t request,
			struct hc_str name, const uint32_t *devices, uint32_t n)
{
	const struct hc_process *who = &c->processes[s->process];
	struct hc_part *p;
	uint32_t i, seat;

	if (who->sessions == 1 && s->seats == who->seats.count)
		return false; /* the usual case: all of it is spoken for */
	for (i = hc_list_first(&who->seats); i != HC_NONE; i = hc_list_next(&c->seat_links, i)) {
		p = hc_part(c, c->seats[i].part);
		if (c->seats[i].rank || !is_lost_local(c, p, s->process, name, devices, n))
			continue;
		for (seat = p->seats; seat < p->seats + n; seat++)
			take_seat(c, p, s, request, false, seat, hc_session_block(c, s));
		hc_part_answer_joined(c, p, p->seats);
		hc_part_rest(c, p);
		return true;
	}
	return false;
}
