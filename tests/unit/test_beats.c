/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Datagrams: two ends in one process, on addresses of the loopback. What is good arrives with
 * both its ends; what is not is counted by reason and never answered; what the kernel returns is
 * told with the destination.
 */
#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "beats.h"
#include "gmac.h"
#include "suite.h"

#define SLOT   5u
#define KEY    (1u << 16 | SLOT) /* that B gave out to A */
#define KEY_A  (1u << 16 | 2u)   /* and A to B */
#define EVENTS 512u

struct end {
	struct hc_beats *beats;
	struct hc_endpoint at;
	unsigned clocks, n;
	struct event_got {
		enum hc_event_kind kind;
		struct hc_endpoint local, remote;
		uint32_t key, len, mtu;
		int error;
		uint8_t bytes[HC_BEAT_BYTES];
	} got[EVENTS];
	struct hc_action *answer; /* sent for each datagram that comes */
};

static struct event_base *base;
static struct end a, b;

static void on_clock(void *arg)
{
	struct end *e = arg;

	e->clocks++;
}

static void on_event(void *arg, const struct hc_event *ev)
{
	struct end *e = arg;
	struct event_got *g = &e->got[e->n++ % EVENTS];

	memset(g, 0, sizeof(*g));
	g->kind = ev->kind;
	if (ev->kind == HC_EV_BOUNCED) {
		g->remote = ev->u.bounced.remote;
		g->error = ev->u.bounced.error;
		g->mtu = ev->u.bounced.mtu;
		return;
	}
	ck_assert_int_eq(ev->kind, HC_EV_DATAGRAM);
	g->local = ev->u.datagram.local;
	g->remote = ev->u.datagram.remote;
	g->key = ev->u.datagram.key;
	g->len = ev->u.datagram.len;
	memcpy(g->bytes, ev->u.datagram.bytes, g->len < HC_BEAT_BYTES ? g->len : HC_BEAT_BYTES);
	if (e->answer)
		hc_beats_send(e->beats, e->answer);
}

/* ---- both ends ---- */

static void set_addr(struct hc_addr *addr, const char *text)
{
	memset(addr, 0, sizeof(*addr));
	addr->family = strchr(text, ':') ? 6 : 4;
	ck_assert_int_eq(inet_pton(addr->family == 6 ? AF_INET6 : AF_INET, text, addr->bytes), 1);
}

static int bind_udp(const char *text, struct hc_endpoint *at)
{
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} name = {.v6 = {.sin6_family = AF_INET6}};
	socklen_t len = sizeof(name);
	int fd, on = 1;

	set_addr(&at->addr, text);
	if (at->addr.family == 4) {
		name.v4 = (struct sockaddr_in){.sin_family = AF_INET};
		memcpy(&name.v4.sin_addr, at->addr.bytes, 4);
	} else {
		memcpy(&name.v6.sin6_addr, at->addr.bytes, 16);
	}
	fd = socket(name.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	ck_assert_int_ge(fd, 0);
	if (at->addr.family == 6)
		ck_assert(!setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on)));
	ck_assert_msg(!bind(fd, &name.any, at->addr.family == 4 ? sizeof(name.v4) : len), "%s: %s",
		      text, strerror(errno));
	ck_assert(!getsockname(fd, &name.any, &len));
	at->port = ntohs(at->addr.family == 4 ? name.v4.sin_port : name.v6.sin6_port);
	return fd;
}

static void start(struct end *e, const char *text)
{
	struct hc_beats_args args = {base, on_clock, on_event, e};
	int fd;

	ck_assert_int_eq(hc_beats_new(&args, &e->beats), 0);
	fd = bind_udp(text, &e->at);
	ck_assert_int_eq(hc_beats_add(e->beats, fd, &e->at), 0);
}

static void exchange_keys(uint32_t key, uint32_t key_a, uint8_t seed)
{
	uint8_t there[HC_KEY_BYTES], back[HC_KEY_BYTES];

	memset(there, seed, sizeof(there));
	memset(back, seed + 1, sizeof(back));
	ck_assert_int_eq(hc_beats_key(a.beats, 0, key_a, back, there), 0);
	ck_assert_int_eq(hc_beats_key(b.beats, 0, key, there, back), 0);
}

