/* SPDX-License-Identifier: Apache-2.0 */
/* Between main.c and shell.c: the life of the daemon in three calls. */
#ifndef HC_SHELLIMP_H
#define HC_SHELLIMP_H

#include "shell.h"

enum { HC_EXIT_OK = 0, HC_EXIT_FAILED = 1, HC_EXIT_REFUSED = 2 };

/* sh->conf is loaded, sh->lock_fd is -1. 0; else it was logged and sh->exit_status is set. */
int hc_shell_start(struct hc_shell *sh);
int hc_shell_run(struct hc_shell *sh);
/* Also after a start that failed half-way. */
void hc_shell_stop(struct hc_shell *sh);

#endif
