/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hcommctl node, path, port: other nodes, the ways to them, and the ports of this one.
 *
 * `node list` answers "who is there"; `path list` "which way is good", with the counters that tell
 * how near a path is to being called bad; `port list` "why is this interface not used". A name
 * that two nodes have is shown with the start of an identity, and `show` takes either.
 */
#include <stdio.h>
#include <string.h>
#include <hcomm/views.h>
#include "table.h"

#define NODE_COLUMNS "NODE,STATE,AGE-MS,ADDRESS,PATHS,GOOD,HEARD-MS,INTERVAL-MS,START,CAUSE"
#define PATH_COLUMNS                                                                               \
	"NODE,PORT,REMOTE,STATE,MTU-USED,RTT-P50,RTT-P99,SENT,RECEIVED,MISSED,RUN,WORST,FLAPS,"    \
	"CAUSE"
#define PORT_COLUMNS "PORT,KIND,ADDRESS,USE,MTU,MBPS,CARRIER,LOAD"
#define NODE_ALL                                                                                   \
	"NODE,NODE-ID,STATE,CAUSE,AGE-MS,ADDRESS,PATHS,GOOD,HEARD-MS,INTERVAL-MS,BOOT-ID,"         \
	"INCARNATION,START,RESTARTS,UNACKED,NEXT-MS,DIALS,BUILD"
#define PATH_ALL                                                                                   \
	"NODE,PATH,PORT,LOCAL,REMOTE,STATE,CAUSE,AGE-MS,HEARD-MS,INTERVAL-MS,MTU-LOCAL,MTU-PEER,"  \
	"MTU-USED,RTT-US,RTT-P50,RTT-P99,RTT-MAX,JITTER-US,SENT,RECEIVED,MISSED,RUN,WORST,FLAPS,"  \
	"LAST-FLAP-MS,HELD-MS,CHANGES,LOAD,REFUSED"

/* The rows of one node, one below the other. */
static int show_once(struct ctl *c, struct ctl_rows *rows, const char *what, const char *name)
{
	struct hcomm_filter filter = HCOMM_INIT(struct hcomm_filter);
	int status;

	filter.name = name;
	status = ctl_rows_query(c, rows, &filter);
	if (status)
		return status;
	if (!ctl_rows_count(rows)) {
		ctl_say("no %s '%s'; hcommctl node list has the names", what, name);
		return CTL_DEGRADED;
	}
	return c->json || c->columns || ctl_rows_count(rows) > 1 ? ctl_rows_print(c, rows)
								 : ctl_rows_list(c, rows);
}

static int show(struct ctl *c, uint32_t view, const char *columns, const char *what,
		const char *name)
{
	struct ctl_rows *rows = ctl_rows_new(c, view, columns);
	int status = rows ? ctl_open(c) : CTL_USAGE;

	if (!status) {
		do
			status = show_once(c, rows, what, name);
		while (!status && ctl_watch_again(c));
	}
	ctl_rows_free(rows);
	return status;
}

int ctl_node(struct ctl *c, int argc, char **argv)
{
	(void)argc;
	if (!strcmp(argv[1], "show"))
		return show(c, HCOMM_VIEW_NODE, NODE_ALL, "node", argv[2]);
	return ctl_show(c, HCOMM_VIEW_NODE, NULL, NODE_COLUMNS);
}

int ctl_path(struct ctl *c, int argc, char **argv)
{
	(void)argc;
	if (!strcmp(argv[1], "show"))
		return show(c, HCOMM_VIEW_PATH, PATH_ALL, "path to node", argv[2]);
	return ctl_show(c, HCOMM_VIEW_PATH, NULL, PATH_COLUMNS);
}

int ctl_port(struct ctl *c, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return ctl_show(c, HCOMM_VIEW_PORT, NULL, PORT_COLUMNS);
}
