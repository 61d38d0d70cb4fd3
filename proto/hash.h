/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One hash for the whole tree: SipHash-2-4.
 *
 * It names rank tables and member lists (so that two nodes can compare what they read), spreads
 * keys in tables whose keys come from clients (a keyed hash cannot be flooded), and feeds the
 * core's generator of random numbers. It is not used to authenticate anything on a network.
 * Source: Aumasson and Bernstein, "SipHash: a fast short-input PRF", 2012.
 */
#ifndef HC_HASH_H
#define HC_HASH_H

#include <stddef.h>
#include <stdint.h>

struct hc_hash_key {
	uint64_t k0, k1;
};

/* 64-bit hash of `len` bytes under `key`. Pure; any thread. */
uint64_t hc_hash(const struct hc_hash_key *key, const void *data, size_t len);

#endif
