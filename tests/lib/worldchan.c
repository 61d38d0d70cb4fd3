/* SPDX-License-Identifier: Apache-2.0 */
/* Links and channels of a world: what simulated clients ask, and what they are answered. */
#include "worldimp.h"

#include <string.h>

void world_tell_link(struct world *w, uint32_t node, const struct hc_link_fact *fact)
{
	struct hc_event ev = {.kind = HC_EV_LINK_FACT, .u.link = fact};

	world_event(w, node, &ev);
}

void world_link(struct world *w, uint32_t node, const struct hc_link_fact *fact)
{
	uint32_t i;

	for (i = 0; i < w->nlinks[node]; i++)
		if (w->links[node][i].type == fact->type && w->links[node][i].a == fact->a &&
		    w->links[node][i].b == fact->b && w->links[node][i].lane == fact->lane)
			break;
	if (i < WORLD_LINKS)
		w->links[node][i] = *fact;
	if (i == w->nlinks[node] && i < WORLD_LINKS)
		w->nlinks[node]++;
	world_tell_link(w, node, fact);
	world_settle(w);
}

uint32_t world_acquire(struct world *w, struct world_client *cl, uint64_t id, uint32_t rank,
		       const struct world_piece *pieces, uint32_t n, bool wait, uint32_t timeout_ms,
		       uint32_t hold_ms)
{
	struct hc_m_channel_want m = {.id = id,
				      .epoch = 1,
				      .rank = rank,
				      .wait = wait,
				      .timeout_ms = timeout_ms,
				      .hold_ms = hold_ms};
	static uint8_t bytes[32768];
	uint32_t i;

	for (i = 0; i < n; i++) {
		struct hc_m_want_piece p = {.peer = pieces[i].peer,
					    .mbps = pieces[i].mbps,
					    .back_mbps = pieces[i].back_mbps,
					    .path_type = pieces[i].type,
					    .flags = pieces[i].flags,
					    .buffer_bytes = pieces[i].buffer};

		world_want(w, !hc_arr_put(&m.pieces, bytes, sizeof(bytes), &hc_desc_want_piece,
					  HC_PROTO_MAX, &p));
	}
	return world_ask(w, cl, "channels", &hc_desc_channel_want, &m);
}

uint32_t world_open(struct world *w, struct world_client *cl, uint64_t channel, uint32_t rank)
{
	struct hc_m_channel_open m = {.channel = channel, .rank = rank};

	return world_ask(w, cl, "open", &hc_desc_channel_open, &m);
}

uint32_t world_release(struct world *w, struct world_client *cl, uint64_t channel, uint32_t rank)
{
	struct hc_m_channel_release m = {.channel = channel, .rank = rank};

	return world_ask(w, cl, "release", &hc_desc_channel_release, &m);
}

void world_got_grants(struct world *w, struct world_client *cl, const struct hc_frame *f,
		      const char *node, const char *label)
{
	struct hc_m_channel_want_r m;
	struct hc_m_channel_grant g;
	uint32_t n = 0;

	world_want(w, !hc_decode(&hc_desc_channel_want_r, HC_PROTO_MAX, f->body, f->body_len, &m));
	world_want(w, m.grants.count > 0);
	while (hc_arr_next(&m.grants, &hc_desc_channel_grant, HC_PROTO_MAX, &g)) {
		world_want(w, g.channel && g.slot < WORLD_REGISTERS && g.side < 2);
		world_want(w, w->registers[cl->node][g.slot].id == g.channel &&
				      "the register is written before the answer");
		if (n < WORLD_GRANTS)
			cl->grants[n] = (struct world_grant){.channel = g.channel,
							     .latency_us = g.latency_us,
							     .slot = g.slot,
							     .peer = g.peer,
							     .mbps = g.mbps,
							     .back_mbps = g.back_mbps,
							     .vc = g.vc,
							     .buffer = g.buffer_bytes,
							     .side = g.side,
							     .type = g.path_type,
							     .carries = g.carries};
		n++;
	}
	cl->ngrants = n;
	world_line(w, SHOW_REPLIES, "%s %u %s: %u granted", node, cl->pid, label, n);
}

void world_got_refused(struct world *w, struct world_client *cl, const struct hc_frame *f,
		       const char *node, const char *label)
{
	struct hc_m_channel_refused m;

	world_want(w, !hc_decode(&hc_desc_channel_refused, HC_PROTO_MAX, f->body, f->body_len, &m));
	cl->code = -f->head.status;
	cl->retry_ms = m.retry_after_ms;
	cl->ngrants = 0;
	hc_str_copy(m.text, cl->text, sizeof(cl->text));
	if (m.retry_after_ms == HC_NONE)
		world_line(w, SHOW_REPLIES, "%s %u %s: refused AGAIN (unknown): %s", node, cl->pid,
			   label, cl->text);
	else
		world_line(w, SHOW_REPLIES, "%s %u %s: refused AGAIN (in %u ms): %s", node, cl->pid,
			   label, m.retry_after_ms, cl->text);
}

void world_got_open(struct world *w, struct world_client *cl, const struct hc_frame *f,
		    const struct hc_action *a, const char *node, const char *label)
{
	struct hc_m_channel_open_r m;

	world_want(w, !hc_decode(&hc_desc_channel_open_r, HC_PROTO_MAX, f->body, f->body_len, &m));
	cl->ring_bytes = m.bytes;
	cl->side = m.side;
	cl->rings = a->u.reply.grant == HC_GRANT_RINGS;
	cl->last = a->u.reply.last;
	world_want(w, cl->rings == (m.bytes != 0) && (!cl->rings || a->u.reply.bytes == m.bytes));
	world_line(w, SHOW_REPLIES, "%s %u %s: side %u%s", node, cl->pid, label, m.side,
		   cl->rings ? ", with rings" : "");
}
