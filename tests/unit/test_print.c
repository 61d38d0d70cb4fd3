/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of views as text and JSON, above all with strings that someone chose to be nasty.
 *
 * jansson reads every document back, so what is called JSON here is what another parser takes.
 */
#include <check.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include "hcomm/views.h"
#include "print.h"

static char big[65536];

static const char *json_of(const char *s, size_t len)
{
	struct hc_text t;

	hc_text_init(&t, big, sizeof(big));
	hc_json_string(&t, s, len);
	ck_assert(!t.full);
	return big;
}

/* A row of any view with the same string in all its strings. */
static void fill_row(const struct hc_print_view *v, char *row, const char *s)
{
	unsigned i;

	memset(row, 0, v->size);
	memcpy(row, &v->size, sizeof(v->size));
	for (i = 0; i < v->nfields; i++) {
		const struct hc_print_field *f = &v->fields[i];

		if (f->type == HC_T_name || f->type == HC_T_text) {
			strncpy(row + f->offset, s, f->bytes - 1u);
			row[f->offset + f->bytes - 1u] = '\0';
		} else {
			memset(row + f->offset, 0xff, f->bytes);
		}
	}
}

START_TEST(json_strings_are_escaped)
{
#define J(s) json_of(s, sizeof(s) - 1)
	ck_assert_str_eq(J(""), "\"\"");
	ck_assert_str_eq(J("a\"b\\c/d"), "\"a\\\"b\\\\c/d\"");
	ck_assert_str_eq(J("\0\n\t\x1b\x7f"), "\"\\u0000\\u000a\\u0009\\u001b\\u007f\"");
	ck_assert_str_eq(J("\xc2\x9b"), "\"\\u009b\"");
	ck_assert_str_eq(J("\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"),
			 "\"\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80\"");
}
END_TEST

START_TEST(bytes_that_are_no_utf8_are_replaced)
{
#define R "\xef\xbf\xbd"
	ck_assert_str_eq(J("a\xff"
			   "b"),
			 "\"a" R "b\"");
	ck_assert_str_eq(J("\xc0\xaf"), "\"" R R "\"");       /* overlong / */
	ck_assert_str_eq(J("\xe0\x80\xaf"), "\"" R R R "\""); /* overlong / */
	ck_assert_str_eq(J("\xf0\x80\x80\xaf"), "\"" R R R R "\"");
	ck_assert_str_eq(J("\xed\xa0\x80"), "\"" R R R "\"");       /* a surrogate */
	ck_assert_str_eq(J("\xf4\x90\x80\x80"), "\"" R R R R "\""); /* over U+10FFFF */
	ck_assert_str_eq(J("\xf5\x80\x80\x80"), "\"" R R R R "\"");
	ck_assert_str_eq(J("\xe2\x82"), "\"" R R "\""); /* cut off */
	ck_assert_str_eq(J("\x80"), "\"" R "\"");
	ck_assert_str_eq(J("\xe2(\xa1"), "\"" R "(" R "\"");
}
END_TEST

START_TEST(every_two_bytes_make_valid_json)
{
	unsigned a, b;

	for (a = 0; a < 256; a++) {
		for (b = 0; b < 256; b++) {
			const char s[] = {(char)a, (char)b, 'x'};
			json_error_t e;
			json_t *j = json_loads(json_of(s, 3), JSON_DECODE_ANY | JSON_ALLOW_NUL, &e);

			ck_assert_msg(j != NULL, "%02x %02x: %s: %s", a, b, big, e.text);
			json_decref(j);
		}
	}
}
END_TEST

START_TEST(every_view_has_a_public_form)
{
	unsigned number, i;

	for (number = 1; hc_desc_view(number); number++) {
		const struct hc_print_view *v = hc_view_public(number);
		const struct hc_desc *d = hc_desc_view(number);

		ck_assert_ptr_nonnull(v);
		ck_assert_uint_eq(v->number, number);
		ck_assert_str_eq(v->name, d->name);
		ck_assert_ptr_eq(hc_view_named(d->name), v);
		ck_assert_uint_eq(v->nfields, d->nfields);
		for (i = 0; i < v->nfields; i++) {
			ck_assert_str_eq(v->fields[i].name, d->fields[i].name);
			ck_assert_uint_eq(v->fields[i].type, d->fields[i].type);
			ck_assert_uint_le(v->fields[i].offset + v->fields[i].bytes, v->size);
			ck_assert_uint_ge(v->fields[i].offset, i ? v->fields[i - 1].offset + 1 : 4);
		}
	}
	ck_assert_uint_gt(number, 7);
	ck_assert_ptr_null(hc_view_public(0));
	ck_assert_ptr_null(hc_view_public(number));
	ck_assert_ptr_null(hc_view_public(0xffffffff));
	ck_assert_ptr_null(hc_view_named("domains"));
}
END_TEST

