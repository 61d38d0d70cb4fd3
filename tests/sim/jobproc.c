/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the processes of jobs do: as the library would, no more; see jobs.h.
 *
 * A process acts in turns. In its turn it does whatever it can do now, and asks for another turn
 * while there is something that it waits for and nobody would tell it. With a daemon that does not
 * run it waits, as a library does that tries again to connect.
 */
#include "jobsimp.h"

#include <string.h>

#define AGAIN_NS (100 * SIM_MS)

/* ---- coming and going ---- */

uint32_t job_proc_new(struct job_world *w, uint32_t node, uint32_t uid, bool device)
{
	struct job_node *n = &w->nodes[node];
	uint32_t i, dev = HC_NONE;
	struct job_proc *p;

	for (i = 0; i < JOB_DEVICES && device && dev == HC_NONE; i++)
		if (!n->device[i])
			dev = i;
	if (device && dev == HC_NONE)
		return HC_NONE;
	w->procs = sim_grow(w->procs, w->nprocs, &w->procs_cap, sizeof(*w->procs));
	p = &w->procs[w->nprocs++];
	*p = (struct job_proc){.node = node,
			       .pid = 1000 + n->npids,
			       .uid = uid,
			       .device = dev,
			       .wake_at = HC_NEVER,
			       .started = sim_now(w->sim) / SIM_MS + 1,
			       .alive = true};
	if (dev != HC_NONE)
		n->device[dev] = w->nprocs;
	n->by_pid = sim_grow(n->by_pid, n->npids, &n->pids_cap, sizeof(*n->by_pid));
	n->by_pid[n->npids++] = w->nprocs - 1;
	return w->nprocs - 1;
}

void job_proc_wake(struct job_world *w, uint32_t proc, uint64_t ns)
{
	struct job_proc *p = &w->procs[proc];
	const uint64_t at = sim_now(w->sim) + ns;

	if (p->wake_at <= at)
		return; /* that turn looks at everything */
	p->wake_at = at;
	sim_later(w->sim, p->node, false, ns, DUE_TURN, proc);
}

static void forget_session(struct job_proc *p)
{
	p->session = 0; /* its slot is free once the daemon has heard of it */
	p->hello = false;
	p->nwaits = 0;
}

/* What was asked and not answered is asked again; seats are taken up again. */
void job_proc_lose(struct job_world *w, uint32_t proc, bool tell)
{
	struct job_proc *p = &w->procs[proc];
	struct job_rank *r;
	uint32_t i;

	if (!p->session)
		return;
	if (tell)
		sim_later(w->sim, p->node, true, 0, DUE_LOST, p->session);
	forget_session(p);
	if (p->drain == 2)
		p->drain = 3;
	for (i = 0; i < p->nseats; i++) {
		r = &w->jobs[p->seats[i].job]->ranks[p->seats[i].rank];
		if (r->state == RANK_LEAVING)
			r->state = RANK_JOINED;
		r->attach = r->state == RANK_JOINED;
		if (r->state == RANK_ASKED)
			r->state = RANK_NEW;
		job_split_lost(r);
		job_chan_lost(w->jobs[p->seats[i].job], p->seats[i].rank);
	}
	job_proc_wake(w, proc, SIM_MS * (1 + job_pick(w, 200)));
}

void job_proc_die(struct job_world *w, uint32_t proc)
{
	struct job_proc *p = &w->procs[proc];
	uint32_t i;

	if (!p->alive)
		return;
	job_line(w, p->node, "pid %u exits", p->pid);
	p->alive = false;
	if (p->device != HC_NONE)
		w->nodes[p->node].device[p->device] = 0;
	if (sim_core(w->sim, p->node)) {
		sim_later(w->sim, p->node, true, 0, DUE_DEAD, proc);
		if (p->session)
			sim_later(w->sim, p->node, true, 0, DUE_LOST, p->session);
	}
	forget_session(p);
	for (i = 0; i < p->nseats; i++) {
		struct job_rank *r = &w->jobs[p->seats[i].job]->ranks[p->seats[i].rank];

		if (r->state == RANK_JOINED || r->state == RANK_LEAVING) {
			job_domain(w, r->id)->lost = true;
			job_domain(w, r->id)->owner[p->seats[i].rank] = 0;
		}
		if (r->state < RANK_OUT)
			r->state = RANK_DEAD;
		job_chan_gone(w->jobs[p->seats[i].job], p->seats[i].rank);
	}
}

