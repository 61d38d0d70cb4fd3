/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Forming a domain: arrivals, contradictions, deadlines, and the two phases; see home.h.
 *
 *   FORMING --all here--> PROBING --pairs proved--> ACTIVATING --row stored--> ACTIVE
 *
 * A contradiction fails the domain for everybody at once, naming both sides. A rank whose place
 * is taken is refused alone. A deadline belongs to a rank: the one that its caller gave, or the
 * home's connect_timeout_s counted from the first arrival. When the deadlines of all who wait have
 * passed the domain fails; before that only the rank itself withdraws.
 * Pairs on one node are proved by what was checked at arrival: the device is here, healthy, and
 * its process's own. PREPARE reserves; the row is stored before COMMIT is sent.
 */
#include "home.h"

#include "away.h"

#include "ask.h"
#include "device.h"
#include "emit.h"
#include "part.h"
#include "split.h"
#include "told.h"
#include "who.h"

#include <stdio.h>
#include <string.h>

/* ---- who is missing ---- */

/* Those who gave up at their deadline have been seen: a time-out does not blame them. */
static uint32_t list_missing(struct hc_core *c, struct hc_home *h, bool all, char *text,
			     size_t bytes)
{
	const struct hc_place *pl;
	uint32_t i, n = 0;
	size_t at = 0;

	text[0] = '\0';
	for (i = 0; i < h->nranks; i++) {
		pl = hc_home_place(c, h, i);
		if (pl->state != HC_W_member_state_EXPECTED || (pl->gave_up && !all))
			continue;
		n++;
		if (at + 96 < bytes)
			at += hc_missing_one(hc_home_roll(c, h, i), i, n == 1, text + at,
					     bytes - at);
		else if (at < bytes && text[at - 1] != '.')
			at += (size_t)snprintf(text + at, bytes - at, ", ...");
	}
	if (at < bytes)
		snprintf(text + at, bytes - at, " (%u of %u missing)", n, h->nranks);
	return n;
}

void hc_home_missing(struct hc_core *c, struct hc_home *h, char *text, size_t bytes)
{
	list_missing(c, h, true, text, bytes);
}

/* ---- answers ---- */

static struct hc_m_verdict verdict_on(const struct hc_m_arrive *m, uint64_t id, int code,
				      const char *text)
{
	return (struct hc_m_verdict){.key_a = m->key_a,
				     .key_b = m->key_b,
				     .id = id,
				     .rank = m->rank,
				     .pid = m->pid,
				     .code = (uint16_t)code,
				     .text = hc_str(text)};
}

static void send_verdict(struct hc_core *c, uint32_t node, const struct hc_m_arrive *m, uint64_t id,
			 int code, const char *text)
{
	const struct hc_m_verdict v = verdict_on(m, id, code, text);

	hc_emit_send(c, node, &hc_desc_verdict, &v);
}

/* One that waits by our setting is told it: its own node may have another. */
static void accept(struct hc_core *c, struct hc_home *h, uint32_t node, const struct hc_m_arrive *m)
{
	struct hc_m_verdict v =
		verdict_on(m, h->id, 0, h->name == HC_NONE ? "" : c->names[h->name].text);

	if (!m->timeout_ms && node != HC_SELF_NODE) {
		v.connect_timeout_ms = (uint32_t)(c->set.connect_timeout_ns / 1000000u);
		v.connect_origin = hc_str(c->set.connect_timeout_origin);
	}
	hc_emit_send(c, node, &hc_desc_verdict, &v);
}

static void send_cancel(struct hc_core *c, struct hc_home *h, uint32_t node)
{
	const struct hc_home_busy *b = hc_home_now(c, h);
	struct hc_m_cancel m = {
		.id = h->id,
		.epoch = h->epoch,
		.incarnation = c->self.incarnation,
		.code = b->end_code,
		.text = hc_str(hc_home_cause(c, h)),
		.retry_after_ms = b->end_code == HC_E_AGAIN && b->cut ? (uint32_t)b->cut : HC_NONE};

	hc_emit_send(c, node, &hc_desc_cancel, &m);
}

