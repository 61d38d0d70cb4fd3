/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The nouns that are one view each, and the operator's words.
 *
 * The columns named here are those that a person looks for first; -o has all the others.
 */
#include <stdio.h>
#include <string.h>
#include <hcomm/views.h>
#include "ctl.h"

#define ANSWER_BYTES 1024

int ctl_device(struct ctl *c, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return ctl_show(c, HCOMM_VIEW_DEVICE, NULL,
			"DEVICE,KIND,MODEL,PCI,NUMA,PORT,ADDRESS,HEALTH,SIMULATED,HOLDER,DOMAINS");
}

int ctl_client(struct ctl *c, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return ctl_show(c, HCOMM_VIEW_CLIENT, NULL,
			"SESSION,PID,UID,ROLE,BUILD,JOB,RANKS,REQUESTS,EVENTS-LOST");
}

int ctl_setting(struct ctl *c, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return ctl_show(c, HCOMM_VIEW_SETTING, NULL, "NAME,VALUE,UNIT,ORIGIN,RELOADABLE");
}

/* "reload", or "log level LEVEL". */
int ctl_admin(struct ctl *c, int argc, char **argv)
{
	static const char *const levels[] = {"error", "warn", "info", "debug"};
	bool log = !strcmp(argv[0], "log");
	const char *argument = log && argc > 2 ? argv[2] : "";
	char answer[ANSWER_BYTES] = "";
	bool known = !log;
	int r;

	for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++)
		known |= !strcmp(argument, levels[i]);
	if (!known)
		return ctl_usage("log level is '%s'; wanted: error, warn, info or debug", argument);
	r = ctl_open(c);
	if (r)
		return r;
	r = hcomm_admin(c->session, log ? "log-level" : argv[0], argument, c->timeout_ms, answer,
			sizeof(answer));
	if (r)
		return ctl_fail(r, argv[0]);
	if (answer[0])
		puts(answer);
	return CTL_OK;
}
