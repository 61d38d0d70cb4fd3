/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Domains over two real daemons on loopback addresses, two ranks on each: how they end, and what
 * they do while a daemon stands still, is killed, or has lost what it knew.
 */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dbcheck.h"
#include "eye.h"
#include "pairs.h"
#include "ranks.h"
#include "suite.h"

enum { PORT = 24600, LIMIT = 20000, RANKS = 4 };

static struct hc_node n[2];
static struct hc_rank rank[RANKS];
static struct hc_answer joined;
static struct hc_run run;
static char id[32];

static const struct hc_node *node_of(unsigned r)
{
	return &n[r / 2];
}

/* ---- one domain over both ---- */

static void begin(const char *top)
{
	struct hc_order o = {.what = HC_DO_JOIN_TABLE, .timeout_ms = 20000};
	unsigned i;

	for (i = 0; i < 2; i++) {
		hc_pair_prepare(&n[i], i, 2, PORT, HC_KEY_A, top);
		hc_node_run(&n[i]);
	}
	hc_await_node(&n[0], "node1", "up", LIMIT);
	hc_await_node(&n[1], "node0", "up", LIMIT);
	hc_await_path(&n[0], "127.0.0.2:", "normal", LIMIT);
	hc_await_path(&n[1], "127.0.0.1:", "normal", LIMIT);
	hc_pair_table(n, o.text, sizeof(o.text));
	for (i = 0; i < RANKS; i++) {
		setenv("HCOMM_SOCKET", node_of(i)->socket, 1);
		hc_rank_spawn(&rank[i]);
		o.rank = i;
		snprintf(o.server, sizeof(o.server), "node%u", i / 2);
		snprintf(o.name, sizeof(o.name), "train");
		hc_rank_tell(&rank[i], &o);
	}
	for (i = 0; i < RANKS; i++) {
		hc_rank_hear(&rank[i], &joined, LIMIT);
		if (joined.result)
			hc_fail("rank %u: %d: %s", i, joined.result, joined.text);
	}
	snprintf(id, sizeof(id), "%016llx", (unsigned long long)joined.id);
}

static void end(void)
{
	hc_node_end(&n[1]);
	hc_node_end(&n[0]);
}

static void quit_all(void)
{
	unsigned i;

	for (i = 0; i < RANKS; i++)
		if (rank[i].child.pid)
			hc_rank_quit(&rank[i]);
}

struct wish {
	unsigned node;
	const char *words[2];
};

/* For how long the domain is in its state, as that node shows it. */
static bool is_old(void *ctx)
{
	const unsigned *node = ctx;
	struct hcomm_view_domain d;

	return hc_row_domain(&n[*node], joined.id, &d) && d.age_ms >= 200;
}

static bool shows(void *ctx)
{
	const struct wish *w = ctx;
	const char *line;

	hc_ctl(&run, &n[w->node], "domain", "list", "--no-headings", (char *)NULL);
	line = strstr(run.out, id);
	if (!w->words[0])
		return !line;
	return line && strstr(line, w->words[0]) && (!w->words[1] || strstr(line, w->words[1]));
}

/* The domain's line there has that state, and that text; state NULL: there is none. */
static void await_state(unsigned node, const char *state, const char *text)
{
	struct wish w = {node, {state, text}};

	if (!hc_wait_until(shows, &w, LIMIT))
		hc_fail("node%u does not show %s (%s): %s%s", node, state ? state : "nothing",
			text ? text : "", run.out, run.err);
}

/* The rank hears that event, with that text. */
static void hears(unsigned r, unsigned code, const char *text)
{
	struct hc_order o = {.what = HC_DO_EVENT, .code = code, .timeout_ms = LIMIT};
	struct hc_answer a;

	if (hc_rank_do(&rank[r], &o, &a))
		hc_fail("rank %u does not hear %u: %s", r, code, a.text);
	if (text && !strstr(a.text, text))
		hc_fail("rank %u hears of %u: %s", r, code, a.text);
}

static int operation(unsigned r)
{
	struct hc_order o = {.what = HC_DO_BEGIN, .kind = HCOMM_OP_ALL_REDUCE};
	const int e = hc_rank_do(&rank[r], &o, NULL);

	o.what = HC_DO_END;
	return e ? e : hc_rank_do(&rank[r], &o, NULL);
}

static void operations_run(void)
{
	unsigned i;

	for (i = 0; i < RANKS; i++)
		ck_assert_int_eq(operation(i), 0);
}

