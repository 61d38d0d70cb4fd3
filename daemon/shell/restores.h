/* SPDX-License-Identifier: Apache-2.0 */
/*
 * State records that a start is still to write.
 *
 * A start writes the record of each domain that it takes back, so that it bears the new start
 * number; that touches every page of the slabs, and nobody needs it before the daemon speaks of a
 * domain. So those of domains that are well are noted here, and written a few in a turn once the
 * socket is open, or all at once before anything but the answer to a hello goes out. Until then
 * clients go on with what the daemon before said, as they did while there was none.
 */
#ifndef HC_RESTORES_H
#define HC_RESTORES_H

#include "core.h"
#include "nodepages.h"

struct hc_restores {
	struct hc_restores_item {
		uint64_t id;
		uint32_t uid, slot, tag, epoch, number, nranks;
	} * at;
	uint32_t count, next, room; /* noted; written; of `at` */
};

void hc_restores_fini(struct hc_restores *r);
/* Note a PUBLISH. False: it has to be written now, and what was noted before it. */
bool hc_restores_note(struct hc_restores *r, const struct hc_action *a);
static inline bool hc_restores_left(const struct hc_restores *r)
{
	return r->next != r->count;
}
/* Write the next ones, at most so many. */
void hc_restores_write(struct hc_restores *r, struct hc_pages *pages, uint32_t start, bool locked,
		       uint32_t most);
/* When all are written: a record that no row stands for, since its domain ended or the database
 * was lost, is freed. */
void hc_restores_sweep(struct hc_pages *pages, uint32_t start);

#endif
