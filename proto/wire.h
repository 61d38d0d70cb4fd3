/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The words of the protocol: message structs, numbers, outcomes; all expanded from the tables.
 *
 * struct hc_m_<name> is a decoded message or record. Strings and arrays in it point into the
 * packet that was decoded (or at the caller's bytes, before encoding): they live as long as it.
 * An array is kept encoded; read it with hc_arr_next, make it with hc_arr_put (codec.h).
 */
#ifndef HC_WIRE_H
#define HC_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HC_PROTO_MIN 1 /* oldest protocol version spoken */
#define HC_PROTO_MAX 1 /* newest one */

#define HC_PACKET_MAX 65536u /* bytes of one packet on the client socket */
#define HC_NAME_MAX   127u
#define HC_TEXT_MAX   1023u
#define HC_BLOB_MAX   4352u
#define HC_NONE       0xffffffffu /* "no rank", "any device", "retry-after unknown" */

/* Outcomes. Inside they are positive; 0 is success. At the library's edge HCOMM_E_x = -HC_E_x. */
enum hc_outcome {
	HC_OK = 0,
#define ERR(number, name, hccl, nccl, text, explain) HC_E_##name = number,
#include "errors.tbl.h"
#undef ERR
};

struct hc_error_row {
	int number;
	const char *name; /* "TIMEOUT" */
	int hccl, nccl;
	const char *text, *explain;
};
/* All rows, terminated by number 0. */
extern const struct hc_error_row hc_error_rows[];
/* The row of an outcome given with either sign, or NULL. */
const struct hc_error_row *hc_error_row(int outcome);

#define W(set, number, name, text) HC_W_##set##_##name = number,
enum hc_words {
#include "words.tbl.h"
};
#undef W

/* Text of a number in one of the sets of words.tbl.h; "?" when it is unknown. */
const char *hc_word_domain_state(unsigned number);
const char *hc_word_member_state(unsigned number);
const char *hc_word_role(unsigned number);
const char *hc_word_depart(unsigned number);
const char *hc_word_event_code(unsigned number);
const char *hc_word_op_kind(unsigned number);
const char *hc_word_link_type(unsigned number);
const char *hc_word_channel_state(unsigned number);
const char *hc_word_node_state(unsigned number);
const char *hc_word_path_state(unsigned number);
const char *hc_word_path_cause(unsigned number);
const char *hc_word_refusal(unsigned number);
const char *hc_word_conn_end(unsigned number);
const char *hc_word_port_kind(unsigned number);
const char *hc_word_port_verdict(unsigned number);

struct hc_str {
	const char *p; /* not terminated */
	uint32_t len;
};

struct hc_arr {
	const uint8_t *bytes; /* the records, encoded */
	uint32_t len;         /* of bytes */
	uint32_t count;       /* records */
};

typedef uint8_t hc_ct_u8;
typedef uint16_t hc_ct_u16;
typedef uint32_t hc_ct_u32;
typedef uint64_t hc_ct_u64;
typedef uint64_t hc_ct_id;
typedef int32_t hc_ct_i32;
typedef struct {
	uint8_t b[16];
} hc_ct_id16;
typedef struct hc_str hc_ct_name;
typedef struct hc_str hc_ct_text;
typedef struct hc_str hc_ct_blob;
typedef struct hc_str hc_ct_rest;

/* clang-format off */
#define REC(name)			struct hc_m_##name {
#define MSG(number, name, what)		struct hc_m_##name {
#define F(of, type, field, since, what) hc_ct_##type field;
#define A(of, rec, field, max, since, what) struct hc_arr field;
#define END(of)				};
#include "messages.tbl.h"
#undef REC
#undef MSG
#undef F
#undef A
#undef END

#define VIEW(number, name, owner, what)		struct hc_m_view_##name {
#define V(of, type, field, since, heading, what) hc_ct_##type field;
#define ENDV(of)				};
#include "views.tbl.h"
#undef VIEW
#undef V
#undef ENDV
/* clang-format on */

enum hc_msg_number {
#define REC(name)
#define MSG(number, name, what) HC_MSG_##name = number,
#define F(of, type, field, since, what)
#define A(of, rec, field, max, since, what)
#define END(of)
#include "messages.tbl.h"
#undef REC
#undef MSG
#undef F
#undef A
#undef END
	HC_MSG_MAX = 250
};

enum hc_view_number {
#define VIEW(number, name, owner, what) HC_VIEW_##name = number,
#define V(of, type, field, since, heading, what)
#define ENDV(of)
#include "views.tbl.h"
#undef VIEW
#undef V
#undef ENDV
};

/* hc_str of a C string, cut at 64 KiB. NULL gives the empty one. */
struct hc_str hc_str(const char *s);
/* Copy into a C string of `size` bytes, cut if need be. Returns `out`. */
char *hc_str_copy(struct hc_str s, char *out, size_t size);
bool hc_str_eq(struct hc_str a, struct hc_str b);

#endif
