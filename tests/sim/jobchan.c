/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Channels of jobs: calls for them, within a node and to others; see jobs.h.
 *
 * A job draws which of its ranks are to be joined. Each end of such a tie is asked for by its own
 * rank: all that a rank has to ask for on one side is one call, so a gang over several nodes. What
 * it is given it opens, uses while its register says that it may, and gives back, or keeps until it
 * goes; now and then it opens nothing, and the grant lapses. There is less than is wanted, so calls
 * wait, are refused with a hint, and meet their limits. After each step:
 *
 *   an end is given once, and what an answer says is stored before
 *   two channels are never in one register
 *   who uses a channel from both ends was admitted in one epoch, and both nodes hold it alike
 *   on each link what is used is the sum of what is granted, and within what may be
 *
 * In the end both nodes of a channel have it, or neither; nobody holds what no process has; and of
 * all links all is free.
 */
#include "jobsimp.h"

#include "channel.h"
#include "worldquota.h"
#include "who.h"

#include <string.h>

#define AGAIN_NS (100 * SIM_MS)

enum { LINK_MBPS = 1000, LINK_VCS = 3 };

/* ---- what there will be ---- */

static bool is_tied(const struct job *g, uint32_t a, uint32_t b)
{
	uint32_t i;

	for (i = 0; i < g->nties; i++)
		if ((g->ties[i].rank[0] == a && g->ties[i].rank[1] == b) ||
		    (g->ties[i].rank[0] == b && g->ties[i].rank[1] == a))
			return true;
	return false;
}

static bool on_one_node(const struct job_world *w, const struct job *g, uint32_t a, uint32_t b)
{
	return w->procs[g->ranks[a].proc].node == w->procs[g->ranks[b].proc].node;
}

void job_chan_plan(struct job_world *w, uint32_t job)
{
	struct job *g = w->jobs[job];
	const uint32_t n = g->nranks < 2 || job_pick(w, 3) ? 0 : 1 + job_pick(w, JOB_TIES);
	uint32_t i, a, b;

	for (i = 0; i < n; i++) {
		a = job_pick(w, g->nranks);
		b = job_pick(w, g->nranks);
		if (a == b || is_tied(g, a, b))
			continue;
		g->ties[g->nties++] = (struct job_tie){
			.rank = {a, b},
			.mbps = {100 * job_pick(w, 5), 100 * job_pick(w, 5)},
			.rings = on_one_node(w, g, a, b) && job_pick(w, 2),
			.hold_ns = job_pick(w, 4) ? SIM_MS * (100 + job_pick(w, 15000)) : HC_NEVER,
			.lazy = !job_pick(w, 10)};
	}
	g->ties_at = sim_now(w->sim) + SIM_MS * (100 + job_pick(w, 9000));
	g->ties_wait = job_pick(w, 2);
}

/* ---- asking ---- */

static void set_ends(struct job *g, uint32_t rank, unsigned side, uint8_t from, uint8_t to)
{
	uint32_t i;

	for (i = 0; i < g->nties; i++)
		if (g->ties[i].rank[side] == rank && g->ties[i].end[side].state == from)
			g->ties[i].end[side].state = to;
}

static void ask_for(struct job_world *w, uint32_t proc, uint32_t job, uint32_t rank, unsigned side)
{
	struct job *g = w->jobs[job];
	struct hc_m_channel_want m = {.id = g->ranks[rank].id,
				      .epoch = g->ranks[rank].epoch,
				      .rank = rank,
				      .wait = g->ties_wait,
				      .timeout_ms = g->timeout_ms};
	uint8_t bytes[32 * JOB_TIES];
	uint32_t i;

	for (i = 0; i < g->nties; i++) {
		const struct job_tie *t = &g->ties[i];
		const struct hc_m_want_piece p = {.peer = t->rank[!side],
						  .mbps = t->mbps[side],
						  .back_mbps = t->mbps[!side],
						  .flags = !t->rings};

		if (t->rank[side] != rank || t->end[side].state != TIE_NONE)
			continue;
		job_want(w, !hc_arr_put(&m.pieces, bytes, sizeof(bytes), &hc_desc_want_piece,
					HC_PROTO_MAX, &p));
	}
	set_ends(g, rank, side, TIE_NONE, TIE_ASKED);
	w->ask_what = side;
	job_ask(w, proc, ASK_WANT, job, rank, &hc_desc_channel_want, &m);
}

