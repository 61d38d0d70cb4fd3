/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses as rank tables write them: IPv4, IPv6 with an optional scope, and EIDs (16 bytes in
 * 32 hex digits). Comparison is by value, so two spellings of one address are one address.
 *
 * Refused, each with its reason: names, masks and placeholders, the unspecified and the multicast
 * addresses, IPv4 inside IPv6, link-local IPv6 without a scope (it cannot be dialled), a scope
 * on anything else. Loopback is fine: that is how one machine plays several.
 */
#ifndef HC_ADDRESS_H
#define HC_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include "addr.h"
#include "roster.h"

enum hc_net_kind { HC_NET_NONE = 0, HC_NET_IP4 = 4, HC_NET_IP6 = 6, HC_NET_EID = 16 };

struct hc_netaddr {
	enum hc_net_kind kind;
	struct hc_addr a; /* family is 0 for an EID; its bytes are here all the same */
	char scope[16];   /* as written: an interface number means another thing elsewhere */
};

/* Each gives NULL when `text` is good, and else the reason for people. */
const char *hc_ip_parse(const char *text, struct hc_netaddr *out);
const char *hc_eid_parse(const char *text, struct hc_netaddr *out);

/* Order by value: kind, bytes, scope. */
int hc_netaddr_cmp(const struct hc_netaddr *x, const struct hc_netaddr *y);
const char *hc_net_kind_name(enum hc_net_kind kind);

#endif
