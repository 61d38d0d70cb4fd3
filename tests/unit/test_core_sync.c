/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Barrier pages and the exchange, as the core decides over them; and between two nodes, carried
 * by hand.
 */
#include "suite.h"
#include "syncpage.h"
#include "world.h"

#include "hcomm/hcomm.h"

#include <string.h>

static struct world w;
static struct world_table t;
static struct world_client *r0, *r1, *r2;
static uint64_t id;

static const uint32_t only0[] = {0, WORLD_END}, only1[] = {1, WORLD_END}, only2[] = {2, WORLD_END};

static void start_with(const struct hc_limits *limits)
{
	struct hc_limits l;
	struct hc_settings settings;

	world_defaults(&l, &settings);
	world_start_with(&w, 1, limits ? limits : &l, &settings, 8, 1);
	r0 = world_client(&w, 0, 100, 1000, HC_W_role_MEMBER);
	r1 = world_client(&w, 0, 101, 1000, HC_W_role_MEMBER);
	r2 = world_client(&w, 0, 102, 1000, HC_W_role_MEMBER);
	world_table(&t, 3, 1);
	world_join_table(&w, r0, &t, 0);
	world_join_table(&w, r1, &t, 1);
	world_join_table(&w, r2, &t, 2);
	id = r0->id;
	ck_assert(id);
	w.show = SHOW_REPLIES;
	world_forget(&w);
}

static void end(void)
{
	world_die(&w, r0);
	world_die(&w, r1);
	world_die(&w, r2);
	world_advance(&w, 10000);
	world_check_empty(&w);
	world_end(&w);
}

/* ---- the page ---- */

START_TEST(the_daemon_lets_its_page_go_when_all_have_it)
{
	start_with(NULL);
	world_sync_open(&w, r0, id, 0);
	ck_assert_uint_eq(r0->lines, 3);
	world_sync_open(&w, r1, id, 1);
	world_sync_have(&w, r0, id, 0, true, 0, 0);
	world_sync_have(&w, r1, id, 1, true, 0, 0);
	ck_assert_uint_eq(w.pages[0][r0->slot], id);
	world_sync_open(&w, r2, id, 2);
	world_sync_have(&w, r2, id, 2, true, 0, 0);
	ck_assert_uint_eq(w.pages[0][r0->slot], 0);
	/* a process that threw its own away is told so; there will be no second page */
	world_sync_open(&w, r1, id, 1);
	ck_assert_int_eq(r1->code, HC_E_GONE);
	end();
}
END_TEST

START_TEST(a_page_goes_with_its_domain)
{
	start_with(NULL);
	world_sync_open(&w, r0, id, 0);
	ck_assert_uint_eq(w.pages[0][r0->slot], id);
	world_destroy(&w, r0, id);
	world_settle(&w);
	ck_assert_uint_eq(w.pages[0][r0->slot], 0);
	world_sync_open(&w, r0, id, 0);
	ck_assert_int_eq(r0->code, HC_E_GONE);
	end();
}
END_TEST

static struct world_client *again(uint32_t pid)
{
	return world_client(&w, 0, pid, 1000, HC_W_role_MEMBER);
}

START_TEST(after_a_restart_there_is_one_page_and_no_second)
{
	uint32_t blocks[3], i;

	start_with(NULL);
	world_sync_open(&w, r0, id, 0);
	world_sync_have(&w, r0, id, 0, true, 0, 0);
	for (i = 0; i < 3; i++)
		blocks[i] = world_seat(&w, id, i)->block;
	world_restart(&w, 0);
	r2 = again(102);
	world_come_back(&w, r2, id, 2, blocks[2]);
	world_sync_open(&w, r2, id, 2);
	ck_assert_int_eq(r2->code, HC_E_AGAIN);
	ck_assert_ptr_nonnull(strstr(r2->text, "rank 0"));
	/* what rank 1 brings is no page; then rank 0 brings it, before it attaches */
	r1 = again(101);
	world_sync_have(&w, r1, id, 1, true, 4096, 0);
	ck_assert_int_eq(r1->code, HC_E_INVALID);
	world_come_back(&w, r1, id, 1, blocks[1]);
	r0 = again(100);
	world_sync_have(&w, r0, id, 0, true, HC_SYNC_BYTES(3), 0);
	ck_assert_int_eq(r0->code, 0);
	world_sync_open(&w, r2, id, 2);
	ck_assert_int_eq(r2->code, 0);
	world_come_back(&w, r0, id, 0, blocks[0]);
	world_sync_have(&w, r1, id, 1, true, 0, 0);
	world_sync_have(&w, r2, id, 2, true, 0, 0);
	ck_assert_uint_eq(w.pages[0][r0->slot], 0);
	end();
}
END_TEST

