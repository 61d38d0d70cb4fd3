/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Errors and words: the tables agree with themselves and with the public header.
 *
 * hcomm.h is written by hand, so that it can be read; here it is compared with the tables it
 * repeats, row by row. The host interfaces' values are checked against the ranges of
 * HcclResult and ncclResult_t, and "try later" is never told to a host as success.
 */
#include <check.h>
#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "hcomm/hcomm.h"
#include "wire.h"

#define HCCL_RESULT_MAX 22 /* HCCL_E_SUSPENDING */
#define NCCL_RESULT_MAX 7  /* ncclInProgress */

START_TEST(numbers_are_dense_and_unique)
{
	const struct hc_error_row *e;
	int want = 1;

	for (e = hc_error_rows; e->number; e++) {
		ck_assert_int_eq(e->number, want++);
		ck_assert_ptr_eq(hc_error_row(e->number), e);
		ck_assert_ptr_eq(hc_error_row(-e->number), e);
	}
	ck_assert_int_gt(want, 30);
	ck_assert_ptr_null(hc_error_row(0));
	ck_assert_ptr_null(hc_error_row(want));
	ck_assert_ptr_null(hc_error_row(-want));
	ck_assert_ptr_null(hc_error_row(INT_MAX));
	ck_assert_ptr_null(hc_error_row(INT_MIN));
}
END_TEST

START_TEST(names_and_texts_tell_errors_apart)
{
	const struct hc_error_row *a, *b;

	for (a = hc_error_rows; a->number; a++) {
		ck_assert_msg(a->text[0] && a->explain[0], "%s", a->name);
		for (b = a + 1; b->number; b++) {
			ck_assert_str_ne(a->name, b->name);
			ck_assert_str_ne(a->text, b->text);
		}
	}
}
END_TEST

START_TEST(public_header_has_the_same_errors)
{
	unsigned rows = 0;

#define ERR(number, name, hccl, nccl, text, explain)                                               \
	ck_assert_int_eq(HCOMM_E_##name, -number);                                                 \
	ck_assert_int_eq(HC_E_##name, number);                                                     \
	rows++;
#include "errors.tbl.h"
#undef ERR
	ck_assert_int_eq(HCOMM_OK, HC_OK);
	ck_assert_ptr_null(hc_error_row((int)rows + 1));
	ck_assert_ptr_nonnull(hc_error_row((int)rows));
}
END_TEST

START_TEST(host_results_are_in_their_ranges)
{
	const struct hc_error_row *e;

	for (e = hc_error_rows; e->number; e++) {
		ck_assert_msg(e->hccl >= 1 && e->hccl <= HCCL_RESULT_MAX, "%s: %d", e->name,
			      e->hccl);
		ck_assert_msg(e->nccl >= 1 && e->nccl <= NCCL_RESULT_MAX, "%s: %d", e->name,
			      e->nccl);
	}
}
END_TEST

START_TEST(public_words_are_those_of_the_table)
{
	ck_assert_str_eq(hc_word_domain_state(HCOMM_FORMING), "FORMING");
	ck_assert_str_eq(hc_word_domain_state(HCOMM_PROBING), "PROBING");
	ck_assert_str_eq(hc_word_domain_state(HCOMM_ACTIVATING), "ACTIVATING");
	ck_assert_str_eq(hc_word_domain_state(HCOMM_ACTIVE), "ACTIVE");
	ck_assert_str_eq(hc_word_domain_state(HCOMM_SUSPENDED), "SUSPENDED");
	ck_assert_str_eq(hc_word_domain_state(HCOMM_DAMAGED), "DAMAGED");
	ck_assert_str_eq(hc_word_domain_state(HCOMM_DRAINING), "DRAINING");
	ck_assert_str_eq(hc_word_domain_state(HCOMM_DESTROYED), "DESTROYED");
	ck_assert_str_eq(hc_word_domain_state(HCOMM_FAILED), "FAILED");

	ck_assert_int_eq(HCOMM_OP_ALL_REDUCE, HC_W_op_kind_ALL_REDUCE);
	ck_assert_int_eq(HCOMM_OP_BARRIER, HC_W_op_kind_BARRIER);
	ck_assert_int_eq(HCOMM_OP_OTHER, HC_W_op_kind_OTHER);
	ck_assert_int_eq(HCOMM_OP_RECV, HC_W_op_kind_RECV);
}
END_TEST

struct word {
	const char *set;
	unsigned number;
	const char *text;
	const char *(*find)(unsigned number);
};

static const struct word words[] = {
#define W(set, number, name, text) {#set, number, text, hc_word_##set},
#include "words.tbl.h"
#undef W
};

/* HCOMM_EV_ and the word of an event, as a C name. */
static const char *event_name(const struct word *w, char out[64])
{
	size_t n = (size_t)snprintf(out, 64, "HCOMM_EV_%s", w->text);

	while (n--)
		out[n] = (char)(out[n] == '-' ? '_' : toupper((unsigned char)out[n]));
	return out;
}

static char *file(const char *path)
{
	FILE *f = fopen(path, "r");
	char *text = calloc(1, 1 << 20);

	ck_assert_msg(f && text, "%s cannot be read", path);
	ck_assert_uint_gt(fread(text, 1, (1 << 20) - 1, f), 0);
	fclose(f);
	return text;
}

static size_t count(const char *text, const char *what)
{
	size_t n = 0;

	for (; (text = strstr(text, what)); text++)
		n++;
	return n;
}

START_TEST(public_header_and_manual_have_every_event)
{
	char *header = file("include/hcomm/hcomm.h"), *manual = file("doc/libhcomm.3");
	size_t i, events = 0;
	char name[64], line[128];

	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strcmp(words[i].set, "event_code") != 0 || !words[i].number)
			continue;
		events++;
		snprintf(line, sizeof(line), "\t%s = %u", event_name(&words[i], name),
			 words[i].number);
		ck_assert_msg(strstr(header, line), "hcomm.h lacks '%s'", line + 1);
		snprintf(line, sizeof(line), ".It Dv %s\n", name);
		ck_assert_msg(strstr(manual, line), "libhcomm.3 lacks '.It Dv %s'", name);
	}
	ck_assert_uint_gt(events, 40);
	ck_assert_uint_eq(count(header, "\tHCOMM_EV_"), events);
	ck_assert_uint_eq(count(manual, ".It Dv HCOMM_EV_"), events);
	free(header);
	free(manual);
}
END_TEST

