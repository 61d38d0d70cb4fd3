/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Case 26: loopback, tunnels and link-local addresses are picked towards other nodes.
 *
 * Automatic choices by name or order take the first interface that has an address; then peers
 * cannot reach it and the start of a job hangs. Here only a0 is used though it comes last, and one
 * line says for each of the others why not.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hosts.h"
#include "suite.h"

static struct hc_hosts h;
static struct hc_run run;

/* The last line of the log that lists the candidates. */
static const char *choice(const struct hc_node *n, char *buf, size_t size)
{
	char *log = hc_read_file(n->log), *at = log, *last = NULL;

	buf[0] = '\0';
	while (at && (at = strstr(at, "ports towards other nodes")))
		last = at++;
	if (last)
		snprintf(buf, size, "%.*s", (int)strcspn(last, "\n"), last);
	free(log);
	return buf;
}

static void expect(const char *line, const char *text)
{
	ck_assert_msg(strstr(line, text) != NULL, "no '%s' in: %s", text, line);
}

static bool has_chosen(void *unused)
{
	char line[2000];

	(void)unused;
	choice(&h.a, line, sizeof(line));
	return strstr(line, "a0 10.") && strstr(line, ": link-local address");
}

START_TEST(only_what_reaches_others_is_picked)
{
	char line[2000];

	if (!hc_hosts_prepare(&h, NULL, NULL))
		return;
	/* fe80 alone on a tunnel, the bridge of a container engine, one that is down */
	hc_ip("link add tun0 type vxlan id 7 dstport 4789 dev lo\nlink set tun0 up\n"
	      "link add docker0 type bridge\naddr add 172.17.0.1/16 dev docker0\n"
	      "link set docker0 up\n"
	      "link add down0 type veth peer name p-down0\naddr add 10.99.0.1/24 dev down0\n");
	hc_hosts_join(&h);
	hc_node_run(&h.a);
	hc_node_run(&h.b);
	hc_await("a choice, all addresses being ready", has_chosen, NULL, 5000);
	choice(&h.a, line, sizeof(line));
	expect(line, "a0 10.71.0.1: used");
	expect(line, "lo 127.0.0.1: loopback");
	expect(line, "down0 10.99.0.1: down");
	expect(line, "tun0 fe80");
	ck_assert_ptr_null(strstr(line, "docker0 172.17.0.1: used;"));
	/* and the way to the other node is by a0 */
	hc_path_await(&h.a, "hB", "normal", 5000);
	hc_ctl(&run, &h.a, "path", "list", "--no-headings", (char *)NULL);
	expect(run.out, "hB a0 ");
	ck_assert_ptr_null(strstr(run.out, "docker0"));
	hc_hosts_end(&h);
}
END_TEST

START_TEST(of_two_the_one_that_routes_to_the_peer_again_and_again)
{
	unsigned i;

	if (!hc_hosts_prepare(&h, NULL, NULL))
		return;
	hc_ip("link add a9 type veth peer name p-a9\naddr add 10.79.0.1/24 dev a9\n"
	      "link set a9 up\nlink set p-a9 up\n");
	hc_hosts_join(&h);
	hc_node_run(&h.b);
	for (i = 0; i < 3; i++) {
		hc_node_run(&h.a);
		hc_path_await(&h.a, "hB", "normal", 10000);
		hc_ctl(&run, &h.a, "path", "list", "--no-headings", (char *)NULL);
		expect(run.out, "hB a0 ");
		ck_assert_ptr_null(strstr(run.out, "a9"));
		hc_node_stop(&h.a);
	}
	hc_hosts_end(&h);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_test(t, only_what_reaches_others_is_picked);
	tcase_add_test(t, of_two_the_one_that_routes_to_the_peer_again_and_again);
}

int main(void)
{
	return hc_suite_run("case 26", add, 60);
}