void hc_home_cancel(struct hc_core *c, struct hc_home *h, uint32_t also, int code, const char *text)
{
	struct hc_home_busy *b = hc_home_busy(c, h);
	char line[HC_CAUSE_MAX + 64], name[32];

	hc_home_set_cause(c, h, HC_W_event_code_DOMAIN_FAILED, HC_NONE, 0, text);
	b->end_code = (uint16_t)code;
	if (b->staged)
		also = HC_SELF_NODE; /* its part is here from the first, its ranks may not be */
	HC_TEXT(line, "%s: %s", hc_home_name(c, h, name, sizeof(name)), text);
	hc_emit_log(c, HC_LOG_WARN, HC_W_event_code_DOMAIN_FAILED, h->id, HC_NONE, line);
	hc_emit_journal(c, HC_W_event_code_DOMAIN_FAILED, h->id, 0, HC_NONE, 0, h->uid, text);
	hc_home_each_node(c, h, send_cancel);
	if (also != HC_NONE && c->node_mark[also] != c->node_round)
		send_cancel(c, h, also);
	hc_home_remember(c, h, HC_W_domain_state_FAILED);
	hc_home_set_state(c, h, HC_W_domain_state_FAILED);
	hc_home_over(c, h);
}

/* ---- the two phases ---- */

static void send_prepare(struct hc_core *c, struct hc_home *h, uint32_t node)
{
	const struct hc_wish *w = &c->wishes[hc_home_number(c, h)];
	struct hc_m_prepare m = {.id = h->id,
				 .epoch = h->epoch,
				 .incarnation = c->self.incarnation,
				 .persist = node != HC_SELF_NODE,
				 .priority = h->priority,
				 .weight = h->weight,
				 .channels = w->channels,
				 .channel_mbps = w->mbps,
				 .channel_hold_ms = w->hold_ms,
				 .channel_wait = w->wait};

	hc_emit_send(c, node, &hc_desc_prepare, &m);
}

/* Channels are waited for as long as the ranks wait. */
static uint64_t prepare_until(const struct hc_core *c, const struct hc_home *h)
{
	const struct hc_home_busy *b = hc_home_now(c, h);
	const struct hc_wish *w = &c->wishes[hc_home_number(c, h)];
	const uint64_t at = c->now + c->set.prepare_limit_ns;

	return w->channels && w->wait && b->deadline > at ? b->deadline : at;
}

static void begin(struct hc_core *c, struct hc_home *h)
{
	hc_index_del(&c->home_by_parent, h->busy);
	hc_home_set_state(c, h, HC_W_domain_state_PROBING);
	hc_home_set_state(c, h, HC_W_domain_state_ACTIVATING);
	h->epoch = 1;
	h->step = HOME_PREPARING;
	hc_home_alarm(c, h, prepare_until(c, h));
	hc_home_ask_each(c, h, send_prepare);
}

void hc_home_on_prepared(struct hc_core *c, uint32_t node, const struct hc_m_prepared *m)
{
	struct hc_home *h = hc_home_by_id(c, m->id);
	char text[HC_CAUSE_MAX], name[32];

	if (!h || h->step != HOME_PREPARING || h->epoch != m->epoch || !hc_home_heard(c, h, node))
		return;
	if (m->code) {
		HC_TEXT(text, "node %s cannot take part: %.*s", c->nodes[node].name,
			(int)m->text.len, m->text.p);
		/* nothing is cut before it is ACTIVE */
		hc_home_busy(c, h)->cut = m->retry_after_ms ? m->retry_after_ms : 1;
		hc_home_cancel(c, h, HC_NONE, m->code, text);
		return;
	}
	if (hc_home_busy(c, h)->pending)
		return;
	hc_home_alarm(c, h, HC_NEVER);
	if (!hc_home_busy(c, h)->quiet)
		hc_told_formed(hc_home_name(c, h, name, sizeof(name)), h->nranks, h->epoch, text,
			       sizeof(text));
	hc_home_set_cause(c, h, HC_W_event_code_DOMAIN_ACTIVE, HC_NONE, 0, "");
	hc_home_store(c, h, HOME_COMMITTING, HC_W_event_code_DOMAIN_ACTIVE, text);
}

static void send_commit(struct hc_core *c, struct hc_home *h, uint32_t node)
{
	struct hc_m_commit m = {.id = h->id,
				.epoch = h->epoch,
				.incarnation = c->self.incarnation,
				.nranks = h->nranks,
				.number = h->number,
				.stored = node == HC_SELF_NODE};

	hc_emit_send(c, node, &hc_desc_commit, &m);
}

