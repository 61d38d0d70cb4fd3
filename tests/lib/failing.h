/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The N-th allocation fails: for loops that try every N until none is left to fail.
 *
 * Included by a test, this defines malloc and its like in the test program itself, in front of
 * those of libc, for everything that the program loads. Only the thread that asked, and only
 * between hc_failing_begin and hc_failing_end, meets a failure, and just one. mmap counts too.
 *
 *	for (n = 0; ; n++) {
 *		hc_failing_begin(n);
 *		r = call();
 *		if (!hc_failing_end())
 *			break;		the call needs n allocations; r is its good result
 *		... r must be a clean refusal ...
 *	}
 *
 * With a sanitizer, which owns malloc, nothing is defined and nothing ever fails.
 */
#ifndef HC_FAILING_H
#define HC_FAILING_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static __thread int hc_failing_left = -1;
static __thread bool hc_failing_hit;

static inline void hc_failing_begin(int n)
{
	hc_failing_hit = false;
	hc_failing_left = n;
}

/* Has one failed since begin? */
static inline bool hc_failing_end(void)
{
	hc_failing_left = -1;
	return hc_failing_hit;
}

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HC_FAILING_NOT 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HC_FAILING_NOT 1
#endif

#ifdef HC_FAILING_NOT
#define HC_FAILING_WORKS 0
#else
#define HC_FAILING_WORKS 1

static inline bool hc_failing_now(void)
{
	if (hc_failing_left < 0 || hc_failing_left--)
		return false;
	hc_failing_hit = true;
	errno = ENOMEM;
	return true;
}

extern void *__libc_malloc(size_t n);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *p, size_t n);
extern void *__libc_memalign(size_t alignment, size_t n);

void *malloc(size_t n)
{
	return hc_failing_now() ? NULL : __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
	return hc_failing_now() ? NULL : __libc_calloc(n, size);
}

void *realloc(void *p, size_t n)
{
	return hc_failing_now() ? NULL : __libc_realloc(p, n);
}

void *aligned_alloc(size_t alignment, size_t n)
{
	return hc_failing_now() ? NULL : __libc_memalign(alignment, n);
}

void *mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
	union {
		long value;
		void *map;
	} r;

	if (hc_failing_now())
		return MAP_FAILED;
	r.value = syscall(SYS_mmap, at, bytes, protection, flags, fd, offset);
	return r.value == -1 ? MAP_FAILED : r.map;
}
#endif
#endif
