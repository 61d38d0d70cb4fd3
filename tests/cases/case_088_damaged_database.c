/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Case 88. Damaged database at start.
 *
 * "malformed", and the service never comes up until somebody deletes the file by hand. Here a
 * damaged file is moved aside with a time stamp, a new one is begun, and one line says so; at most
 * three are kept. An empty file is a new one. A file of a newer schema is refused and not touched.
 */
#include "dbcheck.h"
#include "ranks.h"
#include "raw.h"
#include "suite.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { START_MS = 2000, KEPT = 3 };

static struct hc_node node;
static struct hc_run run;
static char db[200];

static void prepare(void)
{
	hc_node_prepare(&node, 2, NULL, NULL);
	setenv("HCOMM_SOCKET", node.socket, 1);
	snprintf(db, sizeof(db), "%s/state/state.db", node.dir);
}

/* A database with a domain in it, of a daemon that has stopped. */
static void make_good(void)
{
	struct hc_rank r[2];

	hc_node_run(&node);
	hc_ranks_start(r, 2, "stored");
	hc_node_stop(&node);
	hc_rank_kill(&r[0]);
	hc_rank_kill(&r[1]);
}

static unsigned count_aside(void)
{
	char dir[200];
	struct dirent *e;
	unsigned n = 0;
	DIR *d;

	snprintf(dir, sizeof(dir), "%s/state", node.dir);
	d = opendir(dir);
	ck_assert_ptr_nonnull(d);
	while ((e = readdir(d)))
		n += !strncmp(e->d_name, "state.db.", 9) && !strstr(e->d_name, "-wal") &&
		     !strstr(e->d_name, "-shm");
	closedir(d);
	return n;
}

static void write_at(off_t at, const void *bytes, size_t n)
{
	int fd = open(db, O_WRONLY | O_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(pwrite(fd, bytes, n, at), (ssize_t)n);
	close(fd);
}

/* It starts in time, works, and the old file is beside it; one line says so. */
static void want_begun_anew(unsigned aside)
{
	struct hcomm_view_domain d;
	uint64_t began = hc_now_ms();

	hc_node_run(&node);
	ck_assert_uint_lt(hc_now_ms() - began, hc_patience(START_MS));
	ck_assert_uint_eq(count_aside(), aside);
	ck_assert_uint_eq(hc_log_count(&node, "error:"), aside);
	ck_assert(!hc_ask_domain("stored", &d));
	if (aside)
		ck_assert(hc_node_logged(&node, "is damaged; moved to"));
}

START_TEST(garbage)
{
	prepare();
	hc_copy_file("tests/cases/open/c088-garbage.db", db);
	want_begun_anew(1);
	hc_node_end(&node);
}
END_TEST

START_TEST(page_2_is_overwritten)
{
	static unsigned char noise[4096];
	size_t i;

	prepare();
	make_good();
	for (i = 0; i < sizeof(noise); i++)
		noise[i] = (unsigned char)(i * 37 + 11);
	write_at(4096, noise, sizeof(noise));
	want_begun_anew(1);
	hc_node_end(&node);
}
END_TEST

START_TEST(cut_to_half)
{
	struct stat st;

	prepare();
	make_good();
	ck_assert_int_eq(stat(db, &st), 0);
	ck_assert_int_eq(truncate(db, st.st_size / 2), 0);
	want_begun_anew(1);
	hc_node_end(&node);
}
END_TEST

START_TEST(no_bytes_are_a_new_one)
{
	prepare();
	hc_write_file(db, "");
	want_begun_anew(0);
	hc_node_end(&node);
}
END_TEST

/* The log of another database beside it: it fits in no salt or checksum, and is not folded in. */
START_TEST(the_log_of_another_database)
{
	char wal[220], saved[220];
	struct hc_dbcheck c;
	struct hc_rank r[2];

	prepare();
	snprintf(wal, sizeof(wal), "%s-wal", db);
	snprintf(saved, sizeof(saved), "%s/other-wal", node.dir);
	hc_node_run(&node);
	hc_ranks_start(r, 2, "stored");
	hc_node_kill(&node);
	hc_rank_kill(&r[0]);
	hc_rank_kill(&r[1]);
	hc_copy_file(wal, saved);
	unlink(wal);
	unlink(db);
	hc_node_run(&node);
	hc_node_stop(&node);
	hc_copy_file(saved, wal);
	hc_node_run(&node);
	ck_assert(hc_socket_answers(node.socket));
	hc_node_stop(&node);
	hc_dbcheck_read(&c, &node);
	ck_assert_str_eq(c.integrity, "ok");
	hc_dbcheck_fini(&c);
	hc_node_end(&node);
}
END_TEST

START_TEST(a_schema_from_the_future)
{
	char *before, *after;
	struct stat a, b;

	prepare();
	make_good();
	hc_db_exec(&node, "PRAGMA user_version=4711");
	ck_assert_int_eq(stat(db, &a), 0);
	before = hc_read_file(db);
	ck_assert_int_ne(hc_raw_daemon(&run, &node, 10000), 0);
	ck_assert_int_lt(run.status, 124);
	ck_assert_msg(strstr(run.err, "schema version 4711") && strstr(run.err, "left untouched"),
		      "%s", run.err);
	ck_assert_int_eq(stat(db, &b), 0);
	after = hc_read_file(db);
	ck_assert_int_eq(a.st_size, b.st_size);
	ck_assert_int_eq(memcmp(before, after, (size_t)a.st_size), 0);
	ck_assert_uint_eq(count_aside(), 0);
	free(before);
	free(after);
	hc_node_end(&node);
}
END_TEST

START_TEST(three_are_kept)
{
	unsigned i;

	prepare();
	for (i = 1; i <= 5; i++) {
		hc_write_file(db, "no database at all, but some bytes that stand where one was\n");
		hc_node_run(&node);
		ck_assert_uint_eq(count_aside(), i < KEPT ? i : KEPT);
		hc_node_stop(&node);
	}
	hc_node_end(&node);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_test(t, garbage);
	tcase_add_test(t, page_2_is_overwritten);
	tcase_add_test(t, cut_to_half);
	tcase_add_test(t, no_bytes_are_a_new_one);
	tcase_add_test(t, the_log_of_another_database);
	tcase_add_test(t, a_schema_from_the_future);
	tcase_add_test(t, three_are_kept);
}

int main(void)
{
	return hc_suite_run("case_088_damaged_database", add, 60);
}
