/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Channels with a running daemon: two ranks, real rings, and what ends them.
 */
#include "chantest.h"

START_TEST(two_ranks_exchange_messages)
{
	struct hcomm_channel_info info = HCOMM_INIT(struct hcomm_channel_info);
	hcomm_channel ch[2];
	struct two t;

	two_real(&t, NULL);
	two_channel(&t, ch);
	passes(ch[0], ch[1], "to and");
	passes(ch[1], ch[0], "fro");
	works(hcomm_channel_info(ch[0], &info));
	ck_assert_uint_eq(info.peer, 1);
	ck_assert_uint_eq(info.carries, 1);
	ck_assert_uint_eq(channel_state(ch[0]), HCOMM_CHANNEL_OK);
	works(hcomm_channel_release(ch[0]));
	ck_assert_uint_eq(channel_state(ch[1]), HCOMM_CHANNEL_REVOKED);
	two_end(&t);
}
END_TEST

START_TEST(a_channel_does_not_notice_that_the_daemon_dies)
{
	hcomm_channel ch[2], more[2];
	struct two t;

	two_real(&t, NULL);
	two_channel(&t, ch);
	hc_node_kill(&t.node);
	passes(ch[0], ch[1], "while it is away");
	hc_node_run(&t.node);
	passes(ch[1], ch[0], "before anybody has connected");
	works(hcomm_ping(t.s[0], 10000));
	works(hcomm_ping(t.s[1], 10000));
	passes(ch[0], ch[1], "after");
	ck_assert_uint_eq(channel_state(ch[0]), HCOMM_CHANNEL_OK);
	two_channel(&t, more);
	passes(more[0], more[1], "a new one");
	/* the old one is still the daemon's to end */
	works(hcomm_channel_release(ch[1]));
	ck_assert_uint_eq(channel_state(ch[0]), HCOMM_CHANNEL_REVOKED);
	two_end(&t);
}
END_TEST

static int hold(void *arg, int in, int out)
{
	struct hcomm_channel_args a = channel_to(1);
	struct hcomm_root_info *info = arg;
	struct hcomm_session *s = open_session();
	hcomm_channel ch;
	hcomm_domain d;

	works(hcomm_join(s, info, 2, 0, 0, NULL, 20000, &d));
	works(hcomm_channel_acquire(d, &a, 5000, &ch));
	works(hcomm_channel_send(ch, "before", 6, 5000));
	hc_tell(out, "x", 1);
	hc_hear(in, &a, 1, 60000);
	return 0;
}

struct seen {
	struct hcomm_event last;
	unsigned revoked;
};

static void note(const struct hcomm_event *e, void *context)
{
	struct seen *seen = context;

	if (e->code != HCOMM_EV_CHANNEL_REVOKED)
		return;
	seen->revoked++;
	seen->last = *e;
}

START_TEST(a_killed_partner_ends_the_wait)
{
	struct hcomm_channel_args b = channel_to(0);
	struct hcomm_root_info info;
	struct hcomm_session *s;
	struct seen seen = {.revoked = 0};
	uint32_t bytes = 64;
	uint64_t start;
	struct hc_node n;
	struct hc_child c;
	hcomm_channel ch;
	hcomm_domain d;
	char got[64], x;
	int i;

	hc_node_start(&n, 2, NULL);
	s = open_session();
	works(hcomm_on_event(s, note, &seen));
	works(hcomm_root_info(s, 2, NULL, &info));
	hc_spawn(&c, hold, &info);
	works(hcomm_join(s, &info, 2, 1, 1, NULL, 20000, &d));
	works(hcomm_channel_acquire(d, &b, 5000, &ch));
	hc_child_read(&c, &x, 1, 20000);
	hc_child_kill(&c);
	works(hcomm_channel_recv(ch, got, &bytes, 5000));
	start = hc_now_ms();
	refused(hcomm_channel_recv(ch, got, &bytes, 30000), HCOMM_E_PEER_LOST, "rank 0 is over");
	ck_assert_uint_lt(hc_now_ms() - start, hc_patience(5000));
	for (i = 0; i < 100 && !seen.revoked; i++)
		ck_assert_int_ge(hcomm_dispatch(s, 100), 0);
	ck_assert_uint_eq(seen.revoked, 1);
	ck_assert_uint_eq(seen.last.channel, ch);
	ck_assert_uint_eq(seen.last.domain, d);
	hcomm_close(s);
	hc_node_end(&n);
}
END_TEST

