/* SPDX-License-Identifier: Apache-2.0 */
/* What rank tables said of their ranks, for people; see roll.c. */
#ifndef HC_ROLL_H
#define HC_ROLL_H

#include "state.h"

/* Keep what a table says of its ranks: for those who do not come, and where two differ. */
void hc_roll_learn(struct hc_core *c, const struct hc_roster *t);
/* A home whose ranks were all read elsewhere asks one of their nodes; the ranks come in slices. */
void hc_roll_want(struct hc_core *c, struct hc_home *h);
void hc_roll_on_ask(struct hc_core *c, uint32_t node, const struct hc_m_roll_ask *m);
void hc_roll_on_roll(struct hc_core *c, uint32_t node, const struct hc_m_roll *m);
/* Serial of the table with that hash, 0 = it is not kept. */
uint32_t hc_roll_of(const struct hc_core *c, uint64_t hash_a, uint64_t hash_b);
/* Of rank `rank` in the table with that hash; NULL: none, or the table is not kept. */
const struct hc_roll_entry *hc_roll_find(const struct hc_core *c, uint64_t hash_a, uint64_t hash_b,
					 uint32_t rank);
const struct hc_roll_entry *hc_home_roll(const struct hc_core *c, const struct hc_home *h,
					 uint32_t rank);
/* What one joiner says, whose table another node may have read. */
struct hc_roll_other {
	uint64_t list_a, list_b, entry; /* entry 0: not said */
	uint32_t nranks, rank, device;
};
#define HC_ROLL_OTHER(m)                                                                           \
	{                                                                                          \
		.list_a = (m)->list_a, .list_b = (m)->list_b, .entry = (m)->entry,                 \
		.nranks = (m)->nranks, .rank = (m)->rank, .device = (m)->device                    \
	}
/* Is that another table than the one with serial `known`? The text ("" if it cannot be said)
 * continues a sentence about the known one and the other, in that order. */
bool hc_roll_differ(const struct hc_core *c, uint32_t known, const struct hc_roll_other *other,
		    char *text, size_t bytes);
/* The same with the table of the home's ranks. */
bool hc_home_differ(const struct hc_core *c, const struct hc_home *h,
		    const struct hc_roll_other *other, char *text, size_t bytes);

#endif
