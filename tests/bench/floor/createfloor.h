/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Floor of making a domain of N local ranks: each rank sends one request; when all have come
 * the server hands one row to a writer thread and, once that is committed, answers each rank.
 * It is what a creation with one decision, one durable record and one round trip must cost.
 */
#ifndef HC_FLOOR_CREATEFLOOR_H
#define HC_FLOOR_CREATEFLOOR_H

#include <stddef.h>
#include <stdint.h>

#include "team.h"

struct createfloor {
	unsigned ranks;
	size_t request_bytes;
	size_t answer_bytes;
	size_t row_bytes;
	int server_cpu;
	char path[108];
	char db[108];
	pid_t server;
	struct team team;
};

/* The caller fills in the sizes, ranks and server_cpu; the files go below `dir`. */
void createfloor_start(struct createfloor *f, const char *dir, const int *rank_cpus,
		       unsigned ncpus);
uint64_t createfloor_turn(struct createfloor *f);
void createfloor_stop(struct createfloor *f);

#endif