START_TEST(a_row_is_converted_and_printed)
{
	const struct hc_m_view_domain wire = {.id = 0xabc,
					      .name = hc_str("job"),
					      .epoch = 4000000000,
					      .priority = 7,
					      .age_ms = UINT64_MAX,
					      .cause = hc_str("a \"b\"")};
	const struct hc_print_view *v = hc_view_named("domain");
	struct hcomm_view_domain row = HCOMM_INIT(struct hcomm_view_domain);
	const struct {
		const char *name, *text;
	} want[] = {{"id", "0000000000000abc"}, {"name", "job"},   {"state", ""},
		    {"epoch", "4000000000"},    {"priority", "7"}, {"age_ms", "-"},
		    {"cause", "a \"b\""}};
	char cell[HC_CELL_MAX];
	unsigned i, k, seen = 0;

	ck_assert_int_eq(hc_view_to_public(HCOMM_VIEW_DOMAIN, &wire, &row), 0);
	ck_assert_uint_eq(row.size, sizeof(row));
	ck_assert_uint_eq(row.id, 0xabc);
	ck_assert_str_eq(row.name, "job");
	ck_assert_uint_eq(row.priority, 7);
	for (i = 0; i < v->nfields; i++) {
		ck_assert_int_eq(hc_print_cell(&v->fields[i], &row, cell, sizeof(cell)), 0);
		for (k = 0; k < sizeof(want) / sizeof(want[0]); k++) {
			if (strcmp(want[k].name, v->fields[i].name) != 0)
				continue;
			ck_assert_str_eq(cell, want[k].text);
			seen++;
		}
	}
	ck_assert_uint_eq(seen, 7);
}
END_TEST

START_TEST(signed_numbers_keep_their_sign)
{
	const struct hc_m_view_event wire = {.rank = -1, .pid = 0xffffffff};
	struct hcomm_view_event row = HCOMM_INIT(struct hcomm_view_event);
	const struct hc_print_view *v = hc_view_named("event");
	struct hc_text t;

	ck_assert_int_eq(hc_view_to_public(HCOMM_VIEW_EVENT, &wire, &row), 0);
	hc_text_init(&t, big, sizeof(big));
	hc_json_row(&t, v, &row, true);
	ck_assert_ptr_nonnull(strstr(big, "\"rank\":-1,"));
	ck_assert_ptr_nonnull(strstr(big, "\"pid\":null,"));
	ck_assert_ptr_nonnull(strstr(big, "\"domain\":\"0000000000000000\","));
}
END_TEST

/* A caller that was built against a shorter struct gets what it has room for, and no more. */
START_TEST(an_older_caller_is_honoured)
{
	const struct hc_m_view_domain wire = {.id = 5, .name = hc_str("job"), .epoch = 9};
	const struct hc_print_view *v = hc_view_named("domain");
	struct hcomm_view_domain row;
	struct hc_text t;

	memset(&row, 0x5a, sizeof(row));
	row.size = offsetof(struct hcomm_view_domain, epoch);
	ck_assert_int_eq(hc_view_to_public(HCOMM_VIEW_DOMAIN, &wire, &row), 0);
	ck_assert_str_eq(row.name, "job");
	ck_assert_uint_eq(row.epoch, 0x5a5a5a5a);
	/* a field that is there by half is absent */
	row.size = offsetof(struct hcomm_view_domain, epoch) + 3;
	ck_assert_int_eq(hc_view_to_public(HCOMM_VIEW_DOMAIN, &wire, &row), 0);
	ck_assert_uint_ne(row.epoch, 9);
	hc_text_init(&t, big, sizeof(big));
	hc_json_row(&t, v, &row, true);
	ck_assert_ptr_nonnull(strstr(big, "\"epoch\":null"));
	ck_assert_int_eq(hc_print_cell(&v->fields[3], &row, big, sizeof(big)), 0);
	ck_assert_str_eq(big, "-");

	row.size = 3;
	ck_assert_int_eq(hc_view_to_public(HCOMM_VIEW_DOMAIN, &wire, &row), HC_E_INVALID);
	row.size = sizeof(row);
	ck_assert_int_eq(hc_view_to_public(0, &wire, &row), HC_E_INVALID);
}
END_TEST

START_TEST(the_longest_strings_fit_and_longer_ones_are_cut)
{
	static char s[HC_TEXT_MAX + 10];
	struct hc_m_view_event wire = {0};
	struct hcomm_view_event row = HCOMM_INIT(struct hcomm_view_event);

	memset(s, 'x', sizeof(s) - 1);
	wire.text = (struct hc_str){s, HC_TEXT_MAX};
	wire.code = (struct hc_str){s, HC_NAME_MAX};
	ck_assert_int_eq(hc_view_to_public(HCOMM_VIEW_EVENT, &wire, &row), 0);
	ck_assert_uint_eq(strlen(row.text), HC_TEXT_MAX);
	ck_assert_uint_eq(strlen(row.code), HC_NAME_MAX);
	wire.text.len = HC_TEXT_MAX + 5;
	ck_assert_int_eq(hc_view_to_public(HCOMM_VIEW_EVENT, &wire, &row), 0);
	ck_assert_uint_eq(strlen(row.text), HC_TEXT_MAX);
}
END_TEST

