/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is between the nodes: routes, streams, datagrams; see simnet.h.
 *
 * A stream's messages arrive in order; while its way is cut they are tried again every 50 ms, as
 * a kernel would. Keys of beats are a secret that both ends of a connection know and nobody else:
 * a number drawn with the connection, mixed with who sends to whom.
 */
#include "simimp.h"

#include "datagram.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define RETRY_NS   (50 * SIM_MS)
#define CONNECT_NS (3 * SIM_S)
#define IP_UDP     28u /* bytes of the headers */

/* ---- addresses and ways ---- */

struct hc_endpoint sim_address(uint32_t node, uint32_t rail)
{
	return (struct hc_endpoint){
		.addr = {.family = 4,
			 .bytes = {10, (uint8_t)rail, (uint8_t)(node >> 8), (uint8_t)node}},
		.port = SIM_PORT};
}

bool sim_owner(const struct sim *s, const struct hc_addr *a, uint32_t *node, uint32_t *rail)
{
	*node = (uint32_t)a->bytes[2] << 8 | a->bytes[3];
	*rail = a->bytes[1];
	return a->family == 4 && a->bytes[0] == 10 && *node < s->args.nodes &&
	       *rail < s->args.rails;
}

static uint64_t wire_key(uint32_t from, uint32_t to, uint32_t rail)
{
	return (uint64_t)from << 40 | (uint64_t)to << 8 | rail;
}

static uint32_t own_wire(const struct sim *s, uint32_t from, uint32_t to, uint32_t rail)
{
	uint32_t at = HC_NONE;

	return s->nwires ? sim_map_find(&s->wire_map, wire_key(from, to, rail), &at) : HC_NONE;
}

const struct sim_wire *sim_wire_of(const struct sim *s, uint32_t from, uint32_t to, uint32_t rail)
{
	const uint32_t n = own_wire(s, from, to, rail);

	return n == HC_NONE ? &s->wire : &s->wires[n];
}

static struct sim_wire *wire_to_change(struct sim *s, uint32_t from, uint32_t to, uint32_t rail)
{
	uint32_t n = own_wire(s, from, to, rail);

	if (n == HC_NONE) {
		s->wires = sim_grow(s->wires, s->nwires, &s->wires_cap, sizeof(*s->wires));
		n = s->nwires++;
		s->wires[n] = s->wire;
		sim_map_add(&s->wire_map, wire_key(from, to, rail), n);
	}
	return &s->wires[n];
}

typedef void (*change_fn)(struct sim_wire *w, const void *arg);

static void change(struct sim *s, uint32_t from, uint32_t to, uint32_t rail, change_fn fn,
		   const void *arg)
{
	const uint32_t n = s->args.nodes, rails = s->args.rails;
	const uint32_t a = from == HC_NONE ? 0 : from, b = to == HC_NONE ? 0 : to,
		       c = rail == HC_NONE ? 0 : rail;
	uint32_t i, j, r;

	for (i = a; i < (from == HC_NONE ? n : a + 1); i++)
		for (j = b; j < (to == HC_NONE ? n : b + 1); j++)
			for (r = c; r < (rail == HC_NONE ? rails : c + 1); r++)
				fn(wire_to_change(s, i, j, r), arg);
}

static void put_wire(struct sim_wire *w, const void *arg)
{
	*w = *(const struct sim_wire *)arg;
}

static void put_cut(struct sim_wire *w, const void *arg)
{
	w->cut = *(const bool *)arg;
}

void sim_wire(struct sim *s, uint32_t from, uint32_t to, uint32_t rail, const struct sim_wire *w)
{
	if (from == HC_NONE && to == HC_NONE && rail == HC_NONE) { /* none has one of its own */
		sim_map_clear(&s->wire_map);
		s->nwires = 0;
		s->wire = *w;
		return;
	}
	change(s, from, to, rail, put_wire, w);
}

void sim_cut(struct sim *s, uint32_t from, uint32_t to, uint32_t rail, bool cut)
{
	change(s, from, to, rail, put_cut, &cut);
}

static bool passes(const struct sim *s, uint32_t from, uint32_t to, uint32_t rail)
{
	return s->nodes[from].ports[rail].up && s->nodes[to].ports[rail].up &&
	       !sim_wire_of(s, from, to, rail)->cut;
}

static uint64_t delay(struct sim *s, uint32_t from, uint32_t to, uint32_t rail)
{
	const struct sim_wire *w = sim_wire_of(s, from, to, rail);

	if (from == to)
		return 1000;
	return w->delay + (w->jitter ? sim_draw(s) % w->jitter : 0);
}

