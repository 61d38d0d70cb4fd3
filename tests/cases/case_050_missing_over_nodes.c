/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Case 50, over nodes: five servers, a rank of each, and two come.
 *
 * Whoever waits wants to know more than numbers: is the machine of the missing rank there at all,
 * is its daemon, or is it only that nobody has started the process yet? Both the home and a node
 * that joins show it while they wait, for people and as JSON, each by what it has heard itself;
 * the home does so also before a rank of its own has brought the table, which it asks for;
 * and both ranks are told at their limit who did not come, with addresses.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "eye.h"
#include "pairs.h"
#include "ranks.h"
#include "suite.h"

enum { PORT = 24900, LIMIT = 20000, NODES = 3 /* with a daemon */, SERVERS = 5 };

static struct hc_node n[NODES];
static struct hc_rank r[2];
static struct hc_run run;
static char table[200];

/* Server 3 has a section and no daemon, server 4 not even that. */
static void begin(void)
{
	char text[2000];
	size_t at = 0;
	unsigned i;

	for (i = 0; i < NODES; i++) {
		hc_pair_prepare(&n[i], i, SERVERS - 1, PORT, HC_KEY_A, NULL);
		hc_node_run(&n[i]);
	}
	hc_await_node(&n[0], "node1", "up", LIMIT);
	hc_await_node(&n[0], "node2", "up", LIMIT);
	hc_await_node(&n[1], "node0", "up", LIMIT);
	hc_await_node(&n[1], "node2", "up", LIMIT);
	for (i = 0; i < SERVERS; i++)
		at += (size_t)snprintf(text + at, sizeof(text) - at,
				       "%s{\"server_id\":\"node%u\",\"device\":[{\"device_id\":"
				       "\"0\",\"device_ip\":\"192.0.2.%u\",\"rank_id\":\"%u\"}]}",
				       i ? ","
					 : "{\"version\":\"1.0\",\"status\":\"completed\","
					   "\"server_count\":\"5\",\"server_list\":[",
				       i, i + 1, i);
	snprintf(text + at, sizeof(text) - at, "]}");
	snprintf(table, sizeof(table), "%s/table.json", n[0].dir);
	hc_write_file(table, text);
}

static void end(void)
{
	unsigned i;

	for (i = 0; i < 2; i++)
		hc_rank_kill(&r[i]);
	for (i = NODES; i-- > 0;)
		hc_node_end(&n[i]);
}

static void tell_join(unsigned rank, int timeout_ms)
{
	struct hc_order o = {
		.what = HC_DO_JOIN_TABLE, .rank = rank, .timeout_ms = timeout_ms, .name = "job"};

	setenv("HCOMM_SOCKET", n[rank].socket, 1);
	hc_rank_spawn(&r[rank]);
	snprintf(o.text, sizeof(o.text), "%s", table);
	hc_rank_tell(&r[rank], &o);
}

/* ---- what is shown ---- */

struct wish {
	unsigned node;
	const char *const *lines; /* begin, end, begin, end, ... of lines; NULL ends it */
};

static bool has_line(const char *text, const char *begin, const char *end)
{
	const char *p, *stop;

	for (p = text; (p = strstr(p, begin)); p++) {
		stop = strchr(p, '\n');
		if (stop && (size_t)(stop - p) >= strlen(end) &&
		    !memcmp(stop - strlen(end), end, strlen(end)))
			return true;
	}
	return false;
}

static bool shows(void *ctx)
{
	const struct wish *w = ctx;
	unsigned i;

	hc_ctl(&run, &n[w->node], "domain", "show", "job", (char *)NULL);
	for (i = 0; w->lines[i]; i += 2)
		if (!has_line(run.out, w->lines[i], w->lines[i + 1]))
			return false;
	return true;
}

static void await_shown(unsigned node, const char *const *lines)
{
	struct wish w = {node, lines};

	if (!hc_wait_until(shows, &w, LIMIT))
		hc_fail("node%u shows: %s", node, run.out);
}

