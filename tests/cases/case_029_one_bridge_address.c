/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Case 29: every host has a container bridge with the same address.
 *
 * With 172.17.0.1 on each of them, hosts dialled themselves and took it for the peer, or dropped
 * each other as known already. Here the nodes meet over the address that differs. A connection that
 * lands on the one who made it is told by the identity in the greeting, said so, and counts as no
 * node and as no path. Needs root.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "eye.h"
#include "lab.h"
#include "pairs.h"
#include "suite.h"

#define BRIDGE "172.17.0.1"

static struct hc_lab lab;

static void add_bridge(unsigned i)
{
	hc_lab_ip(&lab, i,
		  "link add docker0 type bridge\nlink add c0 type veth peer name c1\n"
		  "link set c0 master docker0 up\nlink set c1 up\nlink set docker0 up\n"
		  "addr add " BRIDGE "/16 dev docker0\n");
}

/* Its section of the other one gets the bridge's address, too, and first. */
static void list_bridge(unsigned i)
{
	struct hc_node *n = &lab.at[i].node;
	char *text = hc_read_file(n->conf), *at = strstr(text, "address = 10."), *more;

	ck_assert_ptr_nonnull(at);
	more = malloc(strlen(text) + 64);
	sprintf(more, "%.*saddress = %s,%s", (int)(at - text), text, BRIDGE,
		at + strlen("address = "));
	hc_write_file(n->conf, more);
	free(more);
	free(text);
}

START_TEST(they_meet_over_the_address_that_differs)
{
	struct hcomm_view_status s;
	struct hcomm_view_path p;
	struct hcomm_view_node row;
	unsigned i;

	if (!hc_lab_enter(&lab, 2, 1, 1500))
		return;
	for (i = 0; i < 2; i++) {
		add_bridge(i);
		hc_lab_prepare(&lab, i, true, NULL);
		if (_i)
			list_bridge(i);
		hc_node_run(&lab.at[i].node);
	}
	hc_lab_await_normal(&lab, 20000); /* one peer, one path */
	for (i = 0; i < 2; i++) {
		const struct hc_node *n = &lab.at[i].node;

		hc_row_status(n, &s);
		ck_assert_uint_eq(s.peers, 1);
		ck_assert(!hc_row_path(n, BRIDGE, &p));
		ck_assert(hc_row_node(n, i ? "node0" : "node1", &row));
		ck_assert_str_ne(row.node_id, s.node_id);
	}
	if (_i) /* both dialled it before anything else */
		hc_pair_await_log(&lab.at[0].node, "reaches this node itself and is not used");
	hc_lab_end(&lab);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_loop_test(t, they_meet_over_the_address_that_differs, 0, 2);
}

int main(void)
{
	return hc_suite_run("case_029_one_bridge_address", add, 60);
}
