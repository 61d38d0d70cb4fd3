/* SPDX-License-Identifier: Apache-2.0 */
/* What can be seen of a simulation from outside, without changing it; see simnet.h. */
#include "simimp.h"

struct hc_core *sim_core(struct sim *s, uint32_t node)
{
	return s->nodes[node].core;
}

uint32_t sim_life(const struct sim *s, uint32_t node)
{
	return s->nodes[node].life;
}

bool sim_runs(const struct sim *s, uint32_t node)
{
	return s->nodes[node].core && !s->nodes[node].stopped;
}

uint64_t sim_hash(const struct sim *s)
{
	return s->hash;
}

uint64_t sim_events(const struct sim *s)
{
	return s->events;
}

const struct sim_said *sim_said(const struct sim *s, uint32_t *count)
{
	*count = s->nsaid;
	return s->said;
}

uint32_t sim_count(const struct sim *s, uint32_t node, uint16_t code, uint64_t since)
{
	uint32_t i, n = 0;

	for (i = 0; i < s->nsaid; i++)
		n += (node == HC_NONE || s->said[i].node == node) && s->said[i].code == code &&
		     s->said[i].at >= since;
	return n;
}
