/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who this node is, and that it is the only daemon of its state directory.
 *
 * The node id is 16 random bytes, drawn once and kept in the file `node-id`; the database holds a
 * mirror, so that losing one of the two does not make a new node. The lock is held on an open
 * file and dies with the process: no number of a process decides anything, the one written into
 * the file is for messages.
 */
#ifndef HC_IDENT_H
#define HC_IDENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define HC_BOOT_BYTES 37 /* text of a uuid, with the NUL */
#define HC_WHY_BYTES  1400

/* Outcomes above 0: `why` holds one line for people. */
enum { HC_IDENT_REFUSED = 1, HC_IDENT_BUSY = 2 };

/* Makes the directory when it is missing (its parent must be there). 0 or HC_IDENT_REFUSED. */
int hc_ident_dir(const char *path, mode_t mode, const char *setting, char *why, size_t size);

/* 0 and *fd, which keeps the lock; HC_IDENT_BUSY names the holder; HC_IDENT_REFUSED. */
int hc_ident_lock(const char *state_dir, int *fd, char *why, size_t size);

/* The kernel's boot id. 0 or a negative errno. */
int hc_ident_boot(char boot[HC_BOOT_BYTES]);

/* Reads the id; when the file is missing or damaged takes `mirror` (NULL: none), else draws a new
 * one, and writes the file. *made: a new one was drawn. 0 or HC_IDENT_REFUSED. */
int hc_ident_node(const char *state_dir, const uint8_t *mirror, uint8_t id[16], bool *made,
		  char *why, size_t size);

/* `bytes` from the kernel's random source; never fails. */
void hc_ident_random(void *out, size_t bytes);

#endif
