/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operation references: the real begin and end against real records and arenas.
 *
 * One process plays both sides: the "daemon" publishes records in a slab in a temporary directory
 * and scans an arena; the "client" sees the slab through a read-only mapping of a descriptor, as
 * it would from a message. What needs another process (permissions, a kernel that refuses
 * membarrier) runs in a forked child. The slabs and arenas alone are in test_nodepages.c.
 */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "nodepages.h"
#include "ops.h"

#define DOMAIN  0x1234abcdull
#define UID     1000u
#define SLOT    5u
#define BLOCK   3u
#define HANDLE  0x700000009ull
#define SOON_NS 500000000ll /* less than the second after which a waiter looks by itself */
#define CROWD   20

struct world {
	char dir[64];
	struct hc_pages *pages;
	struct hc_page_record *record;
	const struct hc_page_record *view;
	struct hc_arena arena;
	struct hc_ops_domain d;
	struct hc_ops_hooks hooks;
	struct hc_pages_state s;
	_Atomic int wakes, reattaches;
};
static struct world w;

static void on_wake(struct hc_ops_domain *d, void *context)
{
	struct world *x = context;

	ck_assert_ptr_eq(d, &x->d);
	atomic_fetch_add(&x->wakes, 1);
}

static void on_reattach(struct hc_ops_domain *d, void *context)
{
	struct world *x = context;

	ck_assert_ptr_eq(d, &x->d);
	atomic_fetch_add(&x->reattaches, 1);
}

static void publish(uint8_t state)
{
	w.s.state = state;
	w.s.number++;
	hc_pages_publish(w.record, &w.s);
}

static void publish_cut(uint8_t cut_set, uint64_t cut)
{
	w.s.cut_set = cut_set;
	w.s.cut = cut;
	publish(HCOMM_DRAINING);
}

static struct hc_arena_sample scan(void)
{
	struct hc_arena_sample sample;

	ck_assert_int_eq(hc_arena_scan(&w.arena, BLOCK, DOMAIN, w.s.epoch & 1, &sample), 0);
	ck_assert(sample.sane);
	return sample;
}

