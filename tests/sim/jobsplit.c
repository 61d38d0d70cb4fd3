/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sub-domains of jobs: splits, lists that the ranks agree on, and batches of them; see jobs.h.
 *
 * A job makes up to JOB_ROUNDS calls, which its ranks do one after the other, as a collective
 * library does: a rank begins the next one when its own last one has ended well. What a call has to
 * give is drawn with the job, so it is known before the daemons are asked: a split is sorted here,
 * too. A sub-domain is a job of its own, whose processes sit in both, and is judged like any other.
 * Besides that:
 *
 *   what a rank is told of a split is the group of that very split, in the order of (key, rank)
 *   the ranks of a group are told one number, and no other group of that parent is told it
 *   it is refused as over only when the home's daemon was killed since the rank asked first
 *   there is one domain of a list, and none when a rank lists something else
 *
 * A rank counts its splits of a domain, and says which one a split is: the same number when it asks
 * again, as a library that lost its connection. A split that is refused as over for the others is
 * over for this rank, too. Items of a batch are not all or nothing: some may be there and others
 * not, and the ranks go on.
 */
#include "jobsimp.h"

#include <string.h>

#define AGAIN_NS (100 * SIM_MS)

static uint32_t home_of(const struct job_world *w, const struct job *g)
{
	while (g->parent != HC_NONE)
		g = w->jobs[g->parent];
	return w->procs[g->ranks[0].proc].node;
}

/* ---- what there will be ---- */

static bool room(const struct job_world *w, const struct job *g)
{
	uint32_t i;

	for (i = 0; i < g->nranks; i++)
		if (w->procs[g->ranks[i].proc].nseats + JOB_PARTS > JOB_SEATS)
			return false;
	return true;
}

static void plan_end(struct job_world *w, struct job *g, uint64_t at)
{
	if (w->j->calm || !job_pick(w, 3))
		return;
	g->end = (uint8_t)job_pick(w, END_DIE + 1);
	g->end_at = at + SIM_S * (2 + job_pick(w, 30));
	g->end_rank = job_pick(w, g->nranks);
}

static void part_of(struct job_world *w, struct job *g, uint32_t round, const uint8_t *of,
		    uint32_t n)
{
	struct job *s = job_new(w, g->group, n);
	uint32_t i;

	s->parent = g->number;
	s->round = round;
	memcpy(s->of, of, n);
	for (i = 0; i < n; i++)
		job_take_seat(w, g->ranks[of[i]].proc, s->number, i);
	w->njobs++;
	g->rounds[round].count++;
	plan_end(w, s, g->rounds[round].at);
}

static bool before(const struct job_round *rd, uint32_t a, uint32_t b)
{
	return rd->key[a] != rd->key[b] ? rd->key[a] < rd->key[b] : a < b;
}

static void plan_split(struct job_world *w, struct job *g, uint32_t round)
{
	struct job_round *rd = &g->rounds[round];
	const uint32_t colors = 1 + job_pick(w, JOB_PARTS);
	uint8_t of[JOB_RANKS];
	uint32_t i, k, n;
	int32_t c;

	for (i = 0; i < g->nranks; i++) {
		rd->color[i] = (int32_t)job_pick(w, colors + !w->j->calm) - !w->j->calm;
		rd->key[i] = (int32_t)job_pick(w, 4) - 1;
	}
	for (c = 0; c < (int32_t)colors; c++) {
		for (i = n = 0; i < g->nranks; i++) {
			if (rd->color[i] != c)
				continue;
			for (k = n++; k && before(rd, i, of[k - 1]); k--)
				of[k] = of[k - 1];
			of[k] = (uint8_t)i;
		}
		if (n)
			part_of(w, g, round, of, n);
	}
}

/* Some ranks, in any order. */
static void plan_list(struct job_world *w, struct job *g, uint32_t round)
{
	uint8_t all[JOB_RANKS];
	const uint32_t n = 1 + job_pick(w, g->nranks);
	uint32_t i, k;

	for (i = 0; i < g->nranks; i++)
		all[i] = (uint8_t)i;
	for (i = 0; i < n; i++) {
		const uint8_t was = all[i];

		k = i + job_pick(w, g->nranks - i);
		all[i] = all[k];
		all[k] = was;
	}
	part_of(w, g, round, all, n);
	w->jobs[w->njobs - 1]->sub = 1 + round * JOB_PARTS + g->rounds[round].count;
}

