/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Typed access to the fields of a parsed file, with the fault written when one is not as wanted.
 *
 * A reader walks the tree with a `struct hc_at`: the steps it took from the top, and the names
 * (server, device, rank, edge) that a person knows the place by. Nothing is formatted on the
 * way; path, position and message are made only when something is wrong.
 *
 * Numbers are strings in rank tables 1.x and integers in 2.0 and topology files; `text_numbers`
 * says which, and the one getter reads both, strictly: digits only, no sign, no leading zero.
 */
#ifndef HC_FIELD_H
#define HC_FIELD_H

#include "jsonfile.h"

struct hc_step {
	const char *key;
	uint32_t index;
};

struct hc_at {
	uint32_t depth;
	struct hc_step step[4];
	const char *noun;   /* calls step[0] by its number, like "edge 3"; or NULL */
	const char *server; /* those of these that are known; or NULL */
	const json_t *device, *rank;
};

struct hc_doc {
	const struct hc_jsontext *text;
	json_t *root;
	struct hc_verdict *v;
	bool text_numbers;
};

enum {
	HC_F_REQUIRED = 1, /* absent is a missing-field */
	HC_F_PORT = 2,     /* faults are bad-port */
	HC_F_FILLED = 4,   /* "" is not a value: an empty list or name is refused */
};

struct hc_at hc_at_in(const struct hc_at *at, const char *key, size_t index);

/* Writes the verdict: the fault of `field` (or, with NULL, of the place itself). Always
 * HC_FILE_REFUSED. The message is "<place by name>: <fmt>". */
int hc_doc_fail(const struct hc_doc *d, const struct hc_at *at, const char *field,
		enum hc_verdict_kind kind, const char *found, const char *wanted, const char *fmt,
		...) __attribute__((format(printf, 7, 8)));
void hc_doc_warn(const struct hc_doc *d, const struct hc_at *at, const char *field,
		 enum hc_verdict_kind kind, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));
/* "server node_b, device 1, rank 3" */
const char *hc_at_label(const struct hc_at *at, char *buf, size_t size);
/* How a person would call this value: 'the text "x"', 'the number 5', 'an object'. */
const char *hc_value_text(const json_t *value, struct hc_clip *c);

/* Each: 0 (an absent optional field leaves NULL, or `*out` as it was) or HC_FILE_REFUSED. */
int hc_get_text(const struct hc_doc *d, const struct hc_at *at, const json_t *obj, const char *name,
		unsigned flags, size_t len_max, const char **out);
int hc_get_list(const struct hc_doc *d, const struct hc_at *at, const json_t *obj, const char *name,
		unsigned flags, size_t len_max, const json_t **out);
int hc_get_number(const struct hc_doc *d, const struct hc_at *at, const json_t *obj,
		  const char *name, unsigned flags, uint32_t min, uint32_t max, uint32_t *out);
/* The place itself must be an object. */
int hc_want_object(const struct hc_doc *d, const struct hc_at *at, const json_t *value);
/* One of a NULL-ended list of words; `*out` is its index. `wanted` lists them for people. */
int hc_get_word(const struct hc_doc *d, const struct hc_at *at, const json_t *obj, const char *name,
		unsigned flags, const char *const *words, const char *wanted, unsigned *out);
/* A list of 1..len_max port names, each "die/port" or "d2h", of at most 32 bytes. */
int hc_get_ports(const struct hc_doc *d, const struct hc_at *at, const json_t *obj,
		 const char *name, size_t len_max, const json_t **out);

struct hc_port_name {
	uint16_t die, port;
	bool d2h; /* the way to the host; no die and port then */
};
bool hc_port_parse(const char *text, struct hc_port_name *out);
/* Digits only, no leading zero, at most `max`. -1: no number; 1: above max. */
int hc_number_parse(const char *text, uint32_t max, uint32_t *out);

#endif