/* ---- routes ---- */

void sim_act_route(struct sim *s, uint32_t node, const struct hc_action *a)
{
	struct sim_item it = {.at = s->now,
			      .node = node,
			      .life = s->nodes[node].life,
			      .what = SIM_EVENT,
			      .kind = HC_EV_ROUTE};
	uint32_t to, rail;

	it.route.ask = a->u.route.ask;
	it.route.error = ENETUNREACH;
	if (sim_owner(s, &a->u.route.to, &to, &rail) && s->nodes[node].ports[rail].up) {
		it.route.error = 0;
		it.route.local = sim_address(node, rail).addr;
		it.route.port = rail + 2;
		it.route.mtu = s->nodes[node].ports[rail].mtu;
	}
	sim_put(s, &it, NULL, 0);
}

/* ---- streams ---- */

/*
 * An end is found by its node and number. Numbers of connections that come in are of the whole
 * network; those that a node dials begin anew with each of its daemons.
 */
static uint64_t end_key(uint32_t node, uint64_t conn)
{
	return conn ^ (uint64_t)node << 32;
}

static struct sim_stream *stream_of(struct sim *s, uint32_t node, uint64_t conn, uint32_t *end)
{
	const uint64_t key = end_key(node, conn);
	uint32_t at = HC_NONE, n;

	while ((n = sim_map_find(&s->stream_map, key, &at)) != HC_NONE) {
		struct sim_stream *st = &s->streams[n / 2];

		*end = n % 2;
		if (st->end[*end].node == node && st->end[*end].number == conn &&
		    st->end[*end].life == s->nodes[node].life)
			return st;
	}
	return NULL;
}

/* Ends that both know of make room. */
static struct sim_stream *new_stream(struct sim *s)
{
	struct sim_stream *st;
	uint32_t end, n, i, first;

	if (!s->nold) {
		s->streams =
			sim_grow(s->streams, s->nstreams, &s->streams_cap, sizeof(*s->streams));
		return &s->streams[s->nstreams++];
	}
	for (i = first = 0; i < s->nold; i++) /* the lowest: what ends together, in that order */
		first = s->old_streams[i] < s->old_streams[first] ? i : first;
	n = s->old_streams[first];
	s->old_streams[first] = s->old_streams[--s->nold];
	st = &s->streams[n];
	for (end = 0; end < 2; end++)
		sim_map_del(&s->stream_map, end_key(st->end[end].node, st->end[end].number),
			    n * 2 + end);
	return st;
}

static void name_ends(struct sim *s, struct sim_stream *st)
{
	const uint32_t n = (uint32_t)(st - s->streams);
	uint32_t end;

	for (end = 0; end < 2; end++)
		sim_map_add(&s->stream_map, end_key(st->end[end].node, st->end[end].number),
			    n * 2 + end);
}

static void close_end(struct sim *s, struct sim_stream *st, uint32_t end)
{
	if (!st->end[end].open)
		return;
	st->end[end].open = false;
	if (st->end[!end].open)
		return;
	s->old_streams = sim_grow(s->old_streams, s->nold, &s->old_cap, sizeof(*s->old_streams));
	s->old_streams[s->nold++] = (uint32_t)(st - s->streams);
}

/* To the far end of `from`, in order. */
static void carry(struct sim *s, struct sim_stream *st, uint32_t from, uint8_t kind, uint16_t end,
		  const uint8_t *bytes, uint32_t len)
{
	struct sim_end *a = &st->end[from], *b = &st->end[!from];
	struct sim_item it = {.node = b->node,
			      .life = b->life,
			      .what = SIM_ARRIVE,
			      .kind = kind,
			      .conn = b->number,
			      .local = b->at,
			      .remote = a->at,
			      .from = a->node,
			      .from_life = a->life,
			      .rail = st->rail,
			      .end = end,
			      .seq = b->sent++};

	it.at = s->now + delay(s, a->node, b->node, st->rail);
	if (it.at < b->last)
		it.at = b->last;
	b->last = it.at;
	sim_put(s, &it, bytes, len);
}

static void lost(struct sim *s, uint32_t node, uint64_t conn, uint64_t after, uint16_t end,
		 int error)
{
	struct sim_item it = {.at = s->now + after,
			      .node = node,
			      .life = s->nodes[node].life,
			      .what = SIM_EVENT,
			      .kind = HC_EV_CONN_LOST,
			      .conn = conn,
			      .end = end,
			      .error = error};

	sim_put(s, &it, NULL, 0);
}

