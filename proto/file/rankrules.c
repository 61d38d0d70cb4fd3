/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules over a whole rank table, the same for all versions.
 *
 * Each is a sort and a look at neighbours, so a table of 65,536 ranks costs no more than a few
 * sorts. When several pairs offend, the one whose later member comes first in the file is named:
 * that is the line a person reading from the top would stop at.
 *
 * That the ranks of one server follow each other is a rule of 1.x only; nothing says so of 2.0.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "rankimp.h"

/* ---- tools ---- */

static void *new_element(void **array, size_t *n, size_t *cap, size_t size)
{
	void *p;

	if (hc_file_grow(array, cap, *n + 1, size) < 0)
		return NULL;
	p = (char *)*array + (*n)++ * size;
	return memset(p, 0, size);
}

struct rt_entry *rt_new_entry(struct rt *t)
{
	return new_element((void **)&t->entries, &t->nentries, &t->entries_cap,
			   sizeof(*t->entries));
}

struct rt_addr *rt_new_addr(struct rt *t)
{
	return new_element((void **)&t->addrs, &t->naddrs, &t->addrs_cap, sizeof(*t->addrs));
}

int rt_sort(void *base, size_t n, size_t size, rt_cmp *cmp, void ***sorted)
{
	void **p = hc_file_alloc(n * sizeof(*p));
	size_t i;

	*sorted = p;
	if (!p)
		return -ENOMEM;
	for (i = 0; i < n; i++)
		p[i] = (char *)base + i * size;
	qsort(p, n, sizeof(*p), cmp);
	return 0;
}

void rt_first_pair(void **sorted, size_t n, bool (*same)(const void *x, const void *y),
		   void **first, void **second)
{
	size_t i;

	*first = *second = NULL;
	for (i = 1; i < n; i++) {
		if ((*second && sorted[i] > *second) || !same(sorted[i - 1], sorted[i]))
			continue;
		*first = sorted[i - 1];
		*second = sorted[i];
	}
}

struct hc_at rt_entry_at(const struct rt *t, const struct rt_entry *e)
{
	struct hc_at at = {0};

	if (t->version == RT_2_0) {
		at = hc_at_in(&at, "rank_list", e->place);
	} else {
		at = hc_at_in(&at, "server_list", t->servers[e->server].place);
		at = hc_at_in(&at, "device", e->place);
	}
	at.server = t->nservers ? t->servers[e->server].id : NULL;
	at.device = e->device_json;
	at.rank = e->rank_json;
	return at;
}

struct hc_at rt_addr_at(const struct rt *t, const struct rt_addr *a, const char **field)
{
	struct hc_at at = rt_entry_at(t, &t->entries[a->entry]);

	if (t->version == RT_2_0) {
		at = hc_at_in(&at, "level_list", a->level);
		at = hc_at_in(&at, "rank_addr_list", a->place);
		*field = "addr";
	} else {
		*field = a->backup ? "backup_device_ip" : "device_ip";
	}
	return at;
}

/* "the first owner", for the second half of a message */
static const char *owner(const struct rt *t, const struct rt_entry *e, char *buf, size_t size)
{
	struct hc_at at = rt_entry_at(t, e);

	return hc_at_label(&at, buf, size);
}

static const char *net_text(const struct hc_netaddr *n, char buf[HC_ADDR_TEXT_MAX])
{
	struct hc_addr a = n->a;

	if (n->kind == HC_NET_EID)
		a.family = 6;
	a.scope = 0;
	hc_addr_text(&a, buf);
	if (*n->scope)
		snprintf(buf + strlen(buf), HC_ADDR_TEXT_MAX - strlen(buf), "%%%s", n->scope);
	return buf;
}

/* ---- servers ---- */

static int by_id(const void *x, const void *y)
{
	const struct rt_server *a = *(struct rt_server *const *)x,
			       *b = *(struct rt_server *const *)y;
	int r = strcmp(a->id, b->id);

	return r ? r : (a > b) - (a < b);
}

static bool same_id(const void *x, const void *y)
{
	const struct rt_server *a = x, *b = y;

	return !strcmp(a->id, b->id);
}

