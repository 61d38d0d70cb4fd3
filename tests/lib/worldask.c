/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What simulated clients ask, and what happens to them; see world.h.
 *
 * A request is encoded as the library would and decoded by the core, so the tables are part of
 * what is tested. A session's number has its slot in the low half, as the shell gives it.
 */
#include "worldimp.h"

#include "hash.h"
#include "pages.h"

#include <stdlib.h>
#include <string.h>

/* ---- coming and going ---- */

static uint32_t free_slot(const struct world *w, uint32_t node)
{
	uint32_t slot;

	for (slot = 0; slot < w->limits.sessions; slot++)
		if (!w->by_slot[node][slot] || !w->by_slot[node][slot]->open)
			return slot;
	return HC_NONE;
}

static void expect(struct world *w, struct world_client *cl, const char *label)
{
	(void)w;
	cl->waits = world_grow(cl->waits, cl->nwaits, &cl->waits_cap, sizeof(*cl->waits));
	cl->waits[cl->nwaits] = (struct world_request){.id = cl->next_request};
	snprintf(cl->waits[cl->nwaits].label, sizeof(cl->waits[0].label), "%s", label);
	cl->nwaits++;
}

uint32_t world_ask_with(struct world *w, struct world_client *cl, const char *label,
			const struct hc_desc *d, const void *msg, struct hc_event *ev)
{
	static uint8_t bytes[HC_PACKET_MAX];
	const uint8_t *at = bytes;
	struct hc_frame f;
	size_t len = 0;

	world_want(w, cl->open);
	cl->next_request++;
	world_want(w, !hc_frame_write(bytes, sizeof(bytes), d, 1, cl->next_request, 0, msg, &len));
	world_want(w, !hc_frame_next(&at, &len, &f));
	if (label)
		expect(w, cl, label);
	ev->kind = HC_EV_REQUEST;
	ev->session = cl->session;
	ev->u.request.frame = &f;
	world_event(w, cl->node, ev);
	world_settle(w);
	w->opt = (struct world_options){.device = HC_NONE};
	return cl->next_request;
}

uint32_t world_ask(struct world *w, struct world_client *cl, const char *label,
		   const struct hc_desc *d, const void *msg)
{
	struct hc_event ev = {0};

	return world_ask_with(w, cl, label, d, msg, &ev);
}

void world_hello(struct world *w, struct world_client *cl, uint8_t role, uint16_t proto_min,
		 uint16_t proto_max)
{
	struct hc_m_hello m = {.proto_min = proto_min,
			       .proto_max = proto_max,
			       .fence = 1,
			       .build = hc_str("test")};
	const struct hc_cred cred = {
		.pid = cl->pid, .uid = cl->uid, .started = cl->started, .role = role};
	struct hc_event ev = {.u.request.cred = &cred, .u.request.fence = 1};

	world_ask_with(w, cl, "hello", &hc_desc_hello, &m, &ev);
	cl->refused = cl->code != 0;
}

struct world_client *world_client(struct world *w, uint32_t node, uint32_t pid, uint32_t uid,
				  uint8_t role)
{
	struct world_client *cl = calloc(1, sizeof(*cl));
	uint32_t slot = free_slot(w, node);

	if (!cl)
		abort();
	world_want(w, slot != HC_NONE && "a session is free");
	cl->node = node;
	cl->pid = pid;
	cl->uid = uid;
	cl->started = pid * 10ull;
	cl->session = (uint64_t)++w->generation << 32 | slot;
	cl->open = true;
	w->clients = world_grow(w->clients, w->nclients, &w->clients_cap, sizeof(*w->clients));
	w->clients[w->nclients++] = cl;
	w->by_slot[node][slot] = cl;
	world_hello(w, cl, role, HC_PROTO_MIN, HC_PROTO_MAX);
	return cl;
}

void world_lose(struct world *w, struct world_client *cl)
{
	struct hc_event ev = {.kind = HC_EV_SESSION_LOST, .session = cl->session};

	cl->open = false;
	cl->nwaits = 0;
	world_event(w, cl->node, &ev);
	world_settle(w);
}

