/* SPDX-License-Identifier: Apache-2.0 */
/* GMAC by OpenSSL's EVP; see gmac.h. Always in the direction of encryption: a tag is made. */
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>
#include "gmac.h"

struct hc_gmac {
	EVP_CIPHER_CTX *ctx;
};

struct hc_gmac *hc_gmac_new(const uint8_t key[HC_KEY_BYTES])
{
	struct hc_gmac *g = calloc(1, sizeof(*g));

	if (!g)
		return NULL;
	g->ctx = EVP_CIPHER_CTX_new();
	if (!g->ctx || EVP_EncryptInit_ex(g->ctx, EVP_aes_256_gcm(), NULL, key, NULL) != 1) {
		hc_gmac_free(g);
		return NULL;
	}
	return g;
}

/* The library wipes what it holds of a key when it frees the context. */
void hc_gmac_free(struct hc_gmac *g)
{
	if (!g)
		return;
	EVP_CIPHER_CTX_free(g->ctx);
	free(g);
}

void hc_gmac_soon(const struct hc_gmac *g)
{
	const char *ctx = (const char *)g->ctx;
	unsigned i;

	for (i = 0; i < 3; i++)
		__builtin_prefetch(ctx + i * 64u);
}

bool hc_gmac_tag(struct hc_gmac *g, const uint8_t nonce[HC_GMAC_NONCE], const uint8_t *bytes,
		 size_t len, uint8_t tag[HC_DATAGRAM_TAG])
{
	int n;

	return EVP_EncryptInit_ex(g->ctx, NULL, NULL, NULL, nonce) == 1 &&
	       EVP_EncryptUpdate(g->ctx, NULL, &n, bytes, (int)len) == 1 &&
	       EVP_EncryptFinal_ex(g->ctx, tag, &n) == 1 &&
	       EVP_CIPHER_CTX_ctrl(g->ctx, EVP_CTRL_AEAD_GET_TAG, HC_DATAGRAM_TAG, tag) == 1;
}

bool hc_gmac_seal(struct hc_gmac *g, uint8_t *frame, size_t len)
{
	return len >= HC_DATAGRAM_HEAD &&
	       hc_gmac_tag(g, frame + HC_DATAGRAM_AT_PATH, frame, len, frame + len);
}

bool hc_gmac_good(struct hc_gmac *g, const uint8_t *frame, size_t len)
{
	uint8_t tag[HC_DATAGRAM_TAG];
	bool good;

	good = len >= HC_DATAGRAM_HEAD &&
	       hc_gmac_tag(g, frame + HC_DATAGRAM_AT_PATH, frame, len, tag) &&
	       !CRYPTO_memcmp(tag, frame + len, sizeof(tag));
	explicit_bzero(tag, sizeof(tag)); /* of a forged frame it would be the one that fits */
	return good;
}