void sim_act_dial(struct sim *s, uint32_t node, const struct hc_action *a)
{
	const uint64_t conn = a->u.conn.conn;
	struct sim_stream *st;
	uint32_t to, rail;
	struct sim_item it;

	if (!sim_owner(s, &a->u.conn.to.addr, &to, &rail) || !s->nodes[node].ports[rail].up) {
		lost(s, node, conn, 0, HC_W_conn_end_NO_ROUTE, ENETUNREACH);
		return;
	}
	if (!passes(s, node, to, rail) || !passes(s, to, node, rail) || !s->nodes[to].kernel) {
		lost(s, node, conn, CONNECT_NS, HC_W_conn_end_TIMEOUT, ETIMEDOUT);
		return;
	}
	if (!s->nodes[to].core) {
		lost(s, node, conn, 2 * delay(s, node, to, rail), HC_W_conn_end_REFUSED,
		     ECONNREFUSED);
		return;
	}
	st = new_stream(s);
	*st = (struct sim_stream){.rail = rail,
				  .secret = sim_draw(s),
				  .end = {{.node = node,
					   .life = s->nodes[node].life,
					   .number = conn,
					   .at = sim_address(node, rail),
					   .last = s->now,
					   .open = true},
					  {.node = to,
					   .life = s->nodes[to].life,
					   .number = s->conns_in++,
					   .at = sim_address(to, rail),
					   .last = s->now,
					   .open = true}}};
	st->end[0].at.port = (uint16_t)(20000 + conn % 10000);
	name_ends(s, st);
	carry(s, st, 0, HC_EV_CONN_UP, 0, NULL, 0);
	it = (struct sim_item){.at = st->end[1].last + delay(s, to, node, rail),
			       .node = node,
			       .life = st->end[0].life,
			       .what = SIM_ARRIVE,
			       .kind = HC_EV_CONN_UP,
			       .conn = conn,
			       .local = st->end[0].at,
			       .remote = st->end[1].at,
			       .from = to,
			       .rail = rail};
	it.seq = st->end[0].sent++;
	st->end[0].last = it.at;
	sim_put(s, &it, NULL, 0);
}

/*
 * The far kernel died and said nothing. What is sent now is sent again and again, and once a new
 * kernel is there it answers with a reset.
 */
static void doom(struct sim *s, struct sim_stream *st, uint32_t end)
{
	struct sim_end *a = &st->end[end], *b = &st->end[!end];
	struct sim_item it = {.node = a->node,
			      .life = a->life,
			      .what = SIM_ARRIVE,
			      .kind = HC_EV_CONN_LOST,
			      .conn = a->number,
			      .local = a->at,
			      .remote = b->at,
			      .from = b->node,
			      .rail = st->rail,
			      .end = HC_W_conn_end_CLOSED,
			      .error = ECONNRESET,
			      .seq = a->sent++};

	a->doomed = true;
	it.at = s->now + delay(s, a->node, b->node, st->rail) +
		delay(s, b->node, a->node, st->rail);
	if (it.at < a->last)
		it.at = a->last;
	a->last = it.at;
	sim_put(s, &it, NULL, 0);
}

void sim_act_send(struct sim *s, uint32_t node, const struct hc_action *a)
{
	uint32_t end;
	struct sim_stream *st = stream_of(s, node, a->u.conn.conn, &end);

	if (!st || !st->end[end].open)
		return;
	if (st->end[!end].open)
		carry(s, st, end, HC_EV_CONN_MSG, 0, a->bytes, a->len);
	else if (!st->end[end].doomed)
		doom(s, st, end);
}

void sim_act_close(struct sim *s, uint32_t node, const struct hc_action *a)
{
	uint32_t end;
	struct sim_stream *st = stream_of(s, node, a->u.conn.conn, &end);

	if (!st || !st->end[end].open)
		return;
	close_end(s, st, end);
	if (st->end[!end].open)
		carry(s, st, end, HC_EV_CONN_LOST, HC_W_conn_end_CLOSED, NULL, 0);
}

void sim_reset(struct sim *s, uint32_t a, uint32_t b, uint16_t end)
{
	uint32_t i, k;

	for (i = 0; i < s->nstreams; i++) {
		struct sim_stream *st = &s->streams[i];

		if (!(st->end[0].node == a && st->end[1].node == b) &&
		    !(st->end[0].node == b && st->end[1].node == a))
			continue;
		for (k = 0; k < 2; k++) {
			if (st->end[k].open)
				lost(s, st->end[k].node, st->end[k].number, 0, end, 0);
			close_end(s, st, k);
		}
	}
}

