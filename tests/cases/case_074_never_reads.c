/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Case 74: a client that never reads.
 *
 * One stopped subscriber filled its buffer, the daemon's write blocked, and everybody stood still
 * while all looked healthy. Here the subscriber loses events, which are counted for it and told
 * to it with the first that it reads again; the daemon's memory has a bound, and the others do
 * not feel it, neither in what they ask nor in the channels that they take, and other nodes go on
 * hearing the daemon's beats. One that is granted channels and does not read that it was keeps none
 * of them for longer than grant_ttl_s, which is 1 here, a fifth of the default; and those who wait
 * behind it get their turn in between.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <hcomm/views.h>

#include "eye.h"
#include "ledger.h"
#include "pairs.h"
#include "ranks.h"
#include "raw.h"
#include "suite.h"

enum { PINGS = 400, QUEUE_KIB = 256 };

static struct hc_node node;

static struct hcomm_session *open_session(void)
{
	struct hcomm_session *s;

	ck_assert_int_eq(hcomm_open(NULL, &s), 0);
	return s;
}

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* The 99th percentile of pings in ns. */
static uint64_t p99_of_pings(struct hcomm_session *s)
{
	static uint64_t t[PINGS];

	for (int i = 0; i < PINGS; i++) {
		uint64_t began = hc_now_ns();

		ck_assert_int_eq(hcomm_ping(s, 10000), 0);
		t[i] = hc_now_ns() - began;
	}
	qsort(t, PINGS, sizeof(t[0]), by_size);
	return t[PINGS * 99 / 100];
}

static struct hcomm_channel_args one_channel(void)
{
	struct hcomm_channel_args a = HCOMM_INIT(struct hcomm_channel_args);

	a.peer = 1;
	a.path_type = HCOMM_LINK_HCCS;
	a.flags = HCOMM_CHANNEL_FROM | HCOMM_CHANNEL_GRANT_ONLY;
	return a;
}

/* The 99th percentile of taking a channel and giving it back, each three round trips of which two
 * wait for the storage. */
static uint64_t p99_of_channels_once(hcomm_domain d)
{
	const struct hcomm_channel_args a = one_channel();
	static uint64_t t[PINGS];
	hcomm_channel ch;

	for (int i = 0; i < PINGS; i++) {
		uint64_t began = hc_now_ns();

		if (hcomm_channel_acquire(d, &a, 10000, &ch) || hcomm_channel_release(ch))
			hc_fail("channel %d: %s", i, hcomm_last_error());
		t[i] = hc_now_ns() - began;
	}
	qsort(t, PINGS, sizeof(t[0]), by_size);
	return t[PINGS * 99 / 100];
}

/* The least of three: other programs share the machine. */
static uint64_t p99_of_channels(hcomm_domain d)
{
	uint64_t least = UINT64_MAX, t;

	for (unsigned i = 0; i < 3; i++) {
		t = p99_of_channels_once(d);
		least = t < least ? t : least;
	}
	return least;
}

static hcomm_domain join_shared(struct hcomm_session *s)
{
	const uint32_t devices[2] = {0, 1};
	struct hcomm_config config = HCOMM_INIT(struct hcomm_config);
	hcomm_domain d;

	config.shared = 1;
	if (hcomm_join_all_local(s, devices, 2, &config, 10000, &d))
		hc_fail("%s", hcomm_last_error());
	return d;
}

static void start_with_link(unsigned channels)
{
	char sections[128];

	snprintf(sections, sizeof(sections), "[link 0 1]\ntype = hccs\nvirtual_channels = %u\n",
		 channels);
	hc_node_prepare(&node, 4, "grant_ttl_s = 1\norphan_grace_s = 1", sections);
	setenv("HCOMM_SOCKET", node.socket, 1);
	hc_node_run(&node);
}

static void make_events(struct hcomm_session *s, unsigned cycles)
{
	static const uint32_t devices[2] = {2, 3};
	hcomm_domain d;

	for (unsigned i = 0; i < cycles; i++) {
		if (hcomm_join_all_local(s, devices, 2, NULL, 10000, &d) || hcomm_destroy(d, 10000))
			hc_fail("cycle %u: %s", i, hcomm_last_error());
	}
}

static uint64_t lost_of_daemon(void)
{
	struct hcomm_view_status s;

	hc_ask_status(&s);
	return s.events_lost;
}

struct losses {
	unsigned losers;
	uint64_t most;
};

static int add_losses(const void *row, void *arg)
{
	const struct hcomm_view_client *c = row;
	struct losses *l = arg;

	l->losers += c->events_lost > 0;
	if (c->events_lost > l->most)
		l->most = c->events_lost;
	return 0;
}

/* What the list of clients says: one of them has lost all that the daemon counts. */
static void want_one_loser(struct hcomm_session *s)
{
	uint64_t before = lost_of_daemon();
	struct losses l = {0};

	ck_assert_int_eq(hcomm_query(s, HCOMM_VIEW_CLIENT, NULL, add_losses, &l), 0);
	ck_assert_uint_eq(l.losers, 1);
	ck_assert_uint_eq(l.most, before);
}

