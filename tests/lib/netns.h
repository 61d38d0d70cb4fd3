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
/* The loopback of this namespace up, without any tool. */
void hc_netns_loopback(void);
/* Commands of `ip`, one a line; fails the test if one does. */
void hc_ip(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same; false: one failed. Nothing is printed. */
bool hc_ip_try(const char *format, ...) __attribute__((format(printf, 1, 2)));

/*
 * A second host: another fresh namespace, while this process stays in its own. What names it is a
 * descriptor, which `link set NAME netns /proc/PID/fd/N` takes too (hc_netns_path).
 */
int hc_netns_other(void);
const char *hc_netns_path(int ns);
/* hc_ip there. */
void hc_ip_in(int ns, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* before_exec of a hc_node: the daemon lives there; `ns` points to the descriptor. */
void hc_netns_before_exec(void *ns);
/* The usual pair of hosts: NAMEs a and b joined, ADDRESS/24 given, both up. */
void hc_netns_join(int ns, const char *a, const char *addr_a, const char *b, const char *addr_b);

#endif