START_TEST(words_are_unique_in_their_set_and_are_found)
{
	const size_t n = sizeof(words) / sizeof(words[0]);
	size_t i, j;

	for (i = 0; i < n; i++) {
		ck_assert_str_eq(words[i].find(words[i].number), words[i].text);
		for (j = i + 1; j < n; j++) {
			if (strcmp(words[i].set, words[j].set) != 0)
				continue;
			ck_assert_uint_ne(words[i].number, words[j].number);
			ck_assert_str_ne(words[i].text, words[j].text);
		}
	}
}
END_TEST

START_TEST(an_unknown_number_is_a_question_mark)
{
	size_t i;

	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		ck_assert_str_eq(words[i].find(63), "?");
		ck_assert_str_eq(words[i].find(64), "?");
		ck_assert_str_eq(words[i].find(0xffffffff), "?");
	}
}
END_TEST

START_TEST(strings_are_cut_and_terminated)
{
	char out[4] = "zzz";

	ck_assert_uint_eq(hc_str(NULL).len, 0);
	ck_assert_uint_eq(hc_str("abc").len, 3);
	ck_assert_str_eq(hc_str_copy(hc_str("abcdef"), out, sizeof(out)), "abc");
	ck_assert_str_eq(hc_str_copy(hc_str(NULL), out, sizeof(out)), "");
	ck_assert_str_eq(hc_str_copy(hc_str("abc"), out, 1), "");
	out[0] = 'q';
	hc_str_copy(hc_str("abc"), out, 0);
	ck_assert_int_eq(out[0], 'q');
	ck_assert(hc_str_eq(hc_str("ab"), hc_str("ab")));
	ck_assert(hc_str_eq(hc_str(NULL), hc_str("")));
	ck_assert(!hc_str_eq(hc_str("ab"), hc_str("abc")));
	ck_assert(!hc_str_eq(hc_str("ab"), hc_str("ac")));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("words");
	TCase *t = tcase_create("words");
	SRunner *r;
	int failed;

	tcase_add_test(t, numbers_are_dense_and_unique);
	tcase_add_test(t, names_and_texts_tell_errors_apart);
	tcase_add_test(t, public_header_has_the_same_errors);
	tcase_add_test(t, host_results_are_in_their_ranges);
	tcase_add_test(t, public_words_are_those_of_the_table);
	tcase_add_test(t, public_header_and_manual_have_every_event);
	tcase_add_test(t, words_are_unique_in_their_set_and_are_found);
	tcase_add_test(t, an_unknown_number_is_a_question_mark);
	tcase_add_test(t, strings_are_cut_and_terminated);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
