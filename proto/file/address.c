/* SPDX-License-Identifier: Apache-2.0 */
/* Address texts of rank tables; see address.h. */
#include <arpa/inet.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "address.h"

static const char not_address[] = "is not an address";

static const char *judge4(const uint8_t *b)
{
	static const uint8_t zero[4], ones[4] = {255, 255, 255, 255};

	if (!memcmp(b, zero, 4))
		return "is the unspecified address, which names no device";
	if (!memcmp(b, ones, 4))
		return "is the broadcast address, which names no single device";
	return b[0] >= 224 && b[0] < 240 ? "is a multicast address, which names no single device"
					 : NULL;
}

static bool link_local(const uint8_t *b)
{
	return b[0] == 0xfe && (b[1] & 0xc0) == 0x80;
}

static const char *judge6(const uint8_t *b, const char *scope)
{
	static const uint8_t zero[16], mapped[12] = {[10] = 0xff, [11] = 0xff};

	if (!memcmp(b, zero, 16))
		return "is the unspecified address, which names no device";
	if (b[0] == 0xff)
		return "is a multicast address, which names no single device";
	if (!memcmp(b, mapped, 12))
		return "is IPv4 written inside IPv6; write it as IPv4";
	if (link_local(b))
		return *scope ? NULL
			      : "is link-local without a scope (like fe80::1%eth0), so nobody can "
				"dial it";
	return *scope ? "has a scope, which only link-local addresses have" : NULL;
}

/* A scope is an interface number or name. A name that is not here stays unknown (0). */
static const char *take_scope(const char *text, struct hc_netaddr *out)
{
	size_t n = strlen(text), digits = strspn(text, "0123456789");

	if (!n || n >= sizeof(out->scope) || strpbrk(text, "/ \t%"))
		return "has a scope that is no interface name or number";
	memcpy(out->scope, text, n + 1);
	if (digits < n) {
		out->a.scope = if_nametoindex(text);
		return NULL;
	}
	if (n > 9 || *text == '0')
		return "has a scope that is no interface name or number";
	out->a.scope = (uint32_t)strtoul(text, NULL, 10);
	return NULL;
}

const char *hc_ip_parse(const char *text, struct hc_netaddr *out)
{
	char buf[INET6_ADDRSTRLEN + 1];
	const char *percent = strchr(text, '%'), *why;
	size_t n = percent ? (size_t)(percent - text) : strlen(text);

	memset(out, 0, sizeof(*out));
	if (n >= sizeof(buf))
		return not_address;
	memcpy(buf, text, n);
	buf[n] = '\0';
	if (!percent && inet_pton(AF_INET, buf, out->a.bytes) == 1) {
		out->a.family = 4;
		out->kind = HC_NET_IP4;
		return judge4(out->a.bytes);
	}
	if (inet_pton(AF_INET6, buf, out->a.bytes) != 1)
		return not_address;
	why = percent ? take_scope(percent + 1, out) : NULL;
	if (why)
		return why;
	out->a.family = 6;
	out->kind = HC_NET_IP6;
	return judge6(out->a.bytes, out->scope);
}

static int nibble(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)(c | 0x20);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

const char *hc_eid_parse(const char *text, struct hc_netaddr *out)
{
	static const uint8_t zero[16];
	int hi, lo;
	size_t i;

	memset(out, 0, sizeof(*out));
	if (strlen(text) != 32)
		return "is not an EID of 32 hex digits";
	for (i = 0; i < 16; i++) {
		hi = nibble(text[2 * i]);
		lo = nibble(text[2 * i + 1]);
		if (hi < 0 || lo < 0)
			return "is not an EID of 32 hex digits";
		out->a.bytes[i] = (uint8_t)(hi << 4 | lo);
	}
	out->kind = HC_NET_EID;
	return memcmp(out->a.bytes, zero, 16) ? NULL : "is the zero EID, which names no device";
}

int hc_netaddr_cmp(const struct hc_netaddr *x, const struct hc_netaddr *y)
{
	int r;

	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	r = memcmp(x->a.bytes, y->a.bytes, sizeof(x->a.bytes));
	return r ? r : strcmp(x->scope, y->scope);
}

const char *hc_net_kind_name(enum hc_net_kind kind)
{
	switch (kind) {
	case HC_NET_NONE: return "no address";
	case HC_NET_IP4: return "IPv4";
	case HC_NET_IP6: return "IPv6";
	case HC_NET_EID: return "EID";
	}
	return "?";
}
