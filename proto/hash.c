/* SPDX-License-Identifier: Apache-2.0 */
/* SipHash-2-4; see hash.h. Bytes are read little-endian, as the paper defines it. */
#include "hash.h"

static inline uint64_t rotl(uint64_t x, unsigned b)
{
	return (x << b) | (x >> (64 - b));
}

static void rounds(uint64_t v[4], int n)
{
	while (n-- > 0) {
		v[0] += v[1];
		v[1] = rotl(v[1], 13) ^ v[0];
		v[0] = rotl(v[0], 32);
		v[2] += v[3];
		v[3] = rotl(v[3], 16) ^ v[2];
		v[0] += v[3];
		v[3] = rotl(v[3], 21) ^ v[0];
		v[2] += v[1];
		v[1] = rotl(v[1], 17) ^ v[2];
		v[2] = rotl(v[2], 32);
	}
}

static uint64_t tail64(const uint8_t *p, size_t n)
{
	uint64_t x = 0;
	size_t i;

	for (i = 0; i < n; i++)
		x |= (uint64_t)p[i] << (8 * i);
	return x;
}

uint64_t hc_hash(const struct hc_hash_key *key, const void *data, size_t len)
{
	const uint8_t *p = data;
	uint64_t v[4] = {key->k0 ^ 0x736f6d6570736575, key->k1 ^ 0x646f72616e646f6d,
			 key->k0 ^ 0x6c7967656e657261, key->k1 ^ 0x7465646279746573};
	uint64_t m;
	size_t left;

	for (left = len; left >= 8; left -= 8, p += 8) {
		m = tail64(p, 8);
		v[3] ^= m;
		rounds(v, 2);
		v[0] ^= m;
	}
	m = tail64(p, left) | ((uint64_t)len << 56);
	v[3] ^= m;
	rounds(v, 2);
	v[0] ^= m;
	v[2] ^= 0xff;
	rounds(v, 4);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}
