/* SPDX-License-Identifier: Apache-2.0 */
/* A map from id to row; see dbids.h. Id 0 is none of a domain's. */
#include <stdlib.h>
#include <string.h>
#include "core.h"
#include "dbids.h"

#define CAP_MIN 64u

void hc_dbids_fini(struct hc_dbids *m)
{
	free(m->at);
	memset(m, 0, sizeof(*m));
}

/* The place of the id, or the free one where it would stand. */
static struct hc_dbids_entry *place(const struct hc_dbids *m, uint64_t id)
{
	size_t i = (size_t)(id * 0x9e3779b97f4a7c15u >> 16) & (m->cap - 1);

	while (m->at[i].id && m->at[i].id != id)
		i = (i + 1) & (m->cap - 1);
	return &m->at[i];
}

/* Into a table as large as what lives needs; what was taken away stays behind. */
static bool rehash(struct hc_dbids *m)
{
	struct hc_dbids old = *m;
	struct hc_dbids_entry *e;
	size_t cap = CAP_MIN, i;

	while (cap < 2 * (old.live + 1))
		cap *= 2;
	m->at = calloc(cap, sizeof(*m->at));
	if (!m->at) {
		*m = old;
		return false;
	}
	m->cap = cap;
	m->used = 0;
	for (i = 0; i < (old.noted ? old.noted : old.cap); i++) {
		if (!old.at[i].row)
			continue;
		e = place(m, old.at[i].id);
		m->used += !e->id;
		*e = old.at[i];
	}
	m->live = m->used; /* a damaged file may name an id twice: the last one counts */
	m->noted = 0;
	free(old.at);
	return true;
}

bool hc_dbids_note(struct hc_dbids *m, uint64_t id, int64_t row)
{
	size_t cap = m->cap ? 2 * m->cap : CAP_MIN;
	struct hc_dbids_entry *at = m->at;

	hc_assert(id && row > 0 && m->noted == m->live);
	if (m->noted == m->cap) {
		at = reallocarray(m->at, cap, sizeof(*at));
		if (!at)
			return false;
		m->at = at;
		m->cap = cap;
	}
	at[m->noted++] = (struct hc_dbids_entry){id, row};
	m->live = m->noted;
	if (row >= m->next)
		m->next = row + 1;
	return true;
}

/* What was noted becomes a table. */
static bool ready(struct hc_dbids *m)
{
	return !m->noted || rehash(m);
}

static bool put(struct hc_dbids *m, uint64_t id, int64_t row)
{
	struct hc_dbids_entry *e;

	if (3 * (m->used + 1) > 2 * m->cap && !rehash(m))
		return false;
	e = place(m, id);
	m->used += !e->id;
	m->live += !e->row;
	*e = (struct hc_dbids_entry){id, row};
	if (row >= m->next)
		m->next = row + 1;
	return true;
}

int64_t hc_dbids_find(struct hc_dbids *m, uint64_t id)
{
	if (!ready(m))
		return -1;
	return m->cap ? place(m, id)->row : 0;
}

int64_t hc_dbids_row(struct hc_dbids *m, uint64_t id)
{
	int64_t row = hc_dbids_find(m, id);

	if (row)
		return row > 0 ? row : 0;
	row = m->next ? m->next : 1;
	return put(m, id, row) ? row : 0;
}

void hc_dbids_del(struct hc_dbids *m, uint64_t id)
{
	struct hc_dbids_entry *e = ready(m) && m->cap ? place(m, id) : NULL;

	if (!e || !e->row)
		return;
	e->row = 0;
	m->live--;
}
