/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rank tables: the way in, and the roster that comes out. See ranktable.h.
 *
 * A roster is one block of memory: the struct, the servers, the ranks, the names. Its servers are
 * in the order of their lowest rank, whatever their order in the file, so that two files that
 * mean the same give the same roster.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "rankimp.h"

const struct hc_hash_key hc_ranktable_keys[2] = {
	{0x68636f6d6d207261, 0x6e6b207461626c65},
	{0x68636f6d6d20726f, 0x7374657220683032},
};

static const char supported[] = "1.0, 1.2 and 2.0";

int rt_nomem(struct rt *t)
{
	return hc_verdict_system(t->doc.v, ENOMEM, "cannot check the table");
}

/* ---- canonical form ---- */

static void canon(struct rt *t, const void *data, size_t len)
{
	if (t->canon_failed ||
	    hc_file_grow((void **)&t->canon, &t->canon_cap, t->canon_len + len, 1) < 0) {
		t->canon_failed = true;
		return;
	}
	if (len)
		memcpy(t->canon + t->canon_len, data, len);
	t->canon_len += len;
}

void rt_canon_u32(struct rt *t, uint32_t x)
{
	uint8_t b[4] = {(uint8_t)x, (uint8_t)(x >> 8), (uint8_t)(x >> 16), (uint8_t)(x >> 24)};

	canon(t, b, sizeof(b));
}

void rt_canon_text(struct rt *t, const char *s)
{
	size_t n = s ? strlen(s) : 0;

	rt_canon_u32(t, (uint32_t)n);
	canon(t, s, n);
}

void rt_canon_addr(struct rt *t, const struct hc_netaddr *a)
{
	rt_canon_u32(t, (uint32_t)a->kind);
	canon(t, a->a.bytes, sizeof(a->a.bytes));
	rt_canon_text(t, a->scope);
}

/* ---- version and status ---- */

static int bad_version(struct rt *t, const char *field, const char *found, const char *hint)
{
	const struct hc_at top = {0};

	return hc_doc_fail(&t->doc, &top, field, HC_V_BAD_VERSION, found, supported,
			   "%s; the versions supported are %s", hint, supported);
}

static int take_version(struct rt *t)
{
	const char *text, *const words[] = {"1.0", "1.2", "2.0"};
	const struct hc_at top = {0};
	char hint[160];
	size_t i;
	int r;

	if (!json_object_get(t->doc.root, "version") && json_object_get(t->doc.root, "group_list"))
		return bad_version(t, "group_list", "group_list (legacy \"template 2\")",
				   "this is a legacy \"template 2\" table (group_list, without a "
				   "version)");
	r = hc_get_text(&t->doc, &top, t->doc.root, "version", HC_F_REQUIRED, SIZE_MAX, &text);
	if (r)
		return r;
	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (!strcmp(text, words[i])) {
			t->version = (enum rt_version)i;
			t->doc.text_numbers = t->version != RT_2_0;
			return 0;
		}
	}
	snprintf(hint, sizeof(hint), "version is \"%s\"", HC_CLIP(text));
	return bad_version(t, "version", text, hint);
}

static int not_ready(struct rt *t)
{
	const struct hc_at top = {0};

	return hc_doc_fail(&t->doc, &top, "status", HC_V_NOT_READY, "initializing", "completed",
			   "status is \"initializing\": the table's producer has not finished; "
			   "\"completed\" is awaited");
}

static int take_status(struct rt *t)
{
	unsigned flags = t->version == RT_2_0 ? 0 : HC_F_REQUIRED;
	const struct hc_at top = {0};
	const char *text;
	int r = hc_get_text(&t->doc, &top, t->doc.root, "status", flags, SIZE_MAX, &text);

	if (r || !text || !strcmp(text, "completed"))
		return r;
	return hc_doc_fail(
		&t->doc, &top, "status", HC_V_BAD_STATUS, text, "completed or initializing",
		"status is \"%s\"; \"completed\" or \"initializing\" is wanted", HC_CLIP(text));
}