START_TEST(when_nobody_brings_one_there_is_a_new_one)
{
	uint32_t blocks[3], i;

	start_with(NULL);
	for (i = 0; i < 3; i++)
		blocks[i] = world_seat(&w, id, i)->block;
	world_restart(&w, 0);
	r0 = again(100);
	r1 = again(101);
	r2 = again(102);
	world_come_back(&w, r0, id, 0, blocks[0]);
	world_come_back(&w, r1, id, 1, blocks[1]);
	world_sync_open(&w, r0, id, 0);
	ck_assert_int_eq(r0->code, HC_E_AGAIN);
	world_come_back(&w, r2, id, 2, blocks[2]);
	world_sync_open(&w, r0, id, 0);
	ck_assert_int_eq(r0->code, 0);
	end();
}
END_TEST

/* ---- values ---- */

START_TEST(a_get_waits_for_its_key)
{
	start_with(NULL);
	world_get(&w, r1, id, 1, "key", 5000, true, 0);
	world_get(&w, r2, id, 2, "key", 1000, true, 0);
	ck_assert(world_waits(r1) && world_waits(r2));
	world_advance(&w, 2000);
	ck_assert_int_eq(r2->code, HC_E_TIMEOUT);
	ck_assert_ptr_nonnull(strstr(r2->text, "key"));
	world_put(&w, r0, id, 0, "key", "value", 5, 0);
	ck_assert(!world_waits(r1));
	ck_assert_uint_eq(r1->got_len, 5);
	ck_assert_int_eq(memcmp(r1->got, "value", 5), 0);
	/* a version that is known costs nothing */
	world_get(&w, r2, id, 2, "key", 0, true, r1->version);
	ck_assert_uint_eq(r2->got_len, 0);
	ck_assert_uint_eq(r2->version, r1->version);
	world_put(&w, r0, id, 0, "key", "other", 5, 0);
	ck_assert_uint_eq(r0->value, r1->version + 1);
	world_get(&w, r2, id, 2, "key", 0, true, r1->version);
	ck_assert_uint_eq(r2->got_len, 5);
	end();
}
END_TEST

START_TEST(a_long_value_goes_out_only_when_it_is_asked_for)
{
	static uint8_t value[HCOMM_VALUE_BYTES];

	start_with(NULL);
	memset(value, 7, sizeof(value));
	world_get(&w, r1, id, 1, "key", 5000, false, 0);
	world_put(&w, r0, id, 0, "key", value, sizeof(value), 0);
	ck_assert_uint_eq(r1->got_bytes, sizeof(value));
	ck_assert_uint_eq(r1->got_len, 0);
	world_get(&w, r1, id, 1, "key", 0, true, 0);
	ck_assert_uint_eq(r1->got_len, sizeof(value));
	ck_assert_int_eq(memcmp(r1->got, value, sizeof(value)), 0);
	/* the world's promises look at cells and charges after each of these */
	world_put(&w, r0, id, 0, "key", value, 1, 0);
	world_put(&w, r0, id, 0, "key", value, 1025, 0);
	world_put(&w, r0, id, 0, "key", NULL, 0, 0);
	world_get(&w, r1, id, 1, "key", 0, true, 0);
	ck_assert_int_eq(r1->code, 0);
	ck_assert_uint_eq(r1->got_bytes, 0);
	end();
}
END_TEST

START_TEST(memory_has_a_quota_and_an_end)
{
	static uint8_t value[HCOMM_VALUE_BYTES];
	struct hc_limits limits;
	struct hc_settings settings;
	char key[16];
	int i;

	world_defaults(&limits, &settings);
	limits.quota_memory = 100u << 10;
	start_with(&limits);
	for (i = 0; i < 4; i++) {
		snprintf(key, sizeof(key), "k%d", i);
		world_put(&w, r0, id, 0, key, value, sizeof(value), 0);
		ck_assert_int_eq(r0->code, i < 3 ? 0 : HC_E_LIMIT);
	}
	ck_assert_ptr_nonnull(strstr(r0->text, "quota_memory_mib"));
	end();
	world_defaults(&limits, &settings);
	limits.values = 64; /* KiB, of which the last eighth is for others */
	start_with(&limits);
	world_put(&w, r0, id, 0, "a", value, sizeof(value), 0);
	world_put(&w, r0, id, 0, "b", value, 24u << 10, 0);
	ck_assert_int_eq(r0->code, 0);
	world_put(&w, r0, id, 0, "c", value, 10u << 10, 0);
	ck_assert_int_eq(r0->code, HC_E_LIMIT);
	ck_assert_ptr_nonnull(strstr(r0->text, "64 KiB"));
	end();
}
END_TEST

