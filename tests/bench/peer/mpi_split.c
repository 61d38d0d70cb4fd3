/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Peer of a domain's creation: MPI_Comm_split of the world into one communicator of all ranks.
 * All ranks are on one node and read the same clock, so a turn lasts from the first entry to the
 * last return. Prints the median and the p99 in microseconds and the library's version.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WARM_UP = 20 };

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

static double one_turn(int rank)
{
	double begin, end, first, last;
	MPI_Comm part;

	MPI_Barrier(MPI_COMM_WORLD);
	begin = now_us();
	MPI_Comm_split(MPI_COMM_WORLD, 0, rank, &part);
	end = now_us();
	MPI_Allreduce(&begin, &first, 1, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
	MPI_Allreduce(&end, &last, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
	MPI_Comm_free(&part);
	return last - first;
}

int main(int argc, char **argv)
{
	int turns = argc > 1 ? atoi(argv[1]) : 200;
	char version[MPI_MAX_LIBRARY_VERSION_STRING];
	double *us = calloc((size_t)(turns > 0 ? turns : 1), sizeof(*us));
	int i, rank, n;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (!us || turns < 1)
		MPI_Abort(MPI_COMM_WORLD, 1);
	for (i = 0; i < WARM_UP; i++)
		one_turn(rank);
	for (i = 0; i < turns; i++)
		us[i] = one_turn(rank);
	qsort(us, (size_t)turns, sizeof(*us), by_value);
	MPI_Get_library_version(version, &n);
	version[strcspn(version, ",\n")] = '\0';
	if (!rank)
		printf("%.1f %.1f %s\n", us[turns / 2], us[turns * 99 / 100], version);
	MPI_Finalize();
	free(us);
	return 0;
}
