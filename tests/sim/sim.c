/* SPDX-License-Identifier: Apache-2.0 */
/* The clock, the nodes and their daemons; see simnet.h. */
#include "frame.h"
#include "net.h"
#include "simimp.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

void *sim_grow(void *at, uint32_t count, uint32_t *cap, size_t size)
{
	if (count < *cap)
		return at;
	*cap = *cap ? *cap * 2 : 64;
	at = realloc(at, *cap * size);
	if (!at)
		abort();
	return at;
}

static void *zeroed(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		abort();
	return p;
}

/* ---- chance ---- */

uint64_t sim_draw(struct sim *s)
{
	uint64_t n[2] = {s->draws++, 0};

	return hc_hash(&s->key, n, sizeof(n));
}

uint64_t sim_rand(struct sim *s)
{
	uint64_t n[2] = {s->choices++, 1};

	return hc_hash(&s->key, n, sizeof(n));
}

bool sim_chance(struct sim *s, uint32_t ppm)
{
	return ppm && sim_draw(s) % 1000000 < ppm;
}

/* ---- the trace ---- */

void sim_note(struct sim *s, uint32_t node, const char *what, uint64_t a, uint64_t b,
	      const uint8_t *bytes, uint32_t len)
{
	uint64_t words[6] = {s->hash, s->now, node, a, b, 0};

	words[5] = hc_hash(&s->key, bytes, len);
	s->hash = hc_hash(&s->key, words, sizeof(words));
	if (s->args.trace)
		fprintf(s->args.trace, "[%9.3f ms] %u %s %" PRIx64 " %" PRIx64 " %u\n",
			(double)s->now / 1e6, node, what, a, b, len);
}

/* ---- the heap: what happens next; at one time, in the order in which it was put ---- */

static bool before(const struct sim_due *a, const struct sim_due *b)
{
	return a->at != b->at ? a->at < b->at : a->serial < b->serial;
}

static struct sim_item *new_item(struct sim *s)
{
	struct sim_item *it = s->free;

	if (it)
		s->free = it->next;
	else if (!(it = malloc(sizeof(*it))))
		abort();
	return it;
}

static void free_item(struct sim *s, struct sim_item *it)
{
	free(it->bytes);
	it->next = s->free;
	s->free = it;
}

static void push(struct sim *s, struct sim_due due)
{
	uint32_t i = s->nheap++, up;

	for (; i && before(&due, &s->heap[up = (i - 1) / 2]); i = up)
		s->heap[i] = s->heap[up];
	s->heap[i] = due;
}

void sim_put(struct sim *s, const struct sim_item *it, const uint8_t *bytes, uint32_t len)
{
	struct sim_item *own = new_item(s);

	*own = *it;
	own->serial = s->serial++;
	if (bytes) {
		own->bytes = malloc(len ? len : 1);
		if (!own->bytes)
			abort();
		memcpy(own->bytes, bytes, len);
		own->len = len;
	}
	s->heap = sim_grow(s->heap, s->nheap, &s->heap_cap, sizeof(*s->heap));
	push(s, (struct sim_due){own->at, own->serial, own});
}

static struct sim_item *take(struct sim *s)
{
	struct sim_item *first = s->heap[0].item;
	const struct sim_due last = s->heap[--s->nheap];
	uint32_t i = 0, kid;

	for (;;) {
		kid = 2 * i + 1;
		if (kid + 1 < s->nheap && before(&s->heap[kid + 1], &s->heap[kid]))
			kid++;
		if (kid >= s->nheap || !before(&s->heap[kid], &last))
			break;
		s->heap[i] = s->heap[kid];
		i = kid;
	}
	if (s->nheap)
		s->heap[i] = last;
	return first;
}

/* ---- clocks ---- */

uint64_t sim_local(const struct sim *s, uint32_t node, uint64_t now)
{
	const struct sim_node *n = &s->nodes[node];
	const int64_t drift = (int64_t)now * n->ppm / 1000000; /* a nanosecond at a time */

	return n->epoch + now + (uint64_t)drift;
}

