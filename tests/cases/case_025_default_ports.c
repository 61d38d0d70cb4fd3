/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Case 25: default ports inside the range of outgoing connections.
 *
 * The kernel hands ports of that range to whoever connects, so a service that listens on one of
 * them fails to start now and then. No default of ours lies in it, and with thousands of
 * outgoing connections open the daemon starts every time.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "pairs.h"
#include "suite.h"

static struct hc_node node;

static void range(unsigned *lo, unsigned *hi)
{
	char *text = hc_read_file("/proc/sys/net/ipv4/ip_local_port_range");

	ck_assert_ptr_nonnull(text);
	ck_assert_int_eq(sscanf(text, "%u %u", lo, hi), 2);
	free(text);
}

/* Every option of that kind, as the program itself lists them. */
START_TEST(no_default_is_in_the_range)
{
	static struct hc_run run;
	unsigned lo, hi, first, seen = 0;
	char *rest = run.out, *line;
	char option[64];

	range(&lo, &hi);
	hc_node_prepare(&node, 0, NULL, NULL);
	ck_assert_int_eq(hc_ctl(&run, &node, "config", "show", node.conf, (char *)NULL), 0);
	while ((line = strsep(&rest, "\n"))) {
		if (sscanf(line, "%63s %u", option, &first) != 2 || !strstr(option, "_port"))
			continue;
		seen++;
		ck_assert_msg(first < lo || first > hi, "%s, and the range is %u..%u", line, lo,
			      hi);
		ck_assert_msg(first >= 1024 && first < 32768, "%s", line);
	}
	ck_assert_uint_ge(seen, 1);
	hc_node_end(&node);
}
END_TEST

static unsigned connect_many(int *fds, unsigned wanted, const struct sockaddr_in *to)
{
	unsigned n, spare;

	for (n = 0; n < wanted; n++) {
		fds[n] = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		if (fds[n] < 0 || connect(fds[n], (const struct sockaddr *)to, sizeof(*to)))
			break;
	}
	if (n < wanted && fds[n] >= 0)
		close(fds[n]);
	for (spare = 0; spare < 64 && n;
	     spare++) /* the limit may be ours: what follows needs some */
		close(fds[--n]);
	return n;
}

/* UDP sockets take their ports from the same range, and need no other end. */
START_TEST(it_starts_every_time_beside_thousands_of_connections)
{
	unsigned wanted = hc_long() ? 20000 : 4000, starts = hc_long() ? 50 : 10, n, i;
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(9)};
	int *fds = calloc(wanted + 1, sizeof(*fds));
	struct rlimit l = {wanted + 256, wanted + 256};

	inet_pton(AF_INET, "127.0.0.25", &to.sin_addr);
	setrlimit(RLIMIT_NOFILE, &l);
	n = connect_many(fds, wanted, &to);
	ck_assert_msg(n >= 200, "only %u sockets: %s", n, strerror(errno));
	/* the port is the default one */
	hc_node_prepare(&node, 1, "listen_address = 127.0.0.25\nsecurity = none", NULL);
	for (i = 0; i < starts; i++) {
		hc_node_run(&node);
		hc_node_stop(&node);
	}
	while (n)
		close(fds[--n]);
	free(fds);
	hc_node_end(&node);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_test(t, no_default_is_in_the_range);
	tcase_add_test(t, it_starts_every_time_beside_thousands_of_connections);
}

int main(void)
{
	hc_ports_own("case_025_default_ports");
	return hc_suite_run("case 25", add, 120);
}
