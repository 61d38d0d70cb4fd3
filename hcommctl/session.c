/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The session of the command line with the daemon of this node.
 *
 * It is opened by the first command that needs it, so what works on files alone never asks for a
 * daemon. The library's text says which socket was tried, why it did not answer, and what to look
 * at; nothing is added to it here.
 */
#include "ctl.h"

#define FIRST_CONTACT_MS 2000

int ctl_open(struct ctl *c)
{
	struct hcomm_open_args args = HCOMM_INIT(struct hcomm_open_args);
	const char *detail;
	int r;

	if (c->session)
		return CTL_OK;
	args.socket = c->socket;
	args.timeout_ms = FIRST_CONTACT_MS;
	if (c->timeout_ms > 0 && c->timeout_ms < FIRST_CONTACT_MS)
		args.timeout_ms = (uint32_t)c->timeout_ms;
	r = hcomm_open(&args, &c->session);
	if (!r)
		return CTL_OK;
	c->session = NULL;
	detail = hcomm_last_error();
	ctl_say("%s", detail[0] ? detail : hcomm_error_string(r));
	return ctl_exit_of(r);
}

void ctl_close(struct ctl *c)
{
	hcomm_close(c->session);
	c->session = NULL;
}
