/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The measurement of hcommctl perf: one end asks, the other answers.
 *
 * Each size is measured twice. Round trips: a message there and one of the same size back, each
 * timed, after a tenth as many that are not. Bandwidth: all messages one way as fast as they go,
 * until the server says that it has the last one; so a full buffer on the way is not counted as
 * delivered. The client opens each part with a line of text that says which it is and how many
 * messages of what size follow. The server believes none of these numbers before they are within
 * what a channel can carry.
 *
 * Between the two clock readings of a round trip there is nothing but the two calls. Buffers are
 * touched before, and progress is shown between sizes.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "perf.h"

#define WORD_BYTES   64
#define USUAL_COUNT  10000u
#define USUAL_BYTES  (256u << 20) /* of one size each way, unless --iterations says otherwise */
#define COUNT_MIN    100u
#define LAST_WORD_MS 1000
#define ORDER        "hcomm-perf 1 %7s %" SCNu32 " %" SCNu32

enum { NO_CLIENT = 1, NO_MEMORY = 2 }; /* beside the library's errors, which are negative */

struct end {
	struct perf *p;
	uint8_t *data;
	uint64_t *times;
};

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int send(const struct end *e, const void *data, uint32_t bytes)
{
	return hcomm_channel_send(e->p->channel, data, bytes, e->p->c->timeout_ms);
}

static int receive(const struct end *e, uint32_t *bytes)
{
	*bytes = HCOMM_CHANNEL_BYTES_MAX;
	return hcomm_channel_recv(e->p->channel, e->data, bytes, e->p->c->timeout_ms);
}

static int end_init(struct end *e, struct perf *p, size_t times)
{
	e->p = p;
	e->data = malloc(HCOMM_CHANNEL_BYTES_MAX);
	e->times = times ? malloc(times * sizeof(*e->times)) : NULL;
	if (!e->data || (times && !e->times))
		return NO_MEMORY;
	memset(e->data, 0x5a, HCOMM_CHANNEL_BYTES_MAX);
	if (times)
		memset(e->times, 0, times * sizeof(*e->times));
	return 0;
}

static void end_fini(struct end *e)
{
	free(e->data);
	free(e->times);
}

static void note_end(const struct hcomm_event *event, void *context)
{
	char *why = context;

	if (event->code == HCOMM_EV_CHANNEL_REVOKED)
		snprintf(why, HCOMM_TEXT_BYTES, "%s", event->text);
}

/* The rings know at once that the partner is gone; who it was and why comes from the daemon. */
static int say_lost(const struct perf *p)
{
	char why[HCOMM_TEXT_BYTES] = "", what[HCOMM_TEXT_BYTES];
	int r = 1;

	snprintf(what, sizeof(what), "%s", hcomm_last_error());
	hcomm_on_event(p->c->session, note_end, why);
	while (r > 0 && !why[0])
		r = hcomm_dispatch(p->c->session, LAST_WORD_MS);
	hcomm_on_event(p->c->session, NULL, NULL);
	ctl_say("perf: %s%s%s", what, why[0] ? ": " : "", why);
	return CTL_DEGRADED;
}

/* Say what went wrong; an exit status. */
static int outcome(const struct perf *p, int r)
{
	if (r == HCOMM_E_PEER_LOST)
		return say_lost(p);
	if (r == NO_MEMORY)
		ctl_say("out of memory");
	else if (r == NO_CLIENT)
		ctl_say("rank 1 does not talk as hcommctl perf client of this version does");
	else
		return r ? ctl_fail(r, "perf") : CTL_OK;
	return CTL_DEGRADED;
}

/* ---- the client ---- */

static int order(const struct end *e, const char *what, uint32_t bytes, uint32_t count)
{
	char line[WORD_BYTES];
	int n = snprintf(line, sizeof(line), "hcomm-perf 1 %s %" PRIu32 " %" PRIu32, what, bytes,
			 count);

	return send(e, line, (uint32_t)n);
}

static int round_trips(const struct end *e, uint32_t bytes, uint32_t count, uint64_t *times)
{
	uint64_t before, after = now_ns();
	uint32_t got;
	int r = 0;

	for (uint32_t i = 0; !r && i < count; i++) {
		before = after;
		r = send(e, e->data, bytes);
		if (!r)
			r = receive(e, &got);
		after = now_ns();
		if (times)
			times[i] = after - before;
	}
	return r;
}

