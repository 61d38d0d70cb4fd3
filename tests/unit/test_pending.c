/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pure half of a session: answers find their requests, whatever the daemon sends.
 *
 * The other side is played by hc_frame_write. What a sink is told is kept as a short transcript.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pending.h"

static struct hc_sess sess;
static char told[512];
static uint8_t packet[HC_PACKET_MAX];
static size_t packed;

static void tell(const char *what, unsigned long n)
{
	size_t at = strlen(told);

	snprintf(told + at, sizeof(told) - at, "%s %lu;", what, n);
}

static void on_done(void *context, struct hc_call *call)
{
	(void)context;
	tell("done", call->id);
}

static void on_event(void *context, const struct hc_m_event *e)
{
	(void)context;
	tell("event", e->kind);
}

static void on_stray(void *context, const struct hc_frame *f)
{
	(void)context;
	tell("stray", f->head.id);
}

static const struct hc_sink sink = {.done = on_done, .event = on_event, .stray = on_stray};

static void set_up(void)
{
	hc_sess_init(&sess);
	told[0] = '\0';
	packed = 0;
}

static void ask(struct hc_call *c)
{
	struct hc_m_ping m = {.value = 1};
	uint8_t buf[64];
	size_t len;

	hc_call_init(c, HC_MSG_done);
	ck_assert_int_eq(hc_sess_request(&sess, c, &hc_desc_ping, &m, buf, sizeof(buf), &len), 0);
}

static void pack(uint32_t id, int32_t status, const struct hc_desc *d, const void *msg)
{
	size_t len;

	ck_assert_int_eq(hc_frame_write(packet + packed, sizeof(packet) - packed, d, 1, id, status,
					msg, &len),
			 0);
	packed += len;
}

static void pack_done(uint32_t id, uint64_t value, const char *text)
{
	struct hc_m_done m = {.value = value, .text = hc_str(text)};

	pack(id, 0, &hc_desc_done, &m);
}

static int deliver(void)
{
	int fd = -1;

	return hc_sess_packet(&sess, packet, packed, &fd, &sink);
}

static uint64_t value_of(const struct hc_call *c)
{
	struct hc_m_done m;

	ck_assert(c->done);
	ck_assert_int_eq(c->outcome, 0);
	ck_assert_int_eq(hc_call_answer(&sess, c, &hc_desc_done, &m), 0);
	return m.value;
}

START_TEST(answers_out_of_order_find_their_requests)
{
	struct hc_call a, b, c;

	ask(&a);
	ask(&b);
	ask(&c);
	pack_done(c.id, 30, "");
	pack_done(a.id, 10, "");
	ck_assert_int_eq(deliver(), 0);
	ck_assert_str_eq(told, "done 3;done 1;");
	ck_assert_uint_eq(value_of(&a), 10);
	ck_assert_uint_eq(value_of(&c), 30);
	ck_assert(!b.done);
	ck_assert_uint_eq(sess.waiting, 1);
}
END_TEST

START_TEST(events_between_answers_are_told_in_their_place)
{
	struct hc_m_event e = {.kind = HC_W_event_code_RANK_DIED, .rank = 3};
	struct hc_call a, b;

	ask(&a);
	ask(&b);
	pack(0, 0, &hc_desc_event, &e);
	pack_done(b.id, 2, "");
	e.kind = HC_W_event_code_DOMAIN_DAMAGED;
	pack(0, 0, &hc_desc_event, &e);
	pack_done(a.id, 1, "");
	ck_assert_int_eq(deliver(), 0);
	ck_assert_str_eq(told, "event 7;done 2;event 3;done 1;");
}
END_TEST

START_TEST(an_answer_that_nobody_waits_for_is_a_stray_and_harms_nothing)
{
	struct hc_call a;

	ask(&a);
	pack_done(77, 5, "");
	pack_done(a.id, 1, "");
	ck_assert_int_eq(deliver(), 0);
	ck_assert_str_eq(told, "stray 77;done 1;");
	ck_assert_uint_eq(sess.strays, 1);
	/* the same answer twice: the second is one too many */
	packed = 0;
	pack_done(a.id, 9, "");
	ck_assert_int_eq(deliver(), 0);
	ck_assert_uint_eq(sess.strays, 2);
	ck_assert_uint_eq(value_of(&a), 1);
}
END_TEST

