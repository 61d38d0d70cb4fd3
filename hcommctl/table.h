/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of one view, gathered and then printed in one of three ways: a table, a list of "HEADING
 * value" lines for a single row, or JSON. Commands with one view need only ctl_show (ctl.h).
 *
 * Life: new (columns are checked, before any daemon is asked), query, print, free.
 */
#ifndef HC_CTL_TABLE_H
#define HC_CTL_TABLE_H

#include "ctl.h"
#include "print.h"

struct ctl_rows;

/* NULL: said why, and it is a usage error. `columns` stands unless -o was given. */
struct ctl_rows *ctl_rows_new(const struct ctl *c, uint32_t view, const char *columns);
struct ctl_rows *ctl_rows_free(struct ctl_rows *r);
/* Read the rows anew. An exit status. */
int ctl_rows_query(struct ctl *c, struct ctl_rows *r, const struct hcomm_filter *filter);
size_t ctl_rows_count(const struct ctl_rows *r);
/* The public struct of row i, valid until the next query; NULL beyond the last. */
const void *ctl_rows_at(const struct ctl_rows *r, size_t i);
/* Forget all rows but row i. */
void ctl_rows_only(struct ctl_rows *r, size_t i);

int ctl_rows_print(const struct ctl *c, const struct ctl_rows *r);
int ctl_rows_list(const struct ctl *c, const struct ctl_rows *r);
/* The rows as JSON objects with commas between them, for a document of the caller. */
int ctl_rows_json_items(const struct ctl_rows *r);

/* A cell for people: "-" where there is nothing. */
void ctl_cell(const struct hc_print_field *f, const void *row, char *buf, size_t size);
/* With --watch: wait for the next time and say true. */
bool ctl_watch_again(const struct ctl *c);

#endif
