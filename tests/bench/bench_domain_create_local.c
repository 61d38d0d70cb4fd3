/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: eight rank processes of one node form a domain in at most 1.8 of the floor's time (a
 * request from each, one row through a writer thread, an answer to each), and in at most 0.6 of
 * what Open MPI's MPI_Comm_split takes for as many ranks, and a five hundredth of PyTorch's
 * new_group with gloo.
 *
 * All ranks are released together; a turn lasts from the first rank's call to the last rank's
 * return. They join by a rank table, which is what is judged (reading the file included), and in
 * rounds of their own by a root info. Leaving is not timed, and nobody leaves before all have
 * their answer. Ours and the floor run with the server on one processor and the ranks spread
 * over both; Open MPI has both as well.
 */
#include <stdio.h>
#include <sys/mman.h>

#include <hcomm/hcomm.h>

#include "bench.h"
#include "createfloor.h"
#include "ours.h"
#include "peers.h"
#include "team.h"

#define NAME "domain_create_local"

enum {
	RANKS = 8,
	TURNS = 50,
	ROUNDS = 21,
	MPI_TURNS = 200,
	MPI_ROUNDS = 5,
	GLOO_TURNS = 20,
	TIMEOUT_MS = 10000,
	REQUEST_BYTES = 256,
	ANSWER_BYTES = 64,
	ROW_BYTES = 256,
};

#define GOAL      1.8
#define GOAL_PEER 0.6
#define GOAL_GLOO 500.0 /* of it, ours takes one part */

enum side {
	TABLE,
	ROOT,
	FLOOR,
	SIDES,
};

/* What a rank process needs; session and domain are its own. */
struct job {
	const char *socket;
	char table[300];
	struct hcomm_root_info *info; /* shared by the ranks */
	struct hcomm_session *session;
	hcomm_domain domain;
};

struct contest {
	uint64_t (*turn)(void *team);
	void *team;
	struct bench_samples round;
	struct bench_samples all;
};

static void open_session(void *ctx, unsigned rank)
{
	struct hcomm_open_args args = HCOMM_INIT(struct hcomm_open_args);
	struct job *j = ctx;

	(void)rank;
	args.socket = j->socket;
	ours_must(hcomm_open(&args, &j->session), "hcomm_open");
}

static void table_join(void *ctx, unsigned rank, uint64_t turn)
{
	struct job *j = ctx;

	(void)turn;
	ours_must(hcomm_join_table(j->session, j->table, rank, NULL, TIMEOUT_MS, &j->domain),
		  "hcomm_join_table");
}

static void table_leave(void *ctx, unsigned rank, uint64_t turn)
{
	struct job *j = ctx;

	(void)rank;
	(void)turn;
	ours_must(hcomm_leave(j->domain, TIMEOUT_MS), "hcomm_leave");
}

static void root_make(struct job *j, unsigned rank)
{
	if (!rank)
		ours_must(hcomm_root_info(j->session, RANKS, NULL, j->info), "hcomm_root_info");
}

static void root_setup(void *ctx, unsigned rank)
{
	open_session(ctx, rank);
	root_make(ctx, rank);
}

static void root_join(void *ctx, unsigned rank, uint64_t turn)
{
	struct job *j = ctx;

	(void)turn;
	ours_must(hcomm_join(j->session, j->info, RANKS, rank, RANKS + rank, NULL, TIMEOUT_MS,
			     &j->domain),
		  "hcomm_join");
}

static void root_leave(void *ctx, unsigned rank, uint64_t turn)
{
	table_leave(ctx, rank, turn);
	root_make(ctx, rank);
}

static uint64_t our_turn(void *team)
{
	return team_turn(team);
}

static uint64_t floor_turn(void *team)
{
	return createfloor_turn(team);
}

static double one_round(void *ctx)
{
	struct contest *c = ctx;
	uint64_t ns;
	int i;

	bench_samples_reset(&c->round);
	for (i = 0; i < TURNS; i++) {
		ns = c->turn(c->team);
		bench_samples_add(&c->round, ns);
		bench_samples_add(&c->all, ns);
	}
	return (double)bench_samples_at(&c->round, 50);
}

/* The median of some runs; each starts its ranks anew, so they cannot be as many as rounds. */
static bool ask_mpi(struct peer_times *m, double *p50_us, double *p99_us)
{
	double p50[MPI_ROUNDS], p99[MPI_ROUNDS];
	int i;

	for (i = 0; i < MPI_ROUNDS; i++) {
		if (!peer_mpi_split(m, bench_tmpdir(), RANKS, MPI_TURNS))
			return false;
		p50[i] = m->p50_us;
		p99[i] = m->p99_us;
	}
	*p50_us = bench_median(p50, MPI_ROUNDS);
	*p99_us = bench_median(p99, MPI_ROUNDS);
	return true;
}

static void put_ms(struct bench_line *l, const char *p50, const char *p99, struct contest *c)
{
	bench_line_num(l, p50, (double)bench_samples_at(&c->all, 50) / 1e6, 4);
	bench_line_num(l, p99, (double)bench_samples_at(&c->all, 99) / 1e6, 4);
}

