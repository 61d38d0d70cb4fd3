/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs, faults, healing and the end; see jobs.h. */
#include "jobsimp.h"

#include "hash.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- groups ---- */

static uint32_t groups(const struct job_world *w)
{
	return (w->j->nodes + JOB_GROUP - 1) / JOB_GROUP;
}

static uint32_t group_first(uint32_t group)
{
	return group * JOB_GROUP;
}

static uint32_t group_size(const struct job_world *w, uint32_t group)
{
	const uint32_t left = w->j->nodes - group_first(group);

	return left < JOB_GROUP ? left : JOB_GROUP;
}

static uint32_t any_node(struct job_world *w, uint32_t group)
{
	return group_first(group) + job_pick(w, group_size(w, group));
}

/* ---- jobs ---- */

void job_take_seat(struct job_world *w, uint32_t proc, uint32_t job, uint32_t rank)
{
	struct job_proc *p = &w->procs[proc];

	p->seats[p->nseats].job = job;
	p->seats[p->nseats++].rank = rank;
	w->jobs[job]->ranks[rank].proc = proc;
}

static void give_back(struct job_world *w, uint32_t proc)
{
	struct job_proc *p = &w->procs[proc];

	p->alive = false;
	if (p->device != HC_NONE)
		w->nodes[p->node].device[p->device] = 0;
}

/* New processes, a rank each, over some nodes of the group; false: no devices are left. */
static bool staff(struct job_world *w, uint32_t job, uint32_t uid)
{
	struct job *g = w->jobs[job];
	const uint32_t first = w->nprocs, size = group_size(w, g->group);
	const uint32_t from = job_pick(w, size);
	const uint32_t over = w->j->calm ? size : 1 + job_pick(w, size);
	uint32_t i, p;

	for (i = 0; i < g->nranks; i++) {
		p = job_proc_new(w, group_first(g->group) + (from + i % over) % size, uid, true);
		if (p == HC_NONE) {
			for (p = first; p < w->nprocs; p++)
				give_back(w, p);
			return false;
		}
		job_take_seat(w, p, job, i);
	}
	return true;
}

/* The processes of an earlier job make another domain: a parallel group of the same training. */
static bool staff_again(struct job_world *w, uint32_t job)
{
	struct job *g = w->jobs[job];
	const struct job *old = w->jobs[job_pick(w, job ? job : 1)];
	uint32_t i;

	if (!job || old->group != g->group || old->nranks < 2)
		return false;
	g->nranks = 2 + job_pick(w, old->nranks - 1);
	for (i = 0; i < g->nranks; i++) {
		const struct job_proc *p = &w->procs[old->ranks[i].proc];

		if (!p->alive || p->nseats == JOB_SEATS || old->ranks[i].state > RANK_JOINED)
			return false;
	}
	for (i = 0; i < g->nranks; i++)
		job_take_seat(w, old->ranks[i].proc, job, i);
	return true;
}

static uint32_t server_of(struct job_world *w, struct job *g, uint32_t node)
{
	uint32_t i;
	char name[16];

	snprintf(name, sizeof(name), "n%u", node);
	for (i = 0; i < g->roster.nservers; i++)
		if (!strcmp(g->names[i], name))
			return i;
	snprintf(g->names[i], sizeof(g->names[i]), "%s", name);
	g->servers[i] = (struct hc_roster_server){.name = g->names[i],
						  .host_ip = sim_address(node, 0).addr};
	g->roster.nservers++;
	(void)w;
	return i;
}

static void make_table(struct job_world *w, struct job *g)
{
	const struct hc_hash_key one = {g->number, 1}, all = {g->number, 2};
	uint32_t i;

	g->roster.nranks = g->nranks;
	g->roster.servers = g->servers;
	g->roster.ranks = g->entries;
	for (i = 0; i < g->nranks; i++) {
		const struct job_proc *p = &w->procs[g->ranks[i].proc];

		g->entries[i].server = server_of(w, g, p->node);
		g->entries[i].device = p->device;
		g->entries[i].hash = hc_hash(&one, &i, sizeof(i));
	}
	g->roster.hash[0] = hc_hash(&all, &g->number, sizeof(g->number));
	g->roster.hash[1] = hc_hash(&one, &g->number, sizeof(g->number));
}