static void ask_one(struct job_world *w, uint32_t proc, uint32_t job, uint32_t tie, unsigned side)
{
	struct job_tie *t = &w->jobs[job]->ties[tie];
	struct job_tie_end *e = &t->end[side];
	const struct hc_m_channel_open o = {.channel = e->channel, .rank = t->rank[side]};
	const struct hc_m_channel_release r = {.channel = e->channel, .rank = t->rank[side]};

	w->ask_what = tie << 1 | side;
	if (e->state == TIE_GIVEN) {
		e->state = TIE_OPENING;
		job_ask(w, proc, ASK_OPEN, job, t->rank[side], &hc_desc_channel_open, &o);
	} else {
		e->state = TIE_CLOSING;
		job_ask(w, proc, ASK_CLOSE, job, t->rank[side], &hc_desc_channel_release, &r);
	}
}

/* ---- a turn ---- */

static const struct job_register *reg_of(const struct job_world *w, const struct job *g,
					 const struct job_tie *t, unsigned side)
{
	return &w->nodes[w->procs[g->ranks[t->rank[side]].proc].node].registers[t->end[side].slot];
}

static bool may_use(const struct job_world *w, const struct job *g, const struct job_tie *t,
		    unsigned side)
{
	const struct job_register *r = reg_of(w, g, t, side);

	return r->id == t->end[side].channel && r->state == HC_W_channel_state_OK;
}

static void end_turn(struct job_world *w, uint32_t proc, uint32_t job, uint32_t tie, unsigned side)
{
	struct job *g = w->jobs[job];
	struct job_tie *t = &g->ties[tie];
	struct job_tie_end *e = &t->end[side];
	const uint64_t now = sim_now(w->sim);

	if ((e->state == TIE_GIVEN || e->state == TIE_OPEN) && !may_use(w, g, t, side)) {
		e->state = TIE_OVER; /* its register says so */
	} else if (e->state == TIE_GIVEN && !t->lazy) {
		ask_one(w, proc, job, tie, side);
	} else if (e->state == TIE_OPEN && t->hold_ns != HC_NEVER) {
		if (now >= e->until)
			ask_one(w, proc, job, tie, side);
		else
			job_proc_wake(w, proc, e->until - now);
	}
}

void job_chan_turn(struct job_world *w, uint32_t proc, uint32_t job, uint32_t rank)
{
	struct job *g = w->jobs[job];
	const uint64_t now = sim_now(w->sim);
	bool asks[2] = {false, false};
	uint32_t i, side;

	if (!g->nties || w->ending)
		return;
	for (i = 0; i < g->nties; i++)
		for (side = 0; side < 2; side++) {
			const struct job_tie *t = &g->ties[i];

			if (t->rank[side] != rank)
				continue;
			end_turn(w, proc, job, i, side);
			asks[side] = asks[side] || t->end[side].state == TIE_NONE;
		}
	for (side = 0; side < 2; side++) {
		const uint64_t at = g->ranks[rank].want_at[side] > g->ties_at
					    ? g->ranks[rank].want_at[side]
					    : g->ties_at;

		if (asks[side] && now >= at)
			ask_for(w, proc, job, rank, side);
		else if (asks[side])
			job_proc_wake(w, proc, at - now);
	}
}

/* Its session ended: what was not answered is asked again. */
void job_chan_lost(struct job *g, uint32_t rank)
{
	unsigned side;

	for (side = 0; side < 2; side++) {
		set_ends(g, rank, side, TIE_ASKED, TIE_NONE);
		set_ends(g, rank, side, TIE_OPENING, TIE_GIVEN);
		set_ends(g, rank, side, TIE_CLOSING, TIE_OPEN);
	}
}

/* It died, or is out of the domain. */
void job_chan_gone(struct job *g, uint32_t rank)
{
	unsigned side;
	uint32_t i;

	for (i = 0; i < g->nties; i++)
		for (side = 0; side < 2; side++)
			if (g->ties[i].rank[side] == rank)
				g->ties[i].end[side].state = TIE_OVER;
}

/* ---- answers ---- */

