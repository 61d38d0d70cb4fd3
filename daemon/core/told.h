/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What becomes of a domain, for the log and the journal of this node.
 *
 * Whoever looks at a node after a failure looks at that node, so each one that has ranks of a
 * domain writes down what they are told, in the words of the home. The home writes it where it
 * decides; a part of another home when it hears of it. Where both are here the home alone does.
 * Nobody waits for these entries: they go with the rows that the same step stores, if any.
 */
#ifndef HC_TOLD_H
#define HC_TOLD_H

#include "state.h"

#define HC_TOLD_MAX (HC_CAUSE_MAX + HC_NAME_MAX + 32u) /* with the NUL */

struct hc_told {
	enum hc_level level;
	uint16_t kind;      /* HC_W_event_code_* */
	uint32_t rank, pid; /* whom it names; HC_NONE and 0 */
};

/* ---- at a home ---- */
/* "NAME: STATE: text", or "NAME: STATE again" when there is nothing to say of it. */
void hc_home_told(struct hc_core *c, const struct hc_home *h, const struct hc_told *t,
		  const char *text);
void hc_told_damaged(const struct hc_core *c, const struct hc_home *h, char *text, size_t bytes);
/* What is said of a domain that is ACTIVE: in the log, and in the journal. */
void hc_told_active(const char *name, uint32_t nranks, char *text, size_t bytes);
void hc_told_formed(const char *name, uint32_t nranks, uint32_t epoch, char *text, size_t bytes);

/* ---- at a part; nothing, when its home is here ---- */
void hc_part_told(struct hc_core *c, struct hc_part *p, const struct hc_told *t, const char *text);
/* It has formed, and its ranks know: they do not wait for that to be written. Once. */
void hc_part_told_active(struct hc_core *c, struct hc_part *p);
/* What its home says, which the part does not hold yet: once, however often it is said. */
void hc_part_told_state(struct hc_core *c, struct hc_part *p, const struct hc_m_state *m);
/* It is over, or was never. */
void hc_part_told_end(struct hc_core *c, struct hc_part *p);
/* A process of this node has exited; said here too while the domain of a home of this node forms,
 * for the home says nothing of it. */
void hc_part_told_death(struct hc_core *c, struct hc_part *p, uint32_t seat);

#endif
