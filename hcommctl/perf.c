/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hcommctl perf: what a channel does between two processes of this node.
 *
 * Server and client find each other by the name of a domain of two ranks. The server makes it (or
 * takes rank 0 of one that was made for it) and the client takes rank 1, as soon as there is one.
 * What is measured, and how much bandwidth is asked for, is the client's to say. It asks for the
 * channel first, so that a refusal with its hint comes where the wish was given, and then tells
 * the server through the exchange of the domain: take your end, or that there is none.
 *
 * The domain of a run that was killed may still be there under the name, for orphan_grace_s; both
 * wait until it is gone instead of ending what may be somebody else's.
 *
 * Whoever waits for the other waits no longer than --timeout. A partner that dies is told by the
 * daemon: the call under way ends, and names it.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "channel.h"
#include "options.h"
#include "perf.h"

#define DEFAULT_NAME  "perf"
#define GO            "perf/go" /* exit status of the client's acquire, a blank, why */
#define BANDWIDTH_MAX 10000000
#define BUFFER_MIN    4096
#define BUFFER_MAX    (16 << 20)
#define WORD_BYTES    (HCOMM_TEXT_BYTES + 16)
#define LOOK_MS       20
#define SLICE_MS      200
#define WAIT_MS       120000 /* for the other one, without --timeout */

static volatile sig_atomic_t stop_wanted;

static void on_stop(int sig)
{
	(void)sig;
	stop_wanted = 1;
}

/* While the server waits a signal ends it in order; later, as any process. */
static void catch_stop(bool on)
{
	const struct sigaction act = {.sa_handler = on ? on_stop : SIG_DFL};

	sigaction(SIGTERM, &act, NULL);
	sigaction(SIGINT, &act, NULL);
}

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000u + (uint64_t)t.tv_nsec / 1000000u;
}

static void pause_ms(long ms)
{
	const struct timespec pause = {.tv_nsec = ms * 1000000};

	nanosleep(&pause, NULL);
}

/* How long this one waits for the other. */
static int limit_ms(const struct perf *p)
{
	return p->c->timeout_ms > 0 ? p->c->timeout_ms : WAIT_MS;
}

/* There is no such domain yet, or that of a run before is about to go. */
static bool not_yet(int error)
{
	return error == HCOMM_E_NOT_FOUND || error == HCOMM_E_NOT_READY || error == HCOMM_E_GONE;
}

/* The domain is there: what is it? */
static int look(struct perf *p)
{
	int r = hcomm_status_get(p->domain, &p->is);

	if (r)
		return ctl_fail(r, p->name);
	if (p->is.nranks == 2)
		return CTL_OK;
	ctl_say("domain '%s' has %" PRIu32 " ranks; wanted: two", p->name, p->is.nranks);
	return CTL_USAGE;
}

static int have_channel(struct perf *p, const struct hcomm_channel_args *args)
{
	int r = hcomm_channel_acquire(p->domain, args, p->c->timeout_ms, &p->channel);

	if (!r)
		r = hcomm_channel_info(p->channel, &p->info);
	return r;
}

/* ---- the server ---- */

static int fill(struct perf *p, uint64_t id)
{
	uint32_t devices[2];
	int status = ctl_pair_devices(p->c, devices), r = 0;

	if (status)
		goto out;
	for (uint32_t i = 0; !r && i < 2; i++)
		r = hcomm_add_device(p->c->session, id, i, devices[i]);
	if (!r)
		r = hcomm_activate(p->c->session, id, p->c->timeout_ms);
	if (!r)
		return CTL_OK;
	status = ctl_fail(r, p->name);
out:
	hcomm_destroy_named(p->c->session, id, NULL, HCOMM_DEFAULT);
	return status;
}

/* Make the domain, or find that it is there; take rank 0. */
static int take_rank(struct perf *p, const struct hcomm_config *config)
{
	const uint64_t end = now_ms() + (uint64_t)limit_ms(p);
	uint64_t id;
	int status = CTL_OK, r;

	do {
		r = hcomm_create(p->c->session, 2, config, &id);
		if (!r)
			status = fill(p, id);
		else if (r != HCOMM_E_EXISTS)
			status = ctl_fail(r, p->name);
		if (status)
			return status;
		r = hcomm_attach(p->c->session, p->name, 0, NULL, limit_ms(p), &p->domain);
		if (not_yet(r))
			pause_ms(LOOK_MS);
	} while (not_yet(r) && now_ms() < end);
	return r ? ctl_fail(r, p->name) : CTL_OK;
}

