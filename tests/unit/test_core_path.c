/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Paths: every state with every event, numbers that both nodes compute, flaps, routes, and what a
 * third node says.
 */
#include <errno.h>

#include "pathrig.h"

#define UNKNOWN   HC_W_path_state_UNKNOWN
#define NORMAL    HC_W_path_state_NORMAL
#define CONGESTED HC_W_path_state_CONGESTED
#define UNSTABLE  HC_W_path_state_UNSTABLE
#define DOWN      HC_W_path_state_DOWN

/* Columns in order of enum hc_path_event: proof, proof but, misses, deaf, dead, gone, small, load,
 * relief. */
static const uint8_t wanted[5][9] = {
	[UNKNOWN] = {NORMAL, UNSTABLE, UNKNOWN, UNKNOWN, DOWN, DOWN, UNSTABLE, UNKNOWN, UNKNOWN},
	[NORMAL] = {NORMAL, UNSTABLE, UNSTABLE, UNSTABLE, DOWN, DOWN, UNSTABLE, CONGESTED, NORMAL},
	[CONGESTED] = {CONGESTED, UNSTABLE, UNSTABLE, UNSTABLE, DOWN, DOWN, UNSTABLE, CONGESTED,
		       NORMAL},
	[UNSTABLE] = {NORMAL, UNSTABLE, UNSTABLE, UNSTABLE, DOWN, DOWN, UNSTABLE, UNSTABLE,
		      UNSTABLE},
	[DOWN] = {NORMAL, UNSTABLE, DOWN, DOWN, DOWN, DOWN, DOWN, DOWN, DOWN},
};

START_TEST(every_state_knows_what_follows)
{
	uint8_t s;
	int e;

	for (s = 0; s < 5; s++)
		for (e = PATH_EV_PROOF; e <= PATH_EV_RELIEF; e++)
			ck_assert_msg(hc_path_next(s, (enum hc_path_event)e) == wanted[s][e],
				      "%s, event %d: %s", hc_word_path_state(s), e,
				      hc_word_path_state(hc_path_next(s, (enum hc_path_event)e)));
}
END_TEST

START_TEST(both_nodes_compute_one_number_for_a_path)
{
	struct hc_endpoint a = rig_end(0), b = rig_end(1), other = rig_end(2);
	uint8_t id0[16], id1[16];
	uint32_t id;

	rig_start(2);
	rig_id(0, id0);
	rig_id(1, id1);
	id = hc_path_id(rig.node[0].core, id1, &a, &b);
	ck_assert_uint_eq(id, hc_path_id(rig.node[1].core, id0, &b, &a));
	ck_assert_uint_ne(id, hc_path_id(rig.node[0].core, id1, &a, &other));
	ck_assert_uint_ne(id, hc_path_id(rig.node[0].core, id1, &b, &a));
	b.port++;
	ck_assert_uint_ne(id, hc_path_id(rig.node[0].core, id1, &a, &b));
	ck_assert_uint_ne(id, 0);
	rig_end_all();
}
END_TEST

START_TEST(a_path_that_is_dropped_leaves_nothing)
{
	struct hc_net *n;
	uint32_t i;

	rig_start(2);
	rig_for(SEC);
	n = rig.node[0].core->net;
	for (i = 0; i < 40; i++) { /* more often than there is room */
		hc_path_drop_all(rig.node[0].core, 0);
		ck_assert_uint_eq(n->path_pool.used, 0);
		ck_assert_uint_eq(rig_peer(0, 1)->npaths, 0);
		rig_for(20 * MS);
		ck_assert_uint_ne(rig_join(0, 1), HC_NONE);
		rig_for(20 * MS);
		ck_assert_uint_eq(rig_path(0, 1)->state, NORMAL);
	}
	rig_end_all();
}
END_TEST

