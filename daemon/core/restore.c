/* SPDX-License-Identifier: Apache-2.0 */
/* Domains from their rows; see restore.h. A row that cannot be is said and left where it is. */
#include "restore.h"

#include "channel.h"
#include "device.h"
#include "emit.h"
#include "home.h"
#include "part.h"
#include "session.h"
#include "who.h"

#include <stdio.h>
#include <string.h>

#define NUMBERS_OF_START 12u /* bits: state numbers that one start of the daemon may give */

static const char *check(const struct hc_core *c, const struct hc_m_domain_row *m)
{
	if (!m->id || hc_index_find(&c->home_by_id, m->id) != HC_NONE)
		return "its id is taken";
	if (!m->nranks || m->nranks > c->lim.ranks_per_domain)
		return "its number of ranks is above the limit";
	if (m->home.len)
		return "its home is another node, which this version cannot ask";
	if (m->members.count != m->nranks)
		return "its members are not all there";
	if (m->state != HC_W_domain_state_ACTIVE && m->state != HC_W_domain_state_DAMAGED &&
	    m->state != HC_W_domain_state_DRAINING)
		return "its state is none that is stored";
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

/* The seat of a member that was here. The shell watches its process. */
static bool seat(struct hc_core *c, struct hc_part *p, const struct hc_m_member_row *r)
{
	struct hc_cred cred = {.pid = r->pid, .uid = r->uid, .started = r->started};
	uint32_t seat = hc_part_add_seat(c, p, r->rank, r->device), process;
	struct hc_seat *s;
	bool fresh;

	if (seat == HC_NONE)
		return false;
	s = &c->seats[seat];
	s->state = r->state;
	if (r->state == HC_W_member_state_DEAD || r->state == HC_W_member_state_LEFT)
		return true;
	s->state = r->pid ? HC_W_member_state_DETACHED : HC_W_member_state_READY;
	s->block = r->block;
	if (r->pid) {
		process = hc_session_process(c, &cred, &fresh);
		if (process == HC_NONE)
			return false;
		hc_session_hold(c, seat, process);
		if (fresh)
			watch_later(c, process);
	}
	if (hc_device_get(c, r->device))
		hc_part_take_device(c, seat, r->shared == 1);
	return true;
}

static void place(struct hc_core *c, struct hc_home *h, const struct hc_m_member_row *r)
{
	struct hc_place *pl = hc_home_place(c, h, r->rank);

	*pl = (struct hc_place){
		.device = (uint16_t)r->device,
		.state = r->state == HC_W_member_state_JOINED ? HC_W_member_state_READY : r->state,
		.told = r->state == HC_W_member_state_DEAD ? 2 : 0};
	hc_who_take(c, pl, HC_SELF_NODE, r->pid, r->started);
	h->arrived++;
	if (r->state == HC_W_member_state_DEAD || r->state == HC_W_member_state_LEFT)
		hc_home_busy(c, h)->gone++;
}

static bool members(struct hc_core *c, struct hc_home *h, struct hc_part *p, struct hc_arr a)
{
	struct hc_m_member_row r;

	while (hc_arr_next(&a, &hc_desc_member_row, HC_PROTO_MAX, &r)) {
		if (r.rank >= h->nranks || r.device > HC_DEVICE_LAST ||
		    hc_home_place(c, h, r.rank)->state != HC_W_member_state_EXPECTED)
			return false;
		place(c, h, &r);
		if (!seat(c, p, &r))
			return false;
	}
	return true;
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
	while (p->nseats)
		hc_part_drop_seat(c, p, p->seats + p->nseats - 1);
	p->state = HC_W_domain_state_FORMING;
	hc_part_close_if_empty(c, p);
	hc_home_unmake(c, id);
}

/* State numbers only rise, and those of an earlier start were not all stored. */
static uint32_t next_number(const struct hc_core *c, uint32_t stored)
{
	uint32_t base = c->self.start << NUMBERS_OF_START;

	return stored < base ? base : stored + 1;
}

void hc_restore_row(struct hc_core *c, struct hc_str row)
{
	struct hc_m_domain_row m = {0};
	struct hc_home *h;
	struct hc_part *p;
	const char *why;
	char text[HC_CAUSE_MAX];

	if (hc_decode(&hc_desc_domain_row, HC_PROTO_MAX, (const uint8_t *)row.p, row.len, &m)) {
		say(c, &m, "its row is malformed");
		return;
	}
	why = check(c, &m);
	if (!why &&
	    hc_home_make(c, m.id, m.id, ~m.id, m.uid, m.nranks, m.name, false, text, sizeof(text)))
		why = text;
	if (why) {
		say(c, &m, why);
		return;
	}
	m.number = next_number(c, m.number);
	h = hc_home_by_id(c, m.id);
	p = hc_part_restore(c, m.slot, m.reuse, m.id, m.uid, m.nranks, m.name);
	if (!p) {
		hc_home_unmake(c, m.id);
		say(c, &m, "the slot of its record is taken, or above domains_max");
		return;
	}
	hc_home_restore(c, h, &m);
	hc_part_restored(c, p, &m);
	if (!members(c, h, p, m.members)) {
		undo(c, p, m.id);
		say(c, &m, "its members contradict each other, or are above ranks_max");
		return;
	}
	hc_home_restored(c, h);
	hc_part_publish(c, p, false);
	hc_home_rest(c, h);
}

void hc_restore_start(struct hc_core *c)
{
	hc_pool_settle(&c->part_pool);
	hc_channel_restored(c);
	c->started = true;
}
