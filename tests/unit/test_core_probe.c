/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Probes: which sizes pass, that two ends which differ are named at once, and that a hole which
 * swallows large packets is not a good path.
 */
#include <errno.h>

#include "pathrig.h"

#define NORMAL   HC_W_path_state_NORMAL
#define UNSTABLE HC_W_path_state_UNSTABLE
#define DOWN     HC_W_path_state_DOWN

static void end(void)
{
	rig_end_all();
}

static void start(uint32_t mtu_0, uint32_t mtu_1)
{
	rig_start_with(2, &rig_settings, (uint32_t[]){mtu_0, mtu_1});
}

static const uint32_t same[] = {1280, 1500, 4200, 9000, 9216, 65536};

START_TEST(equal_ends_use_what_both_take)
{
	start(same[_i], same[_i]);
	rig_for(5 * MS);
	ck_assert_uint_eq(rig_path(0, 1)->used_mtu, same[_i] < 65535 ? same[_i] : 65535);
	ck_assert_uint_eq(rig_path(1, 0)->used_mtu, rig_path(0, 1)->used_mtu);
	ck_assert_uint_eq(rig_path(0, 1)->state, NORMAL);
	ck_assert(!rig_said(0, "MTU"));
	end();
}
END_TEST

START_TEST(ends_that_differ_are_named_by_both_at_once)
{
	start(9000, 1500);
	rig_for(5 * MS);
	ck_assert_uint_eq(rig_path(0, 1)->used_mtu, 1500);
	ck_assert_uint_eq(rig_path(1, 0)->used_mtu, 1500);
	ck_assert_uint_eq(rig_times(0, "MTU differs: path to node1 over eth0 (10.0.0.1:16660 to "
				       "10.0.0.2:16660): 9000 here, 1500 there; 1500 is used"),
			  1);
	ck_assert(rig_said(1, "1500 here, 9000 there; 1500 is used"));
	rig_for(100 * SEC); /* checked again, and not told again */
	ck_assert_uint_eq(rig_times(0, "MTU"), 1);
	ck_assert_uint_eq(rig_times(1, "MTU"), 1);
	ck_assert_uint_eq(rig_path(0, 1)->state, NORMAL);
	end();
}
END_TEST

START_TEST(a_hole_for_large_packets_is_named)
{
	start(9000, 9000);
	rig.mtu_of_wire = 1500;
	rig_for(2 * SEC);
	ck_assert_uint_eq(rig_path(0, 1)->state, UNSTABLE);
	ck_assert_uint_eq(rig_path(0, 1)->cause, HC_W_path_cause_MTU);
	ck_assert_uint_eq(rig_path(0, 1)->used_mtu, 1500);
	ck_assert_uint_eq(
		rig_times(0, "10.0.0.2:16660): packets of 9000 bytes are lost, 1500 pass"), 1);
	rig_for(100 * SEC);
	ck_assert_uint_eq(rig_path(0, 1)->state, UNSTABLE); /* beats run, and that is not enough */
	ck_assert_uint_eq(rig_path(0, 1)->missed, 0);
	ck_assert_uint_eq(rig_times(0, "bytes are lost"), 2); /* the notice, and the state */
	rig.mtu_of_wire = 0;
	rig_for(40 * SEC);
	ck_assert_uint_eq(rig_path(0, 1)->state, NORMAL);
	ck_assert_uint_eq(rig_path(0, 1)->used_mtu, 9000);
	ck_assert_uint_eq(rig_path(0, 1)->flaps, 0);
	end();
}
END_TEST

START_TEST(a_port_that_changes_its_size_is_named_by_both_at_once)
{
	start(9000, 9000);
	rig_for(10 * SEC);
	rig_port(1, 1280);
	rig_for(5 * MS);
	ck_assert(rig_said(1, "1280 here, 9000 there; 1280 is used"));
	ck_assert(rig_said(0, "9000 here, 1280 there; 1280 is used"));
	ck_assert_uint_eq(rig_path(0, 1)->used_mtu, 1280);
	ck_assert_uint_eq(rig_path(1, 0)->used_mtu, 1280);
	ck_assert_uint_eq(rig_path(0, 1)->state, NORMAL);
	rig_port(1, 9000);
	rig_for(5 * MS);
	ck_assert_uint_eq(rig_path(0, 1)->used_mtu, 9000);
	end();
}
END_TEST

START_TEST(a_refusal_by_its_kernel_is_no_silence)
{
	struct hc_event ev = {.kind = HC_EV_BOUNCED,
			      .u.bounced = {.remote = rig_end(1), .error = ECONNREFUSED}};

	rig_start(2);
	rig_for(2 * SEC);
	rig.loses = rig_lose_all;
	rig_for(50 * MS);
	rig_step(0, &ev);
	ck_assert_uint_eq(rig_peer(0, 1)->state, HC_W_node_state_DAEMON_DOWN);
	rig_for(3 * SEC); /* within the grace nothing is judged */
	ck_assert_uint_eq(rig_path(0, 1)->state, NORMAL);
	ck_assert_uint_eq(rig_path(0, 1)->missed, 0);
	ck_assert_uint_eq(rig_path(0, 1)->bounced, 1);
	ev.u.bounced.remote = rig_end(2); /* of nobody */
	rig_step(0, &ev);
	ck_assert_uint_eq(rig_path(0, 1)->bounced, 1);
	end();
}
END_TEST

