/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The walk over rank tables 1.0 and 1.2: server_list[].device[]. Every scalar is a text.
 *
 * device_ip may be one address, several with commas between them, empty, or absent; whether an
 * address is needed is a rule over the whole table. backup_device_ip is the other die's address,
 * so it repeats one that another device owns. 1.2 adds super_device_id and super_pod_list, the
 * latter in rankpod.c.
 */
#include <errno.h>
#include <string.h>
#include "rankimp.h"

#define SERVER_ID_MAX 64
#define ADDR_TEXT_MAX 256

static const char wanted_ip[] = "an IPv4 or IPv6 address";

static int bad_address(struct rt *t, const struct hc_at *at, const char *field, const char *text,
		       const char *why)
{
	return hc_doc_fail(&t->doc, at, field, HC_V_BAD_ADDRESS, text, wanted_ip,
			   "%s \"%s\" %s; %s is wanted", field, HC_CLIP(text), why, wanted_ip);
}

static int add_addr(struct rt *t, const struct hc_at *at, const char *field, const char *text,
		    uint16_t port, bool backup)
{
	struct rt_addr *a = rt_new_addr(t);
	const char *why;

	if (!a)
		return -ENOMEM;
	why = hc_ip_parse(text, &a->net);
	if (why)
		return bad_address(t, at, field, text, why);
	a->entry = (uint32_t)(t->nentries - 1);
	a->port = port;
	a->backup = backup;
	return 0;
}

/* A list of addresses with commas between them. */
static int add_addrs(struct rt *t, const struct hc_at *at, const json_t *obj, const char *field,
		     uint16_t port, bool backup)
{
	char one[ADDR_TEXT_MAX + 1];
	const char *text;
	size_t n, count = 0;
	int r = hc_get_text(&t->doc, at, obj, field, 0, RT_ADDRS_MAX * (ADDR_TEXT_MAX + 1), &text);

	if (r || !text || !*text)
		return r;
	for (;; text += n + 1) {
		n = strcspn(text, ",");
		if (++count > RT_ADDRS_MAX)
			return hc_doc_fail(&t->doc, at, field, HC_V_OUT_OF_RANGE, "more",
					   "at most 24 addresses", "%s has more than %d addresses",
					   field, RT_ADDRS_MAX);
		if (n > ADDR_TEXT_MAX)
			return hc_doc_fail(&t->doc, at, field, HC_V_TOO_LONG, text,
					   "at most 256 bytes",
					   "an address in %s has %zu bytes; at most %d are allowed",
					   field, n, ADDR_TEXT_MAX);
		memcpy(one, text, n);
		one[n] = '\0';
		r = add_addr(t, at, field, one, port, backup);
		if (r || !text[n])
			return r;
	}
}

static void warn_low(struct rt *t, const struct hc_at *at, const char *field, uint32_t port)
{
	if (port && port < 1024)
		hc_doc_warn(&t->doc, at, field, HC_V_LOW_PORT,
			    "%s %u is below 1024, so listening there needs a privilege", field,
			    port);
}

static int take_port(struct rt *t, const struct hc_at *at, const json_t *obj, const char *field,
		     uint32_t *out)
{
	int r = hc_get_number(&t->doc, at, obj, field, HC_F_PORT, 1, UINT16_MAX, out);

	if (!r)
		warn_low(t, at, field, *out);
	return r;
}

static int take_addresses(struct rt *t, const struct hc_at *at, const json_t *obj)
{
	struct rt_entry *e = &t->entries[t->nentries - 1];
	uint32_t backup_port = 0;
	int r = take_port(t, at, obj, "device_port", &e->port);

	if (!r)
		r = take_port(t, at, obj, "host_port", &e->host_port);
	if (!r)
		r = take_port(t, at, obj, "backup_device_port", &backup_port);
	e->addr0 = t->naddrs;
	if (!r)
		r = add_addrs(t, at, obj, "device_ip",
			      (uint16_t)(e->port ? e->port : HC_DEVICE_PORT_DEFAULT), false);
	e->naddrs = (uint32_t)(t->naddrs - e->addr0);
	if (!r)
		r = add_addrs(t, at, obj, "backup_device_ip",
			      (uint16_t)(backup_port ? backup_port : HC_BACKUP_PORT_DEFAULT), true);
	return r;
}

static int take_super_device(struct rt *t, const struct hc_at *at, const json_t *obj)
{
	struct rt_entry *e = &t->entries[t->nentries - 1];
	const json_t *value = json_object_get(obj, "super_device_id");

	/* an empty one counts as absent; whether it may be is a rule over the whole table */
	if (t->version != RT_1_2 || !value || (json_is_string(value) && !json_string_length(value)))
		return 0;
	e->has_super_device = true;
	return hc_get_number(&t->doc, at, obj, "super_device_id", 0, 0, UINT32_MAX,
			     &e->super_device);
}

