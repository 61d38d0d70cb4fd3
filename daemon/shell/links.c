/* SPDX-License-Identifier: Apache-2.0 */
/* The links of this node; see links.h. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "links.h"
#include "topofile.h"
#include "wire.h"

#define SHM_MBPS 20000u /* DDR4-2666: 21300 MB/s of one channel */
#define SHM_VCS  4096u  /* no queue of any hardware; a bound on the memory of one node */

struct finder {
	const struct hc_conf *conf;
	const struct hc_devices *devices;
	struct hc_link_facts *out;
	char *why;
	size_t size;
};

#define SET(field, ...) ((void)snprintf(field, sizeof(field), __VA_ARGS__))

static bool same_ends(const struct hc_link_fact *x, uint32_t a, uint32_t b)
{
	return x->a == a && x->b == b;
}

static const char *default_source(const struct finder *f)
{
	return hc_conf_is_set(&f->conf->origin[HC_OPT_virtual_channels]) ? "config" : "default";
}

/* One more link of that type and pair; NULL when there is no room. */
static struct hc_link_fact *add(struct finder *f, uint8_t type, uint32_t a, uint32_t b,
				const char *source)
{
	struct hc_link_facts *out = f->out;
	struct hc_link_fact *l;
	uint32_t i, lane = 0;

	if (out->count == HC_LINKS_MAX) {
		out->left_out++;
		return NULL;
	}
	for (i = 0; i < out->count; i++)
		lane += out->facts[i].type == type && same_ends(&out->facts[i], a, b);
	l = &out->facts[out->count++]; /* zero, so that two facts compare as bytes */
	l->type = type;
	l->a = a;
	l->b = b;
	l->lane = lane;
	l->vcs = f->conf->virtual_channels;
	l->present = true;
	SET(l->source, "%s", source);
	SET(l->mbps_source, "unknown");
	SET(l->latency_source, "unknown");
	SET(l->vcs_source, "%s", default_source(f));
	return l;
}

/* ---- shared memory ---- */

static void add_shm(struct finder *f)
{
	struct hc_link_fact *l = add(f, HC_W_link_type_SHM, HC_NONE, HC_NONE, "default");

	l->mbps = SHM_MBPS;
	l->vcs = SHM_VCS;
	SET(l->mbps_source, "default");
	SET(l->vcs_source, "default");
	SET(l->via, "memory of this node");
}

/* ---- PCI ---- */

static void add_pair(struct finder *f, uint32_t a, uint32_t b, const struct hc_pci_join *join)
{
	struct hc_link_fact *l = add(f, HC_W_link_type_PCIE, a < b ? a : b, a < b ? b : a, "sysfs");

	if (!l)
		return;
	SET(l->via, "bridge %s, %u hops", join->bridge, join->hops);
	l->mbps = join->mbps;
	if (join->mbps)
		SET(l->mbps_source, "sysfs");
}

static int add_pci(struct finder *f)
{
	const struct hc_devices *d = f->devices;
	struct hc_pci_path *paths = calloc(d->count ? d->count : 1, sizeof(*paths));
	struct hc_pci_join join;
	uint32_t i, j;

	if (!paths)
		return -ENOMEM;
	for (i = 0; i < d->count; i++)
		if (d->facts[i].pci[0] && !d->facts[i].simulated)
			hc_pci_path(f->conf->sysfs_root, d->facts[i].pci, &paths[i]);
	for (i = 0; i < d->count; i++)
		for (j = i + 1; j < d->count; j++)
			if (hc_pci_join(&paths[i], &paths[j], &join))
				add_pair(f, d->facts[i].index, d->facts[j].index, &join);
	free(paths);
	return 0;
}

/* ---- topology ---- */

/* An edge is one physical thing, whatever protocols it speaks: the first of them counts. */
static uint8_t type_of_edge(const struct hc_topo_edge *e)
{
	const uint32_t chip = 1u << HC_TOPO_HCCS | 1u << HC_TOPO_UB_CTP | 1u << HC_TOPO_UB_TP |
			      1u << HC_TOPO_UB_MEM;

	if (e->protocols & chip)
		return HC_W_link_type_HCCS;
	return e->protocols & 1u << HC_TOPO_ROCE ? HC_W_link_type_ROCE : HC_W_link_type_ETH;
}

/* Port number i of an end among those that go to other chips; "d2h" is the way to the host. */
static const struct hc_port_name *port_of(const struct hc_topo_end *end, uint32_t i)
{
	uint32_t k;

	for (k = 0; k < end->nports; k++)
		if (!end->ports[k].d2h && !i--)
			return &end->ports[k];
	return NULL;
}

static void add_edge(struct finder *f, const struct hc_topo_edge *e)
{
	const bool swap = e->a.local_id > e->b.local_id;
	const struct hc_topo_end *a = swap ? &e->b : &e->a, *b = swap ? &e->a : &e->b;
	const struct hc_port_name *p, *q;
	struct hc_link_fact *l;
	uint32_t i;

	for (i = 0; (p = port_of(a, i)) && (q = port_of(b, i)); i++) {
		l = add(f, type_of_edge(e), a->local_id, b->local_id, "topology-file");
		if (l)
			SET(l->via, "port %u/%u to %u/%u", p->die, p->port, q->die, q->port);
	}
}

static void add_topology(struct finder *f)
{
	const struct hc_topo *t = f->devices->topo;
	uint32_t i;

	for (i = 0; t && i < t->nedges; i++)
		if (t->edges[i].link_type == HC_TOPO_PEER2PEER && t->edges[i].b.present)
			add_edge(f, &t->edges[i]);
}

/* ---- sections ---- */

