/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses as text; see addr.h. The longest run of zero groups, the first of equals, is "::". */
#include "addr.h"

#include <stdio.h>
#include <string.h>

static unsigned group(const struct hc_addr *a, int i)
{
	return (unsigned)(a->bytes[2 * i] << 8 | a->bytes[2 * i + 1]);
}

/* Where the run of zeros to leave out begins, and how long it is; -1 when there is none. */
static int longest_run(const struct hc_addr *a, int *length)
{
	int best = -1, run = 0, i;

	*length = 1; /* one group alone is written out */
	for (i = 0; i < 8; i++) {
		run = group(a, i) ? 0 : run + 1;
		if (run > *length) {
			*length = run;
			best = i - run + 1;
		}
	}
	return best;
}

static void ipv6_text(const struct hc_addr *a, char *buf)
{
	int length, best = longest_run(a, &length), i;
	size_t at = 0;

	buf[0] = '\0';
	for (i = 0; i < 8; i++) {
		if (i == best) {
			at += (size_t)snprintf(buf + at, HC_ADDR_TEXT_MAX - at, "::");
			i += length - 1;
			continue;
		}
		at += (size_t)snprintf(buf + at, HC_ADDR_TEXT_MAX - at, "%s%x",
				       at && buf[at - 1] != ':' ? ":" : "", group(a, i));
	}
	if (a->scope)
		snprintf(buf + at, HC_ADDR_TEXT_MAX - at, "%%%u", a->scope);
}

const char *hc_addr_text(const struct hc_addr *a, char buf[HC_ADDR_TEXT_MAX])
{
	buf[0] = '\0';
	if (a->family == 4)
		snprintf(buf, HC_ADDR_TEXT_MAX, "%u.%u.%u.%u", a->bytes[0], a->bytes[1],
			 a->bytes[2], a->bytes[3]);
	else if (a->family == 6)
		ipv6_text(a, buf);
	return buf;
}

const char *hc_endpoint_text(const struct hc_endpoint *e, char buf[HC_ENDPOINT_TEXT_MAX])
{
	char addr[HC_ADDR_TEXT_MAX];

	snprintf(buf, HC_ENDPOINT_TEXT_MAX, e->addr.family == 6 ? "[%s]:%u" : "%s:%u",
		 hc_addr_text(&e->addr, addr), e->port);
	return buf;
}

bool hc_addr_eq(const struct hc_addr *a, const struct hc_addr *b)
{
	return a->family == b->family && a->scope == b->scope &&
	       !memcmp(a->bytes, b->bytes, a->family == 4 ? 4 : 16);
}

bool hc_endpoint_eq(const struct hc_endpoint *a, const struct hc_endpoint *b)
{
	return a->port == b->port && hc_addr_eq(&a->addr, &b->addr);
}

bool hc_addr_is_loopback(const struct hc_addr *a)
{
	static const uint8_t one[16] = {[15] = 1};

	return a->family == 4 ? a->bytes[0] == 127 : a->family == 6 && !memcmp(a->bytes, one, 16);
}

bool hc_addr_is_link_local(const struct hc_addr *a)
{
	if (a->family == 4)
		return a->bytes[0] == 169 && a->bytes[1] == 254;
	return a->family == 6 && a->bytes[0] == 0xfe && (a->bytes[1] & 0xc0) == 0x80;
}
