/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clients that mean harm, or are broken in a way that looks like it.
 *
 * Beside each of them an innocent domain of two ranks takes and returns references without end,
 * and another client asks. What must hold: the operations go on, the other client is answered
 * within a bound that is ten times above what a loaded machine needs, the innocent domain keeps
 * its state number, and the daemon keeps its descriptors and its size.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "pages.h"
#include "ranks.h"
#include "raw.h"
#include "suite.h"

enum { PINGS = 300, BOUND_MS = 200, GROWTH_KIB = 4096 };

static struct hc_node node;
static struct hc_rank r[2];
static struct hcomm_view_domain was;
static struct hcomm_session *other;
static unsigned fds;
static unsigned long rss;
static uint8_t buf[HC_PACKET_MAX];

static void begin(void)
{
	hc_node_start(&node, 8, "log_rate = 1");
	hc_ranks_start(r, 2, "innocent");
	hc_rank_must(&r[0], &(struct hc_order){.what = HC_DO_RUN}, NULL);
	hc_rank_must(&r[1], &(struct hc_order){.what = HC_DO_RUN}, NULL);
	ck_assert_int_eq(hcomm_open(NULL, &other), 0);
	ck_assert(hc_ask_domain("innocent", &was));
	fds = hc_proc_fds(node.pid);
	rss = hc_proc_kib(node.pid, "VmRSS");
}

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* The other client asks, while whatever goes on goes on. */
static void want_answers(void)
{
	static uint64_t t[PINGS];

	for (unsigned i = 0; i < PINGS; i++) {
		uint64_t began = hc_now_ns();

		if (hcomm_ping(other, 20000))
			hc_fail("ping %u: %s", i, hcomm_last_error());
		t[i] = (hc_now_ns() - began) / 1000000u;
	}
	qsort(t, PINGS, sizeof(t[0]), by_size);
	if (t[PINGS * 99 / 100] > hc_patience(BOUND_MS))
		hc_fail("the 99th percentile of a ping is %llu ms",
			(unsigned long long)t[PINGS * 99 / 100]);
}

struct goal {
	unsigned i;
	uint64_t count;
};

static bool goes_on(void *ctx)
{
	const struct goal *g = ctx;

	return __atomic_load_n(r[g->i].count, __ATOMIC_RELAXED) > g->count;
}

static void want_operations(void)
{
	for (unsigned i = 0; i < 2; i++) {
		struct goal g = {i, __atomic_load_n(r[i].count, __ATOMIC_RELAXED) + 1000};

		hc_await("the operations of others", goes_on, &g, 10000);
	}
}

static bool fds_are_back(void *ctx)
{
	(void)ctx;
	/* pidfd and arena of the dead are kept for a while: two for each of at most 64 */
	return hc_proc_fds(node.pid) <= fds + 2 * 16;
}

static void end(void)
{
	struct hcomm_view_domain now;
	struct hcomm_view_status s;
	unsigned long grown;

	ck_assert(hc_node_alive(&node));
	want_operations();
	ck_assert(hc_ask_domain("innocent", &now));
	ck_assert_str_eq(now.state, "ACTIVE");
	ck_assert_uint_eq(now.number, was.number);
	hc_ask_status(&s);
	ck_assert_uint_eq(s.active, 1);
	hc_await("descriptors as before", fds_are_back, NULL, 10000);
	grown = hc_proc_kib(node.pid, "VmRSS");
	ck_assert_msg(grown <= rss + hc_growth_kib(GROWTH_KIB), "%lu KiB, was %lu", grown, rss);
	hcomm_close(other);
	for (unsigned i = 0; i < 2; i++)
		ck_assert_int_eq(hc_rank_do(&r[i], &(struct hc_order){.what = HC_DO_STOP}, NULL),
				 0);
	hc_ranks_quit(r, 2);
	hc_node_end(&node);
}

/* ---- no shared memory ---- */

START_TEST(who_does_not_share_memory_gets_no_rank)
{
	const struct hc_m_join_local join = {.timeout_ms = 1000, .shared = 1};
	int fd = hc_raw_session_unproved(node.socket);
	struct hc_m_error e;
	struct hc_frame f;

	hc_raw_want_alive(fd); /* it may ask and look */
	ck_assert(hc_raw_ask(fd, &hc_desc_join_local, 2, &join, buf, &f));
	ck_assert_uint_eq(f.head.type, HC_MSG_error);
	ck_assert_int_eq(-f.head.status, HC_E_LINK_UNAVAILABLE);
	ck_assert_int_eq(hc_decode(&hc_desc_error, 1, f.body, f.body_len, &e), 0);
	ck_assert_ptr_nonnull(memmem(e.text.p, e.text.len, "do not share memory", 19));
	ck_assert(hc_raw_ask(fd, &hc_desc_attach, 3,
			     &(struct hc_m_attach){.id = was.id, .block = HC_NONE}, buf, &f));
	ck_assert_int_eq(-f.head.status, HC_E_LINK_UNAVAILABLE);
	hc_raw_want_alive(fd);
	close(fd);
}
END_TEST