void world_dead(struct world *w, uint32_t node, uint32_t pid)
{
	struct hc_event ev = {.kind = HC_EV_PROCESS_DEAD,
			      .u.process = {.pid = pid, .started = pid * 10ull}};
	uint32_t i;

	for (i = 0; i < w->nseats; i++)
		if (w->seats[i].node == node && w->seats[i].pid == pid)
			w->seats[i].live = false;
	if (!world_knows_dead(w, node, pid)) {
		w->dead = world_grow(w->dead, w->ndead, &w->dead_cap, sizeof(*w->dead));
		w->dead[w->ndead++] = (struct world_dead){.node = node, .pid = pid};
	}
	world_event(w, node, &ev);
	world_settle(w);
}

void world_die(struct world *w, struct world_client *cl)
{
	uint32_t i;

	world_dead(w, cl->node, cl->pid);
	for (i = 0; i < w->nclients; i++)
		if (w->clients[i]->open && w->clients[i]->node == cl->node &&
		    w->clients[i]->pid == cl->pid)
			world_lose(w, w->clients[i]);
}

void world_die_all(struct world *w)
{
	uint32_t i;

	for (i = 0; i < w->nclients; i++)
		if (w->clients[i]->open)
			world_die(w, w->clients[i]);
}

bool world_waits(const struct world_client *cl)
{
	return cl->nwaits != 0;
}

void world_device(struct world *w, uint32_t node, uint32_t index, uint8_t last, bool present,
		  const char *health)
{
	struct hc_device_fact fact = {.index = index,
				      .kind = "npu",
				      .numa = -1,
				      .simulated = true,
				      .present = present,
				      .source = "test"};
	struct hc_event ev = {.kind = HC_EV_DEVICE_FACT, .u.device = &fact};

	if (last)
		fact.addr = (struct hc_addr){.family = 4, .bytes = {192, 0, 2, last}};
	snprintf(fact.health, sizeof(fact.health), "%s", health);
	world_event(w, node, &ev);
	world_settle(w);
}

/* ---- tables ---- */

void world_table_seal(struct world_table *t)
{
	const struct hc_hash_key a = {1, 2}, b = {3, 4}, one = {5, 6};
	struct hc_roster *r = &t->roster;
	uint32_t i;

	for (i = 0; i < r->nranks; i++) {
		t->ranks[i].hash = 0;
		t->ranks[i].hash = hc_hash(&one, &t->ranks[i], sizeof(t->ranks[i]));
	}
	r->hash[0] = hc_hash(&a, t->ranks, r->nranks * sizeof(t->ranks[0]));
	r->hash[1] = hc_hash(&b, t->ranks, r->nranks * sizeof(t->ranks[0]));
}

void world_table(struct world_table *t, uint32_t nranks, uint32_t nservers)
{
	static const char *const servers[WORLD_NODES] = {"a", "b", "c"};
	uint32_t i;

	memset(t, 0, sizeof(*t));
	t->roster.nranks = nranks;
	t->roster.nservers = nservers;
	t->roster.servers = t->servers;
	t->roster.ranks = t->ranks;
	for (i = 0; i < nservers; i++)
		t->servers[i].name = servers[i];
	for (i = 0; i < nranks; i++) {
		t->ranks[i].server = i % nservers;
		t->ranks[i].device = i / nservers;
		t->ranks[i].addr = (struct hc_addr){
			.family = 4,
			.bytes = {192, 0, 2, (uint8_t)(i % nservers * 64 + i / nservers + 1)}};
	}
	world_table_seal(t);
}

/* ---- ways in ---- */

uint32_t world_root_info(struct world *w, struct world_client *cl, uint32_t nranks)
{
	struct hc_m_root_info m = {.nranks = nranks, .name = hc_str(w->opt.name)};

	return world_ask(w, cl, "root", &hc_desc_root_info, &m);
}

static const char *rank_label(uint32_t rank)
{
	static char label[32];

	snprintf(label, sizeof(label), "rank %u", rank);
	return label;
}

