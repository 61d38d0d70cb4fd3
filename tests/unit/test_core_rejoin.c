/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A rank that joins again while its domain is being made, and what its node makes of that.
 *
 * Two real cores, a (the home: ranks 0 and 2) and b (ranks 1 and 3), whose messages and rows the
 * test holds back. What has begun to activate is complete, so who comes again to it begins the
 * next domain of that key. When the home is restarted before it has committed, the first one is
 * made anew, and then both are the same domain. Wanted: one domain, all ranks in it, an answer for
 * each call.
 */
#include "again.h"
#include "away.h"
#include "pages.h"
#include "suite.h"
#include "world.h"

enum { RANKS = 4 };

static struct world w;
static struct world_table t;
static struct world_client *rank[RANKS];

static void join(uint32_t r)
{
	rank[r] = world_client(&w, r % 2, 100 + r, 1000, HC_W_role_MEMBER);
	world_join_table(&w, rank[r], &t, r);
}

static void meet(uint32_t x, uint32_t y)
{
	hc_away_back(w.core[x], w.node_of[x][y], 1000 + y);
	hc_again(w.core[x], w.node_of[x][y]);
}

static void lose_mail(void)
{
	while (world_drop(&w, 0, 1) || world_drop(&w, 1, 0))
		;
}

/* b has prepared, its rows are stored; the home waits for its own row, which never comes. */
static void prepare(void)
{
	uint32_t r;

	world_start(&w, 2);
	hc_away_back(w.core[0], w.node_of[0][1], 1001);
	hc_away_back(w.core[1], w.node_of[1][0], 1000);
	world_table(&t, RANKS, 2);
	w.hold_store[0] = true;
	for (r = 0; r < RANKS; r++)
		join(r);
	ck_assert(world_waits(rank[1]) && world_waits(rank[3]));
	w.hold[1][0] = w.hold[0][1] = true;
}

/* The home's daemon is another one, and the nodes meet. */
static void home_again(void)
{
	lose_mail();
	world_restart(&w, 0);
	lose_mail();
	w.hold_store[0] = false;
	meet(0, 1);
	meet(1, 0);
	world_hold_none(&w);
	world_settle(&w);
	join(0);
	join(2);
	world_advance(&w, 2500);
}

static void all_in_one(void)
{
	uint32_t r;

	for (r = 0; r < RANKS; r++) {
		ck_assert_msg(!world_waits(rank[r]), "rank %u waits", r);
		ck_assert_msg(!rank[r]->code, "rank %u: %s", r, rank[r]->text);
		ck_assert_uint_eq(rank[r]->id, rank[0]->id);
	}
	ck_assert_uint_eq(w.core[1]->part_pool.used, 1);
	ck_assert_int_eq(world_record(&w, 1, rank[0]->id)->state, HC_W_domain_state_ACTIVE);
	world_die_all(&w);
	world_advance(&w, 130000);
	world_check_empty(&w);
	world_end(&w);
}

START_TEST(a_rank_that_came_again_is_of_the_domain_that_is_made_anew)
{
	prepare();
	world_lose(&w, rank[3]);
	join(3);
	ck_assert_uint_eq(w.core[1]->part_pool.used, 2); /* the next of that key */
	home_again();
	all_in_one();
}
END_TEST

/* Both came again, one after the other. */
START_TEST(all_of_the_node_came_again)
{
	prepare();
	world_lose(&w, rank[1]);
	world_lose(&w, rank[3]);
	join(1);
	join(3);
	home_again();
	all_in_one();
}
END_TEST

static void add(TCase *c)
{
	tcase_add_test(c, a_rank_that_came_again_is_of_the_domain_that_is_made_anew);
	tcase_add_test(c, all_of_the_node_came_again);
}

int main(void)
{
	return hc_suite_run("core_rejoin", add, 60);
}
