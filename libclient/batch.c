/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hcomm_batch: many sub-domains in one call.
 *
 * The items go out in pages, as many as fit into a packet both as request and as answer; a few
 * pages are under way at once, so that the daemon has work while an answer is read. Each page has
 * one answer with an outcome for each item. Handles are made when the answer has come; where that
 * fails, and when an answer comes after the call has given up, the membership is given back. A lost
 * connection repeats what was not answered; the daemon knows the domains that formed meanwhile.
 *
 * The seats of a page are kept in one piece of memory, and no block of the op arena is touched
 * before the first operation of its domain: making a domain costs a slot, not pages.
 */
#include "join.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAGES       3u
#define PAGE_BYTES  62000u /* of a packet's 65,536 */
#define PAGE_ITEMS  256u   /* so that the daemon is never far from its next answer */
#define ITEM_ANSWER 22u
#define SEAT_ANSWER 12u
#define RANKS_MAX   4096u

struct page {
	struct hc_call call;
	uint32_t first, count;
};

struct batch {
	struct hcomm_session *s;
	struct hc_parent parent;
	unsigned char *items; /* the caller's, `stride` apart */
	uint32_t stride, count;
	uint32_t next;   /* item that is not sent */
	uint32_t failed; /* first item that failed, or HC_NONE */
	int code;        /* why */
	char text[HCOMM_TEXT_BYTES];
	uint32_t timeout_ms;
	uint64_t deadline;
	struct page page[PAGES];
	uint8_t list[PAGE_BYTES], ranks[PAGE_BYTES]; /* of the page that is being made */
};

static struct hcomm_batch_item *item(const struct batch *b, uint32_t i)
{
	return (struct hcomm_batch_item *)(void *)(b->items + (size_t)i * b->stride);
}

/* ---- arguments ---- */

static int check_item(const struct batch *b, uint32_t i)
{
	const struct hcomm_batch_item *it = item(b, i);
	uint32_t k;

	if (it->size != b->stride)
		return hc_refuse(HC_E_INVALID, "items[%u].size is %u; wanted: %u, as in items[0]",
				 i, it->size, b->stride);
	if (!it->ranks || !it->count || it->count > RANKS_MAX)
		return hc_refuse(HC_E_INVALID,
				 "items[%u]: ranks is NULL, or count is %u; wanted: 1 to %u", i,
				 it->count, RANKS_MAX);
	if (it->name && strlen(it->name) > HC_NAME_MAX)
		return hc_refuse(HC_E_INVALID, "items[%u].name has %zu bytes; wanted: at most %u",
				 i, strlen(it->name), HC_NAME_MAX);
	for (k = 0; k < it->count; k++)
		if (it->ranks[k] >= b->parent.nranks)
			return hc_refuse(HC_E_INVALID,
					 "items[%u].ranks[%u] is %u; wanted: a rank of the parent, "
					 "0 to %u",
					 i, k, it->ranks[k], b->parent.nranks - 1);
	return 0;
}

static int check(struct batch *b, hcomm_domain parent, int timeout_ms)
{
	uint32_t i;
	int r = 0;

	if (!b->items || !b->count)
		return hc_refuse(HC_E_INVALID, "items is NULL, or count is 0");
	b->stride = item(b, 0)->size;
	if (b->stride < sizeof(struct hcomm_batch_item) || b->stride % 8)
		return hc_refuse(HC_E_INVALID,
				 "items[0].size is %u; wanted: set by HCOMM_INIT in every item",
				 b->stride);
	r = hc_parent_get(parent, true, &b->parent);
	if (r)
		return r;
	b->s = b->parent.session;
	if (timeout_ms == HCOMM_START)
		return hc_refuse(HC_E_NOT_SUPPORTED, "timeout_ms is HCOMM_START: a batch is "
						     "waited for");
	r = hc_timeout(b->s, timeout_ms, b->s->connect_timeout_ms, &b->timeout_ms, &b->deadline);
	for (i = 0; !r && i < b->count; i++)
		r = check_item(b, i);
	return r;
}

/* ---- outcomes ---- */

static void fail(struct batch *b, uint32_t i, int code, struct hc_str text)
{
	item(b, i)->domain = 0;
	item(b, i)->result = -code;
	if (b->failed <= i)
		return;
	b->failed = i;
	b->code = code;
	snprintf(b->text, sizeof(b->text), "item %u: %.*s", i, (int)text.len, text.p);
}

static void fail_page(struct batch *b, const struct page *p, int code)
{
	uint32_t i;

	for (i = 0; i < p->count; i++)
		fail(b, p->first + i, code, hc_str(hcomm_last_error()));
}

/* ---- a page ---- */

/* What the answer to an item takes, and what its request does. */
static uint32_t answer_bytes(const struct batch *b, const struct hcomm_batch_item *it)
{
	uint32_t own = it->count < b->parent.nseats ? it->count : b->parent.nseats;

	return ITEM_ANSWER + SEAT_ANSWER * own;
}

