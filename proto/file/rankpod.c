/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The super pods of rank tables 1.2.
 *
 * A pod lists its servers by name. Each server of server_list is in exactly one pod, the servers
 * of a pod stand together in server_list, and each device has an id that is its own within the
 * pod. When there is no super_pod_list, or no device at all has an id, the table is a plain one
 * and only what is written gets checked.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <stdlib.h>
#include "rankimp.h"

#define POD_ID_MAX    1024
#define SERVER_ID_MAX 64

static int by_id(const void *x, const void *y)
{
	const struct rt_server *a = *(struct rt_server *const *)x,
			       *b = *(struct rt_server *const *)y;

	return strcmp(a->id, b->id);
}

static struct rt_server *find_server(void **sorted, size_t n, const char *id)
{
	struct rt_server key = {.id = id}, *want = &key, **hit;

	hit = bsearch(&want, sorted, n, sizeof(*sorted), by_id);
	return hit ? *hit : NULL;
}

static int take_pod_server(struct rt *t, const struct hc_at *at, const json_t *obj, void **sorted)
{
	const char *id, *pod = t->pods[t->npods - 1];
	struct rt_server *s;
	int r = hc_want_object(&t->doc, at, obj);

	if (!r)
		r = hc_get_text(&t->doc, at, obj, "server_id", HC_F_REQUIRED | HC_F_FILLED,
				SERVER_ID_MAX, &id);
	if (r)
		return r;
	s = find_server(sorted, t->nservers, id);
	if (!s)
		return hc_doc_fail(&t->doc, at, "server_id", HC_V_UNKNOWN_SERVER, id,
				   "a server of server_list",
				   "super pod %s names server %s, which is not in server_list",
				   HC_CLIP(pod), HC_CLIP(id));
	if (s->pod)
		return hc_doc_fail(&t->doc, at, "server_id", HC_V_DUPLICATE_SERVER, id,
				   "each server in one super pod",
				   "super pod %s names server %s, which is in super pod %s already",
				   HC_CLIP(pod), HC_CLIP(id), HC_CLIP(t->pods[s->pod - 1]));
	s->pod = (uint32_t)t->npods;
	return 0;
}

static int take_pod(struct rt *t, const struct hc_at *at, const json_t *obj, void **sorted)
{
	const json_t *list;
	const char *id;
	struct hc_at in;
	size_t i;
	int r = hc_want_object(&t->doc, at, obj);

	if (!r)
		r = hc_get_text(&t->doc, at, obj, "super_pod_id", HC_F_REQUIRED | HC_F_FILLED,
				POD_ID_MAX, &id);
	if (!r)
		r = hc_get_list(&t->doc, at, obj, "server_list", HC_F_REQUIRED | HC_F_FILLED,
				SIZE_MAX, &list);
	if (r)
		return r;
	if (hc_file_grow((void **)&t->pods, &t->pods_cap, t->npods + 1, sizeof(*t->pods)) < 0)
		return -ENOMEM;
	t->pods[t->npods++] = id;
	for (i = 0; !r && i < json_array_size(list); i++) {
		in = hc_at_in(at, "server_list", i);
		r = take_pod_server(t, &in, json_array_get(list, i), sorted);
	}
	return r;
}

static int by_text(const void *x, const void *y)
{
	const char *const *a = *(const char *const *const *)x;
	const char *const *b = *(const char *const *const *)y;
	int r = strcmp(*a, *b);

	return r ? r : (a > b) - (a < b);
}

static bool same_text(const void *x, const void *y)
{
	return !strcmp(*(const char *const *)x, *(const char *const *)y);
}

static int check_pod_names(struct rt *t)
{
	struct hc_at at = {0};
	void **sorted, *first, *second;
	const char **b;
	int r = rt_sort((void *)t->pods, t->npods, sizeof(*t->pods), by_text, &sorted);

	if (r)
		return r;
	rt_first_pair(sorted, t->npods, same_text, &first, &second);
	hc_file_free(sorted);
	if (!second)
		return 0;
	b = second;
	at = hc_at_in(&at, "super_pod_list", (size_t)(b - t->pods));
	return hc_doc_fail(&t->doc, &at, "super_pod_id", HC_V_DUPLICATE_SERVER, *b,
			   "a super_pod_id of its own", "super pod %s is listed twice",
			   HC_CLIP(*b));
}

static int read_pods(struct rt *t, const json_t *list)
{
	const struct hc_at top = {0};
	struct hc_at at;
	void **sorted;
	size_t i;
	int r = rt_sort(t->servers, t->nservers, sizeof(*t->servers), by_id, &sorted);

	for (i = 0; !r && i < json_array_size(list); i++) {
		at = hc_at_in(&top, "super_pod_list", i);
		r = take_pod(t, &at, json_array_get(list, i), sorted);
	}
	hc_file_free(sorted);
	return r ? r : check_pod_names(t);
}