static void plan(struct job_world *w, struct job *g)
{
	const uint64_t now = sim_now(w->sim);
	uint32_t i;

	g->table = job_pick(w, 2);
	g->timeout_ms = 2000 + job_pick(w, 20000);
	if (!w->j->calm) {
		g->end = (uint8_t)job_pick(w, END_DIE + 1);
		g->end_at = now + SIM_S * (2 + job_pick(w, 40));
		g->end_rank = job_pick(w, g->nranks);
	}
	for (i = 0; i < g->nranks; i++)
		g->ranks[i].start_at = now + job_pick(w, job_pick(w, 4) ? 20 : 4000) * SIM_MS;
	if (g->table)
		make_table(w, g);
}

struct job *job_new(struct job_world *w, uint32_t group, uint32_t nranks)
{
	struct job *g = calloc(1, sizeof(*g));

	if (!g)
		abort();
	w->jobs = sim_grow(w->jobs, w->njobs, &w->jobs_cap, sizeof(*w->jobs));
	w->jobs[w->njobs] = g;
	g->number = w->njobs;
	g->group = group;
	g->nranks = nranks;
	g->parent = HC_NONE;
	return g;
}

static void begin_job(struct job_world *w, uint32_t group)
{
	struct job *g = job_new(w, group, w->j->calm ? group_size(w, group) : 2 + job_pick(w, 7));
	uint32_t i;

	if (w->j->calm || job_pick(w, 4) || !staff_again(w, g->number)) {
		if (!staff(w, g->number, 1000 + job_pick(w, 2))) {
			free(g);
			return;
		}
	}
	w->njobs++;
	w->j->began++;
	plan(w, g);
	job_split_plan(w, g->number);
	job_chan_plan(w, g->number);
	for (i = 0; i < g->nranks; i++)
		job_proc_wake(w, g->ranks[i].proc, 0);
}

static void next_job(struct job_world *w, uint32_t group)
{
	if (w->healing)
		return;
	begin_job(w, group);
	if (!w->j->calm)
		sim_later(w->sim, group_first(group), false, SIM_MS * (300 + job_pick(w, 8000)),
			  DUE_BEGIN, group);
}

/* ---- faults ---- */

static void wire(struct job_world *w, uint32_t group)
{
	static const uint32_t losses[] = {0, 10000, 20000, 100000, 500000};
	const struct sim_wire x = {.delay = 20000 + job_pick(w, 3) * 5000000,
				   .jitter = 1 + job_pick(w, 2) * 20000000,
				   .loss = losses[job_pick(w, 5)],
				   .twice = job_pick(w, 2) * 50000,
				   .late = job_pick(w, 2) * 50000,
				   .cut = !job_pick(w, 3)};
	const uint32_t a = any_node(w, group), b = any_node(w, group);

	sim_wire(w->sim, a, b, HC_NONE, &x);
	if (job_pick(w, 2))
		sim_wire(w->sim, b, a, HC_NONE, &x);
}

static void repair(struct job_world *w, uint32_t group)
{
	const uint32_t first = group_first(group), size = group_size(w, group);
	uint32_t a, b;

	for (a = first; a < first + size; a++)
		for (b = first; b < first + size; b++)
			sim_wire(w->sim, a, b, HC_NONE, &w->args.wire);
}

/* Between those of one side and those of the other nothing passes. */
static void part(struct job_world *w, uint32_t group)
{
	const uint32_t first = group_first(group), size = group_size(w, group);
	const uint32_t side =
		job_pick(w, 3) ? 1 + job_pick(w, (1u << size) - 1) : 1u << job_pick(w, size);
	uint32_t a, b;

	for (a = 0; a < size; a++)
		for (b = 0; b < size; b++)
			if ((side >> a & 1) != (side >> b & 1))
				sim_cut(w->sim, first + a, first + b, HC_NONE, true);
}

static void freeze(struct job_world *w, uint32_t node)
{
	w->nodes[node].frozen = true;
	sim_stop(w->sim, node);
	sim_later(w->sim, node, false, SIM_MS * (20 + job_pick(w, job_pick(w, 3) ? 500 : 9000)),
		  DUE_THAW, 0);
}

static void thaw(struct job_world *w, uint32_t node)
{
	if (!w->nodes[node].frozen)
		return;
	w->nodes[node].frozen = false;
	sim_go(w->sim, node);
}

static void sessions_end(struct job_world *w, uint32_t node, bool boot)
{
	struct job_node *n = &w->nodes[node];
	uint32_t i;

	for (i = 0; i < n->npids; i++) {
		if (boot)
			job_proc_die(w, n->by_pid[i]);
		else
			job_proc_lose(w, n->by_pid[i], false);
	}
	memset(n->slot, 0, sizeof(n->slot));
}

