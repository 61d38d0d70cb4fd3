/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzing of datagrams between daemons: any bytes are one, without its tag.
 *
 * What must hold: no crash; what is decoded comes out of the encoder as the same bytes; it has the
 * length that its type says; and the fields that authentication reads at fixed offsets, before
 * anything is decoded, are those that the decoder finds.
 */
#include <stdlib.h>
#include <string.h>
#include "codec.h"
#include "datagram.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int holds)
{
	if (!holds)
		abort();
}

static uint32_t be32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static const struct hc_desc *desc_of(uint8_t type)
{
	if (type == hc_desc_beat.number)
		return &hc_desc_beat;
	if (type == hc_desc_probe.number)
		return &hc_desc_probe;
	return type == hc_desc_probed.number ? &hc_desc_probed : NULL;
}

static void check_head(const uint8_t *data, uint8_t type, uint32_t key, uint32_t path, uint64_t seq)
{
	must(data[HC_DATAGRAM_AT_TYPE] == type);
	must(be32(data + HC_DATAGRAM_AT_KEY) == key);
	must(be32(data + HC_DATAGRAM_AT_PATH) == path);
	must(((uint64_t)be32(data + HC_DATAGRAM_AT_PATH + 4) << 32 |
	      be32(data + HC_DATAGRAM_AT_PATH + 8)) == seq);
}

static void check_fields(const struct hc_desc *d, const uint8_t *data, size_t size, const void *msg)
{
	const struct hc_m_beat *beat = msg;
	const struct hc_m_probe *probe = msg;
	const struct hc_m_probed *probed = msg;

	must(size >= HC_DATAGRAM_HEAD);
	if (d == &hc_desc_beat) {
		must(size == HC_BEAT_BYTES);
		check_head(data, beat->type, beat->key, beat->path, beat->seq);
	} else if (d == &hc_desc_probe) {
		must(size == HC_PROBE_BYTES + probe->pad.len);
		check_head(data, probe->type, probe->key, probe->path, probe->seq);
	} else {
		must(size == HC_PROBE_BYTES); /* an answer is never larger than its question */
		check_head(data, probed->type, probed->key, probed->path, probed->seq);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_Alignas(16) char msg[256];
	const struct hc_desc *d =
		size < HC_DATAGRAM_HEAD ? NULL : desc_of(data[HC_DATAGRAM_AT_TYPE]);
	uint8_t *out;
	size_t len = 0;

	if (!d)
		return 0;
	must(d->size <= sizeof(msg));
	if (hc_decode(d, HC_PROTO_MAX, data, size, msg))
		return 0;
	check_fields(d, data, size, msg);
	out = malloc(size);
	must(out != NULL);
	must(!hc_encode(d, HC_PROTO_MAX, msg, out, size, &len));
	must(len == size && !memcmp(out, data, size));
	free(out);
	return 0;
}