/* ---- how it ends ---- */

START_TEST(both_nodes_show_it_and_name_its_home)
{
	unsigned i;

	begin(NULL);
	operations_run();
	await_state(0, "ACTIVE", "node0");
	await_state(1, "ACTIVE", "node0");
	for (i = 0; i < 2; i++)
		ck_assert_msg(hc_wait_until(is_old, &i, LIMIT), "node%u shows no age", i);
	hc_ctl(&run, &n[1], "domain", "show", id, (char *)NULL);
	ck_assert_int_eq(run.status, 0);
	ck_assert_msg(strstr(run.out, "node0") && strstr(run.out, "ACTIVE"), "%s", run.out);
	quit_all();
	await_state(1, "DESTROYED", NULL);
	end();
}
END_TEST

/* All leave, on both nodes: all of them are out, and it is over on both. */
START_TEST(all_leave)
{
	struct hc_order o = {.what = HC_DO_LEAVE, .timeout_ms = LIMIT};
	unsigned i;

	begin(NULL);
	operations_run();
	for (i = 0; i < RANKS; i++)
		hc_rank_tell(&rank[i], &o);
	for (i = 0; i < RANKS; i++) {
		struct hc_answer a;

		hc_rank_hear(&rank[i], &a, LIMIT);
		ck_assert_msg(!a.result, "rank %u: %s", i, a.text);
	}
	await_state(0, "DESTROYED", "all ranks left");
	await_state(1, "DESTROYED", "all ranks left");
	for (i = 0; i < 2; i++) { /* by name too, and with its home */
		hc_ctl(&run, &n[i], "domain", "show", "train", (char *)NULL);
		ck_assert_int_eq(run.status, 0);
		ck_assert_msg(strstr(run.out, "all ranks left") && strstr(run.out, "node0"), "%s",
			      run.out);
		hc_ctl(&run, &n[i], "domain", "destroy", id, (char *)NULL);
		ck_assert_int_eq(run.status, 1);
		ck_assert_msg(strstr(run.err, "has ended already") != NULL, "%s", run.err);
	}
	quit_all();
	end();
}
END_TEST

/* A rank is killed and the others go in order, at once: it ends at its home. */
START_TEST(after_a_death_the_others_leave)
{
	struct hc_order o = {.what = HC_DO_LEAVE, .timeout_ms = LIMIT};
	const unsigned dead = _i ? 2 : 1;
	unsigned i;

	begin("orphan_grace_s = 1\n");
	hc_rank_kill(&rank[dead]);
	for (i = 0; i < RANKS; i++)
		if (i != dead)
			hears(i, HC_W_event_code_RANK_DIED, dead == 1 ? "rank 1" : "rank 2");
	await_state(0, "DAMAGED", "exited");
	await_state(1, "DAMAGED", "exited");
	for (i = 0; i < RANKS; i++)
		if (i != dead)
			hc_rank_must(&rank[i], &o, NULL);
	await_state(0, "DESTROYED", "no member alive");
	await_state(1, "DESTROYED", "no member alive");
	quit_all();
	end();
}
END_TEST

/* Entries of that kind which the journal of a node has of the domain. */
static unsigned written(unsigned node, const char *event)
{
	const char *p;
	unsigned count = 0;

	hc_ctl(&run, &n[node], "event", "list", "--domain", id, "-o", "EVENT,RANK,PID,TEXT",
	       "--no-headings", (char *)NULL);
	ck_assert_msg(run.status == 0, "%s%s", run.out, run.err);
	for (p = run.out; (p = strstr(p, event)); p += strlen(event))
		count++;
	return count;
}

static bool is_written(void *ctx)
{
	return written(1, ctx) > 0;
}

/* Whoever looks after a failure at the node where the rank was finds there what became of it. */
START_TEST(both_nodes_have_it_in_their_journals)
{
	char want[64];
	unsigned i;

	begin("orphan_grace_s = 1\n");
	snprintf(want, sizeof(want), "rank 2, pid %d on node node1, exited",
		 (int)rank[2].child.pid);
	hc_rank_kill(&rank[2]);
	hears(0, HC_W_event_code_RANK_DIED, "rank 2");
	if (!hc_wait_until(is_written, (char[]){"DAMAGED: rank 2"}, LIMIT))
		hc_fail("node1 has: %s", run.out);
	quit_all();
	await_state(0, "DESTROYED", "no member alive");
	if (!hc_wait_until(is_written, (char[]){"domain-destroyed"}, LIMIT))
		hc_fail("node1 has: %s", run.out);
	for (i = 0; i < 2; i++) {
		ck_assert_uint_eq(written(i, "domain-active"), 1);
		ck_assert_uint_eq(written(i, "DAMAGED: rank 2"), 1);
		ck_assert_uint_eq(written(i, "domain-destroyed"), 1);
	}
	/* as the cause of DAMAGED and in that of the end; on its own node at once, too */
	ck_assert_uint_eq(written(0, want), 2);
	ck_assert_uint_eq(written(1, want), 3);
	end();
}
END_TEST

