/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: eight rank processes on each of two nodes form a domain in at most twice the floor's time
 * (a request from each, two phases between the nodes, a row at each), and 32 on each of four in
 * at most 5 ms.
 *
 * All ranks are released together; a turn lasts from the first rank's call to the last rank's
 * return. They join by a rank table, which is what is judged (reading the file included), and in
 * rounds of their own by a root info. Leaving is not timed, and nobody leaves before all have
 * their answer. Of two nodes each has one processor, for the daemon and for its ranks, as if they
 * were two machines; of four, two share one. The floor is placed in the same way. Between the
 * nodes there is the loopback, with TLS as in real life.
 *
 * Open MPI splits a world of as many ranks as two nodes have, on one machine, by shared memory:
 * it has no network below it, and waits by spinning where ranks have a processor each. PyTorch
 * makes a group of as many with gloo, over the loopback.
 */
#include <stdbool.h>
#include <stdio.h>

#include <hcomm/hcomm.h>

#include "bench.h"
#include "farfloor.h"
#include "joinjob.h"
#include "nodeset.h"
#include "ours.h"
#include "peers.h"

#define NAME "domain_create"

enum {
	PAIR = 2,
	QUAD = 4,
	PAIR_RANKS = 8,
	QUAD_RANKS = 32,
	TURNS = 30,
	QUAD_TURNS = 5,
	ROUNDS = 15,
	MPI_TURNS = 200,
	MPI_ROUNDS = 3,
	GLOO_TURNS = 10,
	REQUEST_BYTES = 256,
	ANSWER_BYTES = 64,
	ROW_BYTES = 256,
	MESSAGE_BYTES = 128,
};

#define GOAL         2.0
#define QUAD_GOAL_MS 5.0

enum side {
	TABLE,
	ROOT,
	FLOOR,
	QUAD_TABLE,
	QUAD_FLOOR,
	SIDES,
};

static uint64_t floor_turn(void *team)
{
	return farfloor_turn(team);
}

/* ---- the contestants ---- */

static void team_of(struct team *t, const struct nodeset *nodes, const struct join_job *j,
		    struct team_steps steps)
{
	int cpus[TEAM_RANKS_MAX];
	const unsigned n = j->nodes * j->ranks;
	unsigned i;

	for (i = 0; i < n; i++)
		cpus[i] = nodes->cpu[i / j->ranks];
	team_start(t, n, cpus, n, &steps);
}

static void make_job(struct join_job *j, const struct nodeset *nodes, unsigned ranks)
{
	unsigned i;

	*j = (struct join_job){.nodes = nodes->count, .ranks = ranks};
	for (i = 0; i < nodes->count; i++)
		j->socket[i] = nodes->node[i].socket;
	snprintf(j->table, sizeof(j->table), "%s/%ux%u.json", bench_tmpdir(), nodes->count, ranks);
	nodeset_write_table(j->table, nodes->count, 0, ranks);
	join_job_prepare(j);
}

static void make_floor(struct farfloor *f, const struct nodeset *nodes, unsigned ranks,
		       uint16_t port)
{
	unsigned i;

	*f = (struct farfloor){.nodes = nodes->count,
			       .ranks = ranks,
			       .request_bytes = REQUEST_BYTES,
			       .answer_bytes = ANSWER_BYTES,
			       .row_bytes = ROW_BYTES,
			       .message_bytes = MESSAGE_BYTES,
			       .port = port};
	for (i = 0; i < nodes->count; i++)
		f->cpu[i] = nodes->cpu[i];
	farfloor_start(f, bench_tmpdir());
}

/* ---- figures ---- */

static double ms_at(struct join_contest *c, double percent)
{
	return (double)bench_samples_at(&c->all, percent) / 1e6;
}

static void print_each(struct join_contest *c)
{
	struct bench_line l;
	int i;

	for (i = 0; i < SIDES; i++) {
		bench_line_open(&l, NAME);
		bench_line_str(&l, "who", c[i].name);
		bench_line_int(&l, "turns", c[i].all.count);
		bench_line_num(&l, "min_ms", (double)bench_samples_at(&c[i].all, 0) / 1e6, 4);
		bench_line_num(&l, "p50_ms", ms_at(&c[i], 50), 4);
		bench_line_num(&l, "p99_ms", ms_at(&c[i], 99), 4);
		bench_line_print(&l);
	}
}

/* The median of some runs; each starts its ranks anew, so they cannot be as many as rounds. */
static bool ask_mpi(struct peer_times *m, double *p50_us)
{
	double p50[MPI_ROUNDS];
	int i;

	for (i = 0; i < MPI_ROUNDS; i++) {
		if (!peer_mpi_split(m, bench_tmpdir(), PAIR * PAIR_RANKS, MPI_TURNS))
			return false;
		p50[i] = m->p50_us;
	}
	*p50_us = bench_median(p50, MPI_ROUNDS);
	return true;
}

