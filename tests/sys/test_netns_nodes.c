/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Real daemons in network namespaces: cables that are pulled, packets that are lost in one
 * direction or by size or by kind, ports that go and come back. Each is named by both ends with the
 * link and the cause; what is whole stays in use; and all is well again when the fault is mended.
 *
 * Needs root, and some nft.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "eye.h"
#include "lab.h"
#include "suite.h"

enum { LIMIT = 10000 };

#define EV(name) HC_W_event_code_##name

static struct hc_lab lab;
static struct hc_eye eye[2];

static struct hc_node *node(unsigned i)
{
	return &lab.at[i].node;
}

/* Two nodes that met. False: skipped. */
static bool begin(unsigned rails, unsigned mtu, const char *top)
{
	unsigned i;

	if (!hc_lab_enter(&lab, 2, rails, mtu))
		return false;
	hc_lab_start(&lab, top);
	for (i = 0; i < 2; i++)
		hc_eye_open(&eye[i], node(i));
	return true;
}

static void end(void)
{
	hc_eye_close(&eye[0]);
	hc_eye_close(&eye[1]);
	hc_lab_end(&lab);
}

static void want_nobody_accused(void)
{
	unsigned i;

	for (i = 0; i < 2; i++) {
		ck_assert_uint_eq(hc_eye_count(&eye[i], EV(NODE_UNREACHABLE)), 0);
		ck_assert_uint_eq(hc_eye_count(&eye[i], EV(DAEMON_DOWN)), 0);
		ck_assert_uint_eq(hc_eye_count(&eye[i], EV(NODE_RESTARTED)), 0);
	}
}

static void want_other_rail_normal(void)
{
	hc_await_path(node(0), "10.71.1.2:", "normal", 0);
	hc_await_path(node(1), "10.71.1.1:", "normal", 0);
}

START_TEST(a_cable_out_of_the_switch)
{
	if (!begin(2, 1500, NULL))
		return;
	hc_ip("link set p1r0 nomaster\n");
	hc_eye_await(&eye[0], EV(PATH_UNSTABLE), "path to node1 over rail0", LIMIT);
	hc_eye_await(&eye[1], EV(PATH_UNSTABLE), "path to node0 over rail0", LIMIT);
	hc_eye_await(&eye[0], EV(PATH_DOWN), "no beat for", LIMIT);
	hc_eye_await(&eye[1], EV(PATH_DOWN), "no beat for", LIMIT);
	want_other_rail_normal();
	hc_await_node(node(0), "node1", "up", 0);
	hc_ip("link set p1r0 master switch0\n");
	hc_lab_await_normal(&lab, LIMIT);
	want_nobody_accused();
	ck_assert_uint_eq(hc_eye_count(&eye[0], EV(PATH_DOWN)), 1); /* not the other rail's */
	end();
}
END_TEST

/* Nobody's send fails, and the one whose packets are lost hears all that comes. */
START_TEST(lost_in_one_direction_is_seen_by_both)
{
	struct hcomm_view_path p;

	if (!begin(2, 1500, NULL))
		return;
	hc_lab_ip(&lab, 0,
		  "neigh replace 10.71.0.2 lladdr 02:00:00:00:00:99 nud permanent dev rail0\n");
	hc_eye_await(&eye[1], EV(PATH_UNSTABLE), "no beat for", LIMIT);
	hc_eye_await(&eye[0], EV(PATH_UNSTABLE), "the peer has not heard us", LIMIT);
	ck_assert(hc_row_path(node(0), "10.71.0.2:", &p));
	ck_assert_uint_lt(p.heard_ms, hc_patience(1000)); /* it is the other direction */
	want_other_rail_normal();
	hc_lab_ip(&lab, 0, "neigh del 10.71.0.2 dev rail0\n");
	hc_lab_await_normal(&lab, LIMIT);
	want_nobody_accused();
	end();
}
END_TEST

/* A firewall that somebody has switched on: the connection lives, the beats do not. */
START_TEST(dropped_beats_of_an_only_rail)
{
	if (!begin(1, 1500, NULL))
		return;
	hc_lab_go(&lab, 1);
	if (!hc_nft("table inet t { chain c { type filter hook input priority 0; udp dport 16660 "
		    "drop; }; }\n")) {
		printf("SKIP: nft does not work\n");
		hc_lab_home(&lab);
		end();
		return;
	}
	hc_lab_home(&lab);
	hc_eye_await(&eye[1], EV(PATH_DOWN), "no beat for", LIMIT);
	hc_eye_await(&eye[0], EV(PATH_UNSTABLE), "the peer has not heard us", LIMIT);
	hc_lab_go(&lab, 1);
	ck_assert(hc_nft("delete table inet t\n"));
	hc_lab_home(&lab);
	hc_lab_await_normal(&lab, LIMIT);
	ck_assert_uint_eq(hc_eye_count(&eye[0], EV(DAEMON_DOWN)), 0);
	ck_assert_uint_eq(hc_eye_count(&eye[1], EV(DAEMON_DOWN)), 0);
	end();
}
END_TEST

static void await_mtu(unsigned i, const char *remote, uint32_t local, uint32_t peer, uint32_t used)
{
	uint64_t end_ms = hc_now_ms() + hc_patience(LIMIT);
	struct hcomm_view_path p;

	do {
		ck_assert(hc_row_path(node(i), remote, &p));
		if (p.mtu_local == local && p.mtu_peer == peer && p.mtu_used == used)
			return;
	} while (hc_now_ms() < end_ms);
	ck_abort_msg("node%u: %s: %u here, %u there, %u used", i, remote, p.mtu_local, p.mtu_peer,
		     p.mtu_used);
}

