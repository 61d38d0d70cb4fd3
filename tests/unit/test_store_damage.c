/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A damaged database: what decides something is checked before a start, whichever page of it was
 * hit, and the rest by the daemon that runs; either way it is told and the file is put aside.
 */
#include <check.h>
#include <dirent.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "log.h"
#include "store.h"

#define BOOT       "11111111-2222-3333-4444-555555555555"
#define BOOT2      "99999999-2222-3333-4444-555555555555"
#define LIMIT_S    10
#define PAGE_BYTES 4096
#define PAGES_MAX  64

static char dir[256], path[300], why[1400];
static struct hc_db *db;
static struct hc_db_start begun;
static struct event_base *base;
static struct hc_store *store;
static uint64_t last;

static void on_done(void *arg, uint64_t persisted)
{
	(void)arg;
	last = persisted;
}

static void setup(void)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(dir, sizeof(dir), "%s/hc-store-XXXXXX", tmp ? tmp : "/tmp");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/state.db", dir);
	base = event_base_new();
	hc_log_open(HC_LOG_STDERR, HC_LOG_ERROR, 10);
	hc_log_to(open("/dev/null", O_WRONLY | O_CLOEXEC));
}

static void teardown(void)
{
	char name[600];
	struct dirent *e;
	DIR *d = opendir(dir);

	hc_store_stop(store);
	event_base_free(base);
	while ((e = readdir(d))) {
		snprintf(name, sizeof(name), "%s/%s", dir, e->d_name);
		if (e->d_name[0] != '.')
			unlink(name);
	}
	closedir(d);
	rmdir(dir);
}

static void open_db(const char *boot)
{
	ck_assert_msg(hc_db_open(path, boot, &db, &begun, why, sizeof(why)) == 0, "%s", why);
}

static void start_store(void)
{
	static const struct hc_store_limits limits = {14, 1000000};

	ck_assert_int_eq(hc_store_start(base, db, &begun, &limits, on_done, NULL, &store), 0);
	db = NULL;
}

