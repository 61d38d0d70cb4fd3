/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Case 49: the error blames the wrong rank.
 *
 * Rank 0 waited for rank 1, which itself waited for rank 2; the log of rank 0 blamed rank 1, and
 * people looked at the wrong machine. Here the daemon of rank 2's node stands still after rank 2
 * has come. The others are told at once, both at the same time and both that it is rank 2 on
 * node2; and when that daemon goes on, rank 2 hears the same.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "eye.h"
#include "pairs.h"
#include "ranks.h"
#include "suite.h"

enum { PORT = 25100, LIMIT = 20000, NODES = 3, PROBE_S = 2 };

static struct hc_node n[NODES];
static struct hc_rank r[NODES];
static struct hc_run run;
static char table[200];

static void begin(void)
{
	char top[64];
	unsigned i;

	snprintf(top, sizeof(top), "prepare_limit_s = %u\n", PROBE_S);
	for (i = 0; i < NODES; i++) {
		hc_pair_prepare(&n[i], i, NODES, PORT, HC_KEY_A, top);
		hc_node_run(&n[i]);
	}
	for (i = 1; i < NODES; i++) {
		hc_await_node(&n[i], "node0", "up", LIMIT);
		hc_await_node(&n[i], i == 1 ? "node2" : "node1", "up", LIMIT);
	}
	snprintf(table, sizeof(table), "%s/table.json", n[0].dir);
	hc_write_file(table,
		      "{\"version\":\"1.0\",\"status\":\"completed\",\"server_count\":\"3\","
		      "\"server_list\":[{\"server_id\":\"node0\",\"device\":[{\"device_id\":\"0\","
		      "\"device_ip\":\"192.0.2.1\",\"rank_id\":\"0\"}]},{\"server_id\":\"node1\","
		      "\"device\":[{\"device_id\":\"0\",\"device_ip\":\"192.0.2.2\",\"rank_id\":"
		      "\"1\"}]},{\"server_id\":\"node2\",\"device\":[{\"device_id\":\"0\","
		      "\"device_ip\":\"192.0.2.3\",\"rank_id\":\"2\"}]}]}");
}

static void tell(unsigned rank)
{
	struct hc_order o = {
		.what = HC_DO_JOIN_TABLE, .rank = rank, .name = "job", .timeout_ms = LIMIT};

	snprintf(o.text, sizeof(o.text), "%s", table);
	setenv("HCOMM_SOCKET", n[rank].socket, 1);
	hc_rank_spawn(&r[rank]);
	hc_rank_tell(&r[rank], &o);
}

static bool has_come(void *ctx)
{
	(void)ctx;
	hc_ctl(&run, &n[0], "domain", "list", "--no-headings", "-o", "NAME,ARRIVED", (char *)NULL);
	return strstr(run.out, "job") && strstr(run.out, " 1");
}

START_TEST(all_are_told_of_the_one)
{
	struct hc_answer a[NODES];
	unsigned i;

	begin();
	tell(2);
	hc_await("rank 2 to have come", has_come, NULL, LIMIT);
	kill(n[2].pid, SIGSTOP);
	tell(0);
	tell(1);
	for (i = 0; i < 2; i++) {
		hc_rank_hear(&r[i], &a[i], LIMIT);
		ck_assert_int_eq(a[i].result, HCOMM_E_TIMEOUT);
		ck_assert_msg(strstr(a[i].text, "rank 2 on node node2") != NULL, "%s", a[i].text);
		ck_assert_msg(!strstr(a[i].text, "node0") && !strstr(a[i].text, "node1"), "%s",
			      a[i].text);
		/* one limit, not one after the other */
		ck_assert_uint_lt((a[i].end_ns - a[i].began_ns) / 1000000,
				  hc_patience(PROBE_S * 1000 + 1500));
	}
	ck_assert_str_eq(a[0].text, a[1].text);
	kill(n[2].pid, SIGCONT);
	hc_rank_hear(&r[2], &a[2], LIMIT);
	ck_assert_int_eq(a[2].result, HCOMM_E_TIMEOUT);
	ck_assert_str_eq(a[2].text, a[0].text);
	for (i = 0; i < NODES; i++)
		hc_rank_quit(&r[i]);
	for (i = NODES; i-- > 0;)
		hc_node_end(&n[i]);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_test(t, all_are_told_of_the_one);
}

int main(void)
{
	hc_ports_own("case_049_the_wrong_rank");
	return hc_suite_run("case_049_the_wrong_rank", add, 60);
}
