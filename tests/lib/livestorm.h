/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A storm of real clients at a running daemon, for the test of channels and for the benchmark.
 *
 * Each client is a session with a domain of its own over the two devices of one link, so that it
 * is an owner of its own to the scheduler. It asks for a channel of its part of the link, holds it
 * for a random time, gives it back, and asks again at once. Some clients wait in the queue; the
 * others ask without waiting and come back when they were told to. Sessions are spread over a few
 * processes, each of which serves its own in one loop, since processes beyond the number of cores
 * would measure their scheduling. The last link is shared memory, whose channels carry rings.
 *
 * Meanwhile the parent takes samples of the daemon's books (ledger.h), and at the end all links
 * must be free.
 */
#ifndef HC_LIVESTORM_H
#define HC_LIVESTORM_H

#include "harness.h"

enum { HC_LIVE_CLIENTS = 512, HC_LIVE_LINKS = 4 };

struct hc_live {
	unsigned clients, processes;
	unsigned waiting; /* of 4 clients of each link so many wait, the others come back */
	unsigned at_once; /* so many fit on a link */
	unsigned hold_ms; /* mean; from a half to one and a half of it */
	bool declares;    /* they say how long they will hold */
	unsigned warm_ms, length_ms;
	unsigned grants_least; /* for each client on average, or it goes on, ten times at most */
	unsigned seed;
};

struct hc_live_result {
	uint64_t granted, asked;         /* in the counted time */
	uint64_t returns, kept;          /* came back at a hint; and got it */
	uint64_t hints, unknown;         /* refusals with a time, and without */
	double success_percent;          /* kept of returns */
	double hint_percent;             /* the daemon's own count of numeric hints kept */
	uint64_t disturbed;              /* returns while the machine stood still, or just after */
	double calm_percent;             /* kept of the other returns */
	double jain[2];                  /* the least of all links: who wait, who come back */
	uint64_t fewest[2], most[2];     /* grants of one client */
	uint64_t samples, whole;         /* of the books */
	uint64_t ask_p50_ns, ask_p99_ns; /* one request that is answered at once, by a client */
	double daemon_cpu_us;            /* processor time of the daemon for each grant */
};

/* Starts a daemon of its own and ends it. */
void hc_live_run(const struct hc_live *set, struct hc_live_result *out);

#endif