static int walk(struct rt *t)
{
	const json_t *status;
	const struct hc_at top = {0};
	int r = hc_want_object(&t->doc, &top, t->doc.root);

	if (r) {
		hc_verdict_set(t->doc.v, HC_V_WRONG_TYPE,
			       "the file holds %s at the top; an object {...} is wanted",
			       t->doc.v->found);
		return r;
	}
	status = json_object_get(t->doc.root, "status");
	if (json_is_string(status) && !strcmp(json_string_value(status), "initializing"))
		return not_ready(t);
	r = take_version(t);
	if (!r)
		r = take_status(t);
	if (!r)
		r = t->version == RT_2_0 ? rt_read_v2(t) : rt_read_v1(t);
	if (!r)
		r = rt_check(t);
	return r;
}

/* ---- the roster ---- */

static char *put_name(char *at, const char *name)
{
	size_t n = strlen(name) + 1;

	memcpy(at, name, n);
	return at + n;
}

static struct hc_roster *new_roster(const struct rt *t, char **names)
{
	size_t bytes = sizeof(struct hc_roster) + t->nentries * sizeof(struct hc_roster_rank) +
		       t->nservers * sizeof(struct hc_roster_server),
	       i;
	struct hc_roster *ro;

	for (i = 0; i < t->nservers; i++)
		bytes += strlen(t->servers[i].id) + 1;
	ro = hc_file_alloc(bytes);
	if (!ro)
		return NULL;
	memset(ro, 0, bytes);
	ro->servers = (struct hc_roster_server *)(void *)(ro + 1);
	ro->ranks = (struct hc_roster_rank *)(void *)(ro->servers + t->nservers);
	*names = (char *)(ro->ranks + t->nentries);
	return ro;
}

/* The first dialable address of an entry; EIDs are not. */
static struct hc_addr first_ip(const struct rt *t, const struct rt_entry *e)
{
	struct hc_addr none = {0};
	uint32_t i;

	for (i = 0; i < e->naddrs; i++)
		if (t->addrs[e->addr0 + i].net.a.family)
			return t->addrs[e->addr0 + i].net.a;
	return none;
}

static void fill_roster(const struct rt *t, struct hc_roster *ro, char *names, uint32_t *place)
{
	const struct rt_entry *e;
	struct hc_roster_server *s;
	uint32_t i;

	for (i = 0; i < t->nentries; i++) {
		e = t->by_rank[i];
		if (!place[e->server]) {
			s = &ro->servers[ro->nservers];
			s->name = names;
			names = put_name(names, t->servers[e->server].id);
			s->host_ip = t->servers[e->server].host_ip.a;
			place[e->server] = ++ro->nservers;
		}
		ro->ranks[i] = (struct hc_roster_rank){
			.server = place[e->server] - 1,
			.device = e->device,
			.addr = first_ip(t, e),
			.port = (uint16_t)e->port,
			.hash = hc_hash(&hc_ranktable_keys[0], t->canon + e->canon, e->canon_len),
		};
	}
	ro->nranks = i;
}

/* The whole: a head, the entries by rank, then each server's pod in the order of ranks. */
static int hash_all(struct rt *t, struct hc_roster *ro, uint32_t *place)
{
	uint8_t *all = NULL;
	size_t start = t->canon_len, i, n = 0;
	const struct rt_server *s;

	rt_canon_u32(t, (uint32_t)t->version);
	rt_canon_u32(t, (uint32_t)t->nentries);
	rt_canon_u32(t, t->detour);
	for (i = 0; i < t->nentries; i++) {
		s = &t->servers[t->by_rank[i]->server];
		if (!place[t->by_rank[i]->server]++)
			rt_canon_text(t, s->pod ? t->pods[s->pod - 1] : "");
	}
	if (t->canon_failed)
		return -ENOMEM;
	all = hc_file_alloc(t->canon_len);
	if (!all)
		return -ENOMEM;
	for (i = 0; i < t->nentries; i++) {
		memcpy(all + n, t->canon + t->by_rank[i]->canon, t->by_rank[i]->canon_len);
		n += t->by_rank[i]->canon_len;
	}
	memcpy(all + n, t->canon + start, t->canon_len - start);
	n += t->canon_len - start;
	ro->hash[0] = hc_hash(&hc_ranktable_keys[0], all, n);
	ro->hash[1] = hc_hash(&hc_ranktable_keys[1], all, n);
	hc_file_free(all);
	return 0;
}

