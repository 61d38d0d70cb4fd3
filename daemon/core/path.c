/* SPDX-License-Identifier: Apache-2.0 */
#include "net.h"

void hc_path_routes(struct hc_core *c, uint32_t peer)
{
	(void)c;
	(void)peer;
}

void hc_path_route(struct hc_core *c, const struct hc_route_fact *fact)
{
	(void)c;
	(void)fact;
}

uint32_t hc_path_find(struct hc_core *c, uint32_t peer, uint32_t id,
		      const struct hc_endpoint *local, const struct hc_endpoint *remote)
{
	(void)c;
	(void)peer;
	(void)id;
	(void)local;
	(void)remote;
	return HC_NONE;
}

uint32_t hc_path_id(const struct hc_core *c, const uint8_t peer_id[16],
		    const struct hc_endpoint *local, const struct hc_endpoint *remote)
{
	(void)c;
	(void)peer_id;
	(void)local;
	(void)remote;
	return HC_NONE;
}

void hc_path_set(struct hc_core *c, uint32_t path, uint8_t state, uint8_t cause, const char *text)
{
	(void)c;
	(void)path;
	(void)state;
	(void)cause;
	(void)text;
}

void hc_path_port_changed(struct hc_core *c, uint32_t port)
{
	(void)c;
	(void)port;
}

void hc_path_drop_all(struct hc_core *c, uint32_t peer)
{
	(void)c;
	(void)peer;
}

uint64_t hc_path_interval(const struct hc_core *c, const struct hc_path *p)
{
	(void)c;
	(void)p;
	return HC_NEVER;
}

uint64_t hc_path_window(const struct hc_core *c, const struct hc_path *p)
{
	(void)c;
	(void)p;
	return HC_NEVER;
}

uint64_t hc_path_down_window(const struct hc_core *c, const struct hc_path *p)
{
	(void)c;
	(void)p;
	return HC_NEVER;
}

void hc_path_heard(struct hc_core *c, uint32_t from, uint32_t ticket, uint32_t age_ms)
{
	(void)c;
	(void)from;
	(void)ticket;
	(void)age_ms;
}