static void plan_round(struct job_world *w, struct job *g, uint32_t round)
{
	struct job_round *rd = &g->rounds[round];
	uint32_t i, items;

	rd->way = (uint8_t)job_pick(w, WAY_BATCH + 1);
	rd->at = sim_now(w->sim) + SIM_MS * (200 + job_pick(w, 8000));
	rd->first = w->njobs;
	if (round && rd[-1].way == WAY_SPLIT && job_pick(w, 4)) { /* at once behind it */
		rd->way = WAY_SPLIT;
		rd->at = 0;
	}
	switch ((enum job_way)rd->way) {
	case WAY_SPLIT: plan_split(w, g, round); return;
	case WAY_SUB:
		plan_list(w, g, round);
		rd->torn = !w->j->calm && w->jobs[rd->first]->nranks > 1 && !job_pick(w, 8);
		return;
	case WAY_BATCH:
		items = 1 + job_pick(w, JOB_PARTS);
		for (i = 0; i < items; i++)
			plan_list(w, g, round);
		return;
	}
}

void job_split_plan(struct job_world *w, uint32_t job)
{
	struct job *g = w->jobs[job];
	const uint32_t n = w->j->calm ? 1 : job_pick(w, 3) ? 0 : 1 + job_pick(w, JOB_ROUNDS);

	while (g->nrounds < n && room(w, g))
		plan_round(w, g, g->nrounds++);
}

/* ---- a rank ---- */

static uint32_t rank_in(const struct job *s, uint32_t rank)
{
	uint32_t i;

	for (i = 0; i < s->nranks && s->of[i] != rank; i++)
		;
	return i < s->nranks ? i : HC_NONE;
}

/* The next sub-domain of the call that the rank is in, from *n on; NULL: there is none. */
static struct job_rank *next_part(struct job_world *w, const struct job_round *rd, uint32_t rank,
				  uint32_t *n, uint32_t *at)
{
	for (; *n < rd->count; (*n)++) {
		struct job *s = w->jobs[rd->first + *n];

		*at = rank_in(s, rank);
		if (*at != HC_NONE)
			return &s->ranks[*at];
	}
	return NULL;
}

/* Whatever of this call was not asked for will not be; nor what comes after it. */
static void give_up(struct job_world *w, uint32_t job, uint32_t rank, uint32_t code)
{
	struct job *g = w->jobs[job];
	struct job_rank *r = &g->ranks[rank], *s;
	uint32_t n, at;

	for (; r->round < g->nrounds; r->round++)
		for (n = 0; (s = next_part(w, &g->rounds[r->round], rank, &n, &at)); n++)
			if (s->state == RANK_NEW)
				s->state = RANK_REFUSED, s->code = code;
}

void job_split_waits(struct job_world *w, uint32_t job, uint32_t rank)
{
	const struct job *s = w->jobs[job];
	const struct job_rank *r = &w->jobs[s->parent]->ranks[s->of[rank]];

	if (w->ending || r->state > RANK_JOINED || r->round > s->round)
		job_refused(w, job, rank, 0);
}

void job_split_lost(struct job_rank *r)
{
	r->asked = false;
}

/* ---- asking ---- */

static uint32_t left_ms(struct job_world *w, const struct job *g, const struct job_rank *r)
{
	const uint64_t ms = (sim_now(w->sim) - r->call_at) / SIM_MS;

	return ms < g->timeout_ms ? g->timeout_ms - (uint32_t)ms : 0;
}

static void ask_split(struct job_world *w, uint32_t proc, uint32_t job, uint32_t rank)
{
	struct job *g = w->jobs[job];
	struct job_rank *r = &g->ranks[rank];
	const struct job_round *rd = &g->rounds[r->round];
	const struct hc_m_split m = {.parent = r->id,
				     .epoch = r->epoch,
				     .parent_rank = rank,
				     .color = rd->color[rank],
				     .key = rd->key[rank],
				     .timeout_ms = left_ms(w, g, r),
				     .number = r->splits + 1};

	r->asked = true;
	job_ask(w, proc, ASK_SPLIT, job, rank, &hc_desc_split, &m);
}

