/* SPDX-License-Identifier: Apache-2.0 */
/* The sweep over what two nodes have in common; see again.h. */
#include "again.h"

#include "ask.h"
#include "channel.h"
#include "emit.h"
#include "home.h"
#include "net.h"
#include "part.h"
#include "sync.h"

#define SLICE    64u  /* homes and parts that one unit looks at */
#define MAIL_MAX 512u /* messages that the other side has not acknowledged */

void hc_again(struct hc_core *c, uint32_t node)
{
	struct hc_known_node *n = &c->nodes[node];

	hc_assert(node != HC_SELF_NODE);
	c->at_rest = false;
	c->agains += !n->again;
	n->again = true;
	n->again_at = 0;
	/* at once: who arrives from now on has come after it */
	hc_home_node_again(c, node);
}

static bool may_send(const struct hc_core *c, const struct hc_known_node *n)
{
	return !c->lim.peers || n->peer == HC_NONE || c->net->peers[n->peer].mail_count < MAIL_MAX;
}

static uint32_t next_node(const struct hc_core *c)
{
	uint32_t i;

	for (i = 1; c->agains && i < c->nnodes; i++)
		if (c->nodes[i].again && may_send(c, &c->nodes[i]))
			return i;
	return HC_NONE;
}

bool hc_again_ready(const struct hc_core *c)
{
	return next_node(c) != HC_NONE;
}

/* Number `n` of homes, then parts, then tickets; false when nothing was to be said. */
static bool say(struct hc_core *c, uint32_t node, uint32_t n)
{
	if (n < c->lim.domains)
		return c->homes[n].id && hc_home_again(c, &c->homes[n], node);
	n -= c->lim.domains;
	if (n < c->lim.domains)
		return hc_part_again(c, &c->parts[n], node);
	return hc_ask_again(c, n - c->lim.domains, node);
}

/* What was never used is passed over. */
static uint32_t skip(const struct hc_core *c, uint32_t n)
{
	const uint32_t parts = c->lim.domains, asks = 2 * c->lim.domains;

	if (n >= c->home_pool.fresh && n < parts)
		n = parts;
	if (n >= parts + c->part_pool.fresh && n < asks)
		n = asks;
	return n;
}

bool hc_again_work(struct hc_core *c)
{
	const uint32_t node = next_node(c), end = 2 * c->lim.domains + c->ask_pool.fresh;
	struct hc_known_node *n;
	uint32_t i;

	if (node == HC_NONE)
		return false;
	n = &c->nodes[node];
	for (i = 0; i < SLICE; i++) {
		n->again_at = skip(c, n->again_at);
		if (n->again_at >= end) {
			if (hc_sync_home_again(c, node))
				return true; /* one more was answered */
			n->again = false;
			c->agains--;
			return true;
		}
		if (say(c, node, n->again_at++))
			return true;
	}
	return true;
}