/* What the events of a packet say was lost before them. */
static uint64_t lost_in(const uint8_t *at, size_t left)
{
	struct hc_m_event m;
	struct hc_frame f;
	uint64_t lost = 0;

	while (left && !hc_frame_next(&at, &left, &f))
		if (f.head.type == HC_MSG_event &&
		    !hc_decode(&hc_desc_event, HC_PROTO_MIN, f.body, f.body_len, &m))
			lost += m.lost;
	return lost;
}

/* Reads all that waits, and what is made to come then; what was lost before it. */
static uint64_t read_on(int fd, struct hcomm_session *maker)
{
	static uint8_t buf[HC_PACKET_MAX];
	uint64_t lost = 0;

	for (int i = 0; i < 100000 && !lost; i++) {
		ssize_t n = recv(fd, buf, sizeof(buf), MSG_DONTWAIT);

		if (!n)
			hc_fail("the subscriber's session was ended");
		if (n < 0)
			make_events(maker, 1); /* so that there is one after the gap */
		else
			lost += lost_in(buf, (size_t)n);
	}
	return lost;
}

START_TEST(it_loses_events_and_nobody_else_anything)
{
	static uint8_t buf[HC_PACKET_MAX];
	const struct hc_m_subscribe all = {.id = 0, .on = 1};
	struct hcomm_session *maker, *other;
	uint64_t control, during, control_channels;
	unsigned long rss;
	struct hc_frame f;
	hcomm_domain d;
	int deaf;

	start_with_link(4);
	maker = open_session();
	other = open_session();
	d = join_shared(other);
	make_events(maker, 200);
	control = p99_of_pings(other);
	control_channels = p99_of_channels(d);

	deaf = hc_raw_session(node.socket);
	ck_assert(hc_raw_ask(deaf, &hc_desc_subscribe, 2, &all, buf, &f));
	ck_assert_uint_eq(f.head.type, HC_MSG_done);
	rss = hc_proc_kib(node.pid, "VmRSS");
	for (unsigned i = 0; i < 40 && !lost_of_daemon(); i++)
		make_events(maker, 250);
	ck_assert_uint_gt(lost_of_daemon(), 0);
	want_one_loser(other);
	make_events(maker, 250);
	want_one_loser(other); /* what was lost since, too */
	/* its queue, and what storing more events takes */
	ck_assert_uint_le(hc_proc_kib(node.pid, "VmRSS"), rss + hc_growth_kib(QUEUE_KIB + 4096));

	during = p99_of_pings(other);
	/* twice the control, and room for a time slice of this machine */
	ck_assert_uint_le(during, 2 * control + 4000000);
	during = p99_of_channels(d);
	/* as above; four changes of process that wait for a slice each */
	ck_assert_uint_le(during, 2 * control_channels + 20000000);
	ck_assert_uint_gt(read_on(deaf, maker), 0);
	close(deaf);
	hcomm_close(maker);
	hcomm_close(other);
	hc_node_end(&node);
}
END_TEST

/* One that asks for much and takes no answer stops itself alone. */
START_TEST(a_flood_of_unread_answers_is_bounded)
{
	static uint8_t out[4096];
	const struct hc_m_query query = {.view = HC_VIEW_setting};
	struct hcomm_session *other;
	unsigned long rss;
	size_t n;
	int deaf, sent = 0;

	hc_node_start(&node, 2, NULL);
	other = open_session();
	deaf = hc_raw_session(node.socket);
	rss = hc_proc_kib(node.pid, "VmRSS");
	n = hc_raw_frame(out, sizeof(out), &hc_desc_query, 3, &query);
	while (sent < 100000 && send(deaf, out, n, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)n) {
		sent++;
		if (sent % 16 == 0)
			ck_assert_int_eq(hcomm_ping(other, 5000), 0);
	}
	ck_assert_int_lt(sent, 100000); /* it was stopped: its queue is full or it is closed */
	ck_assert_int_eq(hcomm_ping(other, 5000), 0);
	ck_assert_uint_le(hc_proc_kib(node.pid, "VmRSS"), rss + hc_growth_kib(4096));
	close(deaf);
	hcomm_close(other);
	hc_node_end(&node);
}
END_TEST

/* ---- the beats of its daemon ---- */

enum { PORT = 25700, STORM_MS = 4000 };

/* The path to this node, as the other one has it. */
static void look(const struct hc_node *other, struct hcomm_view_path *p)
{
	if (!hc_row_path(other, "127.0.0.1:", p))
		hc_fail("the other node has no path");
}

