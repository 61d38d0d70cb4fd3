/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hcommctl status: is the daemon of this node well.
 *
 * One row of the view `status`. For people it is a list, worst things first; the exit status says
 * "degraded" whenever the daemon says so, which makes the command a health check for scripts.
 */
#include <string.h>
#include <hcomm/views.h>
#include "table.h"

#define STATUS_COLUMNS                                                                             \
	"HEALTH,REMARK,NODE,VERSION,PID,START,UPTIME,DOMAINS,ACTIVE,FORMING,SUSPENDED,DAMAGED,"    \
	"RANKS,CLIENTS,DEVICES,SIMULATED,REQUESTS,REFUSED,MALFORMED,EVENTS-LOST,FENCE,SECURITY,"   \
	"SOCKET,"                                                                                  \
	"STORAGE,DRAIN,CHANNELS,WAITING,CHANNEL-REFUSED,HINTS-KEPT,HINTS-BROKEN,PEERS,PEERS-UP,"   \
	"PATHS,PATHS-GOOD,STALLS,REFUSED-DATAGRAMS,WRONG-KEY,WRONG-CLUSTER,STRANGERS,NO-ROOM"

static int print(struct ctl *c, const struct ctl_rows *r)
{
	const struct hcomm_view_status *row = ctl_rows_at(r, 0);
	int status;

	if (!row) {
		ctl_say("the daemon gave no status");
		return CTL_DEGRADED;
	}
	status = c->json || c->columns ? ctl_rows_print(c, r) : ctl_rows_list(c, r);
	if (status)
		return status;
	return strcmp(row->health, "ok") ? CTL_DEGRADED : CTL_OK;
}

int ctl_status(struct ctl *c, int argc, char **argv)
{
	struct ctl_rows *r = ctl_rows_new(c, HCOMM_VIEW_STATUS, STATUS_COLUMNS);
	int status = r ? ctl_open(c) : CTL_USAGE;

	(void)argc;
	(void)argv;
	if (!status) {
		do {
			status = ctl_rows_query(c, r, NULL);
			if (!status)
				status = print(c, r);
		} while (status <= CTL_DEGRADED && ctl_watch_again(c));
	}
	ctl_rows_free(r);
	return status;
}
