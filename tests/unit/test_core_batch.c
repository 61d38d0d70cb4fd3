/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Batches in the core: many sub-domains of one parent by one request. The outcome of each item is
 * that of a sub-domain of its own; what is special is who joins (all ranks of the process that an
 * item lists), the one answer, and that nothing else waits for it.
 */
#include "suite.h"
#include "world.h"

#include <string.h>

static struct world w;

static const uint32_t all[] = {0, 1, 2, 3, WORLD_END}, two[] = {3, 1, WORLD_END},
		      twice[] = {2, 2, WORLD_END}, far[] = {0, 9, WORLD_END}, none[] = {WORLD_END};

static void end(void)
{
	world_end(&w);
}

static struct world_client *member(uint32_t node, uint32_t pid)
{
	return world_client(&w, node, pid, 1000, HC_W_role_MEMBER);
}

/* A node where process 100 is all four ranks of a domain. */
static struct world_client *whole(void)
{
	static const uint32_t devices[] = {0, 1, 2, 3};
	struct world_client *c;

	world_start(&w, 1);
	c = member(0, 100);
	world_join_local(&w, c, devices, 4);
	ck_assert_int_eq(c->code, 0);
	world_forget(&w);
	return c;
}

START_TEST(all_ranks_of_the_process_join)
{
	struct world_client *c = whole();
	const struct world_item items[] = {{1, NULL, all}, {2, "pair", two}};
	uint64_t parent = c->id, pair;

	world_batch(&w, c, parent, items, 2);
	ck_transcript(&w, "[    0ms] a 100 batch: 2 of 2 made\n");
	pair = c->made[1];
	ck_assert_ptr_nonnull(world_seat(&w, c->made[0], 3));
	/* rank 3 of the parent is the first of the list */
	ck_assert_uint_eq(world_seat(&w, pair, 0)->device, 3);
	ck_assert_uint_eq(world_seat(&w, pair, 1)->device, 1);
	ck_assert_int_eq(world_record(&w, 0, pair)->state, HC_W_domain_state_ACTIVE);
	world_leave(&w, c, pair, 0);
	world_leave(&w, c, pair, 1);
	world_status(&w, c, pair);
	ck_assert_int_eq(c->state, HC_W_domain_state_DESTROYED);
	world_die(&w, c);
	end();
}
END_TEST

START_TEST(an_item_that_fails_fails_alone)
{
	struct world_client *c = whole();
	const struct world_item items[] = {
		{1, NULL, twice}, {2, "name", all}, {3, NULL, far},
		{4, "name", two}, {5, NULL, two},
	};

	world_batch(&w, c, c->id, items, 5);
	ck_transcript(&w,
		      "[    0ms] a 100 batch: 2 of 5 made; 0: rank 2 stands twice in the list\n");
	ck_assert_uint_eq(c->codes[0], HC_E_INVALID);
	ck_assert_uint_eq(c->codes[1], 0);
	ck_assert_uint_eq(c->codes[2], HC_E_INVALID);
	ck_assert_uint_eq(c->codes[3], HC_E_EXISTS);
	ck_assert_uint_eq(c->codes[4], 0);
	world_die(&w, c);
	end();
}
END_TEST

START_TEST(a_request_that_does_not_fit_is_refused_whole)
{
	struct world_client *c = whole(), *other = member(0, 101);
	const struct world_item items[] = {{1, NULL, all}, {2, NULL, none}};
	uint64_t parent = c->id;

	world_batch(&w, c, parent, items, 2);
	ck_assert_int_eq(c->code, HC_E_INVALID);
	ck_assert_str_eq(c->text, "item 1: its list is empty");
	world_batch(&w, c, parent, items, 0);
	ck_assert_int_eq(c->code, HC_E_INVALID);
	/* who has no rank of the parent, or names another one */
	world_batch(&w, other, parent, items, 1);
	ck_assert_int_eq(other->codes[0], HC_E_PERMISSION);
	world_batch(&w, c, parent + 1, items, 1);
	ck_assert_int_eq(c->codes[0], HC_E_GONE);
	world_die(&w, c);
	world_die(&w, other);
	end();
}
END_TEST

