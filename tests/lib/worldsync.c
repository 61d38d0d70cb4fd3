/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Barrier and exchange in a world: what clients ask and hear, who keeps which page, and the
 * promises: a page is kept for a part that lives and for none else, memory that is charged is
 * memory that is there, who waits has a timer, tables agree.
 */
#include "worldimp.h"

#include "state.h"
#include "syncpage.h"

#include <string.h>

/* ---- asking ---- */

uint32_t world_sync_open(struct world *w, struct world_client *cl, uint64_t id, uint32_t rank)
{
	struct hc_m_sync_open m = {.id = id, .epoch = 1, .rank = rank};
	struct hc_event ev = {0};

	return world_ask_with(w, cl, "sync open", &hc_desc_sync_open, &m, &ev);
}

uint32_t world_sync_have(struct world *w, struct world_client *cl, uint64_t id, uint32_t rank,
			 bool page, uint32_t bytes, uint64_t fences)
{
	struct hc_m_sync_have m = {.id = id, .epoch = 1, .fences = fences, .page = page};
	struct hc_m_rank r = {.rank = rank};
	struct hc_event ev = {.u.request.page = bytes};
	uint8_t ranks[8];

	world_want(w, !hc_arr_put(&m.ranks, ranks, sizeof(ranks), &hc_desc_rank, 1, &r));
	return world_ask_with(w, cl, "sync have", &hc_desc_sync_have, &m, &ev);
}

uint32_t world_put(struct world *w, struct world_client *cl, uint64_t id, uint32_t rank,
		   const char *key, const void *value, uint32_t bytes, uint64_t version)
{
	struct hc_m_put m = {.id = id,
			     .epoch = 1,
			     .rank = rank,
			     .version = version,
			     .key = hc_str(key),
			     .value = {value, bytes}};
	struct hc_event ev = {0};

	return world_ask_with(w, cl, "put", &hc_desc_put, &m, &ev);
}

uint32_t world_get(struct world *w, struct world_client *cl, uint64_t id, uint32_t rank,
		   const char *key, uint32_t timeout_ms, bool whole, uint64_t known)
{
	struct hc_m_get m = {.id = id,
			     .epoch = 1,
			     .rank = rank,
			     .timeout_ms = timeout_ms,
			     .known = known,
			     .whole = whole,
			     .key = hc_str(key)};
	struct hc_event ev = {0};

	return world_ask_with(w, cl, "get", &hc_desc_get, &m, &ev);
}

uint32_t world_fence(struct world *w, struct world_client *cl, uint64_t id, const uint32_t *ranks,
		     uint64_t number, uint32_t timeout_ms)
{
	struct hc_m_fence m = {.id = id, .epoch = 1, .number = number, .timeout_ms = timeout_ms};
	struct hc_event ev = {0};
	uint8_t bytes[512];

	for (; *ranks != WORLD_END; ranks++) {
		struct hc_m_rank r = {.rank = *ranks};

		world_want(w, !hc_arr_put(&m.ranks, bytes, sizeof(bytes), &hc_desc_rank, 1, &r));
	}
	return world_ask_with(w, cl, "fence", &hc_desc_fence, &m, &ev);
}

/* ---- answers ---- */

void world_got_value(struct world *w, struct world_client *cl, const struct hc_frame *f,
		     const char *name, const char *label)
{
	struct hc_m_get_r m;

	world_want(w, !hc_decode(&hc_desc_get_r, HC_PROTO_MAX, f->body, f->body_len, &m));
	world_want(w, m.value.len <= sizeof(cl->got));
	memcpy(cl->got, m.value.p, m.value.len);
	cl->got_len = m.value.len;
	cl->got_bytes = m.bytes;
	cl->version = m.version;
	world_line(w, SHOW_REPLIES, "%s %u %s: %u of %u bytes", name, cl->pid, label, m.value.len,
		   m.bytes);
}

void world_got_sync(struct world *w, struct world_client *cl, const struct hc_frame *f,
		    const char *name, const char *label)
{
	struct hc_m_sync_open_r m;

	world_want(w, !hc_decode(&hc_desc_sync_open_r, HC_PROTO_MAX, f->body, f->body_len, &m));
	world_want(w, m.bytes == HC_SYNC_BYTES(m.lines));
	cl->lines = m.lines;
	world_line(w, SHOW_REPLIES, "%s %u %s: page of %u ranks", name, cl->pid, label, m.lines);
}

/* ---- pages ---- */

void world_grant_sync(struct world *w, uint32_t node, const struct hc_action *a)
{
	uint64_t *at;

	world_want(w, a->u.reply.slot < WORLD_RECORDS && a->u.reply.id);
	at = &w->pages[node][a->u.reply.slot];
	/* that of another domain or epoch would be handed out */
	world_want(w, !*at || *at == a->u.reply.id);
	*at = a->u.reply.id;
}

void world_sync(struct world *w, uint32_t node, const struct hc_action *a)
{
	const uint32_t slot = a->u.sync.slot;

	world_want(w, slot < WORLD_RECORDS);
	world_want(w, a->u.sync.keep == !w->pages[node][slot]);
	w->pages[node][slot] = a->u.sync.keep ? w->core[node]->parts[slot].id : 0;
}

/* ---- promises ---- */

static void check_pages(struct world *w, uint32_t node)
{
	const struct hc_core *c = w->core[node];
	uint32_t n;

	for (n = 0; n < c->lim.domains && n < WORLD_RECORDS; n++) {
		world_want(w, (c->syncs[n].state == SYNC_OPEN) == (w->pages[node][n] != 0));
		if (c->syncs[n].state != SYNC_NONE)
			world_want(w, c->parts[n].id && c->syncs[n].bytes);
		if (w->pages[node][n])
			world_want(w, w->pages[node][n] == c->parts[n].id);
	}
}

static void check_tables(struct world *w, uint32_t node)
{
	const struct hc_core *c = w->core[node];
	uint32_t n, entries = 0, cells = 0, waiting = 0, ready = 0, i;
	uint64_t bytes = 0, charged = 0;

	for (n = 0; n < c->exch_pool.fresh; n++) {
		const struct hc_exch *e = &c->exchs[n];

		if (!e->id)
			continue;
		entries += e->entries.count;
		waiting += e->waiters.count;
		ready += e->ready;
		bytes += e->bytes;
		world_want(w, (e->calls != HC_NONE) == (e->came != 0));
		for (i = 0; e->calls != HC_NONE && i < e->nranks; i++)
			world_want(w, c->fence_calls[e->calls + i] <= c->waiter_pool.fresh);
	}
	for (n = 0; n < c->entry_pool.fresh; n++)
		cells += c->entries[n].cells;
	world_want(w, entries == c->entry_pool.used && cells == c->cell_pool.used);
	world_want(w, bytes == entries * 256ull + cells * 1024ull);
	world_want(w, waiting + ready == c->waiter_pool.used && ready == c->waiters_ready.count);
	world_want(w, waiting == c->waiter_timers.count);
	for (n = 0; n < c->lim.domains; n++)
		bytes += c->syncs[n].bytes;
	for (n = 0; n < c->user_pool.fresh; n++)
		charged += c->users[n].memory;
	world_want(w, charged >= bytes);
}

void world_check_sync(struct world *w, uint32_t node)
{
	check_pages(w, node);
	check_tables(w, node);
}