static void world_open(bool fence)
{
	struct hc_ops_seat seat = {.rank = 2};
	const struct hc_page_record *slab;
	int fd;

	memset(&w, 0, sizeof(w));
	snprintf(w.dir, sizeof(w.dir), "%s/hc-ops-XXXXXX",
		 getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
	ck_assert_ptr_nonnull(mkdtemp(w.dir));
	ck_assert_int_eq(hc_pages_open(w.dir, &w.pages), 0);
	ck_assert_int_eq(hc_pages_record(w.pages, UID, SLOT, &w.record), 0);
	w.s = (struct hc_pages_state){
		.id = DOMAIN, .start = 7, .tag = HC_TAG(3, 1), .epoch = 1, .nranks = 4};
	publish(HCOMM_ACTIVE);
	ck_assert_int_eq(hc_pages_slab_fd(w.pages, UID, 0, &fd), 0);
	slab = mmap(NULL, HC_SLAB_RECORDS * HC_RECORD_BYTES, PROT_READ, MAP_SHARED, fd, 0);
	ck_assert_ptr_ne(slab, MAP_FAILED);
	close(fd);
	w.view = &slab[SLOT];
	ck_assert_int_eq(hc_arena_make(&w.arena), 0);
	seat.block = &w.arena.blocks[BLOCK];
	w.hooks = (struct hc_ops_hooks){on_wake, on_reattach, &w};
	if (fence)
		ck_assert_int_eq(hc_ops_register(), 0);
	hc_ops_attach(&w.d, HANDLE, DOMAIN, 7, HC_TAG(3, 1), w.view, &seat, 1, fence, &w.hooks);
}

static void world_close(void)
{
	char command[128];

	hc_ops_detach(&w.d);
	hc_arena_drop(&w.arena);
	hc_pages_close(w.pages);
	munmap((void *)(uintptr_t)(w.view - SLOT), HC_SLAB_RECORDS * HC_RECORD_BYTES);
	snprintf(command, sizeof(command), "rm -rf %s", w.dir);
	ck_assert_int_eq(system(command), 0);
}

static int begin(uint32_t kind, uint32_t flags, struct hcomm_op *op)
{
	return hc_ops_begin(&w.d, 0, kind, flags, op);
}

/* Wait for a fact that another thread makes true. */
#define soon(fact)                                                                                 \
	do {                                                                                       \
		struct timespec start_, now_;                                                      \
		clock_gettime(CLOCK_MONOTONIC, &start_);                                           \
		while (!(fact)) {                                                                  \
			clock_gettime(CLOCK_MONOTONIC, &now_);                                     \
			ck_assert_msg((now_.tv_sec - start_.tv_sec) * 1000000000ll +               \
						      now_.tv_nsec - start_.tv_nsec <              \
					      10000000000ll,                                       \
				      "not within 10 s: %s", #fact);                               \
			sched_yield();                                                             \
		}                                                                                  \
	} while (0)

static bool sem_soon(sem_t *sem, long long ns)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	ns += t.tv_nsec;
	t.tv_sec += (time_t)(ns / 1000000000);
	t.tv_nsec = (long)(ns % 1000000000);
	return !sem_timedwait(sem, &t);
}

/* ---- one thread ---- */

/* _i: 1 with the daemon's fence, 0 with locked instructions */
START_TEST(a_reference_is_seen_until_it_is_returned)
{
	struct hcomm_op one, two;

	world_open(_i);
	ck_assert_int_eq(begin(HCOMM_OP_ALL_REDUCE, 0, &one), 0);
	ck_assert_uint_eq(one.private_[0], HANDLE);
	ck_assert_uint_eq(scan().running, 1);
	ck_assert_uint_eq(scan().begun, 1);
	ck_assert_uint_eq(scan().kind, HCOMM_OP_ALL_REDUCE);
	ck_assert_int_eq(begin(HCOMM_OP_BROADCAST, HCOMM_OP_NOWAIT, &two), 0);
	ck_assert_uint_eq(scan().running, 2);
	ck_assert_uint_eq(scan().begun, 2);
	ck_assert_uint_eq(scan().kind, HCOMM_OP_BROADCAST);
	ck_assert_uint_eq(hc_ops_running(&w.d, 0), 2);
	ck_assert_int_eq(hc_ops_end(&w.d, &one), 0);
	ck_assert_uint_eq(one.private_[0], 0);
	ck_assert_uint_eq(scan().running, 1);
	ck_assert_int_eq(hc_ops_end(&w.d, &two), 0);
	ck_assert_uint_eq(scan().running, 0);
	ck_assert_uint_eq(scan().begun, 2);
	ck_assert_int_eq(w.wakes, 0);
	world_close();
}
END_TEST

START_TEST(point_to_point_takes_no_number)
{
	struct hcomm_op op;

	world_open(_i);
	ck_assert_int_eq(begin(HCOMM_OP_SEND, 0, &op), 0);
	ck_assert_uint_eq(scan().begun, 0);
	ck_assert_uint_eq(scan().running, 1);
	ck_assert_uint_eq(scan().kind, HCOMM_OP_SEND);
	ck_assert_int_eq(hc_ops_end(&w.d, &op), 0);
	ck_assert_int_eq(begin(HCOMM_OP_OTHER, 0, &op), 0);
	ck_assert_uint_eq(scan().begun, 1);
	ck_assert_int_eq(hc_ops_end(&w.d, &op), 0);
	world_close();
}
END_TEST

START_TEST(what_is_no_kind_or_seat_is_refused)
{
	struct hcomm_op op;

	world_open(true);
	ck_assert_int_eq(begin(0, 0, &op), HC_E_INVALID);
	ck_assert_int_eq(begin(HCOMM_OP_RECV + 1, 0, &op), HC_E_INVALID);
	ck_assert_int_eq(hc_ops_begin(&w.d, 1, HCOMM_OP_SEND, 0, &op), HC_E_INVALID);
	op.private_[1] = HC_OPS_TOKEN(0, 0, 9, 1);
	ck_assert_int_eq(hc_ops_end(&w.d, &op), HC_E_INVALID);
	ck_assert_uint_eq(scan().running, 0);
	ck_assert_uint_eq(hc_ops_seat(&w.d, 2), 0);
	ck_assert_uint_eq(hc_ops_seat(&w.d, 0), HC_NONE);
	world_close();
}
END_TEST

START_TEST(the_next_epoch_counts_for_itself)
{
	struct hcomm_op old, new;

	world_open(_i);
	ck_assert_int_eq(begin(HCOMM_OP_REDUCE, 0, &old), 0);
	w.s.epoch = 2;
	w.s.tag = HC_TAG(3, 2);
	publish(HCOMM_ACTIVE);
	ck_assert_int_eq(begin(HCOMM_OP_REDUCE, 0, &new), HC_E_STALE);
	hc_ops_rebase(&w.d, 7, w.s.tag);
	ck_assert_uint_eq(scan().running, 0);
	ck_assert_int_eq(begin(HCOMM_OP_REDUCE, 0, &new), 0);
	ck_assert_uint_eq(scan().running, 1);
	ck_assert_int_eq(hc_ops_end(&w.d, &old), 0); /* goes to the old epoch */
	ck_assert_uint_eq(scan().running, 1);
	ck_assert_int_eq(hc_ops_end(&w.d, &new), 0);
	ck_assert_uint_eq(scan().running, 0);
	world_close();
}
END_TEST

/* ---- every state ---- */

static const struct {
	uint8_t state, cut_set, drain;
	uint64_t cut;
	int collective, p2p; /* with NOWAIT, as number 1 */
} states[] = {
	{HCOMM_FORMING, 0, 0, 0, HC_E_SUSPENDED, HC_E_SUSPENDED},
	{HCOMM_ACTIVATING, 0, 0, 0, HC_E_SUSPENDED, HC_E_SUSPENDED},
	{HCOMM_ACTIVE, 0, 0, 0, 0, 0},
	{HCOMM_SUSPENDED, 0, 0, 0, HC_E_SUSPENDED, HC_E_SUSPENDED},
	{HCOMM_DAMAGED, 0, 0, 0, HC_E_DAMAGED, HC_E_DAMAGED},
	{HCOMM_DESTROYED, 0, 0, 0, HC_E_GONE, HC_E_GONE},
	{HCOMM_FAILED, 0, 0, 0, HC_E_GONE, HC_E_GONE},
	{0, 0, 0, 0, HC_E_GONE, HC_E_GONE},
	{99, 0, 0, 0, HC_E_GONE, HC_E_GONE},
	{HCOMM_DRAINING, HC_CUT_NONE, HC_DRAIN_DESTROY, 0, HC_E_SUSPENDED, 0},
	{HCOMM_DRAINING, HC_CUT_SET, HC_DRAIN_DESTROY, 1, 0, 0},
	{HCOMM_DRAINING, HC_CUT_SET, HC_DRAIN_DESTROY, 0, HC_E_GONE, 0},
	{HCOMM_DRAINING, HC_CUT_SET, HC_DRAIN_CHANGE, 0, HC_E_SUSPENDED, 0},
	{HCOMM_DRAINING, HC_CUT_SET, HC_DRAIN_CHANGE, 1, 0, 0},
	{HCOMM_DRAINING, HC_CUT_CLOSED, HC_DRAIN_DESTROY, 0, HC_E_GONE, -1},
};

static void expect(uint32_t kind, int wanted)
{
	struct hcomm_op op;
	uint64_t begun = scan().begun;

	if (wanted < 0)
		return; /* waits: its own test */
	ck_assert_int_eq(begin(kind, HCOMM_OP_NOWAIT, &op), wanted);
	ck_assert_uint_eq(scan().running, !wanted);
	if (wanted)
		ck_assert_uint_eq(scan().begun, begun);
	else
		ck_assert_int_eq(hc_ops_end(&w.d, &op), 0);
	ck_assert_uint_eq(scan().running, 0);
}

START_TEST(each_state_has_its_answer)
{
	world_open(_i < (int)(sizeof(states) / sizeof(states[0])));
	_i %= (int)(sizeof(states) / sizeof(states[0]));
	w.s.cut_set = states[_i].cut_set;
	w.s.drain = states[_i].drain;
	w.s.cut = states[_i].cut;
	publish(states[_i].state);
	expect(HCOMM_OP_SEND, states[_i].p2p);
	expect(HCOMM_OP_GATHER, states[_i].collective);
	world_close();
}
END_TEST

START_TEST(an_end_under_a_closed_gate_wakes_the_daemon)
{
	struct hcomm_op op;

	world_open(_i);
	ck_assert_int_eq(begin(HCOMM_OP_REDUCE, 0, &op), 0);
	publish_cut(HC_CUT_NONE, 0);
	ck_assert_int_eq(hc_ops_end(&w.d, &op), 0);
	ck_assert_int_eq(w.wakes, 1);
	world_close();
}
END_TEST

/* The gate closed between intent and look: what begin does after its second look. */
START_TEST(an_intent_is_withdrawn_and_the_daemon_woken)
{
	const uint8_t state[] = {HCOMM_DAMAGED, HCOMM_DESTROYED, HCOMM_SUSPENDED, HCOMM_DRAINING};
	const int answer[] = {HC_E_DAMAGED, HC_E_GONE, HC_E_SUSPENDED, HC_E_GONE};
	struct hcomm_op op;

	world_open(_i % 2);
	ck_assert_int_eq(begin(HCOMM_OP_REDUCE, 0, &op), 0);
	w.s.cut_set = HC_CUT_SET;
	publish(state[_i / 2]);
	ck_assert_int_eq(hc_ops_begin_raced(&w.d, HCOMM_OP_REDUCE, HCOMM_OP_NOWAIT, &op),
			 answer[_i / 2]);
	ck_assert_uint_eq(op.private_[0], 0);
	ck_assert_uint_eq(scan().running, 0);
	ck_assert_uint_eq(scan().begun, 0);
	ck_assert_int_eq(w.wakes, 1);
	world_close();
}
END_TEST

/*
 * The same by the inlined way: the first access to the block faults, and the fault's handler is
 * the daemon that publishes just then, behind begin's first look at the gate.
 */
static uint8_t fault_state;

static void block_protect(int protection)
{
	uintptr_t page = (uintptr_t)&w.arena.blocks[BLOCK] & ~(uintptr_t)4095;

	if (mprotect((void *)page, 4096, protection))
		abort();
}

static void on_fault(int signal)
{
	(void)signal;
	block_protect(PROT_READ | PROT_WRITE);
	publish(fault_state);
}

START_TEST(a_gate_that_closes_behind_the_first_look_is_seen)
{
	const uint8_t state[] = {HCOMM_DAMAGED, HCOMM_DESTROYED, HCOMM_SUSPENDED, HCOMM_DRAINING};
	const int answer[] = {HC_E_DAMAGED, HC_E_GONE, HC_E_SUSPENDED, HC_E_GONE};
	struct hcomm_op op;

	world_open(_i % 2);
	ck_assert_int_eq(begin(HCOMM_OP_SEND, 0, &op), 0); /* the thread has its line now */
	ck_assert_int_eq(hc_ops_end(&w.d, &op), 0);
	signal(SIGSEGV, on_fault);
	w.s.cut_set = HC_CUT_SET;
	fault_state = state[_i / 2];
	block_protect(PROT_NONE);
	ck_assert_int_eq(begin(HCOMM_OP_REDUCE, HCOMM_OP_NOWAIT, &op), answer[_i / 2]);
	ck_assert_uint_eq(scan().running, 0);
	ck_assert_uint_eq(scan().begun, 0);
	if (_i % 2)
		ck_assert_int_eq(w.wakes, 1);
	world_close();
}
END_TEST

/* An end whose gate closes behind its store wakes; the token is spent. */
START_TEST(a_gate_that_closes_during_an_end_wakes_the_daemon)
{
	struct hcomm_op op;

	world_open(_i);
	ck_assert_int_eq(begin(HCOMM_OP_REDUCE, 0, &op), 0);
	signal(SIGSEGV, on_fault);
	fault_state = HCOMM_DRAINING;
	block_protect(PROT_NONE);
	ck_assert_int_eq(hc_ops_end(&w.d, &op), 0);
	ck_assert_uint_eq(scan().running, 0);
	ck_assert_int_eq(w.wakes, 1);
	ck_assert_uint_eq(op.private_[0], 0);
	world_close();
}
END_TEST

START_TEST(a_handle_never_takes_the_next_domain_in_the_slot)
{
	struct hcomm_op op, left;

	world_open(true);
	ck_assert_int_eq(begin(HCOMM_OP_SEND, 0, &left), 0);
	hc_pages_free(w.record);
	ck_assert_int_eq(begin(HCOMM_OP_SEND, 0, &op), HC_E_GONE);
	w.s.id = DOMAIN + 1;
	w.s.tag = HC_TAG(4, 1);
	publish(HCOMM_ACTIVE);
	ck_assert_int_eq(begin(HCOMM_OP_SEND, 0, &op), HC_E_GONE);
	ck_assert_int_eq(hc_ops_end(&w.d, &left), 0);
	ck_assert_int_eq(w.wakes, 0);
	ck_assert_int_eq(w.reattaches, 0);
	world_close();
}
END_TEST

START_TEST(a_released_handle_is_seen_in_its_slot)
{
	world_open(true);
	ck_assert_uint_eq(atomic_load(&w.d.handle), HANDLE);
	hc_ops_detach(&w.d);
	ck_assert_uint_eq(atomic_load(&w.d.handle), 0);
	world_close();
}
END_TEST

START_TEST(a_block_starts_from_zero_for_a_new_domain_only)
{
	struct hc_ops_seat seat;
	struct hc_arena_sample sample;
	struct hcomm_op op;

	world_open(true);
	seat = w.d.one;
	ck_assert_int_eq(begin(HCOMM_OP_REDUCE, 0, &op), 0);
	/* re-attached: it goes on */
	hc_ops_attach(&w.d, HANDLE, DOMAIN, 7, HC_TAG(3, 1), w.view, &seat, 1, true, &w.hooks);
	ck_assert_uint_eq(scan().running, 1);
	/* the daemon gave the block to another domain that is not attached yet, then is */
	ck_assert_int_eq(hc_arena_scan(&w.arena, BLOCK, 99, 1, &sample), 0);
	ck_assert_uint_eq(sample.running + sample.begun, 0);
	hc_ops_attach(&w.d, HANDLE + 1, 99, 7, HC_TAG(3, 1), w.view, &seat, 1, true, &w.hooks);
	ck_assert_int_eq(hc_arena_scan(&w.arena, BLOCK, 99, 1, &sample), 0);
	ck_assert_uint_eq(sample.running + sample.begun, 0);
	world_close();
}
END_TEST

/* ---- the daemon changes ---- */

START_TEST(a_restarted_daemon_is_not_felt)
{
	struct hcomm_op one, two;

	world_open(_i);
	ck_assert_int_eq(begin(HCOMM_OP_REDUCE, 0, &one), 0);
	w.s.start = 8;
	publish(HCOMM_ACTIVE);
	ck_assert_int_eq(begin(HCOMM_OP_REDUCE, 0, &two), 0);
	ck_assert_int_eq(w.reattaches, 1);
	ck_assert_int_eq(hc_ops_end(&w.d, &one), 0);
	w.s.start = 9;
	publish(HCOMM_ACTIVE);
	ck_assert_int_eq(hc_ops_end(&w.d, &two), 0); /* seen by an end as well */
	ck_assert_int_eq(begin(HCOMM_OP_REDUCE, 0, &one), 0);
	ck_assert_int_eq(hc_ops_end(&w.d, &one), 0);
	ck_assert_int_eq(w.reattaches, 2);
	ck_assert_int_eq(w.wakes, 0);
	ck_assert_uint_eq(scan().running, 0);
	ck_assert_uint_eq(scan().begun, 3);
	world_close();
}
END_TEST

START_TEST(a_fence_that_fails_turns_the_fast_path_off)
{
	struct hcomm_op one, two;

	world_open(true);
	ck_assert_int_eq(begin(HCOMM_OP_REDUCE, 0, &one), 0);
	w.s.locked = true;
	publish(HCOMM_ACTIVE);
	ck_assert_int_eq(begin(HCOMM_OP_REDUCE, 0, &two), 0);
	ck_assert_uint_eq(atomic_load(&w.d.fast_lines), 0);
	ck_assert_uint_eq(scan().running, 2);
	ck_assert_int_eq(hc_ops_end(&w.d, &one), 0);
	ck_assert_int_eq(hc_ops_end(&w.d, &two), 0);
	ck_assert_uint_eq(scan().running, 0);
	ck_assert_int_eq(w.reattaches + w.wakes, 0);
	world_close();
}
END_TEST

/* ---- waiting ---- */

struct waiter {
	pthread_t thread;
	uint32_t kind;
	sem_t done;
	int result;
	struct hcomm_op op;
	_Atomic int tid;
};

static void *waiter_run(void *arg)
{
	struct waiter *x = arg;

	atomic_store(&x->tid, (int)gettid());
	x->result = begin(x->kind, 0, &x->op);
	sem_post(&x->done);
	return NULL;
}

/* Is the thread asleep? (State letter behind the name in its stat.) */
static bool asleep(int tid)
{
	char path[64], text[256], *end;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (!tid || fd < 0)
		return false;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n > 0 ? n : 0] = 0;
	end = strrchr(text, ')');
	return end && end[1] == ' ' && end[2] == 'S';
}

