/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hcomm_join: from a root info to a domain in which operations run.
 */
#include "apitest.h"
#include "failing.h"
#include "ranks.h"

#include <pthread.h>

START_TEST(ranks_of_several_processes_form_a_domain)
{
	struct hc_order begin = {.what = HC_DO_BEGIN, .kind = HCOMM_OP_ALL_REDUCE},
			end = {.what = HC_DO_END},
			leave = {.what = HC_DO_LEAVE, .timeout_ms = 5000};
	struct hc_rank r[3];
	struct hc_node n;
	unsigned i;

	hc_node_start(&n, 3, NULL);
	hc_ranks_start(r, 3, "three");
	for (i = 0; i < 3; i++)
		hc_rank_must(&r[i], &begin, NULL);
	for (i = 0; i < 3; i++)
		hc_rank_must(&r[i], &end, NULL);
	for (i = 0; i < 3; i++)
		hc_rank_must(&r[i], &leave, NULL);
	hc_ranks_quit(r, 3);
	hc_node_end(&n);
}
END_TEST

/* As after a lost session: the rank is asked for again, and its place is not taken. */
START_TEST(the_same_process_again_takes_its_seat_over)
{
	struct hcomm_session *first, *second[2] = {0};
	struct hcomm_root_info info;
	hcomm_domain d[2], lost;
	struct hc_node n;
	unsigned i;

	hc_node_start(&n, 2, NULL);
	first = open_session();
	works(hcomm_root_info(first, 2, NULL, &info));
	ck_assert_int_eq(hcomm_join(first, &info, 2, 0, 0, NULL, HCOMM_START, &lost),
			 HCOMM_E_IN_PROGRESS);
	works(hcomm_ping(first, 5000));
	hcomm_close(first);
	for (i = 0; i < 2; i++) {
		second[i] = open_session();
		ck_assert_int_eq(hcomm_join(second[i], &info, 2, i, i, NULL, HCOMM_START, &d[i]),
				 HCOMM_E_IN_PROGRESS);
	}
	await_active(second, d, 2);
	ck_assert_uint_eq(id_of(d[0]), id_of(d[1]));
	close_all(second, 2);
	hc_node_end(&n);
}
END_TEST

START_TEST(joining_again_after_the_domain_formed_gives_the_same)
{
	struct hcomm_session *s[2] = {0};
	struct hcomm_root_info info;
	hcomm_domain d[2], again;
	struct hcomm_op op;
	struct hc_node n;
	unsigned i;

	hc_node_start(&n, 2, NULL);
	for (i = 0; i < 2; i++)
		s[i] = open_session();
	works(hcomm_root_info(s[0], 2, NULL, &info));
	for (i = 0; i < 2; i++)
		ck_assert_int_eq(hcomm_join(s[i], &info, 2, i, i, NULL, HCOMM_START, &d[i]),
				 HCOMM_E_IN_PROGRESS);
	await_active(s, d, 2);
	works(hcomm_join(s[1], &info, 2, 1, 1, NULL, 5000, &again));
	ck_assert_uint_eq(id_of(again), id_of(d[1]));
	works(hcomm_op_begin(again, HCOMM_OP_ALL_REDUCE, 8, 0, &op));
	works(hcomm_op_end(&op));
	refused(hcomm_join(s[1], &info, 2, 0, 1, NULL, 5000, &again), HCOMM_E_GONE, "expired");
	close_all(s, 2);
	hc_node_end(&n);
}
END_TEST

START_TEST(a_timeout_names_who_is_missing_and_comes_in_time)
{
	struct hcomm_session *s;
	struct hcomm_root_info info;
	hcomm_domain d = 5;
	struct hc_node n;
	uint64_t began;

	hc_node_start(&n, 2, NULL);
	s = open_session();
	works(hcomm_root_info(s, 3, NULL, &info));
	began = hc_now_ms();
	refused(hcomm_join(s, &info, 3, 1, HCOMM_ANY_DEVICE, NULL, 300, &d), HCOMM_E_TIMEOUT, "0");
	ck_assert_uint_ge(hc_now_ms() - began, 290);
	ck_assert_uint_le(hc_now_ms() - began, hc_patience(5000));
	ck_assert_ptr_nonnull(strstr(hcomm_last_error(), "2"));
	ck_assert_uint_eq(d, 0);
	hcomm_close(s);
	hc_node_end(&n);
}
END_TEST

