/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Abuse of the client socket by whoever may connect to it.
 *
 * Each test is one sort of nonsense, said through the real socket to a real daemon that serves a
 * running domain at the same time. What must hold after each: that domain and its two ranks are
 * as they were, their operations have gone on, another client is answered, and the daemon has no
 * descriptor, domain or MiB more than before. The random ones print their seed by failing with
 * it; HC_SEED repeats one.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "ranks.h"
#include "raw.h"
#include "suite.h"

/* Arenas of a living process's newest closed sessions, kept for a return. */
enum { ARENAS_KEPT = 8, GROWTH_KIB = 2048 };

static struct hc_node node;
static struct hc_rank r[2];
static struct hcomm_view_domain was;
static unsigned fds;
static unsigned long rss;
static uint64_t count;
static unsigned seed;
static uint8_t buf[HC_PACKET_MAX], out[HC_PACKET_MAX + 4096];

static void hello_and_bye(void)
{
	int fd = hc_raw_session(node.socket);

	hc_raw_want_alive(fd);
	close(fd);
}

static void begin(void)
{
	const char *given = getenv("HC_SEED");

	seed = given ? (unsigned)strtoul(given, NULL, 10) : (unsigned)time(NULL);
	srand(seed);
	hc_node_start(&node, 4, "log_rate = 1");
	hc_ranks_start(r, 2, "innocent");
	hc_rank_must(&r[0], &(struct hc_order){.what = HC_DO_RUN}, NULL);
	for (int i = 0; i < 2 * ARENAS_KEPT; i++)
		hello_and_bye(); /* what this process may have kept is there now */
	ck_assert(hc_ask_domain("innocent", &was));
	fds = hc_proc_fds(node.pid);
	rss = hc_proc_kib(node.pid, "VmRSS");
	count = __atomic_load_n(r[0].count, __ATOMIC_RELAXED);
}

static bool fds_are_back(void *ctx)
{
	(void)ctx;
	return hc_proc_fds(node.pid) <= fds + 1; /* one connection may be closing */
}

static bool has_gone_on(void *ctx)
{
	return __atomic_load_n(r[0].count, __ATOMIC_RELAXED) > *(const uint64_t *)ctx;
}

static void end(void)
{
	struct hcomm_view_domain now;
	struct hcomm_view_status s;
	unsigned long grown;

	ck_assert_msg(hc_node_alive(&node), "seed %u", seed);
	hello_and_bye();
	ck_assert(hc_ask_domain("innocent", &now));
	ck_assert_str_eq(now.state, "ACTIVE");
	ck_assert_uint_eq(now.number, was.number);
	ck_assert_uint_eq(now.id, was.id);
	hc_ask_status(&s);
	ck_assert_uint_eq(s.domains, 1);
	ck_assert_uint_eq(s.ranks, 2);
	hc_await("the operations of others to go on", has_gone_on, &count, 5000);
	if (!hc_wait_until(fds_are_back, NULL, 5000))
		hc_fail("seed %u: the daemon has %u descriptors, had %u", seed,
			hc_proc_fds(node.pid), fds);
	grown = hc_proc_kib(node.pid, "VmRSS");
	ck_assert_msg(grown <= rss + hc_growth_kib(GROWTH_KIB), "seed %u: %lu KiB, was %lu", seed,
		      grown, rss);
	hc_rank_must(&r[0], &(struct hc_order){.what = HC_DO_STOP}, NULL);
	hc_rank_must(&r[1], &(struct hc_order){.what = HC_DO_PING, .timeout_ms = 5000}, NULL);
	hc_ranks_quit(r, 2);
	hc_node_end(&node);
}

/* ---- wrong sizes ---- */

START_TEST(packets_of_every_short_size)
{
	size_t whole =
		hc_raw_frame(out, sizeof(out), &hc_desc_ping, 1, &(struct hc_m_ping){.value = 7});

	for (size_t n = 0; n < whole; n++) {
		int fd = n % 2 ? hc_raw_session(node.socket) : hc_raw_connect(node.socket);

		ck_assert(hc_raw_send(fd, out, n));
		hc_raw_want_closed(fd);
		close(fd);
	}
}
END_TEST

/* Answers share packets; takes one packet and returns the number of the last answer in it. */
static unsigned take_answers(int fd, unsigned seen)
{
	const uint8_t *at = buf;
	struct hc_frame f;
	ssize_t got = recv(fd, buf, sizeof(buf), 0);
	size_t left = got < 0 ? 0 : (size_t)got;

	ck_assert_int_ne((int)got, 0);
	while (left) {
		ck_assert_int_eq(hc_frame_next(&at, &left, &f), 0);
		ck_assert_uint_eq(f.head.type, HC_MSG_done);
		ck_assert_uint_eq(f.head.id, ++seen);
	}
	return seen;
}

