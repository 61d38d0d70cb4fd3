/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goals of admission: a decision takes at most 3 us (99 of 100 of them) with 512 owners after one
 * link; of the callers who come back at their hint at least 99 % get what they came for; and equal
 * owners have equal shares, Jain index at least 0.99.
 *
 * The scheduler itself, without daemon and sockets, in simulated time: what is measured is each
 * call of it, in a storm where all 512 wait in the queue, and in one where all come back at hints.
 * The same storm then meets a plain queue, a lottery and a policy without hints. A line for each
 * part. Storms of real clients at a running daemon belong here too, beside `waiting` and `hinted`.
 */
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "storm_admit.h"

#define NAME "admission"

enum { OWNERS = 512, CHANNELS = 64, SAMPLES = 6000000 };

#define GOAL_NS      3000
#define GOAL_SUCCESS 99.0
#define GOAL_JAIN    0.99

static struct bench_samples samples;

static void took(void *ctx, uint64_t ns)
{
	(void)ctx;
	if (samples.count < samples.limit)
		bench_samples_add(&samples, ns);
}

static struct storm storm_of(uint32_t waiting)
{
	return (struct storm){.seed = 5,
			      .clients = OWNERS,
			      .channels = CHANNELS,
			      .waiting = waiting,
			      .hold = STORM_EXPONENTIAL,
			      .hold_ns = 20000000,
			      .think_ns = 5000000,
			      .late_ns = 1000000,
			      .unknown_ns = 20000000,
			      .warm_ns = 5000000000u,
			      .length_ns = 60000000000u};
}

struct figures {
	uint64_t p50, p99, most;
	struct storm_result storm;
	struct hc_admit_counts counts;
};

/* Each call's time; the clock's own is in it. */
static void ours(const struct storm *set, struct figures *out)
{
	static struct storm_admit a;
	struct storm_policy policy;

	memset(&a, 0, sizeof(a));
	a.clock = bench_now_ns;
	a.took = took;
	bench_samples_reset(&samples);
	policy = storm_admit_new(&a, CHANNELS);
	storm_run(set, &policy, &out->storm);
	hc_admit_counts(a.s, &out->counts);
	out->p50 = bench_samples_at(&samples, 50);
	out->p99 = bench_samples_at(&samples, 99);
	out->most = bench_samples_at(&samples, 99.99);
	storm_admit_end(&a);
}

static void line(const char *part, const struct storm_result *r, const struct figures *f)
{
	struct bench_line l;

	bench_line_open(&l, NAME);
	bench_line_str(&l, "part", part);
	if (f) {
		bench_line_int(&l, "decision_p50_ns", f->p50);
		bench_line_int(&l, "decision_p99_ns", f->p99);
		bench_line_int(&l, "decision_p9999_ns", f->most);
	}
	bench_line_int(&l, "granted", r->granted);
	bench_line_int(&l, "came_back", r->tries);
	if (r->tries)
		bench_line_num(&l, "success_percent",
			       r->returns ? r->success_percent : r->tries_percent, 2);
	else
		bench_line_null(&l, "success_percent");
	bench_line_num(&l, "used_percent", r->use_percent, 1);
	bench_line_num(&l, "jain", r->jain, 4);
	bench_line_print(&l);
}

static struct figures waiting(void)
{
	const struct storm set = storm_of(OWNERS);
	struct figures f = {0};

	ours(&set, &f);
	line("ours, all wait", &f.storm, &f);
	return f;
}

static struct figures hinted(void)
{
	const struct storm set = storm_of(0);
	struct figures f = {0};

	ours(&set, &f);
	line("ours, all come back", &f.storm, &f);
	return f;
}

static void others(void)
{
	static struct storm_other o;
	const struct storm set = storm_of(0);
	struct storm_policy (*const policies[])(struct storm_other *, const struct storm *) = {
		storm_fifo, storm_lottery, storm_nohint};
	struct storm_policy policy;
	struct storm_result out;
	size_t i;

	for (i = 0; i < sizeof(policies) / sizeof(policies[0]); i++) {
		policy = policies[i](&o, &set);
		storm_run(&set, &policy, &out);
		line(policy.name, &out, NULL);
	}
}

static void report(const struct figures *w, const struct figures *h)
{
	const uint64_t p99 = w->p99 > h->p99 ? w->p99 : h->p99;
	struct bench_line l;

	bench_line_open(&l, NAME);
	bench_line_bool(&l, "summary", true);
	bench_line_int(&l, "owners", OWNERS);
	bench_line_int(&l, "decision_p99_ns", p99);
	bench_line_int(&l, "goal_ns", GOAL_NS);
	bench_line_num(&l, "success_percent", h->storm.success_percent, 2);
	bench_line_num(&l, "goal_success_percent", GOAL_SUCCESS, 0);
	bench_line_num(&l, "jain", w->storm.jain, 4);
	bench_line_num(&l, "goal_jain", GOAL_JAIN, 2);
	bench_line_bool(&l, "met",
			p99 <= GOAL_NS && h->storm.success_percent >= GOAL_SUCCESS &&
				w->storm.jain >= GOAL_JAIN);
	bench_line_print(&l);
}

int main(void)
{
	struct figures w, h;
	int cpu, other;

	bench_line_machine(NAME);
	bench_cpus(&cpu, &other);
	bench_pin(cpu);
	bench_samples_init(&samples, SAMPLES);
	w = waiting();
	h = hinted();
	others();
	report(&w, &h);
	bench_samples_fini(&samples);
	return 0;
}
