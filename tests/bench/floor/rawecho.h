/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Floor of a request: an epoll server in its own process on an AF_UNIX SOCK_SEQPACKET socket.
 * For each whole request in a packet it puts one answer into the packet that goes back. Nothing
 * is decoded, looked up or allocated: what is left is the kernel's part of a round trip.
 */
#ifndef HC_FLOOR_RAWECHO_H
#define HC_FLOOR_RAWECHO_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "loadgen.h"

enum { RAWECHO_MESSAGE_MAX = 4096 };

struct rawecho {
	char path[108];
	size_t request_bytes;
	size_t answer_bytes;
	pid_t pid;
};

/* Starts the server on `cpu`; it accepts when this returns. */
void rawecho_start(struct rawecho *e, const char *path, size_t request_bytes, size_t answer_bytes,
		   int cpu);
void rawecho_stop(struct rawecho *e);

void rawecho_target(struct rawecho *e, struct loadgen_target *target);

/* Connects a SOCK_SEQPACKET or SOCK_STREAM socket to a path. */
int floor_connect_unix(const char *path, int type);
int floor_listen_unix(const char *path, int type);

#endif