START_TEST(a_hole_that_opens_later_is_found_by_the_check)
{
	start(9000, 9000);
	rig_for(10 * SEC);
	ck_assert_uint_eq(rig_path(0, 1)->state, NORMAL);
	rig.mtu_of_wire = 4500;
	rig_for(32 * SEC);
	ck_assert_uint_eq(rig_path(0, 1)->cause, HC_W_path_cause_MTU);
	ck_assert_uint_eq(rig_path(0, 1)->used_mtu, 4200);
	end();
}
END_TEST

START_TEST(a_size_that_no_step_has_is_found_by_the_kernels_word)
{
	struct hc_event ev = {.kind = HC_EV_BOUNCED,
			      .u.bounced = {.remote = rig_end(1), .error = EMSGSIZE, .mtu = 1450}};

	start(9000, 9000);
	rig_for(10 * SEC);
	rig.mtu_of_wire = 1450;
	rig_step(0, &ev);
	rig_for(2 * SEC);
	ck_assert_uint_eq(rig_path(0, 1)->used_mtu, 1450);
	ck_assert(rig_said(0, "packets of 9000 bytes are lost, 1450 pass"));
	ck_assert_uint_eq(rig_path(0, 1)->bounced, 1);
	end();
}
END_TEST

START_TEST(a_hole_is_named_within_some_ms_of_the_first_question)
{
	start(9000, 9000);
	rig.mtu_of_wire = 1500;
	rig_for(50 * MS);
	ck_assert(rig_said(0, "packets of 9000 bytes are lost, 1500 pass"));
	ck_assert(rig_said(1, "packets of 9000 bytes are lost, 1500 pass"));
	end();
}
END_TEST

/* Where the size did pass, other traffic may be why it does not: five tries within a window. */
START_TEST(a_hole_on_a_good_path_is_named_within_a_window_of_the_check_and_asked_again_soon)
{
	uint64_t limit;

	start(9000, 9000);
	rig_for(10 * SEC);
	rig.mtu_of_wire = 4500;
	rig.node[0].sent[HC_MSG_probe] = 0;
	for (limit = rig.now + 40 * SEC; !rig.node[0].sent[HC_MSG_probe] && rig.now < limit;)
		rig_for(MS);
	rig_for(280 * MS); /* the window is three beats of 100 ms */
	ck_assert(!rig_said(0, "are lost"));
	rig_for(100 * MS);
	ck_assert(rig_said(0, "packets of 9000 bytes are lost, 4200 pass"));
	ck_assert_uint_eq(rig_path(0, 1)->state, UNSTABLE);
	rig.mtu_of_wire = 0;
	rig_for(SEC + 10 * MS);
	ck_assert_uint_eq(rig_path(0, 1)->state, NORMAL);
	ck_assert_uint_eq(rig_path(0, 1)->used_mtu, 9000);
	end();
}
END_TEST

/* A hole that stays: its checks get rarer, up to one each mtu_recheck. */
START_TEST(a_hole_that_stays_is_asked_again_ever_more_seldom)
{
	start(9000, 9000);
	rig.mtu_of_wire = 1500;
	rig_for(100 * SEC);
	rig.node[0].sent[HC_MSG_probe] = 0;
	rig_for(100 * SEC); /* three or four rounds of five tries of at most seven sizes */
	ck_assert_uint_ge(rig.node[0].sent[HC_MSG_probe], 3 * 5 * 2);
	ck_assert_uint_le(rig.node[0].sent[HC_MSG_probe], 4 * 5 * 7);
	end();
}
END_TEST

static bool lose_a_tenth(struct rig *r, const struct rig_packet *p)
{
	(void)r;
	return p->len > 100 && rig_random() % 10 == 0;
}

START_TEST(loss_by_chance_is_no_hole)
{
	start(9000, 9000);
	rig.loses = lose_a_tenth;
	rig_for(600 * SEC);
	ck_assert_uint_eq(rig_path(0, 1)->used_mtu, 9000);
	ck_assert(!rig_said(0, "are lost"));
	end();
}
END_TEST

