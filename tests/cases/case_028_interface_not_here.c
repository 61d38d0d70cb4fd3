/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Case 28: the interface that the configuration names does not exist.
 *
 * Elsewhere a typo is passed over and comes up later as an error of the inside. Here the daemon is
 * refused within a second, with what is here; names are compared as they stand, so the beginning
 * of one is no name; and an empty value means the automatic choice.
 */
#include <stdlib.h>
#include <string.h>

#include "netns.h"
#include "harness.h"
#include "raw.h"
#include "suite.h"

#define OPEN "tests/cases/open/"

static struct hc_run run;
static struct hc_node node;

static bool begin(void)
{
	if (!hc_netns_enter())
		return false;
	hc_ip("link add eth0 type veth peer name p-eth0\naddr add 10.71.0.1/24 dev eth0\n"
	      "addr add fd00::1/64 dev eth0\nlink add none type veth peer name p-none\n");
	return true;
}

/* `what` of the line that refuses it, or NULL: it starts. */
static void expect(const char *top, const char *what)
{
	uint64_t since = hc_now_ms();

	hc_node_prepare(&node, 1, top, NULL);
	if (!what) {
		hc_node_run(&node);
		hc_node_end(&node);
		return;
	}
	ck_assert_int_eq(hc_raw_daemon(&run, &node, 5000), 2);
	ck_assert_uint_lt(hc_now_ms() - since, hc_patience(1000));
	ck_assert_msg(strstr(run.err, what) != NULL, "no '%s': %s", what, run.err);
	ck_assert_ptr_nonnull(strstr(run.err, "hcommd.conf:"));
	ck_assert_ptr_nonnull(strstr(run.err, "lo (127.0.0.1, ::1)"));
	ck_assert_ptr_nonnull(strstr(run.err, "eth0 (10.71.0.1, fd00::1)"));
	ck_assert_ptr_nonnull(strstr(run.err, "none (no address)"));
	hc_node_end(&node);
}

START_TEST(refused_with_what_is_here)
{
	char *found = hc_read_file(OPEN "c028-interface-not-here.conf");

	ck_assert_ptr_nonnull(found);
	if (begin())
		expect(found, "there is no interface 'eth77'");
	free(found);
}
END_TEST

START_TEST(the_beginning_of_a_name_is_no_name)
{
	if (!begin())
		return;
	expect("listen_interface = eth", "there is no interface 'eth'");
	expect("listen_interface = eth0, eth0x", "there is no interface 'eth0x'");
	expect("listen_interface = eth0", NULL);
	expect("listen_interface = ^eth", NULL);
}
END_TEST

START_TEST(empty_is_automatic)
{
	if (begin())
		expect("listen_interface =", NULL);
}
END_TEST

START_TEST(the_check_of_the_configuration_says_it_too)
{
	char path[300],
		*argv[] = {path, (char[]){"--config"}, node.conf, (char[]){"--check-config"}, NULL};

	if (!begin())
		return;
	hc_program("hcommd", path, sizeof(path));
	hc_node_prepare(&node, 1, "listen_interface = eth", NULL);
	ck_assert_int_eq(hc_run(&run, 5000, argv), 2);
	ck_assert_ptr_nonnull(strstr(run.err, "there is no interface 'eth'"));
	hc_node_end(&node);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_test(t, refused_with_what_is_here);
	tcase_add_test(t, the_beginning_of_a_name_is_no_name);
	tcase_add_test(t, empty_is_automatic);
	tcase_add_test(t, the_check_of_the_configuration_says_it_too);
}

int main(void)
{
	return hc_suite_run("case 28", add, 30);
}
