/* SPDX-License-Identifier: Apache-2.0 */
/* A storm of callers in simulated time; see storm.h. */
#include "storm.h"

#include <stdlib.h>
#include <string.h>

enum doing { THINKS, WAITS, AWAY, HOLDS };

struct client {
	uint64_t at, since, hold_ns;
	uint64_t granted;
	enum doing doing;
	bool hinted;
};

struct run {
	const struct storm *set;
	const struct storm_policy *policy;
	struct client client[STORM_CLIENTS];
	uint32_t heap[STORM_CLIENTS], place[STORM_CLIENTS], count;
	uint64_t dice, now, busy_ns;
	struct storm_result *out;
};

/* ---- chance ---- */

static double chance(struct run *r)
{
	r->dice ^= r->dice << 13;
	r->dice ^= r->dice >> 7;
	r->dice ^= r->dice << 17;
	return (double)((r->dice * 0x2545f4914f6cdd1dull) >> 12) / 4503599627370496.0;
}

/* -ln x for 0 < x <= 1, by halving and the series of the area tangent: no library is needed. */
static double minus_ln(double x)
{
	double sum = 0, y, square, power;
	int k;

	for (; x < 0.7; x *= 2)
		sum += 0.69314718055994531;
	y = (1 - x) / (1 + x);
	square = y * y;
	for (power = y, k = 1; k < 20; k += 2, power *= square)
		sum += 2 * power / k;
	return sum;
}

static uint64_t draw_hold(struct run *r)
{
	const double mean = (double)r->set->hold_ns;

	switch (r->set->hold) {
	case STORM_FIXED: return r->set->hold_ns;
	case STORM_UNIFORM: return (uint64_t)(mean * (0.5 + chance(r))) + 1;
	case STORM_EXPONENTIAL: return (uint64_t)(mean * minus_ln(1 - chance(r))) + 1;
	case STORM_TWO_SIZES: return (uint64_t)(mean * (chance(r) < 0.9 ? 0.2 : 8.2)) + 1;
	}
	return 1;
}

static uint64_t draw_think(struct run *r)
{
	return (uint64_t)((double)r->set->think_ns * minus_ln(1 - chance(r))) + 1;
}

/* ---- whose turn: a heap by (time, number) ---- */

static bool before(const struct run *r, uint32_t a, uint32_t b)
{
	const uint64_t x = r->client[a].at, y = r->client[b].at;

	return x != y ? x < y : a < b;
}

static void put(struct run *r, uint32_t at, uint32_t c)
{
	r->heap[at] = c;
	r->place[c] = at;
}

/* When that client acts that means to act then. */
static uint64_t not_stalled(const struct run *r, uint32_t c, uint64_t when)
{
	const uint64_t every = r->set->stall_every_ns, n = every ? when / every : 0;

	if (!every || when == STORM_NEVER || (c + n) % 4 || when % every >= r->set->stall_ns)
		return when;
	return n * every + r->set->stall_ns;
}

static void schedule(struct run *r, uint32_t c, uint64_t when)
{
	uint32_t at = r->place[c], child;

	r->client[c].at = when = not_stalled(r, c, when);
	for (; at && before(r, c, r->heap[(at - 1) / 2]); at = (at - 1) / 2)
		put(r, at, r->heap[(at - 1) / 2]);
	for (; (child = 2 * at + 1) < r->count; at = child) {
		if (child + 1 < r->count && before(r, r->heap[child + 1], r->heap[child]))
			child++;
		if (!before(r, r->heap[child], c))
			break;
		put(r, at, r->heap[child]);
	}
	put(r, at, c);
}

/* ---- clients ---- */

static bool counted(const struct run *r)
{
	return r->now >= r->set->warm_ns;
}

static void holds(struct run *r, uint32_t number)
{
	struct client *c = &r->client[number];

	c->doing = HOLDS;
	c->since = r->now;
	if (counted(r)) {
		c->granted++;
		r->out->granted++;
	}
	schedule(r, number, r->now + c->hold_ns);
}

