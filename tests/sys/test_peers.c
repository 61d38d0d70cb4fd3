/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Daemons and their port: two with one key meet and know of each other's planned restart; others
 * are turned away with the reason on both sides; a taken port is named at once; without a key a
 * daemon is alone and says so.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "pairs.h"
#include "ranks.h"
#include "raw.h"
#include "suite.h"

enum { PORT = 24300 };

static struct hc_run run;
static struct hc_node n[2];

static void end_both(void)
{
	hc_node_end(&n[1]);
	hc_node_end(&n[0]);
}

static void begin_both(const char *key0, const char *key1, const char *top0, const char *top1)
{
	hc_pair_prepare(&n[0], 0, 2, PORT, key0, top0);
	hc_pair_prepare(&n[1], 1, 2, PORT, key1, top1);
	hc_node_run(&n[0]);
	hc_node_run(&n[1]);
}

static void meet_and_restart(void)
{
	hc_pair_await(&n[0], "node1", "up");
	hc_pair_await(&n[1], "node0", "up");
	hc_node_stop(&n[1]);
	hc_pair_await_log(&n[0], "restarts as planned");
	hc_node_run(&n[1]);
	hc_pair_await(&n[0], "node1", "up");
	hc_pair_await(&n[1], "node0", "up");
	end_both();
}

START_TEST(two_with_one_key_meet_and_meet_again)
{
	begin_both(HC_KEY_A, HC_KEY_A, NULL, NULL);
	meet_and_restart();
}
END_TEST

START_TEST(without_security_two_meet_and_it_shows)
{
	struct hcomm_view_status s;

	begin_both(NULL, NULL, "security = none", "security = none");
	setenv("HCOMM_SOCKET", n[0].socket, 1);
	hc_ask_status(&s);
	ck_assert_str_eq(s.security, "none");
	ck_assert(hc_node_logged(&n[0], "neither authenticated"));
	meet_and_restart();
}
END_TEST

/* A daemon that is turned away is not well, and the first command that is typed says so. */
static void status_tells(const struct hc_node *node, const char *why)
{
	struct hcomm_view_status s;

	setenv("HCOMM_SOCKET", node->socket, 1);
	hc_ask_status(&s);
	ck_assert_str_eq(s.health, "degraded");
	ck_assert_msg(strstr(s.remark, "1 node is refused, and has no part in domains") &&
			      strstr(s.remark, why),
		      "%s", s.remark);
}

START_TEST(another_key_is_named_on_both_sides)
{
	begin_both(HC_KEY_A, HC_KEY_B, NULL, NULL);
	hc_pair_await_log(&n[0], "its cluster key is not ours");
	hc_pair_await_log(&n[1], "its cluster key is not ours");
	hc_pair_await(&n[0], "node1", "keys differ");
	hc_pair_await(&n[1], "node0", "keys differ");
	status_tells(&n[0], "keys differ");
	status_tells(&n[1], "keys differ");
	end_both();
}
END_TEST

START_TEST(another_cluster_is_named_on_both_sides)
{
	begin_both(HC_KEY_A, HC_KEY_A, "cluster = blue", "cluster = green");
	hc_pair_await_log(&n[0], "its cluster is 'green', ours is 'blue'");
	hc_pair_await_log(&n[1], "its cluster is 'blue', ours is 'green'");
	hc_pair_await(&n[0], "node1", "green");
	hc_pair_await(&n[1], "node0", "blue");
	end_both();
}
END_TEST