/* The kernel dies, and all on the node; a new boot later. */
static void crash(struct job_world *w, uint32_t node)
{
	struct job_node *n = &w->nodes[node];

	job_line(w, node, "the kernel crashes");
	n->down = true;
	n->fresh = true;
	n->frozen = n->drained = false;
	sim_crash(w->sim, node);
	job_store_end(w, node, true);
	sessions_end(w, node, true);
	sim_later(w->sim, node, false, SIM_MS * (50 + job_pick(w, 20000)), DUE_BOOT, 1);
}

/* The daemon is killed, and is started again by whoever looks after it. */
static void kill_daemon(struct job_world *w, uint32_t node)
{
	struct job_node *n = &w->nodes[node];

	job_line(w, node, "the daemon is killed");
	n->down = true;
	n->fresh = n->frozen = n->drained = false;
	sim_kill(w->sim, node);
	job_store_end(w, node, false);
	sessions_end(w, node, false);
	sim_later(w->sim, node, false, SIM_MS * (2 + job_pick(w, job_pick(w, 4) ? 800 : 15000)),
		  DUE_BOOT, 0);
}

/* It has told something a moment ago, that may not be stored yet. Another node is not to hear
 * it; itself: all do, since a kernel delivers what is sent, but for a reset. */
static void kill_speaking(struct job_world *w, uint32_t node, uint32_t other)
{
	if (w->healing || w->nodes[node].down || w->nodes[node].frozen)
		return;
	if (other != node)
		sim_reset(w->sim, node, other, HC_W_conn_end_CLOSED);
	kill_daemon(w, node);
}

static void boot(struct job_world *w, uint32_t node)
{
	struct job_node *n = &w->nodes[node];

	if (!n->down)
		return;
	job_line(w, node, "the daemon starts%s", n->fresh ? ", of a new boot" : "");
	n->down = false;
	sim_start(w->sim, node, n->fresh);
	job_chan_started(w, node);
}

static void one_process(struct job_world *w, uint32_t node, bool dies)
{
	const struct job_node *n = &w->nodes[node];
	uint32_t proc;

	if (!n->npids)
		return;
	proc = n->by_pid[n->npids - 1 - job_pick(w, n->npids < 12 ? n->npids : 12)];
	if (!w->procs[proc].alive)
		return;
	if (dies)
		job_proc_die(w, proc);
	else
		job_proc_lose(w, proc, true);
}

static void drain(struct job_world *w, uint32_t node)
{
	uint32_t proc;

	if (w->nodes[node].drained || !sim_runs(w->sim, node))
		return;
	w->nodes[node].drained = true;
	proc = job_proc_new(w, node, 0, false);
	w->procs[proc].admin = w->procs[proc].dying = true;
	w->procs[proc].drain = 1;
	job_proc_wake(w, proc, 0);
}

static void port(struct job_world *w, uint32_t node)
{
	const uint32_t rail = job_pick(w, w->args.rails), up = job_pick(w, 3);

	sim_port(w->sim, node, rail, up != 0, 1500);
}

static void node_fault(struct job_world *w, uint32_t node)
{
	if (w->nodes[node].down || w->nodes[node].frozen)
		return;
	switch (job_pick(w, 14)) {
	case 0:
	case 1: freeze(w, node); return;
	case 2: crash(w, node); return;
	case 3:
	case 4: one_process(w, node, true); return;
	case 5:
	case 6: one_process(w, node, false); return;
	case 7:
		if (!job_pick(w, 4))
			drain(w, node);
		return;
	case 8:
	case 9: w->nodes[node].disk_ns = job_pick(w, 2) ? 300 * SIM_MS : SIM_MS; return;
	case 10: port(w, node); return;
	case 11:
	case 12:
	case 13: kill_daemon(w, node); return;
	}
}

static void fault(struct job_world *w, uint32_t group)
{
	if (w->healing)
		return;
	w->j->faults++;
	switch (job_pick(w, 8)) {
	case 0:
	case 1: wire(w, group); break;
	case 2:
	case 3: repair(w, group); break;
	case 4: part(w, group); break;
	default: node_fault(w, any_node(w, group));
	}
	sim_later(w->sim, group_first(group), false, SIM_MS * (100 + job_pick(w, 5000)), DUE_FAULT,
		  group);
}

/* ---- what happens ---- */

static void process_dead(struct job_world *w, uint32_t proc)
{
	const struct job_proc *p = &w->procs[proc];
	const struct hc_event ev = {.kind = HC_EV_PROCESS_DEAD,
				    .u.process = {.pid = p->pid, .started = p->started}};

	sim_feed(w->sim, p->node, &ev);
}