/* From the home (0) or from the other node (1): the cut is that of all, on both. */
START_TEST(destroyed_from_either_node)
{
	struct hc_order o = {.what = HC_DO_BEGIN, .kind = HCOMM_OP_ALL_REDUCE},
			d = {.what = HC_DO_DESTROY, .timeout_ms = LIMIT};
	const unsigned by = _i ? 3 : 0, other = _i ? 0 : 3;
	struct hc_answer a;

	begin(NULL);
	operations_run();
	hc_rank_must(&rank[other], &o, NULL);
	hc_rank_must(&rank[by], &o, NULL);
	o.what = HC_DO_END;
	hc_rank_must(&rank[by], &o, NULL);
	hc_rank_tell(&rank[by], &d);
	hears(1, HC_W_event_code_DOMAIN_DRAINING, "destroyed by uid");
	hears(2, HC_W_event_code_DOMAIN_DRAINING, "destroyed by uid");
	await_state(0, "DRAINING", NULL);
	await_state(1, "DRAINING", NULL);
	ck_assert_int_eq(operation(1), 0); /* up to the cut, not beyond */
	ck_assert_int_eq(operation(2), 0);
	ck_assert_int_ne(operation(1), 0);
	hc_rank_must(&rank[other], &o, NULL);
	hc_rank_hear(&rank[by], &a, LIMIT);
	ck_assert_msg(!a.result, "%s", a.text);
	await_state(0, "DESTROYED", "destroyed by uid");
	await_state(1, "DESTROYED", "destroyed by uid");
	hears(2, HC_W_event_code_DOMAIN_DESTROYED, "destroyed by uid");
	quit_all();
	end();
}
END_TEST

START_TEST(an_abort_is_told_on_both)
{
	struct hc_order o = {.what = HC_DO_ABORT, .text = "loss is not a number"};

	begin(NULL);
	hc_rank_must(&rank[3], &o, NULL);
	hears(0, HC_W_event_code_RANK_ABORTED, "aborted: loss is not a number");
	hears(1, HC_W_event_code_RANK_ABORTED, "on node node1");
	hears(2, HC_W_event_code_RANK_ABORTED, "aborted: loss is not a number");
	await_state(0, "DAMAGED", "loss is not a number");
	await_state(1, "DAMAGED", "loss is not a number");
	quit_all();
	end();
}
END_TEST

START_TEST(forced_when_a_far_reference_stays)
{
	struct hc_order o = {.what = HC_DO_BEGIN, .kind = HCOMM_OP_ALL_REDUCE},
			d = {.what = HC_DO_DESTROY};

	begin("drain_timeout_s = 2\n");
	hc_rank_must(&rank[3], &o, NULL);
	ck_assert_int_eq(hc_rank_do(&rank[0], &d, NULL), HCOMM_E_IN_PROGRESS);
	hears(0, HC_W_event_code_DOMAIN_DESTROYED, "forced, 1 reference left: rank 3");
	hears(2, HC_W_event_code_DOMAIN_DESTROYED, "forced, 1 reference left: rank 3");
	await_state(0, "DESTROYED", "forced, 1 reference left: rank 3");
	await_state(1, "DESTROYED", "forced, 1 reference left: rank 3");
	quit_all();
	end();
}
END_TEST

/* ---- a node that cannot be reached ---- */

/* What the status of that node counts. */
/* away: the node for which the domain of this one stands still, NULL = it does not. */
static void want_suspended(unsigned node, const char *away)
{
	struct hcomm_view_status s;
	char remark[128];

	hc_row_status(&n[node], &s);
	ck_assert_uint_eq(s.domains, 1);
	ck_assert_uint_eq(s.suspended, away != NULL);
	ck_assert_str_eq(s.health, away ? "degraded" : "ok");
	snprintf(remark, sizeof(remark), "1 domain is SUSPENDED: node %s cannot be reached", away);
	ck_assert_msg(!strstr(s.remark, "SUSPENDED") == !away &&
			      (!away || strstr(s.remark, remark)),
		      "%s", s.remark);
	hc_ctl(&run, &n[node], "status", (char *)NULL);
	ck_assert_int_eq(run.status, away ? 1 : 0);
}