static int check_servers(struct rt *t)
{
	struct hc_at at = {0};
	struct rt_server *a, *b;
	void **sorted, *first, *second;
	int r = rt_sort(t->servers, t->nservers, sizeof(*t->servers), by_id, &sorted);

	if (r)
		return r;
	rt_first_pair(sorted, t->nservers, same_id, &first, &second);
	hc_file_free(sorted);
	if (!second)
		return 0;
	a = first;
	b = second;
	at = hc_at_in(&at, "server_list", b->place);
	return hc_doc_fail(&t->doc, &at, "server_id", HC_V_DUPLICATE_SERVER, b->id,
			   "a server_id of its own",
			   "server %s is listed twice, as server_list[%u] and server_list[%u]",
			   HC_CLIP(b->id), a->place, b->place);
}

/* ---- ranks ---- */

static int by_rank(const void *x, const void *y)
{
	const struct rt_entry *a = *(struct rt_entry *const *)x, *b = *(struct rt_entry *const *)y;

	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	return (a > b) - (a < b);
}

static bool same_rank(const void *x, const void *y)
{
	const struct rt_entry *a = x, *b = y;

	return a->rank == b->rank;
}

static int duplicate_rank(struct rt *t, const struct rt_entry *a, const struct rt_entry *b)
{
	struct hc_at at = rt_entry_at(t, b);
	char other[256], number[16];

	snprintf(number, sizeof(number), "%u", b->rank);
	return hc_doc_fail(&t->doc, &at, "rank_id", HC_V_DUPLICATE_RANK, number, "each rank once",
			   "rank %u is taken already by %s", b->rank,
			   owner(t, a, other, sizeof(other)));
}

static int rank_gap(struct rt *t, uint32_t missing)
{
	const struct rt_entry *e = t->by_rank[missing];
	struct hc_at at = rt_entry_at(t, e);
	char found[24], wanted[48];

	snprintf(found, sizeof(found), "rank %u", e->rank);
	snprintf(wanted, sizeof(wanted), "rank %u", missing);
	return hc_doc_fail(
		&t->doc, &at, "rank_id", HC_V_RANK_GAP, found, wanted,
		"%s is missing of %zu (ranks run from 0 to %zu); the next one listed is %s", wanted,
		t->nentries, t->nentries - 1, found);
}

static int check_ranks(struct rt *t)
{
	void **sorted, *first, *second;
	uint32_t i;
	int r = rt_sort(t->entries, t->nentries, sizeof(*t->entries), by_rank, &sorted);

	if (r)
		return r;
	t->by_rank = (struct rt_entry **)sorted;
	rt_first_pair(sorted, t->nentries, same_rank, &first, &second);
	if (second)
		return duplicate_rank(t, first, second);
	for (i = 0; i < t->nentries; i++)
		if (t->by_rank[i]->rank != i)
			return rank_gap(t, i);
	return 0;
}

/* ---- ranks of one server ---- */

/* "0-2,7": the ranks of one server, cut short when there are many runs. */
static const char *rank_set(const struct rt *t, uint32_t server, char *buf, size_t size)
{
	uint32_t i, from;
	size_t n = 0;

	buf[0] = '\0';
	for (i = 0; i < t->nentries; i++) {
		if (t->by_rank[i]->server != server)
			continue;
		if (n + 32 > size) {
			snprintf(buf + n, size - n, ",...");
			break;
		}
		for (from = i; i + 1 < t->nentries && t->by_rank[i + 1]->server == server;)
			i++;
		n += (size_t)snprintf(buf + n, size - n, from < i ? "%s%u-%u" : "%s%u",
				      n ? "," : "", from, i);
	}
	return buf;
}

static int crossed(struct rt *t, uint32_t server)
{
	const struct rt_server *s = &t->servers[server];
	char mine[96], theirs[96];
	const struct rt_entry *e = t->by_rank[s->min];
	struct hc_at at = {0};
	uint32_t i;

	for (i = s->min; i <= s->max; i++) {
		e = t->by_rank[i];
		if (e->server != server)
			break;
	}
	rank_set(t, server, mine, sizeof(mine));
	rank_set(t, e->server, theirs, sizeof(theirs));
	at = hc_at_in(&at, "server_list", s->place);
	return hc_doc_fail(
		&t->doc, &at, "device", HC_V_CROSSED_RANKS, mine,
		"ranks of one server that follow each other",
		"server %s has ranks {%s} and server %s has ranks {%s}; the ranks of one "
		"server must follow each other",
		HC_CLIP(s->id), mine, HC_CLIP(t->servers[e->server].id), theirs);
}

