/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing to another node at once.
 *
 * A bufferevent asks the loop whether it may write, and writes in its next turn. Nearly always it
 * may now: that saves two calls and a wait of the loop for what others wait for. All that a turn
 * has for one connection goes as one record.
 */
#ifndef HC_PEEROUT_H
#define HC_PEEROUT_H

#include <event2/bufferevent.h>
#include <openssl/ssl.h>

/* Writes what is in `out`; what the socket does not take goes through the bufferevent, in order.
 * `ssl`: of the bufferevent, or NULL. An error is the bufferevent's to find and to tell. */
void hc_peerout_flush(struct bufferevent *bev, SSL *ssl, struct evbuffer *out);

#endif
