/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The database and its thread, as the core relies on them: numbers come back in order and only
 * for what is stored; many rows are one transaction; what was acknowledged is there at the next
 * start; a newer schema and a full disk are told and lose nothing that they need not.
 */
#include <check.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "codec.h"
#include "log.h"
#include "store.h"

#define BOOT    "11111111-2222-3333-4444-555555555555"
#define BOOT2   "99999999-2222-3333-4444-555555555555"
#define LIMIT_S 10 /* nothing here takes a tenth of it */

static char dir[256], path[300], why[1400];
static struct hc_db *db;
static struct hc_db_start begun;
static struct event_base *base;
static struct hc_store *store;
static uint64_t told[64], last;
static unsigned ntold;

static void on_done(void *arg, uint64_t persisted)
{
	(void)arg;
	ck_assert_uint_gt(persisted, last);
	last = persisted;
	if (ntold < 64)
		told[ntold++] = persisted;
}

static void open_db(const char *boot)
{
	ck_assert_msg(hc_db_open(path, boot, &db, &begun, why, sizeof(why)) == 0, "%s", why);
}

static void start_store(void)
{
	static const struct hc_store_limits limits = {14, 1000000};

	last = 0;
	ntold = 0;
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

/* No assertion that holds in a loop: each is written into libcheck's file, to which the limits on
 * files below apply as well, and a message that is cut spoils it. */
static void wait_for(uint64_t seq)
{
	double limit = seconds() + LIMIT_S;

	while (last < seq) {
		if (seconds() > limit)
			ck_abort_msg("number %llu did not come back", (unsigned long long)seq);
		event_base_loop(base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
	}
}

static struct hc_store_state state(void)
{
	struct hc_store_state st;

	hc_store_state(store, &st);
	return st;
}

static void wait_for_lost(bool lost)
{
	double limit = seconds() + LIMIT_S;

	while (state().lost != lost) {
		if (seconds() > limit)
			ck_abort_msg("the store is %slost", lost ? "not " : "still ");
		event_base_loop(base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
	}
}

static void put(uint64_t seq, uint64_t id, const char *row)
{
	hc_store_put(store, HC_PUT_DOMAIN, seq, id, row, (uint32_t)strlen(row));
}

/* The rows of the table `domain`, as "id=row id=row "; long ones are cut. */
#define SHOWN(bytes) ((bytes) < 24 ? (bytes) : 24)
static char *rows(void)
{
	static char text[4096];
	sqlite3_stmt *s;
	sqlite3 *h;

	text[0] = '\0';
	ck_assert_int_eq(sqlite3_open_v2(path, &h, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
	ck_assert_int_eq(
		sqlite3_prepare_v2(h, "SELECT id,row FROM domain ORDER BY id", -1, &s, NULL),
		SQLITE_OK);
	while (sqlite3_step(s) == SQLITE_ROW)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%lld=%.*s ",
			 sqlite3_column_int64(s, 0), SHOWN(sqlite3_column_bytes(s, 1)),
			 (const char *)sqlite3_column_blob(s, 1));
	sqlite3_finalize(s);
	sqlite3_close(h);
	return text;
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

/* ---- storing ---- */

START_TEST(what_was_acknowledged_is_there_at_the_next_start)
{
	open_db(BOOT);
	start_store();
	put(1, 10, "ten");
	put(2, 11, "eleven");
	put(3, 10, "TEN");
	hc_store_put(store, HC_DEL_DOMAIN, 4, 11, NULL, 0);
	hc_store_kick(store);
	wait_for(4);
	stop_store();
	ck_assert_str_eq(rows(), "10=TEN ");
}
END_TEST

START_TEST(rows_that_wait_are_one_transaction)
{
	uint64_t i, before;

	open_db(BOOT);
	start_store();
	before = state().commits;
	for (i = 1; i <= 10000; i++)
		put(i, i, "row");
	hc_store_kick(store);
	wait_for(10000);
	/* the first kick may find a sleeping thread early; far fewer than one for each row */
	ck_assert_uint_le(state().commits - before, 20);
}
END_TEST

START_TEST(rows_put_one_by_one_come_back_in_order)
{
	uint64_t i;

	open_db(BOOT);
	start_store();
	for (i = 1; i <= 50; i++) { /* on_done checks the order */
		put(i, i, "row");
		hc_store_kick(store);
		wait_for(i);
	}
	ck_assert_uint_eq(ntold, 50);
}
END_TEST

static pid_t writer_that_is_killed(int fd)
{
	pid_t child = fork();
	uint64_t i;

	ck_assert_int_ge(child, 0);
	if (child)
		return child;
	open_db(BOOT);
	base = event_base_new();
	start_store();
	for (i = 1;; i++) {
		put(i, i, "row");
		hc_store_kick(store);
		wait_for(i);
		if (write(fd, &i, sizeof(i)) != sizeof(i))
			_exit(1);
	}
}

static int count_row(void *arg, uint64_t id, const void *row, size_t len)
{
	(void)row;
	(void)len;
	if (id > *(uint64_t *)arg)
		*(uint64_t *)arg = id;
	return 0;
}

START_TEST(kill_loses_nothing_that_was_acknowledged)
{
	uint64_t acked = 0, stored = 0, i;
	int fds[2], status;
	pid_t child;

	ck_assert_int_eq(pipe(fds), 0);
	child = writer_that_is_killed(fds[1]);
	close(fds[1]);
	while (acked < 300)
		ck_assert_int_eq(read(fds[0], &acked, sizeof(acked)), sizeof(acked));
	kill(child, SIGKILL);
	waitpid(child, &status, 0);
	while (read(fds[0], &i, sizeof(i)) == sizeof(i))
		acked = i;
	close(fds[0]);
	open_db(BOOT);
	ck_assert_int_eq(hc_db_domains(db, count_row, &stored), 0);
	ck_assert_uint_ge(stored, acked);
	hc_db_close(db);
}
END_TEST

START_TEST(closing_leaves_no_log_behind)
{
	open_db(BOOT);
	start_store();
	put(1, 1, "row");
	hc_store_kick(store);
	stop_store(); /* without waiting: what was queued is stored all the same */
	ck_assert_uint_eq(files_with("-wal"), 0);
	ck_assert_uint_eq(files_with("-shm"), 0);
	ck_assert_str_eq(rows(), "1=row ");
}
END_TEST

/* ---- starts ---- */

START_TEST(starts_are_counted_and_the_incarnation_follows_boot_and_database)
{
	uint64_t first;

	open_db(BOOT);
	ck_assert(begun.made);
	ck_assert_uint_eq(begun.start, 1);
	first = begun.incarnation;
	ck_assert_uint_ne(first, 0);
	ck_assert_int_eq(hc_db_begin(db), 0);
	ck_assert_int_eq(hc_db_put_domain(db, 5, "row", 3), 0);
	ck_assert_int_eq(hc_db_commit(db), 0);
	hc_db_close(db);

	open_db(BOOT);
	ck_assert_uint_eq(begun.start, 2);
	ck_assert(begun.same_boot);
	ck_assert_uint_eq(begun.incarnation, first);
	hc_db_close(db);
	ck_assert_str_eq(rows(), "5=row ");

	open_db(BOOT2);
	ck_assert_uint_eq(begun.start, 3);
	ck_assert(!begun.same_boot);
	ck_assert_uint_ne(begun.incarnation, first);
	hc_db_close(db);
	ck_assert_str_eq(rows(), ""); /* domains of the old boot are gone */

	ck_assert_int_eq(unlink(path), 0);
	open_db(BOOT);
	ck_assert_uint_ne(begun.incarnation, first);
	hc_db_close(db);
}
END_TEST

START_TEST(the_node_id_has_a_mirror)
{
	static const uint8_t id[16] = {0, 0xff, 1, 2, 3};

	open_db(BOOT);
	ck_assert(!begun.has_node);
	ck_assert_int_eq(hc_db_set_node(db, id), 0);
	hc_db_close(db);
	open_db(BOOT);
	ck_assert(begun.has_node);
	ck_assert_mem_eq(begun.node, id, 16);
	hc_db_close(db);
}
END_TEST

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

START_TEST(an_empty_file_is_a_new_one)
{
	close(open(path, O_WRONLY | O_CREAT, 0600));
	open_db(BOOT);
	ck_assert(begun.made);
	ck_assert_str_eq(begun.problem, "");
	ck_assert_uint_eq(files_with("damaged"), 0);
	hc_db_close(db);
}
END_TEST

START_TEST(a_newer_schema_is_refused_and_left_alone)
{
	char before[4096], after[4096];
	FILE *f;
	sqlite3 *h;

	fill_some();
	ck_assert_int_eq(sqlite3_open(path, &h), SQLITE_OK);
	ck_assert_int_eq(sqlite3_exec(h, "PRAGMA user_version=99", NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(h);
	f = fopen(path, "r");
	ck_assert_uint_eq(fread(before, 1, sizeof(before), f), sizeof(before));
	fclose(f);
	ck_assert_int_eq(hc_db_open(path, BOOT, &db, &begun, why, sizeof(why)), HC_DB_REFUSED);
	ck_assert_ptr_nonnull(strstr(why, path));
	ck_assert_ptr_nonnull(strstr(why, "99"));
	f = fopen(path, "r");
	ck_assert_uint_eq(fread(after, 1, sizeof(after), f), sizeof(after));
	fclose(f);
	ck_assert_mem_eq(before, after, sizeof(before));
	ck_assert_uint_eq(files_with("damaged"), 0);
}
END_TEST

/* The row of a channel, as it is after its file was of schema 1. */
static int take_row(void *arg, uint64_t id, const void *row, size_t len)
{
	struct hc_m_channel_row *m = arg;

	ck_assert_uint_eq(id, 42);
	return hc_decode(&hc_desc_channel_row, HC_PROTO_MAX, row, len, m);
}

START_TEST(a_file_of_schema_1_is_brought_to_this_one)
{
	static uint8_t row[256];
	struct hc_m_channel_row m = {.channel = 42, .domain = 7, .slot = 3, .link = 2, .ends = 5};
	struct hc_m_channel_row got = {0};
	size_t len;
	sqlite3 *h;

	fill_some();
	open_db(BOOT);
	ck_assert_int_eq(hc_encode(&hc_desc_channel_row, HC_PROTO_MAX, &m, row, sizeof(row), &len),
			 0);
	/* the name, which is the last field and empty, was not there */
	ck_assert_int_eq(hc_db_begin(db), 0);
	ck_assert_int_eq(hc_db_put_channel(db, 42, row, len - 2), 0);
	ck_assert_int_eq(hc_db_commit(db), 0);
	hc_db_close(db);
	ck_assert_int_eq(sqlite3_open(path, &h), SQLITE_OK);
	ck_assert_int_eq(sqlite3_exec(h, "PRAGMA user_version=1", NULL, NULL, NULL), SQLITE_OK);
	if (_i) /* and the oldest had no channels at all */
		ck_assert_int_eq(sqlite3_exec(h, "DROP TABLE channel", NULL, NULL, NULL),
				 SQLITE_OK);
	sqlite3_close(h);
	for (unsigned k = 0; k < 2; k++) { /* once is enough: a second start changes nothing */
		open_db(BOOT);
		ck_assert(!begun.made);
		ck_assert_str_eq(begun.problem, "");
		ck_assert_int_eq(hc_db_channels(db, take_row, &got), 0);
		ck_assert_uint_eq(got.channel, _i ? 0 : 42);
		ck_assert_uint_eq(got.link, _i ? 0 : 2);
		ck_assert_uint_eq(got.ends, _i ? 0 : 5);
		ck_assert_uint_eq(got.link_name.len, 0);
		hc_db_close(db);
	}
	ck_assert_ptr_nonnull(strstr(rows(), "1="));
}
END_TEST

/* A domain as daemons stored it that knew nothing of other nodes. */
static int take_domain(void *arg, uint64_t id, const void *row, size_t len)
{
	struct hc_m_domain_row *m = arg;

	ck_assert_uint_eq(id, 42);
	return hc_decode(&hc_desc_domain_row, HC_PROTO_MAX, row, len, m);
}

START_TEST(a_file_of_schema_2_is_brought_to_this_one)
{
	static uint8_t row[512], list[256];
	static const uint8_t none[16];
	struct hc_m_domain_row m = {.id = 42, .epoch = 1, .nranks = 2, .slot = 3, .number = 9},
			       got = {0};
	struct hc_m_member_row r = {.pid = 900, .started = 9000, .state = 2, .block = 5};
	size_t len;
	sqlite3 *h;

	for (r.rank = 0; r.rank < 2; r.rank++)
		ck_assert_int_eq(hc_arr_put(&m.members, list, sizeof(list), &hc_desc_member_row,
					    HC_PROTO_MAX, &r),
				 0);
	ck_assert_int_eq(hc_encode(&hc_desc_domain_row, HC_PROTO_MAX, &m, row, sizeof(row), &len),
			 0);
	open_db(BOOT);
	ck_assert_int_eq(hc_db_begin(db), 0);
	/* the members were the last field: what follows is of another home, three arrays, a cause
	 */
	ck_assert_int_eq(hc_db_put_domain(db, 42, row, len - 46), 0);
	ck_assert_int_eq(hc_db_commit(db), 0);
	hc_db_close(db);
	ck_assert_int_eq(sqlite3_open(path, &h), SQLITE_OK);
	ck_assert_int_eq(sqlite3_exec(h, "PRAGMA user_version=2", NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(h);
	for (unsigned k = 0; k < 2; k++) { /* the first start reads it as it is then */
		open_db(BOOT);
		ck_assert_str_eq(begun.problem, "");
		ck_assert_int_eq(hc_db_domains(db, take_domain, &got), 0);
		ck_assert_uint_eq(got.id, 42);
		ck_assert_uint_eq(got.slot, 3);
		ck_assert_uint_eq(got.members.count, 2);
		ck_assert_uint_eq(got.far.count + got.at.count + got.gone.count, 0);
		ck_assert_mem_eq(got.home_id.b, none, 16);
		ck_assert_uint_eq(got.cause_kind, 0);
		ck_assert_uint_eq(got.cause_rank, HC_NONE);
		ck_assert_uint_eq(got.cause_pid, 0);
		if (k) { /* and it is replaced, not added */
			ck_assert_int_eq(hc_db_put_domain(db, 42, row, len), 0);
			ck_assert_int_eq(hc_db_domains(db, take_domain, &got), 0);
		}
		hc_db_close(db);
	}
}
END_TEST

/* ---- a full disk ---- */

static void limit_files(rlim_t bytes)
{
	struct rlimit l;

	ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &l), 0);
	l.rlim_cur = bytes;
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &l), 0);
}

START_TEST(a_full_disk_is_told_and_rows_are_written_later)
{
	static char big[60000];
	uint64_t seq;

	signal(SIGXFSZ, SIG_IGN);
	memset(big, 'x', sizeof(big) - 1);
	open_db(BOOT);
	start_store();
	put(1, 1, "before");
	hc_store_kick(store);
	wait_for(1);

	limit_files(200000);
	for (seq = 2; !state().lost && seq < 100; seq++) {
		put(seq, seq, big);
		hc_store_kick(store);
		wait_for(seq); /* life goes on */
	}
	wait_for_lost(true);
	ck_assert_ptr_nonnull(strstr(state().why, "disk"));
	put(seq, 1000, "kept");
	put(seq + 1, 1001, "made and ended meanwhile");
	hc_store_put(store, HC_DEL_DOMAIN, seq + 2, 1001, NULL, 0);
	hc_store_put(store, HC_DEL_DOMAIN, seq + 3, 1, NULL, 0);
	hc_store_kick(store);
	wait_for(seq + 3);
	ck_assert(state().lost);

	limit_files(RLIM_INFINITY);
	wait_for_lost(false);
	put(seq + 4, 1002, "after");
	hc_store_kick(store);
	wait_for(seq + 4);
	stop_store();
	ck_assert_ptr_nonnull(strstr(rows(), "1000=kept 1002=after "));
	ck_assert_ptr_null(strstr(rows(), "1=before"));
	ck_assert_ptr_null(strstr(rows(), "1001="));
	open_db(BOOT);
	ck_assert_str_eq(begun.problem, ""); /* and the file is sound */
	hc_db_close(db);
}
END_TEST

START_TEST(a_start_on_a_full_disk_uses_no_number_twice)
{
	uint32_t first;

	signal(SIGXFSZ, SIG_IGN);
	open_db(BOOT);
	first = begun.start;
	hc_db_close(db);
	limit_files(4096);
	open_db(BOOT);
	ck_assert(!begun.stored);
	ck_assert_uint_gt(begun.start, first + 1);
	start_store();
	ck_assert(state().lost);
	limit_files(RLIM_INFINITY);
	wait_for_lost(false);
	first = begun.start;
	stop_store();
	open_db(BOOT);
	ck_assert_uint_gt(begun.start, first);
	hc_db_close(db);
}
END_TEST

/* ---- the journal ---- */

struct reading {
	struct hc_store_query query; /* first */
	char text[4096];
	bool done;
};

static int read_row(struct hc_store_query *q, const struct hc_db_event *e)
{
	struct reading *r = (struct reading *)q;

	snprintf(r->text + strlen(r->text), sizeof(r->text) - strlen(r->text), "%.*s ",
		 (int)e->text.len, e->text.p);
	return 0;
}

static void read_done(struct hc_store_query *q)
{
	((struct reading *)q)->done = true;
}

static char *journal(const struct hc_db_filter *f)
{
	static struct reading r;
	double limit = seconds() + LIMIT_S;

	memset(&r, 0, sizeof(r));
	r.query.filter = *f;
	r.query.row = read_row;
	r.query.done = read_done;
	hc_store_ask(store, &r.query);
	while (!r.done) {
		ck_assert(seconds() < limit);
		event_base_loop(base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
	}
	ck_assert_int_eq(r.query.result, 0);
	return r.text;
}

static void put_event(uint64_t seq, uint64_t domain, const char *text)
{
	struct hc_m_event_row m = {.domain = domain, .rank = HC_NONE, .text = hc_str(text)};
	uint8_t row[256];
	size_t len;

	ck_assert_int_eq(hc_encode(&hc_desc_event_row, HC_PROTO_MAX, &m, row, sizeof(row), &len),
			 0);
	hc_store_put(store, HC_ADD_EVENT, seq, 0, row, (uint32_t)len);
}

START_TEST(the_journal_is_read_by_domain_number_and_count)
{
	open_db(BOOT);
	start_store();
	put_event(1, 7, "a");
	put_event(2, 8, "b");
	put_event(3, 0, "c");
	put_event(4, 7, "d");
	put_event(5, 7, "e");
	hc_store_kick(store);
	wait_for(5);
	ck_assert_str_eq(journal(&(struct hc_db_filter){0}), "a b c d e ");
	ck_assert_str_eq(journal(&(struct hc_db_filter){.domain = 7}), "a d e ");
	ck_assert_str_eq(journal(&(struct hc_db_filter){.after = 3}), "d e ");
	ck_assert_str_eq(journal(&(struct hc_db_filter){.limit = 2}), "a b ");
	ck_assert_str_eq(journal(&(struct hc_db_filter){.limit = 2, .newest = true}), "d e ");
	ck_assert_str_eq(journal(&(struct hc_db_filter){.domain = 7, .limit = 2, .newest = true}),
			 "d e ");
	ck_assert_str_eq(journal(&(struct hc_db_filter){.since_ns = INT64_MAX}), "");
}
END_TEST

static int count_event(void *arg, const struct hc_db_event *e)
{
	(void)e;
	++*(unsigned *)arg;
	return 0;
}

static unsigned events(void)
{
	unsigned n = 0;

	ck_assert_int_eq(hc_db_events(db, &(struct hc_db_filter){0}, count_event, &n), 0);
	return n;
}

START_TEST(the_journal_keeps_its_bounds)
{
	const uint64_t day = 86400000000000ull;
	struct hc_db_event e = {.wall_ns = 100 * day};
	bool more = true;
	unsigned i;

	open_db(BOOT);
	ck_assert_int_eq(hc_db_begin(db), 0);
	for (i = 0; i < 1000; i++) {
		e.wall_ns = (100 + i / 100) * day; /* a hundred a day, ten days */
		ck_assert_int_eq(hc_db_add_event(db, &e), 0);
	}
	ck_assert_int_eq(hc_db_commit(db), 0);
	ck_assert_int_eq(hc_db_prune(db, 109 * day, 14, 1000000, &more), 0);
	ck_assert_uint_eq(events(), 1000);
	ck_assert_int_eq(hc_db_prune(db, 109 * day, 4, 1000000, &more), 0);
	ck_assert_uint_eq(events(), 500); /* days 105 to 109 */
	ck_assert_int_eq(hc_db_prune(db, 109 * day, 14, 120, &more), 0);
	ck_assert_uint_eq(events(), 120);
	ck_assert(!more);
	ck_assert_int_eq(hc_db_prune(db, 1000 * day, 14, 120, &more), 0);
	ck_assert_uint_eq(events(), 0);
	hc_db_close(db);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("store");
	TCase *t = tcase_create("store");
	SRunner *r;
	int failed;

	tcase_set_timeout(t, 60);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, what_was_acknowledged_is_there_at_the_next_start);
	tcase_add_test(t, rows_that_wait_are_one_transaction);
	tcase_add_test(t, rows_put_one_by_one_come_back_in_order);
	tcase_add_test(t, kill_loses_nothing_that_was_acknowledged);
	tcase_add_test(t, closing_leaves_no_log_behind);
	tcase_add_test(t, starts_are_counted_and_the_incarnation_follows_boot_and_database);
	tcase_add_test(t, the_node_id_has_a_mirror);
	tcase_add_test(t, an_empty_file_is_a_new_one);
	tcase_add_test(t, a_newer_schema_is_refused_and_left_alone);
	tcase_add_loop_test(t, a_file_of_schema_1_is_brought_to_this_one, 0, 2);
	tcase_add_test(t, a_file_of_schema_2_is_brought_to_this_one);
	tcase_add_test(t, a_full_disk_is_told_and_rows_are_written_later);
	tcase_add_test(t, a_start_on_a_full_disk_uses_no_number_twice);
	tcase_add_test(t, the_journal_is_read_by_domain_number_and_count);
	tcase_add_test(t, the_journal_keeps_its_bounds);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
