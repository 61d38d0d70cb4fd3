/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two ends of control connections in one process, over 127.0.0.1: who gets through, who is turned
 * away and what both ends are told of it, what strangers and broken peers may cost.
 */
#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "log.h"
#include "pairs.h"
#include "peers.h"
#include "suite.h"

enum { PORT_LO = 21000, PORT_HI = 21999, EVENTS = 64 };

/* One end, with what its core would have been told. */
struct end {
	struct hc_peers *peers;
	struct hc_endpoint at;
	struct happened {
		enum hc_event_kind kind;
		uint64_t conn;
		struct hc_endpoint local, remote;
		uint16_t end;
		int error;
		char text[256];
		uint32_t type, len;
	} events[EVENTS];
	unsigned count;
	uint64_t answers; /* connection on which each message is sent back */
};

static struct event_base *base;
static struct end a, b;
static const struct hc_addr anywhere;

static void on_happened(void *arg, const struct hc_event *ev)
{
	struct end *e = arg;
	struct happened *h = &e->events[e->count++];

	ck_assert_uint_le(e->count, EVENTS);
	*h = (struct happened){.kind = ev->kind,
			       .conn = ev->u.conn.conn,
			       .local = ev->u.conn.local,
			       .remote = ev->u.conn.remote};
	if (ev->kind == HC_EV_CONN_LOST) {
		h->end = ev->u.conn.end;
		h->error = ev->u.conn.error;
		hc_str_copy(ev->u.conn.text, h->text, sizeof(h->text));
	}
	if (ev->kind == HC_EV_CONN_MSG) {
		h->type = ev->u.conn.frame->head.type;
		h->len = (uint32_t)ev->u.conn.frame->body_len;
	}
}

static void begin(struct end *e, const char *cluster, const char *key)
{
	struct hc_peers_want want = {PORT_LO, PORT_HI, "127.0.0.1"};
	struct hc_peers_args args = {.base = base,
				     .cluster = cluster,
				     .key = (const uint8_t *)key,
				     .limit_ms = 5000,
				     .event = on_happened,
				     .arg = e};
	struct hc_peers_socks socks;
	char why[1400];

	memset(e, 0, sizeof(*e));
	ck_assert_msg(!hc_peers_bind(&want, &socks, why, sizeof(why)), "%s", why);
	ck_assert_uint_eq(socks.count, 1);
	e->at = socks.at[0];
	ck_assert_int_eq(hc_peers_new(&args, &e->peers), 0);
	ck_assert_int_eq(hc_peers_listen(e->peers, &socks), 0);
	hc_peers_unbind(&socks);
}

static const char one_key[33] = "0123456789abcdef0123456789abcdef";
static const char other_key[33] = "0123456789abcdef0123456789abcdeF";

static void setup(void)
{
	base = event_base_new();
	ck_assert_ptr_nonnull(base);
	hc_log_open(HC_LOG_STDERR, HC_LOG_ERROR, 1000);
	signal(SIGPIPE, SIG_IGN);
}

static void teardown(void)
{
	hc_peers_free(a.peers);
	hc_peers_free(b.peers);
	event_base_free(base);
	a.peers = b.peers = NULL;
}

static void turn(void)
{
	struct timeval t = {0, 2000};

	if (a.peers)
		hc_peers_flush(a.peers);
	if (b.peers)
		hc_peers_flush(b.peers);
	event_base_loopexit(base, &t);
	event_base_loop(base, EVLOOP_ONCE);
}

/* Turns the loop until this end was told that, the n-th time. */
static const struct happened *await(struct end *e, enum hc_event_kind kind, unsigned n)
{
	uint64_t limit = hc_now_ms() + hc_patience(10000);
	unsigned i, seen;

	for (;;) {
		for (i = seen = 0; i < e->count; i++)
			if (e->events[i].kind == kind && ++seen == n)
				return &e->events[i];
		ck_assert_msg(hc_now_ms() < limit, "event %d did not come; there are %u: %s", kind,
			      e->count, e->events[0].text);
		turn();
	}
}

