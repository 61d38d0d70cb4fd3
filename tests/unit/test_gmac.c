/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Authentication of datagrams: it is GMAC as published, and a frame that was changed in any bit,
 * or that belongs to another direction, path or number, is refused.
 *
 * The vectors are of NIST's GCM test set for a key of 256 bits and a nonce of 96.
 */
#include <check.h>
#include <stdio.h>
#include <string.h>
#include "gmac.h"
#include "suite.h"

static const struct vector {
	const char *key, *nonce, *aad, *tag;
} vectors[] = {
	{"78dc4e0aaf52d935c3c01eea57428f00ca1fd475f5da86a49c8dd73d68c8e223",
	 "d79cf22d504cc793c3fb6c8a", "b96baa8c1c75a671bfb2d08d06be5f36",
	 "3e5d486aa2e30b22e040b85723a06e76"},
	{"b52c505a37d78eda5dd34f20c22540ea1b58963cf8e5bf8ffa85f9f2492505b4",
	 "516c33929df5a3284ff463d7", "", "bdc1ac884d332457a1d2664f168c76f0"},
	{"0000000000000000000000000000000000000000000000000000000000000000",
	 "000000000000000000000000", "", "530f8afbc74536b9a963b4f1c4cb738b"},
};

static size_t from_hex(const char *hex, uint8_t *out)
{
	size_t n = strlen(hex) / 2, i;
	unsigned v;

	for (i = 0; i < n; i++) {
		ck_assert_int_eq(sscanf(hex + 2 * i, "%2x", &v), 1);
		out[i] = (uint8_t)v;
	}
	return n;
}

static struct hc_gmac *key_of(uint8_t seed)
{
	uint8_t key[HC_KEY_BYTES];
	struct hc_gmac *g;

	memset(key, seed, sizeof(key));
	g = hc_gmac_new(key);
	ck_assert_ptr_nonnull(g);
	return g;
}

/* A frame of `len` bytes on path 7 with number 9, and room for its tag. */
static void make(uint8_t *frame, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++)
		frame[i] = (uint8_t)(i * 11 + 3);
	memset(frame + HC_DATAGRAM_AT_PATH, 0, 12);
	frame[HC_DATAGRAM_AT_PATH + 3] = 7;
	frame[HC_DATAGRAM_AT_PATH + 11] = 9;
}

START_TEST(tags_are_as_published)
{
	uint8_t key[32], nonce[12], aad[64], tag[16], got[16];
	struct hc_gmac *g;
	size_t i, n;

	for (i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
		from_hex(vectors[i].key, key);
		from_hex(vectors[i].nonce, nonce);
		n = from_hex(vectors[i].aad, aad);
		from_hex(vectors[i].tag, tag);
		g = hc_gmac_new(key);
		ck_assert_ptr_nonnull(g);
		ck_assert(hc_gmac_tag(g, nonce, aad, n, got));
		ck_assert_mem_eq(got, tag, 16);
		/* the key stays: with the same nonce again the same comes out */
		ck_assert(hc_gmac_tag(g, nonce, aad, n, got));
		ck_assert_mem_eq(got, tag, 16);
		hc_gmac_free(g);
	}
}
END_TEST

START_TEST(what_was_sealed_is_good_at_any_length)
{
	static uint8_t frame[9000];
	struct hc_gmac *out = key_of(1), *in = key_of(1);
	size_t len;

	for (len = HC_DATAGRAM_HEAD; len < 100; len++) {
		make(frame, len);
		ck_assert(hc_gmac_seal(out, frame, len));
		ck_assert(hc_gmac_good(in, frame, len));
	}
	make(frame, 8900);
	ck_assert(hc_gmac_seal(out, frame, 8900));
	ck_assert(hc_gmac_good(in, frame, 8900));
	/* the right bytes, cut: the last ones are no tag of the others */
	ck_assert(!hc_gmac_good(in, frame, 8899));
	ck_assert(!hc_gmac_seal(out, frame, HC_DATAGRAM_HEAD - 1));
	ck_assert(!hc_gmac_good(in, frame, HC_DATAGRAM_HEAD - 1));
	hc_gmac_free(out);
	hc_gmac_free(in);
}
END_TEST

START_TEST(a_flipped_bit_anywhere_is_refused)
{
	uint8_t frame[HC_BEAT_BYTES + HC_DATAGRAM_TAG];
	struct hc_gmac *g = key_of(2);
	unsigned bit;

	make(frame, HC_BEAT_BYTES);
	ck_assert(hc_gmac_seal(g, frame, HC_BEAT_BYTES));
	for (bit = 0; bit < sizeof(frame) * 8; bit++) {
		frame[bit / 8] ^= (uint8_t)(1u << bit % 8);
		ck_assert_msg(!hc_gmac_good(g, frame, HC_BEAT_BYTES), "bit %u does not matter",
			      bit);
		frame[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	ck_assert(hc_gmac_good(g, frame, HC_BEAT_BYTES));
	hc_gmac_free(g);
}
END_TEST

/* A tag that is good for one frame is put under another one. */
static void expect_foreign(struct hc_gmac *by, struct hc_gmac *for_, unsigned at, uint8_t value)
{
	uint8_t frame[HC_BEAT_BYTES + HC_DATAGRAM_TAG];

	make(frame, HC_BEAT_BYTES);
	ck_assert(hc_gmac_seal(by, frame, HC_BEAT_BYTES));
	frame[at] = value;
	ck_assert(!hc_gmac_good(for_, frame, HC_BEAT_BYTES));
}

START_TEST(other_direction_path_and_number_are_refused)
{
	struct hc_gmac *there = key_of(3), *back = key_of(4);

	expect_foreign(there, back, 0, 3); /* the byte is what it was: only the key differs */
	expect_foreign(back, there, 0, 3);
	expect_foreign(there, there, HC_DATAGRAM_AT_PATH + 3, 8);
	expect_foreign(there, there, HC_DATAGRAM_AT_PATH + 11, 10);
	expect_foreign(there, there, HC_DATAGRAM_AT_TYPE, 242);
	hc_gmac_free(there);
	hc_gmac_free(back);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_test(t, tags_are_as_published);
	tcase_add_test(t, what_was_sealed_is_good_at_any_length);
	tcase_add_test(t, a_flipped_bit_anywhere_is_refused);
	tcase_add_test(t, other_direction_path_and_number_are_refused);
}

int main(void)
{
	return hc_suite_run("gmac", add, 20);
}