START_TEST(the_largest_packet_and_one_above)
{
	int fd = hc_raw_session(node.socket);
	unsigned pings = 0, seen = 0;
	size_t n = 0;

	while (n + 24 <= HC_PACKET_MAX) {
		pings++;
		n += hc_raw_frame(out + n, sizeof(out) - n, &hc_desc_ping, pings,
				  &(struct hc_m_ping){.value = pings});
	}
	ck_assert(hc_raw_send(fd, out, n));
	while (seen < pings)
		seen = take_answers(fd, seen);
	memset(out, 0, sizeof(out));
	if (send(fd, out, HC_PACKET_MAX + 1, MSG_NOSIGNAL) >= 0)
		hc_raw_want_closed(fd);
	close(fd);
}
END_TEST

/* ---- nonsense ---- */

START_TEST(random_bytes)
{
	unsigned rounds = hc_long() ? 20000 : 1500;

	for (unsigned i = 0; i < rounds; i++) {
		size_t n = (size_t)rand() % 600 + 1;
		int fd = i % 2 ? hc_raw_session(node.socket) : hc_raw_connect(node.socket);

		for (size_t k = 0; k < n; k++)
			out[k] = (uint8_t)rand();
		hc_raw_send(fd, out, n);
		close(fd);
	}
}
END_TEST

/* Whole frames with random types and bodies, so that they get past the first look. */
START_TEST(random_messages)
{
	unsigned rounds = hc_long() ? 50000 : 3000;
	int fd = hc_raw_session(node.socket);

	for (unsigned i = 0; i < rounds; i++) {
		size_t n = 16 + (size_t)rand() % 200;
		struct hc_frame f;

		for (size_t k = 0; k < n; k++)
			out[k] = rand() % 3 ? 0 : (uint8_t)rand();
		memcpy(out, "\0\0\0\0\0\1\0\0\0\0\0\1\0\0\0\0", 16);
		out[3] = (uint8_t)n;
		out[7] = (uint8_t)(rand() % 120);
		if (out[7] == HC_MSG_carry || out[7] == HC_MSG_ops_ended ||
		    out[7] == HC_MSG_create || out[7] == HC_MSG_root_info)
			continue; /* no answer; and what rightly makes a domain */
		if (hc_raw_send(fd, out, n) && hc_raw_recv(fd, buf, &f))
			continue;
		close(fd);
		fd = hc_raw_session(node.socket);
	}
	close(fd);
}
END_TEST

START_TEST(requests_before_and_instead_of_hello)
{
	static const struct hc_desc *const first[] = {&hc_desc_ping, &hc_desc_query,
						      &hc_desc_destroy, &hc_desc_subscribe};
	static const uint8_t zero[1024];

	for (size_t i = 0; i < sizeof(first) / sizeof(first[0]); i++) {
		int fd = hc_raw_connect(node.socket);
		size_t n = hc_raw_frame(out, sizeof(out), first[i], 1, zero);

		ck_assert(hc_raw_send(fd, out, n));
		hc_raw_want_closed(fd);
		close(fd);
	}
}
END_TEST

START_TEST(a_second_hello_is_refused_and_the_first_session_stays)
{
	const struct hc_m_hello hello = {
		.proto_min = HC_PROTO_MIN, .proto_max = HC_PROTO_MAX, .build = hc_str("twice")};
	int fd = hc_raw_session(node.socket);
	struct hc_frame f;

	ck_assert(hc_raw_ask(fd, &hc_desc_hello, 9, &hello, buf, &f));
	ck_assert_uint_eq(f.head.type, HC_MSG_error);
	hc_raw_want_alive(fd);
	close(fd);
}
END_TEST

/* ---- half-way ---- */

enum { DYING = 40 };

static int dies_half_way(void *arg, int in, int out_fd)
{
	unsigned i = *(unsigned *)arg;
	const struct hc_m_join_local join = {.timeout_ms = 10000};
	int fd = hc_raw_session(node.socket), one = 1;
	size_t n = hc_raw_frame(out, sizeof(out), &hc_desc_join_local, 2, &join);

	/* devices 2 and 3 alone are free, so this is refused, or dies before it is */
	hc_raw_send(fd, out, i % 2 ? n : n / 2);
	hc_tell(out_fd, &one, sizeof(one));
	hc_hear(in, &one, sizeof(one), 60000);
	return 0;
}

