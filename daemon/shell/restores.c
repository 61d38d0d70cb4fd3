/* SPDX-License-Identifier: Apache-2.0 */
/* Records that a start is still to write; see restores.h. */
#include <stdlib.h>
#include <string.h>
#include "log.h"
#include "restores.h"

#define ROOM_MIN 256u

void hc_restores_fini(struct hc_restores *r)
{
	free(r->at);
	*r = (struct hc_restores){0};
}

bool hc_restores_note(struct hc_restores *r, const struct hc_action *a)
{
	const uint32_t room = r->room ? 2 * r->room : ROOM_MIN;
	struct hc_restores_item *at = r->at;

	if (a->u.publish.state != HC_W_domain_state_ACTIVE || a->len || !a->u.publish.id)
		return false;
	if (r->count == r->room) {
		at = reallocarray(r->at, room, sizeof(*at));
		if (!at)
			return false;
		r->at = at;
		r->room = room;
	}
	at[r->count++] = (struct hc_restores_item){.id = a->u.publish.id,
						   .uid = a->u.publish.uid,
						   .slot = a->u.publish.slot,
						   .tag = a->u.publish.tag,
						   .epoch = a->u.publish.epoch,
						   .number = a->u.publish.number,
						   .nranks = a->u.publish.nranks};
	return true;
}

static void write_one(const struct hc_restores_item *it, struct hc_pages *pages, uint32_t start,
		      bool locked)
{
	const struct hc_pages_state s = {.id = it->id,
					 .start = start,
					 .tag = it->tag,
					 .epoch = it->epoch,
					 .number = it->number,
					 .nranks = it->nranks,
					 .state = HC_W_domain_state_ACTIVE,
					 .locked = locked};
	struct hc_page_record *record;
	int r = hc_pages_record(pages, it->uid, it->slot, &record);

	if (r)
		hc_log(HC_LOG_ERROR, "a state record cannot be written: %s",
		       r < 0 ? strerror(-r) : "no such slot");
	else
		hc_pages_restore(record, &s);
}

void hc_restores_write(struct hc_restores *r, struct hc_pages *pages, uint32_t start, bool locked,
		       uint32_t most)
{
	const struct hc_restores_item *it;

	while (most-- && hc_restores_left(r)) {
		it = &r->at[r->next++];
		if (it->slot % HC_SLAB_RECORDS == 0 || r->next == 1)
			hc_pages_warm(pages, it->uid, it->slot);
		write_one(it, pages, start, locked);
	}
	if (!hc_restores_left(r))
		hc_restores_fini(r);
}

static void sweep(uint32_t uid, uint32_t slot, struct hc_page_record *record, void *context)
{
	const uint32_t *start = context;

	(void)uid;
	(void)slot;
	if (atomic_load_explicit(&record->gate, memory_order_relaxed) >> 40 != *start)
		hc_pages_free(record);
}

void hc_restores_sweep(struct hc_pages *pages, uint32_t start)
{
	hc_pages_each(pages, sweep, &start);
}
