/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The share of a link that channels hold, with a running daemon: free at once when a holder is
 * killed, kept over a kill of the daemon, given back when nobody collects it.
 *
 * The shared memory of the node is made a link of 1,000 MB/s and 8 virtual channels, of which 800
 * and 8 can be granted. At every look the link's use is what the channels on it have in sum, and
 * within the limits.
 */
#include <errno.h>
#include <signal.h>

#include "apitest.h"
#include "hcomm/views.h"
#include "raw.h"

enum { LIMIT_MBPS = 800, VCS = 8 };

static const char link_section[] = "[link any any]\nbandwidth_mbps = 1000\nvirtual_channels = 8\n";

static struct hc_node node;
static uint8_t buf[HC_PACKET_MAX];

/* ---- looking ---- */

struct use {
	uint32_t ab, ba, vcs;
	uint32_t sum_ab, sum_ba, channels;
	uint64_t ids; /* of all channels, mixed */
};

static int one_link(const void *row, void *context)
{
	const struct hcomm_view_link *r = row;
	struct use *u = context;

	if (strcmp(r->type, "shm"))
		return 0;
	ck_assert_uint_eq(r->limit_mbps, LIMIT_MBPS);
	ck_assert_uint_eq(r->vcs, VCS);
	ck_assert_uint_le(r->used_ab_mbps, LIMIT_MBPS);
	ck_assert_uint_le(r->used_ba_mbps, LIMIT_MBPS);
	ck_assert_uint_le(r->vcs_used, VCS);
	u->ab = r->used_ab_mbps;
	u->ba = r->used_ba_mbps;
	u->vcs = r->vcs_used;
	return 0;
}

static int one_channel(const void *row, void *context)
{
	const struct hcomm_view_channel *r = row;
	struct use *u = context;

	u->sum_ab += r->rank < r->peer ? r->mbps : r->back_mbps;
	u->sum_ba += r->rank < r->peer ? r->back_mbps : r->mbps;
	u->channels++;
	u->ids += r->id * 31u + r->vc;
	return 0;
}

/* Two pages are two moments: a use that did not change between two looks is that of the sum. */
static struct use look(struct hcomm_session *s)
{
	struct use a = {0}, b = {0};

	works(hcomm_query(s, HCOMM_VIEW_LINK, NULL, one_link, &a));
	works(hcomm_query(s, HCOMM_VIEW_CHANNEL, NULL, one_channel, &a));
	works(hcomm_query(s, HCOMM_VIEW_LINK, NULL, one_link, &b));
	if (a.ab == b.ab && a.ba == b.ba && a.vcs == b.vcs) {
		ck_assert_uint_eq(a.ab, a.sum_ab);
		ck_assert_uint_eq(a.ba, a.sum_ba);
		ck_assert_uint_eq(a.vcs, a.channels);
	}
	return a;
}

static int one_status(const void *row, void *context)
{
	*(struct hcomm_view_status *)context = *(const struct hcomm_view_status *)row;
	return 0;
}

static struct hcomm_view_status status_of(struct hcomm_session *s)
{
	struct hcomm_view_status row;

	works(hcomm_query(s, HCOMM_VIEW_STATUS, NULL, one_status, &row));
	return row;
}

/* ---- those who hold and wait ---- */

/* A domain of both devices in this process, ranks 0 and 1. */
static hcomm_domain both(struct hcomm_session *s)
{
	struct hcomm_config config = HCOMM_INIT(struct hcomm_config);
	const uint32_t devices[2] = {0, 1};
	hcomm_domain d;

	config.shared = 1;
	works(hcomm_join_all_local(s, devices, 2, &config, 20000, &d));
	return d;
}

static struct hcomm_channel_args share(uint32_t mbps)
{
	struct hcomm_channel_args a = HCOMM_INIT(struct hcomm_channel_args);

	a.peer = 1;
	a.rank = 0;
	a.flags = HCOMM_CHANNEL_FROM;
	a.bandwidth_mbps = mbps;
	return a;
}