/* The row is stored: it is so. */
void hc_home_commit(struct hc_core *c, struct hc_home *h)
{
	struct hc_place *pl;
	char text[256], name[32];
	uint32_t i;

	for (i = 0; i < h->nranks; i++) {
		pl = hc_home_place(c, h, i);
		if (pl->state == HC_W_member_state_JOINED)
			pl->state = HC_W_member_state_READY;
	}
	hc_index_del(&c->home_by_key, h->busy);
	h->roll = hc_roll_of(c, hc_home_now(c, h)->list_a, hc_home_now(c, h)->list_b);
	hc_home_set_state(c, h, HC_W_domain_state_ACTIVE);
	if (!hc_home_busy(c, h)->quiet) {
		hc_told_active(hc_home_name(c, h, name, sizeof(name)), h->nranks, text,
			       sizeof(text));
		hc_emit_log(c, HC_LOG_INFO, HC_W_event_code_DOMAIN_ACTIVE, h->id, HC_NONE, text);
	}
	hc_home_each_node(c, h, send_commit);
	hc_home_answer_active(c, h);
	hc_home_settle(c, h);
	hc_away_look(c, h);
	hc_home_rest(c, h);
}

/* ---- arrivals ---- */

static struct hc_home *home_for(struct hc_core *c, uint32_t node, const struct hc_m_arrive *m)
{
	struct hc_home *h;
	char text[512];
	uint64_t id;
	int r;

	if (hc_home_comes_again(c, node, m))
		return NULL;
	if (m->id) {
		h = hc_home_by_id(c, m->id);
		if (h && h->state == HC_W_domain_state_FORMING &&
		    hc_home_now(c, h)->key_a == m->key_a && hc_home_now(c, h)->key_b == m->key_b)
			return h;
		send_verdict(c, node, m, m->id, HC_E_GONE,
			     "the root info has expired: its domain was formed, failed or ended");
		return NULL;
	}
	h = hc_home_by_key(c, m->key_a, m->key_b);
	if (h)
		return h;
	id = hc_home_draw_id(c);
	r = hc_split_parent_check(c, m->parent, text, sizeof(text));
	if (!r)
		r = hc_home_make(c, id, m->key_a, m->key_b, m->uid, m->nranks, m->name, false, text,
				 sizeof(text));
	if (r) {
		if (r == HC_E_EXISTS)
			hc_home_name_taken(c, m, text, sizeof(text));
		send_verdict(c, node, m, 0, r, text);
		return NULL;
	}
	h = hc_home_by_id(c, id);
	hc_home_busy(c, h)->keyed = true;
	hc_home_busy(c, h)->parent = m->parent;
	if (m->parent)
		hc_index_add_in(&c->home_by_parent, h->busy);
	hc_home_log_rival(c, h, m);
	return h;
}

static void take_place(struct hc_core *c, struct hc_home *h, uint32_t node,
		       const struct hc_m_arrive *m)
{
	struct hc_home_busy *b = hc_home_busy(c, h);
	struct hc_place *pl = hc_home_place(c, h, m->rank);
	struct hc_patience *wait = &c->patience[b->patience + m->rank];
	uint64_t waited_ms = (c->now - b->first) / 1000000u, deadline;

	*pl = (struct hc_place){.device = (uint16_t)m->device, .state = HC_W_member_state_JOINED};
	hc_who_take(c, pl, node, m->pid, m->started);
	*wait = (struct hc_patience){.limit = HC_NONE, .asked = m->timeout_ms};
	if (m->timeout_ms && waited_ms + m->timeout_ms < HC_NONE)
		wait->limit = (uint32_t)waited_ms + m->timeout_ms;
	if (!h->arrived++) {
		b->list_a = m->list_a;
		b->list_b = m->list_b;
		h->priority = m->priority;
		h->weight = m->weight;
		if (m->channels || c->wishes[hc_home_number(c, h)].channels)
			c->wishes[hc_home_number(c, h)] = HC_WISH_OF(m);
	}
	if (wait->limit != HC_NONE) {
		deadline = b->first + wait->limit * 1000000ull;
		if (deadline < b->deadline) {
			b->deadline = deadline;
			hc_missing_alarm(c, h);
		}
	}
	c->domain_changes++;
}

