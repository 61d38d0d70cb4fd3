/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Case 17: the rank table cannot be read, or is being replaced this very moment.
 *
 * Absent, a directory, a file of somebody else: in the field all three were "invalid path", and
 * people looked in the wrong place. Each has its own message here, with the path and the words
 * of the system. While a controller replaces the file by rename again and again, every load sees
 * the old table or the new one, whole.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ranks.h"
#include "suite.h"

static struct hc_node node;
static char path[256];

static void begin(void)
{
	hc_node_start(&node, 8, NULL);
	snprintf(path, sizeof(path), "%s/table.json", node.dir);
}

static void end(void)
{
	hc_node_end(&node);
}

static void want_text(int code, const char *file, const char *words)
{
	struct hcomm_session *s;
	hcomm_domain d;

	ck_assert_msg(!hcomm_open(NULL, &s), "%s", hcomm_last_error());
	ck_assert_int_eq(hcomm_join_table(s, file, 0, NULL, 2000, &d), code);
	ck_assert_msg(strstr(hcomm_last_error(), file) && strstr(hcomm_last_error(), words),
		      "wanted '%s' and '%s' in: %s", file, words, hcomm_last_error());
	hcomm_close(s);
}

START_TEST(absent_directory_and_device_have_three_messages)
{
	want_text(HCOMM_E_NOT_FOUND, "/nowhere/at/all.json", strerror(ENOENT));
	want_text(HCOMM_E_INVALID, node.dir, strerror(EISDIR));
	want_text(HCOMM_E_INVALID, "/dev/zero", "not a regular file");
}
END_TEST

/* Not 65534, which stands for a user without a number here. */
enum { PLAIN_UID = 64999 };

/* A plain user reads a file of another one. Run by root, the child becomes that user. */
static int as_plain_user(void *arg, int in, int out)
{
	(void)arg;
	(void)in;
	(void)out;
	/* the group of the socket stays, as for a member of the group hcomm */
	if (!geteuid() && (setgroups(0, NULL) || setuid(PLAIN_UID)))
		return 3;
	want_text(HCOMM_E_PERMISSION, path, strerror(EACCES));
	return 0;
}

static void open_the_way(void)
{
	char run[256];

	snprintf(run, sizeof(run), "%s/run", node.dir);
	if (chmod(node.dir, 0711) || chmod(run, 0711))
		hc_fail("%s: %s", node.dir, strerror(errno));
}

START_TEST(a_file_of_another_user_is_a_matter_of_permission)
{
	struct hc_child c;

	hc_table_write(path, 2, 1);
	open_the_way();
	ck_assert_int_eq(chmod(path, geteuid() ? 0 : 0600), 0);
	hc_spawn(&c, as_plain_user, NULL);
	ck_assert_int_eq(hc_child_wait(&c, 20000), 0);
}
END_TEST

/* ---- replaced while it is read ---- */

enum { FEW = 2, MANY = 8 };

static int replace_for_ever(void *arg, int in, int out)
{
	char other[300], *text[2];
	unsigned n = 0, rounds = *(unsigned *)arg;

	(void)in;
	snprintf(other, sizeof(other), "%s.src", path);
	hc_table_write(other, FEW, 1);
	text[0] = hc_read_file(other);
	hc_table_write(other, MANY, 1);
	text[1] = hc_read_file(other);
	for (n = 0; n < rounds; n++)
		hc_replace_file(path, text[n % 2]);
	hc_tell(out, &n, sizeof(n));
	free(text[0]);
	free(text[1]);
	return 0;
}

/* The rank that neither table has tells which one was read. */
START_TEST(every_load_sees_one_whole_table)
{
	struct hcomm_session *s;
	struct hc_child c;
	unsigned loads = 0, seen[2] = {0, 0}, rounds = 1000, n;
	struct pollfd over = {.events = POLLIN};
	hcomm_domain d;

	hc_table_write(path, FEW, 1);
	ck_assert_int_eq(hcomm_open(NULL, &s), 0);
	hc_spawn(&c, replace_for_ever, &rounds);
	over.fd = c.in;
	do {
		int r = hcomm_join_table(s, path, 20, NULL, 2000, &d);
		const char *text = hcomm_last_error();
		bool few =
			strstr(text, "2 ranks") || strstr(text, "0 to 1") || strstr(text, "0..1");
		bool many =
			strstr(text, "8 ranks") || strstr(text, "0 to 7") || strstr(text, "0..7");

		if (r != HCOMM_E_INVALID || few == many)
			hc_fail("load %u: %s: %s", loads, hcomm_error_name(r), text);
		seen[many]++;
		loads++;
	} while (!poll(&over, 1, 0));
	hc_child_read(&c, &n, sizeof(n), 20000);
	ck_assert_uint_eq(n, rounds);
	ck_assert_int_eq(hc_child_wait(&c, 20000), 0);
	ck_assert_uint_gt(seen[0], 0);
	ck_assert_uint_gt(seen[1], 0);
	ck_assert(hc_node_alive(&node));
	hcomm_close(s);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_checked_fixture(t, begin, end);
	tcase_add_test(t, absent_directory_and_device_have_three_messages);
	tcase_add_test(t, a_file_of_another_user_is_a_matter_of_permission);
	tcase_add_test(t, every_load_sees_one_whole_table);
}

int main(void)
{
	return hc_suite_run("case_017_file_faults", add, 60);
}