/* The node's kernel ends what its daemon had; or is gone itself, and says nothing. */
void sim_streams_end(struct sim *s, uint32_t node, bool silent)
{
	uint32_t i, end;

	for (i = 0; i < s->nstreams; i++)
		for (end = 0; end < 2; end++) {
			struct sim_stream *st = &s->streams[i];

			if (st->end[end].node != node || !st->end[end].open)
				continue;
			close_end(s, st, end);
			if (!silent && st->end[!end].open)
				carry(s, st, end, HC_EV_CONN_LOST, HC_W_conn_end_CLOSED, NULL, 0);
		}
}

/* A reset is the answer of a kernel: to what reached it. */
static bool reset_comes(const struct sim *s, const struct sim_item *it)
{
	return it->error != ECONNRESET ||
	       (s->nodes[it->from].kernel && passes(s, it->node, it->from, it->rail));
}

bool sim_stream_ready(struct sim *s, struct sim_item *it)
{
	uint32_t end;
	struct sim_stream *st;

	if (it->life != s->nodes[it->node].life || !s->nodes[it->node].core)
		return false;
	st = stream_of(s, it->node, it->conn, &end);
	if (!st || !st->end[end].open)
		return false;
	if (!passes(s, it->from, it->node, it->rail) || it->seq != st->end[end].got ||
	    !reset_comes(s, it)) {
		struct sim_item again = *it;

		again.at = s->now + RETRY_NS;
		sim_put(s, &again, NULL, 0);
		it->bytes = NULL; /* they went along */
		return false;
	}
	st->end[end].got++;
	if (it->kind == HC_EV_CONN_LOST)
		close_end(s, st, end);
	return true;
}

/* ---- keys ---- */

static uint64_t mix(const struct sim *s, const struct sim_stream *st, uint32_t from, uint32_t to)
{
	const uint64_t words[5] = {st->secret, s->nodes[from].identity, s->nodes[to].identity,
				   s->nodes[from].start, s->nodes[to].start};

	return hc_hash(&(struct hc_hash_key){3, 4}, words, sizeof(words));
}

static void put_key(struct sim_node *n, struct sim_key k)
{
	uint32_t i;

	for (i = 0; i < n->nkeys; i++)
		if (n->keys[i].out == k.out &&
		    (k.out ? n->keys[i].peer == k.peer : n->keys[i].id == k.id))
			break;
	if (i == n->nkeys) {
		n->keys = sim_grow(n->keys, n->nkeys, &n->keys_cap, sizeof(*n->keys));
		n->nkeys++;
	}
	n->keys[i] = k;
}

void sim_act_key(struct sim *s, uint32_t node, const struct hc_action *a)
{
	uint32_t end, far;
	struct sim_stream *st = stream_of(s, node, a->u.key.conn, &end);

	if (!st)
		return;
	far = st->end[!end].node;
	put_key(&s->nodes[node],
		(struct sim_key){a->u.key.key, a->u.key.peer, mix(s, st, far, node), false});
	put_key(&s->nodes[node], (struct sim_key){0, a->u.key.peer, mix(s, st, node, far), true});
}

void sim_act_key_drop(struct sim *s, uint32_t node, const struct hc_action *a)
{
	struct sim_node *n = &s->nodes[node];
	uint32_t i;

	for (i = 0; i < n->nkeys;)
		if (n->keys[i].out ? a->u.key.all && n->keys[i].peer == a->u.key.peer
				   : n->keys[i].id == a->u.key.key)
			n->keys[i] = n->keys[--n->nkeys];
		else
			i++;
}

static const struct sim_key *out_key(const struct sim_node *n, uint32_t peer)
{
	uint32_t i;

	for (i = 0; i < n->nkeys; i++)
		if (n->keys[i].out && n->keys[i].peer == peer)
			return &n->keys[i];
	return NULL;
}

static const struct sim_key *in_key(const struct sim_node *n, uint32_t id)
{
	uint32_t i;

	for (i = 0; i < n->nkeys; i++)
		if (!n->keys[i].out && n->keys[i].id == id)
			return &n->keys[i];
	return NULL;
}

/* ---- datagrams ---- */

static void bounce(struct sim *s, uint32_t node, const struct hc_endpoint *to, uint64_t after,
		   int error, uint32_t mtu)
{
	struct sim_item it = {.at = s->now + after,
			      .node = node,
			      .life = s->nodes[node].life,
			      .what = SIM_ARRIVE,
			      .kind = HC_EV_BOUNCED,
			      .remote = *to,
			      .error = error,
			      .mtu = mtu};

	sim_put(s, &it, NULL, 0);
}

