/* SPDX-License-Identifier: Apache-2.0 */
/* See pingpong.h. */
#include "pingpong.h"

#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bench.h"

enum { SPIN = 512 };

struct way { /* lines that different sides write are 128 bytes apart */
	_Atomic uint32_t number;
	uint32_t bytes;
	uint8_t data[PINGPONG_BYTES_MAX];
	_Atomic uint32_t asleep; /* who waits for it */
	uint8_t pad[124];
};

struct shared {
	struct way there, back;
};

struct pingpong {
	struct shared *shared;
	pid_t pid;
	bool spin;
	uint32_t number;
};

static void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield" ::: "memory");
#endif
}

static void post(struct way *w, uint32_t number, bool spin)
{
	if (!spin) {
		atomic_store_explicit(&w->number, number, memory_order_release);
		syscall(SYS_futex, &w->number, FUTEX_WAKE, 1, NULL, NULL, 0);
		return;
	}
	atomic_store(&w->number, number); /* before the look that follows */
	if (atomic_load_explicit(&w->asleep, memory_order_relaxed))
		syscall(SYS_futex, &w->number, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static void await(struct way *w, uint32_t number, bool spin)
{
	int i;

	for (i = 0; spin && i < SPIN; i++) {
		if (atomic_load_explicit(&w->number, memory_order_acquire) == number)
			return;
		relax();
	}
	if (spin)
		atomic_store(&w->asleep, 1);
	while (atomic_load_explicit(&w->number, memory_order_acquire) != number)
		syscall(SYS_futex, &w->number, FUTEX_WAIT, number - 1, NULL, NULL, 0);
	if (spin)
		atomic_store_explicit(&w->asleep, 0, memory_order_relaxed);
}

_Noreturn static void echo(struct shared *s, bool spin)
{
	uint8_t copy[PINGPONG_BYTES_MAX];
	uint32_t number, bytes;

	for (number = 1;; number++) {
		await(&s->there, number, spin);
		bytes = s->there.bytes;
		memcpy(copy, s->there.data, bytes);
		memcpy(s->back.data, copy, bytes);
		s->back.bytes = bytes;
		post(&s->back, number, spin);
	}
}

struct pingpong *floor_pingpong_start(int cpu, bool spin)
{
	struct pingpong *p = calloc(1, sizeof(*p));

	if (!p)
		bench_die("no memory");
	p->shared = mmap(NULL, sizeof(*p->shared), PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (p->shared == MAP_FAILED)
		bench_die("no shared memory");
	p->spin = spin;
	p->pid = bench_fork();
	if (!p->pid) {
		bench_pin(cpu);
		echo(p->shared, spin);
	}
	return p;
}

double floor_pingpong_ns(struct pingpong *p, uint32_t bytes, unsigned trips)
{
	uint8_t data[PINGPONG_BYTES_MAX] = {0};
	struct shared *s = p->shared;
	uint64_t start = bench_now_ns();
	unsigned i;

	for (i = 0; i < trips; i++) {
		memcpy(s->there.data, data, bytes);
		s->there.bytes = bytes;
		post(&s->there, ++p->number, p->spin);
		await(&s->back, p->number, p->spin);
		memcpy(data, s->back.data, s->back.bytes);
	}
	return (double)(bench_now_ns() - start) / trips;
}

struct pingpong *floor_pingpong_stop(struct pingpong *p)
{
	bench_kill(p->pid);
	munmap(p->shared, sizeof(*p->shared));
	free(p);
	return NULL;
}
