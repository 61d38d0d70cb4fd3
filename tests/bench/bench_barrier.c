/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: a barrier of eight rank processes of one node takes at most 1.5 of the time of the floor,
 * a pthread barrier that they share (a count and one futex wake, without anything that could tell
 * who is missing or that somebody died), and at most that of MPI_Barrier.
 *
 * The ranks go from one barrier straight into the next, four on each of two processors; what is
 * looked at is what rank 0 waits. The MPI libraries run in rounds of their own in turn with ours,
 * with their ranks on the same processors. With more ranks than processors Open MPI yields when
 * it waits (--oversubscribe); MPICH has no such setting and spins.
 */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#include <hcomm/hcomm.h>

#include "bench.h"
#include "ours.h"
#include "peers.h"
#include "team.h"

#define NAME "barrier"

enum {
	RANKS = 8,
	TURNS = 5, /* of BARRIERS each, in a round */
	BARRIERS = 200,
	ROUNDS = 11,
	MPICH_BARRIERS = 100,
	TIMEOUT_MS = 60000,
};

#define GOAL      1.5
#define GOAL_PEER 1.0

enum side { OURS, FLOOR, OPEN_MPI, MPICH, SIDES };

struct page { /* shared by the ranks of a contestant */
	pthread_barrier_t barrier;
	struct hcomm_root_info info;
	uint64_t ns[BARRIERS]; /* of rank 0, in this turn */
};

struct job {
	const char *socket;
	struct page *page;
	struct hcomm_session *session;
	hcomm_domain domain;
};

struct contest {
	struct team team;
	struct job job;
	struct bench_samples round, all;
};

struct peer {
	bool mpich, there;
	unsigned turns;
	struct peer_times last;
	double p99[BENCH_ROUNDS_MAX];
	size_t count;
	int cpus[2];
};