static void told_to_come_back(struct run *r, uint32_t number, uint64_t retry_ns)
{
	struct client *c = &r->client[number];

	c->doing = AWAY;
	c->hinted = retry_ns != STORM_NEVER;
	if (!c->hinted)
		retry_ns = r->set->unknown_ns;
	schedule(r, number, r->now + retry_ns + (uint64_t)(chance(r) * (double)r->set->late_ns));
}

static void asks(struct run *r, uint32_t number)
{
	struct client *c = &r->client[number];
	const bool wait = number < r->set->waiting;
	uint64_t retry;

	c->hold_ns = draw_hold(r);
	r->out->asked += counted(r);
	if (r->policy->ask(r->policy->ctx, r->now, number, r->set->declares ? c->hold_ns : 0, wait,
			   &retry)) {
		holds(r, number);
	} else if (wait) {
		c->doing = WAITS;
		schedule(r, number, STORM_NEVER);
	} else {
		told_to_come_back(r, number, retry);
	}
}

static void comes_back(struct run *r, uint32_t number)
{
	struct client *c = &r->client[number];
	const bool hinted = c->hinted;
	uint64_t retry;
	bool got = r->policy->again(r->policy->ctx, r->now, number, &retry);

	r->out->tries += counted(r);
	r->out->got += got && counted(r);
	if (hinted && counted(r)) {
		r->out->returns++;
		r->out->kept += got;
	}
	if (got)
		holds(r, number);
	else
		told_to_come_back(r, number, retry);
}

static void gives_back(struct run *r, uint32_t number)
{
	struct client *c = &r->client[number];

	if (counted(r))
		r->busy_ns += r->now - (c->since > r->set->warm_ns ? c->since : r->set->warm_ns);
	r->policy->release(r->policy->ctx, r->now, number);
	c->doing = THINKS;
	schedule(r, number, r->now + draw_think(r));
}

static void acts(struct run *r, uint32_t number)
{
	switch (r->client[number].doing) {
	case THINKS: asks(r, number); break;
	case AWAY: comes_back(r, number); break;
	case HOLDS: gives_back(r, number); break;
	case WAITS: break;
	}
}

static void sum_up(struct run *r)
{
	const double length = (double)(r->now - r->set->warm_ns);
	double sum = 0, squares = 0, g;
	uint32_t i;

	for (i = 0; i < r->count; i++) {
		g = (double)r->client[i].granted;
		sum += g;
		squares += g * g;
		if (r->client[i].doing == HOLDS)
			r->busy_ns +=
				r->now - (r->client[i].since > r->set->warm_ns ? r->client[i].since
									       : r->set->warm_ns);
	}
	r->out->jain = squares > 0 ? sum * sum / (squares * r->count) : 0;
	r->out->use_percent = 100 * (double)r->busy_ns / (length * r->set->channels);
	r->out->tries_percent =
		r->out->tries ? 100 * (double)r->out->got / (double)r->out->tries : 0;
	r->out->success_percent =
		r->out->returns ? 100 * (double)r->out->kept / (double)r->out->returns : 0;
}

void storm_run(const struct storm *setup, const struct storm_policy *policy,
	       struct storm_result *out)
{
	struct run *r = calloc(1, sizeof(*r));
	uint64_t next, due;
	uint32_t i, who;

	if (!r || setup->clients > STORM_CLIENTS)
		abort();
	*out = (struct storm_result){0};
	r->set = setup;
	r->policy = policy;
	r->out = out;
	r->dice = setup->seed * 0x9e3779b97f4a7c15u + 1;
	for (i = 0; i < setup->clients; i++) {
		r->count++;
		r->place[i] = i;
		schedule(r, i, 1 + draw_think(r));
	}
	while (r->now < setup->warm_ns + setup->length_ns) {
		next = r->client[r->heap[0]].at;
		due = policy->deadline(policy->ctx);
		if (due < r->now)
			due = r->now;
		r->now = due <= next ? due : next;
		if (due > next)
			acts(r, r->heap[0]);
		while (policy->news(policy->ctx, r->now, &who))
			holds(r, who);
	}
	sum_up(r);
	free(r);
}
