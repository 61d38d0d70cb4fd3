/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Case 70: half a grant held while waiting for the other half.
 *
 * Requests that need two resources held one and waited for the other, and nothing moved although
 * capacity was free. Here two links have one channel each; some clients want one on A and one on B,
 * the others on B and A. Sixteen of them take both, give them back, and ask again, 10,000 rounds in
 * the long form and 1,000 else: nobody ever holds one without the other, nothing stands still, and
 * in every sample of the books (ledger.h) the sums are right. A client that is granted both and
 * never collects them has them for as long as is stated, and no longer: grant_ttl_s is 1 here, a
 * fifth of the default. The waiting request of a domain that is destroyed is gone with it.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ledger.h"
#include "ranks.h"
#include "raw.h"
#include "suite.h"

enum { CLIENTS = 16, TTL_MS = 1000 };

static struct hc_node node;
static int books;
static uint64_t *rounds; /* shared */

static hcomm_domain joins(struct hcomm_session **s, const char *name)
{
	struct hcomm_config config = HCOMM_INIT(struct hcomm_config);
	hcomm_domain d;

	config.shared = 1;
	config.name = name;
	if (hcomm_open(NULL, s) || hcomm_join_all_local(*s, NULL, 0, &config, 20000, &d))
		hc_fail("join: %s", hcomm_last_error());
	return d;
}

/* From rank 1 to its two neighbours; `first`: which of the two it names first. */
static void wants(struct hcomm_channel_args a[2], unsigned first, uint32_t wait)
{
	for (unsigned i = 0; i < 2; i++) {
		a[i] = (struct hcomm_channel_args)HCOMM_INIT(struct hcomm_channel_args);
		a[i].peer = first ^ i ? 2 : 0;
		a[i].rank = 1;
		a[i].wait = wait;
		a[i].path_type = HCOMM_LINK_HCCS;
		a[i].bandwidth_mbps = a[i].back_mbps = 80;
		a[i].flags = HCOMM_CHANNEL_FROM | HCOMM_CHANNEL_GRANT_ONLY;
	}
}

static void starts(void)
{
	hc_node_prepare(&node, 3, "grant_ttl_s = 1\norphan_grace_s = 1",
			"[link 0 1]\ntype = hccs\nbandwidth_mbps = 100\nvirtual_channels = 1\n"
			"[link 1 2]\ntype = hccs\nbandwidth_mbps = 100\nvirtual_channels = 1\n");
	setenv("HCOMM_SOCKET", node.socket, 1);
	hc_node_run(&node);
	books = hc_ledger_open(&node);
}

static void ends(void)
{
	hc_ledger_await_empty(books, 10000);
	close(books);
	hc_node_end(&node);
}

/* ---- crossed requests ---- */

static uint64_t goal(void)
{
	return hc_long() ? 10000 : 1000;
}

static int takes_both(void *arg, int in, int out)
{
	const unsigned first = *(const unsigned *)arg & 1;
	struct hcomm_channel_args a[2];
	struct hcomm_session *s;
	hcomm_channel ch[2];
	hcomm_domain d = joins(&s, NULL);
	char x = 1;

	wants(a, first, 1);
	hc_tell(out, &x, 1);
	hc_hear(in, &x, 1, 60000);
	while (__atomic_fetch_add(&rounds[0], 1, __ATOMIC_RELAXED) < goal()) {
		if (hcomm_channel_acquire_gang(d, a, 2, 60000, ch))
			hc_fail("client: %s", hcomm_last_error());
		/* nobody else can have any of the two now */
		if (__atomic_fetch_add(&rounds[1], 1, __ATOMIC_SEQ_CST))
			hc_fail("two clients have both at once");
		__atomic_fetch_sub(&rounds[1], 1, __ATOMIC_SEQ_CST);
		if (hcomm_channel_release(ch[first]) || hcomm_channel_release(ch[!first]))
			hc_fail("client: %s", hcomm_last_error());
	}
	hcomm_close(s);
	return 0;
}

START_TEST(both_or_none)
{
	struct hc_child c[CLIENTS];
	uint64_t last = 0, moved = hc_now_ms(), now;
	unsigned samples = 0, whole = 0;
	struct hc_ledger l;
	char x;

	rounds = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(rounds, MAP_FAILED);
	starts();
	for (unsigned i = 0; i < CLIENTS; i++) {
		hc_spawn(&c[i], takes_both, &i);
		hc_child_read(&c[i], &x, 1, 20000);
	}
	for (unsigned i = 0; i < CLIENTS; i++)
		hc_child_tell(&c[i], &x, 1);
	while ((now = __atomic_load_n(&rounds[0], __ATOMIC_RELAXED)) < goal()) {
		if (now != last)
			moved = hc_now_ms();
		last = now;
		if (hc_now_ms() - moved > hc_patience(5000))
			hc_fail("nothing moves after %llu rounds", (unsigned long long)now);
		hc_ledger_read(books, &l);
		samples++;
		whole += l.whole;
		poll(NULL, 0, 2);
	}
	for (unsigned i = 0; i < CLIENTS; i++)
		ck_assert_int_eq(hc_child_wait(&c[i], 20000), 0);
	printf("%llu rounds, %u samples, %u of them whole\n", (unsigned long long)goal(), samples,
	       whole);
	fflush(stdout);
	ck_assert_uint_gt(whole, 10);
	ends();
}
END_TEST

/* ---- a grant that nobody collects ---- */

