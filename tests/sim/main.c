/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulator as a program: clusters under faults, one for each seed.
 *
 *   sim [--paths | --jobs] [--seed N] [--seeds COUNT] [--nodes N] [--rails N] [--minutes M]
 *       [--calm] [--wan] [--trace]
 *
 * --paths: peers and paths alone (hunt.h), --jobs: domains over the nodes (jobs.h); without either
 * each seed is run as both, up to 64 nodes. --calm: without faults.
 *
 * A line for each seed that breaks a promise, with what and when, and what happened last; at the
 * end one line of sums for each kind. The same seed gives the same run, so --seed N --trace shows
 * how it came to it. Exit status 1 when a promise was broken.
 */
#include "hunt.h"
#include "jobs.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PATHS_NODES 64u

struct sums {
	uint64_t hash, events, bad, faults;
	uint32_t longest, lines;                                       /* of paths */
	uint64_t began, formed, subs, failed, ops, channels, messages; /* of jobs */
};

struct plan {
	uint64_t seed, seeds;
	uint32_t nodes, rails, seconds;
	bool paths, jobs, calm, wan;
	FILE *trace;
};

static uint64_t number(const char *what, const char *text, uint64_t lo, uint64_t hi)
{
	char *end;
	uint64_t n = strtoull(text, &end, 10);

	if (*end || !*text || n < lo || n > hi) {
		fprintf(stderr, "sim: %s is '%s'; wanted: %" PRIu64 "..%" PRIu64 "\n", what, text,
			lo, hi);
		exit(2);
	}
	return n;
}

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void run_paths(const struct plan *p, uint64_t seed, struct sums *sum)
{
	struct hunt h = {.seed = seed,
			 .nodes = p->nodes,
			 .rails = p->rails,
			 .seconds = p->seconds,
			 .trace = p->trace};

	hunt_run(&h);
	sum->hash = sum->hash * 31 + h.hash;
	sum->events += h.events;
	sum->longest = h.heal_ms > sum->longest ? h.heal_ms : sum->longest;
	sum->lines = h.lines > sum->lines ? h.lines : sum->lines;
	sum->bad += h.bad;
	if (h.bad)
		printf("--paths --seed %" PRIu64 " --nodes %u: %s\n", seed, p->nodes, h.why);
}

static void run_jobs(const struct plan *p, uint64_t seed, struct sums *sum)
{
	static struct jobs j;

	j = (struct jobs){.seed = seed,
			  .nodes = p->nodes,
			  .seconds = p->seconds,
			  .calm = p->calm,
			  .wan = p->wan,
			  .trace = p->trace};
	jobs_run(&j);
	sum->hash = sum->hash * 31 + j.hash;
	sum->events += j.events;
	sum->longest = j.heal_ms > sum->longest ? j.heal_ms : sum->longest;
	sum->bad += j.bad;
	sum->faults += j.faults;
	sum->began += j.began;
	sum->formed += j.formed;
	sum->subs += j.subs;
	sum->channels += j.channels;
	sum->messages += j.messages;
	sum->failed += j.failed;
	sum->ops += j.ops;
	if (!j.bad)
		return;
	jobs_print_tail(&j, stdout);
	printf("--jobs --seed %" PRIu64 " --nodes %u: %s\n", seed, p->nodes, j.why);
}

static void progress(const struct plan *p, uint64_t done, uint64_t bad, double began)
{
	const double s = now_s() - began;

	if (!isatty(STDERR_FILENO))
		return;
	if (done == p->seeds)
		fprintf(stderr, "\r\033[K");
	else
		fprintf(stderr,
			"\r%" PRIu64 " of %" PRIu64 " seeds, %" PRIu64 " broken, %.0f a minute ",
			done, p->seeds, bad, s > 0 ? (double)done * 60 / s : 0);
}

