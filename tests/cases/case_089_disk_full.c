/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Case 89: the disk is full while the daemon runs.
 *
 * It crashed without a word, or the state was lost at the next start. Here the rule is: what is
 * made meanwhile is granted and marked as not persistent, what was stored stays so, whoever
 * follows events is told, and when there is room again everything that lives is in the database
 * within five seconds. A full disk for the log stops nobody either.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ranks.h"
#include "raw.h"
#include "suite.h"

enum { COW_BYTES = 48 << 20, ROUNDS = 100, KEPT_EACH = 10, KEPT = ROUNDS / KEPT_EACH };

static struct hc_node node;
static struct hcomm_session *session;
static hcomm_domain kept[KEPT];
static unsigned lost_told, back_told;
static char filler[200];

static bool mount_small(const char *dir, const char *size)
{
	if (!geteuid() && !unshare(CLONE_NEWNS) &&
	    !mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) &&
	    !mount("tmpfs", dir, "tmpfs", 0, size))
		return true;
	printf("SKIP: a small file system needs root: %s\n", strerror(errno));
	return false;
}

/*
 * On copy-on-write every change of a page that is there already needs room, too: also of pages that
 * are mapped, where want of it is a SIGBUS and no error code.
 */
static bool mount_cow(const char *dir)
{
	static struct hc_run run;
	char shell[] = "/bin/sh", option[] = "-c", command[900];
	char *argv[] = {shell, option, command, NULL};

	if (geteuid() || unshare(CLONE_NEWNS) ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL)) {
		printf("SKIP: a file system of its own needs root: %s\n", strerror(errno));
		return false;
	}
	snprintf(command, sizeof(command),
		 "PATH=$PATH:/sbin:/usr/sbin; truncate -s %d %s/cow.img && "
		 "mkfs.btrfs -q -M %s/cow.img && mount -o loop %s/cow.img %s",
		 COW_BYTES, node.dir, node.dir, node.dir, dir);
	if (!hc_run(&run, 20000, argv))
		return true;
	printf("SKIP: no copy-on-write file system here: %s\n", run.err);
	return false;
}

static bool mount_state(const char *dir, bool cow)
{
	return cow ? mount_cow(dir) : mount_small(dir, "size=1m");
}