START_TEST(who_waits_is_told_when_it_is_in_vain)
{
	start_with(NULL);
	world_get(&w, r1, id, 1, "key", 5000, true, 0);
	world_fence(&w, r2, id, only2, 1, 5000);
	world_die(&w, r0);
	ck_assert_int_eq(r1->code, HC_E_DAMAGED);
	ck_assert_int_eq(r2->code, HC_E_DAMAGED);
	ck_assert_ptr_nonnull(strstr(r1->text, "rank 0, pid 100"));
	ck_assert_ptr_nonnull(strstr(r2->text, "rank 0, pid 100"));
	world_put(&w, r1, id, 1, "key", "v", 1, 0);
	ck_assert_int_eq(r1->code, HC_E_DAMAGED);
	end();
}
END_TEST

START_TEST(a_session_that_goes_waits_no_more)
{
	struct world_client *other;
	int i;

	start_with(NULL);
	for (i = 0; i < 30; i++)
		world_get(&w, r1, id, 1, "key", 3600000, true, 0);
	world_fence(&w, r1, id, only1, 1, 3600000);
	world_lose(&w, r1);
	world_settle(&w);
	/* the promises of the world count waiters; here it is that the fence forgot rank 1 */
	world_fence(&w, r0, id, only0, 1, 1000);
	world_advance(&w, 2000);
	ck_assert_int_eq(r0->code, HC_E_TIMEOUT);
	ck_assert_ptr_nonnull(strstr(r0->text, "no word from rank 1 2 (2 of 3)"));
	other = r1;
	r1 = again(101);
	world_lose(&w, r1);
	r1 = other;
	world_dead(&w, 0, 101);
	world_die(&w, r0);
	world_die(&w, r2);
	world_advance(&w, 10000);
	world_check_empty(&w);
	world_end(&w);
}
END_TEST

/* ---- the fence ---- */

START_TEST(a_fence_ends_when_all_are_in_it)
{
	static const uint32_t both[] = {0, 2, WORLD_END};

	start_with(NULL);
	world_fence(&w, r0, id, only0, 1, 5000);
	world_fence(&w, r1, id, only1, 0, 5000);
	world_fence(&w, r2, id, only2, 1, 5000);
	ck_assert(!world_waits(r0) && !world_waits(r1) && !world_waits(r2));
	ck_assert_uint_eq(r1->value, 1);
	/* a lost answer: the fence that has ended is answered at once; one too far is none */
	world_fence(&w, r0, id, only0, 1, 5000);
	ck_assert_int_eq(r0->code, 0);
	world_fence(&w, r0, id, only0, 3, 5000);
	ck_assert_int_eq(r0->code, HC_E_INVALID);
	/* the same rank again: the later call counts */
	world_fence(&w, r0, id, only0, 2, 5000);
	world_fence(&w, r0, id, only0, 2, 5000);
	ck_assert_int_eq(r0->code, HC_E_IN_PROGRESS);
	ck_assert(world_waits(r0));
	world_fence(&w, r1, id, only1, 2, 5000);
	ck_assert(world_waits(r1));
	world_fence(&w, r2, id, both, 2, 5000);
	ck_assert_int_eq(r2->code, HC_E_PERMISSION);
	world_fence(&w, r2, id, only2, 2, 5000);
	ck_assert(!world_waits(r0) && !world_waits(r1) && !world_waits(r2));
	end();
}
END_TEST

/* ---- restart ---- */

START_TEST(what_was_put_is_put_again_and_covers_nothing_newer)
{
	uint32_t blocks[3], i;
	uint64_t old0, old1;

	start_with(NULL);
	world_put(&w, r0, id, 0, "key", "from 0", 6, 0);
	old0 = r0->value;
	world_put(&w, r1, id, 1, "key", "from 1", 6, 0);
	old1 = r1->value;
	for (i = 0; i < 3; i++)
		blocks[i] = world_seat(&w, id, i)->block;
	world_restart(&w, 0);
	r2 = again(102);
	world_sync_have(&w, r2, id, 2, false, 0, 4); /* four fences had ended */
	world_come_back(&w, r2, id, 2, blocks[2]);
	/* it may still be told: not "not found" */
	world_get(&w, r2, id, 2, "key", 0, true, 0);
	ck_assert(world_waits(r2));
	r1 = again(101);
	world_put(&w, r1, id, 1, "key", "from 1", 6, old1);
	world_come_back(&w, r1, id, 1, blocks[1]);
	ck_assert(!world_waits(r2));
	ck_assert_int_eq(memcmp(r2->got, "from 1", 6), 0);
	world_get(&w, r2, id, 2, "none", 0, true, 0);
	ck_assert(world_waits(r2));
	r0 = again(100);
	world_put(&w, r0, id, 0, "key", "from 0", 6, old0);
	world_come_back(&w, r0, id, 0, blocks[0]);
	ck_assert(!world_waits(r2)); /* all have told: there is none */
	ck_assert_int_eq(r2->code, HC_E_NOT_FOUND);
	world_get(&w, r2, id, 2, "key", 0, true, 0);
	ck_assert_int_eq(memcmp(r2->got, "from 1", 6), 0);
	/* a value of now is newer than all of before */
	world_put(&w, r0, id, 0, "key", "of now", 6, 0);
	world_put(&w, r1, id, 1, "key", "from 1", 6, old1);
	world_get(&w, r2, id, 2, "key", 0, true, 0);
	ck_assert_int_eq(memcmp(r2->got, "of now", 6), 0);
	world_fence(&w, r0, id, only0, 4, 1000);
	ck_assert_int_eq(r0->code, 0);
	world_fence(&w, r0, id, only0, 5, 1000);
	ck_assert(world_waits(r0));
	end();
}
END_TEST