/* Five references and three channels, both ends of each, until it is killed. */
static int holder(void *arg, int in, int out)
{
	struct hcomm_session *s = open_session();
	const hcomm_domain d = both(s);
	struct hcomm_channel_args a = share(200), far = share(0);
	struct hcomm_op op[5];
	hcomm_channel ch;
	unsigned i;
	char x;

	(void)arg;
	for (i = 0; i < 5; i++)
		works(hcomm_op_begin_rank(d, i % 2, HCOMM_OP_ALL_REDUCE, 1, 0, &op[i]));
	far.peer = 0;
	far.rank = 1;
	for (i = 0; i < 3; i++) {
		works(hcomm_channel_acquire(d, &a, 5000, &ch));
		works(hcomm_channel_acquire(d, &far, 5000, &ch));
	}
	hc_tell(out, "x", 1);
	hc_hear(in, &x, 1, 120000);
	return 0;
}

/* Waits for more than there is; says when it got it. */
static int waiter(void *arg, int in, int out)
{
	struct hcomm_session *s = open_session();
	const hcomm_domain d = both(s);
	struct hcomm_channel_args a = share(600);
	uint64_t got;
	hcomm_channel ch;
	char x;

	(void)arg;
	a.wait = 1;
	refused(hcomm_channel_acquire(d,
				      &(struct hcomm_channel_args){.size = sizeof(a),
								   .peer = 1,
								   .flags = HCOMM_CHANNEL_FROM,
								   .bandwidth_mbps = 600},
				      5000, &ch),
		HCOMM_E_AGAIN, "link shm has 600 of 800 MB/s");
	hc_tell(out, "x", 1);
	works(hcomm_channel_acquire(d, &a, 60000, &ch));
	got = hc_now_ns();
	hc_tell(out, &got, sizeof(got));
	hc_hear(in, &x, 1, 60000);
	works(hcomm_channel_release(ch));
	hcomm_close(s);
	return 0;
}

static int one_waiting(const void *row, void *context)
{
	const struct hcomm_view_waiting *r = row;

	*(unsigned *)context += !strcmp(r->kind, "wait");
	return 0;
}

static bool somebody_waits(void *s)
{
	unsigned n = 0;

	works(hcomm_query(s, HCOMM_VIEW_WAITING, NULL, one_waiting, &n));
	look(s);
	return n == 1;
}

static bool nothing_is_held(void *s)
{
	struct use u = look(s);

	return !u.channels && !u.vcs && !u.ab && !u.ba;
}

static void start(const char *options)
{
	hc_node_prepare(&node, 2, options, link_section);
	setenv("HCOMM_SOCKET", node.socket, 1);
	hc_node_run(&node);
}

START_TEST(a_killed_holder_serves_who_waits)
{
	struct hcomm_session *s;
	struct hc_child h, wait;
	uint64_t killed, got;
	struct use u;
	char x;

	start(NULL);
	s = open_session();
	hc_spawn(&h, holder, NULL);
	hc_child_read(&h, &x, 1, 20000);
	u = look(s);
	ck_assert_uint_eq(u.channels, 3);
	ck_assert_uint_eq(u.ab, 600);
	hc_spawn(&wait, waiter, NULL);
	hc_child_read(&wait, &x, 1, 20000);
	hc_await("a call that waits", somebody_waits, s, 20000);
	killed = hc_now_ns();
	kill(h.pid, SIGKILL);
	look(s);
	hc_child_read(&wait, &got, sizeof(got), 20000);
	/* 10 ms on an idle machine; here others work too */
	ck_assert_msg(got - killed < hc_patience(100) * 1000000ull, "served after %llu us",
		      (unsigned long long)(got - killed) / 1000);
	u = look(s);
	ck_assert_uint_eq(u.channels, 1);
	ck_assert_uint_eq(u.ab, 600);
	hc_child_kill(&h);
	hc_child_tell(&wait, "x", 1);
	ck_assert_int_eq(hc_child_wait(&wait, 20000), 0);
	hc_await("all of the link is free", nothing_is_held, s, 20000);
	hcomm_close(s);
	hc_node_end(&node);
}
END_TEST