/* The sign of a rank in the JSON of a node. */
static void want_json(unsigned node, unsigned rank, const char *begin, const char *end)
{
	json_t *all, *row = NULL;
	const char *sign;
	json_error_t e;
	size_t i;

	hc_ctl(&run, &n[node], "--json", "domain", "show", "job", (char *)NULL);
	all = json_loads(run.out, 0, &e);
	ck_assert_msg(all != NULL, "%s: %s", e.text, run.out);
	json_array_foreach(json_object_get(all, "members"), i,
			   row) if (json_integer_value(json_object_get(row, "rank")) == rank) break;
	ck_assert_msg(row != NULL, "rank %u is not in: %s", rank, run.out);
	sign = json_string_value(json_object_get(row, "sign"));
	ck_assert_msg(sign && !strncmp(sign, begin, strlen(begin)) && strlen(sign) >= strlen(end) &&
			      !strcmp(sign + strlen(sign) - strlen(end), end),
		      "rank %u: %s", rank, run.out);
	json_decref(all);
}

static void want_told(unsigned rank)
{
	static const char *const names[] = {"2 (192.0.2.3", "3 (192.0.2.4", "4 (192.0.2.5",
					    "(3 of 5 missing)"};
	struct hc_answer a;
	unsigned i;

	hc_rank_hear(&r[rank], &a, LIMIT);
	ck_assert_int_eq(a.result, HCOMM_E_TIMEOUT);
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		ck_assert_msg(strstr(a.text, names[i]) != NULL, "no '%s' in: %s", names[i], a.text);
	ck_assert_ptr_null(strstr(a.text, "192.0.2.1,"));
	ck_assert_ptr_null(strstr(a.text, "192.0.2.2,"));
}

START_TEST(the_last_sign_of_life_of_each)
{
	const char *const up[] = {"missing: rank 2 on node2, device 0, 192.0.2.3: heard ",
				  " ms ago",
				  "missing: rank 3 on node3, device 0, 192.0.2.4: never seen",
				  "",
				  "missing: rank 4 on node4, device 0, 192.0.2.5: never seen",
				  "no node of that name or address is known",
				  NULL};
	const char *const alone[] = {"missing: rank 0 on node0, device 0, 192.0.2.1: heard ",
				     " ms ago", NULL};
	const char *const here[] = {"missing: rank 0 on node0, device 0, 192.0.2.1: this node", "",
				    NULL};
	const char *const down[] = {
		"missing: rank 2 on node2, device 0, 192.0.2.3: daemon down for ", " ms", NULL};
	unsigned i;

	begin();
	tell_join(1, LIMIT);
	await_shown(1, alone);
	/* the home, none of whose ranks has come to show it the table */
	await_shown(0, here);
	await_shown(0, up);
	want_json(0, 0, "this node", "");
	want_json(0, 2, "heard ", " ms ago");
	want_json(0, 3, "never seen", "");
	tell_join(0, LIMIT);
	for (i = 0; i < 2; i++) {
		await_shown(i, up);
		want_json(i, 2, "heard ", " ms ago");
		want_json(i, 3, "never seen", "");
		want_json(i, i, "", ""); /* who has come has none */
	}
	hc_node_kill(&n[2]);
	for (i = 0; i < 2; i++) {
		await_shown(i, down);
		want_json(i, 2, "daemon down for ", " ms");
	}
	end();
}
END_TEST

START_TEST(both_are_told_at_their_limit)
{
	begin();
	tell_join(1, 1500);
	tell_join(0, 1500);
	want_told(0);
	want_told(1);
	end();
}
END_TEST

static void add(TCase *t)
{
	tcase_add_test(t, the_last_sign_of_life_of_each);
	tcase_add_test(t, both_are_told_at_their_limit);
}

int main(void)
{
	hc_ports_own("case_050_missing_over_nodes");
	return hc_suite_run("case_050_missing_over_nodes", add, 60);
}