static int build(struct rt *t, struct hc_roster **roster)
{
	size_t bytes = t->nservers * sizeof(uint32_t);
	uint32_t *place = hc_file_alloc(bytes);
	struct hc_roster *ro;
	char *names;
	int r = -ENOMEM;

	*roster = NULL;
	if (!place)
		return -ENOMEM;
	ro = new_roster(t, &names);
	if (ro) {
		memset(place, 0, bytes);
		fill_roster(t, ro, names, place);
		memset(place, 0, bytes);
		r = hash_all(t, ro, place);
	}
	hc_file_free(place);
	if (r)
		hc_file_free(ro);
	else
		*roster = ro;
	return r;
}

/* ---- what was understood ---- */

static const char *plural(size_t n)
{
	return n == 1 ? "" : "s";
}

static void families(const struct rt *t, char *buf, size_t size)
{
	const enum hc_net_kind kinds[] = {HC_NET_IP4, HC_NET_IP6, HC_NET_EID};
	bool seen[3] = {false};
	size_t i, k, n = 0;

	for (i = 0; i < t->naddrs; i++)
		for (k = 0; k < 3; k++)
			seen[k] |= t->addrs[i].net.kind == kinds[k];
	snprintf(buf, size, "no addresses");
	for (k = 0; k < 3; k++)
		if (seen[k])
			n += (size_t)snprintf(buf + n, size - n, "%s%s", n ? " and " : "",
					      hc_net_kind_name(kinds[k]));
}

/* Ranks and devices with other numbers are what people confuse, so a short list shows them. */
static void devices(const struct rt *t, char *buf, size_t size)
{
	size_t i, n = 0;
	bool differ = false;

	buf[0] = '\0';
	for (i = 0; i < t->nentries; i++)
		differ |= t->by_rank[i]->device != t->by_rank[i]->rank;
	if (!differ || t->nservers != 1 || t->nentries > 8)
		return;
	for (i = 0; i < t->nentries && n < size; i++)
		n += (size_t)snprintf(buf + n, size - n, "%srank %zu = device %u", i ? ", " : "; ",
				      i, t->by_rank[i]->device);
}

static void say_accepted(const struct rt *t)
{
	static const char *const names[] = {"1.0", "1.2", "2.0"};
	char fam[64], dev[256], pods[48] = "";

	families(t, fam, sizeof(fam));
	devices(t, dev, sizeof(dev));
	if (t->super_mode)
		snprintf(pods, sizeof(pods), ", %zu super pod%s", t->npods, plural(t->npods));
	hc_verdict_set(t->doc.v, HC_V_NONE, "version %s, %zu rank%s on %zu server%s%s, %s%s",
		       names[t->version], t->nentries, plural(t->nentries), t->nservers,
		       plural(t->nservers), pods, fam, dev);
}

/* ---- in and out ---- */

static void fini(struct rt *t)
{
	hc_file_free(t->entries);
	hc_file_free(t->servers);
	hc_file_free(t->addrs);
	hc_file_free(t->levels);
	hc_file_free((void *)t->pods);
	hc_file_free(t->by_rank);
	hc_file_free(t->canon);
	json_decref(t->doc.root);
}

int hc_ranktable_read(const struct hc_jsontext *in, struct hc_roster **roster, struct hc_verdict *v)
{
	struct rt t = {.doc = {.text = in, .v = v}};
	int r = hc_jsontext_parse(in, &t.doc.root, v);

	*roster = NULL;
	if (!r)
		r = walk(&t);
	if (!r) {
		r = build(&t, roster);
		if (!r)
			say_accepted(&t);
	}
	if (r == -ENOMEM)
		rt_nomem(&t);
	fini(&t);
	return r;
}

void hc_ranktable_free(struct hc_roster *roster)
{
	hc_file_free(roster);
}
