/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Network namespaces for tests: this process, and the daemons that it starts, see interfaces of
 * their own and nothing of the machine's. Wants root and the tool `ip`.
 */
#ifndef HC_NETNS_H
#define HC_NETNS_H

#include <stdbool.h>

/* A fresh namespace with its loopback up. False: a line SKIP was printed. */
bool hc_netns_enter(void);
/* Commands of `ip`, one a line; fails the test if one does. */
void hc_ip(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same; false: one failed. Nothing is printed. */
bool hc_ip_try(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
