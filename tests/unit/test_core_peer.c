/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Peers: two daemons find one another whoever dials, end with one connection, and tell an end of a
 * daemon from the end of a node, a restart from a rebirth, and two of one identity from either.
 */
#include "peering.h"

static struct sim *s;

static void start_with(uint32_t nodes, uint32_t rails, uint64_t seed)
{
	struct sim_args a;

	sim_defaults(&a);
	a.nodes = nodes;
	a.rails = rails;
	a.seed = seed;
	a.trace = getenv("SIM_TRACE") ? stderr : NULL;
	s = sim_new(&a);
	sim_start_all(s);
}

static void connected(uint32_t nodes, uint32_t rails, uint64_t seed)
{
	start_with(nodes, rails, seed);
	sim_know_all(s);
	ck_assert(sim_until(s, peering_all_up, NULL, SIM_S));
	sim_run(s, 2 * SIM_S); /* paths are proven */
}

static void end(void)
{
	sim_free(s);
}

START_TEST(whoever_dials_both_are_up_over_one_connection)
{
	start_with(2, 1, 1);
	sim_know(s, (uint32_t)_i, (uint32_t)!_i);
	ck_assert(sim_until(s, peering_all_up, NULL, SIM_S));
	sim_run(s, 5 * SIM_S);
	ck_assert(peering_are_up(s, 0, 1));
	ck_assert(peering_same_conn(s, 0, 1));
	ck_assert_uint_eq(peering_conns(s, 0), 1);
	ck_assert_uint_eq(peering_conns(s, 1), 1);
	ck_says(s, 0, NODE_UP, "node n1 at 10.0.0.1:");
	ck_assert_uint_eq(sim_count(s, 0, HC_W_event_code_NODE_UP, 0), 1);
	ck_assert_uint_eq(sim_count(s, 1, HC_W_event_code_NODE_UP, 0), 1);
	end();
}
END_TEST

START_TEST(simultaneous_dials_end_with_one_connection)
{
	start_with(2, 1, (uint64_t)_i + 1);
	sim_know(s, 0, 1);
	sim_run(s, sim_rand(s) % 300000);
	sim_know(s, 1, 0);
	/* a few round trips of 0.1 ms, and no attempt again after a delay */
	sim_run(s, 2 * SIM_MS);
	ck_assert(peering_all_up(s, NULL));
	ck_assert(peering_same_conn(s, 0, 1));
	sim_run(s, 6 * SIM_S); /* longer than a hello may take */
	ck_assert(peering_are_up(s, 0, 1));
	ck_assert(peering_same_conn(s, 0, 1));
	ck_assert_uint_eq(peering_conns(s, 0), 1);
	ck_assert_uint_eq(peering_conns(s, 1), 1);
	ck_silent(s, HC_NONE, DAEMON_DOWN, 0);
	ck_silent(s, HC_NONE, NODE_UNREACHABLE, 0);
	ck_assert_uint_eq(sim_core(s, 0)->net->peer_pool.used, 1);
	ck_assert_uint_eq(sim_core(s, 1)->net->peer_pool.used, 1);
	end();
}
END_TEST

START_TEST(a_daemon_that_dies_is_told_at_once_and_its_node_only_after_the_grace)
{
	uint64_t at;

	connected(2, 1, 3);
	at = sim_now(s);
	sim_kill(s, 1);
	sim_run(s, 5 * SIM_MS);
	ck_assert_uint_eq(peering_state(s, 0, 1), HC_W_node_state_DAEMON_DOWN);
	ck_says(s, 0, DAEMON_DOWN, "node n1 at 10.0.0.1:");
	sim_run(s, 4900 * SIM_MS);
	ck_assert_uint_eq(peering_state(s, 0, 1), HC_W_node_state_DAEMON_DOWN);
	ck_silent(s, 0, PATH_UNSTABLE, at);
	ck_silent(s, 0, PATH_DOWN, at);
	sim_run(s, 200 * SIM_MS);
	ck_assert_uint_eq(peering_state(s, 0, 1), HC_W_node_state_UNREACHABLE);
	ck_says(s, 0, NODE_UNREACHABLE, "did not come back within 5000 ms");
	ck_assert_uint_eq(sim_count(s, 0, HC_W_event_code_NODE_UNREACHABLE, at), 1);
	end();
}
END_TEST

