/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls that are declared, so that hosts can be written against them, and come later.
 *
 * Each says so and does nothing: no argument is looked at and none is written to. A host that
 * finds HCOMM_E_NOT_SUPPORTED takes its other way, as it would with an older library.
 */
#include "client.h"

static int later(const char *call)
{
	return -hc_refuse(HC_E_NOT_SUPPORTED, "%s is not in version %s of libhcomm", call,
			  HC_VERSION);
}

HC_EXPORT int hcomm_grow(hcomm_domain domain, uint32_t nranks, int timeout_ms,
			 struct hcomm_root_info *info)
{
	(void)domain;
	(void)nranks;
	(void)timeout_ms;
	(void)info;
	return later(__func__);
}

HC_EXPORT int hcomm_shrink(hcomm_domain domain, const uint32_t *ranks, uint32_t count,
			   int timeout_ms)
{
	(void)domain;
	(void)ranks;
	(void)count;
	(void)timeout_ms;
	return later(__func__);
}

HC_EXPORT int hcomm_replace(hcomm_domain domain, uint32_t rank, uint32_t device, int timeout_ms)
{
	(void)domain;
	(void)rank;
	(void)device;
	(void)timeout_ms;
	return later(__func__);
}

HC_EXPORT int hcomm_rebuild(hcomm_domain domain, const struct hcomm_config *config, int timeout_ms,
			    hcomm_domain *successor)
{
	(void)domain;
	(void)config;
	(void)timeout_ms;
	(void)successor;
	return later(__func__);
}

HC_EXPORT int hcomm_suspend(hcomm_domain domain, int timeout_ms)
{
	(void)domain;
	(void)timeout_ms;
	return later(__func__);
}

HC_EXPORT int hcomm_resume(hcomm_domain domain, int timeout_ms)
{
	(void)domain;
	(void)timeout_ms;
	return later(__func__);
}

HC_EXPORT int hcomm_set_heartbeat(hcomm_domain domain, uint32_t interval_ms, uint32_t misses)
{
	(void)domain;
	(void)interval_ms;
	(void)misses;
	return later(__func__);
}

HC_EXPORT int hcomm_op_record(hcomm_domain domain, int on)
{
	(void)domain;
	(void)on;
	return later(__func__);
}

HC_EXPORT int hcomm_bandwidth(hcomm_domain domain, uint32_t source, uint32_t destination,
			      uint64_t *mbps)
{
	(void)domain;
	(void)source;
	(void)destination;
	(void)mbps;
	return later(__func__);
}

HC_EXPORT int hcomm_route(hcomm_domain domain, uint32_t source, uint32_t destination, char *text,
			  size_t bytes)
{
	(void)domain;
	(void)source;
	(void)destination;
	(void)text;
	(void)bytes;
	return later(__func__);
}

HC_EXPORT int hcomm_advise(hcomm_domain domain, enum hcomm_op_kind kind, uint64_t bytes,
			   struct hcomm_advice *advice)
{
	(void)domain;
	(void)kind;
	(void)bytes;
	(void)advice;
	return later(__func__);
}

HC_EXPORT int hcomm_health_get(hcomm_domain domain, struct hcomm_health *health)
{
	(void)domain;
	(void)health;
	return later(__func__);
}
