/* SPDX-License-Identifier: Apache-2.0 */
/* Containers over handed-in memory; see table.h. Zeroed memory is the empty state of them all. */
#include "table.h"

#include <string.h>

void *hc_mem_take(struct hc_mem *m, size_t count, size_t size)
{
	size_t bytes = (count * size + 63) & ~(size_t)63;
	uint8_t *at = m->base ? m->base + m->used : NULL;

	m->used += bytes;
	hc_assert(!m->base || m->used <= m->size);
	return at;
}

/* ---- pool ---- */

void hc_pool_init(struct hc_pool *p, struct hc_mem *m, uint32_t cap)
{
	memset(p, 0, sizeof(*p));
	p->next = hc_mem_take(m, cap, sizeof(*p->next));
	p->cap = cap;
}

uint32_t hc_pool_get(struct hc_pool *p)
{
	uint32_t n;

	/* freed numbers before fresh ones: memory stays as small as the most that was in use */
	if (p->head) {
		n = p->head - 1;
		p->head = p->next[n];
		if (!p->head)
			p->tail = 0;
	} else if (p->fresh < p->cap) {
		n = p->fresh++;
	} else {
		return HC_NONE;
	}
	p->used++;
	return n;
}

void hc_pool_put(struct hc_pool *p, uint32_t number)
{
	hc_assert(number < p->fresh);
	hc_assert(p->used > 0);
	p->next[number] = 0;
	if (p->tail)
		p->next[p->tail - 1] = number + 1;
	else
		p->head = number + 1;
	p->tail = number + 1;
	p->used--;
}

void hc_pool_put_front(struct hc_pool *p, uint32_t number)
{
	hc_assert(number < p->fresh);
	hc_assert(p->used > 0);
	p->next[number] = p->head;
	p->head = number + 1;
	if (!p->tail)
		p->tail = number + 1;
	p->used--;
}

bool hc_pool_claim(struct hc_pool *p, uint32_t number)
{
	hc_assert(!p->head);
	if (number >= p->cap || p->next[number] == HC_NONE)
		return false;
	p->next[number] = HC_NONE; /* marks a claim until the pool is settled */
	if (number >= p->fresh)
		p->fresh = number + 1;
	return true;
}

void hc_pool_unclaim(struct hc_pool *p, uint32_t number)
{
	hc_assert(number < p->fresh && p->next[number] == HC_NONE);
	p->next[number] = 0;
}

void hc_pool_settle(struct hc_pool *p)
{
	uint32_t i;

	p->used = p->fresh;
	for (i = 0; i < p->fresh; i++) {
		if (p->next[i] == HC_NONE)
			p->next[i] = 0;
		else
			hc_pool_put(p, i);
	}
}

/* ---- index ---- */

#define BUCKETS_MIN 16u

void hc_index_init_(struct hc_index *x, struct hc_mem *m, uint32_t cap, const void *items,
		    size_t stride, size_t at, size_t wide)
{
	hc_assert(wide == sizeof(uint32_t) || wide == sizeof(uint64_t));
	*x = (struct hc_index){.items = items,
			       .stride = (uint32_t)stride,
			       .at = (uint32_t)at,
			       .wide = (uint32_t)wide,
			       .used = BUCKETS_MIN,
			       .cap = 2 * cap + BUCKETS_MIN};
	x->bucket = hc_mem_take(m, x->cap, sizeof(*x->bucket));
	x->link = hc_mem_take(m, cap, sizeof(*x->link));
}

void hc_index_init(struct hc_index *x, struct hc_mem *m, uint32_t cap)
{
	uint64_t *keys = hc_mem_take(m, cap, sizeof(*keys));

	hc_index_init_(x, m, cap, keys, sizeof(*keys), 0, sizeof(*keys));
	x->keys = keys;
}

static uint64_t key_of(const struct hc_index *x, uint32_t number)
{
	const uint8_t *p = x->items + (size_t)number * x->stride + x->at;
	uint64_t wide;
	uint32_t narrow;

	if (x->wide == sizeof(narrow)) {
		memcpy(&narrow, p, sizeof(narrow));
		return narrow;
	}
	memcpy(&wide, p, sizeof(wide));
	return wide;
}

/* The bucket of a key while `used` of them are in use. */
static uint32_t place_of(uint64_t key, uint32_t used)
{
	const uint32_t mask = UINT32_MAX >> __builtin_clz(used);             /* `used` is never 0 */
	const uint32_t hash = (uint32_t)((key * 0x9e3779b97f4a7c15u) >> 32); /* small ones too */

	return (hash & mask) < used ? hash & mask : hash & (mask >> 1);
}

static uint32_t number_at(uint32_t slot)
{
	return slot < 2 ? HC_NONE : slot - 2;
}

