/* SPDX-License-Identifier: Apache-2.0 */
/* Faults, promises, healing; see hunt.h. */
#include "hunt.h"

#include "net.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

struct hunter {
	struct hunt *h;
	struct sim *sim;
	bool *down, *frozen; /* of a node: killed or crashed; standing still */
	uint64_t thawed[64]; /* when it went on last */
};

#define NODES_MAX 64u

__attribute__((format(printf, 2, 3))) static void broken(struct hunt *h, const char *fmt, ...)
{
	va_list ap;

	if (h->bad)
		return;
	h->bad = true;
	va_start(ap, fmt);
	vsnprintf(h->why, sizeof(h->why), fmt, ap);
	va_end(ap);
}

/* ---- what must hold after every step ---- */

/* The verdict about proofs, what was given for the core's own lateness, and a look at them. */
static uint64_t proof_bound(const struct hc_core *c, const struct hc_path *p)
{
	return hc_path_window(c, p) + 2 * hc_path_interval(c, p) + p->discount_ns + 2 * SIM_MS;
}

/*
 * How long there was no proof, as the core may count it: not from before it stood still itself, nor
 * from before it judges again a peer whose daemon was down.
 */
static uint64_t since(const struct hunter *w, uint32_t node, const struct hc_core *c,
		      const struct hc_path *p)
{
	const uint64_t thawed = sim_local(w->sim, node, w->thawed[node]);
	uint64_t from = p->proof_at > thawed ? p->proof_at : thawed;

	from = p->judge_from != HC_NEVER && p->judge_from > from ? p->judge_from : from;
	return c->now > from ? c->now - from : 0;
}

static void check_path(struct hunter *w, uint32_t node, const struct hc_core *c, uint32_t x)
{
	const struct hc_path *p = &c->net->paths[x];
	const struct hc_peer *peer = &c->net->peers[p->peer];

	if (p->state != HC_W_path_state_NORMAL && p->state != HC_W_path_state_CONGESTED)
		return;
	if (p->proof_at == HC_NEVER)
		broken(w->h, "[%" PRIu64 " ms] node %u: path %x is normal and was never proven",
		       sim_now(w->sim) / SIM_MS, node, p->id);
	else if (!hc_peer_excused(c, peer) && since(w, node, c, p) > proof_bound(c, p))
		broken(w->h,
		       "[%" PRIu64 " ms] node %u: path %x is normal, its last proof is %" PRIu64
		       " ms old; its window is %" PRIu64 " ms",
		       sim_now(w->sim) / SIM_MS, node, p->id, (c->now - p->proof_at) / SIM_MS,
		       hc_path_window(c, p) / SIM_MS);
}

static void check_peer(struct hunter *w, uint32_t node, const struct hc_peer *p)
{
	if (p->state == HC_W_node_state_UP && !p->conns)
		broken(w->h, "[%" PRIu64 " ms] node %u: %s is up and never had a connection",
		       sim_now(w->sim) / SIM_MS, node, p->name);
	if (p->npaths > HC_PEER_PATHS || (int32_t)(p->sent - p->acked) < 0)
		broken(w->h, "[%" PRIu64 " ms] node %u: counters of %s are impossible",
		       sim_now(w->sim) / SIM_MS, node, p->name);
}

static void check(struct sim *s, uint32_t node, void *arg)
{
	struct hunter *w = arg;
	const struct hc_core *c = sim_core(s, node);
	uint32_t i;

	for (i = 0; i < c->net->path_top; i++)
		if (c->net->paths[i].id)
			check_path(w, node, c, i);
	for (i = 0; i < c->net->peer_pool.fresh; i++)
		if (c->net->peers[i].used)
			check_peer(w, node, &c->net->peers[i]);
}

/* ---- faults ---- */

static uint32_t pick(struct hunter *w, uint32_t below)
{
	return (uint32_t)(sim_rand(w->sim) % below);
}

static uint32_t one_or_all(struct hunter *w, uint32_t below)
{
	return pick(w, 3) ? pick(w, below) : HC_NONE;
}

static void start(struct hunter *w, uint32_t node, bool fresh)
{
	uint32_t i;

	sim_start(w->sim, node, fresh);
	for (i = 0; i < w->h->nodes; i++)
		if (i > node)
			sim_know(w->sim, node, i);
	w->down[node] = false;
}

static void wire(struct hunter *w)
{
	static const uint32_t losses[] = {0, 10000, 20000, 100000, 500000};
	struct sim_wire x = {.delay = 20000 + pick(w, 3) * 500000,
			     .jitter = 1 + pick(w, 2) * 2000000,
			     .loss = losses[pick(w, 5)],
			     .twice = pick(w, 2) * 50000,
			     .late = pick(w, 2) * 50000,
			     .mtu = pick(w, 5) ? 0 : 1000,
			     .cut = !pick(w, 3)};

	sim_wire(w->sim, one_or_all(w, w->h->nodes), one_or_all(w, w->h->nodes),
		 one_or_all(w, w->h->rails), &x);
}

static void daemon_fault(struct hunter *w, uint32_t n)
{
	switch (pick(w, 4)) {
	case 0:
		w->frozen[n] = true;
		sim_stop(w->sim, n);
		return;
	case 1: sim_crash(w->sim, n); break;
	default: sim_kill(w->sim, n); break;
	}
	w->down[n] = true;
}