START_TEST(a_restart_within_the_grace_loses_nothing)
{
	uint64_t at;
	uint32_t paths;

	connected(2, 2, 4);
	paths = peering_get(s, 0, 1)->npaths;
	at = sim_now(s);
	sim_kill(s, 1);
	sim_run(s, 1500 * SIM_MS);
	sim_start(s, 1, false);
	sim_know(s, 1, 0);
	ck_assert(sim_until(s, peering_all_up, NULL, SIM_S));
	sim_run(s, 8 * SIM_S);
	ck_assert(peering_are_up(s, 0, 1));
	ck_says(s, 0, NODE_RESTARTED, "daemon restarted, state intact");
	ck_silent(s, 0, NODE_REBORN, at);
	ck_silent(s, 0, PATH_UNSTABLE, at);
	ck_silent(s, 0, PATH_DOWN, at);
	ck_silent(s, 0, NODE_UNREACHABLE, at);
	ck_assert_uint_eq(peering_get(s, 0, 1)->npaths, paths);
	ck_assert_uint_eq(peering_get(s, 0, 1)->restarts, 1);
	end();
}
END_TEST

START_TEST(a_restarted_daemon_that_knows_nobody_is_found_again)
{
	connected(2, 1, 5);
	sim_kill(s, 1);
	sim_run(s, 700 * SIM_MS);
	sim_start(s, 1, false);
	ck_assert(sim_until(s, peering_all_up, NULL, 2 * SIM_S));
	end();
}
END_TEST

START_TEST(another_incarnation_is_a_rebirth)
{
	connected(2, 1, 6);
	sim_kill(s, 1);
	sim_run(s, 500 * SIM_MS);
	sim_start(s, 1, true);
	ck_assert(sim_until(s, peering_all_up, NULL, 3 * SIM_S));
	ck_says(s, 0, NODE_REBORN, "its earlier state is lost");
	ck_silent(s, 0, NODE_RESTARTED, 0);
	end();
}
END_TEST

START_TEST(a_silent_node_is_unreachable_and_never_daemon_down)
{
	uint64_t at;

	connected(2, 2, 7);
	at = sim_now(s);
	sim_crash(s, 1);
	sim_run(s, 620 * SIM_MS);
	ck_assert_uint_eq(peering_state(s, 0, 1), HC_W_node_state_UNREACHABLE);
	ck_says(s, 0, NODE_UNREACHABLE, "no path to it is left: 2 of 2 down");
	ck_silent(s, 0, DAEMON_DOWN, at);
	sim_run(s, 5 * SIM_S);
	sim_start(s, 1, false);
	ck_assert(sim_until(s, peering_all_up, NULL, 12 * SIM_S));
	ck_says(s, 0, NODE_RESTARTED, "state intact");
	end();
}
END_TEST

START_TEST(a_network_that_comes_back_is_used_at_once)
{
	connected(2, 1, 8);
	sim_cut(s, 0, 1, HC_NONE, true);
	sim_cut(s, 1, 0, HC_NONE, true);
	sim_run(s, 30 * SIM_S);
	ck_assert_uint_eq(peering_state(s, 0, 1), HC_W_node_state_UNREACHABLE);
	ck_assert_uint_eq(peering_state(s, 1, 0), HC_W_node_state_UNREACHABLE);
	sim_cut(s, 0, 1, HC_NONE, false);
	sim_cut(s, 1, 0, HC_NONE, false);
	ck_assert(sim_until(s, peering_all_up, NULL, 4 * SIM_S));
	sim_run(s, 5 * SIM_S);
	ck_says(s, 0, NODE_UP, "reachable again, the same daemon");
	ck_silent(s, 0, DAEMON_DOWN, 0);
	ck_assert_uint_eq(peering_conns(s, 0), 1);
	end();
}
END_TEST

START_TEST(a_connection_that_times_out_says_nothing_of_the_peer)
{
	uint64_t at;

	connected(2, 1, 9);
	at = sim_now(s);
	sim_reset(s, 0, 1, HC_W_conn_end_TIMEOUT);
	sim_run(s, SIM_S);
	ck_assert(peering_are_up(s, 0, 1));
	ck_silent(s, HC_NONE, DAEMON_DOWN, at);
	ck_silent(s, HC_NONE, NODE_UP, at);
	ck_silent(s, HC_NONE, PATH_UNSTABLE, at);
	end();
}
END_TEST

