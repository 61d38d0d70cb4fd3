/* SPDX-License-Identifier: Apache-2.0 */
/* See dbschema.h. */
#include "dbschema.h"

#define CHANNEL_TABLE                                                                              \
	"CREATE TABLE IF NOT EXISTS channel(id INTEGER PRIMARY KEY, row BLOB NOT NULL);"

const char hc_dbschema[] =
	"BEGIN IMMEDIATE;"
	"CREATE TABLE meta(key TEXT PRIMARY KEY, value) WITHOUT ROWID;"
	"CREATE TABLE domain(seq INTEGER PRIMARY KEY, id INTEGER NOT NULL, row BLOB NOT NULL);"
	"CREATE TABLE event(seq INTEGER PRIMARY KEY AUTOINCREMENT, wall_ns INTEGER, mono_ns "
	"INTEGER,"
	" kind INTEGER, domain INTEGER, epoch INTEGER, rank INTEGER, pid INTEGER, uid INTEGER,"
	" text TEXT);"
	"CREATE INDEX event_domain ON event(domain, seq) WHERE domain != 0;" CHANNEL_TABLE
	"PRAGMA user_version=4;"
	"COMMIT;";

/* An empty name is two bytes of length. */
static const char from_1[] =
	"BEGIN IMMEDIATE;" CHANNEL_TABLE "UPDATE channel SET row = CAST(row || x'0000' AS BLOB);"
	"PRAGMA user_version=2;"
	"COMMIT;";

/* No other home (16 + 8 bytes), and three empty arrays (4 bytes each). */
static const char from_2[] = "BEGIN IMMEDIATE;"
			     "UPDATE domain SET row = CAST(row || zeroblob(36) AS BLOB);"
			     "PRAGMA user_version=3;"
			     "COMMIT;";

/* What a cause names: kind 0, no rank, process 0. */
static const char from_3[] = "BEGIN IMMEDIATE;"
			     "UPDATE domain SET row = CAST(row || x'0000ffffffff00000000' AS BLOB);"
			     "PRAGMA user_version=4;"
			     "COMMIT;";

const char *const hc_dbschema_next[HC_DB_SCHEMA] = {[1] = from_1, [2] = from_2, [3] = from_3};
