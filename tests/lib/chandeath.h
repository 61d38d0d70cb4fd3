/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client that is killed while it holds what another one waits for: the two, for hc_spawn.
 *
 * The victim has references and channels, and the channels together are all that may be granted of
 * the link between devices 0 and 1; the waiter wants all of that at once. Each is in a domain of
 * its own, of the name at arg. The node's configuration needs HC_CHANDEATH_LINK.
 */
#ifndef HC_CHANDEATH_H
#define HC_CHANDEATH_H

#include "ledger.h"
#include "harness.h"

enum { HC_VICTIM_REFERENCES = 5, HC_VICTIM_CHANNELS = 3, HC_VICTIM_MBPS = 80 };

#define HC_CHANDEATH_LINK "[link any any]\nbandwidth_mbps = 300\n"

/* Tells a byte when it has everything, and sleeps until it is killed or told one. */
int hc_chandeath_victim(void *name, int in, int out);
/* Tells a byte when it has joined. At each byte that is not 0 it waits for the whole link, and
 * tells the time (uint64_t, ns) when it has it; at the next byte it gives it back and tells a byte.
 * At 0 it ends. */
int hc_chandeath_waiter(void *name, int in, int out);
/* The scene: victim `number` has everything and the waiter waits. books: see ledger.h; what they
 * say then is in *l. */
void hc_chandeath_begin(struct hc_child *victim, struct hc_child *waiter, unsigned number,
			int books, struct hc_ledger *l);

#endif
