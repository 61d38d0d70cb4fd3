/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A wall clock that somebody else sets, for a program that is told so by LD_PRELOAD.
 *
 * The file that HC_CLOCK_FILE names holds a number of seconds, as text, which is added to the wall
 * clock and to nothing else: monotonic clocks and timers run as they do on a machine whose time is
 * set. The file is read at each call, so that the clock jumps while the program runs.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

typedef int (*clock_fn)(clockid_t id, struct timespec *t);

static time_t offset(void)
{
	const char *path = getenv("HC_CLOCK_FILE");
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	char text[32];
	ssize_t n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : 0;

	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = '\0';
	return (time_t)strtoll(text, NULL, 10);
}

int clock_gettime(clockid_t id, struct timespec *t)
{
	clock_fn real;
	int r;

	*(void **)&real = dlsym(RTLD_NEXT, "clock_gettime");
	r = real(id, t);
	if (!r && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE))
		t->tv_sec += offset();
	return r;
}

int gettimeofday(struct timeval *restrict t, void *restrict zone)
{
	struct timespec now;

	(void)zone;
	if (clock_gettime(CLOCK_REALTIME, &now))
		return -1;
	t->tv_sec = now.tv_sec;
	t->tv_usec = now.tv_nsec / 1000;
	return 0;
}

time_t time(time_t *to)
{
	struct timespec now;

	if (clock_gettime(CLOCK_REALTIME, &now))
		return (time_t)-1;
	if (to)
		*to = now.tv_sec;
	return now.tv_sec;
}
