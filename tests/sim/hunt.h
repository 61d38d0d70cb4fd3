/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hunt for what nobody thought of: a cluster under faults that the seed chooses.
 *
 * First faults: ways are cut (one or both directions, one rail or all), lossy, slow, or they double
 * and reorder; daemons stand still, are killed, come back with or without their database; kernels
 * crash; ports go down and change their size; heartbeat intervals change. After every step of a
 * core the promises that must always hold are looked at:
 *
 *   no path is normal without a proof of both directions that is younger than its window
 *   no path is accused of silence while nothing was wrong with either node nor the way between
 *   a node is up only over a connection that both welcomed
 *   what one daemon says to another over control arrives once and in order, while both live
 *   no path fills the log
 *
 * Then everything is healed, and within a stated bound all nodes must be up with each other, all
 * paths normal, both ends agreeing on which there are, with nothing left to acknowledge.
 */
#ifndef HC_HUNT_H
#define HC_HUNT_H

#include "simnet.h"

/* The longest time until a healed cluster agrees: a flapping path is held out for a minute, and
 * then wants ten good beats; a dial may have backed off to ten seconds, with its time limit. */
#define HUNT_HEAL_S 90u

struct hunt {
	uint64_t seed;
	uint32_t nodes, rails, seconds; /* of faults */
	FILE *trace;
	/* out */
	uint64_t hash, events;
	uint32_t faults, heal_ms; /* faults made; until all agreed */
	uint32_t lines;           /* of one path in the log of one node, the most in a minute */
	bool bad;
	char why[512]; /* what was broken, when, where */
};

/* bad and why say how it went. */
void hunt_run(struct hunt *h);

#endif
