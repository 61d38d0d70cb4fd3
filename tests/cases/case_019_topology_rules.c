/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cases 19 and 22: topology files.
 *
 * A checker written from a field table alone refused the manual's own example; a link that named
 * a port which does not exist went unnoticed and broke what came after it. So: the example is
 * accepted, each broken rule is refused naming its edge, and the daemon refuses to start on a
 * miswired file. In a reload the good topology and the domains that run on it stay, and the
 * status says when and why the reload failed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ranks.h"
#include "raw.h"
#include "suite.h"

#define OPEN "tests/cases/open/"

static const struct bad {
	const char *file, *kind, *names[3];
} bad[] = {
	{"c019-topo-66-peers", "out-of-range", {"66", "65"}},
	{"c019-topo-bad-port", "bad-port", {"edge 0", "\"1-0\""}},
	{"c019-topo-bad-protocol", "bad-protocol", {"edge 0", "\"NVLINK\""}},
	{"c019-topo-edge-count", "count-mismatch", {"4 and 3"}},
	{"c019-topo-peer-count", "count-mismatch", {"3 and 2"}},
	{"c019-topo-peer2peer-no-far-end", "missing-field", {"edge 0", "local_b"}},
	{"c019-topo-self-edge", "self-edge", {"edge 0", "device 0"}},
	{"c022-topo-port-used-twice",
	 "port-used-twice",
	 {"edge 1", "port 1/0 of device 0", "edge 0"}},
	{"c022-topo-unknown-peer", "unknown-peer", {"edge 0", "device 5"}},
};
#define BAD (int)(sizeof(bad) / sizeof(bad[0]))

static struct hc_run run;
static struct hc_node node;
static char topology[256];

static void want_words(const struct bad *b, const char *text)
{
	if (!strstr(text, b->kind))
		hc_fail("%s: no '%s' in: %s", b->file, b->kind, text);
	for (int i = 0; i < 3 && b->names[i]; i++) {
		if (!strstr(text, b->names[i]))
			hc_fail("%s: '%s' is not named in: %s", b->file, b->names[i], text);
	}
}

static void put_topology(const char *file)
{
	char from[256], *text;

	snprintf(from, sizeof(from), OPEN "%s.json", file);
	text = hc_read_file(from);
	hc_want(text != NULL);
	hc_replace_file(topology, text);
	free(text);
}

static void prepare(const char *file)
{
	char top[1400], *conf;
	FILE *f;

	hc_node_prepare(&node, 2, NULL, NULL);
	setenv("HCOMM_SOCKET", node.socket, 1);
	snprintf(topology, sizeof(topology), "%s/topology.json", node.dir);
	put_topology(file);
	conf = hc_read_file(node.conf);
	snprintf(top, sizeof(top), "topology_file = %s\n", topology);
	f = fopen(node.conf, "we");
	hc_want(f && conf);
	fprintf(f, "%s%s", top, conf);
	fclose(f);
	free(conf);
}

START_TEST(the_check_names_the_edge)
{
	char file[256];

	hc_node_prepare(&node, 0, NULL, NULL);
	snprintf(file, sizeof(file), OPEN "%s.json", bad[_i].file);
	ck_assert_int_eq(hc_ctl(&run, &node, "topology", "check", file, (char *)NULL), 2);
	ck_assert_str_eq(run.out, "");
	ck_assert_ptr_nonnull(strstr(run.err, file));
	want_words(&bad[_i], run.err);
}
END_TEST

START_TEST(edges_to_the_net_need_no_far_end)
{
	hc_node_prepare(&node, 0, NULL, NULL);
	ck_assert_int_eq(hc_ctl(&run, &node, "topology", "check", OPEN "c019-topo-two-peers.json",
				(char *)NULL),
			 0);
	ck_assert_ptr_nonnull(strstr(run.out, "2 peers, 3 edges"));
	prepare("c019-topo-two-peers");
	hc_node_run(&node);
	hc_node_end(&node);
}
END_TEST

START_TEST(a_start_on_a_bad_file_is_refused)
{
	uint64_t began;

	prepare(bad[_i].file);
	began = hc_now_ms();
	ck_assert_int_ne(hc_raw_daemon(&run, &node, 10000), 0);
	ck_assert_int_lt(run.status, 124);
	ck_assert_uint_lt(hc_now_ms() - began, hc_patience(2000));
	ck_assert_msg(strstr(run.err, topology) != NULL, "%s", run.err);
	want_words(&bad[_i], run.err);
}
END_TEST

static struct hc_rank r[2];

static bool has_gone_on(void *ctx)
{
	return __atomic_load_n(r[0].count, __ATOMIC_RELAXED) > *(const uint64_t *)ctx;
}

START_TEST(a_reload_of_a_bad_file_changes_nothing)
{
	const struct hc_order in_run = {.what = HC_DO_RUN}, stop = {.what = HC_DO_STOP};
	struct hcomm_view_status s;
	struct hcomm_view_event e;
	uint64_t before;

	prepare("c019-topo-two-peers");
	hc_node_run(&node);
	hc_ranks_start(r, 2, "running");
	hc_rank_must(&r[0], &in_run, NULL);
	for (int i = 0; i < BAD; i++) {
		put_topology(bad[i].file);
		ck_assert_int_eq(hc_ctl(&run, &node, "reload", (char *)NULL), 2);
		want_words(&bad[i], run.err);
		ck_assert_ptr_nonnull(strstr(run.err, topology));
		hc_ask_status(&s);
		ck_assert_str_eq(s.health, "degraded");
		ck_assert_msg(strstr(s.remark, "reload failed at 20") != NULL, "%s", s.remark);
		want_words(&bad[i], s.remark);
		ck_assert_uint_eq(s.active, 1);
		ck_assert_uint_eq(s.devices, 2);
	}
	ck_assert(hc_ask_event("config-refused", &e));
	before = __atomic_load_n(r[0].count, __ATOMIC_RELAXED);
	ck_assert_int_eq(hc_ctl(&run, &node, "reload", (char *)NULL), 2);
	hc_await("operations to go on", has_gone_on, &before, 5000);
	hc_rank_must(&r[0], &stop, NULL); /* its last operation was not refused */

	put_topology("c019-topo-two-peers");
	ck_assert_int_eq(hc_ctl(&run, &node, "reload", (char *)NULL), 0);
	hc_ask_status(&s);
	ck_assert_ptr_null(strstr(s.remark, "reload failed"));
	hc_ranks_quit(r, 2);
	hc_node_end(&node);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_loop_test(t, the_check_names_the_edge, 0, BAD);
	tcase_add_test(t, edges_to_the_net_need_no_far_end);
	tcase_add_loop_test(t, a_start_on_a_bad_file_is_refused, 0, BAD);
	tcase_add_test(t, a_reload_of_a_bad_file_changes_nothing);
}

int main(void)
{
	return hc_suite_run("case_019_topology_rules", add, 60);
}
