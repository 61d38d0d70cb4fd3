/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rank tables that clients send: in the message or in sealed memory, read once, kept by contents.
 *
 * All ranks of a job send the same table, so a parsed one is kept with its text and found by it.
 * Small ones come in the message: a memfd costs its maker four system calls. Seals are what makes
 * the bytes of a large one safe to map: nobody can change or shorten them under the reader. Any
 * thread may read; the cache has its own lock.
 */
#ifndef HC_TABLES_H
#define HC_TABLES_H

#include <stddef.h>
#include <stdint.h>
#include "roster.h"
#include "wire.h"

#define HC_TABLES_KEPT      64u
#define HC_TABLES_BYTES_MAX (16u << 20)
#define HC_TABLE_INLINE_MAX 65536u /* bytes that may be parsed on the main loop: a millisecond */

struct hc_tables;
struct hc_table; /* a parsed one, counted */

struct hc_tables *hc_tables_new(void); /* NULL: no memory */
void hc_tables_free(struct hc_tables *tables);

/* May `fd` be read as a table? 0 and *size, or HC_E_INVALID or HC_E_LIMIT with one line. */
int hc_tables_check(int fd, uint64_t bytes_max, size_t *size, char *why, size_t why_size);

/* 0 and *table, which the caller lets go; or HC_E_INVALID, HC_E_NOT_READY, HC_E_NO_MEMORY with one
 * line. `origin` is what messages call the file. */
int hc_tables_read(struct hc_tables *tables, int fd, size_t size, struct hc_str origin,
		   struct hc_table **table, char *why, size_t why_size);
/* The same of bytes that came in a message. */
int hc_tables_read_text(struct hc_tables *tables, struct hc_str text, struct hc_str origin,
			struct hc_table **table, char *why, size_t why_size);
const struct hc_roster *hc_table_roster(const struct hc_table *table);
void hc_table_put(struct hc_tables *tables, struct hc_table *table);

#endif
