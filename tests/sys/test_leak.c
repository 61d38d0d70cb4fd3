/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Case 59: create and destroy for ever.
 *
 * One client makes and destroys domains; many clients come, join, take a reference and go, in
 * order or by a kill. After a warm-up of 100 the daemon's descriptors and size are noted; at the
 * end they are the same: descriptors exactly, memory within 2 MiB (pages of the program itself are
 * read as they are needed and not counted). No two domain ids are equal
 * that live at once, and none comes twice at all. Many domains at once are granted or refused by
 * a limit that has a name. Quick: 1,000 rounds; with HC_LONG=1: 20,000.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ranks.h"
#include "raw.h"
#include "suite.h"

/*
 * A process that is dead is remembered for ten seconds, 64 of them at most, with pidfd and
 * arena. In a storm of short-lived clients these are always there, so that the count that must
 * not grow begins when they are.
 */
enum { WARM_UP = 100, GROWTH_KIB = 2048, ALIVE = 500 };

static struct hc_node node;

static unsigned rounds(void)
{
	return hc_long() ? 20000 : 1000;
}

static int by_id(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

struct level {
	unsigned fds;
	unsigned long kib;
};

static struct level now(void)
{
	return (struct level){hc_proc_fds(node.pid),
			      hc_proc_kib(node.pid, "RssAnon") + hc_proc_kib(node.pid, "RssShmem")};
}

static bool as_few(void *ctx)
{
	return hc_proc_fds(node.pid) <= ((const struct level *)ctx)->fds;
}

static void want_no_growth(struct level *was)
{
	struct level is;

	hc_await("as many descriptors as after the warm-up", as_few, was, 20000);
	is = now();
	ck_assert_msg(is.kib <= was->kib + hc_growth_kib(GROWTH_KIB), "%lu KiB, was %lu", is.kib,
		      was->kib);
}

static uint64_t id_of(hcomm_domain d)
{
	struct hcomm_status st = HCOMM_INIT(struct hcomm_status);

	ck_assert_int_eq(hcomm_status_get(d, &st), 0);
	return st.id;
}

START_TEST(one_client_makes_and_destroys)
{
	const unsigned n = rounds();
	uint64_t *ids = calloc(n, sizeof(*ids));
	struct hcomm_session *s;
	struct level was = {0, 0};
	struct hcomm_op op;
	hcomm_domain d;

	ck_assert_ptr_nonnull(ids);
	hc_node_start(&node, 2, NULL);
	ck_assert_int_eq(hcomm_open(NULL, &s), 0);
	for (unsigned i = 0; i < n; i++) {
		if (i == WARM_UP)
			was = now();
		if (hcomm_join_all_local(s, NULL, 0, NULL, 10000, &d))
			hc_fail("round %u: %s", i, hcomm_last_error());
		ids[i] = id_of(d);
		ck_assert_int_eq(hcomm_op_begin_rank(d, 0, HCOMM_OP_SEND, 1, 0, &op), 0);
		ck_assert_int_eq(hcomm_op_end(&op), 0);
		if (hcomm_destroy(d, 10000))
			hc_fail("round %u: %s", i, hcomm_last_error());
	}
	want_no_growth(&was);
	qsort(ids, n, sizeof(*ids), by_id);
	for (unsigned i = 1; i < n; i++)
		ck_assert_uint_ne(ids[i - 1], ids[i]);
	free(ids);
	hcomm_close(s);
	hc_node_end(&node);
}
END_TEST

static int lives_shortly(void *arg, int in, int out)
{
	const unsigned i = *(const unsigned *)arg;
	struct hcomm_config config = HCOMM_INIT(struct hcomm_config);
	struct hcomm_session *s;
	uint32_t device = 0;
	struct hcomm_op op;
	hcomm_domain d;

	(void)in;
	(void)out;
	config.shared = 1;
	if (hcomm_open(NULL, &s) || hcomm_join_all_local(s, &device, 1, &config, 10000, &d) ||
	    hcomm_op_begin(d, HCOMM_OP_ALL_REDUCE, 1, 0, &op))
		hc_fail("client %u: %s", i, hcomm_last_error());
	if (i % 3 == 1)
		_exit(0); /* without a word, holding a reference */
	hcomm_op_end(&op);
	if (i % 3 == 0 && hcomm_leave(d, 10000))
		hc_fail("client %u: %s", i, hcomm_last_error());
	if (i % 3 == 2 && hcomm_destroy(d, 10000))
		hc_fail("client %u: %s", i, hcomm_last_error());
	hcomm_close(s);
	_exit(0);
}

static bool none_left(void *ctx)
{
	struct hcomm_view_status s;

	(void)ctx;
	hc_ask_status(&s);
	return !s.domains && !s.ranks;
}

START_TEST(many_clients_come_and_go)
{
	struct level was = {0, 0};
	struct hc_child c;

	hc_node_start(&node, 1, "orphan_grace_s = 1");
	for (unsigned i = 0; i < rounds(); i++) {
		if (i == WARM_UP)
			was = now();
		hc_spawn(&c, lives_shortly, &i);
		if (hc_child_wait(&c, 20000))
			hc_fail("client %u ended with %d", i, c.status);
	}
	hc_await("the end of all domains", none_left, NULL, 10000);
	want_no_growth(&was);
	hc_node_end(&node);
}
END_TEST

START_TEST(five_hundred_at_once)
{
	static hcomm_domain d[ALIVE];
	static uint64_t ids[ALIVE];
	struct hcomm_view_status st;
	struct hcomm_session *s;
	struct level was;

	hc_node_start(&node, 1, NULL);
	ck_assert_int_eq(hcomm_open(NULL, &s), 0);
	was = now();
	for (unsigned i = 0; i < ALIVE; i++) {
		if (hcomm_join_all_local(s, NULL, 0, NULL, 10000, &d[i]))
			hc_fail("domain %u: %s", i, hcomm_last_error());
		ids[i] = id_of(d[i]);
	}
	hc_ask_status(&st);
	ck_assert_uint_eq(st.active, ALIVE);
	/* a domain costs no descriptor of its own */
	ck_assert_uint_le(hc_proc_fds(node.pid), was.fds + 2);
	qsort(ids, ALIVE, sizeof(*ids), by_id);
	for (unsigned i = 1; i < ALIVE; i++)
		ck_assert_uint_ne(ids[i - 1], ids[i]);
	for (unsigned i = 0; i < ALIVE; i++)
		ck_assert_int_eq(hcomm_destroy(d[i], 10000), 0);
	hc_await("the end of all domains", none_left, NULL, 10000);
	hcomm_close(s);
	hc_node_end(&node);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_test(t, one_client_makes_and_destroys);
	tcase_add_test(t, many_clients_come_and_go);
	tcase_add_test(t, five_hundred_at_once);
}

int main(void)
{
	return hc_suite_run("leak", add, hc_long() ? 600 : 90);
}
