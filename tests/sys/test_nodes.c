/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Real daemons on loopback addresses: what one says when another stands still, dies, comes back
 * with or without its state, ends in order, or has an identity that is taken; and that what comes
 * from outside moves nothing.
 *
 * Each end looks different to those who have to mend it, so each has a word of its own, and no test
 * here is content with "not up": it also wants that the other words were not said.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "datagram.h"
#include "dbcheck.h"
#include "eye.h"
#include "pairs.h"
#include "raw.h"
#include "suite.h"

enum { PORT = 24400, LIMIT = 10000 };

#define EV(name) HC_W_event_code_##name

static struct hc_node n[3];
static struct hc_eye eye;

static void await_met(void)
{
	hc_await_node(&n[0], "node1", "up", LIMIT);
	hc_await_node(&n[1], "node0", "up", LIMIT);
	hc_await_path(&n[0], "127.0.0.2:", "normal", LIMIT);
	hc_await_path(&n[1], "127.0.0.1:", "normal", LIMIT);
}

static void begin(const char *top)
{
	unsigned i;

	for (i = 0; i < 2; i++) {
		hc_pair_prepare(&n[i], i, 2, PORT, HC_KEY_A, top);
		hc_node_run(&n[i]);
	}
	await_met();
	hc_eye_open(&eye, &n[0]);
}

static void end(void)
{
	hc_eye_close(&eye);
	hc_node_end(&n[1]);
	hc_node_end(&n[0]);
}

static void want_paths_silent(void)
{
	ck_assert_uint_eq(hc_eye_count(&eye, EV(PATH_UNSTABLE)), 0);
	ck_assert_uint_eq(hc_eye_count(&eye, EV(PATH_DOWN)), 0);
	ck_assert_uint_eq(hc_eye_count(&eye, EV(PATH_NORMAL)), 0);
}

START_TEST(both_see_one_and_the_same)
{
	struct hcomm_view_path p[2];
	struct hcomm_view_node a, b;
	struct hcomm_view_status s[2];

	begin(NULL);
	ck_assert(hc_row_node(&n[0], "node1", &b) && hc_row_node(&n[1], "node0", &a));
	hc_row_status(&n[0], &s[0]);
	hc_row_status(&n[1], &s[1]);
	ck_assert_str_eq(a.node_id, s[0].node_id);
	ck_assert_str_eq(b.node_id, s[1].node_id);
	ck_assert_str_eq(a.boot_id, b.boot_id); /* one kernel */
	ck_assert_uint_eq(a.start, 1);
	ck_assert_uint_eq(a.interval_ms, 100);
	ck_assert(hc_row_path(&n[0], "127.0.0.2:", &p[0]) &&
		  hc_row_path(&n[1], "127.0.0.1:", &p[1]));
	ck_assert_uint_eq(p[0].id, p[1].id);
	ck_assert_str_eq(p[0].local, p[1].remote);
	ck_assert_str_eq(p[0].remote, p[1].local);
	ck_assert_uint_gt(p[0].rtt_us, 0);
	ck_assert_uint_eq(s[0].peers_up + s[1].peers_up, 2);
	ck_assert_uint_eq(s[0].paths_good, 1);
	end();
}
END_TEST

START_TEST(one_that_stands_still_is_unreachable_not_down)
{
	const struct hc_seen *unstable, *down;
	uint64_t at;

	begin(NULL);
	at = hc_now_ns();
	kill(n[1].pid, SIGSTOP);
	unstable = hc_eye_await(&eye, EV(PATH_UNSTABLE), "no beat for 3", LIMIT);
	down = hc_eye_await(&eye, EV(PATH_DOWN), "127.0.0.2", LIMIT);
	hc_eye_await(&eye, EV(NODE_UNREACHABLE), "node1", LIMIT);
	/* what it sent last may be a beat old at the stop */
	ck_assert_uint_ge(unstable->at_ns - at, 190000000u);
	ck_assert_uint_le(unstable->at_ns - at, hc_patience(700) * UINT64_C(1000000));
	ck_assert_uint_ge(down->at_ns - at, 390000000u);
	ck_assert_uint_eq(hc_eye_count(&eye, EV(DAEMON_DOWN)), 0);
	kill(n[1].pid, SIGCONT);
	await_met();
	hc_await_journal(&n[1], EV(NOT_SCHEDULED), "not scheduled for ", LIMIT);
	ck_assert_uint_eq(hc_journal_count(&n[1], EV(NOT_SCHEDULED), NULL), 1);
	ck_assert_uint_eq(hc_journal_count(&n[1], EV(NODE_UNREACHABLE), NULL), 0);
	ck_assert_uint_eq(hc_journal_count(&n[1], EV(PATH_UNSTABLE), "no beat"), 0);
	ck_assert_uint_eq(hc_eye_count(&eye, EV(NODE_RESTARTED)), 0);
	end();
}
END_TEST