static void put_list(struct job_world *w, const struct job *s, bool torn, struct hc_arr *to,
		     uint8_t *bytes, size_t size)
{
	uint32_t i;

	for (i = 0; i < s->nranks; i++) {
		const struct hc_m_rank m = {.rank = s->of[torn && i < 2 ? 1 - i : i]};

		job_want(w, !hc_arr_put(to, bytes, size, &hc_desc_rank, HC_PROTO_MAX, &m));
	}
}

static void ask_sub(struct job_world *w, uint32_t proc, const struct job_rank *r, uint32_t job,
		    uint32_t rank)
{
	struct job *s = w->jobs[job], *g = w->jobs[s->parent];
	const struct job_round *rd = &g->rounds[s->round];
	struct hc_m_sub m = {.parent = r->id,
			     .epoch = r->epoch,
			     .parent_rank = s->of[rank],
			     .sub_id = s->sub,
			     .timeout_ms = left_ms(w, g, r)};
	uint8_t bytes[4 * JOB_RANKS];

	put_list(w, s, rd->torn && rank == s->nranks - 1, &m.ranks, bytes, sizeof(bytes));
	s->ranks[rank].state = RANK_ASKED;
	job_ask(w, proc, ASK_SUB, job, rank, &hc_desc_sub, &m);
}

static void ask_batch(struct job_world *w, uint32_t proc, uint32_t job, uint32_t rank)
{
	struct job *g = w->jobs[job];
	struct job_rank *r = &g->ranks[rank], *s;
	const struct job_round *rd = &g->rounds[r->round];
	struct hc_m_batch m = {.parent = r->id, .epoch = r->epoch, .timeout_ms = left_ms(w, g, r)};
	uint8_t items[64 * JOB_PARTS], ranks[4 * JOB_RANKS * JOB_PARTS];
	uint32_t n, at;

	for (n = 0; (s = next_part(w, rd, rank, &n, &at)); n++) {
		const struct job *part = w->jobs[rd->first + n];
		const struct hc_m_batch_item it = {.sub_id = part->sub, .count = part->nranks};

		s->state = RANK_ASKED;
		job_want(w, !hc_arr_put(&m.items, items, sizeof(items), &hc_desc_batch_item,
					HC_PROTO_MAX, &it));
		put_list(w, part, false, &m.ranks, ranks, sizeof(ranks));
	}
	job_ask(w, proc, ASK_BATCH, job, rank, &hc_desc_batch, &m);
}

/* ---- a turn ---- */

static void next_round(struct job_world *w, uint32_t proc, struct job_rank *r)
{
	r->round++;
	r->call_at = 0;
	r->parted = false;
	job_proc_wake(w, proc, 1000);
}

/* What is still to be asked for, or nothing: then the call is over. */
static void go_on(struct job_world *w, uint32_t proc, uint32_t job, uint32_t rank)
{
	struct job *g = w->jobs[job];
	struct job_rank *r = &g->ranks[rank], *s;
	const struct job_round *rd = &g->rounds[r->round];
	uint32_t n, at, fresh = HC_NONE, fresh_at = 0;
	bool waits = false, failed = false;

	for (n = 0; (s = next_part(w, rd, rank, &n, &at)); n++) {
		waits = waits || s->state == RANK_ASKED;
		failed = failed || s->state == RANK_REFUSED;
		if (s->state == RANK_NEW) {
			fresh = rd->first + n;
			fresh_at = at;
		}
	}
	if (waits)
		return;
	if (fresh == HC_NONE) {
		if (failed && rd->way != WAY_BATCH)
			give_up(w, job, rank, 0);
		else
			next_round(w, proc, r);
	} else if (!left_ms(w, g, r)) {
		give_up(w, job, rank, HC_E_TIMEOUT);
	} else if (rd->way == WAY_BATCH) {
		ask_batch(w, proc, job, rank);
	} else {
		ask_sub(w, proc, r, fresh, fresh_at);
	}
}

