/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ways into a domain, on the side of the client: from a request to ARRIVE at the home.
 *
 * Every way comes down to `struct join`: what the joiners of one domain have in common (a key of
 * 128 bits), who this one is, and what it wants. Root info: the key is a hash of the token. Rank
 * table: of (uid, name or table, job). Sub-domain: of (parent, epoch, number). All local devices:
 * drawn, nobody else can join. A device is taken before the home hears of the rank, and given
 * back when the home refuses.
 */
#include "join.h"

#include "device.h"
#include "emit.h"
#include "home.h"
#include "net.h"
#include "rng.h"
#include "seek.h"
#include "session.h"
#include "split.h"
#include "user.h"

#include <stdio.h>
#include <string.h>

#define ROOT_MAGIC   0x68636d31u
#define ROOT_VERSION 2
#define ROOT_ADDRS   8u

void hc_join_refuse(struct hc_core *c, const struct join *j, int code, const char *text)
{
	if (j->batch)
		hc_batch_refused(c, j->s->id, j->request, code, text);
	else
		hc_emit_error(c, j->s->id, j->request, code, text);
}

static void refuse(struct hc_core *c, const struct join *j, int code, const char *text)
{
	hc_join_refuse(c, j, code, text);
}

static void key_from(struct join *j, const void *data, size_t len)
{
	static const struct hc_hash_key a = {0x68636f6d6d2d6b31, 1}, b = {0x68636f6d6d2d6b32, 2};

	j->key_a = hc_hash(&a, data, len);
	j->key_b = hc_hash(&b, data, len);
}

static uint32_t uid_of(const struct hc_core *c, const struct hc_session *s)
{
	return c->processes[s->process].uid;
}

int hc_join_check(struct hc_core *c, const struct join *j, char *text, size_t bytes)
{
	if (!j->nranks || j->rank >= j->nranks) {
		snprintf(text, bytes, "rank %u of %u: wanted a rank below the number of ranks",
			 j->rank, j->nranks);
		return HC_E_INVALID;
	}
	if (j->nranks > c->lim.ranks_per_domain) {
		snprintf(text, bytes, "%u ranks: a domain has at most %u", j->nranks,
			 c->lim.ranks_per_domain);
		return HC_E_LIMIT;
	}
	if (j->priority > 7 || j->weight > 100) {
		snprintf(text, bytes, "class %u, weight %u: wanted 0 to 7 and 1 to 100",
			 j->priority, j->weight);
		return HC_E_INVALID;
	}
	return hc_device_check(c, j->device, j->rank, j->s->process, j->shared, j->addr, text,
			       bytes);
}

/* What its joiners say alike, to be said again; a part from its row does not have it. */
static void know(struct hc_core *c, struct hc_part *p, const struct join *j)
{
	struct hc_part_busy *b = hc_part_busy(c, p);

	if (b->list_a || b->list_b)
		return; /* of the first */
	b->list_a = j->list_a;
	b->list_b = j->list_b;
	b->wish = j->wish;
	b->timeout_ms = j->timeout_ms;
	b->parent = j->parent;
}

/* One that differs is enough for all to fail, so one is kept, to be said again as it was. */
static void know_list(struct hc_core *c, struct hc_part *p, const struct join *j)
{
	struct hc_part_busy *b = p->state == HC_W_domain_state_FORMING ? hc_part_busy(c, p) : NULL;
	bool same;

	if (!b || (!b->list_a && !b->list_b))
		return; /* from its row, or there are no lists */
	same = b->list_a == j->list_a && b->list_b == j->list_b;
	if (!same || b->odd_rank == j->rank) {
		b->odd_rank = j->rank;
		b->odd_a = same ? 0 : j->list_a;
		b->odd_b = same ? 0 : j->list_b;
	}
}

