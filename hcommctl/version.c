/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hcommctl version: this program, the library that it runs with, and the daemon.
 *
 * Three may differ after an upgrade that restarted only part of them, and that is when one asks.
 * Without a daemon its own versions are still printed; the exit status says that it is missing.
 */
#include <stdio.h>
#include <string.h>
#include "ctl.h"
#include "print.h"

static void print_json(const struct hcomm_session_info *info)
{
	char buf[HCOMM_NAME_BYTES * 12];
	struct hc_text t;

	hc_text_init(&t, buf, sizeof(buf));
	if (info) {
		hc_json_string(&t, info->build, strlen(info->build));
		hc_text_add(&t, ",\"node\":");
		hc_json_string(&t, info->node, strlen(info->node));
	} else {
		hc_text_add(&t, "null");
	}
	printf("{\"schema_version\":%d,\"hcommctl\":\"%s\",\"library\":\"%s\",\"protocol\":%u,"
	       "\"daemon\":%s}\n",
	       HC_SCHEMA_VERSION, HC_VERSION, hcomm_version(), info ? info->protocol : 0, buf);
}

int ctl_version(struct ctl *c, int argc, char **argv)
{
	struct hcomm_session_info info = HCOMM_INIT(struct hcomm_session_info);
	int status = ctl_open(c);
	bool known = !status && !hcomm_session_get(c->session, &info);

	(void)argc;
	(void)argv;
	if (c->json) {
		print_json(known ? &info : NULL);
		return status;
	}
	printf("hcommctl %s\n", HC_VERSION);
	printf("library  %s\n", hcomm_version());
	if (known)
		printf("daemon   %s on %s, protocol %u\n", info.build, info.node, info.protocol);
	else
		printf("daemon   -\n");
	return status;
}
