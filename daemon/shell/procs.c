/* SPDX-License-Identifier: Apache-2.0 */
/* Processes of clients; see procs.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "procs.h"

#define BUCKETS 1024u

struct hc_procs {
	struct event_base *base;
	void (*died)(void *arg, struct hc_proc *p);
	void *arg;
	struct hc_proc *by_pid[BUCKETS];
	struct hc_held_arena *by_session[BUCKETS], *by_ino[BUCKETS];
	struct hc_fdstore store;
	struct hc_proc *dead; /* newest first */
	unsigned ndead;
};

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

struct hc_procs *hc_procs_new(struct event_base *base, void (*died)(void *arg, struct hc_proc *p),
			      void *arg)
{
	struct hc_procs *all = calloc(1, sizeof(*all));

	if (!all)
		return NULL;
	all->base = base;
	all->died = died;
	all->arg = arg;
	return all;
}

/* ---- arenas ---- */

static struct hc_held_arena **arena_place(struct hc_procs *all, uint64_t session)
{
	struct hc_held_arena **at = &all->by_session[(uint32_t)session % BUCKETS];

	while (*at && (*at)->session != session)
		at = &(*at)->hash_next;
	return at;
}

static struct hc_held_arena **ino_place(struct hc_procs *all, uint64_t ino)
{
	struct hc_held_arena **at = &all->by_ino[ino % BUCKETS];

	while (*at && (*at)->ino != ino)
		at = &(*at)->ino_next;
	return at;
}

/* Session 0 is none: such an arena is found by its process alone. */
static void arena_set_session(struct hc_held_arena *a, uint64_t session)
{
	struct hc_held_arena **at;

	if (a->session) {
		at = arena_place(a->proc->all, a->session);
		hc_assert(*at == a);
		*at = a->hash_next;
	}
	a->session = session;
	a->closed = !session;
	a->hash_next = NULL;
	if (!session)
		return;
	at = arena_place(a->proc->all, session);
	hc_assert(!*at);
	*at = a;
}

static struct hc_stored_arena stored_of(const struct hc_held_arena *a)
{
	return (struct hc_stored_arena){
		.pid = a->proc->pid, .started = a->proc->started, .session = a->named};
}

static void arena_free(struct hc_procs *all, struct hc_held_arena *a)
{
	struct hc_held_arena **at = ino_place(all, a->ino);
	struct hc_stored_arena stored = stored_of(a);

	*at = a->ino_next;
	arena_set_session(a, 0);
	if (a->named)
		hc_fdstore_drop(&all->store, &stored);
	hc_arena_drop(&a->arena);
	free(a);
}

void hc_procs_set_fdstore(struct hc_procs *all, const struct hc_fdstore *store)
{
	all->store = *store;
}

/* Of sessions that came and went only the newest few matter: a process re-attaches to the last. */
static void drop_old_arenas(struct hc_proc *p)
{
	struct hc_held_arena **at = &p->arenas, *a;
	unsigned closed = 0;

	while ((a = *at)) { /* newest first */
		if (a->closed && ++closed > HC_PROC_ARENAS_MAX) {
			*at = a->proc_next;
			arena_free(p->all, a);
		} else {
			at = &a->proc_next;
		}
	}
}

/* Nobody can name a process of another pid namespace after a restart. */
static void store_arena(struct hc_held_arena *a)
{
	struct hc_stored_arena stored;

	if (a->named || !a->proc->pid || !a->proc->all->store.worker)
		return;
	a->named = a->session;
	stored = stored_of(a);
	stored.fd = a->arena.fd;
	hc_fdstore_keep(&a->proc->all->store, &stored);
}

static int ino_of(int fd, uint64_t *ino)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	*ino = st.st_ino;
	return 0;
}

/* The process holds it from now on; the arena's memory is a's. */
static int hold(struct hc_proc *p, struct hc_held_arena *a, uint64_t session)
{
	int r = ino_of(a->arena.fd, &a->ino);

	if (r)
		return r;
	a->proc = p;
	a->ino_next = NULL;
	*ino_place(p->all, a->ino) = a;
	arena_set_session(a, session);
	a->proc_next = p->arenas;
	p->arenas = a;
	drop_old_arenas(p);
	return 0;
}

