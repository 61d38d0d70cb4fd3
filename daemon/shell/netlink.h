/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Questions to the kernel by rtnetlink, with libmnl: one is asked, all of its answer is read.
 *
 * The kernel answers before the send returns, so waiting is a matter of microseconds; it is
 * bounded all the same. After an error the socket is emptied, so that the next answer is of the
 * next question.
 */
#ifndef HC_NETLINK_H
#define HC_NETLINK_H

#include <libmnl/libmnl.h>
#include <linux/rtnetlink.h>
#include <stdint.h>
#include "roster.h"

#define HC_NETLINK_BYTES 32768u /* of one read; the kernel makes no larger answers */

struct hc_netlink {
	struct mnl_socket *sock;
	uint32_t seq;
	_Alignas(struct nlmsghdr) char buf[HC_NETLINK_BYTES];
};

/* `groups`: RTMGRP_*, for a socket that is told of changes; it does not block. 0, -errno. */
int hc_netlink_open(struct hc_netlink *nl, unsigned groups);
void hc_netlink_close(struct hc_netlink *nl);
/* Begin a question in nl->buf; NLM_F_DUMP or 0. */
struct nlmsghdr *hc_netlink_begin(struct hc_netlink *nl, uint16_t type, uint16_t flags);
/* Ask it. 0; -errno, also one that the kernel answered; -EINTR: the dump was interrupted. */
int hc_netlink_ask(struct hc_netlink *nl, struct nlmsghdr *question, mnl_cb_t cb, void *arg);

/* Attributes of a message behind its head of `head` bytes, by type; those above `max` are left. */
void hc_netlink_attrs(const struct nlmsghdr *nlh, size_t head, const struct nlattr **attrs,
		      unsigned max);
/* The same of those within `nest`; NULL: there are none. */
void hc_netlink_nested(const struct nlattr *nest, const struct nlattr **attrs, unsigned max);
/* An address of a message; the scope is set for link-local ones. False: not of that family. */
bool hc_netlink_addr(const struct nlattr *attr, uint8_t af, uint32_t scope, struct hc_addr *out);

#endif