START_TEST(what_the_daemon_refuses_is_told_in_its_words)
{
	struct hcomm_session *s;
	struct hcomm_root_info info, damaged;
	hcomm_domain d;
	struct hc_node n;

	hc_node_start(&n, 2, NULL);
	s = open_session();
	works(hcomm_root_info(s, 2, NULL, &info));
	refused(hcomm_join(s, &info, 2, 0, 9, NULL, 2000, &d), HCOMM_E_DEVICE_OFFLINE, "9");
	refused(hcomm_join(s, &info, 3, 0, 0, NULL, 2000, &d), HCOMM_E_MISMATCH, "3");
	damaged = info;
	damaged.bytes[20] ^= 1;
	refused(hcomm_join(s, &damaged, 2, 0, 0, NULL, 2000, &d), HCOMM_E_INVALID, "damaged");
	hcomm_close(s);
	hc_node_end(&n);
}
END_TEST

START_TEST(a_rank_that_is_held_names_its_holder)
{
	struct hc_order join = {
		.what = HC_DO_JOIN, .nranks = 2, .rank = 0, .device = 1, .timeout_ms = 3000};
	struct hcomm_session *s;
	struct hc_rank other;
	struct hc_answer a;
	hcomm_domain d;
	struct hc_node n;
	char pid[16];

	hc_node_start(&n, 2, NULL);
	s = open_session();
	works(hcomm_root_info(s, 2, NULL, &join.info));
	ck_assert_int_eq(hcomm_join(s, &join.info, 2, 0, 0, NULL, HCOMM_START, &d),
			 HCOMM_E_IN_PROGRESS);
	hc_rank_spawn(&other);
	ck_assert_int_eq(hc_rank_do(&other, &join, &a), HCOMM_E_BUSY);
	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	ck_assert_msg(strstr(a.text, pid) != NULL, "%s", a.text);
	hc_rank_quit(&other);
	hcomm_close(s);
	hc_node_end(&n);
}
END_TEST

START_TEST(one_rank_alone_needs_no_daemon)
{
	struct hcomm_status st = HCOMM_INIT(struct hcomm_status);
	struct hcomm_config c = HCOMM_INIT(struct hcomm_config);
	struct hcomm_op op;
	hcomm_domain d, e;
	uint32_t v;

	c.name = "lonely";
	works(hcomm_join(NULL, NULL, 1, 0, HCOMM_ANY_DEVICE, &c, 1000, &d));
	works(hcomm_join(NULL, NULL, 1, 0, HCOMM_ANY_DEVICE, NULL, HCOMM_START, &e));
	works(hcomm_status_get(d, &st));
	ck_assert_uint_eq(st.local, 1);
	ck_assert_int_eq(st.state, HCOMM_ACTIVE);
	ck_assert_uint_eq(st.nranks, 1);
	ck_assert_str_eq(st.name, "lonely");
	works(hcomm_op_begin(d, HCOMM_OP_ALL_REDUCE, 1, 0, &op));
	works(hcomm_op_end(&op));
	works(hcomm_rank(e, &v));
	ck_assert_uint_eq(v, 0);
	works(hcomm_leave(d, 100));
	refused(hcomm_status_get(d, &st), HCOMM_E_GONE, "handle");
	works(hcomm_op_begin(e, HCOMM_OP_ALL_REDUCE, 1, 0, &op));
	refused(hcomm_leave(e, 20), HCOMM_E_FORCED, "1 operations");
	refused(hcomm_op_end(&op), HCOMM_E_GONE, "handle");
	refused(hcomm_join(NULL, NULL, 2, 0, 0, NULL, 100, &d), HCOMM_E_INVALID, "info is NULL");
	memset(&op, 0, sizeof(op));
	refused(hcomm_join(NULL, &(struct hcomm_root_info){.bytes = {0, 1}}, 2, 0, 0, NULL, 100,
			   &d),
		HCOMM_E_INVALID, "session is NULL");
}
END_TEST

