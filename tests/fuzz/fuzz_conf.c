/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzer of the configuration file: any bytes are a file.
 *
 * What must hold: no crash; a refusal has a reason of one line; and what was accepted, written
 * out again value by value, is accepted once more and means the same.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conffile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct hc_conf_error err;

static int load(struct hc_conf *c, const void *bytes, size_t size)
{
	FILE *f = tmpfile();
	int r;

	if (!f || fwrite(bytes, 1, size, f) != size)
		abort();
	rewind(f);
	r = hc_conf_load_stream(c, f, "input", &err);
	fclose(f);
	return r;
}

static void check_refusal(void)
{
	if (!err.count)
		abort();
	for (unsigned i = 0; i < err.count; i++) {
		if (!*err.line[i] || strchr(err.line[i], '\n'))
			abort();
	}
}

/* All values as a file. The caller frees it. */
static char *render(const struct hc_conf *c, size_t *len)
{
	char *text = NULL, origin[HC_CONF_ORIGIN_MAX];
	FILE *f = open_memstream(&text, len);
	struct hc_conf_value v;
	uint64_t cursor = 0;

	if (!f)
		abort();
	while (hc_conf_next(c, &cursor, &v)) {
		hc_conf_origin_text(c, v.opt, v.origin, origin, sizeof(origin));
		if (v.opt)
			fprintf(f, "%s = %s\n", v.opt->name, v.text);
		else
			fprintf(f, "%s\n", v.label);
	}
	fclose(f);
	return text;
}

static void changed(void *arg, const struct hc_conf_change *change)
{
	(void)arg;
	fprintf(stderr, "%s: '%s' became '%s'\n", change->label, change->from, change->to);
	abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct hc_conf first, second;
	char *text;
	size_t len;

	if (load(&first, data, size)) {
		check_refusal();
		return 0;
	}
	text = render(&first, &len);
	if (load(&second, text, len)) {
		fprintf(stderr, "%s\n", err.line[0]);
		abort();
	}
	hc_conf_diff(&first, &second, changed, NULL);
	hc_conf_fini(&first);
	hc_conf_fini(&second);
	free(text);
	return 0;
}