/* One bucket more takes its share of the one that stood for it; both keep their order. */
static void grow(struct hc_index *x)
{
	const uint32_t to = x->used++, from = to - (1u << (31 - __builtin_clz(to)));
	uint32_t *stays = &x->bucket[from], *goes = &x->bucket[to], **end, n, next;

	for (n = number_at(*stays); n != HC_NONE; n = next) {
		next = number_at(x->link[n]);
		end = place_of(key_of(x, n), x->used) == to ? &goes : &stays;
		**end = n + 2;
		*end = &x->link[n];
	}
	*stays = *goes = 1;
}

void hc_index_expect(struct hc_index *x, uint32_t count)
{
	hc_assert(!x->count);
	if (2 * count > x->used)
		x->used = 2 * count < x->cap ? 2 * count : x->cap;
}

void hc_index_add_in(struct hc_index *x, uint32_t number)
{
	uint32_t *b;

	hc_assert(!x->link[number]);
	for (x->count++; 2 * x->count > x->used && x->used < x->cap;)
		grow(x);
	b = &x->bucket[place_of(key_of(x, number), x->used)];
	x->link[number] = *b < 2 ? 1 : *b;
	*b = number + 2;
}

void hc_index_add(struct hc_index *x, uint64_t key, uint32_t number)
{
	hc_assert(!x->link[number]);
	x->keys[number] = key;
	hc_index_add_in(x, number);
}

void hc_index_del(struct hc_index *x, uint32_t number)
{
	uint32_t *at;

	if (!x->link[number])
		return;
	at = &x->bucket[place_of(key_of(x, number), x->used)];
	for (; *at != number + 2; at = &x->link[*at - 2])
		hc_assert(*at >= 2);
	*at = x->link[number];
	x->link[number] = 0;
	x->count--;
}

static uint32_t match(const struct hc_index *x, uint32_t n, uint64_t key)
{
	while (n != HC_NONE && key_of(x, n) != key)
		n = number_at(x->link[n]);
	return n;
}

uint32_t hc_index_find(const struct hc_index *x, uint64_t key)
{
	return match(x, number_at(x->bucket[place_of(key, x->used)]), key);
}

uint32_t hc_index_next(const struct hc_index *x, uint32_t number)
{
	return match(x, number_at(x->link[number]), key_of(x, number));
}

/* ---- spans ---- */

void hc_spans_init(struct hc_spans *s, struct hc_mem *m, uint32_t cap)
{
	memset(s, 0, sizeof(*s));
	s->next = hc_mem_take(m, cap, sizeof(*s->next));
	s->cap = cap;
}

static uint32_t pop_span(struct hc_spans *s, unsigned order)
{
	uint32_t first = s->free[order] - 1;

	s->free[order] = s->next[first];
	return first;
}

uint32_t hc_spans_get(struct hc_spans *s, uint32_t n, uint8_t *order)
{
	unsigned want = 0, have;
	uint32_t first;

	while ((1u << want) < n && want < HC_SPAN_ORDERS - 1)
		want++;
	if ((1u << want) < n)
		return HC_NONE;
	*order = (uint8_t)want;
	if (s->free[want])
		return pop_span(s, want);
	if (s->cap - s->fresh >= (1u << want)) {
		first = s->fresh;
		s->fresh += 1u << want;
		return first;
	}
	for (have = want + 1; have < HC_SPAN_ORDERS && !s->free[have]; have++)
		;
	if (have == HC_SPAN_ORDERS)
		return HC_NONE;
	first = pop_span(s, have);
	while (have-- > want)
		hc_spans_put(s, first + (1u << have), (uint8_t)have);
	return first;
}

void hc_spans_put(struct hc_spans *s, uint32_t first, uint8_t order)
{
	hc_assert(first < s->cap);
	s->next[first] = s->free[order];
	s->free[order] = first + 1;
}

/* ---- lists ---- */

void hc_links_init(struct hc_links *l, struct hc_mem *m, uint32_t cap)
{
	l->at = hc_mem_take(m, cap, sizeof(*l->at));
}

void hc_list_push(struct hc_list *list, struct hc_links *l, uint32_t number)
{
	l->at[number] = (struct hc_link){.prev = list->tail, .next = 0};
	if (list->tail)
		l->at[list->tail - 1].next = number + 1;
	else
		list->head = number + 1;
	list->tail = number + 1;
	list->count++;
}

void hc_list_del(struct hc_list *list, struct hc_links *l, uint32_t number)
{
	struct hc_link *at = &l->at[number];

	hc_assert(list->count > 0);
	if (at->prev)
		l->at[at->prev - 1].next = at->next;
	else
		list->head = at->next;
	if (at->next)
		l->at[at->next - 1].prev = at->prev;
	else
		list->tail = at->prev;
	*at = (struct hc_link){0};
	list->count--;
}

void hc_list_move(struct hc_list *list, struct hc_links *l, uint32_t from, uint32_t to)
{
	const struct hc_link at = l->at[from];

	hc_assert(list->count > 0);
	if (at.prev)
		l->at[at.prev - 1].next = to + 1;
	else
		list->head = to + 1;
	if (at.next)
		l->at[at.next - 1].prev = to + 1;
	else
		list->tail = to + 1;
	l->at[from] = (struct hc_link){0};
	l->at[to] = at;
}
