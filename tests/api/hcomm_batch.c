/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hcomm_batch: many sub-domains in one call, by a process that is all ranks of the parent and by
 * processes that are one each.
 */
#include "apitest.h"
#include "failing.h"

#include <pthread.h>
#include <sys/wait.h>

enum { MANY = 600 };

static const uint32_t all[] = {0, 1, 2, 3}, two[] = {3, 1}, one[] = {2};

static struct hcomm_batch_item item(const uint32_t *ranks, uint32_t count, uint64_t sub_id)
{
	struct hcomm_batch_item it = HCOMM_INIT(struct hcomm_batch_item);

	it.ranks = ranks;
	it.count = count;
	it.sub_id = sub_id;
	it.domain = 77;
	it.result = 77;
	return it;
}

static hcomm_domain join_all(struct hcomm_session *s)
{
	hcomm_domain d = 0;

	works(hcomm_join_all_local(s, NULL, 0, NULL, 10000, &d));
	return d;
}

/* An operation of each kind of seat: begun, ended, and left in order. */
static void use_and_leave(const struct hcomm_batch_item *it)
{
	struct hcomm_op op;
	uint32_t r;

	ck_assert_int_eq(it->result, 0);
	ck_assert_int_eq(state_of(it->domain), HCOMM_ACTIVE);
	for (r = 0; r < it->count; r++) {
		works(hcomm_op_begin_rank(it->domain, r, HCOMM_OP_ALL_REDUCE, 8, 0, &op));
		works(hcomm_op_end(&op));
	}
	works(hcomm_leave(it->domain, 10000));
}

START_TEST(one_process_makes_many_at_once)
{
	static struct hcomm_batch_item it[MANY];
	struct hcomm_session *s;
	struct hcomm_status status = HCOMM_INIT(struct hcomm_status);
	struct hcomm_member m[4];
	uint32_t i, v, n = 4;
	hcomm_domain d;
	struct hc_node node;

	hc_node_start(&node, 4, NULL);
	s = open_session();
	d = join_all(s);
	for (i = 0; i < MANY; i++)
		it[i] = i % 3 == 0   ? item(all, 4, i)
			: i % 3 == 1 ? item(two, 2, i)
				     : item(one, 1, i);
	it[1].name = "expert-parallel";
	works(hcomm_batch(d, it, MANY, 20000));
	works(hcomm_status_get(it[1].domain, &status));
	ck_assert_str_eq(status.name, "expert-parallel");
	works(hcomm_nranks(it[1].domain, &v));
	ck_assert_uint_eq(v, 2);
	works(hcomm_rank(it[2].domain, &v));
	ck_assert_uint_eq(v, 0);
	for (i = 0; i < 4; i++)
		m[i].size = sizeof(m[i]);
	works(hcomm_members(it[1].domain, m, &n));
	ck_assert_uint_eq(n, 2);
	ck_assert_uint_eq(m[0].device, 3); /* the list's first: rank 3 of the parent */
	ck_assert_uint_eq(m[1].device, 1);
	for (i = 0; i < MANY; i++)
		use_and_leave(&it[i]);
	works(hcomm_batch(d, it, MANY, 20000)); /* the same again: new domains */
	hcomm_close(s);
	hc_node_end(&node);
}
END_TEST

struct call {
	hcomm_domain parent;
	struct hcomm_batch_item it[3];
	uint32_t count;
	int result;
	char text[HCOMM_TEXT_BYTES];
};

static void *call_batch(void *arg)
{
	struct call *c = arg;

	c->result = hcomm_batch(c->parent, c->it, c->count, 20000);
	snprintf(c->text, sizeof(c->text), "%s", hcomm_last_error());
	return NULL;
}

static void call_all(struct call *c, unsigned n)
{
	pthread_t threads[4];
	unsigned i;

	for (i = 0; i < n; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, call_batch, &c[i]), 0);
	for (i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
}

START_TEST(each_rank_names_the_domains_that_it_is_in)
{
	struct hcomm_session *s[4] = {0};
	struct call c[4];
	hcomm_domain d[4];
	struct hc_node n;
	uint32_t i, v;

	hc_node_start(&n, 4, NULL);
	form(s, d, 4, NULL);
	for (i = 0; i < 4; i++) {
		c[i] = (struct call){.parent = d[i], .count = 1};
		c[i].it[0] = item(all, 4, 1);
		if (i == 1 || i == 3)
			c[i].it[c[i].count++] = item(two, 2, 2);
	}
	/* one process here, so one of the threads finds all four ranks */
	call_all(c, 1);
	ck_assert_msg(!c[0].result, "%s", c[0].text);
	works(hcomm_nranks(c[0].it[0].domain, &v));
	ck_assert_uint_eq(v, 4);
	use_and_leave(&c[0].it[0]);
	close_all(s, 4);
	hc_node_end(&n);
}
END_TEST

