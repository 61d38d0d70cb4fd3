/* SPDX-License-Identifier: Apache-2.0 */
/*
 * References and drains under load, on real processors and their store buffers.
 *
 * Eight forked processes are the ranks of a domain. In each two threads begin operations, mostly
 * collectives, and end them or hand them to a third thread that only ends. Every fourth
 * collective ends only after all ranks have begun it, as real ones do. The test is the daemon: it
 * suspends, "restarts" and drains at random moments, waits for the ranks' wake-ups without any
 * periodic look, and goes on with the next epoch.
 *
 * The ranks keep books of their own in another shared page (what they hold, what they have ended),
 * written inside of the references, so that at a release the books must say: nothing held, and
 * every rank has ended exactly the cut. Whoever holds an operation of a released epoch says so. A
 * lost wake-up or a dead-lock shows as a drain that does not come to its end.
 *
 * The drains are far apart in time compared with a store buffer. So the race itself, one begin
 * against one closing of the gate, is also run alone, between two processors, many times.
 */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "nodepages.h"
#include "ops.h"

#define RANKS       8
#define DOMAIN      77u
#define QUEUE       64u
#define STUCK_MS    10000 /* ten times what waiters take at most to look by themselves */
#define QUICK_MS    3000
#define LONG_MS     60000
#define TOGETHER(n) ((n) % 4 == 0)

struct book {
	_Alignas(64) _Atomic int64_t held;
	_Atomic uint64_t begun, ended; /* collectives */
	_Atomic uint64_t p2p;
	_Atomic uint32_t after_release; /* held an operation of a released epoch */
	_Atomic uint32_t unexpected;    /* an answer of begin that nobody gave reason for */
};

struct books {
	struct book rank[RANKS];
	_Atomic uint32_t released; /* last epoch that was released */
	_Atomic uint32_t stop;
};

/* ---- a rank ---- */

struct item {
	struct hcomm_op op;
	uint32_t epoch;
};

struct rank {
	struct books *books;
	struct book *book;
	struct hc_ops_domain d;
	struct hc_ops_hooks hooks;
	int wake_fd;
	uint32_t epoch; /* under `order` */
	pthread_mutex_t order, queue_lock;
	pthread_cond_t queue_more;
	struct item queue[QUEUE];
	uint32_t queued, closing;
};

static uint32_t draw(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return (uint32_t)(*seed >> 32);
}

static void on_wake(struct hc_ops_domain *d, void *context)
{
	struct rank *r = context;
	uint64_t one = 1;

	(void)d;
	if (write(r->wake_fd, &one, sizeof(one)) != sizeof(one))
		abort();
}

static void on_reattach(struct hc_ops_domain *d, void *context)
{
	(void)d;
	(void)context;
}

static void finish(struct rank *r, struct item *item)
{
	uint64_t n = HC_OPS_NUMBER_OF(item->op.private_[1]);
	int k;

	for (k = 0; n && TOGETHER(n) && k < RANKS; k++)
		while (atomic_load(&r->books->rank[k].begun) < n)
			sched_yield();
	if (atomic_load(&r->books->released) >= item->epoch)
		atomic_fetch_add(&r->book->after_release, 1);
	if (n)
		atomic_fetch_add(&r->book->ended, 1);
	atomic_fetch_sub(&r->book->held, 1);
	if (hc_ops_end(&r->d, &item->op))
		atomic_fetch_add(&r->book->unexpected, 1);
}

static bool hand_over(struct rank *r, const struct item *item)
{
	bool room;

	pthread_mutex_lock(&r->queue_lock);
	room = r->queued < QUEUE;
	if (room)
		r->queue[r->queued++] = *item;
	pthread_cond_signal(&r->queue_more);
	pthread_mutex_unlock(&r->queue_lock);
	return room;
}