/* Has the rank that end already, for another tie? */
static bool is_given(const struct job *g, const struct job_tie *but, uint32_t rank, uint64_t id)
{
	uint32_t i, side;

	for (i = 0; i < g->nties; i++)
		for (side = 0; side < 2; side++) {
			const struct job_tie *t = &g->ties[i];

			if (t != but && t->rank[side] == rank && t->end[side].channel == id &&
			    t->end[side].state >= TIE_GIVEN && t->end[side].state < TIE_OVER)
				return true;
		}
	return false;
}

static void check_grant(struct job_world *w, uint32_t job, struct job_tie *t, unsigned side,
			const struct hc_m_channel_grant *g)
{
	const struct job *j = w->jobs[job];
	const uint32_t node = w->procs[j->ranks[t->rank[side]].proc].node;
	const struct job_register *r = &w->nodes[node].registers[g->slot % JOB_CHANNELS];
	const struct hc_channel *ch = hc_channel_by_id(sim_core(w->sim, node), g->channel);

	job_want(w, g->channel && g->slot < JOB_CHANNELS && g->side < 2);
	job_want(w, g->peer == t->rank[!side] && g->mbps == t->mbps[side] &&
			    g->back_mbps == t->mbps[!side] && g->carries == t->rings);
	if (r->id != g->channel)
		job_broken(w, "node %u: channel %016llx is given, and its register is another's",
			   node, (unsigned long long)g->channel);
	if (!job_store_row(w, node, g->channel) && ch && ch->state == CHANNEL_GRANTED)
		job_broken(w, "node %u: channel %016llx is given, and no row of it is stored", node,
			   (unsigned long long)g->channel);
	if (is_given(j, t, t->rank[side], g->channel))
		job_broken(w, "node %u: an end of channel %016llx is given twice", node,
			   (unsigned long long)g->channel);
	t->end[side].channel = g->channel;
	t->end[side].slot = g->slot;
	t->end[side].epoch = j->ranks[t->rank[side]].epoch;
	t->end[side].state = TIE_GIVEN;
	w->j->channels++;
}

static void got_grants(struct job_world *w, const struct job_request *q, const struct hc_frame *f)
{
	struct job *g = w->jobs[q->job];
	struct hc_m_channel_want_r m;
	struct hc_m_channel_grant grant;
	uint32_t i;

	job_want(w, !hc_decode(&hc_desc_channel_want_r, HC_PROTO_MAX, f->body, f->body_len, &m));
	for (i = 0; i < g->nties && !w->j->bad; i++) {
		struct job_tie *t = &g->ties[i];

		if (t->rank[q->what] != q->rank || t->end[q->what].state != TIE_ASKED)
			continue;
		job_want(w, hc_arr_next(&m.grants, &hc_desc_channel_grant, HC_PROTO_MAX, &grant));
		check_grant(w, q->job, t, q->what, &grant);
	}
	job_want(w, w->j->bad ||
			    !hc_arr_next(&m.grants, &hc_desc_channel_grant, HC_PROTO_MAX, &grant));
}

static struct job_tie_end *end_of(struct job_world *w, const struct job_request *q)
{
	return &w->jobs[q->job]->ties[q->what >> 1].end[q->what & 1];
}

void job_chan_answer(struct job_world *w, const struct job_request *q, const struct hc_frame *f)
{
	struct job *g = w->jobs[q->job];
	struct job_rank *r = &g->ranks[q->rank];
	struct hc_m_channel_refused no;

	job_line(w, w->procs[r->proc].node, "job %u rank %u: its call for channels is answered: %u",
		 q->job, q->rank, f->head.type);
	switch (f->head.type) {
	case HC_MSG_channel_want_r: got_grants(w, q, f); return;
	case HC_MSG_channel_refused:
		job_want(w, !hc_decode(&hc_desc_channel_refused, HC_PROTO_MAX, f->body, f->body_len,
				       &no));
		job_want(w, no.retry_after_ms); /* what is refused now is not to be had in 0 ms */
		set_ends(g, q->rank, q->what, TIE_ASKED, TIE_NONE);
		r->want_at[q->what] =
			sim_now(w->sim) + AGAIN_NS +
			(no.retry_after_ms == HC_NONE ? SIM_S : no.retry_after_ms * SIM_MS);
		return;
	case HC_MSG_channel_open_r:
		if (end_of(w, q)->state == TIE_OPENING) {
			end_of(w, q)->state = TIE_OPEN;
			end_of(w, q)->until = sim_now(w->sim) + g->ties[q->what >> 1].hold_ns;
		}
		return;
	default: end_of(w, q)->state = TIE_OVER; /* given back */
	}
}

