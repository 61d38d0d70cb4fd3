/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The codec against bytes from outside.
 *
 * Every message of the table is taken through the same treatment, so a message that is added
 * later is tested without a line here; only its golden bytes have to be appended. What must
 * hold: a version has one encoding; a message that is one byte short or long is refused; no
 * count or length is believed; nothing is written beyond the caller's buffer.
 */
#include <check.h>
#include <stdlib.h>
#include "fill.h"

struct golden {
	unsigned number;
	uint16_t version;
	const char *name, *hex;
};

static const struct golden goldens[] = {
#define GOLDEN(number, version, name, hex) {number, version, #name, hex},
#include "golden.tbl.h"
#undef GOLDEN
	{0, 0, NULL, NULL},
};

static _Alignas(16) char msg[FILL_STRUCT_MAX], back[FILL_STRUCT_MAX];
static struct fill_mem mem;
static uint8_t wire[FILL_MESSAGE_MAX * 2], wire2[FILL_MESSAGE_MAX * 2];

/* Each message that there is, one after the other; NULL ends. */
static const struct hc_desc *next_message(unsigned *number)
{
	while (*number < HC_MSG_MAX) {
		const struct hc_desc *d = hc_desc_msg((*number)++);

		if (d)
			return d;
	}
	return NULL;
}

static size_t from_hex(const char *hex, uint8_t *out)
{
	size_t n = 0;
	unsigned byte;

	for (; hex[0] && hex[1]; hex += 2) {
		ck_assert_int_eq(sscanf(hex, "%2x", &byte), 1);
		out[n++] = (uint8_t)byte;
	}
	ck_assert_msg(!*hex, "an odd number of digits");
	return n;
}

static const char *to_hex(const uint8_t *bytes, size_t len)
{
	static char hex[4096];
	size_t i;

	ck_assert_uint_lt(len, sizeof(hex) / 2);
	hex[0] = '\0';
	for (i = 0; i < len; i++)
		snprintf(hex + 2 * i, 3, "%02x", bytes[i]);
	return hex;
}

static size_t encode(const struct hc_desc *d, uint16_t version, const void *m)
{
	size_t len = 0;

	ck_assert_msg(!hc_encode(d, version, m, wire, sizeof(wire), &len), "%s", d->name);
	return len;
}

static bool has_rest(const struct hc_desc *d)
{
	return d->fields[d->nfields - 1].type == HC_T_rest;
}

/* Where field `i` begins on the wire: the length of the message that ends before it. */
static size_t wire_offset(const struct hc_desc *d, unsigned i, const void *m)
{
	struct hc_desc head = *d;
	size_t len = 0;

	head.nfields = (uint16_t)i;
	head.put = NULL;
	ck_assert_int_eq(hc_encode(&head, 1, m, wire2, sizeof(wire2), &len), 0);
	return len;
}

START_TEST(every_message_has_golden_bytes)
{
	const struct hc_desc *d;
	unsigned number = 0, missing = 0;

	while ((d = next_message(&number))) {
		const struct golden *g = goldens;

		while (g->name && g->number != d->number)
			g++;
		if (g->name)
			continue;
		fill_message(d, FILL_GOLDEN, HC_PROTO_MAX, &mem, msg);
		printf("GOLDEN(%u, %d, %s, \"%s\")\n", d->number, HC_PROTO_MAX, d->name,
		       to_hex(wire, encode(d, HC_PROTO_MAX, msg)));
		missing++;
	}
	ck_assert_msg(!missing, "%u messages have no row in golden.tbl.h; the rows are above",
		      missing);
}
END_TEST

START_TEST(golden_bytes_are_what_is_encoded_and_decoded)
{
	const struct golden *g;

	for (g = goldens; g->name; g++) {
		const struct hc_desc *d = hc_desc_msg(g->number);
		const char *differs;
		size_t len, want;

		ck_assert_msg(d && !strcmp(d->name, g->name), "message %u is not %s", g->number,
			      g->name);
		want = from_hex(g->hex, wire2);
		fill_message(d, FILL_GOLDEN, g->version, &mem, msg);
		len = encode(d, g->version, msg);
		ck_assert_msg(len == want && !memcmp(wire, wire2, len),
			      "%s is encoded as\n%s\nnot\n%s", g->name, to_hex(wire, len), g->hex);
		ck_assert_msg(!hc_decode(d, g->version, wire2, want, back), "%s", g->name);
		differs = fill_difference(d, msg, back);
		ck_assert_msg(!differs, "%s.%s", g->name, differs);
	}
}
END_TEST