/* The place is taken: by the same process (true), or by another, who is told. */
static bool same_again(struct hc_core *c, struct hc_home *h, uint32_t node,
		       const struct hc_m_arrive *m)
{
	const struct hc_who *who = hc_who(c, hc_home_place(c, h, m->rank));
	char text[256];

	if (who->pid == m->pid && who->started == m->started && who->node == node)
		return true;
	HC_TEXT(text, "rank %u is held by process %u on node %s, which joined first", m->rank,
		who->pid, c->nodes[who->node].name);
	send_verdict(c, node, m, h->id, HC_E_BUSY, text);
	return false;
}

enum arrival {
	ARRIVED,
	ARRIVED_REFUSED, /* this rank alone; told */
	ARRIVED_OVER,    /* the domain has failed; all are told */
};

/* The home of this arrival, when the arrival may come in. */
static enum arrival enter(struct hc_core *c, uint32_t node, const struct hc_m_arrive *m,
			  struct hc_home **home)
{
	struct hc_home *h;
	char text[HC_CAUSE_MAX];

	if (!m->nranks || m->rank >= m->nranks || m->device > HC_DEVICE_LAST) {
		send_verdict(c, node, m, m->id, HC_E_INVALID,
			     m->device > HC_DEVICE_LAST ? "the device's number is above 65534"
							: "the rank is none of the domain's");
		return ARRIVED_REFUSED;
	}
	h = home_for(c, node, m);
	if (!h)
		return ARRIVED_REFUSED;
	if (h->uid != m->uid) {
		send_verdict(c, node, m, h->id, HC_E_PERMISSION,
			     "the domain belongs to another user");
		return ARRIVED_REFUSED;
	}
	if (!hc_home_agrees(c, h, m)) {
		hc_home_contradiction(c, h, node, m, text, sizeof(text));
		/* the newcomer's part learns the id first, so that the end of it all finds it */
		accept(c, h, node, m);
		hc_home_cancel(c, h, node, HC_E_MISMATCH, text);
		return ARRIVED_OVER;
	}
	if (!h->nranks && !hc_home_set_nranks(c, h, m->nranks)) {
		send_verdict(c, node, m, h->id, HC_E_LIMIT,
			     "ranks_max is reached on the home node");
		return ARRIVED_REFUSED;
	}
	*home = h;
	return ARRIVED;
}

/* The rank takes its place, or has it already; false: another one has, and it is told. */
static bool come_in(struct hc_core *c, struct hc_home *h, uint32_t node,
		    const struct hc_m_arrive *m)
{
	struct hc_home_busy *b = hc_home_busy(c, h);

	if (hc_home_place(c, h, m->rank)->state != HC_W_member_state_EXPECTED)
		return same_again(c, h, node, m);
	if (!h->arrived && !b->staged) {
		b->first = c->now;
		b->deadline = c->now + c->set.connect_timeout_ns;
		hc_home_alarm(c, h, b->deadline);
	}
	take_place(c, h, node, m);
	hc_missing_changed(c, h, node);
	return true;
}

static void begin_if_complete(struct hc_core *c, struct hc_home *h)
{
	if (h->arrived == h->nranks && !hc_home_busy(c, h)->staged &&
	    h->state == HC_W_domain_state_FORMING)
		begin(c, h);
}

void hc_home_on_arrive(struct hc_core *c, uint32_t node, const struct hc_m_arrive *m)
{
	struct hc_home *h;

	if (enter(c, node, m, &h) || !come_in(c, h, node, m))
		return;
	accept(c, h, node, m);
	begin_if_complete(c, h);
}

static void accept_all(struct hc_core *c, struct hc_home *h, uint32_t node,
		       const struct hc_m_arrivals *m, const struct hc_arr *ranks)
{
	struct hc_m_accepted a = {.key_a = m->key_a,
				  .key_b = m->key_b,
				  .id = h->id,
				  .pid = m->pid,
				  .name = hc_str(h->name == HC_NONE ? "" : c->names[h->name].text),
				  .ranks = *ranks};

	hc_emit_send(c, node, &hc_desc_accepted, &a);
}

