/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Joins whose home is not there yet; see seek.h.
 *
 * What waits is the request, not the rank: nothing is taken for it, so nothing has to be given
 * back. A session that ends takes its requests along. A slot is found again by the list of those
 * in use, which a round walks one slot at a time, as each may write much.
 */
#include "seek.h"

#include "emit.h"
#include "home.h"
#include "net.h"
#include "session.h"

#include <stdio.h>
#include <string.h>

#define MISSING_SHOWN 6u
#define MS            1000000u
#define PAUSE_NS      1000000000u

struct hc_seek {
	struct join j; /* its pointers are set anew before it goes on */
	uint64_t session;
	char name[HC_NAME_MAX + 1];
	struct hc_addr addr;
	struct hc_goal goal;
	uint32_t peer; /* that is dialled for it, HC_NONE */
	uint64_t since, deadline;
};

void hc_seek_lay_out(struct hc_core *c, struct hc_mem *m, const struct hc_limits *lim)
{
	c->seeks = hc_mem_take(m, lim->sessions, sizeof(*c->seeks));
	hc_pool_init(&c->seek_pool, m, lim->sessions);
	hc_links_init(&c->seek_links, m, lim->sessions);
	c->seek_next = HC_NONE;
}

/* ---- who it is ---- */

void hc_seek_server(const struct hc_core *c, const struct hc_roster *t, uint32_t server,
		    struct hc_goal *goal)
{
	const struct hc_roster_server *s = &t->servers[server];

	*goal = (struct hc_goal){.host = s->host_ip};
	if (strlen(s->name) <= HC_NAME_MAX)
		hc_str_copy(hc_str(s->name), goal->name, sizeof(goal->name));
	if (s->host_ip.family)
		goal->at[goal->nat++] =
			(struct hc_endpoint){.addr = s->host_ip, .port = c->self.port};
}

/* Is that an address by which the table means the server? */
static bool is_of(const struct hc_core *c, const struct hc_goal *goal, const struct join *j,
		  const struct hc_addr *a)
{
	const struct hc_roll_entry *e;
	uint32_t i;

	if (!a->family)
		return false;
	if (hc_addr_eq(a, &goal->host))
		return true;
	for (i = 0; (e = hc_roll_find(c, j->list_a, j->list_b, i)); i++)
		if (hc_addr_eq(&e->addr, a) &&
		    !strncmp(e->server, goal->name, sizeof(e->server) - 1))
			return true;
	return false;
}

static bool is_ours(struct hc_core *c, const struct hc_goal *goal, const struct join *j)
{
	const struct hc_port_fact *f;
	uint32_t i, k;

	for (i = 0; i < c->net->nports; i++) {
		f = &c->net->ports[i].fact;
		for (k = 0; f->present && k < f->naddrs; k++)
			if (is_of(c, goal, j, &f->addrs[k].addr) &&
			    hc_port_of(c, &f->addrs[k].addr) != HC_NONE)
				return true;
	}
	return false;
}

static bool is_peer(const struct hc_core *c, const struct hc_peer *p, const struct hc_goal *goal,
		    const struct join *j)
{
	uint32_t i;

	for (i = 0; i < p->nports; i++)
		if (is_of(c, goal, j, &p->ports[i].at.addr))
			return true;
	return false;
}

uint32_t hc_seek_node(struct hc_core *c, const struct hc_goal *goal, const struct join *j)
{
	const struct hc_net *n = c->net;
	uint32_t i;

	if (goal->root)
		return hc_core_find_node(c, goal->id);
	i = goal->name[0] ? hc_core_node_named(c, goal->name) : HC_NONE;
	if (i != HC_NONE)
		return i;
	if (is_ours(c, goal, j))
		return HC_SELF_NODE;
	for (i = 0; i < n->peer_pool.fresh; i++)
		if (n->peers[i].used && n->peers[i].known && is_peer(c, &n->peers[i], goal, j))
			return n->peers[i].node;
	return HC_NONE;
}