static void options(int argc, char **argv, struct plan *p)
{
	static const struct option list[] = {{"seed", required_argument, NULL, 's'},
					     {"seeds", required_argument, NULL, 'c'},
					     {"nodes", required_argument, NULL, 'n'},
					     {"rails", required_argument, NULL, 'r'},
					     {"minutes", required_argument, NULL, 'm'},
					     {"trace", no_argument, NULL, 't'},
					     {"paths", no_argument, NULL, 'p'},
					     {"jobs", no_argument, NULL, 'j'},
					     {"calm", no_argument, NULL, 'q'},
					     {"wan", no_argument, NULL, 'w'},
					     {NULL, 0, NULL, 0}};
	int o;

	while ((o = getopt_long(argc, argv, "", list, NULL)) >= 0) {
		switch (o) {
		case 's': p->seed = number("--seed", optarg, 0, UINT64_MAX - 1); break;
		case 'c': p->seeds = number("--seeds", optarg, 1, 1000000000); break;
		case 'n': p->nodes = (uint32_t)number("--nodes", optarg, 2, 65535); break;
		case 'r': p->rails = (uint32_t)number("--rails", optarg, 1, 8); break;
		case 'm': p->seconds = 60 * (uint32_t)number("--minutes", optarg, 1, 10000); break;
		case 't': p->trace = stdout; break;
		case 'p': p->paths = true; break;
		case 'j': p->jobs = true; break;
		case 'q': p->calm = true; break;
		case 'w': p->wan = true; break;
		default: exit(2);
		}
	}
	if (optind < argc) {
		fprintf(stderr, "sim: '%s' is one word too many\n", argv[optind]);
		exit(2);
	}
	if (!p->paths && !p->jobs) {
		p->paths = p->nodes <= PATHS_NODES;
		p->jobs = true;
	}
	if (p->paths && p->nodes > PATHS_NODES) {
		fprintf(stderr, "sim: --nodes is %u; wanted: at most %u with --paths\n", p->nodes,
			PATHS_NODES);
		exit(2);
	}
}

int main(int argc, char **argv)
{
	struct plan p = {.seed = 1, .seeds = 1, .nodes = 4, .rails = 2, .seconds = 60};
	struct sums paths = {0}, jobs = {0};
	double began = now_s();
	uint64_t i;

	setvbuf(stdout, NULL, _IOLBF, 0); /* what is broken is seen at once */
	options(argc, argv, &p);
	for (i = 0; i < p.seeds; i++) {
		if (p.paths)
			run_paths(&p, p.seed + i, &paths);
		if (p.jobs)
			run_jobs(&p, p.seed + i, &jobs);
		progress(&p, i + 1, paths.bad + jobs.bad, began);
	}
	if (p.paths)
		printf("%" PRIu64 " seeds, %u nodes, %" PRIu64 " events, hash %016" PRIx64
		       ", %" PRIu64
		       " broken, agreement after %u ms at most, %u lines of a path a minute\n",
		       p.seeds, p.nodes, paths.events, paths.hash, paths.bad, paths.longest,
		       paths.lines);
	if (p.jobs)
		printf("%" PRIu64 " seeds, %u nodes, %" PRIu64 " events, hash %016" PRIx64
		       ", %" PRIu64 " broken, agreement after %u ms at most; %" PRIu64
		       " faults, %" PRIu64 " domains begun, %" PRIu64 " formed, with %" PRIu64
		       " sub-domains, %" PRIu64 " cancelled, %" PRIu64 " operations, %" PRIu64
		       " ends of channels, %" PRIu64 " messages\n",
		       p.seeds, p.nodes, jobs.events, jobs.hash, jobs.bad, jobs.longest,
		       jobs.faults, jobs.began, jobs.formed, jobs.subs, jobs.failed, jobs.ops,
		       jobs.channels, jobs.messages);
	fprintf(stderr, "in %.1f s\n", now_s() - began);
	return paths.bad || jobs.bad ? 1 : 0;
}
