/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main of a check program with one suite: run it, and end with 1 if anything failed.
 */
#ifndef HC_SUITE_H
#define HC_SUITE_H

#include <check.h>
#include <stdbool.h>
#include <stdlib.h>

#include "harness.h"

/* Long forms of tests run in `make check-long`. */
static inline bool hc_long(void)
{
	const char *v = getenv("HC_LONG");

	return v && *v == '1';
}

static inline int hc_suite_run(const char *name, void (*add)(TCase *t), unsigned limit_s)
{
	Suite *s = suite_create(name);
	TCase *t = tcase_create(name);
	SRunner *r;
	int failed;

	tcase_set_timeout(t, hc_patience(limit_s));
	add(t);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

#endif