uint32_t world_join_root(struct world *w, struct world_client *cl, const struct world_client *root,
			 uint32_t nranks, uint32_t rank)
{
	struct hc_m_join_root m = {.info = {root->info, root->info_len},
				   .nranks = nranks,
				   .rank = rank,
				   .device = w->opt.device,
				   .timeout_ms = w->opt.timeout_ms,
				   .shared = w->opt.shared,
				   .priority = w->opt.priority,
				   .weight = w->opt.weight,
				   .channels = w->opt.channels,
				   .channel_mbps = w->opt.channel_mbps,
				   .channel_hold_ms = w->opt.channel_hold_ms,
				   .channel_wait = w->opt.channel_wait};

	return world_ask(w, cl, rank_label(rank), &hc_desc_join_root, &m);
}

uint32_t world_join_table(struct world *w, struct world_client *cl, const struct world_table *t,
			  uint32_t rank)
{
	struct hc_m_join_table m = {.rank = rank,
				    .name = hc_str(w->opt.name),
				    .server = hc_str(w->opt.server),
				    .origin = hc_str("table.json"),
				    .timeout_ms = w->opt.timeout_ms,
				    .shared = w->opt.shared,
				    .priority = w->opt.priority,
				    .weight = w->opt.weight,
				    .channels = w->opt.channels,
				    .channel_mbps = w->opt.channel_mbps,
				    .channel_hold_ms = w->opt.channel_hold_ms,
				    .channel_wait = w->opt.channel_wait};
	struct hc_event ev = {.u.request.roster = &t->roster};

	return world_ask_with(w, cl, rank_label(rank), &hc_desc_join_table, &m, &ev);
}

uint32_t world_join_local(struct world *w, struct world_client *cl, const uint32_t *devices,
			  uint32_t n)
{
	static uint8_t bytes[8192];
	struct hc_m_join_local m = {.name = hc_str(w->opt.name),
				    .timeout_ms = w->opt.timeout_ms,
				    .channels = w->opt.channels,
				    .channel_mbps = w->opt.channel_mbps,
				    .channel_hold_ms = w->opt.channel_hold_ms,
				    .channel_wait = w->opt.channel_wait,
				    .shared = w->opt.shared};
	struct hc_m_device d;
	uint32_t i;

	for (i = 0; i < n; i++) {
		d.index = devices[i];
		world_want(w,
			   !hc_arr_put(&m.devices, bytes, sizeof(bytes), &hc_desc_device, 1, &d));
	}
	return world_ask(w, cl, "local", &hc_desc_join_local, &m);
}

uint32_t world_create(struct world *w, struct world_client *cl, uint32_t nranks)
{
	struct hc_m_create m = {.name = hc_str(w->opt.name),
				.nranks = nranks,
				.priority = w->opt.priority,
				.weight = w->opt.weight,
				.channels = w->opt.channels,
				.channel_mbps = w->opt.channel_mbps,
				.channel_hold_ms = w->opt.channel_hold_ms,
				.channel_wait = w->opt.channel_wait};

	return world_ask(w, cl, "create", &hc_desc_create, &m);
}

uint32_t world_add_device(struct world *w, struct world_client *cl, uint64_t id, uint32_t rank,
			  uint32_t device)
{
	struct hc_m_add_device m = {.id = id, .rank = rank, .device = device};

	return world_ask(w, cl, "add", &hc_desc_add_device, &m);
}

uint32_t world_activate(struct world *w, struct world_client *cl, uint64_t id)
{
	struct hc_m_activate m = {.id = id};

	return world_ask(w, cl, "activate", &hc_desc_activate, &m);
}

uint32_t world_attach(struct world *w, struct world_client *cl, uint64_t id, uint32_t rank)
{
	struct hc_m_attach m = {
		.id = id, .name = hc_str(id ? "" : w->opt.name), .rank = rank, .block = HC_NONE};

	return world_ask(w, cl, "attach", &hc_desc_attach, &m);
}

uint32_t world_come_back(struct world *w, struct world_client *cl, uint64_t id, uint32_t rank,
			 uint32_t block)
{
	struct hc_m_attach m = {.id = id, .rank = rank, .block = block};

	return world_ask(w, cl, "attach", &hc_desc_attach, &m);
}

