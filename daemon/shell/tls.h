/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS of the control connections: version 1.3, one cipher, one external pre-shared key.
 *
 * The key of the cluster is the PSK, the name of the cluster its identity ("hcomm/NAME"), always
 * with a Diffie-Hellman exchange (psk_dhe_ke): who steals the key later cannot read what was
 * said before. No certificates, no tickets, no resumption, no early data. A server that offers a
 * certificate instead of our key is turned away like anybody who does not speak this protocol.
 *
 * A handshake that fails tells both ends why, as far as can be known: the identity names the
 * cluster of who dials; who is dialled sends, after its alert, one plain line that names its own.
 * A key that differs shows in the binder of the PSK.
 */
#ifndef HC_TLS_H
#define HC_TLS_H

#include <openssl/ssl.h>
#include "core.h"
#include "datagram.h"

struct hc_tls;

/* Of one connection; lives as long as its SSL. */
struct hc_tls_side {
	const struct hc_tls *tls;
	bool dialled, foreign_cluster;
	uint8_t nfirst, first[5];    /* what the other end sent first */
	char other[HC_NAME_MAX + 1]; /* cluster that it named; "" = none, or not readable */
};

/* 0, -ENOMEM, or -ENOTSUP: the library lacks TLS 1.3 or its ciphers. Keeps no copy of `key`. */
int hc_tls_new(const char *cluster, const uint8_t key[HC_KEY_BYTES], struct hc_tls **tls);
void hc_tls_free(struct hc_tls *tls);

/* NULL: no memory. */
SSL *hc_tls_open(const struct hc_tls *tls, bool dialled, struct hc_tls_side *side);
/* The handshake is done; was it done with our key? */
bool hc_tls_proven(SSL *ssl);
/*
 * The handshake failed with this error of the library (0: the connection ended): HC_W_conn_end_*
 * and what it is for people; for CLUSTER the name of the other cluster, "" = it did not say. Tells
 * the other end on `fd`, which is closed next.
 */
uint16_t hc_tls_why(struct hc_tls_side *side, unsigned long error, int fd, char *text, size_t size);
/* 32 bytes for that context, the same at both ends. False: the library failed. */
bool hc_tls_export(SSL *ssl, const uint8_t context[HC_KEY_CONTEXT], uint8_t key[HC_KEY_BYTES]);

#endif
