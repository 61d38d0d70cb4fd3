/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a rank table. Must hold: no crash; a verdict that is complete and printable in
 * both forms; a roster only with an accepted table, and then a consistent one; judging the same
 * bytes again gives the same.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "ranktable.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void want(int ok)
{
	if (!ok)
		abort();
}

static void check_roster(const struct hc_roster *ro)
{
	uint32_t i;

	want(ro->nranks > 0 && ro->nservers > 0 && ro->nservers <= ro->nranks);
	for (i = 0; i < ro->nservers; i++)
		want(strlen(ro->servers[i].name) <= HC_SERVER_NAME_MAX);
	for (i = 0; i < ro->nranks; i++) {
		want(ro->ranks[i].server < ro->nservers);
		want(ro->ranks[i].addr.family == 0 || ro->ranks[i].addr.family == 4 ||
		     ro->ranks[i].addr.family == 6);
	}
}

static void check_verdict(const struct hc_verdict *v)
{
	char line[2048];
	json_t *json = hc_verdict_json(v, "fuzz");
	const char *p;

	want(json != NULL && *v->message);
	json_decref(json);
	hc_verdict_line(v, "fuzz", line, sizeof(line));
	for (p = line; *p; p++)
		want((unsigned char)*p >= 0x20 && *p != 0x7f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct hc_roster *ro = NULL, *again = NULL;
	struct hc_verdict v, w;
	struct hc_jsontext in;
	int r;

	hc_verdict_init(&v);
	hc_verdict_init(&w);
	r = hc_jsontext_set(data, size, 1 << 20, &in, &v);
	if (!r) {
		r = hc_ranktable_read(&in, &ro, &v);
		want(hc_ranktable_read(&in, &again, &w) == r);
		want(!strcmp(v.message, w.message) && v.line == w.line && v.column == w.column);
	}
	want((r == 0) == (ro != NULL) && (r == 0) == (v.kind == HC_V_NONE));
	check_verdict(&v);
	if (ro) {
		check_roster(ro);
		want(ro->hash[0] == again->hash[0] && ro->hash[1] == again->hash[1]);
	}
	hc_ranktable_free(ro);
	hc_ranktable_free(again);
	return 0;
}