static void session_lost(struct job_world *w, uint32_t node, uint64_t session)
{
	const struct hc_event ev = {.kind = HC_EV_SESSION_LOST, .session = session};

	w->nodes[node].slot[(uint32_t)session] = 0;
	sim_feed(w->sim, node, &ev);
}

static void due(struct sim *s, uint32_t node, uint32_t what, uint64_t number, void *arg)
{
	struct job_world *w = arg;

	(void)s;
	w->nodes[node].steps++;
	switch ((enum job_due)what) {
	case DUE_STORED: job_store_done(w, node, number); return;
	case DUE_SCAN: job_scanned(w, node, number); return;
	case DUE_DEAD: process_dead(w, (uint32_t)number); return;
	case DUE_LOST: session_lost(w, node, number); return;
	case DUE_TURN: job_proc_turn(w, (uint32_t)number); return;
	case DUE_OPS: job_ops(w, (uint32_t)number); return;
	case DUE_FAULT: fault(w, (uint32_t)number); return;
	case DUE_KILL: kill_speaking(w, node, (uint32_t)number); return;
	case DUE_BEGIN: next_job(w, (uint32_t)number); return;
	case DUE_BOOT: boot(w, node); return;
	case DUE_THAW: thaw(w, node); return;
	}
}

/* A process that rows name: its kernel says at once when it is gone already. */
static void watch(struct job_world *w, uint32_t node, const struct hc_action *a)
{
	const struct job_node *n = &w->nodes[node];
	const uint32_t i = a->u.watch.pid - 1000;

	if (i < n->npids && w->procs[n->by_pid[i]].alive)
		return;
	if (i < n->npids)
		sim_later(w->sim, node, true, 0, DUE_DEAD, n->by_pid[i]);
}

static void act(struct sim *s, uint32_t node, const struct hc_action *a, void *arg)
{
	struct job_world *w = arg;

	(void)s;
	w->nodes[node].steps++;
	if (w->j->bad)
		return;
	if (a->kind == HC_ACT_REPLY)
		job_proc_reply(w, node, a);
	else if (a->kind == HC_ACT_NOTIFY)
		job_proc_notify(w, node, a);
	else if (a->kind == HC_ACT_PERSIST)
		job_store_put(w, node, a);
	else if (a->kind == HC_ACT_PUBLISH)
		job_publish(w, node, a);
	else if (a->kind == HC_ACT_SCAN)
		job_scan(w, node, a);
	else if (a->kind == HC_ACT_RECALL)
		job_recall(w, node, a);
	else if (a->kind == HC_ACT_WATCH)
		watch(w, node, a);
	else if (a->kind == HC_ACT_REGISTER)
		job_chan_register(w, node, a);
	else
		job_want(w, a->kind == HC_ACT_SYNC);
}

/* ---- a run ---- */

static void limits(const struct jobs *j, struct hc_limits *l)
{
	l->sessions = JOB_SESSIONS;
	l->domains = JOB_DOMAINS;
	l->ranks = 256;
	l->ranks_per_domain = JOB_RANKS;
	l->devices = JOB_DEVICES;
	l->ended = 32;
	l->links = JOB_LINKS;
	l->requests = l->pieces = 2 * JOB_CHANNELS;
	l->channels = l->wants = JOB_CHANNELS;
	l->values = 4;
	l->peers = 2 * JOB_GROUP;
	l->paths = l->peers * 2;
	l->ports = 4;
	l->mail = 1024;
	(void)j;
}

static void settings(struct job_world *w, struct hc_settings *s)
{
	const uint64_t n = hc_hash(&(struct hc_hash_key){w->j->seed, 7}, "jobs", 4);

	s->beat_ns = w->j->wan || n % 8 ? SIM_S : 100 * SIM_MS;
	s->suspend_limit_ns = SIM_S * (3 + (n >> 8) % 28);
	s->drain_timeout_ns = SIM_S * (2 + (n >> 16) % 29);
	s->orphan_grace_ns = SIM_S * (1 + (n >> 24) % 5);
	s->connect_timeout_ns = 20 * SIM_S;
}

