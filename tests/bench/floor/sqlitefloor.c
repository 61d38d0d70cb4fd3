/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two commit floors. The first is what a store thread cannot beat; the second adds the two
 * wake-ups that a main loop pays for not blocking on the disk. Where the caller is bound decides
 * which wake-up it is: the thread inherits the processor of the one that started it.
 */
#include "writer.h"

static double time_commits(struct writer *w, void (*one)(struct writer *w), uint64_t commits,
			   struct bench_samples *each)
{
	uint64_t first = bench_now_ns();
	uint64_t start = first;
	uint64_t i, now;

	for (i = 0; i < commits; i++) {
		one(w);
		if (!each)
			continue;
		now = bench_now_ns();
		bench_samples_add(each, now - start);
		start = now;
	}
	return (double)(bench_now_ns() - first) / (double)commits;
}

static void hand_off(struct writer *w)
{
	writer_submit(w);
	writer_finish(w);
}

double floor_sqlite_ns(struct writer *w, uint64_t commits, struct bench_samples *each)
{
	return time_commits(w, writer_commit, commits, each);
}

double floor_sqlite_handoff_ns(struct writer *w, uint64_t commits, struct bench_samples *each)
{
	return time_commits(w, hand_off, commits, each);
}
