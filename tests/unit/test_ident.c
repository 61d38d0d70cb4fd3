/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Identity of a node: drawn once, kept over restarts and over the loss of one of its two copies;
 * and one daemon for a state directory, whatever numbers stand in files.
 */
#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "ident.h"
#include "log.h"

static char dir[256], why[HC_WHY_BYTES];

static void setup(void)
{
	const char *base = getenv("TMPDIR");

	snprintf(dir, sizeof(dir), "%s/hc-ident-XXXXXX", base ? base : "/tmp");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	hc_log_open(HC_LOG_STDERR, HC_LOG_ERROR, 10);
}

static void teardown(void)
{
	static const char *const names[] = {"node-id", "node-id.new", "lock", "file"};
	char path[300];
	unsigned i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		unlink(path);
	}
	rmdir(dir);
}

static void write_file(const char *name, const char *text)
{
	char path[300];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "w");
	ck_assert_ptr_nonnull(f);
	fputs(text, f);
	fclose(f);
}

START_TEST(the_id_is_drawn_once)
{
	uint8_t a[16], b[16];
	char path[300];
	struct stat st;
	bool made;

	ck_assert_int_eq(hc_ident_node(dir, NULL, a, &made, why, sizeof(why)), 0);
	ck_assert(made);
	ck_assert_int_eq(hc_ident_node(dir, NULL, b, &made, why, sizeof(why)), 0);
	ck_assert(!made);
	ck_assert_mem_eq(a, b, 16);
	snprintf(path, sizeof(path), "%s/node-id", dir);
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_uint_eq(st.st_mode & 0777, 0600);
}
END_TEST

START_TEST(a_lost_or_damaged_file_comes_back_from_the_mirror)
{
	static const uint8_t mirror[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
	static const char *const damaged[] = {"", "xyz", "0102030405060708090a0b0c0d0e0f",
					      "00000000000000000000000000000000\n",
					      "0102030405060708090a0b0c0d0e0f100\n"};
	uint8_t id[16];
	bool made;
	unsigned i;

	ck_assert_int_eq(hc_ident_node(dir, mirror, id, &made, why, sizeof(why)), 0);
	ck_assert(!made);
	ck_assert_mem_eq(id, mirror, 16);
	for (i = 0; i < sizeof(damaged) / sizeof(damaged[0]); i++) {
		write_file("node-id", damaged[i]);
		ck_assert_int_eq(hc_ident_node(dir, mirror, id, &made, why, sizeof(why)), 0);
		ck_assert_mem_eq(id, mirror, 16);
	}
	/* and what was written is good without the mirror */
	ck_assert_int_eq(hc_ident_node(dir, NULL, id, &made, why, sizeof(why)), 0);
	ck_assert_mem_eq(id, mirror, 16);
}
END_TEST

START_TEST(a_second_daemon_is_told_who_runs)
{
	char expected[64];
	int fd, other = -1;

	ck_assert_int_eq(hc_ident_lock(dir, &fd, why, sizeof(why)), 0);
	ck_assert_int_eq(hc_ident_lock(dir, &other, why, sizeof(why)), HC_IDENT_BUSY);
	snprintf(expected, sizeof(expected), "already running, pid %d", (int)getpid());
	ck_assert_ptr_nonnull(strstr(why, expected));
	close(fd);
	ck_assert_int_eq(hc_ident_lock(dir, &fd, why, sizeof(why)), 0);
	close(fd);
}
END_TEST

START_TEST(a_number_in_the_lock_file_decides_nothing)
{
	static const char *const pids[] = {"1\n", "99999999\n", "no number", ""};
	unsigned i;
	int fd;

	for (i = 0; i < sizeof(pids) / sizeof(pids[0]); i++) {
		write_file("lock", pids[i]);
		ck_assert_int_eq(hc_ident_lock(dir, &fd, why, sizeof(why)), 0);
		close(fd);
	}
}
END_TEST

START_TEST(the_lock_dies_with_its_process)
{
	int fd, status;
	pid_t child = fork();

	ck_assert_int_ge(child, 0);
	if (!child) {
		if (hc_ident_lock(dir, &fd, why, sizeof(why)))
			_exit(1);
		kill(getpid(), SIGKILL);
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert(WIFSIGNALED(status));
	ck_assert_int_eq(hc_ident_lock(dir, &fd, why, sizeof(why)), 0);
	close(fd);
}
END_TEST

START_TEST(directories_are_made_or_the_setting_is_named)
{
	char path[300];

	ck_assert_int_eq(hc_ident_dir(dir, 0700, "state_dir", why, sizeof(why)), 0);
	write_file("file", "x");
	snprintf(path, sizeof(path), "%s/file", dir);
	ck_assert_int_eq(hc_ident_dir(path, 0700, "state_dir", why, sizeof(why)), HC_IDENT_REFUSED);
	ck_assert_ptr_nonnull(strstr(why, "state_dir"));
	ck_assert_ptr_nonnull(strstr(why, path));
	snprintf(path, sizeof(path), "%s/none/below", dir);
	ck_assert_int_eq(hc_ident_dir(path, 0700, "state_dir", why, sizeof(why)), HC_IDENT_REFUSED);
	ck_assert_ptr_nonnull(strstr(why, "No such file"));
}
END_TEST

START_TEST(the_boot_id_is_that_of_the_kernel)
{
	char a[HC_BOOT_BYTES], b[HC_BOOT_BYTES];

	ck_assert_int_eq(hc_ident_boot(a), 0);
	ck_assert_int_eq(hc_ident_boot(b), 0);
	ck_assert_str_eq(a, b);
	ck_assert_uint_eq(strlen(a), HC_BOOT_BYTES - 1);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("ident");
	TCase *t = tcase_create("ident");
	SRunner *r;
	int failed;

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, the_id_is_drawn_once);
	tcase_add_test(t, a_lost_or_damaged_file_comes_back_from_the_mirror);
	tcase_add_test(t, a_second_daemon_is_told_who_runs);
	tcase_add_test(t, a_number_in_the_lock_file_decides_nothing);
	tcase_add_test(t, the_lock_dies_with_its_process);
	tcase_add_test(t, directories_are_made_or_the_setting_is_named);
	tcase_add_test(t, the_boot_id_is_that_of_the_kernel);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