/* The process asks again, maybe on a new connection: whoever waited before is told. */
static void take_over(struct hc_core *c, struct hc_part *p, uint32_t seat, const struct join *j)
{
	struct hc_seat *s = &c->seats[seat];
	const bool reserved = s->block != HC_NONE;

	know(c, p, j);
	hc_part_refuse(c, seat, HC_E_IN_PROGRESS,
		       "the same process asked for this rank again; that request is answered");
	hc_part_wait(c, seat, j->request, j->batch);
	if (hc_seat_session(s) == j->s->id)
		return;
	hc_session_unbind(c, seat);
	hc_session_bind(c, seat, j->s);
	if (reserved)
		s->block = hc_session_block(c, j->s);
	if (!reserved || s->block != HC_NONE)
		return;
	refuse(c, j, HC_E_LIMIT, "the op arena of this process is full: it is in too many domains");
	hc_part_depart(c, p, seat, HC_W_depart_WITHDRAWN, "", 0);
	hc_part_drop_seat(c, p, seat);
}

static void arrive(struct hc_core *c, const struct hc_part *p, const struct join *j);

/* By lists that differ two processes may come to the same rank: a matter of all ranks. */
static bool other_list(struct hc_core *c, const struct hc_part *p, const struct hc_seat *held,
		       const struct join *j)
{
	const struct hc_part_busy *b = hc_part_now(c, p);
	char text[256];

	if (p->state != HC_W_domain_state_FORMING ||
	    (b->list_a == j->list_a && b->list_b == j->list_b))
		return false;
	HC_TEXT(text,
		"the ranks have different tables or member lists: processes %u and %u on node %s "
		"are both rank %u",
		held->process == HC_NONE ? 0 : c->processes[held->process].pid,
		c->processes[j->s->process].pid, c->self.name, j->rank);
	arrive(c, p, j); /* the home tells the others */
	refuse(c, j, HC_E_MISMATCH, text);
	return true;
}

/*
 * The rank's seat, when it has one already. The same process again (a repeated request after a
 * lost session) takes its seat over; another process is refused.
 */
enum hc_again hc_join_again(struct hc_core *c, struct hc_part *p, const struct join *j)
{
	uint32_t seat = hc_part_find_seat(c, p, j->rank);
	struct hc_seat *s;
	char text[256];

	if (seat == HC_NONE)
		return AGAIN_NO;
	s = &c->seats[seat];
	if (s->process == j->s->process && s->device == j->device) {
		take_over(c, p, seat, j);
		return AGAIN_SEATED;
	}
	if (s->process == j->s->process) {
		HC_TEXT(text, "rank %u of this process has device %u already; this call says %u",
			j->rank, s->device, j->device);
		refuse(c, j, HC_E_INVALID, text);
		return AGAIN_REFUSED;
	}
	if (other_list(c, p, s, j))
		return AGAIN_REFUSED;
	HC_TEXT(text,
		"rank %u is held by process %u on node %s since it joined first; this is process "
		"%u",
		j->rank, s->process == HC_NONE ? 0 : c->processes[s->process].pid, c->self.name,
		c->processes[j->s->process].pid);
	refuse(c, j, HC_E_BUSY, text);
	return AGAIN_REFUSED;
}

static void arrive(struct hc_core *c, const struct hc_part *p, const struct join *j)
{
	const struct hc_process *who = &c->processes[j->s->process];
	struct hc_m_arrive m = {.key_a = j->key_a,
				.key_b = j->key_b,
				.id = j->id,
				.uid = p->uid,
				.name = j->name,
				.nranks = j->nranks,
				.rank = j->rank,
				.device = j->device,
				.pid = who->pid,
				.started = who->started,
				.list_a = j->list_a,
				.list_b = j->list_b,
				.entry = j->entry,
				.timeout_ms = j->timeout_ms,
				.priority = j->priority,
				.weight = j->weight ? j->weight : 1,
				.incarnation = c->self.incarnation,
				.channels = j->wish.channels,
				.channel_mbps = j->wish.mbps,
				.channel_hold_ms = j->wish.hold_ms,
				.channel_wait = j->wish.wait,
				.parent = j->parent};

	hc_emit_send(c, p->home_node, &hc_desc_arrive, &m);
}

