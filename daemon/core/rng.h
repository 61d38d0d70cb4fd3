/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random numbers of the core: SipHash of a counter, under a seed from the kernel (or from a test).
 * Not to be guessed without the seed; the same seed gives the same numbers.
 */
#ifndef HC_RNG_H
#define HC_RNG_H

#include "state.h"

static inline uint64_t hc_rng_u64(struct hc_core *c)
{
	uint64_t n = c->rng_count++;

	return hc_hash(&c->rng, &n, sizeof(n));
}

static inline void hc_rng_bytes(struct hc_core *c, uint8_t *p, uint32_t len)
{
	while (len--)
		*p++ = (uint8_t)hc_rng_u64(c);
}

#endif
