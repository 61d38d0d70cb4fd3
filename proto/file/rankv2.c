/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The walk over rank tables 2.0: rank_list[].level_list[].rank_addr_list[]. Numbers are integers.
 *
 * The server of a rank is its net instance of layer 0. A rank's addresses are those of all its
 * levels in order; the roster takes the first that is IPv4 or IPv6. status may be absent here.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "rankimp.h"

#define ADDR_TEXT_MAX 256
#define INSTANCE_MAX  1024
#define PORTS_MAX     16
#define BACKUPS_MAX   16
#define LOCAL_SPARE   64
#define LOCAL_ID_MAX  64

static const char *const net_types[] = {"TOPO_FILE_DESC", "CLOS", NULL};

static int take_addr_value(struct rt *t, const struct hc_at *at, const json_t *obj,
			   struct rt_addr *a)
{
	static const char *const types[] = {"EID", "IPV4", "IPV6", NULL};
	static const enum hc_net_kind kinds[] = {HC_NET_EID, HC_NET_IP4, HC_NET_IP6};
	const char *text, *why;
	unsigned type = 0;
	int r = hc_get_word(&t->doc, at, obj, "addr_type", HC_F_REQUIRED, types,
			    "EID, IPV4 or IPV6", &type);

	if (!r)
		r = hc_get_text(&t->doc, at, obj, "addr", HC_F_REQUIRED | HC_F_FILLED,
				ADDR_TEXT_MAX, &text);
	if (r)
		return r;
	why = type ? hc_ip_parse(text, &a->net) : hc_eid_parse(text, &a->net);
	if (!why && a->net.kind != kinds[type])
		why = "is of another family";
	if (!why)
		return 0;
	return hc_doc_fail(&t->doc, at, "addr", HC_V_BAD_ADDRESS, text, types[type],
			   "addr \"%s\" %s; addr_type says %s", HC_CLIP(text), why, types[type]);
}

static void canon_addr(struct rt *t, const struct rt_addr *a, const json_t *ports,
		       const char *plane)
{
	size_t i;

	rt_canon_addr(t, &a->net);
	rt_canon_u32(t, (uint32_t)json_array_size(ports));
	for (i = 0; i < json_array_size(ports); i++)
		rt_canon_text(t, json_string_value(json_array_get(ports, i)));
	rt_canon_text(t, plane ? plane : "0");
}

/* Its form is not settled beyond a bounded list, so it is kept and compared as it is. */
static int take_backups(struct rt *t, const struct hc_at *at, const json_t *obj)
{
	const json_t *value = json_object_get(obj, "backup_addr"), *list;
	char *text;
	int r = 0;

	if (!value) {
		rt_canon_text(t, "");
		return 0;
	}
	if (json_is_array(value))
		r = hc_get_list(&t->doc, at, obj, "backup_addr", 0, BACKUPS_MAX, &list);
	if (r)
		return r;
	text = json_dumps(value, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);
	if (!text)
		return -ENOMEM;
	rt_canon_text(t, text);
	hc_file_free(text);
	return 0;
}

static int take_addr(struct rt *t, const struct hc_at *at, const json_t *obj,
		     const struct rt_level *level, size_t place)
{
	struct rt_entry *e = &t->entries[t->nentries - 1];
	const json_t *ports;
	const char *plane;
	struct rt_addr *a;
	int r = hc_want_object(&t->doc, at, obj);

	if (r)
		return r;
	a = rt_new_addr(t);
	if (!a)
		return -ENOMEM;
	a->entry = level->entry;
	a->layer = level->layer;
	a->level = level->level;
	a->place = (uint8_t)place;
	r = take_addr_value(t, at, obj, a);
	if (!r && a->net.kind != HC_NET_EID)
		a->port = (uint16_t)(e->port ? e->port : HC_DEVICE_PORT_DEFAULT);
	if (!r)
		r = hc_get_ports(&t->doc, at, obj, "ports", PORTS_MAX, &ports);
	if (!r)
		r = hc_get_text(&t->doc, at, obj, "plane_id", 0, INSTANCE_MAX, &plane);
	if (r)
		return r;
	canon_addr(t, a, ports, plane);
	return take_backups(t, at, obj);
}

static int take_layer(struct rt *t, const struct hc_at *at, const json_t *obj, int last,
		      struct rt_level *l)
{
	unsigned type = 0;
	uint32_t layer = 0;
	char wanted[32];
	int r = hc_get_number(&t->doc, at, obj, "net_layer", HC_F_REQUIRED, 0, 7, &layer);