static void settings(struct hunter *w, uint32_t n)
{
	static const uint64_t intervals[] = {10, 50, 100, 1000};
	struct sim_args d;

	sim_defaults(&d);
	d.settings.beat_ns = intervals[pick(w, 4)] * SIM_MS;
	sim_set(w->sim, n, &d.settings);
}

static void fault(struct hunter *w)
{
	const uint32_t n = pick(w, w->h->nodes);
	static const uint32_t mtus[] = {1280, 1500, 9000};

	w->h->faults++;
	if (w->frozen[n]) {
		w->frozen[n] = false;
		w->thawed[n] = sim_now(w->sim);
		sim_go(w->sim, n);
	} else if (w->down[n]) {
		start(w, n, !pick(w, 4));
	} else {
		switch (pick(w, 6)) {
		case 0:
		case 1:
		case 2: wire(w); return;
		case 3: daemon_fault(w, n); return;
		case 4:
			sim_port(w->sim, n, pick(w, w->h->rails), pick(w, 3) != 0,
				 mtus[pick(w, 3)]);
			return;
		case 5: settings(w, n); return;
		}
	}
}

/* ---- healing ---- */

static void heal(struct hunter *w, const struct sim_args *args)
{
	uint32_t i, r;

	sim_wire(w->sim, HC_NONE, HC_NONE, HC_NONE, &args->wire);
	for (i = 0; i < w->h->nodes; i++) {
		if (w->frozen[i]) {
			w->thawed[i] = sim_now(w->sim);
			sim_go(w->sim, i);
		}
		if (w->down[i])
			start(w, i, false);
		w->frozen[i] = false;
		for (r = 0; r < w->h->rails; r++)
			sim_port(w->sim, i, r, true, 1500);
		sim_set(w->sim, i, &args->settings);
	}
}

static const struct hc_path *path_with(const struct hc_core *c, uint32_t id)
{
	uint32_t i;

	for (i = 0; i < c->net->path_top; i++)
		if (c->net->paths[i].id == id)
			return &c->net->paths[i];
	return NULL;
}

/* What is wrong with what `a` thinks of `b`, or NULL. */
static const char *wrong(struct hunter *w, uint32_t a, uint32_t b)
{
	const struct hc_core *c = sim_core(w->sim, a), *d = sim_core(w->sim, b);
	uint32_t i, n = hc_peer_find(c, d->self.node_id);
	const struct hc_peer *p = n == HC_NONE ? NULL : &c->net->peers[n];

	if (!p)
		return "is not known";
	if (p->state != HC_W_node_state_UP || !p->conn)
		return "is not up";
	if (p->start != d->self.start || p->incarnation != d->self.incarnation)
		return "is taken for another daemon";
	if (p->npaths != w->h->rails)
		return "has not as many paths as there are rails";
	if (p->mail_count)
		return "has not acknowledged everything";
	for (i = 0; i < p->npaths; i++) {
		const struct hc_path *x = &c->net->paths[p->paths[i]];

		if (x->state != HC_W_path_state_NORMAL)
			return "has a path that is not normal";
		if (x->used_mtu != 1500)
			return "has a path whose size is wrong";
		if (!path_with(d, x->id))
			return "does not have the same paths";
	}
	return NULL;
}

static bool all_agree(struct sim *s, void *arg)
{
	struct hunter *w = arg;
	uint32_t a, b;

	(void)s;
	if (w->h->bad)
		return true;
	for (a = 0; a < w->h->nodes; a++)
		for (b = 0; b < w->h->nodes; b++)
			if (a != b && wrong(w, a, b))
				return false;
	return true;
}

static void name_disagreement(struct hunter *w)
{
	uint32_t a, b;

	for (a = 0; a < w->h->nodes; a++)
		for (b = 0; b < w->h->nodes; b++)
			if (a != b && wrong(w, a, b))
				broken(w->h, "%u s after all was healed: for node %u, node %u %s",
				       HUNT_HEAL_S, a, b, wrong(w, a, b));
}

static void let_agree(struct hunter *w)
{
	const uint64_t began = sim_now(w->sim);
	uint32_t i;

	/* to look at every pair after each event would take longer than the events */
	for (i = 0; i < HUNT_HEAL_S * 2 && !all_agree(w->sim, w); i++)
		sim_run(w->sim, SIM_S / 2);
	if (!all_agree(w->sim, w))
		name_disagreement(w);
	w->h->heal_ms = (uint32_t)((sim_now(w->sim) - began) / SIM_MS);
}

void hunt_run(struct hunt *h)
{
	bool down[NODES_MAX] = {0}, frozen[NODES_MAX] = {0};
	struct hunter w = {.h = h, .down = down, .frozen = frozen};
	struct sim_args args;
	uint64_t end;

	sim_defaults(&args);
	h->nodes = h->nodes < NODES_MAX ? h->nodes : NODES_MAX;
	args.nodes = h->nodes;
	args.rails = h->rails;
	args.seed = h->seed;
	args.drift_ppm = 200;
	args.trace = h->trace;
	args.check = check;
	args.arg = &w;
	w.sim = sim_new(&args);
	sim_start_all(w.sim);
	sim_know_all(w.sim);
	sim_run(w.sim, 3 * SIM_S);
	for (end = sim_now(w.sim) + h->seconds * SIM_S; sim_now(w.sim) < end && !h->bad;) {
		fault(&w);
		sim_run(w.sim, SIM_MS * (1 + pick(&w, 3000)));
	}
	heal(&w, &args);
	let_agree(&w);
	h->hash = sim_hash(w.sim);
	h->events = sim_events(w.sim);
	sim_free(w.sim);
}
