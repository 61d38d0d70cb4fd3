/* SPDX-License-Identifier: Apache-2.0 */
/* The devices of this node; see devices.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "devices.h"
#include "topofile.h"

struct finder {
	const struct hc_conf *conf;
	struct hc_device_fact *facts;
	uint32_t count;
	struct hc_topo *topo;
	char *why;
	size_t size;
};

#define SET(field, ...) ((void)snprintf(field, sizeof(field), __VA_ARGS__))

static struct hc_device_fact *find_index(struct finder *f, uint32_t index)
{
	uint32_t i;

	for (i = 0; i < f->count; i++)
		if (f->facts[i].index == index)
			return &f->facts[i];
	return NULL;
}

static const char *origin_text(const struct finder *f, const char *option,
			       const struct hc_conf_origin *o, char *buf, size_t size)
{
	return hc_conf_origin_text(f->conf, hc_opt_find(HC_CONF_TOP, option), o, buf, size);
}

/* ---- sections ---- */

static const struct hc_conf_device *section_of_pci(const struct hc_conf *c, const char *pci)
{
	uint32_t i;

	for (i = 0; i < c->ndevices; i++)
		if (!strcmp(c->devices[i].pci, pci))
			return &c->devices[i];
	return NULL;
}

/* Discovered devices get the numbers of their sections first; the others fill the gaps. */
static void number_discovered(struct finder *f)
{
	bool taken[HC_DEVICES_MAX] = {false};
	const struct hc_conf_device *s;
	uint32_t i, next = 0;

	for (i = 0; i < f->count; i++) {
		s = section_of_pci(f->conf, f->facts[i].pci);
		f->facts[i].index = s ? s->index : HC_NONE;
		if (s && s->index < HC_DEVICES_MAX)
			taken[s->index] = true;
	}
	for (i = 0; i < f->count; i++) {
		if (f->facts[i].index != HC_NONE)
			continue;
		while (next < HC_DEVICES_MAX && taken[next])
			next++;
		f->facts[i].index = next++;
	}
}

static void set_address(struct hc_device_fact *d, const struct hc_conf_device *s)
{
	struct hc_conf_endpoint e;
	const char *cursor = s->address;
	char item[128];

	/* the first of the list is the one that ranks are bound by */
	if (!hc_conf_item(&cursor, item, sizeof(item)) || !hc_conf_endpoint(item, &e))
		return;
	memset(&d->addr, 0, sizeof(d->addr));
	d->addr.family = e.family;
	memcpy(d->addr.bytes, e.addr, e.family == 4 ? 4 : 16);
	SET(d->addr_source, "config");
}

static bool is_given(const struct hc_conf_device *s, enum hc_opt_device option)
{
	return s->origin[option].from != HC_CONF_FROM_DEFAULT;
}

static const char *kind_word(uint32_t kind)
{
	switch ((enum hc_conf_device_kind)kind) {
	case HC_CONF_kind_cpu: return "cpu";
	case HC_CONF_kind_gpu: return "gpu";
	case HC_CONF_kind_npu: return "npu";
	}
	return "?";
}

static int apply_section(struct finder *f, const struct hc_conf_device *s)
{
	struct hc_device_fact *d = find_index(f, s->index);

	if (!d) {
		if (f->count == HC_DEVICES_MAX || s->index >= HC_DEVICES_MAX) {
			snprintf(f->why, f->size, "[device %u]: a node has devices 0..%u", s->index,
				 HC_DEVICES_MAX - 1);
			return 1;
		}
		d = &f->facts[f->count++];
		memset(d, 0, sizeof(*d));
		d->index = s->index;
		d->numa = -1;
		d->present = true;
		SET(d->kind, "cpu");
		SET(d->health, "unknown");
		SET(d->source, "config");
	}
	if (is_given(s, HC_OPT_DEVICE_kind))
		SET(d->kind, "%s", kind_word(s->kind));
	if (is_given(s, HC_OPT_DEVICE_pci))
		SET(d->pci, "%s", s->pci);
	if (is_given(s, HC_OPT_DEVICE_numa))
		d->numa = (int32_t)s->numa;
	if (is_given(s, HC_OPT_DEVICE_port))
		SET(d->port, "%.31s", s->port);
	if (is_given(s, HC_OPT_DEVICE_address))
		set_address(d, s);
	if (s->simulated) {
		d->simulated = true;
		SET(d->health, "ok"); /* nothing that could fail */
	}
	return 0;
}

/* ---- topology ---- */