/* ---- asking ---- */

static void ask_with(struct job_world *w, uint32_t proc, enum job_ask kind, uint32_t job,
		     uint32_t rank, const struct hc_desc *d, const void *msg, struct hc_event *ev)
{
	struct job_proc *p = &w->procs[proc];
	static uint8_t bytes[HC_PACKET_MAX];
	const uint8_t *at = bytes;
	struct hc_frame f;
	size_t len = 0;

	p->next_request++;
	job_want(w, !hc_frame_write(bytes, sizeof(bytes), d, 1, p->next_request, 0, msg, &len));
	job_want(w, !hc_frame_next(&at, &len, &f));
	job_want(w, p->nwaits < JOB_REQUESTS);
	p->waits[p->nwaits++] = (struct job_request){.id = p->next_request,
						     .kind = (uint8_t)kind,
						     .job = job,
						     .rank = rank,
						     .what = w->ask_what};
	w->ask_what = 0;
	ev->kind = HC_EV_REQUEST;
	ev->session = p->session;
	ev->u.request.frame = &f;
	job_line(w, p->node, "pid %u asks: %s, job %u rank %u", p->pid, d->name, job, rank);
	sim_feed(w->sim, p->node, ev);
}

void job_ask(struct job_world *w, uint32_t proc, enum job_ask kind, uint32_t job, uint32_t rank,
	     const struct hc_desc *d, const void *msg)
{
	struct hc_event ev = {0};

	ask_with(w, proc, kind, job, rank, d, msg, &ev);
}

static void say_hello(struct job_world *w, uint32_t proc)
{
	struct job_proc *p = &w->procs[proc];
	struct job_node *n = &w->nodes[p->node];
	const struct hc_m_hello m = {.proto_min = HC_PROTO_MIN,
				     .proto_max = HC_PROTO_MAX,
				     .fence = 1,
				     .build = hc_str("sim")};
	const struct hc_cred cred = {.pid = p->pid,
				     .uid = p->uid,
				     .started = p->started,
				     .role = p->admin ? HC_W_role_ADMIN : HC_W_role_MEMBER};
	struct hc_event ev = {.u.request.cred = &cred, .u.request.fence = 1};
	uint32_t slot;

	for (slot = 0; slot < JOB_SESSIONS && n->slot[slot]; slot++)
		;
	if (slot == JOB_SESSIONS) {
		job_proc_wake(w, proc, SIM_S);
		return;
	}
	n->slot[slot] = proc + 1;
	p->session = (uint64_t)++n->sessions << 32 | slot;
	ask_with(w, proc, ASK_HELLO, 0, 0, &hc_desc_hello, &m, &ev);
}

static void join(struct job_world *w, uint32_t proc, uint32_t job, uint32_t rank, uint32_t ms)
{
	struct job *g = w->jobs[job];
	struct job_rank *r = &g->ranks[rank];
	struct hc_event ev = {.u.request.roster = &g->roster};
	char name[32];
	const struct hc_m_join_root root = {.info = {g->info, g->info_len},
					    .nranks = g->nranks,
					    .rank = rank,
					    .device = w->procs[proc].device,
					    .timeout_ms = ms,
					    .weight = 1};
	struct hc_m_join_table table = {.rank = rank, .timeout_ms = ms, .weight = 1};

	r->state = RANK_ASKED;
	if (!r->asked_at)
		r->asked_at = sim_now(w->sim);
	snprintf(name, sizeof(name), "job-%u", g->number);
	table.name = hc_str(name);
	if (g->table)
		ask_with(w, proc, ASK_JOIN, job, rank, &hc_desc_join_table, &table, &ev);
	else
		job_ask(w, proc, ASK_JOIN, job, rank, &hc_desc_join_root, &root);
}

/* ---- a turn ---- */

void job_refused(struct job_world *w, uint32_t job, uint32_t rank, uint32_t code)
{
	struct job_rank *r = &w->jobs[job]->ranks[rank];

	r->state = RANK_REFUSED;
	r->code = code;
}

