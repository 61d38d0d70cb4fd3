/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Links of a running daemon: what hcommctl says of them, and what a reload does to them.
 *
 * The trap is a figure that nobody knows: shown as a number it would be taken for a slow link or,
 * made up, for a fast one. So where each figure comes from stands beside it. A reload takes new
 * facts, new links and the end of links; one that is refused takes none of them.
 */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "suite.h"
#include "users.h"

static struct hc_node node;
static struct hc_run run;

#define ctl(...) hc_ctl(&run, &node, __VA_ARGS__, (char *)NULL)

static const char two_devices[] = "[device 0]\nkind = npu\nsimulated = yes\n"
				  "[device 1]\nkind = npu\nsimulated = yes\n";

static void write_conf(const char *links)
{
	char *text = hc_read_file(node.conf), *more, *cut = strstr(text, "\n[link");

	if (cut)
		cut[1] = '\0';
	more = malloc(strlen(text) + strlen(links) + 1);
	sprintf(more, "%s%s", text, links);
	hc_replace_file(node.conf, more);
	free(more);
	free(text);
}

static void start(const char *top, const char *links)
{
	hc_node_prepare(&node, 0, top, two_devices);
	write_conf(links);
	setenv("HCOMM_SOCKET", node.socket, 1);
	hc_node_run(&node);
}

/* Columns of all links, blanks squeezed. */
static void want_list(const char *columns, const char *wanted)
{
	char text[4096];
	size_t n = 0;

	ctl("link", "list", "--no-headings", "-o", columns);
	ck_assert_msg(run.status == 0, "%d: %s", run.status, run.err);
	for (const char *p = run.out; *p && n + 1 < sizeof(text); p++)
		if (*p != ' ' || (n && text[n - 1] != ' ' && text[n - 1] != '\n'))
			text[n++] = *p;
	text[n] = '\0';
	ck_assert_str_eq(text, wanted);
}

static const char good[] = "[link 0 1]\ntype = hccs\nbandwidth_mbps = 1000\nlatency_us = 2\n"
			   "[link 0 1]\ntype = pcie\nvirtual_channels = 8\n";

START_TEST(a_list_says_what_is_known_and_from_where)
{
	start("bandwidth_limit_percent = 70", good);
	want_list(
		"NAME,STATE,BANDWIDTH,BANDWIDTH-SOURCE,LIMIT,VCS,VCS-SOURCE,LATENCY-SOURCE,SOURCE",
		"shm up 20000 default 14000 4096 default unknown default\n"
		"hccs:0-1 up 1000 config 700 64 default config config\n"
		"pcie:0-1 up 0 unknown 0 8 config unknown config\n");
	hc_node_end(&node);
}
END_TEST

START_TEST(one_link_is_shown_with_everything)
{
	json_t *root, *row;

	start(NULL, good);
	ctl("link", "show", "hccs:0-1");
	ck_assert_int_eq(run.status, 0);
	ck_assert_ptr_nonnull(strstr(run.out, "BANDWIDTH-SOURCE"));
	ck_assert_ptr_nonnull(strstr(run.out, "LATENCY-US"));
	ctl("link", "show", "hccs:0-1", "--json");
	ck_assert_int_eq(run.status, 0);
	root = json_loads(run.out, JSON_REJECT_DUPLICATES, NULL);
	ck_assert_uint_eq(json_array_size(json_object_get(root, "rows")), 1);
	row = json_array_get(json_object_get(root, "rows"), 0);
	ck_assert_str_eq(json_string_value(json_object_get(row, "type")), "hccs");
	ck_assert_str_eq(json_string_value(json_object_get(row, "a")), "0");
	ck_assert_str_eq(json_string_value(json_object_get(row, "b")), "1");
	ck_assert_int_eq(json_integer_value(json_object_get(row, "limit_mbps")), 800);
	ck_assert_int_eq(json_integer_value(json_object_get(row, "latency_us")), 2);
	json_decref(root);
	/* that nobody said how long a link takes is not 0 microseconds */
	want_list("NAME,LATENCY-US", "shm -\nhccs:0-1 2\npcie:0-1 -\n");
	ctl("link", "show", "pcie:0-1", "--json");
	root = json_loads(run.out, JSON_REJECT_DUPLICATES, NULL);
	row = json_array_get(json_object_get(root, "rows"), 0);
	ck_assert(json_is_null(json_object_get(row, "latency_us")));
	json_decref(root);
	ctl("link", "show", "shm", "-o", "A,B", "--no-headings");
	ck_assert_int_eq(run.status, 0);
	ck_assert_ptr_nonnull(strstr(run.out, "any"));
	ctl("link", "show", "hccs:0-2");
	ck_assert_int_eq(run.status, 1);
	ck_assert_ptr_nonnull(strstr(run.err, "no link named 'hccs:0-2'"));
	ck_assert_str_eq(run.out, "");
	ctl("link", "show");
	ck_assert_int_eq(run.status, 2);
	hc_node_end(&node);
}
END_TEST