/* Written down from the table by hand, not by the codec. */
START_TEST(bytes_by_hand)
{
	static const char hello[] = "0001"           /* proto_min */
				    "0002"           /* proto_max */
				    "01"             /* fence */
				    "00000000"       /* flags */
				    "0005302e312e30" /* build 0.1.0 */
				    "00026a31";      /* job j1 */
	static const char sub[] = "00000000000000ff" /* parent */
				  "00000003"         /* epoch */
				  "00000001"         /* parent_rank */
				  "8000000000000001" /* sub_id */
				  "0000"             /* name */
				  "000003e8"         /* timeout_ms */
				  "00000002"         /* two ranks */
				  "00000007"
				  "ffffffff";
	static const char split[] = "0000000000000001"  /* parent */
				    "00000002"          /* epoch */
				    "00000000"          /* parent_rank */
				    "ffffffff"          /* color -1 */
				    "80000000"          /* key */
				    "00000000"          /* timeout_ms */
				    "0000000000000009"; /* number */
	const struct hc_m_hello h = {.proto_min = 1,
				     .proto_max = 2,
				     .fence = 1,
				     .build = hc_str("0.1.0"),
				     .job = hc_str("j1")};
	struct hc_m_sub u = {.parent = 255,
			     .epoch = 3,
			     .parent_rank = 1,
			     .sub_id = 1ull << 63 | 1,
			     .timeout_ms = 1000};
	const struct hc_m_rank ranks[] = {{7}, {HC_NONE}};
	const struct hc_m_split s = {
		.parent = 1, .epoch = 2, .color = -1, .key = -2147483647 - 1, .number = 9};
	uint8_t buf[8];

	ck_assert_str_eq(to_hex(wire, encode(&hc_desc_hello, 1, &h)), hello);
	ck_assert_int_eq(hc_arr_put(&u.ranks, buf, sizeof(buf), &hc_desc_rank, 1, &ranks[0]), 0);
	ck_assert_int_eq(hc_arr_put(&u.ranks, buf, sizeof(buf), &hc_desc_rank, 1, &ranks[1]), 0);
	ck_assert_str_eq(to_hex(wire, encode(&hc_desc_sub, 1, &u)), sub);
	ck_assert_str_eq(to_hex(wire, encode(&hc_desc_split, 1, &s)), split);
}
END_TEST

START_TEST(borders_of_each_type_come_back)
{
	static const enum fill how[] = {FILL_LOW, FILL_HIGH, FILL_GOLDEN};
	const struct hc_desc *d;
	unsigned number = 0, i;
	size_t len;

	while ((d = next_message(&number))) {
		ck_assert_uint_le(d->size, sizeof(msg));
		for (i = 0; i < 3; i++) {
			const char *differs;

			fill_message(d, how[i], 1, &mem, msg);
			len = encode(d, 1, msg);
			memset(back, 0xa5, sizeof(back));
			ck_assert_msg(!hc_decode(d, 1, wire, len, back), "%s", d->name);
			differs = fill_difference(d, msg, back);
			ck_assert_msg(!differs, "%s.%s", d->name, differs);
		}
	}
}
END_TEST

START_TEST(one_byte_less_is_malformed_wherever_it_ends)
{
	const struct hc_desc *d;
	unsigned number = 0;
	size_t len, n;

	while ((d = next_message(&number))) {
		fill_message(d, FILL_GOLDEN, 1, &mem, msg);
		len = encode(d, 1, msg);
		if (has_rest(d)) /* it has no end of its own: only what is before it can be missing
				  */
			len = wire_offset(d, d->nfields - 1u, msg);
		for (n = 0; n < len; n++) {
			/* of its own size, so that an address sanitizer sees each byte read beyond
			 */
			uint8_t *exact = malloc(n ? n : 1);
			int r;

			memcpy(exact, wire, n);
			r = hc_decode(d, 1, exact, n, back);
			free(exact);
			ck_assert_msg(r == HC_E_MALFORMED, "%s: %zu of %zu bytes", d->name, n, len);
		}
	}
}
END_TEST

