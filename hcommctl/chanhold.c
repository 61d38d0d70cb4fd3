/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hcommctl channel hold: have channels for a while, as a job would, to see what others then get.
 *
 * The process is both ranks of a domain of its own, so it needs no partner, and when it is killed
 * the daemon takes everything back. It asks for --count channels from rank 0 to rank 1, holds each
 * of them --for so long (and declares that to the daemon, whose estimates rest on it), gives it
 * back, and ends with the last. The grants are for bandwidth alone, any link can carry them, and
 * nothing is sent.
 *
 * Three ways to ask. Without more a refusal ends the command with status 75 and the hint. With
 * --wait the calls stand in line. With --retry a refused call is made again after exactly the time
 * that the hint named, once: that is what a well-behaved program does, and the daemon promises
 * that it then succeeds.
 *
 * One loop: what is due next (a release, a retry), events, signals. The far end is taken when the
 * near one is granted, and leaves open what it wants, so it is never in the way of the grant.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "channel.h"
#include "print.h"

#define COUNT_MAX     1024
#define BANDWIDTH_MAX 10000000
#define FAR_LIMIT_MS  5000
#define RECONNECT_NS  (200 * MS)
#define PICK_TRIES    8
#define NEVER         UINT64_MAX
#define MS            ((uint64_t)1000000)

enum phase { ASKED, REFUSED, GRANTED, HELD, OVER };

struct one {
	enum phase phase;
	hcomm_channel near, far;
	uint64_t asked, granted, due; /* nanoseconds; due: to be asked again, or released */
	uint32_t tries, hint_ms;
	struct hcomm_channel_info info;
};

struct hold {
	struct ctl *c;
	struct hcomm_channel_args args;
	struct hcomm_config config;
	uint32_t devices[2];
	uint32_t count, for_ms, granted;
	bool wait, retry;
	hcomm_domain domain; /* with both ranks */
	uint32_t retry_ms;   /* of the refusal that ended it; 0: none, or none known */
	struct hcomm_status is;
	struct one *ones;
	uint64_t deadline;
	int status;
};

static volatile sig_atomic_t stop_wanted;

