/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: a peer that falls silent is called UNSTABLE within T + 2 ms also when the link is old: 10
 * ms x 3, p99 <= 32 ms, for links that have been good for a minute.
 *
 * bench_detect.c makes its links anew and uses each a few times; a minute for each trial would take
 * hours. Here a hundred nodes (crowd.h) age together, on loopback, and then fall silent one after
 * the other, each once, at any moment of its interval. The clock starts when the last datagram of
 * the node came in, by the kernel's stamp, and ends in a subscribed client that was told.
 *
 * While they age nobody may be accused; an accusation of a node that was late itself is not
 * counted.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bed.h"
#include "bench.h"
#include "crowd.h"
#include "eventwatch.h"
#include "nodebench.h"
#include "wire.h"
#include "wirewatch.h"

#define NAME     "detect_old"
#define PORT     16760u
#define CROWD_IP 0x7f010001u /* 127.1.0.1, of node 0 */
#define MS       1000000ull
#define S        1000000000ull
#define GOAL_MS  32.0

enum { NODES = 100, INTERVAL_MS = 10, AGE_S = 60 };

struct watch {
	struct crowd_log *log;
	struct eventwatch *events;
	char node[32]; /* that is to fall silent; "" while they age */
	uint64_t at;
	bool said;
	uint32_t accused, not_scheduled;
};

static void accused(struct watch *w, const struct hcomm_event *e, uint64_t at_ns)
{
	unsigned node = 0;

	if (sscanf(e->node, "crowd-%u", &node) == 1 && !w->log->mute[node] &&
	    !crowd_log_late(w->log, node, at_ns - 6 * INTERVAL_MS * MS, at_ns,
			    2 * INTERVAL_MS * MS)) {
		w->accused++;
		bench_note("%.150s", e->text);
	}
}

static void on_event(const struct hcomm_event *e, uint64_t at_ns, void *arg)
{
	struct watch *w = arg;

	w->not_scheduled += e->code == HC_W_event_code_NOT_SCHEDULED;
	if (e->code != HC_W_event_code_PATH_UNSTABLE)
		return;
	if (!strcmp(e->node, w->node) && !w->said) {
		w->said = true;
		w->at = at_ns;
	} else {
		accused(w, e, at_ns);
	}
}

/* Enough time for two packets of it, and then any moment of the interval. */
static bool trial(struct watch *w, struct wirewatch *wire, unsigned node, uint64_t *ns)
{
	uint64_t last;

	eventwatch_run(w->events, 0);
	wirewatch_clear(wire);
	eventwatch_run(w->events, bench_now_ns() + 2 * INTERVAL_MS * MS +
					  (uint64_t)random() % (INTERVAL_MS * MS));
	snprintf(w->node, sizeof(w->node), "crowd-%u", node);
	w->said = false;
	w->log->mute[node] = 1;
	eventwatch_until(w->events, bench_now_ns() + S, &w->said);
	last = wirewatch_last(wire, CROWD_IP + node, PORT);
	*ns = w->at - last;
	return w->said && last && w->at > last;
}

static void print(struct bench_samples *ms, uint32_t missed, const struct watch *w)
{
	const double p99 = (double)bench_samples_at(ms, 99) / 1e6;
	struct bench_line l;

	bench_line_open(&l, NAME);
	bench_line_bool(&l, "summary", true);
	bench_line_int(&l, "trials", ms->count + missed);
	bench_line_int(&l, "missed", missed);
	bench_line_int(&l, "age_s", bench_rounds(AGE_S));
	bench_line_int(&l, "accused", w->accused);
	bench_line_int(&l, "not_scheduled", w->not_scheduled);
	bench_line_num(&l, "p50_ms", (double)bench_samples_at(ms, 50) / 1e6, 2);
	bench_line_num(&l, "p99_ms", p99, 2);
	bench_line_num(&l, "max_ms", (double)bench_samples_at(ms, 100) / 1e6, 2);
	bench_line_num(&l, "goal", GOAL_MS, 0);
	bench_line_bool(&l, "met", !missed && !w->accused && p99 <= GOAL_MS);
	bench_line_print(&l);
}

int main(void)
{
	struct watch w = {.log = crowd_log_new()};
	struct nodebench *node;
	struct bench_samples ms;
	struct wirewatch *wire;
	uint32_t missed = 0, i;
	uint64_t ns;
	pid_t crowd;

	bench_line_machine(NAME);
	if (!bed_begin(NAME))
		return 0;
	bench_samples_init(&ms, NODES);
	node = nodebench_start(PORT, INTERVAL_MS, -1, NULL);
	crowd = nodebench_crowd_logged(node, NODES, INTERVAL_MS, true, w.log);
	nodebench_wait_paths(node, NODES, 60);
	w.events = eventwatch_open(nodebench_socket(node), on_event, &w);
	eventwatch_run(w.events, bench_now_ns() + bench_rounds(AGE_S) * S);
	wire = wirewatch_open("lo");
	for (i = 0; i < NODES; i++) {
		if (trial(&w, wire, i, &ns))
			bench_samples_add(&ms, ns);
		else
			missed++;
	}
	print(&ms, missed, &w);
	wirewatch_close(wire);
	eventwatch_close(w.events);
	bench_kill(crowd);
	nodebench_stop(node);
	bench_samples_fini(&ms);
	crowd_log_free(w.log);
	return 0;
}