/* Asks for both by raw frames, is granted them, and does nothing more. */
static void is_granted_and_sleeps(int fd)
{
	static uint8_t buf[HC_PACKET_MAX], room[128];
	struct hc_m_channel_want want = {.epoch = 1, .rank = 1};
	struct hc_m_joined joined;
	struct hc_frame f;

	ck_assert(hc_raw_ask(fd, &hc_desc_join_local, 2,
			     &(struct hc_m_join_local){.shared = 1, .timeout_ms = 5000}, buf, &f));
	ck_assert_uint_eq(f.head.type, HC_MSG_joined);
	ck_assert(!hc_decode(&hc_desc_joined, HC_PROTO_MIN, f.body, f.body_len, &joined));
	want.id = joined.id;
	for (uint32_t peer = 0; peer < 3; peer += 2)
		ck_assert(!hc_arr_put(&want.pieces, room, sizeof(room), &hc_desc_want_piece,
				      HC_PROTO_MIN,
				      &(struct hc_m_want_piece){.peer = peer,
								.mbps = 80,
								.path_type = HCOMM_LINK_HCCS,
								.flags = 1}));
	ck_assert(hc_raw_ask(fd, &hc_desc_channel_want, 3, &want, buf, &f));
	ck_assert_uint_eq(f.head.type, HC_MSG_channel_want_r);
}

START_TEST(what_nobody_collects_goes_back)
{
	struct hcomm_channel_args a[2];
	struct hcomm_session *s;
	struct hc_ledger l;
	hcomm_channel ch[2];
	uint64_t began;
	hcomm_domain d;
	int fd;

	starts();
	d = joins(&s, NULL);
	fd = hc_raw_session(node.socket);
	began = hc_now_ms();
	is_granted_and_sleeps(fd);
	wants(a, 0, 0);
	ck_assert_int_eq(hcomm_channel_acquire_gang(d, a, 2, 5000, ch), HCOMM_E_AGAIN);
	wants(a, 0, 1);
	if (hcomm_channel_acquire_gang(d, a, 2, 30000, ch))
		hc_fail("the other: %s", hcomm_last_error());
	printf("it went back after %llu ms\n", (unsigned long long)(hc_now_ms() - began));
	fflush(stdout);
	ck_assert_uint_ge(hc_now_ms() - began, TTL_MS - 5);
	ck_assert_uint_le(hc_now_ms() - began, hc_patience(3 * TTL_MS));
	hc_raw_want_alive(fd); /* it lost the channels, and nothing else */
	hc_ledger_read(books, &l);
	ck_assert_uint_eq(l.channels, 2);
	ck_assert_int_eq(hcomm_channel_release(ch[0]), 0);
	ck_assert_int_eq(hcomm_channel_release(ch[1]), 0);
	hc_ledger_await_empty(books, 5000);
	close(fd);
	hcomm_close(s);
	ends();
}
END_TEST

/* ---- a domain that ends while it waits ---- */

static int waits_in_vain(void *arg, int in, int out)
{
	struct hcomm_channel_args a[2];
	struct hcomm_session *s;
	hcomm_channel ch[2];
	hcomm_domain d = joins(&s, "waits");
	char x = 1;

	(void)arg;
	(void)in;
	wants(a, 1, 1);
	hc_tell(out, &x, 1);
	if (hcomm_channel_acquire_gang(d, a, 2, 60000, ch) != HCOMM_E_GONE)
		hc_fail("the waiting request ended with: %s", hcomm_last_error());
	hcomm_close(s);
	return 0;
}

static bool one_waits(void *ctx)
{
	struct hc_ledger l;

	(void)ctx;
	hc_ledger_read(books, &l);
	return l.waits == 1 && l.channels == 2;
}

static bool none_waits(void *ctx)
{
	struct hc_ledger l;

	(void)ctx;
	hc_ledger_read(books, &l);
	return !l.waits && !l.tickets && l.channels == 2 && !l.link[0].waiting &&
	       !l.link[1].waiting;
}

START_TEST(a_waiting_request_ends_with_its_domain)
{
	struct hcomm_channel_args a[2];
	struct hcomm_session *s;
	struct hc_child c;
	hcomm_channel ch[2];
	hcomm_domain d;
	char x;

	starts();
	d = joins(&s, NULL);
	wants(a, 0, 1);
	if (hcomm_channel_acquire_gang(d, a, 2, 5000, ch))
		hc_fail("the holder: %s", hcomm_last_error());
	hc_spawn(&c, waits_in_vain, NULL);
	hc_child_read(&c, &x, 1, 20000);
	hc_await("it to wait", one_waits, NULL, 5000);
	ck_assert_int_eq(hcomm_destroy_named(s, 0, "waits", 5000), 0);
	hc_await("its request to be gone", none_waits, NULL, 1000);
	ck_assert_int_eq(hc_child_wait(&c, 10000), 0);
	ck_assert_int_eq(hcomm_channel_release(ch[0]), 0);
	ck_assert_int_eq(hcomm_channel_release(ch[1]), 0);
	hc_ledger_await_empty(books, 5000);
	hcomm_close(s);
	ends();
}
END_TEST

static void add(TCase *t)
{
	tcase_add_test(t, both_or_none);
	tcase_add_test(t, what_nobody_collects_goes_back);
	tcase_add_test(t, a_waiting_request_ends_with_its_domain);
}

int main(void)
{
	return hc_suite_run("case_070_half_a_grant", add, hc_long() ? 300 : 60);
}