static unsigned told(const struct end *e, enum hc_event_kind kind)
{
	unsigned i, n = 0;

	for (i = 0; i < e->count; i++)
		n += e->events[i].kind == kind;
	return n;
}

static size_t frame(uint8_t *buf, size_t cap, const char *text)
{
	struct hc_m_peer_refuse m = {.code = 1, .text = hc_str(text)};
	size_t len;

	ck_assert_int_eq(hc_frame_write(buf, cap, &hc_desc_peer_refuse, 1, 0, 0, &m, &len), 0);
	return len;
}

static void say(struct end *e, uint64_t conn, const char *text)
{
	uint8_t buf[1024];
	size_t len = frame(buf, sizeof(buf), text);

	hc_peers_send(e->peers, conn, buf, len);
}

/* a dials b; both are up. Returns b's number. */
static uint64_t meet(void)
{
	hc_peers_dial(a.peers, 1, &b.at, &anywhere);
	ck_assert_uint_eq(await(&a, HC_EV_CONN_UP, 1)->conn, 1);
	return await(&b, HC_EV_CONN_UP, 1)->conn;
}

/* `end`: what a closed connection is called at the other end; only TLS tells why. */
static void words_both_ways(uint16_t end)
{
	uint64_t in = meet();
	const struct happened *up = await(&a, HC_EV_CONN_UP, 1);

	ck_assert_uint_ge(in, HC_CONN_IN);
	ck_assert(hc_endpoint_eq(&up->remote, &b.at));
	ck_assert(hc_endpoint_eq(&up->local, &await(&b, HC_EV_CONN_UP, 1)->remote));
	say(&a, 1, "from a");
	say(&b, in, "from b");
	ck_assert_uint_eq(await(&a, HC_EV_CONN_MSG, 1)->type, HC_MSG_peer_refuse);
	ck_assert_uint_eq(await(&b, HC_EV_CONN_MSG, 1)->type, HC_MSG_peer_refuse);
	say(&a, 1, "the last word");
	hc_peers_close(a.peers, 1);
	await(&b, HC_EV_CONN_MSG, 2);
	ck_assert_uint_eq(await(&b, HC_EV_CONN_LOST, 1)->end, end);
	ck_assert_uint_eq(told(&a, HC_EV_CONN_LOST), 0);
}

START_TEST(the_same_key_lets_through)
{
	begin(&a, "blue", one_key);
	begin(&b, "blue", one_key);
	words_both_ways(HC_W_conn_end_ENDED);
}
END_TEST

START_TEST(without_security_it_goes_as_well)
{
	begin(&a, "blue", NULL);
	begin(&b, "blue", NULL);
	words_both_ways(HC_W_conn_end_CLOSED);
}
END_TEST

START_TEST(a_wrong_key_is_called_that_on_both_sides)
{
	struct hc_peers_counts n;

	begin(&a, "blue", one_key);
	begin(&b, "blue", other_key);
	hc_peers_dial(a.peers, 1, &b.at, &anywhere);
	ck_assert_uint_eq(await(&a, HC_EV_CONN_LOST, 1)->end, HC_W_conn_end_KEY);
	ck_assert_uint_eq(await(&b, HC_EV_CONN_LOST, 1)->end, HC_W_conn_end_KEY);
	ck_assert_uint_eq(told(&a, HC_EV_CONN_UP) + told(&b, HC_EV_CONN_UP), 0);
	hc_peers_counts(b.peers, &n);
	ck_assert_uint_eq(n.wrong_key, 1);
	ck_assert_uint_eq(n.open, 0);
}
END_TEST

START_TEST(another_cluster_is_named_on_both_sides)
{
	begin(&a, "blue", one_key);
	begin(&b, "green", one_key);
	hc_peers_dial(a.peers, 1, &b.at, &anywhere);
	ck_assert_uint_eq(await(&a, HC_EV_CONN_LOST, 1)->end, HC_W_conn_end_CLUSTER);
	ck_assert_str_eq(await(&a, HC_EV_CONN_LOST, 1)->text, "green");
	ck_assert_uint_eq(await(&b, HC_EV_CONN_LOST, 1)->end, HC_W_conn_end_CLUSTER);
	ck_assert_str_eq(await(&b, HC_EV_CONN_LOST, 1)->text, "blue");
	ck_assert_uint_eq(told(&a, HC_EV_CONN_UP) + told(&b, HC_EV_CONN_UP), 0);
}
END_TEST

