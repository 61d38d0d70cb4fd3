/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames; see frame.h.
 *
 * The header's length comes from outside: it is compared with the bytes that are there and used
 * for nothing before that. Whatever it claims, reading a frame allocates nothing and touches
 * only the packet.
 */
#include "frame.h"

static inline uint16_t load16(const uint8_t *p)
{
	return (uint16_t)((unsigned)p[0] << 8 | p[1]);
}

static inline uint32_t load32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static inline void store16(uint8_t *p, uint16_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

static inline void store32(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 24);
	p[1] = (uint8_t)(v >> 16);
	p[2] = (uint8_t)(v >> 8);
	p[3] = (uint8_t)v;
}

int hc_frame_write(uint8_t *buf, size_t cap, const struct hc_desc *d, uint16_t version, uint32_t id,
		   int32_t status, const void *msg, size_t *len)
{
	size_t body;
	int r;

	if (cap < HC_HEAD_BYTES)
		return HC_E_BUFFER_OVERFLOW;
	r = hc_encode(d, version, msg, buf + HC_HEAD_BYTES, cap - HC_HEAD_BYTES, &body);
	if (r)
		return r;
	if (body > UINT32_MAX - HC_HEAD_BYTES)
		return HC_E_BUFFER_OVERFLOW;
	store32(buf, (uint32_t)body + HC_HEAD_BYTES);
	store16(buf + 4, version);
	store16(buf + 6, d->number);
	store32(buf + 8, id);
	store32(buf + 12, (uint32_t)status);
	*len = body + HC_HEAD_BYTES;
	return 0;
}

int hc_frame_next(const uint8_t **packet, size_t *left, struct hc_frame *f)
{
	const uint8_t *p = *packet;

	if (*left < HC_HEAD_BYTES)
		return HC_E_MALFORMED;
	f->head.length = load32(p);
	if (f->head.length < HC_HEAD_BYTES || f->head.length > *left)
		return HC_E_MALFORMED;
	f->head.version = load16(p + 4);
	f->head.type = load16(p + 6);
	f->head.id = load32(p + 8);
	f->head.status = (int32_t)load32(p + 12);
	f->body = p + HC_HEAD_BYTES;
	f->body_len = f->head.length - HC_HEAD_BYTES;
	*packet = p + f->head.length;
	*left -= f->head.length;
	return 0;
}
