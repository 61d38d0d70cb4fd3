/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: a daemon takes at most 3 MB when idle and at most 13 MB with 10,000 domains of 8 ranks
 * that one session has made in batches: anonymous and shared memory, the text of libraries and
 * pages of its own program not counted. State slabs are shared memory wherever their files lie.
 * A second figure has 64 sessions attached besides.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hcomm/hcomm.h>

#include "bench.h"
#include "ours.h"

#define NAME "memory_10k"

enum { RANKS = 8, DOMAINS = 10000, BATCH = 1000, SESSIONS = 64, TIMEOUT_MS = 60000 };

#define GOAL_IDLE_MB 3.0
#define GOAL_MB      13.0

/* Anonymous memory of all mappings, and what is resident of shared ones. */
static double megabytes(const struct ours *o)
{
	char path[64], line[512];
	unsigned long kb, rss = 0, sum = 0;
	bool shared = false;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/smaps", (int)ours_pid(o));
	f = fopen(path, "re");
	if (!f)
		bench_die("%s cannot be read", path);
	while (fgets(line, sizeof(line), f)) {
		if (strchr(line, '-') && !strstr(line, "kB"))
			shared = strstr(line, "/pages/") || strstr(line, "memfd:");
		else if (sscanf(line, "Rss: %lu", &kb) == 1)
			rss = kb;
		else if (sscanf(line, "Anonymous: %lu", &kb) == 1)
			sum += shared ? rss : kb;
	}
	fclose(f);
	return (double)sum * 1024 / 1e6;
}

static void make_all(hcomm_domain parent)
{
	static struct hcomm_batch_item item[BATCH];
	static uint32_t ranks[RANKS];
	uint32_t i, n;

	for (i = 0; i < RANKS; i++)
		ranks[i] = i;
	for (n = 0; n < DOMAINS; n += BATCH) {
		for (i = 0; i < BATCH; i++)
			item[i] = (struct hcomm_batch_item){.size = sizeof(item[i]),
							    .ranks = ranks,
							    .count = RANKS,
							    .sub_id = n + i};
		ours_must(hcomm_batch(parent, item, BATCH, TIMEOUT_MS), "hcomm_batch");
	}
}

int main(void)
{
	static struct hcomm_session *session[SESSIONS];
	struct hcomm_open_args args = HCOMM_INIT(struct hcomm_open_args);
	double idle, full, many;
	hcomm_domain parent;
	struct bench_line l;
	struct ours *o;
	int i;

	bench_line_machine(NAME);
	o = ours_start_with(RANKS, -1, "quota_domains = 20000");
	args.socket = ours_socket(o);
	idle = megabytes(o);
	ours_must(hcomm_open(&args, &session[0]), "hcomm_open");
	ours_must(hcomm_join_all_local(session[0], NULL, 0, NULL, TIMEOUT_MS, &parent),
		  "hcomm_join_all_local");
	make_all(parent);
	full = megabytes(o);
	for (i = 1; i < SESSIONS; i++)
		ours_must(hcomm_open(&args, &session[i]), "hcomm_open");
	many = megabytes(o);
	bench_line_open(&l, NAME);
	bench_line_bool(&l, "summary", true);
	bench_line_num(&l, "idle_mb", idle, 2);
	bench_line_num(&l, "goal_idle_mb", GOAL_IDLE_MB, 1);
	bench_line_num(&l, "mb", full, 2);
	bench_line_num(&l, "goal_mb", GOAL_MB, 1);
	bench_line_num(&l, "mib", full * 1e6 / (1 << 20), 2);
	bench_line_num(&l, "bytes_each", (full - idle) * 1e6 / DOMAINS, 0);
	bench_line_num(&l, "mb_with_64_sessions", many, 2);
	bench_line_bool(&l, "met", idle <= GOAL_IDLE_MB && full <= GOAL_MB);
	bench_line_print(&l);
	for (i = 0; i < SESSIONS; i++)
		hcomm_close(session[i]);
	ours_stop(o);
	return 0;
}