int hc_procs_arena_make(struct hc_proc *p, uint64_t session, const struct hc_arena **arena)
{
	struct hc_held_arena *a = calloc(1, sizeof(*a));
	int r;

	if (!a)
		return -ENOMEM;
	r = hc_arena_make(&a->arena);
	if (!r) {
		r = hold(p, a, session);
		if (r)
			hc_arena_drop(&a->arena);
	}
	if (r) {
		free(a);
		return r;
	}
	*arena = &a->arena;
	return 0;
}

/* A copy of `fd` becomes an arena. */
static int adopt(int fd, struct hc_arena *arena)
{
	int own = fcntl(fd, F_DUPFD_CLOEXEC, 3), r;

	if (own < 0)
		return -errno;
	r = hc_arena_adopt(own, arena);
	if (r)
		close(own);
	return r;
}

/* It is the newest of its process again. */
static void to_front(struct hc_held_arena *a)
{
	struct hc_held_arena **at = &a->proc->arenas;

	while (*at != a)
		at = &(*at)->proc_next;
	*at = a->proc_next;
	a->proc_next = a->proc->arenas;
	a->proc->arenas = a;
}

int hc_procs_arena_adopt(struct hc_proc *p, uint64_t session, int fd, uint64_t *before)
{
	struct hc_held_arena *a;
	uint64_t ino;
	int r;

	*before = 0;
	if (ino_of(fd, &ino))
		return HC_E_INVALID;
	a = *ino_place(p->all, ino);
	/* numbers of inodes are those of one file system: is it that one? */
	if (a && (a->proc != p || !hc_arena_same(&a->arena, fd)))
		return HC_E_INVALID;
	if (a) {
		*before = a->closed ? 0 : a->session;
		arena_set_session(a, session);
		to_front(a);
		return 0;
	}
	a = calloc(1, sizeof(*a));
	if (!a)
		return -ENOMEM;
	r = adopt(fd, &a->arena);
	if (!r) {
		r = hold(p, a, session);
		if (r)
			hc_arena_drop(&a->arena);
	}
	if (r)
		free(a);
	return r;
}

int hc_procs_arena_back(struct hc_proc *p, const struct hc_stored_arena *stored)
{
	struct hc_held_arena *a = calloc(1, sizeof(*a));
	int r = a ? hc_arena_adopt(stored->fd, &a->arena) : -ENOMEM;

	if (r) {
		close(stored->fd);
		free(a);
		return r;
	}
	if (!ino_of(stored->fd, &a->ino) && *ino_place(p->all, a->ino))
		r = HC_E_INVALID; /* the manager gave it twice */
	if (!r)
		r = hold(p, a, 0);
	if (r) {
		hc_arena_drop(&a->arena);
		free(a);
		return r;
	}
	a->named = stored->session;
	return 0;
}

const struct hc_arena *hc_procs_arena(struct hc_procs *all, uint64_t session)
{
	struct hc_held_arena *a = *arena_place(all, session);

	return a ? &a->arena : NULL;
}

void hc_procs_arena_used(struct hc_procs *all, uint64_t session)
{
	struct hc_held_arena *a = *arena_place(all, session);

	if (a)
		store_arena(a);
}

void hc_procs_arena_closed(struct hc_procs *all, uint64_t session)
{
	struct hc_held_arena *a = *arena_place(all, session);

	if (!a)
		return;
	a->closed = true;
	drop_old_arenas(a->proc); /* many may have been open at once */
}

static bool has_domain(const struct hc_arena *a, uint64_t domain, uint32_t block)
{
	return block < HC_ARENA_BLOCKS &&
	       atomic_load_explicit(&a->blocks[block].head.domain, memory_order_acquire) == domain;
}

/* ---- processes ---- */

static struct hc_proc **proc_place(struct hc_procs *all, uint32_t pid, uint64_t started)
{
	struct hc_proc **at = &all->by_pid[(pid ^ (uint32_t)started) % BUCKETS];

	while (*at && ((*at)->pid != pid || (*at)->started != started))
		at = &(*at)->hash_next;
	return at;
}

static void proc_free(struct hc_proc *p)
{
	struct hc_held_arena *a;

	while (p->conns)
		hc_procs_detach(p->conns);
	while ((a = p->arenas)) {
		p->arenas = a->proc_next;
		arena_free(p->all, a);
	}
	if (p->event)
		event_free(p->event);
	if (p->pidfd >= 0)
		close(p->pidfd);
	free(p);
}

