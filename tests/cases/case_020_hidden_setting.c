/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Case 20: a setting that nobody remembers.
 *
 * A site-wide file set a topology for machines of four devices. A user with two devices had set
 * nothing, did not know of the file, and got an error about peers. Here the refusal names the
 * topology file and the file and line that asked for it, and hcommctl shows each setting with
 * its origin, with the daemon running or not.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "raw.h"
#include "suite.h"

#define OPEN "tests/cases/open/"

static struct hc_run run;
static struct hc_node node;
static char topology[256], site[256], place[300];

/* The site file as found in the field, with the path that this machine has. */
static void prepare(void)
{
	char text[600], *from = hc_read_file(OPEN "c020-topo-four-peers.json");

	hc_node_prepare(&node, 2, NULL, NULL);
	snprintf(topology, sizeof(topology), "%s/topo-four-peers.json", node.dir);
	hc_write_file(topology, from);
	free(from);
	snprintf(site, sizeof(site), "%s/conf.d", node.dir);
	hc_want(!mkdir(site, 0700));
	snprintf(site, sizeof(site), "%s/conf.d/site.conf", node.dir);
	snprintf(text, sizeof(text),
		 "# site-wide file that a user does not know of\ntopology_file = %s\n", topology);
	hc_write_file(site, text);
	snprintf(place, sizeof(place), "%s:2", site);
}

START_TEST(the_refusal_names_file_and_line_that_asked_for_it)
{
	prepare();
	ck_assert_int_ne(hc_raw_daemon(&run, &node, 10000), 0);
	ck_assert_int_lt(run.status, 124);
	ck_assert_msg(strstr(run.err, topology) && strstr(run.err, "4 peers") &&
			      strstr(run.err, "2 devices"),
		      "%s", run.err);
	ck_assert_msg(strstr(run.err, place) != NULL, "no %s in: %s", place, run.err);
}
END_TEST

START_TEST(every_setting_shows_where_it_comes_from)
{
	prepare();
	setenv("HCOMM_AGING_S", "7", 1);
	ck_assert_int_eq(hc_ctl(&run, &node, "config", "show", node.conf, (char *)NULL), 0);
	unsetenv("HCOMM_AGING_S");
	ck_assert_msg(strstr(run.out, place) != NULL, "no %s in: %s", place, run.out);
	ck_assert_ptr_nonnull(strstr(run.out, "environment HCOMM_AGING_S"));
	ck_assert_ptr_nonnull(strstr(run.out, "default"));
	ck_assert_ptr_nonnull(strstr(run.out, node.conf));
}
END_TEST

/* On a machine that has four devices the same file is right, and its origin still shows. */
START_TEST(a_running_daemon_tells_it_too)
{
	char *text;

	prepare();
	text = hc_read_file(node.conf);
	hc_want(text != NULL);
	text = realloc(text, strlen(text) + 200);
	strcat(text, "[device 2]\nkind = npu\nsimulated = yes\n"
		     "[device 3]\nkind = npu\nsimulated = yes\n");
	hc_write_file(node.conf, text);
	free(text);
	hc_node_run(&node);
	ck_assert_int_eq(hc_ctl(&run, &node, "setting", "list", "--no-headings", "-o",
				"NAME,ORIGIN", (char *)NULL),
			 0);
	ck_assert_msg(strstr(run.out, place) != NULL, "no %s in: %s", place, run.out);
	hc_node_end(&node);
}
END_TEST

START_TEST(the_table_beside_it_is_fine)
{
	prepare();
	ck_assert_int_eq(hc_ctl(&run, &node, "ranktable", "check", OPEN "c020-table-2-devices.json",
				(char *)NULL),
			 0);
	ck_assert_ptr_nonnull(strstr(run.out, "2 ranks"));
	ck_assert_int_eq(hc_ctl(&run, &node, "topology", "check", topology, (char *)NULL), 0);
	ck_assert_ptr_nonnull(strstr(run.out, "4 peers"));
}
END_TEST

static void add(TCase *t)
{
	tcase_add_test(t, the_refusal_names_file_and_line_that_asked_for_it);
	tcase_add_test(t, every_setting_shows_where_it_comes_from);
	tcase_add_test(t, a_running_daemon_tells_it_too);
	tcase_add_test(t, the_table_beside_it_is_fine);
}

int main(void)
{
	return hc_suite_run("case_020_hidden_setting", add, 60);
}