static void report(const struct bench_table *t, struct join_contest *c)
{
	const double ratio = bench_table_ratio(t, TABLE, FLOOR), quad = ms_at(&c[QUAD_TABLE], 50);
	struct bench_line l;
	struct peer_times m;
	double mpi_us = 0;

	print_each(c);
	bench_line_open(&l, NAME);
	bench_line_bool(&l, "summary", true);
	bench_line_int(&l, "ranks", PAIR * PAIR_RANKS);
	bench_line_num(&l, "p50_ms", ms_at(&c[TABLE], 50), 4);
	bench_line_num(&l, "p99_ms", ms_at(&c[TABLE], 99), 4);
	bench_line_num(&l, "root_info_p50_ms", ms_at(&c[ROOT], 50), 4);
	bench_line_num(&l, "floor_p50_ms", ms_at(&c[FLOOR], 50), 4);
	bench_line_num(&l, "ratio", ratio, 3);
	bench_line_num(&l, "goal", GOAL, 1);
	bench_line_num(&l, "root_info_ratio", bench_table_ratio(t, ROOT, FLOOR), 3);
	bench_line_num(&l, "4x32_p50_ms", quad, 3);
	bench_line_num(&l, "4x32_p99_ms", ms_at(&c[QUAD_TABLE], 99), 3);
	bench_line_num(&l, "4x32_floor_p50_ms", ms_at(&c[QUAD_FLOOR], 50), 3);
	bench_line_num(&l, "4x32_ratio", bench_table_ratio(t, QUAD_TABLE, QUAD_FLOOR), 3);
	bench_line_num(&l, "4x32_goal_ms", QUAD_GOAL_MS, 0);
	if (ask_mpi(&m, &mpi_us))
		bench_line_num(&l, "open_mpi_p50_ms", mpi_us / 1e3, 4);
	else
		bench_line_null(&l, "open_mpi_p50_ms");
	bench_line_str(&l, "open_mpi", m.what);
	if (peer_gloo_group(&m, bench_tmpdir(), PAIR * PAIR_RANKS, GLOO_TURNS))
		bench_line_num(&l, "gloo_p50_ms", m.p50_us / 1e3, 1);
	else
		bench_line_null(&l, "gloo_p50_ms");
	bench_line_str(&l, "gloo", m.what);
	bench_line_bool(&l, "met", ratio <= GOAL && quad <= QUAD_GOAL_MS);
	bench_line_print(&l);
}

int main(void)
{
	static struct bench_table t;
	static struct nodeset two, four;
	static struct join_job job[3];
	static struct farfloor floor[2];
	static struct team team[3];
	static struct join_contest c[SIDES] = {
		[TABLE] = {.name = "2 x 8, rank table",
			   .turn = join_team_turn,
			   .team = &team[0],
			   .turns = TURNS},
		[ROOT] = {.name = "2 x 8, root info",
			  .turn = join_team_turn,
			  .team = &team[1],
			  .turns = TURNS},
		[FLOOR] = {.name = "2 x 8, floor",
			   .turn = floor_turn,
			   .team = &floor[0],
			   .turns = TURNS},
		[QUAD_TABLE] = {.name = "4 x 32, rank table",
				.turn = join_team_turn,
				.team = &team[2],
				.turns = QUAD_TURNS},
		[QUAD_FLOOR] = {.name = "4 x 32, floor",
				.turn = floor_turn,
				.team = &floor[1],
				.turns = QUAD_TURNS},
	};
	const size_t rounds = bench_rounds(ROUNDS);
	struct bench_side side[SIDES];
	int cpus[2];
	size_t i;

	bench_line_machine(NAME);
	bench_cpus(&cpus[0], &cpus[1]);
	nodeset_start(&two, PAIR, 2 * PAIR_RANKS, 16740, cpus, NULL);
	nodeset_start(&four, QUAD, QUAD_RANKS, 16741, cpus, NULL);
	make_job(&job[0], &two, PAIR_RANKS);
	make_job(&job[1], &two, PAIR_RANKS);
	make_job(&job[2], &four, QUAD_RANKS);
	team_of(&team[0], &two, &job[0], join_by_table(&job[0]));
	team_of(&team[1], &two, &job[1], join_by_root(&job[1]));
	team_of(&team[2], &four, &job[2], join_by_table(&job[2]));
	make_floor(&floor[0], &two, PAIR_RANKS, 16742);
	make_floor(&floor[1], &four, QUAD_RANKS, 16743);
	for (i = 0; i < SIDES; i++) {
		side[i] = (struct bench_side){c[i].name, join_contest_round, &c[i]};
		join_contest_init(&c[i], rounds);
	}
	bench_interleave(side, SIDES, rounds, &t);
	for (i = 0; i < 3; i++)
		team_stop(&team[i]);
	farfloor_stop(&floor[0]);
	farfloor_stop(&floor[1]);
	nodeset_stop(&four);
	nodeset_stop(&two);
	report(&t, c);
	for (i = 0; i < SIDES; i++)
		join_contest_fini(&c[i]);
	return 0;
}
