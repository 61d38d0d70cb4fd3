/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A reload takes all of the new configuration or nothing of it.
 *
 * A good line beside a bad one is the trap: half of it would be in force, and nobody knows which
 * half. So after a refused reload every setting, every device and every domain is as before; the
 * answer and the status name file, line and cause; and a good one later takes all and clears the
 * remark. By SIGHUP the same as by the operator's word.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ranks.h"
#include "raw.h"
#include "suite.h"
#include "users.h"

enum { TEXT = 64 * 1024 };

static struct hc_node node;
static struct hc_rank r[2];
static struct hcomm_session *s;
static char before[TEXT], after[TEXT];

/* ---- everything that a reload may change, as one text ---- */

static int add_setting(const void *row, void *context)
{
	const struct hcomm_view_setting *v = row;
	char *text = context;

	ck_assert_uint_lt(strlen(text) + strlen(v->name) + strlen(v->value) + 4, TEXT);
	sprintf(text + strlen(text), "%s=%s\n", v->name, v->value);
	return 0;
}

static int add_device(const void *row, void *context)
{
	const struct hcomm_view_device *v = row;
	char *text = context;

	sprintf(text + strlen(text), "device %u %s\n", v->index, v->health);
	return 0;
}

static void all_settings(char *text)
{
	struct hcomm_filter filter = HCOMM_INIT(struct hcomm_filter);

	text[0] = '\0';
	ck_assert_int_eq(hcomm_query(s, HCOMM_VIEW_SETTING, &filter, add_setting, text), 0);
	ck_assert_int_eq(hcomm_query(s, HCOMM_VIEW_DEVICE, &filter, add_device, text), 0);
	ck_assert_uint_gt(strlen(text), 200);
}

static void begin(void)
{
	hc_node_start(&node, 2, "log_rate = 50\nconnect_timeout_s = 77");
	hc_ranks_start(r, 2, "innocent");
	ck_assert_int_eq(hcomm_open(NULL, &s), 0);
	all_settings(before);
}

static void end(void)
{
	struct hcomm_view_domain d;

	ck_assert(hc_node_alive(&node));
	ck_assert(hc_ask_domain("innocent", &d));
	ck_assert_str_eq(d.state, "ACTIVE");
	for (unsigned i = 0; i < 2; i++) {
		hc_rank_must(&r[i],
			     &(struct hc_order){.what = HC_DO_BEGIN, .kind = HCOMM_OP_BARRIER},
			     NULL);
		hc_rank_must(&r[i], &(struct hc_order){.what = HC_DO_END}, NULL);
	}
	hcomm_close(s);
	hc_ranks_quit(r, 2);
	hc_node_end(&node);
}

static void want_unchanged(void)
{
	all_settings(after);
	ck_assert_str_eq(after, before);
}

/* Lines at the end of the configuration. */
static void append(const char *lines)
{
	char *text = hc_read_file(node.conf), *more = calloc(1, strlen(text) + strlen(lines) + 2);

	sprintf(more, "%s%s\n", text, lines);
	hc_replace_file(node.conf, more);
	free(more);
	free(text);
}

static int reload(void)
{
	return hcomm_admin(s, "reload", NULL, 10000, NULL, 0);
}

static void refused(const char *cause)
{
	struct hcomm_view_status st;

	ck_assert_int_eq(reload(), HCOMM_E_INVALID);
	if (!strstr(hcomm_last_error(), cause))
		hc_fail("the answer is: %s; wanted in it: %s", hcomm_last_error(), cause);
	want_unchanged();
	hc_ask_status(&st);
	ck_assert_str_eq(st.health, "degraded");
	ck_assert_ptr_nonnull(strstr(st.remark, "reload failed at 20"));
	ck_assert_ptr_nonnull(strstr(st.remark, cause));
}

/* ---- the tests ---- */

