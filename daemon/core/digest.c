/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Digests and comparisons; see digest.h.
 *
 * A page is the next identities in order: each pass over the tables keeps the smallest ones above
 * the last of the page before. So no list of all of them is held, and what changes meanwhile is in
 * the page or not, as it happens: what that leaves different, the digests say again.
 */
#include "digest.h"

#include "emit.h"
#include "hash.h"
#include "home.h"
#include "net.h"
#include "part.h"
#include "rng.h"
#include "who.h"

#define PAGE 32u /* as many answers may follow from one */

static uint64_t hash_of(uint64_t id, uint32_t epoch, uint32_t number)
{
	static const struct hc_hash_key key = {0x64696765737473ull, 0x6f66206e6f646573ull};
	const uint64_t words[2] = {id, (uint64_t)epoch << 32 | number};
	uint8_t bytes[16];
	uint32_t i;

	for (i = 0; i < 16; i++)
		bytes[i] = (uint8_t)(words[i / 8] >> (8 * (i % 8)));
	return hc_hash(&key, bytes, sizeof(bytes));
}

static bool is_committed(uint8_t state)
{
	return state >= HC_W_domain_state_ACTIVE && state < HC_W_domain_state_DESTROYED;
}

/* ---- the digests ---- */

static void flip(struct hc_core *c, uint32_t node, uint64_t hash)
{
	struct hc_known_node *n = &c->nodes[node];

	n->digest ^= hash;
	if (n->peer != HC_NONE)
		c->net->peers[n->peer].digest = n->digest;
}

static void flip_home(struct hc_core *c, struct hc_home *h, uint32_t node)
{
	if (node != HC_SELF_NODE)
		flip(c, node, hash_of(h->id, h->epoch, h->number));
}

/* Which nodes have ranks of it does not change once it is committed: those that left count. */
void hc_digest_home(struct hc_core *c, struct hc_home *h)
{
	if (c->nnodes > 1 && is_committed(h->state))
		hc_home_each_node(c, h, flip_home);
}

/* An orphan has no home any more that could say something of it. */
static bool is_shared(const struct hc_part *p)
{
	return p->id && p->home_node != HC_SELF_NODE && !p->orphan && is_committed(p->state);
}

void hc_digest_part(struct hc_core *c, const struct hc_part *p)
{
	if (is_shared(p))
		flip(c, p->home_node, hash_of(p->id, p->epoch, p->number));
}

uint64_t hc_digest_of(const struct hc_core *c, uint32_t node)
{
	return c->nodes[node].digest;
}

void hc_digest_peer(struct hc_core *c, uint32_t peer)
{
	struct hc_peer *p = hc_peer_get(c, peer);

	p->digest = c->nodes[p->node].digest;
	p->differ_run = 0;
}

/* ---- pages ---- */

struct page {
	struct hc_m_shared_domain at[PAGE];
	uint32_t count;
	uint64_t after;
	bool more;
};

static bool is_wanted(const struct page *g, uint64_t id)
{
	return id > g->after && (g->count < PAGE || id < g->at[PAGE - 1].id);
}

/* In order; the largest falls out when it is full. */
static void keep(struct page *g, const struct hc_m_shared_domain *d)
{
	uint32_t i;

	if (g->count == PAGE)
		g->count--;
	for (i = g->count; i && g->at[i - 1].id > d->id; i--)
		g->at[i] = g->at[i - 1];
	g->at[i] = *d;
	g->count++;
}

static void offer(struct page *g, const struct hc_m_shared_domain *d)
{
	g->more = g->more || (g->count == PAGE && d->id > g->after);
	if (is_wanted(g, d->id))
		keep(g, d);
}

