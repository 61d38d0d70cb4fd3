/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How often each rank of this process has split its domain; see client.h.
 *
 * The count is kept here and not with a handle: a rank belongs to the process, which may take it
 * up by another handle or session, and what it says next has to be the number that the other ranks
 * say. It is forgotten when the rank leaves. A child by fork has no ranks.
 */
#include "client.h"

#include <stdlib.h>

struct splits {
	uint64_t id;
	hcomm_domain busy; /* under way, for that handle; HC_SPLIT_WAITS; 0 = none is */
	uint32_t rank, over;
};

static struct {
	pthread_mutex_t lock;
	struct splits *all;
	uint32_t n, cap;
} ranks = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct splits *find(uint64_t id, uint32_t rank)
{
	uint32_t i;

	for (i = 0; i < ranks.n; i++)
		if (ranks.all[i].id == id && ranks.all[i].rank == rank)
			return &ranks.all[i];
	return NULL;
}

static struct splits *add(uint64_t id, uint32_t rank)
{
	const uint32_t cap = ranks.cap ? 2 * ranks.cap : 8;
	struct splits *all = ranks.all;

	if (ranks.n == ranks.cap) {
		all = realloc(all, cap * sizeof(*all));
		if (!all)
			return NULL;
		ranks.all = all;
		ranks.cap = cap;
	}
	all += ranks.n++;
	*all = (struct splits){.id = id, .rank = rank};
	return all;
}

/* A handle that has ended waits for nothing. */
static bool is_busy(const struct splits *s)
{
	return s->busy == HC_SPLIT_WAITS || (s->busy && hc_domain_known(s->busy));
}

int hc_split_enter(uint64_t id, uint32_t rank, hcomm_domain busy, uint32_t *number)
{
	struct splits *s;
	int r = 0;

	pthread_mutex_lock(&ranks.lock);
	s = find(id, rank);
	if (!s)
		s = add(id, rank);
	if (!s)
		r = HC_E_NO_MEMORY;
	else if (is_busy(s))
		r = HC_E_INVALID;
	if (!r) {
		s->busy = busy;
		*number = s->over + 1;
	}
	pthread_mutex_unlock(&ranks.lock);
	if (r == HC_E_INVALID)
		return hc_refuse(r, "another split of this domain by rank %u is under way", rank);
	return r ? hc_refuse(r, "no memory for the count of splits") : 0;
}

void hc_split_leave(uint64_t id, uint32_t rank, hcomm_domain busy, uint32_t over)
{
	struct splits *s;

	/* in a child the lock may be held for ever */
	if (!hc_process_known())
		return;
	pthread_mutex_lock(&ranks.lock);
	s = find(id, rank);
	if (s && s->over < over)
		s->over = over;
	if (s && s->busy == busy)
		s->busy = 0;
	pthread_mutex_unlock(&ranks.lock);
}

void hc_split_forget(uint64_t id, uint32_t rank)
{
	struct splits *s;

	pthread_mutex_lock(&ranks.lock);
	s = find(id, rank);
	if (s)
		*s = ranks.all[--ranks.n];
	pthread_mutex_unlock(&ranks.lock);
}

void hc_splits_drop(void)
{
	pthread_mutex_init(&ranks.lock, NULL);
	ranks.n = 0;
}
