/* SPDX-License-Identifier: Apache-2.0 */
#include "net.h"

void hc_beat_new_keys(struct hc_core *c, uint32_t peer)
{
	(void)c;
	(void)peer;
}

void hc_beat_datagram(struct hc_core *c, const struct hc_event *ev)
{
	(void)c;
	(void)ev;
}

void hc_beat_bounced(struct hc_core *c, const struct hc_event *ev)
{
	(void)c;
	(void)ev;
}

void hc_beat_begin(struct hc_core *c, uint32_t path)
{
	(void)c;
	(void)path;
}

void hc_beat_now(struct hc_core *c, uint32_t path, uint16_t flags)
{
	(void)c;
	(void)path;
	(void)flags;
}

bool hc_beat_work(struct hc_core *c)
{
	(void)c;
	return false;
}

uint64_t hc_beat_deadline(const struct hc_core *c)
{
	(void)c;
	return HC_NEVER;
}

void hc_beat_settings(struct hc_core *c)
{
	(void)c;
}