START_TEST(a_path_that_is_made_anew_takes_no_old_frame)
{
	struct rig_packet head;
	uint8_t bytes[256];
	uint64_t numbers;

	rig_start(2);
	rig_for(SEC);
	head = rig.last_head[1];
	memcpy(bytes, rig.last[1], sizeof(bytes));
	numbers = rig_path(1, 0)->tx_seq;
	hc_path_drop_all(rig.node[1].core, 0);
	rig_join(1, 0);
	/* one key and number must not stand on two frames */
	ck_assert_uint_eq(rig_path(1, 0)->tx_seq, numbers);
	rig_give(1, &head, bytes);
	ck_assert_uint_eq(rig_path(1, 0)->replays, 1);
	ck_assert_uint_eq(rig_path(1, 0)->heard_at, HC_NEVER);
	rig_end_all();
}
END_TEST

START_TEST(there_is_an_end_to_the_paths_of_a_peer)
{
	struct hc_endpoint local = rig_end(0), remote = rig_end(1);
	uint32_t i;

	rig_start(2);
	for (i = 1; i < HC_PEER_PATHS; i++) {
		remote.port++;
		ck_assert_uint_ne(hc_path_make(rig.node[0].core, 0, 100 + i, 1, &local, &remote),
				  HC_NONE);
	}
	ck_assert_uint_eq(hc_path_make(rig.node[0].core, 0, 1, 1, &local, &remote), HC_NONE);
	rig_end_all();
}
END_TEST

START_TEST(a_port_that_goes_takes_its_path_down_and_brings_it_back)
{
	struct hc_port_fact f;
	struct hc_event ev = {.kind = HC_EV_PORT_FACT, .u.port = &f};

	rig_start(2);
	rig_for(2 * SEC);
	f = rig.node[0].core->net->ports[0].fact;
	f.carrier = false;
	rig.loses = rig_lose_all;
	rig_step(0, &ev);
	rig_for(MS);
	ck_assert_uint_eq(rig_path(0, 1)->state, DOWN);
	ck_assert_uint_eq(rig_path(0, 1)->cause, HC_W_path_cause_PORT);
	ck_assert(rig_said(0, "is down: our port has no carrier"));
	rig_for(SEC);
	f.carrier = true;
	rig.loses = NULL;
	rig_step(0, &ev);
	rig_for(210 * MS);
	ck_assert_uint_eq(rig_path(0, 1)->state, NORMAL);
	rig_end_all();
}
END_TEST

static void answer_route(const struct hc_addr *local, int error)
{
	struct hc_route_fact f = {.ask = rig_peer(0, 1)->ports[0].ask, .error = error, .port = 1};
	struct hc_event ev = {.kind = HC_EV_ROUTE, .u.route = &f};

	if (local)
		f.local = *local;
	rig_step(0, &ev);
}

START_TEST(a_route_makes_a_path_by_a_port_in_use_alone)
{
	const struct hc_addr ours = rig_end(0).addr, foreign = rig_end(2).addr;
	uint32_t stale;

	rig_start(2);
	hc_path_drop_all(rig.node[0].core, 0);
	hc_path_routes(rig.node[0].core, 0);
	rig_for(MS);
	stale = rig_peer(0, 1)->ports[0].ask;
	ck_assert_uint_ne(stale, 0);
	hc_path_drop_all(rig.node[0].core, 0); /* a frame has made it */
	answer_route(&foreign, 0);
	ck_assert_uint_eq(rig_peer(0, 1)->npaths, 0);
	answer_route(&ours, 0); /* the question is not open any more */
	ck_assert_uint_eq(rig_peer(0, 1)->npaths, 0);
	rig.loses = rig_lose_all;
	hc_path_routes(rig.node[0].core, HC_NONE);
	rig_for(MS);
	ck_assert_uint_ne(rig_peer(0, 1)->ports[0].ask, stale);
	answer_route(&ours, 0);
	ck_assert_uint_eq(rig_peer(0, 1)->npaths, 1);
	rig.loses = NULL;
	rig_for(SEC);
	ck_assert_uint_eq(rig_path(0, 1)->state, NORMAL);
	hc_path_routes(rig.node[0].core, 0);
	rig_for(MS);
	answer_route(NULL, ENETUNREACH);
	ck_assert_uint_eq(rig_path(0, 1)->state, DOWN);
	ck_assert(rig_said(0, "is down: no route: network is unreachable"));
	rig_end_all();
}
END_TEST