START_TEST(a_late_answer_after_giving_up_is_a_stray)
{
	struct hc_call a;

	ask(&a);
	hc_sess_forget(&sess, &a);
	hc_sess_forget(&sess, &a); /* twice does no harm */
	ck_assert_uint_eq(sess.waiting, 0);
	pack_done(a.id, 1, "");
	ck_assert_int_eq(deliver(), 0);
	ck_assert_str_eq(told, "stray 1;");
	ck_assert(!a.done);
}
END_TEST

START_TEST(only_whole_messages_of_a_packet_are_taken)
{
	size_t first, whole, cut;
	struct hc_call a, b;

	pack_done(1, 1, "a remark");
	first = packed;
	pack_done(2, 2, "");
	whole = packed;
	for (cut = 1; cut <= whole; cut++) {
		hc_sess_init(&sess);
		ask(&a);
		ask(&b);
		packed = cut;
		ck_assert_int_eq(deliver(), cut == first || cut == whole ? 0 : HC_E_MALFORMED);
		ck_assert_int_eq(a.done, cut >= first);
		ck_assert_int_eq(b.done, cut == whole);
	}
}
END_TEST

START_TEST(a_refusal_brings_its_code_and_text)
{
	struct hc_m_error m = {.retry_after_ms = 250, .text = hc_str("rank 3 is held by pid 7")},
			  got;
	struct hc_call a;

	ask(&a);
	pack(a.id, -HC_E_BUSY, &hc_desc_error, &m);
	ck_assert_int_eq(deliver(), 0);
	ck_assert_int_eq(a.outcome, HC_E_BUSY);
	ck_assert(hc_call_refusal(&sess, &a, &got));
	ck_assert_uint_eq(got.retry_after_ms, 250);
	ck_assert_int_eq(memcmp(got.text.p, "rank 3 is held by pid 7", got.text.len), 0);
}
END_TEST

START_TEST(an_outcome_of_a_newer_daemon_is_still_a_refusal)
{
	struct hc_m_error m = {.text = hc_str("of the future")}, got;
	struct hc_call a;

	ask(&a);
	pack(a.id, -999, &hc_desc_error, &m);
	ck_assert_int_eq(deliver(), 0);
	ck_assert_int_eq(a.outcome, HC_E_INTERNAL);
	ck_assert(hc_call_refusal(&sess, &a, &got));
}
END_TEST

START_TEST(an_answer_of_the_wrong_type_is_malformed)
{
	struct hc_m_ping m = {.value = 1};
	struct hc_call a;

	ask(&a);
	pack(a.id, 0, &hc_desc_ping, &m);
	ck_assert_int_eq(deliver(), 0);
	ck_assert_int_eq(a.outcome, HC_E_MALFORMED);
}
END_TEST

START_TEST(another_version_in_the_header_ends_the_connection)
{
	struct hc_call a;

	ask(&a);
	pack_done(a.id, 1, "");
	packet[5] = 9;
	ck_assert_int_eq(deliver(), HC_E_MALFORMED);
	ck_assert(!a.done);
}
END_TEST

START_TEST(a_large_answer_is_kept_whole)
{
	static char text[HC_TEXT_MAX + 1];
	struct hc_m_query_r m = {.view = 1};
	static char rows[40000];
	struct hc_m_query_r got;
	struct hc_call a, b;

	memset(text, 'x', HC_TEXT_MAX);
	memset(rows, 'r', sizeof(rows));
	m.rows = (struct hc_str){rows, sizeof(rows)};
	ask(&a);
	ask(&b);
	a.want = HC_MSG_query_r;
	pack(a.id, 0, &hc_desc_query_r, &m);
	pack_done(b.id, 4, text);
	ck_assert_int_eq(deliver(), 0);
	memset(packet, 0, sizeof(packet)); /* the packet's memory is used again */
	ck_assert_ptr_nonnull(a.heap);
	ck_assert_int_eq(hc_call_answer(&sess, &a, &hc_desc_query_r, &got), 0);
	ck_assert_uint_eq(got.rows.len, sizeof(rows));
	ck_assert_int_eq(memcmp(got.rows.p, rows, sizeof(rows)), 0);
	ck_assert_ptr_null(b.heap);
	ck_assert_uint_eq(value_of(&b), 4);
	hc_call_fini(&a);
	hc_call_fini(&b);
}
END_TEST

START_TEST(a_descriptor_belongs_to_the_first_message_alone)
{
	struct hc_call a, b;
	int fd = dup(STDERR_FILENO), given = fd;

	ask(&a);
	ask(&b);
	pack_done(b.id, 2, "");
	pack_done(a.id, 1, "");
	ck_assert_int_eq(hc_sess_packet(&sess, packet, packed, &given, &sink), 0);
	ck_assert_int_eq(given, -1);
	ck_assert_int_eq(b.fd, fd);
	ck_assert_int_eq(a.fd, -1);
	hc_call_fini(&b);
	ck_assert_int_lt(close(fd), 0); /* fini closed what nobody took */
}
END_TEST