static struct page *map_page(void)
{
	struct page *p =
		mmap(NULL, sizeof(*p), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		bench_die("no memory for a page");
	return p;
}

/* ---- ours ---- */

static void join(void *ctx, unsigned rank)
{
	struct hcomm_open_args args = HCOMM_INIT(struct hcomm_open_args);
	struct job *j = ctx;

	args.socket = j->socket;
	ours_must(hcomm_open(&args, &j->session), "hcomm_open");
	ours_must(hcomm_join(j->session, &j->page->info, RANKS, rank, rank, NULL, TIMEOUT_MS,
			     &j->domain),
		  "hcomm_join");
	ours_must(hcomm_barrier(j->domain, TIMEOUT_MS), "hcomm_barrier");
}

static void our_barriers(void *ctx, unsigned rank, uint64_t turn)
{
	struct job *j = ctx;
	uint64_t begin;
	int i;

	(void)turn;
	for (i = 0; i < BARRIERS; i++) {
		begin = bench_now_ns();
		ours_must(hcomm_barrier(j->domain, TIMEOUT_MS), "hcomm_barrier");
		if (!rank)
			j->page->ns[i] = bench_now_ns() - begin;
	}
}

static void make_info(struct job *j)
{
	struct hcomm_open_args args = HCOMM_INIT(struct hcomm_open_args);
	struct hcomm_session *s;

	args.socket = j->socket;
	ours_must(hcomm_open(&args, &s), "hcomm_open");
	ours_must(hcomm_root_info(s, RANKS, NULL, &j->page->info), "hcomm_root_info");
	hcomm_close(s);
}

/* ---- the floor ---- */

static void nothing(void *ctx, unsigned rank)
{
	(void)ctx;
	(void)rank;
}

static void floor_barriers(void *ctx, unsigned rank, uint64_t turn)
{
	struct job *j = ctx;
	uint64_t begin;
	int i;

	(void)turn;
	for (i = 0; i < BARRIERS; i++) {
		begin = bench_now_ns();
		pthread_barrier_wait(&j->page->barrier);
		if (!rank)
			j->page->ns[i] = bench_now_ns() - begin;
	}
}

static void make_floor(struct page *p)
{
	pthread_barrierattr_t a;

	pthread_barrierattr_init(&a);
	if (pthread_barrierattr_setpshared(&a, PTHREAD_PROCESS_SHARED) ||
	    pthread_barrier_init(&p->barrier, &a, RANKS))
		bench_die("no barrier for processes");
	pthread_barrierattr_destroy(&a);
}

/* ---- rounds ---- */

static double one_round(void *ctx)
{
	struct contest *c = ctx;
	int i, k;

	bench_samples_reset(&c->round);
	for (i = 0; i < TURNS; i++) {
		team_turn(&c->team);
		for (k = 0; k < BARRIERS; k++) {
			bench_samples_add(&c->round, c->job.page->ns[k]);
			bench_samples_add(&c->all, c->job.page->ns[k]);
		}
	}
	return (double)bench_samples_at(&c->round, 50) / 1e3;
}

/* 0 where it is not installed. */
static double peer_round(void *ctx)
{
	struct peer *p = ctx;

	p->there = peer_mpi_barrier(&p->last, bench_tmpdir(), p->mpich, RANKS, p->turns, p->cpus);
	if (p->there && p->count < BENCH_ROUNDS_MAX)
		p->p99[p->count++] = p->last.p99_us;
	return p->last.p50_us;
}

static void put_ours(struct bench_line *l, const char *p50, const char *p99, struct contest *c)
{
	bench_line_num(l, p50, (double)bench_samples_at(&c->all, 50) / 1e3, 2);
	bench_line_num(l, p99, (double)bench_samples_at(&c->all, 99) / 1e3, 2);
}

static bool put_peer(struct bench_line *l, const struct bench_table *t, enum side side,
		     const struct peer *p, const char *const names[4])
{
	bench_line_str(l, names[0], p->last.what);
	if (!p->there) {
		bench_line_null(l, names[1]);
		bench_line_null(l, names[2]);
		bench_line_null(l, names[3]);
		return true;
	}
	bench_line_num(l, names[1], bench_table_median(t, side), 2);
	bench_line_num(l, names[2], bench_median(p->p99, p->count), 2);
	bench_line_num(l, names[3], bench_table_ratio(t, OURS, side), 3);
	return bench_table_ratio(t, OURS, side) <= GOAL_PEER;
}

static void report(const struct bench_table *t, struct contest *c, const struct peer *p)
{
	static const char *const open_mpi[] = {"open_mpi", "open_mpi_p50_us", "open_mpi_p99_us",
					       "open_mpi_ratio"};
	static const char *const mpich[] = {"mpich", "mpich_p50_us", "mpich_p99_us", "mpich_ratio"};
	double ratio = bench_table_ratio(t, OURS, FLOOR);
	struct bench_line l;
	bool met = ratio <= GOAL;

	bench_line_open(&l, NAME);
	bench_line_bool(&l, "summary", true);
	bench_line_int(&l, "ranks", RANKS);
	put_ours(&l, "p50_us", "p99_us", &c[OURS]);
	put_ours(&l, "floor_p50_us", "floor_p99_us", &c[FLOOR]);
	bench_line_num(&l, "ratio", ratio, 3);
	bench_line_num(&l, "goal", GOAL, 2);
	met = put_peer(&l, t, OPEN_MPI, &p[0], open_mpi) && met;
	met = put_peer(&l, t, MPICH, &p[1], mpich) && met;
	bench_line_num(&l, "peer_goal", GOAL_PEER, 2);
	bench_line_bool(&l, "met", met);
	bench_line_print(&l);
}

static void begin(struct contest *c, const int cpus[2], const struct team_steps *steps,
		  size_t rounds)
{
	team_start(&c->team, RANKS, cpus, 2, steps);
	bench_samples_init(&c->round, TURNS * BARRIERS);
	bench_samples_init(&c->all, TURNS * BARRIERS * (rounds + 1));
}

static void end(struct contest *c)
{
	team_stop(&c->team);
	bench_samples_fini(&c->round);
	bench_samples_fini(&c->all);
}

int main(void)
{
	static struct bench_table t;
	static struct contest c[2];
	static struct peer p[2] = {{.turns = BARRIERS * TURNS},
				   {.mpich = true, .turns = MPICH_BARRIERS}};
	const struct team_steps ours = {&c[OURS].job, join, our_barriers, NULL};
	const struct team_steps floor = {&c[FLOOR].job, nothing, floor_barriers, NULL};
	const struct bench_side side[SIDES] = {[OURS] = {"ours", one_round, &c[OURS]},
					       [FLOOR] = {"floor", one_round, &c[FLOOR]},
					       [OPEN_MPI] = {"Open MPI", peer_round, &p[0]},
					       [MPICH] = {"MPICH", peer_round, &p[1]}};
	size_t rounds = bench_rounds(ROUNDS);
	struct ours *o;
	int cpus[2], i;

	bench_line_machine(NAME);
	bench_cpus(&cpus[0], &cpus[1]);
	o = ours_start(RANKS, cpus[1]);
	c[OURS].job.socket = ours_socket(o);
	for (i = 0; i < 2; i++) {
		c[i].job.page = map_page();
		memcpy(p[i].cpus, cpus, sizeof(cpus));
	}
	make_info(&c[OURS].job);
	make_floor(c[FLOOR].job.page);
	begin(&c[OURS], cpus, &ours, rounds);
	begin(&c[FLOOR], cpus, &floor, rounds);
	bench_interleave(side, SIDES, rounds, &t);
	report(&t, c, p);
	end(&c[OURS]);
	end(&c[FLOOR]);
	ours_stop(o);
	return 0;
}
