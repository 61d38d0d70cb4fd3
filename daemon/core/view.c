/* SPDX-License-Identifier: Apache-2.0 */
/* Pages of views, and the rows of clients and devices; see view.h. */
#include "view.h"

#include "channel.h"
#include "device.h"
#include "emit.h"
#include "net.h"
#include "session.h"

#include <stdio.h>
#include <string.h>

#define PAGE_BYTES 48000u

bool hc_view_put(struct hc_view_page *g, const void *row)
{
	size_t len;

	if (g->q->limit && g->rows == g->q->limit)
		g->full = true;
	if (!g->full &&
	    hc_encode(g->d, HC_PROTO_MAX, row, g->c->scratch + g->used, PAGE_BYTES - g->used, &len))
		g->full = true;
	if (g->full)
		return false;
	g->used += len;
	g->rows++;
	return true;
}

bool hc_view_wants(const struct hc_view_page *g, uint64_t id, const char *name)
{
	if (g->q->id && g->q->id != id)
		return false;
	return !g->q->name.len || hc_str_eq(hc_str(name), g->q->name);
}

static uint64_t clients(struct hc_view_page *g, uint64_t at)
{
	struct hc_core *c = g->c;

	for (; at < c->lim.sessions; at++) {
		const struct hc_session *s = &c->sessions[at];
		struct hc_m_view_client r = {.session = s->id};

		if (!s->id)
			continue;
		r.pid = c->processes[s->process].pid;
		r.uid = c->processes[s->process].uid;
		r.role = hc_str(hc_word_role(s->role));
		r.build = hc_str(s->build);
		r.job = hc_str(s->job);
		r.seats = s->seats;
		r.requests = s->requests;
		r.events_lost = s->events_lost;
		if (!hc_view_put(g, &r))
			return at + 1;
	}
	return 0;
}

static uint64_t devices(struct hc_view_page *g, uint64_t at)
{
	struct hc_core *c = g->c;
	char addr[64];

	for (; at < c->ndevices; at++) {
		const struct hc_device *d = &c->devices[at];
		struct hc_m_view_device r = {.index = d->fact.index,
					     .kind = hc_str(d->fact.kind),
					     .model = hc_str(d->fact.model),
					     .pci = hc_str(d->fact.pci),
					     .numa = d->fact.numa,
					     .port = hc_str(d->fact.port),
					     .health = hc_str(d->fact.health),
					     .simulated = d->fact.simulated,
					     .source = hc_str(d->fact.source),
					     .address_source = hc_str(d->fact.addr_source),
					     .domains = d->users};

		hc_addr_text(&d->fact.addr, addr);
		r.address = hc_str(addr);
		if (d->users && d->holder != HC_NONE)
			r.holder = c->processes[d->holder].pid;
		if (d->fact.present && !hc_view_put(g, &r))
			return at + 1;
	}
	return 0;
}

static uint64_t snapshot_of(const struct hc_core *c, uint32_t view)
{
	switch (view) {
	case HC_VIEW_domain: return 1 + c->domain_changes;
	case HC_VIEW_member: return 1 + c->domain_changes + c->member_changes;
	case HC_VIEW_client: return 1 + c->session_changes;
	case HC_VIEW_channel: return 1 + c->chan->changes;
	case HC_VIEW_waiting: return 1 + c->chan->changes;
	case HC_VIEW_node: return 1 + c->net->node_changes;
	case HC_VIEW_path: return 1 + c->net->path_changes;
	case HC_VIEW_port: return 1 + c->net->port_changes;
	}
	return 1;
}

void hc_view_query(struct hc_core *c, struct hc_session *s, uint32_t request,
		   const struct hc_m_query *m)
{
	struct hc_view_page g = {.c = c, .q = m, .d = hc_desc_view(m->view)};
	struct hc_m_query_r r = {.view = m->view, .snapshot = snapshot_of(c, m->view)};
	uint64_t from = m->cursor ? m->cursor - 1 : 0;

	if (m->cursor && m->snapshot && m->snapshot != r.snapshot) {
		hc_emit_error(c, s->id, request, HC_E_STALE, "the list changed while it was read");
		return;
	}
	switch (m->view) {
	case HC_VIEW_domain: r.cursor = hc_domainview_domains(&g, from); break;
	case HC_VIEW_member: r.cursor = hc_domainview_members(&g, from); break;
	case HC_VIEW_client: r.cursor = clients(&g, from); break;
	case HC_VIEW_device: r.cursor = devices(&g, from); break;
	case HC_VIEW_link: r.cursor = hc_channelview_links(&g, from); break;
	case HC_VIEW_channel: r.cursor = hc_channelview_channels(&g, from); break;
	case HC_VIEW_waiting: r.cursor = hc_channelview_waiting(&g, from); break;
	case HC_VIEW_node: r.cursor = hc_netview_nodes(&g, from); break;
	case HC_VIEW_path: r.cursor = hc_netview_paths(&g, from); break;
	case HC_VIEW_port: r.cursor = hc_netview_ports(&g, from); break;
	default:
		hc_emit_error(c, s->id, request, HC_E_NOT_FOUND, "there is no view of that number");
		return;
	}
	r.nrows = g.rows;
	r.rows = (struct hc_str){(const char *)c->scratch, (uint32_t)g.used};
	if (m->limit && g.rows == m->limit)
		r.cursor = 0;
	hc_emit_reply(c, s->id, request, &hc_desc_query_r, &r);
}