/* ---- strangers ---- */

static int connect_to(const struct hc_endpoint *at)
{
	struct sockaddr_storage to;
	socklen_t n = hc_peersock_to(at, &to);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&to, n), 0);
	return fd;
}

static void stranger_says(const void *bytes, size_t n, const char *why)
{
	int fd = connect_to(&b.at);
	const struct happened *h;
	unsigned before = told(&b, HC_EV_CONN_LOST);

	ck_assert_int_eq(send(fd, bytes, n, MSG_NOSIGNAL), (ssize_t)n);
	h = await(&b, HC_EV_CONN_LOST, before + 1);
	ck_assert_uint_eq(h->end, HC_W_conn_end_FOREIGN);
	ck_assert_msg(strstr(h->text, why) != NULL, "'%s' is not in '%s'", why, h->text);
	close(fd);
}

START_TEST(who_speaks_something_else_is_foreign)
{
	static const char http[] = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
	uint8_t hello[256];
	size_t n = frame(hello, sizeof(hello), "plain");

	begin(&b, "blue", one_key);
	stranger_says(http, sizeof(http) - 1, "does not speak hcomm");
	stranger_says("SSH-2.0-OpenSSH_9\r\n", 19, "does not speak hcomm");
	stranger_says("\xff\xff\xff\xff\xff\xff\xff\xff", 8, "does not speak hcomm");
	stranger_says(hello, n, "security is none there");
	ck_assert_uint_eq(told(&b, HC_EV_CONN_UP), 0);
}
END_TEST

START_TEST(without_security_a_stranger_is_foreign_too)
{
	begin(&b, "blue", NULL);
	stranger_says("GET / HTTP/1.1\r\n", 16, "does not speak hcomm");
	stranger_says("\x16\x03\x01\x02\x00\x01\x00\x01", 8, "security is key there");
	begin(&a, "blue", one_key);
	hc_peers_dial(a.peers, 1, &b.at, &anywhere);
	await(&a, HC_EV_CONN_LOST, 1);
	ck_assert_uint_eq(told(&a, HC_EV_CONN_UP), 0);
}
END_TEST

/* A server that is none of ours: it takes the connection and answers in its own way. */
static int serve_foreign(struct hc_endpoint *at)
{
	struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof(sa);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	ck_assert_int_eq(bind(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	ck_assert_int_eq(listen(fd, 4), 0);
	ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&sa, &n), 0);
	ck_assert(hc_peersock_from((struct sockaddr *)&sa, at));
	return fd;
}

START_TEST(a_dialled_server_that_is_none_of_ours_is_foreign)
{
	struct hc_endpoint at;
	int listening = serve_foreign(&at), fd;

	begin(&a, "blue", one_key);
	hc_peers_dial(a.peers, 1, &at, &anywhere);
	turn();
	fd = accept(listening, NULL, NULL);
	ck_assert_int_eq(send(fd, "SSH-2.0-OpenSSH_9\r\n", 19, MSG_NOSIGNAL), 19);
	ck_assert_uint_eq(await(&a, HC_EV_CONN_LOST, 1)->end, HC_W_conn_end_FOREIGN);
	close(fd);
	close(listening);
	hc_peers_dial(a.peers, 2, &at, &anywhere);
	ck_assert_uint_eq(await(&a, HC_EV_CONN_LOST, 2)->end, HC_W_conn_end_REFUSED);
	ck_assert_int_eq(await(&a, HC_EV_CONN_LOST, 2)->error, ECONNREFUSED);
}
END_TEST

START_TEST(a_server_that_says_nothing_times_out)
{
	struct hc_endpoint at;
	int listening = serve_foreign(&at);

	begin(&a, "blue", one_key);
	hc_peers_set_limit(a.peers, 50);
	hc_peers_dial(a.peers, 1, &at, &anywhere);
	ck_assert_uint_eq(await(&a, HC_EV_CONN_LOST, 1)->end, HC_W_conn_end_TIMEOUT);
	close(listening);
}
END_TEST