static void begin(const char *at_a, const char *at_b)
{
	memset(&a, 0, sizeof(a));
	memset(&b, 0, sizeof(b));
	base = event_base_new();
	ck_assert_ptr_nonnull(base);
	start(&a, at_a);
	start(&b, at_b);
	exchange_keys(KEY, KEY_A, 1);
}

static void end(void)
{
	hc_beats_free(a.beats);
	hc_beats_free(b.beats);
	event_base_free(base);
}

/* ---- frames ---- */

static void put32(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 24);
	p[1] = (uint8_t)(v >> 16);
	p[2] = (uint8_t)(v >> 8);
	p[3] = (uint8_t)v;
}

static uint8_t frame[HC_DATAGRAM_MAX];

static struct hc_action action(uint32_t key, uint32_t seq, uint32_t len,
			       const struct hc_endpoint *to)
{
	struct hc_action act = {.kind = HC_ACT_DATAGRAM, .bytes = frame, .len = len};

	frame[0] = HC_DATAGRAM_MAGIC >> 8;
	frame[1] = HC_DATAGRAM_MAGIC & 0xff;
	frame[2] = HC_DATAGRAM_VERSION;
	frame[HC_DATAGRAM_AT_TYPE] = 240;
	put32(frame + HC_DATAGRAM_AT_KEY, key);
	put32(frame + HC_DATAGRAM_AT_PATH, 77);
	put32(frame + HC_DATAGRAM_AT_PATH + 8, seq);
	act.u.datagram.to = *to;
	return act;
}

static void send_a(uint32_t key, uint32_t seq)
{
	struct hc_action act = action(key, seq, HC_BEAT_BYTES, &b.at);

	hc_beats_send(a.beats, &act);
	hc_beats_flush(a.beats);
}

struct wish {
	struct end *end;
	unsigned n;
};

static bool has(void *arg)
{
	struct wish *w = arg;

	event_base_loop(base, EVLOOP_NONBLOCK);
	return w->end->n >= w->n;
}

static void await_events(struct end *e, unsigned n)
{
	struct wish w = {e, n};

	hc_await("events", has, &w, 5000);
	ck_assert_uint_eq(e->n, n);
}

/* A counter of B reaches `n`; all that B was sent is looked at. */
static void await_count(size_t offset, uint64_t n)
{
	struct hc_beats_counts c;
	uint64_t limit = hc_now_ms() + hc_patience(5000), have;

	do {
		event_base_loop(base, EVLOOP_NONBLOCK);
		hc_beats_counts(b.beats, &c);
		memcpy(&have, (const char *)&c + offset, sizeof(have));
	} while (have < n && hc_now_ms() < limit);
	ck_assert_uint_eq(have, n);
	ck_assert_uint_eq(b.n, 0);
}
#define expect_counted(field, n) await_count(offsetof(struct hc_beats_counts, field), n)

START_TEST(a_good_frame_arrives_with_its_addresses)
{
	begin("127.0.0.1", "127.0.0.2");
	send_a(KEY, 1);
	await_events(&b, 1);
	ck_assert_uint_eq(b.got[0].key, KEY);
	ck_assert_uint_eq(b.got[0].len, HC_BEAT_BYTES);
	ck_assert_mem_eq(b.got[0].bytes, frame, HC_BEAT_BYTES);
	ck_assert(hc_endpoint_eq(&b.got[0].local, &b.at));
	ck_assert(hc_endpoint_eq(&b.got[0].remote, &a.at));
	ck_assert_uint_eq(a.n, 0);
	end();
}
END_TEST

START_TEST(on_all_addresses_the_source_is_chosen_and_the_local_one_is_known)
{
	struct hc_action act;

	begin("0.0.0.0", "0.0.0.0");
	set_addr(&b.at.addr, "127.0.0.7");
	act = action(KEY, 1, HC_BEAT_BYTES, &b.at);
	set_addr(&act.u.datagram.from, "127.0.0.6");
	hc_beats_send(a.beats, &act);
	hc_beats_flush(a.beats);
	await_events(&b, 1);
	ck_assert(hc_endpoint_eq(&b.got[0].local, &b.at));
	ck_assert(hc_addr_eq(&b.got[0].remote.addr, &act.u.datagram.from));
	ck_assert_uint_eq(b.got[0].remote.port, a.at.port);
	end();
}
END_TEST