void job_chan_refused(struct job_world *w, const struct job_request *q, uint32_t code)
{
	struct job *g = w->jobs[q->job];

	if (q->kind == ASK_WANT && code == HC_E_SUSPENDED) {
		set_ends(g, q->rank, q->what, TIE_ASKED, TIE_NONE);
		g->ranks[q->rank].want_at[q->what] = sim_now(w->sim) + AGAIN_NS;
	} else if (q->kind == ASK_WANT) {
		set_ends(g, q->rank, q->what, TIE_ASKED, TIE_OVER);
	} else {
		end_of(w, q)->state = TIE_OVER;
	}
}

/* ---- registers and links ---- */

void job_chan_register(struct job_world *w, uint32_t node, const struct hc_action *a)
{
	struct job_register *r = &w->nodes[node].registers[a->u.reg.slot % JOB_CHANNELS];
	const uint32_t life = sim_life(w->sim, node);

	job_want(w, a->u.reg.slot < JOB_CHANNELS && a->u.reg.channel);
	if (r->id && r->id != a->u.reg.channel && r->state == HC_W_channel_state_OK &&
	    r->life == life)
		job_broken(w, "node %u: channels %016llx and %016llx are in one register", node,
			   (unsigned long long)r->id, (unsigned long long)a->u.reg.channel);
	job_line(w, node, "channel %016llx is %s", (unsigned long long)a->u.reg.channel,
		 hc_word_channel_state(a->u.reg.state));
	*r = (struct job_register){a->u.reg.channel, life, a->u.reg.state};
}

/* As the shell does: who is not taken back by a new daemon is over. */
void job_chan_started(struct job_world *w, uint32_t node)
{
	struct job_register *r = w->nodes[node].registers;
	uint32_t i;

	for (i = 0; i < JOB_CHANNELS; i++)
		if (r[i].id && r[i].life != sim_life(w->sim, node))
			r[i].state = HC_W_channel_state_REVOKED;
}

/* The way of each device out of the node, and one between any two ranks in it. */
void job_chan_links(struct job_world *w, uint32_t node)
{
	struct hc_link_fact f = {.type = HC_W_link_type_SHM,
				 .a = HC_NONE,
				 .b = HC_NONE,
				 .mbps = LINK_MBPS,
				 .vcs = LINK_VCS,
				 .present = true,
				 .source = "sim"};
	const struct hc_event ev = {.kind = HC_EV_LINK_FACT, .u.link = &f};
	uint32_t i;

	sim_feed(w->sim, node, &ev);
	f.type = HC_W_link_type_ROCE;
	f.b = HC_END_NET;
	for (i = 0; i < JOB_DEVICES; i++) {
		f.a = i;
		sim_feed(w->sim, node, &ev);
	}
}

/* ---- what must hold ---- */

static const struct hc_channel *held_at(struct job_world *w, uint32_t node, uint64_t id)
{
	struct hc_core *c = sim_core(w->sim, node);
	const struct hc_channel *ch = c ? hc_channel_by_id(c, id) : NULL;

	return ch && ch->state == CHANNEL_GRANTED ? ch : NULL;
}

static bool alike(const struct hc_channel *a, const struct hc_channel *b)
{
	return a->domain == b->domain && a->epoch == b->epoch && a->rank[0] == b->rank[0] &&
	       a->rank[1] == b->rank[1] && a->mbps[0] == b->mbps[0] && a->mbps[1] == b->mbps[1];
}

static void use(struct job_world *w, const struct job *g, const struct job_tie *t)
{
	const struct hc_channel *at[2];
	uint32_t side, node;

	for (side = 0; side < 2; side++) {
		node = w->procs[g->ranks[t->rank[side]].proc].node;
		at[side] = held_at(w, node, t->end[side].channel);
		if (sim_core(w->sim, node) && !w->nodes[node].down && !at[side])
			job_broken(w,
				   "node %u: channel %016llx is used, its register allows it, and "
				   "the daemon does not hold it",
				   node, (unsigned long long)t->end[side].channel);
	}
	w->j->messages++;
	if (t->end[0].epoch != t->end[1].epoch || (at[0] && at[1] && !alike(at[0], at[1])) ||
	    (at[0] && at[0]->epoch != t->end[0].epoch))
		job_broken(w,
			   "channel %016llx of job %u is used by rank %u in epoch %u and rank %u "
			   "in epoch %u, and its nodes do not hold it alike",
			   (unsigned long long)t->end[0].channel, g->number, t->rank[0],
			   t->end[0].epoch, t->rank[1], t->end[1].epoch);
}

