/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of arenas in the service manager's fd store, and which arena a process may bring.
 *
 * A name is taken for ours only when it is exactly what we would have written. An arena belongs
 * to one process: it may bring it again and again, another one never, and what is no arena is
 * refused without an effect. A stop forgets none that the manager was to be told of.
 */
#include "fdstore.h"
#include "manager.h"
#include "procs.h"
#include "suite.h"
#include "worker.h"

#include <event2/event.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const struct {
	const char *name;
	uint32_t pid;
	uint64_t started, session;
} good[] = {
	{"arena-1-0-0", 1, 0, 0},
	{"arena-4711-123456-100000003", 4711, 123456, 0x100000003},
	{"arena-4294967295-18446744073709551615-ffffffffffffffff", UINT32_MAX, UINT64_MAX,
	 UINT64_MAX},
};

START_TEST(names_there_and_back)
{
	struct hc_stored_arena a = {.fd = 7};
	char name[HC_FDSTORE_NAME];

	hc_fdstore_name(name, good[_i].pid, good[_i].started, good[_i].session);
	ck_assert_str_eq(name, good[_i].name);
	ck_assert(hc_fdstore_parse(name, &a));
	ck_assert_uint_eq(a.pid, good[_i].pid);
	ck_assert_uint_eq(a.started, good[_i].started);
	ck_assert_uint_eq(a.session, good[_i].session);
	ck_assert_int_eq(a.fd, 7);
	ck_assert_uint_lt(strlen(name), HC_FDSTORE_NAME - 1);
}
END_TEST

static const char *const bad[] = {
	"",
	"stored",
	"hcommd",
	"arena",
	"arena-",
	"arena-1",
	"arena-1-2",
	"arena-1-2-",
	"arena-0-2-3",
	"arena-1-2-3-4",
	"arena-1-2-3 ",
	" arena-1-2-3",
	"arena-01-2-3",
	"arena-1-02-3",
	"arena-1-2-03",
	"arena-1-2-0x3",
	"arena-1-2-A",
	"arena--1-2-3",
	"arena-+1-2-3",
	"arena-1- 2-3",
	"arena-4294967296-2-3",
	"arena-1-18446744073709551616-3",
	"arena-1-2-10000000000000000",
	"Arena-1-2-3",
};

START_TEST(other_names_are_not_ours)
{
	struct hc_stored_arena a;

	ck_assert_msg(!hc_fdstore_parse(bad[_i], &a), "'%s' was taken", bad[_i]);
}
END_TEST

/* ---- whose arena it is ---- */

static void on_death(void *arg, struct hc_proc *p)
{
	(void)arg;
	(void)p;
}

static struct event_base *base;
static struct hc_procs *procs;
static struct hc_proc *one, *two;

static void begin(void)
{
	base = event_base_new();
	procs = hc_procs_new(base, on_death, NULL);
	ck_assert_ptr_nonnull(procs);
	one = hc_procs_add(procs, 100, 1, -1);
	two = hc_procs_add(procs, 200, 1, -1);
	ck_assert(one && two);
}

static void end(void)
{
	hc_procs_free(procs);
	event_base_free(base);
}

START_TEST(an_arena_goes_over_to_the_next_session)
{
	const struct hc_arena *a;
	uint64_t before;

	begin();
	ck_assert_int_eq(hc_procs_arena_make(one, 11, &a), 0);
	ck_assert_int_eq(hc_procs_arena_adopt(one, 12, a->fd, &before), 0);
	ck_assert_uint_eq(before, 11); /* that one looks alive, and has to end */
	ck_assert_ptr_null(hc_procs_arena(procs, 11));
	ck_assert_ptr_eq(hc_procs_arena(procs, 12), a);
	hc_procs_arena_closed(procs, 12);
	ck_assert_int_eq(hc_procs_arena_adopt(one, 13, a->fd, &before), 0);
	ck_assert_uint_eq(before, 0);
	ck_assert_ptr_eq(hc_procs_arena(procs, 13), a);
	end();
}
END_TEST

START_TEST(another_process_is_refused)
{
	const struct hc_arena *a;
	uint64_t before;

	begin();
	ck_assert_int_eq(hc_procs_arena_make(one, 11, &a), 0);
	ck_assert_int_eq(hc_procs_arena_adopt(two, 21, a->fd, &before), HC_E_INVALID);
	ck_assert_ptr_null(hc_procs_arena(procs, 21));
	ck_assert_ptr_eq(hc_procs_arena(procs, 11), a);
	hc_procs_arena_closed(procs, 11);
	ck_assert_int_eq(hc_procs_arena_adopt(two, 21, a->fd, &before), HC_E_INVALID);
	end();
}
END_TEST

