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

static inline enum hcomm_state state_of(hcomm_domain d)
{
	struct hcomm_status status = HCOMM_INIT(struct hcomm_status);

	works(hcomm_status_get(d, &status));
	return status.state;
}

static inline uint64_t id_of(hcomm_domain d)
{
	struct hcomm_status status = HCOMM_INIT(struct hcomm_status);

	works(hcomm_status_get(d, &status));
	return status.id;
}

/* Dispatch all sessions until all domains are ACTIVE. */
static inline void await_active(struct hcomm_session *const *s, const hcomm_domain *d, unsigned n)
{
	uint64_t end = hc_now_ms() + hc_patience(20000);
	unsigned i, active;

	do {
		for (active = i = 0; i < n; i++) {
			ck_assert_int_ge(hcomm_dispatch(s[i], active < i ? 1 : 0), 0);
			active += state_of(d[i]) == HCOMM_ACTIVE;
		}
		ck_assert_msg(hc_now_ms() < end, "%u of %u are ACTIVE", active, n);
	} while (active < n);
}

/* A session for each rank in this one process, and a domain of all. The devices are 0 to n - 1. */
static inline void form(struct hcomm_session **s, hcomm_domain *d, unsigned n,
			const struct hcomm_config *config)
{
	struct hcomm_root_info info;
	unsigned i;

	for (i = 0; i < n; i++)
		s[i] = s[i] ? s[i] : open_session();
	works(hcomm_root_info(s[0], n, config, &info));
	for (i = 0; i < n; i++)
		refused(hcomm_join(s[i], &info, n, i, i, NULL, HCOMM_START, &d[i]),
			HCOMM_E_IN_PROGRESS, "event");
	await_active(s, d, n);
}

static inline void close_all(struct hcomm_session **s, unsigned n)
{
	while (n--)
		hcomm_close(s[n]);
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
	hc_tests_begin();
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	hc_tests_end(failed > 0);
	return failed ? 1 : 0;
}

#endif
