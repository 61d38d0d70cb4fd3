/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Domains that are made for others (way 3); see part.h.
 *
 * An agent creates the domain, gives each rank its device, and activates it; processes attach to
 * ranks later (part_attach.c). Home and part of such a domain are on the agent's node.
 */
#include "part.h"

#include "device.h"
#include "emit.h"
#include "home.h"
#include "rights.h"
#include "rng.h"
#include "session.h"
#include "user.h"

#include <stdio.h>
#include <string.h>

static uint32_t uid_of(const struct hc_core *c, const struct hc_session *s)
{
	return c->processes[s->process].uid;
}

void hc_join_create(struct hc_core *c, struct hc_session *s, uint32_t request,
		    const struct hc_m_create *m)
{
	const uint64_t key_a = hc_rng_u64(c), key_b = hc_rng_u64(c);
	uint64_t id = hc_home_draw_id(c);
	struct hc_home *h;
	struct hc_part *p;
	char text[256];
	int r;

	if (!m->nranks || m->nranks > c->lim.ranks_per_domain) {
		HC_TEXT(text, "%u ranks: wanted 1 to %u", m->nranks, c->lim.ranks_per_domain);
		hc_emit_error(c, s->id, request, HC_E_INVALID, text);
		return;
	}
	if (!c->ndevices) {
		hc_emit_error(c, s->id, request, HC_E_DEVICE_OFFLINE,
			      "this node has no device: describe them in [device N] sections or a "
			      "topology_file");
		return;
	}
	r = hc_home_make(c, id, key_a, key_b, uid_of(c, s), m->nranks, m->name, true, text,
			 sizeof(text));
	if (r) {
		hc_emit_error(c, s->id, request, r, text);
		return;
	}
	p = hc_part_open(c, key_a, key_b, uid_of(c, s), m->nranks, m->name);
	if (!p) {
		hc_home_unmake(c, id);
		/* says why not */
		r = hc_user_may(c, uid_of(c, s), HC_CHARGE_PART, text, sizeof(text));
		hc_emit_error(c, s->id, request, r, text);
		return;
	}
	hc_part_set_id(c, p, id);
	h = hc_home_by_id(c, id);
	h->priority = m->priority;
	h->weight = m->weight ? m->weight : 1;
	c->wishes[hc_home_number(c, h)] = HC_WISH_OF(m);
	hc_emit_done(c, s->id, request, id, "");
}

static struct hc_part *owned(struct hc_core *c, struct hc_session *s, uint16_t type,
			     uint32_t request, uint64_t id)
{
	struct hc_part *p = hc_part_by_id(c, id);
	char text[128];

	if (!p) {
		hc_emit_error(c, s->id, request, HC_E_NOT_FOUND, "no such domain on this node");
		return NULL;
	}
	if (!hc_right_owner(type, s->role, uid_of(c, s), p->uid)) {
		HC_TEXT(text, "the domain belongs to uid %u, this is uid %u", p->uid, uid_of(c, s));
		hc_emit_error(c, s->id, request, HC_E_PERMISSION, text);
		return NULL;
	}
	return p;
}

void hc_join_add_device(struct hc_core *c, struct hc_session *s, uint32_t request,
			const struct hc_m_add_device *m)
{
	struct hc_part *p = owned(c, s, HC_MSG_add_device, request, m->id);
	struct hc_m_arrive a = {.rank = m->rank, .device = m->device};
	const struct hc_home *h;
	const struct hc_wish *wish;
	uint32_t seat;
	char text[512];
	int r;

	if (!p)
		return;
	h = hc_home_by_id(c, p->id);
	r = HC_E_INVALID;
	if (!h || !hc_home_now(c, h)->staged)
		HC_TEXT(text, "only a created domain is given devices: the ranks of this one join");
	else if (p->state != HC_W_domain_state_FORMING || !p->id)
		HC_TEXT(text, "the domain is %s: devices are added before it is activated",
			hc_word_domain_state(p->state));
	else if (m->rank >= p->nranks)
		HC_TEXT(text, "rank %u: the domain has ranks 0 to %u", m->rank, p->nranks - 1);
	else if (hc_part_find_seat(c, p, m->rank) != HC_NONE && (r = HC_E_EXISTS))
		HC_TEXT(text, "rank %u has its device already", m->rank);
	else
		r = hc_device_check(c, m->device, m->rank, HC_NONE, false, NULL, text,
				    sizeof(text));
	seat = r ? HC_NONE : hc_part_add_seat(c, p, m->rank, m->device);
	if (!r && seat == HC_NONE) {
		r = HC_E_LIMIT;
		HC_TEXT(text, "ranks_max is reached on this node");
	}
	if (r) {
		hc_emit_error(c, s->id, request, r, text);
		return;
	}
	hc_part_take_device(c, seat, false);
	wish = &c->wishes[hc_home_number(c, h)];
	a.key_a = p->key_a;
	a.key_b = p->key_b;
	a.id = p->id;
	a.uid = p->uid;
	a.nranks = p->nranks;
	a.incarnation = c->self.incarnation;
	a.priority = h->priority;
	a.weight = h->weight;
	a.channels = wish->channels;
	a.channel_mbps = wish->mbps;
	a.channel_hold_ms = wish->hold_ms;
	a.channel_wait = wish->wait;
	hc_emit_send(c, HC_SELF_NODE, &hc_desc_arrive, &a);
	hc_emit_done(c, s->id, request, 0, "");
}

void hc_join_activate(struct hc_core *c, struct hc_session *s, uint32_t request,
		      const struct hc_m_activate *m)
{
	struct hc_part *p = owned(c, s, HC_MSG_activate, request, m->id);

	if (p)
		hc_home_activate(c, p->id, s, request, m->timeout_ms);
}