START_TEST(a_lost_connection_answers_everybody)
{
	struct hc_call calls[200];
	unsigned i;

	for (i = 0; i < 200; i++)
		ask(&calls[i]);
	hc_sess_lost(&sess, &sink);
	ck_assert_uint_eq(sess.waiting, 0);
	for (i = 0; i < 200; i++) {
		ck_assert(calls[i].done);
		ck_assert_int_eq(calls[i].outcome, HC_E_PEER_CLOSED);
	}
}
END_TEST

START_TEST(an_id_in_use_is_not_given_again)
{
	struct hc_call a, b;

	ask(&a);
	sess.next_id = UINT32_MAX;
	ask(&b);
	ck_assert_uint_eq(b.id, UINT32_MAX);
	hc_sess_forget(&sess, &b);
	ask(&b); /* 0 is for events, 1 waits */
	ck_assert_uint_eq(b.id, 2);
}
END_TEST

static int hello(uint16_t proto, struct hc_m_hello_r *got, struct hc_m_error *e)
{
	struct hc_m_hello_r m = {.proto = proto, .node_name = hc_str("n"), .build = hc_str("b")};

	packed = 0;
	pack(1, 0, &hc_desc_hello_r, &m);
	return hc_sess_hello(packet, packed, got, e);
}

START_TEST(hello_takes_a_version_that_both_speak_and_no_other)
{
	struct hc_m_hello_r got;
	struct hc_m_error e;

	ck_assert_int_eq(hello(HC_PROTO_MAX, &got, &e), 0);
	ck_assert_uint_eq(got.proto, HC_PROTO_MAX);
	ck_assert_int_eq(hello(HC_PROTO_MAX + 1, &got, &e), HC_E_VERSION);
	ck_assert_int_eq(hello(HC_PROTO_MIN - 1, &got, &e), HC_E_VERSION);
	ck_assert_uint_eq(got.proto, HC_PROTO_MIN - 1);
}
END_TEST

START_TEST(a_refused_hello_says_why_and_garbage_is_malformed)
{
	struct hc_m_error m = {.text = hc_str("upgrade libhcomm")}, e;
	struct hc_m_hello_r got;

	pack(1, -HC_E_VERSION, &hc_desc_error, &m);
	ck_assert_int_eq(hc_sess_hello(packet, packed, &got, &e), HC_E_VERSION);
	ck_assert_uint_eq(e.text.len, strlen("upgrade libhcomm"));
	ck_assert_int_eq(hc_sess_hello(packet, packed - 1, &got, &e), HC_E_MALFORMED);
	ck_assert_int_eq(hc_sess_hello(packet, 3, &got, &e), HC_E_MALFORMED);
	memset(packet, 0xa5, packed);
	ck_assert_int_eq(hc_sess_hello(packet, packed, &got, &e), HC_E_MALFORMED);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("pending");
	TCase *t = tcase_create("pending");
	SRunner *r;
	int failed;

	tcase_add_checked_fixture(t, set_up, NULL);
	tcase_add_test(t, answers_out_of_order_find_their_requests);
	tcase_add_test(t, events_between_answers_are_told_in_their_place);
	tcase_add_test(t, an_answer_that_nobody_waits_for_is_a_stray_and_harms_nothing);
	tcase_add_test(t, a_late_answer_after_giving_up_is_a_stray);
	tcase_add_test(t, only_whole_messages_of_a_packet_are_taken);
	tcase_add_test(t, a_refusal_brings_its_code_and_text);
	tcase_add_test(t, an_outcome_of_a_newer_daemon_is_still_a_refusal);
	tcase_add_test(t, an_answer_of_the_wrong_type_is_malformed);
	tcase_add_test(t, another_version_in_the_header_ends_the_connection);
	tcase_add_test(t, a_large_answer_is_kept_whole);
	tcase_add_test(t, a_descriptor_belongs_to_the_first_message_alone);
	tcase_add_test(t, a_lost_connection_answers_everybody);
	tcase_add_test(t, an_id_in_use_is_not_given_again);
	tcase_add_test(t, hello_takes_a_version_that_both_speak_and_no_other);
	tcase_add_test(t, a_refused_hello_says_why_and_garbage_is_malformed);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? 1 : 0;
}
