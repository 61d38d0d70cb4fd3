/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Domains over two real daemons on loopback addresses, by each way in: how the home is found.
 *
 * Where a test wants the daemons to be strangers, neither has a section for the other: all that
 * one can know of the other is what the root info or the rank table says. Each join that cannot
 * succeed must end at its own deadline, not earlier, and say whom it wanted and what was there.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "eye.h"
#include "pairs.h"
#include "ranks.h"
#include "suite.h"

enum { PORT = 24700, LIMIT = 20000 };

static struct hc_node n[2];
static struct hc_rank r[4];
static struct hc_run run;
static char table[200];

/* Two devices on each; `sections`: they know each other. */
static void prepare(unsigned i, bool sections)
{
	char options[300], section[100], path[200];

	snprintf(options, sizeof(options),
		 "node_name = node%u\nlisten_address = 127.0.0.%u\nlisten_port = %u\n", i, i + 1,
		 PORT);
	snprintf(section, sizeof(section), "[node node%u]\naddress = 127.0.0.%u\n", 1 - i, 2 - i);
	hc_node_prepare(&n[i], 2, options, sections ? section : NULL);
	snprintf(path, sizeof(path), "%s/no.key", n[i].dir);
	hc_write_file(path, HC_KEY_A);
	ck_assert(!chmod(path, 0400));
}

static void begin(bool sections)
{
	unsigned i;

	for (i = 0; i < 2; i++) {
		prepare(i, sections);
		hc_node_run(&n[i]);
	}
}

static void end(void)
{
	hc_node_end(&n[1]);
	hc_node_end(&n[0]);
}

/* A rank whose daemon is that of node i. */
static void spawn_on(struct hc_rank *rank, unsigned i)
{
	setenv("HCOMM_SOCKET", n[i].socket, 1);
	hc_rank_spawn(rank);
}

/* Ranks 0 and 1 on the first server, 2 and 3 on the second. */
static void write_table(const char *first, const char *second, bool host_ip)
{
	const char *name[2] = {first, second};
	char text[2000];
	size_t at;
	unsigned i;

	at = (size_t)snprintf(
		text, sizeof(text),
		"{\"version\":\"1.0\",\"status\":\"completed\",\"server_count\":\"2\","
		"\"server_list\":[");
	for (i = 0; i < 2; i++) {
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s{\"server_id\":\"%s\",",
				       i ? "," : "", name[i]);
		if (host_ip)
			at += (size_t)snprintf(text + at, sizeof(text) - at,
					       "\"host_ip\":\"127.0.0.%u\",", i + 1);
		at += (size_t)snprintf(
			text + at, sizeof(text) - at,
			"\"device\":[{\"device_id\":\"0\",\"device_ip\":\"192.0.2.%u\","
			"\"rank_id\":\"%u\"},{\"device_id\":\"1\",\"device_ip\":\"192.0.2.%u\","
			"\"rank_id\":\"%u\"}]}",
			2 * i + 1, 2 * i, 2 * i + 2, 2 * i + 1);
	}
	snprintf(text + at, sizeof(text) - at, "]}");
	snprintf(table, sizeof(table), "%s/table.json", n[0].dir);
	hc_write_file(table, text);
}

static struct hc_order by_table(uint32_t rank, int timeout_ms)
{
	struct hc_order o = {.what = HC_DO_JOIN_TABLE, .rank = rank, .timeout_ms = timeout_ms};

	snprintf(o.text, sizeof(o.text), "%s", table);
	return o;
}

static void root_info(unsigned node, uint32_t nranks, struct hcomm_root_info *info)
{
	struct hcomm_session *s = NULL;

	setenv("HCOMM_SOCKET", n[node].socket, 1);
	ck_assert_int_eq(hcomm_open(NULL, &s), 0);
	ck_assert_int_eq(hcomm_root_info(s, nranks, NULL, info), 0);
	hcomm_close(s);
}

/* All answers are good and of one domain. */
static void must_all(uint32_t count)
{
	struct hc_answer a[4];
	uint32_t i;

	for (i = 0; i < count; i++) {
		hc_rank_hear(&r[i], &a[i], LIMIT);
		ck_assert_msg(!a[i].result, "rank %u: %s: %s", i, hcomm_error_name(a[i].result),
			      a[i].text);
		ck_assert(a[i].id && a[i].id == a[0].id);
		ck_assert_uint_eq(a[i].nranks, count);
	}
}