START_TEST(where_no_route_leads_is_told_from_the_loop)
{
	struct hc_endpoint at = {.addr = {.family = 4, .bytes = {127, 0, 0, 1}}, .port = 1};
	struct hc_addr from = {.family = 4, .bytes = {192, 0, 2, 1}};

	begin(&a, "blue", one_key);
	hc_peers_dial(a.peers, 1, &at, &from);
	ck_assert_uint_eq(a.count, 0); /* never from inside of the call */
	ck_assert_uint_eq(await(&a, HC_EV_CONN_LOST, 1)->end, HC_W_conn_end_NO_ROUTE);
	hc_peers_dial(a.peers, 2, &at, &from);
	hc_peers_close(a.peers, 2);
	hc_peers_dial(a.peers, 3, &at, &anywhere);
	ck_assert_uint_eq(await(&a, HC_EV_CONN_LOST, 2)->conn, 3);
}
END_TEST

static bool gone(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	char c;

	return poll(&p, 1, 0) == 1 && recv(fd, &c, 1, MSG_DONTWAIT) <= 0;
}

START_TEST(strangers_have_few_places_and_little_time)
{
	int fds[HC_PEERS_OF_ONE + 2];
	uint64_t since = hc_now_ms();
	struct hc_peers_counts n;
	unsigned i;

	begin(&a, "blue", one_key);
	begin(&b, "blue", one_key);
	for (i = 0; i < HC_PEERS_OF_ONE + 2; i++)
		fds[i] = connect_to(&b.at);
	do {
		turn();
		hc_peers_counts(b.peers, &n);
		ck_assert_uint_le(n.open, HC_PEERS_OF_ONE);
		ck_assert_uint_lt(hc_now_ms(), since + hc_patience(2000));
	} while (n.turned_away < 2);
	ck_assert(gone(fds[HC_PEERS_OF_ONE]) && gone(fds[HC_PEERS_OF_ONE + 1]));
	await(&b, HC_EV_CONN_LOST, HC_PEERS_OF_ONE);
	ck_assert_uint_ge(hc_now_ms() - since, HC_PEERS_PROVE_MS - 100);
	ck_assert_uint_lt(hc_now_ms() - since, HC_PEERS_PROVE_MS + hc_patience(1000));
	for (i = 0; i < HC_PEERS_OF_ONE + 2; i++)
		close(fds[i]);
	meet(); /* and then there is room */
}
END_TEST

/* ---- broken peers ---- */

static void length_of(uint32_t length, uint16_t end)
{
	uint8_t head[16] = {(uint8_t)(length >> 24),
			    (uint8_t)(length >> 16),
			    (uint8_t)(length >> 8),
			    (uint8_t)length,
			    0,
			    1};
	uint64_t in = meet();

	say(&a, 1, "good");
	await(&b, HC_EV_CONN_MSG, 1);
	hc_peers_send(a.peers, 1, head, 8); /* the length alone is enough */
	ck_assert_uint_eq(await(&b, HC_EV_CONN_LOST, 1)->conn, in);
	ck_assert_uint_eq(await(&b, HC_EV_CONN_LOST, 1)->end, end);
	ck_assert_uint_eq(await(&a, HC_EV_CONN_LOST, 1)->end, HC_W_conn_end_CLOSED);
	ck_assert_uint_eq(told(&b, HC_EV_CONN_MSG), 1);
}

START_TEST(an_absurd_length_ends_the_connection)
{
	static const uint32_t lengths[] = {0, 15, HC_PEER_FRAME_MAX + 1, 0x7fffffff, 0xffffffff};

	begin(&a, "blue", _i & 1 ? one_key : NULL);
	begin(&b, "blue", _i & 1 ? one_key : NULL);
	length_of(lengths[_i / 2], HC_W_conn_end_BROKEN);
}
END_TEST