static void on_pidfd(evutil_socket_t fd, short what, void *arg)
{
	struct hc_proc *p = arg;

	(void)fd;
	(void)what;
	if (p->dead)
		return;
	p->dead = true;
	p->died_ns = now_ns();
	*proc_place(p->all, p->pid, p->started) = p->hash_next;
	p->dead_next = p->all->dead;
	p->all->dead = p;
	p->all->ndead++;
	p->all->died(p->all->arg, p);
	event_del(p->event); /* behind it: others wait to hear */
}

/* Frees the oldest of the dead beyond those that are kept. */
static void trim_dead(struct hc_procs *all)
{
	struct hc_proc **at = &all->dead, *p;
	unsigned n = 0;

	if (all->ndead <= HC_PROCS_DEAD_MAX)
		return;
	while ((p = *at)) {
		if (++n <= HC_PROCS_DEAD_MAX || p->conns) {
			at = &p->dead_next;
			continue;
		}
		*at = p->dead_next;
		all->ndead--;
		proc_free(p);
	}
}

struct hc_proc *hc_procs_add(struct hc_procs *all, uint32_t pid, uint64_t started, int pidfd)
{
	struct hc_proc **at = proc_place(all, pid, started), *p = *at;

	if (p) {
		if (pidfd >= 0)
			close(pidfd);
		return p;
	}
	trim_dead(all);
	p = calloc(1, sizeof(*p));
	if (p) {
		p->all = all;
		p->pid = pid;
		p->started = started;
		p->pidfd = pidfd;
		if (pidfd >= 0)
			p->event = event_new(all->base, pidfd, EV_READ | EV_PERSIST, on_pidfd, p);
	}
	if (!p || (pidfd >= 0 && (!p->event || event_add(p->event, NULL)))) {
		if (p)
			proc_free(p);
		else if (pidfd >= 0)
			close(pidfd);
		return NULL;
	}
	*at = p;
	return p;
}

const struct hc_arena *hc_procs_arena_of(struct hc_procs *all, uint32_t pid, uint64_t started,
					 uint64_t domain, uint32_t block)
{
	struct hc_proc *p = *proc_place(all, pid, started);
	const struct hc_held_arena *a;

	for (a = p ? p->arenas : NULL; a; a = a->proc_next)
		if (has_domain(&a->arena, domain, block))
			return &a->arena;
	return NULL;
}

bool hc_procs_knows(struct hc_procs *all, uint32_t pid, uint64_t started)
{
	return *proc_place(all, pid, started) != NULL;
}

void hc_procs_attach(struct hc_proc *p, struct hc_conn *c)
{
	c->proc = p;
	c->proc_next = p->conns;
	c->proc_prev = &p->conns;
	if (p->conns)
		p->conns->proc_prev = &c->proc_next;
	p->conns = c;
}

/* A process that nobody can watch has no end that would free it. */
static void forget_unwatched(struct hc_proc *p)
{
	if (p->conns || p->pidfd >= 0 || p->dead)
		return;
	*proc_place(p->all, p->pid, p->started) = p->hash_next;
	p->dead = true;
	p->died_ns = now_ns();
	p->dead_next = p->all->dead;
	p->all->dead = p;
	p->all->ndead++;
}

void hc_procs_detach(struct hc_conn *c)
{
	struct hc_proc *p = c->proc;

	if (!p)
		return;
	*c->proc_prev = c->proc_next;
	if (c->proc_next)
		c->proc_next->proc_prev = c->proc_prev;
	c->proc = NULL;
	c->proc_next = NULL;
	c->proc_prev = NULL;
	forget_unwatched(p);
}

void hc_procs_tick(struct hc_procs *all, uint64_t now)
{
	struct hc_proc **at = &all->dead, *p;

	while ((p = *at)) {
		if (p->conns || now < p->died_ns + HC_ARENA_AFTER_NS) {
			at = &p->dead_next;
			continue;
		}
		*at = p->dead_next;
		all->ndead--;
		proc_free(p);
	}
}

void hc_procs_free(struct hc_procs *all)
{
	struct hc_proc *p;
	unsigned i;

	if (!all)
		return;
	all->store.worker = NULL; /* they stay there for the next daemon */
	while ((p = all->dead)) {
		all->dead = p->dead_next;
		proc_free(p);
	}
	for (i = 0; i < BUCKETS; i++) {
		while ((p = all->by_pid[i])) {
			all->by_pid[i] = p->hash_next;
			p->dead = true;
			proc_free(p);
		}
	}
	free(all);
}