START_TEST(one_byte_more_is_malformed)
{
	const struct hc_desc *d;
	unsigned number = 0;
	size_t len;

	while ((d = next_message(&number))) {
		if (has_rest(d))
			continue;
		fill_message(d, FILL_GOLDEN, 1, &mem, msg);
		len = encode(d, 1, msg);
		wire[len] = 0;
		ck_assert_msg(hc_decode(d, 1, wire, len + 1, back) == HC_E_MALFORMED, "%s",
			      d->name);
	}
}
END_TEST

/* What is expanded from the table and what interprets it are the same language. */
START_TEST(straight_and_interpreted_agree)
{
	static const enum fill how[] = {FILL_LOW, FILL_HIGH, FILL_GOLDEN};
	static _Alignas(16) char other[FILL_STRUCT_MAX];
	const struct hc_desc *d;
	unsigned number = 0, i;
	struct hc_desc slow;
	size_t len, len2, n;
	int r;

	while ((d = next_message(&number))) {
		ck_assert(d->get && d->put);
		slow = *d;
		slow.get = NULL;
		slow.put = NULL;
		for (i = 0; i < 3; i++) {
			fill_message(d, how[i], 1, &mem, msg);
			len = encode(d, 1, msg);
			ck_assert_int_eq(hc_encode(&slow, 1, msg, wire2, sizeof(wire2), &len2), 0);
			ck_assert_msg(len == len2 && !memcmp(wire, wire2, len), "%s", d->name);
			for (n = 0; n <= len; n += 1 + n / 64) {
				memset(back, 0xa5, sizeof(back));
				memset(other, 0xa5, sizeof(other));
				r = hc_decode(d, 1, wire, n, back);
				ck_assert_int_eq(hc_decode(&slow, 1, wire, n, other), r);
				ck_assert_msg(r || !memcmp(back, other, d->size), "%s", d->name);
				r = hc_encode(d, 1, msg, wire2, n, &len2);
				ck_assert_int_eq(hc_encode(&slow, 1, msg, wire2, n, &len2), r);
			}
		}
	}
}
END_TEST

START_TEST(counts_are_bounded_by_what_is_there)
{
	const struct hc_desc *d;
	unsigned number = 0, i, k, arrays = 0;

	while ((d = next_message(&number))) {
		for (i = 0; i < d->nfields; i++) {
			const struct hc_field *f = &d->fields[i];
			const uint32_t counts[] = {1,          2,          f->max,     f->max + 1,
						   0x40000000, 0x7fffffff, 0x80000000, 0xffffffff};
			size_t at, len;

			if (f->type != HC_T_array)
				continue;
			arrays++;
			fill_message(d, FILL_LOW, 1, &mem, msg);
			at = wire_offset(d, i, msg);
			len = encode(d, 1, msg);
			for (k = 0; k < sizeof(counts) / sizeof(counts[0]); k++) {
				wire[at] = (uint8_t)(counts[k] >> 24);
				wire[at + 1] = (uint8_t)(counts[k] >> 16);
				wire[at + 2] = (uint8_t)(counts[k] >> 8);
				wire[at + 3] = (uint8_t)counts[k];
				ck_assert_msg(hc_decode(d, 1, wire, len, back) == HC_E_MALFORMED,
					      "%s.%s with %u records and no bytes", d->name,
					      f->name, counts[k]);
			}
		}
	}
	ck_assert_uint_ge(arrays, 6);
}
END_TEST

