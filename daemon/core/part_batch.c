/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request for many sub-domains of one parent; see join.h.
 *
 * The request is kept, and its items are taken up one in a unit of work, after everything else
 * that is under way: so an item is on its way to the store before the next one begins, its memory
 * is still in the cache, and other requests are never further away than one step. An item goes
 * the way of a sub-domain; what is special is only that a seat of it waits for the item and not
 * for a request. Once every item has its outcome one answer lists them all.
 *
 * Domains of a batch make no journal entry, no log line and no event for its caller of their own:
 * the answer says that they are ACTIVE, and the batch is journaled as one, under its parent. Their
 * rows are stored like any other; `more` of the actions tells the store that others follow at
 * once, so that they share a transaction.
 */
#include "join.h"

#include "emit.h"
#include "home.h"
#include "pages.h"
#include "session.h"

#include <stdio.h>
#include <string.h>

#define ITEM_BYTES   22u /* of batch_done, encoded */
#define SEAT_BYTES   12u
#define ANSWER_BYTES (HC_PACKET_MAX - HC_TEXT_MAX - 256u)

static uint32_t number_of(const struct hc_core *c, const struct hc_batch *b)
{
	return (uint32_t)(b - c->batches);
}

static struct hc_batch_item *items_of(const struct hc_core *c, const struct hc_batch *b)
{
	return &c->batch_items[(size_t)number_of(c, b) * HC_BATCH_ITEMS];
}

static void list_in(struct hc_core *c, struct hc_batch *b)
{
	hc_list_push(&c->batching, &c->batch_links, number_of(c, b));
}

static void list_out(struct hc_core *c, struct hc_batch *b)
{
	hc_list_del(&c->batching, &c->batch_links, number_of(c, b));
}

/* ---- outcomes ---- */

static struct hc_batch *batch_of(struct hc_core *c, uint64_t session, uint32_t item)
{
	struct hc_batch *b = &c->batches[item / HC_BATCH_ITEMS];

	/* a session that was lost has no batch any more, though its seats may live on for a while
	 */
	if (!session || b->session != session || item % HC_BATCH_ITEMS >= b->items)
		return NULL;
	return b;
}

static void item_over(struct hc_core *c, struct hc_batch *b, struct hc_batch_item *it)
{
	it->over = true;
	b->over++;
	if (b->over == b->items && b->next == b->items)
		list_in(c, b);
}

void hc_batch_refused(struct hc_core *c, uint64_t session, uint32_t item, int code,
		      const char *text)
{
	struct hc_batch *b = batch_of(c, session, item);
	struct hc_batch_item *it = &c->batch_items[item];

	if (!b || it->over)
		return;
	if (b->failed == HC_NONE) {
		b->failed = item % HC_BATCH_ITEMS;
		HC_TEXT(b->text, "%s", text);
		hc_emit_refusal(c, session, code, text);
	}
	it->code = (uint16_t)code;
	item_over(c, b, it);
}

void hc_batch_joined(struct hc_core *c, uint64_t session, uint32_t item, struct hc_part *p)
{
	struct hc_batch *b = batch_of(c, session, item);
	struct hc_batch_item *it = &c->batch_items[item];

	if (!b || it->over)
		return;
	it->id = p->id;
	it->part = hc_part_number(c, p);
	item_over(c, b, it);
}

/* ---- an item ---- */

/* Note the place of each listed rank. False with the reason when the list is wrong. */
static bool mark(struct hc_core *c, const struct hc_part *parent, struct hc_arr a, char *text,
		 size_t bytes)
{
	struct hc_m_rank r;
	uint32_t i;

	for (i = 0; hc_arr_next(&a, &hc_desc_rank, HC_PROTO_MAX, &r); i++) {
		if (r.rank >= parent->nranks) {
			snprintf(text, bytes, "rank %u of the list: the parent has %u ranks",
				 r.rank, parent->nranks);
			return false;
		}
		if (c->rank_place[r.rank]) {
			snprintf(text, bytes, "rank %u stands twice in the list", r.rank);
			return false;
		}
		c->rank_place[r.rank] = i + 1;
	}
	return true;
}

