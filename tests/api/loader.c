/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hcomm/loader.h: a host that is not linked with libhcomm loads it, or hears why not.
 */
#include "apitest.h"

#include "hcomm/loader.h"

START_TEST(the_library_is_loaded_and_works)
{
	struct hcomm_loader l;
	char path[1200];
	hcomm_domain d;

	hc_program("libhcomm.so.1", path, sizeof(path));
	works(hcomm_load(&l, path, HCOMM_VERSION));
	ck_assert_str_eq(l.version(), "0.1.0");
	ck_assert_int_eq(l.join(NULL, NULL, 1, 0, 0, NULL, 1, &d), 0);
	ck_assert_int_eq(l.leave(d, 1), 0);
	hcomm_unload(&l);
	ck_assert_ptr_null(l.library);
	ck_assert_ptr_null((void *)(uintptr_t)l.leave);
}
END_TEST

START_TEST(without_it_the_host_is_told_to_fall_back)
{
	struct hcomm_loader l;

	ck_assert_int_eq(hcomm_load(&l, "/nowhere/libhcomm.so.1", HCOMM_VERSION),
			 HCOMM_E_NO_DAEMON);
	ck_assert_ptr_nonnull(strstr(l.why, "/nowhere/libhcomm.so.1"));
	ck_assert_ptr_null(l.library);
	setenv("HCOMM_DISABLE", "1", 1);
	ck_assert_int_eq(hcomm_load(&l, NULL, HCOMM_VERSION), HCOMM_E_NO_DAEMON);
	ck_assert_ptr_nonnull(strstr(l.why, "HCOMM_DISABLE=1"));
}
END_TEST

START_TEST(a_version_that_does_not_do_is_named_with_the_one_wanted)
{
	struct hcomm_loader l;
	char path[1200];

	hc_program("libhcomm.so.1", path, sizeof(path));
	ck_assert_int_eq(hcomm_load(&l, path, HCOMM_VERSION + (3 << 8)), HCOMM_E_VERSION);
	ck_assert_str_eq(l.why, "found 0.1, needs 0.4: upgrade hcomm");
	ck_assert_int_eq(hcomm_load(&l, "libm.so.6", HCOMM_VERSION), HCOMM_E_VERSION);
	ck_assert_ptr_nonnull(strstr(l.why, "hcomm_check_version"));
	ck_assert_ptr_null(l.library);
}
END_TEST

TESTS("loader", the_library_is_loaded_and_works, without_it_the_host_is_told_to_fall_back,
      a_version_that_does_not_do_is_named_with_the_one_wanted)