void job_split_turn(struct job_world *w, uint32_t proc, uint32_t job, uint32_t rank)
{
	struct job *g = w->jobs[job];
	struct job_rank *r = &g->ranks[rank];
	const uint64_t now = sim_now(w->sim);
	const struct job_round *rd = &g->rounds[r->round];

	if (w->ending || r->round == g->nrounds || r->asked)
		return;
	if (now < rd->at || now < r->again_at) {
		job_proc_wake(w, proc, (now < rd->at ? rd->at : r->again_at) - now);
		return;
	}
	if (!r->call_at) {
		r->call_at = now;
		r->home_life = sim_life(w->sim, home_of(w, g));
	}
	if (rd->way != WAY_SPLIT || r->parted)
		go_on(w, proc, job, rank);
	else if (left_ms(w, g, r))
		ask_split(w, proc, job, rank);
	else
		give_up(w, job, rank, HC_E_TIMEOUT);
}

/* ---- answers ---- */

/* The group of another split, or none where there is one? */
static bool is_group(const struct job *s, struct hc_arr a)
{
	struct hc_m_rank m;
	uint32_t i;

	for (i = 0; hc_arr_next(&a, &hc_desc_rank, HC_PROTO_MAX, &m); i++)
		if (!s || i == s->nranks || s->of[i] != m.rank)
			return false;
	return i == (s ? s->nranks : 0);
}

static void check_number(struct job_world *w, const struct job *g, struct job *s, uint64_t sub)
{
	uint32_t i, k;

	if (s->sub && s->sub != sub)
		job_broken(w, "the ranks of one group of job %u are told different numbers",
			   g->number);
	for (k = 0; k < g->nrounds; k++)
		for (i = g->rounds[k].first; i < g->rounds[k].first + g->rounds[k].count; i++)
			if (w->jobs[i] != s && w->jobs[i]->sub == sub)
				job_broken(w, "two groups of job %u are told one number",
					   g->number);
	s->sub = sub;
}

/* Those who are in no group are told a number, too: that of this very split. */
static void check_split(struct job_world *w, struct job *g, uint32_t rank, uint64_t sub)
{
	struct job_round *rd = &g->rounds[g->ranks[rank].round];

	if (rd->color[rank] >= 0)
		return;
	if (rd->none && rd->none != sub)
		job_broken(w, "ranks of job %u are in no group of two splits that are one",
			   g->number);
	rd->none = sub;
}

/* The first rank has its answer, others not yet: a moment for the home's daemon to be killed. */
static void perhaps_kill(struct job_world *w, const struct job *g, struct job_round *rd)
{
	const bool first = !rd->answered;
	uint32_t other;

	rd->answered = true;
	if (!first || w->j->calm || job_pick(w, 4))
		return;
	other = w->procs[g->ranks[job_pick(w, g->nranks)].proc].node;
	sim_later(w->sim, home_of(w, g), false, 1000 * job_pick(w, 40), DUE_KILL, other);
}

static void got_split(struct job_world *w, uint32_t proc, const struct job_request *q,
		      const struct hc_frame *f)
{
	struct job *g = w->jobs[q->job], *s = NULL;
	struct job_rank *r = &g->ranks[q->rank];
	struct hc_m_split_r m;
	uint32_t n = 0, at;

	job_want(w, !hc_decode(&hc_desc_split_r, HC_PROTO_MAX, f->body, f->body_len, &m));
	r->asked = false;
	if (r->round == g->nrounds)
		return;
	if (next_part(w, &g->rounds[r->round], q->rank, &n, &at))
		s = w->jobs[g->rounds[r->round].first + n];
	r->splits++;
	perhaps_kill(w, g, &g->rounds[r->round]);
	if (!is_group(s, m.ranks))
		job_broken(w,
			   "node %u: pid %u, rank %u of job %u, is told a group of %u ranks that "
			   "its call %u did not give",
			   w->procs[proc].node, w->procs[proc].pid, q->rank, q->job, m.ranks.count,
			   r->round);
	else if (s)
		check_number(w, g, s, m.sub_id);
	check_split(w, g, q->rank, m.sub_id);
	r->parted = true;
}