/* ---- scribblers ---- */

struct region {
	unsigned char *from;
	size_t bytes;
};

/* Mappings of this process whose name has `text`; their number. */
static unsigned mappings(const char *text, struct region *out, unsigned max)
{
	char *maps = hc_read_file("/proc/self/maps"), *line, *rest = maps;
	unsigned n = 0;

	while ((line = strsep(&rest, "\n")) && n < max) {
		unsigned long from, to;

		if (!strstr(line, text) || sscanf(line, "%lx-%lx", &from, &to) != 2)
			continue;
		out[n].from = (unsigned char *)from;
		out[n++].bytes = to - from;
	}
	free(maps);
	return n;
}

static void want_slabs_read_only(void)
{
	struct region slab[8];
	unsigned n = mappings("/slab-", slab, 8);

	ck_assert_uint_gt(n, 0);
	for (unsigned i = 0; i < n; i++) {
		errno = 0;
		ck_assert_int_eq(mprotect(slab[i].from, slab[i].bytes, PROT_READ | PROT_WRITE), -1);
		ck_assert_int_eq(errno, EACCES);
	}
}

/* Joins as rank 0 of "mad", and then writes nonsense over all of its arena until it is killed. */
static int scribbles(void *arg, int in, int out)
{
	const struct hcomm_root_info *info = arg;
	struct hcomm_session *s;
	struct region arena[4];
	struct hcomm_op op;
	hcomm_domain d;
	unsigned n, one = 1;

	(void)in;
	ck_assert_int_eq(hcomm_open(NULL, &s), 0);
	ck_assert_int_eq(hcomm_join(s, info, 2, 0, 2, NULL, 10000, &d), 0);
	ck_assert_int_eq(hcomm_op_begin(d, HCOMM_OP_ALL_REDUCE, 1, 0, &op), 0);
	want_slabs_read_only();
	n = mappings("memfd:", arena, 4);
	ck_assert_uint_gt(n, 0);
	srand(1);
	for (unsigned round = 0;; round++) {
		for (unsigned i = 0; i < n; i++) {
			size_t bytes = arena[i].bytes < 65536 ? arena[i].bytes : 65536;

			for (size_t k = 0; k < bytes; k++)
				arena[i].from[k] =
					(unsigned char)(round % 3 ? rand() : (int)round % 3 - 1);
			memset(arena[i].from + arena[i].bytes - 4096, rand(), 4096);
		}
		if (round == 2)
			hc_tell(out, &one, sizeof(one));
	}
	return 0;
}

START_TEST(who_scribbles_hurts_itself_alone)
{
	struct hcomm_root_info info;
	struct hcomm_config config = HCOMM_INIT(struct hcomm_config);
	struct hc_child mad;
	struct hc_rank good;
	uint64_t began;
	unsigned one;
	int code;

	config.name = "mad";
	ck_assert_int_eq(hcomm_root_info(other, 2, &config, &info), 0);
	hc_rank_spawn(&good);
	hc_spawn(&mad, scribbles, &info);
	hc_rank_must(&good,
		     &(struct hc_order){.what = HC_DO_JOIN,
					.info = info,
					.nranks = 2,
					.rank = 1,
					.device = 3,
					.timeout_ms = 10000},
		     NULL);
	hc_child_read(&mad, &one, sizeof(one), 20000);
	want_answers();
	want_operations();
	/* its domain ends all the same, by force if need be, and not late */
	began = hc_now_ms();
	code = hc_rank_do(&good, &(struct hc_order){.what = HC_DO_DESTROY, .timeout_ms = 1500},
			  NULL);
	ck_assert_msg(code == 0 || code == HCOMM_E_FORCED, "destroy: %d", code);
	ck_assert_uint_lt(hc_now_ms() - began, hc_patience(6000));
	ck_assert_int_eq(hc_node_alive(&node), 1);
	hc_child_kill(&mad);
	hc_rank_quit(&good);
}
END_TEST

/* ---- floods ---- */

enum { FLOODERS = 6 };

static void fill_packet(uint8_t *packet, size_t *n, const struct hc_desc *d, const void *msg)
{
	for (*n = 0; *n + 2048 < 32768;)
		*n += hc_raw_frame(packet + *n, 4096, d, 7, msg);
}

