/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzing of packets, as the daemon and the library take them from the client socket: frame by
 * frame, each decoded by its type. Frames never leave the packet nor overlap, and a message that
 * is decoded is written again as the same frame.
 */
#include <stdlib.h>
#include <string.h>
#include "frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int holds)
{
	if (!holds)
		abort();
}

static void check_message(const struct hc_frame *f)
{
	const struct hc_desc *d = hc_desc_msg(f->head.type);
	_Alignas(16) char msg[1024];
	uint8_t *out;
	size_t len = 0;

	if (!d || hc_decode(d, f->head.version, f->body, f->body_len, msg))
		return;
	out = malloc(f->head.length);
	must(out != NULL);
	must(!hc_frame_write(out, f->head.length, d, f->head.version, f->head.id, f->head.status,
			     msg, &len));
	must(len == f->head.length && !memcmp(out, f->body - HC_HEAD_BYTES, len));
	free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *p = data;
	size_t left = size;
	struct hc_frame f;

	while (left) {
		const uint8_t *before = p;

		if (hc_frame_next(&p, &left, &f)) {
			must(p == before);
			break;
		}
		must(p == before + f.head.length && p + left == data + size);
		must(f.body == before + HC_HEAD_BYTES && f.body + f.body_len == p);
		check_message(&f);
	}
	return 0;
}
