/* SPDX-License-Identifier: Apache-2.0 */
/* The file with the cluster key: what is taken, what is refused, and what people are told. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "keyfile.h"
#include "suite.h"

#define DIGITS_64 "00112233445566778899aabbccddeeffFFEEDDCCBBAA99887766554433221100"

static char dir[128], path[160], why[1400];
static uint8_t key[HC_KEY_BYTES];

static void setup(void)
{
	hc_tempdir(dir, sizeof(dir));
	snprintf(path, sizeof(path), "%s/cluster.key", dir);
}

static int take(const char *text, mode_t mode)
{
	hc_write_file(path, text);
	ck_assert_int_eq(chmod(path, mode), 0);
	memset(key, 0x55, sizeof(key));
	why[0] = '\0';
	return hc_keyfile_read(path, key, why, sizeof(why));
}

static void refused(const char *text, mode_t mode, const char *said)
{
	static const uint8_t zero[HC_KEY_BYTES];

	ck_assert_int_eq(take(text, mode), HC_KEYFILE_REFUSED);
	ck_assert_msg(strstr(why, path) && strstr(why, said), "'%s' is not in '%s'", said, why);
	ck_assert(!strchr(why, '\n'));
	ck_assert_msg(!strstr(why, "00112233"), "the key is in '%s'", why);
	ck_assert_mem_eq(key, zero, sizeof(key));
}

START_TEST(digits_and_a_newline_are_a_key)
{
	ck_assert_int_eq(take(DIGITS_64 "\n", 0400), HC_KEYFILE_OK);
	ck_assert_uint_eq(key[0], 0x00);
	ck_assert_uint_eq(key[1], 0x11);
	ck_assert_uint_eq(key[15], 0xff);
	ck_assert_uint_eq(key[16], 0xff);
	ck_assert_uint_eq(key[30], 0x11);
	ck_assert_uint_eq(key[31], 0x00);
	ck_assert_int_eq(take(DIGITS_64 "\n", 0600), HC_KEYFILE_OK);
	ck_assert_int_eq(take(DIGITS_64 "\n", 0440), HC_KEYFILE_OK);
}
END_TEST

START_TEST(nothing_else_is)
{
	refused("", 0400, ":1:1: ");
	refused(DIGITS_64, 0400, ":1:65: ");
	refused(DIGITS_64 "\r\n", 0400, ":1:65: ");
	refused(DIGITS_64 "\n\n", 0400, ":1:65: ");
	refused(DIGITS_64 "0\n", 0400, ":1:65: ");
	refused("0x" DIGITS_64 "\n", 0400, ":1:2: ");
	refused(" " DIGITS_64 "\n", 0400, ":1:1: ");
	refused("0011223\n", 0400, ":1:8: ");
	refused("-----BEGIN PRIVATE KEY-----\n", 0400, "wanted: 64 hexadecimal digits");
}
END_TEST

START_TEST(what_others_can_use_is_refused_with_the_cure)
{
	static const mode_t modes[] = {0404, 0444, 0644, 0402, 0420, 0410, 0777};
	char cure[200];

	snprintf(cure, sizeof(cure), "chmod 0400 %s", path);
	refused(DIGITS_64 "\n", modes[_i], cure);
}
END_TEST

START_TEST(what_another_user_owns_is_refused)
{
	if (geteuid()) {
		printf("SKIP: only root can give a file away\n");
		return;
	}
	hc_write_file(path, DIGITS_64 "\n");
	ck_assert_int_eq(chmod(path, 0400), 0);
	ck_assert_int_eq(chown(path, 12345, 0), 0);
	ck_assert_int_eq(hc_keyfile_read(path, key, why, sizeof(why)), HC_KEYFILE_REFUSED);
	ck_assert_msg(strstr(why, "uid 12345") != NULL, "%s", why);
}
END_TEST

START_TEST(no_file_is_no_fault_but_a_directory_is)
{
	ck_assert_int_eq(hc_keyfile_read(path, key, why, sizeof(why)), HC_KEYFILE_ABSENT);
	ck_assert_int_eq(hc_keyfile_read(dir, key, why, sizeof(why)), HC_KEYFILE_REFUSED);
	ck_assert_msg(strstr(why, "is no plain file") != NULL, "%s", why);
}
END_TEST

START_TEST(a_credential_counts_unless_key_file_is_set)
{
	char at[256];

	ck_assert_int_eq(setenv("CREDENTIALS_DIRECTORY", dir, 1), 0);
	hc_keyfile_path("/etc/hcomm/cluster.key", false, at, sizeof(at));
	ck_assert_str_eq(at, "/etc/hcomm/cluster.key"); /* there is no credential */
	hc_write_file(path, "none");
	hc_keyfile_path("/etc/hcomm/cluster.key", false, at, sizeof(at));
	ck_assert_str_eq(at, path);
	ck_assert_int_eq(take("none", 0400), HC_KEYFILE_ABSENT);
	hc_keyfile_path("/srv/key", true, at, sizeof(at));
	ck_assert_str_eq(at, "/srv/key");
}
END_TEST

static void add(TCase *t)
{
	tcase_add_checked_fixture(t, setup, NULL);
	tcase_add_test(t, digits_and_a_newline_are_a_key);
	tcase_add_test(t, nothing_else_is);
	tcase_add_loop_test(t, what_others_can_use_is_refused_with_the_cure, 0, 7);
	tcase_add_test(t, what_another_user_owns_is_refused);
	tcase_add_test(t, no_file_is_no_fault_but_a_directory_is);
	tcase_add_test(t, a_credential_counts_unless_key_file_is_set);
}

int main(void)
{
	return hc_suite_run("keyfile", add, 30);
}
