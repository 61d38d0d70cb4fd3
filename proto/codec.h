/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The codec: what the tables say, both ways, without allocation.
 *
 * A descriptor (expanded from messages.tbl.h and views.tbl.h) lists a message's fields with type,
 * offset and the version that brought them. Decoding checks every length and count against the
 * bytes that remain before anything is stored, walks each array once, and wants the message to
 * end exactly at its last field. So encode(decode(x)) == x for every x that is accepted.
 */
#ifndef HC_CODEC_H
#define HC_CODEC_H

#include "wire.h"

enum hc_type {
	HC_T_u8,
	HC_T_u16,
	HC_T_u32,
	HC_T_u64,
	HC_T_id,
	HC_T_i32,
	HC_T_id16,
	HC_T_name,
	HC_T_text,
	HC_T_blob,
	HC_T_rest,
	HC_T_array,
};

struct hc_desc;

struct hc_field {
	const char *name;
	const char *heading; /* views only */
	const char *what;
	const struct hc_desc *rec; /* HC_T_array: of its records */
	uint32_t offset;
	uint32_t max; /* array: most records */
	uint16_t since;
	uint8_t type; /* enum hc_type */
};

struct hc_dec; /* where decoding and encoding are; see codec.c */
struct hc_enc;

struct hc_desc {
	const char *name;
	const char *what;
	const struct hc_field *fields;
	uint16_t nfields;
	uint16_t number; /* 0 for a record */
	uint32_t size;   /* of struct hc_m_<name> */
	/* The fields in straight code; NULL: they are interpreted, to the same effect. */
	bool (*get)(uint16_t version, struct hc_dec *from, void *msg);
	int (*put)(uint16_t version, struct hc_enc *to, const void *msg);
};

/* Descriptor of a message number, a view number, or NULL when there is none. */
const struct hc_desc *hc_desc_msg(unsigned number);
const struct hc_desc *hc_desc_view(unsigned number);

#define REC(name)               extern const struct hc_desc hc_desc_##name;
#define MSG(number, name, what) extern const struct hc_desc hc_desc_##name;
#define F(of, type, field, since, what)
#define A(of, rec, field, max, since, what)
#define END(of)
#include "messages.tbl.h"
#undef REC
#undef MSG
#undef F
#undef A
#undef END
#define VIEW(number, name, owner, what) extern const struct hc_desc hc_desc_view_##name;
#define V(of, type, field, since, heading, what)
#define ENDV(of)
#include "views.tbl.h"
#undef VIEW
#undef V
#undef ENDV

/*
 * Encode `msg` (struct of `d`) into at most `cap` bytes. Returns 0 and *len, or
 * HC_E_BUFFER_OVERFLOW (does not fit), HC_E_LIMIT (a string or array is over its maximum).
 */
int hc_encode(const struct hc_desc *d, uint16_t version, const void *msg, uint8_t *buf, size_t cap,
	      size_t *len);

/* Decode all of `len` bytes into `msg`. Returns 0 or HC_E_MALFORMED; then *msg is undefined. */
int hc_decode(const struct hc_desc *d, uint16_t version, const uint8_t *buf, size_t len, void *msg);

/* Decode one record from the front of *s and advance *s. Returns 0 or HC_E_MALFORMED. */
int hc_decode_front(const struct hc_desc *d, uint16_t version, struct hc_str *s, void *rec);

/* Read an array: copy it, then call hc_arr_next until it returns false. */
bool hc_arr_next(struct hc_arr *a, const struct hc_desc *rec, uint16_t version, void *out);

/* Make an array in a buffer of the caller's: start with {buf, 0, 0}. 0 or as hc_encode. */
int hc_arr_put(struct hc_arr *a, uint8_t *buf, size_t cap, const struct hc_desc *rec,
	       uint16_t version, const void *in);

#endif
