/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reader and rules of topology files; see topofile.h. Every message about an edge begins with
 * its number, since edges have no other name.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "topofile.h"

/* One use of a physical port, for the rule that it has only one. */
struct use {
	uint32_t device, edge, index; /* index within the edge's list */
	bool far;                     /* local_b_ports */
	struct hc_port_name port;
};

struct topo {
	struct hc_doc doc;
	struct hc_topo *out;
	bool peer[HC_TOPO_PEERS_MAX];
	struct hc_port_name *ports; /* of all edges, in file order */
	size_t nports, ports_cap;
	struct use *uses;
	size_t nuses, uses_cap;
};

static const char *const protocols[] = {
#define Y(sym, text) text,
	HC_TOPO_PROTOCOLS(Y)
#undef Y
		NULL,
};
static const char protocol_list[] = "UB_CTP, UB_TP, ROCE, HCCS, TCP, UB_MEM or UBOE";

const char *hc_topo_protocol_name(enum hc_topo_protocol p)
{
	return p < HC_TOPO_PROTOCOL_COUNT ? protocols[p] : "?";
}

/* ---- the top ---- */

static int take_version(struct topo *t)
{
	const struct hc_at top = {0};
	const char *text;
	int r = hc_get_text(&t->doc, &top, t->doc.root, "version", HC_F_REQUIRED, SIZE_MAX, &text);

	if (r || !strcmp(text, "2.0"))
		return r;
	return hc_doc_fail(&t->doc, &top, "version", HC_V_BAD_VERSION, text, "2.0",
			   "version of the topology is \"%s\"; the version supported is 2.0",
			   HC_CLIP(text));
}

/* A list and the field that counts it. */
static int take_counted(struct topo *t, const char *list_name, const char *count_name, uint32_t min,
			uint32_t max, const json_t **list)
{
	const struct hc_at top = {0};
	uint32_t count = 0;
	char found[16], wanted[48];
	int r = hc_get_list(&t->doc, &top, t->doc.root, list_name,
			    HC_F_REQUIRED | (min ? HC_F_FILLED : 0), max, list);

	if (!r)
		r = hc_get_number(&t->doc, &top, t->doc.root, count_name, HC_F_REQUIRED, min, max,
				  &count);
	if (r || count == json_array_size(*list))
		return r;
	snprintf(found, sizeof(found), "%u", count);
	snprintf(wanted, sizeof(wanted), "%zu, the length of %s", json_array_size(*list),
		 list_name);
	return hc_doc_fail(&t->doc, &top, count_name, HC_V_COUNT_MISMATCH, found, wanted,
			   "%s and the length of %s differ: %u and %zu", count_name, list_name,
			   count, json_array_size(*list));
}

static int take_peer(struct topo *t, const json_t *obj, size_t place)
{
	struct hc_at at = {.noun = "peer"};
	uint32_t id = 0;
	char number[16];
	int r;

	at = hc_at_in(&at, "peer_list", place);
	r = hc_want_object(&t->doc, &at, obj);
	if (!r)
		r = hc_get_number(&t->doc, &at, obj, "local_id", HC_F_REQUIRED, 0,
				  HC_TOPO_PEERS_MAX - 1, &id);
	if (r)
		return r;
	snprintf(number, sizeof(number), "%u", id);
	if (t->peer[id])
		return hc_doc_fail(&t->doc, &at, "local_id", HC_V_DUPLICATE_DEVICE, number,
				   "each device once", "device %s is listed twice", number);
	t->peer[id] = true;
	t->out->peers[t->out->npeers++] = id;
	return 0;
}

/* ---- edges ---- */

static int take_protocols(struct topo *t, const struct hc_at *at, const json_t *obj,
			  struct hc_topo_edge *e)
{
	const json_t *list, *one;
	struct hc_clip c;
	struct hc_at in;
	size_t i, k;
	int r = hc_get_list(&t->doc, at, obj, "protocols", HC_F_REQUIRED | HC_F_FILLED, 64, &list);

	for (i = 0; !r && i < json_array_size(list); i++) {
		one = json_array_get(list, i);
		in = hc_at_in(at, "protocols", i);
		if (!json_is_string(one))
			return hc_doc_fail(&t->doc, &in, NULL, HC_V_WRONG_TYPE,
					   hc_value_text(one, &c), protocol_list,
					   "a protocol is %s; a text is wanted",
					   hc_value_text(one, &c));
		for (k = 0; protocols[k] && strcmp(protocols[k], json_string_value(one)); k++)
			;
		if (!protocols[k])
			return hc_doc_fail(&t->doc, &in, NULL, HC_V_BAD_PROTOCOL,
					   json_string_value(one), protocol_list,
					   "protocol \"%s\" is not known; wanted: %s",
					   HC_CLIP(json_string_value(one)), protocol_list);
		e->protocols |= 1u << k;
	}
	return r;
}