/* The seat of one rank; answers and returns -1 when it cannot be. */
static int sit(struct hc_core *c, struct hc_part *p, const struct join *j)
{
	uint32_t seat;

	seat = hc_part_add_seat(c, p, j->rank, j->device);
	if (seat == HC_NONE) {
		refuse(c, j, HC_E_LIMIT, "ranks_max is reached on this node");
		return -1;
	}
	hc_session_bind(c, seat, j->s);
	hc_part_take_device(c, seat, j->shared);
	hc_part_wait(c, seat, j->request, false);
	arrive(c, p, j);
	return 0;
}

/* What has begun to activate is complete: who is not one of it already begins the next. */
static struct hc_part *part_known(struct hc_core *c, const struct join *j)
{
	return hc_part_by_key(c, j->key_a, j->key_b, j->rank, c->processes[j->s->process].pid);
}

static uint32_t any_device(struct hc_core *c, const struct join *j)
{
	const struct hc_part *p = part_known(c, j);
	uint32_t seat = p ? hc_part_find_seat(c, p, j->rank) : HC_NONE;

	if (seat != HC_NONE && c->seats[seat].process == j->s->process)
		return c->seats[seat].device;
	return hc_device_any(c, j->s->process);
}

struct hc_part *hc_join_part(struct hc_core *c, const struct join *j)
{
	struct hc_part *p = part_known(c, j);
	char text[HC_NAME_MAX + 128];
	int r;

	if (!p) {
		p = hc_part_open(c, j->key_a, j->key_b, uid_of(c, j->s), j->nranks, j->name);
		if (p) {
			hc_part_of_node(c, p, j->home);
			p->home_life = c->nodes[j->home].life;
			p->priority = j->priority;
			p->weight = j->weight;
			know(c, p, j);
			hc_part_busy(c, p)->quiet = j->batch;
		}
	}
	if (!p) {
		/* says why not */
		r = hc_user_may(c, uid_of(c, j->s), HC_CHARGE_PART, text, sizeof(text));
		refuse(c, j, r, text);
	} else if (p->uid != uid_of(c, j->s)) {
		HC_TEXT(text, "the domain belongs to uid %u, this is uid %u", p->uid,
			uid_of(c, j->s));
		refuse(c, j, HC_E_PERMISSION, text);
		return NULL;
	} else {
		know_list(c, p, j);
	}
	return p;
}

void hc_join_one(struct hc_core *c, struct join *j)
{
	struct hc_part *p;
	char text[512];
	int r;

	if (hc_part_come_back(c, j->s, j->request, j->key_a, j->key_b, j->rank))
		return;
	if (j->device == HC_NONE)
		j->device = any_device(c, j);
	r = hc_join_check(c, j, text, sizeof(text));
	if (r) {
		refuse(c, j, r, text);
		return;
	}
	p = hc_join_part(c, j);
	if (!p || hc_join_again(c, p, j))
		return;
	if (sit(c, p, j))
		hc_part_close_if_empty(c, p);
}

void hc_join_tell_limit(struct hc_core *c, const struct hc_part *p, const struct hc_m_verdict *m)
{
	const uint32_t ours = (uint32_t)(c->set.connect_timeout_ns / 1000000u);
	const struct hc_session *s;
	struct hc_m_event e = {.kind = HC_W_event_code_SETTING_DIFFERS,
			       .id = p->id,
			       .epoch = p->epoch,
			       .state = p->state,
			       .rank = m->rank,
			       .pid = m->pid,
			       .node = hc_str(c->nodes[p->home_node].name)};
	char text[HC_TEXT_MAX + 1], name[32];

	if (!m->connect_timeout_ms || m->connect_timeout_ms == ours)
		return;
	HC_TEXT(text,
		"%s: rank %u waits by connect_timeout_s = %u of the home, node %s (%.*s); "
		"connect_timeout_s = %u of node %s (%s) does not count",
		hc_part_name(c, p, name), m->rank, m->connect_timeout_ms / 1000u,
		c->nodes[p->home_node].name, (int)m->connect_origin.len, m->connect_origin.p,
		ours / 1000u, c->self.name, c->set.connect_timeout_origin);
	hc_emit_log(c, HC_LOG_WARN, e.kind, p->id, m->rank, text);
	e.text = hc_str(text);
	s = hc_session_get(c, hc_seat_session(&c->seats[hc_part_find_seat(c, p, m->rank)]));
	if (s)
		hc_emit_event(c, s->id, &e);
}

