/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What others do, measured in the same run. A peer that is not installed is no error: it is
 * reported as "not installed" and its figures as null.
 */
#ifndef HC_BENCH_PEERS_H
#define HC_BENCH_PEERS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "loadgen.h"

#define PEER_NOT_INSTALLED "not installed"

/* Whether a program of that name is in PATH. */
bool peer_installed(const char *program);

struct peer_redis {
	char path[108];
	pid_t pid;
};

/* A private server without persistence on a socket below `dir`; false: not installed. */
bool peer_redis_start(struct peer_redis *r, const char *dir, int cpu);
void peer_redis_stop(struct peer_redis *r);
/* PING as redis-cli sends it, the answer +PONG. */
void peer_redis_target(struct peer_redis *r, struct loadgen_target *target);

/* What redis-benchmark itself measures from the caller's processor, a second; 0: not installed. */
double peer_redis_own_tool(const struct peer_redis *r, unsigned clients, unsigned depth);

struct peer_times {
	double p50_us;
	double p99_us;
	char what[128]; /* version, or why there are no figures */
};

/* MPI_Comm_split over `ranks` local ranks, first entry to last return; false: see what. */
bool peer_mpi_split(struct peer_times *m, const char *dir, unsigned ranks, unsigned turns);

/* MPI_Barrier over `ranks` local ranks, as rank 0 sees it; rank r on cpus[r % 2]. Of Open MPI, or
 * of MPICH (which Debian installs beside it under names of its own). */
bool peer_mpi_barrier(struct peer_times *m, const char *dir, bool mpich, unsigned ranks,
		      unsigned turns, const int cpus[2]);

/* torch.distributed.new_group with gloo, the same. */
bool peer_gloo_group(struct peer_times *m, const char *dir, unsigned ranks, unsigned turns);

struct peer_qb {
	double us_8, us_64;
	char what[128]; /* "installed", or why there are no figures */
};

/* A request and its answer over libqb's IPC in shared memory; false: see what. */
bool peer_qb_echo(struct peer_qb *q, const char *dir, int client_cpu, int server_cpu,
		  unsigned turns);

#endif
