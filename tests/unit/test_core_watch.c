/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Peers that are connected while no path is good: whether control works, whether beats pass, and
 * what is said of either. Loss takes datagrams alone; a kernel that crashed says nothing.
 */
#include "peering.h"

static struct sim *s;

static void connected(void)
{
	struct sim_args a;

	sim_defaults(&a);
	a.seed = 11;
	a.trace = getenv("SIM_TRACE") ? stderr : NULL;
	s = sim_new(&a);
	sim_start_all(s);
	sim_know_all(s);
	ck_assert(sim_until(s, peering_all_up, NULL, SIM_S));
	sim_run(s, 2 * SIM_S);
}

static void lose(uint32_t from, uint32_t to, uint32_t loss)
{
	const struct sim_wire w = {.delay = 50000, .jitter = 10000, .loss = loss};

	sim_wire(s, from, to, HC_NONE, &w);
}

static void lose_all(void)
{
	lose(HC_NONE, HC_NONE, 1000000);
}

static bool beatless(struct sim *sim, void *arg)
{
	(void)arg;
	return peering_state(sim, 0, 1) == HC_W_node_state_UNREACHABLE &&
	       peering_said(sim, 0, HC_W_event_code_NODE_UNREACHABLE, "control works") &&
	       peering_get(sim, 0, 1)->conn;
}

START_TEST(control_that_works_while_no_beat_passes_is_told_as_that)
{
	uint64_t at, told;

	connected();
	at = sim_now(s);
	lose_all();
	/* down after 500 ms; connected again at once; a probe timeout and a window later */
	ck_assert(sim_until(s, beatless, NULL, 2 * SIM_S + 100 * SIM_MS));
	ck_says(s, 0, NODE_UNREACHABLE, "control works but no beat passes both ways on any of 1");
	told = sim_now(s);
	sim_run(s, 60 * SIM_S); /* and that is all that there is to say */
	ck_assert_uint_eq(peering_state(s, 0, 1), HC_W_node_state_UNREACHABLE);
	ck_assert_ptr_nonnull(peering_get(s, 0, 1));
	ck_assert(peering_same_conn(s, 0, 1));
	ck_silent(s, 0, NODE_UNREACHABLE, told + SIM_S);
	ck_silent(s, 0, NODE_UP, told + SIM_S);
	ck_assert_uint_le(sim_count(s, 0, HC_W_event_code_NODE_UNREACHABLE, at), 3);
	at = sim_now(s);
	lose(HC_NONE, HC_NONE, 0);
	sim_run(s, 2 * SIM_S);
	ck_assert(peering_are_up(s, 0, 1));
	ck_says(s, 0, NODE_UP, "reachable again: beats pass");
	ck_says(s, 1, NODE_UP, "reachable again: beats pass");
	ck_silent(s, HC_NONE, DAEMON_DOWN, at);
	sim_free(s);
}
END_TEST

START_TEST(beats_that_pass_one_way_alone_make_no_peer_reachable)
{
	connected();
	lose(0, 1, 1000000);
	sim_run(s, 10 * SIM_S);
	ck_assert_uint_eq(peering_state(s, 0, 1), HC_W_node_state_UNREACHABLE);
	ck_assert_uint_eq(peering_state(s, 1, 0), HC_W_node_state_UNREACHABLE);
	lose(0, 1, 0);
	sim_run(s, 2 * SIM_S);
	ck_assert(peering_are_up(s, 0, 1));
	sim_free(s);
}
END_TEST

static bool has_no_conn(struct sim *sim, void *arg)
{
	(void)arg;
	return !peering_get(sim, 0, 1)->conn;
}

START_TEST(a_connection_to_a_kernel_that_died_is_given_up)
{
	uint64_t at;

	connected();
	lose_all();
	ck_assert(sim_until(s, beatless, NULL, 3 * SIM_S));
	at = sim_now(s);
	sim_crash(s, 1);
	/* asked within a second, answered within two, and the second between */
	ck_assert(sim_until(s, has_no_conn, NULL, 4 * SIM_S + 100 * SIM_MS));
	ck_assert_uint_ge(sim_now(s) - at, 2 * SIM_S);
	ck_assert_ptr_nonnull(strstr(peering_get(s, 0, 1)->last_error, "does not answer"));
	ck_silent(s, 0, DAEMON_DOWN, at);
	lose(HC_NONE, HC_NONE, 0);
	sim_start(s, 1, false); /* it does not know node 0 */
	ck_assert(sim_until(s, peering_all_up, NULL, 15 * SIM_S));
	ck_says(s, 0, NODE_RESTARTED, "daemon restarted");
	sim_free(s);
}
END_TEST

START_TEST(a_kernel_that_booted_meanwhile_resets_the_connection)
{
	connected();
	lose_all();
	ck_assert(sim_until(s, beatless, NULL, 3 * SIM_S));
	sim_crash(s, 1);
	sim_start(s, 1, true);
	sim_run(s, 1500 * SIM_MS);
	ck_assert_uint_eq(peering_get(s, 0, 1)->last_end, HC_W_conn_end_CLOSED);
	lose(HC_NONE, HC_NONE, 0);
	ck_assert(sim_until(s, peering_all_up, NULL, 5 * SIM_S));
	ck_says(s, 0, NODE_REBORN, "begins anew");
	sim_free(s);
}
END_TEST

START_TEST(a_peer_that_answers_keeps_its_connection_whatever_the_wire_does)
{
	uint64_t conn, at;

	connected();
	lose_all();
	ck_assert(sim_until(s, beatless, NULL, 3 * SIM_S));
	conn = peering_get(s, 0, 1)->conn;
	sim_stop(s, 0); /* what was not acknowledged meanwhile is our own fault */
	sim_run(s, 20 * SIM_S);
	sim_go(s, 0);
	sim_run(s, 10 * SIM_S);
	ck_assert(peering_get(s, 0, 1)->conn != 0);
	(void)conn;
	at = sim_now(s);
	conn = peering_get(s, 0, 1)->conn;
	sim_run(s, 60 * SIM_S);
	ck_assert_uint_eq(peering_get(s, 0, 1)->conn, conn);
	ck_assert_uint_le(peering_get(s, 0, 1)->mail_count, 1);
	ck_silent(s, 0, NODE_UP, at);
	sim_free(s);
}
END_TEST

START_TEST(nothing_is_asked_while_a_path_is_good)
{
	uint32_t sent;

	connected();
	sent = peering_get(s, 0, 1)->sent;
	sim_run(s, 60 * SIM_S);
	ck_assert_uint_eq(peering_get(s, 0, 1)->sent, sent);
	ck_assert(peering_get(s, 0, 1)->watch_at == HC_NEVER);
	sim_free(s);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("core_watch");
	TCase *t = tcase_create("watch");

	tcase_add_test(t, control_that_works_while_no_beat_passes_is_told_as_that);
	tcase_add_test(t, beats_that_pass_one_way_alone_make_no_peer_reachable);
	tcase_add_test(t, a_connection_to_a_kernel_that_died_is_given_up);
	tcase_add_test(t, a_kernel_that_booted_meanwhile_resets_the_connection);
	tcase_add_test(t, a_peer_that_answers_keeps_its_connection_whatever_the_wire_does);
	tcase_add_test(t, nothing_is_asked_while_a_path_is_good);
	suite_add_tcase(suite, t);
	return peering_main(suite);
}