uint32_t world_sub(struct world *w, struct world_client *cl, uint64_t parent, uint32_t rank,
		   uint64_t sub_id, const uint32_t *ranks, uint32_t n)
{
	static uint8_t bytes[32768];
	struct hc_m_sub m = {.parent = parent,
			     .epoch = 1,
			     .parent_rank = rank,
			     .sub_id = sub_id,
			     .name = hc_str(w->opt.name),
			     .timeout_ms = w->opt.timeout_ms};
	struct hc_m_rank r;
	uint32_t i;

	for (i = 0; i < n; i++) {
		r.rank = ranks[i];
		world_want(w, !hc_arr_put(&m.ranks, bytes, sizeof(bytes), &hc_desc_rank, 1, &r));
	}
	return world_ask(w, cl, "sub", &hc_desc_sub, &m);
}

uint32_t world_batch(struct world *w, struct world_client *cl, uint64_t parent,
		     const struct world_item *items, uint32_t n)
{
	static uint8_t list[32768], bytes[32768];
	struct hc_m_batch m = {.parent = parent, .epoch = 1, .timeout_ms = w->opt.timeout_ms};
	struct hc_m_batch_item it;
	struct hc_m_rank r;
	uint32_t i, k;

	for (i = 0; i < n; i++) {
		for (k = 0; items[i].ranks[k] != WORLD_END; k++) {
			r.rank = items[i].ranks[k];
			world_want(w, !hc_arr_put(&m.ranks, bytes, sizeof(bytes), &hc_desc_rank, 1,
						  &r));
		}
		it = (struct hc_m_batch_item){.sub_id = items[i].sub_id, .count = k};
		it.name = hc_str(items[i].name);
		world_want(w,
			   !hc_arr_put(&m.items, list, sizeof(list), &hc_desc_batch_item, 1, &it));
	}
	return world_ask(w, cl, "batch", &hc_desc_batch, &m);
}

/* Each item that did not fail is stored, and its seats are this client's. */
void world_got_batch(struct world *w, struct world_client *cl, const struct hc_frame *f,
		     const char *name, const char *label)
{
	struct hc_m_batch_r m;
	struct hc_m_batch_done d;
	struct hc_m_seat r;
	uint32_t i, k, made = 0;
	char why[512] = "";

	world_want(w, !hc_decode(&hc_desc_batch_r, HC_PROTO_MAX, f->body, f->body_len, &m));
	world_want(w, m.items.count <= WORLD_ITEMS);
	cl->nitems = m.items.count;
	for (i = 0; hc_arr_next(&m.items, &hc_desc_batch_done, HC_PROTO_MAX, &d); i++) {
		cl->made[i] = cl->id = d.id;
		cl->codes[i] = d.code;
		world_want(w, d.code ? !d.id && !d.seats : d.id && d.seats);
		world_want(w, d.code || world_is_stored(w, cl->node, d.id));
		made += !d.code;
		for (k = 0; k < d.seats; k++) {
			world_want(w, hc_arr_next(&m.seats, &hc_desc_seat, HC_PROTO_MAX, &r));
			world_add_seat(w, cl, &r);
		}
	}
	world_want(w, !m.seats.count && (m.failed == HC_NONE) == (made == i) &&
			      (m.failed == HC_NONE) == !m.text.len);
	hc_str_copy(m.text, cl->text, sizeof(cl->text));
	if (m.failed != HC_NONE)
		snprintf(why, sizeof(why), "; %u: %.400s", m.failed, cl->text);
	world_line(w, SHOW_REPLIES, "%s %u %s: %u of %u made%s", name, cl->pid, label, made, i,
		   why);
}

uint32_t world_split(struct world *w, struct world_client *cl, uint64_t parent, uint32_t rank,
		     int32_t color, int32_t key)
{
	struct hc_m_split m = {.parent = parent,
			       .epoch = 1,
			       .parent_rank = rank,
			       .color = color,
			       .key = key,
			       .timeout_ms = w->opt.timeout_ms,
			       .number = w->opt.number};

	return world_ask(w, cl, "split", &hc_desc_split, &m);
}

/* ---- life ---- */

uint32_t world_leave(struct world *w, struct world_client *cl, uint64_t id, uint32_t rank)
{
	struct hc_m_leave m = {.id = id, .epoch = 1, .rank = rank, .timeout_ms = w->opt.timeout_ms};

	return world_ask(w, cl, "leave", &hc_desc_leave, &m);
}

