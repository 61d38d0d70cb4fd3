/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes of clients, and the op arenas that were made for them.
 *
 * The end of a process is told by its pidfd, once, however many sessions it has; a process stays
 * watched when its sessions are gone, because its ranks stay members. An arena outlives its
 * session for the same reason: references are counted in it until the process is dead, and a
 * little longer for the core's last look.
 */
#ifndef HC_PROCS_H
#define HC_PROCS_H

#include <event2/event.h>
#include "conn.h"
#include "core.h"
#include "nodepages.h"

#define HC_PROC_ARENAS_MAX 8u           /* of closed sessions, for each process */
#define HC_ARENA_AFTER_NS  10000000000u /* an arena is kept so long after its process */
#define HC_PROCS_DEAD_MAX  64u /* and for so many processes: short-lived ones come in floods */

struct hc_held_arena {
	struct hc_proc *proc;
	struct hc_held_arena *hash_next, *proc_next;
	uint64_t session;
	bool closed; /* its session is gone */
	struct hc_arena arena;
};

struct hc_proc {
	struct hc_procs *all;
	struct hc_proc *hash_next, *dead_next;
	uint32_t pid;
	uint64_t started;
	int pidfd; /* -1: its end is not seen */
	struct event *event;
	struct hc_conn *conns;
	struct hc_held_arena *arenas;
	uint64_t died_ns;
	bool dead;
};

struct hc_procs;
/* `died`: in the main loop, while its connections are still in the list. */
struct hc_procs *hc_procs_new(struct event_base *base, void (*died)(void *arg, struct hc_proc *p),
			      void *arg);
void hc_procs_free(struct hc_procs *all);

/* The process, known or new; takes `pidfd` in any case. NULL: no memory. */
struct hc_proc *hc_procs_add(struct hc_procs *all, uint32_t pid, uint64_t started, int pidfd);
bool hc_procs_knows(struct hc_procs *all, uint32_t pid, uint64_t started);
void hc_procs_attach(struct hc_proc *p, struct hc_conn *c);
void hc_procs_detach(struct hc_conn *c);

/* A new arena of a session of `p`. 0 or what hc_arena_make says. */
int hc_procs_arena_make(struct hc_proc *p, uint64_t session, const struct hc_arena **arena);
/* NULL: gone. */
const struct hc_arena *hc_procs_arena(struct hc_procs *all, uint64_t session);
void hc_procs_arena_closed(struct hc_procs *all, uint64_t session);

/* Forgets processes that are dead long enough. */
void hc_procs_tick(struct hc_procs *all, uint64_t now_ns);

#endif