static void start(struct job_world *w)
{
	struct jobs *j = w->j;
	uint32_t i;

	sim_defaults(&w->args);
	w->args.nodes = j->nodes;
	w->args.rails = 1;
	w->args.seed = j->seed;
	w->args.drift_ppm = 200;
	w->args.trace = j->trace;
	limits(j, &w->args.limits);
	settings(w, &w->args.settings);
	w->args.check = job_check_step;
	w->args.took = job_check_took;
	w->args.act = act;
	w->args.rows = job_boot;
	w->args.due = due;
	w->args.arg = w;
	w->nodes = calloc(j->nodes, sizeof(*w->nodes));
	if (!w->nodes)
		abort();
	for (i = 0; i < j->nodes; i++)
		w->nodes[i].disk_ns = SIM_MS;
	w->sim = sim_new(&w->args);
	sim_start_all(w->sim);
	for (i = 0; i < groups(w); i++) {
		sim_later(w->sim, group_first(i), false, job_pick(w, 3000) * SIM_MS, DUE_BEGIN, i);
		if (!j->calm)
			sim_later(w->sim, group_first(i), false, job_pick(w, 5000) * SIM_MS,
				  DUE_FAULT, i);
	}
}

/* Two that answer each other's answers talk as fast as the wire lets them. */
static void check_talk(struct job_world *w)
{
	const uint64_t now = sim_now(w->sim), events = sim_events(w->sim);

	if (now - w->talk_at < SIM_S)
		return;
	if (events - w->talked > 4000 + 500ull * w->j->nodes)
		job_broken(w, "%" PRIu64 " events in a second: words go round in a circle",
			   events - w->talked);
	w->talk_at = now;
	w->talked = events;
}

static void run_for(struct job_world *w, uint64_t ns)
{
	const uint64_t end = sim_now(w->sim) + ns;

	while (!w->j->bad && sim_now(w->sim) < end) {
		const uint64_t left = end - sim_now(w->sim);

		sim_run(w->sim, left < SIM_S / 10 ? left : SIM_S / 10);
		check_talk(w);
	}
}

static void heal(struct job_world *w)
{
	uint32_t i;

	w->healing = true;
	sim_wire(w->sim, HC_NONE, HC_NONE, HC_NONE, &w->args.wire);
	for (i = 0; i < w->j->nodes; i++) {
		w->nodes[i].disk_ns = SIM_MS;
		thaw(w, i);
		boot(w, i);
		sim_port(w->sim, i, 0, true, 1500);
	}
}

typedef const char *(*look_fn)(struct job_world *w, char *text, size_t bytes);

/* Until there is nothing wrong; what is still wrong at the limit is a broken promise. */
static uint32_t settle(struct job_world *w, look_fn look, uint32_t limit_s, const char *when)
{
	const uint64_t began = sim_now(w->sim);
	char text[600];
	const char *why = "?";

	while (!w->j->bad && (why = look(w, text, sizeof(text))) &&
	       sim_now(w->sim) - began < limit_s * SIM_S)
		run_for(w, SIM_S / 2);
	if (why && !w->j->bad)
		job_broken(w, "%u s after %s: %s", limit_s, when, why);
	return (uint32_t)((sim_now(w->sim) - began) / SIM_MS);
}

/* All go: they leave, or just exit. */
static void end_all(struct job_world *w)
{
	uint32_t i;

	w->ending = true;
	for (i = 0; i < w->nprocs; i++)
		if (w->procs[i].alive) {
			if (!job_pick(w, 4))
				job_proc_die(w, i);
			else
				job_proc_wake(w, i, SIM_MS * job_pick(w, 2000));
		}
}

static void count(struct job_world *w)
{
	uint32_t i;

	for (i = 0; i < w->ndomains; i++) {
		const struct job_domain *d = &w->domains[i];
		const bool sub = d->job != HC_NONE && w->jobs[d->job]->parent != HC_NONE;

		w->j->formed += d->committed && !sub;
		w->j->subs += d->committed && sub;
		w->j->failed += d->cancelled;
	}
}

static void finish(struct job_world *w)
{
	uint32_t i;

	w->j->hash = sim_hash(w->sim);
	w->j->events = sim_events(w->sim);
	sim_free(w->sim);
	for (i = 0; i < w->j->nodes; i++)
		job_store_free(&w->nodes[i]);
	for (i = 0; i < w->njobs; i++)
		free(w->jobs[i]);
	free(w->nodes);
	free(w->procs);
	free(w->jobs);
	free(w->domains);
	sim_map_clear(&w->domain_map);
}

void jobs_run(struct jobs *j)
{
	struct job_world w = {.j = j};

	start(&w);
	run_for(&w, j->seconds * SIM_S);
	heal(&w);
	j->heal_ms = settle(&w, job_unsettled, JOBS_HEAL_S, "all was healed");
	end_all(&w);
	j->end_ms = settle(&w, job_left_over, JOBS_END_S, "all went");
	count(&w);
	finish(&w);
}
