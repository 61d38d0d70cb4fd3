/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the tests of channels have in common: two ranks in one process, with the fake daemon that
 * grants everything or with a real one, and a channel between them.
 */
#ifndef HC_CHANTEST_H
#define HC_CHANTEST_H

#include "apitest.h"

struct two { /* ranks 0 and 1 */
	struct fake fake;
	struct hc_node node;
	struct hcomm_session *s[2];
	hcomm_domain d[2];
};

static inline void two_fake(struct two *t, fake_fn fn)
{
	unsigned i;

	memset(t, 0, sizeof(*t));
	fake_start(&t->fake, fn ? fn : fake_good, NULL);
	for (i = 0; i < 2; i++) {
		t->s[i] = open_session();
		t->d[i] = join_root(t->s[i], 2, i);
	}
}

static inline void two_real(struct two *t, const char *options)
{
	memset(t, 0, sizeof(*t));
	hc_node_start(&t->node, 2, options);
	form(t->s, t->d, 2, NULL);
}

static inline void two_end(struct two *t)
{
	close_all(t->s, 2);
	if (t->fake.slab)
		fake_end(&t->fake);
	else
		hc_node_end(&t->node);
}

static inline struct hcomm_channel_args channel_to(uint32_t peer)
{
	struct hcomm_channel_args a = HCOMM_INIT(struct hcomm_channel_args);

	a.peer = peer;
	return a;
}

/* Both ends of one channel. */
static inline void two_channel(struct two *t, hcomm_channel ch[2])
{
	struct hcomm_channel_args a = channel_to(1), b = channel_to(0);

	works(hcomm_channel_acquire(t->d[0], &a, 5000, &ch[0]));
	works(hcomm_channel_acquire(t->d[1], &b, 5000, &ch[1]));
}

static inline void passes(hcomm_channel from, hcomm_channel to, const char *text)
{
	uint32_t bytes = 64;
	char got[64];

	works(hcomm_channel_send(from, text, (uint32_t)strlen(text), 5000));
	works(hcomm_channel_recv(to, got, &bytes, 5000));
	ck_assert_uint_eq(bytes, strlen(text));
	ck_assert(!memcmp(got, text, bytes));
}

static inline uint32_t channel_state(hcomm_channel ch)
{
	uint32_t word;

	works(hcomm_channel_status(ch, &word));
	return word & 0xff;
}

#endif
