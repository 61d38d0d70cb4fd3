/* SPDX-License-Identifier: Apache-2.0 */
/*
 * As much of libcheck as the unit tests of proto and core use, for machines that have none.
 *
 * `make check-bigendian` compiles those tests for a big-endian machine and runs them under an
 * emulator; a libcheck for it is not installed on most systems, and a C file with few needs can be
 * served by a header. Tests run one after the other in one process, without time limits; the
 * first that fails is named and ends the program with 1. "N passed" is the last line.
 */
#ifndef HC_BIGENDIAN_CHECK_H
#define HC_BIGENDIAN_CHECK_H

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CK_NORMAL, CK_ENV };

typedef void (*be_test_fn)(int _i);
typedef struct be_case {
	struct be_row {
		be_test_fn fn;
		const char *name;
		int from, to;
	} row[256];
	unsigned count;
	struct be_case *next;
} TCase;
typedef struct {
	const char *name;
	TCase *first;
} Suite;
typedef Suite SRunner;

#define START_TEST(name)                                                                           \
	static void name(int _i)                                                                   \
	{                                                                                          \
		(void)_i;
#define END_TEST }

static const char *be_now = "?"; /* the test that runs */

_Noreturn static inline void be_fail(const char *file, int line, const char *format, ...)
{
	va_list args;

	printf("%s:%d: %s: ", file, line, be_now);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
	exit(1);
}

#define ck_abort_msg(...) be_fail(__FILE__, __LINE__, __VA_ARGS__)
#define ck_assert_msg(x, ...)                                                                      \
	do {                                                                                       \
		if (!(x))                                                                          \
			be_fail(__FILE__, __LINE__, __VA_ARGS__);                                  \
	} while (0)
#define ck_assert(x) ck_assert_msg(x, "not so: %s", #x)
#define BE_INT(a, op, b)                                                                           \
	do {                                                                                       \
		intmax_t be_a = (a), be_b = (b);                                                   \
		ck_assert_msg(be_a op be_b, "not so: %s %s %s: %" PRIdMAX ", %" PRIdMAX, #a, #op,  \
			      #b, be_a, be_b);                                                     \
	} while (0)
#define BE_UINT(a, op, b)                                                                          \
	do {                                                                                       \
		uintmax_t be_a = (uintmax_t)(a), be_b = (uintmax_t)(b);                            \
		ck_assert_msg(be_a op be_b, "not so: %s %s %s: %" PRIuMAX ", %" PRIuMAX, #a, #op,  \
			      #b, be_a, be_b);                                                     \
	} while (0)
#define ck_assert_int_eq(a, b)    BE_INT(a, ==, b)
#define ck_assert_int_ne(a, b)    BE_INT(a, !=, b)
#define ck_assert_int_gt(a, b)    BE_INT(a, >, b)
#define ck_assert_int_ge(a, b)    BE_INT(a, >=, b)
#define ck_assert_int_lt(a, b)    BE_INT(a, <, b)
#define ck_assert_int_le(a, b)    BE_INT(a, <=, b)
#define ck_assert_uint_eq(a, b)   BE_UINT(a, ==, b)
#define ck_assert_uint_ne(a, b)   BE_UINT(a, !=, b)
#define ck_assert_uint_gt(a, b)   BE_UINT(a, >, b)
#define ck_assert_uint_ge(a, b)   BE_UINT(a, >=, b)
#define ck_assert_uint_lt(a, b)   BE_UINT(a, <, b)
#define ck_assert_uint_le(a, b)   BE_UINT(a, <=, b)
#define ck_assert_ptr_eq(a, b)    ck_assert((const void *)(a) == (const void *)(b))
#define ck_assert_ptr_ne(a, b)    ck_assert((const void *)(a) != (const void *)(b))
#define ck_assert_ptr_null(a)     ck_assert((a) == NULL)
#define ck_assert_ptr_nonnull(a)  ck_assert((a) != NULL)
#define ck_assert_mem_eq(a, b, n) ck_assert(!memcmp(a, b, n))
#define ck_assert_str_eq(a, b)                                                                     \
	do {                                                                                       \
		const char *be_s = (a), *be_t = (b);                                               \
		ck_assert_msg(!strcmp(be_s, be_t), "not so: %s == %s: \"%s\", \"%s\"", #a, #b,     \
			      be_s, be_t);                                                         \
	} while (0)
#define ck_assert_str_ne(a, b) ck_assert(strcmp(a, b) != 0)

static inline Suite *suite_create(const char *name)
{
	Suite *s = calloc(1, sizeof(*s));

	ck_assert(s);
	s->name = name;
	return s;
}

static inline TCase *tcase_create(const char *name)
{
	TCase *t = calloc(1, sizeof(*t));

	(void)name;
	ck_assert(t);
	return t;
}

static inline void be_add(TCase *t, be_test_fn fn, const char *name, int from, int to)
{
	ck_assert(t->count < sizeof(t->row) / sizeof(t->row[0]));
	t->row[t->count++] = (struct be_row){fn, name, from, to};
}
#define tcase_add_test(t, fn)                be_add(t, fn, #fn, 0, 1)
#define tcase_add_loop_test(t, fn, from, to) be_add(t, fn, #fn, from, to)

static inline void tcase_set_timeout(TCase *t, double seconds)
{
	(void)t;
	(void)seconds;
}

static inline void suite_add_tcase(Suite *s, TCase *t)
{
	TCase **end = &s->first;

	while (*end)
		end = &(*end)->next;
	*end = t;
}

static inline SRunner *srunner_create(Suite *s)
{
	return s;
}

static inline void srunner_run_all(SRunner *s, int how)
{
	unsigned passed = 0, i;
	TCase *t;
	int n;

	(void)how;
	for (t = s->first; t; t = t->next) {
		for (i = 0; i < t->count; i++) {
			for (n = t->row[i].from; n < t->row[i].to; n++, passed++) {
				be_now = t->row[i].name;
				t->row[i].fn(n);
			}
		}
	}
	printf("%s: %u passed\n", s->name, passed);
}

static inline int srunner_ntests_failed(SRunner *s)
{
	(void)s;
	return 0; /* a failure has ended the program */
}

static inline void srunner_free(SRunner *s)
{
	TCase *t;

	while ((t = s->first)) {
		s->first = t->next;
		free(t);
	}
	free(s);
}

#endif
