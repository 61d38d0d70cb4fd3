/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The books of the links, seen from outside: what a running daemon says of its links and channels
 * at one moment, held against itself.
 *
 * One packet asks for the links, the channels, the requests that wait, and the links again. Where
 * both looks at the links agree nothing was granted or given back in between, and the sample is
 * *whole*: what the links say is used and what the channels sum up to must then be the same,
 * but for grants that are kept for somebody who has not heard of them yet, each of which stands
 * among those who wait. In every sample, whole or not, no link is used beyond its limit either way
 * and no virtual channel is given twice. What breaks that ends the test with the figures.
 */
#ifndef HC_LEDGER_H
#define HC_LEDGER_H

#include "harness.h"

enum { HC_LEDGER_LINKS = 8, HC_LEDGER_VCS = 4096 };

struct hc_ledger_link {
	char name[64];
	uint32_t limit, used[2], vcs, vcs_used, waiting;
	uint64_t grants;
	uint32_t sum[2], count; /* of the channels that the list shows */
};

struct hc_ledger {
	struct hc_ledger_link link[HC_LEDGER_LINKS];
	uint32_t links, channels, waits, tickets;
	bool whole;
};

/* A session for the samples; close it with close(). */
int hc_ledger_open(const struct hc_node *n);
/* One sample, checked. */
void hc_ledger_read(int fd, struct hc_ledger *out);
/* Until a sample shows nothing granted and nobody waiting; fails at the deadline. */
void hc_ledger_await_empty(int fd, unsigned deadline_ms);

#endif
