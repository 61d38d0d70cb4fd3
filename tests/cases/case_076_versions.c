/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Case 76: library and daemon of different versions.
 *
 * After an upgrade without a restart both sides misread each other in silence: a missing field
 * was taken for zero and another command ran. Here the first exchange settles it. A partner too
 * new or too old is refused with both ranges and which side to upgrade, and nothing that it asks
 * has an effect. An unknown request is answered and the session lives on. A body with a byte
 * more or less than its version has is no request at all.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "ranks.h"
#include "raw.h"
#include "suite.h"

static struct hc_node node;
static uint8_t buf[HC_PACKET_MAX], out[HC_PACKET_MAX];

static void begin(void)
{
	hc_node_start(&node, 2, NULL);
}

static void end(void)
{
	hc_node_end(&node);
}

static const struct other {
	uint16_t min, max;
	const char *upgrade, *range;
} others[] = {
	{HC_PROTO_MAX + 1, HC_PROTO_MAX + 1, "upgrade the daemon", "2 to 2"},
	{HC_PROTO_MAX + 1, HC_PROTO_MAX + 5, "upgrade the daemon", "2 to 6"},
	{HC_PROTO_MIN - 1, HC_PROTO_MIN - 1, "upgrade the library", "0 to 0"},
};

static size_t put_hello(const struct other *o)
{
	const struct hc_m_hello hello = {
		.proto_min = o->min, .proto_max = o->max, .build = hc_str("7.7.7")};

	return hc_raw_frame(out, sizeof(out), &hc_desc_hello, 1, &hello);
}

static void want_nothing_happened(void)
{
	struct hcomm_view_status s;

	hc_ask_status(&s);
	ck_assert_uint_eq(s.domains, 0);
	ck_assert_uint_eq(s.forming, 0);
}

START_TEST(the_first_exchange_names_both_ranges_and_the_side)
{
	const struct other *o = &others[_i];
	const struct hc_m_create create = {.nranks = 2, .name = hc_str("smuggled"), .weight = 1};
	int fd = hc_raw_connect(node.socket);
	size_t n = put_hello(o);
	struct hc_m_error m;
	struct hc_frame f;
	char text[HC_TEXT_MAX + 1];

	/* a request behind it in the same packet */
	n += hc_raw_frame(out + n, sizeof(out) - n, &hc_desc_create, 2, &create);
	ck_assert(hc_raw_send(fd, out, n));
	ck_assert(hc_raw_recv(fd, buf, &f));
	ck_assert_uint_eq(f.head.type, HC_MSG_error);
	ck_assert_int_eq(f.head.status, HCOMM_E_VERSION);
	ck_assert_uint_eq(f.head.version, 1); /* readable for every version */
	ck_assert_int_eq(hc_decode(&hc_desc_error, 1, f.body, f.body_len, &m), 0);
	hc_str_copy(m.text, text, sizeof(text));
	ck_assert_msg(strstr(text, o->upgrade) && strstr(text, o->range) &&
			      strstr(text, "1 to 1") && strstr(text, "7.7.7") &&
			      strstr(text, HC_VERSION),
		      "%s", text);
	hc_raw_want_closed(fd);
	close(fd);
	want_nothing_happened();
	ck_assert(hc_node_logged(&node, o->upgrade)); /* on both sides */
}
END_TEST

START_TEST(a_newer_library_that_still_speaks_ours_is_served)
{
	const struct other both = {HC_PROTO_MIN, HC_PROTO_MAX + 3, NULL, NULL};
	int fd = hc_raw_connect(node.socket);
	struct hc_m_hello_r m;
	struct hc_frame f;

	ck_assert(hc_raw_send(fd, out, put_hello(&both)));
	ck_assert(hc_raw_recv(fd, buf, &f));
	ck_assert_uint_eq(f.head.type, HC_MSG_hello_r);
	ck_assert_int_eq(hc_decode(&hc_desc_hello_r, 1, f.body, f.body_len, &m), 0);
	ck_assert_uint_eq(m.proto, HC_PROTO_MAX);
	hc_raw_want_alive(fd);
	close(fd);
}
END_TEST

static const uint16_t unknown[] = {0, 7, 61, 99, 150, 199, 4711, 65535};

START_TEST(an_unknown_request_is_answered_and_the_session_lives)
{
	int fd = hc_raw_session(node.socket);
	size_t n =
		hc_raw_frame(out, sizeof(out), &hc_desc_ping, 5, &(struct hc_m_ping){.value = 1});
	struct hc_frame f;

	out[6] = (uint8_t)(unknown[_i] >> 8);
	out[7] = (uint8_t)unknown[_i];
	ck_assert(hc_raw_send(fd, out, n));
	ck_assert(hc_raw_recv(fd, buf, &f));
	ck_assert_uint_eq(f.head.type, HC_MSG_error);
	ck_assert_uint_eq(f.head.id, 5);
	ck_assert_int_eq(f.head.status, HCOMM_E_NOT_SUPPORTED);
	hc_raw_want_alive(fd);
	close(fd);
}
END_TEST