static void waiter_start(struct waiter *x, uint32_t kind)
{
	memset(x, 0, sizeof(*x));
	x->kind = kind;
	sem_init(&x->done, 0, 0);
	ck_assert_int_eq(pthread_create(&x->thread, NULL, waiter_run, x), 0);
	soon(asleep(x->tid));
	ck_assert(!sem_soon(&x->done, 0));
}

static int waiter_result(struct waiter *x)
{
	ck_assert_msg(sem_soon(&x->done, SOON_NS), "the waiter was not woken");
	pthread_join(x->thread, NULL);
	return x->result;
}

START_TEST(a_suspended_domain_lets_its_waiters_go_on)
{
	struct waiter x;

	world_open(_i);
	publish(HCOMM_SUSPENDED);
	waiter_start(&x, HCOMM_OP_REDUCE);
	ck_assert_uint_eq(scan().running, 0);
	publish(HCOMM_ACTIVE);
	ck_assert_int_eq(waiter_result(&x), 0);
	ck_assert_uint_eq(scan().running, 1);
	ck_assert_int_eq(hc_ops_end(&w.d, &x.op), 0);
	publish(HCOMM_SUSPENDED);
	waiter_start(&x, HCOMM_OP_REDUCE);
	publish(HCOMM_DAMAGED);
	ck_assert_int_eq(waiter_result(&x), HC_E_DAMAGED);
	ck_assert_uint_eq(scan().running, 0);
	world_close();
}
END_TEST