START_TEST(grants_outlive_the_daemon)
{
	struct hcomm_session *s;
	struct hc_child h;
	struct use before, after;
	char x;

	start(NULL);
	hc_spawn(&h, holder, NULL);
	hc_child_read(&h, &x, 1, 20000);
	s = open_session();
	before = look(s);
	ck_assert_uint_eq(before.channels, 3);
	hcomm_close(s);
	hc_node_kill(&node);
	hc_node_run(&node);
	s = open_session();
	after = look(s);
	ck_assert_uint_eq(after.channels, 3);
	ck_assert_uint_eq(after.ab, 600);
	ck_assert_uint_eq(after.ids, before.ids); /* the same channels, on the same numbers */
	/* and who dies while it is away holds nothing after */
	hcomm_close(s);
	hc_node_kill(&node);
	hc_child_kill(&h);
	hc_node_run(&node);
	s = open_session();
	hc_await("all of the link is free", nothing_is_held, s, 20000);
	hcomm_close(s);
	hc_node_end(&node);
}
END_TEST

/* A client that speaks the protocol, takes a grant, and never uses it. */
static uint64_t ask_and_forget(int fd)
{
	struct hc_m_channel_want m = {.epoch = 1};
	struct hc_arr devices = {0};
	struct hc_m_channel_want_r r;
	struct hc_m_channel_grant g;
	struct hc_m_joined joined;
	uint8_t room[64], place[64];
	struct hc_frame f;
	uint32_t i;

	for (i = 0; i < 2; i++)
		ck_assert(!hc_arr_put(&devices, room, sizeof(room), &hc_desc_device, HC_PROTO_MAX,
				      &(struct hc_m_device){.index = i}));
	ck_assert(hc_raw_ask(fd, &hc_desc_join_local, 2,
			     &(struct hc_m_join_local){.timeout_ms = 5000, .devices = devices}, buf,
			     &f));
	ck_assert(!hc_decode(&hc_desc_joined, 1, f.body, f.body_len, &joined));
	m.id = joined.id;
	ck_assert(!hc_arr_put(&m.pieces, place, sizeof(place), &hc_desc_want_piece, HC_PROTO_MAX,
			      &(struct hc_m_want_piece){.peer = 1, .mbps = 800}));
	ck_assert(hc_raw_ask(fd, &hc_desc_channel_want, 3, &m, buf, &f));
	ck_assert_uint_eq(f.head.type, HC_MSG_channel_want_r);
	ck_assert(!hc_decode(&hc_desc_channel_want_r, 1, f.body, f.body_len, &r));
	ck_assert(hc_arr_next(&r.grants, &hc_desc_channel_grant, HC_PROTO_MAX, &g));
	return g.channel;
}

START_TEST(what_nobody_collects_goes_back)
{
	struct hcomm_session *s;
	struct hc_frame f;
	uint64_t asked, channel;
	int fd;

	start("grant_ttl_s = 1");
	s = open_session();
	fd = hc_raw_session(node.socket);
	asked = hc_now_ms();
	channel = ask_and_forget(fd);
	ck_assert_uint_eq(look(s).ab, 800);
	hc_await("the grant goes back", nothing_is_held, s, 20000);
	ck_assert_uint_ge(hc_now_ms() - asked, 1000);
	ck_assert_uint_eq(status_of(s).lapsed, 1);
	ck_assert_uint_eq(status_of(s).channels, 0);
	ck_assert(hc_raw_ask(fd, &hc_desc_channel_open, 4,
			     &(struct hc_m_channel_open){.channel = channel}, buf, &f));
	ck_assert_int_eq(-f.head.status, HC_E_GONE);
	close(fd);
	hcomm_close(s);
	hc_node_end(&node);
}
END_TEST

TESTS("channel_share", a_killed_holder_serves_who_waits, grants_outlive_the_daemon,
      what_nobody_collects_goes_back)