START_TEST(cells_do_not_move_the_cursor)
{
	const struct hc_print_view *v = hc_view_named("event");
	struct hcomm_view_event row = HCOMM_INIT(struct hcomm_view_event);
	char cell[HC_CELL_MAX];

	strcpy(row.text, "a\x1b[2J\nb\xff\xc2\x9b"
			 "c");
	ck_assert_int_eq(hc_print_cell(&v->fields[v->nfields - 1u], &row, cell, sizeof(cell)), 0);
	ck_assert_str_eq(cell, "a\\x1b[2J\\x0ab" R "\\x9bc");
}
END_TEST

START_TEST(documents_are_json_for_each_view)
{
	static const char *const nasty[] = {"", "plain", "\x01\x02\"\\", "\xff\xfe\xc2\x9b", NULL};
	static char worst[HC_TEXT_MAX + 1], row[16384];
	unsigned number, i, k;

	memset(worst, 1, HC_TEXT_MAX); /* 6 bytes each in JSON */
	for (number = 1; hc_view_public(number); number++) {
		const struct hc_print_view *v = hc_view_public(number);
		struct hc_text t;
		json_error_t e;
		json_t *j, *rows;

		hc_text_init(&t, big, sizeof(big));
		hc_json_begin(&t, v);
		for (i = 0; nasty[i]; i++) {
			fill_row(v, row, nasty[i]);
			hc_json_row(&t, v, row, !i);
		}
		hc_json_end(&t);
		ck_assert(!t.full);
		j = json_loads(big, JSON_REJECT_DUPLICATES | JSON_DECODE_INT_AS_REAL, &e);
		ck_assert_msg(j != NULL, "%s: %s", v->name, e.text);
		ck_assert_int_eq((int)json_real_value(json_object_get(j, "schema_version")), 1);
		ck_assert_str_eq(json_string_value(json_object_get(j, "view")), v->name);
		rows = json_object_get(j, "rows");
		ck_assert_uint_eq(json_array_size(rows), 4);
		for (k = 0; k < v->nfields; k++)
			ck_assert_ptr_nonnull(
				json_object_get(json_array_get(rows, 1), v->fields[k].name));
		json_decref(j);

		/* the promised bounds hold for the worst row */
		fill_row(v, row, worst);
		hc_text_init(&t, big, HC_JSON_ROW_MAX);
		hc_json_row(&t, v, row, true);
		ck_assert_msg(!t.full, "%s", v->name);
		for (k = 0; k < v->nfields; k++)
			ck_assert_int_eq(hc_print_cell(&v->fields[k], row, big, HC_CELL_MAX), 0);
	}
	ck_assert_uint_gt(number, 7);
}
END_TEST

START_TEST(what_does_not_fit_is_reported)
{
	const struct hc_print_view *v = hc_view_named("device");
	struct hcomm_view_device row = HCOMM_INIT(struct hcomm_view_device);
	struct hc_text t;
	size_t need, size;

	strcpy(row.model, "a model");
	hc_text_init(&t, big, sizeof(big));
	hc_json_row(&t, v, &row, true);
	need = t.len + 1;
	for (size = 0; size <= need; size++) {
		memset(big, 0x5a, need + 1);
		hc_text_init(&t, big, size);
		hc_json_row(&t, v, &row, true);
		ck_assert(t.full == (size < need));
		ck_assert_int_eq(big[size], 0x5a);
		ck_assert(!size || memchr(big, 0, size));
	}
	ck_assert_int_eq(hc_print_cell(&v->fields[2], &row, big, 8), 0);
	ck_assert_str_eq(big, "a model");
	ck_assert_int_eq(hc_print_cell(&v->fields[2], &row, big, 7), HC_E_BUFFER_OVERFLOW);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("print");
	TCase *t = tcase_create("print");
	SRunner *r;
	int failed;

	tcase_add_test(t, json_strings_are_escaped);
	tcase_add_test(t, bytes_that_are_no_utf8_are_replaced);
	tcase_add_test(t, every_two_bytes_make_valid_json);
	tcase_add_test(t, every_view_has_a_public_form);
	tcase_add_test(t, a_row_is_converted_and_printed);
	tcase_add_test(t, signed_numbers_keep_their_sign);
	tcase_add_test(t, an_older_caller_is_honoured);
	tcase_add_test(t, the_longest_strings_fit_and_longer_ones_are_cut);
	tcase_add_test(t, cells_do_not_move_the_cursor);
	tcase_add_test(t, documents_are_json_for_each_view);
	tcase_add_test(t, what_does_not_fit_is_reported);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