START_TEST(a_kernel_that_refuses_says_that_its_daemon_is_gone)
{
	connected(2, 1, 23);
	sim_reset(s, 0, 1, HC_W_conn_end_TIMEOUT); /* so that no end of a connection tells it */
	sim_kill(s, 1);
	sim_run(s, 5 * SIM_MS);
	ck_assert_uint_eq(peering_state(s, 0, 1), HC_W_node_state_DAEMON_DOWN);
	ck_says(s, 0, DAEMON_DOWN, "connection refused");
	end();
}
END_TEST

START_TEST(a_refused_beat_says_that_its_daemon_is_gone)
{
	uint64_t at;

	connected(2, 1, 24);
	sim_reset(s, 0, 1, HC_W_conn_end_TIMEOUT);
	sim_kill(s, 1);
	peering_get(s, 0, 1)->twin = 0; /* it is not dialled */
	at = sim_now(s);
	sim_run(s, 105 * SIM_MS);
	ck_assert_uint_eq(peering_state(s, 0, 1), HC_W_node_state_DAEMON_DOWN);
	ck_says(s, 0, DAEMON_DOWN, "nobody listens for beats");
	ck_silent(s, 0, PATH_UNSTABLE, at);
	end();
}
END_TEST

START_TEST(a_middlebox_that_resets_is_corrected_by_beats)
{
	uint64_t at;

	connected(2, 1, 10);
	at = sim_now(s);
	sim_reset(s, 0, 1, HC_W_conn_end_CLOSED);
	sim_run(s, 3 * SIM_S);
	ck_assert(peering_are_up(s, 0, 1));
	ck_silent(s, HC_NONE, NODE_UNREACHABLE, at);
	ck_silent(s, HC_NONE, PATH_UNSTABLE, at);
	ck_silent(s, HC_NONE, NODE_RESTARTED, at);
	end();
}
END_TEST

/* It said that it closes, perhaps since it prefers another one: its daemon lives. */
START_TEST(a_connection_that_the_peer_ended_accuses_nobody)
{
	uint64_t at;

	connected(2, 1, 12);
	at = sim_now(s);
	sim_reset(s, 0, 1, HC_W_conn_end_ENDED);
	sim_run(s, 3 * SIM_S);
	ck_assert(peering_are_up(s, 0, 1));
	ck_silent(s, HC_NONE, DAEMON_DOWN, at);
	ck_silent(s, HC_NONE, NODE_UNREACHABLE, at);
	end();
}
END_TEST

/* The mean of what is left of a delay, dial after dial. */
START_TEST(dials_back_off_and_never_end)
{
	static const uint32_t want_ms[] = {100, 200, 400, 800, 1600, 3200, 6400, 10000, 10000};
	const struct hc_peer *p;
	uint64_t last = 0, now;
	uint32_t i = 0;

	start_with(2, 1, 11);
	sim_kill(s, 1);
	sim_run(s, SIM_S); /* ports are chosen */
	sim_know(s, 0, 1);
	p = &sim_core(s, 0)->net->peers[0];
	for (i = 0; i <= sizeof(want_ms) / sizeof(want_ms[0]); i++) {
		while (p->dials <= i)
			sim_run(s, SIM_MS);
		now = sim_now(s);
		if (i) {
			ck_assert_uint_ge(now - last, want_ms[i - 1] * SIM_MS * 89 / 100);
			ck_assert_uint_le(now - last, want_ms[i - 1] * SIM_MS + 3 * SIM_MS);
		}
		last = now;
	}
	ck_assert_uint_eq(p->state, HC_W_node_state_CONNECTING);
	ck_assert_ptr_nonnull(strstr(p->last_error, "10.0.0.1:"));
	ck_assert_ptr_nonnull(strstr(p->last_error, "connection refused"));
	sim_run(s, 300 * SIM_S);
	sim_start(s, 1, false);
	ck_assert(sim_until(s, peering_all_up, NULL, 11 * SIM_S));
	end();
}
END_TEST

static void hold_2s(struct hc_core *c, void *arg)
{
	(void)arg;
	hc_peer_hold(c, 2000);
}

