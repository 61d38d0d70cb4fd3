/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Load generator: one thread keeps a burst of requests outstanding on each of N connections and
 * counts the answers. The same loop drives the raw echo, the real daemon and redis, so that what
 * differs between two figures is the server.
 *
 * With depth 1 a connection sends its next request when the answer has come. With depth D it
 * sends D requests in one send and the next D when all D answers have come (what redis-benchmark
 * calls pipelining).
 */
#ifndef HC_FLOOR_LOADGEN_H
#define HC_FLOOR_LOADGEN_H

#include <stddef.h>
#include <stdint.h>

#include "bench.h"

enum {
	LOADGEN_BURST_MAX = 64 * 1024,
	LOADGEN_REST_MAX = 512,
};

struct loadgen_target {
	const char *name;
	void *ctx;
	/* a connected socket that is ready for requests */
	int (*connect)(void *ctx);
	/* writes `count` requests with the ids first_id ...; the bytes written */
	size_t (*burst)(void *ctx, uint32_t first_id, unsigned count, uint8_t *out, size_t room);
	/* the whole and right answers at the start of `in`, and how many bytes they are; what
	 * is no answer ends the benchmark through bench_die() */
	unsigned (*answers)(void *ctx, const uint8_t *in, size_t bytes, size_t *consumed);
};

struct loadgen;

struct loadgen *loadgen_new(const struct loadgen_target *target, unsigned connections,
			    unsigned depth);
/* Answers a second over `duration_ns`. */
double loadgen_run(struct loadgen *g, uint64_t duration_ns);
struct loadgen *loadgen_free(struct loadgen *g);

/* One connection, blocking: `count` round trips, each into `each`. */
void loadgen_rtt(const struct loadgen_target *target, int fd, uint64_t count,
		 struct bench_samples *each);

#endif
