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

#include <hcomm/hcomm.h>

#include "bench.h"
#include "createfloor.h"
#include "joinjob.h"
#include "ours.h"
#include "peers.h"

#define NAME "domain_create_local"

enum {
	RANKS = 8,
	TURNS = 50,
	ROUNDS = 21,
	MPI_TURNS = 200,
	MPI_ROUNDS = 5,
	GLOO_TURNS = 20,
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

static uint64_t floor_turn(void *team)
{
	return createfloor_turn(team);
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

static void put_ms(struct bench_line *l, const char *p50, const char *p99, struct join_contest *c)
{
	bench_line_num(l, p50, (double)bench_samples_at(&c->all, 50) / 1e6, 4);
	bench_line_num(l, p99, (double)bench_samples_at(&c->all, 99) / 1e6, 4);
}

static void report(const struct bench_table *t, struct join_contest *c)
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
	static struct join_job job[2];
	static struct join_contest c[SIDES] = {
		[TABLE] = {.name = "rank table", .turn = join_team_turn, .turns = TURNS},
		[ROOT] = {.name = "root info", .turn = join_team_turn, .turns = TURNS},
		[FLOOR] = {.name = "floor", .turn = floor_turn, .turns = TURNS},
	};
	struct bench_side side[SIDES];
	struct team_steps steps[2];
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
	for (i = 0; i < 2; i++) {
		job[i] = (struct join_job){.socket = {ours_socket(o)}, .nodes = 1, .ranks = RANKS};
		join_job_prepare(&job[i]);
	}
	snprintf(job[0].table, sizeof(job[0].table), "%s/eight.json", bench_tmpdir());
	ours_write_table(job[0].table, 0, RANKS);
	steps[0] = join_by_table(&job[0]);
	steps[1] = join_by_root(&job[1]);
	for (i = 0; i < 2; i++)
		team_start(&team[i], RANKS, cpus, 2, &steps[i]);
	floor.server_cpu = cpus[1];
	createfloor_start(&floor, bench_tmpdir(), cpus, 2);
	c[TABLE].team = &team[0];
	c[ROOT].team = &team[1];
	c[FLOOR].team = &floor;
	for (i = 0; i < SIDES; i++) {
		side[i] = (struct bench_side){c[i].name, join_contest_round, &c[i]};
		join_contest_init(&c[i], rounds);
	}
	bench_interleave(side, SIDES, rounds, &t);
	team_stop(&team[0]);
	team_stop(&team[1]);
	createfloor_stop(&floor);
	ours_stop(o);
	report(&t, c);
	for (i = 0; i < SIDES; i++)
		join_contest_fini(&c[i]);
	return 0;
}
