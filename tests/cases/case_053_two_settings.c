/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Case 53, over nodes: the limit is set differently on two nodes.
 *
 * A limit that must be the same everywhere and is not is one that nobody can reason about. Here
 * that of the home counts, for all ranks that gave none of their own, whatever their own node has:
 * a shorter one there does not end their wait, a longer one does not prolong it; and the time-out
 * names the value that counted. A rank whose node has another value is told when it joins, by an
 * event and a line in the log of its node, which have both values, where each comes from, and which
 * counts; one whose node has the same, or that has a limit of its own, is told nothing.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "eye.h"
#include "pairs.h"
#include "ranks.h"
#include "raw.h"
#include "suite.h"

enum { PORT = 25300, LIMIT = 20000 };

static struct hc_node n[2];
static struct hc_rank r[2];
static struct hc_run run;
static char table[200];
static const char *from_environment; /* node1's value, before that of its file */

static void begin(unsigned home_s, unsigned other_s)
{
	char top[64];
	unsigned i;

	for (i = 0; i < 2; i++) {
		snprintf(top, sizeof(top), "connect_timeout_s = %u\n", i ? other_s : home_s);
		hc_pair_prepare(&n[i], i, 2, PORT, HC_KEY_A, top);
		if (i && from_environment)
			setenv("HCOMM_CONNECT_TIMEOUT_S", from_environment, 1);
		hc_node_run(&n[i]);
		unsetenv("HCOMM_CONNECT_TIMEOUT_S");
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

static void tell_limit(unsigned rank, int timeout_ms)
{
	struct hc_order o = {
		.what = HC_DO_JOIN_TABLE, .rank = rank, .name = "late", .timeout_ms = timeout_ms};

	snprintf(o.text, sizeof(o.text), "%s", table);
	setenv("HCOMM_SOCKET", n[rank].socket, 1);
	hc_rank_spawn(&r[rank]);
	hc_rank_tell(&r[rank], &o);
}

static void tell(unsigned rank)
{
	tell_limit(rank, HCOMM_DEFAULT);
}

/* What rank 1 is told, and its node's log has: the home's value, which counts, and its own. */
static void want_told(unsigned home_s, unsigned other_s, const char *other_origin)
{
	struct hc_order o = {.what = HC_DO_EVENT, .code = HCOMM_EV_SETTING_DIFFERS};
	char home[400], other[400];
	struct hc_answer a;

	hc_rank_must(&r[1], &o, &a);
	ck_assert_uint_eq(a.rank, 1);
	ck_assert_str_eq(a.node, "node0");
	snprintf(home, sizeof(home),
		 "waits by connect_timeout_s = %u of the home, node node0 (%s:", home_s, n[0].conf);
	snprintf(other, sizeof(other), "; connect_timeout_s = %u of node node1 (%s", other_s,
		 other_origin);
	ck_assert_msg(strstr(a.text, home) && strstr(a.text, other) &&
			      strstr(a.text, "does not count"),
		      "%s", a.text);
	ck_assert_uint_eq(hc_log_count(&n[1], home), 1);
	ck_assert_uint_eq(hc_log_count(&n[1], other), 1);
	ck_assert_uint_eq(hc_log_count(&n[0], "does not count"), 0);
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
	hc_pair_await_log(&n[1], "does not count"); /* at the join, not at its end */
	p.at = hc_now_ms() + 2500;
	hc_await("the shorter limit to be over", is_past, &p, LIMIT);
	tell(0);
	for (i = 0; i < 2; i++) {
		hc_rank_hear(&r[i], &a, LIMIT);
		ck_assert_msg(!a.result, "rank %u: %s", i, a.text);
	}
	want_told(30, 1, n[1].conf);
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
	want_told(1, 60, n[1].conf);
	end();
}
END_TEST

/* By root info, and the value of the other node is of its environment. */
START_TEST(one_from_the_environment)
{
	struct hc_order o = {.what = HC_DO_JOIN, .nranks = 2, .timeout_ms = HCOMM_DEFAULT};
	struct hcomm_session *s = NULL;
	struct hc_answer a;
	unsigned i;

	from_environment = "45";
	begin(30, 50);
	setenv("HCOMM_SOCKET", n[0].socket, 1);
	ck_assert_int_eq(hcomm_open(NULL, &s), 0);
	ck_assert_int_eq(hcomm_root_info(s, 2, NULL, &o.info), 0);
	hcomm_close(s);
	for (i = 0; i < 2; i++) {
		setenv("HCOMM_SOCKET", n[i].socket, 1);
		hc_rank_spawn(&r[i]);
		o.rank = i;
		hc_rank_tell(&r[i], &o);
	}
	for (i = 0; i < 2; i++) {
		hc_rank_hear(&r[i], &a, LIMIT);
		ck_assert_msg(!a.result, "rank %u: %s", i, a.text);
	}
	want_told(30, 45, "environment HCOMM_CONNECT_TIMEOUT_S)");
	end();
}
END_TEST

static const struct {
	unsigned home_s, other_s;
	int timeout_ms;
} silent[] = {{30, 30, HCOMM_DEFAULT}, {30, 40, LIMIT}};
#define SILENT (int)(sizeof(silent) / sizeof(silent[0]))

START_TEST(the_same_or_a_limit_of_ones_own_is_no_news)
{
	struct hc_answer a;
	unsigned i;

	begin(silent[_i].home_s, silent[_i].other_s);
	for (i = 0; i < 2; i++)
		tell_limit(i, silent[_i].timeout_ms);
	for (i = 0; i < 2; i++) {
		hc_rank_hear(&r[i], &a, LIMIT);
		ck_assert_msg(!a.result, "rank %u: %s", i, a.text);
	}
	for (i = 0; i < 2; i++) /* it would have been before the answer */
		ck_assert_uint_eq(hc_log_count(&n[i], "does not count"), 0);
	end();
}
END_TEST

static void add(TCase *t)
{
	tcase_add_test(t, a_shorter_one_ends_nothing);
	tcase_add_test(t, a_longer_one_prolongs_nothing);
	tcase_add_test(t, one_from_the_environment);
	tcase_add_loop_test(t, the_same_or_a_limit_of_ones_own_is_no_news, 0, SILENT);
}

int main(void)
{
	hc_ports_own("case_053_two_settings");
	return hc_suite_run("case_053_two_settings", add, 60);
}
