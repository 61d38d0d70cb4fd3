/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes of clients, and the op arenas that were made for them.
 *
 * The end of a process is told by its pidfd, once, however many sessions it has; a process stays
 * watched when its sessions are gone, because its ranks stay members. An arena outlives its
 * session for the same reason: references are counted in it until the process is dead, and a
 * little longer for the core's last look.
 *
 * An arena may also come from outside: from the service manager at a start, and from a process
 * that says hello again. The same memory is one arena of one process, whoever brings it: it is
 * told by its inode, goes over to the newest session, and another process that brings it is
 * refused.
 */
#ifndef HC_PROCS_H
#define HC_PROCS_H

#include <event2/event.h>
#include "conn.h"
#include "core.h"
#include "fdstore.h"
#include "nodepages.h"

#define HC_PROC_ARENAS_MAX 8u           /* of closed sessions, for each process */
#define HC_ARENA_AFTER_NS  10000000000u /* an arena is kept so long after its process */
#define HC_PROCS_DEAD_MAX  64u /* and for so many processes: short-lived ones come in floods */

struct hc_held_arena {
	struct hc_proc *proc;
	struct hc_held_arena *hash_next, *ino_next, *proc_next;
	uint64_t session; /* 0: of an earlier daemon's */
	uint64_t ino;
	uint64_t named; /* session in its name in the fd store; 0: not there */
	bool closed;    /* its session is gone */
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
/* Arenas that are used from now on are kept there too. */
void hc_procs_set_fdstore(struct hc_procs *all, const struct hc_fdstore *store);
void hc_procs_free(struct hc_procs *all);

/* The process, known or new; takes `pidfd` in any case. NULL: no memory. */
struct hc_proc *hc_procs_add(struct hc_procs *all, uint32_t pid, uint64_t started, int pidfd);
bool hc_procs_knows(struct hc_procs *all, uint32_t pid, uint64_t started);
void hc_procs_attach(struct hc_proc *p, struct hc_conn *c);
void hc_procs_detach(struct hc_conn *c);

/* A new arena of a session of `p`. 0 or what hc_arena_make says. */
int hc_procs_arena_make(struct hc_proc *p, uint64_t session, const struct hc_arena **arena);
/* The arena that the process brought, for a new session of it; `fd` stays the caller's. *before:
 * the session that had it, 0 for none. HC_E_INVALID: it is no arena, or another process's. */
int hc_procs_arena_adopt(struct hc_proc *p, uint64_t session, int fd, uint64_t *before);
/* One that the service manager kept; takes the descriptor. 0 or HC_E_INVALID, -errno. */
int hc_procs_arena_back(struct hc_proc *p, const struct hc_stored_arena *stored);
/* NULL: gone. */
const struct hc_arena *hc_procs_arena(struct hc_procs *all, uint64_t session);
/* The arena of that process whose block is one of the domain; NULL when there is none. */
const struct hc_arena *hc_procs_arena_of(struct hc_procs *all, uint32_t pid, uint64_t started,
					 uint64_t domain, uint32_t block);
/* The session has its first rank: its arena is worth keeping over a restart. */
void hc_procs_arena_used(struct hc_procs *all, uint64_t session);
void hc_procs_arena_closed(struct hc_procs *all, uint64_t session);

/* Forgets processes that are dead long enough. */
void hc_procs_tick(struct hc_procs *all, uint64_t now_ns);

#endif
