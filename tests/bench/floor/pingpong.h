/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Floor of a channel: two processes that pass a message to and fro in shared memory, and nothing
 * else. There is one message each way, whose number says that it is new, in the line before its
 * bytes; no ring, no length to check, no end to watch for. Waiting is of one of two kinds:
 *
 *	on one processor    each message is a futex wake, each wait a futex wait
 *	on two              a spin of the same length as the library's, then a futex; who has sent
 *	                    looks whether the other sleeps
 *
 * The partner is a child process, bound to its processor.
 */
#ifndef HC_FLOOR_PINGPONG_H
#define HC_FLOOR_PINGPONG_H

#include <stdbool.h>
#include <stdint.h>

struct pingpong;

enum { PINGPONG_BYTES_MAX = 120 };

struct pingpong *floor_pingpong_start(int cpu, bool spin);
/* `trips` messages of so many bytes there and back; nanoseconds for one. */
double floor_pingpong_ns(struct pingpong *p, uint32_t bytes, unsigned trips);
struct pingpong *floor_pingpong_stop(struct pingpong *p);

#endif