static void fill(void)
{
	static const char zero[4096];
	int fd = open(filler, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	ssize_t n;

	ck_assert_int_ge(fd, 0);
	while ((n = write(fd, zero, sizeof(zero))) > 0)
		;
	ck_assert_int_eq(errno, ENOSPC);
	close(fd);
}

static void on_event(const struct hcomm_event *e, void *context)
{
	(void)context;
	lost_told += e->code == 20; /* storage-lost */
	back_told += e->code == 21; /* storage-back */
}

static bool has_heard(void *ctx)
{
	const unsigned *what = ctx;

	hcomm_dispatch(session, 0);
	return *what > 0;
}

static hcomm_domain make(const char *name)
{
	struct hcomm_config config = HCOMM_INIT(struct hcomm_config);
	hcomm_domain d;

	config.name = name;
	config.shared = 1;
	if (hcomm_join_all_local(session, NULL, 0, &config, 5000, &d))
		hc_fail("%s: %s", name, hcomm_last_error());
	return d;
}

static bool is_persistent(const char *name)
{
	struct hcomm_view_domain row;

	if (!hc_ask_domain(name, &row))
		hc_fail("there is no %s", name);
	ck_assert_str_eq(row.state, "ACTIVE");
	return row.persistent;
}

/* The daemon locks its database, so a copy is asked; its log has what is not yet in the file. */
static void copy_database(char *path, size_t size)
{
	char command[800];

	snprintf(path, size, "%s/copy.db", node.dir);
	snprintf(command, sizeof(command),
		 "cd %s && rm -f copy.db* && cp state/state.db copy.db && "
		 "if [ -e state/state.db-wal ]; then cp state/state.db-wal copy.db-wal; fi",
		 node.dir);
	ck_assert_int_eq(system(command), 0);
}

static int64_t number_of(const char *query)
{
	char path[200];
	sqlite3_stmt *st;
	sqlite3 *db;
	int64_t n = -1;

	copy_database(path, sizeof(path));
	ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
	sqlite3_busy_timeout(db, 2000);
	if (sqlite3_prepare_v2(db, query, -1, &st, NULL) == SQLITE_OK &&
	    sqlite3_step(st) == SQLITE_ROW)
		n = !strcmp((const char *)sqlite3_column_text(st, 0), "ok")
			    ? 1
			    : sqlite3_column_int64(st, 0);
	sqlite3_finalize(st);
	sqlite3_close(db);
	return n;
}

static bool all_in_database(void *ctx)
{
	(void)ctx;
	return number_of("SELECT count(*) FROM domain") == KEPT + 1;
}

static bool status_is(void *ctx)
{
	struct hcomm_view_status s;

	hc_ask_status(&s);
	return !strcmp(s.health, ctx);
}

static void make_and_destroy(void)
{
	char name[32];
	hcomm_domain d;

	for (unsigned i = 0; i < ROUNDS; i++) {
		snprintf(name, sizeof(name), "round-%u", i);
		d = make(name);
		if (i % KEPT_EACH == 0)
			kept[i / KEPT_EACH] = d;
		else if (hcomm_destroy(d, 5000))
			hc_fail("destroy %u: %s", i, hcomm_last_error());
	}
}

START_TEST(a_full_disk_is_told_and_made_good)
{
	struct hcomm_op op;
	hcomm_domain before;
	struct hcomm_view_event e;
	char state[180], name[32];
	uint64_t freed;

	hc_node_prepare(&node, 2, NULL, NULL);
	setenv("HCOMM_SOCKET", node.socket, 1);
	snprintf(state, sizeof(state), "%s/state", node.dir);
	snprintf(filler, sizeof(filler), "%s/filler", state);
	if (!mount_state(state, _i == 1))
		return;
	hc_node_run(&node);
	ck_assert_int_eq(hcomm_open(NULL, &session), 0);
	ck_assert_int_eq(hcomm_on_event(session, on_event, NULL), 0);
	ck_assert_int_eq(hcomm_subscribe(session, 0, 1), 0);
	before = make("before");
	ck_assert(is_persistent("before"));
	fill();

	make_and_destroy();
	ck_assert(hc_node_alive(&node));
	ck_assert(status_is((char[]){"degraded"}));
	hc_await("storage-lost", has_heard, &lost_told, 5000);
	ck_assert(is_persistent("before"));
	for (unsigned i = ROUNDS / 2; i < ROUNDS; i += KEPT_EACH) { /* certainly after it */
		snprintf(name, sizeof(name), "round-%u", i);
		ck_assert(!is_persistent(name));
	}
	ck_assert_int_eq(hcomm_op_begin_rank(before, 0, HCOMM_OP_SEND, 1, 0, &op), 0);
	ck_assert_int_eq(hcomm_op_end(&op), 0);

	freed = hc_now_ms();
	ck_assert_int_eq(unlink(filler), 0);
	if (!hc_wait_until(all_in_database, NULL, 5000))
		hc_fail("%lld domains are in the database; wanted: %d",
			(long long)number_of("SELECT count(*) FROM domain"), KEPT + 1);
	hc_await("a status without remark", status_is, (char[]){"ok"}, 5000);
	hc_await("storage-back", has_heard, &back_told, 5000);
	ck_assert_uint_lt(hc_now_ms() - freed, hc_patience(6000));
	ck_assert_int_eq(number_of("PRAGMA integrity_check"), 1);
	for (unsigned i = 0; i < ROUNDS; i += KEPT_EACH) {
		snprintf(name, sizeof(name), "round-%u", i);
		ck_assert(is_persistent(name));
	}
	ck_assert(hc_ask_event("storage-lost", &e));
	ck_assert(hc_ask_event("storage-back", &e));
	ck_assert_uint_eq(lost_told, 1);
	for (unsigned i = 0; i < KEPT; i++)
		ck_assert_int_eq(hcomm_destroy(kept[i], 5000), 0);
	ck_assert_int_eq(hcomm_destroy(before, 5000), 0);
	ck_assert_int_eq(number_of("SELECT count(*) FROM domain"), 0);
	hcomm_close(session);
	hc_node_end(&node);
	umount2(state, MNT_DETACH);
}
END_TEST

START_TEST(a_full_disk_for_the_log)
{
	char dir[180], link[190];

	hc_node_prepare(&node, 2, "log_rate = 1000", NULL);
	setenv("HCOMM_SOCKET", node.socket, 1);
	snprintf(dir, sizeof(dir), "%s/logs", node.dir);
	ck_assert_int_eq(mkdir(dir, 0700), 0);
	if (!mount_small(dir, "size=64k"))
		return;
	snprintf(link, sizeof(link), "%s/log", dir);
	ck_assert_int_eq(symlink(link, node.log), 0);
	snprintf(filler, sizeof(filler), "%s/filler", dir);
	hc_node_run(&node);
	fill();
	ck_assert_int_eq(hcomm_open(NULL, &session), 0);
	make_and_destroy();
	ck_assert_int_eq(hcomm_ping(session, 5000), 0);
	hcomm_close(session);
	hc_node_end(&node);
	umount2(dir, MNT_DETACH);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_loop_test(t, a_full_disk_is_told_and_made_good, 0, 2);
	tcase_add_test(t, a_full_disk_for_the_log);
}

int main(void)
{
	return hc_suite_run("case 89", add, 60);
}