static int connect_to(const char *addr)
{
	struct sockaddr_in sa = {.sin_family = AF_INET, .sin_port = htons(PORT)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	ck_assert_int_eq(inet_pton(AF_INET, addr, &sa.sin_addr), 1);
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	return fd;
}

START_TEST(who_speaks_something_else_costs_nothing)
{
	struct timeval patience = {(time_t)hc_patience(10), 0};
	char byte;
	int i, fd;

	begin_both(HC_KEY_A, HC_KEY_A, NULL, NULL);
	hc_pair_await(&n[0], "node1", "up");
	for (i = 0; i < 100; i++) {
		fd = connect_to("127.0.0.1");
		setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
		ck_assert_int_eq(send(fd, "GET / HTTP/1.1\r\n\r\n", 18, MSG_NOSIGNAL), 18);
		while (recv(fd, &byte, 1, 0) > 0) /* the alert */
			;
		close(fd);
	}
	ck_assert(hc_node_logged(&n[0], "does not speak hcomm"));
	ck_assert_uint_le(hc_log_count(&n[0], "does not speak hcomm"), 60);
	ck_assert(hc_pair_shows(&n[0], "node1", "up"));
	end_both();
}
END_TEST

/* ---- the port ---- */

static void taken(bool udp)
{
	char pid[48];
	uint64_t since;
	int fd = hc_port_hold("127.0.0.1", PORT, udp);

	hc_pair_prepare(&n[0], 0, 1, PORT, HC_KEY_A, NULL);
	since = hc_now_ms();
	ck_assert_int_eq(hc_raw_daemon(&run, &n[0], 5000), 1);
	ck_assert_uint_lt(hc_now_ms() - since, hc_patience(1000));
	snprintf(pid, sizeof(pid), "pid %d (test_peers)", (int)getpid());
	ck_assert_msg(strstr(run.err, "127.0.0.1:24300") &&
			      strstr(run.err, udp ? "(UDP)" : "(TCP)"),
		      "%s", run.err);
	ck_assert_msg(strstr(run.err, "Address already in use") && strstr(run.err, pid), "%s",
		      run.err);
	close(fd);
	hc_node_run(&n[0]); /* and then it starts */
	hc_node_end(&n[0]);
}

START_TEST(a_taken_port_is_named_within_a_second)
{
	taken(_i == 1);
}
END_TEST

START_TEST(of_a_range_the_next_free_port_is_taken)
{
	int tcp = hc_port_hold("127.0.0.1", 24310, false),
	    udp = hc_port_hold("127.0.0.1", 24311, true);
	struct hcomm_view_status s;

	hc_node_prepare(&n[0], 1,
			"listen_address = 127.0.0.1\nlisten_port = 24310-24319\n"
			"security = none",
			NULL);
	hc_node_run(&n[0]);
	setenv("HCOMM_SOCKET", n[0].socket, 1);
	hc_ask_status(&s);
	ck_assert_uint_eq(s.listen_port, 24312);
	ck_assert(hc_node_logged(&n[0],
				 "listening on port 24312, the first free one of 24310-24319"));
	hc_node_end(&n[0]);
	close(tcp);
	close(udp);
}
END_TEST

START_TEST(without_a_key_a_node_is_alone_and_says_so)
{
	int fd = hc_port_hold("127.0.0.1", PORT, false); /* it does not want it */
	struct hcomm_view_status s;
	char line[300];

	hc_pair_prepare(&n[0], 0, 2, PORT, NULL, NULL);
	hc_node_run(&n[0]);
	setenv("HCOMM_SOCKET", n[0].socket, 1);
	hc_ask_status(&s);
	ck_assert_str_eq(s.security, "alone");
	ck_assert_uint_eq(s.listen_port, 0);
	snprintf(line, sizeof(line), "alone: no cluster key at %s/no.key; hcommctl key generate",
		 n[0].dir);
	ck_assert_uint_eq(hc_log_count(&n[0], line), 1);
	hc_node_end(&n[0]);
	close(fd);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_test(t, two_with_one_key_meet_and_meet_again);
	tcase_add_test(t, without_security_two_meet_and_it_shows);
	tcase_add_test(t, another_key_is_named_on_both_sides);
	tcase_add_test(t, another_cluster_is_named_on_both_sides);
	tcase_add_test(t, who_speaks_something_else_costs_nothing);
	tcase_add_loop_test(t, a_taken_port_is_named_within_a_second, 0, 2);
	tcase_add_test(t, of_a_range_the_next_free_port_is_taken);
	tcase_add_test(t, without_a_key_a_node_is_alone_and_says_so);
}

int main(void)
{
	hc_ports_own("test_peers");
	return hc_suite_run("peers", add, 60);
}
