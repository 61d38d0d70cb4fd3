/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hcomm_barrier: nobody returns before all have called, and who cannot come is named.
 */
#include "apitest.h"
#include "failing.h"
#include "suite.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>

enum { ROUNDS = 200, RANKS = 3 };

struct call {
	hcomm_domain domain;
	int timeout_ms, result;
	char text[HCOMM_TEXT_BYTES];
	_Atomic uint32_t *inside;
};

static void *call_barrier(void *arg)
{
	struct call *c = arg;

	c->result = hcomm_barrier(c->domain, c->timeout_ms);
	snprintf(c->text, sizeof(c->text), "%s", hcomm_last_error());
	return NULL;
}

/* In each round everybody counts itself before, and sees all counted behind. */
static void *call_rounds(void *arg)
{
	struct call *c = arg;
	uint32_t i;

	for (i = 0; i < ROUNDS && !c->result; i++) {
		atomic_fetch_add(c->inside, 1);
		c->result = hcomm_barrier(c->domain, c->timeout_ms);
		if (!c->result && atomic_load(c->inside) < (i + 1) * RANKS)
			c->result = HCOMM_E_INTERNAL;
	}
	snprintf(c->text, sizeof(c->text), "%s", hcomm_last_error());
	return NULL;
}

static void begin(struct call *c, pthread_t *thread, hcomm_domain d, int timeout_ms)
{
	*c = (struct call){.domain = d, .timeout_ms = timeout_ms};
	ck_assert_int_eq(pthread_create(thread, NULL, call_barrier, c), 0);
}

static void want(struct call *c, pthread_t thread, int result, const char *text)
{
	pthread_join(thread, NULL);
	ck_assert_msg(c->result == result, "%s: %s; wanted %s", hcomm_error_name(c->result),
		      c->text, hcomm_error_name(result));
	if (result)
		ck_assert_msg(strstr(c->text, text) != NULL, "'%s'; wanted in it '%s'", c->text,
			      text);
}

START_TEST(nobody_returns_before_all_have_called)
{
	struct hcomm_session *s[RANKS] = {0};
	_Atomic uint32_t inside = 0;
	pthread_t threads[RANKS];
	struct call c[RANKS];
	hcomm_domain d[RANKS];
	struct hc_node n;
	unsigned i;

	hc_node_start(&n, RANKS, NULL);
	form(s, d, RANKS, NULL);
	for (i = 0; i < RANKS; i++) {
		c[i] = (struct call){.domain = d[i], .timeout_ms = 20000, .inside = &inside};
		ck_assert_int_eq(pthread_create(&threads[i], NULL, call_rounds, &c[i]), 0);
	}
	for (i = 0; i < RANKS; i++)
		want(&c[i], threads[i], 0, "");
	close_all(s, RANKS);
	hc_node_end(&n);
}
END_TEST

START_TEST(who_has_not_come_is_named)
{
	struct hcomm_session *s[RANKS] = {0};
	hcomm_domain d[RANKS];
	pthread_t thread;
	struct hc_node n;
	struct call c;

	hc_node_start(&n, RANKS, NULL);
	form(s, d, RANKS, NULL);
	begin(&c, &thread, d[1], 300);
	want(&c, thread, HCOMM_E_TIMEOUT, "barrier #1: no word from rank 0 2 (2 of 3)");
	/* calling again goes on with the same one */
	begin(&c, &thread, d[1], 20000);
	refused(hcomm_barrier(d[0], 200), HCOMM_E_TIMEOUT, "no word from rank 2 (1 of 3)");
	works(hcomm_barrier(d[2], 20000));
	want(&c, thread, 0, "");
	works(hcomm_barrier(d[0], 20000));
	close_all(s, RANKS);
	hc_node_end(&n);
}
END_TEST

START_TEST(the_end_of_the_domain_ends_it)
{
	struct hcomm_session *s[RANKS] = {0};
	hcomm_domain d[RANKS];
	pthread_t thread;
	struct hc_node n;
	struct call c;

	hc_node_start(&n, RANKS, NULL);
	form(s, d, RANKS, NULL);
	begin(&c, &thread, d[0], 60000);
	if (_i == 0) {
		works(hcomm_abort(d[1], "as told"));
		want(&c, thread, HCOMM_E_ABORTED, "as told");
		refused(hcomm_barrier(d[2], 1000), HCOMM_E_ABORTED, "as told");
	} else if (_i == 1) {
		works(hcomm_leave(d[1], 10000));
		want(&c, thread, HCOMM_E_GONE, "rank 1");
	} else {
		works(hcomm_destroy(d[1], 10000));
		want(&c, thread, HCOMM_E_GONE, "destroyed by uid");
	}
	close_all(s, RANKS);
	hc_node_end(&n);
}
END_TEST

START_TEST(leaving_right_behind_it_is_fine)
{
	struct hcomm_session *s[2] = {0};
	hcomm_domain d[2];
	pthread_t thread;
	struct hc_node n;
	struct call c;
	int i;

	hc_node_start(&n, 2, NULL);
	for (i = 0; i < 20; i++) {
		form(s, d, 2, NULL);
		begin(&c, &thread, d[0], 20000);
		works(hcomm_barrier(d[1], 20000));
		works(hcomm_leave(d[1], 10000));
		want(&c, thread, 0, "");
		works(hcomm_leave(d[0], 10000));
	}
	close_all(s, 2);
	hc_node_end(&n);
}
END_TEST

