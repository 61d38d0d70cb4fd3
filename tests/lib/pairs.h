/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Daemons that know each other, on loopback addresses: node i listens on 127.0.0.(i + 1), and the
 * test holds ports as somebody else would.
 */
#ifndef HC_PAIRS_H
#define HC_PAIRS_H

#include "harness.h"

#define HC_KEY_A "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\n"
#define HC_KEY_B "ff112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\n"

/*
 * Called first in main by a program that uses fixed ports: those of another check that runs on this
 * machine are no concern of its. As root it gets a network namespace of its own; else the same
 * program of another check is waited for, by a lock in /tmp that ends with this process.
 */
void hc_ports_own(const char *program);
/* Prepare node i of n that dial each other at `port`; `key`: text of its key file, NULL = none. */
void hc_pair_prepare(struct hc_node *n, unsigned i, unsigned count, unsigned port, const char *key,
		     const char *top);
/* A listening TCP socket (or a UDP one), the port taken. */
int hc_port_hold(const char *addr, unsigned port, bool udp);
/* Does the node's `hcommctl node list` have a line with all of these words? */
bool hc_pair_shows(const struct hc_node *n, const char *node, const char *word);
/* Waits for that, and fails with the last list. */
void hc_pair_await(const struct hc_node *n, const char *node, const char *word);
/* Waits until the log has that text. */
void hc_pair_await_log(const struct hc_node *n, const char *text);
/* Write a rank table of node0 and node1 with two ranks each into the directory of n; its path. */
void hc_pair_table(const struct hc_node *n, char *path, size_t bytes);

#endif