static void stop_store(void)
{
	hc_store_stop(store);
	store = NULL;
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static struct hc_store_state state(void)
{
	struct hc_store_state st;

	hc_store_state(store, &st);
	return st;
}

static unsigned files_with(const char *word)
{
	struct dirent *e;
	unsigned n = 0;
	DIR *d = opendir(dir);

	while ((e = readdir(d)))
		n += strstr(e->d_name, word) != NULL;
	closedir(d);
	return n;
}

static void write_bytes(long offset, size_t len)
{
	int fd = open(path, O_WRONLY);
	size_t i;

	ck_assert_int_ge(fd, 0);
	for (i = 0; i < len; i++)
		ck_assert_int_eq(pwrite(fd, "\xa5", 1, offset + (long)i), 1);
	close(fd);
}

static void fill_some(void)
{
	uint64_t i;

	open_db(BOOT);
	ck_assert_int_eq(hc_db_begin(db), 0);
	for (i = 1; i <= 200; i++)
		ck_assert_int_eq(hc_db_put_domain(db, i, path, strlen(path)), 0);
	ck_assert_int_eq(hc_db_commit(db), 0);
	hc_db_close(db);
}

static int no_row(void *arg, uint64_t id, const void *row, size_t len)
{
	(void)arg;
	(void)row;
	(void)len;
	ck_abort_msg("domain %llu in a new database", (unsigned long long)id);
	return -1;
}

static void damage(int kind)
{
	FILE *f;

	switch (kind) {
	case 0: /* no database at all */
		f = fopen(path, "w");
		fputs("this is not a database, but long enough to look like one ............", f);
		fclose(f);
		break;
	case 1: write_bytes(4096, 4096); break; /* page 2 */
	case 2: ck_assert_int_eq(truncate(path, 8192), 0); break;
	case 3: write_bytes(0, 100); break; /* the head */
	}
}

START_TEST(a_damaged_file_is_moved_aside_and_a_new_one_begun)
{
	fill_some();
	damage(_i);
	open_db(BOOT);
	ck_assert(begun.made);
	ck_assert_ptr_nonnull(strstr(begun.problem, path));
	ck_assert_ptr_nonnull(strstr(begun.problem, "damaged"));
	ck_assert_uint_eq(files_with("damaged"), 1);
	ck_assert_int_eq(hc_db_domains(db, no_row, NULL), 0);
	hc_db_close(db);
}
END_TEST

START_TEST(three_damaged_files_are_kept)
{
	int i;

	for (i = 0; i < 6; i++) {
		damage(0);
		open_db(BOOT);
		hc_db_close(db);
	}
	ck_assert_uint_eq(files_with("damaged"), 3);
}
END_TEST

/* Page numbers of a table's leaves, from the tables of sqlite itself. */
static unsigned leaves(const char *table, long *page, unsigned max)
{
	char text[160];
	sqlite3_stmt *s;
	sqlite3 *h;
	unsigned n = 0;

	snprintf(text, sizeof(text),
		 "SELECT pageno FROM dbstat WHERE name='%s' AND pagetype='leaf'", table);
	ck_assert_int_eq(sqlite3_open_v2(path, &h, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
	ck_assert_int_eq(sqlite3_prepare_v2(h, text, -1, &s, NULL), SQLITE_OK);
	while (n < max && sqlite3_step(s) == SQLITE_ROW)
		page[n++] = (long)sqlite3_column_int64(s, 0);
	sqlite3_finalize(s);
	sqlite3_close(h);
	return n;
}

static void fill_journal(void)
{
	const struct hc_db_event e = {.wall_ns = 1, .kind = 1, .text = hc_str(path)};
	int i;

	open_db(BOOT);
	ck_assert_int_eq(hc_db_begin(db), 0);
	for (i = 0; i < 500; i++)
		ck_assert_int_eq(hc_db_add_event(db, &e), 0);
	ck_assert_int_eq(hc_db_commit(db), 0);
	hc_db_close(db);
}

START_TEST(any_page_of_the_domains_is_checked_before_a_start)
{
	long page[PAGES_MAX];
	unsigned n, i;

	fill_some();
	n = leaves("domain", page, PAGES_MAX);
	ck_assert_uint_gt(n, 1);
	for (i = 0; i < n; i++) {
		unlink(path);
		fill_some();
		write_bytes((page[i] - 1) * PAGE_BYTES, 64);
		open_db(BOOT);
		ck_assert_msg(begun.made && begun.problem[0], "page %ld", page[i]);
		hc_db_close(db);
	}
}
END_TEST

static void wait_for_damage(void)
{
	double limit = seconds() + LIMIT_S;

	while (!state().damaged) {
		ck_assert_msg(seconds() < limit, "the damage is not found");
		event_base_loop(base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
	}
}

/* The domains are sound, so the daemon serves them; what is wrong is told, and put aside later. */
START_TEST(a_damaged_journal_is_found_by_the_running_daemon)
{
	long page[PAGES_MAX];

	fill_some();
	fill_journal();
	ck_assert_uint_gt(leaves("event", page, PAGES_MAX), 8);
	write_bytes((page[7] - 1) * PAGE_BYTES, 64);
	open_db(BOOT);
	ck_assert(!begun.made);
	ck_assert_str_eq(begun.problem, "");
	start_store();
	hc_store_put(store, HC_PUT_DOMAIN, 1, 1, "row", 3);
	hc_store_kick(store);
	wait_for_damage();
	ck_assert_uint_eq(last, 1); /* it was stored all the same */
	stop_store();
	open_db(BOOT);
	ck_assert(begun.made);
	ck_assert_ptr_nonnull(strstr(begun.problem, "damaged"));
	ck_assert_uint_eq(files_with("damaged"), 1);
	hc_db_close(db);
}
END_TEST

/* Power may have been lost. */
START_TEST(after_a_boot_the_journal_is_checked_before_a_start)
{
	long page[PAGES_MAX];

	fill_journal();
	ck_assert_uint_gt(leaves("event", page, PAGES_MAX), 8);
	write_bytes((page[7] - 1) * PAGE_BYTES, 64);
	open_db(BOOT2);
	ck_assert(begun.made);
	ck_assert_uint_eq(files_with("damaged"), 1);
	hc_db_close(db);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("store_damage");
	TCase *t = tcase_create("store_damage");
	SRunner *r;
	int failed;

	tcase_set_timeout(t, 60);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_loop_test(t, a_damaged_file_is_moved_aside_and_a_new_one_begun, 0, 4);
	tcase_add_test(t, three_damaged_files_are_kept);
	tcase_add_test(t, any_page_of_the_domains_is_checked_before_a_start);
	tcase_add_test(t, a_damaged_journal_is_found_by_the_running_daemon);
	tcase_add_test(t, after_a_boot_the_journal_is_checked_before_a_start);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