START_TEST(strings_end_at_their_maximum)
{
	static char big[HC_BLOB_MAX + 1];
	const struct hc_desc *d;
	unsigned number = 0, i, strings = 0;

	while ((d = next_message(&number))) {
		for (i = 0; i < d->nfields; i++) {
			const struct hc_field *f = &d->fields[i];
			struct hc_str s = {big, f->max};
			size_t len, at;

			if (!fill_is_string(f) || f->type == HC_T_rest)
				continue;
			strings++;
			fill_message(d, FILL_LOW, 1, &mem, msg);
			at = wire_offset(d, i, msg);
			memcpy(msg + f->offset, &s, sizeof(s));
			len = encode(d, 1, msg);
			ck_assert_int_eq(hc_decode(d, 1, wire, len, back), 0);

			/* one more byte, really there, is refused both ways */
			memmove(wire + at + 3, wire + at + 2, len - at - 2);
			wire[at] = (uint8_t)((f->max + 1) >> 8);
			wire[at + 1] = (uint8_t)(f->max + 1);
			ck_assert_msg(hc_decode(d, 1, wire, len + 1, back) == HC_E_MALFORMED,
				      "%s.%s", d->name, f->name);
			s.len++;
			memcpy(msg + f->offset, &s, sizeof(s));
			ck_assert_msg(hc_encode(d, 1, msg, wire, sizeof(wire), &len) == HC_E_LIMIT,
				      "%s.%s", d->name, f->name);
			/* a length beyond the end of the message */
			fill_message(d, FILL_LOW, 1, &mem, msg);
			len = encode(d, 1, msg);
			wire[at] = (uint8_t)(f->max >> 8);
			wire[at + 1] = (uint8_t)f->max;
			ck_assert_msg(hc_decode(d, 1, wire, len, back) == HC_E_MALFORMED, "%s.%s",
				      d->name, f->name);
		}
	}
	ck_assert_uint_ge(strings, 30);
}
END_TEST

START_TEST(arrays_end_at_their_maximum)
{
	const struct hc_field *f = &hc_desc_split_r.fields[1];
	struct hc_m_split_r m = {.sub_id = 1}, got;
	size_t len = 0;

	ck_assert_uint_eq(f->type, HC_T_array);
	ck_assert_int_eq(fill_array(f, FILL_GOLDEN, f->max, 1, &mem, &m.ranks), 0);
	len = encode(&hc_desc_split_r, 1, &m);
	ck_assert_int_eq(hc_decode(&hc_desc_split_r, 1, wire, len, &got), 0);
	ck_assert_uint_eq(got.ranks.count, f->max);

	mem.used = 0;
	ck_assert_int_eq(fill_array(f, FILL_GOLDEN, f->max + 1, 1, &mem, &m.ranks), 0);
	ck_assert_int_eq(hc_encode(&hc_desc_split_r, 1, &m, wire, sizeof(wire), &len), HC_E_LIMIT);
	/* the same on the wire: 8 bytes sub_id, the count, and a record more than is allowed */
	memset(wire, 0, 12 + 4 * ((size_t)f->max + 1));
	wire[10] = (uint8_t)((f->max + 1) >> 8);
	wire[11] = (uint8_t)(f->max + 1);
	ck_assert_int_eq(hc_decode(&hc_desc_split_r, 1, wire, 12 + 4 * ((size_t)f->max + 1), &got),
			 HC_E_MALFORMED);
}
END_TEST

START_TEST(a_buffer_that_is_too_small_is_not_overrun)
{
	const struct hc_desc *d;
	unsigned number = 0;
	size_t len, n, out;

	while ((d = next_message(&number))) {
		fill_message(d, FILL_GOLDEN, 1, &mem, msg);
		len = encode(d, 1, msg);
		for (n = 0; n <= len; n++) {
			int r;

			memset(wire2, 0x5a, len + 1);
			r = hc_encode(d, 1, msg, wire2, n, &out);
			ck_assert_msg(r == (n < len ? HC_E_BUFFER_OVERFLOW : 0), "%s: %zu of %zu",
				      d->name, n, len);
			ck_assert_msg(wire2[n] == 0x5a, "%s: wrote beyond %zu bytes", d->name, n);
		}
		ck_assert_uint_eq(out, len);
	}
}
END_TEST

