/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hcommctl key generate, and what a daemon makes of the file: the one writes exactly what the
 * other takes, nothing is overwritten by accident, nothing half-made is left behind.
 */
#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pairs.h"
#include "ranks.h"
#include "raw.h"
#include "suite.h"

static struct hc_run run;
static char dir[128], file[160];

static void setup(void)
{
	hc_tempdir(dir, sizeof(dir));
	snprintf(file, sizeof(file), "%s/cluster.key", dir);
}

static int generate(const char *option)
{
	static char noun[] = "key", verb[] = "generate";
	char program[1200], last[32] = "";
	char *argv[] = {program, noun, verb, file, option ? last : NULL, NULL};

	snprintf(last, sizeof(last), "%s", option ? option : "");
	hc_program("hcommctl", program, sizeof(program));
	return hc_run(&run, 20000, argv);
}

static unsigned entries(void)
{
	struct dirent *e;
	unsigned n = 0;
	DIR *d = opendir(dir);

	hc_want(d != NULL);
	while ((e = readdir(d)))
		n += e->d_name[0] != '.';
	closedir(d);
	return n;
}

static char *key_text(void)
{
	char *text = hc_read_file(file);

	ck_assert_ptr_nonnull(text);
	ck_assert_uint_eq(strlen(text), 65);
	ck_assert_uint_eq(strspn(text, "0123456789abcdef"), 64);
	ck_assert_int_eq(text[64], '\n');
	return text;
}

START_TEST(it_writes_a_key_and_says_what_comes_next)
{
	struct stat st;
	char *text;

	umask(0);
	ck_assert_int_eq(generate(NULL), 0);
	ck_assert_int_eq(stat(file, &st), 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0400);
	text = key_text();
	ck_assert_ptr_nonnull(strstr(run.out, file));
	ck_assert_ptr_nonnull(strstr(run.out, "all nodes"));
	ck_assert_msg(!strstr(run.out, "\n\n") && !strstr(run.out, text), "%s", run.out);
	text[16] = '\0';
	ck_assert_msg(!strstr(run.out, text), "the key is shown: %s", run.out);
	free(text);
	ck_assert_uint_eq(entries(), 1);
}
END_TEST

START_TEST(another_key_is_replaced_only_when_told)
{
	char *first, *second;

	ck_assert_int_eq(generate(NULL), 0);
	first = key_text();
	ck_assert_int_eq(generate(NULL), 1);
	ck_assert_str_eq(run.out, "");
	ck_assert_msg(strstr(run.err, file) && strstr(run.err, "--force"), "%s", run.err);
	second = key_text();
	ck_assert_str_eq(first, second);
	free(second);
	ck_assert_int_eq(generate("--force"), 0);
	second = key_text();
	ck_assert_str_ne(first, second);
	free(first);
	free(second);
	ck_assert_uint_eq(entries(), 1);
}
END_TEST

START_TEST(what_cannot_be_written_leaves_nothing)
{
	snprintf(file, sizeof(file), "%s/none/cluster.key", dir);
	ck_assert_int_eq(generate(NULL), 1);
	ck_assert_msg(strstr(run.err, file) && strstr(run.err, "No such file"), "%s", run.err);
	ck_assert_uint_eq(entries(), 0);
	ck_assert_int_eq(generate("--froce"), 2);
	ck_assert_msg(strstr(run.err, "force") != NULL, "%s", run.err);
}
END_TEST

START_TEST(a_daemon_takes_it_and_refuses_what_others_can_read)
{
	struct hcomm_view_status s;
	struct hc_node n;
	char cure[200];

	hc_node_prepare(&n, 1, "listen_address = 127.0.0.1\nlisten_port = 24000-24099", NULL);
	snprintf(file, sizeof(file), "%s/no.key", n.dir); /* where its configuration looks */
	ck_assert_int_eq(generate(NULL), 0);
	hc_node_run(&n);
	setenv("HCOMM_SOCKET", n.socket, 1);
	hc_ask_status(&s);
	ck_assert_str_eq(s.security, "key");
	ck_assert_uint_ge(s.listen_port, 24000);
	hc_node_stop(&n);
	ck_assert_int_eq(chmod(file, 0644), 0);
	ck_assert_int_eq(hc_raw_daemon(&run, &n, 5000), 2);
	snprintf(cure, sizeof(cure), "chmod 0400 %s", file);
	ck_assert_msg(strstr(run.err, cure) != NULL, "%s", run.err);
	hc_node_end(&n);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_checked_fixture(t, setup, NULL);
	tcase_add_test(t, it_writes_a_key_and_says_what_comes_next);
	tcase_add_test(t, another_key_is_replaced_only_when_told);
	tcase_add_test(t, what_cannot_be_written_leaves_nothing);
	tcase_add_test(t, a_daemon_takes_it_and_refuses_what_others_can_read);
}

int main(void)
{
	hc_ports_own("test_key");
	return hc_suite_run("key", add, 60);
}
