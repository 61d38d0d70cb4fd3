/* SPDX-License-Identifier: Apache-2.0 */
#include "net.h"

void hc_peer_conn_up(struct hc_core *c, const struct hc_event *ev)
{
	(void)c;
	(void)ev;
}

void hc_peer_conn_lost(struct hc_core *c, const struct hc_event *ev)
{
	(void)c;
	(void)ev;
}

void hc_peer_conn_msg(struct hc_core *c, const struct hc_event *ev)
{
	(void)c;
	(void)ev;
}

void hc_peer_dial(struct hc_core *c, uint32_t peer)
{
	(void)c;
	(void)peer;
}