static int check_crossed(struct rt *t)
{
	struct rt_server *s;
	uint32_t i;

	for (i = 0; i < t->nentries; i++) {
		s = &t->servers[t->by_rank[i]->server];
		if (!s->count++)
			s->min = i;
		s->max = i;
	}
	for (i = 0; i < t->nservers && t->version != RT_2_0; i++)
		if (t->servers[i].max - t->servers[i].min + 1 != t->servers[i].count)
			return crossed(t, i);
	return 0;
}

/* ---- devices, and what must differ between those of one server ---- */

static int by_field(const struct rt_entry *a, const struct rt_entry *b, uint32_t x, uint32_t y)
{
	if (a->server != b->server)
		return a->server < b->server ? -1 : 1;
	if (x != y)
		return x < y ? -1 : 1;
	return (a > b) - (a < b);
}

#define PER_SERVER(name, field)                                                                    \
	static int by_##name(const void *x, const void *y)                                         \
	{                                                                                          \
		const struct rt_entry *a = *(struct rt_entry *const *)x,                           \
				      *b = *(struct rt_entry *const *)y;                           \
		return by_field(a, b, a->field, b->field);                                         \
	}                                                                                          \
	static bool same_##name(const void *x, const void *y)                                      \
	{                                                                                          \
		const struct rt_entry *a = x, *b = y;                                              \
		return a->server == b->server && a->field == b->field && SKIP(a, field);           \
	}
#define SKIP(a, field) true
PER_SERVER(device, device)
PER_SERVER(local_id, local_id)
#undef SKIP
#define SKIP(a, field) (a)->field != 0 /* not given */
PER_SERVER(host_port, host_port)
#undef SKIP

static int distinct(struct rt *t, rt_cmp *cmp, bool (*same)(const void *x, const void *y),
		    const char *field, enum hc_verdict_kind kind)
{
	void **sorted, *first, *second;
	struct hc_at at;
	struct hc_clip c;
	char other[256];
	const json_t *list;
	const struct rt_entry *e;
	int r = rt_sort(t->entries, t->nentries, sizeof(*t->entries), cmp, &sorted);

	if (r)
		return r;
	rt_first_pair(sorted, t->nentries, same, &first, &second);
	hc_file_free(sorted);
	if (!second)
		return 0;
	e = second;
	at = rt_entry_at(t, e);
	list = t->version == RT_2_0
		       ? json_object_get(t->doc.root, "rank_list")
		       : json_object_get(json_array_get(json_object_get(t->doc.root, "server_list"),
							t->servers[e->server].place),
					 "device");
	return hc_doc_fail(
		&t->doc, &at, field, kind,
		hc_value_text(json_object_get(json_array_get(list, e->place), field), &c),
		"one for each device of a server", "the same %s is used already by %s", field,
		owner(t, first, other, sizeof(other)));
}

static int check_devices(struct rt *t)
{
	int r = distinct(t, by_device, same_device, "device_id", HC_V_DUPLICATE_DEVICE);

	if (!r && t->version == RT_2_0)
		r = distinct(t, by_local_id, same_local_id, "local_id", HC_V_DUPLICATE_DEVICE);
	if (!r)
		r = distinct(t, by_host_port, same_host_port, "host_port", HC_V_PORT_USED_TWICE);
	return r;
}

/* ---- addresses ---- */

static int by_address(const void *x, const void *y)
{
	const struct rt_addr *a = *(struct rt_addr *const *)x, *b = *(struct rt_addr *const *)y;
	int r = hc_netaddr_cmp(&a->net, &b->net);

	if (!r)
		r = a->port - b->port;
	if (!r)
		r = a->backup - b->backup; /* owners first */
	return r ? r : (a > b) - (a < b);
}

