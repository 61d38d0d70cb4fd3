/* SPDX-License-Identifier: Apache-2.0 */
/* The checks of a rank against this machine; see bind.h. */
#include <stdio.h>
#include <string.h>
#include "address.h"
#include "bind.h"

static bool same_addr(const struct hc_addr *a, const struct hc_addr *b)
{
	if (a->family != b->family || memcmp(a->bytes, b->bytes, a->family == 4 ? 4 : 16))
		return false;
	return !a->scope || !b->scope || a->scope == b->scope;
}

/* Appends to a list for people; what does not fit is left out. */
static void append(char *buf, size_t size, const char *text)
{
	size_t n = strlen(buf), more = strlen(text) + 2;

	if (n + more < size)
		snprintf(buf + n, size - n, "%s%s", n ? ", " : "", text);
}

static int no_such_rank(const struct hc_roster *ro, uint32_t rank, struct hc_verdict *v)
{
	hc_verdict_set(v, HC_V_OUT_OF_RANGE, "rank %u: the table has %u ranks", rank, ro->nranks);
	return HC_FILE_REFUSED;
}

int hc_bind_device(const struct hc_roster *ro, uint32_t rank, const uint32_t *devices, size_t n,
		   struct hc_verdict *v)
{
	char here[256] = "", number[32];
	size_t i;

	if (rank >= ro->nranks)
		return no_such_rank(ro, rank, v);
	for (i = 0; i < n; i++) {
		if (devices[i] == ro->ranks[rank].device)
			return 0;
		snprintf(number, sizeof(number), "%u", devices[i]);
		append(here, sizeof(here), number);
	}
	snprintf(number, sizeof(number), "device %u", ro->ranks[rank].device);
	hc_verdict_set(v, HC_V_DEVICE_NOT_HERE, "table says %s for rank %u; devices here are %s",
		       number, rank, n ? here : "none");
	hc_verdict_detail(v, "", number, n ? here : "none");
	return HC_FILE_REFUSED;
}

int hc_bind_address(const struct hc_roster *ro, uint32_t rank, const struct hc_addr *have, size_t n,
		    struct hc_verdict *v)
{
	char here[256] = "", text[HC_ADDR_TEXT_MAX];
	size_t i;

	if (rank >= ro->nranks)
		return no_such_rank(ro, rank, v);
	if (!ro->ranks[rank].addr.family)
		return 0;
	for (i = 0; i < n; i++) {
		if (same_addr(&have[i], &ro->ranks[rank].addr))
			return 0;
		append(here, sizeof(here), hc_addr_text(&have[i], text));
	}
	hc_addr_text(&ro->ranks[rank].addr, text);
	hc_verdict_set(v, HC_V_ADDRESS_NOT_HERE, "rank %u: table %s, this device has %s", rank,
		       text, n ? here : "no address");
	hc_verdict_detail(v, "", text, n ? here : "no address");
	return HC_FILE_REFUSED;
}
