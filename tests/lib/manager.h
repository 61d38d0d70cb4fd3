/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A service manager as far as the daemon sees one: a notification socket, an fd store, and what a
 * start hands over.
 *
 * Notifications wait in the socket until they are read here, as with a manager that is busy; so a
 * test reads them (hc_manager_read) when it wants them to have arrived. Descriptors that were
 * stored stay over a kill of the daemon and go to its next start.
 */
#ifndef HC_MANAGER_H
#define HC_MANAGER_H

#include "harness.h"

enum { MANAGER_FDS = 256 };

struct hc_manager {
	int fd;
	char path[160];
	struct {
		int fd;
		char name[96];
	} stored[MANAGER_FDS];
	unsigned nstored, ready, stopping, removed, dropped;
	uint64_t stopping_ns;
	bool ready_told; /* since the last start */
	char status[256];
};

/* The node's next starts are this manager's; call it before the first. */
void hc_manager_start(struct hc_manager *m, struct hc_node *n);
/* Take what has arrived. */
void hc_manager_read(struct hc_manager *m);
/* Until so many descriptors are stored; fails at the deadline. */
void hc_manager_await_stored(struct hc_manager *m, unsigned count, unsigned deadline_ms);
/* Put something there, as an older daemon would have; takes the descriptor. */
void hc_manager_put(struct hc_manager *m, const char *name, int fd);
void hc_manager_end(struct hc_manager *m);

#endif
