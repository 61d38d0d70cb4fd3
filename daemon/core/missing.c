/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who has not come yet to a forming domain, told to the nodes whose ranks wait.
 *
 * The home knows; the others are sent the first ranks that are missing, and how many have come. A
 * change is told a moment later, so that many arrivals cost one message to a node, and a domain
 * that is complete at once none. What a node was told is for people only: views show it, with
 * server and address of each rank as its own table says them. Nothing is decided by it.
 */
#include "emit.h"
#include "home.h"
#include "net.h"
#include "part.h"
#include "who.h"

#include <stdio.h>
#include <string.h>

#define TELL_NS 100000000u

size_t hc_missing_one(const struct hc_roll_entry *e, uint32_t rank, bool first, char *text,
		      size_t bytes)
{
	char addr[64] = "";
	int n;

	if (e)
		hc_addr_text(&e->addr, addr);
	if (!e)
		n = snprintf(text, bytes, "%s%u", first ? "" : ", ", rank);
	else
		n = snprintf(text, bytes, "%s%u (%s%s device %u)", first ? "" : ", ", rank,
			     addr[0] ? addr : e->server, addr[0] ? "," : "", e->device);
	return n < 0 ? 0 : (size_t)n;
}

/* ---- the last sign of life ---- */

/* By its name, or an address by which the table means it. */
static bool is_it(const struct hc_peer *p, const struct hc_roll_entry *e)
{
	const struct hc_addr *a;
	uint32_t i;

	if (!strncmp(p->name, e->server, sizeof(e->server) - 1))
		return true;
	for (i = 0; i < p->nports; i++) {
		a = &p->ports[i].at.addr;
		if (a->family && (hc_addr_eq(a, &e->addr) || hc_addr_eq(a, &e->host)))
			return true;
	}
	for (i = 0; i < p->nendpoints; i++)
		if (e->host.family && hc_addr_eq(&p->endpoints[i].addr, &e->host))
			return true;
	return false;
}

static bool is_here(const struct hc_core *c, const struct hc_roll_entry *e)
{
	return !strncmp(c->self.name, e->server, sizeof(e->server) - 1) ||
	       (e->addr.family && hc_port_of(c, &e->addr) != HC_NONE) ||
	       (e->host.family && hc_port_of(c, &e->host) != HC_NONE);
}

static unsigned long long ago_ms(const struct hc_core *c, uint64_t at)
{
	return at < c->now ? (c->now - at) / 1000000u : 0;
}

static void sign_of(const struct hc_core *c, const struct hc_peer *p, char *text, size_t bytes)
{
	const uint64_t heard = hc_peer_heard_at(c, p);
	const unsigned long long since = ago_ms(c, p->since), last = ago_ms(c, heard);
	const char *why = p->last_error;

	if (p->state == HC_W_node_state_UP)
		snprintf(text, bytes, "heard %llu ms ago", last);
	else if (p->state == HC_W_node_state_DAEMON_DOWN)
		snprintf(text, bytes, "daemon down for %llu ms", since);
	else if (p->state == HC_W_node_state_HOLD)
		snprintf(text, bytes, "daemon restarting for %llu ms", since);
	else if (heard == HC_NEVER)
		snprintf(text, bytes, "never seen%s%.80s", why[0] ? ": " : "", why);
	else
		snprintf(text, bytes, "%s, heard %llu ms ago", hc_word_node_state(p->state), last);
}

void hc_missing_sign(const struct hc_core *c, const struct hc_roll_entry *e, char *text,
		     size_t bytes)
{
	const struct hc_net *n = c->net;
	uint32_t i;

	if (is_here(c, e)) {
		snprintf(text, bytes, "this node");
		return;
	}
	for (i = 0; i < n->peer_pool.fresh; i++)
		if (n->peers[i].used && is_it(&n->peers[i], e)) {
			sign_of(c, &n->peers[i], text, bytes);
			return;
		}
	snprintf(text, bytes, "never seen: no node of that name or address is known");
}

/* ---- at the home ---- */

void hc_missing_alarm(struct hc_core *c, struct hc_home *h)
{
	const struct hc_home_busy *b = hc_home_busy(c, h);

	hc_home_alarm(c, h, b->tell_at && b->tell_at < b->deadline ? b->tell_at : b->deadline);
}

