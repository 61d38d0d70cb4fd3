/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulator as a program: clusters under faults, one for each seed.
 *
 *   sim [--seed N] [--seeds COUNT] [--nodes N] [--rails N] [--minutes M] [--trace]
 *
 * A line for each seed that breaks a promise, with what and when; at the end one line of sums. The
 * same seed gives the same run, so --seed N --trace shows how it came to it. Exit status 1 when a
 * promise was broken.
 */
#include "hunt.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

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

int main(int argc, char **argv)
{
	static const struct option options[] = {{"seed", required_argument, NULL, 's'},
						{"seeds", required_argument, NULL, 'c'},
						{"nodes", required_argument, NULL, 'n'},
						{"rails", required_argument, NULL, 'r'},
						{"minutes", required_argument, NULL, 'm'},
						{"trace", no_argument, NULL, 't'},
						{NULL, 0, NULL, 0}};
	struct hunt base = {.seed = 1, .nodes = 4, .rails = 2, .seconds = 60};
	uint64_t count = 1, i, hash = 0, events = 0, bad = 0;
	uint32_t longest = 0, lines = 0;
	double began = now_s();
	int o;

	while ((o = getopt_long(argc, argv, "", options, NULL)) >= 0) {
		switch (o) {
		case 's': base.seed = number("--seed", optarg, 0, UINT64_MAX - 1); break;
		case 'c': count = number("--seeds", optarg, 1, 1000000000); break;
		case 'n': base.nodes = (uint32_t)number("--nodes", optarg, 2, 64); break;
		case 'r': base.rails = (uint32_t)number("--rails", optarg, 1, 8); break;
		case 'm':
			base.seconds = 60 * (uint32_t)number("--minutes", optarg, 1, 10000);
			break;
		case 't': base.trace = stdout; break;
		default: return 2;
		}
	}
	if (optind < argc) {
		fprintf(stderr, "sim: '%s' is one word too many\n", argv[optind]);
		return 2;
	}
	for (i = 0; i < count; i++) {
		struct hunt h = base;

		h.seed += i;
		hunt_run(&h);
		hash = hash * 31 + h.hash;
		events += h.events;
		longest = h.heal_ms > longest ? h.heal_ms : longest;
		lines = h.lines > lines ? h.lines : lines;
		bad += h.bad;
		if (h.bad)
			printf("seed %" PRIu64 ": %s\n", h.seed, h.why);
		if (isatty(STDERR_FILENO))
			fprintf(stderr, "\r%" PRIu64 " of %" PRIu64 " seeds", i + 1, count);
	}
	if (isatty(STDERR_FILENO))
		fprintf(stderr, "\r\033[K");
	printf("%" PRIu64 " seeds, %u nodes, %" PRIu64 " events, hash %016" PRIx64 ", %" PRIu64
	       " broken, agreement after %u ms at most, %u lines of a path a minute\n",
	       count, base.nodes, events, hash, bad, longest, lines);
	fprintf(stderr, "in %.1f s\n", now_s() - began);
	return bad ? 1 : 0;
}
