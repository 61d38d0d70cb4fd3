/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hcomm_channel_status: the register as the daemon writes it, without asking anybody.
 */
#include "chantest.h"
#include "failing.h"

START_TEST(every_state_is_seen_with_its_generation)
{
	static const uint32_t states[] = {HCOMM_CHANNEL_OK, HCOMM_CHANNEL_CONGESTED,
					  HCOMM_CHANNEL_SWITCHED, HCOMM_CHANNEL_DOWN,
					  HCOMM_CHANNEL_REVOKED};
	uint32_t word = 0, i;
	hcomm_channel ch[2];
	struct two t;
	int r;

	two_fake(&t, NULL);
	two_channel(&t, ch);
	fake_kill(&t.fake); /* the page is enough */
	for (i = 0; i < 5; i++) {
		t.fake.registers[1].state = HC_STATUS_WORD(states[i], 10 + i);
		hc_failing_begin(0);
		r = hcomm_channel_status(ch[0], &word);
		ck_assert(!hc_failing_end());
		works(r);
		ck_assert_uint_eq(word, states[i] | (10 + i) << 8);
	}
	two_end(&t);
}
END_TEST

START_TEST(a_register_of_another_means_revoked)
{
	hcomm_channel ch[2];
	struct two t;

	two_fake(&t, NULL);
	two_channel(&t, ch);
	t.fake.registers[1].id = 77;
	ck_assert_uint_eq(channel_state(ch[0]), HCOMM_CHANNEL_REVOKED);
	two_end(&t);
}
END_TEST

START_TEST(a_grant_only_has_it_too)
{
	struct hcomm_channel_args a = channel_to(1);
	hcomm_channel ch;
	struct two t;

	two_fake(&t, NULL);
	a.flags = HCOMM_CHANNEL_GRANT_ONLY;
	works(hcomm_channel_acquire(t.d[0], &a, 5000, &ch));
	ck_assert_uint_eq(channel_state(ch), HCOMM_CHANNEL_OK);
	fake_revoke(&t.fake, 1);
	ck_assert_uint_eq(channel_state(ch), HCOMM_CHANNEL_REVOKED);
	two_end(&t);
}
END_TEST

START_TEST(refusals)
{
	hcomm_channel ch[2];
	uint32_t word;
	struct two t;

	two_fake(&t, NULL);
	two_channel(&t, ch);
	refused(hcomm_channel_status(ch[0], NULL), HCOMM_E_INVALID, "status is NULL");
	refused(hcomm_channel_status(0, &word), HCOMM_E_INVALID, "handle is 0");
	works(hcomm_channel_release(ch[0]));
	refused(hcomm_channel_status(ch[0], &word), HCOMM_E_GONE, "released");
	two_end(&t);
}
END_TEST

TESTS("hcomm_channel_status", every_state_is_seen_with_its_generation,
      a_register_of_another_means_revoked, a_grant_only_has_it_too, refusals)
