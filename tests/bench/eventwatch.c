/* SPDX-License-Identifier: Apache-2.0 */
/* See eventwatch.h. */
#include "eventwatch.h"

#include <stdlib.h>

#include "bench.h"
#include "ours.h"

struct eventwatch {
	struct hcomm_session *session;
	eventwatch_fn fn;
	void *arg;
};

static void on_event(const struct hcomm_event *e, void *context)
{
	const struct eventwatch *w = context;

	if (e->lost)
		bench_die("%u events were lost", e->lost);
	w->fn(e, bench_now_ns(), w->arg);
}

struct eventwatch *eventwatch_open(const char *socket, eventwatch_fn fn, void *arg)
{
	struct hcomm_open_args o = HCOMM_INIT(struct hcomm_open_args);
	struct eventwatch *w = calloc(1, sizeof(*w));

	if (!w)
		bench_die("out of memory");
	w->fn = fn;
	w->arg = arg;
	o.socket = socket;
	ours_must(hcomm_open(&o, &w->session), "open");
	ours_must(hcomm_on_event(w->session, on_event, w), "on_event");
	ours_must(hcomm_subscribe(w->session, 0, 1), "subscribe");
	return w;
}

void eventwatch_until(struct eventwatch *w, uint64_t until_ns, const bool *done)
{
	uint64_t now;

	do {
		now = bench_now_ns();
		ours_must(hcomm_dispatch(w->session,
					 now < until_ns ? (int)((until_ns - now) / 1000000u) : 0),
			  "dispatch");
	} while (bench_now_ns() < until_ns && !(done && *done));
}

void eventwatch_run(struct eventwatch *w, uint64_t until_ns)
{
	eventwatch_until(w, until_ns, NULL);
}

void eventwatch_close(struct eventwatch *w)
{
	hcomm_close(w->session);
	free(w);
}
