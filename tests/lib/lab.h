/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nodes with rails between them, each node in a network namespace of its own.
 *
 * The test's process enters a namespace that is the switches: bridge switchR for rail R, and on it
 * port pNrR for the cable of node N. In the namespace of node N the other end is railR with address
 * 10.71.R.(N+1)/24. Node N is named "nodeN" and dials all others over all rails. Everything goes
 * with the test's process. Wants root and the tool `ip`; some tests also nft.
 */
#ifndef HC_LAB_H
#define HC_LAB_H

#include "harness.h"
#include "netns.h"

enum { LAB_NODES = 4 };

struct hc_lab {
	unsigned nnodes, rails;
	unsigned devices; /* of each node: 1, unless set after hc_lab_enter */
	int home;
	struct hc_lab_node {
		struct hc_node node;
		int ns;
		const char *host; /* host name of its own, or NULL: the machine's */
	} at[LAB_NODES];
};

/* Make the network. False: a line SKIP was printed, end the test. */
bool hc_lab_enter(struct hc_lab *lab, unsigned nnodes, unsigned rails, unsigned mtu);
/* Configuration of node i; `top` may be NULL. `named`: with the name nodeI. */
void hc_lab_prepare(struct hc_lab *lab, unsigned i, bool named, const char *top);
/* Prepare and run all, and wait until each sees all paths normal. */
void hc_lab_start(struct hc_lab *lab, const char *top);
void hc_lab_await_normal(struct hc_lab *lab, unsigned deadline_ms);
void hc_lab_end(struct hc_lab *lab);

/* Go to the namespace of node i, and back. */
void hc_lab_go(struct hc_lab *lab, unsigned i);
void hc_lab_home(struct hc_lab *lab);
/* `ip` in the namespace of node i, or in that of the switches. */
#define hc_lab_ip(lab, i, ...) (hc_lab_go(lab, i), hc_ip(__VA_ARGS__), hc_lab_home(lab))
/* Commands of nft, in the namespace where we are. False: nft is not here. */
bool hc_nft(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
