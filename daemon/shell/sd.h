/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The service manager: what it is told, what it hands over. Without one every call does nothing.
 *
 * The watchdog is fed from the main loop alone: a side thread would say "alive" for a loop that
 * hangs.
 */
#ifndef HC_SD_H
#define HC_SD_H

#include <stdint.h>
#include "fdstore.h"

void hc_sd_ready(const char *status);
void hc_sd_status(const char *status);
void hc_sd_reloading(void);
void hc_sd_stopping(void);
void hc_sd_watchdog(void);
/* Time between two feeds (half of what the manager waits for), or 0 when it does not watch. */
uint64_t hc_sd_watchdog_ns(void);

/* The fd store, under a name. They may wait for the manager. */
void hc_sd_store_fd(const char *name, int fd);
void hc_sd_unstore_fd(const char *name);
/* Does not wait: lost when the manager's queue is full. */
void hc_sd_store_fd_now(const char *name, int fd);

/* What the manager passed, close-on-exec; anything else was said and closed. */
struct hc_sd_fds {
	int listen; /* the client socket, or -1 */
	struct hc_stored_arena *arenas;
	size_t narenas;
};
/* Once, early. 0 or -ENOMEM. */
int hc_sd_take_fds(struct hc_sd_fds *fds);
/* Closes the arenas that nobody took. */
void hc_sd_fds_fini(struct hc_sd_fds *fds);

#endif
