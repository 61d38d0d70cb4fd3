/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texts that only some domains have: the name that was given to one, and the cause why one is not
 * ACTIVE. They are cells of core->names and core->causes, taken when there is a text.
 */
#ifndef HC_TEXTS_H
#define HC_TEXTS_H

#include "state.h"

/* What the indexes of names are keyed by. */
uint64_t hc_name_key(uint32_t uid, struct hc_str name);
/* A cell for the name of that home or part; the text is not empty. */
uint32_t hc_name_get(struct hc_core *c, uint32_t owner, uint32_t uid, struct hc_str name);
/* *cell holds the text from now on, or is HC_NONE: the text is empty, or there is no room. */
void hc_cause_set(struct hc_core *c, uint32_t *cell, struct hc_str text);
static inline const char *hc_cause_text(const struct hc_core *c, uint32_t cell)
{
	return cell == HC_NONE ? "" : c->causes[cell];
}

#endif