START_TEST(what_fails_alone_leaves_the_others)
{
	static const uint32_t twice[] = {1, 1};
	struct hcomm_batch_item it[4] = {item(all, 4, 1), item(twice, 2, 2), item(all, 4, 3),
					 item(one, 1, 4)};
	struct hcomm_session *s;
	struct hc_node node;
	hcomm_domain d;

	hc_node_start(&node, 4, NULL);
	s = open_session();
	d = join_all(s);
	it[0].name = it[2].name = "same";
	refused(hcomm_batch(d, it, 4, 10000), HCOMM_E_INVALID, "item 1: rank 1 stands twice");
	ck_assert_int_eq(it[0].result, 0);
	ck_assert_int_eq(it[1].result, HCOMM_E_INVALID);
	ck_assert_uint_eq(it[1].domain, 0);
	ck_assert_int_eq(it[2].result, HCOMM_E_EXISTS);
	ck_assert_uint_eq(it[2].domain, 0);
	use_and_leave(&it[0]);
	use_and_leave(&it[3]);
	hcomm_close(s);
	hc_node_end(&node);
}
END_TEST

START_TEST(refusals)
{
	static const uint32_t far[] = {0, 4};
	struct hcomm_batch_item it[2] = {item(all, 4, 1), item(all, 4, 2)};
	struct hcomm_session *s;
	struct hc_node node;
	hcomm_domain d, x;

	hc_node_start(&node, 4, NULL);
	s = open_session();
	d = join_all(s);
	refused(hcomm_batch(d, NULL, 2, 100), HCOMM_E_INVALID, "items is NULL");
	refused(hcomm_batch(d, it, 0, 100), HCOMM_E_INVALID, "count is 0");
	refused(hcomm_batch(d, it, 2, HCOMM_START), HCOMM_E_NOT_SUPPORTED, "waited for");
	refused(hcomm_batch(d, it, 2, -4), HCOMM_E_INVALID, "timeout_ms is -4");
	refused(hcomm_batch(d + 1, it, 2, 100), HCOMM_E_GONE, "handle");
	it[1].count = 0;
	refused(hcomm_batch(d, it, 2, 100), HCOMM_E_INVALID, "items[1]: ranks is NULL, or count");
	it[1] = item(far, 2, 2);
	refused(hcomm_batch(d, it, 2, 100), HCOMM_E_INVALID, "items[1].ranks[1] is 4");
	it[1].size -= 8;
	refused(hcomm_batch(d, it, 2, 100), HCOMM_E_INVALID, "items[1].size");
	it[0].size = 0;
	refused(hcomm_batch(d, it, 2, 100), HCOMM_E_INVALID, "HCOMM_INIT");
	works(hcomm_join(NULL, NULL, 1, 0, 0, NULL, 100, &x));
	it[0] = item(one, 1, 1);
	refused(hcomm_batch(x, it, 1, 100), HCOMM_E_NOT_SUPPORTED, "one rank");
	works(hcomm_leave(x, 100));
	hcomm_close(s);
	hc_node_end(&node);
}
END_TEST

START_TEST(those_who_do_not_come_are_named_in_time)
{
	struct hcomm_session *s = NULL, *other;
	struct hcomm_root_info info;
	struct hcomm_batch_item it;
	hcomm_domain d;
	struct hc_node node;
	pid_t pid;
	int ready[2], end[2], status;
	char c;

	hc_node_start(&node, 4, NULL);
	ck_assert_int_eq(pipe(ready) | pipe(end), 0);
	s = open_session();
	works(hcomm_root_info(s, 2, NULL, &info));
	pid = fork();
	if (!pid) { /* rank 1, which takes no part in the batch */
		other = open_session();
		works(hcomm_join(other, &info, 2, 1, 1, NULL, 10000, &d));
		ck_assert_int_eq(write(ready[1], "x", 1), 1);
		close(end[1]);
		_exit(read(end[0], &c, 1) != 0);
	}
	close(end[0]);
	works(hcomm_join(s, &info, 2, 0, 0, NULL, 10000, &d));
	ck_assert_int_eq(read(ready[0], &c, 1), 1);
	it = item(all, 2, 1);
	refused(hcomm_batch(d, &it, 1, 200), HCOMM_E_TIMEOUT, "item 0: ");
	ck_assert_ptr_nonnull(strstr(hcomm_last_error(), "no sign of rank 1"));
	close(end[1]);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	hcomm_close(s);
	hc_node_end(&node);
}
END_TEST

START_TEST(the_nth_allocation_fails_and_the_next_try_works)
{
	struct hcomm_session *s;
	struct hcomm_batch_item it[2];
	struct hc_node node;
	hcomm_domain d;
	int n, r;

	hc_node_start(&node, 4, NULL);
	s = open_session();
	d = join_all(s);
	for (n = 0;; n++) {
		it[0] = item(all, 4, (uint64_t)n);
		it[1] = item(two, 2, (uint64_t)n + 1000);
		hc_failing_begin(n);
		r = hcomm_batch(d, it, 2, 5000);
		if (!hc_failing_end() || !r)
			break;
		ck_assert_int_eq(r, HCOMM_E_NO_MEMORY);
	}
	works(r);
	ck_assert_int_eq(n > 0, HC_FAILING_WORKS);
	use_and_leave(&it[0]);
	hcomm_close(s);
	hc_node_end(&node);
}
END_TEST

TESTS("hcomm_batch", one_process_makes_many_at_once, each_rank_names_the_domains_that_it_is_in,
      what_fails_alone_leaves_the_others, refusals, those_who_do_not_come_are_named_in_time,
      the_nth_allocation_fails_and_the_next_try_works)