/* What only daemons, or only the daemon, may say: known numbers, yet no requests of a client. */
START_TEST(messages_of_others_have_no_effect)
{
	static const uint16_t theirs[] = {HC_MSG_hello_r, HC_MSG_done, HC_MSG_joined, HC_MSG_event,
					  HC_MSG_commit,  HC_MSG_gone, HC_MSG_arrive, HC_MSG_state};

	for (size_t i = 0; i < sizeof(theirs) / sizeof(theirs[0]); i++) {
		int fd = hc_raw_session(node.socket);
		size_t n = hc_raw_frame(out, sizeof(out), &hc_desc_ping, 5,
					&(struct hc_m_ping){.value = 1});

		out[6] = (uint8_t)(theirs[i] >> 8);
		out[7] = (uint8_t)theirs[i];
		ck_assert(hc_raw_send(fd, out, n));
		close(fd);
	}
	want_nothing_happened();
	ck_assert(hc_node_alive(&node));
}
END_TEST

START_TEST(a_body_of_another_length_is_no_request)
{
	const struct hc_m_create create = {.nranks = 2, .name = hc_str("odd"), .weight = 1};
	static const int off[] = {-17, -1, 1, 8, 1000};

	for (size_t i = 0; i < sizeof(off) / sizeof(off[0]); i++) {
		int fd = hc_raw_session(node.socket);
		size_t n = hc_raw_frame(out, sizeof(out), &hc_desc_create, 6, &create);
		bool refused = false;
		struct hc_frame f;

		memset(out + n, 0, 1000);
		n = (size_t)((int)n + off[i] > 16 ? (int)n + off[i] : 16);
		out[2] = (uint8_t)(n >> 8);
		out[3] = (uint8_t)n;
		ck_assert(hc_raw_send(fd, out, n));
		while (hc_raw_recv(fd, buf, &f)) { /* an error that says so, then the end */
			ck_assert_uint_eq(f.head.type, HC_MSG_error);
			ck_assert_int_eq(f.head.status, HCOMM_E_MALFORMED);
			ck_assert_uint_eq(f.head.id, 6);
			refused = true;
		}
		ck_assert(refused);
		close(fd);
	}
	want_nothing_happened();
}
END_TEST

/* ---- the library ---- */

START_TEST(a_program_of_a_newer_header_is_told_what_to_upgrade)
{
	ck_assert_int_eq(hcomm_check_version(HCOMM_VERSION), 0);
	ck_assert_int_eq(hcomm_check_version((HCOMM_VERSION_MAJOR + 1) << 16), HCOMM_E_VERSION);
	ck_assert_msg(strstr(hcomm_last_error(), "upgrade") != NULL, "%s", hcomm_last_error());
}
END_TEST

/* Built against a header whose structs were shorter: nothing is written beyond what it has. */
START_TEST(a_shorter_struct_of_an_older_program_is_honoured)
{
	union {
		struct hcomm_session_info info;
		uint8_t bytes[sizeof(struct hcomm_session_info)];
	} old;
	const uint32_t size = offsetof(struct hcomm_session_info, protocol);
	struct hcomm_session *s;

	ck_assert_int_eq(hcomm_open(NULL, &s), 0);
	memset(&old, 0xa5, sizeof(old));
	old.info.size = size;
	ck_assert_int_eq(hcomm_session_get(s, &old.info), 0);
	ck_assert_uint_ne(old.info.session, 0);
	for (size_t i = size; i < sizeof(old); i++)
		ck_assert_uint_eq(old.bytes[i], 0xa5);
	hcomm_close(s);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_checked_fixture(t, begin, end);
	tcase_add_loop_test(t, the_first_exchange_names_both_ranges_and_the_side, 0,
			    sizeof(others) / sizeof(others[0]));
	tcase_add_test(t, a_newer_library_that_still_speaks_ours_is_served);
	tcase_add_loop_test(t, an_unknown_request_is_answered_and_the_session_lives, 0,
			    sizeof(unknown) / sizeof(unknown[0]));
	tcase_add_test(t, messages_of_others_have_no_effect);
	tcase_add_test(t, a_body_of_another_length_is_no_request);
	tcase_add_test(t, a_program_of_a_newer_header_is_told_what_to_upgrade);
	tcase_add_test(t, a_shorter_struct_of_an_older_program_is_honoured);
}

int main(void)
{
	return hc_suite_run("case_076_versions", add, 60);
}
