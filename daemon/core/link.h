/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Links of this node: what joins its devices, as it was told from outside.
 *
 * The core numbers the links and hands their facts to the admission, which grants shares of them.
 * A link is usable while it is described and both devices at its ends are there and not offline;
 * the one between any two ranks always is. Nor is there a fact from outside for the way out of
 * the node over its network ports: a daemon with peers has it, with the speed of the ports that it
 * uses, where all of them say theirs. A link that is no longer described keeps its number
 * until nothing is granted on it and nobody waits for it; a number like that may be used again.
 */
#ifndef HC_LINK_H
#define HC_LINK_H

#include "state.h"

#define HC_LINK_NAME 48u /* bytes of a link's name, with the NUL */

void hc_link_fact(struct hc_core *c, const struct hc_link_fact *fact);
/* A device came, went, or changed its health. */
void hc_link_device(struct hc_core *c, uint32_t index);

/* The ports towards other nodes, or their speed, are others now. */
void hc_link_ports(struct hc_core *c);

/* Is this number (below c->nlinks) a link, or one that is still held? */
bool hc_link_known(const struct hc_core *c, uint32_t link);
/* "hccs:0-1"; "hccs:0-1.1" is the second of two parallel ones; "shm" joins any two ranks;
 * "eth:out" leaves the node. */
const char *hc_link_name(const struct hc_core *c, uint32_t link, char *buf, size_t size);
/* The number of a described link by its name, or HC_NONE; `hint` is looked at first. */
uint32_t hc_link_named(const struct hc_core *c, struct hc_str name, uint32_t hint);
const char *hc_link_state(struct hc_core *c, uint32_t link); /* up, down or gone */

#endif