START_TEST(a_planned_restart_is_no_failure)
{
	uint64_t at;

	connected(2, 1, 12);
	at = sim_now(s);
	sim_do(s, 1, hold_2s, NULL);
	sim_run(s, 10 * SIM_MS);
	ck_assert_uint_eq(peering_state(s, 0, 1), HC_W_node_state_HOLD);
	sim_kill(s, 1);
	sim_run(s, 1500 * SIM_MS);
	ck_assert_uint_eq(peering_state(s, 0, 1), HC_W_node_state_HOLD);
	sim_start(s, 1, false);
	sim_know(s, 1, 0);
	ck_assert(sim_until(s, peering_all_up, NULL, 900 * SIM_MS));
	ck_says(s, 0, NODE_HOLD, "restarts as planned");
	ck_says(s, 0, NODE_RESTARTED, "state intact");
	ck_silent(s, 0, DAEMON_DOWN, at);
	ck_silent(s, 0, PATH_UNSTABLE, at);
	end();
}
END_TEST

/* The message is lost with the connection: the beats say it, too. */
static void hold_by_beats(struct hc_core *c, void *arg)
{
	(void)arg;
	c->net->hold_until = c->now + 2 * SIM_S;
}

START_TEST(beats_tell_of_a_planned_restart)
{
	connected(2, 1, 25);
	sim_do(s, 1, hold_by_beats, NULL);
	sim_run(s, 101 * SIM_MS);
	ck_assert_uint_eq(peering_state(s, 0, 1), HC_W_node_state_HOLD);
	/* for how long a beat does not say, so nobody else does */
	ck_says(s, 0, NODE_HOLD, "nothing is judged meanwhile");
	ck_assert_ptr_null(peering_said(s, 0, HC_W_event_code_NODE_HOLD, "at most"));
	/* it did not stop after all */
	sim_run(s, 8 * SIM_S);
	ck_assert(peering_are_up(s, 0, 1));
	ck_says(s, 0, NODE_UP, "it said that it restarts, and did not");
	end();
}
END_TEST

START_TEST(a_hold_that_is_not_kept_ends)
{
	connected(2, 1, 13);
	sim_do(s, 1, hold_2s, NULL);
	sim_run(s, 10 * SIM_MS);
	sim_kill(s, 1);
	sim_run(s, 1900 * SIM_MS);
	ck_assert_uint_eq(peering_state(s, 0, 1), HC_W_node_state_HOLD);
	sim_run(s, 200 * SIM_MS);
	ck_assert_uint_eq(peering_state(s, 0, 1), HC_W_node_state_UNREACHABLE);
	end();
}
END_TEST

START_TEST(two_daemons_of_one_identity_are_named_to_both_and_the_first_stays)
{
	start_with(3, 1, 14);
	sim_kill(s, 2);
	sim_impersonate(s, 2, 1);
	sim_know(s, 0, 1);
	sim_run(s, 2 * SIM_S);
	ck_assert(peering_are_up(s, 0, 1));
	sim_start(s, 2, false);
	sim_know(s, 2, 0);
	sim_run(s, 10 * SIM_S);
	ck_says(s, 0, NODE_REFUSED, "node n1 at 10.0.0.1:");
	ck_says(s, 0, NODE_REFUSED, "and node n2 at 10.0.0.2:");
	ck_says(s, 0, NODE_REFUSED, "have one identity");
	ck_says(s, 1, NODE_REFUSED, "have one identity");
	ck_says(s, 2, NODE_REFUSED, "have one identity");
	ck_assert(peering_get(s, 0, 1)->state == HC_W_node_state_UP);
	ck_assert_str_eq(peering_get(s, 0, 1)->name, "n1");
	ck_assert(peering_same_conn(s, 0, 1));
	ck_silent(s, 0, NODE_REBORN, 0);
	ck_silent(s, 0, NODE_RESTARTED, 0);
	/* at most once in ten seconds for each */
	ck_assert_uint_le(sim_count(s, 0, HC_W_event_code_NODE_REFUSED, 0), 2);
	end();
}
END_TEST

START_TEST(two_of_one_identity_that_meet_say_so_on_both)
{
	start_with(2, 1, 15);
	sim_kill(s, 1);
	sim_impersonate(s, 1, 0);
	sim_start(s, 1, false);
	sim_know(s, 1, 0);
	sim_run(s, SIM_S);
	ck_says(s, 0, NODE_REFUSED, "have one identity");
	ck_says(s, 0, NODE_REFUSED, "10.0.0.1:");
	ck_says(s, 1, NODE_REFUSED, "have one identity");
	end();
}
END_TEST