void hc_missing_changed(struct hc_core *c, struct hc_home *h, uint32_t node)
{
	struct hc_home_busy *b = hc_home_busy(c, h);

	b->afar = b->afar || node != HC_SELF_NODE;
	if (!b->afar || b->tell_at || h->step)
		return;
	b->tell_at = c->now + TELL_NS;
	hc_missing_alarm(c, h);
}

static void send(struct hc_core *c, struct hc_home *h, uint32_t node)
{
	struct hc_m_missing m = {.id = h->id, .arrived = h->arrived};
	uint8_t bytes[4 * HC_MISSING];
	struct hc_m_rank r;

	if (node == HC_SELF_NODE)
		return;
	m.ranks.bytes = bytes;
	for (r.rank = 0; r.rank < h->nranks && m.ranks.count < HC_MISSING; r.rank++)
		if (hc_home_place(c, h, r.rank)->state == HC_W_member_state_EXPECTED)
			hc_assert(!hc_arr_put(&m.ranks, bytes, sizeof(bytes), &hc_desc_rank,
					      HC_PROTO_MAX, &r));
	hc_emit_send(c, node, &hc_desc_missing, &m);
}

bool hc_missing_tell(struct hc_core *c, struct hc_home *h)
{
	struct hc_home_busy *b = hc_home_busy(c, h);

	if (!b->tell_at || b->tell_at > c->now)
		return false;
	b->tell_at = 0;
	hc_roll_want(c, h);
	hc_home_each_node(c, h, send);
	hc_missing_alarm(c, h);
	return true;
}

/* The nodes that are waited for, each with its first rank. */
void hc_missing_prepared(struct hc_core *c, struct hc_home *h, char *text, size_t bytes)
{
	const unsigned long long tenths = c->set.prepare_limit_ns / 100000000u;
	const struct hc_known_node *n;
	const char *between = "";
	size_t at = 0;
	uint32_t i, node;

	c->node_round++;
	for (i = 0; i < h->nranks && at + 200 < bytes; i++) {
		node = hc_who(c, hc_home_place(c, h, i))->node;
		if (hc_home_place(c, h, i)->heard || c->node_mark[node] == c->node_round)
			continue;
		c->node_mark[node] = c->node_round;
		n = &c->nodes[node];
		at += (size_t)snprintf(text + at, bytes - at, "%srank %u on node %.64s%s%.60s",
				       between, i, n->name,
				       n->away ? ", which cannot be reached: " : "",
				       n->away ? n->why : "");
		between = "; ";
	}
	snprintf(text + at, bytes - at,
		 ": no answer to whether it can take part within %llu.%llu s (prepare_limit_s)",
		 tenths / 10, tenths % 10);
}

/* ---- at the others ---- */

void hc_part_on_missing(struct hc_core *c, uint32_t node, const struct hc_m_missing *m)
{
	struct hc_part *p = hc_part_of_home(c, node, m->id);
	struct hc_arr a = m->ranks;
	struct hc_part_busy *b;
	struct hc_m_rank r;

	if (!p || p->state != HC_W_domain_state_FORMING)
		return;
	b = hc_part_busy(c, p);
	b->told = true;
	b->arrived = m->arrived < p->nranks ? m->arrived : p->nranks;
	b->nmissing = 0;
	while (b->nmissing < HC_MISSING && hc_arr_next(&a, &hc_desc_rank, HC_PROTO_MAX, &r))
		if (r.rank < p->nranks)
			b->missing[b->nmissing++] = r.rank;
	c->domain_changes++;
}

void hc_part_missing(const struct hc_core *c, const struct hc_part *p, char *text, size_t bytes)
{
	const struct hc_part_busy *b = hc_part_now(c, p);
	size_t at = (size_t)snprintf(text, bytes, "waiting for rank ");
	uint32_t i;

	if (!b->told) {
		snprintf(text, bytes, "waiting for the home, node %.60s, to say who is missing",
			 c->nodes[p->home_node].name);
		return;
	}
	for (i = 0; i < b->nmissing && at + 96 < bytes; i++)
		at += hc_missing_one(hc_roll_find(c, b->list_a, b->list_b, b->missing[i]),
				     b->missing[i], !i, text + at, bytes - at);
	if (at < bytes)
		snprintf(text + at, bytes - at, "%s (%u of %u missing)",
			 i < p->nranks - b->arrived ? ", ..." : "", p->nranks - b->arrived,
			 p->nranks);
}
