/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What tables the database has, and how a file of an older schema gets there.
 *
 * Each step is one transaction that ends with the number of the schema that it made, so a step that
 * was cut off was not begun. Rows are records of the protocol's description, to which fields are
 * only appended: a step appends what the new fields are in an old row.
 */
#ifndef HC_DBSCHEMA_H
#define HC_DBSCHEMA_H

#include "db.h"

extern const char hc_dbschema[];                         /* an empty file becomes HC_DB_SCHEMA */
extern const char *const hc_dbschema_next[HC_DB_SCHEMA]; /* [n]: n becomes n + 1; 0 is no schema */

#endif
