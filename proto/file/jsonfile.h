/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text of a JSON file, and its strict parsing.
 *
 * A text comes from a path, from a descriptor (stdin, a memfd a client passed) or from memory.
 * The limit is tested before anything is read. A path is opened once and read to its end through
 * that descriptor, so a file that is replaced by rename meanwhile is seen wholly old or wholly
 * new. Absent, forbidden, and not a file are told apart, each with the system's own words.
 *
 * Parsing is strict JSON: no comments, no trailing commas, nothing after the end, no key twice,
 * no NUL in a text, valid UTF-8. A fault gives the place where the offending token begins.
 */
#ifndef HC_JSONFILE_H
#define HC_JSONFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <jansson.h>
#include "verdict.h"

struct hc_jsontext {
	const char *data;
	size_t len;
	char *owned; /* what fini frees; NULL when the text is borrowed */
};

/* Outcomes of all: 0, HC_FILE_REFUSED, a negative errno; the verdict says what and where. */
int hc_jsontext_load(const char *path, size_t bytes_max, struct hc_jsontext *t,
		     struct hc_verdict *v);
/* Reads `fd` from where it stands; does not close it. */
int hc_jsontext_load_fd(int fd, size_t bytes_max, struct hc_jsontext *t, struct hc_verdict *v);
/* Borrows `data`, which must outlive `t`. */
int hc_jsontext_set(const void *data, size_t len, size_t bytes_max, struct hc_jsontext *t,
		    struct hc_verdict *v);
int hc_jsontext_parse(const struct hc_jsontext *t, json_t **root, struct hc_verdict *v);
void hc_jsontext_fini(struct hc_jsontext *t);

/* Memory from the allocator that the JSON library uses, so that a test can fail each request. */
void *hc_file_alloc(size_t bytes);
void hc_file_free(void *p);
/* Makes room for `need` elements of `size` bytes. 0 or -ENOMEM. */
int hc_file_grow(void **array, size_t *cap, size_t need, size_t size);

#endif