START_TEST(a_draining_domain_tells_the_cut)
{
	struct waiter x;

	world_open(_i);
	publish_cut(HC_CUT_NONE, 0);
	waiter_start(&x, HCOMM_OP_REDUCE);
	publish_cut(HC_CUT_SET, 1);
	ck_assert_int_eq(waiter_result(&x), 0);
	ck_assert_int_eq(hc_ops_end(&w.d, &x.op), 0);
	ck_assert_int_eq(begin(HCOMM_OP_REDUCE, 0, &x.op), HC_E_GONE);
	ck_assert_uint_eq(scan().begun, 1);
	world_close();
}
END_TEST

START_TEST(a_change_holds_what_is_beyond_the_cut)
{
	struct waiter x;

	world_open(_i);
	w.s.drain = HC_DRAIN_CHANGE;
	publish_cut(HC_CUT_SET, 0);
	waiter_start(&x, HCOMM_OP_REDUCE);
	ck_assert_uint_eq(scan().running, 0);
	publish(HCOMM_ACTIVE); /* the change was given up: same epoch */
	ck_assert_int_eq(waiter_result(&x), 0);
	ck_assert_uint_eq(scan().running, 1);
	world_close();
}
END_TEST

/* _i & 1: fence; _i & 2: the daemon opens the cut again, or has released */
START_TEST(a_closed_cut_shows_the_intent_of_who_begins)
{
	struct waiter x;

	world_open(_i & 1);
	publish_cut(HC_CUT_CLOSED, 0);
	waiter_start(&x, HCOMM_OP_RECV);
	ck_assert_uint_eq(scan().running, 1);
	ck_assert_int_ge(w.wakes, 1);
	if (_i & 2)
		publish_cut(HC_CUT_SET, 0);
	else
		publish(HCOMM_DESTROYED);
	ck_assert_int_eq(waiter_result(&x), _i & 2 ? 0 : HC_E_GONE);
	ck_assert_uint_eq(scan().running, _i & 2 ? 1 : 0);
	world_close();
}
END_TEST