START_TEST(numbers_that_are_no_message_have_no_descriptor)
{
	static const unsigned none[] = {0, 7, 9, 99, 199, 239, 243, 250, 65535, 0xffffffff};
	const struct hc_desc *d;
	unsigned number = 0, i;

	for (i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		ck_assert_ptr_null(hc_desc_msg(none[i]));
		ck_assert_ptr_null(hc_desc_view(none[i] < 99 && none[i] ? 1000 : none[i]));
	}
	while ((d = next_message(&number)))
		ck_assert_uint_eq(d->number, number - 1);
	for (i = 1; (d = hc_desc_view(i)); i++)
		ck_assert_uint_eq(d->number, i);
	ck_assert_uint_gt(i, 7);
}
END_TEST

/* A field of version 2 takes no bytes in version 1, and reads as zero there. */
START_TEST(a_version_has_one_encoding)
{
	struct grown {
		uint32_t old, fresh;
		struct hc_str words;
	} m = {0x01020304, 0x05060708, {"abc", 3}}, got;
	const struct hc_field fields[] = {
		{"old", NULL, "", NULL, offsetof(struct grown, old), 0, 1, HC_T_u32},
		{"fresh", NULL, "", NULL, offsetof(struct grown, fresh), 0, 2, HC_T_u32},
		{"words", NULL, "", NULL, offsetof(struct grown, words), HC_NAME_MAX, 2, HC_T_name},
	};
	const struct hc_desc d = {"grown", "", fields, 3, 150, sizeof(m), NULL, NULL};

	ck_assert_str_eq(to_hex(wire, encode(&d, 1, &m)), "01020304");
	memset(&got, 0xff, sizeof(got));
	ck_assert_int_eq(hc_decode(&d, 1, wire, 4, &got), 0);
	ck_assert_uint_eq(got.old, m.old);
	ck_assert_uint_eq(got.fresh, 0);
	ck_assert_uint_eq(got.words.len, 0);
	ck_assert_int_eq(hc_decode(&d, 2, wire, 4, &got), HC_E_MALFORMED);

	ck_assert_str_eq(to_hex(wire, encode(&d, 2, &m)), "01020304050607080003616263");
	ck_assert_int_eq(hc_decode(&d, 2, wire, 13, &got), 0);
	ck_assert_uint_eq(got.fresh, m.fresh);
	ck_assert_int_eq(hc_decode(&d, 1, wire, 13, &got), HC_E_MALFORMED);
}
END_TEST

/* As a page of a view goes: rows behind each other in the rest of query_r. */
START_TEST(rows_are_read_one_behind_the_other)
{
	const struct hc_desc *d = hc_desc_view(HC_VIEW_domain);
	struct hc_m_view_domain row = {.name = hc_str("a"), .state = hc_str("ACTIVE")};
	struct hc_m_query_r q = {.view = HC_VIEW_domain, .nrows = 3}, got;
	uint8_t rows[1024];
	size_t len, used = 0, whole;
	unsigned i;

	for (i = 0; i < 3; i++) {
		row.id = i + 1;
		ck_assert_int_eq(hc_encode(d, 1, &row, rows + used, sizeof(rows) - used, &len), 0);
		used += len;
	}
	q.rows.p = (const char *)rows;
	q.rows.len = (uint32_t)used;
	whole = encode(&hc_desc_query_r, 1, &q);
	ck_assert_int_eq(hc_decode(&hc_desc_query_r, 1, wire, whole, &got), 0);
	ck_assert_uint_eq(got.rows.len, used);
	for (i = 0; i < 3; i++) {
		ck_assert_int_eq(hc_decode_front(d, 1, &got.rows, &row), 0);
		ck_assert_uint_eq(row.id, i + 1);
		ck_assert(hc_str_eq(row.state, hc_str("ACTIVE")));
	}
	ck_assert_uint_eq(got.rows.len, 0);
	ck_assert_int_eq(hc_decode_front(d, 1, &got.rows, &row), HC_E_MALFORMED);
}
END_TEST