START_TEST(refusals)
{
	struct fake f;
	struct hcomm_session *s = open_fake(&f, NULL);
	struct hcomm_root_info info, empty = {0};
	hcomm_domain d;

	works(hcomm_root_info(s, 2, NULL, &info));
	refused(hcomm_join(s, &info, 0, 0, 0, NULL, 100, &d), HCOMM_E_INVALID, "nranks is 0");
	refused(hcomm_join(s, &info, 2, 2, 0, NULL, 100, &d), HCOMM_E_INVALID, "rank is 2 of 2");
	refused(hcomm_join(s, &info, 2, 0, 0, NULL, 100, NULL), HCOMM_E_INVALID, "domain is NULL");
	refused(hcomm_join(s, &info, 2, 0, 0, NULL, -7, &d), HCOMM_E_INVALID, "timeout_ms is -7");
	refused(hcomm_join(s, &empty, 2, 0, 0, NULL, 100, &d), HCOMM_E_INVALID, "0 bytes");
	memset(&empty, 0xff, sizeof(empty));
	refused(hcomm_join(s, &empty, 2, 0, 0, NULL, 100, &d), HCOMM_E_INVALID, "65535 bytes");
	hcomm_close(s);
	fake_end(&f);
}
END_TEST

static bool odd(struct fake_conn *c, const struct hc_frame *f, int got, void *arg)
{
	struct hc_m_joined m = {
		.id = 9, .epoch = 1, .nranks = 2, .slot = 3, .tag = 1, .slab_sent = 1};
	struct hc_m_seat seat = {.rank = 0};
	uint8_t seats[16];
	int fd = c->fake->slab_fd;

	switch (f->head.type == HC_MSG_join_root ? *(char *)arg : 0) {
	case 0: return fake_good(c, f, got, NULL);
	case 'n': fd = -1; break; /* no slab comes */
	case 'i': break;          /* the record is another domain's */
	case 'b': seat.block = FAKE_BLOCKS; break;
	case 'r': seat.rank = 2; break;
	case 's': fd = STDERR_FILENO; break; /* no file of that size */
	default: m.seats.count = 0;
	}
	c->fake->slab[3].id = *(char *)arg == 'i' ? 8 : 9;
	if (*(char *)arg != 'e')
		hc_want(!hc_arr_put(&m.seats, seats, sizeof(seats), &hc_desc_seat, 1, &seat));
	return fake_reply(c, f, &hc_desc_joined, &m, fd);
}

/* What cannot be true is not believed, and leaves no handle. */
START_TEST(odd_answers_are_refused)
{
	const char *how = "nibrse";

	for (; *how; how++) {
		struct hcomm_root_info info;
		struct hcomm_session *s;
		struct fake f = {0};
		hcomm_domain d;
		char one = *how;
		unsigned fds;

		fake_start(&f, odd, &one);
		s = open_session();
		works(hcomm_root_info(s, 2, NULL, &info));
		fds = hc_count_fds();
		refused(hcomm_join(s, &info, 2, 0, 0, NULL, 5000, &d), HCOMM_E_MALFORMED, "hcommd");
		ck_assert_uint_eq(d, 0);
		works(hcomm_ping(s, 5000)); /* over a new connection, where that was needed */
		ck_assert_uint_eq(hc_count_fds(), fds);
		hcomm_close(s);
		fake_end(&f);
	}
}
END_TEST

struct late { /* shared with the fake */
	unsigned leaves;
	uint32_t rank;
};

/* `joined` comes only once the caller has given up: at the next ping. */
static bool late_join(struct fake_conn *c, const struct hc_frame *f, int got, void *arg)
{
	static struct hc_frame kept;
	struct late *late = arg;
	struct hc_m_leave leave;

	if (f->head.type == HC_MSG_join_root) {
		kept = *f;
		return true;
	}
	if (f->head.type == HC_MSG_ping && kept.head.id) {
		if (!fake_joined(c, &kept, 77, 2, 1, 5))
			return false;
		kept.head.id = 0;
	}
	if (f->head.type == HC_MSG_leave) {
		hc_want(!hc_decode(&hc_desc_leave, 1, f->body, f->body_len, &leave));
		late->rank = leave.rank;
		late->leaves += leave.id == 77;
	}
	return fake_good(c, f, got, NULL);
}