/* The first moment at which the node's clock shows at least that. */
static uint64_t global(const struct sim *s, uint32_t node, uint64_t local)
{
	const struct sim_node *n = &s->nodes[node];
	uint64_t t = local > n->epoch ? local - n->epoch : 0, shown;

	t -= (uint64_t)((int64_t)t * n->ppm / 1000000);
	while ((shown = sim_local(s, node, t)) < local)
		t += local - shown;
	return t;
}

/* ---- stepping a core ---- */

static void say(struct sim *s, uint32_t node, const struct hc_action *a)
{
	struct sim_said *to;

	if (s->args.trace)
		fprintf(s->args.trace, "[%9.3f ms] %u log: %s\n", (double)s->now / 1e6, node,
			(const char *)a->bytes);
	if (!a->u.log.code)
		return;
	s->said = sim_grow(s->said, s->nsaid, &s->said_cap, sizeof(*s->said));
	to = &s->said[s->nsaid++];
	*to = (struct sim_said){.at = s->now,
				.node = node,
				.code = a->u.log.code,
				.level = (uint8_t)a->u.log.level};
	snprintf(to->text, sizeof(to->text), "%s", (const char *)a->bytes);
}

static void persisted(struct sim *s, uint32_t node, const struct hc_action *a)
{
	struct sim_item it = {.at = s->now + 50000,
			      .node = node,
			      .life = s->nodes[node].life,
			      .what = SIM_EVENT,
			      .kind = HC_EV_PERSISTED,
			      .persisted = a->u.persist.seq};

	sim_put(s, &it, NULL, 0);
}

static bool is_of_clients(enum hc_action_kind kind)
{
	switch (kind) {
	case HC_ACT_REPLY:
	case HC_ACT_NOTIFY:
	case HC_ACT_PERSIST:
	case HC_ACT_PUBLISH:
	case HC_ACT_SCAN:
	case HC_ACT_CLOSE:
	case HC_ACT_RECALL:
	case HC_ACT_WATCH:
	case HC_ACT_SYNC:
	case HC_ACT_REGISTER: return true;
	case HC_ACT_ROUTE:
	case HC_ACT_DIAL:
	case HC_ACT_CONN_SEND:
	case HC_ACT_CONN_CLOSE:
	case HC_ACT_KEY_MAKE:
	case HC_ACT_KEY_DROP:
	case HC_ACT_DATAGRAM:
	case HC_ACT_SEND_PEER:
	case HC_ACT_LOG: return false;
	}
	return false;
}

static void perform(struct sim *s, uint32_t node, const struct hc_action *a)
{
	sim_note(s, node, "action", (uint64_t)a->kind, a->session, a->bytes, a->len);
	if (s->args.act && is_of_clients(a->kind)) {
		s->args.act(s, node, a, s->args.arg);
		return;
	}
	switch (a->kind) {
	case HC_ACT_ROUTE: sim_act_route(s, node, a); return;
	case HC_ACT_DIAL: sim_act_dial(s, node, a); return;
	case HC_ACT_CONN_SEND: sim_act_send(s, node, a); return;
	case HC_ACT_CONN_CLOSE: sim_act_close(s, node, a); return;
	case HC_ACT_KEY_MAKE: sim_act_key(s, node, a); return;
	case HC_ACT_KEY_DROP: sim_act_key_drop(s, node, a); return;
	case HC_ACT_DATAGRAM: sim_act_datagram(s, node, a); return;
	case HC_ACT_PERSIST: persisted(s, node, a); return;
	case HC_ACT_LOG: say(s, node, a); return;
	case HC_ACT_REPLY:
		if (s->args.reply)
			s->args.reply(s, node, a, s->args.arg);
		return;
	case HC_ACT_NOTIFY:
	case HC_ACT_SEND_PEER:
	case HC_ACT_PUBLISH:
	case HC_ACT_SCAN:
	case HC_ACT_CLOSE:
	case HC_ACT_RECALL:
	case HC_ACT_WATCH:
	case HC_ACT_SYNC:
	case HC_ACT_REGISTER: return;
	}
	abort();
}

static void wake_at(struct sim *s, uint32_t node)
{
	struct sim_node *n = &s->nodes[node];
	const uint64_t deadline = hc_core_deadline(n->core);
	struct sim_item it = {.node = node, .life = n->life, .what = SIM_WAKE};

	it.at = deadline == HC_NEVER ? HC_NEVER : global(s, node, deadline);
	if (it.at < s->now)
		it.at = s->now;
	if (it.at == n->wake)
		return;
	n->wake = it.at;
	if (it.at != HC_NEVER)
		sim_put(s, &it, NULL, 0);
}

