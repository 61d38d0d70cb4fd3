/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Case 16: the table's address of a rank is not on the machine where it stands.
 *
 * The file is fine, and so is the network: node_b's device has another address than the table
 * says. Its rank is refused there with both addresses; the other node sees a rank that has not
 * come from a node that is well, and says nothing of the network.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "eye.h"
#include "pairs.h"
#include "ranks.h"
#include "suite.h"

#define TABLE "tests/cases/open/c016-address-not-local.json"

enum { PORT = 25000, LIMIT = 20000 };

static struct hc_node n[2];
static struct hc_run run;

static void start(unsigned i, const char *address)
{
	char options[300], sections[300], path[200];

	snprintf(options, sizeof(options),
		 "node_name = node_%c\nlisten_address = 127.0.0.%u\nlisten_port = %u\n", "ab"[i],
		 i + 1, PORT);
	snprintf(sections, sizeof(sections),
		 "[node node_%c]\naddress = 127.0.0.%u\n"
		 "[device 0]\nkind = npu\nsimulated = yes\naddress = %s\n",
		 "ba"[i], 2 - i, address);
	hc_node_prepare(&n[i], 0, options, sections);
	snprintf(path, sizeof(path), "%s/no.key", n[i].dir);
	hc_write_file(path, HC_KEY_A);
	ck_assert(!chmod(path, 0400));
	hc_node_run(&n[i]);
}

static void tell(struct hc_rank *r, unsigned rank)
{
	struct hc_order o = {.what = HC_DO_JOIN_TABLE,
			     .text = TABLE,
			     .name = "job",
			     .rank = rank,
			     .timeout_ms = 3000};

	setenv("HCOMM_SOCKET", n[rank].socket, 1);
	hc_rank_spawn(r);
	hc_rank_tell(r, &o);
}

static bool is_waited_for(void *ctx)
{
	(void)ctx;
	hc_ctl(&run, &n[0], "domain", "show", "job", (char *)NULL);
	return strstr(run.out, "missing: rank 1 on node_b, device 0, 192.0.2.99: heard ");
}

START_TEST(refused_where_it_stands_and_missed_elsewhere)
{
	static const char *const network[] = {"unreachable", "refused", "no path", "down"};
	struct hc_rank r[2];
	struct hc_answer a;
	unsigned i;

	start(0, "192.0.2.10");
	start(1, "192.0.2.11");
	hc_await_node(&n[0], "node_b", "up", LIMIT);
	hc_await_node(&n[1], "node_a", "up", LIMIT);
	tell(&r[0], 0);
	tell(&r[1], 1);
	hc_rank_hear(&r[1], &a, LIMIT);
	ck_assert_int_eq(a.result, HCOMM_E_INVALID);
	ck_assert_msg(strstr(a.text, "rank 1: table 192.0.2.99, this device (0) has 192.0.2.11") !=
			      NULL,
		      "%s", a.text);
	hc_await("node_a to miss rank 1", is_waited_for, NULL, LIMIT);
	hc_rank_hear(&r[0], &a, LIMIT);
	ck_assert_int_eq(a.result, HCOMM_E_TIMEOUT);
	ck_assert_msg(strstr(a.text, "no sign of rank 1 (192.0.2.99, device 0) (1 of 2 missing)") !=
			      NULL,
		      "%s", a.text);
	for (i = 0; i < sizeof(network) / sizeof(network[0]); i++)
		ck_assert_msg(!strstr(a.text, network[i]), "%s", a.text);
	for (i = 0; i < 2; i++)
		hc_rank_quit(&r[i]);
	hc_node_end(&n[1]);
	hc_node_end(&n[0]);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_test(t, refused_where_it_stands_and_missed_elsewhere);
}

int main(void)
{
	hc_ports_own("case_016_remote_rank");
	return hc_suite_run("case_016_remote_rank", add, 60);
}
