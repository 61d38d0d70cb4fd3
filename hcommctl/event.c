/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hcommctl event: what happened, and what happens.
 *
 * `list` reads the journal, a view. `follow` subscribes and prints events as the daemon sends
 * them: a line each, or a JSON object a line with --json, flushed at once so that a pipe sees
 * them. Events that were dropped because this reader was too slow are said, never hidden.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <hcomm/views.h>
#include "domain.h"
#include "table.h"
#include "wire.h"

#define EVENT_COLUMNS "TIME,EVENT,DOMAIN,RANK,PID,TEXT"
#define ROWS_MAX      100000000u

static int list(struct ctl *c)
{
	struct hcomm_filter f = HCOMM_INIT(struct hcomm_filter);
	const char *since = ctl_opt(c, "since"), *domain = ctl_opt(c, "domain");
	const char *limit = ctl_opt(c, "limit");
	uint64_t rows = 0;
	int status;

	if (since && !ctl_seconds("--since", since, &f.since_s))
		return CTL_USAGE;
	if (limit && !ctl_number("--limit", limit, 1, ROWS_MAX, &rows))
		return CTL_USAGE;
	f.limit = (uint32_t)rows;
	if (domain && !ctl_is_id(domain, &f.id)) {
		status = ctl_domain_find(c, domain, &f.id);
		if (status)
			return status;
	}
	return ctl_show(c, HCOMM_VIEW_EVENT, &f, EVENT_COLUMNS);
}

static void print_event_json(const struct hcomm_event *e, const char *time)
{
	char buf[16384];
	struct hc_text t;

	hc_text_init(&t, buf, sizeof(buf));
	hc_json_string(&t, e->text, strlen(e->text));
	hc_text_add(&t, ",\"node\":");
	hc_json_string(&t, e->node, strlen(e->node));
	printf("{\"schema_version\":%d,\"time\":\"%s\",\"code\":\"%s\",\"domain\":\"%016" PRIx64
	       "\",\"epoch\":%u,\"rank\":%d,\"pid\":%u,\"lost\":%u,\"text\":%s}\n",
	       HC_SCHEMA_VERSION, time, hc_word_event_code(e->code), e->id, e->epoch,
	       e->rank == HCOMM_NO_RANK ? -1 : (int)e->rank, e->pid, e->lost, buf);
}

static void print_event(const struct hcomm_event *e, void *context)
{
	const struct ctl *c = context;
	struct timespec now;
	struct tm tm;
	char time[32] = "?";

	clock_gettime(CLOCK_REALTIME, &now);
	if (gmtime_r(&now.tv_sec, &tm))
		strftime(time, sizeof(time), "%Y-%m-%dT%H:%M:%SZ", &tm);
	if (e->lost)
		ctl_say("%u events were lost, this reader was too slow", e->lost);
	if (c->json) {
		print_event_json(e, time);
	} else {
		char text[HC_CELL_MAX];
		static const struct hc_print_field field = {"text", "TEXT",
							    offsetof(struct hcomm_event, text),
							    HCOMM_TEXT_BYTES, HC_T_text};

		ctl_cell(&field, e, text, sizeof(text));
		printf("%s  %-16s  %016" PRIx64 "  %s\n", time, hc_word_event_code(e->code), e->id,
		       text);
	}
	fflush(stdout);
}

static int follow(struct ctl *c)
{
	const char *domain = ctl_opt(c, "domain");
	uint64_t id = 0;
	int r;

	if (c->columns || c->watch_ms)
		return ctl_usage("event follow takes no -o and no --watch");
	r = domain ? ctl_domain_find(c, domain, &id) : ctl_open(c);
	if (r)
		return r;
	r = hcomm_on_event(c->session, print_event, c);
	if (!r)
		r = hcomm_subscribe(c->session, id, 1);
	while (r >= 0 && !ferror(stdout))
		r = hcomm_dispatch(c->session, 1000);
	return r < 0 ? ctl_fail(r, "event follow") : CTL_OK;
}

int ctl_event(struct ctl *c, int argc, char **argv)
{
	(void)argc;
	return strcmp(argv[1], "follow") ? list(c) : follow(c);
}