START_TEST(what_is_no_arena_is_refused)
{
	int pipes[2], memory = memfd_create("x", MFD_CLOEXEC);
	uint64_t before;

	begin();
	ck_assert_int_eq(pipe(pipes), 0);
	ck_assert_int_eq(ftruncate(memory, (off_t)HC_ARENA_BLOCKS * HC_BLOCK_BYTES), 0);
	ck_assert_int_eq(hc_procs_arena_adopt(one, 11, pipes[0], &before), HC_E_INVALID);
	ck_assert_int_eq(hc_procs_arena_adopt(one, 11, memory, &before), HC_E_INVALID);
	ck_assert_int_eq(hc_procs_arena_adopt(one, 11, 9999, &before), HC_E_INVALID);
	ck_assert_ptr_null(hc_procs_arena(procs, 11));
	close(pipes[0]);
	close(pipes[1]);
	close(memory);
	end();
}
END_TEST

/* After a restart an arena is found by its process and by what stands in the block. */
START_TEST(one_that_was_kept_is_found_by_its_domain)
{
	struct hc_arena made;
	struct hc_stored_arena kept = {.pid = 100, .started = 1, .session = 0x100000001};
	const struct hc_arena *a;
	uint64_t before;

	ck_assert_int_eq(hc_arena_make(&made), 0);
	made.blocks[3].head.domain = 77;
	begin();
	kept.fd = dup(made.fd);
	ck_assert_int_eq(hc_procs_arena_back(one, &kept), 0);
	a = hc_procs_arena_of(procs, 100, 1, 77, 3);
	ck_assert_ptr_nonnull(a);
	ck_assert_ptr_null(hc_procs_arena_of(procs, 100, 1, 77, 4));
	ck_assert_ptr_null(hc_procs_arena_of(procs, 100, 1, 78, 3));
	ck_assert_ptr_null(hc_procs_arena_of(procs, 100, 1, 77, UINT32_MAX));
	ck_assert_ptr_null(hc_procs_arena_of(procs, 100, 2, 77, 3));
	ck_assert_ptr_null(hc_procs_arena_of(procs, 200, 1, 77, 3));
	/* handed over twice: once is enough */
	kept.fd = dup(made.fd);
	ck_assert_int_eq(hc_procs_arena_back(one, &kept), HC_E_INVALID);
	/* and then its process comes with it */
	ck_assert_int_eq(hc_procs_arena_adopt(one, 12, made.fd, &before), 0);
	ck_assert_ptr_eq(hc_procs_arena(procs, 12), a);
	ck_assert_ptr_eq(hc_procs_arena_of(procs, 100, 1, 77, 3), a);
	hc_arena_drop(&made);
	end();
}
END_TEST

/* ---- a stop ---- */

struct slow {
	struct hc_job job; /* first */
	int begun[2], go[2];
};

static void is_slow(struct hc_job *job)
{
	struct slow *s = (struct slow *)(void *)job;
	char byte = 'x';

	if (write(s->begun[1], &byte, 1) != 1 || read(s->go[0], &byte, 1) != 1)
		hc_fail("a pipe is broken");
}

static void is_over(struct hc_job *job)
{
	(void)job;
}

static bool has_ended(void *worker)
{
	return hc_worker_stop(worker);
}

/* The worker is at something else when the daemon stops: the manager gets the arena all the same.
 */
START_TEST(a_stop_forgets_no_arena)
{
	static struct slow slow = {.job = {.run = is_slow, .done = is_over}};
	struct hc_stored_arena a = {.pid = 100, .started = 1, .session = 7};
	struct hc_node n = {0};
	struct hc_manager m;
	struct hc_worker *worker;
	char byte;

	hc_tempdir(n.dir, sizeof(n.dir));
	hc_manager_start(&m, &n);
	setenv("NOTIFY_SOCKET", m.path, 1);
	base = event_base_new();
	ck_assert_int_eq(hc_worker_start(base, &worker), 0);
	ck_assert_int_eq(pipe(slow.begun) | pipe(slow.go), 0);
	hc_worker_submit(worker, &slow.job);
	ck_assert_int_eq((int)read(slow.begun[0], &byte, 1), 1);
	a.fd = memfd_create("arena", MFD_CLOEXEC);
	hc_fdstore_keep(&(struct hc_fdstore){worker}, &a);
	hc_manager_read(&m);
	ck_assert_uint_eq(m.nstored, 0);
	ck_assert(!hc_worker_stop(worker)); /* it is busy */
	hc_manager_read(&m);
	ck_assert_uint_eq(m.nstored, 1);
	ck_assert_str_eq(m.stored[0].name, "arena-100-1-7");
	ck_assert(m.stored[0].fd >= 0);
	ck_assert_int_eq((int)write(slow.go[1], "x", 1), 1);
	hc_await("the worker ends", has_ended, worker, 10000);
	hc_manager_end(&m);
	close(a.fd);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_loop_test(t, names_there_and_back, 0, (int)(sizeof(good) / sizeof(good[0])));
	tcase_add_loop_test(t, other_names_are_not_ours, 0, (int)(sizeof(bad) / sizeof(bad[0])));
	tcase_add_test(t, an_arena_goes_over_to_the_next_session);
	tcase_add_test(t, another_process_is_refused);
	tcase_add_test(t, what_is_no_arena_is_refused);
	tcase_add_test(t, one_that_was_kept_is_found_by_its_domain);
	tcase_add_test(t, a_stop_forgets_no_arena);
}

int main(void)
{
	return hc_suite_run("fdstore", add, 20);
}
