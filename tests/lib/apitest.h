/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the tests of the public calls have in common: assertions that show the library's own text,
 * sessions with a fake or a real daemon, and a main function from a list of tests.
 */
#ifndef HC_APITEST_H
#define HC_APITEST_H

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fake.h"
#include "harness.h"
#include "hcomm/hcomm.h"

/* The call succeeds. */
#define works(call)                                                                                \
	do {                                                                                       \
		int works_ = (call);                                                               \
		ck_assert_msg(works_ == 0, "%s: %s: %s", #call, hcomm_error_name(works_),          \
			      hcomm_last_error());                                                 \
	} while (0)

/* The call is refused with this error, and its detail has this text. */
#define refused(call, error, text)                                                                 \
	do {                                                                                       \
		int refused_ = (call);                                                             \
		ck_assert_msg(refused_ == (error), "%s: %s: %s; wanted %s", #call,                 \
			      hcomm_error_name(refused_), hcomm_last_error(), #error);             \
		ck_assert_msg(strstr(hcomm_last_error(), (text)) != NULL,                          \
			      "%s says '%s'; wanted in it: '%s'", #call, hcomm_last_error(),       \
			      (text));                                                             \
	} while (0)

static inline struct hcomm_session *open_session(void)
{
	struct hcomm_session *s = NULL;

	works(hcomm_open(NULL, &s));
	ck_assert_ptr_nonnull(s);
	return s;
}

/* A session with a daemon that grants everything (fake_good) or does as `fn` says. */
static inline struct hcomm_session *open_fake(struct fake *f, fake_fn fn)
{
	f->own_hello = false;
	fake_start(f, fn ? fn : fake_good, NULL);
	return open_session();
}

/* Rank `rank` of `nranks` by root info. */
static inline hcomm_domain join_root(struct hcomm_session *s, uint32_t nranks, uint32_t rank)
{
	struct hcomm_root_info info;
	hcomm_domain d = 0;

	works(hcomm_root_info(s, nranks, NULL, &info));
	works(hcomm_join(s, &info, nranks, rank, HCOMM_ANY_DEVICE, NULL, 10000, &d));
	ck_assert_uint_ne(d, 0);
	return d;
}

/* The main function: TESTS(name, test_a, test_b, ...). */
#define TESTS(name, ...)                                                                           \
	int main(void)                                                                             \
	{                                                                                          \
		const TTest *const list[] = {__VA_ARGS__};                                         \
		return run_tests(name, list, sizeof(list) / sizeof(list[0]));                      \
	}

static inline int run_tests(const char *name, const TTest *const *list, size_t n)
{
	Suite *suite = suite_create(name);
	TCase *tcase = tcase_create(name);
	SRunner *runner;
	size_t i;
	int failed;

	tcase_set_timeout(tcase, hc_patience(60000) / 1000.0);
	for (i = 0; i < n; i++)
		tcase_add_test(tcase, list[i]);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}

#endif
