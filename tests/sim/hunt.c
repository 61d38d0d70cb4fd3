/* SPDX-License-Identifier: Apache-2.0 */
/* Faults and healing; see hunt.h. */
#include "huntimp.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- faults ---- */

static uint32_t pick(struct hunter *w, uint32_t below)
{
	return (uint32_t)(sim_rand(w->sim) % below);
}

static uint32_t one_or_all(struct hunter *w, uint32_t below)
{
	return pick(w, 3) ? pick(w, below) : HC_NONE;
}

/* What is right, or wrong, from now on. */
static uint64_t from_now(const struct hunter *w, bool right)
{
	return right ? sim_now(w->sim) : HC_NEVER;
}

static void start(struct hunter *w, uint32_t node, bool fresh)
{
	uint32_t i;

	sim_start(w->sim, node, fresh);
	for (i = 0; i < w->h->nodes; i++)
		if (i > node)
			sim_know(w->sim, node, i);
	w->down[node] = false;
	w->ok.node[node] = from_now(w, true);
}

static void put_wire(struct hunter *w, uint32_t from, uint32_t to, uint32_t rail,
		     const struct sim_wire *x, bool right)
{
	uint32_t a, b, r;

	sim_wire(w->sim, from, to, rail, x);
	for (a = 0; a < w->h->nodes; a++)
		for (b = 0; b < w->h->nodes; b++)
			for (r = 0; r < w->h->rails; r++)
				if ((from == HC_NONE || from == a) && (to == HC_NONE || to == b) &&
				    (rail == HC_NONE || rail == r))
					*hunt_wire_of(w, a, b, r) = from_now(w, right);
}

static void put_port(struct hunter *w, uint32_t node, uint32_t rail, bool up, uint32_t mtu)
{
	sim_port(w->sim, node, rail, up, mtu);
	w->ok.port[node][rail] = from_now(w, up && mtu == 1500);
}

static void wire(struct hunter *w)
{
	static const uint32_t losses[] = {0, 10000, 20000, 100000, 500000};
	const struct sim_wire x = {.delay = 20000 + pick(w, 3) * 500000,
				   .jitter = 1 + pick(w, 2) * 2000000,
				   .loss = losses[pick(w, 5)],
				   .twice = pick(w, 2) * 50000,
				   .late = pick(w, 2) * 50000,
				   .mtu = pick(w, 5) ? 0 : 1000,
				   .cut = !pick(w, 3)};

	const uint32_t from = one_or_all(w, w->h->nodes), to = one_or_all(w, w->h->nodes),
		       rail = one_or_all(w, w->h->rails);

	put_wire(w, from, to, rail, &x, false);
}

static void daemon_fault(struct hunter *w, uint32_t n)
{
	w->ok.node[n] = HC_NEVER;
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

static void port(struct hunter *w, uint32_t n)
{
	static const uint32_t mtus[] = {1280, 1500, 9000};
	const uint32_t rail = pick(w, w->h->rails), up = pick(w, 3);

	put_port(w, n, rail, up != 0, mtus[pick(w, 3)]);
}

static void settings(struct hunter *w, uint32_t n)
{
	static const uint64_t intervals[] = {10, 50, 100, 1000};
	struct sim_args d;

	sim_defaults(&d);
	d.settings.beat_ns = intervals[pick(w, 4)] * SIM_MS;
	sim_set(w->sim, n, &d.settings);
	w->ok.node[n] = from_now(w, true);
}

static void thaw(struct hunter *w, uint32_t n)
{
	w->frozen[n] = false;
	w->thawed[n] = w->ok.node[n] = sim_now(w->sim);
	sim_go(w->sim, n);
}

static void fault(struct hunter *w)
{
	const uint32_t n = pick(w, w->h->nodes);

	w->h->faults++;
	if (w->frozen[n]) {
		thaw(w, n);
	} else if (w->down[n]) {
		start(w, n, !pick(w, 4));
	} else {
		switch (pick(w, 6)) {
		case 0:
		case 1:
		case 2: wire(w); return;
		case 3: daemon_fault(w, n); return;
		case 4: port(w, n); return;
		case 5: settings(w, n); return;
		}
	}
}

/* ---- healing ---- */

static void heal(struct hunter *w, const struct sim_args *args)
{
	uint32_t i, r;

	put_wire(w, HC_NONE, HC_NONE, HC_NONE, &args->wire, true);
	for (i = 0; i < w->h->nodes; i++) {
		if (w->frozen[i])
			thaw(w, i);
		if (w->down[i])
			start(w, i, false);
		for (r = 0; r < w->h->rails; r++)
			put_port(w, i, r, true, 1500);
		sim_set(w->sim, i, &args->settings);
		w->ok.node[i] = from_now(w, true);
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
				hunt_broken(w->h,
					    "%u s after all was healed: for node %u, node %u %s",
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

static void post_all(struct hunter *w)
{
	uint32_t a, b;

	for (a = 0; a < w->h->nodes; a++)
		for (b = 0; b < w->h->nodes; b++)
			if (a != b)
				hunt_post(w, a, b);
}

/* Sometimes, and not by all: a connection over which nothing goes must be looked after, too. */
static void post_some(struct hunter *w)
{
	const uint32_t from = pick(w, w->h->nodes), to = pick(w, w->h->nodes);

	if (from != to && !pick(w, 2))
		hunt_post(w, from, to);
}

/* What all said at the end has come, too: the last of what was said before is before it. */
static void let_answer(struct hunter *w)
{
	if (w->h->bad)
		return;
	post_all(w);
	sim_run(w->sim, SIM_S);
	if (!hunt_mail_came(w))
		hunt_broken(w->h, "a message was not taken within a second, and all was well");
	hunt_check_log(w);
}

static void begin(struct hunter *w, struct sim_args *args)
{
	struct hunt *h = w->h;

	sim_defaults(args);
	args->nodes = h->nodes = h->nodes < NODES_MAX ? h->nodes : NODES_MAX;
	args->rails = h->rails = h->rails < RAILS_MAX ? h->rails : RAILS_MAX;
	args->seed = h->seed;
	args->drift_ppm = 200;
	args->trace = h->trace;
	args->check = hunt_check;
	args->took = hunt_took;
	args->arg = w;
	w->mail = calloc((size_t)h->nodes * h->nodes, sizeof(*w->mail));
	w->ok.wire = calloc((size_t)h->nodes * h->nodes * h->rails, sizeof(*w->ok.wire));
	if (!w->mail || !w->ok.wire)
		abort();
	w->sim = sim_new(args);
	sim_start_all(w->sim);
	sim_know_all(w->sim);
	sim_run(w->sim, 3 * SIM_S);
}

void hunt_run(struct hunt *h)
{
	struct hunter w = {.h = h};
	struct sim_args args;
	uint64_t end;

	begin(&w, &args);
	for (end = sim_now(w.sim) + h->seconds * SIM_S; sim_now(w.sim) < end && !h->bad;) {
		fault(&w);
		post_some(&w);
		sim_run(w.sim, SIM_MS * (1 + pick(&w, 3000)));
	}
	heal(&w, &args);
	let_agree(&w);
	let_answer(&w);
	h->hash = sim_hash(w.sim);
	h->events = sim_events(w.sim);
	sim_free(w.sim);
	free(w.mail);
	free(w.ok.wire);
}
