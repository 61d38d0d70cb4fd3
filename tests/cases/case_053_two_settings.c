/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Case 53, over nodes: the limit is set differently on two nodes.
 *
 * A limit that must be the same everywhere and is not is one that nobody can reason about. Here
 * that of the home counts, for all ranks that gave none of their own, whatever their own node has:
 * a shorter one there does not end their wait, a longer one does not prolong it; and the time-out
 * names the value that counted.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "eye.h"
#include "pairs.h"
#include "ranks.h"
#include "suite.h"

enum { PORT = 25300, LIMIT = 20000 };

static struct hc_node n[2];
static struct hc_rank r[2];
static struct hc_run run;
static char table[200];

static void begin(unsigned home_s, unsigned other_s)
{
	char top[64];
	unsigned i;

	for (i = 0; i < 2; i++) {
		snprintf(top, sizeof(top), "connect_timeout_s = %u\n", i ? other_s : home_s);
		hc_pair_prepare(&n[i], i, 2, PORT, HC_KEY_A, top);
		hc_node_run(&n[i]);
	}
	hc_await_node(&n[0], "node1", "up", LIMIT);
	hc_await_node(&n[1], "node0", "up", LIMIT);
	snprintf(table, sizeof(table), "%s/table.json", n[0].dir);
	hc_write_file(table, "{\"version\":\"1.0\",\"status\":\"completed\",\"server_count\":\"2\","
			     "\"server_list\":[{\"server_id\":\"node0\",\"device\":[{\"device_id\":"
			     "\"0\",\"device_ip\":\"192.0.2.1\",\"rank_id\":\"0\"}]},"
			     "{\"server_id\":\"node1\",\"device\":[{\"device_id\":\"0\","
			     "\"device_ip\":\"192.0.2.2\",\"rank_id\":\"1\"}]}]}");
}

static void end(void)
{
	unsigned i;

	for (i = 0; i < 2; i++)
		if (r[i].child.pid)
			hc_rank_quit(&r[i]);
	for (i = 2; i-- > 0;)
		hc_node_end(&n[i]);
}

static void tell(unsigned rank)
{
	struct hc_order o = {.what = HC_DO_JOIN_TABLE,
			     .rank = rank,
			     .name = "late",
			     .timeout_ms = HCOMM_DEFAULT};

	snprintf(o.text, sizeof(o.text), "%s", table);
	setenv("HCOMM_SOCKET", n[rank].socket, 1);
	hc_rank_spawn(&r[rank]);
	hc_rank_tell(&r[rank], &o);
}

struct past {
	uint64_t at;
};

static bool is_past(void *ctx)
{
	const struct past *p = ctx;

	/* it forms all the while */
	hc_ctl(&run, &n[0], "domain", "list", "--no-headings", "-o", "NAME,STATE", (char *)NULL);
	return hc_now_ms() >= p->at || !strstr(run.out, "FORMING");
}

static bool has_come(void *ctx)
{
	(void)ctx;
	hc_ctl(&run, &n[0], "domain", "list", "--no-headings", "-o", "NAME,ARRIVED", (char *)NULL);
	return strstr(run.out, "late") && strstr(run.out, " 1");
}

START_TEST(a_shorter_one_ends_nothing)
{
	struct hc_answer a;
	struct past p;
	unsigned i;

	begin(30, 1);
	tell(1);
	hc_await("rank 1 to have come", has_come, NULL, LIMIT);
	p.at = hc_now_ms() + 2500;
	hc_await("the shorter limit to be over", is_past, &p, LIMIT);
	tell(0);
	for (i = 0; i < 2; i++) {
		hc_rank_hear(&r[i], &a, LIMIT);
		ck_assert_msg(!a.result, "rank %u: %s", i, a.text);
	}
	end();
}
END_TEST

START_TEST(a_longer_one_prolongs_nothing)
{
	struct hc_answer a;

	begin(1, 60);
	tell(1);
	hc_rank_hear(&r[1], &a, LIMIT);
	ck_assert_int_eq(a.result, HCOMM_E_TIMEOUT);
	ck_assert_msg(strstr(a.text, "connect_timeout_s = 1,") != NULL, "%s", a.text);
	ck_assert_msg(strstr(a.text, n[0].conf) != NULL, "%s", a.text);
	end();
}
END_TEST

static void add(TCase *t)
{
	tcase_add_test(t, a_shorter_one_ends_nothing);
	tcase_add_test(t, a_longer_one_prolongs_nothing);
}

int main(void)
{
	hc_ports_own("case_053_two_settings");
	return hc_suite_run("case_053_two_settings", add, 60);
}
