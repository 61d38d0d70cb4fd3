/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A map of the simulation: open addressing, linear probing, and no marks for what went: a chain is
 * closed again when one of it goes. Its order never shows, so runs stay the same.
 */
#include "simimp.h"

#include <stdlib.h>

static uint32_t home_of(const struct sim_map *m, uint64_t key)
{
	key ^= key >> 31;
	key *= 0x9e3779b97f4a7c15ull;
	return (uint32_t)(key >> 32) & (m->cap - 1);
}

static void put(struct sim_map *m, uint64_t key, uint32_t value)
{
	uint32_t i = home_of(m, key);

	while (m->at[i].value)
		i = (i + 1) & (m->cap - 1);
	m->at[i] = (struct sim_slot){key, value};
}

void sim_map_add(struct sim_map *m, uint64_t key, uint32_t value)
{
	struct sim_map big = {.count = m->count, .cap = m->cap ? m->cap * 2 : 64};
	uint32_t i;

	if (m->count * 2 >= m->cap) {
		big.at = calloc(big.cap, sizeof(*big.at));
		if (!big.at)
			abort();
		for (i = 0; i < m->cap; i++)
			if (m->at[i].value)
				put(&big, m->at[i].key, m->at[i].value);
		free(m->at);
		*m = big;
	}
	put(m, key, value + 1);
	m->count++;
}

uint32_t sim_map_find(const struct sim_map *m, uint64_t key, uint32_t *at)
{
	uint32_t i;

	if (!m->cap)
		return HC_NONE;
	i = *at == HC_NONE ? home_of(m, key) : (*at + 1) & (m->cap - 1);
	for (; m->at[i].value; i = (i + 1) & (m->cap - 1))
		if (m->at[i].key == key) {
			*at = i;
			return m->at[i].value - 1;
		}
	return HC_NONE;
}

/* Those behind the gap that cannot be found any more move into it. */
static void close_gap(struct sim_map *m, uint32_t gap)
{
	const uint32_t mask = m->cap - 1;
	uint32_t i, home;

	for (i = (gap + 1) & mask; m->at[i].value; i = (i + 1) & mask) {
		home = home_of(m, m->at[i].key);
		if (((i - home) & mask) < ((i - gap) & mask))
			continue;
		m->at[gap] = m->at[i];
		gap = i;
	}
	m->at[gap].value = 0;
}

void sim_map_del(struct sim_map *m, uint64_t key, uint32_t value)
{
	uint32_t at = HC_NONE, v;

	while ((v = sim_map_find(m, key, &at)) != HC_NONE)
		if (v == value) {
			close_gap(m, at);
			m->count--;
			return;
		}
}

void sim_map_clear(struct sim_map *m)
{
	free(m->at);
	*m = (struct sim_map){0};
}