/* A rank of one node dies: one of the other hears who it was. */
static void one_dies(uint32_t dead, uint32_t other, const char *node)
{
	struct hc_order o = {.what = HC_DO_EVENT, .code = HCOMM_EV_RANK_DIED};
	const uint32_t pid = (uint32_t)r[dead].child.pid;
	struct hc_answer a;

	hc_rank_kill(&r[dead]);
	hc_rank_do(&r[other], &o, &a);
	ck_assert_uint_eq(a.rank, dead);
	ck_assert_uint_eq(a.pid, pid);
	ck_assert_str_eq(a.node, node);
}

/* Refused at the deadline of `ms`, with these words. */
static void want_late(uint32_t rank, const struct hc_order *o, const char *const *words)
{
	struct hc_answer a;

	ck_assert_int_eq(hc_rank_do(&r[rank], o, &a), HCOMM_E_TIMEOUT);
	ck_assert_uint_ge((a.end_ns - a.began_ns) / 1000000, (unsigned)o->timeout_ms - 5);
	ck_assert_uint_le((a.end_ns - a.began_ns) / 1000000,
			  hc_patience((unsigned)o->timeout_ms + 1500));
	for (; *words; words++)
		ck_assert_msg(strstr(a.text, *words) != NULL, "no '%s' in: %s", *words, a.text);
}

START_TEST(root_info_leads_to_a_stranger)
{
	struct hc_order o = {.what = HC_DO_JOIN, .nranks = 2, .timeout_ms = LIMIT};

	begin(false);
	root_info(0, 2, &o.info);
	spawn_on(&r[0], 0);
	spawn_on(&r[1], 1);
	o.rank = 1;
	hc_rank_tell(&r[1], &o);
	o.rank = 0;
	hc_rank_tell(&r[0], &o);
	must_all(2);
	hc_pair_await(&n[1], "node0", "up");
	one_dies(0, 1, "node0");
	hc_rank_kill(&r[1]);
	end();
}
END_TEST

START_TEST(root_info_of_a_daemon_that_is_gone)
{
	const char *const words[] = {"node node0, the home of the root info", "127.0.0.1:24700",
				     "refused", "within 1.5 s", NULL};
	struct hc_order o = {.what = HC_DO_JOIN, .nranks = 2, .rank = 1, .timeout_ms = 1500};

	begin(false);
	root_info(0, 2, &o.info);
	hc_node_stop(&n[0]);
	spawn_on(&r[1], 1);
	want_late(1, &o, words);
	/* nobody wants it any more: it is no peer of anybody */
	hc_ctl(&run, &n[1], "node", "list", "--no-headings", (char *)NULL);
	ck_assert_ptr_null(strstr(run.out, "127.0.0.1"));
	hc_rank_kill(&r[1]);
	end();
}
END_TEST

/* The daemon of the home is started after the joins began: they find it. */
START_TEST(home_comes_while_the_join_waits)
{
	struct hc_order o = {.what = HC_DO_JOIN, .nranks = 2, .timeout_ms = LIMIT};

	begin(false);
	root_info(0, 2, &o.info);
	hc_node_stop(&n[0]);
	spawn_on(&r[1], 1);
	o.rank = 1;
	hc_rank_tell(&r[1], &o);
	hc_pair_await_log(&n[1], "waits for node node0");
	hc_node_run(&n[0]);
	spawn_on(&r[0], 0);
	o.rank = 0;
	hc_rank_tell(&r[0], &o);
	must_all(2);
	hc_rank_kill(&r[0]);
	hc_rank_kill(&r[1]);
	end();
}
END_TEST

static void all_by_table(void)
{
	struct hc_order o;
	uint32_t i;

	for (i = 4; i-- > 0;) { /* the home's ranks come last */
		spawn_on(&r[i], i / 2);
		o = by_table(i, LIMIT);
		hc_rank_tell(&r[i], &o);
	}
	must_all(4);
	one_dies(2, 0, "node1");
	for (i = 0; i < 4; i++)
		if (i != 2)
			hc_rank_kill(&r[i]);
}

START_TEST(table_with_host_ip_leads_to_a_stranger)
{
	begin(false);
	write_table("rack-7", "rack-8", true);
	all_by_table();
	end();
}
END_TEST

