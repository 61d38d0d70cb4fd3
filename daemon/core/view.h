/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What can be asked: the status of one domain, and pages of the core's views.
 *
 * A page's cursor is a place in the table, its snapshot a count of changes: a page of an older
 * snapshot is refused with STALE, and the library reads the list anew.
 */
#ifndef HC_VIEW_H
#define HC_VIEW_H

#include "state.h"

void hc_view_status(struct hc_core *c, struct hc_session *s, uint32_t request,
		    const struct hc_m_status *m);
void hc_view_query(struct hc_core *c, struct hc_session *s, uint32_t request,
		   const struct hc_m_query *m);

/* A page of rows in the making, in c->scratch. */
struct hc_view_page {
	struct hc_core *c;
	const struct hc_m_query *q;
	const struct hc_desc *d;
	size_t used;
	uint32_t rows;
	bool full;
};
/* Add a row; false when the page is full and the row is for the next one. */
bool hc_view_put(struct hc_view_page *g, const void *row);
/* Whether the one who asks wants this domain. */
bool hc_view_wants(const struct hc_view_page *g, uint64_t id, const char *name);

/* ---- domainview.c, channelview.c: rows from a cursor on; the next cursor, 0 at the end ---- */
uint64_t hc_domainview_domains(struct hc_view_page *g, uint64_t at);
uint64_t hc_domainview_members(struct hc_view_page *g, uint64_t at);
uint64_t hc_channelview_links(struct hc_view_page *g, uint64_t at);
uint64_t hc_channelview_channels(struct hc_view_page *g, uint64_t at);
uint64_t hc_channelview_waiting(struct hc_view_page *g, uint64_t at);

#endif