START_TEST(a_reload_changes_adds_and_ends_links)
{
	start(NULL, good);
	write_conf("[link any any]\nbandwidth_mbps = 500\n"
		   "[link 1 0]\ntype = nvlink\nbandwidth_mbps = 2000\n"
		   "[link 0 1]\ntype = sio\n");
	ctl("reload");
	ck_assert_msg(run.status == 0, "%s", run.err);
	want_list("NAME,STATE,BANDWIDTH,LIMIT,LATENCY-SOURCE", "shm up 500 400 unknown\n"
							       "hccs:0-1 up 2000 1600 unknown\n"
							       "sio:0-1 up 0 0 unknown\n");
	hc_conf_set(&node, "bandwidth_limit_percent", "50");
	hc_conf_set(&node, "virtual_channels", "9");
	write_conf(good);
	ctl("reload");
	ck_assert_msg(run.status == 0, "%s", run.err);
	want_list("NAME,BANDWIDTH,LIMIT,VCS,VCS-SOURCE", "shm 20000 10000 4096 default\n"
							 "hccs:0-1 1000 500 9 config\n"
							 "pcie:0-1 0 0 8 config\n");
	hc_node_end(&node);
}
END_TEST

START_TEST(a_refused_reload_leaves_the_links)
{
	static const char *const bad[][2] = {
		{"[link 0 1]\ntype = hccs\nbandwidth_mbps = 5\n[link 1 0]\ntype = hccs\n",
		 "is given again"},
		{"[link 0 1]\ntype = hccs\nbandwidth_mbps = 5\n[link 0 1]\ntype = sio\n"
		 "[link 0 1]\nlatency_us = 1\n",
		 "there are links of the types hccs and sio; wanted a type"},
		{"[link any any]\ntype = hccs\n", "the type of [link any any] is shm"},
	};

	start(NULL, good);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		write_conf(bad[i][0]);
		ctl("reload");
		ck_assert_int_eq(run.status, 2);
		ck_assert_msg(strstr(run.err, bad[i][1]) && strstr(run.err, "hcommd.conf:"), "%s",
			      run.err);
		want_list("NAME,BANDWIDTH", "shm 20000\nhccs:0-1 1000\npcie:0-1 0\n");
	}
	hc_node_end(&node);
}
END_TEST

/* A device that is not there holds nobody up: its link is down until it comes. */
START_TEST(a_link_to_a_device_that_is_not_here_is_down)
{
	start(NULL, "[link 0 1]\ntype = hccs\n[link 1 7]\ntype = hccs\nbandwidth_mbps = 100\n");
	want_list("NAME,STATE", "shm up\nhccs:0-1 up\nhccs:1-7 down\n");
	hc_node_end(&node);
}
END_TEST

/* Case 22: the description of the machine was edited, and one edge leads nowhere. */
START_TEST(a_miswired_topology_keeps_the_good_one)
{
	char path[256], *text;

	hc_node_prepare(&node, 0, NULL, NULL);
	snprintf(path, sizeof(path), "%s/topo.json", node.dir);
	text = hc_read_file("tests/cases/open/c019-topo-two-peers.json");
	hc_write_file(path, text);
	free(text);
	hc_conf_set(&node, "topology_file", path);
	setenv("HCOMM_SOCKET", node.socket, 1);
	hc_node_run(&node);
	want_list("NAME,STATE,SOURCE", "shm up default\nhccs:0-1 up topology-file\n");
	text = hc_read_file("tests/cases/open/c022-topo-unknown-peer.json");
	hc_replace_file(path, text);
	free(text);
	ctl("reload");
	ck_assert_int_eq(run.status, 2);
	ck_assert_msg(strstr(run.err, path) && strstr(run.err, "edge 0") &&
			      strstr(run.err, "device 5"),
		      "%s", run.err);
	want_list("NAME,STATE,SOURCE", "shm up default\nhccs:0-1 up topology-file\n");
	ctl("status", "-o", "REMARK");
	ck_assert_int_eq(run.status, 1);
	ck_assert_ptr_nonnull(strstr(run.out, "reload failed at 20"));
	hc_node_end(&node);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_test(t, a_miswired_topology_keeps_the_good_one);
	tcase_add_test(t, a_list_says_what_is_known_and_from_where);
	tcase_add_test(t, one_link_is_shown_with_everything);
	tcase_add_test(t, a_reload_changes_adds_and_ends_links);
	tcase_add_test(t, a_refused_reload_leaves_the_links);
	tcase_add_test(t, a_link_to_a_device_that_is_not_here_is_down);
}

int main(void)
{
	return hc_suite_run("links", add, 60);
}
