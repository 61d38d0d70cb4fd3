/* SPDX-License-Identifier: Apache-2.0 */
/* TLS with the key of the cluster; see tls.h. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include "tls.h"

#define IDENTITY_PREFIX "hcomm/"
#define IDENTITY_MAX    (sizeof(IDENTITY_PREFIX) + HC_NAME_MAX)
#define TELL            "hcomm: the cluster here is " /* the line after the alert */

struct hc_tls {
	SSL_CTX *ctx;
	SSL_SESSION *psk;
	char identity[IDENTITY_MAX];
};

static const struct {
	const char *name;
	uint8_t id[2];
} ciphers[] = {{"TLS_AES_256_GCM_SHA384", {0x13, 0x02}}, {"TLS_AES_128_GCM_SHA256", {0x13, 0x01}}};

/* ---- the two moments at which the key is asked for ---- */

static struct hc_tls_side *side_of(const SSL *ssl)
{
	return SSL_get_app_data(ssl);
}

static int give_key(SSL *ssl, const EVP_MD *md, const unsigned char **id, size_t *idlen,
		    SSL_SESSION **sess)
{
	const struct hc_tls *t = side_of(ssl)->tls;

	(void)md; /* there is one cipher, so one hash */
	*id = (const unsigned char *)t->identity;
	*idlen = strlen(t->identity);
	SSL_SESSION_up_ref(t->psk);
	*sess = t->psk;
	return 1;
}

static void note_other(struct hc_tls_side *s, const unsigned char *id, size_t len)
{
	const size_t skip = sizeof(IDENTITY_PREFIX) - 1;

	if (len <= skip || len - skip > HC_NAME_MAX || memcmp(id, IDENTITY_PREFIX, skip))
		return;
	s->foreign_cluster = true;
	memcpy(s->other, id + skip, len - skip);
	s->other[len - skip] = '\0';
}

static int find_key(SSL *ssl, const unsigned char *id, size_t len, SSL_SESSION **sess)
{
	struct hc_tls_side *s = side_of(ssl);
	const char *ours = s->tls->identity;
	int on = 1;

	*sess = NULL;
	if (len == strlen(ours) && !memcmp(id, ours, len)) {
		SSL_SESSION_up_ref(s->tls->psk);
		*sess = s->tls->psk;
		return 1;
	}
	note_other(s, id, len);
	/* the alert waits for the line that hc_tls_why sends: both go in one segment */
	setsockopt(SSL_get_fd(ssl), IPPROTO_TCP, TCP_CORK, &on, sizeof(on));
	return 1;
}

/* No certificate is good. */
static int refuse_all(int ok, X509_STORE_CTX *store)
{
	(void)ok;
	(void)store;
	return 0;
}

static void see_first(int written, int version, int type, const void *buf, size_t len, SSL *ssl,
		      void *arg)
{
	struct hc_tls_side *s = arg;

	(void)version;
	(void)ssl;
	if (written || type != SSL3_RT_HEADER || s->nfirst || len < sizeof(s->first))
		return;
	memcpy(s->first, buf, sizeof(s->first));
	s->nfirst = sizeof(s->first);
}

/* ---- life ---- */

static int set_context(SSL_CTX *ctx)
{
	int groups[] = {NID_X25519, NID_X9_62_prime256v1};

	SSL_CTX_set_options(ctx,
			    SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
	SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
				      SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_psk_use_session_callback(ctx, give_key);
	SSL_CTX_set_psk_find_session_callback(ctx, find_key);
	return SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION) &&
			       SSL_CTX_set_max_proto_version(ctx, TLS1_3_VERSION) &&
			       SSL_CTX_set_num_tickets(ctx, 0) &&
			       SSL_CTX_set1_groups(ctx, groups, sizeof(groups) / sizeof(groups[0]))
		       ? 0
		       : -ENOTSUP;
}

static const SSL_CIPHER *find_cipher(SSL_CTX *ctx)
{
	const SSL_CIPHER *found = NULL;
	unsigned i;
	SSL *ssl;

	for (i = 0; !found && i < sizeof(ciphers) / sizeof(ciphers[0]); i++) {
		if (!SSL_CTX_set_ciphersuites(ctx, ciphers[i].name))
			continue;
		ssl = SSL_new(ctx);
		found = ssl ? SSL_CIPHER_find(ssl, ciphers[i].id) : NULL;
		SSL_free(ssl);
	}
	return found;
}

static int make_psk(struct hc_tls *t, const uint8_t *key)
{
	const SSL_CIPHER *cipher = find_cipher(t->ctx);

	if (!cipher)
		return -ENOTSUP;
	t->psk = SSL_SESSION_new();
	if (!t->psk || !SSL_SESSION_set1_master_key(t->psk, key, HC_KEY_BYTES) ||
	    !SSL_SESSION_set_cipher(t->psk, cipher) ||
	    !SSL_SESSION_set_protocol_version(t->psk, TLS1_3_VERSION))
		return -ENOMEM;
	return 0;
}

