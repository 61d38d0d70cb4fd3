/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mail: control messages that outlive the connection they were sent on.
 *
 * Each message of a stream has a number, from 1, in the header's id; 0 is never one. Its frame
 * stays in cells of 1 KiB until the peer acknowledges it: with each message of its own, or with a
 * peer_ack after 32 messages, 64 KiB or 20 ms. A new connection goes on where the welcome says
 * that the peer is; what comes twice is dropped by number, and a gap ends the connection.
 *
 * While a connection resumes, frame by frame as `out` has room, what is new only queues behind.
 * Too much that is not acknowledged ends the stream: the mail is dropped, and a new connection
 * brings a stream of another name, so that the peer knows.
 */
#include "emit.h"
#include "net.h"
#include "rng.h"

#include <stdio.h>

#define CELL_BYTES 1024u
#define MAIL_MAX   (4u * 1024u * 1024u) /* of one peer */
#define ACK_COUNT  32u
#define ACK_BYTES  65536u
#define ACK_NS     20000000u
#define AT_STATUS  12u

static uint32_t after(uint32_t number)
{
	return number + 1 ? number + 1 : 1;
}

static uint32_t be32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void put_be32(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 24);
	p[1] = (uint8_t)(v >> 16);
	p[2] = (uint8_t)(v >> 8);
	p[3] = (uint8_t)v;
}

static uint32_t cells_of(uint32_t len)
{
	return (len + CELL_BYTES - 1) / CELL_BYTES;
}

/* ---- the queue ---- */

static void drop_first(struct hc_core *c, struct hc_peer *p)
{
	struct hc_net *n = c->net;
	const uint32_t len = be32(n->mail[p->mail_first]);
	uint32_t i, cell;

	if (p->unsent == p->mail_first)
		p->unsent = HC_NONE; /* never: what was not sent is not acknowledged */
	for (i = cells_of(len); i; i--) {
		cell = p->mail_first;
		p->mail_first = n->mail_next[cell];
		hc_pool_put(&n->mail_pool, cell);
	}
	p->mail_bytes -= len;
	p->mail_count--;
	if (!p->mail_count)
		p->mail_last = p->mail_first = HC_NONE;
}

static bool fits(const struct hc_core *c, const struct hc_peer *p, uint32_t len)
{
	const struct hc_pool *pool = &c->net->mail_pool;

	return p->mail_bytes + len <= MAIL_MAX && pool->used + cells_of(len) <= pool->cap;
}

static void keep(struct hc_core *c, struct hc_peer *p, const uint8_t *bytes, uint32_t len)
{
	struct hc_net *n = c->net;
	uint32_t at, cell, part;

	for (at = 0; at < len; at += part) {
		part = len - at < CELL_BYTES ? len - at : CELL_BYTES;
		cell = hc_pool_get(&n->mail_pool);
		hc_assert(cell != HC_NONE);
		memcpy(n->mail[cell], bytes + at, part);
		n->mail_next[cell] = HC_NONE;
		if (p->mail_last == HC_NONE)
			p->mail_first = cell;
		else
			n->mail_next[p->mail_last] = cell;
		p->mail_last = cell;
	}
	p->mail_bytes += len;
	p->mail_count++;
}

void hc_peer_mail_drop(struct hc_core *c, uint32_t peer)
{
	struct hc_peer *p = hc_peer_get(c, peer);

	p->unsent = HC_NONE;
	while (p->mail_count)
		drop_first(c, p);
	p->sent = p->acked = 0;
	do
		p->stream_out = hc_rng_u64(c);
	while (!p->stream_out);
}

/* ---- sending ---- */

/* What came is acknowledged by whatever is sent. */
static void told(struct hc_peer *p)
{
	p->told = p->received;
	p->ack_bytes = 0;
	p->ack_at = HC_NEVER;
}

static void send_bytes(struct hc_core *c, struct hc_peer *p, uint32_t len)
{
	struct hc_action *a = hc_emit_action(c, HC_ACT_CONN_SEND);

	put_be32(c->out->bytes + c->out->used + AT_STATUS, p->received);
	a->u.conn.conn = p->conn;
	a->len = len;
	c->out->used += len;
	told(p);
}

