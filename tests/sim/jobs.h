/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jobs over many nodes under faults that the seed chooses: domains, with what uses them.
 *
 * The simulation of nodes (simnet.h) gets clients. A job is a domain: ranks on several nodes, each
 * of a process, that join by root info or by rank table, run collectives, split it or make
 * sub-domains of it, singly or in batches, take channels and give them back, and leave, destroy,
 * abort or die. A process keeps to what the library does: it reads the state record before it
 * begins an operation, repeats a join whose session was lost, comes back to its seats. Nodes stand
 * in groups of eight neighbours, and a job is of one group, so that a cluster may be large while
 * no node knows many others.
 *
 * First faults: ways are cut, groups fall apart, frames are lost, doubled, late; daemons stand
 * still, kernels crash, processes die, sessions end, disks are slow, nodes are drained. After
 * every step the promises that must hold always:
 *
 *   a rank of a domain is of one process
 *   what a record says is stored before; its numbers rise; no domain is ACTIVE that its home has
 *   not committed, and none is cancelled that it has
 *   a collective that is over was begun by all, and a drain that was not forced left none behind
 *   the ranks of a split are told the groups that their colours give, under one number each
 *   a collective is begun in one epoch by all who begin it
 *   an end of a channel is given once; used + free = total on every link; who uses it from
 *   both ends was admitted in one epoch
 *   nodes that have nothing to do say nothing in circles
 *   a core's seats, places, tickets, timers and pools agree with each other
 *
 * Then all is healed, and within JOBS_HEAL_S every request is answered, every domain has one state
 * on all its nodes, with one first cause, and both nodes of a channel have it, or neither. At last
 * all go, and within JOBS_END_S nothing is left in any core.
 */
#ifndef HC_JOBS_H
#define HC_JOBS_H

#include "simnet.h"

/* Held-out paths come back after a minute, a dial after ten seconds; what then is found to be lost
 * is drained for half a minute at most. */
#define JOBS_HEAL_S 180u
#define JOBS_END_S  120u
#define JOBS_TAIL   160u

struct jobs {
	uint64_t seed;
	uint32_t nodes, seconds; /* of faults */
	bool calm;               /* no faults */
	bool wan;                /* beats of a second in any case, else the seed chooses */
	FILE *trace;
	/* out */
	uint64_t hash, events;
	uint32_t faults, began, formed, failed;
	uint32_t subs;               /* sub-domains that formed */
	uint64_t channels, messages; /* ends given; on channels, by both ends */
	uint32_t heal_ms, end_ms;
	uint64_t ops; /* collectives that were completed, over all ranks */
	bool bad;
	char why[768];
	char tail[JOBS_TAIL][240]; /* what happened last, from `tail_at` on */
	uint32_t tail_at;
};

void jobs_run(struct jobs *j);
/* What happened before it broke. */
void jobs_print_tail(const struct jobs *j, FILE *to);

#endif