START_TEST(suspended_while_a_daemon_stands_still)
{
	begin(NULL);
	operations_run();
	kill(n[1].pid, SIGSTOP);
	hears(0, HC_W_event_code_NODE_SUSPENDED, "node node1 cannot be reached");
	hears(1, HC_W_event_code_NODE_SUSPENDED, "node node1 cannot be reached");
	await_state(0, "SUSPENDED", "node node1 cannot be reached");
	want_suspended(0, "node1");
	kill(n[1].pid, SIGCONT);
	hears(0, HC_W_event_code_DOMAIN_ACTIVE, NULL);
	await_state(0, "ACTIVE", "node0");
	await_state(1, "ACTIVE", "node0");
	operations_run();
	quit_all();
	await_state(1, "DESTROYED", NULL);
	end();
}
END_TEST

START_TEST(suspended_while_its_home_stands_still)
{
	begin(NULL);
	kill(n[0].pid, SIGSTOP);
	hears(2, HC_W_event_code_NODE_SUSPENDED, "its home, node node0, cannot be reached");
	await_state(1, "SUSPENDED", "its home, node node0");
	want_suspended(1, "node0");
	kill(n[0].pid, SIGCONT);
	await_state(1, "ACTIVE", "node0");
	await_state(0, "ACTIVE", "node0");
	want_suspended(0, NULL);
	want_suspended(1, NULL);
	operations_run();
	quit_all();
	end();
}
END_TEST

START_TEST(damaged_when_the_limit_is_over)
{
	struct hc_order o = {.what = HC_DO_LEAVE, .timeout_ms = LIMIT};
	unsigned i;

	begin("suspend_limit_s = 2\norphan_grace_s = 1\n");
	kill(n[1].pid, SIGSTOP);
	hears(0, HC_W_event_code_NODE_SUSPENDED, NULL);
	hears(0, HC_W_event_code_NODE_UNREACHABLE, "could not be reached for 2 s");
	await_state(0, "DAMAGED", "could not be reached for 2 s (suspend_limit_s)");
	kill(n[1].pid, SIGCONT);
	await_state(1, "DAMAGED", NULL);
	await_state(0, "DAMAGED", "could not be reached");
	for (i = 0; i < RANKS; i++)
		hc_rank_must(&rank[i], &o, NULL);
	await_state(0, "DESTROYED", "no member alive");
	await_state(1, "DESTROYED", "no member alive");
	quit_all();
	end();
}
END_TEST

static void remove_database(const struct hc_node *node)
{
	char path[300];
	struct dirent *e;
	DIR *d;

	snprintf(path, sizeof(path), "%s/state", node->dir);
	d = opendir(path);
	ck_assert_ptr_nonnull(d);
	while ((e = readdir(d)))
		if (strstr(e->d_name, ".db"))
			ck_assert_int_eq(unlinkat(dirfd(d), e->d_name, 0), 0);
	closedir(d);
}

/* A node that comes back without its state: its ranks are lost at once, whatever the limits. */
START_TEST(damaged_when_a_node_is_reborn)
{
	begin(NULL);
	hc_node_kill(&n[1]);
	remove_database(&n[1]);
	hc_node_run(&n[1]);
	hears(0, HC_W_event_code_NODE_REBORN, "node node1 began anew");
	hears(1, HC_W_event_code_NODE_REBORN, "node node1 began anew");
	await_state(0, "DAMAGED", "node node1 began anew");
	hc_rank_kill(&rank[2]);
	hc_rank_kill(&rank[3]);
	quit_all();
	end();
}
END_TEST

/* ---- a daemon that is killed, and comes back ---- */

static void up_again(unsigned killed)
{
	hc_node_run(&n[killed]);
	hc_await_node(&n[0], "node1", "up", LIMIT);
	hc_await_node(&n[1], "node0", "up", LIMIT);
}

static void destroyed_by(unsigned r)
{
	struct hc_order d = {.what = HC_DO_DESTROY, .timeout_ms = LIMIT};

	hc_rank_must(&rank[r], &d, NULL);
	await_state(0, "DESTROYED", "destroyed by uid");
	await_state(1, "DESTROYED", "destroyed by uid");
}

