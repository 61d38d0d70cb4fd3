/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Peer of the barrier: MPI_Barrier over all ranks, one after the other, as rank 0 sees them. Rank
 * r runs on the r-th of the processors given. Prints the median and the p99 in microseconds and
 * the library's version.
 */
#define _GNU_SOURCE
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WARM_UP = 50 };

static double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a;
	double y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

int main(int argc, char **argv)
{
	int turns = argc > 3 ? atoi(argv[1]) : 0;
	char version[MPI_MAX_LIBRARY_VERSION_STRING];
	double *us = calloc((size_t)(turns > 0 ? turns : 1), sizeof(*us)), begin;
	int i, rank, n;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (!us || turns < 1)
		MPI_Abort(MPI_COMM_WORLD, 1);
	pin(atoi(argv[2 + rank % 2]));
	for (i = 0; i < WARM_UP; i++)
		MPI_Barrier(MPI_COMM_WORLD);
	for (i = 0; i < turns; i++) {
		begin = now_us();
		MPI_Barrier(MPI_COMM_WORLD);
		us[i] = now_us() - begin;
	}
	qsort(us, (size_t)turns, sizeof(*us), by_value);
	MPI_Get_library_version(version, &n);
	for (i = 0; version[i] && version[i] != ',' && version[i] != '\n'; i++)
		if (version[i] == '\t')
			version[i] = ' ';
	version[i] = '\0';
	if (!rank)
		printf("%.2f %.2f %s\n", us[turns / 2], us[turns * 99 / 100], version);
	MPI_Finalize();
	free(us);
	return 0;
}
