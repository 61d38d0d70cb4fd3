/* SPDX-License-Identifier: Apache-2.0 */
/* See peerout.h. */
#include <event2/buffer.h>
#include <openssl/err.h>
#include <sys/socket.h>
#include "peerout.h"

static ssize_t write_some(struct bufferevent *bev, SSL *ssl, const uint8_t *bytes, size_t len)
{
	if (ssl)
		return SSL_write(ssl, bytes, (int)len);
	return send(bufferevent_getfd(bev), bytes, len, MSG_NOSIGNAL);
}

/* A record that was begun and refused is begun again by the bufferevent with the same bytes, which
 * the library insists on. */
static size_t write_now(struct bufferevent *bev, SSL *ssl, const uint8_t *bytes, size_t len)
{
	size_t done = 0;
	ssize_t n;

	ERR_clear_error();
	while (done < len) {
		n = write_some(bev, ssl, bytes + done, len - done);
		if (n <= 0)
			break;
		done += (size_t)n;
	}
	ERR_clear_error();
	return done;
}

void hc_peerout_flush(struct bufferevent *bev, SSL *ssl, struct evbuffer *out)
{
	const size_t len = evbuffer_get_length(out);
	const uint8_t *bytes;

	if (!len)
		return;
	if (!evbuffer_get_length(bufferevent_get_output(bev))) {
		bytes = evbuffer_pullup(out, -1);
		evbuffer_drain(out, bytes ? write_now(bev, ssl, bytes, len) : 0);
	}
	if (evbuffer_get_length(out))
		bufferevent_write_buffer(bev, out);
}
