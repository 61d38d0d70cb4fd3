/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Taking domains back after a restart of the daemon.
 *
 * Rows come before START, each one domain of this boot. Its record keeps its slot, so that the
 * page of a running client stays true; its members are seats without a session, held by their
 * processes. The shell watches those processes and tells at once of the ones that died meanwhile.
 * A library comes back by itself (attach); until then its references are read through the arena
 * that the service manager kept, or count as one that runs.
 *
 * A part whose home is elsewhere tells its ranks that the domain is ACTIVE before the row that
 * says so is stored. Killed in between, it finds that it had prepared, and that its home may have
 * cancelled. So it asks the state record, which no client can write: that said ACTIVE before
 * anyone was told, after the home had committed, and lasts until the next boot, as rows do. (The
 * ranks' own word is none: any process of the user could say it, and one that computes is late.)
 * So it is with a cut: told to ranks before it is stored, and none may begin beyond it meanwhile.
 */
#ifndef HC_RESTORE_H
#define HC_RESTORE_H

#include "state.h"

void hc_restore_row(struct hc_core *c, struct hc_str row, const struct hc_shown *shown);
/* What the cause of a row names; of an older row that is not known. */
uint16_t hc_restore_kind(const struct hc_m_domain_row *m);
uint32_t hc_restore_rank(const struct hc_m_domain_row *m);
/* Ask the shell to watch one process more; false: all were asked for. */
bool hc_restore_watch(struct hc_core *c);
/* All rows have come: the tables are settled. */
void hc_restore_start(struct hc_core *c);

#endif
