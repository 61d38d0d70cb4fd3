/* SPDX-License-Identifier: Apache-2.0 */
/* A binary heap with places; see timers.h. */
#include "timers.h"

void hc_timers_init(struct hc_timers *t, struct hc_mem *m, uint32_t cap)
{
	t->heap = hc_mem_take(m, cap, sizeof(*t->heap));
	t->place = hc_mem_take(m, cap, sizeof(*t->place));
	t->count = 0;
}

static bool before(const struct hc_timer *a, const struct hc_timer *b)
{
	return a->deadline != b->deadline ? a->deadline < b->deadline : a->number < b->number;
}

static void put(struct hc_timers *t, uint32_t at, struct hc_timer e)
{
	t->heap[at] = e;
	t->place[e.number] = at + 1;
}

/* Move `e`, whose place `at` is free, to where it belongs. */
static void settle(struct hc_timers *t, uint32_t at, struct hc_timer e)
{
	uint32_t child;

	for (; at > 0 && before(&e, &t->heap[(at - 1) / 2]); at = (at - 1) / 2)
		put(t, at, t->heap[(at - 1) / 2]);
	for (; (child = 2 * at + 1) < t->count; at = child) {
		if (child + 1 < t->count && before(&t->heap[child + 1], &t->heap[child]))
			child++;
		if (!before(&t->heap[child], &e))
			break;
		put(t, at, t->heap[child]);
	}
	put(t, at, e);
}

static void drop(struct hc_timers *t, uint32_t number)
{
	uint32_t at = t->place[number] - 1;

	t->place[number] = 0;
	t->count--;
	if (at < t->count)
		settle(t, at, t->heap[t->count]);
}

void hc_timers_set(struct hc_timers *t, uint32_t number, uint64_t deadline)
{
	uint32_t at = t->place[number];

	if (deadline == HC_NEVER) {
		if (at)
			drop(t, number);
		return;
	}
	if (at && t->heap[at - 1].deadline == deadline)
		return;
	settle(t, at ? at - 1 : t->count++, (struct hc_timer){deadline, number});
}

uint64_t hc_timers_next(const struct hc_timers *t)
{
	return t->count ? t->heap[0].deadline : HC_NEVER;
}

uint32_t hc_timers_take(struct hc_timers *t, uint64_t now)
{
	uint32_t number;

	if (!t->count || t->heap[0].deadline > now)
		return HC_NONE;
	number = t->heap[0].number;
	drop(t, number);
	return number;
}
