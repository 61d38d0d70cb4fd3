/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A home after its commit: ranks that go, the drain, and those who wait for the end; see home.h.
 *
 * A loss damages the domain, and every node is told who is lost. What reveals a state waits until
 * it is stored, for a restarted daemon must never take back what it has said. Of one thing it
 * cannot: that a process of this node has died. Members are stored with pid and start time, and
 * at a restart the kernel is asked for each that was not stored as dead; the answer is the same
 * death, so the same cause and the same state are reached again. So such a death is told at once,
 * while its row is being stored, and those who wait in a collective hear it without the time that
 * a disk takes. Everything else waits for its row: an abort, which only the dead rank's word
 * tells, the death on another node, which this kernel knows nothing of, and a death that comes
 * while something is being stored, so that the first cause which was told is the one that is
 * stored. Those that come while a row is on its way are told when it is stored.
 * A rank that leaves in order closes the domain behind it: the number of its last collective
 * becomes the cut, since no later one could ever complete. The last one out ends the domain.
 * A destroy drains first (see part_drain.c for the node's share): all nodes stop admission and
 * report, the highest number is the cut, and the domain ends when every node has reached it, or
 * at the deadline by force. With a dead member there is no cut to reach: then only what runs is
 * waited for.
 */
#include "home.h"

#include "ask.h"
#include "channel.h"
#include "digest.h"
#include "emit.h"
#include "exchange.h"
#include "rights.h"
#include "split.h"
#include "told.h"
#include "who.h"

#include <stdio.h>
#include <string.h>

/* ---- those who wait ---- */

bool hc_home_wait(struct hc_core *c, struct hc_home *h, uint32_t node, uint64_t ticket, bool active)
{
	uint32_t n = hc_pool_get(&c->ask_pool);

	if (n == HC_NONE)
		return false;
	c->asks[n] = (struct hc_ask){.ticket = ticket, .node = node, .active = active};
	hc_list_push(&hc_home_busy(c, h)->asks, &c->ask_links, n);
	return true;
}

static void send_control_r(struct hc_core *c, uint32_t node, uint64_t ticket, int code,
			   const char *text)
{
	struct hc_m_control_r r = {.ticket = ticket, .code = (uint16_t)code, .text = hc_str(text)};

	hc_emit_send(c, node, &hc_desc_control_r, &r);
}

void hc_home_answer(struct hc_core *c, struct hc_home *h, uint32_t ask, int code)
{
	struct hc_ask *a = &c->asks[ask];

	send_control_r(c, a->node, a->ticket, code, hc_home_cause(c, h));
	hc_ask_forget(c, &hc_home_busy(c, h)->asks, ask);
}

void hc_home_answer_active(struct hc_core *c, struct hc_home *h)
{
	uint32_t n = hc_list_first(&hc_home_now(c, h)->asks);

	while (n != HC_NONE && !c->asks[n].active)
		n = hc_list_next(&c->ask_links, n);
	if (n != HC_NONE)
		hc_home_answer(c, h, n, 0);
}

/* ---- ranks that go ---- */

static bool anyone_left(const struct hc_core *c, const struct hc_home *h)
{
	return hc_home_now(c, h)->gone < h->nranks;
}

/* Ranks of a created domain that nobody attached to are no reason to keep it once it is damaged. */
static bool nobody_alive(struct hc_core *c, struct hc_home *h)
{
	const struct hc_place *pl;
	uint32_t i;

	for (i = 0; h->lost && i < h->nranks; i++) {
		pl = hc_home_place(c, h, i);
		if (pl->who && pl->state != HC_W_member_state_DEAD &&
		    pl->state != HC_W_member_state_LEFT)
			return false;
	}
	return h->lost || !anyone_left(c, h);
}

static bool only_left(struct hc_core *c, struct hc_home *h)
{
	uint32_t i;

	for (i = 0; i < h->nranks; i++)
		if (hc_home_place(c, h, i)->state != HC_W_member_state_LEFT)
			return false;
	return true;
}

static void name_rank(struct hc_core *c, struct hc_home *h, uint32_t rank, const char *what,
		      char *text, size_t bytes)
{
	const struct hc_who *who = hc_who(c, hc_home_place(c, h, rank));

	const char *node = c->nodes[who->node].name;

	snprintf(text, bytes, "rank %u, pid %u on node %.*s, %s", rank, who->pid, (int)HC_NAME_MAX,
		 node, what);
}

/* The entry is that of the first cause: one that comes later has its own when it is told. */
static void damage(struct hc_core *c, struct hc_home *h)
{
	const struct hc_home_busy *b = hc_home_busy(c, h);
	char line[HC_TOLD_MAX];

	hc_told_damaged(c, h, line, sizeof(line));
	hc_home_store(c, h, HOME_DAMAGING, b->said ? 0 : b->cause_kind, line);
}

static void say(struct hc_core *c, struct hc_home *h, enum hc_level level)
{
	const struct hc_home_busy *b = hc_home_now(c, h);
	const struct hc_told t = {level, b->cause_kind, b->cause_rank, b->cause_pid};

	hc_home_told(c, h, &t, hc_home_cause(c, h));
}

#define TELL_EACH 8u /* deaths told one by one; further ones of the same moment in a summary */

/*
 * Tell every node of the deaths that are not told yet. Each is an event of its own with its own
 * state number, so that every rank hears every name.
 */
static void tell_deaths(struct hc_core *c, struct hc_home *h, uint8_t state)
{
	struct hc_home_busy *b = hc_home_busy(c, h);
	char first[HC_CAUSE_MAX], text[HC_CAUSE_MAX];
	uint32_t i, n, told = 0, first_rank = b->cause_rank, first_pid = b->cause_pid;
	uint16_t first_kind = b->cause_kind;
	struct hc_place *pl;

	hc_str_copy(hc_str(hc_home_cause(c, h)), first, sizeof(first));
	/* the first cause first: it is what the records keep */
	if (b->node_lost) {
		b->node_lost = false;
		hc_home_set_state(c, h, state);
		if (state == HC_W_domain_state_DRAINING)
			say(c, h, HC_LOG_WARN);
		hc_home_tell_state(c, h);
	}
	for (n = first_rank < h->nranks ? 0 : 1; n <= h->nranks && b->untold; n++) {
		i = n ? n - 1 : first_rank;
		pl = hc_home_place(c, h, i);
		if (told == TELL_EACH)
			break;
		if (pl->state != HC_W_member_state_DEAD || pl->told)
			continue;
		pl->told = 1;
		b->untold--;
		hc_home_set_state(c, h, state);
		if (i != first_rank) {
			name_rank(c, h, i, "exited", text, sizeof(text));
			hc_home_set_cause(c, h, HC_W_event_code_RANK_DIED, i, hc_who(c, pl)->pid,
					  text);
		}
		if (i != first_rank || state == HC_W_domain_state_DRAINING)
			say(c, h, HC_LOG_WARN);
		hc_home_tell_state(c, h);
		if (i != first_rank)
			hc_home_set_cause(c, h, first_kind, first_rank, first_pid, first);
		told++;
	}
}

static uint32_t rank_here(struct hc_core *c, struct hc_home *h)
{
	uint32_t i;

	for (i = 0; i < h->nranks; i++) {
		const struct hc_place *pl = hc_home_place(c, h, i);

		if (hc_who_lives(pl) && hc_who(c, pl)->node == HC_SELF_NODE)
			return i;
	}
	return HC_NONE;
}

/* Whoever waits for a rank that is there, but not within reach, is told between whom it broke. */
static void cancel_waiting(struct hc_core *c, struct hc_home *h)
{
	const struct hc_home_busy *b = hc_home_now(c, h);
	const uint32_t here = rank_here(c, h);
	const struct hc_known_node *n;
	char text[HC_CAUSE_MAX], one[96];

	if (b->cause_kind != HC_W_event_code_NODE_UNREACHABLE || b->cause_rank >= h->nranks) {
		hc_exchange_cancel(c, h->id, false, HC_E_DAMAGED, hc_home_cause(c, h));
		return;
	}
	n = &c->nodes[hc_who(c, hc_home_place(c, h, b->cause_rank))->node];
	if (here == HC_NONE)
		HC_TEXT(one, "the home, node %.64s,", c->self.name);
	else
		HC_TEXT(one, "rank %u on node %.64s", here, c->self.name);
	HC_TEXT(text, "no path between %s and rank %u on node %.64s, which %s", one, b->cause_rank,
		n->name, n->why);
	hc_exchange_cancel(c, h->id, false, HC_E_LINK_UNAVAILABLE, text);
}

void hc_home_damaged(struct hc_core *c, struct hc_home *h)
{
	struct hc_home_busy *b = hc_home_busy(c, h);
	char line[HC_TOLD_MAX];

	hc_told_damaged(c, h, line, sizeof(line));
	if (!b->said)
		hc_emit_log(c, HC_LOG_WARN, b->cause_kind, h->id, b->cause_rank, line);
	b->said = true;
	tell_deaths(c, h, HC_W_domain_state_DAMAGED);
	hc_split_parent_over(c, h->id, HC_E_DAMAGED, hc_home_cause(c, h));
	hc_gang_home_gone(c, h->id);
	cancel_waiting(c, h);
	hc_home_settle(c, h);
}

static void start_orphan(struct hc_core *c, struct hc_home *h)
{
	struct hc_home_busy *b = hc_home_busy(c, h);

	b->deadline = c->now + c->set.orphan_grace_ns;
	hc_home_alarm(c, h, b->deadline);
}

void hc_home_restored(struct hc_core *c, struct hc_home *h)
{
	if (nobody_alive(c, h))
		start_orphan(c, h);
}

void hc_home_send_cut(struct hc_core *c, struct hc_home *h, uint32_t node)
{
	struct hc_m_cut m = {.id = h->id,
			     .epoch = h->epoch,
			     .incarnation = c->self.incarnation,
			     .cut = hc_home_now(c, h)->cut};

	hc_emit_send(c, node, &hc_desc_cut, &m);
}

/* The first rank has left in order: what it did not begin can never complete. */
static void close_behind(struct hc_core *c, struct hc_home *h, const struct hc_m_depart *m)
{
	char text[HC_CAUSE_MAX], what[64];

	HC_TEXT(what, "left in order after collective #%llu", (unsigned long long)m->begun);
	name_rank(c, h, m->rank, what, text, sizeof(text));
	h->leaving = true;
	hc_home_busy(c, h)->cut = m->begun;
	hc_home_set_cause(c, h, HC_W_event_code_RANK_LEFT, m->rank, m->pid, text);
	hc_home_set_state(c, h, HC_W_domain_state_DRAINING);
	say(c, h, HC_LOG_INFO);
	hc_home_tell_state(c, h);
	hc_home_each_node(c, h, hc_home_send_cut);
	hc_split_parent_over(c, h->id, HC_E_GONE, text);
	hc_gang_home_gone(c, h->id);
	hc_exchange_cancel(c, h->id, true, HC_E_GONE, text);
}

static void rank_lost(struct hc_core *c, struct hc_home *h, const struct hc_m_depart *m)
{
	char text[HC_CAUSE_MAX], what[256];

	if (m->why == HC_W_depart_ABORTED)
		HC_TEXT(what, "aborted: %.*s", (int)m->text.len, m->text.p);
	else
		HC_TEXT(what, "%s", hc_word_depart(m->why));
	hc_home_busy(c, h)->untold++;
	if (h->lost)
		return; /* the first cause stays */
	h->lost = true;
	name_rank(c, h, m->rank, what, text, sizeof(text));
	hc_home_set_cause(c, h,
			  m->why == HC_W_depart_ABORTED ? HC_W_event_code_RANK_ABORTED
							: HC_W_event_code_RANK_DIED,
			  m->rank, m->pid, text);
}

static void mark_lost(struct hc_core *c, struct hc_home *h)
{
	struct hc_place *pl;
	uint32_t i;

	for (i = 0; i < h->nranks; i++) {
		pl = hc_home_place(c, h, i);
		if (!hc_who_lives(pl) || !hc_who_lost(c, pl))
			continue;
		pl->state = HC_W_member_state_DEAD;
		pl->told = 1; /* by the name of its node */
		hc_home_busy(c, h)->gone++;
		c->member_changes++;
	}
}

void hc_home_lose(struct hc_core *c, struct hc_home *h, uint32_t first)
{
	const struct hc_who *who = hc_who(c, hc_home_place(c, h, first));
	const struct hc_known_node *n = &c->nodes[who->node];
	char text[HC_CAUSE_MAX], line[HC_CAUSE_MAX + 64], name[32];
	struct hc_home_busy *b = hc_home_busy(c, h);

	HC_TEXT(text, "node %.64s %s; rank %u and all others there are lost", n->name, n->why,
		first);
	mark_lost(c, h);
	if (h->lost) { /* the first cause stays */
		HC_TEXT(line, "%s: %s", hc_home_name(c, h, name, sizeof(name)), text);
		hc_emit_log(c, HC_LOG_WARN, n->lost_kind, h->id, first, line);
		b->node_lost = b->node_lost || h->state == HC_W_domain_state_DRAINING;
		hc_home_put(c, h);
	} else {
		h->lost = b->node_lost = true;
		hc_home_set_cause(c, h, n->lost_kind, first, who->pid, text);
	}
	hc_home_settle(c, h);
}

/*
 * Take up what came while something else was under way. at_once: all that is not told would be
 * found again by a restarted daemon.
 */
static void settle(struct hc_core *c, struct hc_home *h, bool at_once)
{
	struct hc_home_busy *b = hc_home_busy(c, h);

	if (h->step == HOME_ENDING || h->step == HOME_COMMITTING || h->step == HOME_DAMAGING ||
	    h->step == HOME_OVER)
		return;
	if (!anyone_left(c, h) && (only_left(c, h) || h->state == HC_W_domain_state_DRAINING)) {
		hc_home_end(c, h, HC_W_domain_state_DESTROYED, 0,
			    only_left(c, h) ? "all ranks left" : hc_home_cause(c, h));
		return;
	}
	if ((b->untold || b->node_lost) && h->state == HC_W_domain_state_DRAINING && !h->leaving) {
		tell_deaths(c, h, HC_W_domain_state_DRAINING);
		hc_home_ask_cut(c, h);
		return;
	}
	if (b->untold || b->node_lost) {
		damage(c, h);
		if (at_once)
			tell_deaths(c, h, HC_W_domain_state_DAMAGED);
		return;
	}
	if (b->wish_end) {
		b->wish_end = false;
		hc_home_drain(c, h, b->wish_timeout_ms, b->wish_uid);
	} else if (nobody_alive(c, h)) {
		start_orphan(c, h);
	}
}

void hc_home_settle(struct hc_core *c, struct hc_home *h)
{
	settle(c, h, false);
}

/*
 * Who left is answered when that is stored: the last one with the end of the domain, the others
 * with the row, so that a restarted daemon does not wait for them.
 */
static void depart_stored(struct hc_core *c, struct hc_home *h, uint32_t node, uint64_t ticket)
{
	bool ends = h->step == HOME_ENDING || only_left(c, h);
	uint64_t stored = ends ? 0 : hc_home_put(c, h);
	uint32_t n;

	if (!ticket)
		return;
	if (ends && hc_home_wait(c, h, node, ticket, false))
		return;
	n = ends ? HC_NONE : hc_pool_get(&c->ask_pool);
	if (n == HC_NONE) {
		send_control_r(c, node, ticket, 0, "");
		return;
	}
	c->asks[n] = (struct hc_ask){.ticket = ticket, .node = node, .stored = stored};
	hc_list_push(&c->departed, &c->ask_links, n);
}

bool hc_home_departed(struct hc_core *c)
{
	uint32_t n = hc_list_first(&c->departed);

	if (n == HC_NONE || c->asks[n].stored > c->persisted)
		return false;
	send_control_r(c, c->asks[n].node, c->asks[n].ticket, 0, "");
	hc_list_del(&c->departed, &c->ask_links, n);
	hc_pool_put_front(&c->ask_pool, n);
	return true;
}

/* The place of a rank that goes, when it is one that can. */
static struct hc_place *place_of(struct hc_core *c, struct hc_home *h, uint32_t node,
				 const struct hc_m_depart *m)
{
	const struct hc_who *who;
	struct hc_place *pl;

	if (!h || m->rank >= h->nranks || (m->epoch && m->epoch != h->epoch) ||
	    h->step == HOME_OVER)
		return NULL;
	pl = hc_home_place(c, h, m->rank);
	who = hc_who(c, pl);
	if (who->node != node || who->pid != m->pid || pl->state == HC_W_member_state_EXPECTED ||
	    pl->state == HC_W_member_state_DEAD || pl->state == HC_W_member_state_LEFT)
		return NULL;
	return pl;
}

void hc_home_on_depart(struct hc_core *c, uint32_t node, const struct hc_m_depart *m)
{
	struct hc_home *h = hc_home_by_id(c, m->id);
	struct hc_place *pl = place_of(c, h, node, m);
	bool forms = pl && h->state < HC_W_domain_state_ACTIVE && h->step != HOME_COMMITTING;
	bool died = m->why == HC_W_depart_DIED && node == HC_SELF_NODE;

	if (!pl || forms) {
		if (forms)
			hc_home_withdraw(c, h, pl, m);
		if (m->ticket) /* it is out in any case */
			send_control_r(c, node, m->ticket, 0, "");
		return;
	}
	hc_home_busy(c, h)->gone++;
	c->member_changes++;
	if (m->why == HC_W_depart_LEFT) {
		pl->state = HC_W_member_state_LEFT;
		if ((h->state == HC_W_domain_state_ACTIVE ||
		     h->state == HC_W_domain_state_SUSPENDED) &&
		    !h->step && anyone_left(c, h))
			close_behind(c, h, m);
		depart_stored(c, h, node, m->ticket);
	} else {
		pl->state = HC_W_member_state_DEAD;
		rank_lost(c, h, m);
	}
	settle(c, h, died && hc_home_now(c, h)->untold == 1);
}

/* ---- the drain ---- */

static void send_cut_ask(struct hc_core *c, struct hc_home *h, uint32_t node)
{
	struct hc_m_cut_ask m = {.id = h->id,
				 .epoch = h->epoch,
				 .incarnation = c->self.incarnation,
				 .number = h->number,
				 .wait_cut = !h->lost,
				 .text = hc_str(hc_home_cause(c, h))};

	hc_emit_send(c, node, &hc_desc_cut_ask, &m);
}

void hc_home_ask_cut(struct hc_core *c, struct hc_home *h)
{
	struct hc_home_busy *b = hc_home_busy(c, h);

	h->step = HOME_CUTTING;
	b->cut = h->leaving ? b->cut : 0;
	hc_digest_home(c, h);
	h->number++;
	hc_digest_home(c, h);
	hc_home_ask_each(c, h, send_cut_ask);
}

void hc_home_drain(struct hc_core *c, struct hc_home *h, uint32_t timeout_ms, uint32_t uid)
{
	struct hc_home_busy *b = hc_home_busy(c, h);
	uint64_t limit = timeout_ms ? timeout_ms * 1000000ull : c->set.drain_timeout_ns;
	const struct hc_told t = {HC_LOG_INFO, HC_W_event_code_DOMAIN_DRAINING, HC_NONE, 0};
	char text[HC_CAUSE_MAX];

	HC_TEXT(text, "destroyed by uid %u", uid);
	h->leaving = false;
	b->left = 0;
	if (!h->lost) /* the first cause stays: a restart of this daemon finds it DAMAGED */
		hc_home_set_cause(c, h, HC_W_event_code_DOMAIN_DRAINING, HC_NONE, 0, text);
	hc_home_set_state(c, h, HC_W_domain_state_DRAINING);
	hc_home_told(c, h, &t, text);
	b->deadline = c->now + limit;
	hc_home_alarm(c, h, b->deadline);
	hc_exchange_cancel(c, h->id, true, HC_E_GONE, text);
	hc_gang_home_gone(c, h->id);
	hc_home_ask_cut(c, h);
}

void hc_home_on_cut_report(struct hc_core *c, uint32_t node, const struct hc_m_cut_report *m)
{
	struct hc_home *h = hc_home_by_id(c, m->id);
	struct hc_home_busy *b;

	if (!h || h->step != HOME_CUTTING || h->epoch != m->epoch || h->number != m->number ||
	    !hc_home_heard(c, h, node))
		return;
	b = hc_home_busy(c, h);
	if (m->begun > b->cut)
		b->cut = m->begun;
	if (b->pending)
		return;
	h->step = HOME_DRAINING;
	hc_home_ask_each(c, h, hc_home_send_cut);
}

void hc_home_on_drain_report(struct hc_core *c, uint32_t node, const struct hc_m_drain_report *m)
{
	struct hc_home *h = hc_home_by_id(c, m->id);
	struct hc_home_busy *b;
	char text[HC_CAUSE_MAX];

	if (!h || h->epoch != m->epoch || h->number != m->number ||
	    (h->step != HOME_DRAINING && h->step != HOME_CUTTING))
		return;
	b = hc_home_busy(c, h);
	if (!m->done) {
		b->left = m->left;
		b->left_rank = m->rank;
		b->left_pid = m->pid;
		b->left_kind = m->op_kind;
		b->left_number = m->op_number;
		b->left_age_s = m->age_s;
		return;
	}
	if (h->step != HOME_DRAINING || !hc_home_heard(c, h, node) || b->pending)
		return;
	h->step = HOME_NOTHING;
	hc_str_copy(hc_str(hc_home_cause(c, h)), text, sizeof(text));
	hc_home_end(c, h, HC_W_domain_state_DESTROYED, 0, text);
}

/* The node that the drain waits for, when one does not answer at all. */
static const char *silent_node(struct hc_core *c, struct hc_home *h)
{
	uint32_t i;

	for (i = 0; i < h->nranks; i++) {
		const struct hc_place *pl = hc_home_place(c, h, i);

		if (pl->who && !pl->heard && c->nodes[hc_who(c, pl)->node].away)
			return c->nodes[hc_who(c, pl)->node].name;
	}
	return NULL;
}

static void force(struct hc_core *c, struct hc_home *h)
{
	const char *silent = silent_node(c, h);
	struct hc_home_busy *b = hc_home_busy(c, h);
	char text[HC_CAUSE_MAX];

	if (b->left)
		HC_TEXT(text,
			"forced, %u reference%s left: rank %u, pid %u, %s #%llu, running for at "
			"least %u s",
			b->left, b->left == 1 ? "" : "s", b->left_rank, b->left_pid,
			hc_word_op_kind(b->left_kind), (unsigned long long)b->left_number,
			b->left_age_s);
	else if (silent)
		HC_TEXT(text, "forced: node %.64s, where ranks of it are, cannot be reached",
			silent);
	else
		HC_TEXT(text,
			"forced: not every rank reached collective #%llu, that another had begun",
			(unsigned long long)b->cut);
	h->step = HOME_NOTHING;
	hc_home_end(c, h, HC_W_domain_state_DESTROYED, HC_E_FORCED, text);
}

void hc_home_life_timeout(struct hc_core *c, struct hc_home *h)
{
	char text[HC_CAUSE_MAX];

	if (h->step == HOME_CUTTING || h->step == HOME_DRAINING) {
		force(c, h);
		return;
	}
	if (h->step || !nobody_alive(c, h)) /* somebody may have attached meanwhile */
		return;
	HC_TEXT(text, "no member alive; %s", hc_home_cause(c, h));
	hc_home_end(c, h, HC_W_domain_state_DESTROYED, 0, text);
}

/* ---- a client wants the end ---- */

void hc_home_on_control(struct hc_core *c, uint32_t node, const struct hc_m_control *m)
{
	struct hc_home *h = hc_home_by_id(c, m->id);
	char text[128];

	if (!h) {
		send_control_r(c, node, m->ticket, HC_E_GONE, "the domain is gone");
		return;
	}
	if (!hc_right_owner(HC_MSG_destroy, m->role, m->uid, h->uid)) {
		HC_TEXT(text,
			"the domain belongs to uid %u, this is uid %u: only its owner, root and "
			"hcomm-admin may destroy it",
			h->uid, m->uid);
		send_control_r(c, node, m->ticket, HC_E_PERMISSION, text);
		return;
	}
	if (!hc_home_wait(c, h, node, m->ticket, false)) {
		send_control_r(c, node, m->ticket, HC_E_LIMIT,
			       "too many requests wait for an answer");
		return;
	}
	if (h->step == HOME_ENDING || h->step == HOME_OVER)
		return;
	if (h->state < HC_W_domain_state_ACTIVE && h->step != HOME_COMMITTING) {
		HC_TEXT(text, "destroyed by uid %u while it formed", m->uid);
		hc_home_busy(c, h)->wish_end = true;
		hc_home_cancel(c, h, HC_NONE, HC_E_GONE, text);
		return;
	}
	if (h->step == HOME_COMMITTING || h->step == HOME_DAMAGING) {
		hc_home_busy(c, h)->wish_end = true;
		hc_home_busy(c, h)->wish_uid = m->uid;
		hc_home_busy(c, h)->wish_timeout_ms = m->timeout_ms;
	} else if (h->state != HC_W_domain_state_DRAINING || h->leaving) {
		hc_home_drain(c, h, m->timeout_ms, m->uid);
	}
}
