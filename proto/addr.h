/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses as text; pure, so that the core can name one. */
#ifndef HC_ADDR_H
#define HC_ADDR_H

#include "roster.h"

#define HC_ADDR_TEXT_MAX 64

/* "192.0.2.1", "2001:db8::1%3" (RFC 5952); "" for family 0. Returns buf. */
const char *hc_addr_text(const struct hc_addr *a, char buf[HC_ADDR_TEXT_MAX]);

#endif
