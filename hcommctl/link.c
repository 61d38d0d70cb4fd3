/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hcommctl link: list, show.
 *
 * The list answers what one asks first: which links there are, how much of each is taken, and
 * who waits. `show` has everything, with where each fact is known from; a bandwidth of 0 whose
 * source is "unknown" is no slow link, but one of which nobody said how fast it is.
 */
#include <stdio.h>
#include <string.h>
#include <hcomm/views.h>
#include "table.h"

#define LIST_COLUMNS                                                                               \
	"NAME,STATE,BANDWIDTH,BANDWIDTH-SOURCE,LIMIT,USED-AB,USED-BA,VCS,VCS-USED,WAITING,SOURCE"
#define SHOW_COLUMNS                                                                               \
	"NAME,STATE,TYPE,A,B,LINK,VIA,SOURCE,BANDWIDTH,BANDWIDTH-SOURCE,LIMIT,USED-AB,USED-BA,"    \
	"VCS,VCS-SOURCE,VCS-USED,WAITING,GRANTS,LATENCY-US,LATENCY-SOURCE"

static int show_once(struct ctl *c, struct ctl_rows *rows, const char *name)
{
	struct hcomm_filter filter = HCOMM_INIT(struct hcomm_filter);
	int status;

	filter.name = name;
	status = ctl_rows_query(c, rows, &filter);
	if (status)
		return status;
	if (!ctl_rows_count(rows)) {
		ctl_say("no link named '%s'; hcommctl link list has the names", name);
		return CTL_DEGRADED;
	}
	return c->json || c->columns ? ctl_rows_print(c, rows) : ctl_rows_list(c, rows);
}

static int show(struct ctl *c, const char *name)
{
	struct ctl_rows *rows = ctl_rows_new(c, HCOMM_VIEW_LINK, SHOW_COLUMNS);
	int status = rows ? ctl_open(c) : CTL_USAGE;

	if (!status) {
		do
			status = show_once(c, rows, name);
		while (!status && ctl_watch_again(c));
	}
	ctl_rows_free(rows);
	return status;
}

int ctl_link(struct ctl *c, int argc, char **argv)
{
	(void)argc;
	if (!strcmp(argv[1], "show"))
		return show(c, argv[2]);
	return ctl_show(c, HCOMM_VIEW_LINK, NULL, LIST_COLUMNS);
}
