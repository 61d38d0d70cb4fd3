/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Case 7: the job starts before the scheduler has written its rank table.
 *
 * What is mounted says "initializing", and is replaced by rename once all addresses are known.
 * Jobs that read it early used to die of a format error. Here the ranks wait, and are together
 * within a second of the rename; nobody has to start again. When the real table never comes, the
 * answer is "not ready", a code of its own, after the limit, with file and time.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ranks.h"
#include "suite.h"

#define OPEN "tests/cases/open/"

static struct hc_node node;
static char path[256];

static void copy(const char *from, bool by_rename)
{
	char name[256], *text;

	snprintf(name, sizeof(name), OPEN "%s", from);
	text = hc_read_file(name);
	hc_want(text != NULL);
	if (by_rename)
		hc_replace_file(path, text);
	else
		hc_write_file(path, text);
	free(text);
}

static void start(const char *top)
{
	hc_node_start(&node, 8, top);
	snprintf(path, sizeof(path), "%s/ranktable.json", node.dir);
	copy("c007-initializing-only.json", false);
}

/* Have so many ranks been told "not ready"? */
static bool refused(void *ctx)
{
	struct hcomm_view_status row;

	hc_ask_status(&row);
	return row.refused >= *(const uint64_t *)ctx;
}

START_TEST(ranks_form_within_a_second_of_the_rename)
{
	static struct hc_rank r[8];
	struct hc_order o = {.what = HC_DO_JOIN_TABLE, .timeout_ms = 20000};
	struct hc_answer a;
	uint64_t renamed, last = 0;

	start(NULL);
	snprintf(o.text, sizeof(o.text), "%s", path);
	for (uint32_t i = 0; i < 8; i++) {
		hc_rank_spawn(&r[i]);
		o.rank = i;
		hc_rank_tell(&r[i], &o);
	}
	hc_await("all ranks to have seen the unfinished table", refused, &(uint64_t){8}, 10000);
	renamed = hc_now_ns();
	copy("c050-eight-ranks-one-server.json", true);
	for (uint32_t i = 0; i < 8; i++) {
		hc_rank_hear(&r[i], &a, 15000);
		ck_assert_msg(!a.result, "rank %u: %s", i, a.text);
		ck_assert_uint_eq(a.nranks, 8);
		ck_assert_uint_lt(a.began_ns, renamed); /* it had waited */
		ck_assert_uint_gt(a.end_ns, renamed);
		last = a.end_ns > last ? a.end_ns : last;
	}
	ck_assert_uint_lt((last - renamed) / 1000000, hc_patience(1000));
	hc_ranks_quit(r, 8);
	hc_node_end(&node);
}
END_TEST

START_TEST(never_replaced_is_not_ready_after_the_limit)
{
	struct hcomm_session *s;
	hcomm_domain d;
	uint64_t began, ms;
	const char *text;
	int r;

	start(NULL);
	ck_assert_int_eq(hcomm_open(NULL, &s), 0);
	began = hc_now_ms();
	r = hcomm_join_table(s, path, 0, NULL, 1000, &d);
	ms = hc_now_ms() - began;
	ck_assert_int_eq(r, HCOMM_E_NOT_READY);
	ck_assert_uint_ge(ms, 1000);
	ck_assert_uint_lt(ms, hc_patience(1500));
	text = hcomm_last_error();
	ck_assert_msg(strstr(text, path) && strstr(text, "initializing") && strstr(text, "1.0 s"),
		      "%s", text);
	hcomm_close(s);
	hc_node_end(&node);
}
END_TEST

/* A complete list that is not released yet is no more ready than an empty file. */
START_TEST(a_list_under_initializing_is_not_used)
{
	struct hcomm_session *s;
	hcomm_domain d;
	struct hc_run *run = calloc(1, sizeof(*run));

	start(NULL);
	copy("c007-initializing-with-list.json", true);
	ck_assert_int_eq(hcomm_open(NULL, &s), 0);
	ck_assert_int_eq(hcomm_join_table(s, path, 0, NULL, 300, &d), HCOMM_E_NOT_READY);
	hcomm_close(s);
	hc_ctl(run, &node, "ranktable", "check", path, (char *)NULL);
	ck_assert_int_eq(run->status, 75); /* try again, not invalid */
	hc_ctl(run, &node, "domain", "list", "--no-headings", (char *)NULL);
	ck_assert_str_eq(run->out, "");
	free(run);
	hc_node_end(&node);
}
END_TEST

/* The directory is swapped by a symbolic link, as mounted configuration is in a container. */
START_TEST(a_turned_link_is_seen_too)
{
	static struct hc_rank r[2];
	struct hc_order o = {.what = HC_DO_JOIN_TABLE, .timeout_ms = 20000};
	char old[512], new[512], link[512];
	struct hc_answer a;
	uint64_t turned;

	start(NULL);
	snprintf(old, sizeof(old), "%s/..old", node.dir);
	snprintf(new, sizeof(new), "%s/..new", node.dir);
	snprintf(link, sizeof(link), "%s/..data", node.dir);
	ck_assert(!mkdir(old, 0700) && !mkdir(new, 0700));
	snprintf(path, sizeof(path), "%s/..old/t.json", node.dir);
	copy("c007-initializing-only.json", false);
	snprintf(path, sizeof(path), "%s/..new/t.json", node.dir);
	copy("c020-table-2-devices.json", false);
	ck_assert_int_eq(symlink("..old", link), 0);
	snprintf(path, sizeof(path), "%s/t.json", node.dir);
	ck_assert_int_eq(symlink("..data/t.json", path), 0);
	snprintf(o.text, sizeof(o.text), "%s", path);
	for (uint32_t i = 0; i < 2; i++) {
		hc_rank_spawn(&r[i]);
		o.rank = i;
		hc_rank_tell(&r[i], &o);
	}
	hc_await("both to have seen the unfinished table", refused, &(uint64_t){2}, 10000);
	turned = hc_now_ns();
	snprintf(old, sizeof(old), "%s/..tmp", node.dir);
	ck_assert_int_eq(symlink("..new", old), 0);
	ck_assert_int_eq(rename(old, link), 0);
	for (uint32_t i = 0; i < 2; i++) {
		hc_rank_hear(&r[i], &a, 15000);
		ck_assert_msg(!a.result, "rank %u: %s", i, a.text);
		ck_assert_uint_lt((a.end_ns - turned) / 1000000, hc_patience(2000));
	}
	hc_ranks_quit(r, 2);
	hc_node_end(&node);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_test(t, ranks_form_within_a_second_of_the_rename);
	tcase_add_test(t, never_replaced_is_not_ready_after_the_limit);
	tcase_add_test(t, a_list_under_initializing_is_not_used);
	tcase_add_test(t, a_turned_link_is_seen_too);
}

int main(void)
{
	return hc_suite_run("case_007_table_not_ready", add, 60);
}