START_TEST(a_handle_of_all_ranks_counts_for_all)
{
	struct hcomm_session *s;
	hcomm_domain d;
	struct hc_node n;
	unsigned fds;

	hc_node_start(&n, 4, NULL);
	s = open_session();
	fds = hc_count_fds();
	works(hcomm_join_all_local(s, NULL, 0, NULL, 10000, &d));
	works(hcomm_barrier(d, 1000));
	works(hcomm_barrier(d, 1000));
	ck_assert_uint_eq(hc_count_maps("hcomm-sync"), 1);
	works(hcomm_leave(d, 1000));
	ck_assert_uint_eq(hc_count_maps("hcomm-sync"), 0);
	ck_assert_uint_eq(hc_count_fds(), fds);
	hcomm_close(s);
	hc_node_end(&n);
}
END_TEST

/* A rank that writes into the page what cannot be is told so, or ends another's wait in error. */
static bool forged_page(struct fake_conn *c, const struct hc_frame *f, int got, void *arg)
{
	struct hc_m_sync_open_r m = {.id = 1, .epoch = 1, .lines = 2, .bytes = 8192};
	char path[160];
	int fd;
	bool on;

	if (f->head.type != HC_MSG_sync_open)
		return fake_good(c, f, got, arg);
	snprintf(path, sizeof(path), "%s/page", c->fake->dir);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	hc_want(fd >= 0 && !ftruncate(fd, 8192));
	on = fake_reply(c, f, &hc_desc_sync_open_r, &m, fd);
	close(fd);
	return on;
}

START_TEST(a_page_that_could_shrink_is_not_mapped)
{
	struct fake f;
	struct hcomm_session *s = open_fake(&f, forged_page);
	hcomm_domain d = join_root(s, 2, 0);
	unsigned fds = hc_count_fds();

	refused(hcomm_barrier(d, 1000), HCOMM_E_MALFORMED, "sealed");
	ck_assert_uint_eq(hc_count_fds(), fds);
	hcomm_close(s);
	fake_end(&f);
}
END_TEST

START_TEST(refusals)
{
	struct hcomm_session *s[2] = {0};
	hcomm_domain d[2], x;
	pthread_t threads[2];
	struct call c[2];
	struct hc_node n;
	int i;

	hc_node_start(&n, 2, NULL);
	form(s, d, 2, NULL);
	refused(hcomm_barrier(d[0], HCOMM_START), HCOMM_E_INVALID, "timeout_ms is 0");
	refused(hcomm_barrier(d[0], -7), HCOMM_E_INVALID, "timeout_ms is -7");
	refused(hcomm_barrier(0, 10), HCOMM_E_GONE, "handle");
	refused(hcomm_barrier(d[0] ^ 1ull << 40, 10), HCOMM_E_GONE, "handle");
	/* two threads at a time, each for longer than the other takes to begin */
	for (i = 0; i < 2; i++)
		begin(&c[i], &threads[i], d[0], 3000);
	for (i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	i = c[0].result == HCOMM_E_INVALID ? 0 : 1;
	ck_assert_int_eq(c[i].result, HCOMM_E_INVALID);
	ck_assert_ptr_nonnull(strstr(c[i].text, "another thread"));
	ck_assert_int_eq(c[!i].result, HCOMM_E_TIMEOUT);
	/* one rank alone has nobody to wait for */
	works(hcomm_join(NULL, NULL, 1, 0, 0, NULL, 100, &x));
	works(hcomm_barrier(x, 10));
	works(hcomm_abort(x, "done"));
	refused(hcomm_barrier(x, 10), HCOMM_E_ABORTED, "aborted");
	works(hcomm_leave(x, 100));
	close_all(s, 2);
	hc_node_end(&n);
}
END_TEST

START_TEST(the_nth_allocation_fails_and_the_next_try_works)
{
	struct hcomm_session *s;
	struct hc_node node;
	hcomm_domain d;
	int n, r;

	hc_node_start(&node, 2, NULL);
	s = open_session();
	works(hcomm_join_all_local(s, NULL, 0, NULL, 10000, &d));
	for (n = 0;; n++) {
		hc_failing_begin(n);
		r = hcomm_barrier(d, 5000);
		if (!hc_failing_end() || !r)
			break;
		ck_assert_int_eq(r, HCOMM_E_NO_MEMORY);
	}
	works(r);
	ck_assert_int_eq(n > 0, HC_FAILING_WORKS);
	hcomm_close(s);
	hc_node_end(&node);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_test(t, nobody_returns_before_all_have_called);
	tcase_add_test(t, who_has_not_come_is_named);
	tcase_add_loop_test(t, the_end_of_the_domain_ends_it, 0, 3);
	tcase_add_test(t, leaving_right_behind_it_is_fine);
	tcase_add_test(t, a_handle_of_all_ranks_counts_for_all);
	tcase_add_test(t, a_page_that_could_shrink_is_not_mapped);
	tcase_add_test(t, refusals);
	tcase_add_test(t, the_nth_allocation_fails_and_the_next_try_works);
}

int main(void)
{
	int status;

	hc_tests_begin();
	status = hc_suite_run("hcomm_barrier", add, 60);
	hc_tests_end(status != 0);
	return status;
}