uint32_t world_destroy(struct world *w, struct world_client *cl, uint64_t id)
{
	struct hc_m_destroy m = {
		.id = id, .name = hc_str(id ? "" : w->opt.name), .timeout_ms = w->opt.timeout_ms};

	return world_ask(w, cl, "destroy", &hc_desc_destroy, &m);
}

uint32_t world_abort(struct world *w, struct world_client *cl, uint64_t id, uint32_t rank,
		     const char *reason)
{
	struct hc_m_abort m = {.id = id, .rank = rank, .reason = hc_str(reason)};

	return world_ask(w, cl, "abort", &hc_desc_abort, &m);
}

uint32_t world_status(struct world *w, struct world_client *cl, uint64_t id)
{
	struct hc_m_status m = {.id = id, .name = hc_str(id ? "" : w->opt.name)};

	return world_ask(w, cl, "status", &hc_desc_status, &m);
}

uint32_t world_query(struct world *w, struct world_client *cl, unsigned view, uint64_t cursor,
		     uint64_t snapshot, uint32_t limit)
{
	struct hc_m_query m = {.view = (uint16_t)view,
			       .cursor = cursor,
			       .snapshot = snapshot,
			       .name = hc_str(w->opt.name),
			       .limit = limit};

	return world_ask(w, cl, "query", &hc_desc_query, &m);
}

uint32_t world_drain(struct world *w, struct world_client *cl, const char *argument)
{
	struct hc_m_admin m = {.verb = hc_str("drain"), .argument = hc_str(argument)};

	return world_ask(w, cl, "drain", &hc_desc_admin, &m);
}

uint32_t world_subscribe(struct world *w, struct world_client *cl, uint64_t id, bool on)
{
	struct hc_m_subscribe m = {.id = id, .on = on};

	return world_ask(w, cl, "subscribe", &hc_desc_subscribe, &m);
}

void world_ops_ended(struct world *w, struct world_client *cl, uint64_t id)
{
	struct hc_m_ops_ended m = {.id = id};

	world_ask(w, cl, NULL, &hc_desc_ops_ended, &m);
}

void world_raw(struct world *w, struct world_client *cl, const struct hc_frame *f)
{
	struct hc_event ev = {.kind = HC_EV_REQUEST, .session = cl->session, .u.request.frame = f};
	struct hc_frame own = *f;

	own.head.id = ++cl->next_request;
	ev.u.request.frame = &own;
	/* a reference that was returned is not answered, unless it is malformed */
	expect(w, cl, "raw");
	world_event(w, cl->node, &ev);
	if (f->head.type == HC_MSG_ops_ended && cl->nwaits &&
	    cl->waits[cl->nwaits - 1].id == own.head.id)
		cl->nwaits--;
	world_settle(w);
}

void world_peer(struct world *w, uint32_t to, uint32_t from, const struct hc_frame *f)
{
	struct hc_event ev = {.kind = HC_EV_PEER_MSG};

	ev.u.peer.node = w->node_of[to][from];
	ev.u.peer.frame = f;
	world_event(w, to, &ev);
	world_settle(w);
}

void world_say(struct world *w, uint32_t from, uint32_t to, const struct hc_desc *d,
	       const void *msg)
{
	static uint8_t bytes[HC_PACKET_MAX];
	const uint8_t *at = bytes;
	struct hc_frame f;
	size_t len = 0;

	world_want(w, !hc_frame_write(bytes, sizeof(bytes), d, 1, 0, 0, msg, &len));
	world_want(w, !hc_frame_next(&at, &len, &f));
	world_peer(w, to, from, &f);
}

/* ---- references ---- */

struct world_seat *world_seat(struct world *w, uint64_t domain, uint32_t rank)
{
	uint32_t i;

	for (i = w->nseats; i-- > 0;)
		if (w->seats[i].domain == domain && w->seats[i].rank == rank)
			return &w->seats[i];
	world_broken(w, __FILE__, __LINE__, "no such seat was handed out");
}

void world_ops(struct world *w, uint64_t domain, uint32_t rank, uint64_t begun, uint32_t running)
{
	struct world_seat *s = world_seat(w, domain, rank);

	s->begun = begun;
	s->running = running;
	s->kind = HC_W_op_kind_ALL_REDUCE;
}