/* ---- way 1: root info ---- */

static uint64_t block_sum(const uint8_t *p, size_t len)
{
	static const struct hc_hash_key k = {0x68636f6d6d2d726f, 0x6f742d696e666f31};

	return hc_hash(&k, p, len);
}

static void root_key(struct join *j, const struct hc_m_root_block *b)
{
	uint8_t both[24];

	memcpy(both, b->token.b, 16);
	memcpy(both + 16, &b->id, 8);
	key_from(j, both, sizeof(both));
}

/* Where this node listens. Those of last resort get what room is left. */
static void root_addrs(struct hc_core *c, struct hc_arr *to, uint8_t *buf, size_t bytes)
{
	struct hc_m_root_addr m;
	struct hc_m_node_port p;
	struct hc_arr ports, a;
	uint32_t last;

	*to = (struct hc_arr){.bytes = buf};
	if (!c->lim.peers || !c->self.peers)
		return;
	hc_port_announce(c, &ports);
	for (last = 0; last < 2; last++)
		for (a = ports; hc_arr_next(&a, &hc_desc_node_port, HC_PROTO_MAX, &p);) {
			if (!!p.last != last || to->count == ROOT_ADDRS)
				continue;
			m = (struct hc_m_root_addr){
				.family = p.family, .addr = p.addr, .port = p.port};
			hc_assert(
				!hc_arr_put(to, buf, bytes, &hc_desc_root_addr, HC_PROTO_MAX, &m));
		}
}

void hc_join_root_info(struct hc_core *c, struct hc_session *s, uint32_t request,
		       const struct hc_m_root_info *m)
{
	struct hc_m_root_block b = {
		.magic = ROOT_MAGIC, .version = ROOT_VERSION, .nranks = m->nranks};
	struct join j = {.s = s, .request = request, .name = m->name, .nranks = m->nranks};
	uint8_t bytes[768], addrs[256];
	struct hc_m_root_info_r r;
	uint64_t sum;
	size_t len;
	char text[256];
	int i, code;

	hc_rng_bytes(c, b.token.b, sizeof(b.token.b));
	memcpy(b.node.b, c->self.node_id, sizeof(b.node.b));
	b.home = hc_str(c->self.name);
	b.start = c->self.start;
	b.name = m->name;
	b.id = hc_home_draw_id(c);
	root_addrs(c, &b.addrs, addrs, sizeof(addrs));
	root_key(&j, &b);
	code = hc_home_make(c, b.id, j.key_a, j.key_b, uid_of(c, s), m->nranks, m->name, false,
			    text, sizeof(text));
	if (code) {
		refuse(c, &j, code, text);
		return;
	}
	hc_assert(!hc_encode(&hc_desc_root_block, 1, &b, bytes, sizeof(bytes) - 8, &len));
	sum = block_sum(bytes, len);
	for (i = 0; i < 8; i++)
		bytes[len + (size_t)i] = (uint8_t)(sum >> (56 - 8 * i));
	r.info = (struct hc_str){(const char *)bytes, (uint32_t)len + 8};
	hc_emit_reply(c, s->id, request, &hc_desc_root_info_r, &r);
}

/* The block fills the front of the application's 4,108 bytes; what follows it is ignored. */
static int read_block(struct hc_str info, struct hc_m_root_block *b)
{
	struct hc_str rest = info;
	const uint8_t *p;
	uint64_t sum = 0;
	int i;

	if (hc_decode_front(&hc_desc_root_block, 1, &rest, b) || rest.len < 8)
		return HC_E_INVALID;
	p = (const uint8_t *)rest.p;
	for (i = 0; i < 8; i++)
		sum = sum << 8 | p[i];
	if (b->magic != ROOT_MAGIC || b->version != ROOT_VERSION ||
	    sum != block_sum((const uint8_t *)info.p, info.len - rest.len))
		return HC_E_INVALID;
	return 0;
}

