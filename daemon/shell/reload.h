/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reload: a new configuration, all or nothing.
 *
 * Files are read by the worker. What needs a restart, or a topology that is refused, refuses the
 * whole reload; the old configuration goes on and the status says when and why.
 */
#ifndef HC_RELOAD_H
#define HC_RELOAD_H

#include "shell.h"

/* `session`, `id`: who is answered when it is over; session 0: nobody (SIGHUP). */
void hc_reload(struct hc_shell *sh, uint64_t session, uint32_t id);

#endif