START_TEST(half_a_message_is_never_told)
{
	uint8_t buf[256];
	size_t len = frame(buf, sizeof(buf), "half of it");

	begin(&a, "blue", one_key);
	begin(&b, "blue", one_key);
	meet();
	hc_peers_send(a.peers, 1, buf, len - 1);
	hc_peers_close(a.peers, 1);
	ck_assert_uint_eq(await(&b, HC_EV_CONN_LOST, 1)->end, HC_W_conn_end_ENDED);
	ck_assert_uint_eq(told(&b, HC_EV_CONN_MSG), 0);
}
END_TEST

START_TEST(the_largest_message_arrives_whole)
{
	uint8_t *big = calloc(1, HC_PEER_FRAME_MAX);

	begin(&a, "blue", one_key);
	begin(&b, "blue", one_key);
	meet();
	big[1] = HC_PEER_FRAME_MAX >> 16;
	big[5] = 1;
	big[7] = 203;
	hc_peers_send(a.peers, 1, big, HC_PEER_FRAME_MAX);
	ck_assert_uint_eq(await(&b, HC_EV_CONN_MSG, 1)->len, HC_PEER_FRAME_MAX - HC_HEAD_BYTES);
	free(big);
}
END_TEST

START_TEST(who_does_not_read_is_given_up_at_8_mib)
{
	struct hc_endpoint at;
	int listening = serve_foreign(&at), fd;
	uint8_t *big = calloc(1, HC_PEER_FRAME_MAX);
	unsigned i;

	begin(&a, "blue", NULL);
	hc_peers_dial(a.peers, 1, &at, &anywhere);
	await(&a, HC_EV_CONN_UP, 1);
	fd = accept(listening, NULL, NULL);
	for (i = 0; i < 64 && !told(&a, HC_EV_CONN_LOST); i++) {
		hc_peers_send(a.peers, 1, big, HC_PEER_FRAME_MAX);
		turn();
	}
	ck_assert_uint_ge(i, 8);
	ck_assert_uint_lt(i, 64);
	ck_assert(strstr(await(&a, HC_EV_CONN_LOST, 1)->text, "does not read") != NULL);
	ck_assert(!hc_peers_pending(a.peers));
	close(fd);
	close(listening);
	free(big);
}
END_TEST

START_TEST(a_reset_is_told_at_once)
{
	struct linger hard = {1, 0};
	struct hc_endpoint at;
	int listening = serve_foreign(&at), fd;
	uint64_t since;

	begin(&a, "blue", NULL);
	hc_peers_dial(a.peers, 1, &at, &anywhere);
	await(&a, HC_EV_CONN_UP, 1);
	fd = accept(listening, NULL, NULL);
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
	since = hc_now_ms();
	close(fd);
	ck_assert_uint_eq(await(&a, HC_EV_CONN_LOST, 1)->end, HC_W_conn_end_CLOSED);
	ck_assert_int_eq(await(&a, HC_EV_CONN_LOST, 1)->error, ECONNRESET);
	ck_assert_uint_lt(hc_now_ms() - since, hc_patience(200));
	close(listening);
}
END_TEST

/* ---- keys of beats ---- */

static void exporting(void)
{
	uint8_t there[HC_KEY_CONTEXT], back[HC_KEY_CONTEXT], cookies[16] = {1}, other[16] = {2};
	uint8_t k[5][HC_KEY_BYTES];
	uint64_t in = meet();

	memset(there, 1, sizeof(there));
	memset(back, 2, sizeof(back));
	ck_assert_int_eq(hc_peers_export(a.peers, 1, there, cookies, k[0]), 0);
	ck_assert_int_eq(hc_peers_export(b.peers, in, there, cookies, k[1]), 0);
	ck_assert_int_eq(hc_peers_export(a.peers, 1, back, other, k[2]), 0);
	ck_assert_int_eq(hc_peers_export(b.peers, in, back, other, k[3]), 0);
	ck_assert_mem_eq(k[0], k[1], HC_KEY_BYTES);
	ck_assert_mem_eq(k[2], k[3], HC_KEY_BYTES);
	ck_assert_mem_ne(k[0], k[2], HC_KEY_BYTES);
	ck_assert_int_eq(hc_peers_export(a.peers, 77, there, cookies, k[4]), -ENOENT);
	hc_peers_dial(a.peers, 2, &b.at, &anywhere);
	await(&a, HC_EV_CONN_UP, 2);
	ck_assert_int_eq(hc_peers_export(a.peers, 2, there, other, k[4]), 0);
	ck_assert_mem_ne(k[0], k[4], HC_KEY_BYTES); /* another session, another key */
}