	if (r)
		return r;
	l->layer = (uint8_t)layer;
	snprintf(wanted, sizeof(wanted), "more than %d", last);
	if ((int)layer <= last)
		return hc_doc_fail(&t->doc, at, "net_layer", HC_V_OUT_OF_RANGE, "", wanted,
				   "net_layer %u follows net_layer %d; layers must ascend", layer,
				   last);
	r = hc_get_text(&t->doc, at, obj, "net_instance_id", HC_F_REQUIRED | HC_F_FILLED,
			INSTANCE_MAX, &l->instance);
	if (!r)
		r = hc_get_word(&t->doc, at, obj, "net_type", HC_F_REQUIRED, net_types,
				"TOPO_FILE_DESC or CLOS", &type);
	if (!r && !layer && type)
		r = hc_doc_fail(&t->doc, at, "net_type", HC_V_OUT_OF_RANGE, net_types[type],
				net_types[0], "net_type of layer 0 is %s; %s is wanted",
				net_types[type], net_types[0]);
	rt_canon_u32(t, layer);
	rt_canon_text(t, l->instance);
	rt_canon_u32(t, type);
	return r;
}

static int take_level(struct rt *t, const struct hc_at *at, const json_t *obj, int last,
		      struct rt_level *l)
{
	const json_t *list;
	const char *attr;
	struct hc_at in;
	size_t i;
	int r = hc_want_object(&t->doc, at, obj);

	if (!r)
		r = take_layer(t, at, obj, last, l);
	if (!r)
		r = hc_get_text(&t->doc, at, obj, "net_attr", 0, INSTANCE_MAX, &attr);
	if (!r)
		r = hc_get_list(&t->doc, at, obj, "rank_addr_list", HC_F_REQUIRED, RT_ADDRS_MAX,
				&list);
	if (r)
		return r;
	rt_canon_text(t, attr);
	l->naddrs = (uint32_t)json_array_size(list);
	rt_canon_u32(t, l->naddrs);
	for (i = 0; !r && i < json_array_size(list); i++) {
		in = hc_at_in(at, "rank_addr_list", i);
		r = take_addr(t, &in, json_array_get(list, i), l, i);
	}
	return r;
}

/* All levels of one rank; the first must be layer 0, whose instance is the server. */
static int take_levels(struct rt *t, const struct hc_at *at, const json_t *obj)
{
	const json_t *list;
	struct rt_level *l;
	struct hc_at in;
	int last = -1, r;
	size_t i;

	r = hc_get_list(&t->doc, at, obj, "level_list", HC_F_REQUIRED | HC_F_FILLED, RT_LEVELS_MAX,
			&list);
	for (i = 0; !r && i < json_array_size(list); i++) {
		if (hc_file_grow((void **)&t->levels, &t->levels_cap, t->nlevels + 1, sizeof(*l)) <
		    0)
			return -ENOMEM;
		l = memset(&t->levels[t->nlevels++], 0, sizeof(*l));
		l->entry = (uint32_t)(t->nentries - 1);
		l->level = (uint8_t)i;
		in = hc_at_in(at, "level_list", i);
		r = take_level(t, &in, json_array_get(list, i), last, l);
		if (!r && !i && l->layer)
			r = hc_doc_fail(&t->doc, &in, "net_layer", HC_V_MISSING_FIELD, "",
					"net_layer 0",
					"the first level is net_layer %u; net_layer 0 "
					"is missing",
					l->layer);
		last = l->layer;
	}
	return r;
}

static int take_port(struct rt *t, const struct hc_at *at, const json_t *obj, const char *field,
		     uint32_t *out)
{
	int r = hc_get_number(&t->doc, at, obj, field, HC_F_PORT, 1, UINT16_MAX, out);

	if (!r && *out && *out < 1024)
		hc_doc_warn(&t->doc, at, field, HC_V_LOW_PORT,
			    "%s %u is below 1024, so listening there needs a privilege", field,
			    *out);
	return r;
}

static int take_ids(struct rt *t, const struct hc_at *at, const json_t *obj, struct rt_entry *e)
{
	uint32_t replaced = LOCAL_SPARE;
	unsigned flags;
	int r = hc_get_number(&t->doc, at, obj, "rank_id", HC_F_REQUIRED, 0, UINT32_MAX, &e->rank);

	if (!r)
		r = hc_get_number(&t->doc, at, obj, "local_id", HC_F_REQUIRED, 0, LOCAL_ID_MAX,
				  &e->local_id);
	flags = e->local_id == LOCAL_SPARE ? HC_F_REQUIRED : 0;
	if (!r)
		r = hc_get_number(&t->doc, at, obj, "replaced_local_id", flags, 0, LOCAL_ID_MAX,
				  &replaced);
	if (!r)
		r = hc_get_number(&t->doc, at, obj, "device_id", HC_F_REQUIRED, 0, LOCAL_ID_MAX,
				  &e->device);
	if (!r)
		r = take_port(t, at, obj, "device_port", &e->port);
	if (!r)
		r = take_port(t, at, obj, "host_port", &e->host_port);
	rt_canon_u32(t, e->rank);
	rt_canon_u32(t, e->local_id);
	rt_canon_u32(t, replaced);
	rt_canon_u32(t, e->device);
	rt_canon_u32(t, e->port ? e->port : HC_DEVICE_PORT_DEFAULT);
	rt_canon_u32(t, e->host_port);
	return r;
}