static void step(struct sim *s, uint32_t node, const struct hc_event *ev)
{
	struct sim_node *n = &s->nodes[node];
	uint32_t i;

	s->events++;
	hc_out_reset(s->out);
	hc_core_step(n->core, sim_local(s, node, s->now), ev, s->out);
	for (i = 0; i < s->out->count; i++)
		perform(s, node, &s->out->acts[i]);
	if (s->args.check)
		s->args.check(s, node, s->args.arg);
	wake_at(s, node);
}

void sim_feed(struct sim *s, uint32_t node, const struct hc_event *ev)
{
	step(s, node, ev);
}

void sim_do(struct sim *s, uint32_t node, void (*fn)(struct hc_core *c, void *arg), void *arg)
{
	struct hc_core *c = s->nodes[node].core;
	uint32_t i;

	hc_out_reset(s->out);
	c->now = sim_local(s, node, s->now);
	c->out = s->out;
	fn(c, arg);
	c->out = NULL;
	for (i = 0; i < s->out->count; i++)
		perform(s, node, &s->out->acts[i]);
	if (s->args.check)
		s->args.check(s, node, s->args.arg);
	wake_at(s, node);
}

/* ---- what happens ---- */

/* The peer that the connection is of, NULL: none, or it is gone. */
static const struct hc_peer *peer_of(const struct sim *s, const struct sim_item *it)
{
	struct hc_core *c = s->nodes[it->node].core;
	const struct hc_conn *k = hc_conn_find(c, it->conn);

	return k && k->peer != HC_NONE ? &c->net->peers[k->peer] : NULL;
}

static void step_message(struct sim *s, const struct sim_item *it, const struct hc_event *ev)
{
	const struct hc_peer *p = peer_of(s, it);
	const uint32_t before = p ? p->received : 0;

	step(s, it->node, ev);
	if (s->args.took && p && p->received != before && p->received == ev->u.conn.frame->head.id)
		s->args.took(s, it->node, it->from, it->from_life, ev->u.conn.frame, s->args.arg);
}

static void deliver(struct sim *s, const struct sim_item *it)
{
	struct hc_event ev = {.kind = (enum hc_event_kind)it->kind};
	const uint8_t *at = it->bytes;
	size_t left = it->len;
	struct hc_frame f;

	sim_note(s, it->node, "event", it->kind, it->conn, it->bytes, it->len);
	if (it->kind == HC_EV_PERSISTED) {
		ev.u.persisted = it->persisted;
	} else if (it->kind == HC_EV_ROUTE) {
		ev.u.route = &it->route;
	} else if (it->kind == HC_EV_DATAGRAM) {
		ev.u.datagram.local = it->local;
		ev.u.datagram.remote = it->remote;
		ev.u.datagram.key = it->secret_key;
		ev.u.datagram.bytes = it->bytes;
		ev.u.datagram.len = it->len;
	} else if (it->kind == HC_EV_BOUNCED) {
		ev.u.bounced.remote = it->remote;
		ev.u.bounced.error = it->error;
		ev.u.bounced.mtu = it->mtu;
	} else if (it->kind != HC_EV_TIMEOUT) {
		ev.u.conn.conn = it->conn;
		ev.u.conn.local = it->local;
		ev.u.conn.remote = it->remote;
		ev.u.conn.end = it->end;
		ev.u.conn.error = it->error;
		ev.u.conn.text = hc_str("");
	}
	if (it->kind != HC_EV_CONN_MSG) {
		step(s, it->node, &ev);
		return;
	}
	while (left) {
		if (hc_frame_next(&at, &left, &f))
			abort();
		ev.u.conn.frame = &f;
		if (!s->nodes[it->node].core)
			return;
		step_message(s, it, &ev);
	}
}

void sim_later(struct sim *s, uint32_t node, bool daemon, uint64_t ns, uint32_t what,
	       uint64_t number)
{
	struct sim_item it = {.at = s->now + ns,
			      .node = node,
			      .life = daemon ? s->nodes[node].life : 0,
			      .what = SIM_DUE,
			      .due = what,
			      .persisted = number};

	sim_put(s, &it, NULL, 0);
}

