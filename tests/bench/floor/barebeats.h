/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Floor of bench_beats: what it costs to send and receive authenticated frames of the size of a
 * beat, with a key for each node and direction, and nothing else: no protocol, no state, no
 * judgement. Frames are sealed and sent 64 at a time, received 64 at a time with both their
 * addresses, and their tags are checked.
 */
#ifndef HC_BENCH_BAREBEATS_H
#define HC_BENCH_BAREBEATS_H

#include <stdint.h>
#include <sys/types.h>

struct barebeats {
	uint16_t port, to; /* on 127.0.0.1 */
	uint32_t nodes;
	uint32_t slices; /* parts in which they go out, evenly spread over the interval */
	uint32_t interval_ms;
	int cpu; /* below 0: anywhere */
};

/* A process that does so until it is killed. */
pid_t barebeats_start(const struct barebeats *b);

#endif