START_TEST(a_join_that_was_given_up_is_given_back)
{
	struct late *late =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct hcomm_root_info info;
	struct hcomm_session *s;
	struct fake f = {0};
	hcomm_domain d;

	fake_start(&f, late_join, late);
	s = open_session();
	works(hcomm_root_info(s, 2, NULL, &info));
	refused(hcomm_join(s, &info, 2, 1, 0, NULL, 50, &d), HCOMM_E_TIMEOUT, "not answered");
	works(hcomm_ping(s, 5000)); /* reads the late answer, and sends leave */
	works(hcomm_ping(s, 5000));
	ck_assert_uint_eq(late->leaves, 1);
	ck_assert_uint_eq(late->rank, 1);
	hcomm_close(s);
	fake_end(&f);
	munmap(late, 4096);
}
END_TEST

static _Atomic bool enough;
static _Atomic int worst;

static void *ping_always(void *arg)
{
	int r = 0;

	while (!enough && !r)
		r = hcomm_ping(arg, 10000);
	if (r)
		worst = r;
	return NULL;
}

/* Slabs come as descriptors, and threads that wait for other answers must not lose them. */
START_TEST(joins_and_other_calls_share_a_session)
{
	struct hcomm_root_info info;
	pthread_t threads[3];
	struct fake f;
	struct hcomm_session *s;
	hcomm_domain d[40];
	int i, round;

	for (round = 0; round < 5; round++) {
		enough = false;
		s = open_fake(&f, NULL);
		works(hcomm_root_info(s, 2, NULL, &info));
		for (i = 0; i < 3; i++)
			ck_assert_int_eq(pthread_create(&threads[i], NULL, ping_always, s), 0);
		for (i = 0; i < 40; i++) {
			int r = hcomm_join(s, &info, 2, 1, 0, NULL, i % 2 ? HCOMM_START : 10000,
					   &d[i]);

			ck_assert_int_eq(r, i % 2 ? HCOMM_E_IN_PROGRESS : 0);
		}
		enough = true;
		for (i = 0; i < 3; i++)
			pthread_join(threads[i], NULL);
		ck_assert_int_eq(worst, 0);
		for (i = 0; i < 40; i++)
			await_active(&s, &d[i], 1);
		hcomm_close(s);
		fake_end(&f);
	}
}
END_TEST

START_TEST(the_nth_allocation_fails_and_the_next_try_works)
{
	struct hcomm_root_info info;
	struct hcomm_session *s;
	struct fake f;
	hcomm_domain d;
	unsigned fds;
	int n, r;

	s = open_fake(&f, NULL);
	works(hcomm_root_info(s, 2, NULL, &info));
	fds = hc_count_fds();
	for (n = 0;; n++) {
		hc_failing_begin(n);
		r = hcomm_join(s, &info, 2, 1, 0, NULL, 5000, &d);
		if (!hc_failing_end() || !r)
			break;
		ck_assert_int_eq(r, HCOMM_E_NO_MEMORY);
		ck_assert_uint_eq(d, 0);
		works(hcomm_ping(s, 5000)); /* over a new connection, where that was needed */
		ck_assert_uint_eq(hc_count_fds(), fds);
	}
	works(r);
	ck_assert_int_eq(n > 0, HC_FAILING_WORKS);
	works(hcomm_leave(d, 1000));
	for (n = 0;; n++) {
		hc_failing_begin(n);
		r = hcomm_join(NULL, NULL, 1, 0, 0, NULL, 5000, &d);
		if (!hc_failing_end())
			break;
		ck_assert_int_eq(r, HCOMM_E_NO_MEMORY);
	}
	works(r);
	works(hcomm_leave(d, 0));
	hcomm_close(s);
	fake_end(&f);
}
END_TEST

TESTS("hcomm_join", ranks_of_several_processes_form_a_domain,
      the_same_process_again_takes_its_seat_over,
      joining_again_after_the_domain_formed_gives_the_same,
      a_timeout_names_who_is_missing_and_comes_in_time,
      what_the_daemon_refuses_is_told_in_its_words, a_rank_that_is_held_names_its_holder,
      one_rank_alone_needs_no_daemon, refusals, odd_answers_are_refused,
      a_join_that_was_given_up_is_given_back, joins_and_other_calls_share_a_session,
      the_nth_allocation_fails_and_the_next_try_works)