START_TEST(the_other_node_hears_its_beats)
{
	static uint8_t buf[HC_PACKET_MAX];
	static const uint32_t devices[2] = {0, 1};
	const struct hc_m_subscribe all = {.id = 0, .on = 1};
	struct hcomm_view_path before, after;
	static struct hc_node n[2];
	struct hcomm_session *s;
	struct hc_frame f;
	hcomm_domain d;
	uint64_t end;
	int deaf;

	for (unsigned i = 0; i < 2; i++) {
		/* a beat each second: no other load of the machine is taken for this one's */
		hc_pair_prepare(&n[i], i, 2, PORT, HC_KEY_A, "profile = wan\n");
		hc_node_run(&n[i]);
	}
	hc_await_path(&n[1], "127.0.0.1:", "normal", 20000);
	setenv("HCOMM_SOCKET", n[0].socket, 1);
	s = open_session();
	deaf = hc_raw_session(n[0].socket);
	ck_assert(hc_raw_ask(deaf, &hc_desc_subscribe, 2, &all, buf, &f));
	look(&n[1], &before);
	end = hc_now_ms() + STORM_MS;
	while (hc_now_ms() < end || !lost_of_daemon()) {
		if (hc_now_ms() > end + hc_patience(20000))
			hc_fail("no event was lost");
		for (unsigned i = 0; i < 100; i++)
			if (hcomm_join_all_local(s, devices, 2, NULL, 10000, &d) ||
			    hcomm_destroy(d, 10000))
				hc_fail("%s", hcomm_last_error());
	}
	look(&n[1], &after);
	ck_assert_str_eq(after.state, "normal");
	ck_assert_uint_eq(after.changes, before.changes);
	ck_assert_uint_gt(after.received, before.received + 1);
	close(deaf);
	hcomm_close(s);
	hc_node_end(&n[1]);
	hc_node_end(&n[0]);
}
END_TEST

/* ---- one that is granted channels ---- */

enum { WANTED = 20 };

/* Asks for one channel twenty times over, and reads nothing from then on. */
static int deaf_and_greedy(void *arg, int in, int out)
{
	static uint8_t buf[HC_PACKET_MAX], room[64];
	struct hc_m_channel_want want = {.epoch = 1, .wait = 1};
	int fd = hc_raw_session(node.socket);
	struct hc_m_joined joined;
	struct hc_frame f;
	char x = 1;

	(void)arg;
	hc_want(!hc_arr_put(
		&want.pieces, room, sizeof(room), &hc_desc_want_piece, HC_PROTO_MIN,
		&(struct hc_m_want_piece){.peer = 1, .path_type = HCOMM_LINK_HCCS, .flags = 1}));
	hc_want(hc_raw_ask(fd, &hc_desc_join_local, 2,
			   &(struct hc_m_join_local){.shared = 1, .timeout_ms = 5000}, buf, &f));
	hc_want(f.head.type == HC_MSG_joined &&
		!hc_decode(&hc_desc_joined, HC_PROTO_MIN, f.body, f.body_len, &joined));
	want.id = joined.id;
	for (uint32_t i = 0; i < WANTED; i++) {
		size_t n = hc_raw_frame(buf, sizeof(buf), &hc_desc_channel_want, 10 + i, &want);

		hc_want(hc_raw_send(fd, buf, n));
	}
	hc_tell(out, &x, 1);
	hc_hear(in, &x, 1, 60000);
	return 0;
}

static bool it_has_one(void *ctx)
{
	struct hc_ledger l;

	hc_ledger_read(*(const int *)ctx, &l);
	return l.channels == 1 && l.waits == WANTED - 1;
}

START_TEST(what_it_is_granted_goes_to_others)
{
	struct hcomm_channel_args a = one_channel();
	struct hcomm_session *other;
	struct hc_child deaf;
	struct hc_ledger l;
	hcomm_channel ch;
	hcomm_domain d;
	uint64_t began;
	int books;
	char x;

	start_with_link(1);
	books = hc_ledger_open(&node);
	other = open_session();
	d = join_shared(other);
	hc_spawn(&deaf, deaf_and_greedy, NULL);
	hc_child_read(&deaf, &x, 1, 20000);
	hc_await("it to have one, and to wait for more", it_has_one, &books, 5000);
	a.wait = 1;
	for (unsigned i = 0; i < 2; i++) {
		began = hc_now_ms();
		if (hcomm_channel_acquire(d, &a, 20000, &ch))
			hc_fail("the other: %s", hcomm_last_error());
		/* at most two turns of the deaf one's, each for a second, then ours */
		ck_assert_uint_le(hc_now_ms() - began, hc_patience(3000));
		hc_ledger_read(books, &l);
		ck_assert_uint_eq(l.channels, 1);
		ck_assert_int_eq(hcomm_channel_release(ch), 0);
	}
	ck_assert_int_eq(hcomm_ping(other, 5000), 0);
	hc_child_kill(&deaf);
	hc_ledger_await_empty(books, 5000); /* and its requests are gone with it */
	if (hcomm_channel_acquire(d, &a, 100, &ch))
		hc_fail("the link is free: %s", hcomm_last_error());
	close(books);
	hcomm_close(other);
	hc_node_end(&node);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_test(t, it_loses_events_and_nobody_else_anything);
	tcase_add_test(t, a_flood_of_unread_answers_is_bounded);
	tcase_add_test(t, the_other_node_hears_its_beats);
	tcase_add_test(t, what_it_is_granted_goes_to_others);
}

int main(void)
{
	hc_ports_own("case_074_never_reads");
	return hc_suite_run("case_074_never_reads", add, 60);
}