/* ---- flaps ---- */

static void flap(uint64_t bad, uint64_t good)
{
	rig.loses = rig_lose_all;
	rig_for(bad);
	rig.loses = NULL;
	rig_for(good);
}

START_TEST(the_third_flap_in_a_minute_holds_a_path_out)
{
	struct hc_path *p;

	rig_start(2);
	rig_for(SEC);
	p = rig_path(0, 1);
	flap(400 * MS, 2 * SEC);
	ck_assert_uint_eq(p->state, NORMAL); /* a young link is not punished for its first faults */
	flap(400 * MS, 2 * SEC);
	ck_assert_uint_eq(p->state, NORMAL);
	flap(400 * MS, 200 * MS);
	ck_assert_uint_eq(p->state, UNSTABLE);
	ck_assert_uint_eq(p->cause, HC_W_path_cause_FLAPS);
	ck_assert(p->heard_at + 110 * MS > rig.now); /* though beats run */
	ck_assert(rig_said(0, "is unstable: held out after 3 flaps, for 1000 ms"));
	rig_for(700 * MS);
	ck_assert_uint_eq(p->state, UNSTABLE);
	rig_for(SEC);
	ck_assert_uint_eq(p->state, NORMAL);
	ck_assert_uint_eq(p->flaps, 3);
	ck_assert(rig_said(0, "held out for 1"));
	rig_end_all();
}
END_TEST

START_TEST(ten_good_beats_in_a_row_are_wanted_after_the_hold)
{
	struct hc_path *p;
	uint32_t i;

	rig_start(2);
	rig_for(SEC);
	p = rig_path(0, 1);
	for (i = 0; i < 3; i++)
		flap(400 * MS, 2 * SEC);
	for (i = 0; i < 5; i++) /* each row is broken by a miss, which is no flap */
		flap(150 * MS, 500 * MS);
	ck_assert_uint_eq(p->flaps, 3);
	rig_for(3 * SEC);
	ck_assert_uint_eq(p->state, NORMAL);
	rig_end_all();
}
END_TEST

START_TEST(a_loose_cable_does_not_fill_the_log)
{
	struct hc_path *p;
	uint32_t i;

	rig_start(2);
	rig_for(SEC);
	p = rig_path(0, 1);
	rig_forget();
	for (i = 0; i < 60; i++)
		flap(600 * MS, 400 * MS);
	ck_assert_uint_ge(p->flaps, 58);
	ck_assert_uint_le(p->flaps, 62);
	ck_assert_uint_le(rig_times(0, "\n"), 20);
	ck_assert_uint_eq(p->hold_ms, 60000);
	ck_assert(p->held);
	rig_for(55 * SEC);
	ck_assert_uint_eq(p->state, UNSTABLE);
	rig_for(10 * SEC);
	ck_assert_uint_eq(p->state, NORMAL);
	rig_for(70 * SEC); /* quiet for flap_window: it begins with a second again */
	for (i = 0; i < 3; i++)
		flap(400 * MS, 200 * MS);
	ck_assert_uint_eq(p->hold_ms, 1000);
	rig_end_all();
}
END_TEST

START_TEST(rare_faults_are_no_flaps)
{
	uint32_t i;

	rig_start(2);
	rig_for(SEC);
	for (i = 0; i < 6; i++)
		flap(400 * MS, 31 * SEC);
	ck_assert_uint_eq(rig_path(0, 1)->state, NORMAL);
	ck_assert_uint_eq(rig_path(0, 1)->flaps, 6);
	ck_assert(!rig_said(0, "held out"));
	rig_end_all();
}
END_TEST