START_TEST(table_names_a_node)
{
	begin(true);
	write_table("node0", "node1", false);
	all_by_table();
	end();
}
END_TEST

START_TEST(table_with_a_server_that_nobody_is)
{
	const char *const words[] = {"no sign of rank 0 (rack-7, 192.0.2.1, device 0), 1 (rack-7, ",
				     "within 1.5 s", "server rack-7", "no host_ip", NULL};
	struct hc_order o;

	begin(true);
	write_table("rack-7", "rack-8", false);
	spawn_on(&r[2], 1);
	o = by_table(2, 1500);
	want_late(2, &o, words);
	hc_rank_kill(&r[2]);
	end();
}
END_TEST

struct wish {
	const struct hc_node *node;
	const char *const *words;
};

static bool shows(void *ctx)
{
	const struct wish *w = ctx;
	unsigned i;

	hc_ctl(&run, w->node, "domain", "show", "job", (char *)NULL);
	for (i = 0; w->words[i] && strstr(run.out, w->words[i]); i++)
		;
	return !w->words[i];
}

static void await_shown(const struct hc_node *node, const char *const *words)
{
	struct wish w = {node, words};

	if (!hc_wait_until(shows, &w, 10000))
		hc_fail("%s shows: %s", node->dir, run.out);
}

static void tell_job(uint32_t rank)
{
	struct hc_order o = by_table(rank, LIMIT);

	snprintf(o.name, sizeof(o.name), "job");
	hc_rank_tell(&r[rank], &o);
}

/*
 * Both nodes say who is missing, and the joining one hears of each change. The home has the table
 * from its own ranks: until one comes it knows the others by number only.
 */
START_TEST(who_is_missing_is_shown_on_both)
{
	const char *const numbers[] = {"FORMING",         "rank 0, 1, 3 (3 of 4 missing)",
				       "missing: rank 0", "missing: rank 1",
				       "missing: rank 3", NULL};
	const char *const three[] = {"FORMING",
				     "(3 of 4 missing)",
				     "missing: rank 0 on node0, device 0, 192.0.2.1",
				     "missing: rank 1 on node0, device 1, 192.0.2.2",
				     "missing: rank 3 on node1, device 1, 192.0.2.4",
				     NULL};
	const char *const one[] = {"FORMING", "(1 of 4 missing)",
				   "missing: rank 1 on node0, device 1, 192.0.2.2", NULL};
	uint32_t i;

	begin(true);
	write_table("node0", "node1", false);
	for (i = 0; i < 4; i++)
		spawn_on(&r[i], i / 2);
	tell_job(2);
	await_shown(&n[0], numbers);
	await_shown(&n[1], three);
	tell_job(3);
	tell_job(0);
	await_shown(&n[0], one);
	await_shown(&n[1], one);
	tell_job(1);
	must_all(4);
	for (i = 0; i < 4; i++)
		hc_rank_kill(&r[i]);
	end();
}
END_TEST

START_TEST(rank_on_the_wrong_machine)
{
	struct hc_order o;
	struct hc_answer a;

	begin(true);
	hc_pair_await(&n[1], "node0", "up");
	write_table("node0", "node1", false);
	spawn_on(&r[0], 1);
	o = by_table(0, LIMIT);
	ck_assert_int_eq(hc_rank_do(&r[0], &o, &a), HCOMM_E_INVALID);
	ck_assert_msg(strstr(a.text, "which is node node0; it was started on node node1") != NULL,
		      "%s", a.text);
	hc_rank_kill(&r[0]);
	end();
}
END_TEST

static void add(TCase *t)
{
	tcase_add_test(t, root_info_leads_to_a_stranger);
	tcase_add_test(t, root_info_of_a_daemon_that_is_gone);
	tcase_add_test(t, home_comes_while_the_join_waits);
	tcase_add_test(t, table_with_host_ip_leads_to_a_stranger);
	tcase_add_test(t, table_names_a_node);
	tcase_add_test(t, table_with_a_server_that_nobody_is);
	tcase_add_test(t, who_is_missing_is_shown_on_both);
	tcase_add_test(t, rank_on_the_wrong_machine);
}

int main(void)
{
	hc_ports_own("test_joins_nodes");
	return hc_suite_run("joins_nodes", add, 60);
}