START_TEST(clients_that_die_half_way)
{
	for (unsigned i = 0; i < DYING; i++) {
		struct hc_child c;
		int one;

		hc_spawn(&c, dies_half_way, &i);
		hc_child_read(&c, &one, sizeof(one), 10000);
		hc_child_kill(&c);
	}
	fds += 2 * DYING; /* the arena and pidfd of a dead process are kept for a while */
}
END_TEST

START_TEST(two_hundred_connections_open_and_close)
{
	static int open_fd[200];

	for (int round = 0; round < 4; round++) {
		for (int i = 0; i < 200; i++)
			open_fd[i] = round % 2 ? hc_raw_session(node.socket)
					       : hc_raw_connect(node.socket);
		hello_and_bye(); /* another one is served beside them */
		for (int i = 0; i < 200; i++)
			close(open_fd[i]);
		/* what so many sessions need once is there after the first time */
		if (round == 1 && hc_wait_until(fds_are_back, NULL, 5000))
			rss = hc_proc_kib(node.pid, "VmRSS");
	}
}
END_TEST

/* ---- descriptors ---- */

static int send_many_fds(int fd, size_t n_bytes, int pass, unsigned n)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int) * 64)];
		struct cmsghdr align;
	} control;
	struct iovec iov = {.iov_base = out, .iov_len = n_bytes};
	struct msghdr m = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = control.bytes,
			   .msg_controllen = CMSG_SPACE(sizeof(int) * n)};
	struct cmsghdr *h;

	memset(&control, 0, sizeof(control));
	h = CMSG_FIRSTHDR(&m);
	h->cmsg_level = SOL_SOCKET;
	h->cmsg_type = SCM_RIGHTS;
	h->cmsg_len = CMSG_LEN(sizeof(int) * n);
	for (unsigned i = 0; i < n; i++)
		memcpy(CMSG_DATA(h) + i * sizeof(int), &pass, sizeof(int));
	return (int)sendmsg(fd, &m, MSG_NOSIGNAL);
}

START_TEST(descriptors_that_nobody_asked_for_are_closed)
{
	static const unsigned many[] = {1, 2, 4, 5, 16, 64};
	int pipe_fd[2], fd;
	char byte;
	size_t n;

	ck_assert_int_eq(pipe2(pipe_fd, O_CLOEXEC | O_NONBLOCK), 0);
	for (size_t i = 0; i < sizeof(many) / sizeof(many[0]); i++) {
		fd = hc_raw_session(node.socket);
		n = hc_raw_frame(out, sizeof(out), &hc_desc_ping, 1,
				 &(struct hc_m_ping){.value = 1});
		/* not announced: none of them reaches the daemon */
		ck_assert_int_gt(send_many_fds(fd, n, pipe_fd[1], many[i]), 0);
		hc_raw_want_alive(fd);
		/* announced, and for a request that has no use for them */
		ck_assert(hc_raw_carry(fd));
		ck_assert_int_gt(send_many_fds(fd, n, pipe_fd[1], many[i]), 0);
		if (many[i] <= 4)
			hc_raw_want_alive(fd);
		else
			hc_raw_want_closed(fd);
		close(fd);
	}
	/* with hello in place of a pidfd */
	fd = hc_raw_connect(node.socket);
	n = hc_raw_frame(out, sizeof(out), &hc_desc_hello, 1,
			 &(struct hc_m_hello){.proto_min = 1, .proto_max = 1});
	ck_assert(hc_raw_send_fd(fd, out, n, pipe_fd[1]));
	hc_raw_recv(fd, buf, &(struct hc_frame){0});
	close(fd);
	/* the daemon holds none of them: without ours the pipe has no writer */
	close(pipe_fd[1]);
	ck_assert(hc_wait_until(fds_are_back, NULL, 5000));
	ck_assert_int_eq((int)read(pipe_fd[0], &byte, 1), 0);
	close(pipe_fd[0]);
}
END_TEST