/* ---- many threads ---- */

static pthread_mutex_t order = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t all_hold, all_may_end;

static void *crowd_run(void *arg)
{
	struct hcomm_op op;
	int r;

	(void)arg;
	pthread_mutex_lock(&order);
	r = begin(HCOMM_OP_ALL_GATHER, 0, &op);
	pthread_mutex_unlock(&order);
	pthread_barrier_wait(&all_hold);
	pthread_barrier_wait(&all_may_end);
	if (!r)
		r = hc_ops_end(&w.d, &op);
	return (void *)(intptr_t)r;
}

static void crowd(void)
{
	pthread_t thread[CROWD];
	void *result;
	int i;

	pthread_barrier_init(&all_hold, NULL, CROWD + 1);
	pthread_barrier_init(&all_may_end, NULL, CROWD + 1);
	for (i = 0; i < CROWD; i++)
		ck_assert_int_eq(pthread_create(&thread[i], NULL, crowd_run, NULL), 0);
	pthread_barrier_wait(&all_hold);
	ck_assert_uint_eq(scan().running, CROWD);
	pthread_barrier_wait(&all_may_end);
	for (i = 0; i < CROWD; i++) {
		pthread_join(thread[i], &result);
		ck_assert_ptr_null(result);
	}
	ck_assert_uint_eq(scan().running, 0);
	pthread_barrier_destroy(&all_hold);
	pthread_barrier_destroy(&all_may_end);
}

