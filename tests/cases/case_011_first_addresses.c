/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Case 11: a subset of the devices took the first addresses of the table.
 *
 * With devices 2 and 3 given to a job, its two workers took entries 0 and 1 of a table of eight,
 * so a second job on devices 4 and 5 could never run beside it. Here an endpoint belongs to its
 * device: whichever devices a domain is made of, in a part of the table's domain as in one of its
 * own, its ranks have the addresses of those devices, and both domains are ACTIVE together.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ranks.h"
#include "suite.h"

#define TABLE "tests/cases/open/c011-eight-devices-use-2-3.json"

static struct hc_node node;
static const uint32_t devices[2][2] = {{2, 3}, {4, 5}};
static const char *const names[2] = {"job-a", "job-b"};

static void want_both(void)
{
	struct hcomm_view_domain d;
	struct hcomm_view_member m;
	char address[64];

	for (unsigned i = 0; i < 4; i++) {
		ck_assert(hc_ask_domain(names[i / 2], &d));
		ck_assert_str_eq(d.state, "ACTIVE");
		ck_assert_uint_eq(d.ranks, 2);
		ck_assert(hc_ask_member(names[i / 2], i % 2, &m));
		ck_assert_uint_eq(m.device, devices[i / 2][i % 2]);
		snprintf(address, sizeof(address), "192.0.2.%u", 60 + m.device);
		ck_assert_str_eq(m.address, address);
	}
}

/* The devices carry the addresses of the table. */
static void start(void)
{
	char sections[2048] = "";

	for (unsigned i = 0; i < 8; i++)
		snprintf(sections + strlen(sections), sizeof(sections) - strlen(sections),
			 "[device %u]\nkind = npu\nsimulated = yes\naddress = 192.0.2.%u\n", i,
			 60 + i);
	hc_node_prepare(&node, 0, NULL, sections);
	setenv("HCOMM_SOCKET", node.socket, 1);
	hc_node_run(&node);
}

START_TEST(parts_of_the_table_have_the_addresses_of_their_devices)
{
	static struct hc_rank r[8];
	struct hc_order o = {
		.what = HC_DO_JOIN_TABLE, .timeout_ms = 10000, .text = TABLE, .name = "all"};
	struct hc_answer a;

	start();
	for (uint32_t i = 0; i < 8; i++) {
		hc_rank_spawn(&r[i]);
		o.rank = i;
		hc_rank_tell(&r[i], &o);
	}
	for (uint32_t i = 0; i < 8; i++) {
		hc_rank_hear(&r[i], &a, 10000);
		ck_assert_msg(!a.result, "%s", a.text);
	}
	o = (struct hc_order){
		.what = HC_DO_SUB, .seat = 1, .parent = 0, .nranks = 2, .timeout_ms = 10000};
	for (uint32_t i = 0; i < 4; i++) { /* both at once */
		memcpy(o.ranks, devices[i / 2], sizeof(devices[0]));
		o.sub_id = 1 + i / 2;
		snprintf(o.name, sizeof(o.name), "%s", names[i / 2]);
		hc_rank_tell(&r[2 + i], &o);
	}
	for (uint32_t i = 0; i < 4; i++) {
		hc_rank_hear(&r[2 + i], &a, 10000);
		ck_assert_msg(!a.result, "%s", a.text);
		ck_assert_uint_eq(a.rank, i % 2);
	}
	want_both();
	hc_ranks_quit(r, 8);
	hc_node_end(&node);
}
END_TEST

START_TEST(listed_devices_have_their_own_addresses)
{
	struct hcomm_config c = HCOMM_INIT(struct hcomm_config);
	struct hcomm_session *s[2];
	hcomm_domain d[2];

	start();
	for (unsigned i = 0; i < 2; i++) {
		ck_assert_int_eq(hcomm_open(NULL, &s[i]), 0);
		c.name = names[i];
		ck_assert_int_eq(hcomm_join_all_local(s[i], devices[i], 2, &c, 10000, &d[i]), 0);
	}
	want_both();
	for (unsigned i = 0; i < 2; i++) {
		ck_assert_int_eq(hcomm_leave(d[i], 5000), 0);
		hcomm_close(s[i]);
	}
	hc_node_end(&node);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_test(t, parts_of_the_table_have_the_addresses_of_their_devices);
	tcase_add_test(t, listed_devices_have_their_own_addresses);
}

int main(void)
{
	return hc_suite_run("case_011_first_addresses", add, 60);
}