static void unmark(struct hc_core *c, struct hc_arr a)
{
	struct hc_m_rank r;

	while (hc_arr_next(&a, &hc_desc_rank, HC_PROTO_MAX, &r))
		if (r.rank < c->lim.ranks_per_domain)
			c->rank_place[r.rank] = 0;
}

static bool add_comer(const struct hc_core *c, const struct hc_seat *t, const struct join *j,
		      struct hc_comer *list, uint32_t *n)
{
	if (t->process != j->s->process)
		return false;
	list[(*n)++] = (struct hc_comer){.rank = c->rank_place[t->rank] - 1,
					 .device = t->device,
					 .shared = t->flags & SEAT_SHARED};
	return true;
}

/*
 * The caller's ranks of those that are marked. Usually all of them sit in the order of their ranks
 * in the parent and are found at once; else all seats of the parent are looked at.
 */
static uint32_t find_own(struct hc_core *c, const struct hc_part *parent, struct hc_arr a,
			 const struct join *j, struct hc_comer *list)
{
	const struct hc_seat *seats = &c->seats[parent->seats];
	uint32_t n = 0, i;
	struct hc_m_rank r;
	bool all = true;

	while (all && hc_arr_next(&a, &hc_desc_rank, HC_PROTO_MAX, &r))
		all = r.rank < parent->nseats && seats[r.rank].rank == r.rank &&
		      add_comer(c, &seats[r.rank], j, list, &n);
	if (all)
		return n;
	for (n = i = 0; i < parent->nseats; i++)
		if (c->rank_place[seats[i].rank])
			add_comer(c, &seats[i], j, list, &n);
	return n;
}

static bool is_member(const struct hc_core *c, const struct hc_part *parent, uint32_t process)
{
	uint32_t i;

	for (i = 0; i < parent->nseats; i++)
		if (c->seats[parent->seats + i].process == process)
			return true;
	return false;
}

static void join_item(struct hc_core *c, const struct hc_batch *b, struct join *j, uint64_t sub_id,
		      struct hc_arr ranks)
{
	struct hc_comer *list = (struct hc_comer *)(void *)c->scratch;
	struct hc_part *parent;
	char text[256];
	uint32_t n;
	int r;

	parent = hc_part_parent(c, b->parent, b->epoch, false, &r, text, sizeof(text));
	if (!parent) {
		hc_join_refuse(c, j, r, text);
		return;
	}
	n = HC_NONE;
	if (mark(c, parent, ranks, text, sizeof(text)))
		n = find_own(c, parent, ranks, j, list);
	unmark(c, ranks);
	r = !n && !is_member(c, parent, j->s->process) ? HC_E_PERMISSION : HC_E_INVALID;
	if (!n)
		HC_TEXT(text, "no rank of %s is a rank of this process",
			r == HC_E_PERMISSION ? "the parent" : "the list");
	if (!n || n == HC_NONE) {
		hc_join_refuse(c, j, r, text);
		return;
	}
	j->home = parent->home_node;
	hc_join_sub_key(j, b->parent, b->epoch, sub_id,
			(struct hc_str){(const char *)ranks.bytes, ranks.len}, ranks.count);
	hc_join_together(c, j, list, n);
}

static void take_up(struct hc_core *c, struct hc_batch *b)
{
	const uint32_t index = b->next++;
	struct hc_m_batch_item it;
	struct join j = {.s = hc_session_get(c, b->session),
			 .request = number_of(c, b) * HC_BATCH_ITEMS + index,
			 .timeout_ms = b->timeout_ms,
			 .batch = true};
	struct hc_arr ranks = b->ranks;

	hc_assert(j.s && hc_arr_next(&b->rest, &hc_desc_batch_item, j.s->proto, &it));
	ranks.bytes += 4 * b->rank_at;
	ranks.len = 4 * it.count;
	ranks.count = it.count;
	b->rank_at += it.count;
	j.name = it.name;
	j.nranks = it.count;
	if (b->next == b->items)
		list_out(c, b); /* before its last item can end it */
	join_item(c, b, &j, it.sub_id, ranks);
}

