/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hcomm_last_error: the detail of the calling thread, for each thread its own.
 */
#include "apitest.h"

#include <pthread.h>

enum { THREADS = 300 };

static pthread_barrier_t all;

START_TEST(before_any_failure_it_is_empty)
{
	ck_assert_str_eq(hcomm_last_error(), "");
	ck_assert_uint_eq(hcomm_retry_after(), HCOMM_UNKNOWN);
}
END_TEST

START_TEST(a_good_call_leaves_it_as_it_was)
{
	hcomm_domain d;

	ck_assert_int_lt(hcomm_leave(5, 1), 0);
	works(hcomm_join(NULL, NULL, 1, 0, 0, NULL, 1, &d));
	ck_assert_ptr_nonnull(strstr(hcomm_last_error(), "0x5"));
	works(hcomm_leave(d, 1));
}
END_TEST

static void *fail_with(void *arg)
{
	char wanted[32];
	int i;

	snprintf(wanted, sizeof(wanted), "nranks is 0");
	for (i = 0; i < 50; i++) {
		hcomm_domain d;
		uint32_t rank = (uint32_t)(uintptr_t)arg + 2;

		snprintf(wanted, sizeof(wanted), "rank is %u of 2", rank);
		ck_assert_int_eq(hcomm_join(NULL, NULL, 2, rank, 0, NULL, 1, &d), HCOMM_E_INVALID);
		ck_assert_ptr_nonnull(strstr(hcomm_last_error(), wanted));
	}
	return NULL;
}

START_TEST(each_thread_has_its_own)
{
	pthread_t threads[16];
	uintptr_t i;

	for (i = 0; i < 16; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, fail_with, (void *)i), 0);
	for (i = 0; i < 16; i++)
		pthread_join(threads[i], NULL);
}
END_TEST

static void *fail_and_wait(void *arg)
{
	hcomm_domain d;
	char wanted[32];
	const char *text;

	ck_assert_int_eq(hcomm_join(NULL, NULL, 2, (uint32_t)(uintptr_t)arg + 2, 0, NULL, 1, &d),
			 HCOMM_E_INVALID);
	pthread_barrier_wait(&all);
	/* more threads than there are places: some have lost theirs, none has another's */
	snprintf(wanted, sizeof(wanted), "rank is %u of 2", (uint32_t)(uintptr_t)arg + 2);
	text = hcomm_last_error();
	ck_assert_msg(strstr(text, wanted) || !strcmp(text, "invalid argument"), "%s", text);
	return NULL;
}

START_TEST(with_very_many_threads_the_short_text_is_left)
{
	pthread_t threads[THREADS];
	uintptr_t i;

	pthread_barrier_init(&all, NULL, THREADS);
	for (i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, fail_and_wait, (void *)i), 0);
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	pthread_barrier_destroy(&all);
}
END_TEST

TESTS("hcomm_last_error", before_any_failure_it_is_empty, a_good_call_leaves_it_as_it_was,
      each_thread_has_its_own, with_very_many_threads_the_short_text_is_left)
