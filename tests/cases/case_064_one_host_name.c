/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Case 64: many machines, one host name.
 *
 * Nodes were taken for one machine because their host names were equal, and shared memory was tried
 * between them. A node is its stored identity here: two of one name are two nodes with a path of
 * the network between, and people are shown names that differ. Two with one identity, after a state
 * directory was copied, are named, both.
 *
 * A rank table that calls them by other names finds them by their devices' addresses. The domain
 * over them has one home and two nodes, and its channels go over a link of the network, though the
 * processes agree on their host name. Host names that are equal up to the first dot are two names.
 * Needs root.
 */
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "dbcheck.h"
#include "eye.h"
#include "lab.h"
#include "pairs.h"
#include "ranks.h"
#include "suite.h"

#define TABLE "tests/cases/open/c064-same-host-name.json"

enum { LIMIT = 20000 };

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

/* ---- a domain over both ---- */

/* A process that calls its machine like the other one, on node i. */
static void spawn(struct hc_rank *r, unsigned i)
{
	if (unshare(CLONE_NEWUTS) || sethostname(lab.at[i].host, strlen(lab.at[i].host)))
		hc_fail("no host name of its own");
	setenv("HCOMM_SOCKET", lab.at[i].node.socket, 1);
	hc_lab_go(&lab, i);
	hc_rank_spawn(r);
	hc_lab_home(&lab);
}

static void join_both(struct hc_rank r[2], struct hc_answer a[2])
{
	struct hc_order o = {
		.what = HC_DO_JOIN_TABLE, .name = "job", .channels = 1, .timeout_ms = LIMIT};
	unsigned i;

	snprintf(o.text, sizeof(o.text), TABLE);
	for (i = 0; i < 2; i++) {
		spawn(&r[i], i);
		o.rank = i;
		hc_rank_tell(&r[i], &o);
	}
	for (i = 0; i < 2; i++) {
		hc_rank_hear(&r[i], &a[i], 2 * LIMIT);
		ck_assert_msg(!a[i].result, "rank %u: %d: %s", i, a[i].result, a[i].text);
	}
	ck_assert_uint_eq(a[0].id, a[1].id);
}

static int take_channel(const void *row, void *context)
{
	const struct hcomm_view_channel *ch = row;
	unsigned *count = context;

	ck_assert_msg(!strcmp(ch->type, "eth"), "rank %u to %u: link %s, %s", ch->rank, ch->peer,
		      ch->link, ch->type);
	++*count;
	return 0;
}

/* The way to the other rank and the one back are links of the network, on both nodes. */
static void channels_are_of_the_network(unsigned i)
{
	struct hcomm_open_args args = HCOMM_INIT(struct hcomm_open_args);
	struct hcomm_session *s;
	unsigned count = 0;

	args.socket = lab.at[i].node.socket;
	ck_assert_int_eq(hcomm_open(&args, &s), 0);
	ck_assert_int_eq(hcomm_query(s, HCOMM_VIEW_CHANNEL, NULL, take_channel, &count), 0);
	hcomm_close(s);
	ck_assert_uint_eq(count, 2);
}

static void operate(struct hc_rank r[2])
{
	struct hc_order b = {.what = HC_DO_BEGIN, .kind = HCOMM_OP_ALL_REDUCE},
			e = {.what = HC_DO_END}, f = {.what = HC_DO_FENCE, .timeout_ms = LIMIT};
	struct hc_answer a;
	unsigned i;

	for (i = 0; i < 2; i++) {
		hc_rank_must(&r[i], &b, NULL);
		hc_rank_must(&r[i], &e, NULL);
		hc_rank_tell(&r[i], &f);
	}
	for (i = 0; i < 2; i++) {
		hc_rank_hear(&r[i], &a, 2 * LIMIT);
		ck_assert_msg(!a.result, "fence of rank %u: %s", i, a.text);
	}
}

/* Its home knows both ranks, and of which node each is. */
static void members_are_on_two_nodes(const struct hc_rank r[2])
{
	struct hcomm_view_member m[2];
	struct hcomm_view_node other;
	unsigned i;

	setenv("HCOMM_SOCKET", lab.at[0].node.socket, 1);
	read_node(&lab.at[0].node, &other);
	for (i = 0; i < 2; i++) {
		ck_assert(hc_ask_member("job", i, &m[i]));
		ck_assert_int_eq((int)m[i].pid, r[i].child.pid);
	}
	ck_assert_str_eq(m[0].node, lab.at[0].host);
	ck_assert_str_eq(m[1].node, other.name);
	ck_assert_str_ne(m[0].node, m[1].node);
}

START_TEST(a_domain_over_both)
{
	static const char *const hosts[2][2] = {{"worker", "worker"},
						{"worker.rack1", "worker.rack2"}};
	struct hcomm_view_domain d;
	struct hc_answer a[2];
	struct hc_rank r[2];
	unsigned i;

	if (!hc_lab_enter(&lab, 2, 1, 1500))
		return;
	for (i = 0; i < 2; i++) {
		lab.at[i].host = hosts[_i][i];
		hc_lab_prepare(&lab, i, false, NULL);
		hc_node_run(&lab.at[i].node);
	}
	hc_lab_await_normal(&lab, LIMIT);
	join_both(r, a);
	operate(r);
	for (i = 0; i < 2; i++) {
		ck_assert(hc_row_domain(&lab.at[i].node, a[0].id, &d));
		ck_assert_str_eq(d.state, "ACTIVE");
		ck_assert_uint_eq(d.local, 1);
		channels_are_of_the_network(i);
	}
	members_are_on_two_nodes(r);
	for (i = 0; i < 2; i++)
		hc_rank_quit(&r[i]);
	hc_lab_end(&lab);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_loop_test(t, a_domain_over_both, 0, 2);
	tcase_add_test(t, two_nodes_of_one_name);
}

int main(void)
{
	return hc_suite_run("case_064_one_host_name", add, 60);
}
