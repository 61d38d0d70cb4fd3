/* SPDX-License-Identifier: Apache-2.0 */
#include "net.h"

void hc_probe_begin(struct hc_core *c, uint32_t path)
{
	(void)c;
	(void)path;
}

void hc_probe_again(struct hc_core *c, uint32_t path)
{
	(void)c;
	(void)path;
}

void hc_probe_ask(struct hc_core *c, uint32_t path, uint32_t size)
{
	(void)c;
	(void)path;
	(void)size;
}

void hc_probe_on_probe(struct hc_core *c, uint32_t path, const struct hc_m_probe *m)
{
	(void)c;
	(void)path;
	(void)m;
}

void hc_probe_on_answer(struct hc_core *c, uint32_t path, const struct hc_m_probed *m)
{
	(void)c;
	(void)path;
	(void)m;
}

void hc_probe_too_big(struct hc_core *c, uint32_t path, uint32_t mtu)
{
	(void)c;
	(void)path;
	(void)mtu;
}

void hc_probe_timeout(struct hc_core *c, uint32_t path)
{
	(void)c;
	(void)path;
}

uint64_t hc_probe_deadline(const struct hc_core *c, const struct hc_path *p)
{
	(void)c;
	(void)p;
	return HC_NEVER;
}
