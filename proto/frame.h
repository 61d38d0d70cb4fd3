/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames: a 16-byte header and a message. A packet of the client socket holds one or more.
 *
 *   length u32 (header included) | version u16 | type u16 | id u32 | status i32     big-endian
 *
 * `id` pairs an answer with its request (0: an event). `status` is 0 or the outcome, negative,
 * in an answer of type error. The version of hello and of its answer is always 1.
 */
#ifndef HC_FRAME_H
#define HC_FRAME_H

#include "codec.h"

#define HC_HEAD_BYTES 16u

struct hc_head {
	uint32_t length;
	uint16_t version;
	uint16_t type; /* enum hc_msg_number */
	uint32_t id;
	int32_t status;
};

struct hc_frame {
	struct hc_head head;
	const uint8_t *body;
	size_t body_len;
};

/*
 * Write a whole frame of message `d`. Returns 0 and *len (header included), or as hc_encode.
 */
int hc_frame_write(uint8_t *buf, size_t cap, const struct hc_desc *d, uint16_t version, uint32_t id,
		   int32_t status, const void *msg, size_t *len);

/*
 * Take the next frame from the front of a packet (*packet, *left), and advance both.
 * Returns 0, or HC_E_MALFORMED: shorter than a header, or a length below 16 or over what is left.
 */
int hc_frame_next(const uint8_t **packet, size_t *left, struct hc_frame *f);

#endif
