/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Other nodes in the life of the daemon: the key and the port first, for they may forbid the
 * start; then, with the loop, what uses them.
 *
 * Without a key (and with security = key) nothing is bound and nobody is dialled: the node works
 * alone, and says in the log and in its status what it lacks.
 */
#ifndef HC_SHELLNET_H
#define HC_SHELLNET_H

#include "shell.h"

/* Outcomes, with a line in `why`: the port is taken; the key is not to be used. */
enum { HC_SHELLNET_TAKEN = 1, HC_SHELLNET_REFUSED = 2 };

/* Fills what sh->self says of other nodes. 0, TAKEN or REFUSED. */
int hc_shellnet_prepare(struct hc_shell *sh, char *why, size_t size);
void hc_shellnet_limits(struct hc_shell *sh);
void hc_shellnet_settings(const struct hc_conf *c, struct hc_settings *set);
/* When there is the loop; uses up the key. 0; 1 and `why`; or a negative errno. */
int hc_shellnet_make(struct hc_shell *sh, char *why, size_t size);
/* After HC_EV_START. 0 or a negative errno. */
int hc_shellnet_start(struct hc_shell *sh);
/* Before sh->conf becomes `now`: tells the core the nodes that differ. */
void hc_shellnet_reload(struct hc_shell *sh, const struct hc_conf *now);
/* At the signal that ends us: the peers are told that we come back. */
void hc_shellnet_hold(struct hc_shell *sh);
void hc_shellnet_flush(struct hc_shell *sh);
void hc_shellnet_stop(struct hc_shell *sh);

#endif