/* A kernel that restarts has forgotten the connection; the one that it had is still held here. */
START_TEST(the_same_identity_after_a_crash_is_a_restart_and_no_second_one)
{
	connected(2, 1, 16);
	sim_crash(s, 1);
	sim_run(s, 50 * SIM_MS); /* sooner than any host boots: not noticed yet */
	sim_start(s, 1, false);
	sim_know(s, 1, 0);
	ck_assert(sim_until(s, peering_all_up, NULL, 12 * SIM_S));
	ck_says(s, 0, NODE_RESTARTED, "state intact");
	ck_silent(s, 0, NODE_REFUSED, 0);
	end();
}
END_TEST

START_TEST(a_section_that_names_ourselves_is_recognised)
{
	const struct hc_peer *p;

	start_with(2, 1, 17);
	sim_know(s, 0, 0);
	sim_know(s, 0, 1);
	sim_run(s, 20 * SIM_S);
	p = &sim_core(s, 0)->net->peers[0];
	ck_assert_str_eq(p->section, "n0");
	ck_assert(!p->known);
	ck_assert_uint_eq(p->state, HC_W_node_state_REFUSED);
	ck_assert_ptr_nonnull(strstr(p->last_error, "reaches this node itself"));
	ck_assert_uint_le(p->dials, 3);
	ck_assert(peering_are_up(s, 0, 1)); /* our address is as good as before */
	ck_assert_uint_eq(peering_conns(s, 0), 1);
	end();
}
END_TEST

static void other_cluster(struct hc_core *c, void *arg)
{
	(void)arg;
	snprintf(c->self.cluster, sizeof(c->self.cluster), "blue");
}

static void no_key(struct hc_core *c, void *arg)
{
	(void)arg;
	c->self.security = 1;
}

START_TEST(another_cluster_is_turned_away_and_both_are_told)
{
	start_with(2, 1, 18);
	sim_do(s, 1, other_cluster, NULL);
	sim_know(s, 0, 1);
	sim_run(s, 5 * SIM_S);
	ck_says(s, 1, NODE_REFUSED, "of cluster sim");
	ck_says(s, 1, NODE_REFUSED, "of cluster blue");
	ck_says(s, 0, NODE_REFUSED, "of cluster blue");
	ck_assert_uint_eq(sim_core(s, 0)->net->peers[0].state, HC_W_node_state_REFUSED);
	ck_assert_uint_eq(sim_count(s, 1, HC_W_event_code_NODE_REFUSED, 0), 1);
	ck_assert_uint_eq(sim_core(s, 1)->net->peer_pool.used, 0);
	sim_run(s, 20 * SIM_S);
	ck_assert_uint_ge(sim_count(s, 1, HC_W_event_code_NODE_REFUSED, 0), 2);
	end();
}
END_TEST

START_TEST(another_mode_of_security_is_turned_away)
{
	start_with(2, 1, 19);
	sim_do(s, 1, no_key, NULL);
	sim_know(s, 0, 1);
	sim_run(s, SIM_S);
	ck_says(s, 0, NODE_REFUSED, "security = none");
	ck_says(s, 1, NODE_REFUSED, "security = key");
	end();
}
END_TEST

START_TEST(a_table_that_is_full_turns_away_the_last_one)
{
	struct sim_args a;

	sim_defaults(&a);
	a.nodes = 4;
	a.limits.peers = 2;
	s = sim_new(&a);
	sim_start_all(s);
	sim_know(s, 1, 0);
	sim_know(s, 2, 0);
	sim_run(s, SIM_S);
	sim_know(s, 3, 0);
	sim_run(s, SIM_S);
	ck_assert(peering_are_up(s, 0, 1));
	ck_assert(peering_are_up(s, 0, 2));
	ck_says(s, 0, NODE_REFUSED, "peers_max = 2");
	ck_says(s, 3, NODE_REFUSED, "peers_max = 2");
	/* one that is away makes room */
	sim_crash(s, 1);
	sim_run(s, 12 * SIM_S);
	ck_assert(peering_are_up(s, 0, 3));
	ck_assert_ptr_null(peering_get(s, 0, 1));
	end();
}
END_TEST

START_TEST(a_node_that_comes_by_itself_is_that_of_its_section)
{
	const struct hc_net *n;

	start_with(2, 2, 9);
	sim_kill(s, 1);
	sim_know(s, 0, 1);
	sim_run(s, 30 * SIM_S); /* the next dial is seconds away */
	sim_start(s, 1, false);
	sim_know(s, 1, 0);
	sim_run(s, 100 * SIM_MS);
	n = sim_core(s, 0)->net;
	ck_assert(peering_are_up(s, 0, 1));
	ck_assert_uint_eq(n->peer_pool.used, 1);
	ck_assert(peering_get(s, 0, 1)->configured);
	end();
}
END_TEST

