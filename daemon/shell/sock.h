/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The listening socket of the clients and its place in the file system.
 *
 * The path is ours only when we made it: a socket that is left over is replaced by the holder of
 * the state lock when a connection to it is refused, which the kernel says of a dead listener
 * alone; silence of a busy one is no proof. Anything else at the path is left as it is. The file
 * gets its mode and group before anyone can connect. When the service manager made the socket,
 * its path belongs to the unit and is not touched.
 */
#ifndef HC_SOCK_H
#define HC_SOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define HC_SOCK_PATH_MAX 107u

struct hc_sock {
	int fd;
	bool activated; /* by the service manager */
	bool foreign;   /* something else is at the path now */
	bool has_group;
	gid_t group;
	mode_t mode;
	dev_t dev;
	ino_t ino;
	char path[HC_SOCK_PATH_MAX + 1];
};

/* 0, or 1 and one line in `why`. */
int hc_sock_open(struct hc_sock *s, const char *path, mode_t mode, const gid_t *group, char *why,
		 size_t size);
/* Takes a listening socket of the service manager. */
void hc_sock_adopt(struct hc_sock *s, int fd);
/* Is the path still ours? Makes it again when it is gone. True: s->fd is a new socket. */
bool hc_sock_check(struct hc_sock *s);
/* Closes, and removes the path if it is still our own. */
void hc_sock_close(struct hc_sock *s);

#endif