static void launch(struct sim *s, struct sim_item *it, const struct hc_action *a)
{
	const struct sim_wire *w = sim_wire_of(s, it->from, it->node, it->rail);

	it->at = s->now + delay(s, it->from, it->node, it->rail);
	if (sim_chance(s, w->late))
		it->at += 3 * (w->delay + w->jitter);
	sim_put(s, it, a->bytes, a->len);
}

static void keep_last(struct sim_last *to, const struct hc_action *a)
{
	if (a->len > sizeof(to->bytes))
		return;
	memcpy(to->bytes, a->bytes, a->len);
	to->len = a->len;
}

void sim_act_datagram(struct sim *s, uint32_t node, const struct hc_action *a)
{
	const struct sim_key *k = out_key(&s->nodes[node], a->u.datagram.peer);
	struct sim_item it = {.what = SIM_ARRIVE, .kind = HC_EV_DATAGRAM, .from = node};
	const uint32_t bytes = a->len + HC_DATAGRAM_TAG + IP_UDP;
	const struct sim_wire *w;
	uint32_t from, rail;

	if (!k || !sim_owner(s, &a->u.datagram.to.addr, &it.node, &it.rail) ||
	    !sim_owner(s, &a->u.datagram.from, &from, &rail) || from != node)
		return;
	it.remote = sim_address(node, rail);
	it.local = a->u.datagram.to;
	it.secret = k->secret;
	it.from_life = s->nodes[node].life;
	w = sim_wire_of(s, node, it.node, it.rail);
	if (s->lasts) {
		s->traffic[node * s->args.nodes + it.node] += a->len + HC_DATAGRAM_TAG;
		keep_last(&s->lasts[node * s->args.nodes + it.node], a);
	}
	if (bytes > s->nodes[node].ports[it.rail].mtu) {
		bounce(s, node, &a->u.datagram.to, 0, EMSGSIZE, s->nodes[node].ports[it.rail].mtu);
		return;
	}
	if (bytes > s->nodes[it.node].ports[it.rail].mtu || (w->mtu && bytes > w->mtu) ||
	    !passes(s, node, it.node, it.rail) || sim_chance(s, w->loss))
		return;
	launch(s, &it, a);
	if (sim_chance(s, w->twice))
		launch(s, &it, a);
}

bool sim_admits(struct sim *s, struct sim_item *it)
{
	const struct sim_node *n = &s->nodes[it->node];
	const struct sim_key *k;
	uint32_t id = 0, i;

	if (!n->kernel)
		return false;
	if (!n->core) {
		if (passes(s, it->node, it->from, it->rail) && s->nodes[it->from].kernel)
			bounce(s, it->from, &it->local, delay(s, it->node, it->from, it->rail),
			       ECONNREFUSED, 0);
		return false;
	}
	for (i = 0; i < 4; i++)
		id = id << 8 | it->bytes[HC_DATAGRAM_AT_KEY + i];
	k = in_key(n, id);
	if (!k || k->secret != it->secret)
		return false;
	it->secret_key = id;
	return true;
}

void sim_inject(struct sim *s, uint32_t node, uint32_t from, uint32_t rail, const uint8_t *bytes,
		uint32_t len, bool authentic)
{
	struct sim_item it = {.at = s->now,
			      .node = node,
			      .what = SIM_ARRIVE,
			      .kind = HC_EV_DATAGRAM,
			      .from = from,
			      .rail = rail,
			      .remote = sim_address(from, rail),
			      .local = sim_address(node, rail)};
	const struct sim_key *k;
	uint32_t id = 0, i;

	if (len < HC_DATAGRAM_HEAD)
		return;
	for (i = 0; i < 4; i++)
		id = id << 8 | bytes[HC_DATAGRAM_AT_KEY + i];
	k = in_key(&s->nodes[node], id);
	it.secret = authentic && k ? k->secret : 1;
	sim_put(s, &it, bytes, len);
}

uint64_t sim_datagram_bytes(const struct sim *s, uint32_t from, uint32_t to)
{
	return s->traffic[from * s->args.nodes + to];
}

uint32_t sim_last_datagram(const struct sim *s, uint32_t from, uint32_t to, uint8_t *bytes,
			   uint32_t cap)
{
	const struct sim_last *l = &s->lasts[from * s->args.nodes + to];

	if (l->len > cap)
		return 0;
	memcpy(bytes, l->bytes, l->len);
	return l->len;
}