/* Its kernel says at once what silence would say only later, and says more: the path lives. */
START_TEST(a_killed_daemon_is_down_at_once_and_its_path_is_not)
{
	struct hcomm_view_node row;
	uint64_t at, took;

	begin(NULL);
	at = hc_now_ns();
	hc_node_kill(&n[1]);
	took = hc_eye_await(&eye, EV(DAEMON_DOWN), "127.0.0.2", LIMIT)->at_ns - at;
	ck_assert_msg(took < hc_patience(50) * UINT64_C(1000000), "after %u us",
		      (unsigned)(took / 1000));
	hc_await_node(&n[0], "node1", "daemon-down", LIMIT);
	hc_await_path(&n[0], "127.0.0.2:", "normal", LIMIT);
	hc_node_run(&n[1]);
	hc_eye_await(&eye, EV(NODE_RESTARTED), "state intact", LIMIT);
	await_met();
	ck_assert(hc_row_node(&n[0], "node1", &row));
	ck_assert_uint_eq(row.restarts, 1);
	ck_assert_uint_eq(row.start, 2);
	want_paths_silent();
	ck_assert_uint_eq(hc_eye_count(&eye, EV(NODE_UNREACHABLE)), 0);
	ck_assert_uint_eq(hc_eye_count(&eye, EV(NODE_REBORN)), 0);
	end();
}
END_TEST

static void remove_database(const struct hc_node *node)
{
	char path[300];
	struct dirent *e;
	unsigned removed = 0;
	DIR *d;

	snprintf(path, sizeof(path), "%s/state", node->dir);
	d = opendir(path);
	ck_assert_ptr_nonnull(d);
	while ((e = readdir(d)))
		if (strstr(e->d_name, ".db")) {
			ck_assert_int_eq(unlinkat(dirfd(d), e->d_name, 0), 0);
			removed++;
		}
	closedir(d);
	ck_assert_uint_gt(removed, 0);
}

START_TEST(without_its_database_it_begins_anew)
{
	struct hcomm_view_node before, after;

	begin(NULL);
	ck_assert(hc_row_node(&n[0], "node1", &before));
	hc_node_kill(&n[1]);
	remove_database(&n[1]);
	hc_node_run(&n[1]);
	hc_eye_await(&eye, EV(NODE_REBORN), "node1", LIMIT);
	await_met();
	ck_assert(hc_row_node(&n[0], "node1", &after));
	ck_assert_str_eq(before.node_id, after.node_id); /* it is that machine */
	ck_assert_uint_ne(before.incarnation, after.incarnation);
	ck_assert_uint_eq(hc_eye_count(&eye, EV(NODE_RESTARTED)), 0);
	end();
}
END_TEST

START_TEST(a_stop_in_order_is_announced)
{
	struct hcomm_view_node row;

	begin(NULL);
	hc_node_stop(&n[1]);
	hc_eye_await(&eye, EV(NODE_HOLD), "restarts as planned", LIMIT);
	ck_assert(hc_row_node(&n[0], "node1", &row));
	ck_assert_str_eq(row.state, "restarting");
	ck_assert_msg(strstr(row.cause, "restarts as planned"), "%s", row.cause);
	hc_node_run(&n[1]);
	hc_eye_await(&eye, EV(NODE_RESTARTED), "state intact", LIMIT);
	await_met();
	ck_assert_uint_eq(hc_eye_count(&eye, EV(DAEMON_DOWN)), 0);
	want_paths_silent();
	end();
}
END_TEST