/* ---- the answer ---- */

/* The slab of this slot, before the answer that speaks of it. */
static void send_slab(struct hc_core *c, struct hc_session *s, const struct hc_part *p,
		      uint32_t number)
{
	struct hc_m_slab m = {.slab = number / HC_SLAB_RECORDS};

	if (s->slabs >> (m.slab & 63) & 1)
		return;
	s->slabs |= 1ull << (m.slab & 63);
	hc_emit_grant(c, s->id, 0, &hc_desc_slab, &m, HC_GRANT_SLAB, p->uid, m.slab);
}

static void put_item(struct hc_core *c, struct hc_session *s, const struct hc_batch_item *it,
		     struct hc_m_batch_r *m)
{
	struct hc_part *p = it->code ? NULL : hc_part_by_id(c, it->id);
	struct hc_m_batch_done d = {.code = it->code};
	uint32_t i;

	if (!p && !it->code)
		d.code = HC_E_GONE; /* it ended before all the others had begun */
	for (i = 0; p && i < p->nseats; i++) {
		const struct hc_seat *t = &c->seats[p->seats + i];
		struct hc_m_seat seat = {.rank = t->rank, .device = t->device, .block = t->block};

		if (hc_seat_session(t) != s->id)
			continue;
		d.seats++;
		hc_assert(!hc_arr_put(&m->seats, c->scratch + HC_OUT_BYTES / 2, HC_OUT_BYTES / 2,
				      &hc_desc_seat, HC_PROTO_MAX, &seat));
	}
	if (p) {
		d.id = p->id;
		d.slot = it->part;
		d.tag = HC_TAG(p->reuse, p->epoch);
		m->epoch = p->epoch;
		send_slab(c, s, p, it->part);
	}
	hc_assert(!hc_arr_put(&m->items, c->scratch, HC_OUT_BYTES / 2, &hc_desc_batch_done,
			      HC_PROTO_MAX, &d));
}

static void journal(struct hc_core *c, const struct hc_batch *b, const struct hc_session *s,
		    uint32_t made)
{
	char text[160];

	HC_TEXT(text, "a batch of %u sub-domains of domain %016llx: %u are ACTIVE", b->items,
		(unsigned long long)b->parent, made);
	hc_emit_log(c, HC_LOG_INFO, HC_W_event_code_DOMAIN_ACTIVE, b->parent, HC_NONE, text);
	hc_emit_journal(c, HC_W_event_code_DOMAIN_ACTIVE, b->parent, b->epoch, HC_NONE, 0,
			c->processes[s->process].uid, text);
}

static void batch_free(struct hc_core *c, struct hc_batch *b)
{
	b->session = 0;
	b->items = 0;
	hc_pool_put(&c->batch_pool, number_of(c, b));
}

static void answer(struct hc_core *c, struct hc_batch *b)
{
	struct hc_session *s = hc_session_get(c, b->session);
	const struct hc_batch_item *it = items_of(c, b);
	struct hc_m_batch_r m = {.failed = b->failed, .text = hc_str(b->text)};
	uint32_t i, made = 0;

	for (i = 0; i < b->items; i++) {
		put_item(c, s, &it[i], &m);
		made += !it[i].code;
	}
	hc_emit_reply(c, s->id, b->request, &hc_desc_batch_r, &m);
	journal(c, b, s, made);
	list_out(c, b);
	batch_free(c, b);
}