void hc_home_on_arrivals(struct hc_core *c, uint32_t node, const struct hc_m_arrivals *m)
{
	struct hc_m_arrive one = {.key_a = m->key_a,
				  .key_b = m->key_b,
				  .id = m->id,
				  .uid = m->uid,
				  .name = m->name,
				  .nranks = m->nranks,
				  .pid = m->pid,
				  .started = m->started,
				  .list_a = m->list_a,
				  .list_b = m->list_b,
				  .timeout_ms = m->timeout_ms,
				  .priority = m->priority,
				  .weight = m->weight,
				  .incarnation = m->incarnation,
				  .channels = m->channels,
				  .channel_mbps = m->channel_mbps,
				  .channel_hold_ms = m->channel_hold_ms,
				  .channel_wait = m->channel_wait,
				  .parent = m->parent};
	struct hc_arr a = m->ranks, came = {0};
	struct hc_home *h = NULL;
	struct hc_m_arrival r;
	struct hc_m_rank rank;
	enum arrival how;

	while (hc_arr_next(&a, &hc_desc_arrival, HC_PROTO_MAX, &r)) {
		rank.rank = one.rank = r.rank;
		one.device = r.device;
		/* what the ranks have in common was judged with the first of them */
		how = h && r.rank < h->nranks && r.device <= HC_DEVICE_LAST
			      ? ARRIVED
			      : enter(c, node, &one, &h);
		if (how == ARRIVED_OVER)
			return;
		if (how == ARRIVED && come_in(c, h, node, &one))
			hc_assert(!hc_arr_put(&came, c->scratch, HC_OUT_BYTES, &hc_desc_rank,
					      HC_PROTO_MAX, &rank));
	}
	if (!h || !came.count)
		return;
	hc_home_busy(c, h)->quiet = m->quiet == 1;
	accept_all(c, h, node, m, &came);
	begin_if_complete(c, h);
}

void hc_home_withdraw(struct hc_core *c, struct hc_home *h, struct hc_place *pl,
		      const struct hc_m_depart *m)
{
	char text[256];

	if (m->why == HC_W_depart_DRAINED) { /* nobody has to wait for it */
		HC_TEXT(text, "node %s is being drained: it takes no new domains",
			c->nodes[hc_who(c, pl)->node].name);
		hc_home_cancel(c, h, HC_NONE, HC_E_AGAIN, text);
		return;
	}
	if (h->step == HOME_PREPARING) {
		HC_TEXT(text, "rank %u, pid %u on node %s, %s while the domain was activating",
			m->rank, m->pid, c->nodes[hc_who(c, pl)->node].name,
			hc_word_depart(m->why));
		hc_home_cancel(c, h, HC_NONE, HC_E_PEER_LOST, text);
		return;
	}
	hc_who_drop(c, pl);
	memset(pl, 0, sizeof(*pl));
	pl->gave_up = m->why == HC_W_depart_TIMEOUT;
	h->arrived--;
	c->domain_changes++;
	if (hc_home_busy(c, h)->keyed && !h->arrived)
		hc_home_unmake(c, h->id);
	else
		hc_missing_changed(c, h, HC_SELF_NODE);
}

void hc_home_activate(struct hc_core *c, uint64_t id, struct hc_session *s, uint32_t request,
		      uint32_t timeout_ms)
{
	struct hc_home *h = hc_home_by_id(c, id);
	char text[HC_CAUSE_MAX], missing[256];
	uint64_t ticket;

	(void)timeout_ms; /* nothing of it waits for others while the domain is of one node */
	if (!h || h->state != HC_W_domain_state_FORMING || !hc_home_busy(c, h)->staged) {
		hc_emit_error(c, s->id, request, HC_E_INVALID,
			      "only a created domain that was not activated yet can be activated");
		return;
	}
	if (h->arrived < h->nranks) {
		hc_home_missing(c, h, missing, sizeof(missing));
		HC_TEXT(text, "ranks without a device: %s; give them theirs before", missing);
		hc_emit_error(c, s->id, request, HC_E_INVALID, text);
		return;
	}
	ticket = hc_ask_open(c, s->id, request);
	if (!ticket || !hc_home_wait(c, h, HC_SELF_NODE, ticket, true)) {
		hc_ask_drop(c, ticket);
		hc_emit_error(c, s->id, request, HC_E_LIMIT,
			      "too many requests wait for an answer");
		return;
	}
	begin(c, h);
}