static void offer_homes(struct hc_core *c, struct page *g, uint32_t node)
{
	struct hc_m_shared_domain d = {.home = 1};
	uint32_t i;

	for (i = 0; i < c->home_pool.fresh; i++) {
		const struct hc_home *h = &c->homes[i];

		if (!h->id || h->id <= g->after || !is_committed(h->state) ||
		    !hc_home_has_node(c, h, node))
			continue;
		d.id = h->id;
		d.epoch = h->epoch;
		d.number = h->number;
		d.state = h->state;
		offer(g, &d);
	}
}

static void offer_parts(struct hc_core *c, struct page *g, uint32_t node)
{
	struct hc_m_shared_domain d = {.home = 0};
	uint32_t i;

	for (i = 0; i < c->part_pool.fresh; i++) {
		const struct hc_part *p = &c->parts[i];

		if (!is_shared(p) || p->home_node != node)
			continue;
		d.id = p->id;
		d.epoch = p->epoch;
		d.number = p->number;
		d.state = p->state;
		offer(g, &d);
	}
}

static void send_page(struct hc_core *c, uint32_t node)
{
	struct hc_known_node *n = &c->nodes[node];
	struct page g = {.after = n->sum_after};
	struct hc_m_peer_sum m = {.round = n->sum_round};
	uint32_t i;

	offer_homes(c, &g, node);
	offer_parts(c, &g, node);
	for (i = 0; i < g.count; i++)
		hc_assert(!hc_arr_put(&m.domains, c->scratch, HC_OUT_BYTES, &hc_desc_shared_domain,
				      HC_PROTO_MAX, &g.at[i]));
	m.more = g.more;
	if (g.count)
		n->sum_after = g.at[g.count - 1].id;
	if (!g.more) {
		n->summing = false;
		c->sums--;
	}
	hc_emit_send(c, node, &hc_desc_peer_sum, &m);
}

bool hc_digest_work(struct hc_core *c)
{
	uint32_t i;

	for (i = 0; c->sums && i < c->nnodes; i++)
		if (c->nodes[i].summing) {
			send_page(c, i);
			return true;
		}
	return false;
}

static void begin(struct hc_core *c, uint32_t node, uint32_t round)
{
	struct hc_known_node *n = &c->nodes[node];

	c->sums += !n->summing;
	n->summing = true;
	n->sum_after = 0;
	n->sum_round = round;
}

void hc_digest_differs(struct hc_core *c, uint32_t node)
{
	uint32_t round;

	do
		round = (uint32_t)hc_rng_u64(c);
	while (!round || round == c->nodes[node].sum_round);
	begin(c, node, round);
}

/* ---- what the other one says ---- */

/* A part of a domain whose home is here. What a drain misses, its deadline ends. */
static void judge(struct hc_core *c, uint32_t node, const struct hc_m_shared_domain *d)
{
	struct hc_home *h = hc_home_by_id(c, d->id);

	if (!h)
		hc_home_say_over(c, node, d->id, d->epoch);
	else if (is_committed(h->state) && h->state != HC_W_domain_state_DRAINING &&
		 h->epoch == d->epoch && d->number < h->number && hc_home_has_node(c, h, node))
		hc_home_tell_one(c, h, node);
}

/* Of the two the other one begins: else it is the answer to an earlier round of ours, and answered
 * itself it would come back for ever. */
static bool is_asked(const struct hc_core *c, uint32_t node)
{
	const uint32_t peer = c->nodes[node].peer;

	return peer == HC_NONE || !hc_peer_chooses(c, &c->net->peers[peer]);
}

void hc_digest_on_sum(struct hc_core *c, uint32_t node, const struct hc_m_peer_sum *m)
{
	struct hc_m_shared_domain d;
	struct hc_arr a = m->domains;

	if (m->round != c->nodes[node].sum_round && is_asked(c, node))
		begin(c, node, m->round);
	for (uint32_t i = 0; i < PAGE && hc_arr_next(&a, &hc_desc_shared_domain, HC_PROTO_MAX, &d);
	     i++)
		if (!d.home)
			judge(c, node, &d);
}
