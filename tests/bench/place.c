/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a benchmark runs: processors, processes, files.
 *
 * Waking a process on another core of a virtual machine costs several times what it costs on
 * the same one, so who runs where decides a result as much as the code does. Each benchmark
 * therefore binds every process it starts, and binds ours and the floor's in the same way.
 * Children die with the program that started them, whatever ends it, and a temporary directory
 * is removed by the one process that made it.
 */
#include "bench.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static cpu_set_t allowed;
static bool allowed_known;
static char tmpdir[256];
static pid_t tmpdir_owner;

static void learn_allowed(void)
{
	if (allowed_known)
		return;
	if (sched_getaffinity(0, sizeof(allowed), &allowed))
		bench_die("sched_getaffinity: %s", strerror(errno));
	allowed_known = true;
}

void bench_cpus(int *first, int *second)
{
	int two[2] = {0, 0};
	size_t cpu;
	int found = 0;

	learn_allowed();
	for (cpu = 0; cpu < CPU_SETSIZE && found < 2; cpu++)
		if (CPU_ISSET(cpu, &allowed))
			two[found++] = (int)cpu;
	*first = two[0];
	*second = found == 2 ? two[1] : two[0];
}

void bench_pin(int cpu)
{
	cpu_set_t set;

	learn_allowed();
	CPU_ZERO(&set);
	CPU_SET((size_t)cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		bench_die("cannot bind to processor %d: %s", cpu, strerror(errno));
}

void bench_unpin(void)
{
	learn_allowed();
	if (sched_setaffinity(0, sizeof(allowed), &allowed))
		bench_die("sched_setaffinity: %s", strerror(errno));
}

pid_t bench_fork(void)
{
	pid_t parent = getpid();
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid < 0)
		bench_die("fork: %s", strerror(errno));
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* it may have died before the line above */
	if (getppid() != parent)
		_exit(1);
	return 0;
}

void bench_kill(pid_t pid)
{
	if (pid <= 0)
		return;
	kill(pid, SIGKILL);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

uint64_t bench_cpu_ns(pid_t pid)
{
	struct timespec t;
	clockid_t clock;
	int r = clock_getcpuclockid(pid, &clock);

	if (r || clock_gettime(clock, &t))
		bench_die("processor time of %d: %s", (int)pid, strerror(r ? r : errno));
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st;
	(void)kind;
	(void)at;
	return remove(path);
}

static void remove_tmpdir(void)
{
	if (tmpdir_owner == getpid())
		nftw(tmpdir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

const char *bench_tmpdir(void)
{
	const char *base = getenv("TMPDIR");

	if (tmpdir_owner)
		return tmpdir;
	/* names of sockets below it must fit in sun_path */
	if (!base || !*base || strlen(base) > 60)
		base = "/tmp";
	snprintf(tmpdir, sizeof(tmpdir), "%s/hc-bench.XXXXXX", base);
	if (!mkdtemp(tmpdir))
		bench_die("cannot make %s: %s", tmpdir, strerror(errno));
	tmpdir_owner = getpid();
	atexit(remove_tmpdir);
	return tmpdir;
}

void bench_write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "we");

	if (!f || fputs(text, f) == EOF || fclose(f))
		bench_die("cannot write %s: %s", path, strerror(errno));
}

void bench_line_machine(const char *bench)
{
	struct bench_line l;
	struct utsname u;

	learn_allowed();
	if (uname(&u))
		bench_die("uname: %s", strerror(errno));
	bench_line_open(&l, bench);
	bench_line_bool(&l, "machine", true);
	bench_line_int(&l, "cpus", (uint64_t)CPU_COUNT(&allowed));
	bench_line_str(&l, "kernel", u.release);
	bench_line_str(&l, "arch", u.machine);
	bench_line_print(&l);
}
