/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A disk that stands still, for a program that is told so by LD_PRELOAD.
 *
 * While the file that HC_SLOW_DISK names exists, every write and sync of a file whose path holds
 * HC_SLOW_PATH waits in its thread, as one does on a disk that is stuck; then it goes on as if
 * nothing had been. So a test decides when the disk is slow and when it is well again, without a
 * special disk, without root, and without a hook in the program.
 */
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* As the C library has them; the 64 bit name is what programs with large files call. */
ssize_t pwrite64(int fd, const void *buf, size_t n, off64_t at);

static void stand_still(int fd)
{
	const struct timespec moment = {.tv_nsec = 5000000};
	const char *flag = getenv("HC_SLOW_DISK"), *part = getenv("HC_SLOW_PATH");
	char link[64], path[PATH_MAX];
	ssize_t n;

	if (!flag || !part || access(flag, F_OK))
		return;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof(path) - 1);
	if (n < 0)
		return;
	path[n] = '\0';
	while (strstr(path, part) && !access(flag, F_OK))
		nanosleep(&moment, NULL);
}

#define REAL(name, type)                                                                           \
	type real;                                                                                 \
	*(void **)&real = dlsym(RTLD_NEXT, #name)

typedef int (*sync_fn)(int fd);
typedef ssize_t (*write_fn)(int fd, const void *buf, size_t n, off64_t at);

int fsync(int fd)
{
	REAL(fsync, sync_fn);

	stand_still(fd);
	return real(fd);
}

int fdatasync(int fd)
{
	REAL(fdatasync, sync_fn);

	stand_still(fd);
	return real(fd);
}

ssize_t pwrite64(int fd, const void *buf, size_t n, off64_t at)
{
	REAL(pwrite64, write_fn);

	stand_still(fd);
	return real(fd, buf, n, at);
}

ssize_t pwrite(int fd, const void *buf, size_t n, off_t at)
{
	REAL(pwrite64, write_fn);

	stand_still(fd);
	return real(fd, buf, n, at);
}