static void canon_entry(struct rt *t, struct rt_entry *e)
{
	const struct rt_server *s = &t->servers[e->server];
	size_t i;

	e->canon = t->canon_len;
	rt_canon_u32(t, e->rank);
	rt_canon_text(t, s->id);
	rt_canon_addr(t, &s->host_ip);
	rt_canon_u32(t, e->device);
	rt_canon_u32(t, e->host_port);
	rt_canon_u32(t, e->naddrs);
	for (i = e->addr0; i < t->naddrs; i++) {
		rt_canon_u32(t, t->addrs[i].backup);
		rt_canon_addr(t, &t->addrs[i].net);
		rt_canon_u32(t, t->addrs[i].port);
	}
	if (!e->naddrs) /* the port is part of the meaning even while there is no address */
		rt_canon_u32(t, e->port ? e->port : HC_DEVICE_PORT_DEFAULT);
	rt_canon_u32(t, e->has_super_device);
	rt_canon_u32(t, e->super_device);
	e->canon_len = t->canon_len - e->canon;
}

static int take_device(struct rt *t, struct hc_at at, const json_t *obj, size_t place)
{
	struct rt_entry *e;
	int r = hc_want_object(&t->doc, &at, obj);

	if (r)
		return r;
	if (t->nentries == HC_TABLE_RANKS_MAX)
		return hc_doc_fail(&t->doc, &at, NULL, HC_V_OUT_OF_RANGE, "65537 or more",
				   "at most 65536 ranks", "the table has more than %d ranks",
				   HC_TABLE_RANKS_MAX);
	e = rt_new_entry(t);
	if (!e)
		return -ENOMEM;
	e->server = (uint32_t)(t->nservers - 1);
	e->place = (uint32_t)place;
	at.device = e->device_json = json_object_get(obj, "device_id");
	at.rank = e->rank_json = json_object_get(obj, "rank_id");
	r = hc_get_number(&t->doc, &at, obj, "device_id", HC_F_REQUIRED, 0, UINT16_MAX, &e->device);
	if (!r)
		r = hc_get_number(&t->doc, &at, obj, "rank_id", HC_F_REQUIRED, 0, UINT32_MAX,
				  &e->rank);
	if (!r)
		r = take_super_device(t, &at, obj);
	if (!r)
		r = take_addresses(t, &at, obj);
	if (!r)
		canon_entry(t, e);
	return !r && t->canon_failed ? -ENOMEM : r;
}

static int take_host_ip(struct rt *t, const struct hc_at *at, const json_t *obj,
			struct rt_server *s)
{
	const char *text, *why;
	int r = hc_get_text(&t->doc, at, obj, "host_ip", 0, ADDR_TEXT_MAX, &text);

	if (r || !text || !*text)
		return r;
	why = hc_ip_parse(text, &s->host_ip);
	return why ? bad_address(t, at, "host_ip", text, why) : 0;
}

static int take_server(struct rt *t, struct hc_at at, const json_t *obj, size_t place)
{
	const json_t *devices;
	struct rt_server *s;
	size_t i;
	int r = hc_want_object(&t->doc, &at, obj);

	if (r)
		return r;
	if (hc_file_grow((void **)&t->servers, &t->servers_cap, t->nservers + 1, sizeof(*s)) < 0)
		return -ENOMEM;
	s = memset(&t->servers[t->nservers++], 0, sizeof(*s));
	s->place = (uint32_t)place;
	r = hc_get_text(&t->doc, &at, obj, "server_id", HC_F_REQUIRED | HC_F_FILLED, SERVER_ID_MAX,
			&s->id);
	at.server = s->id;
	if (!r)
		r = take_host_ip(t, &at, obj, s);
	if (!r)
		r = hc_get_list(&t->doc, &at, obj, "device", HC_F_REQUIRED | HC_F_FILLED, SIZE_MAX,
				&devices);
	for (i = 0; !r && i < json_array_size(devices); i++)
		r = take_device(t, hc_at_in(&at, "device", i), json_array_get(devices, i), i);
	return r;
}

static int check_count(struct rt *t, const struct hc_at *top)
{
	uint32_t count = (uint32_t)t->nservers;
	struct hc_clip c;
	int r = hc_get_number(&t->doc, top, t->doc.root, "server_count", 0, 0, UINT32_MAX, &count);

	if (r || count == t->nservers)
		return r;
	return hc_doc_fail(&t->doc, top, "server_count", HC_V_COUNT_MISMATCH,
			   hc_value_text(json_object_get(t->doc.root, "server_count"), &c),
			   "the length of server_list",
			   "server_count and the length of server_list differ: %u and %zu", count,
			   t->nservers);
}

int rt_read_v1(struct rt *t)
{
	const struct hc_at top = {0};
	const json_t *list;
	size_t i;
	int r = hc_get_list(&t->doc, &top, t->doc.root, "server_list", HC_F_REQUIRED | HC_F_FILLED,
			    SIZE_MAX, &list);

	for (i = 0; !r && i < json_array_size(list); i++)
		r = take_server(t, hc_at_in(&top, "server_list", i), json_array_get(list, i), i);
	return r ? r : check_count(t, &top);
}
