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

#endif