START_TEST(another_mtu_while_beats_run)
{
	if (!begin(1, 9000, NULL))
		return;
	await_mtu(0, "10.71.0.2:", 9000, 9000, 9000);
	await_mtu(1, "10.71.0.1:", 9000, 9000, 9000);
	hc_lab_ip(&lab, 1, "link set rail0 mtu 1400\n");
	hc_eye_await(&eye[0], EV(MTU_MISMATCH), "9000 here, 1400 there; 1400 is used", LIMIT);
	hc_eye_await(&eye[1], EV(MTU_MISMATCH), "1400 here, 9000 there; 1400 is used", LIMIT);
	await_mtu(0, "10.71.0.2:", 9000, 1400, 1400);
	await_mtu(1, "10.71.0.1:", 1400, 9000, 1400);
	ck_assert_uint_eq(hc_eye_count(&eye[0], EV(MTU_MISMATCH)), 1);
	ck_assert_uint_eq(hc_eye_count(&eye[1], EV(MTU_MISMATCH)), 1);
	ck_assert_uint_eq(hc_eye_count(&eye[0], EV(PATH_UNSTABLE)), 0);
	ck_assert_uint_eq(hc_eye_count(&eye[1], EV(PATH_UNSTABLE)), 0);
	hc_lab_ip(&lab, 1, "link set rail0 mtu 9000\n");
	await_mtu(0, "10.71.0.2:", 9000, 9000, 9000);
	await_mtu(1, "10.71.0.1:", 9000, 9000, 9000);
	want_nobody_accused();
	end();
}
END_TEST

/* Both ports say 9000, and a switch between them takes less, without a word. */
START_TEST(large_packets_vanish_on_the_way)
{
	if (!begin(1, 9000, "mtu_recheck_s = 1"))
		return;
	await_mtu(0, "10.71.0.2:", 9000, 9000, 9000);
	hc_ip("link set p1r0 mtu 1500\n");
	hc_eye_await(&eye[0], EV(PATH_UNSTABLE), "packets of 9000 bytes are lost, 1500 pass",
		     LIMIT);
	hc_await_path(node(0), "10.71.0.2:", "unstable", 0);
	await_mtu(0, "10.71.0.2:", 9000, 9000, 1500);
	hc_eye_await(&eye[1], EV(MTU_MISMATCH), "packets of 9000 bytes are lost", LIMIT);
	hc_ip("link set p1r0 mtu 9000\n");
	hc_lab_await_normal(&lab, LIMIT);
	await_mtu(0, "10.71.0.2:", 9000, 9000, 9000);
	want_nobody_accused();
	end();
}
END_TEST

START_TEST(an_interface_that_is_made_anew)
{
	char path[64];

	if (!begin(2, 1500, NULL))
		return;
	hc_lab_ip(&lab, 1, "link del rail0\n");
	hc_eye_await(&eye[1], EV(PORT_CHANGED), "rail0", LIMIT);
	hc_eye_await(&eye[1], EV(PATH_DOWN), "our port", LIMIT);
	hc_eye_await(&eye[0], EV(PATH_DOWN), "path to node1 over rail0", LIMIT);
	want_other_rail_normal();
	hc_ip("link add p1r0 type veth peer name rail0\nlink set p1r0 master switch0 up\n");
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)getpid(), lab.at[1].ns);
	hc_ip("link set rail0 netns %s\n", path);
	hc_lab_ip(&lab, 1, "addr add 10.71.0.2/24 dev rail0\nlink set rail0 up\n");
	hc_lab_await_normal(&lab, LIMIT);
	want_nobody_accused();
	end();
}
END_TEST

/* The port is there and says that it is down: nothing has to be waited for. */
START_TEST(a_port_that_is_set_down_is_named_at_once)
{
	uint64_t at, took;

	if (!begin(2, 1500, NULL))
		return;
	at = hc_now_ns();
	hc_lab_ip(&lab, 1, "link set rail0 down\n");
	took = hc_eye_await(&eye[1], EV(PATH_DOWN), "our port is down", LIMIT)->at_ns - at;
	ck_assert_uint_lt(took, hc_patience(200) * UINT64_C(1000000));
	hc_eye_await(&eye[0], EV(PATH_DOWN), "is down: the peer's port is gone", LIMIT);
	want_other_rail_normal();
	hc_lab_ip(&lab, 1, "link set rail0 up\n");
	hc_lab_await_normal(&lab, LIMIT);
	want_nobody_accused();
	end();
}
END_TEST

static void add(TCase *t)
{
	tcase_add_test(t, a_cable_out_of_the_switch);
	tcase_add_test(t, lost_in_one_direction_is_seen_by_both);
	tcase_add_test(t, dropped_beats_of_an_only_rail);
	tcase_add_test(t, another_mtu_while_beats_run);
	tcase_add_test(t, large_packets_vanish_on_the_way);
	tcase_add_test(t, an_interface_that_is_made_anew);
	tcase_add_test(t, a_port_that_is_set_down_is_named_at_once);
}

int main(void)
{
	return hc_suite_run("netns_nodes", add, 60);
}