/* ---- a third node ---- */

static void answer(uint32_t age_ms)
{
	/* path 0 is that to node 1; node 2 is asked */
	hc_path_confirmed(rig.node[0].core, 1, rig_path(0, 1)->ticket, age_ms);
}

static bool lose_node_1(struct rig *r, const struct rig_packet *p)
{
	(void)r;
	return p->from == 1 || p->to == 1;
}

static void silence_of_1(void)
{
	rig_start(3);
	rig_for(2 * SEC);
	rig.loses = lose_node_1;
	rig_for(410 * MS);
	ck_assert_uint_eq(rig_path(0, 1)->state, UNSTABLE);
}

START_TEST(a_third_node_labels_the_cause)
{
	silence_of_1();
	ck_assert_uint_ne(rig_path(0, 1)->ticket, 0);
	answer(20);
	ck_assert(strstr(rig_path(0, 1)->cause_text, "; path, not node: it is heard"));
	answer(20); /* once */
	ck_assert_ptr_null(strstr(strstr(rig_path(0, 1)->cause_text, "; path") + 1, "; path"));
	rig_end_all();
	silence_of_1();
	answer(350);
	ck_assert(strstr(rig_path(0, 1)->cause_text, "; confirmed by node2"));
	rig_end_all();
	silence_of_1();
	answer(HC_NONE);
	ck_assert(strstr(rig_path(0, 1)->cause_text, "; confirmed by node2"));
	rig_end_all();
}
END_TEST

START_TEST(with_nobody_to_ask_it_is_unconfirmed)
{
	rig_start(2);
	rig_for(2 * SEC);
	rig.loses = rig_lose_all;
	rig_for(410 * MS);
	ck_assert(strstr(rig_path(0, 1)->cause_text, "no beat for 300 ms (3 intervals of 100 ms); "
						     "unconfirmed"));
	rig_end_all();
}
END_TEST

START_TEST(what_we_answer_is_when_we_heard_it)
{
	uint8_t id[16];

	rig_start(2);
	rig_id(1, id);
	ck_assert_uint_eq(hc_path_heard_ms(rig.node[0].core, id), HC_NONE);
	rig_for(2 * SEC);
	rig.loses = rig_lose_all;
	rig_for(5 * SEC);
	ck_assert_uint_ge(hc_path_heard_ms(rig.node[0].core, id), 4900);
	ck_assert_uint_le(hc_path_heard_ms(rig.node[0].core, id), 5000);
	rig_id(2, id);
	ck_assert_uint_eq(hc_path_heard_ms(rig.node[0].core, id), HC_NONE);
	rig_end_all();
}
END_TEST

int main(void)
{
	Suite *s = suite_create("core_path");
	TCase *t = tcase_create("path");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_set_timeout(t, 60);
	tcase_add_test(t, every_state_knows_what_follows);
	tcase_add_test(t, both_nodes_compute_one_number_for_a_path);
	tcase_add_test(t, a_path_that_is_dropped_leaves_nothing);
	tcase_add_test(t, a_path_that_is_made_anew_takes_no_old_frame);
	tcase_add_test(t, there_is_an_end_to_the_paths_of_a_peer);
	tcase_add_test(t, a_port_that_goes_takes_its_path_down_and_brings_it_back);
	tcase_add_test(t, a_route_makes_a_path_by_a_port_in_use_alone);
	tcase_add_test(t, the_third_flap_in_a_minute_holds_a_path_out);
	tcase_add_test(t, ten_good_beats_in_a_row_are_wanted_after_the_hold);
	tcase_add_test(t, a_loose_cable_does_not_fill_the_log);
	tcase_add_test(t, rare_faults_are_no_flaps);
	tcase_add_test(t, a_third_node_labels_the_cause);
	tcase_add_test(t, with_nobody_to_ask_it_is_unconfirmed);
	tcase_add_test(t, what_we_answer_is_when_we_heard_it);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
