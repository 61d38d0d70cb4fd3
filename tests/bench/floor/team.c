/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One shared page: a word the ranks sleep on, a count of those that are done that the parent
 * sleeps on, and a cache line for each rank's times. The parent's wait has a deadline and looks
 * for dead ranks, so a benchmark that went wrong ends with a name instead of hanging.
 */
#include "team.h"

#include <errno.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum command {
	CMD_SETUP,
	CMD_TIMED,
	CMD_AFTER,
};

enum { STEP_SECONDS_MAX = 30 };

struct team_page {
	_Alignas(64) _Atomic uint32_t go;
	_Atomic uint32_t command;
	_Atomic uint64_t turn;
	_Alignas(64) _Atomic uint32_t done;
	struct {
		_Alignas(64) _Atomic uint64_t begin;
		_Atomic uint64_t end;
	} rank[TEAM_RANKS_MAX];
};

static void futex_wait(_Atomic uint32_t *word, uint32_t seen, time_t seconds)
{
	struct timespec limit = {.tv_sec = seconds};

	syscall(SYS_futex, word, FUTEX_WAIT, seen, seconds ? &limit : NULL, NULL, 0);
}

static void futex_wake(_Atomic uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

static void timed_step(struct team_page *p, unsigned rank, const struct team_steps *steps)
{
	uint64_t turn = atomic_load(&p->turn);

	atomic_store(&p->rank[rank].begin, bench_now_ns());
	steps->timed(steps->ctx, rank, turn);
	atomic_store(&p->rank[rank].end, bench_now_ns());
}

static void obey(struct team_page *p, unsigned rank, const struct team_steps *steps)
{
	switch ((enum command)atomic_load(&p->command)) {
	case CMD_SETUP: steps->setup(steps->ctx, rank); return;
	case CMD_TIMED: timed_step(p, rank, steps); return;
	case CMD_AFTER: steps->after(steps->ctx, rank, atomic_load(&p->turn)); return;
	}
}

_Noreturn static void be_rank(struct team *t, unsigned rank, const struct team_steps *steps)
{
	struct team_page *p = t->page;
	uint32_t seen = 0;

	for (;;) {
		while (atomic_load(&p->go) == seen)
			futex_wait(&p->go, seen, 0);
		seen++;
		obey(p, rank, steps);
		/* only the last one wakes the parent: it must not disturb those still at it */
		if (atomic_fetch_add(&p->done, 1) + 1 == t->ranks)
			futex_wake(&p->done);
	}
}

static void check_alive(const struct team *t)
{
	unsigned r;
	int status;

	for (r = 0; r < t->ranks; r++)
		if (waitpid(t->pid[r], &status, WNOHANG) == t->pid[r])
			bench_die("rank %u of the team ended with status 0x%x", r,
				  (unsigned)status);
}

static void command(struct team *t, enum command c)
{
	uint64_t limit = bench_now_ns() + STEP_SECONDS_MAX * 1000000000ull;
	struct team_page *p = t->page;
	uint32_t n;

	atomic_store(&p->command, c);
	atomic_store(&p->done, 0);
	atomic_fetch_add(&p->go, 1);
	futex_wake(&p->go);
	while ((n = atomic_load(&p->done)) < t->ranks) {
		futex_wait(&p->done, n, 1);
		if (bench_now_ns() < limit && atomic_load(&p->done) != n)
			continue;
		check_alive(t);
		if (bench_now_ns() >= limit)
			bench_die("%u of %u ranks did not end their step in %d s", t->ranks - n,
				  t->ranks, STEP_SECONDS_MAX);
	}
}

void team_start(struct team *t, unsigned ranks, const int *cpus, unsigned ncpus,
		const struct team_steps *steps)
{
	unsigned r;

	if (!ranks || ranks > TEAM_RANKS_MAX || !ncpus)
		bench_die("a team of %u ranks; wanted: 1 to %d", ranks, TEAM_RANKS_MAX);
	*t = (struct team){.ranks = ranks, .has_after = steps->after != NULL};
	t->page = mmap(NULL, sizeof(*t->page), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		       -1, 0);
	if (t->page == MAP_FAILED)
		bench_die("mmap: %s", strerror(errno));
	for (r = 0; r < ranks; r++) {
		t->pid[r] = bench_fork();
		if (t->pid[r])
			continue;
		bench_pin(cpus[r % ncpus]);
		be_rank(t, r, steps);
	}
	command(t, CMD_SETUP);
}

uint64_t team_turn(struct team *t)
{
	struct team_page *p = t->page;
	uint64_t first = UINT64_MAX;
	uint64_t last = 0;
	uint64_t v;
	unsigned r;

	atomic_store(&p->turn, ++t->turn);
	command(t, CMD_TIMED);
	for (r = 0; r < t->ranks; r++) {
		v = atomic_load(&p->rank[r].begin);
		first = v < first ? v : first;
		v = atomic_load(&p->rank[r].end);
		last = v > last ? v : last;
	}
	if (t->has_after)
		command(t, CMD_AFTER);
	return last - first;
}

void team_stop(struct team *t)
{
	unsigned r;

	for (r = 0; r < t->ranks; r++)
		bench_kill(t->pid[r]);
	munmap(t->page, sizeof(*t->page));
	t->page = NULL;
}