static uint8_t type_of_section(enum hc_conf_link_type type)
{
	switch (type) {
	case HC_CONF_type_hccs:
	case HC_CONF_type_hcclink:
	case HC_CONF_type_nvlink: return HC_W_link_type_HCCS;
	case HC_CONF_type_sio: return HC_W_link_type_SIO;
	case HC_CONF_type_pcie: return HC_W_link_type_PCIE;
	case HC_CONF_type_roce: return HC_W_link_type_ROCE;
	case HC_CONF_type_ib: return HC_W_link_type_IB;
	case HC_CONF_type_eth: return HC_W_link_type_ETH;
	case HC_CONF_type_shm: return HC_W_link_type_SHM;
	}
	return HC_W_link_type_ANY;
}

static void set_facts(struct hc_link_fact *l, const struct hc_conf_link *s)
{
	if (hc_conf_is_set(&s->origin[HC_OPT_LINK_bandwidth_mbps])) {
		l->mbps = s->bandwidth_mbps;
		SET(l->mbps_source, "config");
	}
	if (hc_conf_is_set(&s->origin[HC_OPT_LINK_latency_us])) {
		l->latency_us = s->latency_us;
		l->latency_known = true;
		SET(l->latency_source, "config");
	}
	if (hc_conf_is_set(&s->origin[HC_OPT_LINK_virtual_channels])) {
		l->vcs = s->virtual_channels;
		SET(l->vcs_source, "config");
	}
}

static int refuse(struct finder *f, const struct hc_conf_link *s, const char *what)
{
	snprintf(f->why, f->size, "%.1000s:%" PRIu32 ": [link %s %s]: %s",
		 f->conf->files[s->at.file], s->at.line, s->a, s->b, what);
	return 1;
}

/* Without a type the section means the links of the pair, if those are of one. */
static int find_type(struct finder *f, const struct hc_conf_link *s, uint32_t a, uint32_t b,
		     uint8_t *type)
{
	const struct hc_link_fact *l;
	char text[160];
	uint32_t i;

	*type = HC_W_link_type_ANY;
	for (i = 0; i < f->out->count; i++) {
		l = &f->out->facts[i];
		if (!same_ends(l, a, b) || l->type == *type)
			continue;
		if (*type != HC_W_link_type_ANY) {
			SET(text, "there are links of the types %s and %s; wanted a type",
			    hc_word_link_type(*type), hc_word_link_type(l->type));
			return refuse(f, s, text);
		}
		*type = l->type;
	}
	return *type == HC_W_link_type_ANY
		       ? refuse(f, s, "no link between the two was found; wanted a type")
		       : 0;
}

static int apply_pair(struct finder *f, const struct hc_conf_link *s, uint32_t a, uint32_t b)
{
	enum hc_conf_link_type said;
	struct hc_link_fact *l;
	bool found = false;
	uint8_t type;
	uint32_t i;
	int r;

	if (hc_conf_link_type(s, &said)) {
		type = type_of_section(said);
	} else {
		r = find_type(f, s, a, b, &type);
		if (r)
			return r;
	}
	for (i = 0; i < f->out->count; i++) {
		l = &f->out->facts[i];
		if (l->type != type || !same_ends(l, a, b))
			continue;
		set_facts(l, s);
		found = true;
	}
	if (found)
		return 0;
	l = add(f, type, a, b, "config");
	if (!l)
		return refuse(f, s, "is one link too many");
	set_facts(l, s);
	return 0;
}

static bool is_typed(const struct hc_conf_link *s)
{
	enum hc_conf_link_type type;

	return hc_conf_link_type(s, &type);
}

/* Those with a type first, so that one without means what is there with them. */
static int apply_sections(struct finder *f, bool typed)
{
	uint64_t a, b;
	uint32_t i;
	int r = 0;

	for (i = 0; !r && i < f->conf->nlinks; i++) {
		const struct hc_conf_link *s = &f->conf->links[i];

		if (is_typed(s) != typed)
			continue;
		if (hc_conf_link_is_any(s))
			set_facts(&f->out->facts[0], s);
		else if (hc_opt_number(s->a, &a) && hc_opt_number(s->b, &b)) /* else two ports */
			r = apply_pair(f, s, (uint32_t)(a < b ? a : b), (uint32_t)(a < b ? b : a));
	}
	return r;
}

/* ---- all ---- */

static int find_all(struct finder *f)
{
	int r;

	add_shm(f);
	r = add_pci(f);
	if (r)
		return r;
	add_topology(f);
	r = apply_sections(f, true);
	return r ? r : apply_sections(f, false);
}

int hc_links_find(const struct hc_conf *conf, const struct hc_devices *devices,
		  struct hc_link_facts *links, char *why, size_t size)
{
	struct finder f = {
		.conf = conf, .devices = devices, .out = links, .why = why, .size = size};
	struct hc_link_fact *fit;
	int r;

	memset(links, 0, sizeof(*links));
	why[0] = '\0';
	links->facts = calloc(HC_LINKS_MAX, sizeof(*links->facts));
	if (!links->facts)
		return -ENOMEM;
	r = find_all(&f);
	if (r) {
		hc_links_fini(links);
		return r;
	}
	fit = realloc(links->facts, links->count * sizeof(*links->facts));
	links->facts = fit ? fit : links->facts;
	return 0;
}

void hc_links_fini(struct hc_link_facts *links)
{
	free(links->facts);
	memset(links, 0, sizeof(*links));
}

const struct hc_link_fact *hc_links_get(const struct hc_link_facts *links,
					const struct hc_link_fact *like)
{
	uint32_t i;

	for (i = 0; i < links->count; i++) {
		const struct hc_link_fact *l = &links->facts[i];

		if (l->type == like->type && l->lane == like->lane &&
		    same_ends(l, like->a, like->b))
			return l;
	}
	return NULL;
}