static bool is_there(const struct hc_core *c, uint32_t node)
{
	uint32_t peer;

	if (node == HC_NONE)
		return false;
	peer = c->nodes[node].peer;
	return node == HC_SELF_NODE || !c->lim.peers ||
	       (peer != HC_NONE && c->net->peers[peer].state == HC_W_node_state_UP);
}

/* Also by who answered where it was dialled. */
static uint32_t node_of(struct hc_core *c, const struct hc_seek *k)
{
	uint32_t node = hc_seek_node(c, &k->goal, &k->j);
	const struct hc_peer *p = k->peer == HC_NONE ? NULL : hc_peer_get(c, k->peer);

	if (node != HC_NONE || k->goal.root || !p)
		return node;
	if (p->known)
		return p->node;
	return p->nendpoints && p->ourselves == (1u << p->nendpoints) - 1 ? HC_SELF_NODE : HC_NONE;
}

/* ---- slots ---- */

static void arm(struct hc_core *c)
{
	uint64_t first = HC_NEVER;
	uint32_t n;

	for (n = hc_list_first(&c->seeking); n != HC_NONE; n = hc_list_next(&c->seek_links, n))
		if (c->seeks[n].deadline < first)
			first = c->seeks[n].deadline;
	hc_timers_set(&c->timers, hc_seek_timer(c), first);
}

static bool wants_peer(const struct hc_core *c, uint32_t peer)
{
	uint32_t n;

	for (n = hc_list_first(&c->seeking); n != HC_NONE; n = hc_list_next(&c->seek_links, n))
		if (c->seeks[n].peer == peer)
			return true;
	return false;
}

static void drop(struct hc_core *c, uint32_t n)
{
	const uint32_t peer = c->seeks[n].peer;

	if (c->seek_next == n)
		c->seek_next = hc_list_next(&c->seek_links, n);
	hc_list_del(&c->seeking, &c->seek_links, n);
	hc_pool_put(&c->seek_pool, n);
	if (peer != HC_NONE && !wants_peer(c, peer))
		hc_peer_unsought(c, peer);
}

void hc_seek_session_lost(struct hc_core *c, uint64_t session)
{
	uint32_t n, next;

	for (n = hc_list_first(&c->seeking); n != HC_NONE; n = next) {
		next = hc_list_next(&c->seek_links, n);
		if (c->seeks[n].session == session)
			drop(c, n);
	}
	arm(c);
}

void hc_seek_moved(struct hc_core *c, uint32_t from, uint32_t to)
{
	uint32_t n;

	for (n = hc_list_first(&c->seeking); n != HC_NONE; n = hc_list_next(&c->seek_links, n))
		if (c->seeks[n].peer == from)
			c->seeks[n].peer = to;
}

/* ---- what is told ---- */

static uint64_t limit_of(const struct hc_core *c, const struct join *j)
{
	return j->timeout_ms ? j->timeout_ms * (uint64_t)MS : c->set.connect_timeout_ns;
}

static void because(const struct hc_peer *p, char *text, size_t bytes)
{
	char at[HC_ENDPOINT_TEXT_MAX] = "an unknown address";

	if (p->address.addr.family)
		hc_endpoint_text(&p->address, at);
	if (p->last_error[0] && strstr(p->last_error, at))
		snprintf(text, bytes, "%s", p->last_error);
	else
		snprintf(text, bytes, "%s: %s", at,
			 p->last_error[0] ? p->last_error : "no answer yet");
}

/* Where the home was looked for, and what was found there. */
static void reason(struct hc_core *c, const struct hc_goal *goal, uint32_t node, uint32_t peer,
		   char *text, size_t bytes)
{
	if (node != HC_NONE && c->nodes[node].peer != HC_NONE)
		peer = c->nodes[node].peer;
	if (peer != HC_NONE && hc_peer_get(c, peer)->known && node == HC_NONE)
		snprintf(text, bytes, "another node, %s, answers there",
			 hc_peer_get(c, peer)->name);
	else if (peer != HC_NONE)
		because(hc_peer_get(c, peer), text, bytes);
	else if (goal->root)
		snprintf(text, bytes, "the root info says no address of it%s",
			 goal->nat ? " that can be dialled now" : "");
	else
		snprintf(text, bytes,
			 "no node has that name or the address of one of its devices%s",
			 goal->nat ? "" : ", and the table has no host_ip for it");
}