START_TEST(the_same_with_ipv6)
{
	struct hc_action act;

	begin("::", "::");
	set_addr(&b.at.addr, "::1");
	act = action(KEY, 1, HC_BEAT_BYTES, &b.at);
	act.u.datagram.from = b.at.addr;
	hc_beats_send(a.beats, &act);
	hc_beats_flush(a.beats);
	await_events(&b, 1);
	ck_assert(hc_endpoint_eq(&b.got[0].local, &b.at));
	ck_assert(hc_addr_eq(&b.got[0].remote.addr, &b.at.addr));
	ck_assert_uint_eq(b.got[0].remote.port, a.at.port);
	end();
}
END_TEST

START_TEST(each_bad_kind_is_counted_and_not_answered)
{
	struct hc_action act;
	uint8_t raw[HC_BEAT_BYTES + HC_DATAGRAM_TAG] = {0};
	int fd;
	struct hc_endpoint from;
	struct sockaddr_in to = {.sin_family = AF_INET};

	begin("127.0.0.1", "127.0.0.2");
	fd = bind_udp("127.0.0.3", &from);
	to.sin_port = htons(b.at.port);
	memcpy(&to.sin_addr, b.at.addr.bytes, 4);
	ck_assert(!connect(fd, (struct sockaddr *)&to, sizeof(to)));

	ck_assert_int_eq(send(fd, raw, 39, 0), 39);
	expect_counted(shorts, 1);
	ck_assert_int_eq(send(fd, "", 0, 0), 0);
	expect_counted(shorts, 2);
	ck_assert_int_eq(send(fd, raw, sizeof(raw), 0), sizeof(raw));
	expect_counted(foreign, 1);
	act = action(KEY, 1, HC_BEAT_BYTES, &b.at);
	memcpy(raw, act.bytes, HC_BEAT_BYTES);
	raw[2] = HC_DATAGRAM_VERSION + 1;
	ck_assert_int_eq(send(fd, raw, sizeof(raw), 0), sizeof(raw));
	expect_counted(versions, 1);
	raw[2] = HC_DATAGRAM_VERSION;
	ck_assert_int_eq(send(fd, raw, sizeof(raw), 0), sizeof(raw));
	expect_counted(tags, 1);
	put32(raw + HC_DATAGRAM_AT_KEY, 0xffff0000u | SLOT);
	ck_assert_int_eq(send(fd, raw, sizeof(raw), 0), sizeof(raw));
	expect_counted(keys, 1);
	put32(raw + HC_DATAGRAM_AT_KEY, 0);
	ck_assert_int_eq(send(fd, raw, sizeof(raw), 0), sizeof(raw));
	expect_counted(keys, 2);
	put32(raw + HC_DATAGRAM_AT_KEY, 0xffffffffu);
	ck_assert_int_eq(send(fd, raw, sizeof(raw), 0), sizeof(raw));
	expect_counted(keys, 3);
	ck_assert_int_eq(recv(fd, raw, sizeof(raw), MSG_DONTWAIT), -1);
	ck_assert_int_eq(errno, EAGAIN);
	close(fd);
	end();
}
END_TEST

START_TEST(a_frame_is_not_taken_back_by_its_sender)
{
	struct hc_action act;

	begin("127.0.0.1", "127.0.0.2");
	/* the key that A itself gave out, sealed with what A sends with */
	act = action(KEY_A, 1, HC_BEAT_BYTES, &a.at);
	hc_beats_send(a.beats, &act);
	hc_beats_flush(a.beats);
	send_a(KEY, 2);
	await_events(&b, 1);
	hc_beats_drain(a.beats);
	ck_assert_uint_eq(a.n, 0);
	end();
}
END_TEST

