/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread that ends in the middle of its work, for a program that is told so by LD_PRELOAD.
 *
 * Once the file that HC_END_THREAD names exists, the thread that was made as number HC_END_NUMBER
 * (from 1) ends instead of taking its next lock, as one does that met an error which nobody thought
 * of. So a test sees what its program makes of that.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

typedef int (*lock_fn)(pthread_mutex_t *lock);
typedef int (*create_fn)(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
			 void *arg);

struct begin {
	void *(*run)(void *);
	void *arg;
	int number;
};

static _Thread_local int number;

static void *begin(void *arg)
{
	const struct begin b = *(struct begin *)arg;

	free(arg);
	number = b.number;
	return b.run(b.arg);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *), void *arg)
{
	static atomic_int made;
	struct begin *b = malloc(sizeof(*b));
	create_fn real;

	*(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
	if (!b)
		abort();
	*b = (struct begin){run, arg, atomic_fetch_add(&made, 1) + 1};
	return real(thread, attr, begin, b);
}

int pthread_mutex_lock(pthread_mutex_t *lock)
{
	static _Atomic(lock_fn) known;
	const char *flag = number ? getenv("HC_END_THREAD") : NULL;
	lock_fn real = atomic_load(&known);

	if (!real) {
		*(void **)&real = dlsym(RTLD_NEXT, "pthread_mutex_lock");
		atomic_store(&known, real);
	}
	if (flag && number == atoi(getenv("HC_END_NUMBER")) && !access(flag, F_OK))
		pthread_exit(NULL);
	return real(lock);
}
