/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Words: the rows of errors.tbl.h and words.tbl.h at run time, and strings with a length.
 *
 * A number that is not in its set may come from a newer peer; it is shown as "?" and never
 * refused here.
 */
#include <string.h>
#include "wire.h"

#define STR_BYTES_MAX    65536u
#define WORDS_IN_SET_MAX 64

const struct hc_error_row hc_error_rows[] = {
#define ERR(number, name, hccl, nccl, text, explain) {number, #name, hccl, nccl, text, explain},
#include "errors.tbl.h"
#undef ERR
	{0, NULL, 0, 0, NULL, NULL},
};

const struct hc_error_row *hc_error_row(int outcome)
{
	const unsigned count = sizeof(hc_error_rows) / sizeof(hc_error_rows[0]) - 1;
	unsigned n = outcome < 0 ? 0u - (unsigned)outcome : (unsigned)outcome;

	if (!n || n > count)
		return NULL;
	return &hc_error_rows[n - 1]; /* rows are dense and in order; test_words sees to it */
}

enum word_set {
	SET_domain_state,
	SET_member_state,
	SET_role,
	SET_depart,
	SET_event_code,
	SET_op_kind,
	SET_link_type,
	SET_channel_state,
	SET_node_state,
	SET_path_state,
	SET_path_cause,
	SET_refusal,
	SET_conn_end,
	SET_port_kind,
	SET_port_verdict,
	WORD_SETS
};

static const char *const words[WORD_SETS][WORDS_IN_SET_MAX] = {
#define W(set, number, name, text) [SET_##set][number] = text,
#include "words.tbl.h"
#undef W
};

static const char *word(enum word_set set, unsigned number)
{
	const char *text = number < WORDS_IN_SET_MAX ? words[set][number] : NULL;

	return text ? text : "?";
}

const char *hc_word_domain_state(unsigned number)
{
	return word(SET_domain_state, number);
}

const char *hc_word_member_state(unsigned number)
{
	return word(SET_member_state, number);
}

const char *hc_word_role(unsigned number)
{
	return word(SET_role, number);
}

const char *hc_word_depart(unsigned number)
{
	return word(SET_depart, number);
}

const char *hc_word_event_code(unsigned number)
{
	return word(SET_event_code, number);
}

const char *hc_word_op_kind(unsigned number)
{
	return word(SET_op_kind, number);
}

struct hc_str hc_str(const char *s)
{
	struct hc_str out = {s, 0};

	if (s)
		out.len = (uint32_t)strnlen(s, STR_BYTES_MAX);
	return out;
}

char *hc_str_copy(struct hc_str s, char *out, size_t size)
{
	size_t n = s.len;

	if (!size)
		return out;
	if (n > size - 1)
		n = size - 1;
	if (n)
		memcpy(out, s.p, n);
	out[n] = '\0';
	return out;
}

bool hc_str_eq(struct hc_str a, struct hc_str b)
{
	return a.len == b.len && (!a.len || !memcmp(a.p, b.p, a.len));
}

const char *hc_word_link_type(unsigned number)
{
	return word(SET_link_type, number);
}

const char *hc_word_channel_state(unsigned number)
{
	return word(SET_channel_state, number);
}

const char *hc_word_node_state(unsigned number)
{
	return word(SET_node_state, number);
}

const char *hc_word_path_state(unsigned number)
{
	return word(SET_path_state, number);
}

const char *hc_word_path_cause(unsigned number)
{
	return word(SET_path_cause, number);
}

const char *hc_word_refusal(unsigned number)
{
	return word(SET_refusal, number);
}

const char *hc_word_conn_end(unsigned number)
{
	return word(SET_conn_end, number);
}

const char *hc_word_port_kind(unsigned number)
{
	return word(SET_port_kind, number);
}

const char *hc_word_port_verdict(unsigned number)
{
	return word(SET_port_verdict, number);
}
