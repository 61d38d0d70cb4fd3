/* SPDX-License-Identifier: Apache-2.0 */
/*
 * References against a destroy, with real processes.
 *
 * Eight rank processes of two threads each run collective operations in lockstep: an operation
 * is over on a rank only when every rank has begun it, as an all-reduce is. A page that all
 * share is the audit. Meanwhile another client destroys the domain.
 *
 * What must come out, whatever the moment: every rank was let in up to the same number and ended
 * it, so nobody was left waiting in an operation that another rank was refused; no operation was
 * running when the destroy returned; and it returned 0, so nothing was released by force.
 */
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "ranks.h"
#include "suite.h"

enum { RANKS = 8, THREADS = 2, STUCK_MS = 20000 };

struct audit {
	uint32_t turn;      /* futex: +1 at each begin */
	uint32_t destroyed; /* the destroy has returned */
	int32_t running;    /* operations between begin and end */
	uint32_t late;      /* operations that still ran after it */
	uint64_t begun[RANKS];
	uint64_t ended[RANKS];
};

static struct audit *audit;
static struct hc_node node;

struct member {
	uint32_t rank;
	hcomm_domain domain;
	pthread_mutex_t lock; /* one begin at a time, which numbers the operations */
	uint64_t number;
	int last[THREADS];
	bool stuck;
};

struct worker {
	struct member *m;
	unsigned index;
};

static bool all_have_begun(uint64_t number)
{
	for (int i = 0; i < RANKS; i++) {
		if (__atomic_load_n(&audit->begun[i], __ATOMIC_SEQ_CST) < number)
			return false;
	}
	return true;
}

/* The operation itself: until every rank is in it. */
static bool meet(uint64_t number)
{
	const struct timespec step = {.tv_nsec = 2000000};
	uint64_t end = hc_now_ms() + hc_patience(STUCK_MS);
	uint32_t turn;

	for (;;) {
		turn = __atomic_load_n(&audit->turn, __ATOMIC_SEQ_CST);
		if (all_have_begun(number))
			return true;
		if (hc_now_ms() > end)
			return false;
		syscall(SYS_futex, &audit->turn, FUTEX_WAIT, turn, &step, NULL, 0);
	}
}

static int begin_next(struct member *m, struct hcomm_op *op, uint64_t *number)
{
	int r;

	pthread_mutex_lock(&m->lock);
	r = hcomm_op_begin(m->domain, HCOMM_OP_ALL_REDUCE, 4096, 0, op);
	if (!r) {
		*number = ++m->number;
		__atomic_fetch_add(&audit->running, 1, __ATOMIC_SEQ_CST);
		__atomic_store_n(&audit->begun[m->rank], *number, __ATOMIC_SEQ_CST);
	}
	pthread_mutex_unlock(&m->lock);
	if (!r) {
		__atomic_fetch_add(&audit->turn, 1, __ATOMIC_SEQ_CST);
		syscall(SYS_futex, &audit->turn, FUTEX_WAKE, 1 << 20, NULL, NULL, 0);
	}
	return r;
}

static void *work(void *arg)
{
	struct worker *w = arg;
	struct member *m = w->m;
	struct hcomm_op op;
	uint64_t number;
	int r;

	while (!(r = begin_next(m, &op, &number))) {
		if (!meet(number))
			m->stuck = true;
		if (__atomic_load_n(&audit->destroyed, __ATOMIC_SEQ_CST))
			__atomic_fetch_add(&audit->late, 1, __ATOMIC_SEQ_CST);
		__atomic_fetch_add(&audit->ended[m->rank], 1, __ATOMIC_SEQ_CST);
		__atomic_fetch_sub(&audit->running, 1, __ATOMIC_SEQ_CST);
		r = hcomm_op_end(&op);
		if (r)
			break;
	}
	m->last[w->index] = r;
	return NULL;
}

struct orders {
	struct hcomm_root_info info;
	uint32_t stop;
};

