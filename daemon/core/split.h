/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Split: every rank of a domain says a colour and a key; those of one colour form a sub-domain.
 *
 * The home of the parent gathers what the ranks say. When all have spoken each is answered with
 * the number and the member list of its group, and goes on with `sub`, which is the one way in
 * for sub-domains. The answers go out one in each unit of work: a list may be long.
 *
 * Each rank counts its splits of the parent, and says which one its word is of. Only words of one
 * number meet. A rank says the next number when it has its answer, so whoever says n + 1 shows that
 * n was complete.
 *
 * Answers are kept for a while, or until the next split of that parent is complete: a rank whose
 * connection was lost says its word again under the same number, and is told the same. They are not
 * stored: that would cost each split a write of all colours, for a daemon that dies between two of
 * its answers. Where one did, a rank that was not answered repeats its word to a home that has
 * forgotten it. It is answered when the others repeat theirs, since nobody was told anything; and
 * it is refused when one of them says a later number, since then that split can be complete no
 * more. Its library counts the refused one as over, so all are at the same number again.
 *
 * A word without a number is of whatever split is open, as all were when nobody counted.
 */
#ifndef HC_SPLIT_H
#define HC_SPLIT_H

#include "state.h"

/* A client's request; then the two messages between its node and the home. */
void hc_split(struct hc_core *c, struct hc_session *s, uint32_t request,
	      const struct hc_m_split *m);
void hc_split_on_gather(struct hc_core *c, uint32_t node, const struct hc_m_gather *m);
void hc_split_on_gathered(struct hc_core *c, const struct hc_m_gathered *m);

/* Numbers of sub-domains that come of a split have it, those that callers of sub choose have not.
 */
#define HC_SPLIT_BIT (1ull << 63)

/* May a sub-domain of it form (parent 0: it is none)? 0, or the outcome with the reason. One that
 * drains may have them: what a split has said goes on, while others leave already. */
int hc_split_parent_check(struct hc_core *c, uint64_t parent, char *text, size_t bytes);
/* The parent is damaged, drains or is over: whoever waits for a split is told, and sub-domains that
 * form will not be, unless it drains. */
void hc_split_parent_over(struct hc_core *c, uint64_t parent, int code, const char *text);
void hc_split_timeout(struct hc_core *c, uint32_t gather);
/* Send one answer; false when none is due. */
bool hc_split_work(struct hc_core *c);

#endif
