/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Case 23: the well-known port is taken.
 *
 * Two services want one port, the bind fails, and the other nodes find out minutes later as a
 * time-out. Here the daemon does not start: within a second one line names address, port, the
 * system's error and who holds it. Its peers hear the refusal of its kernel at once, not a
 * time-out. With a range the next free port is taken and announced, and the peers use it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pairs.h"
#include "raw.h"
#include "suite.h"

#define OPEN "tests/cases/open/"

enum { WELL_KNOWN = 16666 };

static struct hc_run run;
static struct hc_node peer, node;

static int holder(void *arg, int in, int out)
{
	int fd = hc_port_hold("127.0.0.2", WELL_KNOWN, false);
	char byte = 1;

	(void)arg;
	hc_tell(out, &byte, 1);
	hc_hear(in, &byte, 1, 60000);
	close(fd);
	return 0;
}

static void want_refusal(const char *who)
{
	uint64_t since = hc_now_ms();
	const char *line;

	ck_assert_int_eq(hc_raw_daemon(&run, &node, 5000), 1);
	ck_assert_uint_lt(hc_now_ms() - since, hc_patience(1000));
	line = strstr(run.err, "127.0.0.2:16666");
	ck_assert_msg(line && strstr(line, "Address already in use") && strstr(line, who), "%s",
		      run.err);
}

START_TEST(refused_at_once_naming_the_holder)
{
	struct hc_child c;
	char who[40], byte;

	hc_pair_prepare(&node, 1, 2, WELL_KNOWN, HC_KEY_A, NULL);
	hc_spawn(&c, holder, NULL);
	hc_child_read(&c, &byte, 1, 10000);
	snprintf(who, sizeof(who), "pid %d ", (int)c.pid);
	want_refusal(who);
	hc_child_tell(&c, &byte, 1);
	ck_assert_int_eq(hc_child_wait(&c, 10000), 0);
	hc_node_end(&node);
}
END_TEST

/* The configuration as found, for a second daemon on the host of the first. */
START_TEST(a_second_daemon_names_the_first)
{
	char *found = hc_read_file(OPEN "c023-two-daemons-same-port.conf"), top[512], who[40];

	ck_assert_ptr_nonnull(found);
	hc_pair_prepare(&peer, 1, 1, WELL_KNOWN, HC_KEY_A, NULL);
	hc_node_run(&peer);
	snprintf(top, sizeof(top), "listen_address = 127.0.0.2\nsecurity = none\n%s", found);
	hc_node_prepare(&node, 1, top, NULL);
	snprintf(who, sizeof(who), "pid %d (hcommd)", (int)peer.pid);
	want_refusal(who);
	ck_assert(hc_socket_answers(peer.socket));
	free(found);
	hc_node_end(&node);
	hc_node_end(&peer);
}
END_TEST

START_TEST(its_peers_hear_of_it_at_once)
{
	uint64_t since = hc_now_ms();

	hc_pair_prepare(&peer, 0, 2, WELL_KNOWN, HC_KEY_A, NULL);
	hc_node_run(&peer); /* node1 did not start */
	hc_pair_await(&peer, "node1", "refused");
	ck_assert_uint_lt(hc_now_ms() - since, hc_patience(1500));
	hc_node_end(&peer);
}
END_TEST

START_TEST(of_a_range_the_next_is_used_by_the_peers)
{
	int fd = hc_port_hold("127.0.0.2", WELL_KNOWN, false);

	hc_node_prepare(&node, 1,
			"node_name = node1\nlisten_address = 127.0.0.2\n"
			"listen_port = 16666-16669\nsecurity = none",
			"[node node0]\naddress = 127.0.0.1:16666\n");
	hc_pair_prepare(&peer, 0, 1, WELL_KNOWN, NULL, "security = none");
	hc_node_run(&node);
	ck_assert(hc_node_logged(&node, "listening on port 16667"));
	hc_node_run(&peer); /* has no section for it: it learns the port from the hello */
	hc_pair_await(&peer, "node1", "up");
	hc_pair_await_log(&peer, "127.0.0.2:16667) is normal");
	hc_node_end(&peer);
	hc_node_end(&node);
	close(fd);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_test(t, refused_at_once_naming_the_holder);
	tcase_add_test(t, a_second_daemon_names_the_first);
	tcase_add_test(t, its_peers_hear_of_it_at_once);
	tcase_add_test(t, of_a_range_the_next_is_used_by_the_peers);
}

int main(void)
{
	hc_ports_own("case_023_port_taken");
	return hc_suite_run("case 23", add, 60);
}