bool hc_batch_work(struct hc_core *c)
{
	uint32_t n = hc_list_first(&c->batching);
	struct hc_batch *b;

	if (n == HC_NONE)
		return false;
	b = &c->batches[n];
	if (b->next < b->items)
		take_up(c, b);
	else
		answer(c, b);
	/* the next one's turn */
	if (c->batching.count > 1 && hc_list_first(&c->batching) == n) {
		list_out(c, b);
		list_in(c, b);
	}
	return true;
}

bool hc_batch_more(const struct hc_core *c)
{
	uint32_t n = hc_list_first(&c->batching);

	return n != HC_NONE && c->batches[n].next < c->batches[n].items;
}

/* ---- the request ---- */

/* How many of the parent's ranks this process has here. */
static uint32_t own_ranks(const struct hc_core *c, const struct hc_part *p,
			  const struct hc_session *s)
{
	uint32_t i, n = 0;

	for (i = 0; p && i < p->nseats; i++)
		n += c->seats[p->seats + i].process == s->process;
	return n;
}

static int check(struct hc_core *c, const struct hc_session *s, const struct hc_m_batch *m,
		 char *text, size_t bytes)
{
	uint32_t own = own_ranks(c, hc_part_by_id(c, m->parent), s), answer = 0, i;
	struct hc_arr a = m->items;
	struct hc_m_batch_item it;
	uint64_t ranks = 0;

	for (i = 0; hc_arr_next(&a, &hc_desc_batch_item, s->proto, &it); i++) {
		ranks += it.count;
		answer += ITEM_BYTES + SEAT_BYTES * (it.count < own ? it.count : own);
		if (it.count && answer <= ANSWER_BYTES)
			continue;
		snprintf(text, bytes, "item %u: %s", i,
			 it.count ? "the answer would not fit into one packet: use several batches"
				  : "its list is empty");
		return it.count ? HC_E_LIMIT : HC_E_INVALID;
	}
	if (i && ranks == m->ranks.count)
		return 0;
	snprintf(text, bytes, "%u items of %llu ranks, and a list of %u", i,
		 (unsigned long long)ranks, m->ranks.count);
	return HC_E_INVALID;
}

static const uint8_t *keep(uint8_t *to, const struct hc_arr *a)
{
	memcpy(to, a->bytes, a->len);
	return to;
}

void hc_batch(struct hc_core *c, struct hc_session *s, uint32_t request, const struct hc_m_batch *m)
{
	struct hc_batch *b;
	uint8_t *bytes;
	char text[256];
	uint32_t n;
	int r;

	r = check(c, s, m, text, sizeof(text));
	n = r ? HC_NONE : hc_pool_get(&c->batch_pool);
	if (!r && n == HC_NONE) {
		r = HC_E_AGAIN;
		HC_TEXT(text, "the daemon is busy with %u batches", c->batch_pool.used);
	}
	if (r) {
		hc_emit_error(c, s->id, request, r, text);
		return;
	}
	b = &c->batches[n];
	bytes = &c->batch_bytes[(size_t)n * HC_PACKET_MAX];
	*b = (struct hc_batch){.session = s->id,
			       .parent = m->parent,
			       .request = request,
			       .epoch = m->epoch,
			       .timeout_ms = m->timeout_ms,
			       .items = m->items.count,
			       .failed = HC_NONE,
			       .rest = m->items,
			       .ranks = m->ranks};
	hc_assert(m->items.len + m->ranks.len <= HC_PACKET_MAX);
	b->rest.bytes = keep(bytes, &m->items);
	b->ranks.bytes = keep(bytes + m->items.len, &m->ranks);
	memset(items_of(c, b), 0, b->items * sizeof(struct hc_batch_item));
	list_in(c, b);
}

void hc_batch_session_lost(struct hc_core *c, uint64_t session)
{
	struct hc_batch *b;
	uint32_t i;

	for (i = 0; c->batch_pool.used && i < c->batch_pool.fresh; i++) {
		b = &c->batches[i];
		if (b->session != session)
			continue;
		if (b->next < b->items || b->over == b->items)
			list_out(c, b);
		batch_free(c, b);
	}
}
