/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `ranktable` and `topology` share: reading a file named on the command line ("-" is standard
 * input), saying the verdict, and a table of texts for people.
 *
 * A verdict for people is one line: on standard output when the file is accepted, else on standard
 * error, in the FILE:LINE:COLUMN form that editors jump to. With --json each file gives one object
 * on one line of standard output. No daemon is asked.
 */
#ifndef HC_FILECHECK_H
#define HC_FILECHECK_H

#include "ctl.h"
#include "jsonfile.h"

/* Judges a text. 0 accepted; `show`, when not NULL, prints what was read and returns an exit
 * status. */
typedef int file_read_fn(struct ctl *c, const char *file, const struct hc_jsontext *text,
			 struct hc_verdict *v, bool show, int *status);

struct file_noun {
	const char *noun;
	size_t bytes_max;
	file_read_fn *read;
};

/* argv as a noun gets it: checks each FILE, or shows the one. Returns the exit status. */
int ctl_files(struct ctl *c, const struct file_noun *n, int argc, char **argv);

/* A table for people: `ncols` headings, rows of as many texts. -o picks columns by heading. */
struct file_table;
struct file_table *ctl_table_new(const struct ctl *c, const char *const *headings,
				 const bool *right, unsigned ncols);
/* False without memory. */
bool ctl_table_row(struct file_table *t, const char *const *cells);
/* Prints and frees. Returns the exit status. */
int ctl_table_print(struct file_table *t);

/* One object on one line; takes over the reference. NULL is said as "out of memory". */
int ctl_print_json(json_t *value);

#endif
