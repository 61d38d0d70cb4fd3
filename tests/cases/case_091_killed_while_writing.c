/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Case 91. Killed or powered off while writing.
 *
 * An operator's tool creates and destroys domains without a pause, and the daemon is killed at a
 * random moment, again and again. After each kill the database is sound, every acknowledged
 * create is in it and every acknowledged destroy is not. The journal is a write-ahead log, and an
 * orderly stop folds it in.
 */
#include "dbcheck.h"
#include "ranks.h"
#include "suite.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ENTRIES = 1 << 18 };

struct book {
	uint32_t stop, used;
	struct {
		uint64_t id;
		uint32_t phase; /* 1 created, 2 being destroyed, 3 destroyed */
	} entry[ENTRIES];
};

static struct hc_node node;
static struct book *book;

static void must(int r, const char *what)
{
	if (r)
		hc_fail("%s: %s: %s", what, hcomm_error_name(r), hcomm_last_error());
}

static uint64_t create(struct hcomm_session *s)
{
	uint64_t id;
	int r;

	/* what is not activated yet is not stored: after a kill it is begun again */
	for (;;) {
		must(hcomm_create(s, 2, NULL, &id), "create");
		r = hcomm_add_device(s, id, 0, 0);
		if (!r)
			r = hcomm_add_device(s, id, 1, 1);
		if (!r)
			r = hcomm_activate(s, id, 10000);
		if (!r)
			return id;
		if (r != HCOMM_E_NOT_FOUND && r != HCOMM_E_INVALID)
			must(r, "activate");
	}
}

static int storm(void *arg, int in, int out)
{
	struct hcomm_session *s;
	uint32_t n, old;

	(void)arg;
	(void)in;
	(void)out;
	must(hcomm_open(NULL, &s), "open");
	while (!__atomic_load_n(&book->stop, __ATOMIC_RELAXED)) {
		n = book->used;
		if (n == ENTRIES)
			hc_fail("more than %d domains", ENTRIES);
		book->entry[n].id = create(s);
		__atomic_store_n(&book->entry[n].phase, 1, __ATOMIC_RELEASE);
		__atomic_store_n(&book->used, n + 1, __ATOMIC_RELEASE);
		if (n < 8)
			continue;
		old = n - 8;
		__atomic_store_n(&book->entry[old].phase, 2, __ATOMIC_SEQ_CST);
		must(hcomm_destroy_named(s, book->entry[old].id, NULL, 20000), "destroy");
		__atomic_store_n(&book->entry[old].phase, 3, __ATOMIC_RELEASE);
	}
	hcomm_close(s);
	return 0;
}

static void check_stored(unsigned round)
{
	struct hc_dbcheck db;
	uint32_t i, used, phase;

	hc_dbcheck_read(&db, &node);
	ck_assert_msg(!strcmp(db.integrity, "ok"), "round %u: %s", round, db.integrity);
	used = __atomic_load_n(&book->used, __ATOMIC_ACQUIRE);
	for (i = 0; i < used; i++) {
		phase = __atomic_load_n(&book->entry[i].phase, __ATOMIC_SEQ_CST);
		if (phase == 1)
			ck_assert_msg(hc_dbcheck_has(&db, book->entry[i].id),
				      "round %u: create %u is lost", round, i);
		if (phase == 3)
			ck_assert_msg(!hc_dbcheck_has(&db, book->entry[i].id),
				      "round %u: destroy %u is lost", round, i);
	}
	hc_dbcheck_fini(&db);
}

static bool goes_on(void *arg)
{
	return __atomic_load_n(&book->used, __ATOMIC_RELAXED) > *(uint32_t *)arg + 4;
}

/* Bytes 18 and 19 of the file say how it is written: 2 is a write-ahead log. */
static void want_wal(void)
{
	unsigned char head[20];
	char path[200];
	FILE *f;

	snprintf(path, sizeof(path), "%s/state/state.db", node.dir);
	f = fopen(path, "re");
	ck_assert_ptr_nonnull(f);
	ck_assert_uint_eq(fread(head, 1, sizeof(head), f), sizeof(head));
	fclose(f);
	ck_assert_uint_eq(head[18], 2);
	ck_assert_uint_eq(head[19], 2);
}

START_TEST(killed_while_writing)
{
	unsigned rounds = hc_long() ? 200 : 20, i;
	struct hc_child c;
	char path[200];
	uint32_t from;

	book = mmap(NULL, sizeof(*book), PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	ck_assert_ptr_ne(book, MAP_FAILED);
	hc_node_start(&node, 2, NULL);
	hc_spawn(&c, storm, NULL);
	for (i = 0; i < rounds; i++) {
		struct timespec t = {.tv_nsec = (random() % 60) * 1000000};

		from = book->used;
		hc_await("the storm goes on", goes_on, &from, 30000);
		ppoll(NULL, 0, &t, NULL); /* the moment is what is random here */
		hc_node_kill(&node);
		check_stored(i);
		hc_node_run(&node);
	}
	book->stop = 1;
	ck_assert_int_eq(hc_child_wait(&c, 60000), 0);
	want_wal();
	hc_node_stop(&node);
	snprintf(path, sizeof(path), "%s/state/state.db-wal", node.dir);
	ck_assert(access(path, F_OK));
	check_stored(rounds);
	printf("%u kills, %u domains\n", rounds, book->used);
	hc_node_end(&node);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_test(t, killed_while_writing);
}

int main(void)
{
	return hc_suite_run("case_091_killed_while_writing", add, hc_long() ? 800 : 100);
}