/* Stopped in order (0) or killed (1): who does not come back is unreachable in the end. */
START_TEST(one_that_does_not_come_back_is_given_up)
{
	begin("daemon_grace_s = 1");
	if (_i)
		hc_node_kill(&n[1]);
	else
		hc_node_stop(&n[1]);
	hc_eye_await(&eye, EV(NODE_UNREACHABLE), "did not come back within ", LIMIT);
	hc_eye_await(&eye, EV(PATH_DOWN), "127.0.0.2", LIMIT);
	ck_assert_uint_eq(hc_eye_count(&eye, EV(PATH_UNSTABLE)), 0);
	hc_node_run(&n[1]);
	await_met();
	end();
}
END_TEST

/* ---- identity ---- */

static void copy_identity(const struct hc_node *from, const struct hc_node *to)
{
	char a[300], b[300];

	snprintf(a, sizeof(a), "%s/state/node-id", from->dir);
	snprintf(b, sizeof(b), "%s/state/node-id", to->dir);
	hc_copy_file(a, b);
}

START_TEST(a_copied_state_directory_is_named_with_both_nodes)
{
	struct hcomm_view_node row;

	begin(NULL);
	hc_pair_prepare(&n[2], 2, 3, PORT, HC_KEY_A, NULL);
	copy_identity(&n[1], &n[2]);
	hc_node_run(&n[2]);
	hc_eye_await(&eye, EV(NODE_REFUSED), "have one identity", LIMIT);
	hc_pair_await_log(&n[2], "have one identity");
	hc_pair_await_log(&n[1], "have one identity");
	ck_assert_ptr_nonnull(strstr(hc_journal_last(&n[0], EV(NODE_REFUSED)), "node1"));
	ck_assert_ptr_nonnull(strstr(hc_journal_last(&n[0], EV(NODE_REFUSED)), "node2"));
	/* the first one stays */
	await_met();
	ck_assert(hc_row_node(&n[0], "node1", &row));
	ck_assert_uint_eq(row.restarts, 0);
	want_paths_silent();
	ck_assert_uint_eq(hc_eye_count(&eye, EV(DAEMON_DOWN)), 0);
	ck_assert_uint_eq(hc_eye_count(&eye, EV(NODE_REBORN)), 0);
	hc_node_end(&n[2]);
	end();
}
END_TEST

START_TEST(one_with_our_own_identity_is_named)
{
	hc_pair_prepare(&n[0], 0, 2, PORT, HC_KEY_A, NULL);
	hc_node_run(&n[0]);
	hc_pair_prepare(&n[1], 1, 2, PORT, HC_KEY_A, NULL);
	copy_identity(&n[0], &n[1]);
	hc_node_run(&n[1]);
	hc_pair_await_log(&n[0], "have one identity");
	hc_pair_await_log(&n[1], "have one identity");
	hc_await_journal(&n[0], EV(NODE_REFUSED), "node1", LIMIT);
	hc_await_journal(&n[1], EV(NODE_REFUSED), "node0", LIMIT);
	hc_node_end(&n[1]);
	hc_node_end(&n[0]);
}
END_TEST

/* ---- from outside ---- */

static struct sockaddr_in address_of(unsigned i)
{
	struct sockaddr_in sa = {.sin_family = AF_INET, .sin_port = htons(PORT)};

	sa.sin_addr.s_addr = htonl(INADDR_LOOPBACK + i);
	return sa;
}