/* Processes of one rank each: an item is there when all of its ranks have named it. */
START_TEST(ranks_of_several_processes_meet)
{
	static const uint32_t pair[] = {1, 0, WORLD_END}, self[] = {0, WORLD_END};
	const struct world_item mine[] = {{1, NULL, pair}, {2, NULL, self}},
				others[] = {{1, NULL, pair}};
	struct world_client *a, *b;
	uint64_t parent;

	world_start(&w, 2);
	a = member(0, 100);
	b = member(1, 200);
	world_root_info(&w, a, 2);
	world_join_root(&w, a, a, 2, 0);
	world_join_root(&w, b, a, 2, 1);
	parent = a->id;
	ck_assert_uint_eq(parent, b->id);
	world_forget(&w);
	world_batch(&w, a, parent, mine, 2);
	ck_assert(world_waits(a));
	world_advance(&w, 100);
	world_batch(&w, b, parent, others, 1);
	ck_transcript(&w, "[  100ms] a 100 batch: 2 of 2 made\n"
			  "[  100ms] b 200 batch: 1 of 1 made\n");
	ck_assert_uint_eq(a->made[0], b->made[0]);
	ck_assert_uint_eq(world_seat(&w, a->made[0], 1)->pid, 100);
	world_die(&w, a);
	world_die(&w, b);
	world_advance(&w, 60000);
	end();
}
END_TEST

START_TEST(who_does_not_come_is_named_at_the_deadline)
{
	static const uint32_t pair[] = {0, 1, WORLD_END}, self[] = {0, WORLD_END};
	const struct world_item items[] = {{1, "both", pair}, {2, NULL, self}};
	struct world_client *a, *b;

	world_start(&w, 1);
	a = member(0, 100);
	b = member(0, 101);
	world_root_info(&w, a, 2);
	world_join_root(&w, a, a, 2, 0);
	world_join_root(&w, b, a, 2, 1);
	world_forget(&w);
	w.opt.timeout_ms = 500;
	world_batch(&w, a, a->id, items, 2);
	world_advance(&w, 500);
	world_want(&w, world_said(&w, "[  500ms] a 100 batch: 1 of 2 made; 0: both: no sign of "
				      "rank 1 (1 of 2 missing) "
				      "within 0.5 s (limit of the call or HCOMM_TIMEOUT_SEC)\n"));
	world_die(&w, a);
	world_die(&w, b);
	end();
}
END_TEST

/* The session goes while items wait for others: nothing of the batch stays. */
START_TEST(a_lost_session_takes_its_batch_along)
{
	static const uint32_t pair[] = {0, 1, WORLD_END};
	const struct world_item items[] = {{1, NULL, pair}, {2, NULL, pair}};
	struct world_client *a, *b, *again;
	uint64_t parent;

	world_start(&w, 1);
	a = member(0, 100);
	b = member(0, 101);
	world_root_info(&w, a, 2);
	world_join_root(&w, a, a, 2, 0);
	world_join_root(&w, b, a, 2, 1);
	parent = a->id;
	world_batch(&w, a, parent, items, 2);
	world_lose(&w, a);
	again = member(0, 100);
	world_attach(&w, again, parent, 0);
	world_batch(&w, again, parent, items, 2);
	world_batch(&w, b, parent, items, 2);
	ck_assert_uint_eq(again->codes[0] | again->codes[1] | b->codes[0] | b->codes[1], 0);
	ck_assert_uint_eq(again->made[1], b->made[1]);
	world_die(&w, again);
	world_die(&w, b);
	end();
}
END_TEST

/* Another client's request is answered while a batch is worked at, and the rows share commits. */
START_TEST(others_are_served_meanwhile)
{
	static struct world_item items[30];
	struct world_client *c = whole(), *other = member(0, 101);
	uint64_t parent = c->id;
	uint32_t i;

	for (i = 0; i < 30; i++)
		items[i] = (struct world_item){i, NULL, all};
	world_store_hold(&w, 0, true);
	world_batch(&w, c, parent, items, 30);
	ck_assert(world_waits(c));
	world_status(&w, other, parent);
	ck_assert(!world_waits(other));
	world_store_hold(&w, 0, false);
	world_settle(&w);
	ck_assert(!world_waits(c));
	for (i = 0; i < 30; i++)
		ck_assert_uint_eq(c->codes[i], 0);
	world_die(&w, c);
	world_die(&w, other);
	end();
}
END_TEST

static void add(TCase *c)
{
	tcase_add_test(c, all_ranks_of_the_process_join);
	tcase_add_test(c, an_item_that_fails_fails_alone);
	tcase_add_test(c, a_request_that_does_not_fit_is_refused_whole);
	tcase_add_test(c, ranks_of_several_processes_meet);
	tcase_add_test(c, who_does_not_come_is_named_at_the_deadline);
	tcase_add_test(c, a_lost_session_takes_its_batch_along);
	tcase_add_test(c, others_are_served_meanwhile);
}

int main(void)
{
	return hc_suite_run("core_batch", add, 60);
}
