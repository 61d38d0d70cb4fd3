/* SPDX-License-Identifier: Apache-2.0 */
/* See joinjob.h. Each rank process has a copy of the job; the root info alone is shared. */
#include "joinjob.h"

#include <stdio.h>
#include <sys/mman.h>

#include "ours.h"

enum { TIMEOUT_MS = 10000 };

static unsigned all_ranks(const struct join_job *j)
{
	return j->nodes * j->ranks;
}

void join_job_prepare(struct join_job *j)
{
	j->info = mmap(NULL, sizeof(*j->info), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		       -1, 0);
	if (j->info == MAP_FAILED)
		bench_die("no memory for a root info");
}

/* ---- steps ---- */

static void open_session(void *ctx, unsigned rank)
{
	struct hcomm_open_args args = HCOMM_INIT(struct hcomm_open_args);
	struct join_job *j = ctx;

	args.socket = j->socket[rank / j->ranks];
	ours_must(hcomm_open(&args, &j->session), "hcomm_open");
}

static void table_join(void *ctx, unsigned rank, uint64_t turn)
{
	struct hcomm_config config = HCOMM_INIT(struct hcomm_config);
	struct join_job *j = ctx;
	char server[16];

	(void)turn;
	snprintf(server, sizeof(server), "node%u", rank / j->ranks);
	config.server = server;
	ours_must(hcomm_join_table(j->session, j->table, rank, j->nodes > 1 ? &config : NULL,
				   TIMEOUT_MS, &j->domain),
		  "hcomm_join_table");
}

static void leave(void *ctx, unsigned rank, uint64_t turn)
{
	struct join_job *j = ctx;

	(void)rank;
	(void)turn;
	ours_must(hcomm_leave(j->domain, TIMEOUT_MS), "hcomm_leave");
}

static void root_make(struct join_job *j, unsigned rank)
{
	if (!rank)
		ours_must(hcomm_root_info(j->session, all_ranks(j), NULL, j->info),
			  "hcomm_root_info");
}

static void root_setup(void *ctx, unsigned rank)
{
	open_session(ctx, rank);
	root_make(ctx, rank);
}

/* Not the devices of the table's job, which may be there at the same time. */
static void root_join(void *ctx, unsigned rank, uint64_t turn)
{
	struct join_job *j = ctx;

	(void)turn;
	ours_must(hcomm_join(j->session, j->info, all_ranks(j), rank, j->ranks + rank % j->ranks,
			     NULL, TIMEOUT_MS, &j->domain),
		  "hcomm_join");
}

static void root_leave(void *ctx, unsigned rank, uint64_t turn)
{
	leave(ctx, rank, turn);
	root_make(ctx, rank);
}

struct team_steps join_by_table(struct join_job *j)
{
	return (struct team_steps){j, open_session, table_join, leave};
}

struct team_steps join_by_root(struct join_job *j)
{
	return (struct team_steps){j, root_setup, root_join, root_leave};
}

/* ---- contestants ---- */

void join_contest_init(struct join_contest *c, size_t rounds)
{
	bench_samples_init(&c->round, (size_t)c->turns);
	bench_samples_init(&c->all, (size_t)c->turns * rounds);
}

void join_contest_fini(struct join_contest *c)
{
	bench_samples_fini(&c->round);
	bench_samples_fini(&c->all);
}

double join_contest_round(void *contest)
{
	struct join_contest *c = contest;
	uint64_t ns;
	int i;

	bench_samples_reset(&c->round);
	for (i = 0; i < c->turns; i++) {
		ns = c->turn(c->team);
		bench_samples_add(&c->round, ns);
		if (c->warm)
			bench_samples_add(&c->all, ns);
	}
	c->warm = true;
	return (double)bench_samples_at(&c->round, 50);
}

uint64_t join_team_turn(void *team)
{
	return team_turn(team);
}