/* The domain was formed with this very rank of this process: it gets the same answer again. */
static bool again_after(struct hc_core *c, const struct join *j)
{
	struct hc_part *p = hc_part_by_id(c, j->id);
	uint32_t seat;

	if (!p || p->key_a != j->key_a || p->key_b != j->key_b ||
	    p->state < HC_W_domain_state_ACTIVE || p->state > HC_W_domain_state_DRAINING)
		return false;
	seat = hc_part_find_seat(c, p, j->rank);
	if (seat == HC_NONE || c->seats[seat].process != j->s->process ||
	    hc_seat_session(&c->seats[seat]) != j->s->id || c->seats[seat].block == HC_NONE)
		return false;
	hc_part_wait(c, seat, j->request, false);
	hc_part_answer_joined(c, p, seat);
	hc_part_rest(c, p);
	return true;
}

static void root_goal(const struct hc_m_root_block *b, struct hc_goal *goal)
{
	struct hc_arr a = b->addrs;
	struct hc_m_root_addr m;
	struct hc_endpoint *to;

	*goal = (struct hc_goal){.root = true, .start = b->start};
	memcpy(goal->id, b->node.b, sizeof(goal->id));
	hc_str_copy(b->home, goal->name, sizeof(goal->name));
	while (goal->nat < HC_NODE_ENDPOINTS &&
	       hc_arr_next(&a, &hc_desc_root_addr, HC_PROTO_MAX, &m)) {
		if ((m.family != 4 && m.family != 6) || !m.port)
			continue;
		to = &goal->at[goal->nat++];
		to->addr.family = m.family;
		to->port = m.port;
		memcpy(to->addr.bytes, m.addr.b, m.family == 4 ? 4 : 16);
	}
}

void hc_join_root(struct hc_core *c, struct hc_session *s, uint32_t request,
		  const struct hc_m_join_root *m)
{
	struct join j = {.s = s,
			 .request = request,
			 .nranks = m->nranks,
			 .rank = m->rank,
			 .device = m->device,
			 .timeout_ms = m->timeout_ms,
			 .shared = m->shared == 1,
			 .priority = m->priority,
			 .weight = m->weight,
			 .wish = HC_WISH_OF(m)};
	struct hc_goal goal;
	struct hc_m_root_block b;

	if (read_block(m->info, &b)) {
		refuse(c, &j, HC_E_INVALID,
		       "the root info is damaged: its magic, version or checksum is wrong. Was it "
		       "shipped whole, all 4108 bytes, from hcomm_root_info?");
		return;
	}
	root_goal(&b, &goal);
	j.id = b.id;
	j.name = b.name;
	root_key(&j, &b);
	if (!again_after(c, &j))
		hc_seek_join(c, &j, &goal);
}

/* ---- way 2: rank table ---- */

static uint32_t own_server(const struct hc_roster *t, const struct hc_m_join_table *m)
{
	uint32_t i;

	if (!m->server.len)
		return t->ranks[m->rank].server;
	for (i = 0; i < t->nservers; i++)
		if (hc_str_eq(hc_str(t->servers[i].name), m->server))
			return i;
	return HC_NONE;
}

static void join_server(struct hc_core *c, struct join *j, const struct hc_roster *t)
{
	struct hc_goal goal;

	hc_seek_server(c, t, t->ranks[0].server, &goal);
	hc_seek_join(c, j, &goal);
}

/* A rank that was started on another machine than its table says; it is told. */
static bool stands_elsewhere(struct hc_core *c, const struct join *j, const struct hc_roster *t,
			     uint32_t server)
{
	struct hc_goal goal;
	uint32_t node;
	char text[400];

	if (!c->lim.peers || !c->self.peers)
		return false;
	hc_seek_server(c, t, server, &goal);
	node = hc_seek_node(c, &goal, j);
	if (node == HC_NONE || node == HC_SELF_NODE)
		return false;
	HC_TEXT(text,
		"unknown-server: by its table rank %u stands on server %.100s, which is node %.60s;"
		" it was started on node %.60s",
		j->rank, t->servers[server].name, c->nodes[node].name, c->self.name);
	refuse(c, j, HC_E_INVALID, text);
	return true;
}