/* Rank 0 makes the root info and gives it to the others; that is not the daemons' business. */
static void begin(struct job_world *w, uint32_t proc, uint32_t job, uint32_t rank)
{
	struct job *g = w->jobs[job];
	struct job_rank *r = &g->ranks[rank];
	const uint64_t now = sim_now(w->sim);
	const struct hc_m_root_info m = {.nranks = g->nranks};

	if (now < r->start_at) {
		job_proc_wake(w, proc, r->start_at - now);
	} else if (w->ending) {
		job_refused(w, job, rank, 0);
	} else if (!g->table && !g->info_len && rank == 0 && !g->no_info) {
		r->state = RANK_ASKED;
		job_ask(w, proc, ASK_ROOT, job, rank, &hc_desc_root_info, &m);
	} else if (!g->table && !g->info_len) {
		if (g->no_info || g->ranks[0].state >= RANK_OUT)
			job_refused(w, job, rank, 0); /* nobody will give it one */
		else
			job_proc_wake(w, proc, AGAIN_NS);
	} else if (r->asked_at && now >= r->asked_at + g->timeout_ms * SIM_MS) {
		job_refused(w, job, rank, HC_E_TIMEOUT);
	} else {
		join(w, proc, job, rank,
		     g->timeout_ms - (r->asked_at ? (uint32_t)((now - r->asked_at) / SIM_MS) : 0));
	}
}

static void leave(struct job_world *w, uint32_t proc, uint32_t job, uint32_t rank)
{
	struct job_rank *r = &w->jobs[job]->ranks[rank];
	const struct hc_m_leave m = {.id = r->id, .epoch = 1, .rank = rank};

	r->state = RANK_LEAVING;
	job_ask(w, proc, ASK_LEAVE, job, rank, &hc_desc_leave, &m);
}

static void finish(struct job_world *w, uint32_t proc, uint32_t job, uint32_t rank)
{
	struct job *g = w->jobs[job];
	struct job_rank *r = &g->ranks[rank];
	const bool mine = rank == g->end_rank && g->end_at;
	const struct hc_m_destroy d = {.id = r->id};
	const struct hc_m_abort a = {.id = r->id, .rank = rank, .reason = hc_str("it was enough")};
	const struct job_record *rec = job_record(w, w->procs[proc].node, r->id);

	if (rec && rec->state >= HC_W_domain_state_DESTROYED) {
		r->state = RANK_OUT; /* it has seen that in the record */
		return;
	}
	if (w->ending || g->end == END_LEAVE) {
		leave(w, proc, job, rank);
	} else if (g->end == END_DESTROY && mine) {
		g->end_at = 0;
		job_ask(w, proc, ASK_DESTROY, job, rank, &hc_desc_destroy, &d);
	} else if (g->end == END_ABORT && mine) {
		g->end_at = 0;
		job_domain(w, r->id)->lost = true;
		r->state = RANK_LEAVING;
		job_ask(w, proc, ASK_ABORT, job, rank, &hc_desc_abort, &a);
	} else if (g->end == END_DIE && mine) {
		g->end_at = 0;
		job_proc_die(w, proc);
	}
}

static void come_back(struct job_world *w, uint32_t proc, uint32_t job, uint32_t rank)
{
	struct job_rank *r = &w->jobs[job]->ranks[rank];
	const struct hc_m_attach m = {.id = r->id, .rank = rank, .block = r->block};

	r->attach = false;
	job_ask(w, proc, ASK_ATTACH, job, rank, &hc_desc_attach, &m);
}

/* What a process has in its arena, it takes up before it asks for anything new. */
static bool comes_back(const struct job_world *w, const struct job_proc *p)
{
	uint32_t i;

	for (i = 0; i < p->nseats; i++) {
		const struct job_rank *r = &w->jobs[p->seats[i].job]->ranks[p->seats[i].rank];

		if (r->state == RANK_JOINED && r->attach)
			return true;
	}
	for (i = 0; i < p->nwaits; i++)
		if (p->waits[i].kind == ASK_ATTACH)
			return true;
	return false;
}

