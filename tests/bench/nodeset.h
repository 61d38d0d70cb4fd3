/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cluster on one machine, for benchmarks: daemon i listens on 127.0.0.(i + 1), all have one key
 * and know each other. Each is bound to a processor, so that two of them are like two machines
 * that have one each; what runs on such a node is to be bound there too.
 */
#ifndef HC_BENCH_NODESET_H
#define HC_BENCH_NODESET_H

#include <hcomm/views.h>
#include <stdint.h>

#include "harness.h"

enum { NODESET_MAX = 8 };

struct nodeset {
	unsigned count;
	struct hc_node node[NODESET_MAX];
	int cpu[NODESET_MAX];
};

/* All of them are connected, and their paths proved, when this returns. `options`: more lines of
 * each one's configuration, or NULL. Node i is called node<i> and runs on cpus[i % 2]. */
void nodeset_start(struct nodeset *s, unsigned count, unsigned devices, unsigned port,
		   const int cpus[2], const char *options);
/* Until each daemon sees each other one. */
void nodeset_wait(const struct nodeset *s, uint32_t seconds);
void nodeset_status(const struct nodeset *s, unsigned i, struct hcomm_view_status *out);
void nodeset_stop(struct nodeset *s);

/* A rank table of all nodes: `ranks` on each, their devices from `first_device` on. */
void nodeset_write_table(const char *path, unsigned nodes, unsigned first_device, unsigned ranks);

#endif
