/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Moving a damaged database out of the way: renamed with a time stamp, its log with it, and only
 * the newest few are kept, since a disk that damages files would fill itself with them.
 */
#ifndef HC_DBASIDE_H
#define HC_DBASIDE_H

#include <stddef.h>

#define HC_DB_ASIDE_BYTES 1200

/* 0 and the new name, or a negative errno. */
int hc_db_move_aside(const char *path, char *aside, size_t size);

#endif
