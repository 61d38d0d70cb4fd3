/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzing of the codec: a version has one encoding, so what is decoded must come out of the
 * encoder as the same bytes.
 *
 * Input: u16 number of a message (1000 + number: of a view's row), u8 version, then the bytes.
 * Arrays are read record by record and put together again, which must give the same bytes too.
 */
#include <stdlib.h>
#include <string.h>
#include "codec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int holds)
{
	if (!holds)
		abort();
}

static void check_array(const struct hc_field *f, uint16_t version, const struct hc_arr *a)
{
	_Alignas(16) char rec[1024];
	struct hc_arr rest = *a, again = {NULL, 0, 0};
	uint8_t *buf = malloc(a->len ? a->len : 1);

	must(buf != NULL && f->rec->size <= sizeof(rec) && a->count <= f->max);
	while (hc_arr_next(&rest, f->rec, version, rec))
		must(!hc_arr_put(&again, buf, a->len, f->rec, version, rec));
	must(rest.count == 0 && rest.len == 0);
	must(again.count == a->count && again.len == a->len);
	must(!a->len || !memcmp(again.bytes, a->bytes, a->len));
	free(buf);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_Alignas(16) char msg[1024];
	const struct hc_desc *d;
	unsigned number, i;
	uint16_t version;
	uint8_t *out;
	size_t len = 0;

	if (size < 3)
		return 0;
	number = (unsigned)data[0] << 8 | data[1];
	version = data[2];
	d = number >= 1000 ? hc_desc_view(number - 1000) : hc_desc_msg(number);
	data += 3;
	size -= 3;
	if (!d)
		return 0;
	must(d->size <= sizeof(msg));
	if (hc_decode(d, version, data, size, msg))
		return 0;
	out = malloc(size + 1);
	must(out != NULL);
	must(!hc_encode(d, version, msg, out, size, &len) && len == size);
	must(!size || !memcmp(out, data, size));
	free(out);
	for (i = 0; i < d->nfields; i++) {
		if (d->fields[i].type == HC_T_array)
			check_array(
				&d->fields[i], version,
				(const struct hc_arr *)(const void *)(msg + d->fields[i].offset));
	}
	return 0;
}