static uint32_t request_bytes(const struct hcomm_batch_item *it)
{
	return 14u + 4u * it->count + (it->name ? (uint32_t)strlen(it->name) : 0);
}

static void put_ranks(struct batch *b, const struct hcomm_batch_item *it, struct hc_arr *a)
{
	uint8_t *p = b->ranks + a->len;
	uint32_t i, v;

	/* as the codec does it, for lists that are long */
	for (i = 0; i < it->count; i++, p += 4) {
		v = it->ranks[i];
		p[0] = (uint8_t)(v >> 24);
		p[1] = (uint8_t)(v >> 16);
		p[2] = (uint8_t)(v >> 8);
		p[3] = (uint8_t)v;
	}
	a->bytes = b->ranks;
	a->len += 4 * it->count;
	a->count += it->count;
}

static int fill(struct batch *b, struct page *p, struct hc_m_batch *m)
{
	uint32_t request = 0, answer = 0;
	const struct hcomm_batch_item *it;
	struct hc_m_batch_item row;
	int r = 0;

	p->first = b->next;
	for (p->count = 0; b->next < b->count && p->count < PAGE_ITEMS; p->count++) {
		it = item(b, b->next);
		request += request_bytes(it);
		answer += answer_bytes(b, it);
		if (p->count && (request > PAGE_BYTES || answer > PAGE_BYTES))
			break;
		row = (struct hc_m_batch_item){.sub_id = it->sub_id, .count = it->count};
		row.name = hc_str(it->name);
		r = hc_arr_put(&m->items, b->list, sizeof(b->list), &hc_desc_batch_item,
			       HC_PROTO_MAX, &row);
		if (r)
			return hc_refuse(r, "item %u does not fit into a request", b->next);
		put_ranks(b, it, &m->ranks);
		b->next++;
	}
	return 0;
}

static int send_page(struct batch *b, struct page *p)
{
	struct hc_m_batch m = {
		.parent = b->parent.id, .epoch = b->parent.epoch, .timeout_ms = b->timeout_ms};
	struct hc_request q = {&hc_desc_batch, &m, -1, b->deadline, 0};
	int r = fill(b, p, &m);

	if (r)
		return r;
	hc_call_init(&p->call, HC_MSG_batch_r);
	r = hc_call_start(b->s, &p->call, &q);
	if (r)
		b->next = p->first;
	return r;
}

/* ---- the answer ---- */

static void give_back(struct hcomm_session *s, uint64_t id, uint32_t epoch, struct hc_arr seats,
		      uint32_t n)
{
	struct hc_m_seat seat;

	while (n-- && hc_arr_next(&seats, &hc_desc_seat, s->sess.version, &seat))
		hc_join_give_back(s, id, epoch, seat.rank);
}

/* Pass over `n` seats: each is as long as the other. */
static void skip(struct hc_arr *seats, uint32_t n)
{
	seats->bytes += n * SEAT_ANSWER;
	seats->len -= n * SEAT_ANSWER;
	seats->count -= n;
}

void hc_batch_stray(struct hcomm_session *s, const struct hc_m_batch_r *m)
{
	struct hc_arr items = m->items, seats = m->seats;
	struct hc_m_batch_done d;

	while (hc_arr_next(&items, &hc_desc_batch_done, s->sess.version, &d)) {
		if (d.seats > seats.count)
			return;
		give_back(s, d.id, m->epoch, seats, d.seats);
		skip(&seats, d.seats);
	}
}

/* The handle of one item. `room` has place for its seats. */
static int take_item(struct batch *b, struct hcomm_batch_item *it, const struct hc_m_batch_done *m,
		     uint32_t epoch, struct hc_arr seats, struct hc_ops_seat *room)
{
	struct hcomm_session *s = b->s;
	const struct hc_page_record *record = hc_join_record(s, m->id, m->slot);
	struct hc_domain *d;
	struct hc_m_seat seat;
	uint32_t i;
	int r = 0;

	if (!record || !m->seats || m->seats > it->count)
		return hc_refuse(HC_E_MALFORMED,
				 "hcommd gave slot %u and %u seats for domain %016llx of %u ranks",
				 m->slot, m->seats, (unsigned long long)m->id, it->count);
	for (i = 0; !r && i < m->seats; i++) {
		hc_arr_next(&seats, &hc_desc_seat, s->sess.version, &seat);
		r = hc_join_seat(s, it->count, &seat, &room[i]);
	}
	if (!r)
		r = hc_domain_new(s, &d);
	if (r)
		return r;
	d->id = m->id;
	d->epoch = epoch;
	d->tag = m->tag;
	d->nranks = it->count;
	d->rank = m->seats == 1 ? room[0].rank : HC_NONE;
	if (it->name && *it->name)
		hc_str_copy(hc_str(it->name), d->name, sizeof(d->name));
	else
		snprintf(d->name, sizeof(d->name), "domain-%016llx", (unsigned long long)m->id);
	hc_ops_attach(&d->ops, d->handle, d->id, s->start, d->tag, record, room, m->seats, s->fence,
		      &s->hooks);
	d->phase = HC_PHASE_LIVE;
	it->domain = d->handle;
	it->result = 0;
	return 0;
}

