/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What two nodes hold of the domains that they share: that it is the same, and what if it is not.
 *
 * A domain is shared by its home and each other node that has ranks of it, from the moment that it
 * is committed. Both add a hash of its identity, epoch and state number, by exclusive or, to the
 * digest of that pair of nodes: the home of what it decided, the other one of what it heard. So the
 * two digests are equal unless something is under way, or was lost. They travel in each beat.
 *
 * A pair of digests that differs in three beats, and always by the same two values, starts one
 * comparison: the node with the lower identity sends all that it shares with the other one, in
 * pages, and the other one answers with all of its own. Whoever is the home of a domain judges what
 * the other one says of it, and says again what that one has missed: GONE for one that is not there
 * any more, STATE when its number is older. Nothing else follows from a digest.
 */
#ifndef HC_DIGEST_H
#define HC_DIGEST_H

#include "state.h"

/* Take what it adds to the digests away, or add it: before and after each change of it. */
void hc_digest_home(struct hc_core *c, struct hc_home *h);
void hc_digest_part(struct hc_core *c, const struct hc_part *p);
/* The digest of the pair with that node. */
uint64_t hc_digest_of(const struct hc_core *c, uint32_t node);
/* A peer is that node: its beats carry the digest. */
void hc_digest_peer(struct hc_core *c, uint32_t peer);
/* They have differed for three beats. */
void hc_digest_differs(struct hc_core *c, uint32_t node);
void hc_digest_on_sum(struct hc_core *c, uint32_t node, const struct hc_m_peer_sum *m);
/* One page more; false: none is to be sent. */
bool hc_digest_work(struct hc_core *c);

#endif
