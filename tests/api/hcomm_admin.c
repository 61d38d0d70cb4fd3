/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hcomm_admin: the words of operators.
 */
#include "apitest.h"

START_TEST(the_daemon_obeys_and_answers)
{
	struct hcomm_session *s;
	struct hc_node n;
	char answer[HCOMM_TEXT_BYTES] = "?";

	hc_node_start(&n, 1, NULL);
	s = open_session();
	works(hcomm_admin(s, "reload", NULL, 5000, answer, sizeof(answer)));
	ck_assert_str_ne(answer, "?");
	works(hcomm_admin(s, "log-level", "debug", HCOMM_DEFAULT, NULL, 0));
	refused(hcomm_admin(s, "log-level", "loud", 5000, NULL, 0), HCOMM_E_INVALID, "warn");
	ck_assert_int_lt(hcomm_admin(s, "dance", NULL, 5000, NULL, 0), 0);
	ck_assert_str_ne(hcomm_last_error(), "");
	hcomm_close(s);
	hc_node_end(&n);
}
END_TEST

static bool wordy(struct fake_conn *c, const struct hc_frame *f, int got, void *arg)
{
	(void)got;
	(void)arg;
	return fake_done(c, f, 0, "an answer of some length");
}

START_TEST(a_small_buffer_gets_what_fits)
{
	struct fake f;
	struct hcomm_session *s = open_fake(&f, wordy);
	char answer[10];

	works(hcomm_admin(s, "x", "y", 5000, answer, sizeof(answer)));
	ck_assert_str_eq(answer, "an answer");
	hcomm_close(s);
	fake_end(&f);
}
END_TEST

START_TEST(refusals)
{
	struct fake f;
	struct hcomm_session *s = open_fake(&f, NULL);
	char word[1200];

	memset(word, 'w', sizeof(word));
	word[1100] = '\0';
	refused(hcomm_admin(NULL, "x", NULL, 100, NULL, 0), HCOMM_E_INVALID, "session is NULL");
	refused(hcomm_admin(s, NULL, NULL, 100, NULL, 0), HCOMM_E_INVALID, "verb is empty");
	refused(hcomm_admin(s, word, NULL, 100, NULL, 0), HCOMM_E_INVALID, "too long");
	refused(hcomm_admin(s, "x", word, 100, NULL, 0), HCOMM_E_INVALID, "too long");
	refused(hcomm_admin(s, "x", NULL, 0, NULL, 0), HCOMM_E_INVALID, "timeout_ms is 0");
	hcomm_close(s);
	fake_end(&f);
}
END_TEST

TESTS("hcomm_admin", the_daemon_obeys_and_answers, a_small_buffer_gets_what_fits, refusals)
