/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cases 10, 11 and 16: which device, and which address, does a rank really get?
 *
 * A container that owns devices 4 and 7 got a table with physical numbers while one layer wanted
 * logical ones, and the error was two bare numbers. Elsewhere a job on devices 2 and 3 took the
 * first addresses of the table, so that a second job could never start beside it. And a table had
 * an address that the device does not have.
 *
 * Device numbers are physical here. A number above the count of devices is no fault; a number
 * that is not here is refused with the list of those that are. An endpoint goes with its device.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ranks.h"
#include "suite.h"

#define OPEN "tests/cases/open/"

static struct hc_node node;

static void start(const char *sections)
{
	hc_node_prepare(&node, 0, NULL, sections);
	setenv("HCOMM_SOCKET", node.socket, 1);
	hc_node_run(&node);
}

static const char four_and_seven[] = "[device 4]\nkind = npu\nsimulated = yes\n"
				     "[device 7]\nkind = npu\nsimulated = yes\n";

static int join(struct hc_rank *r, const char *file, uint32_t rank, int timeout_ms,
		struct hc_answer *a)
{
	struct hc_order o = {.what = HC_DO_JOIN_TABLE, .rank = rank, .timeout_ms = timeout_ms};

	snprintf(o.text, sizeof(o.text), OPEN "%s", file);
	return hc_rank_do(r, &o, a);
}

START_TEST(physical_numbers_bind)
{
	static struct hc_rank r[2];
	struct hc_order o = {.what = HC_DO_JOIN_TABLE,
			     .timeout_ms = 10000,
			     .text = OPEN "c010-physical-4-and-7.json",
			     .name = "physical"};
	struct hcomm_view_member m;
	struct hc_answer a;

	start(four_and_seven);
	for (uint32_t i = 0; i < 2; i++) {
		hc_rank_spawn(&r[i]);
		o.rank = i;
		hc_rank_tell(&r[i], &o);
	}
	for (uint32_t i = 0; i < 2; i++) {
		hc_rank_hear(&r[i], &a, 10000);
		ck_assert_msg(!a.result, "%s", a.text);
		ck_assert_uint_eq(a.nranks, 2);
	}
	ck_assert(hc_ask_member("physical", 0, &m));
	ck_assert_uint_eq(m.device, 4);
	ck_assert(hc_ask_member("physical", 1, &m));
	ck_assert_uint_eq(m.device, 7); /* above the count of devices, and right */
	ck_assert_str_eq(m.address, "192.0.2.17");
	hc_ranks_quit(r, 2);
	hc_node_end(&node);
}
END_TEST

START_TEST(a_number_that_is_not_here_is_refused_with_those_that_are)
{
	static struct hc_rank r;
	struct hc_answer a;

	start(four_and_seven);
	hc_rank_spawn(&r);
	ck_assert_int_eq(join(&r, "c010-logical-1-on-4-and-7.json", 1, 10000, &a),
			 HCOMM_E_DEVICE_OFFLINE);
	ck_assert_msg(strstr(a.text, "device 1") && strstr(a.text, "rank 1"), "%s", a.text);
	ck_assert_msg(strstr(a.text, "4, 7") != NULL, "the devices here are not listed: %s",
		      a.text);
	ck_assert_uint_lt((a.end_ns - a.began_ns) / 1000000, hc_patience(1000));
	hc_rank_quit(&r);
	hc_node_end(&node);
}
END_TEST

/* A job of two ranks on two of eight devices: a table that lists only those two. */
static void write_pair(char *path, size_t size, unsigned first)
{
	char text[1024];

	snprintf(path, size, "%s/pair-%u.json", node.dir, first);
	snprintf(text, sizeof(text),
		 "{\"version\":\"1.0\",\"status\":\"completed\",\"server_count\":\"1\","
		 "\"server_list\":[{\"server_id\":\"node_a\",\"device\":["
		 "{\"device_id\":\"%u\",\"device_ip\":\"192.0.2.%u\",\"rank_id\":\"0\"},"
		 "{\"device_id\":\"%u\",\"device_ip\":\"192.0.2.%u\",\"rank_id\":\"1\"}]}]}",
		 first, 60 + first, first + 1, 61 + first);
	hc_replace_file(path, text); /* the first rank may be reading it */
}