static void seat_turn(struct job_world *w, uint32_t proc, uint32_t k)
{
	const uint32_t job = w->procs[proc].seats[k].job, rank = w->procs[proc].seats[k].rank;
	struct job *g = w->jobs[job];
	struct job_rank *r = &g->ranks[rank];
	const uint64_t now = sim_now(w->sim);

	if (r->state == RANK_NEW) {
		if (g->parent != HC_NONE)
			job_split_waits(w, job, rank);
		else if (!comes_back(w, &w->procs[proc]))
			begin(w, proc, job, rank);
	} else if (r->state == RANK_JOINED && r->attach) {
		if (now < r->start_at)
			job_proc_wake(w, proc, r->start_at - now);
		else
			come_back(w, proc, job, rank);
	} else if (r->state == RANK_JOINED && (w->ending || (g->end_at && now >= g->end_at))) {
		finish(w, proc, job, rank);
	} else if (r->state == RANK_JOINED && g->end_at && g->end != END_STAY) {
		job_proc_wake(w, proc, g->end_at - now);
	}
	if (r->state == RANK_JOINED && !comes_back(w, &w->procs[proc]))
		job_split_turn(w, proc, job, rank);
	if (r->state == RANK_JOINED && !comes_back(w, &w->procs[proc]))
		job_chan_turn(w, proc, job, rank);
}

static void drain_turn(struct job_world *w, uint32_t proc)
{
	struct job_proc *p = &w->procs[proc];
	struct hc_m_admin m = {.verb = hc_str("drain"), .argument = hc_str("")};

	if (p->drain == 1) {
		p->drain = 2;
		job_ask(w, proc, ASK_DRAIN, 0, 0, &hc_desc_admin, &m);
	} else if (p->drain == 3) {
		p->drain = 4;
		m.argument = hc_str("off");
		job_ask(w, proc, ASK_DRAIN, 0, 0, &hc_desc_admin, &m);
	}
}

bool job_proc_busy(const struct job_world *w, const struct job_proc *p)
{
	uint32_t i;

	for (i = 0; i < p->nseats; i++)
		if (w->jobs[p->seats[i].job]->ranks[p->seats[i].rank].state < RANK_OUT)
			return true;
	return p->nwaits || (p->drain && p->drain < 4);
}

void job_proc_turn(struct job_world *w, uint32_t proc)
{
	const uint32_t node = w->procs[proc].node;
	uint32_t k;

	if (w->j->bad || !w->procs[proc].alive || w->procs[proc].wake_at != sim_now(w->sim))
		return;
	w->procs[proc].wake_at = HC_NEVER;
	if (!sim_runs(w->sim, node)) {
		job_proc_wake(w, proc, AGAIN_NS);
		return;
	}
	if (!w->procs[proc].session)
		say_hello(w, proc);
	if (!w->procs[proc].hello)
		return;
	for (k = 0; k < w->procs[proc].nseats && w->procs[proc].alive && w->procs[proc].session;
	     k++)
		seat_turn(w, proc, k);
	if (w->procs[proc].session)
		drain_turn(w, proc);
	if (w->procs[proc].alive && !job_proc_busy(w, &w->procs[proc]) &&
	    (w->procs[proc].dying || w->ending))
		job_proc_die(w, proc);
}

/* ---- answers ---- */

static void got_info(struct job_world *w, const struct job_request *q, const struct hc_frame *f)
{
	struct job *g = w->jobs[q->job];
	struct hc_m_root_info_r m;

	job_want(w, !hc_decode(&hc_desc_root_info_r, HC_PROTO_MAX, f->body, f->body_len, &m));
	memcpy(g->info, m.info.p, m.info.len);
	g->info_len = m.info.len;
	g->ranks[q->rank].state = RANK_NEW;
}

void job_joined(struct job_world *w, uint32_t proc, uint32_t job, uint32_t rank,
		const struct job_told *t)
{
	struct job *g = w->jobs[job];
	struct job_rank *r = &g->ranks[rank];

	job_want(w, t->rank == rank && t->epoch && t->slot < JOB_DOMAINS);
	job_check_joined(w, w->procs[proc].node, proc, t->id, rank);
	if (g->parent != HC_NONE)
		job_split_joined(w, job, rank, t);
	if (r->id != t->id)
		r->begun = r->ended = 0;
	r->id = t->id;
	r->block = t->block;
	r->epoch = t->epoch;
	r->slot = t->slot;
	r->tag = t->tag;
	r->life = sim_life(w->sim, w->procs[proc].node);
	r->state = RANK_JOINED;
	job_domain(w, t->id)->job = job;
	if (!g->ops) {
		g->ops = true;
		sim_later(w->sim, w->procs[proc].node, false, SIM_MS, DUE_OPS, job);
	}
}

