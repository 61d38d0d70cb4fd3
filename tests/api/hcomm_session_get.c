/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hcomm_session_get: what hello said, also to a caller whose struct is shorter.
 */
#include "apitest.h"

START_TEST(the_session_is_described)
{
	struct hcomm_session_info info = HCOMM_INIT(struct hcomm_session_info);
	struct fake f;
	struct hcomm_session *s = open_fake(&f, NULL);

	works(hcomm_session_get(s, &info));
	ck_assert_uint_eq(info.start, FAKE_START);
	ck_assert_uint_eq(info.session, 1);
	ck_assert_uint_eq(info.incarnation, 3);
	ck_assert_uint_eq(info.uid, (uint32_t)getuid());
	ck_assert_uint_eq(info.fence, 0);
	ck_assert_uint_eq(info.protocol, 1);
	ck_assert_str_eq(info.node, "fake");
	ck_assert_str_eq(info.build, "9.8.7");
	ck_assert_str_eq(info.socket, f.socket);
	hcomm_close(s);
	fake_end(&f);
}
END_TEST

START_TEST(a_shorter_struct_of_an_older_caller_is_honoured)
{
	struct hcomm_session_info info;
	struct fake f;
	struct hcomm_session *s = open_fake(&f, NULL);

	memset(&info, 0x77, sizeof(info));
	info.size = offsetof(struct hcomm_session_info, incarnation);
	works(hcomm_session_get(s, &info));
	ck_assert_uint_eq(info.session, 1);
	ck_assert_uint_eq(info.size, offsetof(struct hcomm_session_info, incarnation));
	ck_assert_uint_eq(info.incarnation, 0x7777777777777777);
	hcomm_close(s);
	fake_end(&f);
}
END_TEST

START_TEST(the_real_daemon_counts_sessions_and_starts)
{
	struct hcomm_session_info a = HCOMM_INIT(struct hcomm_session_info), b = a;
	struct hcomm_session *s;
	struct hc_node n;

	hc_node_start(&n, 1, "node_name = here");
	s = open_session();
	works(hcomm_session_get(s, &a));
	hcomm_close(s);
	ck_assert_str_eq(a.node, "here");
	hc_node_stop(&n);
	hc_node_run(&n);
	s = open_session();
	works(hcomm_session_get(s, &b));
	hcomm_close(s);
	ck_assert_uint_eq(b.start, a.start + 1);
	ck_assert_uint_eq(b.incarnation, a.incarnation);
	hc_node_end(&n);
}
END_TEST

START_TEST(refusals)
{
	struct hcomm_session_info info = HCOMM_INIT(struct hcomm_session_info);
	struct fake f;
	struct hcomm_session *s = open_fake(&f, NULL);

	refused(hcomm_session_get(NULL, &info), HCOMM_E_INVALID, "session is NULL");
	refused(hcomm_session_get(s, NULL), HCOMM_E_INVALID, "info is NULL");
	info.size = 0;
	refused(hcomm_session_get(s, &info), HCOMM_E_INVALID, "no size");
	hcomm_close(s);
	fake_end(&f);
}
END_TEST

TESTS("hcomm_session_get", the_session_is_described,
      a_shorter_struct_of_an_older_caller_is_honoured, the_real_daemon_counts_sessions_and_starts,
      refusals)
