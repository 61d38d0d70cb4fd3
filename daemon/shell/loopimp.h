/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of the loop, shared by its files: loop.c (events, turns, timers, samples, life) and
 * loopact.c (what the core wants done, after each of its steps).
 */
#ifndef HC_LOOPIMP_H
#define HC_LOOPIMP_H

#include "loop.h"
#include "loopnet.h"
#include "restores.h"
#include "rings.h"
#include "syncpages.h"

struct scan {
	uint64_t session, domain, started;
	uint32_t epoch, rank, block, pid;
};

struct dead { /* known before the start */
	uint32_t pid;
	uint64_t started;
};

struct hc_loop {
	struct event_base *base;
	struct hc_core *core;
	struct hc_out *out;
	struct hc_pages *pages;
	struct hc_registers *registers;
	struct hc_rings *rings;
	struct hc_store *store;
	struct hc_ctl *ctl;
	struct hc_loopnet *net;
	void *memory;
	size_t memory_bytes;

	uint64_t now;   /* of the event that is being fed */
	uint64_t armed; /* deadline that the timer is set to */
	bool due;       /* the core wants to be called now */
	bool stopping, in_step, kick;
	bool begun; /* the stored rows are in */
	bool told;  /* events for clients wait to be sent */
	bool held;  /* the store waits for more rows of a batch */
	int timer_fd, tick_fd;
	struct event *timer, *tick, *signals[3];
	uint64_t watchdog_ns, watchdog_at;

	uint32_t start;
	bool locked;        /* the fast fence fails: clients use locked instructions */
	bool never_fast;    /* since the start: no client of ours ever did without them */
	bool fence_pending; /* published, and a fence is owed before the next sample */
	struct scan *scans; /* a ring */
	uint32_t scan_first, scan_count, scan_cap;
	struct hc_shown shown; /* what RECALL of the row under way has found */
	struct dead *dead;
	size_t ndead, dead_cap;
	struct hc_restores restores;
	struct hc_syncpages syncs;
	int brought; /* the page that came with the request under way, or -1 */

	void (*on_tick)(void *arg, uint64_t now_ns);
	void (*on_signal)(void *arg, int signal_number);
	void *arg;
};

/* loopact.c: one action of the step that is under way. */
void hc_loop_perform(struct hc_loop *l, const struct hc_action *a);
/* Records of the start that wait, at most so many; what is left behind the last is of nobody. */
void hc_loop_write_restored(struct hc_loop *l, uint32_t most);

#endif