static int add_ports(struct topo *t, const json_t *list, const struct use *first,
		     struct hc_topo_end *end)
{
	struct hc_port_name port;
	struct use *u;
	size_t i, n = json_array_size(list);

	if (hc_file_grow((void **)&t->ports, &t->ports_cap, t->nports + n, sizeof(*t->ports)) < 0 ||
	    hc_file_grow((void **)&t->uses, &t->uses_cap, t->nuses + n, sizeof(*t->uses)) < 0)
		return -ENOMEM;
	for (i = 0; i < n; i++) {
		hc_port_parse(json_string_value(json_array_get(list, i)), &port);
		t->ports[t->nports++] = port;
		if (port.d2h)
			continue;
		u = &t->uses[t->nuses++];
		*u = *first;
		u->index = (uint32_t)i;
		u->port = port;
	}
	end->nports = (uint32_t)n;
	return 0;
}

static int take_end(struct topo *t, const struct hc_at *at, const json_t *obj, bool far,
		    bool required, struct hc_topo_end *end)
{
	const char *id_name = far ? "local_b" : "local_a";
	const char *ports_name = far ? "local_b_ports" : "local_a_ports";
	struct use use = {.edge = at->step[0].index, .far = far};
	const json_t *list;
	struct hc_clip c;
	int r;

	if (!required && !json_object_get(obj, id_name))
		return 0;
	r = hc_get_number(&t->doc, at, obj, id_name, HC_F_REQUIRED, 0, UINT32_MAX, &end->local_id);
	if (r)
		return r;
	if (end->local_id >= HC_TOPO_PEERS_MAX || !t->peer[end->local_id])
		return hc_doc_fail(
			&t->doc, at, id_name, HC_V_UNKNOWN_PEER,
			hc_value_text(json_object_get(obj, id_name), &c), "a local_id of peer_list",
			"%s names device %u, which is not in peer_list", id_name, end->local_id);
	end->present = true;
	use.device = end->local_id;
	r = hc_get_ports(&t->doc, at, obj, ports_name, HC_TOPO_PORTS_MAX, &list);
	return r ? r : add_ports(t, list, &use, end);
}

static int take_kind(struct topo *t, const struct hc_at *at, const json_t *obj,
		     struct hc_topo_edge *e)
{
	static const char *const links[] = {"PEER2PEER", "PEER2NET", NULL};
	static const char *const types[] = {"CLOS", "1DMESH", NULL};
	static const char *const positions[] = {"DEVICE", "HOST", NULL};
	unsigned link = 0, type = HC_TOPO_CLOS, position = HC_TOPO_DEVICE;
	int r = hc_get_number(&t->doc, at, obj, "net_layer", HC_F_REQUIRED, 0, 7, &e->net_layer);

	if (!r)
		r = hc_get_word(&t->doc, at, obj, "link_type", HC_F_REQUIRED, links,
				"PEER2PEER or PEER2NET", &link);
	if (!r)
		r = hc_get_number(&t->doc, at, obj, "topo_instance_id", 0, 0, UINT32_MAX,
				  &e->topo_instance_id);
	if (!r)
		r = hc_get_word(&t->doc, at, obj, "topo_type", 0, types, "CLOS or 1DMESH", &type);
	if (!r)
		r = hc_get_word(&t->doc, at, obj, "position", 0, positions, "DEVICE or HOST",
				&position);
	e->link_type = (enum hc_topo_link)link;
	e->topo_type = (enum hc_topo_type)type;
	e->position = (enum hc_topo_position)position;
	return r;
}

static int take_edge(struct topo *t, const json_t *obj, size_t place)
{
	struct hc_topo_edge *e = &t->out->edges[place];
	struct hc_at at = {.noun = "edge"};
	char number[16];
	int r;

	at = hc_at_in(&at, "edge_list", place);
	r = hc_want_object(&t->doc, &at, obj);
	if (!r)
		r = take_kind(t, &at, obj, e);
	if (!r)
		r = take_protocols(t, &at, obj, e);
	if (!r)
		r = take_end(t, &at, obj, false, true, &e->a);
	if (!r)
		r = take_end(t, &at, obj, true, e->link_type == HC_TOPO_PEER2PEER, &e->b);
	if (r)
		return r;
	t->out->nedges++;
	snprintf(number, sizeof(number), "device %u", e->a.local_id);
	if (e->b.present && e->b.local_id == e->a.local_id)
		return hc_doc_fail(&t->doc, &at, "local_b", HC_V_SELF_EDGE, number,
				   "two different devices",
				   "both ends are %s; an edge joins two devices", number);
	return 0;
}

/* ---- one use for each port ---- */

static int by_port(const void *x, const void *y)
{
	const struct use *a = x, *b = y;

	if (a->device != b->device)
		return a->device < b->device ? -1 : 1;
	if (a->port.die != b->port.die)
		return a->port.die - b->port.die;
	if (a->port.port != b->port.port)
		return a->port.port - b->port.port;
	if (a->edge != b->edge)
		return a->edge < b->edge ? -1 : 1;
	if (a->far != b->far)
		return a->far - b->far;
	return (a->index > b->index) - (a->index < b->index);
}