static int take_rank(struct rt *t, struct hc_at at, const json_t *obj, size_t place)
{
	struct rt_entry *e;
	int r = hc_want_object(&t->doc, &at, obj);

	if (r)
		return r;
	e = rt_new_entry(t);
	if (!e)
		return -ENOMEM;
	e->place = (uint32_t)place;
	e->addr0 = t->naddrs;
	e->canon = t->canon_len;
	at.device = e->device_json = json_object_get(obj, "device_id");
	at.rank = e->rank_json = json_object_get(obj, "rank_id");
	r = take_ids(t, &at, obj, e);
	if (!r)
		r = take_levels(t, &at, obj);
	e->naddrs = (uint32_t)(t->naddrs - e->addr0);
	e->canon_len = t->canon_len - e->canon;
	return !r && t->canon_failed ? -ENOMEM : r;
}

/* ---- servers: the net instances of layer 0 ---- */

static int by_instance(const void *x, const void *y)
{
	const struct rt_level *a = *(struct rt_level *const *)x, *b = *(struct rt_level *const *)y;
	int r = a->layer - b->layer;

	if (!r)
		r = strcmp(a->instance, b->instance);
	return r ? r : (a > b) - (a < b);
}

static int uneven(struct rt *t, const struct rt_level *a, const struct rt_level *b)
{
	const struct rt_entry *ea = &t->entries[a->entry], *eb = &t->entries[b->entry];
	struct hc_at at = rt_entry_at(t, eb);
	char found[16], wanted[16];

	at = hc_at_in(&at, "level_list", b->level);
	snprintf(found, sizeof(found), "%u", b->naddrs);
	snprintf(wanted, sizeof(wanted), "%u", a->naddrs);
	return hc_doc_fail(&t->doc, &at, "rank_addr_list", HC_V_COUNT_MISMATCH, found, wanted,
			   "net instance %s of layer %u has %s addresses here and %s at rank %u; "
			   "all its ranks must list equally many",
			   HC_CLIP(b->instance), b->layer, found, wanted, ea->rank);
}

/* Ranks of one net instance list equally many addresses; those of layer 0 are one server. */
static int take_instances(struct rt *t, void **sorted)
{
	const struct rt_level *l, *prev = NULL;
	struct rt_server *s;
	size_t i;

	for (i = 0; i < t->nlevels; i++, prev = l) {
		l = sorted[i];
		if (prev && prev->layer == l->layer && !strcmp(prev->instance, l->instance)) {
			if (prev->naddrs != l->naddrs)
				return uneven(t, prev, l);
		} else if (!l->layer) {
			if (hc_file_grow((void **)&t->servers, &t->servers_cap, t->nservers + 1,
					 sizeof(*s)) < 0)
				return -ENOMEM;
			s = memset(&t->servers[t->nservers++], 0, sizeof(*s));
			s->id = l->instance;
		}
		if (!l->layer)
			t->entries[l->entry].server = (uint32_t)(t->nservers - 1);
	}
	return 0;
}

static int group_instances(struct rt *t)
{
	void **sorted;
	int r = rt_sort(t->levels, t->nlevels, sizeof(*t->levels), by_instance, &sorted);

	if (r)
		return r;
	r = take_instances(t, sorted);
	hc_file_free(sorted);
	return r;
}

/* ---- the top ---- */

static int missing_list(struct rt *t, const struct hc_at *top)
{
	const bool old = json_object_get(t->doc.root, "server_list") != NULL;

	return hc_doc_fail(&t->doc, top, "rank_list", HC_V_MISSING_FIELD, old ? "server_list" : "",
			   "rank_list", "rank_list is missing, which version 2.0 wants%s",
			   old ? "; server_list is the form of versions 1.0 and 1.2" : "");
}

static int check_top(struct rt *t, const struct hc_at *top, const json_t **list)
{
	static const char *const words[] = {"false", "true", NULL};
	uint32_t count = 0;
	unsigned detour = 0;
	int r;

	if (!json_object_get(t->doc.root, "rank_list"))
		return missing_list(t, top);
	r = hc_get_list(&t->doc, top, t->doc.root, "rank_list", HC_F_FILLED, HC_TABLE_RANKS_MAX,
			list);
	if (!r)
		r = hc_get_number(&t->doc, top, t->doc.root, "rank_count", HC_F_REQUIRED, 1,
				  HC_TABLE_RANKS_MAX, &count);
	if (!r && count != json_array_size(*list))
		r = hc_doc_fail(&t->doc, top, "rank_count", HC_V_COUNT_MISMATCH, "",
				"the length of rank_list",
				"rank_count and the length of rank_list differ: %u and %zu", count,
				json_array_size(*list));
	if (!r)
		r = hc_get_word(&t->doc, top, t->doc.root, "detour", 0, words,
				"\"true\" or \"false\"", &detour);
	t->detour = detour;
	return r;
}

int rt_read_v2(struct rt *t)
{
	const struct hc_at top = {0};
	const json_t *list = NULL;
	size_t i;
	int r = check_top(t, &top, &list);

	for (i = 0; !r && i < json_array_size(list); i++)
		r = take_rank(t, hc_at_in(&top, "rank_list", i), json_array_get(list, i), i);
	return r ? r : group_instances(t);
}
