/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who is calling: the identity of a connected client, as the kernel says it.
 *
 * Nothing that a client writes decides who it is. User, process and groups are those of the
 * process that connected (SO_PEERCRED, SO_PEERGROUPS); a descriptor of that process comes from
 * SO_PEERPIDFD, else from its hello (checked against the process number), else it is opened by
 * number with the start time compared before and after.
 */
#ifndef HC_CALLER_H
#define HC_CALLER_H

#include <sys/types.h>
#include "core.h"

struct hc_caller_rules {
	uid_t own, overflow;
	gid_t socket_group, admin_group;
	bool has_socket_group, has_admin_group;
	bool allow_foreign_pidns;
};

struct hc_caller {
	struct hc_cred cred;
	int pidfd;    /* the taker closes it; -1: none */
	bool foreign; /* of another pid namespace: pid is 0 */
};

/* Looks up the groups; a missing one is told in `warning` (else empty). */
void hc_caller_rules(struct hc_caller_rules *rules, const char *socket_group,
		     const char *admin_group, char *warning, size_t size);

/* User and process of the other end, before anything was read. 0 or a negative errno. */
int hc_caller_cred(int fd, uint32_t *pid, uint32_t *uid);

/* `sent`: a descriptor that came with the hello, or -1; stays the caller's. 0, or HC_E_PERMISSION,
 * HC_E_RESOURCE_EXHAUSTED or HC_E_SYSTEM with one line in `why`. */
int hc_caller_identify(int fd, int sent, const struct hc_caller_rules *rules,
		       struct hc_caller *caller, char *why, size_t size);

/* Start time of a process in clock ticks since boot; 0 when there is none. */
uint64_t hc_caller_started(uint32_t pid);
/* A descriptor of the process that has this number and start time, or -1: it is gone. */
int hc_caller_open(uint32_t pid, uint64_t started);

#endif
