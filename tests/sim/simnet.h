/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulated network: cores of many nodes, unchanged, on one virtual clock.
 *
 * A simulation is the shell of its cores. It asks nothing of the machine: time is a number, what
 * happens next is taken from one heap, and every choice (delay, loss, doubling) comes from the
 * seed. So the same seed gives the same trace, byte for byte, whatever compiler made it; the
 * trace's hash says so.
 *
 * Node n has `rails` ports; port r has the address 10.r.(n / 256).(n % 256) and reaches the port
 * r of every other node. Control connections are streams: nothing is lost on them, but while a
 * way is cut they stand still. Datagrams meet everything that the wire has in stock. A node's
 * clock may run fast or slow.
 *
 *   stop / go     the daemon is not scheduled (SIGSTOP); its kernel goes on
 *   kill / start  the daemon dies; its kernel ends its connections, and refuses new ones
 *   crash / boot  the kernel dies: silence, and afterwards it knows nothing of before
 *
 * What the daemons log with a code is kept in `said`, for tests to look at. Failing allocations
 * end the program.
 *
 * It is made for ten thousand nodes: what costs memory for each pair is there only for pairs that
 * have something of their own, and datagrams are kept for looking at only in small networks.
 */
#ifndef HC_SIMNET_H
#define HC_SIMNET_H

#include "core.h"

#include <stdio.h>

#define SIM_MS ((uint64_t)1000000)
#define SIM_S  ((uint64_t)1000000000)

struct sim;

/* One way between two ports of one rail. Times in nanoseconds, shares in parts of a million. */
struct sim_wire {
	uint64_t delay, jitter;
	uint32_t loss, twice, late; /* late: held back so that others pass it */
	uint32_t mtu;               /* larger packets vanish; 0 = that of the ports */
	bool cut;
};

struct sim_args {
	uint32_t nodes, rails;
	uint64_t seed;
	struct sim_wire wire;
	uint32_t drift_ppm;          /* clocks differ by up to so much, either way */
	struct hc_limits limits;     /* as sim_defaults gives them */
	struct hc_settings settings; /* also */
	FILE *trace;                 /* every event and action in words, or NULL */
	/* called after each step of a node's core, or NULL */
	void (*check)(struct sim *s, uint32_t node, void *arg);
	/* a numbered message of that life of `from` was taken by the core, or NULL */
	void (*took)(struct sim *s, uint32_t node, uint32_t from, uint32_t life,
		     const struct hc_frame *f, void *arg);
	/* a frame for a client of the node, or NULL: there are no clients */
	void (*reply)(struct sim *s, uint32_t node, const struct hc_action *a, void *arg);
	/* what a core wants of its shell for clients and the database (REPLY, NOTIFY, PUBLISH,
	 * SCAN, PERSIST and so on), all of it, instead of `reply`; NULL: rows are stored at once */
	void (*act)(struct sim *s, uint32_t node, const struct hc_action *a, void *arg);
	/* a new daemon knows its node's ports: what else is told before START, or NULL */
	void (*rows)(struct sim *s, uint32_t node, void *arg);
	/* what sim_later asked for */
	void (*due)(struct sim *s, uint32_t node, uint32_t what, uint64_t number, void *arg);
	void *arg;
};

struct sim_said { /* a line of a log that has a code */
	uint64_t at;
	uint32_t node;
	uint16_t code; /* HC_W_event_code_* */
	uint8_t level;
	char text[256];
};

void sim_defaults(struct sim_args *args);
/* Nodes are there, stopped: each begins with sim_start. */
struct sim *sim_new(const struct sim_args *args);
void sim_free(struct sim *s);

/* A new daemon on the node: the next start number; `fresh`: with an empty database. */
void sim_start(struct sim *s, uint32_t node, bool fresh);
void sim_start_all(struct sim *s);
/* As a section [node NAME] would: `node` dials `to` at its ports. */
void sim_know(struct sim *s, uint32_t node, uint32_t to);
void sim_know_all(struct sim *s); /* everybody those with a higher number */
void sim_kill(struct sim *s, uint32_t node);
void sim_crash(struct sim *s, uint32_t node);
void sim_stop(struct sim *s, uint32_t node);
void sim_go(struct sim *s, uint32_t node);
/* All connections between the two end, and what was on the way is lost; both hear of it. */
void sim_reset(struct sim *s, uint32_t a, uint32_t b, uint16_t end);
/* Calls `due` after that time. A daemon's own thing (`daemon`) is held while it is stopped, and
 * forgotten when it ends. */
void sim_later(struct sim *s, uint32_t node, bool daemon, uint64_t ns, uint32_t what,
	       uint64_t number);
/* As a part of the node's step: what the rest of a core would do of itself. */
void sim_do(struct sim *s, uint32_t node, void (*fn)(struct hc_core *c, void *arg), void *arg);
/* An event of its own, at once: a request of a client, a device. */
void sim_feed(struct sim *s, uint32_t node, const struct hc_event *ev);
/* Another daemon with the identity of `as` on the node, from the next start on. */
void sim_impersonate(struct sim *s, uint32_t node, uint32_t as);

/* From now on. HC_NONE: all nodes, all rails. */
void sim_wire(struct sim *s, uint32_t from, uint32_t to, uint32_t rail, const struct sim_wire *w);
void sim_cut(struct sim *s, uint32_t from, uint32_t to, uint32_t rail, bool cut); /* one way */
void sim_port(struct sim *s, uint32_t node, uint32_t rail, bool up, uint32_t mtu);
void sim_set(struct sim *s, uint32_t node, const struct hc_settings *settings);

/* Time goes on. */
void sim_run(struct sim *s, uint64_t ns);
/* Until `done` says so; false: the limit came first. */
bool sim_until(struct sim *s, bool (*done)(struct sim *s, void *arg), void *arg, uint64_t limit_ns);

uint64_t sim_now(const struct sim *s);
uint64_t sim_local(const struct sim *s, uint32_t node, uint64_t now); /* the node's clock */
struct hc_core *sim_core(struct sim *s, uint32_t node); /* NULL while no daemon runs */
uint32_t sim_life(const struct sim *s, uint32_t node);  /* counts the daemons of the node */
bool sim_runs(const struct sim *s, uint32_t node);
uint64_t sim_hash(const struct sim *s);
uint64_t sim_events(const struct sim *s);
uint64_t sim_rand(struct sim *s); /* from the seed, apart from what the wire draws */
const struct sim_said *sim_said(const struct sim *s, uint32_t *count);
/* How often a code was said by a node (HC_NONE: by any) since a time. */
uint32_t sim_count(const struct sim *s, uint32_t node, uint16_t code, uint64_t since);

/* A frame from outside, with any key id and ends: what an attacker would send. */
void sim_inject(struct sim *s, uint32_t node, uint32_t from, uint32_t rail, const uint8_t *bytes,
		uint32_t len, bool authentic);
#define SIM_SPY 64u /* nodes, at most, for the following two */
/* Bytes that a node has put out in datagrams to another, with their authentication. */
uint64_t sim_datagram_bytes(const struct sim *s, uint32_t from, uint32_t to);
/* The last datagram that went from one node to another, for replays; its length. */
uint32_t sim_last_datagram(const struct sim *s, uint32_t from, uint32_t to, uint8_t *bytes,
			   uint32_t cap);

#endif
