/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of views for people and for programs.
 *
 * A row is a struct hcomm_view_<name> of the generated header hcomm/views.h. What is printed
 * comes from descriptors that are expanded from views.tbl.h; nothing here knows a view by name.
 * The functions are pure and write into buffers of the caller.
 *
 * A row opens with its size. Fields beyond it are absent (the writer was older): "-" in a
 * table, null in JSON. What a peer or client wrote never reaches a terminal raw: control
 * characters are escaped, and bytes that are not UTF-8 become U+FFFD.
 */
#ifndef HC_PRINT_H
#define HC_PRINT_H

#include "codec.h"

#define HC_SCHEMA_VERSION 1      /* of the JSON documents; +1 when a field goes or changes */
#define HC_CELL_MAX       4096u  /* bytes that hold any cell, with the NUL */
#define HC_JSON_ROW_MAX   32768u /* bytes that hold any row as JSON, with the NUL */

struct hc_print_field {
	const char *name; /* JSON key */
	const char *heading;
	uint32_t offset;
	uint16_t bytes; /* of the field; strings: with the NUL */
	uint8_t type;   /* enum hc_type */
};

struct hc_print_view {
	const char *name;
	const struct hc_print_field *fields;
	uint16_t nfields;
	uint16_t number;
	uint32_t size; /* of struct hcomm_view_<name> */
};

/* The public form of a view, by number or by name, or NULL. */
const struct hc_print_view *hc_view_public(unsigned view);
const struct hc_print_view *hc_view_named(const char *name);

/*
 * Fill the public row `pub` from the decoded row `wire` (struct hc_m_view_<name>). pub's size,
 * set by the caller, says how much of it there is: a shorter struct gets the fields that it
 * has, a longer one zeros at its end. Returns 0, or HC_E_INVALID for an unknown view or a
 * size that is too small to hold itself.
 */
int hc_view_to_public(unsigned view, const void *wire, void *pub);

/* One cell as text. 0, or HC_E_BUFFER_OVERFLOW: cut. Always terminated when size > 0. */
int hc_print_cell(const struct hc_print_field *f, const void *row, char *buf, size_t size);

/* A bounded text that grows. Once something did not fit, `full` stays set. Always terminated. */
struct hc_text {
	char *buf;
	size_t size, len;
	bool full;
};
void hc_text_init(struct hc_text *t, char *buf, size_t size);
void hc_text_add(struct hc_text *t, const char *s);

/* `len` bytes as a JSON string with its quotes. */
void hc_json_string(struct hc_text *t, const char *s, size_t len);

/*
 * A document: {"schema_version":1,"view":"domain","rows":[ rows ]}. Call begin, row for each
 * row (`first` for the first one), end; the caller may flush and init the text between calls.
 */
void hc_json_begin(struct hc_text *t, const struct hc_print_view *v);
void hc_json_row(struct hc_text *t, const struct hc_print_view *v, const void *row, bool first);
void hc_json_end(struct hc_text *t);

#endif