static bool has_come(const struct hc_core *c, const struct join *j, uint32_t rank)
{
	const struct join *o;
	uint32_t n;

	for (n = hc_list_first(&c->seeking); n != HC_NONE; n = hc_list_next(&c->seek_links, n)) {
		o = &c->seeks[n].j;
		if (o->key_a == j->key_a && o->key_b == j->key_b && o->rank == rank)
			return true;
	}
	return false;
}

/* Nobody told this node who came to the home: all are missing that did not come here. */
static void missing(const struct hc_core *c, const struct join *j, char *text, size_t bytes)
{
	const struct hc_roll_entry *e;
	char addr[HC_ADDR_TEXT_MAX];
	uint32_t i, shown = 0;
	int at = snprintf(text, bytes, "rank ");

	for (i = 0; shown < MISSING_SHOWN && (e = hc_roll_find(c, j->list_a, j->list_b, i)); i++) {
		if (has_come(c, j, i) || (size_t)at >= bytes)
			continue;
		hc_addr_text(&e->addr, addr);
		at += snprintf(text + at, bytes - (size_t)at, "%s%u (%s%s%s, device %u)",
			       shown++ ? ", " : "", i, e->server, addr[0] ? ", " : "", addr,
			       e->device);
	}
	if (!shown)
		snprintf(text, bytes, "rank 0");
	else if (shown == MISSING_SHOWN && (size_t)at < bytes)
		snprintf(text + at, bytes - (size_t)at, ", ...");
}

static void late(struct hc_core *c, uint32_t n)
{
	const struct hc_seek *k = &c->seeks[n];
	const uint64_t tenths = limit_of(c, &k->j) / (100 * (uint64_t)MS);
	char text[HC_TEXT_MAX + 1], who[300], why[256], origin[200];
	struct join j = k->j;

	if (k->goal.root)
		HC_TEXT(who, "node %.60s, the home of the root info,", k->goal.name);
	else
		missing(c, &k->j, who, sizeof(who));
	reason(c, &k->goal, hc_seek_node(c, &k->goal, &k->j), k->peer, why, sizeof(why));
	if (k->j.timeout_ms)
		HC_TEXT(origin, "limit of the call or HCOMM_TIMEOUT_SEC");
	else
		HC_TEXT(origin, "connect_timeout_s = %llu, %s",
			(unsigned long long)(c->set.connect_timeout_ns / (1000 * (uint64_t)MS)),
			c->set.connect_timeout_origin);
	HC_TEXT(text, "no sign of %s within %llu.%llu s (%s); %s%.60s: %s", who,
		(unsigned long long)(tenths / 10), (unsigned long long)(tenths % 10), origin,
		k->goal.root ? "node " : "rank 0 is on server ", k->goal.name, why);
	j.s = hc_session_get(c, k->session);
	if (j.s)
		hc_join_refuse(c, &j, HC_E_TIMEOUT, text);
	drop(c, n);
}

/* ---- waiting and going on ---- */

/* What an earlier daemon of the home was told is forgotten: those who ask again form it anew. */
static void go(struct hc_core *c, struct join *j, const struct hc_goal *goal, uint32_t node)
{
	const uint32_t peer = c->nodes[node].peer;
	uint32_t start = goal->start;

	j->home = node;
	if (node == HC_SELF_NODE)
		start = hc_home_by_id(c, j->id) ? start : c->self.start;
	else if (peer != HC_NONE)
		start = c->net->peers[peer].start;
	if (goal->root && start != goal->start)
		j->id = 0;
	hc_join_one(c, j);
}

