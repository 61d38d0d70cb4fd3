/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A job whose ranks form a domain together, as a team (floor/team.h): by its rank table, or by a
 * root info that rank 0 makes between two turns. And a contestant whose turns are samples.
 */
#ifndef HC_BENCH_JOINJOB_H
#define HC_BENCH_JOINJOB_H

#include <hcomm/hcomm.h>

#include "bench.h"
#include "team.h"

enum { JOIN_NODES_MAX = 4 };

struct join_job {
	const char *socket[JOIN_NODES_MAX]; /* of the daemon on node<i> */
	unsigned nodes, ranks;              /* ranks of each node, one behind the other */
	char table[300];
	/* joinjob.c's own */
	struct hcomm_root_info *info; /* shared by the ranks */
	struct hcomm_session *session;
	hcomm_domain domain;
};

/* Sockets, numbers and table are set. */
void join_job_prepare(struct join_job *j);
struct team_steps join_by_table(struct join_job *j);
struct team_steps join_by_root(struct join_job *j);

struct join_contest {
	const char *name;
	uint64_t (*turn)(void *team);
	void *team;
	int turns; /* of a round */
	bool warm; /* the first round does not count */
	struct bench_samples round;
	struct bench_samples all;
};

void join_contest_init(struct join_contest *c, size_t rounds);
void join_contest_fini(struct join_contest *c);
/* For a struct bench_side: one round, its median. */
double join_contest_round(void *contest);
uint64_t join_team_turn(void *team); /* `turn` of a struct team */

#endif