static int by_value(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static void summarize(struct perf_row *row, uint64_t *times)
{
	uint32_t n = row->count;

	qsort(times, n, sizeof(*times), by_value);
	row->min = times[0];
	row->max = times[n - 1];
	row->p50 = times[(n - 1) / 2];
	row->p99 = times[(uint32_t)((uint64_t)(n - 1) * 99 / 100)];
	for (uint32_t i = 0; i < n; i++)
		row->sum += times[i];
}

static int stream(const struct end *e, struct perf_row *row)
{
	int r = order(e, "stream", row->bytes, row->count);
	uint64_t before;
	uint32_t got;

	before = now_ns();
	for (uint32_t i = 0; !r && i < row->count; i++)
		r = send(e, e->data, row->bytes);
	if (!r)
		r = receive(e, &got);
	row->stream = now_ns() - before;
	return r;
}

static int measure(const struct end *e, struct perf_row *row)
{
	const uint32_t before = row->count / 10 + 1;
	int r = order(e, "ping", row->bytes, before + row->count);

	if (!r)
		r = round_trips(e, row->bytes, before, NULL);
	if (!r)
		r = round_trips(e, row->bytes, row->count, e->times);
	if (!r)
		r = stream(e, row);
	if (!r)
		summarize(row, e->times);
	return r;
}

static uint32_t count_for(const struct perf *p, uint32_t bytes)
{
	uint32_t most = bytes ? USUAL_BYTES / bytes : USUAL_COUNT;

	if (p->iterations)
		return p->iterations;
	if (most < COUNT_MIN)
		return COUNT_MIN;
	return most < USUAL_COUNT ? most : USUAL_COUNT;
}

int perf_measure(struct perf *p)
{
	struct end e = {.p = p};
	int r = end_init(&e, p, p->iterations ? p->iterations : USUAL_COUNT);

	for (uint32_t i = 0; !r && i < p->nsizes; i++) {
		struct perf_row *row = &p->rows[i];

		row->bytes = p->sizes[i];
		row->count = count_for(p, row->bytes);
		perf_progress(p, "%" PRIu32 " bytes, size %" PRIu32 " of %" PRIu32, row->bytes,
			      i + 1, p->nsizes);
		r = measure(&e, row);
		p->nrows += !r;
	}
	if (!r)
		r = order(&e, "end", 0, 0);
	perf_progress(p, NULL);
	end_fini(&e);
	return outcome(p, r);
}

/* ---- the server ---- */

/* NO_CLIENT: that is no perf client of this version. */
static int take_order(const struct end *e, char what[8], uint32_t *bytes, uint32_t *count)
{
	char line[WORD_BYTES];
	uint32_t n;
	int r = receive(e, &n);

	if (r)
		return r;
	if (n >= sizeof(line))
		return NO_CLIENT;
	memcpy(line, e->data, n);
	line[n] = '\0';
	if (sscanf(line, ORDER, what, bytes, count) != 3 || *bytes > HCOMM_CHANNEL_BYTES_MAX ||
	    *count > 2 * PERF_COUNT_MAX)
		return NO_CLIENT;
	return 0;
}

static int carry_out(const struct end *e, bool answer, uint32_t bytes, uint32_t count)
{
	uint32_t got;
	int r = 0;

	for (uint32_t i = 0; !r && i < count; i++) {
		r = receive(e, &got);
		if (!r && got != bytes)
			r = NO_CLIENT;
		if (!r && answer)
			r = send(e, e->data, bytes);
	}
	if (!r && !answer)
		r = send(e, NULL, 0);
	return r;
}

int perf_serve(struct perf *p)
{
	struct end e = {.p = p};
	uint32_t bytes, count;
	char what[8] = "";
	int r = end_init(&e, p, 0);

	while (!r) {
		bool ping;

		r = take_order(&e, what, &bytes, &count);
		if (r || !strcmp(what, "end"))
			break;
		ping = !strcmp(what, "ping");
		if (!ping && strcmp(what, "stream"))
			r = NO_CLIENT;
		perf_progress(p, "%s of %" PRIu32 " bytes", ping ? "round trips" : "a stream",
			      bytes);
		if (!r)
			r = carry_out(&e, ping, bytes, count);
		if (!r)
			p->served += count;
	}
	perf_progress(p, NULL);
	end_fini(&e);
	return outcome(p, r);
}