static void take_items(struct batch *b, const struct page *p, const struct hc_m_batch_r *m,
		       struct hc_ops_seat *room)
{
	struct hc_arr items = m->items, seats = m->seats;
	struct hc_m_batch_done d;
	uint32_t i;
	int r;

	for (i = 0; hc_arr_next(&items, &hc_desc_batch_done, b->s->sess.version, &d); i++) {
		if (d.code || d.seats > seats.count) {
			fail(b, p->first + i, d.code ? d.code : HC_E_MALFORMED,
			     i == m->failed ? m->text : hc_str(NULL));
			continue;
		}
		r = take_item(b, item(b, p->first + i), &d, m->epoch, seats, room);
		if (r) {
			fail(b, p->first + i, r, hc_str(hcomm_last_error()));
			give_back(b->s, d.id, m->epoch, seats, d.seats);
		}
		skip(&seats, d.seats);
		room += d.seats;
	}
}

static void take_page(struct batch *b, struct page *p)
{
	struct hc_m_batch_r m;
	struct hc_seats *kept;
	int r = hc_call_answer(&b->s->sess, &p->call, &hc_desc_batch_r, &m);

	if (r || m.items.count != p->count) {
		fail_page(b, p, hc_refuse(HC_E_MALFORMED, "hcommd gave no good answer to a batch"));
		return;
	}
	kept = calloc(1, sizeof(*kept) + m.seats.count * sizeof(kept->seat[0]));
	if (!kept) {
		fail_page(b, p, hc_refuse(HC_E_NO_MEMORY, "no memory for %u ranks", m.seats.count));
		hc_batch_stray(b->s, &m);
		return;
	}
	kept->next = b->s->seats;
	b->s->seats = kept;
	take_items(b, p, &m, kept->seat);
}

/* ---- the call ---- */

/* Pages that are on their way, oldest first. */
struct way {
	uint32_t sent, taken;
};

static struct page *oldest(struct batch *b, const struct way *w)
{
	return &b->page[w->taken % PAGES];
}

/* Read the answer to the oldest page. Nonzero: the connection is of no use for the others. */
static int end_page(struct batch *b, struct way *w)
{
	struct page *p = oldest(b, w);
	int r = hc_call_wait(b->s, &p->call, b->deadline + HC_SLACK_MS * HC_MS);

	if (r == HC_E_PEER_CLOSED)
		return r;
	w->taken++;
	if (r)
		fail_page(b, p, r);
	else
		take_page(b, p);
	hc_call_fini(&p->call);
	return r == HC_E_TIMEOUT ? r : 0;
}

/* All pages, a few at a time. PEER_CLOSED: from b->next on they are to be sent again. */
static int run_pages(struct batch *b)
{
	struct way w = {0};
	int r = 0;

	while (!r && (b->next < b->count || w.taken < w.sent)) {
		if (w.sent - w.taken == PAGES || b->next == b->count)
			r = end_page(b, &w);
		else if (!(r = send_page(b, &b->page[w.sent % PAGES])))
			w.sent++;
	}
	if (r == HC_E_PEER_CLOSED && w.taken < w.sent)
		b->next = oldest(b, &w)->first;
	for (; w.taken < w.sent; w.taken++) {
		if (r != HC_E_PEER_CLOSED)
			fail_page(b, oldest(b, &w), r);
		hc_sess_forget(&b->s->sess, &oldest(b, &w)->call);
		hc_call_fini(&oldest(b, &w)->call);
	}
	return r;
}

static void run(struct batch *b)
{
	unsigned tries = 0;
	int r;

	do {
		r = hc_wait_ready(b->s, b->deadline);
		if (!r)
			r = run_pages(b);
	} while (r == HC_E_PEER_CLOSED && tries++ < HC_REPEATS && hc_now() < b->deadline);
	for (; b->next < b->count; b->next++)
		fail(b, b->next, r, hc_str(hcomm_last_error()));
}

HC_EXPORT int hcomm_batch(hcomm_domain parent, struct hcomm_batch_item *items, uint32_t count,
			  int timeout_ms)
{
	struct batch *b = calloc(1, sizeof(*b));
	int r;

	if (!b)
		return -hc_refuse(HC_E_NO_MEMORY, "no memory for the batch");
	b->items = (unsigned char *)items;
	b->count = count;
	b->failed = HC_NONE;
	r = check(b, parent, timeout_ms);
	if (!r) {
		pthread_mutex_lock(&b->s->lock);
		run(b);
		pthread_mutex_unlock(&b->s->lock);
		if (b->failed != HC_NONE)
			r = hc_refuse(b->code, "%s", b->text);
	}
	free(b);
	return -r;
}