static int get_word(struct perf *p, char *word, uint32_t room)
{
	const uint64_t end = now_ms() + (uint64_t)limit_ms(p);
	uint32_t bytes;
	int r;

	do {
		bytes = room - 1;
		r = hcomm_get(p->domain, GO, word, &bytes, SLICE_MS);
	} while (r == HCOMM_E_TIMEOUT && !stop_wanted && now_ms() < end);
	word[r ? 0 : bytes] = '\0';
	return r;
}

/* That it has its end: 0. Else the server ends as the client does. */
static int client_said(const char *word)
{
	const char *why = strchr(word, ' ');
	int status = atoi(word);

	if (why && !strncmp(word, "0 ", 2))
		return CTL_OK;
	ctl_say("the client got no channel: %s", why ? why + 1 : "it does not say why");
	return status > 0 && status < 125 ? status : CTL_DEGRADED;
}

/* Until the client has a channel, or says that it got none. */
static int await_client(struct perf *p)
{
	char word[WORD_BYTES];
	int r;

	perf_progress(p, "waiting for hcommctl perf client --name %s", p->name);
	catch_stop(true);
	r = get_word(p, word, sizeof(word));
	catch_stop(false);
	perf_progress(p, NULL);
	if (!r)
		return client_said(word);
	if (r != HCOMM_E_TIMEOUT)
		return ctl_fail(r, p->name);
	else if (stop_wanted)
		ctl_say("ended before a client came to '%s'", p->name);
	else
		ctl_say("no client came to '%s' in %d ms", p->name, limit_ms(p));
	return stop_wanted ? CTL_DEGRADED : CTL_TIMEOUT;
}

static int serve(struct perf *p)
{
	struct hcomm_channel_args args = HCOMM_INIT(struct hcomm_channel_args);
	int status = look(p), r;

	if (status)
		return status;
	if (!p->c->json)
		printf("domain %016" PRIx64 " (%s) waits for hcommctl perf client\n", p->is.id,
		       p->name);
	fflush(stdout);
	status = await_client(p);
	if (status)
		return status;
	args.peer = 1;
	args.wait = 1;
	r = have_channel(p, &args);
	if (r)
		return ctl_fail(r, "channel");
	status = perf_serve(p);
	if (!status)
		perf_show_server(p);
	return status;
}

static int server(struct perf *p)
{
	struct hcomm_config config = HCOMM_INIT(struct hcomm_config);
	uint32_t devices[2];
	int status;

	if (!ctl_pair_config(p->c, &config))
		return CTL_USAGE;
	config.name = p->name;
	/* a bad word is refused first; free ones are looked for once they are needed */
	status = ctl_opt(p->c, "devices") ? ctl_pair_devices(p->c, devices) : ctl_open(p->c);
	if (!status)
		status = take_rank(p, &config);
	if (status)
		return status;
	status = serve(p);
	if (status) /* the rank that never came would keep it */
		hcomm_destroy(p->domain, HCOMM_DEFAULT);
	else
		hcomm_leave(p->domain, HCOMM_DEFAULT);
	return status;
}

/* ---- the client ---- */

/* "0,8,4K,1M" */
static bool read_size(const char *what, const char *word, size_t len, uint32_t most,
		      uint32_t *bytes)
{
	char digits[16] = "";
	uint32_t scale = 1;
	uint64_t n;

	if (len && (word[len - 1] == 'K' || word[len - 1] == 'k'))
		scale = 1024;
	else if (len && (word[len - 1] == 'M' || word[len - 1] == 'm'))
		scale = 1024 * 1024;
	if (len < sizeof(digits))
		snprintf(digits, sizeof(digits), "%.*s", (int)(scale > 1 ? len - 1 : len), word);
	if (hc_opt_number(digits, &n) && n <= most / scale) {
		*bytes = (uint32_t)n * scale;
		return true;
	}
	ctl_say("%s is '%.*s'; wanted: bytes up to %u, such as 512, 64K or 1M", what,
		(int)(len < 40 ? len : 40), word, most);
	return false;
}