static void got_joined(struct job_world *w, uint32_t proc, const struct job_request *q,
		       const struct hc_frame *f)
{
	const struct job_rank *r = &w->jobs[q->job]->ranks[q->rank];
	struct hc_m_joined m;
	struct hc_m_seat s;

	job_want(w, !hc_decode(&hc_desc_joined, HC_PROTO_MAX, f->body, f->body_len, &m));
	job_want(w, hc_arr_next(&m.seats, &hc_desc_seat, HC_PROTO_MAX, &s));
	job_want(w, m.nranks == w->jobs[q->job]->nranks);
	job_want(w, q->kind != ASK_ATTACH || r->id == m.id);
	job_joined(w, proc, q->job, q->rank,
		   &(struct job_told){m.id, s.rank, s.block, m.epoch, m.slot, m.tag});
}

/* It is out, forced or not; or its domain is. */
static void is_out(struct job_world *w, const struct job_request *q)
{
	struct job_rank *r = &w->jobs[q->job]->ranks[q->rank];

	if (job_domain(w, r->id)->owner[q->rank])
		job_domain(w, r->id)->owner[q->rank] = 0;
	r->state = RANK_OUT;
	job_chan_gone(w->jobs[q->job], q->rank);
}

/* No rank that lives was left behind before a collective that others wait in. */
static void check_drained(struct job_world *w, const struct job_request *q)
{
	const struct job *g = w->jobs[q->job];
	const uint64_t id = g->ranks[q->rank].id;
	uint32_t i;

	if (job_domain(w, id)->lost)
		return;
	for (i = 0; i < g->nranks; i++)
		if (g->ranks[i].id == id && g->ranks[i].state == RANK_JOINED &&
		    (g->ranks[i].begun != g->ranks[i].ended ||
		     g->ranks[i].begun != g->ranks[q->rank].begun))
			job_broken(w,
				   "domain %016llx is destroyed, not by force, and rank %u is in "
				   "#%llu of which %llu ended, rank %u in #%llu",
				   (unsigned long long)id, i, (unsigned long long)g->ranks[i].begun,
				   (unsigned long long)g->ranks[i].ended, q->rank,
				   (unsigned long long)g->ranks[q->rank].begun);
}

/* What it was told that is active is not given up by its node alone. A rank may have left. */
static void check_stands(struct job_world *w, uint32_t node, const struct job_request *q,
			 uint32_t code)
{
	const uint64_t id = w->jobs[q->job]->ranks[q->rank].id;
	const struct job_domain *d = job_domain(w, id);

	if (code == HC_E_NOT_READY || (!job_store_row(w, node, id) && !d->lost &&
				       d->home != HC_NONE && job_store_row(w, d->home, id)))
		job_broken(w,
			   "node %u: rank %u was told that %016llx is active, and comes back: "
			   "refused %u",
			   node, q->rank, (unsigned long long)id, code);
}

static void got_error(struct job_world *w, uint32_t proc, const struct job_request *q,
		      const struct hc_frame *f)
{
	const uint32_t code = (uint32_t)-f->head.status;
	struct hc_m_error m;
	char text[512];

	job_want(w, !hc_decode(&hc_desc_error, HC_PROTO_MAX, f->body, f->body_len, &m));
	job_line(w, w->procs[proc].node, "pid %u, job %u rank %u: refused %u: %s",
		 w->procs[proc].pid, q->job, q->rank, code,
		 hc_str_copy(m.text, text, sizeof(text)));
	switch ((enum job_ask)q->kind) {
	case ASK_HELLO: job_broken(w, "hello is refused"); return;
	case ASK_ROOT:
		w->jobs[q->job]->no_info = true;
		job_refused(w, q->job, q->rank, code);
		return;
	case ASK_JOIN: job_refused(w, q->job, q->rank, code); return;
	case ASK_ATTACH:
		check_stands(w, w->procs[proc].node, q, code);
		/* what it was in has gone while nobody could tell */
		job_want(w, code == HC_E_GONE || code == HC_E_NOT_FOUND);
		is_out(w, q);
		return;
	case ASK_LEAVE:
	case ASK_ABORT: is_out(w, q); return;
	case ASK_DESTROY: return;
	case ASK_DRAIN:
		if (w->procs[proc].drain == 2)
			w->procs[proc].drain = 3;
		return;
	case ASK_SPLIT:
	case ASK_SUB:
	case ASK_BATCH: job_split_refused(w, proc, q, code); return;
	case ASK_WANT:
	case ASK_OPEN:
	case ASK_CLOSE: job_chan_refused(w, q, code); return;
	}
}

