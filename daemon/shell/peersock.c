/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets between nodes; see peersock.h. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "holder.h"
#include "log.h"
#include "options.h"
#include "peersock.h"

#define BACKLOG  256
#define CS6      (48 << 2)
#define PRIORITY 6

socklen_t hc_peersock_to(const struct hc_endpoint *e, struct sockaddr_storage *to)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)to;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)to;

	memset(to, 0, sizeof(*to));
	if (e->addr.family == 4) {
		v4->sin_family = AF_INET;
		v4->sin_port = htons(e->port);
		memcpy(&v4->sin_addr, e->addr.bytes, 4);
		return sizeof(*v4);
	}
	if (e->addr.family != 6)
		return 0;
	v6->sin6_family = AF_INET6;
	v6->sin6_port = htons(e->port);
	v6->sin6_scope_id = e->addr.scope;
	memcpy(&v6->sin6_addr, e->addr.bytes, 16);
	return sizeof(*v6);
}

bool hc_peersock_from(const struct sockaddr *from, struct hc_endpoint *e)
{
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;

	memset(e, 0, sizeof(*e));
	if (from->sa_family == AF_INET) {
		memcpy(&v4, from, sizeof(v4));
		e->addr.family = 4;
		memcpy(e->addr.bytes, &v4.sin_addr, 4);
		e->port = ntohs(v4.sin_port);
	} else if (from->sa_family == AF_INET6) {
		memcpy(&v6, from, sizeof(v6));
		e->addr.family = 6;
		memcpy(e->addr.bytes, &v6.sin6_addr, 16);
		e->addr.scope = v6.sin6_scope_id;
		e->port = ntohs(v6.sin6_port);
	}
	return e->addr.family != 0;
}

/* Best effort: a kernel or a sandbox that refuses one of them takes nothing but the precedence. */
void hc_peersock_class(int fd, uint8_t family)
{
	int class = CS6, priority = PRIORITY;

	if (family == 4)
		setsockopt(fd, IPPROTO_IP, IP_TOS, &class, sizeof(class));
	else
		setsockopt(fd, IPPROTO_IPV6, IPV6_TCLASS, &class, sizeof(class));
	setsockopt(fd, SOL_SOCKET, SO_PRIORITY, &priority, sizeof(priority)); /* TOS changed it */
}

/* ---- one number for both ---- */

