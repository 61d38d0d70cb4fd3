/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the shell answers itself: its views (status, setting, event) and its words for operators
 * (reload, log-level).
 */
#ifndef HC_VIEWS_H
#define HC_VIEWS_H

#include "wire.h"

struct hc_shell;

bool hc_views_owns(unsigned view);
void hc_views_query(struct hc_shell *sh, uint64_t session, uint32_t id, uint16_t proto,
		    const struct hc_m_query *query);
bool hc_views_verb(struct hc_str verb);
void hc_views_admin(struct hc_shell *sh, uint64_t session, uint32_t id,
		    const struct hc_m_admin *admin);

#endif