START_TEST(array_records_come_back_in_order)
{
	const struct hc_m_absent in[] = {{3, hc_str("server-a"), hc_str("10.0.0.1")},
					 {5, hc_str(""), hc_str("")}};
	struct hc_m_status_r m = {.id = 1}, got;
	struct hc_m_absent out;
	uint8_t buf[64];
	size_t len;

	ck_assert_int_eq(hc_arr_put(&m.absent, buf, sizeof(buf), &hc_desc_absent, 1, &in[0]), 0);
	ck_assert_int_eq(hc_arr_put(&m.absent, buf, sizeof(buf), &hc_desc_absent, 1, &in[1]), 0);
	ck_assert_uint_eq(m.absent.count, 2);
	/* what does not fit changes nothing */
	ck_assert_int_eq(hc_arr_put(&m.absent, buf, m.absent.len + 7, &hc_desc_absent, 1, &in[1]),
			 HC_E_BUFFER_OVERFLOW);
	ck_assert_uint_eq(m.absent.count, 2);

	len = encode(&hc_desc_status_r, 1, &m);
	ck_assert_int_eq(hc_decode(&hc_desc_status_r, 1, wire, len, &got), 0);
	ck_assert(hc_arr_next(&got.absent, &hc_desc_absent, 1, &out));
	ck_assert_uint_eq(out.rank, 3);
	ck_assert(hc_str_eq(out.address, hc_str("10.0.0.1")));
	ck_assert(hc_arr_next(&got.absent, &hc_desc_absent, 1, &out));
	ck_assert_uint_eq(out.rank, 5);
	ck_assert(!hc_arr_next(&got.absent, &hc_desc_absent, 1, &out));
}
END_TEST

/* A record whose string is longer than its maximum is found when the message is decoded. */
START_TEST(records_are_checked_with_the_message)
{
	struct hc_m_status_r m = {.id = 1}, got;
	uint8_t rec[4 + 2 + 128 + 2] = {0};
	size_t len;

	rec[5] = 128;
	m.absent = (struct hc_arr){rec, sizeof(rec), 1};
	len = encode(&hc_desc_status_r, 1, &m);
	ck_assert_int_eq(hc_decode(&hc_desc_status_r, 1, wire, len, &got), HC_E_MALFORMED);
}
END_TEST

/* Fields behind an array are read only where the array has left bytes for them. */
START_TEST(an_array_in_the_middle_ends_where_its_records_end)
{
	struct middle {
		struct hc_arr ranks;
		uint32_t after;
	} got;
	const struct hc_field fields[] = {
		{"ranks", NULL, "", &hc_desc_rank, offsetof(struct middle, ranks), 8, 1,
		 HC_T_array},
		{"after", NULL, "", NULL, offsetof(struct middle, after), 0, 1, HC_T_u32},
	};
	const struct hc_desc d = {"middle", "", fields, 2, 150, sizeof(got), NULL, NULL};
	uint8_t *bytes = calloc(1, 16); /* count 0, and 12 bytes */
	uint8_t count;

	bytes[15] = 9;
	for (count = 0; count < 16; count++) {
		bytes[3] = count;
		ck_assert_int_eq(hc_decode(&d, 1, bytes, 16, &got),
				 count == 2 ? 0 : HC_E_MALFORMED);
		if (count == 2)
			ck_assert_uint_eq(got.after, 9);
	}
	free(bytes);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("codec");
	TCase *t = tcase_create("codec");
	SRunner *r;
	int failed;

	tcase_add_test(t, every_message_has_golden_bytes);
	tcase_add_test(t, golden_bytes_are_what_is_encoded_and_decoded);
	tcase_add_test(t, bytes_by_hand);
	tcase_add_test(t, borders_of_each_type_come_back);
	tcase_add_test(t, one_byte_less_is_malformed_wherever_it_ends);
	tcase_add_test(t, one_byte_more_is_malformed);
	tcase_add_test(t, straight_and_interpreted_agree);
	tcase_add_test(t, counts_are_bounded_by_what_is_there);
	tcase_add_test(t, strings_end_at_their_maximum);
	tcase_add_test(t, arrays_end_at_their_maximum);
	tcase_add_test(t, a_buffer_that_is_too_small_is_not_overrun);
	tcase_add_test(t, numbers_that_are_no_message_have_no_descriptor);
	tcase_add_test(t, a_version_has_one_encoding);
	tcase_add_test(t, rows_are_read_one_behind_the_other);
	tcase_add_test(t, array_records_come_back_in_order);
	tcase_add_test(t, records_are_checked_with_the_message);
	tcase_add_test(t, an_array_in_the_middle_ends_where_its_records_end);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
