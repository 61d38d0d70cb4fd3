/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hcommctl channel: list, show, waiting, hold.
 *
 * `list` is what is granted, `waiting` who stands in line for more: with the class that he counts
 * as by now, how many are before him, and when his turn comes. The estimate is the daemon's; where
 * it has nothing to go by it says "unknown", and so does this. The two are two views, so they are
 * two verbs and not one table with half of its cells empty.
 *
 * `hold` is for drills and tests, and in chanhold.c.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <hcomm/views.h>
#include "channel.h"
#include "domain.h"
#include "table.h"

#define LIST_COLUMNS "ID,DOMAIN,RANK,PEER,PID,LINK,MBPS,BACK-MBPS,VC,CLASS,STATE,AGE-MS"
#define SHOW_COLUMNS                                                                               \
	"ID,STATE,DOMAIN,RANK,PID,PEER,PEER-PID,LINK,TYPE,MBPS,BACK-MBPS,VC,CLASS,AGE-MS,HOLD-MS," \
	"COLLECTED"
#define WAITING_COLUMNS                                                                            \
	"DOMAIN,RANK,PID,UID,KIND,CLASS,PIECES,MBPS,PLACE,WAITED-MS,ESTIMATE-MS,LINK"

/* Who is next comes first; the oldest channel too. */
static int by_place(const void *a, const void *b)
{
	const struct hcomm_view_waiting *x = a, *y = b;

	if (x->place != y->place)
		return x->place < y->place ? -1 : 1;
	return x->waited_ms > y->waited_ms ? -1 : x->waited_ms < y->waited_ms;
}

static int by_age(const void *a, const void *b)
{
	const struct hcomm_view_channel *x = a, *y = b;

	if (x->age_ms != y->age_ms)
		return x->age_ms > y->age_ms ? -1 : 1;
	return x->id < y->id ? -1 : x->id > y->id;
}

static int list(struct ctl *c, uint32_t view, const char *columns,
		int (*order)(const void *, const void *))
{
	struct hcomm_filter filter = HCOMM_INIT(struct hcomm_filter);
	struct ctl_rows *rows = ctl_rows_new(c, view, columns);
	const char *domain = ctl_opt(c, "domain");
	int status = rows ? ctl_open(c) : CTL_USAGE;

	if (!status && domain)
		status = ctl_domain_find(c, domain, &filter.id);
	while (!status) {
		status = ctl_rows_query(c, rows, &filter);
		if (!status) {
			ctl_rows_sort(rows, order);
			status = ctl_rows_print(c, rows);
		}
		if (status || !ctl_watch_again(c))
			break;
	}
	ctl_rows_free(rows);
	return status;
}

/* The view is filtered by domain alone, so the one that is meant is looked for here. */
static int show_once(struct ctl *c, struct ctl_rows *rows, uint64_t id)
{
	const struct hcomm_view_channel *row;
	int status = ctl_rows_query(c, rows, NULL);

	if (status)
		return status;
	for (size_t i = 0; (row = ctl_rows_at(rows, i)); i++) {
		if (row->id != id)
			continue;
		ctl_rows_only(rows, i);
		return c->json || c->columns ? ctl_rows_print(c, rows) : ctl_rows_list(c, rows);
	}
	ctl_say("no channel %016" PRIx64 " is granted; hcommctl channel list has those that are",
		id);
	return CTL_DEGRADED;
}

static int show(struct ctl *c, const char *word)
{
	struct ctl_rows *rows;
	uint64_t id;
	int status;

	if (!ctl_is_id(word, &id))
		return ctl_usage("channel is '%s'; wanted: 16 hexadecimal digits, as in hcommctl "
				 "channel list",
				 word);
	rows = ctl_rows_new(c, HCOMM_VIEW_CHANNEL, SHOW_COLUMNS);
	status = rows ? ctl_open(c) : CTL_USAGE;
	if (!status) {
		do
			status = show_once(c, rows, id);
		while (!status && ctl_watch_again(c));
	}
	ctl_rows_free(rows);
	return status;
}

int ctl_channel(struct ctl *c, int argc, char **argv)
{
	(void)argc;
	if (!strcmp(argv[1], "list"))
		return list(c, HCOMM_VIEW_CHANNEL, LIST_COLUMNS, by_age);
	if (!strcmp(argv[1], "waiting"))
		return list(c, HCOMM_VIEW_WAITING, WAITING_COLUMNS, by_place);
	if (!strcmp(argv[1], "show"))
		return show(c, argv[2]);
	return ctl_channel_hold(c);
}