void hc_home_attached(struct hc_core *c, uint64_t id, uint32_t rank, uint32_t process)
{
	struct hc_home *h = hc_home_by_id(c, id);
	struct hc_place *pl;

	if (!h || rank >= h->nranks)
		return;
	pl = hc_home_place(c, h, rank);
	hc_who_drop(c, pl);
	hc_who_take(c, pl, HC_SELF_NODE, c->processes[process].pid, c->processes[process].started);
}

void hc_home_changed(struct hc_core *c, uint64_t id)
{
	struct hc_home *h = hc_home_by_id(c, id);

	if (h && h->state >= HC_W_domain_state_ACTIVE && h->step != HOME_ENDING &&
	    h->step != HOME_OVER)
		hc_home_put(c, h);
}

/* ---- deadlines ---- */

static uint64_t deadline_of(const struct hc_core *c, const struct hc_home *h, uint32_t rank)
{
	const struct hc_home_busy *b = hc_home_now(c, h);
	const uint32_t limit = c->patience[b->patience + rank].limit;

	return b->first + (limit == HC_NONE ? c->set.connect_timeout_ns : limit * 1000000ull);
}

/* For one who waited in vain, by the limit that was its own. */
static void late_text(struct hc_core *c, struct hc_home *h, uint32_t rank, char *text, size_t bytes)
{
	const struct hc_patience *wait = &c->patience[hc_home_now(c, h)->patience + rank];
	const bool own = wait->limit != HC_NONE;
	const unsigned long long tenths =
		(own ? wait->asked * 1000000ull : c->set.connect_timeout_ns) / 100000000u;
	char missing[256], name[32];
	const char *what = "no sign of rank";
	int n;

	if (!list_missing(c, h, false, missing, sizeof(missing))) {
		list_missing(c, h, true, missing, sizeof(missing));
		what = "never all at once: came, and gave up before the last, rank";
	}
	n = snprintf(text, bytes, "%s: %s %s within %llu.%llu s (",
		     hc_home_name(c, h, name, sizeof(name)), what, missing, tenths / 10,
		     tenths % 10);
	if (n < 0 || (size_t)n >= bytes)
		return;
	if (own)
		snprintf(text + n, bytes - (size_t)n, "limit of the call or HCOMM_TIMEOUT_SEC)");
	else
		snprintf(text + n, bytes - (size_t)n, "connect_timeout_s = %llu, %s)",
			 (unsigned long long)(c->set.connect_timeout_ns / 1000000000u),
			 c->set.connect_timeout_origin);
}

static void late_why(struct hc_core *c, struct hc_home *h, uint32_t rank, char *text, size_t bytes)
{
	const struct hc_home_busy *b = hc_home_now(c, h);
	const struct hc_roll_other said = {
		.list_a = b->list_a, .list_b = b->list_b, .nranks = h->nranks, .rank = HC_NONE};
	char rival[512];
	size_t n;

	late_text(c, h, rank, text, bytes);
	hc_home_say_rival(c, h, hc_str(h->name == HC_NONE ? "" : c->names[h->name].text), &said,
			  rival, sizeof(rival));
	n = strlen(text);
	hc_str_copy(hc_str(rival), text + n, bytes - n);
}

static void give_up(struct hc_core *c, struct hc_home *h, uint32_t rank)
{
	const struct hc_home_busy *b = hc_home_now(c, h);
	struct hc_place *pl = hc_home_place(c, h, rank);
	const struct hc_who *who = hc_who(c, pl);
	struct hc_m_arrive m = {
		.key_a = b->key_a, .key_b = b->key_b, .rank = rank, .pid = who->pid};
	struct hc_m_depart d = {.rank = rank, .pid = who->pid, .why = HC_W_depart_TIMEOUT};
	char text[HC_CAUSE_MAX];

	late_why(c, h, rank, text, sizeof(text));
	send_verdict(c, who->node, &m, h->id, HC_E_TIMEOUT, text);
	hc_home_withdraw(c, h, pl, &d);
}