START_TEST(an_old_key_is_taken_until_it_is_dropped)
{
	const uint32_t fresh = 2u << 16 | SLOT;
	struct hc_beats_counts c;

	begin("127.0.0.1", "127.0.0.2");
	send_a(KEY, 1);
	await_events(&b, 1);
	/* B has the new one, A still sends under the old */
	ck_assert_int_eq(hc_beats_key(b.beats, 0, fresh, (uint8_t[32]){9}, (uint8_t[32]){8}), 0);
	send_a(KEY, 2);
	await_events(&b, 2);
	ck_assert_int_eq(hc_beats_key(a.beats, 0, KEY_A, (uint8_t[32]){8}, (uint8_t[32]){9}), 0);
	send_a(fresh, 1);
	await_events(&b, 3);
	ck_assert_uint_eq(b.got[2].key, fresh);
	hc_beats_key_drop(b.beats, 0, KEY, false);
	b.n = 0;
	send_a(KEY, 2);
	expect_counted(keys, 1);
	/* a third goes in: the oldest is out, the one before stays */
	ck_assert_int_eq(
		hc_beats_key(b.beats, 0, 3u << 16 | SLOT, (uint8_t[32]){7}, (uint8_t[32]){6}), 0);
	send_a(fresh, 2);
	await_events(&b, 1);
	/* without a key nothing is sent */
	hc_beats_key_drop(a.beats, 0, KEY_A, true);
	send_a(fresh, 3);
	hc_beats_counts(a.beats, &c);
	ck_assert_uint_eq(c.unsent, 1);
	end();
}
END_TEST

START_TEST(a_burst_is_gathered_and_all_of_it_comes)
{
	struct hc_beats_counts c;
	struct hc_action act;
	unsigned i;

	begin("127.0.0.1", "127.0.0.2");
	for (i = 0; i < 200; i++) {
		act = action(KEY, i + 1, HC_BEAT_BYTES, &b.at);
		hc_beats_send(a.beats, &act);
	}
	hc_beats_counts(a.beats, &c);
	ck_assert_uint_eq(c.sent, 0);
	hc_beats_flush(a.beats);
	hc_beats_counts(a.beats, &c);
	ck_assert_uint_eq(c.sent, 200);
	hc_beats_drain(b.beats); /* all that is queued, whatever the loop knows of it */
	ck_assert_uint_eq(b.n, 200);
	ck_assert_uint_le(b.clocks, 4);
	for (i = 0; i < 200; i++)
		ck_assert_uint_eq(b.got[i].bytes[HC_DATAGRAM_AT_PATH + 11], i + 1);
	/* an urgent one waits for nobody, and takes the others along */
	act = action(KEY, 201, HC_BEAT_BYTES, &b.at);
	hc_beats_send(a.beats, &act);
	act.u.datagram.urgent = true;
	hc_beats_send(a.beats, &act);
	hc_beats_counts(a.beats, &c);
	ck_assert_uint_eq(c.sent, 202);
	end();
}
END_TEST

START_TEST(answers_leave_while_a_batch_is_read)
{
	struct hc_action act;
	unsigned i;

	begin("127.0.0.1", "127.0.0.2");
	for (i = 0; i < 100; i++)
		send_a(KEY, i + 1);
	act = action(KEY_A, 1, HC_BEAT_BYTES, &a.at);
	b.answer = &act;
	hc_beats_drain(b.beats);
	ck_assert_uint_eq(b.n, 100);
	await_events(&a, 100);
	ck_assert(hc_endpoint_eq(&a.got[99].remote, &b.at));
	end();
}
END_TEST

START_TEST(a_closed_port_bounces_with_its_destination)
{
	struct hc_endpoint closed;
	struct hc_action act;

	begin("127.0.0.1", "127.0.0.2");
	close(bind_udp("127.0.0.9", &closed));
	act = action(KEY, 1, HC_BEAT_BYTES, &closed);
	hc_beats_send(a.beats, &act);
	hc_beats_flush(a.beats);
	await_events(&a, 1);
	ck_assert_int_eq(a.got[0].kind, HC_EV_BOUNCED);
	ck_assert_int_eq(a.got[0].error, ECONNREFUSED);
	ck_assert(hc_endpoint_eq(&a.got[0].remote, &closed));
	/* the error that the socket keeps is not taken for one of the next datagram */
	act = action(KEY, 2, HC_BEAT_BYTES, &closed);
	hc_beats_send(a.beats, &act);
	hc_beats_flush(a.beats);
	send_a(KEY, 3);
	await_events(&b, 1);
	await_events(&a, 2);
	ck_assert(hc_endpoint_eq(&a.got[1].remote, &closed));
	end();
}
END_TEST