START_TEST(both_ends_export_one_key_for_each_direction)
{
	begin(&a, "blue", _i ? one_key : NULL);
	begin(&b, "blue", _i ? one_key : NULL);
	exporting();
}
END_TEST

/* ---- the port ---- */

START_TEST(a_taken_port_is_named_with_its_holder)
{
	struct hc_peers_want want = {0, 0, "127.0.0.1"};
	struct hc_peers_socks s;
	char why[1400], holder[64], at[HC_ENDPOINT_TEXT_MAX];

	begin(&b, "blue", one_key);
	want.lo = want.hi = b.at.port;
	ck_assert_int_eq(hc_peers_bind(&want, &s, why, sizeof(why)), 1);
	snprintf(holder, sizeof(holder), "pid %d (test_tls)", (int)getpid());
	ck_assert_msg(strstr(why, hc_endpoint_text(&b.at, at)) && strstr(why, holder) &&
			      strstr(why, "Address already in use"),
		      "%s", why);
	want.addresses = "";
	ck_assert_int_eq(hc_peers_bind(&want, &s, why, sizeof(why)), 1);
	ck_assert_msg(strstr(why, holder) != NULL, "%s", why);
}
END_TEST

START_TEST(a_port_counts_when_both_kinds_are_free)
{
	struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct hc_peers_want want = {22000, 22100, "127.0.0.1, ::1"};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct hc_peers_socks s;
	char why[1400];
	uint16_t port;

	ck_assert_msg(!hc_peers_bind(&want, &s, why, sizeof(why)), "%s", why);
	ck_assert_uint_eq(s.count, 2);
	port = s.port;
	hc_peers_unbind(&s);
	sa.sin_port = htons(port);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	want.lo = want.hi = port;
	ck_assert_int_eq(hc_peers_bind(&want, &s, why, sizeof(why)), 1);
	ck_assert_msg(strstr(why, "(UDP)") && strstr(why, "(test_tls)"), "%s", why);
	want.hi = (uint16_t)(port + 50);
	ck_assert_msg(!hc_peers_bind(&want, &s, why, sizeof(why)), "%s", why);
	ck_assert_uint_gt(s.port, port);
	hc_peers_unbind(&s);
	close(fd);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, the_same_key_lets_through);
	tcase_add_test(t, without_security_it_goes_as_well);
	tcase_add_test(t, a_wrong_key_is_called_that_on_both_sides);
	tcase_add_test(t, another_cluster_is_named_on_both_sides);
	tcase_add_test(t, who_speaks_something_else_is_foreign);
	tcase_add_test(t, without_security_a_stranger_is_foreign_too);
	tcase_add_test(t, a_dialled_server_that_is_none_of_ours_is_foreign);
	tcase_add_test(t, a_server_that_says_nothing_times_out);
	tcase_add_test(t, where_no_route_leads_is_told_from_the_loop);
	tcase_add_test(t, strangers_have_few_places_and_little_time);
	tcase_add_loop_test(t, an_absurd_length_ends_the_connection, 0, 10);
	tcase_add_test(t, half_a_message_is_never_told);
	tcase_add_test(t, the_largest_message_arrives_whole);
	tcase_add_test(t, who_does_not_read_is_given_up_at_8_mib);
	tcase_add_test(t, a_reset_is_told_at_once);
	tcase_add_loop_test(t, both_ends_export_one_key_for_each_direction, 0, 2);
	tcase_add_test(t, a_taken_port_is_named_with_its_holder);
	tcase_add_test(t, a_port_counts_when_both_kinds_are_free);
}

int main(void)
{
	hc_ports_own("test_tls");
	return hc_suite_run("tls", add, 60);
}
