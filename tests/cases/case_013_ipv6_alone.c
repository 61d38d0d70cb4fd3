/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Case 13, end to end: two hosts that have IPv6 addresses only.
 *
 * The hosts are joined by one cable with unique local addresses; no IPv4 address is anywhere. The
 * daemons find each other, beats are counted both ways, and the four ranks of the table, whose
 * devices have IPv6 addresses too, form a domain over both. Its end is told over that path. The
 * files that are to be refused are in case 1. Needs root.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "eye.h"
#include "netns.h"
#include "pairs.h"
#include "ranks.h"
#include "suite.h"

#define TABLE "tests/cases/open/c013-ipv6-only.json"

enum { LIMIT = 20000, RANKS = 4 };

static struct hc_node n[2];
static struct hc_rank r[RANKS];
static struct hc_run run;
static int other;

static void prepare(unsigned i)
{
	char options[128], sections[400], path[200];

	snprintf(options, sizeof(options), "node_name = node_%c\n", "ab"[i]);
	snprintf(sections, sizeof(sections),
		 "[node node_%c]\naddress = fd00:71::%u\n"
		 "[device 0]\nkind = npu\nsimulated = yes\naddress = 2001:db8:%u::10\n"
		 "[device 1]\nkind = npu\nsimulated = yes\naddress = 2001:db8:%u::11\n",
		 "ba"[i], 2 - i, i, i);
	hc_node_prepare(&n[i], 0, options, sections);
	snprintf(path, sizeof(path), "%s/no.key", n[i].dir);
	hc_write_file(path, HC_KEY_A);
	ck_assert(!chmod(path, 0400));
}

static void join_hosts(void)
{
	hc_ip("link add a0 type veth peer name b0 netns %s\n"
	      "addr add fd00:71::1/64 dev a0 nodad\nlink set a0 up\n",
	      hc_netns_path(other));
	hc_ip_in(other, "addr add fd00:71::2/64 dev b0 nodad\nlink set b0 up\n");
}

static bool beats_count(void *ctx)
{
	struct hcomm_view_path p;
	unsigned i;

	(void)ctx;
	for (i = 0; i < 2; i++)
		if (!hc_row_path(&n[i], i ? "[fd00:71::1]:" : "[fd00:71::2]:", &p) ||
		    p.received < 5 || p.sent < 5)
			return false;
	return true;
}

static bool both_active(void *ctx)
{
	unsigned i;

	(void)ctx;
	for (i = 0; i < 2; i++) {
		hc_ctl(&run, &n[i], "domain", "list", "--no-headings", "-o", "NAME,STATE,RANKS",
		       (char *)NULL);
		if (!strstr(run.out, "six") || !strstr(run.out, "ACTIVE") || !strstr(run.out, "4"))
			return false;
	}
	return true;
}

START_TEST(a_domain_over_ipv6_alone)
{
	struct hc_order o = {
		.what = HC_DO_JOIN_TABLE, .text = TABLE, .name = "six", .timeout_ms = LIMIT};
	struct hc_answer a;
	unsigned i;

	if (!hc_netns_enter())
		return;
	other = hc_netns_other();
	prepare(0);
	prepare(1);
	n[1].before_exec = hc_netns_before_exec;
	n[1].arg = &other;
	join_hosts();
	for (i = 0; i < 2; i++)
		hc_node_run(&n[i]);
	hc_await_node(&n[0], "node_b", "up", LIMIT);
	hc_await_node(&n[1], "node_a", "up", LIMIT);
	hc_await_path(&n[0], "[fd00:71::2]:", "normal", LIMIT);
	hc_await_path(&n[1], "[fd00:71::1]:", "normal", LIMIT);
	for (i = 0; i < RANKS; i++) {
		setenv("HCOMM_SOCKET", n[i / 2].socket, 1);
		hc_rank_spawn(&r[i]);
		o.rank = i;
		hc_rank_tell(&r[i], &o);
	}
	for (i = 0; i < RANKS; i++) {
		hc_rank_hear(&r[i], &a, LIMIT);
		ck_assert_msg(!a.result, "rank %u: %s", i, a.text);
		ck_assert_uint_eq(a.nranks, RANKS);
	}
	hc_await("both to show it ACTIVE", both_active, NULL, LIMIT);
	hc_await("beats to be counted both ways", beats_count, NULL, LIMIT);
	o = (struct hc_order){.what = HC_DO_EVENT, .code = HCOMM_EV_RANK_DIED};
	hc_rank_kill(&r[3]);
	hc_rank_do(&r[0], &o, &a);
	ck_assert_uint_eq(a.rank, 3);
	ck_assert_str_eq(a.node, "node_b");
	for (i = 0; i < RANKS - 1; i++)
		hc_rank_quit(&r[i]);
	hc_node_end(&n[1]);
	hc_node_end(&n[0]);
	close(other);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_test(t, a_domain_over_ipv6_alone);
}

int main(void)
{
	return hc_suite_run("case_013_ipv6_alone", add, 60);
}