static int a_memfd(off_t size, const char *text, unsigned seals)
{
	int fd = memfd_create("abuse", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	hc_want(fd >= 0 && !ftruncate(fd, size));
	hc_want(!*text || pwrite(fd, text, strlen(text), 0) == (ssize_t)strlen(text));
	hc_want(!seals || !fcntl(fd, F_ADD_SEALS, seals));
	return fd;
}

/* A table in that descriptor: refused, and the session goes on. -1: none at all. */
static void want_table_refused(int table, const char *what)
{
	const struct hc_m_join_table join = {
		.rank = 0, .timeout_ms = 1000, .weight = 1, .origin = hc_str("abuse.json")};
	int fd = hc_raw_session(node.socket);
	size_t n = hc_raw_frame(out, sizeof(out), &hc_desc_join_table, 3, &join);
	struct hc_frame f;

	ck_assert(table < 0 || hc_raw_carry(fd));
	ck_assert(table < 0 ? hc_raw_send(fd, out, n) : hc_raw_send_fd(fd, out, n, table));
	if (!hc_raw_recv(fd, buf, &f))
		hc_fail("%s: the session was ended", what);
	if (f.head.type != HC_MSG_error || f.head.id != 3)
		hc_fail("%s: answered by message %u", what, f.head.type);
	hc_raw_want_alive(fd);
	close(fd);
	if (table >= 0)
		close(table);
}

START_TEST(foreign_descriptors_as_a_table)
{
	const unsigned all = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
	char good[256], *text;
	int pipe_fd[2];

	snprintf(good, sizeof(good), "%s/good.json", node.dir);
	hc_table_write(good, 2, 1);
	text = hc_read_file(good);
	ck_assert_ptr_nonnull(text);
	want_table_refused(-1, "no descriptor");
	ck_assert_int_eq(pipe2(pipe_fd, O_CLOEXEC), 0);
	close(pipe_fd[1]);
	want_table_refused(pipe_fd[0], "a pipe");
	ck_assert_int_eq(pipe2(pipe_fd, O_CLOEXEC), 0);
	want_table_refused(pipe_fd[0], "a pipe that may yet say something"); /* must not block */
	close(pipe_fd[1]);
	want_table_refused(open(good, O_RDONLY | O_CLOEXEC), "a plain file");
	want_table_refused(open("/dev/zero", O_RDONLY | O_CLOEXEC), "a device");
	want_table_refused(open(node.dir, O_RDONLY | O_CLOEXEC | O_DIRECTORY), "a directory");
	want_table_refused(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), "a socket");
	want_table_refused(a_memfd((off_t)strlen(text), text, 0), "an unsealed memfd");
	want_table_refused(a_memfd((off_t)strlen(text), text, F_SEAL_GROW | F_SEAL_WRITE),
			   "a memfd that may shrink");
	want_table_refused(a_memfd((off_t)1 << 30, "{", all), "a huge memfd");
	want_table_refused(a_memfd((off_t)1 << 40, "", all), "a memfd of a terabyte");
	want_table_refused(a_memfd(0, "", all), "an empty memfd");
	want_table_refused(a_memfd(1 << 20, "", all), "a MiB of NUL");
	free(text);
}
END_TEST

/* ---- pipelines ---- */

START_TEST(many_requests_without_waiting_are_all_answered_in_order)
{
	enum { REQUESTS = 2000 };
	int fd = hc_raw_session(node.socket), flags = fcntl(fd, F_GETFL);
	unsigned sent = 0, seen = 0;

	ck_assert_int_eq(fcntl(fd, F_SETFL, flags | O_NONBLOCK), 0);
	while (seen < REQUESTS) {
		while (sent < REQUESTS) {
			size_t n = hc_raw_frame(out, sizeof(out), &hc_desc_ping, sent + 1,
						&(struct hc_m_ping){.value = sent});

			if (send(fd, out, n, MSG_NOSIGNAL) != (ssize_t)n)
				break; /* its queue is full: read first */
			sent++;
		}
		seen = take_answers(fd, seen);
	}
	close(fd);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_checked_fixture(t, begin, end);
	tcase_add_test(t, packets_of_every_short_size);
	tcase_add_test(t, the_largest_packet_and_one_above);
	tcase_add_test(t, random_bytes);
	tcase_add_test(t, random_messages);
	tcase_add_test(t, requests_before_and_instead_of_hello);
	tcase_add_test(t, a_second_hello_is_refused_and_the_first_session_stays);
	tcase_add_test(t, clients_that_die_half_way);
	tcase_add_test(t, two_hundred_connections_open_and_close);
	tcase_add_test(t, descriptors_that_nobody_asked_for_are_closed);
	tcase_add_test(t, foreign_descriptors_as_a_table);
	tcase_add_test(t, many_requests_without_waiting_are_all_answered_in_order);
}

int main(void)
{
	return hc_suite_run("abuse", add, hc_long() ? 300 : 60);
}
