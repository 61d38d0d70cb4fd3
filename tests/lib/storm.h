/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A storm of callers on one link, in simulated time, against any policy of admission.
 *
 * Each client asks for one channel, holds it for a random time, gives it back, thinks, and asks
 * again. Some wait in the queue for their turn; the others do not wait, and come back when they
 * are told to. A policy is five functions; the storm knows nothing else of it, so that ours and
 * others meet the same callers with the same dice. What a run says: how many of those who came
 * back at their hint got what they came for, how well the channels were used, and how equal the
 * owners' shares were.
 */
#ifndef HC_STORM_H
#define HC_STORM_H

#include <stdbool.h>
#include <stdint.h>

#define STORM_NEVER   UINT64_MAX
#define STORM_CLIENTS 1024u

struct storm_policy {
	const char *name;
	void *ctx;
	/* True: granted. False: *retry_ns from now is when to come back (STORM_NEVER: not known),
	 * or with `wait` it is told by `news`. hold_ns is what the client declares, 0 = nothing. */
	bool (*ask)(void *ctx, uint64_t now, uint32_t client, uint64_t hold_ns, bool wait,
		    uint64_t *retry_ns);
	bool (*again)(void *ctx, uint64_t now, uint32_t client, uint64_t *retry_ns);
	void (*release)(void *ctx, uint64_t now, uint32_t client);
	/* What is due now; then a client that was granted while it waited, or false. */
	bool (*news)(void *ctx, uint64_t now, uint32_t *client);
	uint64_t (*deadline)(void *ctx);
};

enum storm_hold { STORM_FIXED, STORM_UNIFORM, STORM_EXPONENTIAL, STORM_TWO_SIZES };

struct storm {
	uint64_t seed;
	uint32_t clients, channels; /* channels only for the figure of use */
	uint32_t waiting;           /* of the clients: those who wait */
	enum storm_hold hold;
	uint64_t hold_ns, think_ns; /* means */
	uint64_t late_ns;           /* a caller comes back up to this much after its hint */
	uint64_t unknown_ns;        /* with no hint, after this */
	bool declares;
	uint64_t warm_ns, length_ns; /* counted after warm_ns */
	/* so often a quarter of the clients, another one each time, stands still for so long */
	uint64_t stall_every_ns, stall_ns;
};

struct storm_result {
	uint64_t asked, granted;
	uint64_t returns, kept; /* came back at a hint; and got it */
	uint64_t tries, got;    /* came back at all, also without a hint; and got it */
	double success_percent, tries_percent, use_percent, jain;
};

void storm_run(const struct storm *setup, const struct storm_policy *policy,
	       struct storm_result *out);

/* Three others, to compare with; they know the mean holding time without having to observe it.
 * fifo: one queue, the head alone is served; told to come when its place should be the head.
 * lottery: whoever comes first gets it; told to come at random within the time of the queue.
 * nohint: whoever comes first gets it; told nothing. */
struct storm_other {
	uint32_t channels, free, head, tail, waiting;
	uint64_t hold_ns, dice;
	uint32_t queue[STORM_CLIENTS];
};
struct storm_policy storm_fifo(struct storm_other *o, const struct storm *setup);
struct storm_policy storm_lottery(struct storm_other *o, const struct storm *setup);
struct storm_policy storm_nohint(struct storm_other *o, const struct storm *setup);

#endif