static void *ender(void *arg)
{
	struct rank *r = arg;
	struct item item;

	pthread_mutex_lock(&r->queue_lock);
	for (;;) {
		while (!r->queued && !r->closing)
			pthread_cond_wait(&r->queue_more, &r->queue_lock);
		if (!r->queued)
			break;
		/* the oldest first: the others may wait for it */
		item = r->queue[0];
		memmove(r->queue, r->queue + 1, --r->queued * sizeof(item));
		pthread_mutex_unlock(&r->queue_lock);
		finish(r, &item);
		pthread_mutex_lock(&r->queue_lock);
	}
	pthread_mutex_unlock(&r->queue_lock);
	return NULL;
}

/* Begin the next operation, under `order`. False: the domain was ended and the test is over. */
static bool start(struct rank *r, uint64_t *seed, struct item *item)
{
	uint32_t kind, seen;
	const struct hc_page_record *record = r->d.record;
	int result;

	for (;;) {
		kind = draw(seed) % 8 ? HCOMM_OP_ALL_REDUCE : HCOMM_OP_SEND;
		seen = atomic_load(&record->wake);
		result = hc_ops_begin(&r->d, 0, kind, draw(seed) % 3 ? 0 : HCOMM_OP_NOWAIT,
				      &item->op);
		if (!result)
			break;
		if (result == HC_E_STALE) {
			r->epoch = atomic_load(&record->epoch);
			hc_ops_rebase(&r->d, 1, HC_TAG(1, r->epoch));
		} else if (result == HC_E_GONE && atomic_load(&r->books->stop)) {
			return false;
		} else if (result == HC_E_GONE || result == HC_E_SUSPENDED) {
			hc_ops_wait(record, seen, 1000000);
		} else {
			atomic_fetch_add(&r->book->unexpected, 1);
			return false;
		}
	}
	item->epoch = r->epoch;
	atomic_fetch_add(&r->book->held, 1);
	atomic_fetch_add(kind == HCOMM_OP_SEND ? &r->book->p2p : &r->book->begun, 1);
	return true;
}

struct beginner {
	struct rank *rank;
	uint64_t seed;
};

static void *beginner(void *arg)
{
	struct beginner *b = arg;
	struct rank *r = b->rank;
	volatile uint32_t work;
	struct item item;
	uint32_t dice;
	bool go_on;

	for (;;) {
		dice = draw(&b->seed);
		pthread_mutex_lock(&r->order);
		go_on = start(r, &b->seed, &item);
		pthread_mutex_unlock(&r->order);
		if (!go_on)
			return NULL;
		for (work = dice >> 24; work; work--)
			;
		if (dice % 5 || !hand_over(r, &item))
			finish(r, &item);
	}
}

