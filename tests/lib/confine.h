/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a process can do to itself that its daemon then meets: namespaces, and system calls that
 * are forbidden. In a child only, for none of it can be undone.
 */
#ifndef HC_CONFINE_H
#define HC_CONFINE_H

#include <stdbool.h>
#include <sys/types.h>

/* Further children are in a pid namespace of their own. False: not permitted here. */
bool hc_confine_pids(void);
/* This process is in a user namespace in which only root has a number. False: not permitted. */
bool hc_confine_users(void);
/* membarrier fails with EPERM from here on, also in programs that are run. */
void hc_confine_membarrier(void);

#endif
