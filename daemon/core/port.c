/* SPDX-License-Identifier: Apache-2.0 */
#include "net.h"

void hc_port_fact(struct hc_core *c, const struct hc_port_fact *fact)
{
	(void)c;
	(void)fact;
}

uint8_t hc_port_verdict(const struct hc_core *c, const struct hc_port_slot *p, uint32_t addr)
{
	(void)c;
	(void)p;
	(void)addr;
	return 0;
}

uint32_t hc_port_of(const struct hc_core *c, const struct hc_addr *addr)
{
	(void)c;
	(void)addr;
	return HC_NONE;
}

struct hc_port_slot *hc_port_get(struct hc_core *c, uint32_t index)
{
	(void)c;
	(void)index;
	return 0;
}

void hc_port_announce(struct hc_core *c, struct hc_arr *out)
{
	(void)c;
	(void)out;
}

void hc_port_ourselves(struct hc_core *c, const struct hc_addr *addr)
{
	(void)c;
	(void)addr;
}
