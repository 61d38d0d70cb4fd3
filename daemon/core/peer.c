/* SPDX-License-Identifier: Apache-2.0 */
#include "net.h"

void hc_peer_fact(struct hc_core *c, const struct hc_node_fact *fact)
{
	(void)c;
	(void)fact;
}

uint32_t hc_peer_find(const struct hc_core *c, const uint8_t node_id[16])
{
	(void)c;
	(void)node_id;
	return HC_NONE;
}

struct hc_peer *hc_peer_get(struct hc_core *c, uint32_t peer)
{
	(void)c;
	(void)peer;
	return 0;
}

void hc_peer_up(struct hc_core *c, uint32_t peer, const struct hc_m_peer_hello *hello)
{
	(void)c;
	(void)peer;
	(void)hello;
}

void hc_peer_daemon_down(struct hc_core *c, uint32_t peer, const char *why)
{
	(void)c;
	(void)peer;
	(void)why;
}

void hc_peer_paths_changed(struct hc_core *c, uint32_t peer)
{
	(void)c;
	(void)peer;
}

void hc_peer_alive(struct hc_core *c, uint32_t peer)
{
	(void)c;
	(void)peer;
}

bool hc_peer_excused(const struct hc_core *c, const struct hc_peer *p)
{
	(void)c;
	(void)p;
	return false;
}

void hc_peer_timeout(struct hc_core *c, uint32_t peer)
{
	(void)c;
	(void)peer;
}

uint64_t hc_peer_deadline(const struct hc_core *c, const struct hc_peer *p)
{
	(void)c;
	(void)p;
	return HC_NEVER;
}

void hc_peer_hold(struct hc_core *c, uint32_t hold_ms)
{
	(void)c;
	(void)hold_ms;
}

void hc_peer_on_hold(struct hc_core *c, uint32_t peer, uint32_t hold_ms)
{
	(void)c;
	(void)peer;
	(void)hold_ms;
}