/*
 * A name is of one domain of its owner on a node. Who comes with another table than those who have
 * it, and as a rank that one of them is, would wait for ranks that do not come. A rank that nobody
 * is here may be the first of those who form it anew, so that one waits.
 */
static bool comes_too_late(struct hc_core *c, const struct join *j)
{
	const struct hc_roll_other said = HC_ROLL_OTHER(j);
	const struct hc_part *p;
	const struct hc_seat *s;
	char where[320], text[HC_TEXT_MAX + 1];
	uint32_t seat;

	p = j->name.len ? hc_part_rival(c, j->key_a, j->key_b, &said, where, sizeof(where)) : NULL;
	seat = p ? hc_part_find_seat(c, p, j->rank) : HC_NONE;
	if (seat == HC_NONE)
		return false;
	s = &c->seats[seat];
	if (!hc_seat_lives(s) || s->process == HC_NONE || s->process == j->s->process)
		return false;
	HC_TEXT(text,
		"name %.*s is taken by domain %016llx of the same owner, which is %s, with process "
		"%u on node %s as rank %u; its ranks had another table%s",
		(int)j->name.len, j->name.p, (unsigned long long)p->id,
		hc_word_domain_state(p->state), c->processes[s->process].pid, c->self.name, j->rank,
		where);
	refuse(c, j, HC_E_EXISTS, text);
	return true;
}

void hc_join_table(struct hc_core *c, struct hc_session *s, uint32_t request,
		   const struct hc_m_join_table *m, const struct hc_roster *t)
{
	struct join j = {.s = s,
			 .request = request,
			 .name = m->name,
			 .nranks = t->nranks,
			 .rank = m->rank,
			 .timeout_ms = m->timeout_ms,
			 .shared = m->shared == 1,
			 .priority = m->priority,
			 .weight = m->weight,
			 .wish = HC_WISH_OF(m),
			 .list_a = t->hash[0],
			 .list_b = t->hash[1]};
	uint8_t key[8 + HC_NAME_MAX + 16 + sizeof(s->job)] = {0};
	uint32_t uid = uid_of(c, s), server;
	char text[256];

	if (m->rank >= t->nranks) {
		HC_TEXT(text, "rank %u: the table has ranks 0 to %u", m->rank, t->nranks - 1);
		refuse(c, &j, HC_E_INVALID, text);
		return;
	}
	server = own_server(t, m);
	if (server == HC_NONE || t->ranks[m->rank].server != server) {
		HC_TEXT(text,
			"unknown-server: rank %u stands on server %.128s, not on the one named",
			m->rank, t->servers[t->ranks[m->rank].server].name);
		refuse(c, &j, HC_E_INVALID, text);
		return;
	}
	hc_roll_learn(c, t);
	if (!m->server.len && stands_elsewhere(c, &j, t, server))
		return;
	j.device = t->ranks[m->rank].device;
	j.addr = &t->ranks[m->rank].addr;
	j.entry = t->ranks[m->rank].hash;
	memcpy(key, &uid, 4);
	if (m->name.len)
		memcpy(key + 8, m->name.p, m->name.len);
	else
		memcpy(key + 8 + HC_NAME_MAX, t->hash, 16);
	memcpy(key + 8 + HC_NAME_MAX + 16, s->job, sizeof(s->job));
	key_from(&j, key, sizeof(key));
	if (comes_too_late(c, &j))
		return;
	/* the home is the node of rank 0 */
	if (t->ranks[0].server == server)
		hc_join_one(c, &j);
	else
		join_server(c, &j, t);
}

/* ---- way 4: a sub-domain of listed ranks ---- */