/* Looks like a beat as far as one can without the key. */
static size_t forge(uint8_t *b, uint32_t k)
{
	size_t i, len = HC_BEAT_BYTES + HC_DATAGRAM_TAG;

	for (i = 0; i < len; i++)
		b[i] = (uint8_t)(k * 31 + i * 7);
	b[0] = HC_DATAGRAM_MAGIC >> 8;
	b[1] = HC_DATAGRAM_MAGIC & 0xff;
	b[2] = HC_DATAGRAM_VERSION;
	b[3] = (uint8_t)(240 + k % 4);
	/* keys that may well be in use: serial above, slot of the peer below */
	b[4] = 0;
	b[5] = (uint8_t)(k / 16 % 4);
	b[6] = 0;
	b[7] = (uint8_t)(k % 4);
	return k % 5 ? len : k % 70;
}

static bool refused_so_many(void *ctx)
{
	const uint64_t *wanted = ctx;
	struct hcomm_view_status s;

	hc_row_status(&n[0], &s);
	return s.refused_datagrams >= *wanted;
}

START_TEST(forged_datagrams_are_counted_and_not_answered)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in to = address_of(0);
	struct hcomm_view_path before, after;
	uint64_t wanted = 2000, k;
	uint8_t b[128];

	begin(NULL);
	ck_assert(hc_row_path(&n[0], "127.0.0.2:", &before));
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	for (k = 0; k < wanted; k++) {
		size_t len = forge(b, (uint32_t)k);

		ck_assert_int_eq(send(fd, b, len, 0), (ssize_t)len);
		if (k % 100 == 99) { /* not more than its socket holds */
			uint64_t so_far = k + 1;

			hc_await("forged datagrams are counted", refused_so_many, &so_far, LIMIT);
		}
	}
	ck_assert_int_eq(recv(fd, b, sizeof(b), MSG_DONTWAIT), -1);
	ck_assert(hc_row_path(&n[0], "127.0.0.2:", &after));
	ck_assert_uint_eq(after.changes, before.changes);
	ck_assert_uint_eq(after.missed, before.missed);
	ck_assert_str_eq(after.state, "normal");
	ck_assert_uint_eq(eye.count + hc_eye_count(&eye, EV(NODE_UP)), 0);
	close(fd);
	end();
}
END_TEST

static bool strangers_so_many(void *ctx)
{
	const uint64_t *wanted = ctx;
	struct hcomm_view_status s;

	hc_row_status(&n[0], &s);
	return s.strangers + s.no_room >= *wanted;
}

/* Half-open connections and a port scan; a peer that comes at that time still gets in. */
START_TEST(connections_that_say_nothing_keep_nobody_out)
{
	struct sockaddr_in to = address_of(0);
	uint64_t wanted = 200;
	int fd[200];
	unsigned i;

	begin(NULL);
	for (i = 0; i < 400; i++) {
		int k = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

		ck_assert_int_eq(connect(k, (struct sockaddr *)&to, sizeof(to)), 0);
		if (i % 2)
			close(k);
		else
			fd[i / 2] = k;
	}
	hc_node_kill(&n[1]);
	hc_node_run(&n[1]);
	hc_eye_await(&eye, EV(NODE_RESTARTED), "node1", LIMIT);
	await_met();
	want_paths_silent();
	hc_await("who said nothing is counted", strangers_so_many, &wanted, LIMIT);
	for (i = 0; i < 200; i++)
		close(fd[i]);
	end();
}
END_TEST

static void add(TCase *t)
{
	tcase_add_test(t, both_see_one_and_the_same);
	tcase_add_test(t, one_that_stands_still_is_unreachable_not_down);
	tcase_add_test(t, a_killed_daemon_is_down_at_once_and_its_path_is_not);
	tcase_add_test(t, without_its_database_it_begins_anew);
	tcase_add_test(t, a_stop_in_order_is_announced);
	tcase_add_loop_test(t, one_that_does_not_come_back_is_given_up, 0, 2);
	tcase_add_test(t, a_copied_state_directory_is_named_with_both_nodes);
	tcase_add_test(t, one_with_our_own_identity_is_named);
	tcase_add_test(t, forged_datagrams_are_counted_and_not_answered);
	tcase_add_test(t, connections_that_say_nothing_keep_nobody_out);
}

int main(void)
{
	hc_ports_own("test_nodes");
	return hc_suite_run("nodes", add, 60);
}
