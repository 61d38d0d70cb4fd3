/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which process holds a port: for the message when ours is taken.
 *
 * The kernel lists sockets with their inodes below /proc/net, processes their descriptors below
 * /proc/PID/fd. Both may be unreadable, so the answer may be empty; it is for people only.
 */
#ifndef HC_HOLDER_H
#define HC_HOLDER_H

#include "core.h"

/* "pid 123 (name)", or "" when it cannot be known. Takes half a second at most. */
void hc_holder_find(const struct hc_endpoint *at, bool udp, char *out, size_t size);

#endif