static void rank_run(struct rank *r, uint64_t seed)
{
	struct beginner b[2] = {{r, seed * 2 + 1}, {r, seed * 2 + 2}};
	pthread_t thread[3];
	int i;

	for (i = 0; i < 2; i++)
		if (pthread_create(&thread[i], NULL, beginner, &b[i]))
			abort();
	if (pthread_create(&thread[2], NULL, ender, r))
		abort();
	for (i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	pthread_mutex_lock(&r->queue_lock);
	r->closing = 1;
	pthread_cond_signal(&r->queue_more);
	pthread_mutex_unlock(&r->queue_lock);
	pthread_join(thread[2], NULL);
}

/* ---- the daemon ---- */

struct node {
	char dir[64];
	struct hc_pages *pages;
	struct hc_page_record *record;
	struct hc_arena arena[RANKS];
	struct books *books;
	struct hc_pages_state s;
	pid_t pid[RANKS];
	int wake_fd;
	bool fence;
	uint64_t seed, longest_ns;
	uint32_t drains, lifts, waits;
};

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void rank_fork(struct node *n, int k)
{
	struct hc_ops_seat seat = {.block = &n->arena[k].blocks[0], .rank = (uint32_t)k};
	static struct rank r;
	const struct hc_page_record *view;
	int fd;

	n->pid[k] = fork();
	ck_assert_int_ge(n->pid[k], 0);
	if (n->pid[k])
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (hc_pages_slab_fd(n->pages, 1, 0, &fd))
		_exit(2);
	view = mmap(NULL, HC_SLAB_RECORDS * HC_RECORD_BYTES, PROT_READ, MAP_SHARED, fd, 0);
	if (view == MAP_FAILED || (n->fence && hc_ops_register()))
		_exit(3);
	r = (struct rank){
		.books = n->books, .book = &n->books->rank[k], .wake_fd = n->wake_fd, .epoch = 1};
	r.hooks = (struct hc_ops_hooks){on_wake, on_reattach, &r};
	pthread_mutex_init(&r.order, NULL);
	pthread_mutex_init(&r.queue_lock, NULL);
	pthread_cond_init(&r.queue_more, NULL);
	hc_ops_attach(&r.d, 1, DOMAIN, 1, HC_TAG(1, 1), view, &seat, 1, n->fence, &r.hooks);
	rank_run(&r, 1000003u * (uint64_t)(k + 1));
	_exit(0);
}

static void node_prepare(struct node *n, bool fence)
{
	int k;

	memset(n, 0, sizeof(*n));
	n->fence = fence;
	n->seed = 88172645463325252ull;
	snprintf(n->dir, sizeof(n->dir), "%s/hc-live-XXXXXX",
		 getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
	ck_assert_ptr_nonnull(mkdtemp(n->dir));
	ck_assert_int_eq(hc_pages_open(n->dir, &n->pages), 0);
	ck_assert_int_eq(hc_pages_record(n->pages, 1, 0, &n->record), 0);
	n->books = mmap(NULL, sizeof(*n->books), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			-1, 0);
	ck_assert_ptr_ne(n->books, MAP_FAILED);
	n->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	ck_assert_int_ge(n->wake_fd, 0);
	n->s = (struct hc_pages_state){.id = DOMAIN,
				       .start = 1,
				       .tag = HC_TAG(1, 1),
				       .epoch = 1,
				       .nranks = RANKS,
				       .state = HCOMM_ACTIVE};
	hc_pages_publish(n->record, &n->s);
	for (k = 0; k < RANKS; k++)
		ck_assert_int_eq(hc_arena_make(&n->arena[k]), 0);
}

static void node_open(struct node *n, bool fence)
{
	int k;

	node_prepare(n, fence);
	for (k = 0; k < RANKS; k++)
		rank_fork(n, k);
}

static void node_clean(struct node *n)
{
	char command[128];
	int k;

	for (k = 0; k < RANKS; k++)
		hc_arena_drop(&n->arena[k]);
	close(n->wake_fd);
	munmap(n->books, sizeof(*n->books));
	hc_pages_close(n->pages);
	snprintf(command, sizeof(command), "rm -rf %s", n->dir);
	ck_assert_int_eq(system(command), 0);
}

static void node_close(struct node *n)
{
	int k, status;

	for (k = 0; k < RANKS; k++) {
		ck_assert_int_eq(waitpid(n->pid[k], &status, 0), n->pid[k]);
		ck_assert_int_eq(status, 0);
	}
	node_clean(n);
}

static void publish(struct node *n, uint8_t state, uint8_t cut_set)
{
	n->s.state = state;
	n->s.cut_set = cut_set;
	n->s.number++;
	hc_pages_publish(n->record, &n->s);
	if (n->fence)
		ck_assert_int_eq(hc_pages_fence(), 0);
}

/* Without an assertion of check on the good way: those make a system call. */
static struct hc_arena_sample look(struct node *n, int k)
{
	struct hc_arena_sample sample;

	if (hc_arena_scan(&n->arena[k], 0, DOMAIN, n->s.epoch & 1, &sample) || !sample.sane)
		ck_abort_msg("rank %d: the counters are nonsense", k);
	return sample;
}

static bool drained(struct node *n)
{
	struct hc_arena_sample sample;
	int k;

	for (k = 0; k < RANKS; k++) {
		sample = look(n, k);
		if (sample.begun < n->s.cut || sample.running)
			return false;
	}
	return true;
}

static void say_who(struct node *n)
{
	struct hc_arena_sample sample;
	int k;

	for (k = 0; k < RANKS; k++) {
		sample = look(n, k);
		fprintf(stderr, "rank %d: begun %lu of %lu, %u running; its books: %ld held\n", k,
			(unsigned long)sample.begun, (unsigned long)n->s.cut, sample.running,
			(long)n->books->rank[k].held);
	}
}

static void wait_for_wake(struct node *n)
{
	struct pollfd p = {.fd = n->wake_fd, .events = POLLIN};
	uint64_t count;
	int r;

	n->waits++;
	r = poll(&p, 1, STUCK_MS);
	if (r == 1 && read(n->wake_fd, &count, sizeof(count)) == sizeof(count))
		return;
	say_who(n);
	ck_abort_msg("epoch %u: nobody woke the daemon for %d ms (a reference left: %s)",
		     n->s.epoch, STUCK_MS, drained(n) ? "no, a lost wake-up" : "yes, a dead-lock");
}

static void check_books(struct node *n)
{
	struct book *b;
	int k;

	for (k = 0; k < RANKS; k++) {
		b = &n->books->rank[k];
		ck_assert_msg(!atomic_load(&b->held), "epoch %u: released, but rank %d holds %ld",
			      n->s.epoch, k, (long)b->held);
		ck_assert_msg(atomic_load(&b->ended) == n->s.cut,
			      "epoch %u: rank %d has ended %lu of %lu", n->s.epoch, k,
			      (unsigned long)b->ended, (unsigned long)n->s.cut);
		ck_assert_uint_eq(atomic_load(&b->after_release), 0);
		ck_assert_uint_eq(atomic_load(&b->unexpected), 0);
	}
}

static void pause_ns(long ns)
{
	struct timespec t = {.tv_nsec = ns};

	nanosleep(&t, NULL);
}

static void drain(struct node *n, uint8_t kind)
{
	uint64_t start = now_ns(), took;
	int k;

	n->s.drain = kind;
	n->s.cut = 0;
	publish(n, HCOMM_DRAINING, HC_CUT_NONE);
	for (k = 0; k < RANKS; k++) {
		uint64_t begun = look(n, k).begun;

		n->s.cut = begun > n->s.cut ? begun : n->s.cut;
	}
	publish(n, HCOMM_DRAINING, HC_CUT_SET);
	for (;;) {
		while (!drained(n))
			wait_for_wake(n);
		publish(n, HCOMM_DRAINING, HC_CUT_CLOSED);
		if (draw(&n->seed) % 4 == 0)
			pause_ns(2000000); /* somebody comes to a closed cut */
		if (drained(n))
			break;
		n->lifts++;
		publish(n, HCOMM_DRAINING, HC_CUT_SET);
	}
	atomic_store(&n->books->released, n->s.epoch);
	check_books(n);
	took = now_ns() - start;
	n->longest_ns = took > n->longest_ns ? took : n->longest_ns;
	n->drains++;
}

/* Let the ranks run for a while, and trouble them. */
static void let_run(struct node *n)
{
	uint32_t dice = draw(&n->seed);

	publish(n, HCOMM_ACTIVE, HC_CUT_NONE);
	pause_ns(dice % 2000000);
	if (dice % 4 == 0) {
		publish(n, HCOMM_SUSPENDED, HC_CUT_NONE);
		pause_ns(dice % 300000);
	}
	if (dice % 8 == 0) {
		n->s.start++;
		publish(n, HCOMM_ACTIVE, HC_CUT_NONE);
		pause_ns(dice % 700000);
	}
}

/* _i: 1 with the daemon's fence, 0 with locked instructions */
START_TEST(no_schedule_of_a_real_machine_breaks_a_drain)
{
	uint64_t total = 0, p2p = 0, until;
	struct node n;
	int k;

	node_open(&n, _i);
	until = now_ns() + (uint64_t)(getenv("HC_LONG") ? LONG_MS : QUICK_MS) * 1000000u;
	while (now_ns() < until) {
		let_run(&n);
		drain(&n, draw(&n.seed) % 2 ? HC_DRAIN_CHANGE : HC_DRAIN_DESTROY);
		n.s.epoch++;
		n.s.tag = HC_TAG(1, n.s.epoch);
	}
	let_run(&n);
	atomic_store(&n.books->stop, 1);
	drain(&n, HC_DRAIN_DESTROY);
	publish(&n, HCOMM_DESTROYED, HC_CUT_NONE);
	for (k = 0; k < RANKS; k++) {
		total += n.books->rank[k].ended;
		p2p += n.books->rank[k].p2p;
	}
	printf("ops live, %s: %u drains (%u opened again, %u waits, longest %lu us), "
	       "%lu collectives, %lu point-to-point\n",
	       n.fence ? "fence" : "locked", n.drains, n.lifts, n.waits,
	       (unsigned long)(n.longest_ns / 1000), (unsigned long)total, (unsigned long)p2p);
	fflush(stdout);
	ck_assert_uint_gt(n.drains, 1);
	ck_assert_uint_gt(total, 0);
	ck_assert_uint_gt(p2p, 0);
	node_close(&n);
}
END_TEST

/* ---- one begin against one closing of the gate ---- */

enum side { CONTROL, LOCKED, FENCED, SIDES };
static const char *const side_name[SIDES] = {"no fence at all", "locked", "fence"};

struct duel {
	struct node n;
	struct hc_ops_domain d;
	struct hc_ops_hooks hooks;
	_Alignas(64) _Atomic uint32_t step; /* odd: begin; even: end */
	_Alignas(64) _Atomic uint32_t answered;
	int result;
	uint32_t last; /* rounds */
};

static void no_hook(struct hc_ops_domain *d, void *context)
{
	(void)d;
	(void)context;
}

static bool pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((size_t)cpu, &set);
	return !sched_setaffinity(0, sizeof(set), &set);
}

static void spin(uint32_t turns)
{
	volatile uint32_t i;

	for (i = turns; i; i--)
		;
}

static void await(_Atomic uint32_t *at, uint32_t value)
{
	while (atomic_load_explicit(at, memory_order_acquire) < value)
		;
}

static void *duel_client(void *arg)
{
	struct duel *x = arg;
	uint64_t seed = 362436069;
	struct hcomm_op op;
	uint32_t step;

	pin(1);
	for (step = 1; step <= 2 * x->last; step++) {
		await(&x->step, step);
		if (step % 2) {
			spin(draw(&seed) % 32);
			x->result = hc_ops_begin(&x->d, 0, HCOMM_OP_SEND, HCOMM_OP_NOWAIT, &op);
		} else if (!x->result) {
			hc_ops_end(&x->d, &op);
		}
		atomic_store_explicit(&x->answered, step, memory_order_release);
	}
	return NULL;
}

/* Close the gate bare, as near to the scan as can be; how many begins did both sides miss? */
static uint32_t duel(struct duel *x, enum side side, uint32_t *admitted)
{
	const uint64_t open = HC_GATE(1, HC_TAG(1, 1), HCOMM_ACTIVE);
	const uint64_t closed = HC_GATE(1, HC_TAG(1, 1), HCOMM_SUSPENDED);
	uint32_t round, missed = 0, running, delay = 0;
	uint64_t seed = 521288629;

	for (round = 0; round < x->last; round++) {
		atomic_store(&x->n.record->gate, open);
		atomic_store_explicit(&x->step, 2 * round + 1, memory_order_release);
		spin(delay / 8 + draw(&seed) % 32);
		atomic_store_explicit(&x->n.record->gate, closed,
				      side == LOCKED ? memory_order_seq_cst : memory_order_release);
		if (side == FENCED && hc_pages_fence())
			ck_abort_msg("no fence");
		running = look(&x->n, 0).running;
		await(&x->answered, 2 * round + 1);
		*admitted += !x->result;
		/* stay where one side is as often the first as the other */
		delay = x->result ? delay + 1 : delay ? delay - 1 : 0;
		missed += !x->result && !running;
		atomic_store_explicit(&x->step, 2 * round + 2, memory_order_release);
		await(&x->answered, 2 * round + 2);
	}
	return missed;
}

/* The control shows what there is to miss; it is a matter of the machine, so only printed. */
START_TEST(a_begin_and_a_closing_gate_never_miss_each_other)
{
	struct hc_ops_seat seat;
	static struct duel x;
	uint32_t missed, admitted = 0;
	pthread_t client;
	cpu_set_t set;

	ck_assert_int_eq(sched_getaffinity(0, sizeof(set), &set), 0);
	if (!CPU_ISSET(0, &set) || !CPU_ISSET(1, &set))
		return; /* one processor has no such race */
	pin(0);
	node_prepare(&x.n, true);
	x.last = getenv("HC_LONG") ? 5000000 : 100000;
	seat = (struct hc_ops_seat){.block = &x.n.arena[0].blocks[0]};
	x.hooks = (struct hc_ops_hooks){no_hook, no_hook, NULL};
	ck_assert_int_eq(hc_ops_register(), 0);
	hc_ops_attach(&x.d, 1, DOMAIN, 1, HC_TAG(1, 1), x.n.record, &seat, 1, _i != LOCKED,
		      &x.hooks);
	ck_assert_int_eq(pthread_create(&client, NULL, duel_client, &x), 0);
	missed = duel(&x, (enum side)_i, &admitted);
	pthread_join(client, NULL);
	printf("ops duel, %s: %u rounds, %u admitted, %u missed\n", side_name[_i], x.last, admitted,
	       missed);
	fflush(stdout);
	ck_assert_uint_gt(admitted, 0);
	ck_assert_uint_lt(admitted, x.last);
	if (_i != CONTROL)
		ck_assert_uint_eq(missed, 0);
	node_clean(&x.n);
}
END_TEST

/* ---- scans against counters that run on ---- */

struct churn {
	struct hc_ops_domain d;
	struct hc_ops_hooks hooks;
	_Atomic uint32_t stop;
	_Atomic uint64_t pairs;
};

static void *churn_run(void *arg)
{
	struct churn *x = arg;
	struct hcomm_op op;

	while (!atomic_load_explicit(&x->stop, memory_order_relaxed)) {
		if (hc_ops_begin(&x->d, 0, HCOMM_OP_RECV, HCOMM_OP_NOWAIT, &op))
			abort();
		if (hc_ops_end(&x->d, &op))
			abort();
		atomic_fetch_add_explicit(&x->pairs, 1, memory_order_relaxed);
	}
	return NULL;
}

START_TEST(a_held_reference_is_never_overlooked)
{
	static struct node n;
	static struct churn x;
	struct hc_ops_seat seat;
	struct hcomm_op held;
	pthread_t thread;
	uint32_t i, running;

	node_prepare(&n, true);
	seat = (struct hc_ops_seat){.block = &n.arena[0].blocks[0]};
	x.hooks = (struct hc_ops_hooks){no_hook, no_hook, NULL};
	ck_assert_int_eq(hc_ops_register(), 0);
	hc_ops_attach(&x.d, 1, DOMAIN, 1, HC_TAG(1, 1), n.record, &seat, 1, _i, &x.hooks);
	ck_assert_int_eq(hc_ops_begin(&x.d, 0, HCOMM_OP_SEND, 0, &held), 0);
	ck_assert_int_eq(pthread_create(&thread, NULL, churn_run, &x), 0);
	while (!atomic_load(&x.pairs))
		sched_yield();
	for (i = 0; i < 200000; i++) {
		running = look(&n, 0).running;
		if (!running)
			ck_abort_msg("scan %u sees nothing running", i);
	}
	atomic_store(&x.stop, 1);
	pthread_join(thread, NULL);
	ck_assert_int_eq(hc_ops_end(&x.d, &held), 0);
	ck_assert_uint_eq(look(&n, 0).running, 0);
	node_clean(&n);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("ops live");
	TCase *c = tcase_create("drains under load");
	SRunner *r;
	int failed;

	tcase_set_timeout(c, getenv("HC_LONG") ? 300 : 60);
	tcase_add_loop_test(c, no_schedule_of_a_real_machine_breaks_a_drain, 0, 2);
	tcase_add_loop_test(c, a_begin_and_a_closing_gate_never_miss_each_other, 0, SIDES);
	tcase_add_loop_test(c, a_held_reference_is_never_overlooked, 0, 2);
	suite_add_tcase(s, c);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