static void waits(struct hc_core *c, struct join *j, const struct hc_goal *goal, uint32_t node)
{
	const uint32_t n = hc_pool_get(&c->seek_pool);
	struct hc_seek *k;
	char text[512], why[256];

	if (n == HC_NONE) {
		hc_join_refuse(c, j, HC_E_AGAIN, "too many joins wait for a home on another node");
		return;
	}
	k = &c->seeks[n];
	*k = (struct hc_seek){.j = *j,
			      .session = j->s->id,
			      .goal = *goal,
			      .peer = HC_NONE,
			      .since = c->now,
			      .deadline = c->now + limit_of(c, j)};
	hc_str_copy(j->name, k->name, sizeof(k->name));
	if (j->addr)
		k->addr = *j->addr;
	if (goal->nat && (node == HC_NONE || c->nodes[node].peer == HC_NONE))
		k->peer = hc_peer_seek(c, goal->name, goal->at, goal->nat);
	hc_list_push(&c->seeking, &c->seek_links, n);
	arm(c);
	reason(c, goal, node, k->peer, why, sizeof(why));
	HC_TEXT(text, "rank %u, pid %u, waits for %s %.60s, the home of its domain: %s", j->rank,
		c->processes[j->s->process].pid, goal->root ? "node" : "server", goal->name, why);
	hc_emit_log(c, HC_LOG_INFO, 0, 0, HC_NONE, text);
}

/* What it waited is no more its own; a moment does not count. */
static uint32_t rest_of(const struct hc_core *c, const struct hc_seek *k)
{
	if (c->now - k->since < PAUSE_NS)
		return k->j.timeout_ms;
	return c->now < k->deadline ? (uint32_t)((k->deadline - c->now) / MS) + 1 : 1;
}

static void look(struct hc_core *c, uint32_t n)
{
	struct hc_seek *k = &c->seeks[n];
	const uint32_t node = node_of(c, k);
	struct join j = k->j;
	char name[HC_NAME_MAX + 1];
	struct hc_addr addr;
	struct hc_goal goal;

	if (!is_there(c, node))
		return;
	memcpy(name, k->name, sizeof(name));
	addr = k->addr;
	j.name = hc_str(name);
	j.addr = j.addr ? &addr : NULL;
	j.timeout_ms = rest_of(c, k);
	j.s = hc_session_get(c, k->session);
	goal = k->goal;
	drop(c, n);
	if (j.s)
		go(c, &j, &goal, node);
}

void hc_seek_join(struct hc_core *c, struct join *j, const struct hc_goal *goal)
{
	uint32_t node = hc_seek_node(c, goal, j);
	char text[512];
	int r;

	if (hc_part_come_back(c, j->s, j->request, j->key_a, j->key_b, j->rank))
		return;
	/* what is wrong with the rank itself need not wait */
	r = j->device == HC_NONE ? 0 : hc_join_check(c, j, text, sizeof(text));
	if (r)
		hc_join_refuse(c, j, r, text);
	else if (is_there(c, node))
		go(c, j, goal, node);
	else if (!goal->root && (!c->lim.peers || !c->self.peers))
		go(c, j, goal, HC_SELF_NODE);
	else if (c->lim.peers && c->self.peers)
		waits(c, j, goal, node);
	else {
		HC_TEXT(text,
			"the root info comes from node %s, to which this node has no connection%s",
			goal->name,
			c->lim.peers ? ": it works alone, for want of a cluster key" : "");
		hc_join_refuse(c, j, HC_E_LINK_UNAVAILABLE, text);
	}
}

void hc_seek_again(struct hc_core *c)
{
	c->seek_next = hc_list_first(&c->seeking);
}

bool hc_seek_work(struct hc_core *c)
{
	const uint32_t n = c->seek_next;

	if (n == HC_NONE || !hc_emit_ring_spare(c))
		return false;
	c->seek_next = hc_list_next(&c->seek_links, n);
	look(c, n);
	if (c->seek_next == HC_NONE)
		arm(c);
	return true;
}

/* As many as there is room for; the others at once after them. */
void hc_seek_timeout(struct hc_core *c)
{
	uint32_t n, next;

	for (n = hc_list_first(&c->seeking); n != HC_NONE && hc_emit_room(c); n = next) {
		next = hc_list_next(&c->seek_links, n);
		if (c->seeks[n].deadline <= c->now)
			late(c, n);
	}
	arm(c);
}