START_TEST(nodes_that_were_here_are_remembered_up_to_a_limit_that_is_named)
{
	struct sim_args a;
	uint32_t i;

	sim_defaults(&a);
	a.nodes = 6;
	a.limits.peers = 2;
	s = sim_new(&a);
	sim_start(s, 0, false);
	for (i = 1; i < a.nodes; i++) {
		sim_start(s, i, false);
		sim_know(s, i, 0);
		sim_run(s, SIM_S);
		ck_assert_int_eq(peering_are_up(s, 0, i), i < 5);
		if (i == 5)
			break;
		sim_crash(s, i);
		sim_run(s, 12 * SIM_S);
	}
	ck_says(s, 0, NODE_REFUSED,
		"it has met 4 others since it started, and remembers no more (2 x peers_max)");
	end();
}
END_TEST

static void same_name(struct hc_core *c, void *arg)
{
	(void)arg;
	snprintf(c->self.name, sizeof(c->self.name), "twin");
}

START_TEST(two_nodes_of_one_name_are_told_apart)
{
	const char *x, *y;

	start_with(3, 1, 20);
	sim_do(s, 1, same_name, NULL);
	sim_do(s, 2, same_name, NULL);
	sim_know(s, 0, 1);
	sim_run(s, SIM_S);
	sim_know(s, 0, 2);
	sim_run(s, SIM_S);
	x = peering_get(s, 0, 1)->name;
	y = peering_get(s, 0, 2)->name;
	ck_assert_str_eq(x, "twin");
	ck_assert(!strncmp(y, "twin#", 5) && strlen(y) == 9);
	end();
}
END_TEST

/* Everybody dials everybody, at the same moment. */
START_TEST(a_crowd_that_starts_together_is_connected_once_each)
{
	uint32_t i, j;

	start_with(24, 1, 26);
	for (i = 0; i < 24; i++)
		for (j = 0; j < 24; j++)
			if (i != j)
				sim_know(s, i, j);
	ck_assert(sim_until(s, peering_all_up, NULL, 2 * SIM_S));
	sim_run(s, 6 * SIM_S);
	ck_assert(peering_all_up(s, NULL));
	for (i = 0; i < 24; i++) {
		ck_assert_uint_eq(peering_conns(s, i), 23);
		ck_assert_uint_eq(sim_core(s, i)->net->peer_pool.used, 23);
		for (j = 0; j < i; j++)
			ck_assert(peering_same_conn(s, i, j));
	}
	ck_silent(s, HC_NONE, DAEMON_DOWN, 0);
	end();
}
END_TEST

START_TEST(the_connection_leaves_a_path_that_goes_bad)
{
	const struct hc_peer *p;
	uint64_t at;
	uint32_t rail;

	connected(2, 2, 21);
	p = peering_get(s, 0, 1);
	rail = p->address.addr.bytes[1];
	at = sim_now(s);
	sim_cut(s, 0, 1, rail, true);
	sim_cut(s, 1, 0, rail, true);
	sim_run(s, SIM_S);
	ck_assert(peering_are_up(s, 0, 1));
	ck_assert(peering_same_conn(s, 0, 1));
	ck_assert_uint_ne(p->address.addr.bytes[1], rail);
	ck_silent(s, HC_NONE, DAEMON_DOWN, at);
	ck_silent(s, HC_NONE, NODE_UNREACHABLE, at);
	end();
}
END_TEST

START_TEST(a_node_that_works_alone_neither_dials_nor_answers)
{
	start_with(2, 1, 22);
	sim_core(s, 0)->self.peers = false;
	sim_know(s, 0, 1);
	sim_know(s, 1, 0);
	sim_run(s, 5 * SIM_S);
	ck_assert_uint_eq(sim_core(s, 0)->net->peers[0].dials, 0);
	ck_assert_uint_ge(sim_core(s, 1)->net->peers[0].dials, 3);
	ck_assert_uint_eq(peering_conns(s, 0), 0);
	end();
}
END_TEST