START_TEST(threads_without_a_line_share_one_and_lines_come_back)
{
	struct hc_page_line *shared;
	int round;

	world_open(_i);
	shared = &w.arena.blocks[BLOCK].shared;
	for (round = 1; round <= 3; round++) {
		crowd();
		ck_assert_uint_eq(scan().begun, (uint64_t)round * CROWD);
		/* no more than had no line each time: 14 lines were given back */
		ck_assert_uint_eq(shared->begins[1], (uint64_t)round * (CROWD - HC_BLOCK_LINES));
		ck_assert_uint_eq(shared->ends[1], shared->begins[1]);
	}
	world_close();
}
END_TEST

static void *end_run(void *op)
{
	return (void *)(intptr_t)hc_ops_end(&w.d, op);
}

START_TEST(any_thread_may_end)
{
	struct hcomm_op op;
	pthread_t thread;
	void *result;

	world_open(_i);
	ck_assert_int_eq(begin(HCOMM_OP_REDUCE, 0, &op), 0);
	pthread_create(&thread, NULL, end_run, &op);
	pthread_join(thread, &result);
	ck_assert_ptr_null(result);
	ck_assert_uint_eq(scan().running, 0);
	world_close();
}
END_TEST

/* A child has none of the parent's other threads, so none of their lines either. */
static void *hold_line(void *arg)
{
	struct hcomm_op op;

	(void)arg;
	pthread_mutex_lock(&order);
	if (!begin(HCOMM_OP_SEND, 0, &op))
		hc_ops_end(&w.d, &op);
	pthread_mutex_unlock(&order);
	pthread_barrier_wait(&all_hold);
	pthread_barrier_wait(&all_may_end);
	return NULL;
}