static int check_count(struct finder *f, const struct hc_topo *t)
{
	char where[HC_CONF_ORIGIN_MAX];

	if (!f->count || f->count == t->npeers)
		return 0;
	snprintf(f->why, f->size,
		 "topology file %s has %u peers, this node has %u devices; topology_file was set "
		 "by %s",
		 f->conf->topology_file, t->npeers, f->count,
		 origin_text(f, "topology_file", &f->conf->origin[HC_OPT_topology_file], where,
			     sizeof(where)));
	return 1;
}

static void add_peers(struct finder *f, const struct hc_topo *t)
{
	struct hc_device_fact *d;
	uint32_t i;

	for (i = 0; i < t->npeers && f->count < HC_DEVICES_MAX; i++) {
		if (t->peers[i] >= HC_DEVICES_MAX || find_index(f, t->peers[i]))
			continue;
		d = &f->facts[f->count++];
		memset(d, 0, sizeof(*d));
		d->index = t->peers[i];
		d->numa = -1;
		d->present = true;
		SET(d->kind, "npu"); /* the file's format is that of NPU servers */
		SET(d->health, "unknown");
		SET(d->source, "topology-file");
	}
}

static int read_topology(const struct finder *f, struct hc_topo **topo)
{
	char where[HC_CONF_ORIGIN_MAX], line[1024];
	struct hc_verdict *v = calloc(1, sizeof(*v));
	struct hc_jsontext text;
	int r = -ENOMEM;

	if (!v)
		return r;
	hc_verdict_init(v);
	r = hc_jsontext_load(f->conf->topology_file, f->conf->table_bytes_max, &text, v);
	if (!r) {
		r = hc_topofile_read(&text, topo, v);
		hc_jsontext_fini(&text);
	}
	if (r && r != -ENOMEM) {
		hc_verdict_line(v, f->conf->topology_file, line, sizeof(line));
		snprintf(f->why, f->size, "%s (topology_file was set by %s)", line,
			 origin_text(f, "topology_file", &f->conf->origin[HC_OPT_topology_file],
				     where, sizeof(where)));
		r = 1;
	}
	free(v);
	return r;
}

static int apply_topology(struct finder *f)
{
	int r;

	if (!f->conf->topology_file[0])
		return 0;
	r = read_topology(f, &f->topo);
	if (!r)
		r = check_count(f, f->topo);
	if (!r)
		add_peers(f, f->topo);
	return r;
}

/* ---- all ---- */

static int by_index(const void *a, const void *b)
{
	const struct hc_device_fact *x = a, *y = b;

	return x->index < y->index ? -1 : x->index > y->index;
}

static int find_all(struct finder *f)
{
	uint32_t i;
	int r = hc_pci_walk(f->conf->sysfs_root, f->facts, HC_DEVICES_MAX);

	if (r < 0)
		return r;
	f->count = (uint32_t)r;
	number_discovered(f);
	for (i = 0; i < f->conf->ndevices; i++) {
		r = apply_section(f, &f->conf->devices[i]);
		if (r)
			return r;
	}
	return apply_topology(f);
}

int hc_devices_find(const struct hc_conf *conf, struct hc_devices *devices, char *why, size_t size)
{
	struct finder f = {.conf = conf, .why = why, .size = size};
	uint32_t i;
	int r;

	memset(devices, 0, sizeof(*devices));
	why[0] = '\0';
	f.facts = calloc(HC_DEVICES_MAX, sizeof(*f.facts));
	if (!f.facts)
		return -ENOMEM;
	r = find_all(&f);
	if (r || !f.count) {
		hc_topofile_free(f.topo);
		free(f.facts);
		return r;
	}
	devices->topo = f.topo;
	qsort(f.facts, f.count, sizeof(*f.facts), by_index);
	devices->facts = realloc(f.facts, f.count * sizeof(*f.facts));
	if (!devices->facts)
		devices->facts = f.facts;
	devices->count = f.count;
	for (i = 0; i < f.count; i++)
		devices->simulated += devices->facts[i].simulated;
	return 0;
}

void hc_devices_fini(struct hc_devices *devices)
{
	hc_topofile_free(devices->topo);
	free(devices->facts);
	memset(devices, 0, sizeof(*devices));
}

const struct hc_device_fact *hc_devices_get(const struct hc_devices *devices, uint32_t index)
{
	uint32_t i;

	for (i = 0; i < devices->count; i++)
		if (devices->facts[i].index == index)
			return &devices->facts[i];
	return NULL;
}