void job_chan_ops(struct job_world *w, uint32_t job)
{
	const struct job *g = w->jobs[job];
	uint32_t i;

	for (i = 0; i < g->nties && !w->j->bad; i++) {
		const struct job_tie *t = &g->ties[i];

		if (t->end[0].state == TIE_OPEN && t->end[1].state == TIE_OPEN &&
		    t->end[0].channel == t->end[1].channel && may_use(w, g, t, 0) &&
		    may_use(w, g, t, 1))
			use(w, g, t);
	}
}

/* On every link: used + free = total, and used is what channels were granted. */
const char *job_chan_wrong(struct job_world *w, uint32_t node)
{
	struct hc_core *c = sim_core(w->sim, node);
	const struct hc_channels *x = c->chan;
	uint64_t sum[JOB_LINKS][2] = {{0}};
	struct hc_admit_use u;
	uint32_t n, side;

	if (x->changes == w->nodes[node].changes)
		return NULL;
	w->nodes[node].changes = x->changes;
	hc_admit_check(c->admit);
	for (n = 0; n < x->pool.fresh; n++)
		for (side = 0; side < 2 && x->at[n].state == CHANNEL_GRANTED; side++)
			sum[x->at[n].link][side] += x->at[n].mbps[side];
	for (n = 0; n < c->nlinks; n++) {
		hc_admit_link_use(c->admit, n, &u);
		/* the way out that the ports make shrinks with them */
		if (c->link_facts[n].a != HC_END_NET &&
		    (u.used_mbps[0] > u.limit_mbps || u.used_mbps[1] > u.limit_mbps))
			return "more of a link is granted than may be";
		/* a ticket whose caller is away, and a gang that is not yet had, hold some, too */
		if (u.used_mbps[0] + u.used_mbps[1] < sum[n][0] + sum[n][1] ||
		    (u.used_mbps[0] + u.used_mbps[1] > sum[n][0] + sum[n][1] && !x->waiting &&
		     !x->keep_pool.used))
			return "what is used of a link is not what its channels were granted";
	}
	if (c->set.quota_link_percent)
		return quota_wrong(c, c->set.quota_link_percent);
	return NULL;
}

const char *job_chan_left(const struct hc_core *c)
{
	struct hc_admit_use u;
	uint32_t n;

	for (n = 0; n < c->nlinks; n++) {
		hc_admit_link_use(c->admit, n, &u);
		if (u.used_vcs || u.used_mbps[0] || u.used_mbps[1] || u.waiting)
			return "something is held of a link";
	}
	return NULL;
}

/* Has a rank that lives that end, or may it still get it? */
static bool is_had(const struct job_world *w, const struct job *g, uint64_t id)
{
	uint32_t i, side;

	for (i = 0; i < g->nties; i++)
		for (side = 0; side < 2; side++) {
			const struct job_tie_end *e = &g->ties[i].end[side];

			if (e->state != TIE_OVER && e->state != TIE_NONE && e->channel == id)
				return w->procs[g->ranks[g->ties[i].rank[side]].proc].alive;
		}
	return false;
}

const char *job_chan_unsettled(struct job_world *w, uint32_t node)
{
	struct hc_core *c = sim_core(w->sim, node);
	const struct hc_channels *x = c->chan;
	const struct hc_channel *ch, *twin;
	const struct job_domain *d;
	const struct job *g;
	uint32_t n;

	if (x->keep_pool.used || x->gang_pool.used)
		return "a gang is neither had nor refused";
	for (n = 0; n < x->pool.fresh; n++) {
		ch = &x->at[n];
		if (ch->state != CHANNEL_GRANTED)
			continue;
		d = job_domain(w, ch->domain);
		g = d->job == HC_NONE ? NULL : w->jobs[d->job];
		if (!g || !is_had(w, g, ch->id))
			return "a channel is granted, and no process has it";
		if (!ch->away)
			continue;
		twin = held_at(w, w->procs[g->ranks[ch->rank[!(ch->away & 1)]].proc].node, ch->id);
		if (!twin || !alike(twin, ch))
			return "a channel to another node is granted here, and not there";
	}
	return NULL;
}