START_TEST(a_forked_child_has_all_lines)
{
	pthread_t thread[CROWD];
	struct hcomm_op op;
	int i, status;
	pid_t pid;

	world_open(true);
	pthread_barrier_init(&all_hold, NULL, CROWD + 1);
	pthread_barrier_init(&all_may_end, NULL, CROWD + 1);
	for (i = 0; i < CROWD; i++)
		ck_assert_int_eq(pthread_create(&thread[i], NULL, hold_line, NULL), 0);
	pthread_barrier_wait(&all_hold);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (!pid) {
		i = hc_ops_register() || begin(HCOMM_OP_SEND, 0, &op) ||
		    hc_ops_line == offsetof(struct hc_page_block, shared);
		_exit(i);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	pthread_barrier_wait(&all_may_end);
	for (i = 0; i < CROWD; i++)
		pthread_join(thread[i], NULL);
	world_close();
}
END_TEST

int main(void)
{
	const int nstates = (int)(sizeof(states) / sizeof(states[0]));
	Suite *s = suite_create("ops");
	TCase *c = tcase_create("references");
	SRunner *r;
	int failed;

	tcase_set_timeout(c, 60);
	tcase_add_loop_test(c, a_reference_is_seen_until_it_is_returned, 0, 2);
	tcase_add_loop_test(c, point_to_point_takes_no_number, 0, 2);
	tcase_add_test(c, what_is_no_kind_or_seat_is_refused);
	tcase_add_loop_test(c, the_next_epoch_counts_for_itself, 0, 2);
	tcase_add_loop_test(c, each_state_has_its_answer, 0, 2 * nstates);
	tcase_add_loop_test(c, an_end_under_a_closed_gate_wakes_the_daemon, 0, 2);
	tcase_add_loop_test(c, an_intent_is_withdrawn_and_the_daemon_woken, 0, 8);
	tcase_add_loop_test(c, a_gate_that_closes_behind_the_first_look_is_seen, 0, 8);
	tcase_add_loop_test(c, a_gate_that_closes_during_an_end_wakes_the_daemon, 0, 2);
	tcase_add_test(c, a_handle_never_takes_the_next_domain_in_the_slot);
	tcase_add_test(c, a_released_handle_is_seen_in_its_slot);
	tcase_add_test(c, a_block_starts_from_zero_for_a_new_domain_only);
	tcase_add_loop_test(c, a_restarted_daemon_is_not_felt, 0, 2);
	tcase_add_test(c, a_fence_that_fails_turns_the_fast_path_off);
	tcase_add_loop_test(c, a_suspended_domain_lets_its_waiters_go_on, 0, 2);
	tcase_add_loop_test(c, a_draining_domain_tells_the_cut, 0, 2);
	tcase_add_loop_test(c, a_change_holds_what_is_beyond_the_cut, 0, 2);
	tcase_add_loop_test(c, a_closed_cut_shows_the_intent_of_who_begins, 0, 4);
	tcase_add_loop_test(c, threads_without_a_line_share_one_and_lines_come_back, 0, 2);
	tcase_add_loop_test(c, any_thread_may_end, 0, 2);
	tcase_add_test(c, a_forked_child_has_all_lines);
	suite_add_tcase(s, c);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