static bool read_sizes(struct perf *p)
{
	const char *text = ctl_opt(p->c, "sizes");

	text = text ? text : "0,8,64,512,4K,32K,256K,1M";
	do {
		size_t len = strcspn(text, ",");

		if (p->nsizes == PERF_SIZES_MAX) {
			ctl_say("more than %d sizes", PERF_SIZES_MAX);
			return false;
		}
		if (!read_size("size", text, len, HCOMM_CHANNEL_BYTES_MAX, &p->sizes[p->nsizes++]))
			return false;
		text += len;
	} while (*text++);
	return true;
}

static int client_options(struct perf *p, struct hcomm_channel_args *args)
{
	const struct ctl *c = p->c;
	const char *buffer = ctl_opt(c, "buffer");

	args->peer = 0;
	args->wait = ctl_opt(c, "wait") ? 1 : 0;
	if (buffer &&
	    !read_size("--buffer", buffer, strlen(buffer), BUFFER_MAX, &args->buffer_bytes))
		return CTL_USAGE;
	if (buffer && args->buffer_bytes < BUFFER_MIN)
		return ctl_usage("--buffer is '%s'; wanted: 4K..16M", buffer);
	if (!read_sizes(p) || !perf_columns(c) ||
	    !ctl_opt_number(c, "iterations", 1, PERF_COUNT_MAX, 0, &p->iterations) ||
	    !ctl_opt_number(c, "bandwidth", 0, BANDWIDTH_MAX, 0, &args->bandwidth_mbps))
		return CTL_USAGE;
	args->back_mbps = args->bandwidth_mbps;
	return CTL_OK;
}

/* One look. A domain that has lost its server already is not the one that is waited for. */
static int take_place(struct perf *p)
{
	int r = hcomm_attach(p->c->session, p->name, 1, NULL, limit_ms(p), &p->domain);

	if (!r)
		r = hcomm_status_get(p->domain, &p->is);
	if (r || p->is.state == HCOMM_ACTIVE)
		return r;
	hcomm_leave(p->domain, HCOMM_DEFAULT);
	return HCOMM_E_GONE;
}

static int find_server(struct perf *p)
{
	const uint64_t end = now_ms() + (uint64_t)limit_ms(p);
	int r;

	while (not_yet(r = take_place(p)) && now_ms() < end) {
		perf_progress(p, "waiting for hcommctl perf server --name %s", p->name);
		pause_ms(LOOK_MS);
	}
	perf_progress(p, NULL);
	if (!r)
		return look(p);
	if (!not_yet(r))
		return ctl_fail(r, p->name);
	ctl_say("no server '%s' came in %d ms: hcommctl perf server --name %s", p->name,
		limit_ms(p), p->name);
	return CTL_TIMEOUT;
}

/* Tell the server how it went; its own trouble is no news here. */
static void tell(const struct perf *p, int status, const char *why)
{
	char word[WORD_BYTES];

	snprintf(word, sizeof(word), "%d %s", status, why);
	hcomm_put(p->domain, GO, word, (uint32_t)strlen(word));
}

static int measure(struct perf *p)
{
	int status;

	tell(p, CTL_OK, "");
	if (!p->c->json && !p->c->no_headings)
		printf("channel %016" PRIx64 " over %s, %u MB/s granted, buffers of %u bytes\n",
		       p->info.id, p->info.link, p->info.bandwidth_mbps, p->info.buffer_bytes);
	status = perf_measure(p);
	return status ? status : perf_show(p);
}

static int client(struct perf *p)
{
	struct hcomm_channel_args args = HCOMM_INIT(struct hcomm_channel_args);
	int status = client_options(p, &args), r;

	if (!status)
		status = ctl_open(p->c);
	if (!status)
		status = find_server(p);
	if (status)
		return status;
	r = have_channel(p, &args);
	if (!r) {
		status = measure(p);
	} else {
		char why[HCOMM_TEXT_BYTES];

		snprintf(why, sizeof(why), "%s", hcomm_last_error());
		status = ctl_fail(r, "channel");
		tell(p, status, why[0] ? why : hcomm_error_string(r));
	}
	hcomm_leave(p->domain, HCOMM_DEFAULT);
	return status;
}

int ctl_perf(struct ctl *c, int argc, char **argv)
{
	struct perf p = {.c = c,
			 .name = ctl_opt(c, "name"),
			 .is = HCOMM_INIT(struct hcomm_status),
			 .info = HCOMM_INIT(struct hcomm_channel_info)};

	(void)argc;
	if (!p.name)
		p.name = DEFAULT_NAME;
	return !strcmp(argv[1], "server") ? server(&p) : client(&p);
}
