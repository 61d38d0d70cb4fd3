/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Links, channels and who waits for them, as rows of views. A channel that is not granted has no
 * row; a request has one while it waits, with its class of now, its place, the links it waits for,
 * and the estimate that its owner was told. What is not known of a link is no 0.
 */
#include "view.h"

#include "channel.h"
#include "emit.h"
#include "link.h"
#include "part.h"

#include <stdio.h>
#include <string.h>

#define LINKS_NAMED 8u /* of one request */

static void link_end(uint32_t device, char text[16])
{
	if (device == HC_NONE)
		snprintf(text, 16, "any");
	else if (device == HC_END_NET)
		snprintf(text, 16, "out");
	else
		snprintf(text, 16, "%u", device);
}

static bool knows_latency(const struct hc_link_fact *f)
{
	return f->latency_source[0] ? strcmp(f->latency_source, "unknown") != 0 : f->latency_us;
}

static bool link_row(struct hc_view_page *g, uint32_t n)
{
	const struct hc_link_fact *f = &g->c->link_facts[n];
	char name[HC_LINK_NAME], a[16], b[16];
	struct hc_admit_use u;
	struct hc_m_view_link r = {.number = n,
				   .type = hc_str(hc_word_link_type(f->type)),
				   .state = hc_str(hc_link_state(g->c, n)),
				   .bandwidth_mbps = f->mbps,
				   .vcs = f->vcs,
				   .latency_us = knows_latency(f) ? f->latency_us : UINT32_MAX,
				   .via = hc_str(f->via),
				   .source = hc_str(f->source),
				   .bandwidth_source = hc_str(f->mbps_source),
				   .latency_source = hc_str(f->latency_source),
				   .vcs_source = hc_str(f->vcs_source)};

	hc_admit_link_use(g->c->admit, n, &u);
	r.limit_mbps = u.limit_mbps;
	r.used_ab_mbps = u.used_mbps[0];
	r.used_ba_mbps = u.used_mbps[1];
	r.vcs_used = u.used_vcs;
	r.waiting = u.waiting;
	r.grants = u.grants;
	/* from a device outwards, also where any device is meant */
	link_end(f->b == HC_NONE ? HC_NONE : f->a, a);
	link_end(f->b == HC_NONE ? f->a : f->b, b);
	r.a = hc_str(a);
	r.b = hc_str(b);
	r.name = hc_str(hc_link_name(g->c, n, name, sizeof(name)));
	return (g->q->name.len && !hc_str_eq(r.name, g->q->name)) || hc_view_put(g, &r);
}

uint64_t hc_channelview_links(struct hc_view_page *g, uint64_t at)
{
	for (; at < g->c->nlinks; at++)
		if (hc_link_known(g->c, (uint32_t)at) && !link_row(g, (uint32_t)at))
			return at + 1;
	return 0;
}

static uint32_t pid_of(const struct hc_core *c, const struct hc_part *p, uint32_t rank)
{
	const uint32_t seat = p ? hc_part_find_seat(c, p, rank) : HC_NONE;

	return seat == HC_NONE || c->seats[seat].process == HC_NONE
		       ? 0
		       : c->processes[c->seats[seat].process].pid;
}

uint64_t hc_channelview_channels(struct hc_view_page *g, uint64_t at)
{
	struct hc_core *c = g->c;
	char link[HC_NAME_MAX + 1];

	for (; at < c->chan->pool.fresh; at++) {
		const struct hc_channel *ch = &c->chan->at[at];
		const struct hc_part *p = hc_part_by_id(c, ch->domain);
		const struct hc_admit_link *fact = hc_admit_link_fact(c->admit, ch->link);
		struct hc_m_view_channel r = {
			.id = ch->id,
			.domain = ch->domain,
			.rank = ch->rank[0],
			.peer = ch->rank[1],
			.pid = pid_of(c, p, ch->rank[0]),
			.peer_pid = pid_of(c, p, ch->rank[1]),
			.mbps = ch->mbps[0],
			.back_mbps = ch->mbps[1],
			.vc = ch->vc,
			.priority = ch->priority,
			.age_ms = (c->now - ch->since) / 1000000u,
			.hold_ms = ch->hold_ms,
			.collected = (uint8_t)((ch->ends >> 1 & 1) + (ch->ends >> 3 & 1))};

		if (ch->state != CHANNEL_GRANTED || (g->q->id && g->q->id != ch->domain))
			continue;
		r.link = hc_str(hc_channel_link_name(c, ch->link, link, sizeof(link)));
		r.type = hc_str(fact ? hc_word_link_type(fact->type) : "");
		r.state = hc_str(hc_word_channel_state(HC_W_channel_state_OK));
		if (!hc_view_put(g, &r))
			return at + 1;
	}
	return 0;
}

