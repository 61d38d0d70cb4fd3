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

void hc_sd_ready(const char *status);
void hc_sd_status(const char *status);
void hc_sd_reloading(void);
void hc_sd_stopping(void);
void hc_sd_watchdog(void);
/* Time between two feeds (half of what the manager waits for), or 0 when it does not watch. */
uint64_t hc_sd_watchdog_ns(void);
/* The listening socket that the manager passed (close-on-exec), or -1. Others are closed. */
int hc_sd_listen_fd(void);

#endif