static void fall_due(struct sim *s, const struct sim_item *it)
{
	sim_note(s, it->node, "due", it->due, it->persisted, NULL, 0);
	s->args.due(s, it->node, it->due, it->persisted, s->args.arg);
}

static void hold(struct sim_node *n, struct sim_item *it)
{
	n->held = sim_grow(n->held, n->nheld, &n->held_cap, sizeof(*n->held));
	n->held[n->nheld++] = it;
}

/* Keeps the item when it says so. */
static bool happen(struct sim *s, struct sim_item *it)
{
	struct sim_node *n = &s->nodes[it->node];

	if (it->kind == HC_EV_DATAGRAM && it->what == SIM_ARRIVE && !sim_admits(s, it))
		return false;
	if (it->what == SIM_ARRIVE && it->kind != HC_EV_DATAGRAM && it->kind != HC_EV_BOUNCED &&
	    !sim_stream_ready(s, it))
		return false;
	if (it->what == SIM_DUE && !it->life) {
		fall_due(s, it);
		return false;
	}
	if (!n->core || (it->life && it->life != n->life))
		return false;
	if (it->what == SIM_WAKE) {
		if (n->wake != it->at)
			return false;
		n->wake = HC_NEVER;
	}
	if (n->stopped) {
		if (it->what == SIM_WAKE)
			return false;
		hold(n, it);
		return true;
	}
	if (it->what == SIM_WAKE)
		it->kind = HC_EV_TIMEOUT;
	if (it->what == SIM_DUE)
		fall_due(s, it);
	else
		deliver(s, it);
	return false;
}

uint64_t sim_now(const struct sim *s)
{
	return s->now;
}

static void one(struct sim *s)
{
	struct sim_item *it = take(s);

	s->now = it->at;
	if (!happen(s, it))
		free_item(s, it);
}

void sim_run(struct sim *s, uint64_t ns)
{
	const uint64_t until = s->now + ns;

	while (s->nheap && s->heap[0].at <= until)
		one(s);
	s->now = until;
}

bool sim_until(struct sim *s, bool (*done)(struct sim *s, void *arg), void *arg, uint64_t limit_ns)
{
	const uint64_t limit = s->now + limit_ns;

	while (!done(s, arg)) {
		if (!s->nheap || s->heap[0].at > limit) {
			s->now = limit;
			return done(s, arg);
		}
		one(s);
	}
	return true;
}

/* ---- daemons ---- */

void sim_identity(const struct sim *s, uint32_t node, uint8_t id[16])
{
	const uint64_t n = s->nodes[node].identity + 1;
	const uint64_t h = hc_hash(&(struct hc_hash_key){1, 2}, &n, sizeof(n));
	uint32_t i;

	for (i = 0; i < 8; i++)
		id[i] = (uint8_t)(h >> (8 * i));
	for (; i < 16; i++)
		id[i] = (uint8_t)(n >> (8 * (i - 8)));
}

static void give_port(struct sim *s, uint32_t node, uint32_t rail)
{
	const struct sim_port_state *p = &s->nodes[node].ports[rail];
	struct hc_port_fact f = {.index = rail + 2,
				 .kind = HC_W_port_kind_ETHER,
				 .present = true,
				 .up = p->up,
				 .carrier = p->up,
				 .mtu = p->mtu,
				 .mbps = 12500,
				 .naddrs = 1};
	struct hc_event ev = {.kind = HC_EV_PORT_FACT, .u.port = &f};

	snprintf(f.name, sizeof(f.name), "eth%u", rail);
	f.addrs[0].addr = sim_address(node, rail).addr;
	f.addrs[0].prefix = 16;
	step(s, node, &ev);
}

