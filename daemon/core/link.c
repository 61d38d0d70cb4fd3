/* SPDX-License-Identifier: Apache-2.0 */
/* Links of this node; see link.h. */
#include "link.h"

#include "device.h"
#include "emit.h"
#include "net.h"

#include <stdio.h>
#include <string.h>

_Static_assert(HC_END_NET == HC_ADMIT_OUT, "one number for what is outside");

/* Until the start: what an earlier daemon granted is taken back whatever the ports will say. */
#define OUT_BEFORE 1000000000u
#define OUT_VCS    4096u /* no queue of any hardware; a bound on the memory of one node */

static bool device_usable(struct hc_core *c, uint32_t index)
{
	const struct hc_device *d = hc_device_get(c, index);

	return index == HC_NONE || index == HC_END_NET ||
	       (d && d->fact.present && strcmp(d->fact.health, "offline"));
}

static bool usable(struct hc_core *c, const struct hc_link_fact *f)
{
	return f->present && device_usable(c, f->a) && device_usable(c, f->b);
}

static void tell_admission(struct hc_core *c, uint32_t link)
{
	const struct hc_link_fact *f = &c->link_facts[link];
	const struct hc_admit_link fact = {
		.a = f->a,
		.b = f->b,
		.type = f->type,
		.carries = f->type == HC_W_link_type_SHM, /* the others are the asker's to use */
		.up = usable(c, f),
		.mbps = f->mbps,
		.vcs = f->vcs};

	hc_admit_link_set(c->admit, c->now, link, &fact);
}

static bool same_link(const struct hc_link_fact *x, const struct hc_link_fact *y)
{
	return x->type == y->type && x->a == y->a && x->b == y->b && x->lane == y->lane;
}

bool hc_link_known(const struct hc_core *c, uint32_t link)
{
	struct hc_admit_use use;

	if (c->link_facts[link].present)
		return true;
	hc_admit_link_use(c->admit, link, &use);
	return use.used_vcs || use.waiting;
}

/* Its own number, else a new one, else one that nobody needs any more. HC_NONE: no room. */
static uint32_t number_of(const struct hc_core *c, const struct hc_link_fact *f)
{
	uint32_t i;

	for (i = 0; i < c->nlinks; i++)
		if (same_link(&c->link_facts[i], f))
			return i;
	if (i < c->lim.links || !f->present)
		return f->present ? i : HC_NONE;
	for (i = 0; i < c->nlinks; i++)
		if (!hc_link_known(c, i))
			return i;
	return HC_NONE;
}

void hc_link_fact(struct hc_core *c, const struct hc_link_fact *fact)
{
	const uint32_t n = number_of(c, fact);

	hc_assert(fact->a == HC_NONE ? fact->b == HC_NONE : fact->a < fact->b);
	if (n == HC_NONE) {
		if (fact->present)
			hc_emit_log(c, HC_LOG_WARN, 0, 0, HC_NONE,
				    "a link is left out: the limit of links is reached");
		return;
	}
	if (n == c->nlinks)
		c->nlinks++;
	c->link_facts[n] = *fact;
	tell_admission(c, n);
}

void hc_link_device(struct hc_core *c, uint32_t index)
{
	uint32_t i;

	for (i = 0; i < c->nlinks; i++)
		if (c->link_facts[i].a == index || c->link_facts[i].b == index)
			tell_admission(c, i);
}

void hc_link_ports(struct hc_core *c)
{
	struct hc_link_fact f = {.type = HC_W_link_type_ETH,
				 .a = HC_END_NET,
				 .b = HC_NONE,
				 .vcs = OUT_VCS,
				 .present = true,
				 .source = "default",
				 .mbps_source = "unknown",
				 .latency_source = "unknown",
				 .vcs_source = "default"};
	uint32_t i;

	if (!c->lim.peers || !c->self.peers)
		return;
	f.mbps = hc_port_speed(c, f.via, sizeof(f.via));
	if (!c->started)
		f.mbps = OUT_BEFORE;
	else if (f.mbps)
		HC_TEXT(f.mbps_source, "netlink");
	for (i = 0; i < c->nlinks; i++)
		if (same_link(&c->link_facts[i], &f) && c->link_facts[i].mbps == f.mbps &&
		    !strcmp(c->link_facts[i].via, f.via))
			return;
	hc_link_fact(c, &f);
}

const char *hc_link_name(const struct hc_core *c, uint32_t link, char *buf, size_t size)
{
	const struct hc_link_fact *f;
	int n;

	hc_assert(link < c->nlinks);
	f = &c->link_facts[link];
	n = snprintf(buf, size, "%s", hc_word_link_type(f->type));
	if (f->a == HC_END_NET)
		n += snprintf(buf + n, size - (size_t)n, ":out");
	else if (f->a != HC_NONE)
		n += f->b == HC_END_NET ? snprintf(buf + n, size - (size_t)n, ":%u-out", f->a)
					: snprintf(buf + n, size - (size_t)n, ":%u-%u", f->a, f->b);
	if (f->lane)
		snprintf(buf + n, size - (size_t)n, ".%u", f->lane);
	return buf;
}

static bool is_named(const struct hc_core *c, uint32_t link, struct hc_str name)
{
	char buf[HC_LINK_NAME];

	return c->link_facts[link].present &&
	       hc_str_eq(hc_str(hc_link_name(c, link, buf, sizeof(buf))), name);
}

uint32_t hc_link_named(const struct hc_core *c, struct hc_str name, uint32_t hint)
{
	uint32_t i;

	if (hint < c->nlinks && is_named(c, hint, name))
		return hint;
	for (i = 0; i < c->nlinks; i++)
		if (is_named(c, i, name))
			return i;
	return HC_NONE;
}

const char *hc_link_state(struct hc_core *c, uint32_t link)
{
	const struct hc_link_fact *f = &c->link_facts[link];

	if (!f->present)
		return "gone";
	return usable(c, f) ? "up" : "down";
}