static void got_done(struct job_world *w, uint32_t proc, const struct job_request *q,
		     const struct hc_frame *f)
{
	job_line(w, w->procs[proc].node, "pid %u, job %u rank %u: done", w->procs[proc].pid, q->job,
		 q->rank);
	if (q->kind == ASK_LEAVE || q->kind == ASK_ABORT)
		is_out(w, q);
	else if (q->kind == ASK_DESTROY)
		check_drained(w, q);
	else if (q->kind == ASK_CLOSE)
		job_chan_answer(w, q, f);
	else if (q->kind == ASK_DRAIN && w->procs[proc].drain == 2)
		w->procs[proc].drain = 3;
}

static bool take_request(struct job_proc *p, uint32_t id, struct job_request *q)
{
	uint32_t i;

	for (i = 0; i < p->nwaits && p->waits[i].id != id; i++)
		;
	if (i == p->nwaits)
		return false;
	*q = p->waits[i];
	p->waits[i] = p->waits[--p->nwaits];
	return true;
}

static uint32_t proc_of(struct job_world *w, uint32_t node, uint64_t session)
{
	const uint32_t slot = (uint32_t)session;
	const uint32_t n = slot < JOB_SESSIONS ? w->nodes[node].slot[slot] : 0;

	return n && w->procs[n - 1].session == session ? n - 1 : HC_NONE;
}

void job_proc_reply(struct job_world *w, uint32_t node, const struct hc_action *a)
{
	const uint32_t proc = proc_of(w, node, a->session);
	const uint8_t *at = a->bytes;
	struct job_request q;
	size_t left = a->len;
	struct hc_frame f;

	if (proc == HC_NONE)
		return; /* it was lost, and the daemon has not heard it yet */
	job_want(w, !hc_frame_next(&at, &left, &f) && !left);
	if (f.head.type == HC_MSG_slab || f.head.type == HC_MSG_status_slab)
		return;
	if (!take_request(&w->procs[proc], f.head.id, &q)) {
		job_broken(w, "node %u, pid %u: an answer to what was not asked, or answered", node,
			   w->procs[proc].pid);
		return;
	}
	switch (f.head.type) {
	case HC_MSG_hello_r: w->procs[proc].hello = true; break;
	case HC_MSG_root_info_r: got_info(w, &q, &f); break;
	case HC_MSG_joined: got_joined(w, proc, &q, &f); break;
	case HC_MSG_channel_want_r:
	case HC_MSG_channel_refused:
	case HC_MSG_channel_open_r: job_chan_answer(w, &q, &f); break;
	case HC_MSG_split_r:
	case HC_MSG_batch_r: job_split_answer(w, proc, &q, &f); break;
	case HC_MSG_done: got_done(w, proc, &q, &f); break;
	case HC_MSG_error: got_error(w, proc, &q, &f); break;
	default: job_broken(w, "an answer of the unknown type %u", f.head.type);
	}
	job_proc_wake(w, proc, 1000);
}

void job_proc_notify(struct job_world *w, uint32_t node, const struct hc_action *a)
{
	const uint32_t proc = proc_of(w, node, a->session);
	const uint8_t *at = a->bytes;
	size_t left = a->len;
	struct hc_frame f;
	struct hc_m_event m;

	if (proc == HC_NONE)
		return;
	job_want(w, !hc_frame_next(&at, &left, &f) && !left && f.head.type == HC_MSG_event);
	job_want(w, !hc_decode(&hc_desc_event, HC_PROTO_MAX, f.body, f.body_len, &m));
	if (m.state >= HC_W_domain_state_DAMAGED || m.channel)
		job_proc_wake(w, proc, 1000);
}

/* ---- operations ---- */