void sim_start(struct sim *s, uint32_t node, bool fresh)
{
	struct sim_node *n = &s->nodes[node];
	struct hc_self self = {.fence = true, .peers = true, .port = SIM_PORT};
	struct hc_event ev = {.kind = HC_EV_START};
	uint32_t i;

	if (n->core)
		abort();
	if (fresh || !n->incarnation) {
		n->incarnation = 1 + sim_rand(s);
		n->start = 0;
	}
	n->kernel = true;
	n->life++;
	n->start++;
	self.incarnation = n->incarnation;
	self.start = n->start;
	self.seed[0] = sim_rand(s);
	self.seed[1] = node;
	self.cookie = sim_rand(s);
	self.boot_id[0] = (uint8_t)(node + 1);
	sim_identity(s, node, self.node_id);
	snprintf(self.name, sizeof(self.name), "n%u", node);
	snprintf(self.build, sizeof(self.build), "sim");
	snprintf(self.cluster, sizeof(self.cluster), "sim");
	n->memory = zeroed(s->core_bytes);
	n->core = hc_core_init(n->memory, s->core_bytes, &s->args.limits, &self, &n->settings);
	n->wake = HC_NEVER;
	for (i = 0; i < s->args.rails; i++)
		give_port(s, node, i);
	if (s->args.rows)
		s->args.rows(s, node, s->args.arg);
	step(s, node, &ev);
}

void sim_start_all(struct sim *s)
{
	uint32_t i;

	for (i = 0; i < s->args.nodes; i++)
		if (!s->nodes[i].core)
			sim_start(s, i, false);
}

void sim_know(struct sim *s, uint32_t node, uint32_t to)
{
	struct hc_node_fact f = {.present = true};
	struct hc_event ev = {.kind = HC_EV_NODE_FACT, .u.node = &f};

	snprintf(f.name, sizeof(f.name), "n%u", to);
	for (; f.nendpoints < s->args.rails && f.nendpoints < HC_NODE_ENDPOINTS; f.nendpoints++)
		f.endpoints[f.nendpoints] = sim_address(to, f.nendpoints);
	if (s->nodes[node].core)
		step(s, node, &ev);
}

void sim_know_all(struct sim *s)
{
	uint32_t i, j;

	for (i = 0; i < s->args.nodes; i++)
		for (j = i + 1; j < s->args.nodes; j++)
			sim_know(s, i, j);
}

static void end_daemon(struct sim *s, uint32_t node)
{
	struct sim_node *n = &s->nodes[node];

	if (n->core)
		munmap(n->memory, s->core_bytes);
	n->core = NULL;
	n->stopped = false;
	n->nkeys = 0;
	while (n->nheld)
		free_item(s, n->held[--n->nheld]);
}

void sim_kill(struct sim *s, uint32_t node)
{
	end_daemon(s, node);
	sim_streams_end(s, node, false);
}

void sim_crash(struct sim *s, uint32_t node)
{
	end_daemon(s, node);
	s->nodes[node].kernel = false;
	sim_streams_end(s, node, true);
}

void sim_stop(struct sim *s, uint32_t node)
{
	s->nodes[node].stopped = true;
}

/* What waited in its sockets comes first, then what is due: as the shell does it. */
void sim_go(struct sim *s, uint32_t node)
{
	struct sim_node *n = &s->nodes[node];
	static const struct hc_event timeout = {.kind = HC_EV_TIMEOUT};
	uint32_t i;

	n->stopped = false;
	for (i = 0; i < n->nheld; i++) {
		if (n->held[i]->what == SIM_DUE)
			fall_due(s, n->held[i]);
		else
			deliver(s, n->held[i]);
		free_item(s, n->held[i]);
	}
	n->nheld = 0;
	step(s, node, &timeout);
}

void sim_impersonate(struct sim *s, uint32_t node, uint32_t as)
{
	s->nodes[node].identity = s->nodes[as].identity;
}

/* ---- changes ---- */

void sim_port(struct sim *s, uint32_t node, uint32_t rail, bool up, uint32_t mtu)
{
	s->nodes[node].ports[rail] = (struct sim_port_state){up, mtu};
	if (s->nodes[node].core)
		give_port(s, node, rail);
}

void sim_set(struct sim *s, uint32_t node, const struct hc_settings *settings)
{
	struct hc_event ev = {.kind = HC_EV_CONFIG, .u.settings = settings};

	s->nodes[node].settings = *settings;
	if (s->nodes[node].core)
		step(s, node, &ev);
}

/* ---- life of a simulation ---- */