START_TEST(two_jobs_on_one_node_have_their_own_devices_and_addresses)
{
	static struct hc_rank r[4];
	struct hc_order o = {.what = HC_DO_JOIN_TABLE, .timeout_ms = 10000};
	static const char *const names[2] = {"job-a", "job-b"};
	static const unsigned first[2] = {2, 4};
	struct hcomm_view_domain d;
	struct hcomm_view_member m;
	struct hc_answer a;
	char address[64];

	hc_node_start(&node, 8, NULL);
	for (uint32_t i = 0; i < 4; i++) {
		write_pair(o.text, sizeof(o.text), first[i / 2]);
		snprintf(o.name, sizeof(o.name), "%s", names[i / 2]);
		o.rank = i % 2;
		hc_rank_spawn(&r[i]);
		hc_rank_tell(&r[i], &o);
	}
	for (uint32_t i = 0; i < 4; i++) {
		hc_rank_hear(&r[i], &a, 10000);
		ck_assert_msg(!a.result, "%s", a.text);
	}
	for (uint32_t i = 0; i < 4; i++) { /* both ACTIVE together */
		ck_assert(hc_ask_domain(names[i / 2], &d));
		ck_assert_str_eq(d.state, "ACTIVE");
		ck_assert(hc_ask_member(names[i / 2], i % 2, &m));
		ck_assert_uint_eq(m.device, first[i / 2] + i % 2);
		snprintf(address, sizeof(address), "192.0.2.%u", 60 + m.device);
		ck_assert_str_eq(m.address, address);
	}
	hc_ranks_quit(r, 4);
	hc_node_end(&node);
}
END_TEST

/* The same by one process for each job, that takes its devices without any table. */
START_TEST(two_jobs_take_listed_devices)
{
	static const uint32_t devices[2][2] = {{2, 3}, {4, 5}};
	struct hcomm_config c = HCOMM_INIT(struct hcomm_config);
	struct hcomm_session *s;
	struct hcomm_view_member m;
	hcomm_domain d[2];

	hc_node_start(&node, 8, NULL);
	ck_assert_int_eq(hcomm_open(NULL, &s), 0);
	c.name = "first";
	ck_assert_int_eq(hcomm_join_all_local(s, devices[0], 2, &c, 10000, &d[0]), 0);
	c.name = "second";
	ck_assert_int_eq(hcomm_join_all_local(s, devices[1], 2, &c, 10000, &d[1]), 0);
	ck_assert(hc_ask_member("first", 0, &m));
	ck_assert_uint_eq(m.device, 2);
	ck_assert(hc_ask_member("second", 1, &m));
	ck_assert_uint_eq(m.device, 5);
	ck_assert_int_eq(hcomm_leave(d[0], 5000), 0);
	ck_assert_int_eq(hcomm_leave(d[1], 5000), 0);
	hcomm_close(s);
	hc_node_end(&node);
}
END_TEST

/* Eight ranks on devices that carry addresses; the whole table of case 11. */
START_TEST(endpoints_go_by_device_not_by_place)
{
	static struct hc_rank r[8];
	struct hc_order o = {.what = HC_DO_JOIN_TABLE,
			     .timeout_ms = 10000,
			     .text = OPEN "c011-eight-devices-use-2-3.json",
			     .name = "all"};
	struct hcomm_view_member m;
	struct hc_answer a;
	char address[64];

	hc_node_start(&node, 8, NULL);
	for (uint32_t i = 0; i < 8; i++) {
		hc_rank_spawn(&r[i]);
		o.rank = i;
		hc_rank_tell(&r[i], &o);
	}
	for (uint32_t i = 0; i < 8; i++) {
		hc_rank_hear(&r[i], &a, 10000);
		ck_assert_msg(!a.result, "%s", a.text);
	}
	for (uint32_t i = 0; i < 8; i++) {
		ck_assert(hc_ask_member("all", i, &m));
		snprintf(address, sizeof(address), "192.0.2.%u", 60 + m.device);
		ck_assert_str_eq(m.address, address);
	}
	hc_ranks_quit(r, 8);
	hc_node_end(&node);
}
END_TEST

/* Compared only with what is known: device 0 has 192.0.2.11 by configuration. */
START_TEST(an_address_that_the_device_does_not_have_is_refused)
{
	static struct hc_rank r;
	struct hc_order o = {.what = HC_DO_JOIN_TABLE,
			     .rank = 1,
			     .server = "node_b",
			     .timeout_ms = 5000,
			     .text = OPEN "c016-address-not-local.json"};
	struct hc_answer a;

	start("[device 0]\nkind = npu\nsimulated = yes\naddress = 192.0.2.11\n");
	hc_rank_spawn(&r);
	ck_assert_int_ne(hc_rank_do(&r, &o, &a), 0);
	ck_assert_msg(strstr(a.text, "192.0.2.99") && strstr(a.text, "192.0.2.11") &&
			      strstr(a.text, "rank 1"),
		      "%s", a.text);
	ck_assert_uint_lt((a.end_ns - a.began_ns) / 1000000, hc_patience(1000));
	hc_rank_quit(&r);
	hc_node_end(&node);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_test(t, physical_numbers_bind);
	tcase_add_test(t, a_number_that_is_not_here_is_refused_with_those_that_are);
	tcase_add_test(t, two_jobs_on_one_node_have_their_own_devices_and_addresses);
	tcase_add_test(t, two_jobs_take_listed_devices);
	tcase_add_test(t, endpoints_go_by_device_not_by_place);
	tcase_add_test(t, an_address_that_the_device_does_not_have_is_refused);
}

int main(void)
{
	return hc_suite_run("case_010_device_numbers", add, 60);
}
