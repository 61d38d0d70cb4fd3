/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libcheck's assertions in processes that a test forks.
 *
 * libcheck tells its runner about each assertion that a test passes, in a file that the test's
 * process shares with all that it forks. Two that write there at once, or one that is killed in the
 * middle, spoil it, and the runner ends with "Bad message type". So only the test's own process
 * writes there: the linker leads every assertion through here (--wrap). In a process below it, one
 * that holds does nothing, and one that does not prints what libcheck would have kept, and ends
 * that process with 1; who forked it judges by that.
 *
 * Which process this is, is found out at the first assertion after each fork. The runner is where
 * this program began; a test is its child, or itself where tests are not forked (CK_FORK=no).
 */
#include <check.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { UNKNOWN, REPORTS, FORKED };

static pid_t runner;
static atomic_int which;

void __real__mark_point(const char *file, int line);
void __wrap__mark_point(const char *file, int line);
_Noreturn void __real__ck_assert_failed(const char *file, int line, const char *expr,
					const char *format, ...)
	__attribute__((format(printf, 4, 5)));
_Noreturn void __wrap__ck_assert_failed(const char *file, int line, const char *expr,
					const char *format, ...)
	__attribute__((format(printf, 4, 5)));

static void forget(void)
{
	atomic_store_explicit(&which, UNKNOWN, memory_order_relaxed);
}

__attribute__((constructor)) static void note_runner(void)
{
	runner = getpid();
	pthread_atfork(NULL, NULL, forget);
}

static bool is_forked(void)
{
	int w = atomic_load_explicit(&which, memory_order_relaxed);

	if (w == UNKNOWN) {
		const char *fork = getenv("CK_FORK");

		if (fork && !strcmp(fork, "no"))
			w = getpid() == runner ? REPORTS : FORKED;
		else
			w = getpid() == runner || getppid() == runner ? REPORTS : FORKED;
		atomic_store_explicit(&which, w, memory_order_relaxed);
	}
	return w == FORKED;
}

void __wrap__mark_point(const char *file, int line)
{
	if (!is_forked())
		__real__mark_point(file, line);
}

void __wrap__ck_assert_failed(const char *file, int line, const char *expr, const char *format, ...)
{
	char text[4096];
	va_list ap;

	snprintf(text, sizeof(text), "%s", expr);
	if (format) {
		va_start(ap, format);
		vsnprintf(text, sizeof(text), format, ap);
		va_end(ap);
	}
	if (!is_forked())
		__real__ck_assert_failed(file, line, expr, "%s", text);
	fprintf(stderr, "%s:%d: process %d, forked by a test: %s\n", file, line, (int)getpid(),
		text);
	_exit(1);
}