/* A request of the admission that this want waits for. */
static uint32_t awaited(const struct hc_core *c, const struct hc_want *w)
{
	const struct hc_channel *ch;
	uint32_t i, ref;

	if (w->state == WANT_TICKET)
		return w->admit;
	for (i = 0; i < w->count; i++) {
		ref = c->chan->refs[w->refs + i];
		ch = ref == HC_NONE ? NULL : &c->chan->at[REF_CHANNEL(ref)];
		if (ch && ch->state == CHANNEL_WAITING && ch->request != HC_NONE)
			return ch->request;
	}
	return HC_NONE;
}

static uint8_t class_now(const struct hc_core *c, const struct hc_want *w)
{
	const uint64_t aged = c->set.aging_ns ? (c->now - w->since) / c->set.aging_ns : 0;

	return (uint8_t)(w->priority + aged < 7 ? w->priority + aged : 7);
}

/* The links that a request waits for, each once; what does not fit is "...". */
static void put_links(struct hc_core *c, uint32_t request, char *text, size_t bytes)
{
	const uint32_t n = hc_admit_pieces(c->admit, request);
	uint32_t seen[LINKS_NAMED], nseen = 0, i, k, link;
	char name[HC_NAME_MAX + 1];
	size_t at = 0;

	text[0] = '\0';
	for (i = 0; i < n; i++) {
		link = hc_admit_piece_first(c->admit, request, i);
		for (k = 0; k < nseen && seen[k] != link; k++)
			;
		if (link == HC_NONE || k < nseen)
			continue;
		hc_channel_link_name(c, link, name, sizeof(name));
		if (nseen == LINKS_NAMED || at + strlen(name) + sizeof(",,...") > bytes) {
			snprintf(text + at, bytes - at, ",...");
			return;
		}
		at += (size_t)snprintf(text + at, bytes - at, "%s%s", nseen ? "," : "", name);
		seen[nseen++] = link;
	}
}

uint64_t hc_channelview_waiting(struct hc_view_page *g, uint64_t at)
{
	struct hc_core *c = g->c;
	char estimate[24], links[HC_NAME_MAX + 1];

	for (; at < c->chan->want_pool.fresh; at++) {
		const struct hc_want *w = &c->chan->wants[at];
		const bool ticket = w->state == WANT_TICKET;
		struct hc_m_view_waiting r = {.domain = w->domain,
					      .rank = w->rank,
					      .pid = w->pid,
					      .uid = w->uid,
					      .priority = class_now(c, w),
					      .pieces = ticket ? w->lost_rank : w->count,
					      .mbps = w->mbps,
					      .waited_ms = (c->now - w->since) / 1000000u};
		const uint32_t request =
			ticket || w->state == WANT_WAITING ? awaited(c, w) : HC_NONE;
		uint64_t ns;

		if (request == HC_NONE || (g->q->id && g->q->id != w->domain))
			continue;
		hc_admit_outlook(c->admit, c->now, request, &r.place, &ns);
		HC_TEXT(estimate, "unknown");
		if (ns != HC_ADMIT_HINT_NONE)
			HC_TEXT(estimate, "%llu", (unsigned long long)(ns / 1000000u));
		r.estimate_ms = hc_str(estimate);
		put_links(c, request, links, sizeof(links));
		r.link = hc_str(links);
		r.kind = hc_str(ticket ? "ticket" : w->kind == WANT_DOMAIN ? "domain" : "wait");
		if (!hc_view_put(g, &r))
			return at + 1;
	}
	return 0;
}
