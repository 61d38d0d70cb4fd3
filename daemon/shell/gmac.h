/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The authentication of datagrams: GMAC, as proto/datagram.h says.
 *
 * One object is one key with its expanded tables: OpenSSL sets a key up in a microsecond or two,
 * so it is set once, and for each frame only the nonce changes. A key either makes tags or checks
 * them; nothing here keeps it from doing both, that is the caller's affair (each direction has a
 * key of its own).
 *
 * The tag is made anew and compared in constant time. Keys are wiped when they are freed.
 */
#ifndef HC_GMAC_H
#define HC_GMAC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "datagram.h"

#define HC_GMAC_NONCE 12u

struct hc_gmac;

/* NULL: no memory, or the library has no AES-256-GCM. The key is copied. */
struct hc_gmac *hc_gmac_new(const uint8_t key[HC_KEY_BYTES]);
/* It is used soon: fetch what is behind it. */
void hc_gmac_soon(const struct hc_gmac *g);
void hc_gmac_free(struct hc_gmac *g);

/* Over any bytes; false: the library failed. */
bool hc_gmac_tag(struct hc_gmac *g, const uint8_t nonce[HC_GMAC_NONCE], const uint8_t *bytes,
		 size_t len, uint8_t tag[HC_DATAGRAM_TAG]);
/* Append the tag to a frame of `len` bytes, at least HC_DATAGRAM_HEAD. */
bool hc_gmac_seal(struct hc_gmac *g, uint8_t *frame, size_t len);
/* Does the tag behind `len` bytes of frame fit? */
bool hc_gmac_good(struct hc_gmac *g, const uint8_t *frame, size_t len);

#endif
