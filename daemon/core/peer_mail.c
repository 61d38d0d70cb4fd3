/* SPDX-License-Identifier: Apache-2.0 */
#include "net.h"

int hc_peer_send(struct hc_core *c, uint32_t peer, const struct hc_desc *d, const void *msg)
{
	(void)c;
	(void)peer;
	(void)d;
	(void)msg;
	return 0;
}

int hc_peer_take(struct hc_core *c, uint32_t peer, const struct hc_frame *f)
{
	(void)c;
	(void)peer;
	(void)f;
	return 0;
}

void hc_peer_acknowledge(struct hc_core *c, uint32_t peer, uint32_t number)
{
	(void)c;
	(void)peer;
	(void)number;
}

void hc_peer_resume(struct hc_core *c, uint32_t peer, uint32_t received)
{
	(void)c;
	(void)peer;
	(void)received;
}

void hc_peer_mail_drop(struct hc_core *c, uint32_t peer)
{
	(void)c;
	(void)peer;
}
