/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Case 64: many machines, one host name.
 *
 * Nodes were taken for one machine because their host names were equal, and shared memory was tried
 * between them. A node is its stored identity here: two of one name are two nodes with a path of
 * the network between, and people are shown names that differ. Two with one identity, after a state
 * directory was copied, are named, both. Needs root.
 */
#include <stdio.h>
#include <string.h>

#include "dbcheck.h"
#include "eye.h"
#include "lab.h"
#include "pairs.h"
#include "suite.h"

static struct hc_lab lab;

static int take_node(const void *row, void *context)
{
	memcpy(context, row, sizeof(struct hcomm_view_node));
	return 0;
}

/* The only row of nodes that it has. */
static void read_node(const struct hc_node *n, struct hcomm_view_node *row)
{
	struct hcomm_open_args args = HCOMM_INIT(struct hcomm_open_args);
	struct hcomm_session *s;

	args.socket = n->socket;
	ck_assert_int_eq(hcomm_open(&args, &s), 0);
	ck_assert_int_eq(hcomm_query(s, HCOMM_VIEW_NODE, NULL, take_node, row), 0);
	hcomm_close(s);
}

START_TEST(two_nodes_of_one_name)
{
	struct hcomm_view_status s[2];
	struct hcomm_view_node row;
	struct hcomm_view_path p;
	char suffixed[32], a[300], b[300];
	unsigned i;

	if (!hc_lab_enter(&lab, 2, 1, 1500))
		return;
	for (i = 0; i < 2; i++) {
		lab.at[i].host = "worker";
		hc_lab_prepare(&lab, i, false, NULL);
		hc_node_run(&lab.at[i].node);
	}
	hc_lab_await_normal(&lab, 10000);
	for (i = 0; i < 2; i++)
		hc_row_status(&lab.at[i].node, &s[i]);
	ck_assert_str_ne(s[0].node_id, s[1].node_id);
	for (i = 0; i < 2; i++) {
		ck_assert_str_eq(s[i].node, "worker");
		read_node(&lab.at[i].node, &row);
		ck_assert_str_eq(row.node_id, s[1 - i].node_id);
		ck_assert_str_ne(row.boot_id, "");
		snprintf(suffixed, sizeof(suffixed), "worker#%.4s", row.node_id);
		ck_assert_str_eq(row.name, suffixed);
		ck_assert(hc_row_path(&lab.at[i].node, "10.71.0.", &p));
		ck_assert_str_eq(p.port, "rail0");
	}
	/* now a copy */
	hc_node_stop(&lab.at[1].node);
	snprintf(a, sizeof(a), "%s/state/node-id", lab.at[0].node.dir);
	snprintf(b, sizeof(b), "%s/state/node-id", lab.at[1].node.dir);
	hc_copy_file(a, b);
	hc_node_run(&lab.at[1].node);
	for (i = 0; i < 2; i++) {
		hc_pair_await_log(&lab.at[i].node, "have one identity");
		ck_assert(hc_node_logged(&lab.at[i].node, "10.71.0.1:") &&
			  hc_node_logged(&lab.at[i].node, "10.71.0.2:"));
	}
	hc_lab_end(&lab);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_test(t, two_nodes_of_one_name);
}

int main(void)
{
	return hc_suite_run("case_064_one_host_name", add, 60);
}
