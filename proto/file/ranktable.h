/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rank tables of HCCL, versions 1.0, 1.2 and 2.0, read into a roster.
 *
 * All versions go through the same rules (rankrules.c); only the walk over the fields differs
 * (rankv1.c, rankv2.c). Checking is n log n. Unknown keys are ignored, since producers add some.
 *
 * Order of judgement: JSON, status "initializing" (not ready, whatever else the file holds),
 * version, status, then the fields in file order, then the rules over the whole table. The first
 * fault is the verdict.
 *
 * The hash is over a canonical form: ranks in order, numbers as numbers, addresses as bytes,
 * defaults filled in. The keys are fixed and published, so every build on every node agrees.
 * What it covers is what a table means: ignored keys, status and spelling are not in it.
 */
#ifndef HC_RANKTABLE_H
#define HC_RANKTABLE_H

#include "hash.h"
#include "jsonfile.h"
#include "roster.h"

#define HC_TABLE_RANKS_MAX     65536
#define HC_DEVICE_PORT_DEFAULT 16666
#define HC_BACKUP_PORT_DEFAULT 16667

/* hash[0] of a roster and the hash of a rank use the first, hash[1] the second. */
extern const struct hc_hash_key hc_ranktable_keys[2];

/*
 * 0: `roster` is a new one, and the verdict's message says what was understood. HC_FILE_REFUSED:
 * refused or not ready. -ENOMEM. The roster does not refer to `in`. Any thread.
 */
int hc_ranktable_read(const struct hc_jsontext *in, struct hc_roster **roster,
		      struct hc_verdict *v);
void hc_ranktable_free(struct hc_roster *roster);

#endif