START_TEST(without_an_answer_a_path_is_down_and_lives_when_heard)
{
	rig_start(2);
	rig.loses = rig_lose_all;
	rig_for(SEC - MS);
	ck_assert_uint_eq(rig_path(0, 1)->state, HC_W_path_state_UNKNOWN);
	ck_assert_uint_eq(rig.node[0].sent[HC_MSG_probe], 20); /* five tries of four sizes */
	rig_for(2 * MS);
	ck_assert_uint_eq(rig_path(0, 1)->state, DOWN);
	ck_assert(rig_said(0, "is down: no answer to 5 probes in 1000 ms"));
	rig_for(10 * SEC);
	rig.loses = NULL;
	rig_for(400 * MS);
	ck_assert_uint_eq(rig_path(0, 1)->state, NORMAL);
	ck_assert_uint_eq(rig_path(0, 1)->used_mtu, 1500);
	end();
}
END_TEST

static uint32_t longest_question, longest_answer;

static bool note_sizes(struct rig *r, const struct rig_packet *p)
{
	(void)r;
	if (p->type == HC_MSG_probe && p->len > longest_question)
		longest_question = p->len;
	if (p->type == HC_MSG_probed && p->len > longest_answer)
		longest_answer = p->len;
	return false;
}

START_TEST(answers_are_never_larger_than_questions)
{
	start(9000, 9000);
	rig.loses = note_sizes;
	rig_for(SEC);
	ck_assert_uint_eq(longest_question, 9000 - 28 - HC_DATAGRAM_TAG);
	ck_assert_uint_eq(longest_answer, HC_PROBE_BYTES);
	end();
}
END_TEST

START_TEST(a_question_that_lies_about_its_size_has_no_answer)
{
	struct rig_packet head;
	uint8_t bytes[256];
	uint64_t refused;

	rig_start(2);
	rig_for(90 * MS); /* the last that came is a beat or an answer: make it a probe */
	head = rig.last_head[1];
	memset(bytes, 0, sizeof(bytes));
	memcpy(bytes, rig.last[1], HC_DATAGRAM_HEAD);
	bytes[HC_DATAGRAM_AT_TYPE] = HC_MSG_probe;
	bytes[22]++;
	bytes[36] = 0x23; /* 9000 */
	bytes[37] = 0x28;
	head.len = HC_PROBE_BYTES;
	refused = rig_path(1, 0)->refused;
	rig.node[1].sent[HC_MSG_probed] = 0;
	rig_give(1, &head, bytes);
	ck_assert_uint_eq(rig_path(1, 0)->refused, refused + 1);
	ck_assert_uint_eq(rig.node[1].sent[HC_MSG_probed], 0);
	end();
}
END_TEST

START_TEST(an_answer_to_nothing_we_asked_changes_nothing)
{
	struct rig_packet head;
	uint8_t bytes[256];
	struct hc_path was;

	rig_start(2);
	rig_for(90 * MS);
	head = rig.last_head[1];
	memset(bytes, 0, sizeof(bytes));
	memcpy(bytes, rig.last[1], HC_DATAGRAM_HEAD);
	bytes[HC_DATAGRAM_AT_TYPE] = HC_MSG_probed;
	bytes[22]++;
	bytes[36] = 0x03; /* "1000 passes", and the far port takes 9000 */
	bytes[37] = 0xe8;
	bytes[38] = 0x23;
	bytes[39] = 0x28;
	head.len = HC_PROBE_BYTES;
	was = *rig_path(1, 0);
	rig_give(1, &head, bytes);
	ck_assert_uint_eq(rig_path(1, 0)->far_mtu, was.far_mtu);
	ck_assert_uint_eq(rig_path(1, 0)->used_mtu, was.used_mtu);
	ck_assert_uint_eq(rig_path(1, 0)->proof_at, was.proof_at);
	end();
}
END_TEST

int main(void)
{
	Suite *s = suite_create("core_probe");
	TCase *t = tcase_create("probe");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_set_timeout(t, 60);
	tcase_add_loop_test(t, equal_ends_use_what_both_take, 0, sizeof(same) / sizeof(same[0]));
	tcase_add_test(t, ends_that_differ_are_named_by_both_at_once);
	tcase_add_test(t, a_hole_for_large_packets_is_named);
	tcase_add_test(t, a_port_that_changes_its_size_is_named_by_both_at_once);
	tcase_add_test(t, a_refusal_by_its_kernel_is_no_silence);
	tcase_add_test(t, a_hole_that_opens_later_is_found_by_the_check);
	tcase_add_test(t, a_size_that_no_step_has_is_found_by_the_kernels_word);
	tcase_add_test(t, a_hole_is_named_within_some_ms_of_the_first_question);
	tcase_add_test(
		t,
		a_hole_on_a_good_path_is_named_within_a_window_of_the_check_and_asked_again_soon);
	tcase_add_test(t, a_hole_that_stays_is_asked_again_ever_more_seldom);
	tcase_add_test(t, loss_by_chance_is_no_hole);
	tcase_add_test(t, without_an_answer_a_path_is_down_and_lives_when_heard);
	tcase_add_test(t, answers_are_never_larger_than_questions);
	tcase_add_test(t, a_question_that_lies_about_its_size_has_no_answer);
	tcase_add_test(t, an_answer_to_nothing_we_asked_changes_nothing);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