/* The largest datagram of UDP fits into a packet of the loopback with IPv4, not with IPv6. */
START_TEST(what_is_too_big_bounces_with_the_size_that_passes)
{
	struct hc_action act;

	begin("127.0.0.1", "127.0.0.2");
	act = action(KEY, 1, HC_DATAGRAM_MAX - HC_DATAGRAM_TAG, &b.at);
	hc_beats_send(a.beats, &act);
	hc_beats_flush(a.beats);
	await_events(&b, 1);
	ck_assert_uint_eq(b.got[0].len, HC_DATAGRAM_MAX - HC_DATAGRAM_TAG);
	end();

	begin("::1", "::1");
	send_a(KEY, 1);
	act = action(KEY, 2, HC_DATAGRAM_MAX - HC_DATAGRAM_TAG, &b.at);
	hc_beats_send(a.beats, &act);
	send_a(KEY, 3);
	await_events(&b, 2);
	await_events(&a, 1);
	ck_assert_int_eq(a.got[0].kind, HC_EV_BOUNCED);
	ck_assert_int_eq(a.got[0].error, EMSGSIZE);
	ck_assert_uint_eq(a.got[0].mtu, 65536);
	ck_assert(hc_endpoint_eq(&a.got[0].remote, &b.at));
	end();
}
END_TEST

START_TEST(an_address_that_is_not_here_bounces)
{
	struct hc_action act;

	begin("0.0.0.0", "127.0.0.2");
	act = action(KEY, 1, HC_BEAT_BYTES, &b.at);
	set_addr(&act.u.datagram.from, "192.0.2.77");
	hc_beats_send(a.beats, &act);
	hc_beats_flush(a.beats);
	ck_assert_uint_eq(a.n, 0); /* never inside of the step that sent it */
	await_events(&a, 1);
	/* older kernels say that the source is wrong, later ones that nothing leads there */
	ck_assert(a.got[0].error == EADDRNOTAVAIL || a.got[0].error == ENETUNREACH);
	ck_assert(hc_endpoint_eq(&a.got[0].remote, &b.at));
	/* and no socket of that family at all */
	set_addr(&act.u.datagram.to.addr, "::1");
	hc_beats_send(a.beats, &act);
	await_events(&a, 2);
	ck_assert_int_eq(a.got[1].error, EADDRNOTAVAIL);
	end();
}
END_TEST

START_TEST(the_sockets_have_their_priority_and_do_not_fragment)
{
	struct hc_endpoint at;
	int fd, copy, value;
	socklen_t len = sizeof(value);

	begin("127.0.0.1", "127.0.0.2");
	fd = bind_udp("127.0.0.4", &at);
	copy = dup(fd);
	ck_assert_int_eq(hc_beats_add(a.beats, fd, &at), 0);
	ck_assert(!getsockopt(copy, IPPROTO_IP, IP_TOS, &value, &len));
	ck_assert_int_eq(value, 0xc0);
	ck_assert(!getsockopt(copy, SOL_SOCKET, SO_PRIORITY, &value, &len));
	ck_assert_int_eq(value, 6);
	ck_assert(!getsockopt(copy, IPPROTO_IP, IP_MTU_DISCOVER, &value, &len));
	ck_assert_int_eq(value, IP_PMTUDISC_PROBE);
	/* removed: it is closed, and its datagrams go by another of the family no more */
	hc_beats_remove(a.beats, &at);
	ck_assert_int_eq(fcntl(fd, F_GETFD), -1);
	close(copy);
	end();
}
END_TEST

static void add(TCase *t)
{
	tcase_add_test(t, a_good_frame_arrives_with_its_addresses);
	tcase_add_test(t, on_all_addresses_the_source_is_chosen_and_the_local_one_is_known);
	tcase_add_test(t, the_same_with_ipv6);
	tcase_add_test(t, each_bad_kind_is_counted_and_not_answered);
	tcase_add_test(t, a_frame_is_not_taken_back_by_its_sender);
	tcase_add_test(t, an_old_key_is_taken_until_it_is_dropped);
	tcase_add_test(t, a_burst_is_gathered_and_all_of_it_comes);
	tcase_add_test(t, answers_leave_while_a_batch_is_read);
	tcase_add_test(t, a_closed_port_bounces_with_its_destination);
	tcase_add_test(t, what_is_too_big_bounces_with_the_size_that_passes);
	tcase_add_test(t, an_address_that_is_not_here_bounces);
	tcase_add_test(t, the_sockets_have_their_priority_and_do_not_fragment);
}

int main(void)
{
	return hc_suite_run("beats", add, 20);
}