START_TEST(a_bad_value_keeps_everything)
{
	struct hcomm_view_status st;
	char *good = hc_read_file(node.conf);

	hc_conf_set(&node, "connect_timeout_s", "88");
	hc_conf_set(&node, "log_rate", "many");
	append("[device 2]\nkind = npu\nsimulated = yes");
	refused("log_rate");
	refused("hcommd.conf:");
	refused("'many' is not a number");
	hc_conf_set(&node, "log_rate", "60");
	append("[device 3]\nkind = toaster");
	refused("toaster");
	/* devices are of those who hold them: a restart takes new ones */
	hc_replace_file(node.conf, good);
	hc_conf_set(&node, "connect_timeout_s", "88");
	append("[device 2]\nkind = npu\nsimulated = yes");
	refused("only a restart takes it: [device 2]");
	/* all of it, once it is right */
	hc_replace_file(node.conf, good);
	hc_conf_set(&node, "connect_timeout_s", "88");
	hc_conf_set(&node, "log_rate", "60");
	if (reload())
		hc_fail("refused: %s", hcomm_last_error());
	all_settings(after);
	ck_assert_ptr_nonnull(strstr(after, "connect_timeout_s=88\n"));
	ck_assert_ptr_nonnull(strstr(after, "log_rate=60\n"));
	hc_ask_status(&st);
	ck_assert_str_eq(st.health, "ok");
	free(good);
}
END_TEST

START_TEST(what_only_a_restart_takes_is_refused_by_name)
{
	hc_conf_set(&node, "connect_timeout_s", "88");
	hc_conf_set(&node, "clients_max", "7");
	hc_conf_set(&node, "quota_domains", "3");
	refused("clients_max");
	refused("quota_domains");
	refused("only a restart takes it");
}
END_TEST

START_TEST(a_file_that_is_gone_or_unknown_words)
{
	char *good = hc_read_file(node.conf);

	ck_assert_int_eq(unlink(node.conf), 0);
	refused("hcommd.conf");
	hc_replace_file(node.conf, good);
	hc_conf_set(&node, "conect_timeout_s", "88");
	refused("connect_timeout_s"); /* the nearest name */
	hc_replace_file(node.conf, good);
	ck_assert_int_eq(reload(), 0);
	want_unchanged();
	free(good);
}
END_TEST

static bool told(void *ctx)
{
	return hc_node_logged(&node, ctx);
}

START_TEST(by_a_signal_the_same)
{
	hc_conf_set(&node, "connect_timeout_s", "88");
	hc_conf_set(&node, "log_rate", "-1");
	kill(node.pid, SIGHUP);
	hc_await("the refusal", told, (char[]){"reload failed, nothing is changed"}, 5000);
	want_unchanged();
	hc_conf_set(&node, "log_rate", "50");
	kill(node.pid, SIGHUP);
	hc_await("the new configuration", told, (char[]){"configuration reloaded"}, 5000);
	all_settings(after);
	ck_assert_ptr_nonnull(strstr(after, "connect_timeout_s=88\n"));
}
END_TEST

/* Many at once, of which some are right: the last good one is in force, whole. */
START_TEST(a_storm_of_reloads)
{
	struct hcomm_view_status st;

	for (unsigned i = 0; i < 50; i++) {
		hc_conf_set(&node, "connect_timeout_s", i % 2 ? "0" : "99");
		kill(node.pid, SIGHUP);
		ck_assert_int_eq(hcomm_ping(s, 5000), 0);
	}
	hc_conf_set(&node, "connect_timeout_s", "99");
	while (reload() == HCOMM_E_BUSY)
		ck_assert_int_eq(hcomm_ping(s, 5000), 0);
	all_settings(after);
	ck_assert_ptr_nonnull(strstr(after, "connect_timeout_s=99\n"));
	hc_ask_status(&st);
	ck_assert_str_eq(st.health, "ok");
}
END_TEST

static void add(TCase *t)
{
	tcase_add_checked_fixture(t, begin, end);
	tcase_add_test(t, a_bad_value_keeps_everything);
	tcase_add_test(t, what_only_a_restart_takes_is_refused_by_name);
	tcase_add_test(t, a_file_that_is_gone_or_unknown_words);
	tcase_add_test(t, by_a_signal_the_same);
	tcase_add_test(t, a_storm_of_reloads);
}

int main(void)
{
	return hc_suite_run("reload", add, 60);
}