/* Backups repeat owners' addresses, but not their ports; a rank may repeat its own in another
 * layer. */
static bool same_address(const void *x, const void *y)
{
	const struct rt_addr *a = x, *b = y;

	if (hc_netaddr_cmp(&a->net, &b->net) || a->port != b->port || a->backup)
		return false;
	return a->entry != b->entry || a->layer == b->layer;
}

static int duplicate_address(struct rt *t, const struct rt_addr *a, const struct rt_addr *b)
{
	const char *field;
	struct hc_at at = rt_addr_at(t, b, &field);
	char text[HC_ADDR_TEXT_MAX], other[256], port[24] = "";

	if (b->port)
		snprintf(port, sizeof(port), " port %u", b->port);
	net_text(&b->net, text);
	owner(t, &t->entries[a->entry], other, sizeof(other));
	if (b->backup)
		return hc_doc_fail(&t->doc, &at, field, HC_V_PORT_USED_TWICE, text,
				   "another backup_device_port",
				   "backup %s%s is the address and port that %s has for its device",
				   text, port, other);
	return hc_doc_fail(&t->doc, &at, field, HC_V_DUPLICATE_ADDRESS, text,
			   "an address and port of its own", "%s%s is used already by %s", text,
			   port, other);
}

static int check_same_address(struct rt *t)
{
	void **sorted, *first, *second;
	int r = rt_sort(t->addrs, t->naddrs, sizeof(*t->addrs), by_address, &sorted);

	if (r)
		return r;
	rt_first_pair(sorted, t->naddrs, same_address, &first, &second);
	hc_file_free(sorted);
	return second ? duplicate_address(t, first, second) : 0;
}

/* One family among the IP addresses of a layer. */
static int check_families(struct rt *t)
{
	const struct rt_addr *first[RT_LEVELS_MAX] = {NULL}, *a, *b;
	char x[HC_ADDR_TEXT_MAX], y[HC_ADDR_TEXT_MAX], other[256];
	const char *field;
	struct hc_at at;
	size_t i;

	for (i = 0; i < t->naddrs; i++) {
		b = &t->addrs[i];
		if (b->net.kind == HC_NET_EID)
			continue;
		a = first[b->layer];
		if (!a)
			first[b->layer] = b;
		if (!a || a->net.kind == b->net.kind)
			continue;
		at = rt_addr_at(t, b, &field);
		return hc_doc_fail(&t->doc, &at, field, HC_V_MIXED_FAMILY,
				   hc_net_kind_name(b->net.kind), hc_net_kind_name(a->net.kind),
				   "%s is %s, but %s has %s, which is %s; one family is wanted",
				   net_text(&b->net, x), hc_net_kind_name(b->net.kind),
				   owner(t, &t->entries[a->entry], other, sizeof(other)),
				   net_text(&a->net, y), hc_net_kind_name(a->net.kind));
	}
	return 0;
}

/* Devices of several servers meet over the network, unless one super pod joins them all. */
static int check_present(struct rt *t)
{
	const bool v2 = t->version == RT_2_0;
	struct hc_at at;
	size_t i;

	if (t->nservers < 2 || (t->super_mode && t->npods == 1))
		return 0;
	for (i = 0; i < t->nentries; i++) {
		if (t->entries[i].naddrs)
			continue;
		at = rt_entry_at(t, &t->entries[i]);
		return hc_doc_fail(&t->doc, &at, v2 ? "level_list" : "device_ip",
				   HC_V_MISSING_ADDRESS, "no address",
				   "an address for each device of a table with several servers",
				   "no address is given; with %zu servers each device needs one%s",
				   t->nservers, v2 ? "" : " in device_ip");
	}
	return 0;
}

int rt_check(struct rt *t)
{
	int r = check_servers(t);

	if (!r)
		r = check_ranks(t);
	if (!r)
		r = check_crossed(t);
	if (!r)
		r = check_devices(t);
	if (!r)
		r = check_same_address(t);
	if (!r)
		r = check_families(t);
	if (!r && t->version == RT_1_2)
		r = rt_check_super(t);
	if (!r)
		r = check_present(t);
	return r;
}