static void got_batch(struct job_world *w, uint32_t proc, const struct job_request *q,
		      const struct hc_frame *f)
{
	struct job *g = w->jobs[q->job];
	const struct job_round *rd = &g->rounds[g->ranks[q->rank].round];
	struct hc_m_batch_done d;
	struct hc_m_batch_r m;
	struct hc_m_seat seat;
	struct job_rank *s;
	uint32_t n, at, failed = HC_NONE, i = 0;

	job_want(w, !hc_decode(&hc_desc_batch_r, HC_PROTO_MAX, f->body, f->body_len, &m));
	for (n = 0; (s = next_part(w, rd, q->rank, &n, &at)); n++, i++) {
		job_want(w, hc_arr_next(&m.items, &hc_desc_batch_done, HC_PROTO_MAX, &d));
		job_want(w, d.seats == !d.code && (!d.code || !d.id));
		if (d.code && failed == HC_NONE && d.code != HC_E_GONE)
			failed = i;
		if (d.code) {
			job_refused(w, rd->first + n, at, d.code);
			continue;
		}
		job_want(w, hc_arr_next(&m.seats, &hc_desc_seat, HC_PROTO_MAX, &seat));
		job_joined(w, proc, rd->first + n, at,
			   &(struct job_told){d.id, seat.rank, seat.block, m.epoch, d.slot, d.tag});
	}
	job_want(w, i == m.items.count || w->j->bad || !m.items.count);
	job_want(w, failed == HC_NONE || m.failed != HC_NONE);
}

void job_split_answer(struct job_world *w, uint32_t proc, const struct job_request *q,
		      const struct hc_frame *f)
{
	job_line(w, w->procs[proc].node, "pid %u, job %u rank %u: its call is answered",
		 w->procs[proc].pid, q->job, q->rank);
	job_want(w, q->kind == (f->head.type == HC_MSG_split_r ? ASK_SPLIT : ASK_BATCH));
	if (q->kind == ASK_SPLIT)
		got_split(w, proc, q, f);
	else
		got_batch(w, proc, q, f);
}

static bool for_now(uint32_t code)
{
	return code == HC_E_SUSPENDED || code == HC_E_NOT_READY || code == HC_E_AGAIN;
}

/* Refused for now: another try, with what is left of the time. */
void job_split_refused(struct job_world *w, uint32_t proc, const struct job_request *q,
		       uint32_t code)
{
	struct job *g = w->jobs[q->job];
	struct job_rank *r = &g->ranks[q->rank], *s;
	const struct job_round *rd = &g->rounds[r->round];
	const uint8_t state = for_now(code) ? RANK_NEW : RANK_REFUSED;
	uint32_t n, at;

	if (q->kind == ASK_SPLIT) {
		r->asked = false;
		if (code == HC_E_MISMATCH && r->home_life == sim_life(w->sim, home_of(w, g)))
			job_broken(w,
				   "rank %u of job %u: the split is over for the others, and their "
				   "home knows what it gave",
				   q->rank, q->job);
		r->splits += code == HC_E_MISMATCH;
		if (!for_now(code))
			give_up(w, q->job, q->rank, code);
	} else if (q->kind == ASK_SUB) {
		r->state = state;
		r->code = code;
	} else {
		for (n = 0; (s = next_part(w, rd, q->rank, &n, &at)); n++)
			s->state = state;
	}
	if (!for_now(code))
		return;
	r = q->kind == ASK_SUB ? &w->jobs[g->parent]->ranks[g->of[q->rank]] : r;
	r->again_at = sim_now(w->sim) + AGAIN_NS;
	job_proc_wake(w, proc, AGAIN_NS);
}

void job_split_joined(struct job_world *w, uint32_t job, uint32_t rank, const struct job_told *t)
{
	struct job *s = w->jobs[job];
	const struct job_round *rd = &w->jobs[s->parent]->rounds[s->round];

	if (rd->torn)
		job_broken(w, "rank %u of job %u is in %016llx, and its ranks gave different lists",
			   rank, job, (unsigned long long)t->id);
	if (s->id && s->id != t->id)
		job_broken(w, "rank %u of job %u is in %016llx, others of the same list in %016llx",
			   rank, job, (unsigned long long)t->id, (unsigned long long)s->id);
	s->id = t->id;
}
