/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file with the key of the cluster: 64 hexadecimal digits and a newline, nothing else.
 *
 * Whoever has the key speaks for any node, so a file that others can read, or that they could
 * replace, is refused and not merely complained about. Who started us may hand the key in as a
 * credential: a file `cluster.key` in the directory that CREDENTIALS_DIRECTORY names; it counts
 * when key_file is not set, and when it says "none" there is no key.
 */
#ifndef HC_KEYFILE_H
#define HC_KEYFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "datagram.h"

/* Outcomes. ABSENT is not a fault: the node works alone. */
enum { HC_KEYFILE_OK = 0, HC_KEYFILE_ABSENT = 1, HC_KEYFILE_REFUSED = 2 };

/* Which file it is; `is_set`: key_file was set by somebody. */
void hc_keyfile_path(const char *key_file, bool is_set, char *path, size_t size);
/* Reads it; `key` is zero unless OK, `why` one line for people when REFUSED. */
int hc_keyfile_read(const char *path, uint8_t key[HC_KEY_BYTES], char *why, size_t size);

#endif
