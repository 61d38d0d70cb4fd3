/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of domains, as they are put into the database; restore.c reads them.
 *
 * A domain has one row on each node where something of it is. The home's has all members, each
 * with the node that it is on, and what the part beside it has (slot, blocks). A part whose home
 * is elsewhere has a row of its own, from PREPARE on: its home, the members of this node, and for
 * those that left the number of their last collective, since the home may not have heard it.
 *
 * Far nodes stand in a list with the incarnation that they had. After a restart one that is of
 * another incarnation has lost its ranks.
 */
#ifndef HC_ROW_H
#define HC_ROW_H

#include "state.h"

/* Put the row; return its number. */
uint64_t hc_row_put_home(struct hc_core *c, struct hc_home *h, uint8_t state);
uint64_t hc_row_put_part(struct hc_core *c, struct hc_part *p);
/* The same, of a part with its home elsewhere that has a row already: something has changed. */
void hc_row_changed(struct hc_core *c, struct hc_part *p);

#endif