void hc_home_drop(struct hc_core *c, struct hc_home *h, uint32_t rank)
{
	const struct hc_home_busy *b = hc_home_now(c, h);
	struct hc_place *pl = hc_home_place(c, h, rank);
	const struct hc_who *who = hc_who(c, pl);
	const struct hc_known_node *n = &c->nodes[who->node];
	struct hc_m_arrive m = {
		.key_a = b->key_a, .key_b = b->key_b, .rank = rank, .pid = who->pid};
	struct hc_m_depart d = {.rank = rank, .pid = who->pid, .why = HC_W_depart_WITHDRAWN};
	char text[HC_CAUSE_MAX];

	HC_TEXT(text, "its place is lost: for the home, node %.64s %s", n->name, n->why);
	if (n->lost_kind == HC_W_event_code_NODE_UNREACHABLE)
		send_verdict(c, who->node, &m, h->id, HC_E_PEER_LOST, text);
	hc_home_withdraw(c, h, pl, &d);
}

/* How many of those who are here are late, the last of them, and the others' next deadline. */
static uint32_t count_late(struct hc_core *c, struct hc_home *h, uint64_t *next, uint32_t *last)
{
	const struct hc_place *pl;
	uint32_t i, late = 0;
	uint64_t d;

	*next = HC_NEVER;
	for (i = 0; i < h->nranks; i++) {
		pl = hc_home_place(c, h, i);
		if (pl->state != HC_W_member_state_JOINED)
			continue;
		d = deadline_of(c, h, i);
		if (d <= c->now) {
			late++;
			*last = i;
		} else if (d < *next) {
			*next = d;
		}
	}
	return late;
}

/* Those who are late go alone; as many as there is room for, the others at once after them. */
static void withdraw_late(struct hc_core *c, struct hc_home *h, uint64_t next)
{
	const struct hc_place *pl;
	uint32_t i;

	for (i = 0; i < h->nranks; i++) {
		pl = hc_home_place(c, h, i);
		if (pl->state != HC_W_member_state_JOINED || deadline_of(c, h, i) > c->now)
			continue;
		if (!hc_emit_room(c) || !hc_emit_ring_spare(c)) {
			next = c->now;
			break;
		}
		give_up(c, h, i);
	}
	hc_home_busy(c, h)->deadline = next;
	hc_missing_alarm(c, h);
}

static void nobody_waits(struct hc_core *c, struct hc_home *h)
{
	char text[HC_CAUSE_MAX], name[32];

	HC_TEXT(text, "%s: not %s within %llu s (connect_timeout_s, %s)",
		hc_home_name(c, h, name, sizeof(name)),
		hc_home_now(c, h)->staged ? "activated" : "joined",
		(unsigned long long)(c->set.connect_timeout_ns / 1000000000u),
		c->set.connect_timeout_origin);
	hc_home_cancel(c, h, HC_NONE, HC_E_TIMEOUT, text);
}

void hc_home_form_timeout(struct hc_core *c, struct hc_home *h)
{
	const struct hc_wish *w = &c->wishes[hc_home_number(c, h)];
	uint32_t last = 0;
	char text[HC_CAUSE_MAX];
	uint64_t next;
	int r;

	if (h->step == HOME_PREPARING) {
		hc_missing_prepared(c, h, text, sizeof(text));
		if (w->channels && w->wait)
			HC_TEXT(text,
				"the %u channels of %u MB/s from each rank to the next, that the "
				"domain is to begin with, were not free before the limit",
				w->channels, w->mbps);
		hc_home_cancel(c, h, HC_NONE, HC_E_TIMEOUT, text);
		return;
	}
	if (h->step)
		return;
	r = hc_split_parent_check(c, hc_home_now(c, h)->parent, text, sizeof(text));
	if (r) {
		hc_home_cancel(c, h, HC_NONE, r, text);
		return;
	}
	if (hc_missing_tell(c, h))
		return;
	if (hc_home_busy(c, h)->staged || !h->arrived) {
		nobody_waits(c, h);
	} else if (count_late(c, h, &next, &last) < h->arrived) {
		withdraw_late(c, h, next);
	} else {
		late_why(c, h, last, text, sizeof(text));
		hc_home_cancel(c, h, HC_NONE, HC_E_TIMEOUT, text);
	}
}