/* Of the home (0) or of the other node (1), three times: ranks go on meanwhile, both show the same
 * afterwards, and a drain works. */
START_TEST(ranks_go_on_while_a_daemon_is_killed)
{
	const unsigned killed = (unsigned)_i, other = _i ? 0 : 2;
	unsigned k;

	begin(NULL);
	operations_run();
	for (k = 0; k < 3; k++) {
		hc_node_kill(&n[killed]);
		ck_assert_int_eq(operation(other), 0);
		ck_assert_int_eq(operation(other + 1), 0);
		up_again(killed);
		await_state(0, "ACTIVE", "node0");
		await_state(1, "ACTIVE", "node0");
		ck_assert_int_eq(operation(2 - other), 0);
		ck_assert_int_eq(operation(3 - other), 0);
	}
	operations_run();
	destroyed_by(_i ? 1 : 2);
	quit_all();
	end();
}
END_TEST

/* A rank dies while the daemon of its node is away: all hear of it when that is back. */
START_TEST(a_rank_dies_with_its_daemon)
{
	const unsigned killed = (unsigned)_i, dead = _i ? 2 : 1, other = _i ? 0 : 3;

	begin(NULL);
	hc_node_kill(&n[killed]);
	hc_rank_kill(&rank[dead]);
	ck_assert_int_eq(operation(other), 0);
	up_again(killed);
	await_state(0, "DAMAGED", dead == 1 ? "rank 1" : "rank 2");
	await_state(1, "DAMAGED", dead == 1 ? "rank 1" : "rank 2");
	hears(other, HC_W_event_code_RANK_DIED, dead == 1 ? "rank 1" : "rank 2");
	quit_all();
	await_state(1, "DESTROYED", NULL);
	end();
}
END_TEST

/* Longer than daemon_grace: SUSPENDED on the other side, and ACTIVE again. */
START_TEST(suspended_while_a_daemon_is_gone)
{
	const unsigned killed = (unsigned)_i, other = _i ? 0 : 1;

	begin("daemon_grace_s = 1\n");
	hc_node_kill(&n[killed]);
	await_state(other, "SUSPENDED", NULL);
	up_again(killed);
	await_state(0, "ACTIVE", "node0");
	await_state(1, "ACTIVE", "node0");
	operations_run();
	destroyed_by(0);
	quit_all();
	end();
}
END_TEST

/* It comes back, and the other one does not: who is named by a row and not there is away. In the
 * third run the row of node1 says only that it had prepared: its ranks were told more. */
START_TEST(alone_after_a_restart)
{
	const unsigned first = _i ? 1 : 0, other = _i ? 0 : 1;

	begin("daemon_grace_s = 1\n");
	hc_node_kill(&n[0]);
	hc_node_kill(&n[1]);
	if (_i == 2)
		hc_db_set_back(&n[1], joined.id, HCOMM_ACTIVATING);
	hc_node_run(&n[first]);
	await_state(first, "SUSPENDED", "not connected within 1000 ms");
	up_again(other);
	await_state(0, "ACTIVE", "node0");
	await_state(1, "ACTIVE", "node0");
	operations_run();
	destroyed_by(3);
	quit_all();
	end();
}
END_TEST

static void add(TCase *t)
{
	tcase_add_test(t, both_nodes_show_it_and_name_its_home);
	tcase_add_test(t, all_leave);
	tcase_add_loop_test(t, after_a_death_the_others_leave, 0, 2);
	tcase_add_test(t, both_nodes_have_it_in_their_journals);
	tcase_add_loop_test(t, destroyed_from_either_node, 0, 2);
	tcase_add_test(t, an_abort_is_told_on_both);
	tcase_add_test(t, forced_when_a_far_reference_stays);
	tcase_add_test(t, suspended_while_a_daemon_stands_still);
	tcase_add_test(t, suspended_while_its_home_stands_still);
	tcase_add_test(t, damaged_when_the_limit_is_over);
	tcase_add_test(t, damaged_when_a_node_is_reborn);
	tcase_add_loop_test(t, ranks_go_on_while_a_daemon_is_killed, 0, 2);
	tcase_add_loop_test(t, a_rank_dies_with_its_daemon, 0, 2);
	tcase_add_loop_test(t, suspended_while_a_daemon_is_gone, 0, 2);
	tcase_add_loop_test(t, alone_after_a_restart, 0, 3);
}

int main(void)
{
	hc_ports_own("test_domains_nodes");
	return hc_suite_run("domains_nodes", add, 60);
}