START_TEST(a_handle_of_several_ranks)
{
	struct hcomm_channel_args a = channel_to(1), b = channel_to(0);
	struct hcomm_session *s;
	hcomm_channel ch[2];
	struct hc_node n;
	hcomm_domain d;

	hc_node_start(&n, 3, NULL);
	s = open_session();
	works(hcomm_join_all_local(s, NULL, 0, NULL, 20000, &d));
	refused(hcomm_channel_acquire(d, &a, 5000, &ch[0]), HCOMM_E_INVALID, "HCOMM_CHANNEL_FROM");
	a.flags = b.flags = HCOMM_CHANNEL_FROM;
	a.rank = 0;
	b.rank = 1;
	works(hcomm_channel_acquire(d, &a, 5000, &ch[0]));
	works(hcomm_channel_acquire(d, &b, 5000, &ch[1]));
	passes(ch[0], ch[1], "within one process");
	passes(ch[1], ch[0], "and back");
	hcomm_close(s);
	hc_node_end(&n);
}
END_TEST

START_TEST(a_domain_that_begins_with_channels)
{
	struct hcomm_config config = HCOMM_INIT(struct hcomm_config);
	struct hcomm_session *s[2] = {NULL, NULL};
	struct hcomm_root_info info;
	hcomm_channel ch[2];
	struct hc_node n;
	hcomm_domain d[2];
	struct two t = {0};
	unsigned i;

	hc_node_start(&n, 2, NULL);
	config.channels = 1;
	config.channel_mbps = 10;
	for (i = 0; i < 2; i++)
		s[i] = open_session();
	works(hcomm_root_info(s[0], 2, &config, &info));
	for (i = 0; i < 2; i++)
		ck_assert_int_eq(hcomm_join(s[i], &info, 2, i, i, &config, HCOMM_START, &d[i]),
				 HCOMM_E_IN_PROGRESS);
	await_active(s, d, 2);
	t.d[0] = d[0];
	t.d[1] = d[1];
	two_channel(&t, ch);
	passes(ch[0], ch[1], "had from the first moment");
	close_all(s, 2);
	hc_node_end(&n);
}
END_TEST

START_TEST(what_cannot_be_wished_for_is_refused)
{
	struct hcomm_config config = HCOMM_INIT(struct hcomm_config);
	uint32_t ranks[2] = {0, 1};
	hcomm_domain sub;
	struct two t;

	two_real(&t, NULL);
	config.channel_mbps = 10;
	refused(hcomm_sub(t.d[0], ranks, 2, 1, &config, 100, &sub), HCOMM_E_INVALID,
		"config->channels is 0");
	config.channels = 1;
	refused(hcomm_sub(t.d[0], ranks, 2, 1, &config, 100, &sub), HCOMM_E_NOT_SUPPORTED,
		"hcomm_channel_acquire");
	refused(hcomm_split(t.d[0], 1, 1, &config, 100, &sub), HCOMM_E_NOT_SUPPORTED,
		"hcomm_channel_acquire");
	config.channel_wait = 2;
	refused(hcomm_sub(t.d[0], ranks, 2, 1, &config, 100, &sub), HCOMM_E_INVALID,
		"channel_wait is 2");
	two_end(&t);
}
END_TEST

TESTS("channels", two_ranks_exchange_messages, a_channel_does_not_notice_that_the_daemon_dies,
      a_killed_partner_ends_the_wait, a_handle_of_several_ranks, a_domain_that_begins_with_channels,
      what_cannot_be_wished_for_is_refused)
