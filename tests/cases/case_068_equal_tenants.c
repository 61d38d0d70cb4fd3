/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Case 68: equal tenants, unequal shares.
 *
 * Of three equal queues one got nearly everything, because it had asked first. Here three domains
 * of equal priority want a link of nine channels, each more than it can have, and start one after
 * the other, so that the first has all nine before the others ask. Of the 3,000 grants from the
 * time on that all three ask each gets 1,000 +- 10, and no window of 30 grants gives one fewer
 * than 8; with weights 1, 2 and 3 it is 500, 1,000 and 1,500 +- 10.
 *
 * One session has all three domains: its socket brings the grants in the order in which they were
 * made. All are held equally long, 5 ms. The starts are 0.1 s apart, a hundredth of the field's
 * 10 s: the first owner's lead is as large after twenty rounds as after two thousand.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ledger.h"
#include "ranks.h"
#include "suite.h"

enum { OWNERS = 3, CHANNELS = 9, ASKED = 24, GRANTS = 3000, WINDOW = 30, HOLD_MS = 5, HELD = 64 };

static struct hc_node node;
static int books;

struct held {
	hcomm_channel ch;
	uint64_t until;
	unsigned owner;
};

static struct {
	struct hcomm_session *s;
	hcomm_domain d[OWNERS];
	unsigned waiting[OWNERS];
	struct held held[HELD];
	unsigned first, last;   /* of held: a ring */
	unsigned order[GRANTS]; /* whose */
	unsigned grants;
	bool counting;
} t;

static void asks(unsigned owner)
{
	struct hcomm_channel_args a = HCOMM_INIT(struct hcomm_channel_args);
	hcomm_channel ch;

	a.peer = 1;
	a.wait = 1;
	a.path_type = HCOMM_LINK_HCCS;
	a.bandwidth_mbps = a.back_mbps = 100;
	a.flags = HCOMM_CHANNEL_FROM | HCOMM_CHANNEL_GRANT_ONLY;
	if (hcomm_channel_acquire(t.d[owner], &a, HCOMM_START, &ch) != HCOMM_E_IN_PROGRESS)
		hc_fail("owner %u: %s", owner, hcomm_last_error());
	t.waiting[owner]++;
}

static void on_event(const struct hcomm_event *e, void *context)
{
	unsigned owner = 0;

	(void)context;
	if (e->code == HCOMM_EV_CHANNEL_REFUSED)
		hc_fail("refused: %s", e->text);
	if (e->code != HCOMM_EV_CHANNEL_GRANTED)
		return;
	while (owner < OWNERS && t.d[owner] != e->domain)
		owner++;
	hc_want(owner < OWNERS && t.last - t.first < HELD);
	t.held[t.last++ % HELD] = (struct held){e->channel, hc_now_ms() + HOLD_MS, owner};
	t.waiting[owner]--;
	if (t.counting && t.grants < GRANTS)
		t.order[t.grants++] = owner;
}

/* Gives back what was held long enough, and asks for as much again. */
static void goes_on(void)
{
	const uint64_t now = hc_now_ms();
	struct held *h;

	if (hcomm_dispatch(t.s, 1) < 0)
		hc_fail("dispatch: %s", hcomm_last_error());
	for (; t.first < t.last && t.held[t.first % HELD].until <= now; t.first++) {
		h = &t.held[t.first % HELD];
		asks(h->owner); /* first, so that it never lacks a request */
		if (hcomm_channel_release(h->ch))
			hc_fail("release: %s", hcomm_last_error());
	}
}

static void goes_on_for(unsigned ms)
{
	for (uint64_t end = hc_now_ms() + ms; hc_now_ms() < end;)
		goes_on();
}

static void starts(unsigned owner, uint32_t weight)
{
	const uint32_t devices[2] = {0, 1};
	struct hcomm_config config = HCOMM_INIT(struct hcomm_config);

	config.shared = 1;
	config.weight = weight;
	if (hcomm_join_all_local(t.s, devices, 2, &config, 20000, &t.d[owner]))
		hc_fail("owner %u: %s", owner, hcomm_last_error());
	for (unsigned i = 0; i < ASKED; i++)
		asks(owner);
}

static void ends(void)
{
	for (unsigned i = 0; i < OWNERS; i++)
		ck_assert_int_eq(hcomm_destroy(t.d[i], 10000), 0);
	hc_ledger_await_empty(books, 5000);
	hcomm_close(t.s);
}

static void runs(const uint32_t weight[OWNERS])
{
	struct hc_ledger l;

	memset(&t, 0, sizeof(t));
	if (hcomm_open(NULL, &t.s) || hcomm_on_event(t.s, on_event, NULL))
		hc_fail("%s", hcomm_last_error());
	for (unsigned i = 0; i < OWNERS; i++) {
		starts(i, weight[i]);
		goes_on_for(100);
	}
	t.counting = true;
	while (t.grants < GRANTS) {
		goes_on();
		for (unsigned i = 0; i < OWNERS; i++)
			ck_assert_uint_gt(t.waiting[i], 0); /* each wants more than it has */
		if (t.grants % 50 == 0)
			hc_ledger_read(books, &l);
	}
	ends();
}

static void count(unsigned from, unsigned n, unsigned of[OWNERS])
{
	memset(of, 0, OWNERS * sizeof(of[0]));
	for (unsigned i = from; i < from + n; i++)
		of[t.order[i]]++;
}

static void starts_node(void)
{
	hc_node_prepare(&node, 2, NULL,
			"[link 0 1]\ntype = hccs\nbandwidth_mbps = 2000\nvirtual_channels = 9\n");
	setenv("HCOMM_SOCKET", node.socket, 1);
	hc_node_run(&node);
	books = hc_ledger_open(&node);
}

START_TEST(equal_ones_get_equal_shares)
{
	unsigned n[OWNERS], least = WINDOW;

	starts_node();
	runs((const uint32_t[]){1, 1, 1});
	for (unsigned from = 0; from + WINDOW <= GRANTS; from++) {
		count(from, WINDOW, n);
		for (unsigned i = 0; i < OWNERS; i++)
			least = n[i] < least ? n[i] : least;
	}
	count(0, GRANTS, n);
	printf("of %d grants: %u, %u, %u; in a window of %d at least %u\n", GRANTS, n[0], n[1],
	       n[2], WINDOW, least);
	fflush(stdout);
	for (unsigned i = 0; i < OWNERS; i++) {
		ck_assert_uint_ge(n[i], 990);
		ck_assert_uint_le(n[i], 1010);
	}
	ck_assert_uint_ge(least, 8);
	close(books);
	hc_node_end(&node);
}
END_TEST

START_TEST(weights_are_proportions)
{
	unsigned n[OWNERS];

	starts_node();
	runs((const uint32_t[]){1, 2, 3});
	count(0, GRANTS, n);
	printf("with weights 1, 2, 3, of %d grants: %u, %u, %u\n", GRANTS, n[0], n[1], n[2]);
	fflush(stdout);
	for (unsigned i = 0; i < OWNERS; i++) {
		ck_assert_uint_ge(n[i], 500 * (i + 1) - 10);
		ck_assert_uint_le(n[i], 500 * (i + 1) + 10);
	}
	close(books);
	hc_node_end(&node);
}
END_TEST

static void add(TCase *t_)
{
	tcase_add_test(t_, equal_ones_get_equal_shares);
	tcase_add_test(t_, weights_are_proportions);
}

int main(void)
{
	return hc_suite_run("case_068_equal_tenants", add, 60);
}