static int open_socket(uint8_t family, int type)
{
	int on = 1, domain = family == 4 ? AF_INET : AF_INET6;
	int fd = socket(domain, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	if (type == SOCK_STREAM) /* connections that end must not keep the next daemon out */
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (family == 6) {
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
		setsockopt(fd, IPPROTO_IPV6, IPV6_FREEBIND, &on, sizeof(on));
	} else {
		setsockopt(fd, IPPROTO_IP, IP_FREEBIND, &on, sizeof(on));
	}
	hc_peersock_class(fd, family);
	return fd;
}

static int bind_one(const struct hc_endpoint *at, int type)
{
	struct sockaddr_storage to;
	socklen_t len = hc_peersock_to(at, &to);
	int r, fd = open_socket(at->addr.family, type);

	if (fd < 0)
		return fd;
	if (bind(fd, (const struct sockaddr *)&to, len) ||
	    (type == SOCK_STREAM && listen(fd, BACKLOG))) {
		r = -errno;
		close(fd);
		return r;
	}
	return fd;
}

struct taken {
	struct hc_endpoint at;
	int error;
	bool udp;
};

static int try_pair(struct hc_peers_socks *s, uint32_t i, uint16_t port, struct taken *t)
{
	s->at[i].port = port;
	t->at = s->at[i];
	t->udp = false;
	s->tcp[i] = t->error = bind_one(&s->at[i], SOCK_STREAM);
	if (s->tcp[i] < 0)
		return s->tcp[i];
	t->udp = true;
	s->udp[i] = t->error = bind_one(&s->at[i], SOCK_DGRAM);
	return s->udp[i] < 0 ? s->udp[i] : 0;
}

/* A kernel without IPv6 is no fault as long as nobody asked for it. */
static bool may_lack(const struct hc_peers_socks *s, uint32_t i, bool all, int r)
{
	return all && s->at[i].addr.family == 6 && (r == -EAFNOSUPPORT || r == -EADDRNOTAVAIL);
}

static int try_port(struct hc_peers_socks *s, uint16_t port, bool all, struct taken *t)
{
	uint32_t i;
	int r = 0;

	for (i = 0; !r && i < s->count; i++) {
		r = try_pair(s, i, port, t);
		if (r && may_lack(s, i, all, r))
			r = 0;
	}
	if (!r)
		s->port = port;
	else
		hc_peers_unbind(s);
	return r;
}

static void name_taken(const struct taken *t, char *why, size_t size)
{
	char at[HC_ENDPOINT_TEXT_MAX], holder[128];

	hc_holder_find(&t->at, t->udp, holder, sizeof(holder));
	snprintf(why, size, "cannot listen on %s (%s): %s%s%s", hc_endpoint_text(&t->at, at),
		 t->udp ? "UDP" : "TCP", strerror(-t->error), holder[0] ? "; it is held by " : "",
		 holder);
}

static int read_addresses(struct hc_peers_socks *s, const char *list, char *why, size_t size)
{
	struct hc_conf_endpoint e;
	char item[HC_CONF_VALUE_MAX];

	if (!list[0]) {
		s->count = 2;
		s->at[0].addr.family = 4;
		s->at[1].addr.family = 6;
		return 0;
	}
	while (hc_conf_item(&list, item, sizeof(item))) {
		if (!hc_conf_endpoint(item, &e) || s->count == HC_BIND_MAX) {
			snprintf(why, size, "listen_address: '%s' is %s", item,
				 s->count == HC_BIND_MAX ? "one too many; wanted: at most 16"
							 : "no address");
			return 1;
		}
		s->at[s->count].addr.family = e.family;
		memcpy(s->at[s->count++].addr.bytes, e.addr, sizeof(e.addr));
	}
	return 0;
}

static int all_taken(const struct hc_peers_want *want, char *why, size_t size)
{
	size_t n = strlen(why);

	if (want->hi > want->lo)
		snprintf(why + n, size - n, "; no port of %u-%u is free", want->lo, want->hi);
	return 1;
}

int hc_peers_bind(const struct hc_peers_want *want, struct hc_peers_socks *s, char *why,
		  size_t size)
{
	struct taken t = {.error = 0};
	uint32_t port;

	memset(s, 0, sizeof(*s));
	memset(s->tcp, 0xff, sizeof(s->tcp));
	memset(s->udp, 0xff, sizeof(s->udp));
	if (read_addresses(s, want->addresses, why, size))
		return 1;
	for (port = want->lo; port <= want->hi; port++) {
		if (!try_port(s, (uint16_t)port, !want->addresses[0], &t)) {
			if (port != want->lo)
				hc_log(HC_LOG_INFO,
				       "listening on port %u, the first free one of %u-%u; %s",
				       port, want->lo, want->hi, why);
			return 0;
		}
		if (port == want->lo)
			name_taken(&t, why, size);
	}
	return all_taken(want, why, size);
}

void hc_peers_unbind(struct hc_peers_socks *s)
{
	uint32_t i;

	for (i = 0; i < s->count; i++) {
		if (s->tcp[i] >= 0)
			close(s->tcp[i]);
		if (s->udp[i] >= 0)
			close(s->udp[i]);
		s->tcp[i] = s->udp[i] = -1;
	}
}

void hc_peersock_tune(int fd, uint8_t family)
{
	int on = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	hc_peersock_class(fd, family);
}

int hc_peersock_dial(const struct hc_endpoint *to, const struct hc_addr *from, int *fd)
{
	struct hc_endpoint source = {.addr = *from};
	struct sockaddr_storage far, own;
	socklen_t n = hc_peersock_to(to, &far), m = hc_peersock_to(&source, &own);
	int on = 1;

	*fd = -1;
	if (!n || (from->family && !m))
		return EAFNOSUPPORT;
	*fd = socket(far.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (*fd < 0)
		return errno;
	hc_peersock_tune(*fd, to->addr.family);
	if (from->family) {
		/* its port is chosen at connect, together with the far end */
		setsockopt(*fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on));
		if (bind(*fd, (const struct sockaddr *)&own, m))
			return errno;
	}
	return connect(*fd, (const struct sockaddr *)&far, n) && errno != EINPROGRESS ? errno : 0;
}
