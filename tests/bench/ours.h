/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The real thing as a contestant: a private daemon with simulated devices on one processor, rank
 * tables for it, and its client socket as a target of the load generator. The generator speaks
 * the protocol itself (hello, then pings), because one process with hundreds of sessions of the
 * library would measure the library's waiting and not the daemon.
 */
#ifndef HC_BENCH_OURS_H
#define HC_BENCH_OURS_H

#include <stddef.h>
#include <sys/types.h>

#include "loadgen.h"

struct ours;

/* The daemon answers when this returns. All its threads stay on `cpu`; below 0: anywhere. */
struct ours *ours_start(unsigned devices, int cpu);
/* With further lines of its configuration. */
struct ours *ours_start_with(unsigned devices, int cpu, const char *options);
struct ours *ours_stop(struct ours *o);
const char *ours_socket(const struct ours *o);
pid_t ours_pid(const struct ours *o);

/* A rank table of one server: rank r has the device first_device + r. */
void ours_write_table(const char *path, unsigned first_device, unsigned ranks);

/* Bytes of a ping and of its answer: what an echo must carry to be compared. */
size_t ours_ping_bytes(void);
size_t ours_done_bytes(void);
void ours_ping_target(struct ours *o, struct loadgen_target *target);

/* Ends the benchmark with the library's own words when r is an error. */
void ours_must(int r, const char *what);

#endif