/* Whatever goes wrong in whatever order: afterwards there is one connection on both ends. */
START_TEST(after_any_faults_there_is_one_connection)
{
	uint32_t i;

	connected(2, 2, 100 + (uint64_t)_i);
	for (i = 0; i < 30; i++) {
		switch (sim_rand(s) % 6) {
		case 0: sim_reset(s, 0, 1, HC_W_conn_end_CLOSED); break;
		case 1: sim_reset(s, 0, 1, HC_W_conn_end_TIMEOUT); break;
		case 2:
			sim_kill(s, 1);
			sim_run(s, sim_rand(s) % (2 * SIM_S));
			sim_start(s, 1, false);
			sim_know(s, 1, 0);
			break;
		case 3: sim_cut(s, 0, 1, (uint32_t)(sim_rand(s) % 2), sim_rand(s) % 2); break;
		case 4: sim_cut(s, 1, 0, (uint32_t)(sim_rand(s) % 2), sim_rand(s) % 2); break;
		case 5: sim_know(s, 1, 0); break;
		}
		sim_run(s, sim_rand(s) % (SIM_S / 2));
	}
	sim_cut(s, HC_NONE, HC_NONE, HC_NONE, false);
	ck_assert(sim_until(s, peering_all_up, NULL, 15 * SIM_S));
	sim_run(s, 10 * SIM_S);
	ck_assert(peering_are_up(s, 0, 1));
	ck_assert(peering_same_conn(s, 0, 1));
	ck_assert_uint_eq(peering_conns(s, 0), 1);
	ck_assert_uint_eq(peering_conns(s, 1), 1);
	end();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("core_peer");
	TCase *t = tcase_create("peer");

	tcase_set_timeout(t, 60);
	tcase_add_loop_test(t, whoever_dials_both_are_up_over_one_connection, 0, 2);
	tcase_add_loop_test(t, simultaneous_dials_end_with_one_connection, 0, 40);
	tcase_add_test(t, a_daemon_that_dies_is_told_at_once_and_its_node_only_after_the_grace);
	tcase_add_test(t, a_restart_within_the_grace_loses_nothing);
	tcase_add_test(t, a_restarted_daemon_that_knows_nobody_is_found_again);
	tcase_add_test(t, another_incarnation_is_a_rebirth);
	tcase_add_test(t, a_silent_node_is_unreachable_and_never_daemon_down);
	tcase_add_test(t, a_network_that_comes_back_is_used_at_once);
	tcase_add_test(t, a_connection_that_times_out_says_nothing_of_the_peer);
	tcase_add_test(t, a_kernel_that_refuses_says_that_its_daemon_is_gone);
	tcase_add_test(t, a_refused_beat_says_that_its_daemon_is_gone);
	tcase_add_test(t, a_middlebox_that_resets_is_corrected_by_beats);
	tcase_add_test(t, a_connection_that_the_peer_ended_accuses_nobody);
	tcase_add_test(t, dials_back_off_and_never_end);
	tcase_add_test(t, a_planned_restart_is_no_failure);
	tcase_add_test(t, beats_tell_of_a_planned_restart);
	tcase_add_test(t, a_hold_that_is_not_kept_ends);
	tcase_add_test(t, two_daemons_of_one_identity_are_named_to_both_and_the_first_stays);
	tcase_add_test(t, two_of_one_identity_that_meet_say_so_on_both);
	tcase_add_test(t, the_same_identity_after_a_crash_is_a_restart_and_no_second_one);
	tcase_add_test(t, a_section_that_names_ourselves_is_recognised);
	tcase_add_test(t, another_cluster_is_turned_away_and_both_are_told);
	tcase_add_test(t, another_mode_of_security_is_turned_away);
	tcase_add_test(t, a_table_that_is_full_turns_away_the_last_one);
	tcase_add_test(t, a_node_that_comes_by_itself_is_that_of_its_section);
	tcase_add_test(t, nodes_that_were_here_are_remembered_up_to_a_limit_that_is_named);
	tcase_add_test(t, two_nodes_of_one_name_are_told_apart);
	tcase_add_test(t, a_crowd_that_starts_together_is_connected_once_each);
	tcase_add_test(t, the_connection_leaves_a_path_that_goes_bad);
	tcase_add_test(t, a_node_that_works_alone_neither_dials_nor_answers);
	tcase_add_loop_test(t, after_any_faults_there_is_one_connection, 0, 30);
	suite_add_tcase(suite, t);
	return peering_main(suite);
}