static void on_stop(int sig)
{
	(void)sig;
	stop_wanted = 1;
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- what was asked for ---- */

static bool read_path(struct hold *h)
{
	static const char *const types[] = {"any",  "hccs", "sio", "pcie",
					    "roce", "ib",   "eth", "shm"};
	const char *path = ctl_opt(h->c, "path");

	if (path && (!strcmp(path, "hcclink") || !strcmp(path, "nvlink")))
		path = "hccs"; /* as in a [link A B] section */
	for (uint32_t i = 0; path && i < sizeof(types) / sizeof(types[0]); i++) {
		if (strcmp(path, types[i]))
			continue;
		h->args.path_type = i;
		return true;
	}
	if (path)
		ctl_say("--path is '%s'; wanted: any, hccs, sio, pcie, roce, ib, eth or shm", path);
	return !path;
}

static int read_options(struct hold *h)
{
	const struct ctl *c = h->c;
	const char *time = ctl_opt(c, "for");

	h->for_ms = 1000;
	h->wait = ctl_opt(c, "wait");
	h->retry = ctl_opt(c, "retry");
	h->config.shared = ctl_opt(c, "shared") ? 1 : 0;
	if (h->wait && h->retry)
		return ctl_usage("--wait stands in line, --retry comes again: give one of them");
	if (h->config.shared && !ctl_opt(c, "devices"))
		return ctl_usage("--shared is for devices that others use too: give --devices");
	if (!ctl_opt_number(c, "count", 1, COUNT_MAX, 1, &h->count) ||
	    !ctl_opt_number(c, "bandwidth", 0, BANDWIDTH_MAX, 0, &h->args.bandwidth_mbps) ||
	    !ctl_opt_number(c, "back", 0, BANDWIDTH_MAX, 0, &h->args.back_mbps) ||
	    (time && !ctl_ms("--for", time, &h->for_ms)) || !read_path(h) ||
	    !ctl_pair_config(c, &h->config))
		return CTL_USAGE;
	h->args.peer = 1;
	h->args.hold_ms = h->for_ms;
	h->args.wait = h->wait;
	h->args.flags = HCOMM_CHANNEL_GRANT_ONLY | HCOMM_CHANNEL_FROM;
	return CTL_OK;
}

/* ---- its own domain ---- */

/* Both ranks in one request: what cannot be leaves no domain behind. */
static int join(struct hold *h)
{
	struct ctl *c = h->c;
	int r = hcomm_join_all_local(c->session, h->devices, 2, &h->config, c->timeout_ms,
				     &h->domain);

	return r ? r : hcomm_status_get(h->domain, &h->is);
}

static void leave(struct hold *h)
{
	if (h->domain)
		hcomm_leave(h->domain, HCOMM_DEFAULT);
	h->domain = 0;
}

/* Two commands may have picked the same devices in the same moment: the one that lost looks
 * again. */
static int make_domain(struct hold *h)
{
	int status = CTL_OK, r = HCOMM_E_BUSY;

	for (int i = 0; !status && r == HCOMM_E_BUSY && i < PICK_TRIES; i++) {
		status = ctl_pair_devices(h->c, h->devices);
		if (!status)
			r = join(h);
		if (!status && r == HCOMM_E_BUSY && i + 1 < PICK_TRIES && !ctl_opt(h->c, "devices"))
			leave(h);
		else
			break;
	}
	if (!status && r)
		status = ctl_fail(r, "domain");
	if (!status && !h->c->json)
		printf("domain %016" PRIx64 " (%s) on devices %u and %u: class %u, weight %u\n",
		       h->is.id, h->is.name, h->devices[0], h->devices[1], h->config.priority,
		       h->config.weight);
	return status;
}

/* ---- a channel ---- */

static void say_granted(const struct hold *h, const struct one *o)
{
	const struct hcomm_channel_info *i = &o->info;

	if (h->c->json)
		return;
	printf("channel %016" PRIx64
	       " over %s: %u MB/s, %u back, virtual channel %u; after %" PRIu64 " ms%s\n",
	       i->id, i->link, i->bandwidth_mbps, i->back_mbps, i->virtual_channel,
	       (o->granted - o->asked) / MS, o->tries > 1 ? ", at the second try" : "");
	fflush(stdout);
}

static void take_far_end(struct hold *h, struct one *o)
{
	struct hcomm_channel_args far = HCOMM_INIT(struct hcomm_channel_args);
	int r;

	far.rank = 1;
	far.peer = 0;
	far.wait = 1;
	far.flags = h->args.flags;
	r = hcomm_channel_acquire(h->domain, &far, FAR_LIMIT_MS, &o->far);
	o->info.size = sizeof(o->info);
	if (!r)
		r = hcomm_channel_info(o->near, &o->info);
	if (r) {
		h->status = ctl_fail(r, "far end");
		return;
	}
	h->granted++;
	o->phase = HELD;
	o->due = o->granted + h->for_ms * MS;
	say_granted(h, o);
}

/* Refused for now: once more at the hint, or that was it. */
static void refused(struct hold *h, struct one *o)
{
	const uint32_t hint = hcomm_retry_after();

	if (!h->retry || o->tries > 1 || hint == HCOMM_UNKNOWN) {
		h->retry_ms = hint == HCOMM_UNKNOWN ? 0 : hint;
		h->status =
			ctl_fail(HCOMM_E_AGAIN, o->tries > 1 ? "refused at the hint" : "refused");
		return;
	}
	o->phase = REFUSED;
	o->hint_ms = hint;
	o->due = now_ns() + hint * MS;
	if (!h->c->json)
		printf("refused: %s; asking again in %u ms\n", hcomm_last_error(), hint);
	fflush(stdout);
}

static void ask(struct hold *h, struct one *o)
{
	int limit = h->wait ? HCOMM_START : h->c->timeout_ms, r;

	if (!o->tries++)
		o->asked = now_ns();
	o->due = NEVER;
	o->phase = ASKED;
	r = hcomm_channel_acquire(h->domain, &h->args, limit, &o->near);
	if (r == HCOMM_E_AGAIN) {
		refused(h, o);
	} else if (!r) {
		o->phase = GRANTED;
		o->granted = now_ns();
	} else if (r != HCOMM_E_IN_PROGRESS) {
		h->status = ctl_fail(r, "channel");
	}
}

static void release(struct one *o)
{
	hcomm_channel_release(o->near);
	if (o->far)
		hcomm_channel_release(o->far);
	o->near = o->far = 0;
	o->due = NEVER;
	o->phase = OVER;
}

static void on_event(const struct hcomm_event *event, void *context)
{
	struct hold *h = context;
	struct one *o = NULL;

	for (uint32_t i = 0; event->channel && i < h->count; i++) {
		if (h->ones[i].near == event->channel)
			o = &h->ones[i];
	}
	if (!o)
		return;
	if (event->code == HCOMM_EV_CHANNEL_GRANTED && o->phase == ASKED) {
		o->phase = GRANTED;
		o->granted = now_ns();
	} else if (event->code == HCOMM_EV_CHANNEL_YIELD && !h->c->json) {
		printf("asked to yield: %s\n", event->text);
		fflush(stdout);
	} else if (event->code == HCOMM_EV_CHANNEL_REFUSED ||
		   event->code == HCOMM_EV_CHANNEL_REVOKED) {
		ctl_say("channel: %s", event->text);
		h->status = event->error ? ctl_exit_of(event->error) : CTL_DEGRADED;
	}
}

/* ---- the loop ---- */

/* Do what is due; the time of what comes next. NEVER: nothing is left to wait for but events. */
static uint64_t attend(struct hold *h, uint32_t *open)
{
	uint64_t next = NEVER;

	*open = 0;
	for (uint32_t i = 0; i < h->count && !h->status; i++) {
		struct one *o = &h->ones[i];

		if (o->phase == GRANTED)
			take_far_end(h, o);
		if (o->phase == HELD && o->due <= now_ns())
			release(o);
		else if (o->phase == REFUSED && o->due <= now_ns())
			ask(h, o);
		*open += o->phase != OVER;
		if (o->phase == GRANTED)
			next = 0;
		next = o->due < next ? o->due : next;
	}
	return next;
}

static void wait_until(const struct hold *h, uint64_t when, const sigset_t *open)
{
	struct pollfd p = {.fd = hcomm_fd(h->c->session), .events = POLLIN};
	uint64_t now = now_ns(), left;
	struct timespec t;

	if (p.fd < 0 && when > now + RECONNECT_NS)
		when = now + RECONNECT_NS;
	left = when > now ? when - now : 0;
	t = (struct timespec){.tv_sec = (time_t)(left / 1000000000u),
			      .tv_nsec = (long)(left % 1000000000u)};
	ppoll(&p, 1, when == NEVER ? NULL : &t, open);
}

static void out_of_time(struct hold *h)
{
	ctl_say("%u of %u channels were not granted in %d ms", h->count - h->granted, h->count,
		h->c->timeout_ms);
	h->status = CTL_TIMEOUT;
}

static void run(struct hold *h, const sigset_t *open)
{
	for (uint32_t i = 0; i < h->count && !h->status; i++)
		ask(h, &h->ones[i]);
	while (!h->status && !stop_wanted) {
		uint32_t left;
		uint64_t next = attend(h, &left),
			 limit = h->granted < h->count ? h->deadline : NEVER;

		if (!left || h->status)
			break;
		wait_until(h, next < limit ? next : limit, open);
		hcomm_dispatch(h->c->session, 0);
		if (h->granted < h->count && now_ns() >= h->deadline)
			out_of_time(h);
	}
	if (!h->status && h->granted < h->count) {
		ctl_say("ended before all %u channels were granted", h->count);
		h->status = CTL_DEGRADED;
	}
}

static void print_json(const struct hold *h)
{
	char text[HCOMM_NAME_BYTES * 6];
	const char *comma = "";
	struct hc_text t;

	hc_text_init(&t, text, sizeof(text));
	hc_json_string(&t, h->is.name, strlen(h->is.name));
	printf("{\"schema_version\":%d,\"domain\":\"%016" PRIx64 "\",\"name\":%s,\"asked\":%u,"
	       "\"granted\":%u,\"retry_after_ms\":",
	       HC_SCHEMA_VERSION, h->is.id, text, h->count, h->granted);
	if (h->retry_ms)
		printf("%u,\"channels\":[", h->retry_ms);
	else
		printf("null,\"channels\":[");
	for (uint32_t i = 0; i < h->count; i++) {
		const struct one *o = &h->ones[i];

		if (!o->info.id)
			continue;
		hc_text_init(&t, text, sizeof(text));
		hc_json_string(&t, o->info.link, strlen(o->info.link));
		printf("%s\n{\"id\":\"%016" PRIx64 "\",\"link\":%s,\"mbps\":%u,\"back_mbps\":%u,"
		       "\"tries\":%u,\"hint_ms\":%u,\"waited_ms\":%" PRIu64 "}",
		       comma, o->info.id, text, o->info.bandwidth_mbps, o->info.back_mbps, o->tries,
		       o->hint_ms, (o->granted - o->asked) / MS);
		comma = ",";
	}
	printf("\n]}\n");
}

static void catch_stop(sigset_t *open)
{
	struct sigaction act = {.sa_handler = on_stop};
	sigset_t block;

	sigemptyset(&block);
	sigaddset(&block, SIGTERM);
	sigaddset(&block, SIGINT);
	sigprocmask(SIG_BLOCK, &block, open);
	sigaction(SIGTERM, &act, NULL);
	sigaction(SIGINT, &act, NULL);
}

int ctl_channel_hold(struct ctl *c)
{
	struct hold h = {.c = c,
			 .args = HCOMM_INIT(struct hcomm_channel_args),
			 .config = HCOMM_INIT(struct hcomm_config),
			 .is = HCOMM_INIT(struct hcomm_status),
			 .deadline = NEVER};
	sigset_t open;
	int status = read_options(&h);

	if (!status)
		status = make_domain(&h);
	h.ones = status ? NULL : calloc(h.count, sizeof(*h.ones));
	if (!status && !h.ones) {
		ctl_say("out of memory");
		status = CTL_DEGRADED;
	}
	if (!status) {
		if (c->timeout_ms > 0)
			h.deadline = now_ns() + (uint64_t)c->timeout_ms * MS;
		catch_stop(&open); /* until here a signal ends the process, and that the domain */
		hcomm_on_event(c->session, on_event, &h);
		run(&h, &open);
		hcomm_on_event(c->session, NULL, NULL);
		if (c->json)
			print_json(&h);
		status = h.status;
	}
	leave(&h); /* which ends what is still held */
	free(h.ones);
	return status;
}