static void report(const struct bench_table *t, struct contest *c)
{
	double ratio = bench_table_ratio(t, TABLE, FLOOR);
	double ours_us = (double)bench_samples_at(&c[TABLE].all, 50) / 1e3;
	double mpi_p50 = 0, mpi_p99 = 0;
	struct bench_line l;
	struct peer_times m;
	bool peer, gloo;

	peer = ask_mpi(&m, &mpi_p50, &mpi_p99);
	bench_line_open(&l, NAME);
	bench_line_bool(&l, "summary", true);
	bench_line_int(&l, "ranks", RANKS);
	put_ms(&l, "p50_ms", "p99_ms", &c[TABLE]);
	put_ms(&l, "root_info_p50_ms", "root_info_p99_ms", &c[ROOT]);
	put_ms(&l, "floor_p50_ms", "floor_p99_ms", &c[FLOOR]);
	bench_line_num(&l, "ratio", ratio, 3);
	bench_line_num(&l, "goal", GOAL, 2);
	bench_line_num(&l, "root_info_ratio", bench_table_ratio(t, ROOT, FLOOR), 3);
	bench_line_str(&l, "open_mpi", m.what);
	if (peer) {
		bench_line_num(&l, "open_mpi_p50_ms", mpi_p50 / 1e3, 4);
		bench_line_num(&l, "open_mpi_p99_ms", mpi_p99 / 1e3, 4);
		bench_line_num(&l, "peer_ratio", ours_us / mpi_p50, 3);
	} else {
		bench_line_null(&l, "open_mpi_p50_ms");
		bench_line_null(&l, "open_mpi_p99_ms");
		bench_line_null(&l, "peer_ratio");
	}
	bench_line_num(&l, "peer_goal", GOAL_PEER, 2);
	gloo = peer_gloo_group(&m, bench_tmpdir(), RANKS, GLOO_TURNS);
	if (gloo) {
		bench_line_num(&l, "gloo_p50_ms", m.p50_us / 1e3, 1);
		bench_line_num(&l, "gloo_part", m.p50_us / ours_us, 0);
	} else {
		bench_line_null(&l, "gloo_p50_ms");
		bench_line_null(&l, "gloo_part");
	}
	bench_line_num(&l, "gloo_goal", GOAL_GLOO, 0);
	bench_line_str(&l, "gloo", m.what);
	bench_line_bool(&l, "met",
			ratio <= GOAL && (!peer || ours_us / mpi_p50 <= GOAL_PEER) &&
				(!gloo || m.p50_us / ours_us >= GOAL_GLOO));
	bench_line_print(&l);
}

int main(void)
{
	static struct bench_table t;
	static struct job job[2];
	static struct contest c[SIDES];
	static const struct team_steps by_table = {&job[0], open_session, table_join, table_leave};
	static const struct team_steps by_root = {&job[1], root_setup, root_join, root_leave};
	const struct bench_side side[SIDES] = {[TABLE] = {"rank table", one_round, &c[TABLE]},
					       [ROOT] = {"root info", one_round, &c[ROOT]},
					       [FLOOR] = {"floor", one_round, &c[FLOOR]}};
	struct createfloor floor = {.ranks = RANKS,
				    .request_bytes = REQUEST_BYTES,
				    .answer_bytes = ANSWER_BYTES,
				    .row_bytes = ROW_BYTES};
	size_t rounds = bench_rounds(ROUNDS);
	struct team team[2];
	struct ours *o;
	int cpus[2];
	size_t i;

	bench_line_machine(NAME);
	bench_cpus(&cpus[0], &cpus[1]);
	o = ours_start(2 * RANKS, cpus[1]);
	job[0].socket = job[1].socket = ours_socket(o);
	snprintf(job[0].table, sizeof(job[0].table), "%s/eight.json", bench_tmpdir());
	ours_write_table(job[0].table, 0, RANKS);
	job[1].info = mmap(NULL, sizeof(*job[1].info), PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (job[1].info == MAP_FAILED)
		bench_die("no memory for a root info");
	team_start(&team[0], RANKS, cpus, 2, &by_table);
	team_start(&team[1], RANKS, cpus, 2, &by_root);
	floor.server_cpu = cpus[1];
	createfloor_start(&floor, bench_tmpdir(), cpus, 2);
	c[TABLE].turn = c[ROOT].turn = our_turn;
	c[TABLE].team = &team[0];
	c[ROOT].team = &team[1];
	c[FLOOR].turn = floor_turn;
	c[FLOOR].team = &floor;
	for (i = 0; i < SIDES; i++) {
		bench_samples_init(&c[i].round, TURNS);
		bench_samples_init(&c[i].all, TURNS * (rounds + 1));
	}
	bench_interleave(side, SIDES, rounds, &t);
	team_stop(&team[0]);
	team_stop(&team[1]);
	createfloor_stop(&floor);
	ours_stop(o);
	report(&t, c);
	for (i = 0; i < SIDES; i++) {
		bench_samples_fini(&c[i].round);
		bench_samples_fini(&c[i].all);
	}
	return 0;
}