void sim_defaults(struct sim_args *a)
{
	memset(a, 0, sizeof(*a));
	a->nodes = 2;
	a->rails = 1;
	a->seed = 1;
	a->wire = (struct sim_wire){.delay = 50000, .jitter = 10000};
	a->limits = (struct hc_limits){.sessions = 8,
				       .domains = 16,
				       .ranks = 128,
				       .ranks_per_domain = 64,
				       .devices = 8,
				       .ended = 4,
				       .quota_domains = 1000,
				       .links = 16,
				       .requests = 64,
				       .pieces = 128,
				       .channels = 32,
				       .wants = 16,
				       .quota_channels = 1000,
				       .quota_waiting = 1000,
				       .quota_memory = 1 << 20,
				       .values = 16,
				       .peers = 64,
				       .paths = 256,
				       .ports = 16,
				       .mail = 1024};
	a->settings = (struct hc_settings){.connect_timeout_ns = 120 * SIM_S,
					   .drain_timeout_ns = 30 * SIM_S,
					   .orphan_grace_ns = 5 * SIM_S,
					   .prepare_limit_ns = 10 * SIM_S,
					   .ended_keep_ns = 3600 * SIM_S,
					   .connect_timeout_origin = "default",
					   .drain_timeout_origin = "default",
					   .bandwidth_limit_percent = 80,
					   .aging_ns = 10 * SIM_S,
					   .grant_ttl_ns = 5 * SIM_S,
					   .hint_hold_ns = SIM_S,
					   .beat_ns = 100 * SIM_MS,
					   .misses = 3,
					   .down_misses = 5,
					   .probe_timeout_ns = SIM_S,
					   .mtu_recheck_ns = 30 * SIM_S,
					   .daemon_grace_ns = 5 * SIM_S,
					   .flap_window_ns = 60 * SIM_S,
					   .flap_limit = 3};
}

struct sim *sim_new(const struct sim_args *args)
{
	struct sim *s = calloc(1, sizeof(*s));
	uint32_t i, r;

	if (!s)
		abort();
	s->args = *args;
	s->key = (struct hc_hash_key){args->seed, 0x73696d};
	s->out = zeroed(sizeof(*s->out));
	s->core_bytes = hc_core_bytes(&args->limits);
	s->nodes = calloc(args->nodes, sizeof(*s->nodes));
	if (args->nodes <= SIM_SPY) {
		s->lasts = calloc((size_t)args->nodes * args->nodes, sizeof(*s->lasts));
		s->traffic = calloc((size_t)args->nodes * args->nodes, sizeof(*s->traffic));
	}
	s->wire = args->wire;
	s->conns_in = HC_CONN_IN;
	for (i = 0; s->nodes && i < args->nodes; i++) {
		struct sim_node *n = &s->nodes[i];

		n->ports = calloc(args->rails, sizeof(*n->ports));
		if (!n->ports)
			abort();
		for (r = 0; r < args->rails; r++)
			n->ports[r] = (struct sim_port_state){true, 1500};
		n->identity = i;
		n->kernel = true;
		n->settings = args->settings;
		n->epoch = SIM_S * (1 + sim_rand(s) % 100000);
		if (args->drift_ppm)
			n->ppm = (int32_t)(sim_rand(s) % (2 * args->drift_ppm + 1)) -
				 (int32_t)args->drift_ppm;
	}
	if (!s->nodes || (args->nodes <= SIM_SPY && (!s->traffic || !s->lasts)))
		abort();
	return s;
}

void sim_free(struct sim *s)
{
	struct sim_item *next;
	uint32_t i;

	for (i = 0; i < s->args.nodes; i++) {
		end_daemon(s, i);
		free(s->nodes[i].ports);
		free(s->nodes[i].keys);
		free(s->nodes[i].held);
	}
	while (s->nheap)
		free_item(s, s->heap[--s->nheap].item);
	for (; s->free; s->free = next) {
		next = s->free->next;
		free(s->free);
	}
	munmap(s->out, sizeof(*s->out));
	free(s->heap);
	free(s->nodes);
	free(s->lasts);
	free(s->traffic);
	free(s->wires);
	sim_map_clear(&s->wire_map);
	free(s->streams);
	free(s->old_streams);
	sim_map_clear(&s->stream_map);
	free(s->said);
	free(s);
}
