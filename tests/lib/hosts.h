/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two hosts in network namespaces with a daemon each: hA is where the test runs, with a0
 * 10.71.0.1, and hB has b0 10.71.0.2. The daemons dial each other and know the same key.
 */
#ifndef HC_HOSTS_H
#define HC_HOSTS_H

#include "netns.h"
#include "pairs.h"

#define HC_HOST_PORT 16660
struct hc_hosts {
	int other; /* the namespace of hB */
	struct hc_node a, b;
};

/* Prepares both, starts none; hA is entered. More options of each, or NULL. False: SKIP was
 * printed. */
bool hc_hosts_prepare(struct hc_hosts *h, const char *top_a, const char *top_b);
/* a0 and b0 with their addresses, up. */
void hc_hosts_join(struct hc_hosts *h);
void hc_hosts_end(struct hc_hosts *h);
/* Is the first path to `node` in that state? */
bool hc_path_is(const struct hc_node *n, const char *node, const char *state);
void hc_path_await(const struct hc_node *n, const char *node, const char *state,
		   unsigned deadline_ms);

#endif
