/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses as text; pure, so that the core can name one. */
#ifndef HC_ADDR_H
#define HC_ADDR_H

#include "roster.h"

#include <stdbool.h>

#define HC_ADDR_TEXT_MAX 64

/* "192.0.2.1", "2001:db8::1%3" (RFC 5952); "" for family 0. Returns buf. */
const char *hc_addr_text(const struct hc_addr *a, char buf[HC_ADDR_TEXT_MAX]);

/* Where a daemon can be reached. */
struct hc_endpoint {
	struct hc_addr addr;
	uint16_t port;
};
#define HC_ENDPOINT_TEXT_MAX (HC_ADDR_TEXT_MAX + 8)
/* "192.0.2.1:16660", "[2001:db8::1]:16660". Returns buf. */
const char *hc_endpoint_text(const struct hc_endpoint *e, char buf[HC_ENDPOINT_TEXT_MAX]);
bool hc_addr_eq(const struct hc_addr *a, const struct hc_addr *b); /* with the scope */
bool hc_endpoint_eq(const struct hc_endpoint *a, const struct hc_endpoint *b);
bool hc_addr_is_loopback(const struct hc_addr *a);
bool hc_addr_is_link_local(const struct hc_addr *a);

#endif