/* Of each kind some: greetings without end; requests whose answers are not read; and read. */
static int floods(void *arg, int in, int out)
{
	const unsigned kind = *(const unsigned *)arg % 3;
	const int one = 1;
	size_t n;

	(void)in;
	hc_tell(out, &one, sizeof(one));
	if (kind == 0)
		for (;;)
			close(hc_raw_session(node.socket));
	if (kind == 1)
		fill_packet(buf, &n, &hc_desc_query, &(struct hc_m_query){.view = HC_VIEW_member});
	else
		fill_packet(buf, &n, &hc_desc_status, &(struct hc_m_status){.id = was.id});
	for (;;) {
		int fd = hc_raw_session(node.socket);

		while (hc_raw_send(fd, buf, n))
			if (kind == 2)
				recv(fd, buf + 32768, sizeof(buf) - 32768, MSG_DONTWAIT);
		close(fd);
	}
	return 0;
}

START_TEST(floods_do_not_drown_others)
{
	static struct hc_child c[FLOODERS];
	unsigned kind[FLOODERS];
	int one;

	for (unsigned i = 0; i < FLOODERS; i++) {
		kind[i] = i;
		hc_spawn(&c[i], floods, &kind[i]);
		hc_child_read(&c[i], &one, sizeof(one), 10000);
	}
	for (int i = 0; i < 3; i++)
		want_answers();
	want_operations();
	for (unsigned i = 0; i < FLOODERS; i++)
		hc_child_kill(&c[i]);
}
END_TEST

/* Connections that say nothing: whoever comes after them is let in all the same. */
START_TEST(silent_connections_keep_nobody_out)
{
	static int silent[600];
	struct hcomm_session *late;
	uint64_t began;

	for (unsigned i = 0; i < 600; i++)
		silent[i] = hc_raw_connect(node.socket);
	for (unsigned i = 0; i < 3; i++) {
		began = hc_now_ms();
		if (hcomm_open(NULL, &late))
			hc_fail("the late one: %s", hcomm_last_error());
		ck_assert_int_eq(hcomm_ping(late, 5000), 0);
		ck_assert_uint_lt(hc_now_ms() - began, hc_patience(2000));
		hcomm_close(late);
	}
	want_answers();
	for (unsigned i = 0; i < 600; i++)
		close(silent[i]);
}
END_TEST

/* ---- stopped clients ---- */

START_TEST(stopped_clients_hold_up_nobody)
{
	struct hc_rank s[2];
	struct hc_answer a;
	uint64_t began;
	int code;

	hc_rank_spawn(&s[0]);
	hc_rank_spawn(&s[1]);
	hc_ranks_join(s, 2, 0, 4, "stopped");
	hc_rank_must(&s[0], &(struct hc_order){.what = HC_DO_BEGIN, .kind = HCOMM_OP_ALL_REDUCE},
		     NULL);
	kill(s[0].child.pid, SIGSTOP);
	want_answers();
	want_operations();
	/* it holds a reference and will not return it: the end is forced at the limit, and named */
	began = hc_now_ms();
	code = hc_rank_do(&s[1], &(struct hc_order){.what = HC_DO_DESTROY, .timeout_ms = 700}, &a);
	ck_assert_int_eq(code, HCOMM_E_FORCED);
	ck_assert_ptr_nonnull(strstr(a.text, "rank 0"));
	ck_assert_uint_ge(hc_now_ms() - began, 650);
	ck_assert_uint_lt(hc_now_ms() - began, hc_patience(4000));
	want_answers();
	/* and when it goes on it learns so */
	kill(s[0].child.pid, SIGCONT);
	hc_rank_do(&s[0], &(struct hc_order){.what = HC_DO_END}, NULL);
	code = hc_rank_do(
		&s[0], &(struct hc_order){.what = HC_DO_BEGIN, .kind = HCOMM_OP_ALL_REDUCE}, NULL);
	ck_assert_int_eq(code, HCOMM_E_GONE);
	hc_rank_must(&s[0], &(struct hc_order){.what = HC_DO_PING, .timeout_ms = 5000}, NULL);
	hc_ranks_quit(s, 2);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_checked_fixture(t, begin, end);
	tcase_add_test(t, who_does_not_share_memory_gets_no_rank);
	tcase_add_test(t, who_scribbles_hurts_itself_alone);
	tcase_add_test(t, floods_do_not_drown_others);
	tcase_add_test(t, silent_connections_keep_nobody_out);
	tcase_add_test(t, stopped_clients_hold_up_nobody);
}

int main(void)
{
	return hc_suite_run("hostile", add, 60);
}
