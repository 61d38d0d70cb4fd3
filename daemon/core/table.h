/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Containers over memory that was handed in: nothing here allocates.
 *
 * hc_mem     cuts one region into arrays.
 * hc_pool    numbered items with a FIFO of free numbers: the number freed longest ago is used
 *            next, so that an old number stays dead as long as possible. What nobody knows by its
 *            number any more is put back in front: its memory is still in the cache.
 * hc_index   finds an item's number by a key, mostly one that the item itself holds: so it costs
 *            twelve bytes an item. Chained; two more buckets come into use with each item (linear
 *            hashing), so few items touch little memory and no moment rehashes all, and a key that
 *            is not there mostly costs the look at its bucket.
 * hc_spans   runs of 2^k neighbouring items; larger free runs are split, never merged again.
 * hc_list    doubly linked lists of numbers through a link array.
 *
 * Numbers are 32-bit; HC_NONE is no item. Memory is touched only as it is used.
 */
#ifndef HC_TABLE_H
#define HC_TABLE_H

#include "core.h"

#include <stddef.h>

struct hc_mem {
	uint8_t *base; /* NULL: only count */
	size_t used, size;
};
/* `count` items of `size` bytes, aligned to 64. NULL while only counting. */
void *hc_mem_take(struct hc_mem *m, size_t count, size_t size);

struct hc_pool {
	uint32_t *next; /* of a free number: the next free one + 1 */
	uint32_t cap, fresh, used, head, tail;
};
void hc_pool_init(struct hc_pool *p, struct hc_mem *m, uint32_t cap);
uint32_t hc_pool_get(struct hc_pool *p); /* HC_NONE when full */
void hc_pool_put(struct hc_pool *p, uint32_t number);
void hc_pool_put_front(struct hc_pool *p, uint32_t number);
/* While a pool is being filled again: take that number (false: taken, or too large); then settle
 * once, before the first get. */
bool hc_pool_claim(struct hc_pool *p, uint32_t number);
void hc_pool_unclaim(struct hc_pool *p, uint32_t number);
void hc_pool_settle(struct hc_pool *p);

struct hc_index {
	uint32_t *bucket; /* first number + 2; less: none */
	uint32_t *link;   /* next number + 2; 1: the last of its chain; 0: it is not in */
	uint64_t *keys;   /* NULL: in the items */
	const uint8_t *items;
	uint32_t stride, at, wide; /* bytes: of an item; where its key stands; of the key, 4 or 8 */
	uint32_t count, used, cap; /* items; buckets in use, and at most */
};
/* The key is `field` of the items of the array: uint32_t or uint64_t, and stays while one is in. */
#define hc_index_init_in(x, m, cap, array, field)                                                  \
	hc_index_init_(x, m, cap, array, sizeof(*(array)), offsetof(__typeof__(*(array)), field),  \
		       sizeof((array)->field))
void hc_index_init_(struct hc_index *x, struct hc_mem *m, uint32_t cap, const void *items,
		    size_t stride, size_t at, size_t wide);
/* While nothing is in: so many are to come. Saves what growing with them costs. */
void hc_index_expect(struct hc_index *x, uint32_t count);
void hc_index_add_in(struct hc_index *x, uint32_t number);
/* Or the index keeps the keys, where items have none of their own: another eight bytes each. */
void hc_index_init(struct hc_index *x, struct hc_mem *m, uint32_t cap);
void hc_index_add(struct hc_index *x, uint64_t key, uint32_t number);
void hc_index_del(struct hc_index *x, uint32_t number); /* fine when it is not in */
/* The first number with that key; go on with hc_index_next. HC_NONE at the end. */
uint32_t hc_index_find(const struct hc_index *x, uint64_t key);
uint32_t hc_index_next(const struct hc_index *x, uint32_t number);

#define HC_SPAN_ORDERS 24
struct hc_spans {
	uint32_t *next; /* of the first item of a free run: next free run + 1 */
	uint32_t free[HC_SPAN_ORDERS];
	uint32_t cap, fresh;
};
void hc_spans_init(struct hc_spans *s, struct hc_mem *m, uint32_t cap);
/* A run of at least n items (n >= 1); *order is to be kept for hc_spans_put. */
uint32_t hc_spans_get(struct hc_spans *s, uint32_t n, uint8_t *order);
void hc_spans_put(struct hc_spans *s, uint32_t first, uint8_t order);

struct hc_links {
	struct hc_link {
		uint32_t prev, next; /* number + 1 */
	} * at;
};
struct hc_list {
	uint32_t head, tail, count; /* number + 1; all zero is the empty list */
};
void hc_links_init(struct hc_links *l, struct hc_mem *m, uint32_t cap);
void hc_list_push(struct hc_list *list, struct hc_links *l, uint32_t number);
void hc_list_del(struct hc_list *list, struct hc_links *l, uint32_t number);
/* `to` takes the place of `from` in the list. */
void hc_list_move(struct hc_list *list, struct hc_links *l, uint32_t from, uint32_t to);
static inline uint32_t hc_list_first(const struct hc_list *list)
{
	return list->head - 1; /* 0 - 1 is HC_NONE */
}
static inline uint32_t hc_list_next(const struct hc_links *l, uint32_t number)
{
	return l->at[number].next - 1;
}

#endif