static int overflow(struct hc_core *c, uint32_t peer)
{
	struct hc_peer *p = hc_peer_get(c, peer);
	struct hc_conn *k = hc_conn_find(c, p->conn);
	char text[HC_NAME_MAX + 160];

	HC_TEXT(text,
		"node %s: %u messages (%u KiB) that it did not acknowledge are dropped: no room "
		"for more; a new stream begins",
		p->name, p->mail_count, p->mail_bytes / 1024u);
	hc_notice(c, HC_LOG_ERROR, HC_W_event_code_MAIL_LOST, p->node, text);
	hc_peer_mail_drop(c, peer);
	p->overflows++;
	p->fresh = true;
	if (k) {
		hc_conn_close(c, k, HC_W_refusal_NONE, "messages were lost, a new stream begins");
		hc_peer_parted(c, peer, HC_W_conn_end_BROKEN, "messages overflowed");
	}
	return HC_E_LIMIT;
}

int hc_peer_send(struct hc_core *c, uint32_t peer, const struct hc_desc *d, const void *msg)
{
	struct hc_peer *p = hc_peer_get(c, peer);
	const uint32_t number = after(p->sent);
	size_t len;
	int r;

	r = hc_frame_write(c->out->bytes + c->out->used, HC_OUT_BYTES - c->out->used, d,
			   HC_PROTO_MAX, number, 0, msg, &len);
	hc_assert(r == 0);
	if (!fits(c, p, (uint32_t)len))
		return overflow(c, peer);
	keep(c, p, c->out->bytes + c->out->used, (uint32_t)len);
	p->sent = number;
	if (p->conn && p->unsent == HC_NONE)
		send_bytes(c, p, (uint32_t)len);
	hc_peer_arm(c, peer);
	return 0;
}

/* The first frame that was not sent on this connection. */
void hc_peer_mail_send(struct hc_core *c, uint32_t peer)
{
	struct hc_peer *p = hc_peer_get(c, peer);
	struct hc_net *n = c->net;
	uint8_t *to = c->out->bytes + c->out->used;
	uint32_t cell = p->unsent, len, at, part;

	if (!p->conn || cell == HC_NONE)
		return;
	len = be32(n->mail[cell]);
	if (c->out->used + len > HC_OUT_BYTES)
		return; /* the next step has room */
	for (at = 0; at < len; at += part, cell = n->mail_next[cell]) {
		part = len - at < CELL_BYTES ? len - at : CELL_BYTES;
		memcpy(to + at, n->mail[cell], part);
	}
	p->unsent = cell;
	send_bytes(c, p, len);
	hc_peer_arm(c, peer);
}

void hc_peer_resume(struct hc_core *c, uint32_t peer, uint32_t received)
{
	struct hc_peer *p = hc_peer_get(c, peer);

	hc_peer_acknowledge(c, peer, received);
	p->unsent = p->mail_first;
	p->told = p->received; /* the welcome said it */
	p->ack_at = HC_NEVER;
	if (p->unsent != HC_NONE)
		hc_peer_busy(c, peer, PEER_RESUMES);
}

void hc_peer_acknowledge(struct hc_core *c, uint32_t peer, uint32_t number)
{
	struct hc_peer *p = hc_peer_get(c, peer);

	if ((int32_t)(number - p->acked) <= 0 || (int32_t)(p->sent - number) < 0)
		return; /* an older one, or of nothing that we sent */
	while (p->mail_count && p->acked != number) {
		if (p->mail_first == p->unsent)
			return; /* acknowledged, but not sent: no peer of ours says that */
		p->acked = after(p->acked);
		drop_first(c, p);
	}
	if (p->waits_since != HC_NEVER)
		p->waits_since = p->mail_count ? c->now : HC_NEVER;
}

/* ---- receiving ---- */

int hc_peer_take(struct hc_core *c, uint32_t peer, const struct hc_frame *f)
{
	struct hc_peer *p = hc_peer_get(c, peer);

	hc_peer_acknowledge(c, peer, (uint32_t)f->head.status);
	if (f->head.id != after(p->received))
		return f->head.id && (int32_t)(f->head.id - p->received) <= 0 ? HC_E_EXISTS
									      : HC_E_MALFORMED;
	p->received = f->head.id;
	p->ack_bytes += f->head.length;
	if (p->received - p->told >= ACK_COUNT || p->ack_bytes >= ACK_BYTES)
		hc_peer_mail_ack(c, peer);
	else if (p->ack_at == HC_NEVER)
		p->ack_at = c->now + ACK_NS;
	hc_peer_arm(c, peer);
	return 0;
}

void hc_peer_mail_ack(struct hc_core *c, uint32_t peer)
{
	struct hc_peer *p = hc_peer_get(c, peer);
	const struct hc_m_peer_ack m = {0};

	if (p->conn && p->received != p->told)
		hc_conn_send(c, p->conn, 0, (int32_t)p->received, &hc_desc_peer_ack, &m);
	told(p);
}