int hc_tls_new(const char *cluster, const uint8_t key[HC_KEY_BYTES], struct hc_tls **tls)
{
	struct hc_tls *t = calloc(1, sizeof(*t));
	int r = -ENOMEM;

	if (!t)
		return r;
	snprintf(t->identity, sizeof(t->identity), IDENTITY_PREFIX "%.*s", (int)HC_NAME_MAX,
		 cluster);
	t->ctx = SSL_CTX_new(TLS_method());
	if (t->ctx)
		r = set_context(t->ctx);
	if (!r)
		r = make_psk(t, key);
	ERR_clear_error();
	if (r) {
		hc_tls_free(t);
		return r;
	}
	*tls = t;
	return 0;
}

void hc_tls_free(struct hc_tls *t)
{
	if (!t)
		return;
	SSL_SESSION_free(t->psk); /* wipes the key */
	SSL_CTX_free(t->ctx);
	free(t);
}

SSL *hc_tls_open(const struct hc_tls *t, bool dialled, struct hc_tls_side *side)
{
	SSL *ssl = SSL_new(t->ctx);

	*side = (struct hc_tls_side){.tls = t, .dialled = dialled};
	if (!ssl || !SSL_set_app_data(ssl, side)) {
		SSL_free(ssl);
		return NULL;
	}
	if (dialled)
		SSL_set_verify(ssl, SSL_VERIFY_PEER, refuse_all);
	SSL_set_msg_callback(ssl, see_first);
	SSL_set_msg_callback_arg(ssl, side);
	return ssl;
}

bool hc_tls_proven(SSL *ssl)
{
	return SSL_is_init_finished(ssl) && SSL_session_reused(ssl) &&
	       SSL_version(ssl) == TLS1_3_VERSION;
}

/* ---- why not ---- */

/* The line that the other end sent after its alert. */
static bool hear_cluster(struct hc_tls_side *s, int fd)
{
	const size_t skip = sizeof(TELL) - 1;
	char line[sizeof(TELL) + HC_NAME_MAX + 1];
	ssize_t n = recv(fd, line, sizeof(line), MSG_DONTWAIT);
	char *end = n > 0 ? memchr(line, '\n', (size_t)n) : NULL;

	if (!end || (size_t)(end - line) <= skip || memcmp(line, TELL, skip))
		return false;
	*end = '\0';
	snprintf(s->other, sizeof(s->other), "%.*s", (int)HC_NAME_MAX, line + skip);
	return true;
}

static void tell_cluster(const struct hc_tls_side *s, int fd)
{
	char line[sizeof(TELL) + HC_NAME_MAX + 2];
	int off = 0, n = snprintf(line, sizeof(line), TELL "%s\n",
				  s->tls->identity + sizeof(IDENTITY_PREFIX) - 1);

	/* if it does not go out the other end says "another cluster" without a name */
	if (send(fd, line, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT) != n)
		return;
	setsockopt(fd, IPPROTO_TCP, TCP_CORK, &off, sizeof(off));
}

static uint16_t why_dialled(struct hc_tls_side *s, unsigned long error, int fd)
{
	switch (ERR_GET_REASON(error)) {
	case SSL_R_SSLV3_ALERT_ILLEGAL_PARAMETER: /* what a binder that differs gets */
	case SSL_AD_REASON_OFFSET + SSL_AD_DECRYPT_ERROR: return HC_W_conn_end_KEY;
	case SSL_AD_REASON_OFFSET + SSL_AD_UNKNOWN_PSK_IDENTITY: return HC_W_conn_end_CLUSTER;
	default: return hear_cluster(s, fd) ? HC_W_conn_end_CLUSTER : HC_W_conn_end_FOREIGN;
	}
}

static uint16_t why_called(const struct hc_tls_side *s, unsigned long error, int fd)
{
	if (s->foreign_cluster) {
		tell_cluster(s, fd);
		return HC_W_conn_end_CLUSTER;
	}
	return ERR_GET_REASON(error) == SSL_R_BINDER_DOES_NOT_VERIFY ? HC_W_conn_end_KEY
								     : HC_W_conn_end_FOREIGN;
}

/* A frame of ours as it stands: a length below a MiB. */
static bool speaks_plain(const struct hc_tls_side *s)
{
	return s->nfirst && !s->first[0] && s->first[1] <= (HC_PEER_FRAME_MAX >> 16);
}

uint16_t hc_tls_why(struct hc_tls_side *s, unsigned long error, int fd, char *text, size_t size)
{
	const char *reason = ERR_reason_error_string(error);
	uint16_t end = s->dialled ? why_dialled(s, error, fd) : why_called(s, error, fd);

	if (end == HC_W_conn_end_CLUSTER)
		snprintf(text, size, "%s", s->other);
	else if (end == HC_W_conn_end_KEY)
		snprintf(text, size, "its key of the cluster is not ours");
	else if (speaks_plain(s))
		snprintf(text, size, "it speaks without TLS: security is none there, key here");
	else
		snprintf(text, size, "does not speak hcomm%s%s", reason ? ": " : "",
			 reason ? reason : "");
	return end;
}

bool hc_tls_export(SSL *ssl, const uint8_t context[HC_KEY_CONTEXT], uint8_t key[HC_KEY_BYTES])
{
	return SSL_export_keying_material(ssl, key, HC_KEY_BYTES, HC_KEY_LABEL,
					  sizeof(HC_KEY_LABEL) - 1, context, HC_KEY_CONTEXT,
					  1) == 1;
}
