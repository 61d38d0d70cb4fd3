/* SPDX-License-Identifier: Apache-2.0 */
/* Questions to the kernel by rtnetlink; see netlink.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include "addr.h"
#include "netlink.h"

#define WAIT_US 250000 /* for an answer */
#define BUFFER  (4 << 20)
#define STALE   1024u /* buffers of an earlier answer that are passed over */

static int fail(struct hc_netlink *nl)
{
	int r = -errno;

	hc_netlink_close(nl);
	return r;
}

int hc_netlink_open(struct hc_netlink *nl, unsigned groups)
{
	const struct timeval wait = {.tv_usec = WAIT_US};
	int fd, on = 1, bytes = BUFFER;

	nl->seq = 0;
	nl->sock = mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC | (groups ? SOCK_NONBLOCK : 0));
	if (!nl->sock)
		return -errno;
	fd = mnl_socket_get_fd(nl->sock);
	if (mnl_socket_bind(nl->sock, groups, MNL_SOCKET_AUTOPID) < 0)
		return fail(nl);
	if (groups) { /* taken only as there is something in it */
		if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)))
			setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
		return 0;
	}
	/* older kernels do not filter dumps; then the caller has to */
	mnl_socket_setsockopt(nl->sock, NETLINK_GET_STRICT_CHK, &on, sizeof(on));
	return setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait)) ? fail(nl) : 0;
}

void hc_netlink_close(struct hc_netlink *nl)
{
	if (nl->sock)
		mnl_socket_close(nl->sock);
	nl->sock = NULL;
}

struct nlmsghdr *hc_netlink_begin(struct hc_netlink *nl, uint16_t type, uint16_t flags)
{
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(nl->buf);

	nlh->nlmsg_type = type;
	nlh->nlmsg_flags = (uint16_t)(NLM_F_REQUEST | (flags ? flags : NLM_F_ACK));
	nlh->nlmsg_seq = ++nl->seq;
	return nlh;
}

static void empty(struct hc_netlink *nl)
{
	unsigned budget = STALE;

	while (budget-- &&
	       recv(mnl_socket_get_fd(nl->sock), nl->buf, sizeof(nl->buf), MSG_DONTWAIT) >= 0)
		;
}

int hc_netlink_ask(struct hc_netlink *nl, struct nlmsghdr *question, mnl_cb_t cb, void *arg)
{
	unsigned budget = STALE;
	ssize_t n;
	int r = -1;

	if (mnl_socket_sendto(nl->sock, question, question->nlmsg_len) < 0)
		return -errno;
	do {
		n = mnl_socket_recvfrom(nl->sock, nl->buf, sizeof(nl->buf));
		if (n >= 0)
			r = mnl_cb_run(nl->buf, (size_t)n, nl->seq, mnl_socket_get_portid(nl->sock),
				       cb, arg);
		else if (errno == EINTR)
			r = MNL_CB_OK;
		else
			break;
		/* an answer to what was given up */
		if (r < 0 && errno == EPROTO && budget--)
			r = MNL_CB_OK;
	} while (r > 0);
	if (n >= 0 && r == 0)
		return 0;
	r = -errno;
	empty(nl);
	return r ? r : -EIO;
}

struct attrs {
	const struct nlattr **to;
	unsigned max;
};

static int on_attr(const struct nlattr *attr, void *arg)
{
	struct attrs *a = arg;

	if (mnl_attr_get_type(attr) <= a->max)
		a->to[mnl_attr_get_type(attr)] = attr;
	return MNL_CB_OK;
}

void hc_netlink_attrs(const struct nlmsghdr *nlh, size_t head, const struct nlattr **attrs,
		      unsigned max)
{
	struct attrs a = {attrs, max};

	memset(attrs, 0, (max + 1) * sizeof(*attrs));
	mnl_attr_parse(nlh, (unsigned)head, on_attr, &a);
}

void hc_netlink_nested(const struct nlattr *nest, const struct nlattr **attrs, unsigned max)
{
	struct attrs a = {attrs, max};

	memset(attrs, 0, (max + 1) * sizeof(*attrs));
	if (nest)
		mnl_attr_parse_nested(nest, on_attr, &a);
}

bool hc_netlink_addr(const struct nlattr *attr, uint8_t af, uint32_t scope, struct hc_addr *out)
{
	const size_t want = af == AF_INET ? 4 : 16;

	memset(out, 0, sizeof(*out));
	if (!attr || (af != AF_INET && af != AF_INET6) || mnl_attr_get_payload_len(attr) != want)
		return false;
	out->family = af == AF_INET ? 4 : 6;
	memcpy(out->bytes, mnl_attr_get_payload(attr), want);
	if (out->family == 6 && hc_addr_is_link_local(out))
		out->scope = scope;
	return true;
}
