/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Floor of making a domain of ranks on several nodes: a server for each node, connected to the
 * first one by TCP and the same TLS as the daemons, with a writer thread of its own. Each rank
 * sends one request to the server of its node, which passes it on to the first. When all have
 * come: PREPARE to the others, a row at each of them, PREPARED back, a row at the first, COMMIT
 * to the others, an answer to each rank. The others write their second row when the ranks have
 * been answered. Nothing is looked up, checked or kept.
 *
 * All that goes between the servers in one turn of a loop goes in one record.
 */
#ifndef HC_FLOOR_FARFLOOR_H
#define HC_FLOOR_FARFLOOR_H

#include <stddef.h>
#include <stdint.h>

#include "team.h"

enum { FARFLOOR_NODES_MAX = 8 };

struct farfloor {
	unsigned nodes;
	unsigned ranks; /* of each node */
	size_t request_bytes, answer_bytes, row_bytes;
	size_t message_bytes; /* between servers */
	int cpu[FARFLOOR_NODES_MAX];
	uint16_t port;
	char path[FARFLOOR_NODES_MAX][108];
	char db[FARFLOOR_NODES_MAX][108];
	pid_t server[FARFLOOR_NODES_MAX];
	struct team team;
};

/* The caller fills in the numbers, sizes and processors; the files go below `dir`. */
void farfloor_start(struct farfloor *f, const char *dir);
uint64_t farfloor_turn(struct farfloor *f);
void farfloor_stop(struct farfloor *f);

#endif
