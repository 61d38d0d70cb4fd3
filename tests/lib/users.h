/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several users on one daemon, for tests that run as root.
 *
 * socket_group and admin_group are two groups that every Debian has and that nobody here is in
 * otherwise. The users have no names: a uid is all that the kernel tells of a caller.
 */
#ifndef HC_USERS_H
#define HC_USERS_H

#include "harness.h"

#define HC_MEMBER_GROUP "daemon"
#define HC_ADMIN_GROUP  "adm"
enum { HC_UID_OWNER = 12001, HC_UID_OTHER, HC_UID_STRANGER, HC_UID_ADMIN };

/* Can this process become others? Else it has printed a line SKIP. */
bool hc_users_work(void);
/* A daemon whose directory they may pass, with those groups; not started. */
void hc_users_prepare(struct hc_node *n, unsigned devices, const char *top);
/* One whole line of the configuration, by its first word and " = ", in place of the old one. */
void hc_conf_set(const struct hc_node *n, const char *name, const char *value);
/* For good, in a child: that uid, and besides its own group the one named (NULL: none). */
void hc_become(uid_t uid, const char *group);

#endif