static void run_round(struct hcomm_session *s, struct member *m, const struct orders *o)
{
	struct worker w[THREADS];
	pthread_t t[THREADS];
	int r;

	r = hcomm_join(s, &o->info, RANKS, m->rank, m->rank, NULL, 20000, &m->domain);
	if (r)
		hc_fail("rank %u: %s: %s", m->rank, hcomm_error_name(r), hcomm_last_error());
	m->number = 0;
	for (unsigned i = 0; i < THREADS; i++) {
		w[i] = (struct worker){m, i};
		if (pthread_create(&t[i], NULL, work, &w[i]))
			hc_fail("no thread");
	}
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	for (unsigned i = 0; i < THREADS; i++) {
		if (m->last[i] != HCOMM_E_GONE)
			hc_fail("rank %u ended by %s", m->rank, hcomm_error_name(m->last[i]));
	}
	if (m->stuck)
		hc_fail("rank %u waited in vain for another rank in operation #%llu", m->rank,
			(unsigned long long)m->number);
}

static int rank_main(void *arg, int in, int out)
{
	struct member m = {.rank = *(uint32_t *)arg, .lock = PTHREAD_MUTEX_INITIALIZER};
	struct hcomm_session *s;
	struct orders o;
	int done = 1;

	if (hcomm_open(NULL, &s))
		hc_fail("%s", hcomm_last_error());
	for (;;) {
		hc_hear(in, &o, sizeof(o), 120000);
		if (o.stop)
			break;
		run_round(s, &m, &o);
		hc_tell(out, &done, sizeof(done));
	}
	hcomm_close(s);
	return 0;
}

static bool far_enough(void *ctx)
{
	return all_have_begun(*(const uint64_t *)ctx);
}

static void check_audit(unsigned round)
{
	ck_assert_uint_eq(audit->late, 0);
	for (int i = 0; i < RANKS; i++) {
		ck_assert_msg(audit->begun[i] == audit->begun[0],
			      "round %u: rank %d began %llu, rank 0 %llu", round, i,
			      (unsigned long long)audit->begun[i],
			      (unsigned long long)audit->begun[0]);
		ck_assert_msg(audit->ended[i] == audit->begun[i],
			      "round %u: rank %d began %llu and ended %llu", round, i,
			      (unsigned long long)audit->begun[i],
			      (unsigned long long)audit->ended[i]);
	}
}

static uint64_t one_round(struct hcomm_session *s, struct hc_child *c, unsigned round,
			  uint64_t operations)
{
	struct hcomm_config config = HCOMM_INIT(struct hcomm_config);
	struct orders o = {.stop = 0};
	int done, r;
	char name[32];

	memset(audit, 0, sizeof(*audit));
	snprintf(name, sizeof(name), "audited-%u", round);
	config.name = name;
	ck_assert_int_eq(hcomm_root_info(s, RANKS, &config, &o.info), 0);
	for (int i = 0; i < RANKS; i++)
		hc_child_tell(&c[i], &o, sizeof(o));
	hc_await("the ranks to run", far_enough, &operations, 20000);
	r = hcomm_destroy_named(s, 0, name, 15000);
	ck_assert_msg(!r, "round %u: %s: %s", round, hcomm_error_name(r), hcomm_last_error());
	__atomic_store_n(&audit->destroyed, 1, __ATOMIC_SEQ_CST);
	ck_assert_int_eq(__atomic_load_n(&audit->running, __ATOMIC_SEQ_CST), 0);
	for (int i = 0; i < RANKS; i++)
		hc_child_read(&c[i], &done, sizeof(done), 30000);
	check_audit(round);
	return audit->begun[0];
}

START_TEST(a_destroy_never_overtakes_a_collective)
{
	const struct orders stop = {.stop = 1};
	struct hc_child c[RANKS];
	struct hcomm_session *s;
	unsigned rounds = hc_long() ? 2000 : 100;
	uint64_t total = 0;

	audit = mmap(NULL, sizeof(*audit), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	ck_assert_ptr_ne(audit, MAP_FAILED);
	hc_node_start(&node, RANKS, NULL);
	ck_assert_int_eq(hcomm_open(NULL, &s), 0);
	for (uint32_t i = 0; i < RANKS; i++)
		hc_spawn(&c[i], rank_main, &i);
	for (unsigned n = 0; n < rounds; n++)
		total += one_round(s, c, n, 1 + n * 7 % 50);
	ck_assert_uint_gt(total, rounds);
	for (int i = 0; i < RANKS; i++)
		hc_child_tell(&c[i], &stop, sizeof(stop));
	for (int i = 0; i < RANKS; i++)
		ck_assert_int_eq(hc_child_wait(&c[i], 10000), 0);
	hcomm_close(s);
	hc_node_end(&node);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_test(t, a_destroy_never_overtakes_a_collective);
}

int main(void)
{
	return hc_suite_run("refs", add, hc_long() ? 600 : 90);
}