/* Every server is in a pod, and a pod's servers stand together. */
static int check_cover(struct rt *t)
{
	const struct rt_server *s, *prev = NULL;
	struct hc_at at = {0}, in;
	uint8_t *closed = hc_file_alloc(t->npods + 1);
	size_t i;
	int r = 0;

	if (!closed)
		return -ENOMEM;
	memset(closed, 0, t->npods + 1);
	for (i = 0; i < t->nservers && !r; i++, prev = s) {
		s = &t->servers[i];
		in = hc_at_in(&at, "server_list", s->place);
		if (!s->pod)
			r = hc_doc_fail(&t->doc, &in, "server_id", HC_V_COUNT_MISMATCH, s->id,
					"each server in one super pod",
					"server %s is in no super pod of super_pod_list",
					HC_CLIP(s->id));
		else if (prev && prev->pod != s->pod && closed[s->pod])
			r = hc_doc_fail(
				&t->doc, &in, "server_id", HC_V_CROSSED_RANKS, s->id,
				"servers of one super pod side by side",
				"server %s of super pod %s comes after server %s of super pod "
				"%s; the servers of one super pod must stand together",
				HC_CLIP(s->id), HC_CLIP(t->pods[s->pod - 1]), HC_CLIP(prev->id),
				HC_CLIP(t->pods[prev->pod - 1]));
		closed[s->pod] = 1;
	}
	hc_file_free(closed);
	return r;
}

struct sdid {
	const struct rt_entry *entry;
	uint32_t pod, id;
};

static int by_sdid(const void *x, const void *y)
{
	const struct sdid *a = *(struct sdid *const *)x, *b = *(struct sdid *const *)y;

	if (a->pod != b->pod)
		return a->pod < b->pod ? -1 : 1;
	if (a->id != b->id)
		return a->id < b->id ? -1 : 1;
	return (a > b) - (a < b);
}

static bool same_sdid(const void *x, const void *y)
{
	const struct sdid *a = x, *b = y;

	return a->pod == b->pod && a->id == b->id;
}

static int report_sdid(struct rt *t, const struct sdid *a, const struct sdid *b)
{
	struct hc_at at = rt_entry_at(t, b->entry), first = rt_entry_at(t, a->entry);
	char number[16], other[256];

	snprintf(number, sizeof(number), "%u", b->id);
	return hc_doc_fail(&t->doc, &at, "super_device_id", HC_V_DUPLICATE_SUPER_DEVICE, number,
			   "one for each device of a super pod",
			   "super_device_id %s is used already in super pod %s by %s", number,
			   HC_CLIP(t->pods[b->pod - 1]), hc_at_label(&first, other, sizeof(other)));
}

static int check_sdids(struct rt *t)
{
	struct sdid *ids = hc_file_alloc(t->nentries * sizeof(*ids));
	void **sorted, *first, *second;
	size_t i;
	int r;

	if (!ids)
		return -ENOMEM;
	for (i = 0; i < t->nentries; i++)
		ids[i] = (struct sdid){&t->entries[i], t->servers[t->entries[i].server].pod,
				       t->entries[i].super_device};
	r = rt_sort(ids, t->nentries, sizeof(*ids), by_sdid, &sorted);
	if (!r) {
		rt_first_pair(sorted, t->nentries, same_sdid, &first, &second);
		r = second ? report_sdid(t, first, second) : 0;
	}
	hc_file_free(sorted);
	hc_file_free(ids);
	return r;
}

static int check_have_sdids(struct rt *t, bool *any)
{
	const struct rt_entry *lacks = NULL;
	struct hc_at at;
	size_t i;

	*any = false;
	for (i = 0; i < t->nentries; i++) {
		*any |= t->entries[i].has_super_device;
		if (!t->entries[i].has_super_device && !lacks)
			lacks = &t->entries[i];
	}
	if (!*any || !lacks)
		return 0;
	at = rt_entry_at(t, lacks);
	return hc_doc_fail(&t->doc, &at, "super_device_id", HC_V_MISSING_SUPER_DEVICE,
			   "no super_device_id", "a super_device_id for each device",
			   "super_device_id is missing or empty; in a table with super pods each "
			   "device needs one");
}

int rt_check_super(struct rt *t)
{
	const struct hc_at top = {0};
	const json_t *list;
	bool any = false;
	int r = hc_get_list(&t->doc, &top, t->doc.root, "super_pod_list", 0, SIZE_MAX, &list);

	if (r || !list || !json_array_size(list))
		return r;
	r = read_pods(t, list);
	if (!r)
		r = check_cover(t);
	if (!r)
		r = check_have_sdids(t, &any);
	if (r || !any)
		return r;
	t->super_mode = true;
	return check_sdids(t);
}