static void ops_ended(struct job_world *w, uint32_t proc, uint64_t id)
{
	static uint8_t bytes[256];
	const struct hc_m_ops_ended m = {.id = id};
	struct hc_event ev = {.kind = HC_EV_REQUEST, .session = w->procs[proc].session};
	const uint8_t *at = bytes;
	struct hc_frame f;
	size_t len = 0;

	if (!w->procs[proc].hello || !sim_runs(w->sim, w->procs[proc].node))
		return;
	job_want(w, !hc_frame_write(bytes, sizeof(bytes), &hc_desc_ops_ended, 1, 0, 0, &m, &len));
	job_want(w, !hc_frame_next(&at, &len, &f));
	ev.u.request.frame = &f;
	sim_feed(w->sim, w->procs[proc].node, &ev);
}

/* May it begin its next collective, as its record says? */
static bool may_begin(const struct job_record *rec, const struct job_rank *r)
{
	if (rec->state == HC_W_domain_state_ACTIVE)
		return true;
	return rec->state == HC_W_domain_state_DRAINING && rec->cut_set && r->begun < rec->cut;
}

static bool is_over(const struct job_record *rec)
{
	return rec->state == HC_W_domain_state_DAMAGED || rec->state >= HC_W_domain_state_DESTROYED;
}

/* Every member has begun it: then it ends. */
static bool all_begun(const struct job *g, uint64_t id, uint64_t number)
{
	uint32_t i;

	for (i = 0; i < g->nranks; i++)
		if (g->ranks[i].id != id || g->ranks[i].begun < number)
			return false;
	return true;
}

/* Where it looks, as it was told: the slot, if that says the tag. */
static const struct job_record *record_of(struct job_world *w, const struct job_rank *r)
{
	const uint32_t node = w->procs[r->proc].node;
	const struct job_record *rec = &w->nodes[node].records[r->slot];

	if (rec->tag != r->tag || !rec->id)
		return job_record(w, node,
				  r->id); /* it will be told another slot, or that it is over */
	if (rec->id == r->id)
		return rec;
	if (rec->life == r->life)
		job_broken(
			w,
			"node %u: rank of %016llx epoch %u would take the record of %016llx for it",
			node, (unsigned long long)r->id, r->epoch, (unsigned long long)rec->id);
	return NULL;
}

/* All that take part in a collective were admitted to it in one epoch. */
static void begin_op(struct job_world *w, struct job_rank *r, const struct job_record *rec)
{
	struct job_domain *d = job_domain(w, r->id);

	r->begun++;
	if (r->begun > d->op) {
		d->op = r->begun;
		d->op_epoch = rec->epoch;
	}
	if (rec->epoch != r->epoch || (r->begun == d->op && rec->epoch != d->op_epoch))
		job_broken(w,
			   "node %u: %016llx: #%llu is begun by a member of epoch %u, admitted in "
			   "epoch %u, and by others in %u",
			   w->procs[r->proc].node, (unsigned long long)r->id,
			   (unsigned long long)r->begun, r->epoch, rec->epoch, d->op_epoch);
}

static bool rank_ops(struct job_world *w, uint32_t job, uint32_t rank)
{
	struct job *g = w->jobs[job];
	struct job_rank *r = &g->ranks[rank];
	const struct job_record *rec;

	if (r->state != RANK_JOINED && r->state != RANK_LEAVING)
		return r->state < RANK_OUT;
	rec = record_of(w, r);
	if (!rec)
		return true;
	if (r->begun > r->ended) {
		if (!is_over(rec) && !all_begun(g, r->id, r->begun))
			return true;
		w->j->ops += !is_over(rec);
		r->ended = r->begun;
		if (rec->state != HC_W_domain_state_ACTIVE)
			ops_ended(w, r->proc, r->id);
		return true;
	}
	if (r->state == RANK_JOINED && may_begin(rec, r) && (rec->cut_set || job_pick(w, 3)))
		begin_op(w, r, rec);
	return !is_over(rec);
}

void job_ops(struct job_world *w, uint32_t job)
{
	struct job *g = w->jobs[job];
	bool more = false;
	uint32_t i;

	for (i = 0; i < g->nranks && !w->j->bad; i++)
		more = rank_ops(w, job, i) || more;
	job_chan_ops(w, job);
	g->ops = more;
	if (more)
		sim_later(w->sim, w->procs[g->ranks[0].proc].node, false,
			  SIM_MS * (20 + job_pick(w, g->end_at ? 200 : 1000)), DUE_OPS, job);
}
