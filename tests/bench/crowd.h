/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A crowd: one process that is many nodes to a daemon, for loads that no room has machines for.
 *
 * Each of them speaks the real protocol: a control connection with TLS and the cluster's key, hello
 * and welcome, then authenticated beats from an address of its own at the interval asked for,
 * answers to probes and to beats that want one. What is left out is judgement: a crowd accuses
 * nobody. It writes down when it was late itself: a verdict about a node that really was silent
 * is no false alarm.
 *
 * All nodes share one UDP socket, so a burst is one system call for 64 of them. They go out evenly
 * spread over the interval in SLICES parts, as those of many machines would come in. Run by one
 * thread, best in a process of its own (bench_fork).
 */
#ifndef HC_BENCH_CROWD_H
#define HC_BENCH_CROWD_H

#include "addr.h"

#include <stdbool.h>
#include <stdint.h>

#define CROWD_SLICES 10u

#define CROWD_GAPS      65536u
#define CROWD_NODES_MAX 4096u

struct crowd;

struct crowd_gap { /* nothing was sent for `node` between these, CLOCK_MONOTONIC */
	uint64_t from, to;
	uint32_t node;
};

struct crowd_counts {
	uint64_t sent, received, bad; /* frames; bad: not authentic, or none of ours */
	uint64_t probes, asked;
	uint32_t known; /* nodes whose path the daemon has shown */
	uint32_t gaps;  /* more than is kept are counted too */
};

/* What it writes down; in shared memory, so that another process may read it at any time. */
struct crowd_log {
	struct crowd_counts n; /* but for `known` */
	struct crowd_gap gaps[CROWD_GAPS];
	/* Set by who looks: nothing is sent for that node. */
	volatile uint8_t mute[CROWD_NODES_MAX];
};

struct crowd_args {
	uint32_t nodes;
	struct hc_endpoint first;  /* address of node 0; node i has the i-th after it */
	struct hc_endpoint daemon; /* whom they all talk to */
	const char *key_file;      /* of the cluster; NULL: security = none */
	uint32_t interval_ms;
	struct crowd_log *log; /* NULL: one of its own */
};

struct crowd_log *crowd_log_new(void);
void crowd_log_free(struct crowd_log *log);
/* Was the node silent for longer than `limit_ns`, by its own fault, in that time? */
bool crowd_log_late(const struct crowd_log *log, uint32_t node, uint64_t from, uint64_t to,
		    uint64_t limit_ns);

/* Connects all; ends the program with a reason when that fails. */
struct crowd *crowd_new(const struct crowd_args *args);
/* Beats until the time, then returns; to be called again without a pause. */
void crowd_run(struct crowd *c, uint64_t until_ns);
void crowd_counts(const struct crowd *c, struct crowd_counts *counts);
void crowd_free(struct crowd *c);

#endif