static int sub_rank(const struct hc_m_sub *m, uint32_t nranks, uint32_t *rank, char *text,
		    size_t bytes)
{
	struct hc_arr a = m->ranks;
	struct hc_m_rank r;
	uint32_t i;

	*rank = HC_NONE;
	for (i = 0; hc_arr_next(&a, &hc_desc_rank, HC_PROTO_MAX, &r); i++) {
		if (r.rank >= nranks) {
			snprintf(text, bytes, "rank %u of the list: the parent has %u ranks",
				 r.rank, nranks);
			return HC_E_INVALID;
		}
		if (r.rank == m->parent_rank && *rank == HC_NONE)
			*rank = i;
		else if (r.rank == m->parent_rank) {
			snprintf(text, bytes, "rank %u stands twice in the list", r.rank);
			return HC_E_INVALID;
		}
	}
	if (*rank == HC_NONE) {
		snprintf(text, bytes, "rank %u, which calls, is not in the list", m->parent_rank);
		return HC_E_INVALID;
	}
	return 0;
}

struct hc_part *hc_part_parent(struct hc_core *c, uint64_t id, uint32_t epoch, bool split,
			       int *code, char *text, size_t bytes)
{
	struct hc_part *p = hc_part_by_id(c, id);
	const char *cause;

	*code = HC_E_GONE;
	if (!p || p->epoch != epoch) {
		snprintf(text, bytes, "the parent domain is gone, or in another epoch");
		return NULL;
	}
	if (p->state == HC_W_domain_state_ACTIVE ||
	    (split && p->state == HC_W_domain_state_DRAINING)) {
		*code = 0;
		return p;
	}
	if (p->state == HC_W_domain_state_DAMAGED)
		*code = HC_E_DAMAGED;
	if (p->state == HC_W_domain_state_SUSPENDED)
		*code = HC_E_SUSPENDED;
	cause = hc_part_cause(c, p);
	snprintf(text, bytes, "the parent domain is %s%s%.180s", hc_word_domain_state(p->state),
		 cause[0] ? ": " : "", cause);
	return NULL;
}

uint32_t hc_part_own_seat(struct hc_core *c, const struct hc_session *s, uint64_t id,
			  uint32_t epoch, uint32_t rank, bool split, int *code, char *text,
			  size_t bytes)
{
	struct hc_part *p = hc_part_parent(c, id, epoch, split, code, text, bytes);
	uint32_t seat;

	if (!p)
		return HC_NONE;
	seat = hc_part_find_seat(c, p, rank);
	if (seat == HC_NONE || c->seats[seat].process != s->process) {
		*code = HC_E_PERMISSION;
		snprintf(text, bytes, "rank %u of the parent is not a rank of this process", rank);
		return HC_NONE;
	}
	*code = 0;
	return seat;
}

void hc_join_sub_key(struct join *j, uint64_t parent, uint32_t epoch, uint64_t sub_id,
		     struct hc_str list, uint32_t count)
{
	const uint64_t key[3] = {parent, epoch, sub_id};
	const struct hc_hash_key k = {parent, sub_id};

	j->list_a = hc_hash(&k, list.p, list.len);
	j->list_b = count;
	j->parent = parent;
	key_from(j, key, sizeof(key));
}

void hc_join_sub(struct hc_core *c, struct hc_session *s, uint32_t request,
		 const struct hc_m_sub *m)
{
	struct join j = {.s = s,
			 .request = request,
			 .name = m->name,
			 .nranks = m->ranks.count,
			 .timeout_ms = m->timeout_ms};
	char text[256];
	uint32_t seat;
	int r;

	seat = hc_part_own_seat(c, s, m->parent, m->epoch, m->parent_rank, m->sub_id & HC_SPLIT_BIT,
				&r, text, sizeof(text));
	if (seat != HC_NONE)
		r = sub_rank(m, hc_part_by_id(c, m->parent)->nranks, &j.rank, text, sizeof(text));
	if (r) {
		refuse(c, &j, r, text);
		return;
	}
	j.home = hc_part_by_id(c, m->parent)->home_node;
	j.device = c->seats[seat].device;
	j.shared = c->seats[seat].flags & SEAT_SHARED;
	hc_join_sub_key(&j, m->parent, m->epoch, m->sub_id,
			(struct hc_str){(const char *)m->ranks.bytes, m->ranks.len},
			m->ranks.count);
	hc_join_one(c, &j);
}