static bool same_port(const struct use *a, const struct use *b)
{
	return a->device == b->device && a->port.die == b->port.die && a->port.port == b->port.port;
}

static int used_twice(struct topo *t, const struct use *a, const struct use *b)
{
	struct hc_at at = {.noun = "edge"};
	char port[16];

	at = hc_at_in(&at, "edge_list", b->edge);
	at = hc_at_in(&at, b->far ? "local_b_ports" : "local_a_ports", b->index);
	snprintf(port, sizeof(port), "%u/%u", b->port.die, b->port.port);
	return hc_doc_fail(
		&t->doc, &at, NULL, HC_V_PORT_USED_TWICE, port, "a port in one edge only",
		"port %s of device %u is used already by edge %u", port, b->device, a->edge);
}

static int check_ports(struct topo *t)
{
	const struct use *a = NULL, *b = NULL;
	size_t i;

	if (t->nuses)
		qsort(t->uses, t->nuses, sizeof(*t->uses), by_port);
	for (i = 1; i < t->nuses; i++) {
		if (!same_port(&t->uses[i - 1], &t->uses[i]) || (b && b->edge <= t->uses[i].edge))
			continue;
		a = &t->uses[i - 1];
		b = &t->uses[i];
	}
	return b ? used_twice(t, a, b) : 0;
}

/* ---- in and out ---- */

static int walk(struct topo *t)
{
	const json_t *peers = NULL, *edges = NULL;
	const struct hc_at top = {0};
	size_t bytes, n, i;
	int r = hc_want_object(&t->doc, &top, t->doc.root);

	if (!r)
		r = take_version(t);
	if (!r)
		r = take_counted(t, "peer_list", "peer_count", 1, HC_TOPO_PEERS_MAX, &peers);
	if (!r)
		r = take_counted(t, "edge_list", "edge_count", 0, UINT32_MAX, &edges);
	if (r)
		return r;
	n = json_array_size(edges);
	bytes = sizeof(*t->out) + n * sizeof(*t->out->edges) +
		json_array_size(peers) * sizeof(*t->out->peers);
	t->out = hc_file_alloc(bytes);
	if (!t->out)
		return -ENOMEM;
	memset(t->out, 0, bytes);
	t->out->edges = (struct hc_topo_edge *)(void *)(t->out + 1);
	t->out->peers = (uint32_t *)(void *)(t->out->edges + n);
	for (i = 0; !r && i < json_array_size(peers); i++)
		r = take_peer(t, json_array_get(peers, i), i);
	for (i = 0; !r && i < n; i++)
		r = take_edge(t, json_array_get(edges, i), i);
	return r ? r : check_ports(t);
}

/* The ports move into one block with the rest, so that one free is enough. */
static int seal(struct topo *t, struct hc_topo **topo)
{
	size_t edges = t->out->nedges * sizeof(struct hc_topo_edge);
	size_t ports = t->nports * sizeof(struct hc_port_name);
	size_t peers = t->out->npeers * sizeof(uint32_t), i;
	struct hc_topo *out = hc_file_alloc(sizeof(*out) + edges + peers + ports);
	struct hc_port_name *p;

	if (!out)
		return -ENOMEM;
	*out = *t->out;
	out->edges = memcpy(out + 1, t->out->edges, edges);
	out->peers = memcpy((char *)out->edges + edges, t->out->peers, peers);
	p = (struct hc_port_name *)(void *)((char *)out->peers + peers);
	if (ports)
		memcpy(p, t->ports, ports);
	for (i = 0; i < out->nedges; i++) {
		out->edges[i].a.ports = p;
		p += out->edges[i].a.nports;
		out->edges[i].b.ports = p;
		p += out->edges[i].b.nports;
	}
	*topo = out;
	return 0;
}

int hc_topofile_read(const struct hc_jsontext *in, struct hc_topo **topo, struct hc_verdict *v)
{
	struct topo t = {.doc = {.text = in, .v = v}};
	int r = hc_jsontext_parse(in, &t.doc.root, v);

	*topo = NULL;
	if (!r)
		r = walk(&t);
	if (!r)
		r = seal(&t, topo);
	if (!r)
		hc_verdict_set(v, HC_V_NONE, "version 2.0, %u peer%s, %u edge%s", t.out->npeers,
			       t.out->npeers == 1 ? "" : "s", t.out->nedges,
			       t.out->nedges == 1 ? "" : "s");
	if (r == -ENOMEM)
		hc_verdict_system(v, ENOMEM, "cannot check the topology");
	json_decref(t.doc.root);
	hc_file_free(t.out);
	hc_file_free(t.ports);
	hc_file_free(t.uses);
	return r;
}

void hc_topofile_free(struct hc_topo *topo)
{
	hc_file_free(topo);
}