/* ---- two nodes ---- */

START_TEST(between_two_nodes)
{
	struct world_client *a, *b;
	static uint8_t value[HCOMM_VALUE_BYTES];

	world_start(&w, 2);
	a = world_client(&w, 0, 100, 1000, HC_W_role_MEMBER);
	b = world_client(&w, 1, 200, 1000, HC_W_role_MEMBER);
	world_table(&t, 2, 2);
	world_join_table(&w, a, &t, 0);
	world_join_table(&w, b, &t, 1);
	id = a->id;
	ck_assert(id && b->id == id);
	memset(value, 3, sizeof(value));
	/* b asks the home of a, before and after there is a value */
	world_get(&w, b, id, 1, "key", 5000, true, 0);
	ck_assert(world_waits(b));
	world_put(&w, a, id, 0, "key", value, sizeof(value), 0);
	ck_assert_uint_eq(b->got_len, sizeof(value));
	world_put(&w, b, id, 1, "other", "from b", 6, 0);
	world_get(&w, a, id, 0, "other", 0, true, 0);
	ck_assert_int_eq(memcmp(a->got, "from b", 6), 0);
	world_fence(&w, b, id, only1, 1, 5000);
	world_fence(&w, a, id, only0, 1, 5000);
	ck_assert(!world_waits(a) && !world_waits(b));
	ck_assert_int_eq(b->code, 0);
	/* an answer that comes twice, or for a ticket of nobody, is nothing */
	world_hold(&w, 0, 1, true);
	world_get(&w, b, id, 1, "other", 0, true, 0);
	ck_assert_str_eq(world_next_name(&w, 0, 1), "exch_got");
	world_duplicate(&w, 0, 1);
	ck_assert(!world_waits(b));
	world_hold(&w, 0, 1, false);
	world_settle(&w);
	/* the barrier says clearly that it does not go so far */
	world_sync_open(&w, a, id, 0);
	ck_assert_int_eq(a->code, HC_E_NOT_SUPPORTED);
	ck_assert_ptr_nonnull(strstr(a->text, "1 of the 2 ranks"));
	world_die(&w, a);
	world_die(&w, b);
	world_advance(&w, 10000);
	world_check_empty(&w);
	world_end(&w);
}
END_TEST

/* A flood of long values: none is lost, and no step is too long for its buffers. */
START_TEST(many_long_values_at_once)
{
	static uint8_t value[HCOMM_VALUE_BYTES];
	int i;

	start_with(NULL);
	for (i = 0; i < 100; i++)
		world_get(&w, i & 1 ? r1 : r2, id, i & 1 ? 1 : 2, "key", 5000, true, 0);
	world_put(&w, r0, id, 0, "key", value, sizeof(value), 0);
	world_settle(&w);
	ck_assert_uint_eq(r1->nwaits + r2->nwaits, 0);
	end();
}
END_TEST

static void add(TCase *c)
{
	tcase_add_test(c, the_daemon_lets_its_page_go_when_all_have_it);
	tcase_add_test(c, a_page_goes_with_its_domain);
	tcase_add_test(c, after_a_restart_there_is_one_page_and_no_second);
	tcase_add_test(c, when_nobody_brings_one_there_is_a_new_one);
	tcase_add_test(c, a_get_waits_for_its_key);
	tcase_add_test(c, a_long_value_goes_out_only_when_it_is_asked_for);
	tcase_add_test(c, memory_has_a_quota_and_an_end);
	tcase_add_test(c, who_waits_is_told_when_it_is_in_vain);
	tcase_add_test(c, a_session_that_goes_waits_no_more);
	tcase_add_test(c, a_fence_ends_when_all_are_in_it);
	tcase_add_test(c, what_was_put_is_put_again_and_covers_nothing_newer);
	tcase_add_test(c, between_two_nodes);
	tcase_add_test(c, many_long_values_at_once);
}

int main(void)
{
	return hc_suite_run("core sync", add, 60);
}
